// idle.ts - GPUs that are held and not used, by owner
import type { NodeCell } from "./cluster";

/** Below this utilization a GPU is idle: what a driver and a waiting process show. */
export const IDLE_BELOW = 0.05;

export interface Waste {
  key: string;
  job: string | null;
  name: string;
  tenant: string | null;
  tenantId: string | null;
  gpus: number;
  idle: number;
  /** Reserved memory that nobody uses: MiB. */
  unused: number;
  utilization: number;
}

/** The mean of what was measured since the page was opened, at most ten minutes. */
function meanOf(loads: readonly number[], now: number): number {
  if (loads.length === 0) return now;
  return loads.reduce((sum, one) => sum + one, 0) / loads.length / 100;
}

/** Each owner of live memory, the one with most idle GPUs first. */
export function wasted(nodes: readonly NodeCell[]): Waste[] {
  const all = new Map<string, Waste & { samples: number }>();
  for (const node of nodes)
    for (const cell of node.gpus.peek()) {
      const sample = cell.sample.peek();
      if (!sample) continue;
      const load = meanOf(cell.loads, sample.utilization);
      const holders = (cell.books.peek().holders ?? []).filter((one) => one.phase === "live");
      for (const holder of holders) {
        const key = holder.job_id ?? holder.model_id ?? holder.tenant_id ?? "other";
        const owner = all.get(key) ?? {
          key,
          job: holder.job_id ?? null,
          name: holder.name ?? holder.tenant ?? "another tenant",
          tenant: holder.tenant,
          tenantId: holder.tenant_id ?? null,
          gpus: 0,
          idle: 0,
          unused: 0,
          utilization: 0,
          samples: 0,
        };
        const alone = holders.length === 1;
        const measured = alone
          ? Math.max(holder.measured_memory_mb, sample.memory - cell.books.peek().foreign_memory)
          : holder.measured_memory_mb;
        owner.gpus += holder.whole ? 1 : holder.share;
        if (load < IDLE_BELOW) owner.idle += holder.whole ? 1 : holder.share;
        owner.unused += Math.max(0, holder.memory_mb - measured);
        owner.utilization += load;
        owner.samples++;
        all.set(key, owner);
      }
    }
  return [...all.values()]
    .map(({ samples, ...one }) => ({ ...one, utilization: one.utilization / samples }))
    .sort((a, b) => b.idle - a.idle || a.utilization - b.utilization);
}
