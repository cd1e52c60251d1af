// resources.ts - what the service answers and accepts; written by scripts/generate-web

/** A job that must finish first. */
export interface Dependency {
  /** The job to wait for. */
  job: string;
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
  state: "pending" | "placed" | "running" | "stopping" | "ended";
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
  phase?: "claim" | "held" | "live" | "releasing";
  /** What it has of each GPU. */
  gpus?: AllocatedGpu[];
}

/** Something to run, and what became of it. */
export interface Job {
  /** The job's id. */
  id: string;
  /** The same as id. */
  job_id: string;
  /** The tenant that the job belongs to: its id, number or name (default: the token's). */
  tenant_id: string;
  /** What people know the job by; runtimes are predicted from jobs whose names differ in numbers alone. */
  name: string;
  /** Where the job is in its life. */
  state: "pending" | "scheduled" | "running" | "preempted" | "completed" | "failed" | "cancelled";
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
  /** The job saves its work, so it may be moved. */
  checkpoint_enabled: boolean;
  /** What happens to the job when its node is lost: keep it, or stop and requeue it. */
  on_lease_loss: "keep" | "stop";
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
  /** Why the job waits. */
  reason?: string;
  /** The node of the first placed task. */
  node_name: string | null;
  /** The UUIDs of the job's GPUs. */
  allocated_gpus: string[];
  /** The tasks that were placed, with their nodes and GPUs. */
  allocations: Allocation[];
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
    help: "The same as a duration, such as 1h30m",
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
    help: "One job for each index: 1-100, or 1-100%8 for 8 at a time",
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
