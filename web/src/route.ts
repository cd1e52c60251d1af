// route.ts - which page is shown: what is behind the # of the address
import { signal } from "@preact/signals";

export interface Route {
  page: string;
  id: string | null;
  query: URLSearchParams;
}

/** '#/jobs/job-1?task=2' in its parts. */
export function parse(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const [page = "", id] = path.split("/").map(decodeURIComponent);
  return { page: page || "cluster", id: id || null, query: new URLSearchParams(query) };
}

export const route = signal<Route>(parse(location.hash));

addEventListener("hashchange", () => {
  route.value = parse(location.hash);
});

export function go(hash: string): void {
  location.hash = hash;
}
