// faults.test.ts - what a new user met, and must not meet again
import assert from "node:assert/strict";
import { test } from "node:test";
import { PLAIN, line, plain } from "../src/ansi";
import { type NodeCell, nodes as known, takeAll } from "../src/cluster";
import { future, windowSpans } from "../src/future";
import { type TenantTrack, type Values, beginning, largest } from "../src/history";
import { wasted } from "../src/idle";
import { attempts, confidence, expectedEnd, stretches } from "../src/life";
import { jobTitle } from "../src/parts/common";
import { gpuName, subjectOf } from "../src/parts/decision";
import { faultOf } from "../src/parts/field";
import { runsOf } from "../src/parts/output";
import { changes, textOf } from "../src/parts/resource-form";
import { type Column, nextOrder, sorted } from "../src/parts/table";
import { ordered, problems, racks, summed } from "../src/problems";
import { type Field, type Window, jobFields, tenantFields } from "../src/resources";
import { looksComplete } from "../src/state";
import type { Decision, Gpu, Job, Node, Run, Span } from "../src/types";
import { firstTask, lastPlaces } from "../src/views/job";
import { nodesOf, ranFor, reasonOf, tab } from "../src/views/jobs";
import { formOf, jobOf } from "../src/views/submit";
import { warnings } from "../src/warnings";

const at = (minute: number) => new Date(Date.UTC(2030, 0, 1, 0, minute)).toISOString();
const ms = (minute: number) => Date.parse(at(minute));
const run = (
  task: number,
  began: number,
  ended: number | null,
  ending: string,
  more = {},
): Run => ({
  task,
  attempt: 1,
  node: "vm",
  gpus: 1,
  began_at: at(began),
  started_at: at(began),
  ended_at: ended === null ? null : at(ended),
  ending,
  ...more,
});
const job = (more: Partial<Job>): Job =>
  ({
    id: "job-1",
    name: "train",
    state: "pending",
    allocations: [],
    depends_on: [],
    submitted_at: at(0),
    started_at: null,
    completed_at: null,
    estimated_start: null,
    estimated_duration: null,
    prediction_confidence: 0,
    message: "",
    ...more,
  }) as Job;

test("an element of an array has its index in its name", () => {
  assert.equal(jobTitle({ id: "job-3", name: "ablation", array_index: 0 }), "ablation [0]");
  assert.equal(jobTitle({ id: "job-3", name: "" }), "job-3");
  assert.equal(
    subjectOf({ job_id: "job-3", name: "ablation", array_index: 2 } as Decision),
    "ablation [2]",
  );
});

test("a decision names its job, and a GPU by its node and index", () => {
  const decision = { job_id: "job-3", name: "ablation", type: "start" } as Decision;
  assert.equal(subjectOf(decision), "ablation");
  takeAll([node("borea")], [gpu("borea", 2)]);
  const [uuid] = known.value.flatMap((one) => one.gpus.value.map((cell) => cell.uuid));
  assert.equal(gpuName({ node: "borea", uuid: uuid ?? "" }), "borea GPU 2");
  assert.equal(gpuName({ node: "vm", uuid: "GPU-0123456789abcdef" }), "vm …456789abcdef");
});

test("the page of jobs shows all of them until another choice is made", () => {
  assert.equal(tab.value, "all");
});

test("a timeline has each run, and does not run while the job waits", () => {
  const preempted = [run(0, 1, 3, "preempted"), run(0, 5, 6, "preempted")];
  const all = stretches(job({ started_at: at(1) }), preempted, ms(10));
  assert.deepEqual(
    all.map((one) => [one.kind, (one.to - one.from) / 60000]),
    [
      ["waiting", 1],
      ["lost", 2],
      ["waiting", 2],
      ["lost", 1],
      ["waiting", 4],
    ],
  );
  assert.equal(ranFor(job({ started_at: at(1) }), ms(10)), null);
});

test("a failed run is no success, and a waiting job has no expected end", () => {
  const failed = job({ state: "failed", started_at: at(1), completed_at: at(2) });
  assert.equal(stretches(failed, [run(0, 1, 2, "failed")], ms(9)).at(-1)?.kind, "failed");
  assert.equal(expectedEnd(job({ started_at: at(1), estimated_duration: "60s" }), []), null);
});

test("an expected end counts from the last start", () => {
  const running = job({ state: "running", started_at: at(1), estimated_duration: "10m" });
  const runs = [run(0, 1, 3, "preempted"), run(0, 5, null, "goes_on")];
  assert.equal(expectedEnd(running, runs), ms(15));
  assert.equal(stretches(running, runs, ms(7)).at(-1)?.kind, "expected");
  assert.equal(confidence(0.33), "low confidence");
});

test("tasks that run together are one attempt", () => {
  const all = attempts([
    run(0, 1, 4, "completed"),
    run(1, 2, 3, "failed"),
    run(0, 6, null, "goes_on"),
  ]);
  assert.deepEqual(
    all.map((one) => [one.began, one.ended]),
    [
      [ms(1), ms(4)],
      [ms(6), null],
    ],
  );
});

test("a gang is on all of its nodes", () => {
  const gang = job({
    state: "running",
    node_name: "node2",
    allocations: [
      { task: 0, node: "node2" },
      { task: 1, node: "vm" },
    ] as Job["allocations"],
  });
  assert.deepEqual(nodesOf(gang), ["node2", "vm"]);
  const runs = [
    run(0, 1, 2, "completed", { node: "node2", gpus: 5 }),
    run(1, 1, 2, "completed", { gpus: 5 }),
  ];
  assert.equal(lastPlaces(runs), "node2 (5 GPUs), vm (5 GPUs)");
});

test("the output that is shown first is that of the task that failed first", () => {
  const ended = (task: number, exit_code: number, minute: number) => ({
    task,
    exit_code,
    ended_at: at(minute),
  });
  const allocations = [ended(0, 143, 5), ended(1, 9, 4), ended(2, 0, 3)] as Job["allocations"];
  assert.equal(firstTask({ allocations }), 1);
  assert.equal(firstTask({ allocations: [] }), 0);
});

test("a list says why a job failed or waits", () => {
  assert.equal(
    reasonOf(job({ state: "failed", message: "task 0 ended with 9" })),
    "task 0 ended with 9",
  );
  assert.equal(reasonOf(job({ reason: "no node has 4 free GPUs" })), "no node has 4 free GPUs");
  assert.equal(reasonOf(job({ held: true })), "On hold");
});

test("earlier runs can be chosen, the last first", () => {
  const runs = [run(0, 1, 2, "preempted"), run(0, 3, null, "goes_on", { attempt: 2 })];
  assert.deepEqual(runsOf(runs, 0), [
    [2, "running"],
    [1, "preempted"],
  ]);
});

test("a refusal names the field of the form", () => {
  assert.deepEqual(faultOf("max_runtime must be a duration", jobFields), {
    wrong: "Max runtime must be a duration",
    field: "max_runtime",
  });
  assert.deepEqual(faultOf("too many requests", jobFields), { wrong: "too many requests" });
});

test("no priority is below zero", () => {
  const form = { kind: "command" as const, share: "none" as const };
  const found = jobOf({ ...form, values: { command: "true", priority: "-5" } });
  assert.ok("wrong" in found && found.field === "priority");
});

test("a table sorts up and down, with rows without a value last", () => {
  const columns: Column<{ a: number | null }>[] = [
    { key: "a", title: "A", sort: (row) => row.a, cell: (row) => row.a },
  ];
  const rows = [{ a: 2 }, { a: null }, { a: 10 }];
  const order = (by: string) => sorted(rows, columns, by).map((row) => row.a);
  assert.deepEqual(order("a"), [2, 10, null]);
  assert.deepEqual(order("-a"), [10, 2, null]);
  assert.deepEqual(order(""), [2, null, 10]);
  assert.deepEqual(
    ["", "a", "-a"].map((by) => nextOrder(by, "a")),
    ["a", "-a", ""],
  );
});

test("colors of terminals are shown, and other codes are not", () => {
  assert.deepEqual(line("\x1b[1;31mred\x1b[0m plain", PLAIN).pieces, [
    { text: "red", look: "ansi-red ansi-bold" },
    { text: " plain", look: "" },
  ]);
  assert.equal(plain("\x1b]0;title\x07a\x1b[2Kb\x1b[38;5;46mc"), "abc");
  assert.equal(plain("10%\r50%\r100%\r"), "100%");
  assert.equal(line("next", line("\x1b[32mgreen", PLAIN).look).pieces[0]?.look, "ansi-green");
});

const gpu = (node: string, index: number, more: Partial<Gpu> = {}): Gpu =>
  ({
    uuid: `${node}-${index}`,
    node,
    index,
    model: "NVIDIA H100 80GB",
    total_memory: 81920,
    used_memory: 0,
    present: true,
    healthy: true,
    ...more,
  }) as Gpu;
const node = (id: string, more: Partial<Node> = {}): Node =>
  ({
    id,
    state: "online",
    connected: true,
    zone: "",
    rack: "",
    labels: {},
    total_gpus: 2,
    available_gpus: 2,
    total_cpu_cores: 16,
    total_memory_mb: 65536,
    ...more,
  }) as Node;
function cluster(): readonly NodeCell[] {
  takeAll(
    [
      node("a", { rack: "r1" }),
      node("b", { rack: "r2", state: "lost" }),
      node("c", { rack: "r1" }),
    ],
    [gpu("a", 0), gpu("b", 0), gpu("c", 0, { over: true, used_memory: 82944 }), gpu("c", 1)],
  );
  return known.value;
}

test("problems stand first, the worst before all", () => {
  const all = cluster();
  assert.deepEqual(
    problems(all).map((one) => `${one.node} ${one.text}`),
    ["b is lost", "c GPU 0 is 1 GiB over capacity"],
  );
  assert.deepEqual(
    ordered(all, "problems").map((one) => one.name),
    ["b", "c", "a"],
  );
  assert.deepEqual(
    racks(all).map((one) => [one.name, one.nodes.length]),
    [
      ["rack r1", 2],
      ["rack r2", 1],
    ],
  );
});

test("a job that can never run is warned of before it is sent", () => {
  const all = cluster();
  assert.match(warnings({ gpu_count: 99 }, all)[0] ?? "", /can never run/);
  assert.match(warnings({ gpu_memory_mb: 9999 * 1048576 }, all)[0] ?? "", /can never run/);
  assert.match(warnings({ gpu_count: 1, gpu_model: "RTX9999" }, all)[0] ?? "", /can never run/);
  assert.match(warnings({ gpu_count: 1, node_labels: { gpu: "none" } }, all)[0] ?? "", /No node/);
  assert.deepEqual(warnings({ gpu_count: 1, gpu_model: "H100|A100" }, all), []);
});

test("the timeline has windows, on the GPUs that they cover", () => {
  const window = {
    name: "driver",
    maintenance: true,
    nodes: ["a"],
    gpus: ["g3"],
    next_start: "2026-01-01T10:00:00Z",
    next_end: "2026-01-01T11:00:00Z",
  } as unknown as Window;
  const gpus = [
    { uuid: "g1", node: "a" },
    { uuid: "g2", node: "b" },
    { uuid: "g3", node: "b" },
  ];
  const spans = windowSpans([window, { ...window, next_start: null }], gpus);
  assert.deepEqual(
    spans.map((span) => [span.gpu, span.name, span.to, span.expected]),
    [
      ["g1", "maintenance: driver", window.next_end, true],
      ["g3", "maintenance: driver", window.next_end, true],
    ],
  );
});

test("the timeline has the future: expected ends and promised starts", () => {
  const spans = [{ gpu: "a-0", job_id: "job-1", from: at(0), to: null } as Span];
  const running = job({
    state: "running",
    started_at: at(0),
    estimated_duration: "30m",
    prediction_confidence: 0.5,
  });
  const waiting = job({ id: "job-2", estimated_start: at(30), estimated_runtime_minutes: 5 });
  const promise = { job_id: "job-2", gpus: [{ uuid: "a-0", asked_mb: 1 }] } as unknown as Decision;
  const all = future(spans, [running], [waiting], [promise], ms(10));
  assert.deepEqual(
    all.map((one) => [one.job_id, one.from, one.to, one.expected]),
    [
      ["job-1", at(10), at(30), true],
      ["job-2", at(30), at(35), true],
    ],
  );
});

test("a history is drawn from where it begins, at least an hour of it", () => {
  const none = Array.from({ length: 20 }, () => null);
  assert.equal(beginning([...none, 1, 2]), 10);
  assert.equal(beginning([null, 1, ...none]), 1);
});

test("small tenants are summed, so that curves can be told apart", () => {
  const track = (tenant: string, ...gpus: Values): TenantTrack => ({
    tenant_id: tenant,
    tenant,
    gpus,
    running_jobs: gpus,
    waiting_jobs: gpus,
    cost_per_hour: gpus,
  });
  const all = largest([track("a", 1, 1), track("b", 8, 8), track("c", null, 2)], 1);
  assert.deepEqual(
    all.map((one) => [one.tenant, one.gpus]),
    [
      ["b", [8, 8]],
      ["2 others", [1, 3]],
    ],
  );
});

test("heat alone is told of in one line", () => {
  const hot = (place: number) => ({ weight: 1, node: `n${place % 2}`, gpu: `g${place}`, text: "" });
  const all = [{ weight: 3, node: "a", gpu: null, text: "is lost" }, ...[0, 1, 2, 3].map(hot)];
  const found = summed(all);
  assert.deepEqual([found.listed.length, found.hot, found.on], [1, 4, 2]);
  assert.equal(summed(all.slice(0, 3)).listed.length, 3);
});

test("who holds idle GPUs stands first", () => {
  const live = (job: string) => ({
    phase: "live" as const,
    memory_mb: 81920,
    measured_memory_mb: 0,
    share: 1,
    whole: true,
    job_id: job,
    name: job,
    tenant: "lab",
  });
  const sample = (utilization: number) => ({
    utilization,
    temperature_c: 40,
    measured_memory_mb: 0,
  });
  takeAll(
    [node("a")],
    [
      gpu("a", 10, { holders: [live("job-1")], ...sample(0.9), foreign_memory: 0 }),
      gpu("a", 11, { holders: [live("job-2")], ...sample(0), foreign_memory: 0 }),
    ],
  );
  assert.deepEqual(
    wasted(known.value).map((one) => [one.job, one.idle]),
    [
      ["job-2", 1],
      ["job-1", 0],
    ],
  );
});

test("a form sends what was changed, and null for what was emptied", () => {
  const fields = tenantFields;
  const before = Object.fromEntries(
    Object.entries({ name: "lab", max_gpus: 4, max_memory_mb: 1024 }).map(([name, value]) => [
      name,
      textOf(fields.find((one) => one.name === name) as Field, value),
    ]),
  );
  assert.equal(before.max_memory_mb, "1024M");
  assert.deepEqual(changes(fields, before, { ...before, max_gpus: "", quota_gpus: "2" }), {
    body: { max_gpus: null, quota_gpus: 2 },
  });
});

test("a token of either form is complete, and a part of one is not", () => {
  assert.ok(looksComplete(`gst_${"a".repeat(43)}`));
  assert.ok(looksComplete("aaa.bbb.ccc"));
  assert.ok(!looksComplete("gst_a"));
  assert.ok(!looksComplete("password"));
});

test("a job is submitted again as it was", () => {
  const before = job({
    state: "failed",
    tenant_id: "tenant-1",
    gpu_sharing: "whole",
    gpu_count: 2,
    command: ["sh", "-c", "echo 'a b'"],
    environment: { MODE: "fast" },
    memory_mb: 4096,
    priority: 500,
  });
  const found = jobOf(formOf(before));
  assert.ok("job" in found);
  assert.equal(found.job.gpu_count, 2);
  assert.equal(found.job.memory_mb, 4096);
  assert.deepEqual(found.job.environment, { MODE: "fast" });
  assert.deepEqual(found.job.command, ["sh", "-c", "echo 'a b'"]);
});
