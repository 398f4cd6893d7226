// The page: what is looked at and in which way, the keys, what is said in between.

import { door, link } from "./api.js";
import { takeFiles } from "./add.js";
import { askMerge, askSplit, askWhere, askWho, enlarge, showHistory, showKeys } from "./dialogs.js";
import { MapView } from "./map.js";
import { Queue } from "./queue.js";
import { $, el, themeButton } from "./shared.js";
import { SheetView } from "./sheet.js";
import { store } from "./store.js";
import { Unsure } from "./unsure.js";
import { announce, entryWords, verb } from "./words.js";

/** @import { Note, View } from "./store.js" */
/** @typedef {"groups" | "unsure" | "map"} Way */

const main = $("main");
const queue = /** @type {Queue} */ (main.querySelector("genus-queue"));
const sheet = /** @type {SheetView} */ (main.querySelector("genus-sheet"));
const unsure = /** @type {Unsure} */ (main.querySelector("genus-unsure"));
const map = /** @type {MapView} */ (main.querySelector("genus-map"));
door.ask = askWho;

// What is looked at is in the address, so that a reload comes back to it.

/** @type {Way} */
let way = "groups";
let isRouting = false;

/** @param {Way} next */
function go(next) {
  const isOther = way !== next;
  way = next;
  main.dataset.way = way;
  queue.hidden = way !== "groups";
  unsure.hidden = way !== "unsure";
  map.hidden = way !== "map";
  sheet.hidden = way === "unsure";
  document.querySelectorAll("[data-way]").forEach((one) => {
    if (one instanceof HTMLAnchorElement) one.setAttribute("aria-current", String(one.dataset.way === way));
  });
  if (isOther && way === "unsure") void unsure.open();
  if (isOther && way === "map") void map.open();
  address();
}

function address() {
  if (isRouting) return;
  const { of, group, sort, name } = store.view;
  const parts = new URLSearchParams();
  if (of === "group") parts.set("group", String(group));
  else if (of !== "items") parts.set("items", of);
  if (sort !== "surest") parts.set("sort", sort);
  if (name) parts.set("name", name);
  const next = `#${way}?${parts}`;
  if (location.hash !== next) history.replaceState(null, "", next);
}

/** Looks at what the address says. */
async function route() {
  const [next, text] = location.hash.slice(1).split("?");
  const parts = new URLSearchParams(text ?? "");
  const of = /** @type {View["of"]} */ (["all", "waiting", "noise"].find((of) => of === parts.get("items")) ?? "group");
  const asked = Number(parts.get("group"));
  const group = store.groups.has(asked) ? asked : queue.order[0];
  isRouting = true;
  go(next === "unsure" || next === "map" ? next : "groups");
  isRouting = false;
  const sort = parts.get("sort") ?? "surest";
  const view = { sort: ["surest", "least-sure", "number"].includes(sort) ? sort : "surest", name: parts.get("name") ?? "" };
  if (of === "group" && group !== undefined) await store.look({ of, group, ...view });
  else await store.look({ of: of === "group" ? "all" : of, ...view });
  address();
}

addEventListener("hashchange", () => {
  const next = location.hash.slice(1).split("?")[0];
  if (next === "work") return;
  if (next === "groups" || next === "unsure" || next === "map") go(next);
});
store.addEventListener("view", address);

// On a narrow page the queue and the items are one behind the other.
const narrow = (/** @type {boolean} */ isItems) => main.classList.toggle("at-items", isItems);
queue.addEventListener("chosen", () => narrow(true));
queue.ways?.addEventListener("click", () => narrow(true));
sheet.addEventListener("back", () => { narrow(false); queue.focusList(); });
queue.addEventListener("entered", () => sheet.focusGrid());

// The head.

const [undo, redo] = [/** @type {HTMLButtonElement} */ ($("undo")), /** @type {HTMLButtonElement} */ ($("redo"))];
undo.addEventListener("click", () => store.act({ do: "undo" }));
redo.addEventListener("click", () => store.act({ do: "redo" }));
$("history").addEventListener("click", showHistory);
$("help").addEventListener("click", showKeys);
themeButton($("theme"));
takeFiles($("add"));

store.addEventListener("status", () => {
  const { status } = store;
  if (!status) return;
  undo.disabled = !status.undo || !store.mayLabel;
  redo.disabled = !status.redo || !store.mayLabel;
  undo.title = status.undo ? `Undo ${verb(status.undo)} (Ctrl+Z)` : "Nothing to undo";
  redo.title = status.redo ? `Redo ${verb(status.redo)} (Ctrl+Shift+Z)` : "Nothing to redo";
  const collection = document.querySelector(".collection");
  if (collection) collection.textContent = status.name;
});

const light = $("link");
function tellLink() {
  light.dataset.state = link.isLost ? "lost" : store.changes.length > 0 ? "busy" : "found";
  light.textContent = link.isLost ? "The service is away; trying again …" : store.changes.length > 0 ? "Saving …" : "";
}
link.addEventListener("lost", tellLink);
link.addEventListener("found", tellLink);
store.addEventListener("under-way", tellLink);
store.addEventListener("done", tellLink);

// What is said in between.

store.addEventListener("note", (event) => {
  /** @type {Note} */
  const note = /** @type {CustomEvent} */ (event).detail;
  const box = el("div", { class: `note-box ${note.kind}`, role: note.kind === "wrong" ? "alert" : "status" }, el("span", null, note.text),
    (note.choices ?? []).map(({ text, work }) => el("button", { type: "button", class: "pill", onclick: () => { box.remove(); work(); } }, text)),
    el("button", { type: "button", class: "quiet", "aria-label": "Close", onclick: () => box.remove() }, "✕"));
  const notes = $("notes");
  notes.append(box);
  while (notes.children.length > 3) notes.firstElementChild?.remove();
  if (!note.choices) setTimeout(() => box.remove(), note.kind === "wrong" ? 12000 : 4000);
});
store.addEventListener("heard", (event) => {
  const { detail } = /** @type {CustomEvent} */ (event);
  store.note({ kind: "news", text: `${detail.author} ${entryWords(detail, store.groups)}.` });
});
store.addEventListener("done", (event) => {
  const { action } = /** @type {CustomEvent} */ (event).detail;
  if (action.do === "undo") announce("Undone");
  if (action.do === "redo") announce("Done again");
});

// What is done with the selection, the group and the item.

/** @param {string} what */
function act(what) {
  if (sheet.count === 0) return;
  switch (what) {
    case "move": askWhere(); break;
    case "new": store.act({ do: "move", ...store.chosen() }); store.select([]); break;
    case "confirm": store.act({ do: "confirm", ...store.chosen() }); store.select([]); break;
    case "reject": store.act({ do: "reject", ...store.chosen() }); store.select([]); break;
    case "noise": store.act({ do: "noise", ...store.chosen() }); store.select([]); break;
    default:
  }
  sheet.draw(true);
}

const mergeMarked = () => askMerge([...(queue.marked.size > 0 ? queue.marked : []), ...(store.view.of === "group" && queue.marked.size < 2 ? [store.view.group] : [])], () => queue.unmark());
sheet.addEventListener("do", (event) => act(/** @type {CustomEvent} */ (event).detail));
main.addEventListener("merge", mergeMarked);
main.addEventListener("split", () => askSplit(store.view.group));
main.addEventListener("next-group", () => queue.next());
main.addEventListener("two-names", (event) => askMerge(/** @type {CustomEvent} */ (event).detail));
main.addEventListener("undo-action", (event) => store.act({ do: /** @type {CustomEvent} */ (event).detail ? "redo" : "undo" }));
main.addEventListener("named", async () => {
  await queue.next();
  sheet.naming?.field.focus();
  sheet.naming?.field.select();
});
main.addEventListener("left", () => sheet.focusGrid());
main.addEventListener("found", (event) => sheet.go(store.sheet?.row(/** @type {CustomEvent} */ (event).detail) ?? 0));
sheet.addEventListener("focus-grid", () => sheet.focusGrid());
sheet.addEventListener("enlarge", (event) => enlarge(/** @type {CustomEvent} */ (event).detail, (row) => sheet.go(row)));

// The keys that work anywhere.

addEventListener("keydown", (event) => {
  const target = /** @type {HTMLElement} */ (event.target);
  const isField = target.matches("input:not([type=range]), select, textarea");
  const key = event.key.toLowerCase();
  if (event.ctrlKey || event.metaKey) {
    if (isField && key !== "z" && key !== "y") return;
    if (key === "z" || key === "y") {
      if (isField && /** @type {HTMLInputElement} */ (target).value !== "") return;
      event.preventDefault();
      store.act({ do: key === "y" || event.shiftKey ? "redo" : "undo" });
    } else if (key === "a" && way !== "unsure") {
      event.preventDefault();
      sheet.selectAll();
    }
    return;
  }
  if (isField || event.altKey) return;
  if (way === "unsure" && unsure.key(event)) {
    event.preventDefault();
    return;
  }
  const works = /** @type {Record<string, () => void>} */ ({
    "?": showKeys, h: showHistory, u: () => { go("unsure"); unsure.focus(); }, p: () => go("map"), q: () => { go("groups"); narrow(false); queue.focusList(); },
    i: () => { if (way === "unsure") go("groups"); sheet.focusGrid(); }, j: () => queue.step(1), k: () => queue.step(-1),
    n: () => { if (store.view.of === "group") { sheet.naming?.field.focus(); sheet.naming?.field.select(); } },
    s: () => { if (store.view.of === "group") askSplit(store.view.group); },
    m: () => (event.shiftKey ? mergeMarked() : act("move")), g: () => act("new"), c: () => act("confirm"), r: () => act("reject"), x: () => act("noise"),
    l: () => sheet.slider?.focus(), f: () => sheet.acceptFront(), t: () => sheet.releaseTail(), "/": () => sheet.filter?.focus(), a: () => store.showNews(),
    escape: () => { if (store.selected.size > 0 || store.selectedFilter) store.select([]); else sheet.focusGrid(); },
  });
  const work = works[key];
  if (!work) return;
  event.preventDefault();
  work();
});

try {
  await store.start();
  await route();
  document.body.dataset.ready = "true";
} catch (error) {
  store.note({ kind: "wrong", text: `The page cannot begin: ${error instanceof Error ? error.message : error}.`, choices: [{ text: "Try again", work: () => location.reload() }] });
}
