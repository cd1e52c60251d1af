// warnings.ts - what will probably not work about a job, before it is sent
import type { NodeCell } from "./cluster";
import { memory, plural } from "./format";

function fits(model: string, wanted: unknown): boolean {
  const all = Array.isArray(wanted) ? wanted.map(String) : String(wanted).split("|");
  return all.some((one) => model.toLowerCase().includes(one.trim().toLowerCase()));
}

/** Sentences about what no node of the cluster has. The service decides; these only warn. */
export function warnings(job: Record<string, unknown>, nodes: readonly NodeCell[]): string[] {
  if (nodes.length === 0) return ["There are no nodes, so it will wait."];
  const all: string[] = [];
  let left = nodes.map((one) => ({
    node: one.node.peek(),
    gpus: one.gpus.peek().map((gpu) => gpu.books.peek()),
  }));
  if (job.gpu_model) {
    left = left.map((one) => ({
      ...one,
      gpus: one.gpus.filter((gpu) => fits(gpu.model, job.gpu_model)),
    }));
    if (left.every((one) => one.gpus.length === 0))
      return [`No GPU of this cluster is a ${job.gpu_model}, so it can never run.`];
  }
  const labels = Object.entries((job.node_labels ?? {}) as Record<string, string>);
  left = left.filter((one) => labels.every(([name, value]) => one.node.labels[name] === value));
  if (left.length === 0)
    return [
      `No node has the ${labels.length === 1 ? "label" : "labels"} ${labels
        .map(([name, value]) => `${name}=${value}`)
        .join(" ")}.`,
    ];
  const largest = Math.max(...left.flatMap((one) => one.gpus.map((gpu) => gpu.total_memory)), 0);
  const sizes = [job.gpu_memory_mb ?? 0].flat() as number[];
  if (Math.max(...sizes) > largest)
    all.push(
      `No GPU has ${memory(Math.max(...sizes))}: the largest has ${memory(largest)}, so it can never run.`,
    );
  const wanted = Number(job.gpu_count ?? 0);
  const most = Math.max(...left.map((one) => one.gpus.length));
  const total = left.reduce((sum, one) => sum + one.gpus.length, 0);
  const tasks = Number(job.tasks ?? 1);
  if (wanted > total || (job.tasks && wanted > most))
    all.push(
      `A task asks for ${plural(wanted, "GPU")}, and the largest node has ${most}, so it can never run.`,
    );
  else if (wanted > most)
    all.push(
      `No node has ${wanted} GPUs (the largest has ${most}): only a gang can be split over nodes.`,
    );
  else if (wanted * tasks > total && job.min_available === undefined)
    all.push(`It asks for ${wanted * tasks} GPUs at once, and there are ${total}.`);
  const cores = Math.max(...left.map((one) => one.node.total_cpu_cores));
  if (Number(job.cpu_cores ?? 0) > cores)
    all.push(`No node has ${job.cpu_cores} CPU cores: the largest has ${cores}.`);
  const host = Math.max(...left.map((one) => one.node.total_memory_mb));
  if (Number(job.memory_mb ?? 0) > host)
    all.push(`No node has ${memory(Number(job.memory_mb))} of host memory.`);
  return all;
}
