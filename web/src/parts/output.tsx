// output.tsx - what tasks print, as they print it: search, follow, earlier runs, download
import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { bytes, follow } from "../api";
import { endingOf } from "../life";
import { LogView } from "../log";
import type { Job, Run } from "../types";
import { jobTitle } from "./common";
import { act } from "./dialog";

const TAIL_BYTES = 200000;
/** A browser keeps six connections at most: the outputs of many tasks are asked for in turn. */
const POLL_MS = 2000;
const TASKS_MAX = 64;
const ALL = -1;

interface Source {
  job: string;
  /** ALL for those of `tasks`. */
  task: number;
  tasks: number[];
  /** 0: the last. */
  run: number;
  running: boolean;
}

function pathOf(job: string, task: number, run: number): string {
  return `/jobs/${job}/logs?task=${task}${run ? `&run=${run}` : ""}`;
}

/** Reads the outputs of all tasks, again and again while the job runs. */
async function readAll(source: Source, view: LogView, stop: AbortSignal): Promise<void> {
  const offsets = new Map<number, number>();
  const width = String(Math.max(...source.tasks)).length;
  const decoders = new Map(source.tasks.map((task) => [task, new TextDecoder()]));
  for (;;) {
    for (const task of source.tasks.slice(0, TASKS_MAX)) {
      const at = offsets.get(task);
      const from = at === undefined ? `&tail=${TAIL_BYTES / 4}` : `&offset=${at}`;
      // A task that has not started has no output yet.
      const part = await bytes(pathOf(source.job, task, source.run) + from, stop).catch((error) => {
        if (error.name === "AbortError") throw error;
        return null;
      });
      if (!part) continue;
      offsets.set(task, part.offset === null ? (at ?? 0) + part.data.length : part.offset);
      const text = decoders.get(task)?.decode(part.data, { stream: true }) ?? "";
      if (text) view.add(String(task), `${String(task).padStart(width)} │ `, text);
    }
    if (!source.running) return;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    if (stop.aborted) return;
  }
}

function readOne(source: Source, view: LogView, stop: AbortSignal): Promise<void> {
  const live = source.running && source.run === 0;
  const query = `&tail=${TAIL_BYTES}${live ? "&follow=1" : ""}`;
  return follow(
    pathOf(source.job, source.task, source.run) + query,
    (text) => view.add("", "", text),
    stop,
  );
}

/** Saves the whole output of one task as a file. */
async function download(source: Source, title: string): Promise<void> {
  const tasks = source.task === ALL ? source.tasks : [source.task];
  for (const task of tasks) {
    const part = await bytes(pathOf(source.job, task, source.run));
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([part.data], { type: "text/plain" }));
    link.download = `${title.replace(/[^\w.-]+/g, "-")}-${task}${source.run ? `-run${source.run}` : ""}.log`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }
}

/** The runs of a task that began, the last first: their numbers and how they ended. */
export function runsOf(runs: readonly Run[], task: number): [number, string][] {
  return runs
    .filter((run) => run.task === Math.max(0, task) && run.attempt !== null)
    .map((run): [number, string] => [run.attempt as number, endingOf(run)])
    .sort((a, b) => b[0] - a[0]);
}

function Search({ view, found }: { view: { current: LogView | null }; found: number }) {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const go = (place: number) => {
    if (!found) return;
    const next = (place + found) % found;
    setAt(next);
    view.current?.show(next);
  };
  return (
    <span class="log-search">
      <input
        type="search"
        aria-label="Search in the output"
        placeholder="Search"
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setAt(0);
          view.current?.search(event.currentTarget.value);
        }}
        onKeyDown={(event) => {
          if (event.key !== "Enter") return;
          event.preventDefault();
          go(at + (event.shiftKey ? -1 : 1));
        }}
      />
      {text && (
        <>
          <span class="muted" role="status">
            {found ? `${Math.min(at + 1, found)} of ${found}` : "none"}
          </span>
          <button type="button" aria-label="Previous match" onClick={() => go(at - 1)}>
            ↑
          </button>
          <button type="button" aria-label="Next match" onClick={() => go(at + 1)}>
            ↓
          </button>
        </>
      )}
    </span>
  );
}

export function Output({ job, runs, first }: { job: Job; runs: Run[]; first: number }) {
  const box = useRef<HTMLPreElement>(null);
  const view = useRef<LogView | null>(null);
  const [picked, setTask] = useState<number | null>(null);
  const [run, setRun] = useState(0);
  const [said, setSaid] = useState("");
  const [wrap, setWrap] = useState(true);
  const [only, setOnly] = useState(false);
  const [searched, setSearched] = useState(0);
  const following = useSignal(true);
  const running = job.state === "running" || job.state === "scheduled";
  const tasks = useMemo(
    () => [...new Set([...job.allocations, ...runs].map((one) => one.task))].sort((a, b) => a - b),
    [job.allocations, runs],
  );
  const task = picked ?? first;
  const earlier = runsOf(runs, task);
  const source = { job: job.id, task, tasks, run, running };
  useEffect(() => {
    const element = box.current as HTMLPreElement;
    const made = new LogView(element, () => {
      if (following.peek()) element.scrollTop = element.scrollHeight;
      setSearched(made.hits.length);
    });
    view.current = made;
    return () => made.clear();
  }, []);
  useEffect(() => {
    const stop = new AbortController();
    const made = view.current as LogView;
    made.clear();
    setSaid("");
    following.value = true;
    (task === ALL ? readAll : readOne)(source, made, stop.signal)
      .then(() => made.empty && setSaid("It printed nothing."))
      .catch((error) => error.name !== "AbortError" && setSaid(error.message));
    return () => stop.abort();
  }, [job.id, task, task === ALL ? tasks.length : 0, run, running]);
  return (
    <section class="card" aria-labelledby="output">
      <h2 id="output">Output</h2>
      <div class="tools log-tools">
        {tasks.length > 1 && (
          <select
            aria-label="Of which task"
            value={task}
            onChange={(event) => {
              setRun(0);
              setTask(Number(event.currentTarget.value));
            }}
          >
            <option value={ALL}>all tasks</option>
            {tasks.map((one) => (
              <option value={one} key={one}>
                task {one}
              </option>
            ))}
          </select>
        )}
        {earlier.length > 1 && (
          <select
            aria-label="Of which run"
            value={run}
            onChange={(event) => setRun(Number(event.currentTarget.value))}
          >
            {earlier.map(([number, ending], place) => (
              <option value={place === 0 ? 0 : number} key={number}>
                run {number}: {ending}
              </option>
            ))}
          </select>
        )}
        <Search view={view} found={searched} />
        <button type="button" aria-pressed={only} onClick={() => setOnly(!only)}>
          Matches only
        </button>
        <button type="button" aria-pressed={wrap} onClick={() => setWrap(!wrap)}>
          Wrap
        </button>
        <button
          type="button"
          aria-pressed={following.value}
          onClick={() => {
            following.value = !following.value;
            const element = box.current;
            if (following.value && element) element.scrollTop = element.scrollHeight;
          }}
        >
          Follow
        </button>
        <button type="button" onClick={() => act(() => download(source, jobTitle(job)))}>
          Download
        </button>
      </div>
      <pre
        class={`output${wrap ? "" : " unwrapped"}${only ? " only-hits" : ""}`}
        ref={box}
        tabIndex={0}
        aria-label="Output"
        role="log"
        onScroll={(event) => {
          const { scrollHeight, scrollTop, clientHeight } = event.currentTarget;
          following.value = scrollHeight - scrollTop - clientHeight < 40;
        }}
      />
      {task === ALL && tasks.length > TASKS_MAX && (
        <p class="muted">The first {TASKS_MAX} tasks.</p>
      )}
      {said && <p class="muted">{said}</p>}
    </section>
  );
}
