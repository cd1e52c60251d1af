import assert from "node:assert/strict";
import { test } from "node:test";
import { EMPTY, pace, withEvent } from "../src/ask";
import { queued, serving } from "../src/views/models";

const chunk = (content: string) => `data: ${JSON.stringify({ choices: [{ delta: { content } }] })}`;

test("an answer grows by its events, and the first one stops the clock", () => {
  let answer = withEvent(EMPTY, ": waiting for a replica", 10);
  assert.deepEqual([answer.waits, answer.first], ["waiting for a replica", null]);
  answer = withEvent(answer, chunk("Hel"), 250);
  answer = withEvent(answer, chunk("lo"), 350);
  answer = withEvent(answer, "data: [DONE]", 400);
  assert.deepEqual(answer, { text: "Hello", waits: "", first: 250, last: 350, tokens: 2 });
  assert.equal(pace(answer), 10);
});

test("an event without content is no token, and the server's own count is believed", () => {
  let answer = withEvent(EMPTY, 'data: {"choices":[{"delta":{"role":"assistant"}}]}', 5);
  assert.equal(answer.first, null);
  answer = withEvent(answer, chunk("a"), 7);
  answer = withEvent(answer, 'data: {"choices":[],"usage":{"completion_tokens":9}}', 8);
  assert.deepEqual([answer.tokens, answer.text, answer.first], [9, "a", 7]);
  assert.equal(pace(EMPTY), null);
});

test("an error that comes as an event is thrown with its sentence", () => {
  assert.throws(
    () => withEvent(EMPTY, 'data: {"error":{"message":"the model failed to load"}}', 1),
    /failed to load/,
  );
});

test("how a model serves is said in a line", () => {
  assert.equal(
    serving({
      answers_per_minute: 12,
      first_token_p50_ms: 250,
      first_token_p99_ms: 1500,
      tokens_per_second: 40.256,
    }),
    "12 answers in a minute · first token 250 ms, p99 1.5 s · 40.3 tokens/s",
  );
  assert.equal(
    serving({
      answers_per_minute: 0,
      first_token_p50_ms: null,
      first_token_p99_ms: null,
      tokens_per_second: 0,
    }),
    "",
  );
});

test("requests that wait in gateways are counted, not the places that those ask for", () => {
  const one = { tenant_id: null, requests: 3, oldest_wait_ms: 2000, tokens: 9 };
  assert.equal(queued({ waiting_requests: 5, waiting_tenants: [one] }), 3);
  assert.equal(queued({ waiting_requests: 5 }), 5);
});
