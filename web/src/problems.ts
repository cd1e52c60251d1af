// problems.ts - what is wrong in the cluster, and which nodes to look at first
import type { Cell, NodeCell } from "./cluster";
import { memory, percent } from "./format";

export interface Problem {
  /** The worst first: 3 a node is away, 2 a GPU is broken or over, 1 a GPU is hot. */
  weight: number;
  node: string;
  gpu: string | null;
  text: string;
}

function ofGpu(cell: Cell): Omit<Problem, "node"> | null {
  const gpu = cell.books.peek();
  const name = `GPU ${gpu.index}`;
  if (!gpu.present) return { weight: 2, gpu: cell.uuid, text: `${name} is gone` };
  if (!gpu.healthy) return { weight: 2, gpu: cell.uuid, text: `${name} is unhealthy` };
  if (gpu.over)
    return {
      weight: 2,
      gpu: cell.uuid,
      text: `${name} is ${memory(gpu.used_memory - gpu.total_memory)} over capacity`,
    };
  const heat = cell.sample.peek()?.temperature;
  if (gpu.hot)
    return { weight: 1, gpu: cell.uuid, text: `${name} is too hot${heat ? `: ${heat} °C` : ""}` };
  return null;
}

/** What is wrong with a node and its GPUs. */
export function problemsOf(cell: NodeCell): Problem[] {
  const node = cell.node.peek();
  if (node.state !== "online" || !node.connected) {
    const text = node.state !== "online" ? `is ${node.state}` : "has no connected agent";
    return [{ weight: 3, node: cell.name, gpu: null, text }];
  }
  return cell.gpus.peek().flatMap((gpu) => {
    const found = ofGpu(gpu);
    return found ? [{ node: cell.name, ...found }] : [];
  });
}

export function problems(nodes: readonly NodeCell[]): Problem[] {
  return nodes.flatMap(problemsOf).sort((a, b) => b.weight - a.weight);
}

/** From this number on, GPUs that are too hot are told of together. */
const HOT_TOGETHER = 4;

/** What to list, and in how many GPUs on how many nodes it is only heat. */
export function summed(all: readonly Problem[]): { listed: Problem[]; hot: number; on: number } {
  const hot = all.filter((one) => one.weight === 1);
  if (hot.length < HOT_TOGETHER) return { listed: [...all], hot: 0, on: 0 };
  const nodes = new Set(hot.map((one) => one.node));
  return { listed: all.filter((one) => one.weight > 1), hot: hot.length, on: nodes.size };
}

export type Order = "name" | "problems" | "free" | "hot" | "idle";

function mean(cell: NodeCell): number {
  const loads = cell.gpus.peek().flatMap((gpu) => gpu.sample.peek()?.utilization ?? []);
  return loads.length ? loads.reduce((sum, one) => sum + one, 0) / loads.length : 1;
}

/** The larger, the earlier; nodes of the same rank keep their order. */
function rank(cell: NodeCell, order: Order): number {
  if (order === "problems") return Math.max(0, ...problemsOf(cell).map((one) => one.weight));
  if (order === "free") return cell.node.peek().available_gpus;
  if (order === "hot")
    return Math.max(0, ...cell.gpus.peek().map((gpu) => gpu.sample.peek()?.temperature ?? 0));
  // Idle: what is held and does least.
  if (order === "idle") return cell.node.peek().reservations > 0 ? 1 - mean(cell) : -1;
  return 0;
}

export function ordered(nodes: readonly NodeCell[], order: Order): NodeCell[] {
  if (order === "name") return [...nodes];
  return nodes
    .map((cell): [NodeCell, number] => [cell, rank(cell, order)])
    .sort((a, b) => b[1] - a[1])
    .map(([cell]) => cell);
}

function named(kind: string, name: string): string {
  return name === "" || name.toLowerCase().startsWith(kind) ? name : `${kind} ${name}`;
}

export interface Rack {
  name: string;
  nodes: NodeCell[];
  free: number;
  total: number;
  load: string;
}

/** Nodes by zone and rack, in the order of the first node of each. */
export function racks(nodes: readonly NodeCell[]): Rack[] {
  const all = new Map<string, NodeCell[]>();
  for (const cell of nodes) {
    const { zone, rack } = cell.node.peek();
    const name = [named("zone", zone), named("rack", rack)].filter(Boolean).join(", ");
    const list = all.get(name);
    if (list) list.push(cell);
    else all.set(name, [cell]);
  }
  return [...all].map(([name, list]) => {
    const sum = (of: (cell: NodeCell) => number) => list.reduce((all, one) => all + of(one), 0);
    return {
      name: name || "no rack",
      nodes: list,
      free: sum((one) => one.node.peek().available_gpus),
      total: sum((one) => one.node.peek().total_gpus),
      load: percent(sum(mean) / list.length),
    };
  });
}
