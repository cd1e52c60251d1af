// common.tsx - small things that several pages show
import type { ComponentChildren } from "preact";
import { colourOf } from "../colour";
import { memory, plural, relative, short } from "../format";
import { now, tenantName } from "../state";
import type { Job, JobState } from "../types";

const SIGNS: Record<JobState, string> = {
  pending: "◌",
  scheduled: "◔",
  running: "▶",
  completed: "✓",
  failed: "✕",
  cancelled: "–",
  preempted: "↺",
  suspended: "⏾",
};

export function State({ state, held = false }: { state: JobState; held?: boolean }) {
  return (
    <span class={`state ${state}`}>
      <span aria-hidden="true">{held ? "⏸" : SIGNS[state]}</span> {held ? "held" : state}
    </span>
  );
}

export function TenantTag({ id }: { id: string | null | undefined }) {
  return (
    <span class="tenant" style={`--c:${colourOf(id)}`}>
      {tenantName(id)}
    </span>
  );
}

export function Ago({ time }: { time: string | null | undefined }) {
  return (
    <time dateTime={time ?? ""} title={time ?? ""}>
      {relative(time, now.value)}
    </time>
  );
}

/** A job's name with its index in its array, or its id. */
export function jobTitle(job: Pick<Job, "id" | "name" | "array_index">): string {
  const name = job.name || job.id;
  return job.array_index === undefined ? name : `${name} [${job.array_index}]`;
}

/** What a job waits for: a job, or the first of an array, of which it waits for all. */
export function dependency(one: { job?: string; array?: string }): string {
  return one.job ?? one.array ?? "";
}

/** What a job asks for, in a few words. */
export function asks(job: Job): string {
  const tasks = job.tasks && job.tasks > 1 ? `${job.tasks} × ` : "";
  if (job.gpu_fraction) return `${tasks}${short(job.gpu_fraction)} GPU`;
  if (Array.isArray(job.gpu_memory_mb))
    return `${tasks}${job.gpu_memory_mb.map(memory).join(" + ")}`;
  if (job.gpu_sharing === "memory") return `${tasks}${memory(job.gpu_memory_mb)} of a GPU`;
  if (job.gpu_count > 0) return `${tasks}${plural(job.gpu_count, "GPU")}`;
  return `${tasks}no GPU`;
}

/** A title, and what belongs beside it. */
export function Head({
  title,
  children,
}: { title: ComponentChildren; children?: ComponentChildren }) {
  return (
    <div class="head">
      <h1>{title}</h1>
      <div class="head-end">{children}</div>
    </div>
  );
}

export function Choice<T extends string>(props: {
  label: string;
  value: T;
  options: readonly (readonly [T, string])[];
  change(value: T): void;
}) {
  return (
    <div class="choice" role="group" aria-label={props.label}>
      {props.options.map(([value, text]) => (
        <button
          type="button"
          key={value}
          aria-pressed={props.value === value}
          onClick={() => props.change(value)}
        >
          {text}
        </button>
      ))}
    </div>
  );
}

export function Wrong({ text }: { text: string | null }) {
  return text ? (
    <p class="wrong" role="alert">
      {text}
    </p>
  ) : null;
}
