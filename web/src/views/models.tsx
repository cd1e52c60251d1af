// models.tsx - models that can be served, and the slots in which they are loaded
import { memory } from "../format";
import { Ago, Head, TenantTag, Wrong } from "../parts/common";
import { useResource } from "../resource";
import type { Model, Slot } from "../types";

function SlotLine({ slot }: { slot: Slot }) {
  const busy = slot.max_concurrency ? slot.active_requests / slot.max_concurrency : 0;
  return (
    <li>
      <span class={`slot-state ${slot.status}`}>{slot.status}</span>
      <span>
        {slot.runner_id ?? "–"}
        <span class="muted">
          {" "}
          {slot.gpu_allocation
            .map((part) => `GPU ${part.index}: ${memory(part.memory_mb)}`)
            .join(", ")}
        </span>
      </span>
      <span class="use-bar" style={`--size:${(Math.min(1, busy) * 100).toFixed(1)}%`} />
      <span class="use-text">
        {slot.active_requests} of {slot.max_concurrency || "∞"} requests
        {slot.pinned ? " · pinned" : ""}
        {slot.last_used_at ? (
          <>
            {" "}
            · used <Ago time={slot.last_used_at} />
          </>
        ) : null}
      </span>
    </li>
  );
}

export function ModelsView() {
  const list = useResource<{ models: Model[] }>("/models?limit=1000", ["slots"]);
  const loaded = useResource<Slot[]>("/scheduler/slots", ["slots", "nodes"]);
  const models = list.data.value?.models ?? [];
  const slots = loaded.data.value ?? [];
  return (
    <>
      <Head title="Models" />
      <Wrong text={list.error.value ?? loaded.error.value} />
      {list.data.value && models.length === 0 && (
        <p class="empty">
          No models yet. Create one with <code>gpu-cli models create</code>.
        </p>
      )}
      <div class="cards">
        {models.map((model) => (
          <section class="card" key={model.id} aria-label={model.name}>
            <h2>
              {model.name} <span class="muted">{model.runtime}</span>
            </h2>
            <p class="under">
              <TenantTag id={model.tenant_id} /> {memory(model.gpu_memory_mb)} per replica ·{" "}
              {model.ready_slots} ready
              {model.coming_slots ? `, ${model.coming_slots} coming` : ""}
              {model.stopping_slots ? `, ${model.stopping_slots} stopping` : ""} ·{" "}
              {model.active_requests} active, {model.waiting_requests} queued
            </p>
            {model.message && <p class="wrong">{model.message}</p>}
            <ul class="slots">
              {slots
                .filter((slot) => slot.model_id === model.id)
                .map((slot) => (
                  <SlotLine slot={slot} key={slot.id} />
                ))}
            </ul>
          </section>
        ))}
      </div>
    </>
  );
}
