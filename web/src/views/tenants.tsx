// tenants.tsx - tenants: what they are guaranteed, may have, use and cost; and one of them
import { request } from "../api";
import { money, short } from "../format";
import { Head, TenantTag, Wrong } from "../parts/common";
import { act, ask } from "../parts/dialog";
import { ResourceForm } from "../parts/resource-form";
import { type Column, DataTable } from "../parts/table";
import { useResource } from "../resource";
import { tenantFields } from "../resources";
import { choice, go, lightChoice, route } from "../route";
import { isAdmin } from "../state";
import type { Tenant } from "../types";
import { TenantHistory } from "./usage";

const by = choice<string>("tenants", "sort", "", { steps: false });
const text = lightChoice<string>("tenants", "name", "");

function limit(value: number | null): string {
  return value === null || value < 0 ? "no limit" : short(value);
}

/** Parents before what is below them, with how deep each is. */
export function tree(all: readonly Tenant[]): [Tenant, number][] {
  const known = new Set(all.map((tenant) => tenant.id));
  const below = (parent: string | null, depth: number): [Tenant, number][] =>
    all
      .filter(
        (one) => (one.parent_id && known.has(one.parent_id) ? one.parent_id : null) === parent,
      )
      .flatMap((one): [Tenant, number][] => [[one, depth], ...below(one.id, depth + 1)]);
  return below(null, 0);
}

/** What it has, between what it is guaranteed, its fair share and its limit. */
function Scale({ tenant }: { tenant: Tenant }) {
  const quota = tenant.quota_gpus !== null && tenant.quota_gpus >= 0 ? tenant.quota_gpus : null;
  const most = Math.max(
    tenant.max_gpus ?? 0,
    quota ?? 0,
    tenant.fair_share_gpus,
    tenant.current_gpus,
    1,
  );
  const at = (value: number) => `${((100 * value) / most).toFixed(1)}%`;
  return (
    <span class="scale" aria-hidden="true">
      <span class="scale-now" style={`--size:${at(tenant.current_gpus)}`} />
      {quota !== null && <span class="scale-quota" style={`--at:${at(quota)}`} title="quota" />}
      <span class="scale-fair" style={`--at:${at(tenant.fair_share_gpus)}`} title="fair share" />
    </span>
  );
}

type Row = [Tenant, number];

const COLUMNS: Column<Row>[] = [
  {
    key: "tenant",
    title: "Tenant",
    main: true,
    class: "tree",
    sort: ([tenant]) => tenant.name,
    cell: ([tenant, depth]) => (
      <span class="tree" style={`--depth:${depth}`}>
        <a href={`#/tenants/${tenant.id}`}>
          <TenantTag id={tenant.id} />
        </a>
        <span class="muted small"> {tenant.id}</span>
      </span>
    ),
  },
  {
    key: "gpus",
    title: "GPUs in use",
    number: true,
    sort: ([tenant]) => tenant.current_gpus,
    cell: ([tenant]) => short(tenant.current_gpus),
  },
  { key: "bar", title: "As a bar", unseen: true, cell: ([tenant]) => <Scale tenant={tenant} /> },
  {
    key: "fair",
    title: "Fair share",
    number: true,
    sort: ([tenant]) => tenant.fair_share_gpus,
    cell: ([tenant]) => short(tenant.fair_share_gpus),
  },
  {
    key: "quota",
    title: "Quota",
    number: true,
    sort: ([tenant]) => tenant.quota_gpus,
    cell: ([tenant]) => (tenant.quota_gpus === null ? "–" : limit(tenant.quota_gpus)),
  },
  {
    key: "limit",
    title: "Limit",
    number: true,
    sort: ([tenant]) => tenant.max_gpus,
    cell: ([tenant]) => limit(tenant.max_gpus),
  },
  {
    key: "weight",
    title: "Weight",
    number: true,
    sort: ([tenant]) => tenant.fair_share_weight,
    cell: ([tenant]) => short(tenant.fair_share_weight),
  },
  {
    key: "tier",
    title: "Tier",
    sort: ([tenant]) => tenant.priority_tier,
    cell: ([tenant]) => tenant.priority_tier,
  },
  {
    key: "jobs",
    title: "Running / waiting",
    number: true,
    sort: ([tenant]) => tenant.current_jobs + tenant.waiting_jobs,
    cell: ([tenant]) => (
      <span>
        <a href={`#/jobs?show=running&tenant=${tenant.id}`}>{tenant.current_jobs}</a> /{" "}
        <a href={`#/jobs?show=waiting&tenant=${tenant.id}`}>{tenant.waiting_jobs}</a>
      </span>
    ),
  },
  {
    key: "hours",
    title: "GPU hours",
    number: true,
    sort: ([tenant]) => tenant.total_gpu_hours,
    cell: ([tenant]) => short(tenant.total_gpu_hours),
  },
  {
    key: "month",
    title: "Cost this month",
    number: true,
    sort: ([tenant]) => tenant.month_cost,
    cell: ([tenant]) => (
      <span>
        {money(tenant.month_cost)}
        {tenant.budget_per_month !== null && (
          <span class="muted small"> of {money(tenant.budget_per_month)}</span>
        )}
      </span>
    ),
  },
  {
    key: "cost",
    title: "Total cost",
    number: true,
    sort: ([tenant]) => tenant.total_cost,
    cell: ([tenant]) => money(tenant.total_cost),
  },
];

function remove(tenant: Tenant): void {
  ask({
    title: `Delete ${tenant.name}?`,
    text: "A tenant with jobs that have not finished, or with tenants below it, is not deleted.",
    action: "Delete the tenant",
    dangerous: true,
    run: async () => {
      const answer = await request("DELETE", `/tenants/${tenant.id}`);
      go("#/tenants");
      return answer;
    },
  });
}

function TenantPage({ id }: { id: string }) {
  const found = useResource<Tenant>(`/tenants/${encodeURIComponent(id)}`, ["tenants", "jobs"]);
  const tenant = found.data.value;
  if (!tenant)
    return (
      <>
        <Head title={id} />
        {found.error.value ? <Wrong text={found.error.value} /> : <p class="empty">Loading…</p>}
      </>
    );
  const fields = isAdmin.value ? tenantFields : [];
  return (
    <>
      <Head
        title={
          <>
            {tenant.name} <span class="muted">{tenant.id}</span>
          </>
        }
      >
        <a class="button" href={`#/jobs?tenant=${tenant.id}`}>
          Jobs
        </a>
        {isAdmin.value && (
          <button type="button" class="danger" onClick={() => remove(tenant)}>
            Delete
          </button>
        )}
      </Head>
      <div class="job">
        <div>
          <TenantHistory id={tenant.id} />
          {fields.length > 0 && (
            <>
              <h2>Settings</h2>
              <ResourceForm
                key={JSON.stringify(fields.map((field) => tenant[field.name as keyof Tenant]))}
                fields={fields}
                value={tenant as unknown as Record<string, unknown>}
                action="Save"
                required={["name"]}
                send={async (body) => {
                  await request("PUT", `/tenants/${tenant.id}`, body);
                  await act(async () => ({ message: "Saved" }));
                  found.refresh();
                }}
              />
            </>
          )}
        </div>
        <div>
          <section class="card" aria-labelledby="now">
            <h2 id="now">Now</h2>
            <dl class="facts">
              <dt>GPUs in use</dt>
              <dd>
                {short(tenant.current_gpus)} <Scale tenant={tenant} />
              </dd>
              <dt>Quota, limit</dt>
              <dd>
                {tenant.quota_gpus === null ? "none" : limit(tenant.quota_gpus)},{" "}
                {limit(tenant.max_gpus)}
              </dd>
              <dt>Fair share</dt>
              <dd>
                {short(tenant.fair_share_gpus)} GPUs of those it asks for (weight{" "}
                {short(tenant.fair_share_weight)})
              </dd>
              <dt>Jobs</dt>
              <dd>
                {tenant.current_jobs} running, {tenant.waiting_jobs} waiting,{" "}
                {tenant.successful_jobs} succeeded, {tenant.failed_jobs} failed
              </dd>
              <dt>GPU hours</dt>
              <dd>{short(tenant.total_gpu_hours)}</dd>
              <dt>Cost</dt>
              <dd>
                {money(tenant.month_cost)} this month
                {tenant.budget_per_month !== null && ` of ${money(tenant.budget_per_month)}`},{" "}
                {money(tenant.total_cost)} in total
              </dd>
            </dl>
          </section>
        </div>
      </div>
    </>
  );
}

function NewTenant() {
  return (
    <>
      <Head title="New tenant" />
      <ResourceForm
        fields={tenantFields}
        value={{}}
        action="Create"
        required={["name"]}
        send={async (body) => {
          const made = await request<Tenant>("POST", "/tenants", body);
          go(`#/tenants/${made.id}`);
        }}
      />
    </>
  );
}

export function TenantsView() {
  const { id } = route.value;
  if (id === "new" && isAdmin.value) return <NewTenant />;
  if (id) return <TenantPage key={id} id={id} />;
  return <TenantList />;
}

function TenantList() {
  const list = useResource<{ tenants: Tenant[] }>("/tenants?limit=1000", ["tenants", "jobs"]);
  const wanted = text.value.toLowerCase();
  const all = (list.data.value?.tenants ?? []).filter((one) =>
    `${one.name} ${one.id}`.toLowerCase().includes(wanted),
  );
  return (
    <>
      <Head title="Tenants">
        {isAdmin.value && (
          <a class="button" href="#/tenants/new">
            New tenant
          </a>
        )}
      </Head>
      <div class="tools">
        <input
          type="search"
          class="search"
          aria-label="Name"
          placeholder="Name"
          value={text.value}
          onInput={(event) => {
            text.value = event.currentTarget.value;
          }}
        />
      </div>
      <Wrong text={list.error.value} />
      {list.data.value && all.length === 0 ? (
        <p class="empty">{wanted ? "No tenant matches." : "No tenants yet."}</p>
      ) : (
        <DataTable
          label="Tenants"
          columns={COLUMNS}
          rows={tree(all)}
          id={([tenant]) => tenant.id}
          by={by}
        />
      )}
      <p class="legend">
        <span class="key-box">
          <i class="swatch accent" /> GPUs in use
        </span>
        <span class="key-box">
          <i class="tick quota" /> quota
        </span>
        <span class="key-box">
          <i class="tick fair" /> current fair share
        </span>
      </p>
    </>
  );
}
