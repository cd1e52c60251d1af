// login.mjs - a person signs in by a provider of OpenID Connect, and out again
import { browse, check, until } from "./browse.mjs";

async function enter(page, given) {
  await page.waitForSelector('input[name="login"]');
  await page.fill('input[name="login"]', given.user);
  await page.fill('input[name="password"]', "any");
  await page.click('button[type="submit"]');
  await page.click('button[type="submit"]:has-text("Continue")');
}

browse(async ({ given, step, open, inspect }) => {
  const page = await open();
  await step("the way to the provider is offered", async () => {
    await page.goto(`${given.url}#/jobs`);
    await page.waitForSelector('a:has-text("Sign in with Example ID")');
    const wrong = await inspect(page);
    check(wrong.length === 0, wrong.join("; "));
  });
  await step("the provider signs in, and the page that was asked for is shown", async () => {
    await page.click('a:has-text("Sign in with Example ID")');
    await enter(page, given);
    await page.waitForURL(/#\/jobs$/);
    await page.waitForSelector("nav");
    await until(() => page.$(".status.live"), "the page is live");
    check((await page.getAttribute(".who", "title")) === `user ${given.user}`, "somebody else");
  });
  await step("scripts cannot read the session", async () => {
    const seen = await page.evaluate(() =>
      JSON.stringify([document.cookie, { ...sessionStorage }, { ...localStorage }]),
    );
    check(!seen.includes("gst_") && !seen.includes("gpu-scheduler="), seen);
  });
  await step("a page that is loaded again is still signed in", async () => {
    await page.reload();
    await until(() => page.$(".status.live"), "the page is live");
  });
  await step("signing out ends the session here and asks the provider", async () => {
    await page.click('button:has-text("Sign out")');
    await page.waitForURL(/\/session\/end/);
    await page.goto(given.url);
    await page.waitForSelector("form.signin");
  });
});
