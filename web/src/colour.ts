// colour.ts - a color for each tenant, stable as long as the page is open
import { computed } from "@preact/signals";
import { tenants } from "./state";

const COLOURS = 10;

/** Tenants by their position in the list, so that neighbors differ. */
const places = computed(() => new Map(tenants.value.map((tenant, place) => [tenant.id, place])));

/** The name of a color in the style sheet; other tenants' work has none of its own. */
export function colourOf(tenantId: string | null | undefined): string {
  if (!tenantId) return "var(--other)";
  const place = places.value.get(tenantId) ?? Number(/\d+$/.exec(tenantId)?.[0] ?? 0);
  return `var(--tenant-${place % COLOURS})`;
}
