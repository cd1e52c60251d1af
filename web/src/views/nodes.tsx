// nodes.tsx - nodes: what they have, and whether they take work
import { request } from "../api";
import { type NodeCell, loaded, nodes } from "../cluster";
import { colourOf } from "../colour";
import { memory, percent, short } from "../format";
import { Head, Wrong } from "../parts/common";
import { act, ask } from "../parts/dialog";
import { Segments, aloneStyle } from "../parts/gpu";
import { useGrowing } from "../parts/growing";
import { route } from "../route";
import { isAdmin } from "../state";
import type { Node } from "../types";

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

function NodeState({ node }: { node: Node }) {
  const word = node.state !== "online" ? node.state : node.draining ? "draining" : "online";
  const sign = { online: "●", draining: "◐", unknown: "?", lost: "✕" }[word];
  return (
    <span class={`node-state ${word}`}>
      <span aria-hidden="true">{sign}</span> {word}
    </span>
  );
}

function load(cell: NodeCell): string {
  const samples = cell.gpus.value.flatMap((gpu) => gpu.sample.value ?? []);
  if (samples.length === 0) return "–";
  return percent(samples.reduce((sum, one) => sum + one.utilization, 0) / samples.length);
}

function hottest(cell: NodeCell): string {
  const all = cell.gpus.value.flatMap((gpu) => gpu.sample.value?.temperature ?? []);
  return all.length ? `${Math.max(...all)} °C` : "–";
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
    for (const holder of gpu.holders ?? [])
      if (holder.phase !== "claim") {
        const tenant = holder.tenant_id ?? "";
        const counted = Math.max(holder.memory_mb, holder.measured_memory_mb);
        all.set(tenant, (all.get(tenant) ?? 0) + counted);
      }
  }
  const parts = [...all].sort((a, b) => a[0].localeCompare(b[0], "en", { numeric: true }));
  if (foreign > 0) parts.push(["foreign", foreign]);
  return parts.map(([tenant, mib]) => [tenant, mib / Math.max(1, total)]);
}

function Row({ cell, open }: { cell: NodeCell; open: boolean }) {
  const node = cell.node.value;
  return (
    <>
      <tr class={open ? "open" : ""}>
        <th scope="row">
          <a
            href={open ? "#/nodes" : `#/nodes/${encodeURIComponent(node.id)}`}
            aria-expanded={open}
          >
            {node.id}
          </a>
          <span class="muted small"> {[node.zone, node.rack].filter(Boolean).join(", ")}</span>
        </th>
        <td>
          <NodeState node={node} />
        </td>
        <td class="number">
          {node.available_gpus} of {node.total_gpus}
        </td>
        <td class="strip">
          <span class="bar mini" aria-hidden="true">
            {shares(cell).map(([tenant, part]) => (
              <span
                key={tenant}
                class={`seg ${tenant === "foreign" ? "foreign" : "live"}`}
                style={`--size:${(part * 100).toFixed(2)}%;--measured:100%;--c:${colourOf(tenant)}`}
              />
            ))}
          </span>
        </td>
        <td class="number">{load(cell)}</td>
        <td class="number">{hottest(cell)}</td>
        <td class="number">
          {short(node.used_cpu_cores)} / {short(node.total_cpu_cores)}
        </td>
        <td class="number">
          {memory(node.used_memory_mb)} / {memory(node.total_memory_mb)}
        </td>
        {isAdmin.value && (
          <td class="end">
            {node.draining ? (
              <button type="button" onClick={() => resume(node)} aria-label={`Resume ${node.id}`}>
                Resume
              </button>
            ) : (
              <button type="button" onClick={() => drain(node)} aria-label={`Drain ${node.id}`}>
                Drain
              </button>
            )}
          </td>
        )}
      </tr>
      {open && (
        <tr class="more">
          <td colSpan={isAdmin.value ? 9 : 8}>
            <ul class="node-gpus">
              {cell.gpus.value.map((gpu) => {
                const books = gpu.books.value;
                return (
                  <li key={gpu.uuid}>
                    <a href={`#/cluster?gpu=${encodeURIComponent(gpu.uuid)}`}>GPU {books.index}</a>
                    <span class="bar wide" style={aloneStyle(gpu)}>
                      <Segments gpu={books} />
                    </span>
                    <span class="muted">
                      {books.model} · {memory(books.used_memory)} of {memory(books.total_memory)}
                    </span>
                  </li>
                );
              })}
            </ul>
            <p class="muted">
              {node.connected ? "Its agent is connected." : "Its agent is not connected."}{" "}
              {Object.entries(node.labels)
                .map(([name, value]) => `${name}=${value}`)
                .join(" ")}{" "}
              <a href={`#/decisions?node=${encodeURIComponent(node.id)}`}>Decisions</a>
            </p>
          </td>
        </tr>
      )}
    </>
  );
}

export function NodesView() {
  const { id } = route.value;
  const count = useGrowing(nodes.value.length);
  return (
    <>
      <Head title="Nodes" />
      {id && loaded.value && !nodes.value.some((one) => one.name === id) && (
        <Wrong text={`There is no node ${id}.`} />
      )}
      {loaded.value && nodes.value.length === 0 && <p class="empty">No node has reported yet.</p>}
      <div class="table" role="region" aria-label="Nodes" tabIndex={0}>
        <table>
          <thead>
            <tr>
              <th scope="col">Node</th>
              <th scope="col">State</th>
              <th scope="col" class="number">
                Free GPUs
              </th>
              <th scope="col">Memory</th>
              <th scope="col" class="number">
                Utilization
              </th>
              <th scope="col" class="number">
                Hottest
              </th>
              <th scope="col" class="number">
                CPU cores
              </th>
              <th scope="col" class="number">
                Host memory
              </th>
              {isAdmin.value && (
                <th scope="col">
                  <span class="unseen">Actions</span>
                </th>
              )}
            </tr>
          </thead>
          <tbody>
            {nodes.value.slice(0, count).map((cell) => (
              <Row cell={cell} key={cell.name} open={id === cell.name} />
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}
