// windows.tsx - times in which nodes or GPUs are reserved: listed for all, made by administrators
import { useState } from "preact/hooks";
import { request } from "../api";
import { nodes } from "../cluster";
import { clock, millis, plural } from "../format";
import { Head, TenantTag, Wrong } from "../parts/common";
import { ask, tell } from "../parts/dialog";
import { type Column, DataTable } from "../parts/table";
import { useResource } from "../resource";
import type { Window } from "../resources";
import { choice, lightChoice } from "../route";
import { isAdmin, now, tenantName, tenants } from "../state";

const by = choice<string>("windows", "sort", "opens", { steps: false });
const text = lightChoice<string>("windows", "name", "");

/** Whom a window is for, in words. */
export function purposeOf(window: Window): string {
  if (window.maintenance) return "maintenance";
  return window.tenant_id ? tenantName(window.tenant_id) : "jobs that name it";
}

/** What a window is on, in words. */
export function placesOf(window: Window): string {
  const parts = [...window.nodes];
  if (window.gpus.length) parts.push(plural(window.gpus.length, "GPU"));
  return parts.join(", ");
}

/** The request for a window, of what was typed into the form. */
export function windowOf(values: Record<string, string>): Record<string, unknown> {
  const body: Record<string, unknown> = { name: values.name, length: values.length };
  for (const name of ["reason", "repeat", "grace"]) if (values[name]) body[name] = values[name];
  if (values.start) body.start = new Date(values.start).toISOString();
  if (values.purpose === "maintenance") body.maintenance = true;
  else if (values.purpose) body.tenant_id = values.purpose;
  if (values.evict) body.evict = true;
  if (values.on === "node") body.nodes = [values.node];
  else {
    body.gpu_count = Number(values.gpu_count);
    if (values.gpu_model) body.gpu_model = values.gpu_model;
  }
  return body;
}

const COLUMNS: Column<Window>[] = [
  {
    key: "name",
    title: "Window",
    main: true,
    sort: (window) => window.name,
    cell: (window) => window.name,
  },
  {
    key: "state",
    title: "State",
    sort: (window) => Number(window.open),
    cell: (window) => (window.open ? "open" : "closed"),
  },
  {
    key: "for",
    title: "For",
    sort: purposeOf,
    cell: (window) =>
      window.tenant_id && !window.maintenance ? (
        <TenantTag id={window.tenant_id} />
      ) : (
        purposeOf(window)
      ),
  },
  {
    key: "on",
    title: "On",
    class: "reason",
    sort: placesOf,
    cell: (window) => <span title={window.gpus.join(", ")}>{placesOf(window)}</span>,
  },
  {
    key: "opens",
    title: "Opens",
    sort: (window) => millis(window.next_start),
    cell: (window) => (window.next_start ? clock(window.next_start, now.value) : "–"),
  },
  {
    key: "closes",
    title: "Closes",
    sort: (window) => millis(window.next_end),
    cell: (window) => (window.next_end ? clock(window.next_end, now.value) : "–"),
  },
  {
    key: "repeat",
    title: "Repeats",
    sort: (window) => window.repeat,
    cell: (window) => (window.repeat === "none" ? "no" : window.repeat),
  },
  {
    key: "evict",
    title: "Running jobs",
    sort: (window) => Number(window.evict),
    cell: (window) => (window.evict ? "stopped and queued" : "continue"),
  },
  {
    key: "reason",
    title: "Reason",
    class: "reason",
    optional: true,
    sort: (window) => window.reason,
    cell: (window) => window.reason || "–",
  },
];

function remove(window: Window, done: () => void): void {
  ask({
    title: `Delete ${window.name}?`,
    text: "What it is on is open to other jobs at once.",
    action: "Delete the window",
    dangerous: true,
    run: async () => {
      const answer = await request("DELETE", `/windows/${encodeURIComponent(window.name)}`);
      done();
      return answer;
    },
  });
}

function Create({ made }: { made(): void }) {
  const [on, setOn] = useState("gpus");
  const [evict, setEvict] = useState(false);
  const [wrong, setWrong] = useState<string | null>(null);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const values = Object.fromEntries(
      [...new FormData(form)].map(([name, value]) => [name, String(value).trim()]),
    );
    setWrong(null);
    try {
      await request("POST", "/windows", windowOf(values));
      form.reset();
      setOn("gpus");
      setEvict(false);
      tell(`Created ${values.name}`);
      made();
    } catch (error) {
      setWrong((error as Error).message);
    }
  };
  return (
    <details class="card">
      <summary>New window</summary>
      <form class="form" onSubmit={submit}>
        <div class="fields">
          <label>
            Name
            <input name="name" required maxLength={64} pattern="[A-Za-z0-9._\-]+" />
          </label>
          <label>
            For
            <select name="purpose">
              <option value="">jobs that name it</option>
              <option value="maintenance">maintenance: nothing starts there</option>
              {tenants.value.map((tenant) => (
                <option value={tenant.id} key={tenant.id}>
                  jobs of {tenant.name}
                </option>
              ))}
            </select>
          </label>
          <label>
            On
            <select name="on" value={on} onChange={(event) => setOn(event.currentTarget.value)}>
              <option value="gpus">GPUs that the scheduler chooses</option>
              <option value="node">a node</option>
            </select>
          </label>
          {on === "node" ? (
            <label>
              Node
              <select name="node" required>
                {nodes.value.map((node) => (
                  <option value={node.name} key={node.name}>
                    {node.name}
                  </option>
                ))}
              </select>
            </label>
          ) : (
            <>
              <label>
                Number of GPUs
                <input name="gpu_count" type="number" min={1} required placeholder="1" />
              </label>
              <label>
                GPU model
                <input name="gpu_model" placeholder="any" />
              </label>
            </>
          )}
          <label>
            Opens
            <input name="start" type="datetime-local" aria-label="Opens; empty: now" />
          </label>
          <label>
            Length
            <input name="length" required placeholder="3h" />
          </label>
          <label>
            Repeats
            <select name="repeat">
              <option value="none">no</option>
              <option value="daily">daily</option>
              <option value="weekly">weekly</option>
            </select>
          </label>
          <label>
            Jobs that run when it opens
            <select
              name="evict"
              value={evict ? "true" : ""}
              onChange={(event) => setEvict(event.currentTarget.value === "true")}
            >
              <option value="">continue</option>
              <option value="true">are stopped and queued again</option>
            </select>
          </label>
          {evict && (
            <label>
              Stopped after
              <input name="grace" placeholder="0s" />
            </label>
          )}
          <label>
            Reason
            <input name="reason" maxLength={1024} />
          </label>
        </div>
        <Wrong text={wrong} />
        <div class="row end">
          <button type="submit" class="primary">
            Create
          </button>
        </div>
      </form>
    </details>
  );
}

export function WindowsView() {
  const list = useResource<{ windows: Window[] }>("/windows", ["nodes"]);
  const wanted = text.value.toLowerCase();
  const all = list.data.value?.windows ?? [];
  const rows = all.filter((one) =>
    `${one.name} ${one.reason} ${purposeOf(one)} ${placesOf(one)}`.toLowerCase().includes(wanted),
  );
  const actions: Column<Window> = {
    key: "actions",
    title: "Actions",
    unseen: true,
    class: "end",
    cell: (window) => (
      <button
        type="button"
        aria-label={`Delete ${window.name}`}
        onClick={() => remove(window, list.refresh)}
      >
        Delete
      </button>
    ),
  };
  return (
    <>
      <Head title="Windows">
        <a class="button" href="#/timeline">
          Timeline
        </a>
      </Head>
      <p class="muted">
        Times in which nodes or GPUs are reserved for some jobs, or for maintenance.
      </p>
      {isAdmin.value && <Create made={list.refresh} />}
      <div class="tools">
        <input
          type="search"
          class="search"
          aria-label="Name, tenant or node"
          placeholder="Name, tenant or node"
          value={text.value}
          onInput={(event) => {
            text.value = event.currentTarget.value;
          }}
        />
      </div>
      <Wrong text={list.error.value} />
      {list.data.value && rows.length === 0 ? (
        <p class="empty">{wanted ? "No window matches." : "No windows yet."}</p>
      ) : (
        <DataTable
          label="Windows"
          columns={isAdmin.value ? [...COLUMNS, actions] : COLUMNS}
          rows={rows}
          id={(window) => window.name}
          by={by}
        />
      )}
    </>
  );
}
