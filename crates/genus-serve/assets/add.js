// Photographs that are dropped onto the page, or a folder of them: they are added one after the other, with progress.

import { Refused, reach } from "./api.js";
import { el, name, number, plural } from "./shared.js";
import { store } from "./store.js";
import { announce } from "./words.js";

const AT_A_TIME = 2;
const IS_IMAGE = /\.(jpe?g|png|gif|webp|bmp|tiff?)$/i;

/** All files of what was dropped, folders included. @param {FileSystemEntry} entry @returns {Promise<File[]>} */
async function filesOf(entry) {
  if (entry.isFile) return [await new Promise((done, failed) => /** @type {FileSystemFileEntry} */ (entry).file(done, failed))];
  const reader = /** @type {FileSystemDirectoryEntry} */ (entry).createReader();
  const files = [];
  // A folder is read in parts.
  for (;;) {
    /** @type {FileSystemEntry[]} */
    const part = await new Promise((done, failed) => reader.readEntries(done, failed));
    if (part.length === 0) return files;
    for (const inner of part) files.push(...await filesOf(inner));
  }
}

/** A text as the bytes of a header. @param {string} text */
const bytes = (text) => Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join("");

class Adding {
  total = 0;
  done = 0;
  fresh = 0;
  /** @type {{ file: string, why: string }[]} */
  failed = [];
  /** @type {File[]} */
  queue = [];
  running = 0;

  constructor() {
    this.bar = el("i");
    this.words = el("span", { role: "status" });
    this.progress = el("div", { class: "progress", role: "progressbar", "aria-label": "Photographs that are added", "aria-valuemin": "0", "aria-valuemax": "100" }, this.bar);
    this.list = el("ul", { class: "small soft" });
    this.close = el("button", { type: "button", class: "quiet", "aria-label": "Close", hidden: true, onclick: () => this.box.remove() }, "✕");
    this.stop = el("button", { type: "button", class: "pill", onclick: () => this.#stop() }, "Stop");
    this.box = el("section", { class: "adding", "aria-label": "Photographs that are added" }, el("div", { class: "foot" }, this.words, this.stop, this.close), this.progress, this.list);
  }

  /** @param {File[]} files */
  add(files) {
    const images = files.filter((file) => file.type.startsWith("image/") || IS_IMAGE.test(file.name));
    if (images.length === 0) {
      store.note({ kind: "wrong", text: files.length === 0 ? "There are no files in it." : "None of these is a photograph." });
      return;
    }
    if (!this.box.isConnected) {
      Object.assign(this, { total: 0, done: 0, fresh: 0, failed: [] });
      document.body.append(this.box);
    }
    this.close.hidden = true;
    this.stop.hidden = false;
    this.total += images.length;
    this.queue.push(...images);
    this.#tell();
    while (this.running < AT_A_TIME && this.queue.length > 0) void this.#work();
  }

  #stop() {
    this.total -= this.queue.length;
    this.queue = [];
    this.#tell();
  }

  async #work() {
    this.running++;
    for (let file = this.queue.shift(); file; file = this.queue.shift()) {
      try {
        const type = file.type.startsWith("image/") ? file.type : "image/unknown";
        // The same photograph twice is one item, so asking again does no harm.
        const answer = await reach("/v1/items", { method: "POST", headers: { "content-type": type, "x-name": bytes(file.name.slice(0, 300)) }, body: file });
        const item = await answer.json();
        if (item.new) this.fresh++;
      } catch (error) {
        this.failed.push({ file: file.name, why: error instanceof Refused ? error.message : "the file cannot be read" });
      }
      this.done++;
      this.#tell();
    }
    this.running--;
    this.#tell();
  }

  #tell() {
    const { done, total, fresh, failed } = this;
    const share = total > 0 ? (100 * done) / total : 100;
    this.bar.style.width = `${share}%`;
    this.progress.setAttribute("aria-valuenow", String(Math.round(share)));
    const isOver = done >= total && this.running === 0;
    this.words.textContent = isOver
      ? `${number(fresh)} ${plural(fresh, "photograph", "photographs")} added${done - fresh - failed.length > 0 ? `, ${number(done - fresh - failed.length)} were there already` : ""}${failed.length > 0 ? `, ${number(failed.length)} could not be` : ""}.`
      : `Adding ${number(Math.min(done + 1, total))} of ${number(total)} …`;
    this.list.replaceChildren(...failed.slice(-5).map(({ file, why }) => el("li", null, name(file), `: ${why}`)));
    this.stop.hidden = isOver;
    this.close.hidden = !isOver;
    if (isOver) announce(this.words.textContent);
  }
}

/** Takes what is dropped onto the page, and what is chosen with a button. @param {HTMLElement} button */
export function takeFiles(button) {
  const adding = new Adding();
  const cover = el("div", { class: "drop", hidden: true, "aria-hidden": "true" }, el("b", null, "Drop photographs or a folder to add them"));
  document.body.append(cover);
  const hasFiles = (/** @type {DragEvent} */ event) => event.dataTransfer?.types.includes("Files") === true;
  addEventListener("dragover", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    cover.hidden = false;
  });
  addEventListener("dragleave", (event) => { if (event.relatedTarget === null) cover.hidden = true; });
  addEventListener("drop", async (event) => {
    cover.hidden = true;
    if (!hasFiles(event) || !event.dataTransfer) return;
    event.preventDefault();
    if (!store.mayLabel) {
      store.note({ kind: "wrong", text: "Your token may look and not add anything." });
      return;
    }
    // What was dropped is gone after the first pause: the entries are taken before it.
    const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry?.());
    const plain = [...event.dataTransfer.files];
    const files = [];
    for (const entry of entries) if (entry) files.push(...await filesOf(entry).catch(() => []));
    adding.add(files.length > 0 ? files : plain);
  });
  const picker = el("input", { type: "file", multiple: true, accept: "image/*", hidden: true });
  document.body.append(picker);
  picker.addEventListener("change", () => {
    adding.add([...(picker.files ?? [])]);
    picker.value = "";
  });
  button.addEventListener("click", () => picker.click());
}
