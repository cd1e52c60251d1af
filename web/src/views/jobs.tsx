// jobs.tsx - jobs: waiting, running and finished
import { useState } from "preact/hooks";
import { request } from "../api";
import { figures } from "../cluster";
import { clock, duration, localTimes, millis, relative } from "../format";
import {
  Ago,
  Choice,
  Head,
  State,
  TenantTag,
  Wrong,
  asks,
  dependency,
  jobTitle,
} from "../parts/common";
import { ask } from "../parts/dialog";
import { type Column, DataTable } from "../parts/table";
import { useResource } from "../resource";
import { choice } from "../route";
import { mayChange, now, tenantName, tenants } from "../state";
import type { Job, JobState } from "../types";

type Tab = "all" | "waiting" | "running" | "over";
const TABS = ["all", "waiting", "running", "over"] as const;
export const tab = choice<Tab>("jobs", "show", "all", { among: TABS });
const tenant = choice<string>("jobs", "tenant", "");
const name = choice<string>("jobs", "name", "", { steps: false });
const state = choice<string>("jobs", "state", "");
const by = choice<string>("jobs", "sort", "", { steps: false });
/** The number of jobs asked for. */
const MOST = 200;

export const FINISHED: JobState[] = ["completed", "failed", "cancelled"];

/** Why it waits or how it ended, in a sentence. */
export function reasonOf(job: Job): string {
  if (job.state === "pending") {
    if (job.held) return "On hold";
    if (job.reason || job.message) return localTimes(job.reason || job.message);
    if (job.depends_on.length > 0) return `after ${job.depends_on.map(dependency).join(", ")}`;
    return "";
  }
  if (job.state === "completed" || job.state === "running") return "";
  return job.message;
}

/** The nodes of its tasks: 'vm' or 'vm +2'. */
export function nodesOf(job: Job): string[] {
  const all = job.allocations.flatMap((one) => one.node ?? []);
  return [...new Set(all.length ? all : job.node_name ? [job.node_name] : [])];
}

/** How long its last run took so far, in seconds; null: it does not run. */
export function ranFor(job: Job, at: number): number | null {
  if (!FINISHED.includes(job.state) && job.state !== "running") return null;
  const starts = job.allocations.flatMap((one) => millis(one.started_at) ?? []);
  const from = starts.length ? Math.min(...starts) : millis(job.started_at);
  if (from === null) return null;
  return Math.max(0, ((millis(job.completed_at) ?? at) - from) / 1000);
}

function Nodes({ job }: { job: Job }) {
  const all = nodesOf(job);
  if (all.length === 0) return <>–</>;
  return (
    <span title={all.join(", ")}>
      {all[0]}
      {all.length > 1 ? ` +${all.length - 1}` : ""}
    </span>
  );
}

const position: Column<Job> = {
  key: "position",
  title: "Position",
  number: true,
  sort: (job) => job.queue_position,
  cell: (job) => job.queue_position ?? "–",
};
const title: Column<Job> = {
  key: "job",
  title: "Job",
  main: true,
  sort: (job) => jobTitle(job),
  cell: (job) => (
    <>
      <a class="job-name" href={`#/jobs/${job.id}`} title={jobTitle(job)}>
        {jobTitle(job)}
      </a>
      <span class="muted small"> {job.name ? job.id : ""}</span>
    </>
  ),
};
const owner: Column<Job> = {
  key: "tenant",
  title: "Tenant",
  sort: (job) => tenantName(job.tenant_id),
  cell: (job) => <TenantTag id={job.tenant_id} />,
};
const user: Column<Job> = {
  key: "user",
  title: "User",
  optional: true,
  sort: (job) => job.user ?? null,
  cell: (job) => <span class="user">{job.user || "–"}</span>,
};
const stateOf: Column<Job> = {
  key: "state",
  title: "State",
  sort: (job) => job.state,
  cell: (job) => <State state={job.state} held={job.held} />,
};
const requested: Column<Job> = {
  key: "requested",
  title: "Requested",
  sort: (job) => (job.tasks ?? 1) * (job.gpu_count || job.gpu_fraction || 0.1),
  cell: asks,
};
const priority: Column<Job> = {
  key: "priority",
  title: "Priority",
  number: true,
  sort: (job) => job.priority,
  cell: (job) => job.priority,
};
const expected: Column<Job> = {
  key: "start",
  title: "Expected start",
  sort: (job) => millis(job.estimated_start),
  cell: (job) =>
    job.estimated_start
      ? `${clock(job.estimated_start, now.value)} (${relative(job.estimated_start, now.value)})`
      : "not known",
};
const reason: Column<Job> = {
  key: "reason",
  title: "Reason",
  class: "reason",
  sort: (job) => reasonOf(job),
  cell: (job) => (
    <span class="reason-line">
      <span title={reasonOf(job)}>{reasonOf(job)}</span>
      {job.state === "pending" && <a href={`#/jobs/${job.id}?why`}>why?</a>}
    </span>
  ),
};
const where: Column<Job> = {
  key: "node",
  title: "Node",
  optional: true,
  sort: (job) => nodesOf(job)[0] ?? null,
  cell: (job) => <Nodes job={job} />,
};
const took: Column<Job> = {
  key: "ran",
  title: "Ran for",
  number: true,
  sort: (job) => ranFor(job, now.peek()),
  cell: (job) => {
    const seconds = ranFor(job, now.value);
    return seconds === null ? "–" : duration(seconds);
  },
};
const submitted: Column<Job> = {
  key: "submitted",
  title: "Submitted",
  sort: (job) => millis(job.submitted_at),
  cell: (job) => <Ago time={job.submitted_at} />,
};
const finished: Column<Job> = {
  key: "finished",
  title: "Finished",
  sort: (job) => millis(job.completed_at),
  cell: (job) => <Ago time={job.completed_at} />,
};

const COLUMNS: Record<Tab, Column<Job>[]> = {
  waiting: [position, title, owner, user, requested, priority, expected, reason, submitted],
  running: [title, owner, user, stateOf, requested, priority, where, took, submitted],
  over: [title, owner, user, stateOf, requested, where, took, finished, reason],
  all: [title, owner, user, stateOf, requested, priority, where, took, submitted, reason],
};

function cancelAll(jobs: Job[], done: () => void): void {
  const count = jobs.length === 1 ? "1 job" : `${jobs.length} jobs`;
  ask({
    title: `Cancel ${count}?`,
    text: "Running ones are stopped; what they have not saved is lost.",
    action: `Cancel ${count}`,
    dangerous: true,
    run: async () => {
      const ends = await Promise.allSettled(
        jobs.map((job) => request("DELETE", `/jobs/${job.id}`)),
      );
      done();
      const failed = ends.filter((one) => one.status === "rejected");
      if (failed.length > 0) throw new Error(`${failed.length} of ${count} could not be cancelled`);
      return { message: `${count} cancelled` };
    },
  });
}

function Table({ jobs, which }: { jobs: Job[]; which: Tab }) {
  const [picked, setPicked] = useState<ReadonlySet<string>>(new Set());
  const live = jobs.filter((job) => !FINISHED.includes(job.state));
  const chosen = live.filter((job) => picked.has(job.id));
  const toggle = (id: string, on: boolean) => {
    const next = new Set(picked);
    if (on) next.add(id);
    else next.delete(id);
    setPicked(next);
  };
  const pick: Column<Job> = {
    key: "pick",
    title: "Select",
    unseen: true,
    class: "pick-cell",
    cell: (job) =>
      !FINISHED.includes(job.state) && (
        <input
          type="checkbox"
          aria-label={`Select ${jobTitle(job)} ${job.id}`}
          checked={picked.has(job.id)}
          onChange={(event) => toggle(job.id, event.currentTarget.checked)}
        />
      ),
  };
  const mayPick = mayChange.value && live.length > 0;
  return (
    <>
      {mayPick && (
        <div class="tools picks">
          <button
            type="button"
            class="quiet"
            onClick={() =>
              setPicked(new Set(chosen.length === live.length ? [] : live.map((job) => job.id)))
            }
          >
            {chosen.length === live.length ? "Select none" : `Select all ${live.length} unfinished`}
          </button>
          {chosen.length > 0 && (
            <button
              type="button"
              class="danger"
              onClick={() => cancelAll(chosen, () => setPicked(new Set()))}
            >
              Cancel {chosen.length} selected
            </button>
          )}
        </div>
      )}
      <DataTable
        label="Jobs"
        columns={mayPick ? [pick, ...COLUMNS[which]] : COLUMNS[which]}
        rows={jobs}
        id={(job) => job.id}
        by={by}
      />
    </>
  );
}

function tenantQuery(): string {
  return tenant.value ? `&tenant_id=${encodeURIComponent(tenant.value)}` : "";
}

function Waiting() {
  const queue = useResource<Job[]>(`/scheduler/queue?limit=${MOST}&reasons=1${tenantQuery()}`, [
    "jobs",
    "nodes",
  ]);
  const wanted = name.value.toLowerCase();
  const all = queue.data.value ?? [];
  const jobs = all.filter((job) => job.name.toLowerCase().startsWith(wanted));
  const waiting = tenant.value
    ? tenants.value.find((one) => one.id === tenant.value)?.waiting_jobs
    : figures.value?.pending_jobs;
  return (
    <>
      <Wrong text={queue.error.value} />
      {queue.data.value && jobs.length === 0 ? (
        <p class="empty">{wanted ? "No waiting job has this name." : "No jobs waiting."}</p>
      ) : (
        <Table jobs={jobs} which="waiting" />
      )}
      {all.length === MOST && (
        <p class="muted">
          {wanted ? "Of the" : "The"} first {MOST} of {waiting ?? "many"}.
        </p>
      )}
    </>
  );
}

const STATES: Record<Exclude<Tab, "waiting">, JobState[]> = {
  running: ["running", "scheduled"],
  over: FINISHED,
  all: [],
};
const EVERY: JobState[] = ["pending", "scheduled", "running", ...FINISHED];

/** The newest of each of these states, the last to end or to be submitted first. */
function useJobs(states: readonly JobState[]) {
  const named = name.value ? `&name=${encodeURIComponent(name.value)}` : "";
  const query = `/jobs?limit=${MOST}${tenantQuery()}${named}`;
  // The states of a table stay the same as long as it is shown.
  const lists = (states.length ? states : [null]).map((state) =>
    useResource<{ jobs: Job[]; total: number }>(`${query}${state ? `&state=${state}` : ""}`, [
      "jobs",
    ]),
  );
  const pages = lists.flatMap((list) => list.data.value ?? []);
  return {
    error: lists.map((list) => list.error.value).find(Boolean) ?? null,
    asked: pages.length === lists.length,
    total: pages.reduce((sum, page) => sum + page.total, 0),
    jobs: latest(pages.flatMap((page) => page.jobs)).slice(0, MOST),
  };
}

export function latest(jobs: Job[]): Job[] {
  const when = (job: Job) => millis(job.completed_at ?? job.submitted_at) ?? 0;
  return [...jobs].sort((a, b) => when(b) - when(a));
}

function Listed({ which, states }: { which: Exclude<Tab, "waiting">; states: JobState[] }) {
  const { jobs, total, asked, error } = useJobs(states);
  return (
    <>
      <Wrong text={error} />
      {asked && jobs.length === 0 ? (
        <p class="empty">No jobs.</p>
      ) : (
        <Table jobs={jobs} which={which} />
      )}
      {asked && total > jobs.length && (
        <p class="muted">
          The newest {jobs.length} of {total}.
        </p>
      )}
    </>
  );
}

/** A tab's name, with the number of jobs where it is known. */
function tabName(text: string, count: number | undefined): string {
  return count === undefined ? text : `${text} ${count}`;
}

export function JobsView() {
  const which = tab.value;
  const all = tenant.value ? null : figures.value;
  const choices = which === "all" ? EVERY : which === "waiting" ? [] : STATES[which];
  const one = choices.find((each) => each === state.value);
  return (
    <>
      <Head title="Jobs" />
      <div class="tools">
        <Choice
          label="Which jobs"
          value={which}
          options={[
            ["all", "All"],
            ["waiting", tabName("Waiting", all?.pending_jobs)],
            [
              "running",
              tabName("Running", all ? all.running_jobs + all.scheduled_jobs : undefined),
            ],
            ["over", "Finished"],
          ]}
          change={(value) => {
            tab.value = value;
          }}
        />
        {choices.length > 0 && (
          <select
            aria-label="In which state"
            value={one ?? ""}
            onChange={(event) => {
              state.value = event.currentTarget.value;
            }}
          >
            <option value="">Any state</option>
            {choices.map((each) => (
              <option value={each} key={each}>
                {each}
              </option>
            ))}
          </select>
        )}
        <select
          aria-label="Of which tenant"
          value={tenant.value}
          onChange={(event) => {
            tenant.value = event.currentTarget.value;
          }}
        >
          <option value="">All tenants</option>
          {tenants.value.map((each) => (
            <option value={each.id} key={each.id}>
              {each.name}
            </option>
          ))}
        </select>
        <input
          type="search"
          class="search"
          aria-label="Name begins with"
          placeholder="Name begins with"
          value={name.value}
          onInput={(event) => {
            name.value = event.currentTarget.value;
          }}
        />
      </div>
      {which === "waiting" ? (
        <Waiting />
      ) : (
        <Listed which={which} states={one ? [one] : STATES[which]} key={`${which} ${one ?? ""}`} />
      )}
    </>
  );
}
