// lost.mjs - the service goes and comes back while the page is open; says how far it is by lines
import { createInterface } from "node:readline";
import { browse } from "./browse.mjs";

browse(async ({ given, step, open }) => {
  const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  const page = await open();
  await step("the page is live", async () => {
    await page.goto(given.url);
    await page.waitForSelector(".status.live");
  });
  console.log("live");
  await lines.next();
  await step("a service that is gone is said to be", async () => {
    await page.waitForSelector(".status.polling");
    await page.waitForSelector(".trouble");
    await page.waitForFunction(() => document.title.includes("not connected"));
  });
  console.log("lost");
  await lines.next();
  await step("what happened meanwhile is there when it is back", async () => {
    await page.waitForSelector(".status.live", { timeout: 20000 });
    await page.waitForSelector('.side a:has-text("meanwhile")');
    await page.waitForSelector(".trouble", { state: "detached" });
    await page.waitForFunction(() => document.title.includes("free"));
  });
  process.stdin.destroy();
});
