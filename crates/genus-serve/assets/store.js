// What the page knows: what the service said, what the hand has done since, and what others did meanwhile.
//
// What is shown is what the service said with the changes that are under way on top. When an answer comes, the change becomes part
// of what was said, or is dropped; so nothing has to be put back by hand.

import { Refused, listen, query, reach, read } from "./api.js";
import { number, plural } from "./shared.js";
import { entryWords } from "./words.js";

/**
 * @import { Action, Done, Entry, Filter, Group, Groups, SheetData, Status } from "./api.js"
 * @typedef {"group" | "waiting" | "noise" | "all" | "items"} Of
 * @typedef {{ of: Of, group: number, items: number[], sort: string, name: string }} View
 * @typedef {{ key: string, body: string, log: number | null }} Change
 * @typedef {{ text: string, kind: "done" | "wrong" | "news", choices?: { text: string, work: () => void }[], about?: string }} Note
 */

/** Items in columns, in the order that they are shown in. */
export class Sheet {
  /** @param {SheetData} data */
  constructor(data) {
    this.log = data.log;
    this.ids = Float64Array.from(data.ids);
    this.names = data.names;
    this.groups = Int32Array.from(data.groups, (group) => group ?? 0);
    this.shares = Int16Array.from(data.probabilities, (share) => share ?? -1);
    this.states = Uint8Array.from(data.states, (letter) => letter.charCodeAt(0));
    this.pictures = data.pictures;
    /** @type {Map<number, number> | null} */
    this.index = null;
  }

  get length() {
    return this.ids.length;
  }

  /** The row of an item. @param {number} item */
  row(item) {
    this.index ??= new Map(Array.from(this.ids, (id, row) => [id, row]));
    return this.index.get(item);
  }

  /** The same with columns of its own for what changes. */
  copy() {
    /** @type {Sheet} */
    const copy = Object.create(Sheet.prototype);
    return Object.assign(copy, this, { groups: this.groups.slice(), states: this.states.slice() });
  }

  /** Only some rows. @param {ArrayLike<number>} rows */
  only(rows) {
    /** @type {Sheet} */
    const copy = Object.create(Sheet.prototype);
    const take = (/** @type {any} */ column) => Array.from(rows, (row) => column[row]);
    return Object.assign(copy, {
      log: this.log, ids: Float64Array.from(take(this.ids)), names: take(this.names), groups: Int32Array.from(take(this.groups)),
      shares: Int16Array.from(take(this.shares)), states: Uint8Array.from(take(this.states)), pictures: take(this.pictures).join(""), index: null,
    });
  }
}

/** What an item is, by the letter of its state. */
export const STATE = { sorted: 115, confirmed: 99, waiting: 119, noise: 110 };

/** How sure the place of an item is, as the service orders by it. @param {Sheet} sheet @param {number} row */
export function sure(sheet, row) {
  if (sheet.states[row] === STATE.confirmed || sheet.states[row] === STATE.noise) return 1;
  if (sheet.shares[row] >= 0) return sheet.shares[row] / 1000;
  return sheet.states[row] === STATE.sorted ? 1 : 0;
}

/** What remains to be done about a group: everything until it has a name, then what is in doubt. @param {Group} group */
export const todo = (group) => (group.named ? group.doubtful : group.items);

const KEPT = "genus-under-way";
const NEW_VIEW = { group: 0, items: /** @type {number[]} */ ([]), sort: "surest", name: "" };

/** Tells `groups`, `order`, `sheet`, `view`, `status`, `selection`, `news`, `note`, `logged` and `map`. */
class Store extends EventTarget {
  /** @type {Status | null} */
  status = null;
  /** What the service said of the groups. @type {Map<number, Group>} */
  saidGroups = new Map();
  groupsLog = 0;
  /** What it said of the items that are looked at. @type {Sheet | null} */
  saidSheet = null;
  /** The same with what is under way. @type {Map<number, Group>} */
  groups = new Map();
  /** @type {Sheet | null} */
  sheet = null;
  /** The groups in the order of the queue, which nothing but the hand changes. @type {number[]} */
  order = [];
  /** Groups that are not in the queue yet. @type {number[]} */
  newGroups = [];
  /** @type {View} */
  view = { of: "all", ...NEW_VIEW };
  /** Changes that the disk does not have yet. @type {Change[]} */
  changes = [];
  /** The selected items, or the filter that says which. */
  selected = /** @type {Set<number>} */ (new Set());
  /** @type {Filter | null} */
  selectedFilter = null;
  /** What others have done to the items that are looked at. @type {{ sheet: Sheet, added: number, gone: number } | null} */
  news = null;
  /** @type {Set<number>} */
  #own = new Set();
  /** @type {Entry[]} */
  #heard = [];
  #sending = false;
  #viewNo = 0;

  /** @param {string} kind @param {any} [detail] */
  tell(kind, detail) {
    this.dispatchEvent(new CustomEvent(kind, { detail }));
  }

  /** @param {Note} note */
  note(note) {
    this.tell("note", note);
  }

  get mayLabel() {
    return this.status !== null && this.status.role !== "read";
  }

  // Reading.

  /** Reads everything for the first time. */
  async start() {
    await Promise.all([this.readStatus(), this.readGroups()]);
    this.arrange();
    try {
      this.changes = JSON.parse(sessionStorage.getItem(KEPT) ?? "[]");
    } catch { /* nothing was under way */ }
    listen(Math.min(this.groupsLog, this.status?.log ?? 0), (entry) => this.#hear(entry));
    void this.#send();
  }

  async readStatus() {
    this.status = await read("/v1/status");
    this.tell("status");
  }

  async readGroups() {
    /** @type {Groups} */
    const { groups, log } = await read("/v1/groups");
    if (log < this.groupsLog) return;
    this.groupsLog = log;
    this.saidGroups = new Map(groups.filter((group) => !group.holds_groups).map((group) => [group.id, group]));
    const known = new Set(this.order);
    this.newGroups = [...this.saidGroups.keys()].filter((id) => !known.has(id));
    this.#draw();
    this.tell("groups");
  }

  /** Puts the queue into order: the largest and most doubtful first. */
  arrange() {
    const all = [...this.saidGroups.values()];
    all.sort((a, b) => todo(b) - todo(a) || b.doubtful - a.doubtful || b.items - a.items || a.id - b.id);
    this.order = all.map((group) => group.id);
    this.newGroups = [];
    this.tell("order");
  }

  /** What of all items is looked at, as the service has it. @returns {Filter} */
  filter() {
    const { of, group, name } = this.view;
    return { ...(of === "group" ? { group } : of === "waiting" || of === "noise" ? { kind: of } : {}), ...(name ? { name } : {}) };
  }

  /** Looks at something else. @param {Partial<View>} view @param {{ keep?: boolean }} [how] */
  async look(view, { keep = false } = {}) {
    const next = keep ? { ...this.view, ...view } : { of: this.view.of, ...NEW_VIEW, sort: this.view.sort, ...view };
    this.view = next;
    this.news = null;
    if (!keep) this.select([]);
    this.tell("view");
    this.tell("news");
    await this.readSheet();
  }

  /** Looks at some items that are known already. @param {Sheet} sheet @param {number[]} items */
  lookAt(sheet, items) {
    this.#viewNo++;
    this.view = { of: "items", group: 0, items, sort: "number", name: "" };
    this.saidSheet = sheet;
    this.news = null;
    this.tell("view");
    this.#draw();
    this.tell("sheet", { anew: true });
    this.tell("news");
  }

  async fetchSheet() {
    const { of, items, sort } = this.view;
    /** @type {SheetData} */
    const data = await read(`/v1/sheet?${query({ ...this.filter(), sort })}`);
    const sheet = new Sheet(data);
    if (of !== "items") return sheet;
    const wanted = new Set(items);
    return sheet.only(Array.from(sheet.ids.keys()).filter((row) => wanted.has(sheet.ids[row])));
  }

  /** Reads the items that are looked at. */
  async readSheet() {
    const no = ++this.#viewNo;
    let sheet;
    try {
      sheet = await this.fetchSheet();
    } catch (error) {
      if (no !== this.#viewNo) return;
      if (error instanceof Refused && error.status === 404) {
        this.note({ kind: "news", text: "This group is no more: it was merged or undone." });
        await this.look({ of: "all" });
        return;
      }
      throw error;
    }
    if (no !== this.#viewNo) return;
    this.saidSheet = sheet;
    this.news = null;
    this.#draw();
    this.tell("sheet", { anew: true });
    this.tell("news");
  }

  // What is shown.

  #draw() {
    this.groups = new Map([...this.saidGroups].map(([id, group]) => [id, { ...group }]));
    this.sheet = this.saidSheet?.copy() ?? null;
    for (const change of this.changes) apply(JSON.parse(change.body), this.groups, this.sheet);
    if (this.sheet && this.changes.length > 0) this.sheet = this.#inView(this.sheet);
  }

  /** Without the items that are elsewhere by now. @param {Sheet} sheet */
  #inView(sheet) {
    const rows = [];
    for (let row = 0; row < sheet.length; row++) if (this.belongs(sheet, row)) rows.push(row);
    return rows.length === sheet.length ? sheet : sheet.only(rows);
  }

  /** @param {Sheet} sheet @param {number} row */
  belongs(sheet, row) {
    const state = sheet.states[row];
    switch (this.view.of) {
      case "group": return sheet.groups[row] === this.view.group && state !== STATE.waiting && state !== STATE.noise;
      case "waiting": return state === STATE.waiting;
      case "noise": return state === STATE.noise;
      default: return true;
    }
  }

  // The selection.

  /** @param {Iterable<number>} items @param {Filter | null} [filter] */
  select(items, filter = null) {
    this.selected = new Set(items);
    this.selectedFilter = filter;
    this.tell("selection");
  }

  /** What is selected, as an action has it. @returns {{ items?: number[], filter?: Filter }} */
  chosen() {
    return this.selectedFilter ? { filter: this.selectedFilter } : { items: [...this.selected] };
  }

  // Doing.

  /**
   * Does something: it shows at once, and is sent.
   * @param {Action} action
   */
  act(action) {
    if (!this.mayLabel) {
      this.note({ kind: "wrong", text: "Your token may look and not change anything." });
      return;
    }
    this.changes.push({ key: crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`, body: JSON.stringify(action), log: null });
    this.#keep();
    this.#show();
    void this.#send();
  }

  #show() {
    this.#draw();
    const shown = this.sheet;
    const left = [...this.selected].filter((item) => shown?.row(item) !== undefined);
    if (left.length < this.selected.size && !this.selectedFilter) this.select(left);
    this.tell("groups");
    this.tell("sheet", { anew: false });
    this.tell("under-way");
  }

  /** A page that is closed in the middle sends what was under way when it is opened again; keys make that safe. */
  #keep() {
    try {
      if (this.changes.length > 0) sessionStorage.setItem(KEPT, JSON.stringify(this.changes));
      else sessionStorage.removeItem(KEPT);
    } catch { /* for this time only */ }
  }

  async #send() {
    if (this.#sending) return;
    this.#sending = true;
    try {
      while (this.changes.length > 0) await this.#sendOne(this.changes[0]);
    } finally {
      this.#sending = false;
      this.#heard.splice(0).forEach((entry) => this.#hear(entry));
    }
  }

  /** @param {Change} change */
  async #sendOne(change) {
    /** @type {Action} */
    const action = JSON.parse(change.body);
    const isOfItems = action.items || action.filter || action.parts;
    change.log ??= (isOfItems ? this.saidSheet?.log : action.do === "undo" || action.do === "redo" ? this.status?.log : this.groupsLog) ?? this.groupsLog;
    this.#keep();
    try {
      const answer = await reach("/v1/actions", {
        method: "POST", body: change.body,
        headers: { "content-type": "application/json", "idempotency-key": change.key, "if-match": `"${change.log}"` },
      });
      /** @type {Done} */
      const done = await answer.json();
      const wasSheet = this.saidSheet?.log === change.log;
      const wasGroups = this.groupsLog === change.log;
      if (done.entry) this.#own.add(done.entry.no);
      if (this.saidSheet) apply(action, this.saidGroups, this.saidSheet);
      else apply(action, this.saidGroups, null);
      if (this.saidSheet) this.saidSheet = this.#inView(this.saidSheet);
      this.#drop(change);
      // What was so before the change is known, so what is so after it is known as well.
      const now = done.entry?.no;
      if (now !== undefined && wasSheet && this.saidSheet) this.saidSheet.log = now;
      if (now !== undefined && wasGroups) this.groupsLog = now;
      this.#show();
      await this.#reconcile(action);
      this.tell("done", { action, entry: done.entry });
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      await this.#refused(change, action, error);
    }
  }

  /** @param {Change} change */
  #drop(change) {
    this.changes = this.changes.filter((other) => other !== change);
    this.#keep();
  }

  /** Reads again what could not be foreseen. @param {Action} action */
  async #reconcile(action) {
    const isForeseen = ["confirm", "reject", "noise"].includes(action.do) || (action.do === "move" && action.to !== undefined)
      || (action.do === "name" && !action.merge) || action.do === "merge";
    await Promise.all([this.readStatus(), this.readGroups()]);
    if (this.newGroups.length > 0 && !isForeseen) this.#takeInNewGroups();
    if (!isForeseen && this.changes.length === 0) {
      if (this.view.of === "group" && !this.saidGroups.has(this.view.group)) {
        await this.look({ of: "group", group: this.order.find((id) => this.saidGroups.has(id)) ?? 0 });
      } else {
        await this.readSheet();
      }
    }
  }

  /** New groups that the hand made stand beside what they came from. */
  #takeInNewGroups() {
    const at = this.order.indexOf(this.view.group);
    this.order.splice(at < 0 ? this.order.length : at + 1, 0, ...this.newGroups);
    this.newGroups = [];
    this.tell("order");
  }

  /** @param {Change} change @param {Action} action @param {Refused} error */
  async #refused(change, action, error) {
    if (error.status === 412) {
      const entries = await this.#since(change.log ?? 0);
      const others = entries.filter((entry) => entry.kind !== "add" && !this.#own.has(entry.no));
      if (others.length === 0) {
        // What came in by itself does not stand in the way.
        change.log = error.log ?? change.log;
        change.key += "+";
        return;
      }
      this.#drop(change);
      this.#show();
      const who = [...new Set(others.map((entry) => entry.author))].join(" and ");
      this.note({
        kind: "wrong",
        text: `Not done, because ${who} was faster: ${others.slice(0, 3).map((entry) => entryWords(entry, this.groups)).join("; ")}.`,
        choices: [{ text: "Do it anyway", work: () => this.#again(action, error.log) }],
      });
    } else {
      this.#drop(change);
      this.#show();
      this.note({ kind: "wrong", text: `Not done: ${error.message}.` });
    }
    await Promise.all([this.readStatus(), this.readGroups()]);
    await this.#lookForNews();
  }

  /** @param {Action} action @param {number | undefined} log */
  #again(action, log) {
    this.act(action);
    const change = this.changes.at(-1);
    if (change) change.log = log ?? null;
  }

  /** What was done after an entry, the first first. @param {number} log @returns {Promise<Entry[]>} */
  async #since(log) {
    /** @type {{ entries: Entry[] }} */
    const { entries } = await read("/v1/log?limit=200");
    return entries.filter((entry) => entry.no > log).reverse();
  }

  // Hearing.

  /** @param {Entry} entry */
  #hear(entry) {
    this.tell("logged", entry);
    if (this.#sending) {
      this.#heard.push(entry);
      return;
    }
    if (this.#own.has(entry.no)) return;
    if (entry.no > this.groupsLog) this.#lookSoon();
    if (entry.kind !== "add") this.tell("heard", entry);
  }

  #willLook = false;
  #isLooking = false;
  #isDue = false;
  #took = 0;

  /** Looks once for everything that is told within a moment, and spends a small part of the time on it. */
  #lookSoon() {
    if (this.#isLooking) this.#isDue = true;
    if (this.#willLook || this.#isLooking) return;
    this.#willLook = true;
    setTimeout(async () => {
      this.#willLook = false;
      this.#isLooking = true;
      const start = performance.now();
      try {
        await Promise.all([this.readStatus(), this.readGroups()]);
        await this.#lookForNews();
      } finally {
        this.#took = performance.now() - start;
        this.#isLooking = false;
      }
      if (!this.#isDue) return;
      this.#isDue = false;
      this.#lookSoon();
    }, Math.max(150, 4 * this.#took));
  }

  /** What is different by now in what is looked at. What is on the screen stays where it is until the hand asks for it. */
  async #lookForNews() {
    if (this.#sending || !this.saidSheet) return;
    const no = this.#viewNo;
    let now;
    try {
      now = await this.fetchSheet();
    } catch (error) {
      if (error instanceof Refused) return;
      throw error;
    }
    if (no !== this.#viewNo || this.#sending) return;
    const before = this.saidSheet;
    let added = 0;
    let kept = 0;
    for (let row = 0; row < now.length; row++) {
      const old = before.row(now.ids[row]);
      if (old === undefined) { added++; continue; }
      kept++;
      // What others said of an item that stays shows where it is.
      before.states[old] = now.states[row];
      before.groups[old] = now.groups[row];
      before.shares[old] = now.shares[row];
    }
    const gone = before.length - kept;
    this.news = added + gone > 0 ? { sheet: now, added, gone } : null;
    if (!this.news) before.log = now.log;
    this.#draw();
    this.tell("sheet", { anew: false });
    this.tell("news");
  }

  /** Shows what others did. */
  showNews() {
    if (!this.news) return;
    this.saidSheet = this.news.sheet;
    this.news = null;
    this.#show();
    this.tell("news");
  }

  /** What has happened to the items that are looked at, in words. */
  newsWords() {
    if (!this.news) return "";
    const { added, gone } = this.news;
    return [added > 0 ? `${number(added)} new ${plural(added, "item", "items")}` : "", gone > 0 ? `${number(gone)} gone elsewhere` : ""].filter(Boolean).join(", ");
  }
}

let passing = 0;

/**
 * Makes a change on what is shown.
 * @param {Action} action
 * @param {Map<number, Group>} groups
 * @param {Sheet | null} sheet
 */
function apply(action, groups, sheet) {
  const put = (/** @type {number} */ row, /** @type {number} */ group, /** @type {number} */ state) => {
    if (!sheet) return;
    count(groups, sheet, row, -1);
    sheet.groups[row] = group;
    sheet.states[row] = state;
    count(groups, sheet, row, 1);
  };
  const rows = () => rowsOf(action, sheet);
  switch (action.do) {
    case "name": {
      const group = groups.get(action.group ?? 0);
      if (!group) return;
      const other = [...groups.values()].find((one) => one.id !== group.id && one.name === action.name);
      if (other && action.merge) merge(groups, sheet, [group.id], other.id);
      else Object.assign(group, { name: action.name, named: true });
      return;
    }
    case "merge": {
      const all = (action.groups ?? []).filter((id) => groups.has(id));
      const into = action.into ?? all.find((id) => groups.get(id)?.named) ?? all[0];
      merge(groups, sheet, all.filter((id) => id !== into), into);
      return;
    }
    case "split":
      (action.parts ?? []).forEach((part, at, parts) => {
        if (at === staying(parts, sheet)) return;
        const to = passingGroup(groups, null);
        for (const item of part) {
          const row = sheet?.row(item);
          if (sheet && row !== undefined) put(row, to, sheet.states[row]);
        }
      });
      return;
    case "move": {
      const to = action.to ?? passingGroup(groups, action.name ?? null);
      rows().forEach((row) => put(row, to, STATE.confirmed));
      return;
    }
    case "confirm":
      if (!action.items && !action.filter) {
        const group = groups.get(action.group ?? 0);
        if (group) Object.assign(group, { confirmed: group.items, doubtful: 0 });
        sheet?.groups.forEach((id, row) => { if (id === action.group && sheet.states[row] === STATE.sorted) sheet.states[row] = STATE.confirmed; });
        return;
      }
      rows().forEach((row) => put(row, sheet?.groups[row] ?? 0, STATE.confirmed));
      return;
    case "reject":
      rows().forEach((row) => put(row, 0, STATE.waiting));
      return;
    case "noise":
      rows().forEach((row) => put(row, 0, STATE.noise));
      return;
    default:
  }
}

/**
 * Which of the parts of a group stays in it: the one with most of what was confirmed, or else the largest.
 * @param {number[][]} parts
 * @param {Sheet | null} sheet
 */
export function staying(parts, sheet) {
  const said = parts.map((part) => part.filter((item) => sheet?.states[sheet.row(item) ?? -1] === STATE.confirmed).length);
  return parts.reduce((best, part, at) => (said[at] > said[best] || (said[at] === said[best] && part.length > parts[best].length) ? at : best), 0);
}

/** The rows that an action is about. @param {Action} action @param {Sheet | null} sheet @returns {number[]} */
function rowsOf(action, sheet) {
  if (!sheet) return [];
  if (action.items) return action.items.map((item) => sheet.row(item)).filter((row) => row !== undefined);
  const { group, kind, name, at_least: least, at_most: most } = action.filter ?? {};
  const rows = [];
  for (let row = 0; row < sheet.length; row++) {
    const state = sheet.states[row];
    if (group !== undefined && (sheet.groups[row] !== group || state === STATE.waiting)) continue;
    if (kind === "waiting" && state !== STATE.waiting) continue;
    if (kind === "noise" && state !== STATE.noise) continue;
    if (name && !sheet.names[row].toLowerCase().includes(name.toLowerCase())) continue;
    if (least !== undefined && sure(sheet, row) < least) continue;
    if (most !== undefined && sure(sheet, row) > most) continue;
    rows.push(row);
  }
  return rows;
}

/** Counts an item in or out of its group. @param {Map<number, Group>} groups @param {Sheet} sheet @param {number} row @param {number} by */
function count(groups, sheet, row, by) {
  const state = sheet.states[row];
  const group = groups.get(sheet.groups[row]);
  if (!group || (state !== STATE.sorted && state !== STATE.confirmed)) return;
  group.items += by;
  if (state === STATE.confirmed) group.confirmed += by;
  else if (sheet.shares[row] >= 0 && sheet.shares[row] < 900) group.doubtful = Math.max(0, group.doubtful + by);
}

/** @param {Map<number, Group>} groups @param {Sheet | null} sheet @param {number[]} from @param {number} into */
function merge(groups, sheet, from, into) {
  const whole = groups.get(into);
  if (!whole) return;
  for (const id of from) {
    const part = groups.get(id);
    if (!part) continue;
    whole.items += part.items;
    whole.confirmed += part.confirmed;
    whole.guessed += part.guessed;
    groups.delete(id);
    sheet?.groups.forEach((group, row) => { if (group === id) sheet.groups[row] = into; });
  }
  // What a person says about a whole group is not in doubt.
  whole.doubtful = 0;
}

/** A group that has no number yet. @param {Map<number, Group>} groups @param {string | null} name */
function passingGroup(groups, name) {
  const id = --passing;
  groups.set(id, {
    id, name: name ?? "a new group", named: name !== null, items: 0, confirmed: 0, doubtful: 0, guessed: 0, colour: "#888888", merged: [], parent: null,
    holds_groups: false, typical: [],
  });
  return id;
}

export const store = new Store();
