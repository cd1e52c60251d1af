import assert from "node:assert/strict";
import { test } from "node:test";
import {
  clock,
  duration,
  localTimes,
  memory,
  parseMemory,
  relative,
  seconds,
  short,
  splitCommand,
} from "../src/format";

test("memory has three digits and the largest unit that fits", () => {
  assert.equal(memory(512), "512 MiB");
  assert.equal(memory(1536), "1.5 GiB");
  assert.equal(memory(81920), "80 GiB");
  assert.equal(memory(81320), "79.4 GiB");
  assert.equal(memory(5 * 1048576), "5 TiB");
});

test("a number is as short as it can be", () => {
  assert.equal(short(1), "1");
  assert.equal(short(0.254), "0.25");
  assert.equal(short(123.4), "123");
});

test("a duration has two units at the most", () => {
  assert.equal(duration(0), "0s");
  assert.equal(duration(59.6), "1m");
  assert.equal(duration(3725), "1h 2m");
  assert.equal(duration(90000), "1d 1h");
});

test("a duration of the service is read back", () => {
  assert.equal(seconds("1h2m3.5s"), 3723.5);
  assert.equal(seconds("250ms"), 0.25);
  assert.equal(seconds(null), null);
});

test("a time is told from now", () => {
  const now = Date.parse("2026-01-31T12:00:00Z");
  assert.equal(relative("2026-01-31T11:57:00Z", now), "3m ago");
  assert.equal(relative("2026-01-31T14:00:00Z", now), "in 2h");
  assert.equal(relative("2026-01-31T12:00:00Z", now), "now");
  assert.equal(relative(null, now), "–");
});

test("a command is split as a shell would", () => {
  assert.deepEqual(splitCommand("sh -c 'echo a  b'"), ["sh", "-c", "echo a  b"]);
  assert.deepEqual(splitCommand('say "a \\"b\\"" c\\ d'), ["say", 'a "b"', "c d"]);
  assert.deepEqual(splitCommand("run ''"), ["run", ""]);
  assert.equal(splitCommand("echo 'open"), null);
});

test("sizes are read as people write them", () => {
  assert.equal(parseMemory("20G"), 20480);
  assert.equal(parseMemory("512 MiB"), 512);
  assert.equal(parseMemory("1.5g"), 1536);
  assert.equal(parseMemory("4096"), 4096);
  assert.equal(parseMemory("much"), null);
});

test("times in a sentence are those of this machine", () => {
  const time = "2019-11-15T03:37:39Z";
  assert.equal(localTimes(`it fits at ${time}, if`), `it fits at ${clock(time)}, if`);
  assert.equal(localTimes("late from 2019-11-15T03:37:39.250Z."), `late from ${clock(time)}.`);
  assert.equal(localTimes("on node-01, GPU 0"), "on node-01, GPU 0");
});
