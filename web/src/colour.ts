// colour.ts - a colour for each tenant, the same as long as the page is open
import { computed } from "@preact/signals";
import { tenants } from "./state";

const COLOURS = 10;

/** Tenants by their place in the list, so that neighbours differ. */
const places = computed(() => new Map(tenants.value.map((tenant, place) => [tenant.id, place])));

/** The name of a colour in the style sheet; what belongs to others has none of its own. */
export function colourOf(tenantId: string | null | undefined): string {
  if (!tenantId) return "var(--other)";
  const place = places.value.get(tenantId) ?? Number(/\d+$/.exec(tenantId)?.[0] ?? 0);
  return `var(--tenant-${place % COLOURS})`;
}
