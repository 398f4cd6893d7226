// The queue: groups, the largest and most doubtful first, how far all of it is, and which are to be merged.

import { thumbnail } from "./api.js";
import { el, image, name, number, plural, shape } from "./shared.js";
import { store, todo } from "./store.js";
import { announce } from "./words.js";

/** @import { Group } from "./api.js" */

/** The mark of a group: a disc when it has a name, a diamond when not. @param {Group} group */
export const mark = (group) => shape(group.named ? "disc" : "diamond", group.colour);

/** Small pictures of items, or nothing where items have none. @param {number[]} items @param {number} most @param {number} [side] */
export function faces(items, most, side = 80) {
  if (!store.status?.pictures) return [];
  return items.slice(0, most).map((item) => {
    const img = image(thumbnail(item, side), "");
    img.addEventListener("error", () => img.remove());
    img.draggable = false;
    return img;
  });
}

export class Queue extends HTMLElement {
  /** Groups that are to be merged. @type {Set<number>} */
  marked = new Set();
  /** @type {Map<number, HTMLElement>} */
  #rows = new Map();

  connectedCallback() {
    this.progress = el("div", { class: "progress", role: "progressbar", "aria-label": "Settled items", "aria-valuemin": "0", "aria-valuemax": "100" }, el("i"));
    this.words = el("p", { class: "soft small" });
    this.ways = el("div", { class: "ways", role: "group", "aria-label": "Other items" });
    this.list = el("div", { class: "list", role: "listbox", tabindex: "0", "aria-label": "Groups", "aria-multiselectable": "false" });
    this.fresh = el("button", { type: "button", class: "pill fresh", hidden: true, onclick: () => { store.arrange(); this.focusList(); } });
    this.merging = el("div", { class: "merging", hidden: true });
    this.append(el("div", { class: "queue-head" }, this.progress, this.words, this.ways), this.fresh, this.list, this.merging);
    this.list.addEventListener("keydown", (event) => this.#key(event));
    this.list.addEventListener("click", (event) => {
      const row = /** @type {HTMLElement} */ (event.target).closest("[data-group]");
      if (!(row instanceof HTMLElement)) return;
      const id = Number(row.dataset.group);
      if (event.ctrlKey || event.metaKey) this.mark(id);
      else this.choose(id);
    });
    store.addEventListener("order", () => this.#build());
    store.addEventListener("groups", () => this.#refresh());
    store.addEventListener("status", () => this.#head());
    store.addEventListener("view", () => this.#current());
  }

  focusList() {
    this.list?.focus();
  }

  /** The groups that are there, in the order of the queue. */
  get order() {
    return store.order.filter((id) => store.groups.has(id));
  }

  #build() {
    this.#rows.clear();
    this.list?.replaceChildren();
    this.#refresh();
  }

  #refresh() {
    const list = this.list;
    if (!list) return;
    list.classList.toggle("bare", !store.status?.pictures);
    const order = this.order;
    // Groups that have no number yet stand behind what they came from.
    const passing = [...store.groups.keys()].filter((id) => id < 0);
    order.splice(order.indexOf(store.view.group) + 1, 0, ...passing);
    const wanted = new Set(order);
    for (const [id, row] of this.#rows) {
      if (wanted.has(id)) continue;
      row.remove();
      this.#rows.delete(id);
      this.marked.delete(id);
    }
    let before = /** @type {Element | null} */ (list.firstElementChild);
    for (const id of order) {
      const group = store.groups.get(id);
      if (!group) continue;
      let row = this.#rows.get(id);
      if (!row) {
        row = el("div", { class: "entry", role: "option", id: `group-${id}`, "data-group": id });
        this.#rows.set(id, row);
      }
      this.#fill(row, group);
      if (row !== before) list.insertBefore(row, before);
      else before = row.nextElementSibling;
    }
    const fresh = store.newGroups.length;
    if (this.fresh) {
      this.fresh.hidden = fresh === 0;
      this.fresh.textContent = `${number(fresh)} new ${plural(fresh, "group", "groups")} · show`;
    }
    this.#head();
    this.#current();
    this.#bar();
  }

  /** @param {HTMLElement} row @param {Group} group */
  #fill(row, group) {
    const left = todo(group);
    const state = JSON.stringify([group.name, group.named, group.items, group.doubtful, group.confirmed, group.typical, this.marked.has(group.id)]);
    if (row.dataset.state === state) return;
    row.dataset.state = state;
    const isMarked = this.marked.has(group.id);
    const doubt = group.items > 0 ? group.doubtful / group.items : 0;
    const what = `${number(group.items)} ${plural(group.items, "item", "items")}${group.doubtful > 0 ? `, ${number(group.doubtful)} in doubt` : ""}`;
    row.setAttribute("aria-label", `${group.name}, ${what}${left === 0 ? ", settled" : group.named ? "" : ", no name yet"}${isMarked ? ", to be merged" : ""}`);
    row.classList.toggle("settled", left === 0);
    row.classList.toggle("marked", isMarked);
    row.replaceChildren(
      el("span", { class: "cover" }, faces(group.typical, 4), el("i", { class: "tick", "aria-hidden": "true" }, isMarked ? "✓" : "")),
      el("span", { class: "called" }, mark(group), name(group.name, group.named ? {} : { class: "unnamed" })),
      el("span", { class: "count" }, number(group.items)),
      el("span", { class: "doubt", title: what }, el("i", { style: { width: `${100 * doubt}%` } })),
      el("span", { class: "check", "aria-hidden": "true" }, left === 0 ? "✓" : ""));
  }

  #head() {
    const { status } = store;
    if (!status || !this.progress || !this.words || !this.ways) return;
    let settled = 0;
    let rest = 0;
    for (const group of store.groups.values()) {
      if (group.named) settled += group.items - group.doubtful;
      if (todo(group) > 0) rest++;
    }
    settled += status.noise;
    const share = status.items > 0 ? settled / status.items : 0;
    this.progress.setAttribute("aria-valuenow", String(Math.round(100 * share)));
    const bar = /** @type {HTMLElement} */ (this.progress.firstElementChild);
    bar.style.width = `${100 * share}%`;
    const text = `${number(settled)} of ${number(status.items)} items settled, ${number(rest)} ${plural(rest, "group", "groups")} to go`;
    this.words.textContent = text;
    this.progress.setAttribute("aria-valuetext", text);
    const way = (/** @type {"all" | "waiting" | "noise"} */ of, /** @type {string} */ text, /** @type {number} */ count) =>
      el("button", { type: "button", class: "pill", "data-of": of, "aria-pressed": String(store.view.of === of), onclick: () => store.look({ of }) }, text, el("b", null, number(count)));
    const state = JSON.stringify([status.items, status.waiting, status.noise, store.view.of]);
    if (this.ways.dataset.state === state) return;
    this.ways.dataset.state = state;
    const had = /** @type {HTMLElement | null} */ (document.activeElement)?.closest(".ways") ? /** @type {HTMLElement} */ (document.activeElement).dataset.of : null;
    this.ways.replaceChildren(way("all", "All", status.items), way("waiting", "Waiting", status.waiting), way("noise", "Noise", status.noise));
    if (had) /** @type {HTMLElement | null} */ (this.ways.querySelector(`[data-of="${had}"]`))?.focus();
  }

  #current() {
    const id = store.view.of === "group" ? store.view.group : null;
    for (const [group, row] of this.#rows) row.setAttribute("aria-selected", String(group === id));
    if (id !== null) this.list?.setAttribute("aria-activedescendant", `group-${id}`);
    else this.list?.removeAttribute("aria-activedescendant");
    if (id !== null) this.#rows.get(id)?.scrollIntoView({ block: "nearest" });
    this.#head();
  }

  /** Looks at a group. @param {number} id */
  choose(id) {
    if (id <= 0) return Promise.resolve();
    this.dispatchEvent(new Event("chosen", { bubbles: true }));
    return store.look({ of: "group", group: id, sort: "surest" });
  }

  /** The group so many places on. @param {number} by */
  step(by) {
    // Where the group stood that has just become part of another is still known.
    const order = store.order.filter((id) => store.groups.has(id) || id === store.view.group);
    if (order.length === 0) return Promise.resolve();
    const at = order.indexOf(store.view.of === "group" ? store.view.group : -1);
    const next = at < 0 ? (by > 0 ? 0 : order.length - 1) : Math.min(Math.max(at + by, 0), order.length - 1);
    return this.choose(order[next]);
  }

  /** The next group that something is to be done about. */
  next() {
    const at = store.order.indexOf(store.view.group);
    const later = [...store.order.slice(at + 1), ...store.order.slice(0, Math.max(at, 0))].map((id) => store.groups.get(id));
    const next = later.find((group) => group !== undefined && todo(group) > 0)?.id;
    if (next === undefined) {
      announce("Every group is settled");
      store.note({ kind: "done", text: "Every group is settled." });
      return Promise.resolve();
    }
    return this.choose(next);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const order = this.order;
    const work = {
      ArrowDown: () => this.step(1), ArrowUp: () => this.step(-1), Home: () => this.choose(order[0]), End: () => this.choose(order[order.length - 1]),
      PageDown: () => this.step(10), PageUp: () => this.step(-10), " ": () => this.mark(store.view.group),
      Enter: () => this.dispatchEvent(new Event("entered", { bubbles: true })),
    }[event.key];
    if (!work) return;
    event.preventDefault();
    event.stopPropagation();
    work();
  }

  // Merging.

  /** Marks a group to be merged, or no longer. @param {number} id */
  mark(id) {
    if (!store.groups.has(id) || id < 0) return;
    if (!this.marked.delete(id)) this.marked.add(id);
    this.#refresh();
    announce(`${number(this.marked.size)} ${plural(this.marked.size, "group", "groups")} to be merged`);
  }

  unmark() {
    this.marked.clear();
    this.#refresh();
  }

  #bar() {
    if (!this.merging) return;
    const count = this.marked.size;
    this.merging.hidden = count === 0;
    if (count === 0) return;
    const had = this.merging.contains(document.activeElement);
    const go = el("button", { type: "button", class: "pill strong", disabled: count < 2, onclick: () => this.dispatchEvent(new Event("merge", { bubbles: true })) }, count < 2 ? "Mark another to merge" : `Merge ${number(count)} groups…`);
    this.merging.replaceChildren(go, el("button", { type: "button", class: "pill", onclick: () => this.unmark() }, "Clear"));
    if (had) go.focus();
  }
}
customElements.define("genus-queue", Queue);
