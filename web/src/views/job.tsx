// job.tsx - one job: where it is in its life, why, where it runs, what it prints and uses
import { useEffect, useRef, useState } from "preact/hooks";
import { request } from "../api";
import { cellOf, loaded } from "../cluster";
import {
  clock,
  localTimes,
  memory,
  millis,
  percent,
  plural,
  quoted,
  relative,
  short,
  words,
} from "../format";
import { attempts, confidence, endingOf, expectedEnd, stretches } from "../life";
import { Chart } from "../parts/chart";
import { Head, State, TenantTag, Wrong, asks, dependency, jobTitle } from "../parts/common";
import { Arithmetic } from "../parts/decision";
import { act, ask } from "../parts/dialog";
import { aloneOn, ownedOf } from "../parts/gpu";
import { Output } from "../parts/output";
import { useResource } from "../resource";
import { route, subject } from "../route";
import { mayChange, now } from "../state";
import type { Allocation, Decision, Event, Job, Part, Run } from "../types";
import { FINISHED } from "./jobs";

function Actions({ job }: { job: Job }) {
  if (!mayChange.value) return null;
  const again = (
    <a class="button" href={`#/submit?from=${job.id}`}>
      Resubmit
    </a>
  );
  if (FINISHED.includes(job.state)) return again;
  const path = `/jobs/${job.id}`;
  const name = jobTitle(job);
  return (
    <>
      {again}
      {job.state === "pending" && !job.held && (
        <button type="button" onClick={() => act(() => request("POST", `${path}/hold`))}>
          Hold
        </button>
      )}
      {job.held && (
        <button type="button" onClick={() => act(() => request("POST", `${path}/release`))}>
          Release
        </button>
      )}
      <button
        type="button"
        class="danger"
        onClick={() =>
          ask({
            title: `Cancel ${name}?`,
            text:
              job.state === "running"
                ? "It is told to stop; what it has not saved is lost."
                : "It will not be started.",
            action: "Cancel the job",
            dangerous: true,
            keep: job.state === "running" ? "Keep running" : "Keep it",
            run: () => request("DELETE", path),
          })
        }
      >
        Cancel
      </button>
    </>
  );
}

/** Its runs and the waits between them, as stretches of one line. */
function Life({ job, runs }: { job: Job; runs: Run[] }) {
  const end = millis(job.completed_at);
  const all = stretches(job, runs, now.value);
  const first = all[0]?.from ?? 0;
  const span = Math.max(1, (all.at(-1)?.to ?? 0) - first);
  const expected = expectedEnd(job, runs);
  const began = attempts(runs).at(-1);
  return (
    <section class="card" aria-labelledby="life">
      <h2 id="life">Timeline</h2>
      <div class="life" aria-hidden="true">
        {all.map((one) => {
          const part = (one.to - one.from) / span;
          return (
            <span
              class={`piece ${one.kind}`}
              style={`--size:${100 * part}%`}
              title={one.text}
              key={`${one.kind}${one.from}`}
            >
              {part > 0.12 && <span>{one.text}</span>}
            </span>
          );
        })}
      </div>
      <ol class="unseen">
        {all.map((one) => (
          <li key={`${one.kind}${one.from}`}>{one.text}</li>
        ))}
      </ol>
      <dl class="facts">
        <dt>Submitted</dt>
        <dd>
          {clock(job.submitted_at, now.value)}
          {job.user ? ` by ${job.user}` : ""}
        </dd>
        <dt>{attempts(runs).length > 1 ? "Last started" : "Started"}</dt>
        <dd>
          {began?.started
            ? clock(began.started, now.value)
            : job.started_at
              ? clock(job.started_at, now.value)
              : "–"}
        </dd>
        {job.state === "pending" && job.estimated_start && (
          <>
            <dt>Expected start</dt>
            <dd>
              {clock(job.estimated_start, now.value)} ({relative(job.estimated_start, now.value)})
            </dd>
          </>
        )}
        {job.state === "pending" && job.promised_start && (
          <>
            <dt>Promised start</dt>
            <dd>by {clock(job.promised_start, now.value)}; nine of ten jobs keep it</dd>
          </>
        )}
        {job.deadline && (
          <>
            <dt>Deadline</dt>
            <dd>
              {clock(job.deadline, now.value)}
              {job.deadline_risk !== null &&
                end === null &&
                `, missed with a probability of ${percent(job.deadline_risk)}`}
            </dd>
          </>
        )}
        {end !== null && (
          <>
            <dt>Finished</dt>
            <dd>{clock(job.completed_at, now.value)}</dd>
          </>
        )}
        {expected !== null && job.prediction_confidence >= 0.1 && (
          <>
            <dt>Expected end</dt>
            <dd>
              {expected > now.value
                ? `~${clock(expected, now.value).slice(0, -3)} (${confidence(job.prediction_confidence)})`
                : `was ~${clock(expected, now.value).slice(0, -3)}; it is taking longer than jobs like it`}
            </dd>
          </>
        )}
        {job.preempted_count > 0 && (
          <>
            <dt>Preempted</dt>
            <dd>{plural(job.preempted_count, "time")}</dd>
          </>
        )}
      </dl>
    </section>
  );
}

function Why({ job }: { job: Job }) {
  const [trace, setTrace] = useState(false);
  const why = useResource<{ why: string[] }>(`/jobs/${job.id}/why${trace ? "?trace=1" : ""}`, [
    "jobs",
    "nodes",
  ]);
  return (
    <section class="card" aria-labelledby="why">
      <h2 id="why">
        {FINISHED.includes(job.state)
          ? "Outcome"
          : job.state === "pending"
            ? "Why it waits"
            : "Why it was placed here"}
        {job.state === "pending" && (
          <button type="button" class="quiet" aria-pressed={trace} onClick={() => setTrace(!trace)}>
            {trace ? "In short" : "Step by step"}
          </button>
        )}
      </h2>
      <Wrong text={why.error.value} />
      <ul class="why">
        {(why.data.value?.why ?? []).map((line, place) => (
          <li key={place} style={`--in:${/^ */.exec(line)?.[0].length ?? 0}`}>
            {localTimes(line.trim())}
          </li>
        ))}
      </ul>
    </section>
  );
}

/** The nodes of its last attempt, with the GPUs on each: 'node2 (8 GPUs), vm (2 GPUs)'. */
export function lastPlaces(runs: readonly Run[]): string {
  const last = new Map<number, Run>();
  for (const run of runs) {
    const before = last.get(run.task);
    if (run.started_at && (!before || run.began_at > before.began_at)) last.set(run.task, run);
  }
  const nodes = new Map<string, number>();
  for (const run of last.values())
    nodes.set(run.node ?? "?", (nodes.get(run.node ?? "?") ?? 0) + run.gpus);
  return [...nodes]
    .map(([node, gpus]) => `${node} (${gpus === 1 ? "1 GPU" : `${short(gpus)} GPUs`})`)
    .join(", ");
}

function Placement({ job, runs }: { job: Job; runs: Run[] }) {
  const placed = job.allocations.filter((one) => one.gpus || one.node);
  const before = lastPlaces(runs);
  return (
    <section class="card" aria-labelledby="placement">
      <h2 id="placement">Placement</h2>
      {placed.length === 0 && (
        <p class="muted">
          {before
            ? `${FINISHED.includes(job.state) ? "Ran" : "Last ran"} on ${before}.`
            : FINISHED.includes(job.state)
              ? "Never started."
              : "Not placed yet."}
        </p>
      )}
      <ul class="places">
        {placed.map((one) => (
          <Place allocation={one} key={one.task} many={placed.length > 1} job={job.id} />
        ))}
      </ul>
    </section>
  );
}

/** What it uses of a part: what was measured of it last, and of a GPU that it has alone, all that
 * was measured there. */
function measuredOf(part: Part, job: string): number {
  const cell = part.uuid && loaded.value ? cellOf(part.uuid) : undefined;
  const sample = cell?.sample.value;
  if (!cell || !sample) return part.measured_memory_mb;
  if (aloneOn(cell.books.value)) return Math.max(0, ownedOf(cell.books.value, sample));
  const own = cell.books.value.holders?.find((one) => one.job_id === job);
  return own?.measured_memory_mb ?? part.measured_memory_mb;
}

function Place(props: { allocation: Allocation; many: boolean; job: string }) {
  const { allocation, many } = props;
  return (
    <li>
      <p>
        {many && <b>Task {allocation.task}: </b>}
        {allocation.node && (
          <a href={`#/nodes/${encodeURIComponent(allocation.node)}`}>{allocation.node}</a>
        )}{" "}
        <span class="muted">{allocation.phase ?? allocation.state}</span>
      </p>
      <ul class="uses">
        {(allocation.gpus ?? []).map((part) => {
          const measured = measuredOf(part, props.job);
          const used = Math.min(1, measured / Math.max(1, part.memory_mb));
          return (
            <li key={part.uuid}>
              <span class="use-name">GPU {part.index ?? "?"}</span>
              <span class="use-bar" style={`--size:${(used * 100).toFixed(1)}%`} />
              <span class="use-text">
                {memory(measured)} of {memory(part.memory_mb)} reserved
                {part.whole ? ", whole" : part.share > 0 ? `, share ${short(part.share)}` : ""}
              </span>
            </li>
          );
        })}
      </ul>
    </li>
  );
}

const POINTS = 600;

/** Its own memory, and the load of its GPUs, as this page has seen them. */
function Use({ job }: { job: Job }) {
  const kept = useRef<[number[], number[], number[], number[]]>([[], [], [], []]);
  const parts = job.allocations.flatMap((one) => one.gpus ?? []);
  const cells = parts.flatMap((part) => (part.uuid ? (cellOf(part.uuid) ?? []) : []));
  const live = loaded.value && job.state === "running" && cells.length > 0;
  const at = now.value;
  useEffect(() => {
    if (!live) return;
    const used = parts.reduce((sum, part) => sum + measuredOf(part, job.id), 0);
    const reserved = parts.reduce((sum, part) => sum + part.memory_mb, 0);
    const loads = cells.map((cell) => cell.sample.peek()?.utilization ?? 0);
    const load = loads.reduce((sum, one) => sum + one, 0) / loads.length;
    const values = [at / 1000, used / 1024, reserved / 1024, load * 100];
    for (const [place, list] of kept.current.entries()) {
      list.push(values[place] ?? 0);
      if (list.length > POINTS) list.shift();
    }
  }, [at, live]);
  if (!live) return null;
  const shared = cells.some((cell) => !aloneOn(cell.books.value));
  return (
    <section class="card" aria-labelledby="use">
      <h2 id="use">Actual vs. reserved</h2>
      <Chart
        label="GPU memory"
        curves={[
          { label: "used by this job", colour: "--accent", fill: true },
          { label: "reserved", colour: "--bad", dashed: true },
        ]}
        unit={(value) => `${short(value)} GiB`}
        tick={at}
        data={() => kept.current.slice(0, 3) as [number[], number[], number[]]}
      />
      <Chart
        label={shared ? "Utilization of its GPUs, with their other owners" : "Utilization"}
        curves={[{ label: "average", colour: "--tenant-2", fill: true }]}
        unit={(value) => `${value} %`}
        top={100}
        tick={at}
        data={() => [kept.current[0], kept.current[3]]}
      />
    </section>
  );
}

function Asked({ job }: { job: Job }) {
  const command = [...(job.command ?? []), ...(job.args ?? [])];
  const line = command.map(quoted).join(" ");
  return (
    <section class="card" aria-labelledby="asked">
      <h2 id="asked">Requested</h2>
      <dl class="facts">
        <dt>GPUs</dt>
        <dd>
          {asks(job)}
          {job.gpu_sharing === "whole" &&
          typeof job.gpu_memory_mb === "number" &&
          job.gpu_memory_mb > 0
            ? `, each with at least ${memory(job.gpu_memory_mb)}`
            : ""}
        </dd>
        <dt>CPU, memory</dt>
        <dd>
          {short(job.cpu_cores)} {job.cpu_cores === 1 ? "core" : "cores"}, {memory(job.memory_mb)}
        </dd>
        <dt>Priority</dt>
        <dd>
          {job.priority}
          {job.preemptible ? ", may be preempted" : ", may not be preempted"}
        </dd>
        {job.image && (
          <>
            <dt>Image</dt>
            <dd>
              <code>{job.image}</code>
            </dd>
          </>
        )}
        {job.depends_on.length > 0 && (
          <>
            <dt>After</dt>
            <dd>
              {job.depends_on.map((one) => (
                <a href={`#/jobs/${dependency(one)}`} key={dependency(one)}>
                  {dependency(one)}{" "}
                </a>
              ))}
            </dd>
          </>
        )}
      </dl>
      {(line || job.script) && (
        <pre class="command" tabIndex={0}>
          {job.script || line}
        </pre>
      )}
    </section>
  );
}

/** What happened to it, without its name. */
function happened(event: Event): string {
  const where = event.node ? ` on ${event.node}` : "";
  if (event.type === "job_ended") return event.state ?? "ended";
  if (event.type === "task_started") return `task ${event.task} started${where}`;
  if (event.type === "task_ended") return `task ${event.task} ended, exit code ${event.exit_code}`;
  return words(event.type).replace(/^job /, "") + where;
}

function History({ job }: { job: Job }) {
  const list = useResource<{ events: Event[] }>(`/jobs/${job.id}/events?limit=200`, ["jobs"]);
  const stored = (list.data.value?.events ?? []).filter((one) => one.type !== "job_submitted");
  return (
    <section class="card" aria-labelledby="history">
      <h2 id="history">History</h2>
      <ol class="lines">
        {[...stored].reverse().map((event) => (
          <li key={event.seq}>
            <span class="line-text">{happened(event)}</span>
            <span class="line-end">{clock(event.time, now.value)}</span>
          </li>
        ))}
        <li>
          <span class="line-text">submitted</span>
          <span class="line-end">{clock(job.submitted_at, now.value)}</span>
        </li>
      </ol>
    </section>
  );
}

/** Each run, where there was more than one of a task. */
function Runs({ runs }: { runs: Run[] }) {
  if (!runs.some((run) => (run.attempt ?? 0) > 1)) return null;
  return (
    <section class="card" aria-labelledby="runs">
      <h2 id="runs">Runs</h2>
      <ol class="lines">
        {[...runs].reverse().map((run) => (
          <li key={`${run.task} ${run.began_at}`}>
            <span class="line-text">
              task {run.task}
              {run.node ? ` on ${run.node}` : ""}: {endingOf(run)}
              {run.exit_code ? `, exit code ${run.exit_code}` : ""}
            </span>
            <span class="line-end">
              {clock(run.began_at, now.value)}
              {run.ended_at ? ` – ${clock(run.ended_at, now.value)}` : ""}
            </span>
          </li>
        ))}
      </ol>
    </section>
  );
}

function Decided({ id }: { id: string }) {
  const list = useResource<Decision[]>(`/scheduler/decisions?job=${id}&limit=20`, ["jobs"]);
  if (!list.data.value?.length) return null;
  return (
    <section class="card" aria-labelledby="decided">
      <h2 id="decided">Decisions</h2>
      {list.data.value.map((one) => (
        <Arithmetic decision={one} key={one.id} />
      ))}
    </section>
  );
}

/** The task whose output is looked at first: the one that failed. */
export function firstTask(job: Pick<Job, "allocations">): number {
  const failed = job.allocations.filter(
    (one) => one.exit_code !== undefined && one.exit_code !== 0,
  );
  // What fails by itself fails before those that are stopped because of it.
  failed.sort((a, b) => (millis(a.ended_at) ?? 0) - (millis(b.ended_at) ?? 0));
  return failed[0]?.task ?? 0;
}

export function JobView({ id }: { id: string }) {
  const found = useResource<Job>(`/jobs/${id}`, ["jobs"]);
  const history = useResource<{ runs: Run[] }>(`/jobs/${id}/runs`, ["jobs"]);
  const job = found.data.value;
  const runs = history.data.value?.runs ?? [];
  const about = job ? `${jobTitle(job)} ${job.held ? "held" : job.state}` : null;
  useEffect(() => {
    subject.value = about;
    return () => {
      subject.value = null;
    };
  }, [about]);
  const asksWhy = route.value.query.has("why");
  useEffect(() => {
    if (job && asksWhy) document.getElementById("why")?.scrollIntoView({ block: "center" });
  }, [job === null, asksWhy]);
  if (!job)
    return (
      <>
        <Head title={id} />
        {found.error.value ? (
          <Wrong
            text={
              /not known/.test(found.error.value) ? `There is no job ${id}.` : found.error.value
            }
          />
        ) : (
          <p class="empty">Loading…</p>
        )}
      </>
    );
  return (
    <>
      <Head
        title={
          <>
            {jobTitle(job)} <span class="muted">{job.name ? job.id : ""}</span>
          </>
        }
      >
        <Actions job={job} />
      </Head>
      <p class="under">
        <State state={job.state} held={job.held} /> <TenantTag id={job.tenant_id} /> {asks(job)}
        {job.queue_position ? ` · #${job.queue_position} in queue` : ""}
        {job.exit_code !== null ? ` · exit code ${job.exit_code}` : ""}
        {job.message ? ` · ${job.message}` : ""}
        {job.array_id && (
          <a href={`#/jobs?name=${encodeURIComponent(job.name)}`}>all of this array</a>
        )}
      </p>
      <div class="job">
        <div>
          <Life job={job} runs={runs} />
          <Why job={job} />
          {(job.state !== "pending" || runs.some((run) => run.started_at)) && (
            <Output job={job} runs={runs} first={firstTask(job)} />
          )}
          <Decided id={id} />
        </div>
        <div>
          <Placement job={job} runs={runs} />
          <Use job={job} />
          <Asked job={job} />
          <Runs runs={runs} />
          <History job={job} />
        </div>
      </div>
    </>
  );
}
