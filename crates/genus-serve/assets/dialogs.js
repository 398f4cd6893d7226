// What is asked in between: where to move, what to merge and split, what was done, which keys there are, who one is.

import { Refused, hasSignedIn, reach, read, signIn, signOut, thumbnail } from "./api.js";
import { el, image, name, number, plural } from "./shared.js";
import { staying, store } from "./store.js";
import { Typeahead } from "./naming.js";
import { faces, mark } from "./queue.js";
import { entryWords, when } from "./words.js";
import { KEYS } from "./keys.js";

/** @import { Done, Entry, Group, Item } from "./api.js" */

/** Opens a dialog; what had the focus gets it back. @param {string} label @param {string} kind @param {...any} content */
export function dialog(label, kind, ...content) {
  const opener = /** @type {HTMLElement | null} */ (document.activeElement);
  const close = el("button", { type: "button", class: "close", "aria-label": "Close", onclick: () => box.close() }, "✕");
  const box = el("dialog", { class: `ask ${kind}`, "aria-label": label, tabindex: "-1" }, ...content, close);
  box.addEventListener("close", () => {
    box.remove();
    if (opener?.isConnected) opener.focus();
    else document.querySelector("genus-sheet")?.dispatchEvent(new Event("focus-grid"));
  });
  box.addEventListener("click", (event) => { if (event.target === box) box.close(); });
  // Keys of the page do not reach through it.
  box.addEventListener("keydown", (event) => event.stopPropagation());
  document.body.append(box);
  box.showModal();
  return box;
}

/** The names of some items that have no pictures, or their pictures. @param {number[]} items @param {number} most */
function few(items, most) {
  const pictures = faces(items, most, 160);
  if (pictures.length > 0) return el("div", { class: "faces" }, pictures);
  const names = items.slice(0, most).map((item) => {
    const row = store.sheet?.row(item);
    return row === undefined ? `#${item}` : store.sheet?.names[row] ?? `#${item}`;
  });
  return el("div", { class: "faces names-only" }, names.map((text) => name(text)));
}

/** Asks where the selection is to go. */
export function askWhere() {
  const { items, filter } = store.chosen();
  const count = items ? items.length : store.sheet?.length ?? 0;
  if (count === 0) return;
  const own = store.view.of === "group" ? store.view.group : null;
  const typed = new Typeahead({
    label: "Where to", placeholder: "A group, or a new name …",
    isMeant: (group) => group.id !== own,
    hint: (group) => `${number(group.items)} ${plural(group.items, "item", "items")}`,
    free: (text) => `New group “${text}”`,
    choose: (text, group) => {
      if (!group && text === "") return;
      box.close();
      store.act({ do: "move", ...(filter ? { filter } : { items }), ...(group ? { to: group.id } : { name: text }) });
    },
    leave: () => box.close(),
  });
  const box = dialog("Move", "where", el("h2", null, `Move ${number(count)} ${plural(count, "item", "items")}`), items ? few(items, 12) : null, typed.element,
    el("p", { class: "soft small" }, "Enter moves them. Without a group of that name, a new one is made."));
  typed.field.focus();
}

/**
 * Asks which groups are to be one, with what is in each of them beside each other.
 * @param {number[]} ids
 * @param {() => void} [done]
 */
export function askMerge(ids, done) {
  let all = [...new Set(ids)].filter((id) => id > 0 && store.groups.has(id));
  /** @type {number | null} */
  let into = null;
  const columns = el("div", { class: "columns", role: "radiogroup", "aria-label": "The name that stays" });
  const words = el("p", { class: "soft", role: "status" });
  const go = el("button", { type: "button", class: "pill strong", onclick: () => {
    if (all.length < 2 || into === null) return;
    box.close();
    store.act({ do: "merge", groups: all, into });
    void store.look({ of: "group", group: into });
    done?.();
  } }, "Merge");
  const typed = new Typeahead({
    label: "Another group", placeholder: "Add another group …", isMeant: (group) => !all.includes(group.id),
    hint: (group) => `${number(group.items)} ${plural(group.items, "item", "items")}`,
    choose: (_, group) => {
      if (!group) return;
      all.push(group.id);
      typed.set("");
      show();
      typed.field.focus();
    },
    leave: () => box.close(),
  });
  /** @type {Map<number, Promise<Group>>} */
  const asked = new Map();
  const show = () => {
    const groups = all.map((id) => store.groups.get(id)).filter((group) => group !== undefined);
    const named = groups.filter((group) => group.named);
    // Of one name it is clear which stays. Of two it is not, and nothing is chosen.
    if (into === null || !all.includes(into)) into = named.length > 1 ? null : (named[0] ?? groups[0])?.id ?? null;
    if (named.length === 1 && into !== named[0].id) into = named[0].id;
    columns.replaceChildren(...groups.map((group) => {
      const radio = el("input", { type: "radio", name: "into", value: group.id, disabled: named.length > 0 && !group.named });
      radio.checked = into === group.id;
      radio.addEventListener("change", () => { into = group.id; tell(); });
      const preview = el("div", { class: "preview" }, few(group.typical, 4));
      if (!asked.has(group.id)) asked.set(group.id, read(`/v1/groups/${group.id}`));
      asked.get(group.id)?.then((whole) => preview.replaceChildren(few(whole.typical, 12))).catch(() => {});
      return el("div", { class: "column" }, el("label", null, radio, mark(group), name(group.name)),
        el("p", { class: "soft small" }, `${number(group.items)} ${plural(group.items, "item", "items")}`), preview,
        all.length > 1 ? el("button", { type: "button", class: "quiet", "aria-label": `Without ${group.name}`, onclick: () => { all = all.filter((id) => id !== group.id); show(); } }, "Leave out") : null);
    }));
    tell();
  };
  const tell = () => {
    const groups = all.map((id) => store.groups.get(id)).filter((group) => group !== undefined);
    const sum = groups.reduce((sum, group) => sum + group.items, 0);
    const stays = into === null ? null : store.groups.get(into);
    const lost = groups.filter((group) => group.named && group.id !== into);
    go.disabled = all.length < 2 || into === null;
    go.textContent = all.length > 1 ? `Merge ${number(all.length)} groups` : "Merge";
    words.replaceChildren(...(all.length < 2 ? ["Add the groups that are the same kind."]
      : !stays ? ["More than one of these has a name: choose the one that stays."]
        : [`${number(sum)} ${plural(sum, "item", "items")} will be `, name(stays.name), lost.length > 0 ? ` and no longer ${lost.map((group) => group.name).join(", ")}` : "", "."]));
  };
  const box = dialog("Merge groups", "merge", el("h2", null, "Merge groups"), typed.element, columns, el("div", { class: "foot" }, words, go));
  show();
  if (all.length > 1) (go.disabled ? columns.querySelector("input") : go)?.focus();
  else typed.field.focus();
}

/** Shows the parts that a group may have, and makes them groups. @param {number} id */
export function askSplit(id) {
  const group = store.groups.get(id);
  if (!group) return;
  /** @type {number[][]} */
  let parts = [];
  let asking = 0;
  const count = el("select", { "aria-label": "How many parts" }, el("option", { value: "" }, "as it comes"), [2, 3, 4, 5, 6, 8, 10, 12].map((many) => el("option", { value: many }, String(many))));
  const list = el("div", { class: "parts", "aria-live": "polite" });
  const go = el("button", { type: "button", class: "pill strong", disabled: true, onclick: () => {
    box.close();
    store.act({ do: "split", group: id, parts });
  } }, "Split");
  const propose = async () => {
    const no = ++asking;
    go.disabled = true;
    list.replaceChildren(el("p", { class: "soft" }, "Looking for parts …"));
    try {
      const body = JSON.stringify({ do: "split", group: id, dry_run: true, ...(count.value ? { count: Number(count.value) } : {}) });
      const answer = await reach("/v1/actions", { method: "POST", headers: { "content-type": "application/json" }, body });
      /** @type {Done} */
      const done = await answer.json();
      if (no !== asking) return;
      parts = done.parts ?? [];
      const stays = staying(parts, store.sheet);
      list.replaceChildren(...parts.map((part, at) => el("section", { class: "part", "aria-label": `Part ${at + 1}` },
        el("h3", null, at === stays ? "Stays" : `Part ${number(at + 1)}`, el("span", { class: "soft" }, ` ${number(part.length)} ${plural(part.length, "item", "items")}`)), few(part, 14))));
      go.textContent = `Split in ${number(parts.length)}`;
      go.disabled = parts.length < 2;
      if (!go.disabled && document.activeElement !== count) go.focus();
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      if (no === asking) list.replaceChildren(el("p", { class: "soft" }, `No parts: ${error.message}.`));
    }
  };
  count.addEventListener("change", propose);
  const box = dialog(`Split ${group.name}`, "split", el("h2", null, "Split ", name(group.name)), el("label", { class: "soft small" }, "Parts: ", count), list, el("div", { class: "foot" }, go));
  void propose();
}

/** What was done, the last first; the page's undo and redo are here as well. */
export function showHistory() {
  const list = el("ol", { class: "log" });
  const more = el("button", { type: "button", class: "pill", hidden: true }, "Earlier");
  let before = 0;
  const row = (/** @type {Entry} */ entry) => el("li", { class: entry.kind === "add" ? "soft" : "", "data-no": entry.no },
    el("time", { datetime: new Date(entry.time).toISOString() }, when(entry.time)), name(entry.author, { class: "author" }), el("span", null, entryWords(entry, store.groups)));
  const load = async () => {
    /** @type {{ entries: Entry[] }} */
    const { entries } = await read(`/v1/log?limit=60${before ? `&before=${before}` : ""}`);
    // What happened while this was read is there already.
    list.append(...entries.filter(({ no }) => !list.querySelector(`[data-no="${no}"]`)).map(row));
    before = entries.at(-1)?.no ?? 0;
    more.hidden = entries.length < 60;
  };
  more.addEventListener("click", load);
  const undo = el("button", { type: "button", class: "pill", onclick: () => store.act({ do: "undo" }) }, "Undo the last");
  const redo = el("button", { type: "button", class: "pill", onclick: () => store.act({ do: "redo" }) }, "Redo");
  const tools = () => {
    undo.disabled = !store.status?.undo || !store.mayLabel;
    redo.disabled = !store.status?.redo || !store.mayLabel;
  };
  const heard = (/** @type {Event} */ event) => {
    const { detail } = /** @type {CustomEvent} */ (event);
    if (!list.querySelector(`[data-no="${detail.no}"]`)) list.prepend(row(detail));
  };
  tools();
  store.addEventListener("status", tools);
  store.addEventListener("logged", heard);
  const box = dialog("History", "drawer", el("h2", null, "History"), el("div", { class: "foot" }, undo, redo), list, more);
  box.addEventListener("close", () => {
    store.removeEventListener("status", tools);
    store.removeEventListener("logged", heard);
  });
  // The keys of undoing work here as well.
  box.addEventListener("keydown", (event) => {
    if (!(event.ctrlKey || event.metaKey)) return;
    const key = event.key.toLowerCase();
    if (key === "z" || key === "y") { event.preventDefault(); store.act({ do: key === "y" || event.shiftKey ? "redo" : "undo" }); }
  });
  void load();
}

/** Which keys there are. */
export function showKeys() {
  dialog("Keys", "keys", el("h2", null, "Keys"), el("div", { class: "key-groups" }, KEYS.map(({ title, keys }) => el("section", null, el("h3", null, title),
    el("dl", null, keys.map(([key, text]) => [el("dt", null, key.split(" ").map((one) => el("kbd", null, one))), el("dd", null, text)]))))),
    hasSignedIn() ? el("button", { type: "button", class: "pill", onclick: async () => { await signOut(); location.reload(); } }, "Sign out") : null).focus();
}

/** One item, large, and why it is where it is: the groups that it is most like. @param {number} at @param {(row: number) => void} left */
export function enlarge(at, left) {
  let row = at;
  const stage = el("div", { class: "stage" });
  const about = el("div", { class: "about" });
  /** @type {Item | null} */
  let item = null;
  const show = async () => {
    const { sheet } = store;
    if (!sheet || sheet.length === 0) { box.close(); return; }
    row = Math.min(Math.max(row, 0), sheet.length - 1);
    const id = sheet.ids[row];
    const pictured = sheet.pictures[row] === "1";
    stage.hidden = !pictured;
    stage.replaceChildren(...(pictured ? [image(thumbnail(id, 640), sheet.names[row])] : []));
    about.replaceChildren(el("h2", null, name(sheet.names[row])));
    item = await read(`/v1/items/${id}`);
    if (store.sheet?.ids[row] !== id || !item) return;
    about.replaceChildren(el("h2", null, name(item.name)), el("p", { class: "soft" }, place(item)), candidates(item.candidates, item.group, give),
      el("p", { class: "soft small steps" }, `${number(row + 1)} of ${number(sheet.length)} · ← → go on · 1–9 put it there`));
  };
  const give = (/** @type {number} */ group) => {
    if (!item) return;
    store.act({ do: "move", items: [item.id], to: group });
    void show();
  };
  const box = dialog("One item, enlarged", "item", el("div", { class: "large" }, stage, about));
  box.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
    if (by !== undefined) {
      event.preventDefault();
      row += by;
      void show();
    } else if (/^[1-9]$/.test(event.key) && item?.candidates[Number(event.key) - 1] && store.mayLabel) {
      give(item.candidates[Number(event.key) - 1].group);
    } else if (event.key === "Enter") {
      box.close();
    }
  });
  box.addEventListener("close", () => left(row));
  box.focus();
  void show();
}

/** Where an item is, in words. @param {Item} item */
export function place(item) {
  const share = item.probability === null ? "" : `, ${Math.round(100 * item.probability)} % likely`;
  if (item.kind === "noise") return "It was said to belong nowhere.";
  if (item.kind === "waiting") return item.group_name ? `It waits; the best guess is ${item.group_name}${share}.` : "It waits: it is like no group.";
  if (item.confirmed) return `In ${item.group_name}: a person said so.`;
  return `In ${item.group_name}${share}${item.bound ? "; a merge or a split keeps it there" : ""}.`;
}

/** The groups that an item is most like, to choose from by number. @param {import("./api.js").Candidate[]} list @param {number | null} own @param {(group: number) => void} choose */
export function candidates(list, own, choose) {
  const most = Math.max(0.01, ...list.map((one) => one.similarity));
  return el("ol", { class: "candidates" }, list.map((one, at) => {
    const group = store.groups.get(one.group);
    return el("li", null, el("button", { type: "button", class: one.group === own ? "own" : "", "data-group": one.group, disabled: !store.mayLabel, onclick: () => choose(one.group) },
      el("kbd", null, String(at + 1)), group ? mark(group) : null, name(one.name),
      el("span", { class: "alike", title: `cosine ${one.similarity.toFixed(2)}` }, el("i", { style: { width: `${Math.max(2, (100 * one.similarity) / most)}%` } })),
      el("span", { class: "soft" }, one.similarity.toFixed(2))));
  }));
}

/** @type {Promise<void> | null} */
let signing = null;

/** Asks for a token until there is one that is good. @returns {Promise<void>} */
export function askWho() {
  signing ??= new Promise((done) => {
    const field = el("input", { type: "password", autocomplete: "current-password", "aria-label": "Token", required: true, placeholder: "genus_…", spellcheck: "false" });
    const wrong = el("p", { class: "offer", role: "alert" });
    const form = el("form", { class: "sign-in" }, el("h1", null, "Genus"), el("p", { class: "soft" }, "Whoever serves this collection gives you a token."),
      el("label", null, el("span", null, "Token"), field), el("button", { type: "submit", class: "pill strong" }, "Sign in"), wrong);
    const box = el("dialog", { class: "ask who", "aria-label": "Sign in" }, form);
    box.addEventListener("cancel", (event) => event.preventDefault());
    box.addEventListener("keydown", (event) => event.stopPropagation());
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const problem = await signIn(field.value.trim()).catch(() => "the service cannot be reached");
      if (problem) {
        wrong.textContent = `Not signed in: ${problem}.`;
        field.select();
        return;
      }
      box.close();
      box.remove();
      signing = null;
      done();
    });
    document.body.append(box);
    box.showModal();
    field.focus();
  });
  return signing;
}

