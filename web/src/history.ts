// history.ts - what the service recorded of the last day or week
export type Period = "day" | "week";
export type Values = (number | null)[];

export interface History {
  period: Period;
  step_seconds: number;
  from: string;
  cluster?: {
    gpu_utilization: Values;
    gpu_memory_reserved: Values;
    gpu_memory_used: Values;
    available_gpus: Values;
    total_gpus: Values;
    running_jobs?: Values;
    pending_jobs?: Values;
  };
  tenants?: TenantTrack[];
  gpu?: { uuid: string; utilization: Values; memory_mb: Values; temperature_c: Values };
}

export interface TenantTrack {
  tenant_id: string;
  tenant: string;
  gpus: Values;
  running_jobs: Values;
  waiting_jobs: Values;
  cost_per_hour: Values;
}

/** The times of the values, in seconds since 1970. */
export function times(history: History): number[] {
  const from = Date.parse(history.from) / 1000;
  const count = history.cluster?.total_gpus.length ?? history.gpu?.utilization.length ?? 0;
  return Array.from({ length: count }, (_, place) => from + place * history.step_seconds);
}

/** The least number of steps that are shown. */
const LEAST = 12;

/** The first place at which anything is known, so that a young cluster fills its chart. */
export function beginning(...lists: Values[]): number {
  const firsts = lists.map((list) => list.findIndex((value) => value !== null));
  const known = firsts.filter((place) => place >= 0);
  const most = (lists[0]?.length ?? 0) - LEAST;
  return known.length ? Math.max(0, Math.min(most, ...known)) : 0;
}

export function scaled(values: Values, by: number): Values {
  return values.map((value) => (value === null ? null : value * by));
}

/** The tenants that used most, and all others as one. */
export function largest(tenants: readonly TenantTrack[], most: number): TenantTrack[] {
  const total = (one: TenantTrack) => one.gpus.reduce<number>((sum, v) => sum + (v ?? 0), 0);
  const order = [...tenants].sort((a, b) => total(b) - total(a));
  const rest = order.slice(most);
  if (rest.length === 0) return order;
  const add = (key: "gpus" | "running_jobs" | "waiting_jobs" | "cost_per_hour"): Values =>
    (order[0]?.[key] ?? []).map((_, place) => {
      const values = rest.flatMap((one) => one[key][place] ?? []);
      return values.length ? values.reduce((sum, value) => sum + value, 0) : null;
    });
  return [
    ...order.slice(0, most),
    {
      tenant_id: "",
      tenant: `${rest.length} others`,
      gpus: add("gpus"),
      running_jobs: add("running_jobs"),
      waiting_jobs: add("waiting_jobs"),
      cost_per_hour: add("cost_per_hour"),
    },
  ];
}
