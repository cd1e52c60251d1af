// cluster.ts - nodes and GPUs as they are now: a signal for each, so that only what changed is drawn
import { type Signal, batch, signal } from "@preact/signals";
import { get } from "./api";
import type { Figures, Gpu, Node, Sample } from "./types";

/** The last samples of a GPU, for charts: one each second or so, ten minutes of them. */
const KEPT = 600;

export interface Cell {
  uuid: string;
  books: Signal<Gpu>;
  sample: Signal<Sample | null>;
  times: number[];
  loads: number[];
  heats: number[];
  memories: number[];
}

export interface NodeCell {
  name: string;
  node: Signal<Node>;
  gpus: Signal<Cell[]>;
}

export const nodes = signal<NodeCell[]>([]);
export const figures = signal<Figures | null>(null);
export const loaded = signal(false);
/** What the figures were, since the page was opened. */
export const trend = { times: [] as number[], load: [] as number[], memory: [] as number[] };

const byUuid = new Map<string, Cell>();
const byName = new Map<string, NodeCell>();

export function cellOf(uuid: string): Cell | undefined {
  return byUuid.get(uuid);
}

function sampleOf(gpu: Gpu): Sample | null {
  if (gpu.utilization === undefined) return null;
  return {
    temperature: gpu.temperature_c ?? 0,
    power: gpu.power_watts ?? 0,
    utilization: gpu.utilization,
    memory: gpu.measured_memory_mb ?? 0,
  };
}

function keep(cell: Cell, sample: Sample, now: number): void {
  const before = cell.sample.peek();
  cell.times.push(now / 1000);
  cell.loads.push(sample.utilization * 100);
  cell.heats.push(sample.temperature);
  cell.memories.push(sample.memory);
  if (cell.times.length > KEPT)
    for (const list of [cell.times, cell.loads, cell.heats, cell.memories]) list.shift();
  if (
    !before ||
    before.temperature !== sample.temperature ||
    before.utilization !== sample.utilization ||
    before.memory !== sample.memory ||
    before.power !== sample.power
  )
    cell.sample.value = sample;
}

function takeGpu(gpu: Gpu, now: number): Cell {
  let cell = byUuid.get(gpu.uuid);
  const sample = sampleOf(gpu);
  if (!cell) {
    cell = {
      uuid: gpu.uuid,
      books: signal(gpu),
      sample: signal(null),
      times: [],
      loads: [],
      heats: [],
      memories: [],
    };
    byUuid.set(gpu.uuid, cell);
  } else if (differs(cell.books.peek(), gpu)) cell.books.value = gpu;
  if (sample) keep(cell, sample, now);
  return cell;
}

/** True if the ledger differs; measurements are compared elsewhere. */
function differs(a: Gpu, b: Gpu): boolean {
  return (
    a.used_memory !== b.used_memory ||
    a.free_memory !== b.free_memory ||
    a.foreign_memory !== b.foreign_memory ||
    a.unexplained_memory !== b.unexplained_memory ||
    a.total_memory !== b.total_memory ||
    a.hot !== b.hot ||
    a.over !== b.over ||
    a.healthy !== b.healthy ||
    a.present !== b.present ||
    a.available !== b.available ||
    JSON.stringify(a.holders) !== JSON.stringify(b.holders)
  );
}

/** A message of the topic 'gpus'. */
export function takeGpus(
  message: { gpus: Gpu[]; samples: Record<string, [number, number, number, number]> },
  now = Date.now(),
): void {
  let strange = false;
  batch(() => {
    for (const gpu of message.gpus) {
      strange ||= !byUuid.has(gpu.uuid);
      takeGpu(gpu, now);
    }
    for (const [uuid, [temperature, power, utilization, memory]] of Object.entries(
      message.samples,
    )) {
      const cell = byUuid.get(uuid);
      if (cell) keep(cell, { temperature, power, utilization, memory }, now);
    }
  });
  if (strange) load();
}

export function takeFigures(next: Figures, now = Date.now()): void {
  figures.value = next;
  trend.times.push(now / 1000);
  trend.load.push((next.avg_gpu_utilization ?? 0) * 100);
  trend.memory.push((100 * next.reserved_gpu_memory_mb) / Math.max(1, next.total_gpu_memory_mb));
  if (trend.times.length > KEPT)
    for (const list of [trend.times, trend.load, trend.memory]) list.shift();
}

/** The list of nodes and of their GPUs; what is the same keeps its signals. */
export function takeAll(all: Node[], gpus: Gpu[], now = Date.now()): void {
  batch(() => {
    const of = new Map<string, Cell[]>();
    for (const gpu of gpus) {
      const list = of.get(gpu.node) ?? [];
      list.push(takeGpu(gpu, now));
      of.set(gpu.node, list);
    }
    const next = all.map((node) => {
      const cells = of.get(node.id) ?? [];
      const known = byName.get(node.id);
      if (!known) {
        const fresh = { name: node.id, node: signal(node), gpus: signal(cells) };
        byName.set(node.id, fresh);
        return fresh;
      }
      if (JSON.stringify(known.node.peek()) !== JSON.stringify(node)) known.node.value = node;
      const before = known.gpus.peek();
      if (before.length !== cells.length || before.some((cell, i) => cell !== cells[i]))
        known.gpus.value = cells;
      return known;
    });
    next.sort((a, b) => a.name.localeCompare(b.name, "en", { numeric: true }));
    const before = nodes.peek();
    if (before.length !== next.length || before.some((cell, i) => cell !== next[i])) {
      nodes.value = next;
      const names = new Set(all.map((node) => node.id));
      for (const name of [...byName.keys()]) if (!names.has(name)) byName.delete(name);
    }
    loaded.value = true;
  });
}

async function pages<T>(path: string, key: string): Promise<T[]> {
  const all: T[] = [];
  for (;;) {
    const sign = path.includes("?") ? "&" : "?";
    const page = await get<Record<string, unknown>>(
      `${path}${sign}limit=1000&offset=${all.length}`,
    );
    const items = page[key] as T[];
    all.push(...items);
    if (items.length === 0 || all.length >= (page.total as number)) return all;
  }
}

/** What nodes have and use, without their GPUs. */
export function takeNodes(all: Node[]): void {
  batch(() => {
    for (const node of all) {
      const known = byName.get(node.id);
      if (known && JSON.stringify(known.node.peek()) !== JSON.stringify(node))
        known.node.value = node;
    }
  });
}

export async function loadNodes(): Promise<void> {
  takeNodes(await pages<Node>("/nodes", "nodes"));
}

let loading = false;
let again = false;

export async function load(): Promise<void> {
  if (loading) {
    again = true;
    return;
  }
  loading = true;
  try {
    const [list, gpus, totals] = await Promise.all([
      pages<Node>("/nodes", "nodes"),
      pages<Gpu>("/gpus?holders=true", "gpus"),
      get<Figures>("/cluster/status"),
    ]);
    takeAll(list, gpus);
    takeFigures(totals);
  } finally {
    loading = false;
    if (again) {
      again = false;
      load().catch(() => undefined);
    }
  }
}

/** Forgets everything: somebody else signs in. */
export function clear(): void {
  byUuid.clear();
  byName.clear();
  batch(() => {
    nodes.value = [];
    figures.value = null;
    loaded.value = false;
  });
}
