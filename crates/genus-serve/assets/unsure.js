// The items that nobody is sure of, one after the other: a digit says where it belongs.

import { read, thumbnail } from "./api.js";
import { candidates, place } from "./dialogs.js";
import { el, image, name, number, plural } from "./shared.js";
import { store } from "./store.js";
import { announce } from "./words.js";
import { Typeahead } from "./naming.js";

/** @import { Item } from "./api.js" */

const MOST = 60;

export class Unsure extends HTMLElement {
  /** @type {Item[]} */
  items = [];
  at = 0;
  answered = 0;

  connectedCallback() {
    this.tabIndex = -1;
    this.stage = el("div", { class: "stage" });
    this.about = el("div", { class: "about" });
    this.words = el("p", { class: "soft small", role: "status" });
    this.strip = el("div", { class: "strip", "aria-hidden": "true" });
    this.card = el("div", { class: "card" }, this.stage, this.about);
    this.append(el("div", { class: "unsure-head" }, el("h1", null, "Unsure"), this.words), this.card, this.strip);
    store.addEventListener("groups", () => { if (!this.hidden) this.#names(); });
  }

  /** Reads the questions that help most. */
  async open() {
    /** @type {{ items: Item[], total: number }} */
    const { items } = await read(`/v1/unsure?limit=${MOST}`);
    this.items = items;
    this.at = 0;
    this.answered = 0;
    this.show();
  }

  get item() {
    return this.items[this.at];
  }

  show() {
    const { item, stage, about, words, strip, card } = this;
    if (!stage || !about || !words || !strip || !card) return;
    words.textContent = this.items.length === 0 ? "" : `${number(this.at + 1)} of ${number(this.items.length)}${this.answered > 0 ? ` · ${number(this.answered)} answered` : ""} · 1–9 say where it belongs, 0 noise, → later`;
    if (!item) {
      stage.hidden = true;
      about.replaceChildren(el("h2", null, this.answered > 0 ? "All of these are answered." : "Nothing is in doubt."),
        el("p", { class: "soft" }, this.answered > 0 ? "Look for more, or go back to the groups." : "What waits and what is not very likely would be here."),
        el("button", { type: "button", class: "pill strong", onclick: () => this.open() }, "Look for more"));
      strip.replaceChildren();
      return;
    }
    stage.hidden = !item.picture;
    stage.replaceChildren(...(item.picture ? [image(thumbnail(item.id, 640), item.name)] : []));
    const other = new Typeahead({
      label: "Another group", placeholder: "Another group, or a new name …", isMeant: () => true,
      hint: (group) => `${number(group.items)} ${plural(group.items, "item", "items")}`,
      free: (text) => `New group “${text}”`,
      choose: (text, group) => { if (group) this.give(group.id); else if (text) this.#answer({ do: "move", items: [item.id], name: text }, `to ${text}`); },
      leave: () => this.focus(),
    });
    about.replaceChildren(el("h2", null, name(item.name)), el("p", { class: "soft" }, place(item)),
      candidates(item.candidates, item.group, (group) => this.give(group)), other.element,
      el("div", { class: "foot" },
        el("button", { type: "button", class: "pill", disabled: !store.mayLabel, onclick: () => this.noise() }, "Noise", el("kbd", { "aria-hidden": "true" }, "0")),
        el("button", { type: "button", class: "pill", onclick: () => this.step(1) }, "Later", el("kbd", { "aria-hidden": "true" }, "→"))));
    strip.replaceChildren(...this.items.slice(this.at + 1, this.at + 9).filter((one) => one.picture).map((one) => image(thumbnail(one.id, 80), "")));
    announce(`${item.name}. ${place(item)} ${item.candidates.slice(0, 3).map((one, at) => `${at + 1}: ${one.name}`).join(", ")}`);
  }

  /** Names that have changed since. */
  #names() {
    for (const button of this.querySelectorAll(".candidates [data-group]")) {
      const group = store.groups.get(Number(/** @type {HTMLElement} */ (button).dataset.group));
      const own = button.querySelector("bdi");
      if (group && own && own.textContent !== group.name) own.textContent = group.name;
    }
  }

  /** @param {number} group */
  give(group) {
    const { item } = this;
    if (!item) return;
    this.#answer({ do: "move", items: [item.id], to: group }, `to ${store.groups.get(group)?.name ?? "it"}`);
  }

  noise() {
    const { item } = this;
    if (item) this.#answer({ do: "noise", items: [item.id] }, "noise");
  }

  /** @param {import("./api.js").Action} action @param {string} text */
  #answer(action, text) {
    if (store.mayLabel) {
      this.answered++;
      this.items.splice(this.at, 1);
      this.at = Math.min(this.at, Math.max(0, this.items.length - 1));
    }
    store.act(action);
    this.show();
    this.focus();
    announce(text);
    if (this.items.length === 0) void this.#more();
  }

  async #more() {
    const { answered } = this;
    await new Promise((go) => { store.addEventListener("done", go, { once: true }); setTimeout(go, 1000); });
    if (this.items.length > 0 || this.hidden) return;
    await this.open();
    this.answered = answered;
    this.show();
  }

  /** @param {number} by */
  step(by) {
    this.at = Math.min(Math.max(this.at + by, 0), Math.max(0, this.items.length - 1));
    this.show();
  }

  /** Whether a key meant something here. @param {KeyboardEvent} event */
  key(event) {
    const { item } = this;
    if (event.key === "ArrowRight") this.step(1);
    else if (event.key === "ArrowLeft") this.step(-1);
    else if (event.key === "0" || event.key === "x") this.noise();
    else if (/^[1-9]$/.test(event.key)) {
      const candidate = item?.candidates[Number(event.key) - 1];
      if (candidate) this.give(candidate.group);
    } else return false;
    return true;
  }
}
customElements.define("genus-unsure", Unsure);
