import assert from "node:assert/strict";
import { test } from "node:test";
import { inShort, sumOf } from "../src/parts/decision";
import type { Window } from "../src/resources";
import { format, parse, withChoice } from "../src/route";
import { address, backoff } from "../src/stream";
import type { Decision, Job, Span, Tenant } from "../src/types";
import { latest } from "../src/views/jobs";
import { jobOf } from "../src/views/submit";
import { tree } from "../src/views/tenants";
import { beginning, lanes, place, ticks } from "../src/views/timeline";
import { placesOf, purposeOf, windowOf } from "../src/views/windows";

const FORM = {
  kind: "command" as const,
  share: "whole" as const,
  values: {
    tenant_id: "tenant-1",
    name: "train",
    command: "python train.py",
    gpu_count: "2",
    gpu_fraction: "0.5",
    tasks: "1",
  },
};
const form = (values: Record<string, string>, share: "whole" | "memory" = "whole") => ({
  ...FORM,
  share,
  values: { ...FORM.values, ...values },
});

test("an address is taken apart", () => {
  assert.deepEqual(
    { ...parse("#/jobs/job-1?why"), query: null },
    { page: "jobs", id: "job-1", query: null },
  );
  assert.ok(parse("#/jobs/job-1?why").query.has("why"));
  assert.equal(parse("").page, "cluster");
  assert.equal(parse("#/nodes/a%2Fb").id, "a/b");
});

test("a choice is part of the address, and the usual one is left out", () => {
  const at = parse("#/jobs?tenant=tenant-2");
  assert.equal(withChoice(at, "show", "over", "waiting"), "#/jobs?tenant=tenant-2&show=over");
  assert.equal(withChoice(at, "tenant", "", ""), "#/jobs");
  assert.equal(format(parse("#/nodes/a%2Fb?x=%26")), "#/nodes/a%2Fb?x=%26");
});

test("what ended or came last stands first", () => {
  const job = (id: string, submitted: string, completed: string | null) =>
    ({ id, submitted_at: submitted, completed_at: completed }) as Job;
  const all = [
    job("a", "2030-01-01T00:00:00Z", "2030-01-01T09:00:00Z"),
    job("b", "2030-01-01T05:00:00Z", "2030-01-01T06:00:00Z"),
    job("c", "2030-01-01T08:00:00Z", null),
  ];
  assert.deepEqual(
    latest(all).map((one) => one.id),
    ["a", "c", "b"],
  );
});

test("a decision says in short where, how much and for whom", () => {
  const on = (...nodes: string[]) => nodes.map((node) => ({ node }));
  const decision = { runner_id: "atlas", gpus: on("atlas", "atlas"), victims: [{}] };
  assert.equal(inShort(decision as unknown as Decision), "atlas · 2 GPUs · 1 job stopped");
  const gang = { runner_id: "atlas", gpus: on("atlas", "atlas", "borea") };
  assert.equal(inShort(gang as unknown as Decision), "atlas 2 + borea 1 GPUs");
  assert.equal(inShort({ for_job_id: "job-2" } as Decision), "for job-2");
});

test("listening goes on behind the last event", () => {
  const local = { protocol: "https:", host: "here" };
  assert.match(address(local, 0), /^wss:\/\/here\/api\/v1\/stream\?topics=[a-z,]+$/);
  assert.match(address(local, 17), /&since=17$/);
});

test("tries are further and further apart, up to a bound", () => {
  assert.equal(backoff(0, 1), 500);
  assert.equal(backoff(1, 1), 1000);
  assert.equal(backoff(0, 0), 250);
  assert.equal(backoff(30, 1), 15000);
});

test("a form becomes a job", () => {
  assert.deepEqual(jobOf(FORM), {
    job: { name: "train", tenant_id: "tenant-1", command: ["python", "train.py"], gpu_count: 2 },
  });
  assert.deepEqual(jobOf(form({ gpu_memory_mb: "20G", tasks: "4" }, "memory")), {
    job: {
      name: "train",
      tenant_id: "tenant-1",
      command: ["python", "train.py"],
      gpu_memory_mb: 20480,
      tasks: 4,
      gang_scheduling: true,
    },
  });
});

test("a form that means no job says why", () => {
  assert.ok("wrong" in jobOf(form({ command: "echo 'a" })));
  assert.ok("wrong" in jobOf(form({ command: " " })));
  assert.ok("wrong" in jobOf(form({ gpu_memory_mb: "much" }, "memory")));
  assert.deepEqual(jobOf(form({ gpu_memory_mb: "40" }, "memory")), {
    wrong: "GPU memory of 40 would be 40 MiB: write 40G or 40M.",
    field: "gpu_memory_mb",
  });
  assert.ok("job" in jobOf(form({ gpu_memory_mb: "40000" }, "memory")));
  assert.deepEqual(jobOf(form({ tasks: "5000" })), {
    wrong: "Tasks must be a whole number from 1 to 4096.",
    field: "tasks",
  });
  assert.ok("wrong" in jobOf(form({ labels: "team" })));
});

test("every kind of field reaches the job", () => {
  assert.deepEqual(
    jobOf(
      form({
        labels: "team=a\nrun=b=c",
        environment: "MODE=fast",
        args: "--epochs '3 4'",
        max_runtime: "1h30m",
        estimated_runtime_minutes: "90",
        deadline: "2030-01-31T12:00:00Z",
        preemptible: "false",
        closeness: "node",
        depends_on: "job-1, job-2:any",
        memory_mb: "4G",
        gpu_memory_mb: "40G,20G",
      }),
    ),
    {
      job: {
        tenant_id: "tenant-1",
        name: "train",
        command: ["python", "train.py"],
        gpu_count: 2,
        gpu_memory_mb: [40960, 20480],
        labels: { team: "a", run: "b=c" },
        environment: { MODE: "fast" },
        args: ["--epochs", "3 4"],
        max_runtime: "1h30m",
        estimated_runtime_minutes: 90,
        deadline: "2030-01-31T12:00:00.000Z",
        preemptible: false,
        closeness: "node",
        depends_on: [
          { job: "job-1", condition: "success" },
          { job: "job-2", condition: "any" },
        ],
        memory_mb: 4096,
      },
    },
  );
});

test("tenants stand below their parents", () => {
  const tenant = (id: string, parent: string | null) => ({ id, parent_id: parent }) as Tenant;
  const all = [tenant("a", null), tenant("b", null), tenant("c", "a"), tenant("d", "unseen")];
  assert.deepEqual(
    tree(all).map(([one, depth]) => [one.id, depth]),
    [
      ["a", 0],
      ["c", 1],
      ["b", 0],
      ["d", 0],
    ],
  );
});

function span(from: number, to: number | null): Span {
  const at = (hour: number) => new Date(hour * 3600000).toISOString();
  return {
    gpu: "a",
    node: "n",
    index: 0,
    memory_mb: 1,
    name: "",
    from: at(from),
    to: to ? at(to) : null,
  };
}

test("a span is where its times are in the window", () => {
  assert.deepEqual(place(span(1, 3), 2 * 3600000, 4 * 3600000), [0, 0.5]);
  assert.deepEqual(place(span(3, null), 2 * 3600000, 4 * 3600000), [0.5, 1]);
  assert.equal(place(span(0.5, 1), 2 * 3600000, 4 * 3600000), null);
});

test("spans at the same time stand beside each other", () => {
  const packed = lanes([span(1, 3), span(2, 4), span(3, 5)]);
  assert.equal(packed.count, 2);
  assert.deepEqual(
    packed.spans.map(([, lane]) => lane),
    [0, 1, 0],
  );
});

test("there are few lines for times", () => {
  for (const hours of [0.25, 1, 3, 6, 24]) {
    const all = ticks(0, hours * 3600000);
    assert.ok(all.length >= 2 && all.length <= 9, `${hours} h has ${all.length}`);
  }
});

test("a young cluster fills the window", () => {
  const hour = 3600000;
  assert.equal(beginning([span(1, 2)], 10 * hour, 3 * hour), 7 * hour);
  const from = beginning([span(9, null)], 10 * hour, 3 * hour);
  assert.ok(from < 9 * hour && from > 8.9 * hour);
});

test("a claim gives nothing yet", () => {
  const line = {
    uuid: "a",
    node: "n",
    capacity_mb: 100,
    overhead_mb: 1,
    foreign_mb: 2,
    used_before_mb: 30,
    releasing_mb: 0,
    claimed_mb: 0,
    asked_mb: 40,
    used_after_mb: 70,
  };
  assert.deepEqual(sumOf(line), { given: true, after: 73 });
  assert.equal(sumOf({ ...line, used_after_mb: 30 }).given, false);
});

test("the form of a window asks for what was chosen, and for nothing else", () => {
  const common = { name: "exam", length: "3h", repeat: "none", start: "", reason: "" };
  assert.deepEqual(
    windowOf({ ...common, on: "gpus", gpu_count: "4", gpu_model: "", purpose: "" }),
    {
      name: "exam",
      length: "3h",
      repeat: "none",
      gpu_count: 4,
    },
  );
  assert.deepEqual(
    windowOf({
      ...common,
      on: "node",
      node: "alpha",
      purpose: "maintenance",
      evict: "true",
      grace: "5m",
    }),
    {
      name: "exam",
      length: "3h",
      repeat: "none",
      maintenance: true,
      nodes: ["alpha"],
      evict: true,
      grace: "5m",
    },
  );
  const start = "2030-01-31T12:00";
  assert.deepEqual(
    windowOf({ ...common, start, on: "gpus", gpu_count: "1", purpose: "tenant-1" }).start,
    new Date(start).toISOString(),
  );
});

test("a window says whom it is for, and what it is on", () => {
  const window = { maintenance: false, tenant_id: null, nodes: ["a"], gpus: ["x", "y"] } as unknown;
  assert.equal(purposeOf(window as Window), "jobs that name it");
  assert.equal(purposeOf({ ...(window as Window), maintenance: true }), "maintenance");
  assert.equal(placesOf(window as Window), "a, 2 GPUs");
});
