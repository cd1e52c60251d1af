// embed.mjs - prints C source: the files of a built dashboard as a table of struct asset
//   node embed.mjs DIRECTORY
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

const directory = process.argv[2];
const types = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
};

function typeOf(name) {
  const type = types[name.split(".").pop()];
  if (!type) throw new Error(`embed: it is not known what kind of file ${name} is`);
  return type;
}

const lines = ['#include "api/asset.h"', ""];
const rows = [];

function put(symbol, bytes) {
  lines.push(`static const unsigned char ${symbol}[] = {`);
  for (let i = 0; i < bytes.length; i += 32)
    lines.push(`${[...bytes.subarray(i, i + 32)].join(",")},`);
  lines.push("};");
}

function add(name, file) {
  const data = readFileSync(file);
  const place = rows.length;
  put(`data_${place}`, data);
  put(`packed_${place}`, gzipSync(data, { level: 9 }));
  rows.push(
    `\t{ "${name}", "${typeOf(file)}", data_${place}, packed_${place}, sizeof(data_${place}), sizeof(packed_${place}) },`,
  );
}

add("", join(directory, "index.html"));
for (const name of readdirSync(join(directory, "assets")).sort())
  add(name, join(directory, "assets", name));
lines.push(
  "",
  "const struct asset assets[] = {",
  ...rows,
  "\t{ NULL, NULL, NULL, NULL, 0, 0 },",
  "};",
  "",
);
process.stdout.write(lines.join("\n"));
