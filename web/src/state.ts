// state.ts - who is signed in, what happens, and how it reaches the parts that show it
import { computed, effect, signal } from "@preact/signals";
import { ApiError, get, refused, request, setToken, token } from "./api";
import * as cluster from "./cluster";
import { touch } from "./resource";
import { go, parse, route } from "./route";
import * as stream from "./stream";
import { joinTabs, leaveTabs } from "./tabs";
import type { Event, Figures, Session, Tenant } from "./types";

export const session = signal<Session | null>(null);
export const trouble = signal<string | null>(null);
export const tenants = signal<Tenant[]>([]);
export const events = signal<Event[]>([]);
/** Advances once a second, for texts that say how long ago something was. */
export const now = signal(Date.now());

export const mayChange = computed(() => session.value?.may_change ?? false);
/** Changes tokens, and jobs of others: of all tenants, or of its own. */
export const mayManage = computed(() =>
  ["admin", "tenant_admin"].includes(session.value?.role ?? ""),
);
export const isAdmin = computed(() => session.value?.role === "admin");

const EVENTS_KEPT = 200;

setInterval(() => {
  if (!document.hidden) now.value = Date.now();
}, 1000);

export function tenantName(id: string | null | undefined): string {
  if (!id) return "–";
  return tenants.value.find((tenant) => tenant.id === id)?.name ?? id;
}

let tenantsTimer = 0;
function loadTenants(): void {
  if (tenantsTimer) return;
  tenantsTimer = window.setTimeout(async () => {
    tenantsTimer = 0;
    const page = await get<{ tenants: Tenant[] }>("/tenants?limit=1000").catch(() => null);
    if (page) tenants.value = page.tenants;
  }, 300);
}

let clusterTimer = 0;
/** Reloads the nodes, at most about once a second. */
function loadCluster(): void {
  if (clusterTimer) return;
  clusterTimer = window.setTimeout(() => {
    clusterTimer = 0;
    cluster.load().catch(complain);
  }, 400);
}

let nodesTimer = 0;
/** Jobs that start and end change what nodes have free; only the page of nodes shows that. */
function loadNodes(): void {
  if (nodesTimer || parse(location.hash).page !== "nodes") return;
  nodesTimer = window.setTimeout(() => {
    nodesTimer = 0;
    cluster.loadNodes().catch(complain);
  }, 700);
}

effect(() => {
  if (route.value.page === "nodes" && cluster.loaded.peek()) loadNodes();
});

function complain(error: Error): void {
  if (!(error instanceof ApiError && error.status === 401)) trouble.value = error.message;
}

function keepEvent(event: Event): void {
  if (events.value.some((one) => one.seq === event.seq)) return;
  events.value = [event, ...events.value].slice(0, EVENTS_KEPT);
}

const listener: stream.Listener = {
  message(message) {
    if (message.type === "gpus") {
      const told = message as unknown as Parameters<typeof cluster.takeGpus>[0];
      cluster.takeGpus(told);
      if (told.gpus.length > 0) loadNodes();
      return;
    }
    if (message.type === "metrics") {
      cluster.takeFigures(message as unknown as Figures);
      return;
    }
    keepEvent(message as unknown as Event);
    if (message.topic === "nodes") loadCluster();
    else if (message.topic !== "tenants") loadNodes();
    if (message.topic === "tenants") loadTenants();
    touch(message.topic);
  },
  stale() {
    trouble.value = null;
    cluster.load().catch(complain);
    loadTenants();
    touch();
  },
  failed() {
    // A browser does not say why; a plain request does.
    get<Session>("/session").catch(complain);
  },
};

const RETURN = "gpu-scheduler-return";

/** Notes the page that is shown, for when the provider sends the browser back. */
export function rememberPage(): void {
  if (route.value.page !== "signin") sessionStorage.setItem(RETURN, location.hash);
}

/** Begins with the sign-in of another tab, if there is one. */
export async function open(): Promise<void> {
  await joinTabs(forget);
  await begin();
  const page = sessionStorage.getItem(RETURN);
  sessionStorage.removeItem(RETURN);
  if (page?.startsWith("#/") && session.value) go(page);
}

/** Finds out who we are, and begins to listen. */
export async function begin(): Promise<void> {
  try {
    session.value = await get<Session>("/session");
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) return;
    trouble.value = (error as Error).message;
    setTimeout(begin, 2000);
    return;
  }
  trouble.value = null;
  refused.value = false;
  stream.close();
  stream.open(listener);
}

/** A token of the service, or a JWT: three parts with dots between them. */
export function looksComplete(text: string): boolean {
  return /^gst_[\w-]{20,}$/.test(text) || /^[\w-]+\.[\w-]+\.[\w-]+$/.test(text);
}

/** The reason for which the token is not taken, or null. */
export async function signIn(text: string, keep: boolean): Promise<string | null> {
  if (!looksComplete(text))
    return "This is not a complete token: one begins with gst_, or is a JWT. Copy all of it.";
  setToken(text, keep);
  try {
    session.value = await get<Session>("/session");
  } catch (error) {
    setToken(null);
    if (error instanceof ApiError && error.status === 401)
      return "The token is not valid: it was mistyped or revoked, or it has expired. Ask an administrator for a new one.";
    return (error as Error).message;
  }
  cluster.clear();
  events.value = [];
  await begin();
  return null;
}

/** Where the provider ends its own session; null where there is none to end. */
async function endSession(): Promise<string | null> {
  try {
    const ended = await request<{ provider_url: string | null }>("POST", "/logout", {});
    return ended.provider_url;
  } catch (error) {
    // It may have ended by itself.
    if (error instanceof ApiError && error.status === 401) return null;
    throw error;
  }
}

export async function signOut(): Promise<void> {
  if (!token.value && session.value?.single_sign_on) {
    try {
      const url = await endSession();
      leaveTabs();
      forget();
      if (url) location.assign(url);
    } catch (error) {
      trouble.value = (error as Error).message;
    }
    return;
  }
  leaveTabs();
  forget();
}

/** Forgets who was signed in, and all that they saw. */
function forget(): void {
  setToken(null);
  stream.close();
  session.value = null;
  cluster.clear();
  events.value = [];
  tenants.value = [];
  refused.value = false;
  begin();
}

export const signedIn = computed(
  () => token.value !== null || session.value?.single_sign_on === true,
);
