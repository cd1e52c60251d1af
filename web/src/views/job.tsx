// job.tsx - one job: where it is in its life, why, where it runs, what it prints and uses
import { useEffect, useState } from "preact/hooks";
import { request } from "../api";
import { cellOf, loaded } from "../cluster";
import {
  clock,
  duration,
  memory,
  millis,
  percent,
  plural,
  relative,
  seconds,
  short,
  words,
} from "../format";
import { Chart } from "../parts/chart";
import { Head, State, TenantTag, Wrong, asks } from "../parts/common";
import { Arithmetic } from "../parts/decision";
import { act, ask } from "../parts/dialog";
import { aloneOn, ownedOf } from "../parts/gpu";
import { Output } from "../parts/output";
import { useResource } from "../resource";
import { route, subject } from "../route";
import { mayChange, now } from "../state";
import type { Allocation, Decision, Event, Job, Part, Run } from "../types";

const OVER = ["completed", "failed", "cancelled"];

function Actions({ job }: { job: Job }) {
  if (!mayChange.value || OVER.includes(job.state)) return null;
  const path = `/jobs/${job.id}`;
  const name = job.name || job.id;
  return (
    <>
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
            run: () => request("DELETE", path),
          })
        }
      >
        Cancel
      </button>
    </>
  );
}

/** Submitted, scheduled, started, finished: as stretches of one line. */
function Life({ job }: { job: Job }) {
  const end = millis(job.completed_at);
  const submitted = millis(job.submitted_at) ?? now.value;
  const scheduled = millis(job.scheduled_at);
  const started = millis(job.started_at);
  const expected = seconds(job.estimated_duration);
  const until = end ?? now.value;
  const expectedEnd = !end && started !== null && expected ? started + expected * 1000 : null;
  const expectedStart = millis(job.estimated_start);
  const last = Math.max(until, expectedEnd ?? 0, started === null ? (expectedStart ?? 0) : 0);
  const span = Math.max(1, last - submitted);
  const piece = (kind: string, from: number, to: number, text: string) =>
    to > from ? (
      <span class={`piece ${kind}`} style={`--size:${(100 * (to - from)) / span}%`} title={text}>
        {(to - from) / span > 0.12 && <span>{text}</span>}
      </span>
    ) : null;
  const waited = (scheduled ?? started ?? until) - submitted;
  return (
    <section class="card" aria-labelledby="life">
      <h2 id="life">Timeline</h2>
      <div class="life" aria-hidden="true">
        {piece(
          "waiting",
          submitted,
          scheduled ?? started ?? until,
          `waited ${duration(waited / 1000)}`,
        )}
        {started === null && !end && expectedStart
          ? piece(
              "expected",
              until,
              expectedStart,
              `starts ${relative(job.estimated_start, now.value)}`,
            )
          : null}
        {scheduled && piece("starting", scheduled, started ?? until, "starting")}
        {started && piece("running", started, until, `ran ${duration((until - started) / 1000)}`)}
        {expectedEnd && expectedEnd > until
          ? piece(
              "expected",
              until,
              expectedEnd,
              `about ${duration((expectedEnd - until) / 1000)} more`,
            )
          : null}
      </div>
      <dl class="facts">
        <dt>Submitted</dt>
        <dd>{clock(job.submitted_at, now.value)}</dd>
        <dt>Scheduled</dt>
        <dd>{clock(job.scheduled_at, now.value)}</dd>
        <dt>Started</dt>
        <dd>
          {started
            ? clock(job.started_at, now.value)
            : job.estimated_start
              ? `expected ${clock(job.estimated_start, now.value)}`
              : "–"}
        </dd>
        <dt>{end ? "Finished" : "Expected end"}</dt>
        <dd>
          {end
            ? clock(job.completed_at, now.value)
            : expectedEnd
              ? `~${clock(expectedEnd, now.value)} (${percent(job.prediction_confidence)} confidence)`
              : "–"}
        </dd>
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
        {OVER.includes(job.state)
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
            {line.trim()}
          </li>
        ))}
      </ul>
    </section>
  );
}

function Placement({ job }: { job: Job }) {
  const placed = job.allocations.filter((one) => one.gpus || one.node);
  return (
    <section class="card" aria-labelledby="placement">
      <h2 id="placement">Placement</h2>
      {placed.length === 0 && (
        <p class="muted">
          {job.node_name
            ? `It ran on ${job.node_name}, on ${plural(job.allocated_gpus.length, "GPU")}.`
            : OVER.includes(job.state)
              ? "Never started."
              : "Not placed yet."}
        </p>
      )}
      <ul class="places">
        {placed.map((one) => (
          <Place allocation={one} key={one.task} many={placed.length > 1} />
        ))}
      </ul>
    </section>
  );
}

/** What it uses of a part: of a GPU that it has alone, all that was measured there last. */
function measuredOf(part: Part): number {
  const cell = part.uuid ? cellOf(part.uuid) : undefined;
  const sample = cell?.sample.value;
  return cell && sample && loaded.value && aloneOn(cell.books.value)
    ? Math.max(0, ownedOf(cell.books.value, sample))
    : part.measured_memory_mb;
}

function Place({ allocation, many }: { allocation: Allocation; many: boolean }) {
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
          const measured = measuredOf(part);
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

/** Memory and load of its GPUs, as this page has seen them. */
function Use({ job }: { job: Job }) {
  const parts = job.allocations.flatMap((one) => one.gpus ?? []);
  const cells = parts.flatMap((part) => (part.uuid ? (cellOf(part.uuid) ?? []) : []));
  const first = cells[0];
  if (!loaded.value || job.state !== "running" || !first) return null;
  const reserved = parts.reduce((sum, part) => sum + part.memory_mb, 0);
  const data = (): [number[], number[], number[], number[]] => {
    const length = Math.min(...cells.map((cell) => cell.times.length));
    const times = first.times.slice(-length);
    const at = (lists: number[][], place: number) =>
      lists.reduce((sum, list) => sum + (list[list.length - length + place] ?? 0), 0);
    const memories = cells.map((cell) => cell.memories);
    const loads = cells.map((cell) => cell.loads);
    return [
      times,
      times.map((_, i) => at(memories, i) / 1024),
      times.map(() => reserved / 1024),
      times.map((_, i) => at(loads, i) / cells.length),
    ];
  };
  return (
    <section class="card" aria-labelledby="use">
      <h2 id="use">Actual vs. reserved</h2>
      <Chart
        label="GPU memory"
        curves={[
          { label: "measured on its GPUs", colour: "--accent", fill: true },
          { label: "reserved", colour: "--bad", dashed: true },
        ]}
        unit={(value) => `${short(value)} GiB`}
        tick={now.value}
        data={() => data().slice(0, 3) as [number[], number[], number[]]}
      />
      <Chart
        label="Utilization"
        curves={[{ label: "average", colour: "--tenant-2", fill: true }]}
        unit={(value) => `${value} %`}
        top={100}
        tick={now.value}
        data={() => [data()[0], data()[3]]}
      />
    </section>
  );
}

function Asked({ job }: { job: Job }) {
  const command = [...(job.command ?? []), ...(job.args ?? [])];
  const quoted = command
    .map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word}'`))
    .join(" ");
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
                <a href={`#/jobs/${one.job}`} key={one.job}>
                  {one.job}{" "}
                </a>
              ))}
            </dd>
          </>
        )}
      </dl>
      {(quoted || job.script) && <pre class="command">{job.script || quoted}</pre>}
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
function Runs({ id }: { id: string }) {
  const list = useResource<{ runs: Run[] }>(`/jobs/${id}/runs`, ["jobs"]);
  const runs = list.data.value?.runs ?? [];
  if (!runs.some((run) => (run.attempt ?? 0) > 1)) return null;
  return (
    <section class="card" aria-labelledby="runs">
      <h2 id="runs">Runs</h2>
      <ol class="lines">
        {[...runs].reverse().map((run) => (
          <li key={`${run.task} ${run.began_at}`}>
            <span class="line-text">
              task {run.task}
              {run.node ? ` on ${run.node}` : ""}: {words(run.ending)}
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

export function JobView({ id }: { id: string }) {
  const found = useResource<Job>(`/jobs/${id}`, ["jobs"]);
  const [task, setTask] = useState(0);
  const job = found.data.value;
  const about = job ? `${job.name || job.id} ${job.held ? "held" : job.state}` : null;
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
        {found.error.value ? <Wrong text={found.error.value} /> : <p class="empty">Asking…</p>}
      </>
    );
  const tasks = job.allocations.map((one) => one.task);
  return (
    <>
      <Head
        title={
          <>
            {job.name || job.id} <span class="muted">{job.name ? job.id : ""}</span>
          </>
        }
      >
        <Actions job={job} />
      </Head>
      <p class="under">
        <State state={job.state} held={job.held} /> <TenantTag id={job.tenant_id} /> {asks(job)}
        {job.queue_position ? ` · place ${job.queue_position} in the queue` : ""}
        {job.exit_code !== null ? ` · exit code ${job.exit_code}` : ""}
        {job.message ? ` · ${job.message}` : ""}
      </p>
      <div class="job">
        <div>
          <Life job={job} />
          <Why job={job} />
          {job.state !== "pending" && (
            <section class="card" aria-labelledby="output">
              <h2 id="output">
                Output
                {tasks.length > 1 && (
                  <select
                    aria-label="Of which task"
                    value={task}
                    onChange={(event) => setTask(Number(event.currentTarget.value))}
                  >
                    {tasks.map((one) => (
                      <option value={one} key={one}>
                        task {one}
                      </option>
                    ))}
                  </select>
                )}
              </h2>
              <Output
                job={id}
                task={task}
                running={job.state === "running" || job.state === "scheduled"}
              />
            </section>
          )}
          <Decided id={id} />
        </div>
        <div>
          <Placement job={job} />
          <Use job={job} />
          <Asked job={job} />
          <Runs id={job.id} />
          <History job={job} />
        </div>
      </div>
    </>
  );
}
