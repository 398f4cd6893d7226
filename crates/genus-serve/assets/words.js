// What happened, in words.

import { number, plural } from "./shared.js";

/** @import { Entry, Group } from "./api.js" */

const things = (/** @type {number} */ count) => `${number(count)} ${plural(count, "item", "items")}`;

/** @param {unknown} list */
const length = (list) => (Array.isArray(list) ? list.length : /** @type {any} */ (list)?.count ?? 0);

const VERBS = {
  name: "naming", merge: "merging", split: "splitting", move: "moving", confirm: "confirming", reject: "releasing", noise: "noise", add: "adding",
  refresh: "sorting anew", apply: "corrections", label: "adding",
};

/** What an undo or redo is about. @param {string | null | undefined} kind */
export const verb = (kind) => VERBS[/** @type {keyof VERBS} */ (kind)] ?? kind ?? "";

/**
 * An entry of the log as a sentence without its beginning.
 * @param {Entry} entry
 * @param {Map<number, Group>} groups
 */
export function entryWords(entry, groups) {
  const { said } = entry;
  const called = (/** @type {number} */ id) => groups.get(id)?.name ?? `group ${id}`;
  switch (entry.kind) {
    case "add": {
      const born = length(said?.born);
      const parts = [said?.new > 0 ? `${things(said.new)} came in` : "", said?.settled > 0 ? `${things(said.settled)} found a place` : "",
        born > 0 ? `${number(born)} new ${plural(born, "group", "groups")}` : ""].filter(Boolean);
      return parts.join(", ") || "items came in";
    }
    case "name": return `named “${said?.name ?? ""}”`;
    case "merge": return `merged ${number(length(said?.groups))} groups${said?.into ? ` into “${called(said.into)}”` : ""}`;
    case "split": return `split “${called(said?.group)}” in ${number(length(said?.parts))}`;
    case "move": return said?.to ? `moved ${things(entry.items)} to “${called(said.to)}”` : `made ${things(entry.items)} a group${said?.name ? `, “${said.name}”` : ""}`;
    case "confirm": return said?.group ? `confirmed all of “${called(said.group)}”` : `confirmed ${things(entry.items)}`;
    case "reject": return `released ${things(entry.items)}`;
    case "noise": return `called ${things(entry.items)} noise`;
    case "apply": return `corrections to ${things(entry.items)}`;
    case "refresh": return `sorted anew: ${things(entry.items)} moved`;
    case "undo": return `undid ${verb(said?.what)}`;
    case "redo": return `did again: ${verb(said?.what)}`;
    default: return entry.kind;
  }
}

/** When something was, as briefly as it can be said. @param {number} time */
export function when(time) {
  const date = new Date(time);
  const isToday = new Date().toDateString() === date.toDateString();
  const clock = date.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
  return isToday ? clock : `${date.toLocaleDateString("en-GB", { day: "numeric", month: "short" })}, ${clock}`;
}

/** Says something to those who listen instead of looking. @param {string} text */
export function announce(text) {
  const said = document.getElementById("said");
  if (said) said.textContent = text;
}
