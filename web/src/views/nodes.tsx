// nodes.tsx - nodes: what they have, and whether they take work
import { request } from "../api";
import { type NodeCell, loaded, nodes } from "../cluster";
import { colourOf } from "../colour";
import { memory, percent, plural, short } from "../format";
import { Head, Wrong } from "../parts/common";
import { act, ask } from "../parts/dialog";
import { Segments, aloneStyle, present } from "../parts/gpu";
import { type Column, DataTable } from "../parts/table";
import { choice, lightChoice, route } from "../route";
import { isAdmin } from "../state";
import type { Node } from "../types";

const by = choice<string>("nodes", "sort", "", { steps: false });
const state = choice<string>("nodes", "state", "");
const text = lightChoice<string>("nodes", "name", "");

function drain(node: Node): void {
  ask({
    title: `Drain ${node.id}?`,
    text: "No new jobs will start here; running jobs will finish.",
    action: "Drain",
    dangerous: false,
    run: () => request("POST", `/nodes/${encodeURIComponent(node.id)}/drain`),
  });
}

function resume(node: Node): void {
  act(() => request("POST", `/nodes/${encodeURIComponent(node.id)}/resume`));
}

function stateOf(node: Node): "online" | "draining" | "unknown" | "lost" {
  return node.state !== "online" ? node.state : node.draining ? "draining" : "online";
}

function NodeState({ node }: { node: Node }) {
  const word = stateOf(node);
  const sign = { online: "●", draining: "◐", unknown: "?", lost: "✕" }[word];
  return (
    <span class={`node-state ${word}`}>
      <span aria-hidden="true">{sign}</span> {word}
      {word === "draining" && node.drain_reason ? ` (${node.drain_reason})` : ""}
    </span>
  );
}

function whereOf(node: Node): string {
  return [node.zone, node.rack].filter(Boolean).join(", ");
}

function load(cell: NodeCell): number | null {
  const samples = cell.gpus.value.flatMap((gpu) => gpu.sample.value ?? []);
  if (samples.length === 0) return null;
  return samples.reduce((sum, one) => sum + one.utilization, 0) / samples.length;
}

function hottest(cell: NodeCell): number | null {
  const all = cell.gpus.value.flatMap((gpu) => gpu.sample.value?.temperature ?? []);
  return all.length ? Math.max(...all) : null;
}

/** The share of each tenant in the node's GPU memory, 0 to 1; foreign memory last. */
export function shares(cell: NodeCell): [string, number][] {
  const all = new Map<string, number>();
  let total = 0;
  let foreign = 0;
  for (const { books } of cell.gpus.value) {
    const gpu = books.value;
    total += gpu.total_memory;
    foreign += gpu.foreign_memory;
    for (const holder of present(gpu.holders)) {
      const tenant = holder.tenant_id ?? "";
      const counted = Math.max(holder.memory_mb, holder.measured_memory_mb);
      all.set(tenant, (all.get(tenant) ?? 0) + counted);
    }
  }
  const parts = [...all].sort((a, b) => a[0].localeCompare(b[0], "en", { numeric: true }));
  if (foreign > 0) parts.push(["foreign", foreign]);
  return parts.map(([tenant, mib]) => [tenant, mib / Math.max(1, total)]);
}

function Detail({ cell }: { cell: NodeCell }) {
  const node = cell.node.value;
  const groups = cell.gpus.value.map((gpu) => gpu.books.value.nvlink_group);
  const labels = Object.entries(node.labels);
  return (
    <>
      <ul class="node-gpus">
        {cell.gpus.value.map((gpu) => {
          const books = gpu.books.value;
          const group = books.nvlink_group;
          return (
            <li key={gpu.uuid}>
              <a href={`#/cluster?gpu=${encodeURIComponent(gpu.uuid)}`}>GPU {books.index}</a>
              <span class="bar wide" style={aloneStyle(gpu)}>
                <Segments gpu={books} />
              </span>
              <span class="muted">
                {books.model} · {memory(books.used_memory)} of {memory(books.total_memory)}
                {group ? ` · NVLink group ${group}` : ""}
              </span>
            </li>
          );
        })}
      </ul>
      <p class="muted">
        {node.connected ? "Its agent is connected." : "Its agent is not connected."}{" "}
        {groups.length > 1 && groups.every((one) => one === groups[0] && one !== 0)
          ? "All GPUs are linked by NVLink. "
          : groups.some((one) => one !== 0)
            ? `${new Set(groups.filter((one) => one !== 0)).size} NVLink groups. `
            : "No NVLink. "}
        {labels.map(([name, value]) => `${name}=${value}`).join(" ")}{" "}
        <a href={`#/decisions?node=${encodeURIComponent(node.id)}`}>Decisions</a>
      </p>
    </>
  );
}

/** 'H100' of 'NVIDIA H100 80GB HBM3', with how many where there are several kinds. */
export function modelsOf(names: readonly string[]): string {
  const all = new Map<string, number>();
  for (const name of names) {
    const short = name.replace(/^NVIDIA\s+/i, "");
    all.set(short, (all.get(short) ?? 0) + 1);
  }
  return [...all].map(([name, count]) => `${count} × ${name}`).join(", ");
}

const COLUMNS: Column<NodeCell>[] = [
  {
    key: "node",
    title: "Node",
    main: true,
    sort: (cell) => cell.name,
    cell: (cell) => {
      const open = route.value.id === cell.name;
      return (
        <a
          href={open ? "#/nodes" : `#/nodes/${encodeURIComponent(cell.name)}`}
          aria-expanded={open}
        >
          {cell.name}
        </a>
      );
    },
  },
  {
    key: "state",
    title: "State",
    sort: (cell) => stateOf(cell.node.peek()),
    cell: (cell) => <NodeState node={cell.node.value} />,
  },
  {
    key: "where",
    title: "Zone, rack",
    sort: (cell) => whereOf(cell.node.peek()),
    cell: (cell) => whereOf(cell.node.value) || "–",
  },
  {
    key: "gpus",
    title: "GPUs",
    sort: (cell) => cell.gpus.peek()[0]?.books.peek().model ?? null,
    cell: (cell) => modelsOf(cell.gpus.value.map((gpu) => gpu.books.value.model)),
  },
  {
    key: "free",
    title: "Free",
    number: true,
    sort: (cell) => cell.node.peek().available_gpus,
    cell: (cell) => `${cell.node.value.available_gpus} of ${cell.node.value.total_gpus}`,
  },
  {
    key: "memory",
    title: "GPU memory",
    class: "strip",
    sort: (cell) => shares(cell).reduce((sum, [, part]) => sum + part, 0),
    cell: (cell) => (
      <span class="bar mini" aria-hidden="true">
        {shares(cell).map(([tenant, part]) => (
          <span
            key={tenant}
            class={`seg ${tenant === "foreign" ? "foreign" : "live"}`}
            style={`--size:${(part * 100).toFixed(2)}%;--measured:100%;--c:${colourOf(tenant)}`}
          />
        ))}
      </span>
    ),
  },
  {
    key: "load",
    title: "Utilization",
    number: true,
    sort: load,
    cell: (cell) => {
      const part = load(cell);
      return part === null ? "–" : percent(part);
    },
  },
  {
    key: "heat",
    title: "Hottest",
    number: true,
    sort: hottest,
    cell: (cell) => {
      const most = hottest(cell);
      return most === null ? "–" : `${most} °C`;
    },
  },
  {
    key: "cpu",
    title: "CPU cores",
    number: true,
    sort: (cell) => cell.node.peek().used_cpu_cores,
    cell: (cell) =>
      `${short(cell.node.value.used_cpu_cores)} / ${short(cell.node.value.total_cpu_cores)}`,
  },
  {
    key: "host",
    title: "Host memory",
    number: true,
    sort: (cell) => cell.node.peek().used_memory_mb,
    cell: (cell) =>
      `${memory(cell.node.value.used_memory_mb)} / ${memory(cell.node.value.total_memory_mb)}`,
  },
];

const ACTIONS: Column<NodeCell> = {
  key: "actions",
  title: "Actions",
  unseen: true,
  class: "end",
  cell: (cell) => {
    const node = cell.node.value;
    return node.draining ? (
      <button type="button" onClick={() => resume(node)} aria-label={`Resume ${node.id}`}>
        Resume
      </button>
    ) : (
      <button type="button" onClick={() => drain(node)} aria-label={`Drain ${node.id}`}>
        Drain
      </button>
    );
  },
};

const STATES = ["online", "draining", "unknown", "lost"] as const;

export function NodesView() {
  const { id } = route.value;
  const columns = isAdmin.value ? [...COLUMNS, ACTIONS] : COLUMNS;
  const wanted = text.value.toLowerCase();
  const rows = nodes.value.filter((cell) => {
    const node = cell.node.value;
    const words = [cell.name, node.zone, node.rack, ...Object.values(node.labels)];
    return (
      (!wanted || words.some((word) => word.toLowerCase().includes(wanted))) &&
      (!state.value || stateOf(node) === state.value)
    );
  });
  return (
    <>
      <Head title="Nodes" />
      {id && loaded.value && !nodes.value.some((one) => one.name === id) && (
        <Wrong text={`There is no node ${id}.`} />
      )}
      <div class="tools">
        <select
          aria-label="In which state"
          value={state.value}
          onChange={(event) => {
            state.value = event.currentTarget.value;
          }}
        >
          <option value="">Any state</option>
          {STATES.map((one) => (
            <option value={one} key={one}>
              {one}
            </option>
          ))}
        </select>
        <input
          type="search"
          class="search"
          aria-label="Name, zone, rack or label"
          placeholder="Name, zone, rack or label"
          value={text.value}
          onInput={(event) => {
            text.value = event.currentTarget.value;
          }}
        />
        <span class="tools-end">
          {rows.length === nodes.value.length
            ? plural(rows.length, "node")
            : `${rows.length} of ${plural(nodes.value.length, "node")}`}
        </span>
      </div>
      {loaded.value && nodes.value.length === 0 && <p class="empty">No node has reported yet.</p>}
      {nodes.value.length > 0 && rows.length === 0 && <p class="empty">No node matches.</p>}
      {rows.length > 0 && (
        <DataTable
          label="Nodes"
          columns={columns}
          rows={rows}
          id={(cell) => cell.name}
          by={by}
          rowClass={(cell) => (id === cell.name ? "open" : "")}
          more={(cell) =>
            id === cell.name && (
              <tr class="more">
                <td colSpan={columns.length}>
                  <Detail cell={cell} />
                </td>
              </tr>
            )
          }
        />
      )}
    </>
  );
}
