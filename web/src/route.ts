// route.ts - which page is shown, and how: what is behind the # of the address
import { type Signal, effect, signal } from "@preact/signals";

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

/** The address of a route. */
export function format({ page, id, query }: Route): string {
  const text = query.toString();
  return `#/${page}${id ? `/${encodeURIComponent(id)}` : ""}${text ? `?${text}` : ""}`;
}

export const route = signal<Route>(parse(location.hash));
/** What the page is about, for the title of the tab; null: its name says it. */
export const subject = signal<string | null>(null);

/** How each page was left. */
const left = signal(new Map<string, string>());

addEventListener("hashchange", (event) => {
  const before = parse(new URL(event.oldURL).hash);
  if (!before.id) left.value = new Map(left.value).set(before.page, format(before));
  route.value = parse(location.hash);
});

export function go(hash: string): void {
  location.hash = hash;
}

/** The address of a page, as it was left. */
export function pageAddress(page: string): string {
  return left.value.get(page) ?? `#/${page}`;
}

/** The address with one choice more, or less where it is the usual one. */
export function withChoice(at: Route, name: string, value: string, usual: string): string {
  const query = new URLSearchParams(at.query);
  if (value === usual) query.delete(name);
  else query.set(name, value);
  return format({ ...at, query });
}

/** A choice on a page. It is part of the address: so it can be linked to, is there after a
 * reload, and where `steps` is set the browser's button goes back to the one before. */
export function choice<T extends string>(
  page: string,
  name: string,
  usual: T,
  { among, steps = true }: { among?: readonly T[]; steps?: boolean } = {},
): { value: T } {
  return {
    get value(): T {
      const at = route.value;
      const text = at.page === page && !at.id ? at.query.get(name) : null;
      return text !== null && (!among || among.includes(text as T)) ? (text as T) : usual;
    },
    set value(value: T) {
      const hash = withChoice(parse(location.hash), name, value, usual);
      if (steps) history.pushState(null, "", hash);
      else history.replaceState(null, "", hash);
      route.value = parse(hash);
    },
  };
}

/** A choice of which only a part of the page is drawn: the address follows it, and is asked when
 * somebody goes to another one. */
export function lightChoice<T extends string>(
  page: string,
  name: string,
  usual: T,
  among?: readonly T[],
): Signal<T> {
  const read = (at: Route): T => {
    const text = at.query.get(name);
    return text !== null && (!among || among.includes(text as T)) ? (text as T) : usual;
  };
  const at = parse(location.hash);
  const chosen = signal(at.page === page ? read(at) : usual);
  addEventListener("hashchange", () => {
    const next = parse(location.hash);
    if (next.page === page) chosen.value = read(next);
  });
  effect(() => {
    const value = chosen.value;
    const here = parse(location.hash);
    if (here.page === page && read(here) !== value)
      history.replaceState(null, "", withChoice(here, name, value, usual));
  });
  return chosen;
}
