import assert from "node:assert/strict";
import { test } from "node:test";
import { effect } from "@preact/signals";
import { cellOf, clear, nodes, takeAll, takeGpus } from "../src/cluster";
import { describe, heatStep, segments } from "../src/parts/gpu";
import type { Gpu, Node } from "../src/types";

function gpu(uuid: string, more: Partial<Gpu> = {}): Gpu {
  return {
    uuid,
    index: 0,
    node: "n1",
    model: "H100",
    total_memory: 80000,
    free_memory: 80000,
    used_memory: 0,
    reserved_memory: 0,
    releasing_memory: 0,
    claimed_memory: 0,
    foreign_memory: 0,
    overhead_memory: 0,
    share: 0,
    available: true,
    whole: false,
    healthy: true,
    hot: false,
    over: false,
    mig_mode: false,
    present: true,
    holders: [],
    ...more,
  };
}

function node(id: string): Node {
  return {
    id,
    state: "online",
    connected: true,
    draining: false,
    reported: true,
    zone: "",
    rack: "",
    labels: {},
    total_gpus: 1,
    available_gpus: 1,
    total_cpu_cores: 1,
    used_cpu_cores: 0,
    total_memory_mb: 1,
    used_memory_mb: 0,
    reservations: 0,
  };
}

const held = {
  phase: "live" as const,
  memory_mb: 40000,
  measured_memory_mb: 10000,
  share: 0.5,
  whole: false,
  job_id: "job-1",
  name: "train",
  tenant: "lab",
  tenant_id: "tenant-1",
};

test("only the GPU that changed is told of", () => {
  clear();
  takeAll([node("n1")], [gpu("a"), gpu("b", { index: 1 })]);
  const drawn: string[] = [];
  const stop = ["a", "b"].map((uuid) =>
    effect(() => {
      drawn.push(`${uuid} ${cellOf(uuid)?.books.value.used_memory}`);
    }),
  );
  drawn.length = 0;
  takeGpus({ gpus: [gpu("b", { index: 1, used_memory: 40000, holders: [held] })], samples: {} });
  assert.deepEqual(drawn, ["b 40000"]);
  for (const one of stop) one();
});

test("the same list again changes nothing", () => {
  clear();
  takeAll([node("n1")], [gpu("a")]);
  const before = nodes.value;
  takeAll([node("n1")], [gpu("a")]);
  assert.equal(nodes.value, before);
});

test("nodes are sorted as people count", () => {
  clear();
  takeAll([node("n10"), node("n9")], []);
  assert.deepEqual(
    nodes.value.map((one) => one.name),
    ["n9", "n10"],
  );
});

test("a sample is kept for charts", () => {
  clear();
  takeAll([node("n1")], [gpu("a")]);
  takeGpus({ gpus: [], samples: { a: [61, 300, 0.5, 2000] } });
  assert.deepEqual(cellOf("a")?.sample.value, {
    temperature: 61,
    power: 300,
    utilization: 0.5,
    memory: 2000,
  });
  assert.deepEqual(cellOf("a")?.loads, [50]);
});

test("segments count the larger of reserved and measured, and neither claims nor what is suspended", () => {
  const parts = segments(
    gpu("a", {
      overhead_memory: 800,
      foreign_memory: 8000,
      holders: [
        { ...held, phase: "claim" },
        { ...held, phase: "suspended" },
        { ...held, phase: "waking" },
        { ...held, phase: "resuming", memory_mb: 4000, measured_memory_mb: 0 },
        { ...held, phase: "suspending", memory_mb: 4000, measured_memory_mb: 0 },
        { ...held, phase: "releasing", memory_mb: 8000, measured_memory_mb: 16000 },
        held,
      ],
    }),
  );
  assert.deepEqual(
    parts.map((one) => [one.kind, one.size, one.measured]),
    [
      ["overhead", 0.01, 1],
      ["foreign", 0.1, 1],
      ["live", 0.5, 0.25],
      ["held", 0.05, 0],
      ["releasing", 0.05, 0],
      ["releasing", 0.2, 1],
    ],
  );
});

test("a bar says in words what it shows", () => {
  const text = describe(gpu("a", { used_memory: 40960, holders: [held], hot: true }));
  assert.equal(text, "GPU 0 of n1, hot, 40 GiB of 78.1 GiB used, train (lab) 39.1 GiB live");
});

test("heat goes in steps", () => {
  assert.deepEqual([20, 50, 65, 75, 90].map(heatStep), [0, 1, 2, 3, 4]);
});
