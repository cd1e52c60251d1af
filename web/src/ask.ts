// ask.ts - a question to a model, through a gateway, and its answer as it comes
import { ApiError, token } from "./api";

/** What an answer is made of. */
export interface Answer {
  text: string;
  /** What it waits for, as the gateway says it. */
  waits: string;
  /** Milliseconds to the first token, and to the last. */
  first: number | null;
  last: number | null;
  tokens: number;
}

export const EMPTY: Answer = { text: "", waits: "", first: null, last: null, tokens: 0 };

interface Chunk {
  choices?: { delta?: { content?: string | null } }[];
  usage?: { completion_tokens?: number } | null;
  error?: { message?: string } | string;
}

/** The answer with one more event: a comment, or a chunk that came after `ms`. */
export function withEvent(answer: Answer, event: string, ms: number): Answer {
  let next = answer;
  for (const line of event.split(/\r?\n/)) {
    if (line.startsWith(":")) next = { ...next, waits: line.slice(1).trim() };
    if (!line.startsWith("data:") || line.slice(5).trim() === "[DONE]") continue;
    const chunk = JSON.parse(line.slice(5)) as Chunk;
    if (chunk.error)
      throw new ApiError(
        200,
        "model_error",
        typeof chunk.error === "string" ? chunk.error : (chunk.error.message ?? "the model failed"),
      );
    const content = chunk.choices?.[0]?.delta?.content ?? "";
    if (content)
      next = {
        text: next.text + content,
        waits: "",
        first: next.first ?? ms,
        last: ms,
        tokens: next.tokens + 1,
      };
    const counted = chunk.usage?.completion_tokens;
    if (counted !== undefined) next = { ...next, tokens: counted };
  }
  return next;
}

/** Tokens a second after the first one. */
export function pace(answer: Answer): number | null {
  const { first, last, tokens } = answer;
  return first === null || last === null || last <= first || tokens < 2
    ? null
    : ((tokens - 1) * 1000) / (last - first);
}

async function fail(response: Response): Promise<never> {
  const told = (await response.json().catch(() => null)) as Chunk | null;
  const message = typeof told?.error === "string" ? told.error : told?.error?.message;
  throw new ApiError(
    response.status,
    "refused",
    message ?? `the gateway answered ${response.status}`,
  );
}

/** Asks and tells what has come so far, again and again. */
export async function askModel(
  gateway: string,
  model: string,
  question: string,
  told: (answer: Answer) => void,
  stop: AbortSignal,
): Promise<void> {
  const from = performance.now();
  let response: Response;
  try {
    response = await fetch(`${gateway}/v1/chat/completions`, {
      method: "POST",
      headers: {
        "Content-Type": "application/json",
        ...(token.value ? { Authorization: `Bearer ${token.value}` } : {}),
      },
      body: JSON.stringify({
        model,
        stream: true,
        stream_options: { include_usage: true },
        messages: [{ role: "user", content: question }],
      }),
      signal: stop,
    });
  } catch (error) {
    if ((error as Error).name === "AbortError") throw error;
    throw new ApiError(0, "unreachable", `this browser cannot reach the gateway at ${gateway}`);
  }
  if (!response.ok || !response.body) return fail(response);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let answer = EMPTY;
  let rest = "";
  for (;;) {
    const part = await reader.read();
    rest += part.value ?? "";
    const events = rest.split(/\r?\n\r?\n/);
    rest = part.done ? "" : (events.pop() ?? "");
    for (const event of events) answer = withEvent(answer, event, performance.now() - from);
    told(answer);
    if (part.done) return;
  }
}
