// try-model.tsx - a box that asks a model one question
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { type Answer, EMPTY, askModel, pace } from "../ask";
import { ms, plural, short } from "../format";
import type { Model } from "../types";
import { Wrong } from "./common";

function figures(answer: Answer): string {
  if (answer.first === null) return "";
  const speed = pace(answer);
  return `First token after ${ms(answer.first)}, ${plural(answer.tokens, "token")}${
    speed === null ? "" : `, ${short(speed)} a second`
  }`;
}

export function TryModel({ model }: { model: Model }) {
  const question = useSignal("");
  const answer = useSignal<Answer | null>(null);
  const wrong = useSignal<string | null>(null);
  const running = useSignal<AbortController | null>(null);
  const mounted = useRef(true);
  useEffect(
    () => () => {
      mounted.current = false;
      running.value?.abort();
    },
    [],
  );
  const url = model.gateway_url;
  const send = async (event: Event) => {
    event.preventDefault();
    if (!url || running.value || !question.value.trim()) return;
    const stop = new AbortController();
    running.value = stop;
    wrong.value = null;
    answer.value = EMPTY;
    try {
      await askModel(
        url,
        model.id,
        question.value,
        (soFar) => {
          answer.value = soFar;
        },
        stop.signal,
      );
    } catch (error) {
      if (mounted.current && !stop.signal.aborted) wrong.value = (error as Error).message;
    }
    if (mounted.current) running.value = null;
  };
  const told = answer.value;
  return (
    <section class="card try" aria-labelledby="model-try">
      <h2 id="model-try">Try it</h2>
      {url ? (
        <form onSubmit={send}>
          <label>
            Question
            <textarea
              rows={3}
              value={question.value}
              onInput={(event) => {
                question.value = event.currentTarget.value;
              }}
            />
          </label>
          <p class="try-actions">
            {running.value ? (
              <button type="button" onClick={() => running.value?.abort()}>
                Stop
              </button>
            ) : (
              <button type="submit" class="primary" disabled={!question.value.trim()}>
                Ask
              </button>
            )}
            <span class="muted">
              through <code>{url}</code>
            </span>
          </p>
        </form>
      ) : (
        <p class="muted">
          No gateway that says where it is reached is connected, so nobody can ask here.
        </p>
      )}
      <Wrong text={wrong.value} />
      {told && (
        <>
          <p class="answer" aria-live="polite" aria-label="Answer">
            {told.text}
            {running.value && !told.text && (
              <span class="muted">{told.waits || "Waits for the first token…"}</span>
            )}
          </p>
          <p class="muted">{figures(told)}</p>
        </>
      )}
    </section>
  );
}
