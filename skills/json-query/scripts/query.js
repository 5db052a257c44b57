#!/usr/bin/env node
"use strict";
// Print the value at a path in a JSON document. Node only, no packages.

const fs = require("fs");

const USAGE = "usage: query.js [--raw] [--keys] PATH [FILE]";

class Refusal extends Error {}

function parsePath(text) {
  const step = /\.?\*|\.?([A-Za-z_$][\w$-]*)|\[(\d+|\*|"(?:[^"\\]|\\.)*")\]/y;
  const steps = [];
  if (text === ".") return steps;
  while (step.lastIndex < text.length) {
    const from = step.lastIndex;
    const found = step.exec(text);
    if (found === null) throw new Refusal(`can't read the path at ${JSON.stringify(text.slice(from))}`);
    const [whole, key, index] = found;
    if (key !== undefined) steps.push(key);
    else if (whole.endsWith("*") || index === "*") steps.push(null);
    else steps.push(JSON.parse(index));
  }
  return steps;
}

// Only own members count: a path such as `constructor` must not find what JavaScript adds to every object.
function member(value, key) {
  return value !== null && typeof value === "object" && Object.hasOwn(value, key) ? [value[key]] : [];
}

function select(document, steps) {
  let values = [document];
  for (const key of steps) {
    values = values.flatMap((value) => {
      if (key !== null) return member(value, key);
      return value !== null && typeof value === "object" ? Object.values(value) : [];
    });
  }
  return values;
}

function describe(value) {
  if (Array.isArray(value)) return value.length;
  return value !== null && typeof value === "object" ? Object.keys(value) : null;
}

function main(argv) {
  const known = new Set(["--raw", "--keys"]);
  const flags = new Set(argv.filter((word) => word.startsWith("--")));
  const words = argv.filter((word) => !word.startsWith("--"));
  const unknown = [...flags].filter((flag) => !known.has(flag));
  if (unknown.length > 0 || words.length < 1 || words.length > 2) throw new Refusal(USAGE);

  const [path, file] = words;
  const steps = parsePath(path);
  let document;
  try {
    document = JSON.parse(fs.readFileSync(file === undefined ? 0 : file, "utf8"));
  } catch (reason) {
    throw new Refusal(`${file === undefined ? "standard input" : file}: ${reason.message}`);
  }
  const values = select(document, steps);
  for (const value of values) {
    const shown = flags.has("--keys") ? describe(value) : value;
    console.log(flags.has("--raw") && typeof shown === "string" ? shown : JSON.stringify(shown, null, 2));
  }
  return values.length > 0 ? 0 : 1;
}

try {
  process.exitCode = main(process.argv.slice(2));
} catch (reason) {
  if (!(reason instanceof Refusal)) throw reason;
  console.error(`query.js: ${reason.message}`);
  process.exitCode = 2;
}
