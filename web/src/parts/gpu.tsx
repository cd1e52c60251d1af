// gpu.tsx - a GPU as a bar: its memory by owner, its load and its temperature
import { useSignalEffect } from "@preact/signals";
import { useRef } from "preact/hooks";
import type { Cell } from "../cluster";
import { colourOf } from "../colour";
import { memory } from "../format";
import type { Gpu, Holder, Phase, Sample } from "../types";

/** How memory of an owner is drawn. */
type Kind = "live" | "held" | "releasing";

export interface Segment {
  kind: "overhead" | "foreign" | Kind;
  /** Of the whole, 0 to 1. */
  size: number;
  /** Of the segment, 0 to 1: what is measured of what is reserved. */
  measured: number;
  holder: Holder | null;
}

/** What each phase is drawn as. Claims are drawn beside the others, and what is suspended has no
 * memory there. */
const DRAWN: Record<Phase, Kind | null> = {
  live: "live",
  held: "held",
  resuming: "held",
  releasing: "releasing",
  suspending: "releasing",
  claim: null,
  waking: null,
  suspended: null,
};

const ORDER = { live: 0, held: 1, releasing: 2 };

/** Those that have memory on the GPU. */
export function present(holders: readonly Holder[] | undefined): Holder[] {
  return (holders ?? []).filter((one) => DRAWN[one.phase] !== null);
}

/** What counts against the capacity, from the left; claims are not among it. */
export function segments(gpu: Gpu): Segment[] {
  const total = Math.max(1, gpu.total_memory);
  const all: Segment[] = [];
  if (gpu.overhead_memory > 0)
    all.push({ kind: "overhead", size: gpu.overhead_memory / total, measured: 1, holder: null });
  if (gpu.foreign_memory > 0)
    all.push({ kind: "foreign", size: gpu.foreign_memory / total, measured: 1, holder: null });
  const holders = present(gpu.holders).map((holder) => ({
    holder,
    kind: DRAWN[holder.phase] as Kind,
  }));
  holders.sort((a, b) => ORDER[a.kind] - ORDER[b.kind]);
  for (const { holder, kind } of holders) {
    const counted = Math.max(holder.memory_mb, holder.measured_memory_mb);
    all.push({
      kind,
      size: counted / total,
      measured: counted > 0 ? holder.measured_memory_mb / counted : 0,
      holder,
    });
  }
  return all;
}

export function holderName(holder: Holder): string {
  const what = holder.name || holder.job_id || holder.slot_id;
  return what ? `${what} (${holder.tenant ?? "?"})` : (holder.tenant ?? "another tenant");
}

/** Whether one owner has all that is not foreign there: then the samples are about it. */
export function aloneOn(gpu: Gpu): boolean {
  return present(gpu.holders).length === 1;
}

/** What was measured there, less what is nobody's: MiB. */
export function ownedOf(gpu: Gpu, sample: Sample): number {
  return sample.memory - gpu.foreign_memory - gpu.overhead_memory;
}

/** How much of what it reserved the only owner uses; null: there are others, or none. */
function aloneUse(gpu: Gpu, sample: Sample): string | null {
  if (!aloneOn(gpu)) return null;
  const part =
    (100 * ownedOf(gpu, sample)) / Math.max(1, gpu.reserved_memory + gpu.releasing_memory);
  return `${Math.min(100, Math.max(0, Math.round(part / 2.5) * 2.5))}%`;
}

/** The style of a bar on a page that is rendered as a whole. */
export function aloneStyle(cell: Cell): string {
  const sample = cell.sample.value;
  const used = sample ? aloneUse(cell.books.value, sample) : null;
  return used ? `--alone:${used}` : "";
}

/** The bar in words. */
export function describe(gpu: Gpu): string {
  const parts = [`GPU ${gpu.index} of ${gpu.node}`];
  if (!gpu.present) parts.push("is gone");
  if (!gpu.healthy) parts.push("not healthy");
  if (gpu.hot) parts.push("hot");
  if (gpu.over) parts.push("over its capacity");
  parts.push(`${memory(gpu.used_memory)} of ${memory(gpu.total_memory)} used`);
  for (const holder of gpu.holders ?? [])
    parts.push(`${holderName(holder)} ${memory(holder.memory_mb)} ${holder.phase}`);
  if (gpu.foreign_memory > 0) parts.push(`${memory(gpu.foreign_memory)} external`);
  if (gpu.unexplained_memory > 0)
    parts.push(`${memory(gpu.unexplained_memory)} of that no process explains`);
  return parts.join(", ");
}

/** 0 cool to 4 too hot. */
export function heatStep(celsius: number): number {
  return celsius >= 85 ? 4 : celsius >= 75 ? 3 : celsius >= 65 ? 2 : celsius >= 50 ? 1 : 0;
}

export function Segments({ gpu }: { gpu: Gpu }) {
  const total = Math.max(1, gpu.total_memory);
  const claimed = Math.min(gpu.claimed_memory / total, 1);
  const alone = aloneOn(gpu);
  return (
    <>
      {segments(gpu).map((one, place) => (
        <span
          key={place}
          class={`seg ${one.kind}${alone && one.holder ? " alone" : ""}`}
          style={`--size:${(one.size * 100).toFixed(2)}%;--measured:${(one.measured * 100).toFixed(0)}%${
            one.holder ? `;--c:${colourOf(one.holder.tenant_id)}` : ""
          }`}
        >
          {one.holder && (
            <span class="seg-name" data-text={one.holder.name ?? one.holder.tenant ?? ""} />
          )}
        </span>
      ))}
      {claimed > 0 && <span class="claim" style={`--size:${(claimed * 100).toFixed(2)}%`} />}
    </>
  );
}

/** Of 1, in steps that can be seen: fewer styles change. */
function steps(part: number): string {
  return String(Math.round(Math.min(1, Math.max(0, part)) * 40) / 40);
}

/** Sets a variable of one element, which nothing below it reads. */
function put(element: HTMLElement | null, name: string, value: string): void {
  if (element && element.style.getPropertyValue(name) !== value)
    element.style.setProperty(name, value);
}

/** One GPU of the picture. Samples go straight to the element, without rendering. */
export function GpuBar({ cell, dim = false }: { cell: Cell; dim?: boolean }) {
  const bar = useRef<HTMLSpanElement>(null);
  const meter = useRef<HTMLSpanElement>(null);
  const heat = useRef<HTMLSpanElement>(null);
  const gpu = cell.books.value;
  useSignalEffect(() => {
    const sample = cell.sample.value;
    const books = cell.books.value;
    if (!meter.current || !heat.current || !sample) return;
    put(meter.current, "--load", steps(sample.utilization));
    const used = aloneUse(books, sample);
    if (used) put(bar.current?.querySelector<HTMLElement>(".alone") ?? null, "--alone", used);
    const step = String(heatStep(sample.temperature));
    if (meter.current.dataset.heat !== step) {
      meter.current.dataset.heat = step;
      heat.current.dataset.heat = step;
    }
    const text = `${sample.temperature}°`;
    if (heat.current.dataset.text !== text) heat.current.dataset.text = text;
  });
  const mark = !gpu.present || !gpu.healthy ? "✕" : gpu.over ? "!" : gpu.hot ? "▲" : "";
  return (
    <button
      type="button"
      class={`gpu${dim ? " dim" : ""}${gpu.over ? " over" : ""}${gpu.healthy && gpu.present ? "" : " gone"}`}
      data-gpu={cell.uuid}
      tabIndex={-1}
      aria-label={describe(gpu)}
    >
      <span class="gpu-index" data-text={gpu.index} />
      <span class="bar" ref={bar}>
        <Segments gpu={gpu} />
        <span class="meter" ref={meter} />
        {mark && <span class={`gpu-mark${mark === "▲" ? " hot" : ""}`} data-text={mark} />}
      </span>
      <span class="gpu-heat" ref={heat} />
    </button>
  );
}
