// timeline.tsx - which job had which GPU when, over the last hours
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { nodes } from "../cluster";
import { clock, duration, memory, plural } from "../format";
import { future, windowSpans } from "../future";
import { Choice, Head, TenantTag, Wrong } from "../parts/common";
import { type Column, DataTable } from "../parts/table";
import { useResource } from "../resource";
import type { Window } from "../resources";
import { choice, go, lightChoice } from "../route";
import { now, tenantName, tenants } from "../state";
import { theme } from "../theme";
import type { Decision, Job, Span } from "../types";

const HOURS = ["0.25", "1", "3", "6", "24"] as const;
const hours = choice<(typeof HOURS)[number]>("timeline", "hours", "1", { among: HOURS });
const form = choice<"lanes" | "table">("timeline", "as", "lanes", { among: ["lanes", "table"] });

const shift = choice<string>("timeline", "back", "0", { steps: false });
const sort = choice<string>("timeline", "sort", "-from", { steps: false });
const text = lightChoice<string>("timeline", "name", "");

interface Row {
  node: string;
  index: number;
  uuid: string;
}

/** Where a span is on its row, 0 to 1; null: not in the window. */
export function place(span: Span, from: number, to: number): [number, number] | null {
  const begin = Date.parse(span.from);
  const end = span.to ? Date.parse(span.to) : to;
  if (end <= from || begin >= to) return null;
  const at = (time: number) => Math.min(1, Math.max(0, (time - from) / (to - from)));
  return [at(begin), at(end)];
}

/** Spans that overlap get lanes beside each other: each with its lane, and how many there are. */
export function lanes(spans: Span[]): { spans: [Span, number][]; count: number } {
  const ends: number[] = [];
  const sorted = [...spans].sort((a, b) => Date.parse(a.from) - Date.parse(b.from));
  const placed = sorted.map((span): [Span, number] => {
    const begin = Date.parse(span.from);
    let lane = ends.findIndex((end) => end <= begin);
    if (lane < 0) lane = ends.length;
    ends[lane] = span.to ? Date.parse(span.to) : Number.POSITIVE_INFINITY;
    return [span, lane];
  });
  return { spans: placed, count: Math.max(1, ends.length) };
}

/** Times at which a line helps: every 5 minutes of an hour, and so on. */
export function ticks(from: number, to: number): number[] {
  const steps = [5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14400].map((one) => one * 1000);
  const step = steps.find((one) => (to - from) / one <= 8) ?? 14400000;
  const all: number[] = [];
  for (let at = Math.ceil(from / step) * step; at < to; at += step) all.push(at);
  return all;
}

function colours(): string[] {
  const style = getComputedStyle(document.documentElement);
  return Array.from({ length: 10 }, (_, i) => style.getPropertyValue(`--tenant-${i}`).trim());
}

const LABEL = 120;
const HEAD = 22;

interface Scene {
  now: number;
  rows: Row[];
  spans: Map<string, ReturnType<typeof lanes>>;
  from: number;
  to: number;
  height: number;
  label: number;
}

function draw(canvas: HTMLCanvasElement, scene: Scene, top: number): void {
  const style = getComputedStyle(document.documentElement);
  const ink = style.getPropertyValue("--ink").trim();
  const muted = style.getPropertyValue("--muted").trim();
  const line = style.getPropertyValue("--line").trim();
  const other = style.getPropertyValue("--other").trim();
  const palette = colours();
  const order = new Map(tenants.peek().map((tenant, at) => [tenant.id, at]));
  const scale = devicePixelRatio || 1;
  const { clientWidth: width, clientHeight: height } = canvas;
  canvas.width = width * scale;
  canvas.height = height * scale;
  const paint = canvas.getContext("2d") as CanvasRenderingContext2D;
  paint.scale(scale, scale);
  paint.font = "11px system-ui, sans-serif";
  paint.textBaseline = "middle";
  const across = width - scene.label;
  for (const at of ticks(scene.from, scene.to)) {
    const x = scene.label + ((at - scene.from) / (scene.to - scene.from)) * across;
    paint.fillStyle = line;
    paint.fillRect(x, HEAD, 1, height);
    paint.fillStyle = muted;
    const text = scene.to - scene.from < 300000 ? clock(at).slice(-8) : clock(at).slice(-8, -3);
    // One that would be cut by the edge is left out: its line is enough.
    if (x + 3 + paint.measureText(text).width <= width) paint.fillText(text, x + 3, HEAD / 2);
  }
  const first = Math.floor(top / scene.height);
  const last = Math.min(scene.rows.length, Math.ceil((top + height) / scene.height));
  paint.save();
  paint.beginPath();
  paint.rect(0, HEAD, width, height - HEAD);
  paint.clip();
  for (let i = first; i < last; i++) {
    const row = scene.rows[i] as Row;
    const y = HEAD + i * scene.height - top;
    const begins = i === 0 || scene.rows[i - 1]?.node !== row.node;
    if (begins) {
      paint.fillStyle = line;
      paint.fillRect(0, y, width, 1);
    }
    if (begins || i === first) {
      paint.fillStyle = ink;
      paint.fillText(row.node.slice(0, 14), 4, y + 8);
    }
    if (scene.height >= 14) {
      paint.fillStyle = muted;
      paint.fillText(String(row.index), scene.label - 16, y + scene.height / 2);
    }
    const packed = scene.spans.get(row.uuid);
    const deep = (scene.height - 3) / (packed?.count ?? 1);
    for (const [span, lane] of packed?.spans ?? []) {
      const at = place(span, scene.from, scene.to);
      if (!at) continue;
      const x = scene.label + at[0] * across;
      const w = Math.max(1.5, (at[1] - at[0]) * across);
      const tenant = span.tenant_id ? order.get(span.tenant_id) : undefined;
      const topmost = y + 1.5 + lane * deep;
      const colour = tenant === undefined ? other : (palette[tenant % 10] as string);
      const [wide, high] = [Math.max(1, w - 1), Math.max(1, deep - (deep > 4 ? 1 : 0))];
      paint.fillStyle = colour;
      paint.globalAlpha = span.expected ? 0.22 : 1;
      paint.fillRect(x, topmost, wide, high);
      paint.globalAlpha = 1;
      if (span.expected) {
        paint.strokeStyle = colour;
        paint.setLineDash([3, 3]);
        paint.strokeRect(x + 0.5, topmost + 0.5, Math.max(0, wide - 1), Math.max(0, high - 1));
        paint.setLineDash([]);
      }
      if (w > 46 && deep >= 11) {
        paint.fillStyle = span.expected ? ink : "#10151d";
        paint.save();
        paint.beginPath();
        paint.rect(x, y, w - 4, scene.height);
        paint.clip();
        paint.fillText(span.name || span.job_id || "", x + 4, topmost + deep / 2);
        paint.restore();
      }
    }
  }
  if (scene.now > scene.from && scene.now < scene.to) {
    const x = scene.label + ((scene.now - scene.from) / (scene.to - scene.from)) * across;
    paint.fillStyle = style.getPropertyValue("--bad").trim();
    paint.fillRect(x - 0.75, HEAD, 1.5, height);
  }
  paint.restore();
}

/** Where the window begins: where it is told to, or a little before there was anything. */
export function beginning(spans: Span[], to: number, length: number): number {
  const first = Math.min(to - 60000, ...spans.map((span) => Date.parse(span.from)));
  return Math.max(to - length, first - (to - first) * 0.03);
}

interface Shown {
  spans: Span[];
  error: string | null;
  from: number;
  to: number;
}

function useSpans(back: string, shift = 0): Shown {
  const [minute, setMinute] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setMinute(Date.now()), 60000);
    return () => clearInterval(timer);
  }, []);
  const length = Number(back) * 3600000;
  const begin = new Date(
    Math.floor((minute - length - shift * 3600000) / 60000) * 60000,
  ).toISOString();
  const list = useResource<{ spans: Span[] }>(`/gpus/history?from=${begin}`, ["jobs", "slots"]);
  const to = now.value - shift * 3600000;
  const spans = list.data.value?.spans ?? [];
  return { spans, error: list.error.value, from: beginning(spans, to, length), to };
}

/** The part of the window that is kept for the future, where anything is known about it. */
const AHEAD = 0.4;

/** From here on the list of running jobs is long: it is asked for from time to time alone. */
const NODES_FEW = 16;

/** The spans with what is expected, and a window that shows some of it. */
function useFuture(shown: Shown, wanted: boolean, length: number): Shown {
  const many = nodes.value.length > NODES_FEW;
  const running = useResource<{ jobs: Job[] }>(
    `/jobs?state=running&limit=${many ? 1000 : 200}`,
    many ? [] : ["jobs"],
  );
  const queue = useResource<Job[]>("/scheduler/queue?limit=50", ["jobs", "nodes"]);
  const promises = useResource<Decision[]>("/scheduler/decisions?type=promise&limit=100", ["jobs"]);
  const windows = useResource<{ windows: Window[] }>("/windows", ["nodes"]).data.value?.windows;
  const jobs = running.data.value?.jobs;
  const waiting = queue.data.value;
  const told = promises.data.value;
  const tick = Math.floor(now.value / 5000);
  return useMemo(() => {
    if (!wanted) return shown;
    // A window that opens soon is shown even where the past is short.
    const soon = (windows ?? []).filter(
      (one) => Date.parse(one.next_start ?? "") < shown.to + length * AHEAD,
    );
    const past = soon.length ? Math.max(length, shown.to - shown.from) : shown.to - shown.from;
    const gpus = nodes
      .peek()
      .flatMap((node) =>
        node.gpus
          .peek()
          .map((gpu) => ({ uuid: gpu.uuid, node: node.name, index: gpu.books.peek().index })),
      );
    const indexes = new Map(gpus.map((gpu) => [gpu.uuid, gpu.index]));
    const spans = [
      ...future(shown.spans, jobs ?? [], waiting ?? [], told ?? [], now.peek()),
      ...windowSpans(soon, gpus),
    ].map((one) => ({ ...one, index: indexes.get(one.gpu) ?? one.index }));
    const last = Math.max(shown.to, ...spans.map((one) => Date.parse(one.to ?? "")));
    const most = shown.to + past * AHEAD;
    return {
      ...shown,
      spans: [...shown.spans.map((one) => ({ ...one, to: one.to ?? iso(now.peek()) })), ...spans],
      to: Math.min(last + 1000, most),
    };
  }, [shown.spans, shown.from, tick, jobs, waiting, told, windows, wanted, length]);
}

function iso(time: number): string {
  return new Date(time).toISOString();
}

function Lanes(props: { spans: Span[]; from: number; to: number; most?: number }) {
  const { spans, from, to } = props;
  const canvas = useRef<HTMLCanvasElement>(null);
  const scroller = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [width, setWidth] = useState(0);
  const [hint, setHint] = useState<{ x: number; y: number; span: Span } | null>(null);
  const rows: Row[] = nodes.value.flatMap((node) =>
    node.gpus.value.map((gpu) => ({
      node: node.name,
      index: gpu.books.value.index,
      uuid: gpu.uuid,
    })),
  );
  const packed = useMemo(() => {
    const byGpu = new Map<string, Span[]>();
    for (const span of spans) {
      const list = byGpu.get(span.gpu);
      if (list) list.push(span);
      else byGpu.set(span.gpu, [span]);
    }
    return new Map([...byGpu].map(([uuid, list]) => [uuid, lanes(list)] as const));
  }, [spans]);
  const height = rows.length <= 64 ? 20 : rows.length <= 200 ? 16 : 10;
  const label = width < 500 ? 84 : LABEL;
  const scene: Scene = { rows, spans: packed, from, to, height, label, now: now.value };
  const look = theme.value;
  const owners = tenants.value;
  useEffect(() => {
    if (canvas.current) draw(canvas.current, scene, top);
  }, [top, width, spans, rows.length, Math.floor(to / 5000), from, look, owners]);
  useEffect(() => {
    const watch = new ResizeObserver(() => setWidth(scroller.current?.clientWidth ?? 0));
    if (scroller.current) watch.observe(scroller.current);
    return () => watch.disconnect();
  }, []);
  const find = (event: MouseEvent): Span | null => {
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const y = event.clientY - box.top - HEAD + top;
    const x = (event.clientX - box.left - scene.label) / (box.width - scene.label);
    const row = rows[Math.floor(y / height)];
    if (!row || y < 0 || x < 0) return null;
    const list = packed.get(row.uuid);
    const lane = Math.floor(((y % height) / height) * (list?.count ?? 1));
    const hit = list?.spans.find(([span, own]) => {
      const at = place(span, from, to);
      return at && own === lane && x >= at[0] && x <= at[1] + 0.002;
    });
    return hit ? hit[0] : null;
  };
  const most = props.most ?? Math.max(240, innerHeight - 220);
  const shown = Math.min(rows.length * height + HEAD, most);
  const below = Math.max(0, Math.ceil((rows.length * height + HEAD - shown - top) / height));
  return (
    <>
      <div
        class="lanes"
        ref={scroller}
        tabIndex={0}
        role="region"
        aria-label="Timeline; 'Table' shows it as a table"
        style={`height:${shown + 2}px`}
        onScroll={(event) => setTop(event.currentTarget.scrollTop)}
      >
        <div class="lanes-all" style={`height:${rows.length * height + HEAD}px`}>
          <canvas
            ref={canvas}
            style={`height:${shown}px`}
            onMouseMove={(event) => {
              const span = find(event);
              setHint(span ? { x: event.offsetX, y: event.offsetY, span } : null);
            }}
            onMouseLeave={() => setHint(null)}
            onClick={(event) => {
              const span = find(event);
              if (span?.job_id) go(`#/jobs/${span.job_id}`);
            }}
          />
          {hint && (
            <div
              class="hint"
              style={`left:${Math.min(hint.x + 12, width - 220)}px;top:${top + hint.y + 14}px`}
            >
              <b>{hint.span.name || hint.span.job_id || hint.span.slot_id || "another tenant"}</b>
              <br />
              <TenantTag id={hint.span.tenant_id} /> {memory(hint.span.memory_mb)}
              <br />
              {hint.span.expected ? "expected " : ""}
              {clock(hint.span.from)} – {hint.span.to ? clock(hint.span.to) : "now"}
            </div>
          )}
        </div>
      </div>
      {below > 0 && (
        <p class="muted small">{plural(below, "more GPU")} below: scroll to see them.</p>
      )}
    </>
  );
}

const COLUMNS: Column<Span>[] = [
  {
    key: "gpu",
    title: "GPU",
    main: true,
    sort: (span) => `${span.node} ${span.index}`,
    cell: (span) => `${span.node} ${span.index}`,
  },
  {
    key: "who",
    title: "Job or model",
    sort: (span) => span.name || span.job_id,
    cell: (span) =>
      span.job_id ? (
        <a href={`#/jobs/${span.job_id}`}>{span.name || span.job_id}</a>
      ) : (
        span.name || "another tenant"
      ),
  },
  {
    key: "tenant",
    title: "Tenant",
    sort: (span) => tenantName(span.tenant_id ?? null),
    cell: (span) => <TenantTag id={span.tenant_id} />,
  },
  {
    key: "memory",
    title: "Memory",
    number: true,
    sort: (span) => span.memory_mb,
    cell: (span) => memory(span.memory_mb),
  },
  {
    key: "from",
    title: "From",
    sort: (span) => Date.parse(span.from),
    cell: (span) => clock(span.from),
  },
  {
    key: "to",
    title: "To",
    sort: (span) => (span.to ? Date.parse(span.to) : now.peek()),
    cell: (span) => `${span.to ? clock(span.to) : "now"}${span.expected ? " (expected)" : ""}`,
  },
  {
    key: "for",
    title: "For",
    number: true,
    sort: (span) => lasts(span),
    cell: (span) => duration(lasts(span)),
  },
];

/** How long it had the GPU, in seconds. */
function lasts(span: Span): number {
  return ((span.to ? Date.parse(span.to) : now.value) - Date.parse(span.from)) / 1000;
}

function Table({ spans }: { spans: Span[] }) {
  const wanted = text.value.toLowerCase();
  const rows = spans.filter((span) =>
    `${span.node} ${span.name} ${span.job_id ?? ""} ${tenantName(span.tenant_id ?? null)}`
      .toLowerCase()
      .includes(wanted),
  );
  return (
    <>
      <div class="tools">
        <input
          type="search"
          class="search"
          aria-label="Node, job or tenant"
          placeholder="Node, job or tenant"
          value={text.value}
          onInput={(event) => {
            text.value = event.currentTarget.value;
          }}
        />
      </div>
      {rows.length === 0 ? (
        <p class="empty">{wanted ? "Nothing matches." : "Nothing has run yet."}</p>
      ) : (
        <DataTable
          label="Who had which GPU"
          columns={COLUMNS}
          rows={rows}
          id={(span) => `${span.gpu}${span.job_id ?? span.slot_id ?? span.name}${span.from}`}
          by={sort}
        />
      )}
    </>
  );
}

/** The last hour, for a page with room to spare. */
export function LastHour({ most }: { most: number }) {
  const { spans, from, to } = useSpans("1");
  return <Lanes spans={spans} from={from} to={to} most={most} />;
}

export function TimelineView() {
  const back = Number(shift.value);
  const shown = useSpans(hours.value, back);
  const { spans, error, from, to } = useFuture(shown, back === 0, Number(hours.value) * 3600000);
  const short = shown.to - from < Number(hours.value) * 3600000 * 0.9;
  const move = (by: number) => {
    const hoursBack = Math.min(24, Math.max(0, back + by * Number(hours.value)));
    shift.value = String(hoursBack);
  };
  return (
    <>
      <Head title="Timeline">
        <a class="button" href="#/windows">
          Windows
        </a>
        <button
          type="button"
          aria-pressed={form.value === "table"}
          onClick={() => {
            form.value = form.value === "table" ? "lanes" : "table";
          }}
        >
          Table
        </button>
      </Head>
      <div class="tools">
        <Choice
          label="How far back"
          value={hours.value}
          options={[
            ["0.25", "15 min"],
            ["1", "1 h"],
            ["3", "3 h"],
            ["6", "6 h"],
            ["24", "24 h"],
          ]}
          change={(value) => {
            hours.value = value;
          }}
        />
        <span class="row">
          <button type="button" onClick={() => move(0.5)} disabled={back >= 24}>
            ‹ Earlier
          </button>
          <button type="button" onClick={() => move(-0.5)} disabled={back === 0}>
            Later ›
          </button>
          {back > 0 && (
            <button
              type="button"
              onClick={() => {
                shift.value = "0";
              }}
            >
              Now
            </button>
          )}
        </span>
        <span class="muted">
          {clock(from).slice(0, -3)} – {clock(to).slice(0, -3)}
          {short && back === 0 && shown.spans.length > 0 ? ": since the first job" : ""}
        </span>
        <span class="legend-tenants">
          {tenants.value.slice(0, 10).map((tenant) => (
            <TenantTag id={tenant.id} key={tenant.id} />
          ))}
        </span>
      </div>
      <Wrong text={error} />
      {form.value === "table" ? (
        <Table spans={spans} />
      ) : (
        <Lanes spans={spans} from={from} to={to} />
      )}
    </>
  );
}
