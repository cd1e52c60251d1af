// future.ts - what is expected on the GPUs: the ends of running jobs and promised starts
import { millis, seconds } from "./format";
import type { Window } from "./resources";
import type { Decision, Job, Span } from "./types";

/** How long a promised job without an expected duration is drawn. */
const UNKNOWN_MS = 10 * 60000;

/** How long it takes, as jobs like it did, or else as its owner expects; in seconds. */
function takesOf(job: Job): number | null {
  const predicted = seconds(job.estimated_duration);
  if (predicted && job.prediction_confidence >= 0.1) return predicted;
  return job.estimated_runtime_minutes ? job.estimated_runtime_minutes * 60 : null;
}

/** Windows on the GPUs that they cover, as they are open or come next. */
export function windowSpans(
  windows: readonly Window[],
  gpus: readonly { uuid: string; node: string }[],
): Span[] {
  return windows.flatMap((window) => {
    const { next_start: from, next_end: to } = window;
    if (!from || !to) return [];
    const on = gpus.filter(
      (gpu) => window.gpus.includes(gpu.uuid) || window.nodes.includes(gpu.node),
    );
    return on.map((gpu) => ({
      gpu: gpu.uuid,
      node: gpu.node,
      index: 0,
      memory_mb: 0,
      name: `${window.maintenance ? "maintenance" : "reserved"}: ${window.name}`,
      ...(window.tenant_id ? { tenant_id: window.tenant_id } : {}),
      from,
      to,
      expected: true,
    }));
  });
}

/** Spans behind `now`: they are marked as expected. */
export function future(
  spans: readonly Span[],
  running: readonly Job[],
  waiting: readonly Job[],
  promises: readonly Decision[],
  now: number,
): Span[] {
  const ends = new Map<string, number>();
  for (const job of running) {
    const takes = takesOf(job);
    const starts = job.allocations.flatMap((one) => millis(one.started_at) ?? []);
    const from = starts.length ? Math.min(...starts) : millis(job.started_at);
    if (takes && from !== null) ends.set(job.id, from + takes * 1000);
  }
  const rest = spans.flatMap((span) => {
    const end = span.to || !span.job_id ? undefined : ends.get(span.job_id);
    return end && end > now ? [{ ...span, from: iso(now), to: iso(end), expected: true }] : [];
  });
  const promised = new Set<string>();
  const starts = waiting.flatMap((job) => {
    const start = millis(job.estimated_start);
    // The newest promise about it is the one that holds.
    const promise = promises.find((one) => one.job_id === job.id);
    if (start === null || !promise || promised.has(job.id)) return [];
    promised.add(job.id);
    const takes = (takesOf(job) ?? 0) * 1000 || UNKNOWN_MS;
    const from = Math.max(now, start);
    return (promise.gpus ?? []).flatMap((line): Span[] =>
      line.uuid
        ? [
            {
              gpu: line.uuid,
              node: line.node,
              index: 0,
              memory_mb: line.asked_mb,
              job_id: job.id,
              name: job.name,
              tenant_id: job.tenant_id,
              from: iso(from),
              to: iso(from + takes),
              expected: true,
            },
          ]
        : [],
    );
  });
  return [...rest, ...starts];
}

function iso(time: number): string {
  return new Date(time).toISOString();
}
