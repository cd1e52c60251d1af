// resources.ts - what the service answers and accepts; written by scripts/generate-web

/** A job that must finish first. */
export interface Dependency {
  /** The job to wait for. */
  job?: string;
  /** A job of the array to wait for, all of it; instead of job. */
  array?: string;
  /** Whether it must succeed, or just finish. */
  condition: "success" | "any";
}

/** The hard limit on GPU memory that tasks are under. */
export interface Guard {
  /** The limit on each GPU; the least where they differ. */
  limit_mb: number;
  /** The most that the guard has counted on one GPU. */
  peak_mb: number;
  /** How often a request for more was refused. */
  refusals: number;
  /** The size of the last request that was refused. */
  last_refused_mb: number | null;
  /** True if a process was seen on a GPU without the guard, such as a static program. */
  unguarded: boolean;
}

/** A GPU, or a part of one, that a task has. */
export interface AllocatedGpu {
  /** The GPU. */
  uuid: string | null;
  /** The GPU's index on its node. */
  index?: number;
  /** Reserved memory. */
  memory_mb: number;
  /** The share of the GPU, from 0 to 1. */
  share: number;
  /** Memory in use. */
  measured_memory_mb: number;
  /** True if the GPU is reserved whole. */
  whole: boolean;
}

/** A task that was placed. */
export interface Allocation {
  /** The task's number in its job. */
  task: number;
  /** Where the task is in its life. */
  state:
    | "pending"
    | "placed"
    | "running"
    | "stopping"
    | "ended"
    | "suspending"
    | "suspended"
    | "resuming";
  /** When the task started. */
  started_at: string | null;
  /** When the task ended. */
  ended_at: string | null;
  /** The exit code of an ended task. */
  exit_code?: number;
  /** The most memory that it used on one GPU, measured every second and by the guard. */
  peak_gpu_memory_mb: number;
  /** Time on GPUs over all runs, by the share of each GPU. */
  gpu_seconds: number;
  /** Energy that the GPUs used, by the share of each GPU. */
  energy_joules: number;
  /** The most host memory that it used; known when it has ended. */
  peak_memory_mb: number;
  /** Processor time; known when it has ended. */
  cpu_seconds: number;
  /** The hard limit on GPU memory; null where there is none. */
  guard: Guard | null;
  /** The node that it is on. */
  node?: string;
  /** The state of its reservation. */
  phase?:
    | "claim"
    | "held"
    | "live"
    | "releasing"
    | "suspending"
    | "suspended"
    | "waking"
    | "resuming";
  /** What it has of each GPU. */
  gpus?: AllocatedGpu[];
}

/** Something to run, and what became of it. */
export interface Job {
  /** The job's id. */
  id: string;
  /** Equal to id. */
  job_id: string;
  /** The tenant that the job belongs to: its id, number or name (default: the token's). */
  tenant_id: string;
  /** What people know the job by; runtimes are predicted from jobs whose names differ in numbers alone. */
  name: string;
  /** Where the job is in its life. */
  state:
    | "pending"
    | "scheduled"
    | "running"
    | "preempted"
    | "completed"
    | "failed"
    | "cancelled"
    | "suspended";
  /** True if the job waits to be released. */
  held: boolean;
  /** 100 to 500 is background, 500 to 1000 normal, 1000 to 2000 high, above that urgent; 0 is the configured default. */
  priority: number;
  /** What the GPU fields mean: no GPU, gpu_count whole GPUs, gpu_fraction of a GPU, or gpu_memory_mb of a GPU. */
  gpu_sharing: "none" | "whole" | "fraction" | "memory";
  /** Whole GPUs for each task. */
  gpu_count: number;
  /** With gpu_count, the least memory of each GPU; without it, a part of one GPU of this size, or a list with the part of each GPU. */
  gpu_memory_mb: number | number[];
  /** A part of one GPU. */
  gpu_fraction: number | null;
  /** With a part of one GPU, the share of its compute that each task has; without it, the tasks on a GPU take turns. */
  gpu_compute: number | null;
  /** With gpu_compute, how many processes of each task use its GPU: they divide its share evenly (default: 1). */
  gpu_processes?: number;
  /** CPU cores for each task. */
  cpu_cores: number;
  /** Host memory for each task. */
  memory_mb: number;
  /** The program and its arguments, one text each. */
  command?: string[];
  /** Arguments that follow the command, or those of the image or script. */
  args?: string[];
  /** A shell script to run instead of a command. */
  script?: string;
  /** A container image to run in. */
  image?: string;
  /** Environment variables. */
  environment?: Record<string, string>;
  /** Environment variables that are sealed before they are stored and never shown. */
  secret_environment?: Record<string, string>;
  /** Labels for people, and for ?label= in lists. */
  labels?: Record<string, string>;
  /** Names and texts that the scheduler stores and shows, and does not interpret. */
  annotations?: Record<string, string>;
  /** The directory that the task starts in, on its node or in its image: an absolute path. */
  working_directory?: string;
  /** Without working_directory, the task starts there if its user may enter it, and otherwise in its home. */
  submit_directory?: string;
  /** The file or directory that changes when the task has saved its work: an absolute path. */
  checkpoint_path?: string;
  /** All tasks start together; without tasks, a gang larger than a node is split over nodes. */
  gang_scheduling: boolean;
  /** Copies of the job, on one node or several. */
  tasks?: number;
  /** Tasks that start together or not at all (default: all of them). */
  min_available?: number;
  /** True if the job may be stopped for others (default: the tenant's allow_preemption). */
  preemptible: boolean;
  /** The job is ended after this time. */
  max_runtime_minutes: number | null;
  /** How long the owner expects the job to run; counts where GPUs are shared in time, and has no effect when the job runs longer. */
  estimated_runtime_minutes: number | null;
  /** When the job should be finished. */
  deadline: string | null;
  /** The job does not start before. */
  begin: string | null;
  /** The window that the job runs in: it starts there alone, and while it is open. */
  window?: string;
  /** The job saves its work, so it may be moved. */
  checkpoint_enabled: boolean;
  /** What happens to the job when its node is lost: keep it, or stop and requeue it. */
  on_lease_loss: "keep" | "stop";
  /** Whether its GPU memory may go to host memory for a while: once its program came back on such a GPU (auto, or else as the setting suspend says), always, or never. */
  suspend: "auto" | "always" | "never";
  /** Which tasks have a standard input, written through the service while they run: none, the first, or all; gpu-cli run passes on its own. terminal: the first has a terminal, which sessions attach to. */
  standard_input?: "none" | "first" | "all" | "terminal";
  /** Who is told about this job beside its tenant's recipients: mail addresses, and URLs that are posted to, such as Slack's. */
  notify?: string[];
  /** What those in notify are told (default: completed, failed and cancelled). */
  notify_on?: ("started" | "completed" | "failed" | "preempted" | "cancelled")[];
  /** Jobs of the same tenant that must finish first. */
  depends_on: Dependency[];
  /** The first job of the array. */
  array_id?: string;
  /** The job's index in its array. */
  array_index?: number;
  /** Jobs of the array that may run at a time. */
  array_limit?: number;
  /** Allowed GPU models, separated by | or in a list. */
  gpu_model?: string;
  /** Labels that the nodes must have. */
  node_labels?: Record<string, string>;
  /** How close together the GPUs should be. */
  closeness?: "any" | "nvlink" | "node" | "rack";
  /** The job waits until its GPUs can be that close. */
  closeness_required?: boolean;
  /** Counted resources that each task takes of its node, as name and number. */
  resources?: Record<string, string>;
  /** The group of its tasks, by which spread, apart and together select within a tenant. */
  group?: string;
  /** Domains over which the tasks of its group are spread, with the largest difference: node, rack, zone or a label of nodes. */
  spread?: Record<string, string>;
  /** Domains that its tasks do not share with tasks of a group: node, rack, zone or a label of nodes. */
  apart?: Record<string, string>;
  /** Domains that its tasks share with tasks of a group: node, rack, zone or a label of nodes. */
  together?: Record<string, string>;
  /** A second submission with the same key returns the first job; also the header Idempotency-Key. */
  idempotency_key?: string;
  /** Who submitted the job: the id of the token, or the subject of the JWT. */
  user?: string;
  /** When the job was submitted. */
  submitted_at: string;
  /** When the job was first placed. */
  scheduled_at: string | null;
  /** When the job first started. */
  started_at: string | null;
  /** When the job finished. */
  completed_at: string | null;
  /** How long similar jobs took. */
  estimated_duration: string | null;
  /** How far estimated_duration can be trusted, from 0 to 1. */
  prediction_confidence: number;
  /** How often the job was preempted. */
  preempted_count: number;
  /** The exit code of a finished job. */
  exit_code: number | null;
  /** Why the job failed. */
  message: string;
  /** The most memory that a task used on one GPU, measured every second and by the guard. */
  peak_gpu_memory_mb: number | null;
  /** Time on GPUs over all runs, by the share of each GPU. */
  gpu_seconds: number | null;
  /** Energy that the GPUs used, by the share of each GPU. */
  energy_joules: number | null;
  /** The most host memory that a task used; known when the task has ended. */
  peak_memory_mb: number | null;
  /** Processor time; known when the task has ended. */
  cpu_seconds: number | null;
  /** The hard limit on GPU memory; null where there is none. */
  guard: Guard | null;
  /** The place in the queue, from 1. */
  queue_position: number | null;
  /** The place among the tenant's waiting jobs, from 1. */
  tenant_queue_position?: number;
  /** Time until the expected start. */
  estimated_wait: string | null;
  /** The expected start. */
  estimated_start: string | null;
  /** The start that was promised when the job waited; nine of ten jobs start by then. */
  promised_start: string | null;
  /** The chance that the job misses its deadline, from 0 to 1; null: unknown, or it has none. */
  deadline_risk: number | null;
  /** Why the job waits. */
  reason?: string;
  /** The node of the first placed task. */
  node_name: string | null;
  /** The UUIDs of the job's GPUs. */
  allocated_gpus: string[];
  /** The tasks that were placed, with their nodes and GPUs. */
  allocations: Allocation[];
}

/** A team, or an organization with teams below it: its limits, its quota and its use. */
export interface Tenant {
  /** The tenant's id. */
  id: string;
  /** A unique name that does not look like an id. */
  name: string;
  /** The tenant above it: an id, number or name. */
  parent_id: string | null;
  /** The address of whoever is responsible. */
  email?: string;
  /** The organization that it belongs to. */
  organization?: string;
  /** The Unix user that its tasks run as. */
  unix_user?: string;
  /** Where mail about its jobs goes: an address, or true for email. */
  notify_email?: string;
  /** A URL that is called about its jobs. */
  notify_webhook?: string;
  /** Signs calls of the webhook. */
  notify_secret?: string;
  /** What is told about its jobs. */
  notify_on?: ("started" | "completed" | "failed" | "preempted" | "cancelled")[];
  /** GPUs that it may hold at a time; null is no limit. */
  max_gpus: number | null;
  /** Memory that it may hold on shared GPUs; whole GPUs count in max_gpus alone. */
  max_gpu_memory_mb: number | null;
  /** CPU cores that it may hold at a time. */
  max_cpu_cores: number | null;
  /** Host memory that it may hold at a time. */
  max_memory_mb: number | null;
  /** Jobs that may hold resources at a time. */
  max_concurrent_jobs: number | null;
  /** Jobs that may wait. */
  max_queued_jobs: number | null;
  /** GPUs that it is guaranteed; -1 is unlimited, null guarantees nothing. */
  quota_gpus: number | null;
  /** GPUs that it is guaranteed at the least where the quota follows use. */
  quota_gpus_least: number;
  /** GPUs that it is guaranteed at most where the quota follows use (scheduler.quota_follow_days); null: it does not. */
  quota_gpus_most: number | null;
  /** CPU cores that it is guaranteed. */
  quota_cpu_cores: number | null;
  /** Host memory that it is guaranteed. */
  quota_memory_mb: number | null;
  /** Its priority in a word: low is 100, medium 500, high 1000, critical 5000. */
  priority_tier: "low" | "medium" | "high" | "critical" | null;
  /** Its priority among its siblings. */
  priority: number;
  /** Its part of what nobody is guaranteed. */
  fair_share_weight: number;
  /** Whether its jobs may be preempted, where they do not say. */
  allow_preemption: boolean;
  /** Whether others may be preempted for its jobs. */
  can_preempt_others: boolean;
  /** Preemptions of one job, which is protected after that. */
  max_preemptions: number | null;
  /** The price of a GPU for an hour. */
  cost_per_gpu_hour: number;
  /** Once it is spent, no job that requests GPUs starts and no model answers until the next month. */
  budget_per_month: number | null;
  /** Requests to models that it and all below it may make in a minute; null is no limit. */
  requests_per_minute: number | null;
  /** Tokens of models that it and all below it may use in a minute; null is no limit. */
  tokens_per_minute: number | null;
  /** Streams of models that it and all below it may have open at a time; null is no limit. */
  max_streams: number | null;
  /** GPUs that it holds now. */
  current_gpus: number;
  /** Memory that it holds on shared GPUs. */
  current_gpu_memory: number;
  /** CPU cores that it holds. */
  current_cpu_cores: number;
  /** Host memory that it holds. */
  current_memory: number;
  /** Jobs that hold resources. */
  current_jobs: number;
  /** Jobs in its queue. */
  waiting_jobs: number;
  /** GPUs that would be fair now. */
  fair_share_gpus: number;
  /** GPU hours used so far. */
  total_gpu_hours: number;
  /** Jobs submitted so far. */
  total_jobs: number;
  /** Jobs that succeeded. */
  successful_jobs: number;
  /** Jobs that failed. */
  failed_jobs: number;
  /** Jobs that were cancelled. */
  cancelled_jobs: number;
  /** The cost so far. */
  total_cost: number;
  /** The cost of this month. */
  month_cost: number;
  /** The part of the cost that was for tokens of others' models. */
  tokens_cost: number;
  /** What others were charged for tokens of its models. */
  tokens_credit: number;
}

/** A number of GPUs that a model may be split over. */
export interface Split {
  /** The number of GPUs. */
  gpus: number;
  /** Memory on each GPU; 0: gpu_memory_mb divided. */
  memory_mb: number;
}

/** A tenant whose requests wait for a model. */
export interface ModelWaiting {
  /** The tenant; null: administrators. */
  tenant_id: string | null;
  /** Requests that wait. */
  requests: number;
  /** How long the oldest of them has waited. */
  oldest_wait_ms: number;
  /** Tokens that they are expected to take. */
  tokens: number;
}

/** A model that is served, and how. */
export interface Model {
  /** The model's id. */
  id: string;
  /** A name that is unique in its tenant and does not look like an id. */
  name: string;
  /** The tenant that pays for its slots. */
  tenant_id?: string;
  /** What serves it. */
  runtime: "vllm" | "ollama" | "llama.cpp" | "custom";
  /** What starts the runtime custom: a line for the shell, or words; administrators only. */
  command?: string;
  /** A container image to run in. */
  image?: string;
  /** Where its files are on the nodes. */
  path?: string;
  /** Where its server answers with 2xx once it is ready; null: as its runtime does. */
  health_path?: string;
  /** Further arguments for its server. */
  args?: string[];
  /** Environment variables. */
  environment?: Record<string, string>;
  /** Environment variables that are sealed before they are stored and never shown. */
  secret_environment?: Record<string, string>;
  /** Labels for people. */
  labels?: Record<string, string>;
  /** GPU memory of one slot, over all its GPUs. */
  gpu_memory_mb: number;
  /** Its parts need not be equal. */
  uneven: boolean;
  /** CPU cores of one slot. */
  cpu_cores: number;
  /** Host memory of one slot. */
  memory_mb: number;
  /** Tokens of each request; 0: the runtime's own. */
  context_length: number;
  /** Requests that the runtime batches; 0: its own. */
  parallel: number;
  /** Requests in flight in one slot; 0: by runtime. */
  max_concurrency: number;
  /** GPU counts that it may be split over, rising; empty: any. */
  splits: Split[];
  /** The type of the KV cache; empty: the runtime's own. */
  kv_cache_type: string;
  /** Slots that are always wanted. */
  min_replicas: number;
  /** Slots at most; 0: the minimum, and at least 1. */
  max_replicas: number;
  /** Loaded, where there is room, before anyone asks. */
  prewarm: boolean;
  /** Never evicted; bound by the tenant's quota. */
  pinned: boolean;
  /** A slot that was idle for this long may be evicted; 0: 10 s. */
  idle_ttl: string;
  /** How long loading may take; 0: 10 min. */
  load_timeout: string;
  /** As for jobs. */
  priority: number;
  /** How an idle slot gives back its GPUs: off, it is stopped; driver, the driver moves its GPU memory to host memory, as for suspended jobs. */
  sleep: "off" | "driver";
  /** All tenants may use it; set by administrators. */
  shared: boolean;
  /** Where its slots go, of all places that cost the same. */
  placement: "spread" | "pack";
  /** Allowed GPU models, separated by | or in a list. */
  gpu_model: string;
  /** Labels that the nodes must have. */
  node_labels?: Record<string, string>;
  /** Tenants that may use it beside its own; those of others take an administrator. */
  users: string;
  /** Other names under which the gateway serves it. */
  aliases?: string[];
  /** Models that the gateway asks instead while this one cannot be loaded, the first that can be. */
  fallbacks?: string[];
  /** Adapters that its server was started with; asked for as MODEL:ADAPTER. */
  adapters?: string[];
  /** What other tenants pay for a million tokens of prompts. */
  price_per_million_input: number;
  /** What they pay for a million tokens of prompts that the server had cached. */
  price_per_million_cached: number;
  /** What they pay for a million tokens of answers. */
  price_per_million_output: number;
  /** How long a request waits in the gateway for a slot; 0: as the gateway is set. */
  queue_timeout: string;
  /** What a stream gets while it waits: comments, chunks without content, or nothing. */
  keep_alive: "comment" | "chunk" | "off";
  /** True if it takes no more requests and goes with its last slot. */
  removed: boolean;
  /** How long loading took so far. */
  load_time: string | null;
  /** How long waking a slot took so far. */
  wake_time: string | null;
  /** Requests in flight. */
  active_requests?: number;
  /** Requests that wait for a slot. */
  waiting_requests?: number;
  /** Requests that its ready slots can serve at a time. */
  places?: number;
  /** Slots that serve requests. */
  ready_slots?: number;
  /** Slots that wait for memory or are loading. */
  coming_slots?: number;
  /** Slots that are stopping. */
  stopping_slots?: number;
  /** Slots that are asleep, or going to sleep. */
  asleep_slots?: number;
  /** How long the oldest request has waited in a gateway. */
  oldest_wait_ms: number | null;
  /** Streams that began to answer in the last minute, through gateways. */
  answers_per_minute?: number;
  /** The median time from a request to the first token of its stream, in the last minute. */
  first_token_p50_ms: number | null;
  /** What 99 of 100 streams did not exceed. */
  first_token_p99_ms: number | null;
  /** Tokens of all answers a second, in the last minute. */
  tokens_per_second?: number;
  /** Tenants whose requests wait in gateways, the longest wait first; for those who may see the model's tenant. */
  waiting_tenants?: ModelWaiting[];
  /** Where a gateway serves it; null: none is connected that says so. */
  gateway_url: string | null;
  /** Failed loads and lost slots in a row. */
  failures: number;
  /** When the last of them was. */
  failed_at: string | null;
  /** No new slot is loaded before this time. */
  not_before: string | null;
  /** What its node said about the last failure. */
  message: string;
}

/** A GPU, or a part of one, that a slot has. */
export interface SlotGpu {
  /** The GPU's index on its node; -1: the GPU was removed. */
  index: number;
  /** The GPU. */
  uuid: string | null;
  /** Reserved memory. */
  memory_mb: number;
  /** Memory in use. */
  measured_memory_mb: number;
}

/** A loaded instance of a model. */
export interface Slot {
  /** The slot's id. */
  id: string;
  /** Its node. */
  runner_id: string | null;
  /** The name of its model. */
  model: string;
  /** Its model. */
  model_id: string;
  /** The tenant that pays for it; only shown to that tenant. */
  tenant_id?: string;
  /** What serves it. */
  runtime: "vllm" | "ollama" | "llama.cpp" | "custom";
  /** What it has of each GPU. */
  gpu_allocation: SlotGpu[];
  /** Requests in flight. */
  active_requests: number;
  /** The hard limit on GPU memory; null where there is none. */
  guard: Guard | null;
  /** Requests that it serves at a time. */
  max_concurrency: number;
  /** Where it is in its life. */
  status:
    | "waiting"
    | "placed"
    | "loading"
    | "ready"
    | "stopping"
    | "sleeping"
    | "asleep"
    | "waking";
  /** Where requests go; empty until it is ready. */
  address: string;
  /** True if it was found running on its node. */
  adopted: boolean;
  /** True if it is never evicted. */
  pinned: boolean;
  /** When its node was told to load it. */
  created: string | null;
  /** When it was ready. */
  ready_at: string | null;
  /** When a request last began or ended. */
  last_used_at: string | null;
}

/** A reservation on a GPU. */
export interface Holder {
  /** The state of the reservation. */
  phase:
    | "claim"
    | "held"
    | "live"
    | "releasing"
    | "suspending"
    | "suspended"
    | "waking"
    | "resuming";
  /** Reserved memory. */
  memory_mb: number;
  /** Memory in use. */
  measured_memory_mb: number;
  /** The share of the GPU, from 0 to 1. */
  share: number;
  /** True if the GPU is reserved whole. */
  whole: boolean;
  /** The job. */
  job_id?: string;
  /** The task's number in its job. */
  task?: number;
  /** The slot. */
  slot_id?: string;
  /** The slot's model. */
  model_id?: string;
  /** The name of the job or the model. */
  name?: string;
  /** The tenant. */
  tenant_id?: string;
  /** The tenant's name, or 'another tenant'. */
  tenant: string | null;
}

/** A GPU, and what its memory is used for. */
export interface Gpu {
  /** The GPU's UUID. */
  uuid: string;
  /** Its index on its node. */
  index: number;
  /** Its node. */
  node: string;
  /** The GPU model. */
  model: string;
  /** The UUID of the GPU that it is an instance of. */
  mig_parent?: string;
  /** Its memory. */
  total_memory: number;
  /** Memory that a new task could have now. */
  free_memory: number;
  /** Memory that is not free. */
  used_memory: number;
  /** Reserved and releasing memory. */
  allocated_memory: number;
  /** Memory that tasks and slots have reserved. */
  reserved_memory: number;
  /** Memory of tasks and slots that are stopping. */
  releasing_memory: number;
  /** Memory promised to tasks that wait for its release. */
  claimed_memory: number;
  /** Memory that others use. */
  foreign_memory: number;
  /** External memory that no process explains and that came while tasks ran there. */
  unexplained_memory: number;
  /** Memory that the driver keeps. */
  overhead_memory: number;
  /** The reserved share of the GPU, from 0 to 1. */
  share: number;
  /** Share of its compute that is reserved, from 0 to 1; 0: those on it take turns. */
  compute_share?: number;
  /** True if it could be reserved whole now. */
  available: boolean;
  /** True if it is reserved whole. */
  whole: boolean;
  /** True if its node reports no fault. */
  healthy: boolean;
  /** True if it is too hot for new tasks. */
  hot: boolean;
  /** True if more memory is used than it has. */
  over: boolean;
  /** True if it is divided into MIG instances. */
  mig_mode: boolean;
  /** True if its node's last report named it. */
  present: boolean;
  /** Devices that its node reported under this UUID. */
  aliases: number;
  /** GPUs of a node with the same number are linked; 0: not linked. */
  nvlink_group: number;
  /** Who has a reservation on it; others' work only as 'another tenant'. */
  holders?: Holder[];
  /** Its temperature. */
  temperature_c?: number;
  /** The power that it draws. */
  power_watts?: number;
  /** Its utilization, from 0 to 1. */
  utilization?: number;
  /** Memory in use, as measured. */
  measured_memory_mb?: number;
  /** Time that multiprocessors are active, from 0 to 1, where DCGM reports it. */
  sm_active?: number;
  /** Time that its memory is active, from 0 to 1, where DCGM reports it. */
  dram_active?: number;
  /** Why it is not healthy. */
  health_reason?: string;
}

/** A machine with GPUs. */
export interface Node {
  /** The node's name. */
  id: string;
  /** Equal to id. */
  name: string;
  /** Whether it reports. */
  state: "online" | "unknown" | "lost";
  /** True if its state is online. */
  online: boolean;
  /** True if its agent is connected. */
  connected: boolean;
  /** True if no new jobs start there. */
  draining: boolean;
  /** Why it is drained; empty: nobody said. */
  drain_reason: string;
  /** True if it has reported since the scheduler started. */
  reported: boolean;
  /** Its zone. */
  zone: string;
  /** Its rack. */
  rack: string;
  /** Its labels. */
  labels: Record<string, string>;
  /** Its GPUs. */
  total_gpus: number;
  /** GPUs that could be reserved whole now. */
  available_gpus: number;
  /** Its CPU cores. */
  total_cpu_cores: number;
  /** Reserved CPU cores. */
  used_cpu_cores: number;
  /** Its host memory. */
  total_memory_mb: number;
  /** Reserved host memory. */
  used_memory_mb: number;
  /** Tasks and slots on it. */
  reservations: number;
  /** Its GPUs, where one node is asked for. */
  gpus?: Gpu[];
}

/** What a person or a program signs in with. */
export interface Token {
  /** The token's id, which is not secret. */
  id: string;
  /** The token itself, shown once. */
  token?: string;
  /** What it may do. */
  role: "admin" | "tenant" | "viewer" | "agent" | "gateway" | "inference" | "tenant_admin";
  /** The tenant that it is bound to. */
  tenant_id: string | null;
  /** Of an agent: the only node that it speaks for. */
  node?: string;
  /** Of a session by single sign-on: whose it is. */
  user?: string;
  /** What it is for. */
  note: string;
  /** When it was made. */
  created_at: string | null;
  /** When it expires; null: never. */
  expires_at: string | null;
  /** Requests to models in a minute; null: no limit but the tenant's. */
  requests_per_minute: number | null;
  /** Tokens of models in a minute; null: no limit but the tenant's. */
  tokens_per_minute: number | null;
  /** Streams of models at a time; null: no limit but the tenant's. */
  max_streams: number | null;
  /** What its tokens of models may cost in a month; null: no limit but the tenant's. */
  budget_per_month: number | null;
  /** What its tokens of models cost this month. */
  month_cost: number;
}

/** The arithmetic for one GPU. */
export interface DecisionGpu {
  /** The GPU. */
  uuid: string | null;
  /** Its node. */
  node: string | null;
  /** Its memory. */
  capacity_mb: number;
  /** Memory that the driver keeps. */
  overhead_mb: number;
  /** Memory that others use. */
  foreign_mb: number;
  /** The part of foreign_mb that no process explains. */
  unexplained_mb?: number;
  /** Memory in use before the decision. */
  used_before_mb: number;
  /** Memory of tasks and slots that are stopping. */
  releasing_mb: number;
  /** Memory that was promised to others. */
  claimed_mb: number;
  /** Memory that was requested. */
  asked_mb: number;
  /** Memory in use after the decision. */
  used_after_mb: number;
}

/** A task that makes room. */
export interface Victim {
  /** The job, or 'another tenant'. */
  job_id: string | null;
  /** The task's number in its job. */
  task: number;
  /** True if it moves to another GPU. */
  moved: boolean;
  /** Work that is lost. */
  lost_gpu_seconds: number;
}

/** An idle slot that makes room. */
export interface EvictedSlot {
  /** The slot. */
  slot_id?: string;
  /** Its model, or 'another tenant'. */
  model: string | null;
  /** Memory that it frees, over all its GPUs. */
  memory_mb: number;
  /** How long loading it again should take. */
  reload: string | null;
  /** How long it was idle. */
  idle: string | null;
}

/** A decision of the scheduler, with its arithmetic. */
export interface Decision {
  /** The decision's number. */
  id: number;
  /** What was decided. */
  type:
    | "start"
    | "claim"
    | "reclaim"
    | "preempt"
    | "move"
    | "wait"
    | "promise"
    | "evicted"
    | "lapsed"
    | "gang"
    | "grow"
    | "evict"
    | "load"
    | "unload"
    | "adopt"
    | "fail"
    | "share"
    | "suspended"
    | "resume"
    | "close"
    | "reopen"
    | "awaited"
    | "sleep"
    | "wake";
  /** When it was decided. */
  time: string;
  /** The job that it is about. */
  job_id?: string;
  /** The name of the job, while it is in memory. */
  name?: string;
  /** The job's index in its array. */
  array_index?: number;
  /** The tenant that it is about. */
  tenant_id: string | null;
  /** The model that it is about. */
  model_id?: string;
  /** The name of the model; null: it was removed. */
  model?: string;
  /** The slot that it is about. */
  slot_id?: string;
  /** The job that it was done for, or 'another tenant'. */
  for_job_id?: string;
  /** The model that it was done for. */
  for_model_id?: string;
  /** The node of its first GPU. */
  runner_id: string | null;
  /** How many tasks it is about. */
  tasks: number;
  /** Nodes that fit the last task. */
  candidates: number;
  /** The score of the last task's node; lower is better. */
  score: number;
  /** The part of the score for how much jobs that insist on the GPU model value it; 1 doubles the value. */
  premium?: number;
  /** The promised start, or when a claim expires. */
  until: string | null;
  /** GPU time that waiting would cost. */
  wait_gpu_seconds?: number;
  /** GPU time that preemption would lose. */
  lost_gpu_seconds?: number;
  /** The arithmetic, GPU by GPU. */
  gpus: DecisionGpu[];
  /** Tasks that make room. */
  victims?: Victim[];
  /** Idle slots that make room. */
  evicted?: EvictedSlot[];
  /** What the node said about a failure. */
  message?: string;
  /** The decision in sentences. */
  explanation?: string[];
}

/** One time that a task had its GPUs: what is billed. */
export interface Run {
  /** The task's number in its job. */
  task: number;
  /** How often the task had been started; null: its node did not start it. */
  attempt: number | null;
  /** Its node; null: the node was removed. */
  node: string | null;
  /** Billed GPUs, by the share of each. */
  gpus: number;
  /** Billed from here: its GPUs were granted or promised. */
  began_at: string;
  /** When its node started it. */
  started_at: string | null;
  /** Billed up to here; null: it is running. */
  ended_at: string | null;
  /** How it ended; withdrawn: a promise of GPUs was taken back. */
  ending:
    | "goes_on"
    | "completed"
    | "failed"
    | "preempted"
    | "requeued"
    | "node_lost"
    | "cancelled"
    | "refused"
    | "withdrawn"
    | "unloaded"
    | "suspended";
  /** The exit code. */
  exit_code: number | null;
  /** The most memory that it used on one GPU. */
  peak_gpu_memory_mb: number;
  /** Energy that its GPUs used, by the share of each. */
  energy_joules: number;
}

/** What a tenant and all tenants below it used in a period. */
export interface UsageIncludingChildren {
  /** Jobs that had a run in the period. */
  jobs: number;
  /** Jobs that succeeded in it. */
  completed_jobs: number;
  /** Jobs that failed in it. */
  failed_jobs: number;
  /** Jobs that were cancelled in it. */
  cancelled_jobs: number;
  /** Runs of tasks and slots in it. */
  runs: number;
  /** Of each run its part in the period, by the share of each GPU. */
  gpu_hours: number;
  /** Neither idle nor lost; current runs count as useful. */
  useful_gpu_hours: number;
  /** Reserved, before the task had started. */
  idle_gpu_hours: number;
  /** After the last checkpoint of runs that failed, were stopped, or were lost with their node. */
  lost_gpu_hours: number;
  /** Memory on shared GPUs, over time. */
  gpu_memory_mb_hours: number;
  /** CPU cores over time. */
  cpu_core_hours: number;
  /** Of each run, at the price of its time. */
  cost: number;
  /** Requests to models, through gateways, on days of the period. */
  requests: number;
  /** Tokens of their prompts. */
  prompt_tokens: number;
  /** Those of them that servers had cached. */
  cached_tokens: number;
  /** Tokens of their answers. */
  completion_tokens: number;
  /** What tokens of others' models cost, beside the cost of runs. */
  tokens_cost: number;
  /** What others paid for tokens of its models. */
  tokens_credit: number;
}

/** What a tenant itself used in a period. */
export interface Report {
  /** Of the line: the same whenever the same period of the same tenant is exported. */
  id: string;
  /** The tenant. */
  tenant_id: string;
  /** The tenant's name. */
  tenant: string | null;
  /** Jobs that had a run in the period. */
  jobs: number;
  /** Jobs that succeeded in it. */
  completed_jobs: number;
  /** Jobs that failed in it. */
  failed_jobs: number;
  /** Jobs that were cancelled in it. */
  cancelled_jobs: number;
  /** Runs of tasks and slots in it. */
  runs: number;
  /** Of each run its part in the period, by the share of each GPU. */
  gpu_hours: number;
  /** Neither idle nor lost; current runs count as useful. */
  useful_gpu_hours: number;
  /** Reserved, before the task had started. */
  idle_gpu_hours: number;
  /** After the last checkpoint of runs that failed, were stopped, or were lost with their node. */
  lost_gpu_hours: number;
  /** Memory on shared GPUs, over time. */
  gpu_memory_mb_hours: number;
  /** CPU cores over time. */
  cpu_core_hours: number;
  /** The price of a GPU hour now. */
  cost_per_gpu_hour: number;
  /** Of each run, at the price of its time. */
  cost: number;
  /** Requests to models, through gateways, on days of the period. */
  requests: number;
  /** Tokens of their prompts. */
  prompt_tokens: number;
  /** Those of them that servers had cached. */
  cached_tokens: number;
  /** Tokens of their answers. */
  completion_tokens: number;
  /** What tokens of others' models cost, beside the cost of runs. */
  tokens_cost: number;
  /** What others paid for tokens of its models. */
  tokens_credit: number;
  /** These figures summed over the tenant and all tenants below it, each at its own price. */
  including_children: UsageIncludingChildren;
}

/** How well jobs were predicted in a period. */
export interface Accuracy {
  /** The tenant; left out where jobs of several count. */
  tenant_id?: string;
  /** The tenant's name. */
  tenant?: string;
  /** What the jobs were compared by; left out where several count. */
  basis?: string;
  /** Jobs that ended in the period and had been predicted. */
  jobs: number;
  /** The part of them that took no longer than predicted for nine of ten; null: no jobs. */
  within_p90: number | null;
  /** The part of them that took half to twice the predicted median; null: no jobs. */
  within_twice: number | null;
  /** Half of them were predicted within this factor; null: no jobs. */
  median_error: number | null;
  /** Jobs that started in the period after a start had been promised. */
  promised_starts?: number;
  /** Those of them that started as promised. */
  kept_starts?: number;
}

/** A time in which nodes or GPUs are for some jobs alone, or for maintenance. */
export interface Window {
  /** A unique name of letters, digits, '-', '_' and '.'. */
  name: string;
  /** What it is for. */
  reason: string;
  /** Nothing runs there while it is open. */
  maintenance: boolean;
  /** The tenant whose jobs may run there, with the tenants below it; null: any job that names the window. */
  tenant_id: string | null;
  /** When it opens, for the first time; default: now. */
  start: string;
  /** How long it stays open. */
  length: string;
  /** Whether it opens again after 24 hours, or after 7 days. */
  repeat: "none" | "daily" | "weekly";
  /** Nodes that it is on, with all their GPUs. */
  nodes: string[];
  /** UUIDs of GPUs that it is on. */
  gpus: string[];
  /** Jobs without a time limit whose duration is not known do not start there in this time before. */
  lead: string;
  /** What still runs there when it opens is stopped and queued again. */
  evict: boolean;
  /** With evict: how long after it opened. */
  grace: string;
  /** True while it is open. */
  open: boolean;
  /** When the time began that is under way, or else the next one begins. */
  next_start: string | null;
  /** When that time ends. */
  next_end: string | null;
  /** Who made it. */
  user: string;
  /** When it was made. */
  created_at: string;
}

/** A quota of GPUs, and what is proposed instead. */
export interface Quota {
  /** The tenant. */
  tenant_id: string;
  /** The tenant's name. */
  tenant: string | null;
  /** GPUs that it and the tenants below it held on average, by decayed time. */
  used_gpus: number;
  /** GPUs that it is guaranteed; -1 is unlimited, null guarantees nothing. */
  quota_gpus: number | null;
  /** GPUs that it could be guaranteed instead. */
  proposed_gpus: number;
  /** The lower bound of what is proposed. */
  quota_gpus_least: number;
  /** The upper bound; null: it has none, and its quota does not follow. */
  quota_gpus_most: number | null;
  /** True if its quota follows use where scheduler.quota_follow_days is set. */
  follows: boolean;
}

/** A field of a form. Ranges of decimals are multiplied by 10 to the power of `digits`. */
export interface Field {
  name: string;
  label: string;
  help: string;
  kind: string;
  unit?: string;
  also?: string[];
  digits?: number;
  least?: number;
  most?: number;
  items?: number;
  words?: string[];
  initial?: string;
  setter: string;
  section: string;
}

export const jobFields: Field[] = [
  {
    name: "tenant_id",
    label: "Tenant",
    help: "The tenant that the job belongs to: its id, number or name (default: the token's)",
    kind: "id",
    also: ["name"],
    least: 0,
    most: 256,
    setter: "creation",
    section: "general",
  },
  {
    name: "name",
    label: "Name",
    help: "What people know the job by; runtimes are predicted from jobs whose names differ in numbers alone",
    kind: "text",
    least: 0,
    most: 256,
    initial: '"job"',
    setter: "creation",
    section: "general",
  },
  {
    name: "priority",
    label: "Priority",
    help: "100 to 500 is background, 500 to 1000 normal, 1000 to 2000 high, above that urgent; 0 is the configured default",
    kind: "integer",
    least: -2147483648,
    most: 2147483647,
    initial: "0",
    setter: "any_time",
    section: "general",
  },
  {
    name: "gpu_count",
    label: "GPUs",
    help: "Whole GPUs for each task",
    kind: "integer",
    unit: "GPUs",
    least: 0,
    most: 4096,
    initial: "0",
    setter: "creation",
    section: "gpus",
  },
  {
    name: "gpu_memory_mb",
    label: "GPU memory",
    help: "With gpu_count, the least memory of each GPU; without it, a part of one GPU of this size, or a list with the part of each GPU",
    kind: "integer",
    unit: "MiB",
    also: ["list"],
    least: 0,
    most: 1099511627776,
    items: 16,
    initial: "0",
    setter: "creation",
    section: "gpus",
  },
  {
    name: "gpu_fraction",
    label: "GPU fraction",
    help: "A part of one GPU",
    kind: "decimal",
    unit: "GPUs",
    digits: 3,
    least: 0,
    most: 1000,
    setter: "creation",
    section: "gpus",
  },
  {
    name: "gpu_compute",
    label: "GPU compute",
    help: "With a part of one GPU, the share of its compute that each task has; without it, the tasks on a GPU take turns",
    kind: "decimal",
    unit: "GPUs",
    digits: 3,
    least: 0,
    most: 1000,
    setter: "creation",
    section: "gpus",
  },
  {
    name: "gpu_processes",
    label: "GPU processes",
    help: "With gpu_compute, how many processes of each task use its GPU: they divide its share evenly (default: 1)",
    kind: "integer",
    least: 0,
    most: 48,
    initial: "0",
    setter: "creation",
    section: "gpus",
  },
  {
    name: "cpu_cores",
    label: "CPU cores",
    help: "CPU cores for each task",
    kind: "decimal",
    unit: "cores",
    digits: 3,
    least: 0,
    most: 1099511627776,
    initial: "0",
    setter: "creation",
    section: "tasks",
  },
  {
    name: "memory_mb",
    label: "Host memory",
    help: "Host memory for each task",
    kind: "integer",
    unit: "MiB",
    least: 0,
    most: 268435456,
    initial: "0",
    setter: "creation",
    section: "tasks",
  },
  {
    name: "command",
    label: "Command",
    help: "The program and its arguments, one text each",
    kind: "texts",
    items: 4096,
    setter: "creation",
    section: "work",
  },
  {
    name: "args",
    label: "Arguments",
    help: "Arguments that follow the command, or those of the image or script",
    kind: "texts",
    items: 4096,
    setter: "creation",
    section: "work",
  },
  {
    name: "script",
    label: "Script",
    help: "A shell script to run instead of a command",
    kind: "text",
    least: 0,
    most: 524288,
    setter: "creation",
    section: "work",
  },
  {
    name: "image",
    label: "Image",
    help: "A container image to run in",
    kind: "text",
    least: 0,
    most: 4096,
    setter: "creation",
    section: "work",
  },
  {
    name: "environment",
    label: "Environment",
    help: "Environment variables",
    kind: "map",
    items: 4096,
    setter: "creation",
    section: "work",
  },
  {
    name: "secret_environment",
    label: "Secret environment",
    help: "Environment variables that are sealed before they are stored and never shown",
    kind: "map",
    items: 4096,
    setter: "creation",
    section: "work",
  },
  {
    name: "labels",
    label: "Labels",
    help: "Labels for people, and for ?label= in lists",
    kind: "map",
    items: 64,
    setter: "creation",
    section: "general",
  },
  {
    name: "annotations",
    label: "Annotations",
    help: "Names and texts that the scheduler stores and shows, and does not interpret",
    kind: "map",
    least: 0,
    most: 4096,
    items: 64,
    setter: "creation",
    section: "more",
  },
  {
    name: "working_directory",
    label: "Working directory",
    help: "The directory that the task starts in, on its node or in its image: an absolute path",
    kind: "text",
    least: 0,
    most: 4096,
    setter: "creation",
    section: "work",
  },
  {
    name: "checkpoint_path",
    label: "Checkpoint path",
    help: "The file or directory that changes when the task has saved its work: an absolute path",
    kind: "text",
    least: 0,
    most: 4096,
    setter: "creation",
    section: "more",
  },
  {
    name: "gang_scheduling",
    label: "Gang",
    help: "All tasks start together; without tasks, a gang larger than a node is split over nodes",
    kind: "flag",
    setter: "creation",
    section: "tasks",
  },
  {
    name: "tasks",
    label: "Tasks",
    help: "Copies of the job, on one node or several",
    kind: "integer",
    unit: "tasks",
    least: 1,
    most: 4096,
    initial: "1",
    setter: "creation",
    section: "tasks",
  },
  {
    name: "min_available",
    label: "Minimum tasks",
    help: "Tasks that start together or not at all (default: all of them)",
    kind: "integer",
    unit: "tasks",
    least: 1,
    most: 4096,
    setter: "creation",
    section: "tasks",
  },
  {
    name: "preemptible",
    label: "Preemptible",
    help: "True if the job may be stopped for others (default: the tenant's allow_preemption)",
    kind: "flag",
    setter: "creation",
    section: "more",
  },
  {
    name: "max_runtime",
    label: "Max runtime",
    help: "The time limit as a duration, such as 1h30m",
    kind: "duration",
    unit: "ms",
    setter: "creation",
    section: "time",
  },
  {
    name: "estimated_runtime_minutes",
    label: "Estimated runtime",
    help: "How long the owner expects the job to run; counts where GPUs are shared in time, and has no effect when the job runs longer",
    kind: "decimal",
    unit: "min",
    digits: 3,
    least: 0,
    most: 586406201480,
    setter: "creation",
    section: "time",
  },
  {
    name: "deadline",
    label: "Deadline",
    help: "When the job should be finished",
    kind: "time",
    setter: "creation",
    section: "time",
  },
  {
    name: "begin",
    label: "Begin",
    help: "The job does not start before",
    kind: "time",
    setter: "creation",
    section: "time",
  },
  {
    name: "window",
    label: "Window",
    help: "The window that the job runs in: it starts there alone, and while it is open",
    kind: "text",
    least: 0,
    most: 64,
    setter: "creation",
    section: "time",
  },
  {
    name: "checkpoint_enabled",
    label: "Checkpoints",
    help: "The job saves its work, so it may be moved",
    kind: "flag",
    initial: "false",
    setter: "creation",
    section: "more",
  },
  {
    name: "on_lease_loss",
    label: "On lease loss",
    help: "What happens to the job when its node is lost: keep it, or stop and requeue it",
    kind: "word",
    words: ["keep", "stop"],
    initial: '"keep"',
    setter: "creation",
    section: "more",
  },
  {
    name: "suspend",
    label: "Suspend",
    help: "Whether its GPU memory may go to host memory for a while: once its program came back on such a GPU (auto, or else as the setting suspend says), always, or never",
    kind: "word",
    words: ["auto", "always", "never"],
    initial: '"auto"',
    setter: "creation",
    section: "more",
  },
  {
    name: "notify",
    label: "Notify",
    help: "Who is told about this job beside its tenant's recipients: mail addresses, and URLs that are posted to, such as Slack's",
    kind: "texts",
    items: 8,
    setter: "creation",
    section: "more",
  },
  {
    name: "notify_on",
    label: "Notify on",
    help: "What those in notify are told (default: completed, failed and cancelled)",
    kind: "words",
    items: 16,
    words: ["started", "completed", "failed", "preempted", "cancelled"],
    setter: "creation",
    section: "more",
  },
  {
    name: "depends_on",
    label: "Depends on",
    help: "Jobs of the same tenant that must finish first",
    kind: "list",
    also: ["member"],
    least: 0,
    most: 256,
    items: 256,
    setter: "creation",
    section: "placement",
  },
  {
    name: "array",
    label: "Array",
    help: "One job for each index: 1-100, 0-90:10 or 1,3,7, and 1-100%8 for 8 at a time",
    kind: "text",
    least: 0,
    most: 256,
    setter: "creation",
    section: "tasks",
  },
  {
    name: "gpu_model",
    label: "GPU model",
    help: "Allowed GPU models, separated by | or in a list",
    kind: "text",
    also: ["list"],
    least: 0,
    most: 256,
    setter: "creation",
    section: "gpus",
  },
  {
    name: "node_labels",
    label: "Node labels",
    help: "Labels that the nodes must have",
    kind: "map",
    least: 0,
    most: 256,
    items: 64,
    setter: "creation",
    section: "placement",
  },
  {
    name: "closeness",
    label: "Closeness",
    help: "How close together the GPUs should be",
    kind: "word",
    words: ["any", "nvlink", "node", "rack"],
    initial: '"any"',
    setter: "creation",
    section: "placement",
  },
  {
    name: "closeness_required",
    label: "Closeness required",
    help: "The job waits until its GPUs can be that close",
    kind: "flag",
    initial: "false",
    setter: "creation",
    section: "placement",
  },
  {
    name: "resources",
    label: "Counted resources",
    help: "Counted resources that each task takes of its node, as name and number",
    kind: "map",
    least: 0,
    most: 256,
    items: 64,
    setter: "creation",
    section: "placement",
  },
  {
    name: "group",
    label: "Group",
    help: "The group of its tasks, by which spread, apart and together select within a tenant",
    kind: "text",
    least: 0,
    most: 63,
    setter: "creation",
    section: "placement",
  },
  {
    name: "spread",
    label: "Spread",
    help: "Domains over which the tasks of its group are spread, with the largest difference: node, rack, zone or a label of nodes",
    kind: "map",
    least: 0,
    most: 256,
    items: 8,
    setter: "creation",
    section: "placement",
  },
  {
    name: "apart",
    label: "Apart",
    help: "Domains that its tasks do not share with tasks of a group: node, rack, zone or a label of nodes",
    kind: "map",
    least: 0,
    most: 256,
    items: 8,
    setter: "creation",
    section: "placement",
  },
  {
    name: "together",
    label: "Together",
    help: "Domains that its tasks share with tasks of a group: node, rack, zone or a label of nodes",
    kind: "map",
    least: 0,
    most: 256,
    items: 8,
    setter: "creation",
    section: "placement",
  },
  {
    name: "hold",
    label: "Hold",
    help: "The job does not start before it is released",
    kind: "flag",
    initial: "false",
    setter: "creation",
    section: "time",
  },
  {
    name: "check",
    label: "Check",
    help: "Refuse with 422 a job that could never run on this cluster",
    kind: "flag",
    setter: "creation",
    section: "more",
  },
];

export const tenantFields: Field[] = [
  {
    name: "name",
    label: "Name",
    help: "A unique name that does not look like an id",
    kind: "text",
    least: 1,
    most: 256,
    setter: "any_time",
    section: "general",
  },
  {
    name: "parent_id",
    label: "Parent",
    help: "The tenant above it: an id, number or name",
    kind: "id",
    also: ["name"],
    least: 0,
    most: 256,
    setter: "any_time",
    section: "general",
  },
  {
    name: "email",
    label: "Email",
    help: "The address of whoever is responsible",
    kind: "text",
    least: 0,
    most: 4096,
    setter: "any_time",
    section: "general",
  },
  {
    name: "organization",
    label: "Organization",
    help: "The organization that it belongs to",
    kind: "text",
    least: 0,
    most: 4096,
    setter: "any_time",
    section: "general",
  },
  {
    name: "unix_user",
    label: "Unix user",
    help: "The Unix user that its tasks run as",
    kind: "text",
    least: 0,
    most: 4096,
    setter: "any_time",
    section: "general",
  },
  {
    name: "notify_email",
    label: "Notify by email",
    help: "Where mail about its jobs goes: an address, or true for email",
    kind: "text",
    also: ["flag"],
    least: 0,
    most: 4096,
    setter: "any_time",
    section: "notify",
  },
  {
    name: "notify_webhook",
    label: "Webhook",
    help: "A URL that is called about its jobs",
    kind: "text",
    least: 0,
    most: 4096,
    setter: "any_time",
    section: "notify",
  },
  {
    name: "notify_secret",
    label: "Webhook secret",
    help: "Signs calls of the webhook",
    kind: "text",
    least: 0,
    most: 4096,
    setter: "any_time",
    section: "notify",
  },
  {
    name: "notify_on",
    label: "Notify on",
    help: "What is told about its jobs",
    kind: "words",
    items: 16,
    words: ["started", "completed", "failed", "preempted", "cancelled"],
    setter: "any_time",
    section: "notify",
  },
  {
    name: "max_gpus",
    label: "Max GPUs",
    help: "GPUs that it may hold at a time; null is no limit",
    kind: "decimal",
    unit: "GPUs",
    digits: 3,
    least: 0,
    most: 1099511627776,
    initial: "null",
    setter: "any_time",
    section: "limits",
  },
  {
    name: "max_gpu_memory_mb",
    label: "Max GPU memory",
    help: "Memory that it may hold on shared GPUs; whole GPUs count in max_gpus alone",
    kind: "integer",
    unit: "MiB",
    least: 0,
    most: 1099511627776,
    initial: "null",
    setter: "any_time",
    section: "limits",
  },
  {
    name: "max_cpu_cores",
    label: "Max CPU cores",
    help: "CPU cores that it may hold at a time",
    kind: "decimal",
    unit: "cores",
    digits: 3,
    least: 0,
    most: 1099511627776,
    initial: "null",
    setter: "any_time",
    section: "limits",
  },
  {
    name: "max_memory_mb",
    label: "Max host memory",
    help: "Host memory that it may hold at a time",
    kind: "integer",
    unit: "MiB",
    least: 0,
    most: 268435456,
    initial: "null",
    setter: "any_time",
    section: "limits",
  },
  {
    name: "max_concurrent_jobs",
    label: "Max jobs",
    help: "Jobs that may hold resources at a time",
    kind: "integer",
    least: 0,
    most: 1099511627776,
    initial: "null",
    setter: "any_time",
    section: "limits",
  },
  {
    name: "max_queued_jobs",
    label: "Max queued jobs",
    help: "Jobs that may wait",
    kind: "integer",
    least: 0,
    most: 1099511627776,
    initial: "null",
    setter: "any_time",
    section: "limits",
  },
  {
    name: "quota_gpus",
    label: "Quota GPUs",
    help: "GPUs that it is guaranteed; -1 is unlimited, null guarantees nothing",
    kind: "decimal",
    unit: "GPUs",
    also: ["unlimited"],
    digits: 3,
    least: 0,
    most: 1099511627776,
    initial: "null",
    setter: "any_time",
    section: "limits",
  },
  {
    name: "quota_gpus_least",
    label: "Quota GPUs, least",
    help: "GPUs that it is guaranteed at the least where the quota follows use",
    kind: "decimal",
    unit: "GPUs",
    digits: 3,
    least: 0,
    most: 1099511627776,
    initial: "0",
    setter: "any_time",
    section: "limits",
  },
  {
    name: "quota_gpus_most",
    label: "Quota GPUs, most",
    help: "GPUs that it is guaranteed at most where the quota follows use (scheduler.quota_follow_days); null: it does not",
    kind: "decimal",
    unit: "GPUs",
    digits: 3,
    least: 0,
    most: 1099511627776,
    initial: "null",
    setter: "any_time",
    section: "limits",
  },
  {
    name: "quota_cpu_cores",
    label: "Quota CPU cores",
    help: "CPU cores that it is guaranteed",
    kind: "decimal",
    unit: "cores",
    also: ["unlimited"],
    digits: 3,
    least: 0,
    most: 1099511627776,
    initial: "null",
    setter: "any_time",
    section: "limits",
  },
  {
    name: "quota_memory_mb",
    label: "Quota host memory",
    help: "Host memory that it is guaranteed",
    kind: "integer",
    unit: "MiB",
    also: ["unlimited"],
    least: 0,
    most: 268435456,
    initial: "null",
    setter: "any_time",
    section: "limits",
  },
  {
    name: "priority_tier",
    label: "Tier",
    help: "Its priority in a word: low is 100, medium 500, high 1000, critical 5000",
    kind: "word",
    words: ["low", "medium", "high", "critical"],
    initial: '"medium"',
    setter: "any_time",
    section: "general",
  },
  {
    name: "priority",
    label: "Priority",
    help: "Its priority among its siblings",
    kind: "integer",
    least: 0,
    most: 1000000,
    initial: "500",
    setter: "any_time",
    section: "general",
  },
  {
    name: "fair_share_weight",
    label: "Weight",
    help: "Its part of what nobody is guaranteed",
    kind: "decimal",
    digits: 3,
    least: 0,
    most: 1000000000,
    initial: "1",
    setter: "any_time",
    section: "limits",
  },
  {
    name: "allow_preemption",
    label: "Allow preemption",
    help: "Whether its jobs may be preempted, where they do not say",
    kind: "flag",
    initial: "true",
    setter: "any_time",
    section: "limits",
  },
  {
    name: "can_preempt_others",
    label: "Preempts others",
    help: "Whether others may be preempted for its jobs",
    kind: "flag",
    initial: "true",
    setter: "any_time",
    section: "limits",
  },
  {
    name: "max_preemptions",
    label: "Max preemptions",
    help: "Preemptions of one job, which is protected after that",
    kind: "integer",
    least: 0,
    most: 1099511627776,
    initial: "null",
    setter: "any_time",
    section: "limits",
  },
  {
    name: "cost_per_gpu_hour",
    label: "Cost per GPU hour",
    help: "The price of a GPU for an hour",
    kind: "decimal",
    unit: "currency",
    digits: 6,
    least: 0,
    most: 4503599627370496,
    initial: "0",
    setter: "any_time",
    section: "limits",
  },
  {
    name: "budget_per_month",
    label: "Budget per month",
    help: "Once it is spent, no job that requests GPUs starts and no model answers until the next month",
    kind: "decimal",
    unit: "currency",
    digits: 6,
    least: 0,
    most: 4503599627370496,
    initial: "null",
    setter: "any_time",
    section: "limits",
  },
  {
    name: "requests_per_minute",
    label: "Requests a minute",
    help: "Requests to models that it and all below it may make in a minute; null is no limit",
    kind: "integer",
    least: 0,
    most: 1099511627776,
    initial: "null",
    setter: "any_time",
    section: "limits",
  },
  {
    name: "tokens_per_minute",
    label: "Tokens a minute",
    help: "Tokens of models that it and all below it may use in a minute; null is no limit",
    kind: "integer",
    least: 0,
    most: 1099511627776,
    initial: "null",
    setter: "any_time",
    section: "limits",
  },
  {
    name: "max_streams",
    label: "Max streams",
    help: "Streams of models that it and all below it may have open at a time; null is no limit",
    kind: "integer",
    least: 0,
    most: 1099511627776,
    initial: "null",
    setter: "any_time",
    section: "limits",
  },
];
