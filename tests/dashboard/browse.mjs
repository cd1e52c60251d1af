// browse.mjs - a browser for the tests of the dashboard: steps, and what they found, as JSON
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(new URL("../../web/package.json", import.meta.url));
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

/** Runs `walk` with what it needs; prints {"steps": {name: {ok, ...}}} at the end. */
export async function browse(walk) {
  const given = JSON.parse(process.argv[2]);
  const browser = await chromium.launch({
    executablePath: given.chromium,
    args: ["--no-sandbox", "--disable-background-networking", "--disable-dev-shm-usage"],
  });
  const steps = {};
  const noise = [];
  const strangers = [];
  const step = async (name, run) => {
    const began = Date.now();
    try {
      const found = await run();
      steps[name] = { ok: true, found: found ?? null, ms: Date.now() - began };
    } catch (error) {
      steps[name] = { ok: false, error: String(error?.message ?? error), ms: Date.now() - began };
    }
  };
  /** A tab that notes what the console says and whom it talks to. */
  const open = async (options = {}) => {
    const context = await browser.newContext({
      viewport: { width: 1440, height: 900 },
      colorScheme: "light",
      ...options,
    });
    context.setDefaultTimeout(30_000);
    const page = await context.newPage();
    page.on("console", (message) => {
      // Chromium says so of every answer that is no success; some are asked for here.
      const asked = /status of (401|400|403|404|422)/.test(message.text());
      if (["error", "warning"].includes(message.type()) && !asked) noise.push(message.text());
    });
    page.on("pageerror", (error) => noise.push(error.message));
    page.on("request", (request) => {
      if (!request.url().startsWith(given.url)) strangers.push(request.url());
    });
    return page;
  };
  /** What axe finds wrong. The policy of the page lets no script in but its own, so it is let
   * in by the browser's debugger. */
  const inspect = async (page, only) => {
    await page.evaluate(axe);
    const found = await page.evaluate(
      (rules) => window.axe.run(document, { resultTypes: ["violations"], ...rules }),
      only ? { runOnly: { type: "rule", values: only } } : {},
    );
    return found.violations.map(
      (one) =>
        `${one.id}: ${one.help}: ${one.nodes.map((node) => node.html.slice(0, 160)).slice(0, 3)}`,
    );
  };
  try {
    await walk({ given, step, open, inspect });
  } finally {
    await browser.close();
  }
  console.log(JSON.stringify({ steps, noise, strangers }));
}

export function check(truth, sentence) {
  if (!truth) throw new Error(sentence);
}

/** Waits until `test` gives something true, which is returned. */
export async function until(test, what, seconds = 30) {
  const end = Date.now() + seconds * 1000;
  for (;;) {
    const found = await test();
    if (found) return found;
    if (Date.now() > end) throw new Error(`did not happen: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
