// openai_client.mjs URL MODEL ACT... - like real_clients.py, by openai for Node.js, of build/node
import { createRequire } from "node:module";

const require = createRequire(new URL("../../../build/node/", import.meta.url));
const { OpenAI } = require("openai");
const [url, model, ...acts] = process.argv.slice(2);
const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", maxRetries: 0, timeout: 120000 });
const hello = { model, max_tokens: 8, messages: [{ role: "user", content: "hello" }] };

const doing = {
  async chat() {
    const answer = await client.chat.completions.create(hello);
    return [answer.choices[0].message.content, answer.usage.completion_tokens];
  },
  async stream() {
    let text = "";
    for await (const chunk of await client.chat.completions.create({ ...hello, stream: true }))
      text += chunk.choices[0]?.delta?.content ?? "";
    return text;
  },
  async error() {
    try {
      await client.chat.completions.create({ ...hello, model: "nothing" });
    } catch (refused) {
      return [refused.status, refused.code];
    }
    return null;
  },
  async cancel() {
    const stream = await client.chat.completions.create({
      ...hello, stream: true, mock: { tokens: 10000, gap: 0.02 } });
    for await (const chunk of stream) {
      stream.controller.abort();
      return chunk.object;
    }
    return null;
  },
};

/** What a call is refused with, and after how many seconds. */
async function refused(act) {
  const began = performance.now();
  let told = "it was answered";
  try {
    await act();
  } catch (error) {
    if (!(error instanceof OpenAI.APIError)) throw error;
    told = String(error.message);
  }
  return [told, (performance.now() - began) / 1000];
}
doing.late = () => refused(doing.chat);
doing.late_stream = () => refused(doing.stream);

const result = {};
for (const act of acts) result[act] = await doing[act]();
console.log(JSON.stringify(result));
