// types.ts - what the service answers, as far as the dashboard reads it
import type { AllocatedGpu, Job, ModelWaiting, Holder as Reservation } from "./resources";

export type { Allocation, Job } from "./resources";

export type Phase = Reservation["phase"];

export interface Holder {
  phase: Phase;
  memory_mb: number;
  measured_memory_mb: number;
  share: number;
  whole: boolean;
  job_id?: string;
  task?: number;
  slot_id?: string;
  model_id?: string;
  name?: string;
  tenant_id?: string;
  tenant: string | null;
}

export interface Gpu {
  uuid: string;
  index: number;
  node: string;
  model: string;
  total_memory: number;
  free_memory: number;
  used_memory: number;
  reserved_memory: number;
  releasing_memory: number;
  claimed_memory: number;
  foreign_memory: number;
  unexplained_memory: number;
  overhead_memory: number;
  share: number;
  available: boolean;
  whole: boolean;
  healthy: boolean;
  hot: boolean;
  over: boolean;
  mig_mode: boolean;
  present: boolean;
  nvlink_group: number;
  holders?: Holder[];
  temperature_c?: number;
  power_watts?: number;
  utilization?: number;
  measured_memory_mb?: number;
}

/** What was measured last: °C, W, 0 to 1, MiB. */
export interface Sample {
  temperature: number;
  power: number;
  utilization: number;
  memory: number;
}

export interface Node {
  id: string;
  state: "online" | "unknown" | "lost";
  connected: boolean;
  draining: boolean;
  drain_reason: string;
  reported: boolean;
  zone: string;
  rack: string;
  labels: Record<string, string>;
  total_gpus: number;
  available_gpus: number;
  total_cpu_cores: number;
  used_cpu_cores: number;
  total_memory_mb: number;
  used_memory_mb: number;
  reservations: number;
}

export type JobState = Job["state"];
export type Part = AllocatedGpu;

export interface Figures {
  total_nodes: number;
  online_nodes: number;
  draining_nodes: number;
  total_gpus: number;
  usable_gpus: number;
  available_gpus: number;
  running_jobs: number;
  pending_jobs: number;
  scheduled_jobs: number;
  completed_jobs: number;
  failed_jobs: number;
  total_gpu_memory_mb: number;
  reserved_gpu_memory_mb: number;
  releasing_gpu_memory_mb: number;
  foreign_gpu_memory_mb: number;
  avg_gpu_utilization: number | null;
}

export interface Tenant {
  id: string;
  name: string;
  parent_id: string | null;
  max_gpus: number | null;
  quota_gpus: number | null;
  priority_tier: string;
  fair_share_weight: number;
  current_gpus: number;
  current_gpu_memory: number;
  current_jobs: number;
  waiting_jobs: number;
  fair_share_gpus: number;
  total_gpu_hours: number;
  total_jobs: number;
  successful_jobs: number;
  failed_jobs: number;
  total_cost: number;
  month_cost: number;
  cost_per_gpu_hour: number;
  budget_per_month: number | null;
}

export interface Model {
  id: string;
  name: string;
  tenant_id: string;
  runtime: string;
  gpu_memory_mb: number;
  min_replicas: number;
  max_replicas: number;
  ready_slots: number;
  coming_slots: number;
  stopping_slots: number;
  asleep_slots: number;
  active_requests: number;
  waiting_requests: number;
  places: number;
  message: string;
  load_time: string | null;
  failures: number;
  not_before: string | null;
  oldest_wait_ms: number | null;
  answers_per_minute: number;
  first_token_p50_ms: number | null;
  first_token_p99_ms: number | null;
  tokens_per_second: number;
  waiting_tenants?: ModelWaiting[];
  gateway_url: string | null;
}

export interface Slot {
  id: string;
  runner_id: string | null;
  model: string;
  model_id: string;
  tenant_id: string;
  runtime: string;
  gpu_allocation: {
    index: number;
    uuid: string | null;
    memory_mb: number;
    measured_memory_mb: number;
  }[];
  active_requests: number;
  max_concurrency: number;
  status: string;
  pinned: boolean;
  created: string | null;
  ready_at: string | null;
  last_used_at: string | null;
}

export interface Line {
  uuid: string | null;
  node: string | null;
  capacity_mb: number;
  overhead_mb: number;
  foreign_mb: number;
  unexplained_mb?: number;
  used_before_mb: number;
  releasing_mb: number;
  claimed_mb: number;
  asked_mb: number;
  used_after_mb: number;
}

export interface Decision {
  id: number;
  type: string;
  time: string;
  job_id?: string;
  name?: string;
  array_index?: number;
  tenant_id?: string | null;
  model?: string | null;
  model_id?: string;
  slot_id?: string | null;
  for_job_id?: string | null;
  runner_id: string | null;
  tasks?: number;
  candidates?: number;
  until?: string | null;
  gpus?: Line[];
  victims?: { job_id: string | null; task: number; moved: boolean; lost_gpu_seconds: number }[];
  evicted?: { slot_id: string; model: string | null; memory_mb: number }[];
  message?: string;
  explanation?: string[];
}

export interface Run {
  task: number;
  attempt: number | null;
  node: string | null;
  gpus: number;
  began_at: string;
  started_at: string | null;
  ended_at: string | null;
  ending: string;
  exit_code?: number | null;
}

export interface Event {
  seq: number;
  type: string;
  topic: string;
  time: string;
  job_id?: string;
  name?: string;
  state?: string;
  task?: number;
  tenant_id?: string;
  node?: string | null;
  node_state?: string;
  gpu?: string | null;
  model?: string | null;
  model_id?: string;
  slot_id?: string | null;
  exit_code?: number;
  over_by_mb?: number;
}

export interface Session {
  name: string;
  role: "admin" | "tenant" | "tenant_admin" | "viewer";
  tenant_id: string | null;
  tenant: string | null;
  /** Signed in by the provider: the session is in a cookie. */
  single_sign_on?: boolean;
  may_change: boolean;
  version: string;
}

/** How people can sign in. */
export interface Login {
  provider: string | null;
  browser: boolean;
}

export interface Span {
  gpu: string;
  node: string | null;
  index: number;
  memory_mb: number;
  job_id?: string;
  slot_id?: string;
  name: string;
  tenant_id?: string;
  from: string;
  to: string | null;
  /** True if it has not happened yet. */
  expected?: boolean;
}
