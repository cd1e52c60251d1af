// stream.mjs - the browser's own WebSocket against /api/v1/stream
import { browse, check } from "./browse.mjs";

browse(async ({ given, step, open }) => {
  const page = await open();
  await page.goto(given.url);
  /** Listens in the page until `count` messages have come. */
  const listen = (query, protocols, count) =>
    page.evaluate(
      ([path, names, most]) =>
        new Promise((resolve, reject) => {
          const all = [];
          const socket = new WebSocket(
            `${location.origin.replace("http", "ws")}/api/v1/stream${path}`,
            names,
          );
          setTimeout(() => reject(new Error(`only ${JSON.stringify(all)} came`)), 8000);
          socket.onerror = () => resolve("refused");
          socket.onmessage = (event) => {
            all.push(JSON.parse(event.data));
            if (all.length < most) return;
            socket.close();
            resolve(all);
          };
        }),
      [query, protocols, count],
    );
  const bearer = ["gpu-scheduler", `bearer.${given.admin}`];
  await step("it is refused without a token", async () => {
    check((await listen("?topics=jobs", ["gpu-scheduler"], 1)) === "refused", "it was let in");
  });
  await step("it goes on behind a number", async () => {
    const [hello] = await listen("?topics=jobs", bearer, 1);
    check(hello.type === "hello" && hello.seq > 3, JSON.stringify(hello));
    const all = await listen(`?topics=jobs&since=${hello.seq - 3}`, bearer, 3);
    check(all[0].type === "hello", "the first is no greeting");
    check(all[1].seq > hello.seq - 3 && all[2].seq > all[1].seq, JSON.stringify(all));
    check(
      all.slice(1).every((one) => one.topic === "jobs"),
      "another topic came",
    );
  });
  await step("GPUs are told as they change", async () => {
    const all = await listen("?topics=gpus", bearer, 2);
    check(all[1].type === "gpus" && Object.keys(all[1].samples).length > 0, JSON.stringify(all));
    check(
      Object.values(all[1].samples).every((one) => one.length === 4),
      "a sample has four numbers",
    );
  });
  await step("an unknown topic is refused", async () => {
    check((await listen("?topics=weather", bearer, 1)) === "refused", "it was let in");
  });
});
