// many.mjs - 800 GPUs that are measured each second: how much the page does to answer a click
import { browse, check, until } from "./browse.mjs";

const ROUNDS = 5;

/** Acts in the page and waits for the paint: milliseconds that passed, milliseconds that the
 * page's own thread computed, and how many nodes and attributes of the document changed. */
async function timed(page, meter, act) {
  const before = await computed(meter);
  const { passed, changed } = await page.evaluate(
    (source) =>
      new Promise((resolve) => {
        let changed = 0;
        const count = (records) => {
          for (const one of records)
            changed += one.type === "childList" ? one.addedNodes.length + one.removedNodes.length : 1;
        };
        const observer = new MutationObserver(count);
        observer.observe(document.body, {
          subtree: true,
          childList: true,
          attributes: true,
          characterData: true,
        });
        const began = performance.now();
        new Function(source)();
        requestAnimationFrame(() => {
          const channel = new MessageChannel();
          channel.port1.onmessage = () => {
            const passed = performance.now() - began;
            count(observer.takeRecords());
            observer.disconnect();
            resolve({ passed, changed });
          };
          channel.port2.postMessage(0);
        });
      }),
    act,
  );
  return { passed, changed, computed: (await computed(meter)) - before };
}

async function computed(meter) {
  const { metrics } = await meter.send("Performance.getMetrics");
  return 1000 * metrics.find((one) => one.name === "TaskDuration").value;
}

const median = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)];
const button = (text) =>
  `[...document.querySelectorAll("button")].find((one) => one.textContent === "${text}").click()`;

browse(async ({ given, step, open }) => {
  const page = await open();
  // Long tasks are those over 50 ms.
  await page.addInitScript(() => {
    window.longTasks = [];
    new PerformanceObserver((list) => {
      for (const one of list.getEntries()) window.longTasks.push(one.duration);
    }).observe({ type: "longtask", buffered: true });
  });
  await step("all of them are there", async () => {
    const began = Date.now();
    await page.goto(given.url);
    await until(
      async () => (await page.$$(".picture .gpu")).length === 800,
      "800 bars are drawn",
      15,
    );
    await until(() => page.$(".status.live"), "it is live");
    return { drawn_ms: Date.now() - began };
  });
  await step("they change each second", async () => {
    const loads = () =>
      page.$$eval(".meter", (all) => all.map((one) => one.style.getPropertyValue("--load")));
    await page.waitForTimeout(1500);
    const before = await loads();
    await page.evaluate(() => {
      window.longTasks.length = 0;
    });
    await page.waitForTimeout(3000);
    const after = await loads();
    const changed = after.filter((one, place) => one !== before[place]).length;
    const tasks = await page.evaluate(() => window.longTasks);
    check(changed > 300, `only ${changed} of 800 changed`);
    return { changed, long_tasks: tasks.length, longest_ms: Math.round(Math.max(0, ...tasks)) };
  });
  await step("a click changes no more of the page than it has to", async () => {
    const acts = {
      "show temperatures": button("Temperature"),
      "show memory": button("Memory"),
      "choose a GPU": `const bars = document.querySelectorAll(".gpu");
        bars[Math.floor(Math.random() * bars.length)].click()`,
      "filter by name": `const field = document.querySelector(".search");
        field.value = field.value ? "" : "node-5";
        field.dispatchEvent(new Event("input", { bubbles: true }))`,
      "open nodes": 'location.hash = "#/nodes"',
      "open the cluster": 'location.hash = "#/cluster"',
    };
    const meter = await page.context().newCDPSession(page);
    await meter.send("Performance.enable", { timeDomain: "threadTicks" });
    const times = {};
    for (let round = 0; round < ROUNDS; round++)
      for (const [name, act] of Object.entries(acts)) {
        times[name] = [...(times[name] ?? []), await timed(page, meter, act)];
        await page.waitForTimeout(120);
      }
    const found = Object.fromEntries(
      Object.entries(times).map(([name, list]) => [
        name,
        {
          median_ms: Math.round(median(list.map((one) => one.passed))),
          computed_ms: Math.round(median(list.map((one) => one.computed))),
          changed: median(list.map((one) => one.changed)),
        },
      ]),
    );
    // A few changes for each GPU or row that is shown; drawing all of it again would be more.
    const large = Object.values(found).some((one) => one.changed > given.changes_max);
    check(!large, `too much of the page changed: ${JSON.stringify(found)}`);
    return found;
  });
});
