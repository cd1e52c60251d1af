// models.tsx - models that can be served, and the slots in which they are loaded
import { request } from "../api";
import { clock, memory, ms, plural, short } from "../format";
import { Ago, Head, TenantTag, Wrong } from "../parts/common";
import { ask } from "../parts/dialog";
import { ResourceForm } from "../parts/resource-form";
import { TryModel } from "../parts/try-model";
import { useResource } from "../resource";
import type { Field } from "../resources";
import { choice, go, lightChoice, route } from "../route";
import { isAdmin, mayChange, now, session, tenantName, tenants } from "../state";
import type { Model, Slot } from "../types";

const text = lightChoice<string>("models", "name", "");
const by = choice<string>("models", "sort", "name", {
  among: ["name", "busy", "waiting", "memory"],
  steps: false,
});

function field(name: string, label: string, kind: string, help: string, more = {}): Field {
  return { name, label, help, kind, setter: "any_time", section: "general", ...more };
}

/** What a model is put with; the rest keeps its default, and REST has all of it. */
const FIELDS: Field[] = [
  field("name", "Name", "text", "A name that is unique in its tenant"),
  field("tenant_id", "Tenant", "text", "The tenant that pays for its slots"),
  field("runtime", "Runtime", "word", "What serves it", {
    words: ["vllm", "ollama", "llama.cpp", "custom"],
  }),
  field("path", "Path", "text", "Where its files are on the nodes", { most: 4096 }),
  field("gpu_memory_mb", "GPU memory", "integer", "GPU memory of one slot, over all its GPUs", {
    unit: "MiB",
  }),
  field("min_replicas", "Minimum replicas", "integer", "Slots that are always wanted", {
    least: 0,
    most: 4096,
    initial: "0",
  }),
  field("max_replicas", "Maximum replicas", "integer", "Slots at most", { least: 0, most: 4096 }),
  field("image", "Image", "text", "A container image to run in", { section: "work" }),
  field("args", "Arguments", "texts", "Further arguments for its server", { section: "work" }),
  field("environment", "Environment", "map", "Environment variables", { section: "work" }),
  field("command", "Command", "text", "What starts the runtime custom; administrators only", {
    section: "work",
  }),
  field("context_length", "Context length", "integer", "Tokens of each request", {
    section: "serving",
    least: 0,
    most: 2147483647,
  }),
  field("max_concurrency", "Requests at a time", "integer", "Requests in flight in one slot", {
    section: "serving",
    least: 0,
    most: 4096,
  }),
  field("idle_ttl", "Idle time", "duration", "A slot that was idle for this long may be evicted", {
    section: "serving",
  }),
  field("prewarm", "Prewarm", "flag", "Loaded, where there is room, before anyone asks", {
    section: "serving",
  }),
  field("pinned", "Pinned", "flag", "Never evicted", { section: "serving" }),
  field("shared", "Shared", "flag", "All tenants may use it", { section: "serving" }),
  field("priority", "Priority", "integer", "As for jobs", {
    section: "placement",
    least: 0,
    most: 2147483647,
  }),
  field("gpu_model", "GPU model", "text", "Allowed GPU models, separated by |", {
    section: "placement",
  }),
  field("node_labels", "Node labels", "map", "Labels that the nodes must have", {
    section: "placement",
  }),
];

const fieldsFor = (fresh: boolean) =>
  FIELDS.filter(
    (one) =>
      (isAdmin.value || !["command", "shared"].includes(one.name)) &&
      (fresh || !["name", "tenant_id", "runtime"].includes(one.name)),
  ).map((one) =>
    one.name === "tenant_id"
      ? { ...one, kind: "word", words: tenants.value.map((tenant) => tenant.name) }
      : one,
  );

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

function order(models: readonly Model[]): Model[] {
  const value: Record<string, (one: Model) => number> = {
    busy: (one) => one.active_requests,
    waiting: (one) => one.waiting_requests,
    memory: (one) => one.gpu_memory_mb * one.ready_slots,
  };
  const of = value[by.value];
  return [...models].sort((a, b) => (of ? of(b) - of(a) : a.name.localeCompare(b.name, "en")));
}

/** How it answers, in a line; nothing if nobody asked in the last minute. */
export function serving(
  model: Pick<
    Model,
    "answers_per_minute" | "first_token_p50_ms" | "first_token_p99_ms" | "tokens_per_second"
  >,
): string {
  return [
    model.answers_per_minute ? `${plural(model.answers_per_minute, "answer")} in a minute` : "",
    model.first_token_p50_ms !== null
      ? `first token ${ms(model.first_token_p50_ms)}, p99 ${ms(model.first_token_p99_ms ?? 0)}`
      : "",
    model.tokens_per_second ? `${short(model.tokens_per_second)} tokens/s` : "",
  ]
    .filter(Boolean)
    .join(" · ");
}

/** Requests that wait. Gateways ask for some places more than they have requests, so theirs are
 * counted where they may be seen. */
export function queued(model: Pick<Model, "waiting_tenants" | "waiting_requests">): number {
  const told = model.waiting_tenants ?? [];
  return told.length > 0
    ? told.reduce((sum, one) => sum + one.requests, 0)
    : model.waiting_requests;
}

/** Who waits in gateways, the longest first. */
function Waiting({ model }: { model: Model }) {
  const all = model.waiting_tenants ?? [];
  if (all.length === 0)
    return model.oldest_wait_ms !== null ? (
      <p class="under">The oldest request has waited {ms(model.oldest_wait_ms)}.</p>
    ) : null;
  return (
    <table class="waiting">
      <thead>
        <tr>
          <th scope="col">Who waits</th>
          <th scope="col" class="number">
            Requests
          </th>
          <th scope="col" class="number">
            Oldest
          </th>
          <th scope="col" class="number">
            Tokens
          </th>
        </tr>
      </thead>
      <tbody>
        {all.map((one) => (
          <tr key={one.tenant_id}>
            <td>{one.tenant_id ? <TenantTag id={one.tenant_id} /> : "administrators"}</td>
            <td class="number">{one.requests}</td>
            <td class="number">{ms(one.oldest_wait_ms)}</td>
            <td class="number">{one.tokens}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Card({ model, slots }: { model: Model; slots: readonly Slot[] }) {
  const own = slots.filter((slot) => slot.model_id === model.id);
  return (
    <section class="card" aria-label={model.name}>
      <h2>
        <a class="first" href={`#/models/${model.id}`}>
          {model.name}
        </a>{" "}
        <span class="muted">{model.runtime}</span>
      </h2>
      <p class="under">
        <TenantTag id={model.tenant_id} /> {memory(model.gpu_memory_mb)} per replica ·{" "}
        {model.ready_slots} ready
        {model.coming_slots ? `, ${model.coming_slots} coming` : ""}
        {model.asleep_slots ? `, ${model.asleep_slots} asleep` : ""}
        {model.stopping_slots ? `, ${model.stopping_slots} stopping` : ""} · {model.active_requests}{" "}
        active, {queued(model)} queued
      </p>
      {serving(model) && <p class="under">{serving(model)}</p>}
      {model.message && <p class="wrong">{model.message}</p>}
      <Waiting model={model} />
      <ul class="slots">
        {own.map((slot) => (
          <SlotLine slot={slot} key={slot.id} />
        ))}
      </ul>
      {own.length === 0 && <p class="muted">No replica is loaded.</p>}
    </section>
  );
}

function remove(model: Model): void {
  ask({
    title: `Delete ${model.name}?`,
    text: "It takes no more requests, and its replicas stop when theirs have ended.",
    action: "Delete the model",
    dangerous: true,
    run: async () => {
      const answer = await request("DELETE", `/models/${model.id}`);
      go("#/models");
      return answer;
    },
  });
}

function ModelPage({ id }: { id: string }) {
  const found = useResource<Model>(`/models/${encodeURIComponent(id)}`, ["slots"]);
  const why = useResource<{ why: string[] }>(`/models/${encodeURIComponent(id)}/why`, [
    "slots",
    "nodes",
  ]);
  const loaded = useResource<Slot[]>("/scheduler/slots", ["slots", "nodes"]);
  const model = found.data.value;
  if (!model)
    return (
      <>
        <Head title={id} />
        {found.error.value ? <Wrong text={found.error.value} /> : <p class="empty">Loading…</p>}
      </>
    );
  const fields = fieldsFor(false);
  return (
    <>
      <Head
        title={
          <>
            {model.name} <span class="muted">{model.id}</span>
          </>
        }
      >
        <a class="button" href={`#/decisions?model=${model.id}`}>
          Decisions
        </a>
        {mayChange.value && (
          <button type="button" class="danger" onClick={() => remove(model)}>
            Delete
          </button>
        )}
      </Head>
      <div class="job">
        <div>
          <Card model={model} slots={loaded.data.value ?? []} />
          <TryModel key={model.id} model={model} />
          <section class="card" aria-labelledby="model-why">
            <h2 id="model-why">State</h2>
            <Wrong text={why.error.value} />
            <ul class="why">
              {(why.data.value?.why ?? []).map((line) => (
                <li key={line}>{line.trim()}</li>
              ))}
            </ul>
          </section>
        </div>
        <div>
          <section class="card" aria-labelledby="model-facts">
            <h2 id="model-facts">Loading</h2>
            <dl class="facts">
              <dt>Time to load</dt>
              <dd>{model.load_time ?? "not known yet"}</dd>
              <dt>Failures in a row</dt>
              <dd>{model.failures}</dd>
              {model.not_before && (
                <>
                  <dt>Next try</dt>
                  <dd>{clock(model.not_before, now.value)}</dd>
                </>
              )}
            </dl>
          </section>
          {mayChange.value && (
            <>
              <h2>Settings</h2>
              <ResourceForm
                key={JSON.stringify(fields.map((one) => model[one.name as keyof Model]))}
                fields={fields}
                value={model as unknown as Record<string, unknown>}
                action="Save"
                send={async (body) => {
                  await request("PUT", `/models/${model.id}`, body);
                  found.refresh();
                }}
              />
            </>
          )}
        </div>
      </div>
    </>
  );
}

function NewModel() {
  const own = session.value?.tenant_id ?? tenants.value[0]?.id ?? "";
  return (
    <>
      <Head title="New model" />
      <ResourceForm
        fields={fieldsFor(true)}
        value={{}}
        action="Create"
        required={["name", "runtime"]}
        send={async (body) => {
          const made = await request<Model>("POST", "/models", { tenant_id: own, ...body });
          go(`#/models/${made.id}`);
        }}
      />
      <p class="muted">The default tenant is {tenantName(own)}.</p>
    </>
  );
}

export function ModelsView() {
  const { id } = route.value;
  if (id === "new" && mayChange.value) return <NewModel />;
  if (id) return <ModelPage key={id} id={id} />;
  return <ModelList />;
}

function ModelList() {
  const list = useResource<{ models: Model[] }>("/models?limit=1000", ["slots"]);
  const loaded = useResource<Slot[]>("/scheduler/slots", ["slots", "nodes"]);
  const wanted = text.value.toLowerCase();
  const all = list.data.value?.models ?? [];
  const models = order(
    all.filter((one) =>
      `${one.name} ${one.runtime} ${tenantName(one.tenant_id)}`.toLowerCase().includes(wanted),
    ),
  );
  return (
    <>
      <Head title="Models">
        {mayChange.value && (
          <a class="button" href="#/models/new">
            New model
          </a>
        )}
      </Head>
      {all.length > 1 && (
        <div class="tools">
          <input
            type="search"
            class="search"
            aria-label="Name, runtime or tenant"
            placeholder="Name, runtime or tenant"
            value={text.value}
            onInput={(event) => {
              text.value = event.currentTarget.value;
            }}
          />
          <select
            aria-label="Order"
            value={by.value}
            onChange={(event) => {
              by.value = event.currentTarget.value;
            }}
          >
            <option value="name">By name</option>
            <option value="busy">Most active first</option>
            <option value="waiting">Longest queue first</option>
            <option value="memory">Most memory first</option>
          </select>
        </div>
      )}
      <Wrong text={list.error.value ?? loaded.error.value} />
      {list.data.value && models.length === 0 && (
        <p class="empty">
          {wanted ? (
            "No model matches."
          ) : (
            <>
              No models yet. Create one here or with <code>gpu-cli models create</code>.
            </>
          )}
        </p>
      )}
      <div class="cards">
        {models.map((model) => (
          <Card model={model} slots={loaded.data.value ?? []} key={model.id} />
        ))}
      </div>
    </>
  );
}
