// models.mjs - the page of a model: how it serves, who waits, and a box that asks it
import { browse, check, until } from "./browse.mjs";

const WIDTHS = [1440, 390];

browse(async ({ given, step, open, inspect }) => {
  const page = await open();

  await step("a question is answered through the gateway", async () => {
    await page.goto(`${given.url}/#/models/${given.model}`);
    const box = await page.waitForSelector(".try textarea");
    check(await page.$eval(".try button", (one) => one.disabled), "nothing can be asked yet");
    await box.fill("What is a GPU?");
    await page.click(".try button");
    await until(
      async () => /First token after/.test(await page.textContent(".try")),
      "the first token was timed",
    );
    check((await page.textContent(".try .answer")).length > 0, "there is no answer");
  });
  await step("the page shows how fast it answers", async () => {
    await until(async () => {
      const text = await page.textContent("main");
      return /first token \d/.test(text) && /answers? in a minute/.test(text);
    }, "first-token times are shown");
  });
  await step("the page shows who waits", async () => {
    await page.goto(`${given.url}/#/models/${given.busy}`);
    await until(
      async () => /administrators\s*3/.test((await page.textContent("main")).replace(/\s+/g, " ")),
      "those who wait are named, with their requests",
    );
  });
  for (const scheme of ["light", "dark"])
    for (const width of WIDTHS)
      await step(`${scheme}, ${width} px wide: nothing is wrong with it`, async () => {
        const one = await open({ viewport: { width, height: 900 }, colorScheme: scheme });
        await one.goto(`${given.url}/#/models/${given.busy}`);
        await one.waitForSelector(".waiting");
        await one.waitForSelector(".try textarea");
        const wide = await one.evaluate(() => document.documentElement.scrollWidth);
        check(wide <= width, `it is ${wide} px wide`);
        const found = await inspect(one);
        check(found.length === 0, found.join("\n"));
        if (given.pictures)
          await one.screenshot({
            path: `${given.pictures}/model-${scheme}-${width}.png`,
            fullPage: true,
          });
        await one.goto(`${given.url}/#/models`);
        await one.waitForSelector(".cards .card");
        if (given.pictures)
          await one.screenshot({ path: `${given.pictures}/models-${scheme}-${width}.png` });
        await one.context().close();
      });
});
