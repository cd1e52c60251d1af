// tenants.tsx - tenants: what they are owed, may have, use and cost
import { money, short } from "../format";
import { Head, TenantTag, Wrong } from "../parts/common";
import { useResource } from "../resource";
import type { Tenant } from "../types";

function limit(value: number | null): string {
  return value === null || value < 0 ? "no limit" : short(value);
}

/** Parents before what is below them, with how deep each is. */
export function tree(all: Tenant[]): [Tenant, number][] {
  const known = new Set(all.map((tenant) => tenant.id));
  const below = (parent: string | null, depth: number): [Tenant, number][] =>
    all
      .filter(
        (one) => (one.parent_id && known.has(one.parent_id) ? one.parent_id : null) === parent,
      )
      .flatMap((one): [Tenant, number][] => [[one, depth], ...below(one.id, depth + 1)]);
  return below(null, 0);
}

/** What it has, between what it is owed, its fair share and its limit. */
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

function Row({ tenant, depth }: { tenant: Tenant; depth: number }) {
  return (
    <tr>
      <th scope="row" style={`--depth:${depth}`} class="tree">
        <TenantTag id={tenant.id} />
        <span class="muted small"> {tenant.id}</span>
      </th>
      <td class="number">{short(tenant.current_gpus)}</td>
      <td>
        <Scale tenant={tenant} />
      </td>
      <td class="number">{short(tenant.fair_share_gpus)}</td>
      <td class="number">{tenant.quota_gpus === null ? "–" : limit(tenant.quota_gpus)}</td>
      <td class="number">{limit(tenant.max_gpus)}</td>
      <td class="number">{short(tenant.fair_share_weight)}</td>
      <td>{tenant.priority_tier}</td>
      <td class="number">
        <a href={`#/jobs?show=running&tenant=${tenant.id}`}>{tenant.current_jobs}</a> /{" "}
        <a href={`#/jobs?tenant=${tenant.id}`}>{tenant.waiting_jobs}</a>
      </td>
      <td class="number">{short(tenant.total_gpu_hours)}</td>
      <td class="number">
        {money(tenant.month_cost)}
        {tenant.budget_per_month !== null && (
          <span class="muted small"> of {money(tenant.budget_per_month)}</span>
        )}
      </td>
      <td class="number">{money(tenant.total_cost)}</td>
    </tr>
  );
}

export function TenantsView() {
  const list = useResource<{ tenants: Tenant[] }>("/tenants?limit=1000", ["tenants", "jobs"]);
  const all = list.data.value?.tenants ?? [];
  return (
    <>
      <Head title="Tenants" />
      <Wrong text={list.error.value} />
      {list.data.value && all.length === 0 && <p class="empty">No tenants yet.</p>}
      <div class="table" role="region" aria-label="Tenants" tabIndex={0}>
        <table>
          <thead>
            <tr>
              <th scope="col">Tenant</th>
              <th scope="col" class="number">
                GPUs in use
              </th>
              <th scope="col">
                <span class="unseen">As a bar</span>
              </th>
              <th scope="col" class="number">
                Fair share
              </th>
              <th scope="col" class="number">
                Quota
              </th>
              <th scope="col" class="number">
                Limit
              </th>
              <th scope="col" class="number">
                Weight
              </th>
              <th scope="col">Tier</th>
              <th scope="col" class="number">
                Running / waiting
              </th>
              <th scope="col" class="number">
                GPU hours
              </th>
              <th scope="col" class="number">
                Cost this month
              </th>
              <th scope="col" class="number">
                Total cost
              </th>
            </tr>
          </thead>
          <tbody>
            {tree(all).map(([tenant, depth]) => (
              <Row tenant={tenant} depth={depth} key={tenant.id} />
            ))}
          </tbody>
        </table>
      </div>
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
