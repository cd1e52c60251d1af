// api.ts - requests to the service, with the token that was given
import { signal } from "@preact/signals";

const KEY = "gpu-scheduler-token";

export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

/** Kept for as long as a tab of this service is open; longer only if that was asked for. */
export const token = signal<string | null>(
  sessionStorage.getItem(KEY) ?? localStorage.getItem(KEY),
);
/** Whether the service wants a sign-in that it did not get. */
export const refused = signal(false);

/** `keep`: also after the browser was closed. */
export function setToken(value: string | null, keep = false): void {
  token.value = value;
  sessionStorage.removeItem(KEY);
  localStorage.removeItem(KEY);
  if (value) (keep ? localStorage : sessionStorage).setItem(KEY, value);
}

function headers(body: boolean): Record<string, string> {
  const all: Record<string, string> = {};
  if (token.value) all.Authorization = `Bearer ${token.value}`;
  if (body) all["Content-Type"] = "application/json";
  return all;
}

async function fail(response: Response): Promise<never> {
  const told = await response.json().catch(() => null);
  if (response.status === 401) refused.value = true;
  throw new ApiError(
    response.status,
    told?.code ?? "unknown",
    told?.error ?? `the service answered ${response.status}`,
  );
}

async function reach(path: string, options: RequestInit): Promise<Response> {
  try {
    return await fetch(path, options);
  } catch (error) {
    if ((error as Error).name === "AbortError") throw error;
    throw new ApiError(0, "unreachable", "the service cannot be reached");
  }
}

export async function request<T>(method: string, path: string, body?: unknown): Promise<T> {
  const options: RequestInit = { method, headers: headers(body !== undefined) };
  if (body !== undefined) options.body = JSON.stringify(body);
  const response = await reach(`/api/v1${path}`, options);
  if (!response.ok) return fail(response);
  return (await response.json()) as T;
}

export function get<T>(path: string): Promise<T> {
  return request<T>("GET", path);
}

/** The bytes of an answer, and where they end in what there is, if the service says so. */
export async function bytes(
  path: string,
  stop?: AbortSignal,
): Promise<{ data: Uint8Array<ArrayBuffer>; offset: number | null }> {
  const response = await reach(`/api/v1${path}`, {
    headers: headers(false),
    ...(stop ? { signal: stop } : {}),
  });
  if (!response.ok) return fail(response);
  const data = new Uint8Array(await response.arrayBuffer());
  const from = response.headers.get("output-offset");
  return { data, offset: from === null ? null : Number(from) + data.length };
}

/** Text that may continue for as long as the job runs: each piece as it arrives. */
export async function follow(
  path: string,
  piece: (text: string) => void,
  stop: AbortSignal,
): Promise<void> {
  const response = await reach(`/api/v1${path}`, { headers: headers(false), signal: stop });
  if (!response.ok) return fail(response);
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const part = await reader?.read();
    if (!part || part.done) return;
    piece(part.value);
  }
}
