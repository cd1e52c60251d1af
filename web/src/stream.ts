// stream.ts - live events over the WebSocket: resumes where it was, and reconnects
import { signal } from "@preact/signals";
import { token } from "./api";

export type Status = "connecting" | "live" | "polling" | "off";
// biome-ignore lint/suspicious/noExplicitAny: messages are told apart by who takes them
export type Message = { type: string; topic?: string; seq?: number } & Record<string, any>;

export const status = signal<Status>("off");

const TOPICS = "jobs,nodes,slots,tenants,metrics,gpus";
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 15000;
const POLL_MS = 4000;

/** How long to wait before the n-th try, counted from 0; `chance` is 0 to 1. */
export function backoff(tries: number, chance: number): number {
  const full = Math.min(FIRST_WAIT_MS * 2 ** tries, LONGEST_WAIT_MS);
  return full / 2 + (full / 2) * chance;
}

/** The address to listen at, behind the last event that was seen. */
export function address(location: { protocol: string; host: string }, since: number): string {
  const scheme = location.protocol === "https:" ? "wss:" : "ws:";
  const behind = since > 0 ? `&since=${since}` : "";
  return `${scheme}//${location.host}/api/v1/stream?topics=${TOPICS}${behind}`;
}

export interface Listener {
  message(message: Message): void;
  /** Everything may be different: connected first, or events were missed, or it is time to poll. */
  stale(): void;
  /** A connection could not be made. */
  failed(): void;
}

/** The number of past events to load at first, so that the list is not empty. */
const BEFORE = 30;

let socket: WebSocket | null = null;
let timer = 0;
let polls = 0;
let tries = 0;
let last = 0;

export function close(): void {
  clearTimeout(timer);
  clearInterval(polls);
  polls = 0;
  const old = socket;
  socket = null;
  old?.close();
  status.value = "off";
  tries = 0;
  last = 0;
}

function take(message: Message, listener: Listener): void {
  if (message.type === "hello") {
    tries = 0;
    clearInterval(polls);
    polls = 0;
    status.value = "live";
    // A smaller number is that of another history: what was seen belongs to the old one.
    const now = message.seq ?? 0;
    const resumed = last > 0 && now >= last;
    if (!resumed) last = now;
    listener.stale();
    return;
  }
  if (message.type === "missed") {
    last = message.to as number;
    listener.stale();
    return;
  }
  if (message.seq) last = Math.max(last, message.seq);
  listener.message(message);
}

/** Until a connection stands, what is shown is asked for from time to time. */
function poll(listener: Listener): void {
  if (polls) return;
  status.value = "polling";
  polls = window.setInterval(() => {
    if (!document.hidden) listener.stale();
  }, POLL_MS);
}

export function open(listener: Listener): void {
  const protocols = token.value ? ["gpu-scheduler", `bearer.${token.value}`] : ["gpu-scheduler"];
  if (!polls) status.value = "connecting";
  const mine = new WebSocket(address(location, last), protocols);
  socket = mine;
  mine.onmessage = (event) => {
    if (socket !== mine) return;
    const message = JSON.parse(event.data as string) as Message;
    // The first greeting says how far the numbers go: listen again from a little before.
    if (message.type === "hello" && last === 0 && (message.seq ?? 0) > 1) {
      last = Math.max(1, (message.seq ?? 0) - BEFORE);
      socket = null;
      mine.close();
      open(listener);
      return;
    }
    take(message, listener);
  };
  mine.onclose = () => {
    if (socket !== mine) return;
    socket = null;
    listener.failed();
    poll(listener);
    timer = window.setTimeout(() => open(listener), backoff(tries++, Math.random()));
  };
}
