// cluster.tsx - the cluster as a picture, with what waits and what happened beside it
import { effect, useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { type Cell, type NodeCell, cellOf, figures, loaded, nodes, trend } from "../cluster";
import { about, clock, duration, memory, percent, plural, words } from "../format";
import { Chart } from "../parts/chart";
import { Ago, Choice, TenantTag, asks, jobTitle } from "../parts/common";
import { GpuBar } from "../parts/gpu";
import { useGrowing } from "../parts/growing";
import { ordered, problems, racks, summed } from "../problems";
import { useResource } from "../resource";
import { lightChoice } from "../route";
import { events, now, tenantName, tenants } from "../state";
import type { Event, Job } from "../types";
import { Inspector } from "./inspector";
import { LastHour } from "./timeline";

type Show = "memory" | "load" | "heat";
type Size = "auto" | "detail" | "dense";

const SHOWS = ["memory", "load", "heat"] as const;
const SIZES = ["auto", "detail", "dense"] as const;
const show = lightChoice<Show>("cluster", "show", "memory", SHOWS);
const size = lightChoice<Size>("cluster", "size", "auto", SIZES);
const ORDERS = ["auto", "name", "problems", "free", "hot", "idle"] as const;
const order = lightChoice<(typeof ORDERS)[number]>("cluster", "order", "auto", ORDERS);
const group = lightChoice<"none" | "rack">("cluster", "group", "none", ["none", "rack"]);
const filter = lightChoice<string>("cluster", "filter", "");
/** The UUID of the GPU that is looked at, or nothing. */
export const chosen = lightChoice<string>("cluster", "gpu", "");

/** Only the bar that was chosen and the one that is are touched. */
effect(() => {
  const uuid = chosen.value;
  for (const old of document.querySelectorAll(".gpu.chosen")) old.classList.remove("chosen");
  if (uuid) document.querySelector(`[data-gpu="${CSS.escape(uuid)}"]`)?.classList.add("chosen");
});

/** From this number of nodes on, the bars stand upright, so that all of them fit on the page. */
const DENSE_FROM = 17;
/** With so few there is room below them. */
const FEW = 9;

function Stat(props: { name: string; value: string; more?: string; part?: number | null }) {
  return (
    <div class="stat">
      <dt>{props.name}</dt>
      <dd>
        <b>{props.value}</b>
        {props.more && <span class="stat-more">{props.more}</span>}
        {props.part !== undefined && props.part !== null && (
          <span class="stat-bar" style={`--size:${(props.part * 100).toFixed(1)}%`} />
        )}
      </dd>
    </div>
  );
}

function Stats() {
  const all = figures.value;
  if (!all) return <dl class="stats" />;
  const taken = all.usable_gpus - all.available_gpus;
  const reserved = all.reserved_gpu_memory_mb + all.releasing_gpu_memory_mb;
  return (
    <dl class="stats">
      <Stat
        name="GPUs"
        value={`${all.available_gpus} free`}
        more={`of ${all.total_gpus}`}
        part={all.total_gpus ? taken / all.total_gpus : 0}
      />
      <Stat
        name="GPU memory reserved"
        value={memory(reserved)}
        more={`of ${memory(all.total_gpu_memory_mb)}`}
        part={reserved / Math.max(1, all.total_gpu_memory_mb)}
      />
      <Stat
        name="GPU utilization"
        value={all.avg_gpu_utilization === null ? "–" : percent(all.avg_gpu_utilization)}
        more="average"
        part={all.avg_gpu_utilization}
      />
      <Stat name="Running" value={String(all.running_jobs + all.scheduled_jobs)} more="jobs" />
      <Stat name="Waiting" value={String(all.pending_jobs)} more="jobs" />
      <Stat
        name="Nodes"
        value={`${all.online_nodes} of ${all.total_nodes}`}
        more={all.draining_nodes ? `${all.draining_nodes} draining` : "online"}
      />
    </dl>
  );
}

/** Whether a node, or an owner on one of its GPUs, has the text in its name. */
function matches(wanted: string, ...texts: (string | null | undefined)[]): boolean {
  return texts.some((text) => text?.toLowerCase().includes(wanted));
}

function gpuMatches(gpu: Cell, wanted: string): boolean {
  const books = gpu.books.value;
  return (
    matches(wanted, books.model) ||
    (books.holders ?? []).some((one) => matches(wanted, one.name, one.tenant, one.job_id))
  );
}

function NodeCard({ cell, wanted }: { cell: NodeCell; wanted: string }) {
  const node = cell.node.value;
  const bad = node.state !== "online" || !node.connected;
  const note = bad ? node.state : node.draining ? "draining" : "";
  return (
    <li class={`node${note ? " noted" : ""}${bad ? " away" : ""}`}>
      <a class="node-name" href={`#/nodes/${encodeURIComponent(cell.name)}`} tabIndex={-1}>
        <span>{cell.name}</span>
        {note && <em>{note}</em>}
      </a>
      <div class="gpus">
        {cell.gpus.value.map((gpu) => (
          <GpuBar
            cell={gpu}
            key={gpu.uuid}
            dim={wanted !== "" && !matches(wanted, cell.name) && !gpuMatches(gpu, wanted)}
          />
        ))}
      </div>
    </li>
  );
}

/** One place in the order of tabs for all bars; arrows go from one to the next. */
function roam(event: KeyboardEvent): void {
  const steps: Record<string, number> = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
  const step = steps[event.key];
  const box = event.currentTarget as HTMLElement;
  if (!step && event.key !== "Home" && event.key !== "End") return;
  const bars = [...box.querySelectorAll<HTMLElement>("[data-gpu]")];
  const at = bars.indexOf(document.activeElement as HTMLElement);
  const next =
    event.key === "Home" ? bars[0] : event.key === "End" ? bars.at(-1) : bars[at + (step ?? 0)];
  if (!next) return;
  event.preventDefault();
  bars[at]?.setAttribute("tabindex", "-1");
  next.setAttribute("tabindex", "0");
  next.focus();
}

/** The nodes of the picture, in order. Measurements alone do not move nodes at once. */
function useShown(): NodeCell[] {
  const wanted = filter.value.toLowerCase();
  const chosenOrder = order.value;
  const by =
    chosenOrder === "auto" ? (nodes.value.length >= DENSE_FROM ? "problems" : "name") : chosenOrder;
  const tick = by === "name" ? 0 : Math.floor(now.value / 5000);
  const all = useMemo(() => ordered(nodes.value, by), [nodes.value, by, tick]);
  if (!wanted) return all;
  return all.filter(
    (one) => matches(wanted, one.name) || one.gpus.value.some((gpu) => gpuMatches(gpu, wanted)),
  );
}

/** What is wrong, before everything else. */
function Problems() {
  const tick = Math.floor(now.value / 5000);
  const { listed, hot, on } = useMemo(
    () => summed(problems(nodes.value)),
    [nodes.value, figures.value, tick],
  );
  const [open, setOpen] = useState(false);
  const count = listed.length + hot;
  if (count === 0) return null;
  const FIRST = 6;
  return (
    <section class="problems" aria-label="Problems">
      <b>{plural(count, "problem")}</b>
      <ul>
        {listed.slice(0, open ? 200 : FIRST).map((one) => (
          <li key={`${one.node} ${one.gpu}`} class={one.weight > 1 ? "grave" : ""}>
            <a
              href={
                one.gpu
                  ? `#/cluster?gpu=${encodeURIComponent(one.gpu)}`
                  : `#/nodes/${encodeURIComponent(one.node)}`
              }
            >
              {one.node}
            </a>{" "}
            {one.text}
          </li>
        ))}
        {hot > 0 && (
          <li>
            <a href="#/cluster?show=heat&order=hot">{hot} GPUs</a> on {plural(on, "node")} are too
            hot
          </li>
        )}
      </ul>
      {listed.length > FIRST && (
        <button type="button" class="quiet" aria-expanded={open} onClick={() => setOpen(!open)}>
          {open ? "Fewer" : `All ${listed.length}`}
        </button>
      )}
    </section>
  );
}

function Cards({ shown, wanted }: { shown: NodeCell[]; wanted: string }) {
  return (
    <>
      {shown.map((one) => (
        <NodeCard cell={one} wanted={wanted} key={one.name} />
      ))}
    </>
  );
}

function Picture({ shown }: { shown: NodeCell[] }) {
  const box = useRef<HTMLDivElement>(null);
  const wanted = filter.value.toLowerCase();
  const count = useGrowing(shown.length);
  const grouped = group.value === "rack";
  const look = `picture${
    size.value === "dense" || (size.value === "auto" && nodes.value.length >= DENSE_FROM)
      ? " dense"
      : ""
  }`;
  const label = "Nodes and their GPUs; arrow keys go from GPU to GPU";
  useEffect(() => {
    const bars = box.current?.querySelectorAll("[data-gpu]");
    if (bars?.length && !box.current?.querySelector('[data-gpu][tabindex="0"]'))
      bars[0]?.setAttribute("tabindex", "0");
  });
  const press = (event: MouseEvent) => {
    const bar = (event.target as HTMLElement).closest<HTMLElement>("[data-gpu]");
    if (bar?.dataset.gpu) chosen.value = bar.dataset.gpu;
  };
  if (!loaded.value) return <p class="empty">Loading…</p>;
  if (nodes.value.length === 0)
    return (
      <div class="empty">
        <p>No node has reported yet.</p>
        <p>
          Start an agent: <code>gpu-agent --scheduler HOST:PORT</code>
        </p>
      </div>
    );
  return (
    <>
      {shown.length === 0 && <p class="empty">Nothing matches “{filter.value}”.</p>}
      <div ref={box} data-show={show.value} onClick={press} onKeyDown={roam} class="pictures">
        {grouped ? (
          racks(shown.slice(0, count)).map((rack) => (
            <section key={rack.name} aria-label={rack.name} class="rack">
              <h2>
                {rack.name}
                <span class="muted">
                  {plural(rack.nodes.length, "node")}, {rack.free} of {rack.total} GPUs free,
                  utilization {rack.load}
                </span>
              </h2>
              <ul class={look} aria-label={label}>
                <Cards shown={rack.nodes} wanted={wanted} />
              </ul>
            </section>
          ))
        ) : (
          <ul class={look} aria-label={label}>
            <Cards shown={shown.slice(0, count)} wanted={wanted} />
          </ul>
        )}
      </div>
    </>
  );
}

function Legend() {
  if (show.value === "load")
    return <p class="legend">The filled part of each bar is the GPU's utilization.</p>;
  if (show.value === "heat")
    return (
      <p class="legend">
        {["below 50 °C", "50 °C", "65 °C", "75 °C", "85 °C and above"].map((text, step) => (
          <span class="key-box" key={text}>
            <i class="swatch" data-heat={step} /> {text}
          </span>
        ))}
      </p>
    );
  const kinds: [string, string][] = [
    ["live measured", "in use"],
    ["live", "reserved, not used"],
    ["held", "held: about to start"],
    ["releasing", "releasing"],
    ["foreign", "external use"],
    ["overhead", "overhead"],
    ["claimed", "claimed"],
  ];
  return (
    <div class="legend">
      {kinds.map(([kind, text]) => (
        <span class="key-box" key={kind}>
          <i class={`swatch seg ${kind}`} /> {text}
        </span>
      ))}
      <span class="legend-tenants">
        {tenants.value.slice(0, 10).map((tenant) => (
          <TenantTag id={tenant.id} key={tenant.id} />
        ))}
      </span>
    </div>
  );
}

function Waiting() {
  const queue = useResource<Job[]>("/scheduler/queue?limit=12", ["jobs", "nodes"]);
  const wanted = filter.value.toLowerCase();
  const list = (queue.data.value ?? []).filter(
    (job) => !wanted || matches(wanted, job.name, job.id, tenantName(job.tenant_id)),
  );
  return (
    <section class="card" aria-labelledby="waiting">
      <h2 id="waiting">
        Waiting <a href="#/jobs">all jobs</a>
      </h2>
      {list.length === 0 && (
        <p class="empty small">{wanted ? "No waiting job matches." : "No jobs waiting."}</p>
      )}
      <ol class="lines">
        {list.map((job) => (
          <li key={job.id}>
            <a href={`#/jobs/${job.id}`} title={job.name}>
              {jobTitle(job)}
            </a>
            <span class="line-more">
              <TenantTag id={job.tenant_id} /> {asks(job)}
            </span>
            <span class="line-end">
              {job.held
                ? "held"
                : job.estimated_start
                  ? about(job.estimated_start, now.value)
                  : "–"}
            </span>
          </li>
        ))}
      </ol>
    </section>
  );
}

export function eventText(event: Event) {
  const what = words(event.type);
  if (event.job_id)
    return (
      <>
        <a href={`#/jobs/${event.job_id}`}>{event.name || event.job_id}</a>{" "}
        {event.type === "job_ended" ? event.state : what.replace(/^job /, "")}
      </>
    );
  if (event.node && !event.model_id)
    return (
      <>
        <a href={`#/nodes/${encodeURIComponent(event.node)}`}>{event.node}</a>{" "}
        {event.node_state ?? what}
        {event.over_by_mb ? ` by ${memory(event.over_by_mb)}` : ""}
      </>
    );
  if (event.model_id || event.model)
    return (
      <>
        <a href="#/models">{event.model ?? event.model_id}</a>{" "}
        {event.type.startsWith("slot_")
          ? `replica ${what.replace(/^slot /, "")}`
          : what.replace(/^model /, "")}
        {event.node ? ` on ${event.node}` : ""}
      </>
    );
  if (event.tenant_id)
    return (
      <>
        <a href="#/tenants">{tenantName(event.tenant_id)}</a> {what.replace(/^tenant /, "")}
      </>
    );
  return <>{what}</>;
}

function Lately() {
  const wanted = filter.value.toLowerCase();
  const list = events.value
    .filter((event) => !event.type.startsWith("task_"))
    .filter(
      (event) =>
        !wanted ||
        matches(
          wanted,
          event.name,
          event.job_id,
          event.node,
          event.model,
          event.tenant_id && tenantName(event.tenant_id),
        ),
    )
    .slice(0, 14);
  return (
    <section class="card" aria-labelledby="lately">
      <h2 id="lately">Recent activity</h2>
      {list.length === 0 && (
        <p class="empty small">
          {wanted ? "Nothing matches." : "Nothing since this page was opened."}
        </p>
      )}
      <ol class="lines">
        {list.map((event) => (
          <li key={event.seq}>
            <span class="line-text">{eventText(event)}</span>
            <span class="line-end" title={clock(event.time)}>
              <Ago time={event.time} />
            </span>
          </li>
        ))}
      </ol>
    </section>
  );
}

function Trend() {
  const opened = useSignal(Date.now());
  return (
    <section class="card">
      <Chart
        label={`Since this page was opened, ${duration((now.value - opened.value) / 1000)} ago`}
        curves={[
          { label: "utilization", colour: "--accent", fill: true },
          { label: "memory reserved", colour: "--tenant-1" },
        ]}
        unit={(value) => `${value} %`}
        top={100}
        tick={figures.value}
        data={() => [trend.times, trend.load, trend.memory]}
      />
    </section>
  );
}

export function ClusterView() {
  const shown = useShown();
  const racked = nodes.value.some((one) => one.node.value.rack || one.node.value.zone);
  const cell = chosen.value ? cellOf(chosen.value) : undefined;
  return (
    <div class="cluster">
      <h1 class="unseen">Cluster</h1>
      <Stats />
      <div class="cluster-main">
        <div class="tools">
          <Choice
            label="What the bars show"
            value={show.value}
            options={[
              ["memory", "Memory"],
              ["load", "Utilization"],
              ["heat", "Temperature"],
            ]}
            change={(value) => {
              show.value = value;
            }}
          />
          <Choice
            label="Size of the bars"
            value={size.value}
            options={[
              ["auto", "Auto"],
              ["detail", "Detail"],
              ["dense", "Dense"],
            ]}
            change={(value) => {
              size.value = value;
            }}
          />
          <select
            aria-label="Order of the nodes"
            value={order.value}
            onChange={(event) => {
              order.value = event.currentTarget.value as (typeof ORDERS)[number];
            }}
          >
            <option value="auto">Default order</option>
            <option value="name">By name</option>
            <option value="problems">Problems first</option>
            <option value="free">Most free first</option>
            <option value="hot">Hottest first</option>
            <option value="idle">Idle first</option>
          </select>
          {racked && (
            <button
              type="button"
              aria-pressed={group.value === "rack"}
              onClick={() => {
                group.value = group.value === "rack" ? "none" : "rack";
              }}
            >
              Racks
            </button>
          )}
          <input
            type="search"
            class="search"
            aria-label="Show nodes, jobs or tenants with this in their name"
            placeholder="Node, job or tenant"
            value={filter.value}
            onInput={(event) => {
              filter.value = event.currentTarget.value;
            }}
          />
          <span class="tools-end">
            {shown.length === nodes.value.length
              ? plural(nodes.value.length, "node")
              : `${shown.length} of ${plural(nodes.value.length, "node")}`}
          </span>
        </div>
        <Problems />
        <Picture shown={shown} />
        <Legend />
        {nodes.value.length > 0 && nodes.value.length <= FEW && (
          <section class="card recent" aria-labelledby="recent">
            <h2 id="recent">
              The last hour <a href="#/timeline">timeline</a>
            </h2>
            <LastHour most={300} />
          </section>
        )}
      </div>
      <div class="side">
        {cell && (
          <Inspector
            cell={cell}
            close={() => {
              const bar = document.querySelector<HTMLElement>(`[data-gpu="${chosen.value}"]`);
              chosen.value = "";
              bar?.focus();
            }}
          />
        )}
        <Waiting />
        <Lately />
        <Trend />
      </div>
    </div>
  );
}
