// usage.tsx - how the cluster was used over a day or a week, and what is held and not used
import { useMemo } from "preact/hooks";
import { nodes } from "../cluster";
import { colourOf } from "../colour";
import { memory, money, percent, short } from "../format";
import {
  type History,
  type Period,
  type TenantTrack,
  type Values,
  beginning,
  largest,
  scaled,
  times,
} from "../history";
import { type Waste, wasted } from "../idle";
import { Chart, type Curve } from "../parts/chart";
import { Choice, Head, TenantTag, Wrong } from "../parts/common";
import { type Column, DataTable } from "../parts/table";
import { useResource } from "../resource";
import type { Accuracy, Quota } from "../resources";
import { choice, lightChoice } from "../route";
import { now } from "../state";

const period = choice<Period>("usage", "period", "day", { among: ["day", "week"] });
const by = choice<string>("usage", "sort", "-hours", { steps: false });
const owner = lightChoice<string>("usage", "owner", "");
const predictedBy = lightChoice<string>("usage", "predicted", "");
const quotasBy = lightChoice<string>("usage", "quotas", "");
const idleBy = lightChoice<string>("usage", "idle", "");
/** As many curves as can be told apart. */
const CURVES = 7;

interface Drawn {
  curves: Curve[];
  values: Values[];
}

/** A chart of what was recorded; says so where that is little. */
export function HistoryChart(props: {
  label: string;
  history: History | null;
  drawn: Drawn;
  unit(value: number): string;
  top?: number;
}) {
  const { history, drawn } = props;
  const from = beginning(...drawn.values);
  const data = (): [number[], ...Values[]] => [
    history ? times(history).slice(from) : [],
    ...drawn.values.map((list) => list.slice(from)),
  ];
  if (!history) return <p class="muted">Loading…</p>;
  if (drawn.values.every((list) => list.every((value) => value === null)))
    return <p class="muted">{props.label}: nothing was recorded yet.</p>;
  return (
    <Chart
      label={props.label}
      curves={drawn.curves}
      unit={props.unit}
      {...(props.top ? { top: props.top } : {})}
      scale={history.period}
      hover
      tick={history}
      data={data}
    />
  );
}

function tenantCurves(tracks: readonly TenantTrack[]): Curve[] {
  return tracks.map((one) => ({
    label: one.tenant,
    colour: one.tenant_id ? colourOf(one.tenant_id).replace(/^var\(|\)$/g, "") : "--other",
  }));
}

/** A tenant's line of the bill. */
interface Bill {
  tenant_id: string;
  gpu_hours: number;
  useful_gpu_hours: number;
  idle_gpu_hours: number;
  lost_gpu_hours: number;
  cost: number;
}

interface Used {
  track: TenantTrack;
  bill: Bill | undefined;
  peak: number;
  waiting: number;
}

const known = (values: Values): number[] => values.flatMap((value) => value ?? []);

/** A part of what was used, such as 12 %. */
function partOf(row: Used, kind: "useful" | "idle" | "lost"): number {
  return row.bill?.gpu_hours ? row.bill[`${kind}_gpu_hours`] / row.bill.gpu_hours : 0;
}

const part = (kind: "useful" | "idle" | "lost", title: string): Column<Used> => ({
  key: kind,
  title,
  number: true,
  sort: (row) => partOf(row, kind),
  cell: (row) => (row.bill?.gpu_hours ? percent(partOf(row, kind)) : "–"),
});

const USED: Column<Used>[] = [
  {
    key: "tenant",
    title: "Tenant",
    main: true,
    sort: (row) => row.track.tenant,
    cell: (row) => (
      <a href={`#/tenants/${row.track.tenant_id}`}>
        <TenantTag id={row.track.tenant_id} />
      </a>
    ),
  },
  {
    key: "hours",
    title: "GPU hours",
    number: true,
    sort: (row) => row.bill?.gpu_hours ?? 0,
    cell: (row) => short(row.bill?.gpu_hours ?? 0),
  },
  part("useful", "Useful"),
  part("idle", "Idle"),
  part("lost", "Lost"),
  {
    key: "peak",
    title: "Most GPUs",
    number: true,
    sort: (row) => row.peak,
    cell: (row) => short(row.peak),
  },
  {
    key: "waiting",
    title: "Jobs waiting, average",
    number: true,
    sort: (row) => row.waiting,
    cell: (row) => short(row.waiting),
  },
  {
    key: "cost",
    title: "Cost",
    number: true,
    sort: (row) => row.bill?.cost ?? 0,
    cell: (row) => money(row.bill?.cost ?? 0),
  },
];

const WASTED: Column<Waste>[] = [
  {
    key: "owner",
    title: "Owner",
    main: true,
    sort: (row) => row.name,
    cell: (row) => (row.job ? <a href={`#/jobs/${row.job}`}>{row.name}</a> : row.name),
  },
  {
    key: "tenant",
    title: "Tenant",
    sort: (row) => row.tenant,
    cell: (row) => (row.tenantId ? <TenantTag id={row.tenantId} /> : (row.tenant ?? "–")),
  },
  {
    key: "gpus",
    title: "GPUs held",
    number: true,
    sort: (row) => row.gpus,
    cell: (row) => short(row.gpus),
  },
  {
    key: "idle",
    title: "Idle",
    number: true,
    sort: (row) => row.idle,
    cell: (row) => <b class={row.idle > 0 ? "state failed" : "muted"}>{short(row.idle)}</b>,
  },
  {
    key: "load",
    title: "Utilization",
    number: true,
    sort: (row) => row.utilization,
    cell: (row) => percent(row.utilization),
  },
  {
    key: "unused",
    title: "Memory reserved, not used",
    number: true,
    sort: (row) => row.unused,
    cell: (row) => memory(row.unused),
  },
];

function Idle() {
  const tick = Math.floor(now.value / 5000);
  const all = useMemo(() => wasted(nodes.value), [nodes.value, tick]);
  const wanted = owner.value.toLowerCase();
  const rows = all.filter((row) =>
    `${row.name} ${row.tenant ?? ""}`.toLowerCase().includes(wanted),
  );
  return (
    <section aria-labelledby="idle">
      <h2 id="idle">Held now, by owner: idle ones first</h2>
      <div class="tools">
        <input
          type="search"
          class="search"
          aria-label="Owner or tenant"
          placeholder="Owner or tenant"
          value={owner.value}
          onInput={(event) => {
            owner.value = event.currentTarget.value;
          }}
        />
      </div>
      {rows.length === 0 ? (
        <p class="empty small">
          {wanted ? "Nobody matches." : "Nothing is held, or nothing was measured yet."}
        </p>
      ) : (
        <DataTable
          label="Idle and wasted GPUs"
          columns={WASTED}
          rows={rows}
          id={(row) => row.key}
          by={idleBy}
        />
      )}
      <p class="muted small">
        Idle: utilization below 5 % since this page was opened, ten minutes at most.
      </p>
    </section>
  );
}

const share = (value: number | null) => (value === null ? "–" : percent(value));

/** What a line of the report is about. */
const about = (row: Accuracy) =>
  row.tenant ?? row.tenant_id ?? (row.basis ? `by ${row.basis}` : "all jobs");

const PREDICTED: Column<Accuracy>[] = [
  { key: "of", title: "Jobs of", main: true, sort: about, cell: about },
  {
    key: "jobs",
    title: "Predicted",
    number: true,
    sort: (row) => row.jobs,
    cell: (row) => short(row.jobs),
  },
  {
    key: "p90",
    title: "Within 90 %",
    number: true,
    sort: (row) => row.within_p90 ?? 0,
    cell: (row) => share(row.within_p90),
  },
  {
    key: "twice",
    title: "Half to twice",
    number: true,
    sort: (row) => row.within_twice ?? 0,
    cell: (row) => share(row.within_twice),
  },
  {
    key: "error",
    title: "Median error",
    number: true,
    sort: (row) => row.median_error ?? 0,
    cell: (row) => (row.median_error === null ? "–" : `× ${row.median_error.toFixed(2)}`),
  },
  {
    key: "promised",
    title: "Promised starts",
    number: true,
    sort: (row) => row.promised_starts ?? 0,
    cell: (row) => (row.promised_starts === undefined ? "–" : short(row.promised_starts)),
  },
  {
    key: "kept",
    title: "Kept",
    number: true,
    sort: (row) => row.kept_starts ?? 0,
    cell: (row) =>
      row.promised_starts ? percent((row.kept_starts ?? 0) / row.promised_starts) : "–",
  },
];

interface Predictions {
  all?: Accuracy;
  tenants?: Accuracy[];
  bases?: Accuracy[];
}

/** How well jobs were predicted. */
function PredictionCard({ from }: { from: string | null }) {
  const list = useResource<Predictions>(
    from ? `/reports/predictions?from=${encodeURIComponent(from)}` : "/session",
    [],
  );
  const { all, tenants, bases } = list.data.value ?? {};
  const rows = all ? [all, ...(tenants ?? []), ...(bases ?? [])] : [];
  return (
    <section class="block" aria-labelledby="predicted">
      <h2 id="predicted">Predictions</h2>
      {all && all.jobs === 0 && !all.promised_starts ? (
        <p class="empty small">No predicted job has ended yet.</p>
      ) : (
        <DataTable
          label="How well jobs were predicted"
          columns={PREDICTED}
          rows={rows}
          id={about}
          by={predictedBy}
        />
      )}
      <p class="muted small">
        Within 90 %: jobs that took no longer than predicted for nine of ten. Half of the
        predictions were within the median error.
      </p>
    </section>
  );
}

const gpus = (value: number | null) =>
  value === null ? "–" : value < 0 ? "unlimited" : short(value);

const QUOTAS: Column<Quota>[] = [
  {
    key: "tenant",
    title: "Tenant",
    main: true,
    sort: (row) => row.tenant ?? row.tenant_id,
    cell: (row) => <TenantTag id={row.tenant_id} />,
  },
  {
    key: "used",
    title: "Used on average",
    number: true,
    sort: (row) => row.used_gpus,
    cell: (row) => row.used_gpus.toFixed(1),
  },
  {
    key: "quota",
    title: "Quota",
    number: true,
    sort: (row) => row.quota_gpus ?? 0,
    cell: (row) => gpus(row.quota_gpus),
  },
  {
    key: "proposed",
    title: "Proposed",
    number: true,
    sort: (row) => row.proposed_gpus,
    cell: (row) => gpus(row.proposed_gpus),
  },
  {
    key: "most",
    title: "Bounds",
    number: true,
    sort: (row) => row.quota_gpus_most ?? 0,
    cell: (row) =>
      row.follows ? `${gpus(row.quota_gpus_least)} to ${gpus(row.quota_gpus_most)}` : "–",
  },
];

/** The guaranteed GPUs that follow from what tenants used. */
function QuotaCard() {
  const list = useResource<{ applied?: boolean; quotas?: Quota[] }>("/reports/quotas", ["tenants"]);
  const { applied, quotas } = list.data.value ?? {};
  if (!quotas || quotas.length === 0) return null;
  return (
    <section class="block" aria-labelledby="quotas">
      <h2 id="quotas">Guaranteed GPUs, from use</h2>
      <DataTable
        label="Quotas that follow use"
        columns={QUOTAS}
        rows={quotas}
        id={(row) => row.tenant_id}
        by={quotasBy}
      />
      <p class="muted small">
        {applied
          ? "Quotas of tenants with bounds are set to what is proposed, from time to time."
          : "Proposals alone: scheduler.quota_follow_days is 0."}
      </p>
    </section>
  );
}

function PeriodChoice() {
  return (
    <Choice
      label="How far back"
      value={period.value}
      options={[
        ["day", "Last day"],
        ["week", "Last week"],
      ]}
      change={(value) => {
        period.value = value;
      }}
    />
  );
}

export function UsageView() {
  const list = useResource<History>(`/history?period=${period.value}`, []);
  const history = list.data.value;
  const bills = useResource<{ tenants?: Bill[] }>(
    history ? `/reports/billing?from=${encodeURIComponent(history.from)}` : "/session",
    [],
  );
  const cluster = history?.cluster;
  const tracks = history?.tenants ?? [];
  const shown = largest(tracks, CURVES);
  const rows = tracks.map((track): Used => {
    const waiting = known(track.waiting_jobs);
    return {
      track,
      bill: bills.data.value?.tenants?.find((one) => one.tenant_id === track.tenant_id),
      peak: Math.max(0, ...known(track.gpus)),
      waiting: waiting.reduce((sum, one) => sum + one, 0) / Math.max(1, waiting.length),
    };
  });
  return (
    <>
      <Head title="Usage">
        <PeriodChoice />
      </Head>
      <Wrong text={list.error.value} />
      <div class="charts">
        <section class="card">
          <HistoryChart
            label="GPUs: utilization and memory"
            history={history}
            unit={(value) => `${value} %`}
            top={100}
            drawn={{
              curves: [
                { label: "utilization", colour: "--accent", fill: true },
                { label: "memory reserved", colour: "--tenant-1" },
                { label: "memory used", colour: "--tenant-2" },
              ],
              values: cluster
                ? [
                    scaled(cluster.gpu_utilization, 100),
                    scaled(cluster.gpu_memory_reserved, 100),
                    scaled(cluster.gpu_memory_used, 100),
                  ]
                : [],
            }}
          />
        </section>
        <section class="card">
          <HistoryChart
            label="Jobs"
            history={history}
            unit={short}
            drawn={{
              curves: [
                { label: "waiting", colour: "--tenant-1", fill: true },
                { label: "running", colour: "--tenant-2" },
              ],
              values: cluster?.pending_jobs
                ? [cluster.pending_jobs, cluster.running_jobs ?? []]
                : tracks[0]
                  ? [tracks[0].waiting_jobs, tracks[0].running_jobs]
                  : [],
            }}
          />
        </section>
        <section class="card">
          <HistoryChart
            label="GPUs in use by tenant"
            history={history}
            unit={short}
            drawn={{ curves: tenantCurves(shown), values: shown.map((one) => one.gpus) }}
          />
        </section>
        <section class="card">
          <HistoryChart
            label="Cost per hour by tenant"
            history={history}
            unit={short}
            drawn={{ curves: tenantCurves(shown), values: shown.map((one) => one.cost_per_hour) }}
          />
        </section>
      </div>
      <section aria-labelledby="used" class="block">
        <h2 id="used">By tenant, in the {period.value === "day" ? "last day" : "last week"}</h2>
        {rows.length > 0 && (
          <DataTable
            label="Usage by tenant"
            columns={USED}
            rows={rows}
            id={(row) => row.track.tenant_id}
            by={by}
          />
        )}
      </section>
      <PredictionCard from={history?.from ?? null} />
      <QuotaCard />
      <Idle />
    </>
  );
}

/** One tenant's GPUs, waiting jobs and cost over the last week. */
export function TenantHistory({ id }: { id: string }) {
  const list = useResource<History>("/history?period=week", []);
  const history = list.data.value;
  const track = history?.tenants?.find((one) => one.tenant_id === id);
  return (
    <section class="card" aria-label="The last week">
      <HistoryChart
        label="GPUs and queue, the last week"
        history={history}
        unit={short}
        drawn={{
          curves: [
            { label: "GPUs in use", colour: "--accent", fill: true },
            { label: "jobs waiting", colour: "--tenant-1" },
          ],
          values: track ? [track.gpus, track.waiting_jobs] : [],
        }}
      />
      <HistoryChart
        label="Cost per hour, the last week"
        history={history}
        unit={short}
        drawn={{
          curves: [{ label: "cost per hour", colour: "--tenant-3", fill: true }],
          values: track ? [track.cost_per_hour] : [],
        }}
      />
    </section>
  );
}

/** One GPU over the last day. */
export function GpuHistory({ uuid }: { uuid: string }) {
  const list = useResource<History>(`/history?gpu=${encodeURIComponent(uuid)}`, []);
  const history = list.data.value;
  const gpu = history?.gpu;
  if (!gpu) return null;
  return (
    <>
      <HistoryChart
        label="Memory, the last day"
        history={history}
        unit={(value) => `${short(value)} GiB`}
        drawn={{
          curves: [{ label: "memory", colour: "--tenant-1", fill: true }],
          values: [scaled(gpu.memory_mb, 1 / 1024)],
        }}
      />
      <HistoryChart
        label="Utilization and temperature, the last day"
        history={history}
        unit={String}
        top={110}
        drawn={{
          curves: [
            { label: "utilization %", colour: "--accent", fill: true },
            { label: "°C", colour: "--bad" },
          ],
          values: [scaled(gpu.utilization, 100), gpu.temperature_c],
        }}
      />
    </>
  );
}
