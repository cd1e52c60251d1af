// tour.mjs - goes through the dashboard as a person would, on a service that wants a sign-in
import { browse, check, until } from "./browse.mjs";

const COLOUR_RULES = ["color-contrast", "link-in-text-block"];
const PAGES = [
  ...["cluster", "jobs", "timeline", "usage", "nodes", "tenants", "models", "decisions"],
  ...["windows", "tokens", "submit", "tenants/new", "tenants/tenant-1", "models/new"],
];

async function submit(page, fields) {
  await page.click('a.button:has-text("Submit")');
  await page.waitForSelector("form.form");
  await page.selectOption('select[name="tenant_id"]', { label: fields.tenant });
  await page.fill('input[name="name"]', fields.name);
  await page.fill('input[name="command"]', fields.command);
  if (fields.memory) {
    await page.check("text=Share of a GPU, by memory");
    await page.fill('input[name="gpu_memory_mb"]', fields.memory);
  } else {
    await page.check("text=Whole GPUs");
    await page.fill('input[name="gpu_count"]', String(fields.gpus));
  }
  await page.click('form.form button[type="submit"]');
  await page.waitForURL(/#\/jobs\/job-\d+/);
  return page.url().split("/").pop();
}

async function signIn(page, given, token) {
  await page.goto(given.url);
  await page.waitForSelector("form.signin");
  await page.fill('form.signin input[type="password"]', token);
  await page.click('form.signin button[type="submit"]');
  await page.waitForSelector(".picture .node");
}

const state = (page) => page.textContent("main .state");

browse(async ({ given, step, open, inspect }) => {
  const page = await open();
  let waiting = "";
  let blocking = "";

  await step("a wrong token is refused with a sentence", async () => {
    await page.goto(given.url);
    await page.waitForSelector("form.signin");
    await page.fill('form.signin input[type="password"]', "wrong");
    await page.click('form.signin button[type="submit"]');
    check((await page.textContent(".wrong")).length > 10, "there is no sentence");
  });
  await step("a token signs in", async () => {
    await signIn(page, given, given.admin);
    await until(() => page.$(".status.live"), "the page is live");
    check((await page.$$(".picture .gpu")).length === 2, "there are not two GPUs");
  });
  await step("a job is submitted, runs, and its output is read", async () => {
    await submit(page, {
      tenant: "lab",
      name: "hello",
      memory: "20G",
      command: "sh -c 'for i in 1 2 3; do echo step $i; sleep 0.4; done'",
    });
    await until(async () => /running/.test(await state(page)), "it runs");
    await until(async () => /step 1/.test(await page.textContent(".output")), "there is output");
    await until(async () => /completed/.test(await state(page)), "it is completed");
    await until(
      async () => /step 3/.test(await page.textContent(".output")),
      "all of the output is there",
    );
  });
  await step("a job that waits says why, and what it is asked to say step by step", async () => {
    blocking = await submit(page, { tenant: "lab", name: "blocks", gpus: 2, command: "sleep 300" });
    await until(async () => /running/.test(await state(page)), "it runs");
    waiting = await submit(page, { tenant: "lab", name: "waits", gpus: 2, command: "true" });
    const why = await until(async () => {
      const text = await page.textContent(".why");
      return /waits/.test(text) && text;
    }, "the page says why");
    check(/GPU/.test(why), `nothing is said of GPUs: ${why}`);
    await page.click("text=Step by step");
    await until(
      async () => /GPU_FILTER|capacity|asked/i.test(await page.textContent(".why")),
      "the steps are there",
    );
  });
  await step("the queue shows it with a reason", async () => {
    await page.click('nav a:has-text("Jobs")');
    await page.click('.choice button:has-text("Waiting")');
    const row = await page.waitForSelector(`tr:has-text("${waiting}")`);
    const reason = await row.$eval(".reason", (cell) => cell.textContent);
    check(reason.replace("why?", "").trim().length > 5, `the reason is '${reason}'`);
  });
  await step("a job is held and released", async () => {
    await page.goto(`${given.url}/#/jobs/${waiting}`);
    await page.click('button:has-text("Hold")');
    await until(async () => /held/.test(await state(page)), "it is held");
    await page.click('button:has-text("Release")');
    await until(async () => /pending/.test(await state(page)), "it is released");
  });
  await step("the picture shows who holds a GPU", async () => {
    await page.click('nav a:has-text("Cluster")');
    await until(
      async () =>
        (await page.$$eval(
          ".gpu",
          (all) => all.filter((one) => /blocks \(lab\)/.test(one.ariaLabel)).length,
        )) === 2,
      "both GPUs name the job",
    );
    await page.click(".gpu");
    await page.waitForSelector(".inspector .sum");
    const sum = await page.textContent(".inspector .sum");
    check(/≤/.test(sum) && /overhead/.test(sum), `the arithmetic is '${sum}'`);
  });
  await step("the GPU that is looked at is part of the address", async () => {
    const address = page.url();
    check(/#\/cluster\?gpu=/.test(address), `the address is ${address}`);
    await page.goto("about:blank");
    await page.goto(address);
    await page.waitForSelector(".inspector .sum");
  });
  await step("the title says how it is", async () => {
    await page.goto(`${given.url}/#/cluster`);
    await until(async () => /0 GPUs free, \d+ waiting/.test(await page.title()), "it has figures");
    await page.goto(`${given.url}/#/jobs/${blocking}`);
    await until(async () => /^blocks running /.test(await page.title()), "it names the job");
  });
  await step("a job is cancelled after a question", async () => {
    await page.goto(`${given.url}/#/jobs/${blocking}`);
    await page.click('button:has-text("Cancel")');
    await page.click('dialog button:has-text("Cancel the job")');
    await until(async () => /cancelled/.test(await state(page)), "it is cancelled");
    await page.goto(`${given.url}/#/jobs/${waiting}`);
    await until(async () => /completed/.test(await state(page)), "the one that waited has run");
  });
  await step("the timeline has the job", async () => {
    await page.click('nav a:has-text("Timeline")');
    await page.click('button:has-text("Table")');
    await page.waitForSelector('.table td:has-text("blocks")');
    await page.click('button:has-text("Table")');
    await page.waitForSelector(".lanes canvas");
  });
  await step("choices outlive a reload, another page, and the way back", async () => {
    await page.click('nav a:has-text("Jobs")');
    await page.click('.choice button:has-text("Finished")');
    await page.selectOption('select[aria-label="Of which tenant"]', { label: "lab" });
    await page.fill(".search", "blo");
    await page.waitForSelector(`tr:has-text("${blocking}")`);
    check(/show=over&tenant=tenant-\d+&name=blo/.test(page.url()), `it is ${page.url()}`);
    const chosen = async () =>
      (await page.textContent('.choice [aria-pressed="true"]')) +
      (await page.inputValue(".search"));
    await page.reload();
    await page.waitForSelector(`tr:has-text("${blocking}")`);
    check((await chosen()) === "Finishedblo", `after a reload it is ${await chosen()}`);
    await page.click('nav a:has-text("Nodes")');
    await page.waitForSelector(".node-state");
    await page.click('nav a:has-text("Jobs")');
    await page.waitForSelector(`tr:has-text("${blocking}")`);
    check((await chosen()) === "Finishedblo", `after another page it is ${await chosen()}`);
    await page.click('.choice button:has-text("All")');
    await page.goBack();
    await until(async () => (await chosen()) === "Finishedblo", "it goes back");
    await page.goto(`${given.url}/#/jobs`);
    check((await chosen()) === "All", `a plain address gives ${await chosen()}`);
  });
  await step("a node that is not there is said not to be", async () => {
    await page.goto(`${given.url}/#/nodes/nobody`);
    await page.waitForSelector('.wrong:has-text("There is no node nobody")');
  });
  await step("the form has no holes, and no name pushes the rest away", async () => {
    await page.goto(`${given.url}/#/submit`);
    await page.waitForSelector("form.form");
    const heights = await page.$$eval("form.form label:not(:has(textarea))", (all) =>
      all.map((one) => one.clientHeight),
    );
    check(Math.max(...heights) < 90, `fields are ${heights} high`);
    const long = `${"long-name-".repeat(20)}end`;
    const id = await submit(page, { tenant: "lab", name: long, gpus: 1, command: "true" });
    await until(async () => /completed/.test(await state(page)), "it is completed");
    await page.goto(`${given.url}/#/jobs?show=all`);
    await page.waitForSelector(`tr:has-text("${id}")`);
    const [inner, outer] = await page.$eval(".table", (one) => [one.scrollWidth, one.clientWidth]);
    check(inner <= outer, `the table is ${inner} wide in ${outer}`);
  });
  await step("decisions show their arithmetic", async () => {
    await page.click('nav a:has-text("Decisions")');
    await page.click(`.decision:has-text("${blocking}") summary`);
    const sum = await page.textContent(`.decision:has-text("${blocking}") tbody tr`);
    check(/≤/.test(sum), `the arithmetic is '${sum}'`);
  });
  await step("a node is drained and resumed", async () => {
    await page.click('nav a:has-text("Nodes")');
    await page.click('button:has-text("Drain")');
    await page.click('dialog button:has-text("Drain")');
    await page.waitForSelector(".node-state.draining");
    await page.click('nav a:has-text("Cluster")');
    await page.waitForSelector(".node.noted em");
    await page.click('nav a:has-text("Nodes")');
    await page.click('button:has-text("Resume")');
    await page.waitForSelector(".node-state.online");
  });
  await step("what a node has free follows its jobs", async () => {
    const ask = (method, path, body) =>
      page.evaluate(
        async ([method, path, token, body]) => {
          const headers = { Authorization: `Bearer ${token}` };
          const options = { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) };
          return (await fetch(`/api/v1${path}`, options)).json();
        },
        [method, path, given.admin, body],
      );
    const free = (text) =>
      until(async () => (await page.textContent("tbody")).includes(text), `it says ${text}`);
    await page.goto(`${given.url}/#/nodes`);
    await free("2 of 2");
    const made = await ask("POST", "/jobs", {
      tenant_id: "lab",
      name: "holds",
      gpu_count: 1,
      command: ["sleep", "300"],
    });
    await free("1 of 2");
    await ask("DELETE", `/jobs/${made.job_id}`);
    await free("2 of 2");
  });
  await step("a claim stays in its row", async () => {
    const position = await page.evaluate(() => {
      const mark = document.createElement("span");
      mark.className = "decision-type claim";
      document.querySelector("main").append(mark);
      const { position } = getComputedStyle(mark);
      mark.remove();
      return position;
    });
    check(position === "static", `it is ${position}`);
  });
  await step("everything that can be pressed is reached by keyboard", async () => {
    for (const name of PAGES) {
      await page.goto(`${given.url}/#/${name}`);
      await page.waitForSelector("main h1");
      await page.waitForTimeout(250);
      const lost = await page.$$eval(
        "a[href], button, input, select, textarea, summary, [role=region]",
        (all) =>
          all
            .filter((one) => one.tabIndex < 0 && one.checkVisibility() && !one.disabled)
            // Of the bars one is in the order of tabs, and arrows go to the others; the names of
            // nodes lead to the page of nodes.
            .filter((one) => !one.matches(".gpu, .node-name"))
            .map((one) => one.outerHTML.slice(0, 80)),
      );
      check(lost.length === 0, `${name}: ${lost}`);
    }
    await page.goto(`${given.url}/#/jobs`);
    await page.waitForSelector("th .sort");
    let reached = false;
    for (let presses = 0; presses < 60 && !reached; presses++) {
      await page.keyboard.press("Tab");
      reached = await page.evaluate(() => document.activeElement.matches("th .sort"));
    }
    check(reached, "no title of a column is reached");
    await page.keyboard.press("Enter");
    await page.waitForSelector("th[aria-sort]");
  });
  await step("bars are reached by keyboard", async () => {
    await page.click('nav a:has-text("Cluster")');
    await page.focus('.gpu[tabindex="0"]');
    await page.keyboard.press("ArrowRight");
    const second = await page.evaluate(() => document.activeElement.getAttribute("aria-label"));
    check(/^GPU 1 /.test(second), `the focus is on '${second}'`);
    await page.keyboard.press("Enter");
    await page.waitForSelector(".inspector :focus");
    await page.keyboard.press("Escape");
    await until(async () => !(await page.$(".inspector")), "it closes");
  });
  await step("every column sorts, and the order is part of the address", async () => {
    await page.goto(`${given.url}/#/jobs`);
    const first = () => page.textContent("tbody tr th a");
    await page.click('th .sort:has-text("Job")');
    await page.waitForSelector('th[aria-sort="ascending"]');
    const low = await first();
    await page.click('th .sort:has-text("Job")');
    await page.waitForSelector('th[aria-sort="descending"]');
    check((await first()) !== low, `both begin with ${low}`);
    check(/sort=-job/.test(page.url()), `it is ${page.url()}`);
    await page.goto(`${given.url}/#/jobs`);
  });
  await step("the output is searched, and a button says which lines it is in", async () => {
    await page.goto(`${given.url}/#/jobs?show=over`);
    await page.click('a.job-name:text-is("hello")');
    await until(async () => /step 3/.test(await page.textContent(".output")), "there is output");
    await page.fill(".log-search input", "step 2");
    await page.waitForSelector(".log-line.hit.here");
    check((await page.$$(".log-line.hit")).length === 1, "one line is found");
    await page.click('button:has-text("Matches only")');
    check(!(await page.isVisible('.log-line:has-text("step 1")')), "others are hidden");
    const [saved] = await Promise.all([
      page.waitForEvent("download"),
      page.click('button:has-text("Download")'),
    ]);
    check(/^hello-0\.log$/.test(saved.suggestedFilename()), saved.suggestedFilename());
  });
  await step("a window is made, found, deleted", async () => {
    await page.goto(`${given.url}/#/windows`);
    await page.click('summary:has-text("New window")');
    await page.fill('input[name="name"]', "upgrade");
    await page.selectOption('select[name="purpose"]', "maintenance");
    await page.selectOption('select[name="on"]', "node");
    await page.fill('input[name="start"]', "2999-01-31T12:00");
    await page.fill('input[name="length"]', "soon");
    await page.click('form.form button[type="submit"]');
    await page.waitForSelector('.wrong:has-text("length")');
    await page.fill('input[name="length"]', "3h");
    await page.click('form.form button[type="submit"]');
    const row = await page.waitForSelector('tbody tr:has-text("upgrade")');
    const told = await row.textContent();
    check(told.includes("maintenance") && told.includes(given.node), `it is '${told}'`);
    await page.fill(".search", "nothing");
    await page.waitForSelector("text=No window matches.");
    await page.fill(".search", "upgr");
    await page.click('button[aria-label="Delete upgrade"]');
    await page.click('dialog button:has-text("Delete the window")');
    await until(async () => !(await page.$('tbody tr:has-text("upgrade")')), "it is gone");
  });
  await step("the table of the timeline is sorted and searched", async () => {
    await page.goto(`${given.url}/#/timeline?as=table`);
    await page.click('th .sort:has-text("Job or model")');
    await page.waitForSelector('th[aria-sort="ascending"]');
    await page.fill(".search", "blocks");
    await until(
      async () =>
        /^(.*blocks.*\n)+$/.test(
          await page.$$eval("tbody tr", (all) =>
            all.map((one) => `${one.textContent}\n`).join(""),
          ),
        ),
      "only what was searched is left",
    );
    await page.goto(`${given.url}/#/timeline`);
  });
  await step("a tenant is made, changed and deleted", async () => {
    await page.goto(`${given.url}/#/tenants/new`);
    await page.fill('input[name="name"]', "visitors");
    await page.click('form.form button[type="submit"]');
    await page.waitForURL(/#\/tenants\/tenant-\d+/);
    await page.click('summary:has-text("Limits")');
    await page.fill('input[name="max_gpus"]', "3");
    await page.click('form.form button[type="submit"]');
    await until(async () => /none, 3/.test(await page.textContent(".facts")), "the limit is 3");
    await page.click('button:has-text("Delete")');
    await page.click('dialog button:has-text("Delete the tenant")');
    await page.waitForURL(/#\/tenants$/);
  });
  await step("a token is made, shown once and revoked", async () => {
    await page.click('nav a:has-text("Tokens")');
    await page.click('summary:has-text("New token")');
    await page.selectOption('select[name="role"]', "viewer");
    await page.fill('input[name="note"]', "for the wall");
    await page.click('form.form button[type="submit"]');
    const token = await (await page.waitForSelector(".made pre")).textContent();
    check(/^\s*gst_/.test(token), "it is no token");
    await page.click('.made button:has-text("Done")');
    await page.click('tr:has-text("for the wall") button:has-text("Revoke")');
    await page.click('dialog button:has-text("Revoke")');
    await page.waitForSelector('tr:has-text("for the wall")', { state: "detached" });
  });
  await step("the form warns of a job that can never run", async () => {
    await page.goto(`${given.url}/#/submit`);
    await page.fill('input[name="command"]', "true");
    await page.fill('input[name="gpu_count"]', "99");
    await page.waitForSelector('.doubt:has-text("can never run")');
    await page.fill('input[name="gpu_count"]', "1");
    await page.fill('input[name="priority"]', "-5");
    await page.$eval("form.form", (form) => form.setAttribute("novalidate", ""));
    await page.click('form.form button[type="submit"]');
    await page.waitForSelector('input[name="priority"][aria-invalid]:focus');
  });
  await step("what was recorded is there after a reload", async () => {
    await page.goto(`${given.url}/#/usage`);
    await page.waitForSelector(".u-legend");
    await page.reload();
    await page.waitForSelector('.block tr:has-text("lab")');
    await page.waitForSelector('#predicted');
  });
  await step("a page that is not there is said not to be", async () => {
    await page.goto(`${given.url}/#/nonsense`);
    await page.waitForSelector('h1:has-text("There is no page")');
  });
  await step("another tab is signed in too, and gets to where its link points", async () => {
    const tab = await page.context().newPage();
    await tab.goto(`${given.url}/#/jobs/${waiting}`);
    await tab.waitForSelector("main .state");
    await tab.close();
    const other = await open();
    await other.goto(`${given.url}/#/jobs/${waiting}`);
    await other.fill('form.signin input[type="password"]', given.viewer);
    await other.click('form.signin button[type="submit"]');
    await other.waitForSelector("main .state");
    check(other.url().endsWith(waiting), `it is at ${other.url()}`);
    await other.context().close();
  });
  await step("the switch makes it dark", async () => {
    const dark = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const before = await dark();
    await page.click('button[aria-label^="Theme"]');
    await page.click('button[aria-label^="Theme"]');
    check((await page.getAttribute("html", "data-theme")) === "dark", "the theme is not dark");
    check((await dark()) !== before, "the colours are the same");
    await page.click('button[aria-label^="Theme"]');
  });
  for (const scheme of ["light", "dark"])
    await step(`axe finds nothing in ${scheme}`, async () => {
      await page.emulateMedia({ colorScheme: scheme });
      const found = [];
      for (const name of [...PAGES, `jobs/${waiting}`, `nodes/${given.node}`]) {
        await page.goto(`${given.url}/#/${name}`);
        await page.waitForSelector("main h1");
        await page.waitForTimeout(250);
        if (name === "cluster") await page.click(".gpu");
        // What is not about colours is the same in the dark.
        for (const one of await inspect(page, scheme === "dark" ? COLOUR_RULES : null))
          found.push(`${name}: ${one}`);
      }
      check(found.length === 0, found.join("\n"));
    });
  await step("nothing is wider than a phone", async () => {
    await page.setViewportSize({ width: 390, height: 844 });
    for (const name of [...PAGES, `jobs/${waiting}`]) {
      await page.goto(`${given.url}/#/${name}`);
      await page.waitForSelector("main h1");
      await page.waitForTimeout(150);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      check(wide <= 390, `${name} is ${wide} wide`);
    }
    await page.goto(`${given.url}/#/cluster`);
    await page.click("button.menu");
    await page.click('nav.open a:has-text("Jobs")');
    await page.waitForSelector('td[data-label="State"]');
    const outside = await page.$$eval("tbody td", (all) =>
      all.filter((one) => one.getBoundingClientRect().right > 390).map((one) => one.textContent),
    );
    check(outside.length === 0, `off the screen: ${outside}`);
    await page.setViewportSize({ width: 1440, height: 900 });
  });
  await step("a viewer has nothing to press", async () => {
    const other = await open();
    await signIn(other, given, given.viewer);
    check(!(await other.$('a:has-text("Submit")')), "there is a way to submit");
    await other.goto(`${given.url}/#/windows`);
    await other.waitForSelector('h1:has-text("Windows")');
    check(!(await other.$('summary:has-text("New window")')), "there is a way to reserve");
    await other.goto(`${given.url}/#/nodes`);
    await other.waitForSelector(".node-state");
    check(!(await other.$('button:has-text("Drain")')), "there is a way to drain");
    await other.goto(`${given.url}/#/jobs/${waiting}`);
    await other.waitForSelector("main .state");
    check(!(await other.$('button:has-text("Cancel")')), "there is a way to cancel");
    await other.context().close();
  });
  await step("a tenant does not see whose other work is", async () => {
    await submit(page, { tenant: "lab", name: "secret", memory: "10G", command: "sleep 60" });
    await until(async () => /running/.test(await state(page)), "it runs");
    const other = await open();
    await signIn(other, given, given.tenant);
    await until(
      async () =>
        (await other.$$eval(".gpu", (all) => all.map((one) => one.ariaLabel).join())).includes(
          "another tenant",
        ),
      "the bar says 'another tenant'",
    );
    const text = await other.content();
    check(!text.includes("secret"), "the name of the job is told");
    await other.context().close();
  });
  await step("signing out forgets everything", async () => {
    await page.click('button:has-text("Sign out")');
    await page.waitForSelector("form.signin");
    const kept = () => page.evaluate(() => JSON.stringify([sessionStorage, localStorage]));
    check(!(await kept()).includes("token"), `the token is still there: ${await kept()}`);
  });
});
