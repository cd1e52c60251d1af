// jobs.tsx - jobs: those that wait, run, or are over
import { signal } from "@preact/signals";
import { clock, duration, millis, relative } from "../format";
import { Ago, Choice, Head, State, TenantTag, Wrong, asks } from "../parts/common";
import { useResource } from "../resource";
import { mayChange, now, tenants } from "../state";
import type { Job, JobState } from "../types";

type Tab = "waiting" | "running" | "over" | "all";
const tab = signal<Tab>("waiting");
const tenant = signal("");
const name = signal("");

function queueReason(job: Job): string {
  if (job.held) return "held by a person: release it";
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

function Row({ job, waiting }: { job: Job; waiting: boolean }) {
  return (
    <tr>
      {waiting && <td class="number">{job.queue_position ?? "–"}</td>}
      <th scope="row">
        <a href={`#/jobs/${job.id}`}>{job.name || job.id}</a>
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
          <td class="reason">
            {queueReason(job)} <a href={`#/jobs/${job.id}?why`}>why?</a>
          </td>
        </>
      ) : (
        <>
          <td>{job.node_name ?? "–"}</td>
          <td class="number">{took(job)}</td>
        </>
      )}
      <td>
        <Ago time={job.submitted_at} />
      </td>
    </tr>
  );
}

function Table({ jobs, waiting }: { jobs: Job[]; waiting: boolean }) {
  return (
    <div class="table" role="region" aria-label="Jobs" tabIndex={0}>
      <table>
        <thead>
          <tr>
            {waiting && (
              <th scope="col" class="number">
                Place
              </th>
            )}
            <th scope="col">Job</th>
            <th scope="col">Tenant</th>
            <th scope="col">State</th>
            <th scope="col">Asks for</th>
            <th scope="col" class="number">
              Priority
            </th>
            <th scope="col">{waiting ? "Expected start" : "Node"}</th>
            <th scope="col" class={waiting ? "" : "number"}>
              {waiting ? "Reason" : "Ran for"}
            </th>
            <th scope="col">Submitted</th>
          </tr>
        </thead>
        <tbody>
          {jobs.map((job) => (
            <Row job={job} key={job.id} waiting={waiting} />
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
  const queue = useResource<Job[]>(`/scheduler/queue?limit=200&reasons=1${tenantQuery()}`, [
    "jobs",
    "nodes",
  ]);
  const wanted = name.value.toLowerCase();
  const jobs = (queue.data.value ?? []).filter((job) => job.name.toLowerCase().includes(wanted));
  return (
    <>
      <Wrong text={queue.error.value} />
      {queue.data.value && jobs.length === 0 ? (
        <p class="empty">Nothing waits.</p>
      ) : (
        <Table jobs={jobs} waiting />
      )}
    </>
  );
}

const STATES: Record<Exclude<Tab, "waiting">, JobState[]> = {
  running: ["running", "scheduled"],
  over: ["completed", "failed", "cancelled"],
  all: [],
};

function Listed({ which }: { which: Exclude<Tab, "waiting"> }) {
  // `state` takes one; the newest are looked through for the rest.
  const only = which === "running" ? "&state=running" : "";
  const query = `${tenantQuery()}${name.value ? `&name=${encodeURIComponent(name.value)}` : ""}`;
  const list = useResource<{ jobs: Job[]; total: number }>(`/jobs?limit=200${only}${query}`, [
    "jobs",
  ]);
  const states = STATES[which];
  const jobs = (list.data.value?.jobs ?? []).filter(
    (job) => states.length === 0 || states.includes(job.state),
  );
  return (
    <>
      <Wrong text={list.error.value} />
      {list.data.value && jobs.length === 0 ? (
        <p class="empty">There are none.</p>
      ) : (
        <Table jobs={jobs} waiting={false} />
      )}
      {list.data.value && list.data.value.total > 200 && (
        <p class="muted">The newest 200 of {list.data.value.total}.</p>
      )}
    </>
  );
}

export function JobsView() {
  const which = tab.value;
  return (
    <>
      <Head title="Jobs">
        {mayChange.value && (
          <a class="button" href="#/submit">
            Submit a job
          </a>
        )}
      </Head>
      <div class="tools">
        <Choice
          label="Which jobs"
          value={which}
          options={[
            ["waiting", "Waiting"],
            ["running", "Running"],
            ["over", "Over"],
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
