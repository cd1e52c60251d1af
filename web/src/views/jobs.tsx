// jobs.tsx - jobs: waiting, running and finished
import { figures } from "../cluster";
import { clock, duration, millis, relative } from "../format";
import { Ago, Choice, Head, State, TenantTag, Wrong, asks } from "../parts/common";
import { useResource } from "../resource";
import { choice } from "../route";
import { now, tenants } from "../state";
import type { Job, JobState } from "../types";

type Tab = "waiting" | "running" | "over" | "all";
const TABS = ["waiting", "running", "over", "all"] as const;
const tab = choice<Tab>("jobs", "show", "waiting", { among: TABS });
const tenant = choice<string>("jobs", "tenant", "");
const name = choice<string>("jobs", "name", "", { steps: false });
/** The number of jobs shown. */
const MOST = 200;

function queueReason(job: Job): string {
  if (job.held) return "On hold";
  if (job.reason) return job.reason;
  if (job.message) return job.message;
  if (job.depends_on.length > 0) return `after ${job.depends_on.map((one) => one.job).join(", ")}`;
  return "";
}

function took(job: Job): string {
  const from = millis(job.started_at);
  if (from === null) return "–";
  return duration(((millis(job.completed_at) ?? now.value) - from) / 1000);
}

function Row({ job, which }: { job: Job; which: Tab }) {
  const waiting = which === "waiting";
  return (
    <tr>
      {waiting && <td class="number">{job.queue_position ?? "–"}</td>}
      <th scope="row">
        <a class="job-name" href={`#/jobs/${job.id}`} title={job.name}>
          {job.name || job.id}
        </a>
        <span class="muted small"> {job.name ? job.id : ""}</span>
      </th>
      <td>
        <TenantTag id={job.tenant_id} />
      </td>
      <td>
        <State state={job.state} held={job.held} />
      </td>
      <td>{asks(job)}</td>
      <td class="number">{job.priority}</td>
      {waiting ? (
        <>
          <td title={job.estimated_start ?? ""}>
            {job.estimated_start
              ? `${clock(job.estimated_start, now.value)} (${relative(job.estimated_start, now.value)})`
              : "not known"}
          </td>
          <td class="reason" title={queueReason(job)}>
            {queueReason(job)} <a href={`#/jobs/${job.id}?why`}>why?</a>
          </td>
        </>
      ) : (
        <>
          <td>{which === "over" ? <Ago time={job.completed_at} /> : (job.node_name ?? "–")}</td>
          <td class="number">{took(job)}</td>
        </>
      )}
      <td>
        <Ago time={job.submitted_at} />
      </td>
    </tr>
  );
}

function Table({ jobs, which }: { jobs: Job[]; which: Tab }) {
  const waiting = which === "waiting";
  return (
    <div class="table" role="region" aria-label="Jobs" tabIndex={0}>
      <table>
        <thead>
          <tr>
            {waiting && (
              <th scope="col" class="number">
                Position
              </th>
            )}
            <th scope="col">Job</th>
            <th scope="col">Tenant</th>
            <th scope="col">State</th>
            <th scope="col">Requested</th>
            <th scope="col" class="number">
              Priority
            </th>
            <th scope="col">
              {waiting ? "Expected start" : which === "over" ? "Finished" : "Node"}
            </th>
            <th scope="col" class={waiting ? "" : "number"}>
              {waiting ? "Reason" : "Ran for"}
            </th>
            <th scope="col">Submitted</th>
          </tr>
        </thead>
        <tbody>
          {jobs.map((job) => (
            <Row job={job} key={job.id} which={which} />
          ))}
        </tbody>
      </table>
    </div>
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
  over: ["completed", "failed", "cancelled"],
  all: [],
};

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

function Listed({ which }: { which: Exclude<Tab, "waiting"> }) {
  const { jobs, total, asked, error } = useJobs(STATES[which]);
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

export function JobsView() {
  const which = tab.value;
  return (
    <>
      <Head title="Jobs" />
      <div class="tools">
        <Choice
          label="Which jobs"
          value={which}
          options={[
            ["waiting", "Waiting"],
            ["running", "Running"],
            ["over", "Finished"],
            ["all", "All"],
          ]}
          change={(value) => {
            tab.value = value;
          }}
        />
        <select
          aria-label="Of which tenant"
          value={tenant.value}
          onChange={(event) => {
            tenant.value = event.currentTarget.value;
          }}
        >
          <option value="">All tenants</option>
          {tenants.value.map((one) => (
            <option value={one.id} key={one.id}>
              {one.name}
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
      {which === "waiting" ? <Waiting /> : <Listed which={which} key={which} />}
    </>
  );
}
