// Collections to work on: emoji as pictures, things as features in a table, some with hostile names, and very many things.
"use strict";

const { execFileSync } = require("node:child_process");
const fs = require("node:fs");
const path = require("node:path");
const zlib = require("node:zlib");

const ASSET = path.join(__dirname, "../../../genus-data/assets/emoji.zip");
/** Names that do harm where they are taken for markup. */
const HOSTILE = [
  `<img src=x onerror="window.pwned=1">`, `"><script>window.pwned=1</script>`, `'; window.pwned=1; //`, `</title><svg onload=window.pwned=1>`,
  `javascript:window.pwned=1`, `\u202egpj.exe`, `${"x".repeat(400)}`, `{{constructor.constructor("window.pwned=1")()}}`,
];

/** The files of a ZIP archive whose entries are stored or deflated. */
function* unzip(bytes) {
  let end = bytes.length - 22;
  while (bytes.readUInt32LE(end) !== 0x06054b50) end--;
  let at = bytes.readUInt32LE(end + 16);
  for (let left = bytes.readUInt16LE(end + 10); left > 0; left--) {
    const [method, size, nameLength, extra, comment, offset] = [
      bytes.readUInt16LE(at + 10), bytes.readUInt32LE(at + 20), bytes.readUInt16LE(at + 28), bytes.readUInt16LE(at + 30), bytes.readUInt16LE(at + 32), bytes.readUInt32LE(at + 42)];
    const name = bytes.toString("utf8", at + 46, at + 46 + nameLength);
    const begin = offset + 30 + bytes.readUInt16LE(offset + 26) + bytes.readUInt16LE(offset + 28);
    const data = bytes.subarray(begin, begin + size);
    yield [name, method === 0 ? data : zlib.inflateRawSync(data)];
    at += 46 + nameLength + extra + comment;
  }
}

/** Writes the emoji of some kinds into a folder each, under their own names. */
function emoji(folder, isWanted) {
  fs.mkdirSync(folder, { recursive: true });
  for (const [name, bytes] of unzip(fs.readFileSync(ASSET))) {
    const [kind, rest] = name.split("/");
    const file = rest.slice(rest.indexOf(" ") + 1);
    if (isWanted(kind, file)) fs.writeFileSync(path.join(folder, file), bytes);
  }
}

/** Numbers that look random and are the same every time. */
function random(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

/** Features of a thing of a kind; some are between two kinds. */
function features(kind, next, dim, kinds, doubtful) {
  const row = Array.from({ length: dim }, () => 0.28 * (next() - 0.5));
  row[kind % dim] += 1;
  row[(kind * 7 + 3) % dim] += kind >= dim ? 1 : 0;
  if (doubtful) row[(kind + 1) % Math.min(kinds, dim)] += 0.55 + 0.4 * next();
  return row;
}

/** A table of things of some kinds. */
function table(file, count, kinds, dim, hostile) {
  const next = random(7);
  const out = fs.openSync(file, "w");
  fs.writeSync(out, `id,${Array.from({ length: dim }, (_, at) => `f${at}`).join(",")}\n`);
  let lines = [];
  for (let at = 0; at < count; at++) {
    // Kinds are of very different sizes, as they are in life.
    const kind = Math.floor(kinds * next() ** 1.6);
    const name = hostile && at % 17 === 0 ? HOSTILE[(at / 17) % HOSTILE.length] + (at >= 17 * HOSTILE.length ? ` ${at}` : "") : `thing-${kind}-${at}`;
    lines.push(`"${name.replaceAll('"', '""')}",${features(kind, next, dim, kinds, at % 11 === 0).map((value) => value.toFixed(4)).join(",")}`);
    if (lines.length === 2000) { fs.writeSync(out, `${lines.join("\n")}\n`); lines = []; }
  }
  fs.writeSync(out, `${lines.join("\n")}\n`);
  fs.closeSync(out);
}

/** Makes a collection of a source. */
function collection(genus, folder, source) {
  execFileSync(genus, ["init", folder, "--quiet"], { stdio: "inherit" });
  execFileSync(genus, ["add", folder, source, "--quiet"], { stdio: "inherit" });
  return folder;
}

module.exports = { HOSTILE, collection, emoji, features, random, table };
