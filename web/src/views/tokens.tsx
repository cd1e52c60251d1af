// tokens.tsx - API tokens: made, listed and revoked by administrators
import { useState } from "preact/hooks";
import { request } from "../api";
import { clock, millis } from "../format";
import { Ago, Head, TenantTag, Wrong } from "../parts/common";
import { ask, tell } from "../parts/dialog";
import { type Column, DataTable } from "../parts/table";
import { useResource } from "../resource";
import { choice, lightChoice } from "../route";
import { mayManage, now, tenantName, tenants } from "../state";

interface Token {
  id: string;
  role: string;
  tenant_id: string | null;
  node?: string;
  note: string;
  created_at: string | null;
  expires_at: string | null;
}

const by = choice<string>("tokens", "sort", "-created", { steps: false });
const text = lightChoice<string>("tokens", "name", "");

const ROLES: [string, string][] = [
  ["admin", "Administrator: everything"],
  ["tenant", "Tenant: its own jobs and models"],
  ["tenant_admin", "Administrator of a tenant: its jobs, models and tokens"],
  ["viewer", "Viewer: reads only"],
  ["agent", "Agent: speaks for a node"],
  ["gateway", "Gateway: passes requests to models"],
  ["inference", "Inference: asks models, and nothing else"],
];

const COLUMNS: Column<Token>[] = [
  {
    key: "id",
    title: "Token",
    main: true,
    sort: (token) => token.id,
    cell: (token) => <code>{token.id}</code>,
  },
  { key: "role", title: "Role", sort: (token) => token.role, cell: (token) => token.role },
  {
    key: "for",
    title: "For",
    sort: (token) => token.node ?? tenantName(token.tenant_id),
    cell: (token) =>
      token.node ? (
        `${token.role === "gateway" ? "gateway" : "node"} ${token.node}`
      ) : token.tenant_id ? (
        <TenantTag id={token.tenant_id} />
      ) : (
        "all"
      ),
  },
  {
    key: "note",
    title: "Note",
    class: "reason",
    sort: (token) => token.note,
    cell: (token) => token.note || "–",
  },
  {
    key: "created",
    title: "Created",
    sort: (token) => millis(token.created_at),
    cell: (token) => <Ago time={token.created_at} />,
  },
  {
    key: "expires",
    title: "Expires",
    sort: (token) => millis(token.expires_at),
    cell: (token) =>
      token.expires_at ? (
        <span class={(millis(token.expires_at) ?? 0) < now.value ? "state failed" : ""}>
          {clock(token.expires_at, now.value)}
        </span>
      ) : (
        "never"
      ),
  },
];

function revoke(token: Token, done: () => void): void {
  ask({
    title: `Revoke ${token.id}?`,
    text: "Whoever uses it is signed out at once.",
    action: "Revoke",
    dangerous: true,
    run: async () => {
      const answer = await request("DELETE", `/tokens/${encodeURIComponent(token.id)}`);
      done();
      return answer;
    },
  });
}

/** Shown once: the service does not keep it. */
function Made({ text, close }: { text: string; close(): void }) {
  return (
    <section class="card made" aria-label="The new token">
      <p>
        <b>Copy the token now.</b> It is not shown again.
      </p>
      <pre class="command" tabIndex={0}>
        {text}
      </pre>
      <div class="row end">
        <button
          type="button"
          onClick={() =>
            navigator.clipboard
              ?.writeText(text)
              .then(() => tell("Copied"))
              .catch(() => tell("The browser does not allow it: select and copy it.", true))
          }
        >
          Copy
        </button>
        <button type="button" onClick={close}>
          Done
        </button>
      </div>
    </section>
  );
}

function Create({ made }: { made(token: string): void }) {
  const [role, setRole] = useState("tenant");
  const [wrong, setWrong] = useState<string | null>(null);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const body: Record<string, string> = {};
    for (const [name, value] of new FormData(form)) if (value) body[name] = String(value);
    setWrong(null);
    try {
      const answer = await request<{ token: string }>("POST", "/tokens", body);
      form.reset();
      setRole("tenant");
      made(answer.token);
    } catch (error) {
      setWrong((error as Error).message);
    }
  };
  return (
    <details class="card">
      <summary>New token</summary>
      <form class="form" onSubmit={submit}>
        <div class="fields">
          <label>
            Role
            <select
              name="role"
              value={role}
              onChange={(event) => setRole(event.currentTarget.value)}
            >
              {ROLES.map(([value, text]) => (
                <option value={value} key={value}>
                  {text}
                </option>
              ))}
            </select>
          </label>
          {["tenant", "tenant_admin", "viewer", "inference"].includes(role) && (
            <label>
              Tenant
              <select name="tenant_id" required={role !== "viewer"}>
                {role === "viewer" && <option value="">all tenants</option>}
                {tenants.value.map((tenant) => (
                  <option value={tenant.id} key={tenant.id}>
                    {tenant.name}
                  </option>
                ))}
              </select>
            </label>
          )}
          {(role === "agent" || role === "gateway") && (
            <label>
              {role === "agent" ? "Node" : "Name of the gateway"}
              <input name="node" placeholder="any" maxLength={95} />
            </label>
          )}
          <label>
            Note
            <input name="note" placeholder="whose it is, or what for" maxLength={120} />
          </label>
          <label>
            Expires in
            <input name="expires_in" placeholder="90d (empty: never)" />
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

export function TokensView() {
  const list = useResource<{ tokens: Token[] }>("/tokens", ["tokens"]);
  const [made, setMade] = useState<string | null>(null);
  const wanted = text.value.toLowerCase();
  const all = (list.data.value?.tokens ?? []).filter((one) =>
    `${one.id} ${one.role} ${one.note} ${one.node ?? ""} ${tenantName(one.tenant_id)}`
      .toLowerCase()
      .includes(wanted),
  );
  if (!mayManage.value) return <p class="empty">Administrators only.</p>;
  const actions: Column<Token> = {
    key: "actions",
    title: "Actions",
    unseen: true,
    class: "end",
    cell: (token) => (
      <button
        type="button"
        aria-label={`Revoke ${token.id}`}
        onClick={() => revoke(token, list.refresh)}
      >
        Revoke
      </button>
    ),
  };
  return (
    <>
      <Head title="Tokens" />
      {made && <Made text={made} close={() => setMade(null)} />}
      <Create
        made={(token) => {
          setMade(token);
          list.refresh();
        }}
      />
      <div class="tools">
        <input
          type="search"
          class="search"
          aria-label="Token, role, tenant or note"
          placeholder="Token, role, tenant or note"
          value={text.value}
          onInput={(event) => {
            text.value = event.currentTarget.value;
          }}
        />
      </div>
      <Wrong text={list.error.value} />
      {list.data.value && all.length === 0 ? (
        <p class="empty">{wanted ? "No token matches." : "No tokens yet."}</p>
      ) : (
        <DataTable
          label="Tokens"
          columns={[...COLUMNS, actions]}
          rows={all}
          id={(token) => token.id}
          by={by}
        />
      )}
    </>
  );
}
