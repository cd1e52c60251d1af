// app.tsx - the frame around every page: names of pages, who is signed in, whether it is live
import { useSignalEffect } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { refused } from "./api";
import { figures } from "./cluster";
import { plural } from "./format";
import { Dialogs } from "./parts/dialog";
import { pageAddress, route, subject } from "./route";
import { isAdmin, mayChange, mayManage, session, signOut, signedIn, trouble } from "./state";
import { status } from "./stream";
import { nextTheme, theme } from "./theme";
import type { Figures } from "./types";
import { ClusterView } from "./views/cluster";
import { DecisionsView } from "./views/decisions";
import { JobView } from "./views/job";
import { JobsView } from "./views/jobs";
import { ModelsView } from "./views/models";
import { NodesView } from "./views/nodes";
import { SignIn } from "./views/signin";
import { SubmitView } from "./views/submit";
import { TenantsView } from "./views/tenants";
import { TimelineView } from "./views/timeline";
import { TokensView } from "./views/tokens";
import { UsageView } from "./views/usage";
import { WindowsView } from "./views/windows";

const PAGES: [string, string][] = [
  ["cluster", "Cluster"],
  ["jobs", "Jobs"],
  ["timeline", "Timeline"],
  ["usage", "Usage"],
  ["nodes", "Nodes"],
  ["tenants", "Tenants"],
  ["models", "Models"],
  ["decisions", "Decisions"],
];

/** Of administrators alone. */
const TOKENS: [string, string] = ["tokens", "Tokens"];

/** Reached from other pages. */
const OTHERS: [string, string][] = [
  ["submit", "Submit"],
  ["windows", "Windows"],
];

function nameOf(page: string): string {
  return [...PAGES, TOKENS, ...OTHERS].find(([name]) => name === page)?.[1] ?? "";
}

const STATUS = {
  live: "Live",
  connecting: "Connecting",
  polling: "Reconnecting: polling every few seconds",
  off: "Not connected",
};

function Page() {
  const { page, id } = route.value;
  if (page === "jobs" && id) return <JobView key={id} id={id} />;
  if (page === "jobs") return <JobsView />;
  if (page === "submit") return <SubmitView />;
  if (page === "timeline") return <TimelineView />;
  if (page === "usage") return <UsageView />;
  if (page === "windows") return <WindowsView />;
  if (page === "tokens") return <TokensView />;
  if (page === "nodes") return <NodesView />;
  if (page === "tenants") return <TenantsView />;
  if (page === "models") return <ModelsView />;
  if (page === "decisions") return <DecisionsView />;
  if (page === "signin") return <SignIn />;
  if (page === "cluster") return <ClusterView />;
  return (
    <div class="empty">
      <h1>There is no page “{page}”.</h1>
      <p>
        <a href="#/cluster">Go to the cluster</a>
      </p>
    </div>
  );
}

function Who() {
  const who = session.value;
  if (!who) return null;
  const role = who.role === "admin" ? "administrator" : (who.tenant ?? who.role);
  return (
    <span class="who" title={who.name}>
      {role}
      {signedIn.value ? (
        <button type="button" class="quiet" onClick={signOut}>
          Sign out
        </button>
      ) : (
        <a href="#/signin">Sign in</a>
      )}
    </span>
  );
}

function Live() {
  return (
    <span class={`status ${status.value}`} role="status" title={STATUS[status.value]}>
      <span class="dot" aria-hidden="true" />
      <span class="status-text">{STATUS[status.value].split(":")[0]}</span>
    </span>
  );
}

function Bar() {
  const [open, setOpen] = useState(false);
  const close = () => setOpen(false);
  const current = route.value.page;
  const label = { system: "system", light: "light", dark: "dark" }[theme.value];
  return (
    <header class="top">
      <a class="brand" href="#/cluster" aria-label="gpu-scheduler, to the cluster">
        <span class="mark" aria-hidden="true">
          <i />
          <i />
          <i />
        </span>
        <span class="brand-name">gpu-scheduler</span>
      </a>
      <button
        type="button"
        class="quiet menu"
        aria-expanded={open}
        aria-controls="pages"
        onClick={() => setOpen(!open)}
      >
        <span aria-hidden="true">☰</span> {nameOf(current) || "Menu"}
      </button>
      <nav
        id="pages"
        aria-label="Pages"
        class={open ? "open" : ""}
        onClick={close}
        onKeyDown={(event) => event.key === "Escape" && close()}
      >
        {[...PAGES, ...(mayManage.value ? [TOKENS] : [])].map(([name, title]) => (
          <a
            href={pageAddress(name)}
            aria-current={current === name ? "page" : undefined}
            key={name}
          >
            {title}
          </a>
        ))}
      </nav>
      <div class="top-end">
        {session.value && <Live />}
        <Who />
        <button
          type="button"
          class="quiet icon"
          onClick={nextTheme}
          aria-label={`Theme: ${label}. Change`}
          title={`Theme: ${label}`}
        >
          <span aria-hidden="true">{{ system: "◐", light: "○", dark: "●" }[theme.value]}</span>
        </button>
        {mayChange.value && (
          <a class="button primary" href="#/submit">
            Submit
          </a>
        )}
      </div>
    </header>
  );
}

/** A summary of the cluster for the title of the tab. */
export function summary(all: Pick<Figures, "available_gpus" | "pending_jobs"> | null): string {
  if (!all) return "";
  return `${plural(all.available_gpus, "GPU")} free, ${all.pending_jobs} waiting`;
}

function titleOf(page: string, id: string | null): string {
  const name = nameOf(page);
  const lost = trouble.value ? "not connected" : summary(figures.value);
  return [subject.value ?? id ?? name, lost, "gpu-scheduler"].filter(Boolean).join(" · ");
}

export function App() {
  const main = useRef<HTMLElement>(null);
  const first = useRef(true);
  const { page, id } = route.value;
  useSignalEffect(() => {
    document.title = titleOf(route.value.page, route.value.id);
  });
  useEffect(() => {
    if (!first.current) {
      main.current?.focus({ preventScroll: true });
      scrollTo(0, 0);
    }
    first.current = false;
  }, [page, id]);
  const gate = refused.value && !session.value;
  return (
    <>
      <a
        class="skip"
        href="#main"
        onClick={(event) => {
          event.preventDefault();
          main.current?.focus();
        }}
      >
        Skip to content
      </a>
      <Bar />
      {trouble.value && (
        <p class="trouble" role="alert">
          {trouble.value}
        </p>
      )}
      <main
        id="main"
        tabIndex={-1}
        ref={main}
        class={trouble.value ? "stale" : ""}
        data-role={isAdmin.value ? "admin" : "other"}
      >
        {gate ? <SignIn /> : session.value ? <Page /> : <p class="empty">Loading…</p>}
      </main>
      <Dialogs />
    </>
  );
}
