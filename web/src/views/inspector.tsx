// inspector.tsx - one GPU: the arithmetic of its ledger, its owners, its measurements
import { useEffect, useRef } from "preact/hooks";
import type { Cell } from "../cluster";
import { memory, percent } from "../format";
import { Chart } from "../parts/chart";
import { Segments, aloneOn, aloneStyle, holderName, ownedOf } from "../parts/gpu";
import type { Holder } from "../types";
import { GpuHistory } from "./usage";

function HolderRow({ holder, measured }: { holder: Holder; measured: number }) {
  const name = holderName(holder);
  return (
    <tr>
      <td>
        {holder.job_id ? (
          <a href={`#/jobs/${holder.job_id}`}>{name}</a>
        ) : holder.model_id ? (
          <a href="#/models">{name}</a>
        ) : (
          name
        )}
      </td>
      <td>{holder.phase}</td>
      <td class="number">{memory(holder.memory_mb)}</td>
      <td class="number">{memory(measured)}</td>
    </tr>
  );
}

export function Inspector({ cell, close }: { cell: Cell; close(): void }) {
  const heading = useRef<HTMLHeadingElement>(null);
  const gpu = cell.books.value;
  const sample = cell.sample.value;
  useEffect(() => heading.current?.focus(), [cell.uuid]);
  const owned = gpu.used_memory - gpu.overhead_memory - gpu.foreign_memory;
  return (
    <section
      class="card inspector"
      aria-labelledby="inspected"
      onKeyDown={(event) => event.key === "Escape" && close()}
    >
      <h2 id="inspected" tabIndex={-1} ref={heading}>
        GPU {gpu.index} <a href={`#/nodes/${encodeURIComponent(gpu.node)}`}>{gpu.node}</a>
        <button type="button" class="quiet icon" aria-label="Close" onClick={close}>
          ✕
        </button>
      </h2>
      <p class="muted">
        {gpu.model}
        {gpu.nvlink_group ? ` · NVLink group ${gpu.nvlink_group}` : ""} · <code>{gpu.uuid}</code>
      </p>
      <div class="bar wide" style={aloneStyle(cell)}>
        <Segments gpu={gpu} />
      </div>
      <p class="sum">
        <span title="overhead">{memory(gpu.overhead_memory)}</span> overhead +{" "}
        <span>{memory(gpu.foreign_memory)}</span> external + <span>{memory(owned)}</span> owned ={" "}
        <b>{memory(gpu.used_memory)}</b> {gpu.over ? ">" : "≤"} <b>{memory(gpu.total_memory)}</b>
        {gpu.unexplained_memory > 0
          ? `; of the external memory, ${memory(gpu.unexplained_memory)} belong to no process`
          : ""}
        {gpu.whole ? "; given whole" : `; ${memory(gpu.free_memory)} free`}
      </p>
      {(gpu.holders?.length ?? 0) > 0 && (
        <table>
          <thead>
            <tr>
              <th scope="col">Owner</th>
              <th scope="col">Phase</th>
              <th scope="col" class="number">
                Reserved
              </th>
              <th scope="col" class="number">
                Measured
              </th>
            </tr>
          </thead>
          <tbody>
            {gpu.holders?.map((holder, place) => (
              <HolderRow
                holder={holder}
                // Of one owner, all that is nobody else's.
                measured={
                  sample && aloneOn(gpu) && holder.phase !== "claim"
                    ? Math.max(0, ownedOf(gpu, sample))
                    : holder.measured_memory_mb
                }
                key={place}
              />
            ))}
          </tbody>
        </table>
      )}
      {sample && (
        <>
          <p class="muted">
            Utilization {percent(sample.utilization)} · {sample.temperature} °C ·{" "}
            {Math.round(sample.power)} W · {memory(sample.memory)} measured
          </p>
          <Chart
            label="Since this page was opened"
            curves={[
              { label: "utilization %", colour: "--accent", fill: true },
              { label: "°C", colour: "--bad" },
            ]}
            unit={String}
            top={110}
            tick={sample}
            data={() => [cell.times, cell.loads, cell.heats]}
          />
          <GpuHistory uuid={cell.uuid} />
        </>
      )}
    </section>
  );
}
