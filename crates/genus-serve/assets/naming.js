// A name by type-ahead. A name that exists offers a merge, and Enter goes on.

import { el, name, number, plural } from "./shared.js";
import { store } from "./store.js";
import { announce } from "./words.js";
import { mark } from "./queue.js";

/** @import { Group } from "./api.js" */

/** Groups whose names something typed may mean, the likeliest first. @param {string} text @param {(group: Group) => boolean} isMeant @param {number} most */
export function matching(text, isMeant, most = 8) {
  const typed = text.trim().toLowerCase();
  const rank = (/** @type {Group} */ group) => {
    const called = group.name.toLowerCase();
    if (called === typed) return 0;
    if (called.startsWith(typed)) return 1;
    if (called.split(/[\s_-]+/).some((word) => word.startsWith(typed))) return 2;
    return called.includes(typed) ? 3 : 9;
  };
  const found = [...store.groups.values()].filter((group) => group.id > 0 && isMeant(group)).map((group) => ({ group, rank: typed ? rank(group) : 4 }));
  return found.filter((one) => one.rank < 9).sort((a, b) => a.rank - b.rank || b.group.items - a.group.items).slice(0, most).map((one) => one.group);
}

let numbers = 0;

/** A field with names beneath it: what is typed, and the group that is meant, are told by `choose`. */
export class Typeahead {
  /**
   * @param {{ label: string, placeholder?: string, isMeant: (group: Group) => boolean, hint?: (group: Group) => string, free?: (text: string) => string | null,
   *   choose: (text: string, group: Group | null) => void, leave?: () => void }} how
   */
  constructor(how) {
    this.how = how;
    const id = `names-${++numbers}`;
    this.field = el("input", {
      type: "text", role: "combobox", "aria-label": how.label, "aria-expanded": "false", "aria-controls": id, "aria-autocomplete": "list", autocomplete: "off",
      spellcheck: "false", maxlength: "300", placeholder: how.placeholder,
    });
    this.list = el("div", { class: "names", role: "listbox", id, "aria-label": "Names", hidden: true });
    this.element = el("div", { class: "typeahead" }, this.field, this.list);
    this.at = -1;
    /** @type {(Group | null)[]} */
    this.options = [];
    this.field.addEventListener("input", () => this.open());
    this.field.addEventListener("blur", () => this.close());
    this.field.addEventListener("keydown", (event) => this.#key(event));
    this.list.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      const option = /** @type {HTMLElement} */ (event.target).closest("[data-at]");
      if (option instanceof HTMLElement) this.#choose(this.options[Number(option.dataset.at)]);
    });
  }

  open() {
    const { how, field } = this;
    const text = field.value.trim();
    this.options = matching(text, how.isMeant);
    const free = how.free && text && !this.options.some((group) => group?.name === text) ? how.free(text) : null;
    if (free) this.options.unshift(null);
    this.at = free || !how.free ? 0 : text && this.options[0]?.name.toLowerCase() === text.toLowerCase() ? 0 : -1;
    this.list.replaceChildren(...this.options.map((group, at) => el("div", { role: "option", id: `${this.list.id}-${at}`, "data-at": at },
      group ? [mark(group), name(group.name), el("span", { class: "soft" }, how.hint ? how.hint(group) : number(group.items))] : el("span", null, free))));
    this.list.hidden = this.options.length === 0 || (!text && how.free !== undefined);
    field.setAttribute("aria-expanded", String(!this.list.hidden));
    this.#light();
  }

  close() {
    this.list.hidden = true;
    this.at = -1;
    this.field.setAttribute("aria-expanded", "false");
    this.field.removeAttribute("aria-activedescendant");
  }

  #light() {
    [...this.list.children].forEach((option, at) => option.setAttribute("aria-selected", String(at === this.at)));
    if (this.at >= 0) this.field.setAttribute("aria-activedescendant", `${this.list.id}-${this.at}`);
    else this.field.removeAttribute("aria-activedescendant");
    this.list.children[this.at]?.scrollIntoView({ block: "nearest" });
  }

  /** @param {Group | null} group */
  #choose(group) {
    const text = this.field.value.trim();
    this.close();
    this.how.choose(group ? group.name : text, group);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    // While letters are put together, keys belong to that.
    if (event.isComposing) return;
    event.stopPropagation();
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) {
      event.preventDefault();
      if (this.list.hidden) this.open();
      const count = this.options.length;
      if (count > 0) this.at = (this.at + step + count + (this.at < 0 && step < 0 ? 1 : 0)) % count;
      this.#light();
    } else if (event.key === "Enter") {
      event.preventDefault();
      this.#choose(this.list.hidden ? null : this.options[this.at] ?? null);
    } else if (event.key === "Escape") {
      event.preventDefault();
      if (!this.list.hidden) this.close();
      else this.how.leave?.();
    } else if ((event.ctrlKey || event.metaKey) && event.key === "z" && this.field.value === this.before) {
      // Nothing was typed: what is undone is what was done.
      this.field.dispatchEvent(new CustomEvent("undo-action", { bubbles: true, detail: event.shiftKey }));
      event.preventDefault();
    }
  }

  before = "";

  /** @param {string} text */
  set(text) {
    this.before = text;
    this.field.value = text;
    this.close();
  }
}

/** The name of the group that is looked at. */
export class Naming extends HTMLElement {
  /** The group that a merge is offered with. @type {Group | null} */
  offered = null;

  connectedCallback() {
    this.typed = new Typeahead({
      label: "Name of this group", placeholder: "Name this group …",
      isMeant: (group) => group.named && group.id !== store.view.group,
      hint: (group) => `merge with ${number(group.items)}`,
      free: () => null,
      choose: (text, group) => this.#choose(text, group),
      leave: () => { this.show(); this.dispatchEvent(new Event("left", { bubbles: true })); },
    });
    this.offer = el("p", { class: "offer", role: "alert" });
    this.append(this.typed.element, this.offer);
    this.typed.field.addEventListener("input", () => this.#offer(null));
  }

  get field() {
    return /** @type {Typeahead} */ (this.typed).field;
  }

  /** Shows the name that the group has, unless something is being typed. @param {boolean} [anew] */
  show(anew = true) {
    const group = store.groups.get(store.view.group);
    const typed = /** @type {Typeahead} */ (this.typed);
    const name = group?.named ? group.name : "";
    if (!anew && document.activeElement === typed.field && typed.field.value !== typed.before) return;
    typed.set(name);
    typed.field.placeholder = group ? (group.named ? "" : `Name this group … (${group.name})`) : "";
    typed.field.disabled = !store.mayLabel;
    this.#offer(null);
  }

  /** @param {Group | null} group */
  #offer(group) {
    this.offered = group;
    if (!this.offer) return;
    this.offer.replaceChildren();
    if (!group) return;
    const own = store.groups.get(store.view.group)?.items ?? 0;
    this.offer.append(name(group.name), ` has ${number(group.items)} ${plural(group.items, "item", "items")} already. `, el("b", null, "Enter"), ` makes these ${number(own)} part of it, `, el("b", null, "Esc"), " goes back.");
  }

  /** @param {string} text @param {Group | null} meant */
  #choose(text, meant) {
    const group = store.groups.get(store.view.group);
    if (!group) return;
    if (text === "" || (group.named && text === group.name)) {
      this.#on();
      return;
    }
    const other = meant ?? [...store.groups.values()].find((one) => one.id > 0 && one.id !== group.id && one.name.toLowerCase() === text.toLowerCase());
    if (!other) {
      store.act({ do: "name", group: group.id, name: text });
      announce(`Named ${text}`);
      this.#on();
    } else if (group.named && other.named) {
      // Two names: which of them stays is asked for, not guessed.
      this.dispatchEvent(new CustomEvent("two-names", { bubbles: true, detail: [group.id, other.id] }));
    } else if (this.offered?.id !== other.id) {
      /** @type {Typeahead} */ (this.typed).field.value = other.name;
      this.#offer(other);
    } else {
      store.act({ do: "name", group: group.id, name: other.name, merge: true });
      announce(`Merged with ${other.name}`);
      this.#on();
    }
  }

  #on() {
    this.#offer(null);
    this.dispatchEvent(new Event("named", { bubbles: true }));
  }
}
customElements.define("genus-name", Naming);
