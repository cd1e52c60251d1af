// life.ts - the stretches of a job's life: waiting, starting, running, and what is expected
import { duration, millis, relative, seconds } from "./format";
import type { Job, Run } from "./types";

export interface Stretch {
  kind: "waiting" | "starting" | "running" | "failed" | "lost" | "expected";
  from: number;
  to: number;
  text: string;
}

/** What became of a run, in the words of people. */
export function endingOf(run: Pick<Run, "ending">): string {
  return run.ending === "goes_on" ? "running" : run.ending.replaceAll("_", " ");
}

const LOST = ["preempted", "requeued", "node_lost"];

interface Attempt {
  began: number;
  started: number | null;
  ended: number | null;
  endings: string[];
}

/** Runs of several tasks that overlap are one attempt of the job. */
export function attempts(runs: readonly Run[]): Attempt[] {
  const all: Attempt[] = [];
  const order = [...runs].sort((a, b) => Date.parse(a.began_at) - Date.parse(b.began_at));
  for (const run of order) {
    const began = Date.parse(run.began_at);
    const started = millis(run.started_at);
    const ended = millis(run.ended_at);
    const last = all.at(-1);
    if (last && (last.ended === null || began < last.ended)) {
      last.started = Math.min(last.started ?? started ?? 0, started ?? last.started ?? 0) || null;
      last.ended = last.ended === null || ended === null ? null : Math.max(last.ended, ended);
      last.endings.push(run.ending);
    } else all.push({ began, started, ended, endings: [run.ending] });
  }
  return all;
}

function kindOf(attempt: Attempt): Stretch["kind"] {
  if (attempt.endings.includes("failed")) return "failed";
  return attempt.endings.some((one) => LOST.includes(one)) ? "lost" : "running";
}

/** When it is expected to end; null: it does not run, or nothing is known. */
export function expectedEnd(job: Job, runs: readonly Run[]): number | null {
  const takes = seconds(job.estimated_duration);
  if (job.state !== "running" || !takes) return null;
  const started = attempts(runs).at(-1)?.started ?? millis(job.started_at);
  return started === null ? null : started + takes * 1000;
}

/** Confidence in a word. */
export function confidence(part: number): string {
  return part >= 0.7 ? "high confidence" : part >= 0.4 ? "medium confidence" : "low confidence";
}

/** Its life up to `now`, and what is expected after it, without gaps. */
export function stretches(job: Job, runs: readonly Run[], now: number): Stretch[] {
  const over = millis(job.completed_at);
  const until = over ?? now;
  const all: Stretch[] = [];
  let at = millis(job.submitted_at) ?? now;
  const add = (kind: Stretch["kind"], to: number, text: string) => {
    if (to > at) all.push({ kind, from: at, to, text });
    at = Math.max(at, to);
  };
  const long = (to: number) => duration((to - at) / 1000);
  for (const one of attempts(runs)) {
    const end = Math.min(until, one.ended ?? until);
    add("waiting", Math.min(one.began, until), `waited ${long(one.began)}`);
    const starts = one.started ?? end;
    add("starting", Math.min(starts, end), "starting");
    if (one.started !== null) {
      const kind = kindOf(one);
      const how = kind === "lost" ? `, ${endingOf({ ending: one.endings.at(-1) ?? "" })}` : "";
      const live = one.ended === null && over === null;
      const took = live ? `running for ${long(end)}` : `ran ${long(end)}`;
      add(kind, end, `${took}${kind === "failed" ? ", failed" : how}`);
    }
  }
  if (over === null && (job.state === "pending" || job.state === "scheduled"))
    add("waiting", now, `waited ${long(now)}`);
  const ends = expectedEnd(job, runs);
  if (ends) add("expected", ends, `about ${long(ends)} more`);
  const starts = job.state === "pending" ? millis(job.estimated_start) : null;
  if (starts) add("expected", starts, `starts ${relative(job.estimated_start, now)}`);
  return all;
}
