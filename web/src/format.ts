// format.ts - numbers and times as people read them

/** MiB as '80 GiB', '1.5 GiB', '512 MiB', '1.2 TiB'. */
export function memory(mib: number): string {
  const [value, unit] =
    mib >= 1024 * 1024 ? [mib / 1048576, "TiB"] : mib >= 1024 ? [mib / 1024, "GiB"] : [mib, "MiB"];
  return `${short(value)} ${unit}`;
}

/** At most three digits that say something: 1.25, 12.5, 125. */
export function short(value: number): string {
  const digits = value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return String(Number(value.toFixed(digits)));
}

export function percent(part: number): string {
  return `${Math.round(part * 100)} %`;
}

/** Seconds as '1h 2m', '45s', '3d 4h': two units at most. */
export function duration(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  const units: [number, string][] = [
    [86400, "d"],
    [3600, "h"],
    [60, "m"],
    [1, "s"],
  ];
  const first = units.findIndex(([size]) => whole >= size);
  if (first < 0) return "0s";
  const [size, name] = units[first] as [number, string];
  const next = units[first + 1];
  const rest = next ? Math.floor((whole % size) / next[0]) : 0;
  return `${Math.floor(whole / size)}${name}${next && rest > 0 ? ` ${rest}${next[1]}` : ""}`;
}

/** Milliseconds while they are few: '383 ms', '4.6 s', '1m 5s'. */
export function ms(value: number): string {
  if (value < 1000) return `${Math.round(value)} ms`;
  return value < 10000 ? `${(value / 1000).toFixed(1)} s` : duration(value / 1000);
}

/** '1h2m3.5s' as the service writes it, in seconds; null for what is none. */
export function seconds(text: string | null): number | null {
  if (!text) return null;
  let total = 0;
  for (const [, value, unit] of text.matchAll(/([\d.]+)(ms|d|h|m|s)/g))
    total += Number(value) * { ms: 0.001, d: 86400, h: 3600, m: 60, s: 1 }[unit as "s"];
  return total;
}

export function millis(time: string | null | undefined): number | null {
  return time ? Date.parse(time) : null;
}

/** How long ago, or in how long: '3m ago', 'in 2h', 'now'. */
export function relative(time: string | null | undefined, now: number): string {
  const at = millis(time);
  if (at === null) return "–";
  const away = (at - now) / 1000;
  if (Math.abs(away) < 1) return "now";
  return away > 0 ? `in ${duration(away)}` : `${duration(-away)} ago`;
}

/** A relative time in one unit, for small spaces: 'in 20m'. */
export function about(time: string | null | undefined, now: number): string {
  return relative(time, now).replace(/(\d+[dhms]) \d+[hms]/, "$1");
}

/** The time of day, with the date where that is another one. */
export function clock(time: string | number | null | undefined, now = Date.now()): string {
  if (time === null || time === undefined) return "–";
  const date = new Date(time);
  const two = (n: number) => String(n).padStart(2, "0");
  const day = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  if (date.toDateString() === new Date(now).toDateString()) return day;
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${day}`;
}

/** Two decimals, without a currency: the service knows none. */
export function money(value: number): string {
  return value.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}

/** 'job_started' as 'job started'. */
export function words(name: string): string {
  return name.replaceAll("_", " ");
}

/** A word as splitCommand() reads it back. */
export function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`;
}

/** Splits a line as a shell would, without expanding anything; null: a quote is not closed. */
export function splitCommand(line: string): string[] | null {
  const out: string[] = [];
  let word = "";
  let open = false;
  let quote = "";
  for (let i = 0; i < line.length; i++) {
    const c = line[i] as string;
    if (quote) {
      if (c === quote) quote = "";
      else if (c === "\\" && quote === '"' && i + 1 < line.length) word += line[++i];
      else word += c;
    } else if (c === "'" || c === '"') {
      quote = c;
      open = true;
    } else if (c === "\\" && i + 1 < line.length) {
      word += line[++i];
      open = true;
    } else if (/\s/.test(c)) {
      if (open || word) out.push(word);
      word = "";
      open = false;
    } else word += c;
  }
  if (quote) return null;
  if (open || word) out.push(word);
  return out;
}

/** '20G', '512M', '1.5 GiB' or bare MiB, in MiB; null for what is none of these. */
export function parseMemory(text: string): number | null {
  const match = /^\s*(\d+(?:\.\d+)?)\s*([mgt]?)(?:i?b)?\s*$/i.exec(text);
  if (!match) return null;
  const unit = { "": 1, m: 1, g: 1024, t: 1048576 }[(match[2] ?? "").toLowerCase()] ?? 1;
  return Math.ceil(Number(match[1]) * unit);
}

/** A sentence of the service with its times as this machine shows them. */
export function localTimes(sentence: string): string {
  return sentence.replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, (time) => clock(time));
}
