// The items that are looked at, from typical to doubtful: a grid of which only what is seen is there, and what is done with them.

import { thumbnail } from "./api.js";
import { el, image, name, number, plural } from "./shared.js";
import { STATE, store, sure } from "./store.js";
import { announce } from "./words.js";
import { mark } from "./queue.js";
import { Naming } from "./naming.js";

const GAP = 8;
const TILE = 104;
const LINE = { width: 220, height: 40 };
/** Rows that are there above and below of what is seen. */
const SPARE = 3;
/** What is less likely than this begins behind the line. */
const DOUBT = 0.9;

const SORTS = { surest: "typical first", "least-sure": "doubtful first", number: "oldest first" };
const TITLES = { all: "All items", waiting: "Waiting", noise: "Noise", items: "From the map", group: "" };

export class SheetView extends HTMLElement {
  /** The row that the keys are at. */
  at = 0;
  /** The row that a range begins at. */
  anchor = 0;
  columns = 1;
  /** Where the line between typical and doubtful is: so many items are before it. */
  line = 0;
  lineSet = false;
  isBare = false;
  cell = { width: TILE, height: TILE };
  /** @type {Map<number, HTMLElement>} */
  #cells = new Map();
  /** @type {HTMLElement[]} */
  #spare = [];
  #frame = 0;
  #key = "";
  #lastTop = 0;

  connectedCallback() {
    this.back = el("button", { type: "button", class: "pill back", onclick: () => this.dispatchEvent(new Event("back", { bubbles: true })) }, "← Groups");
    this.heading = el("h1");
    this.naming = new Naming();
    this.mark = el("span", { class: "own-mark" });
    this.facts = el("p", { class: "soft small facts" });
    this.tools = el("div", { class: "sheet-tools" });
    this.filter = el("input", { type: "search", class: "filter", placeholder: "Filter by name", "aria-label": "Filter by name", autocomplete: "off", "aria-keyshortcuts": "/" });
    this.order = el("select", { "aria-label": "Order" }, Object.entries(SORTS).map(([value, text]) => el("option", { value }, text)));
    this.all = el("button", { type: "button", class: "pill", "aria-keyshortcuts": "Control+A", onclick: () => this.selectAll() }, "Select all");
    this.news = el("button", { type: "button", class: "pill fresh", hidden: true, onclick: () => { store.showNews(); this.focusGrid(); } });
    this.slider = el("input", { type: "range", min: "0", max: "0", step: "1", "aria-label": "The line between typical and doubtful items" });
    this.accept = el("button", { type: "button", class: "pill strong", onclick: () => this.acceptFront() });
    this.release = el("button", { type: "button", class: "pill", onclick: () => this.releaseTail() });
    this.cut = el("div", { class: "cut", hidden: true }, el("span", { class: "soft small" }, "typical"), this.slider, el("span", { class: "soft small" }, "doubtful"), this.accept, this.release);
    this.space = el("div", { class: "space", role: "presentation" });
    this.band = el("div", { class: "band", hidden: true });
    this.grid = el("div", { class: "grid", role: "listbox", "aria-multiselectable": "true", "aria-label": "Items" }, this.space, this.band);
    this.empty = el("p", { class: "empty", hidden: true });
    this.bar = el("div", { class: "actions", role: "toolbar", "aria-label": "What to do with the selection", hidden: true });
    this.append(
      el("div", { class: "sheet-head" }, this.back, el("div", { class: "title" }, this.mark, this.heading, this.naming, this.tools), this.facts),
      el("div", { class: "sheet-bar" }, this.filter, this.order, this.all, this.news), this.cut, this.grid, this.empty, this.bar);
    this.#listen();
  }

  #listen() {
    const { grid, filter, order, slider } = this;
    if (!grid || !filter || !order || !slider) return;
    grid.addEventListener("scroll", () => this.draw(), { passive: true });
    new ResizeObserver(() => this.#measure()).observe(grid);
    grid.addEventListener("keydown", (event) => this.#keys(event));
    grid.addEventListener("focusin", (event) => {
      const cell = /** @type {HTMLElement} */ (event.target).closest("[data-row]");
      if (cell instanceof HTMLElement) this.at = Number(cell.dataset.row);
    });
    grid.addEventListener("dblclick", (event) => {
      const row = this.#rowOf(event);
      if (row !== null) this.enlarge(row);
    });
    this.#pointer(grid);
    let typing = 0;
    filter.addEventListener("input", () => {
      clearTimeout(typing);
      typing = window.setTimeout(() => store.look({ name: filter.value.trim() }, { keep: true }), 180);
    });
    filter.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (event.key === "Enter" || event.key === "ArrowDown") { event.preventDefault(); this.focusGrid(); }
      if (event.key === "Escape") {
        if (filter.value === "") this.focusGrid();
        else { filter.value = ""; void store.look({ name: "" }, { keep: true }); }
      }
    });
    order.addEventListener("change", () => store.look({ sort: order.value }, { keep: true }));
    slider.addEventListener("input", () => { this.line = Number(slider.value); this.lineSet = true; this.#cutWords(); this.draw(true); });
    slider.addEventListener("keydown", (event) => { if (/^(Arrow|Home|End|Page)/.test(event.key)) event.stopPropagation(); });
    store.addEventListener("view", () => this.#head());
    store.addEventListener("groups", () => this.#head());
    store.addEventListener("sheet", (event) => this.#changed(/** @type {CustomEvent} */ (event).detail.anew));
    store.addEventListener("selection", () => this.#selection());
    store.addEventListener("news", () => this.#news());
  }

  // The head.

  #head() {
    const { view } = store;
    const group = view.of === "group" ? store.groups.get(view.group) : undefined;
    const { heading, naming, mark: own, facts, tools, filter, order } = this;
    if (!heading || !naming || !own || !facts || !tools || !filter || !order) return;
    heading.hidden = view.of === "group";
    heading.textContent = TITLES[view.of];
    naming.hidden = view.of !== "group";
    const key = JSON.stringify([view.of, view.group]);
    const isOther = naming.dataset.of !== key;
    naming.dataset.of = key;
    naming.show(isOther);
    own.replaceChildren(...(group ? [mark(group)] : []));
    if (document.activeElement !== filter) filter.value = view.name;
    order.value = view.sort;
    const parts = [];
    if (group) {
      parts.push(`${number(group.items)} ${plural(group.items, "item", "items")}`);
      if (group.doubtful > 0) parts.push(`${number(group.doubtful)} in doubt`);
      if (group.confirmed > 0) parts.push(`${number(group.confirmed)} confirmed`);
      if (group.merged.length > 0) parts.push(`with ${group.merged.slice(0, 3).join(", ")}${group.merged.length > 3 ? " …" : ""}`);
    } else if (store.sheet) {
      parts.push(`${number(store.sheet.length)} ${plural(store.sheet.length, "item", "items")}`);
      if (view.of === "waiting") parts.push("they are in no group yet; the name beneath each is the best guess");
      if (view.of === "noise") parts.push("they belong nowhere");
    }
    facts.textContent = parts.join(" · ");
    document.title = `${group ? group.name : TITLES[view.of]} · ${store.status?.name ?? "Genus"}`;
    if (tools.dataset.of !== (group ? "group" : "other")) {
      tools.dataset.of = group ? "group" : "other";
      const tool = (/** @type {string} */ text, /** @type {string} */ event, /** @type {string} */ keys) =>
        el("button", { type: "button", class: "pill", "aria-keyshortcuts": keys, onclick: () => this.dispatchEvent(new Event(event, { bubbles: true })) }, text);
      tools.replaceChildren(...(group ? [tool("Next", "next-group", "J"), tool("Split…", "split", "S"), tool("Merge…", "merge", "Shift+M")] : []));
    }
  }

  #news() {
    if (!this.news) return;
    this.news.hidden = store.news === null;
    if (!store.news) return;
    this.news.textContent = `${store.newsWords()} · show`;
    announce(`${store.newsWords()}; press A to show`);
  }

  // The grid.

  get length() {
    return store.sheet?.length ?? 0;
  }

  /** @param {boolean} anew */
  #changed(anew) {
    const { sheet, view } = store;
    if (!sheet || !this.grid || !this.empty) return;
    const key = JSON.stringify(view);
    const isOther = key !== this.#key;
    this.#key = key;
    const hadFocus = this.grid.contains(document.activeElement);
    const [item, top] = this.#topItem ?? [undefined, 0];
    this.isBare = !sheet.pictures.includes("1");
    if (isOther) {
      this.at = 0;
      this.anchor = 0;
      this.lineSet = false;
    } else {
      this.at = Math.min(this.at, Math.max(0, sheet.length - 1));
      this.anchor = Math.min(this.anchor, Math.max(0, sheet.length - 1));
    }
    this.empty.hidden = sheet.length > 0;
    this.grid.hidden = sheet.length === 0;
    this.empty.textContent = view.name ? `Nothing here is called “${view.name}”.` : view.of === "waiting" ? "Nothing waits." : view.of === "noise" ? "Nothing was called noise." : store.status?.items === 0
      ? "This collection is empty. Drop photographs or a folder onto the page to begin." : "Nothing is here.";
    this.#measure(true);
    if (isOther) this.grid.scrollTop = 0;
    else if (anew && item !== undefined) {
      // What was at the top stays there.
      const row = sheet.row(item);
      if (row !== undefined) this.grid.scrollTop = Math.floor(row / this.columns) * (this.cell.height + GAP) - top;
    }
    this.#cutShow();
    this.#head();
    this.draw(true);
    if (hadFocus) this.focusGrid();
    this.#actions();
  }

  /** @type {[number, number] | null} */
  #topItem = null;

  #measure(now = false) {
    const { grid, space } = this;
    if (!grid || !space) return;
    const width = grid.clientWidth - 4;
    if (width <= 0) return;
    const least = this.isBare ? LINE.width : innerWidth < 640 ? 76 : TILE;
    this.columns = Math.max(1, Math.floor((width + GAP) / (least + GAP)));
    const cell = (width - GAP * (this.columns - 1)) / this.columns;
    this.cell = { width: cell, height: this.isBare ? LINE.height : cell };
    space.style.height = `${Math.ceil(this.length / this.columns) * (this.cell.height + GAP)}px`;
    grid.classList.toggle("bare", this.isBare);
    if (now) return;
    this.draw(true);
  }

  /** Draws what is seen, once a frame. @param {boolean} [anew] */
  draw(anew = false) {
    this.anew ||= anew;
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      this.#render();
    });
  }

  anew = false;

  #render() {
    const { grid, space } = this;
    const { sheet } = store;
    if (!grid || !space || !sheet) return;
    const height = this.cell.height + GAP;
    const top = grid.scrollTop;
    const first = Math.max(0, Math.floor(top / height) - SPARE) * this.columns;
    const last = Math.min(sheet.length, (Math.ceil((top + grid.clientHeight) / height) + SPARE) * this.columns);
    const seen = Math.min(sheet.length - 1, Math.ceil(top / height) * this.columns);
    this.#topItem = seen >= 0 ? [sheet.ids[seen], Math.floor(seen / this.columns) * height - top] : null;
    const isFast = Math.abs(top - this.#lastTop) > 1.5 * grid.clientHeight;
    this.#lastTop = top;
    // The cell that has the focus stays, wherever it is.
    const focused = document.activeElement instanceof HTMLElement && grid.contains(document.activeElement) ? Number(document.activeElement.dataset.row) : -1;
    for (const [row, cell] of this.#cells) {
      if ((row >= first && row < last) || (row === focused && row < sheet.length)) continue;
      this.#cells.delete(row);
      this.#spare.push(cell);
    }
    const { anew } = this;
    this.anew = false;
    const wanted = [...Array(Math.max(0, last - first)).keys()].map((at) => first + at);
    if (focused >= 0 && (focused < first || focused >= last) && focused < sheet.length) wanted.push(focused);
    for (const row of wanted) {
      let cell = this.#cells.get(row);
      if (cell && !anew) continue;
      if (!cell) {
        cell = this.#spare.pop() ?? this.#makeCell();
        this.#cells.set(row, cell);
      }
      this.#fill(cell, row, isFast);
      if (cell.parentNode !== space) space.append(cell);
    }
    this.#spare.splice(60).forEach((cell) => cell.remove());
    this.#spare.forEach((cell) => { cell.hidden = true; });
    clearTimeout(this.#rest);
    if (isFast) this.#rest = window.setTimeout(() => this.draw(true), 90);
  }

  #rest = 0;

  #makeCell() {
    const img = image("data:,", "");
    img.removeAttribute("src");
    img.draggable = false;
    return el("div", { class: "tile", role: "option", tabindex: "-1" }, img, el("span", { class: "label" }), el("span", { class: "cap" }), el("i", { class: "chosen", "aria-hidden": "true" }));
  }

  /** @param {HTMLElement} cell @param {number} row @param {boolean} isFast */
  #fill(cell, row, isFast) {
    const sheet = /** @type {import("./store.js").Sheet} */ (store.sheet);
    const { width, height } = this.cell;
    const id = sheet.ids[row];
    const x = (row % this.columns) * (width + GAP);
    const y = Math.floor(row / this.columns) * (height + GAP);
    cell.hidden = false;
    cell.style.transform = `translate(${x}px, ${y}px)`;
    cell.style.width = `${width}px`;
    cell.style.height = `${height}px`;
    cell.dataset.row = String(row);
    const state = sheet.states[row];
    const isChosen = this.isSelected(row);
    cell.setAttribute("aria-selected", String(isChosen));
    cell.tabIndex = row === this.at ? 0 : -1;
    cell.classList.toggle("doubtful", state === STATE.sorted && sure(sheet, row) < DOUBT);
    cell.classList.toggle("waiting", state === STATE.waiting);
    cell.classList.toggle("confirmed", state === STATE.confirmed);
    cell.classList.toggle("behind", this.hasLine && row >= this.line);
    const guess = store.view.of === "group" ? undefined : store.groups.get(sheet.groups[row]);
    const words = this.words(row);
    const key = `${id} ${words} ${guess?.name ?? ""}`;
    if (cell.dataset.key !== key) {
      cell.dataset.key = key;
      cell.dataset.id = String(id);
      cell.setAttribute("aria-label", [sheet.names[row], guess ? `${state === STATE.waiting ? "perhaps " : ""}${guess.name}` : "", words].filter(Boolean).join(", "));
      cell.title = `${sheet.names[row]}\n${words}`;
      const [, label, cap] = /** @type {HTMLElement[]} */ ([...cell.children]);
      label.textContent = "";
      cap.textContent = "";
      if (sheet.pictures[row] === "1") cap.append(name(sheet.names[row], { title: null }), guess ? name(guess.name, { title: null }) : words);
      else label.append(name(sheet.names[row], { title: null }), guess && !this.isBare ? el("small", null, guess.name) : "");
    }
    cell.setAttribute("aria-posinset", String(row + 1));
    cell.setAttribute("aria-setsize", String(sheet.length));
    const img = /** @type {HTMLImageElement} */ (cell.firstElementChild);
    const isPictured = sheet.pictures[row] === "1";
    img.hidden = !isPictured;
    cell.classList.toggle("pictured", isPictured);
    const side = width * Math.min(devicePixelRatio, 2) > 170 ? 320 : 160;
    const source = isPictured ? thumbnail(id, side) : "";
    if (img.dataset.source === source) return;
    img.removeAttribute("src");
    img.dataset.source = "";
    // Pictures that fly by are not fetched.
    if (!source || isFast) return;
    img.dataset.source = source;
    img.src = source;
  }

  /** What is known of an item's place. @param {number} row */
  words(row) {
    const sheet = store.sheet;
    if (!sheet) return "";
    const share = sheet.shares[row] >= 0 ? `${Math.round(sheet.shares[row] / 10)} %` : "";
    switch (sheet.states[row]) {
      case STATE.confirmed: return "confirmed";
      case STATE.waiting: return share ? `waits, ${share}` : "waits";
      case STATE.noise: return "noise";
      default: return share;
    }
  }

  // Going and selecting.

  focusGrid() {
    if (this.length === 0) return;
    this.#reveal(this.at);
    this.#render();
    this.#cells.get(this.at)?.focus({ preventScroll: true });
  }

  /** @param {number} row */
  #reveal(row) {
    const { grid } = this;
    if (!grid) return;
    const height = this.cell.height + GAP;
    const top = Math.floor(row / this.columns) * height;
    if (top < grid.scrollTop) grid.scrollTop = top;
    else if (top + height > grid.scrollTop + grid.clientHeight) grid.scrollTop = top + height - grid.clientHeight;
  }

  /** @param {number} row @param {boolean} [isRange] */
  go(row, isRange = false) {
    const next = Math.min(Math.max(row, 0), this.length - 1);
    if (next < 0) return;
    this.at = next;
    if (isRange) this.range(this.anchor, next);
    this.draw(true);
    this.focusGrid();
  }

  /** @param {number} row */
  isSelected(row) {
    if (store.selectedFilter) return true;
    return store.selected.size > 0 && store.selected.has(store.sheet?.ids[row] ?? -1);
  }

  /** @param {number} from @param {number} to @param {Iterable<number>} [more] */
  range(from, to, more = []) {
    const { sheet } = store;
    if (!sheet) return;
    const [first, last] = from <= to ? [from, to] : [to, from];
    store.select([...more, ...sheet.ids.subarray(first, last + 1)]);
  }

  /** @param {number} row */
  toggle(row) {
    const { sheet } = store;
    if (!sheet) return;
    const selected = store.selectedFilter ? new Set(sheet.ids) : new Set(store.selected);
    if (!selected.delete(sheet.ids[row])) selected.add(sheet.ids[row]);
    this.anchor = row;
    store.select(selected);
  }

  /** Selects everything under the filter; what is done is done to the filter, however many there are. */
  selectAll() {
    if (this.length === 0) return;
    if (store.view.of === "items") store.select(store.sheet?.ids ?? []);
    else store.select([], store.filter());
  }

  /** @param {Event} event */
  #rowOf(event) {
    const cell = /** @type {HTMLElement} */ (event.target).closest?.("[data-row]");
    return cell instanceof HTMLElement ? Number(cell.dataset.row) : null;
  }

  /** Clicks, and the band that is drawn with the pointer. @param {HTMLElement} grid */
  #pointer(grid) {
    /** @type {{ x: number, y: number, row: number | null, before: Set<number>, isBand: boolean, client: [number, number] } | null} */
    let down = null;
    const spot = (/** @type {number} */ x, /** @type {number} */ y) => {
      const box = grid.getBoundingClientRect();
      return [x - box.left, y - box.top + grid.scrollTop];
    };
    const draw = () => {
      if (!down?.isBand || !this.band) return;
      const [x, y] = spot(...down.client);
      const [left, right] = [Math.max(0, Math.min(down.x, x)), Math.max(down.x, x)];
      const [top, bottom] = [Math.max(0, Math.min(down.y, y)), Math.min(Math.max(down.y, y), this.space?.offsetHeight ?? 0)];
      this.band.hidden = false;
      Object.assign(this.band.style, { left: `${left}px`, top: `${top}px`, width: `${right - left}px`, height: `${Math.max(0, bottom - top)}px` });
      const { width, height } = this.cell;
      const { sheet } = store;
      if (!sheet) return;
      const found = new Set(down.before);
      const within = (/** @type {number} */ at, /** @type {number} */ size) => Math.floor(at / (size + GAP));
      for (let line = within(top, height); line <= within(bottom, height); line++) {
        for (let column = within(left, width); column <= Math.min(within(right, width), this.columns - 1); column++) {
          const row = line * this.columns + column;
          if (row >= sheet.length) continue;
          const [cellX, cellY] = [column * (width + GAP), line * (height + GAP)];
          if (cellX < right && cellX + width > left && cellY < bottom && cellY + height > top) found.add(sheet.ids[row]);
        }
      }
      store.select(found);
    };
    const scroll = () => {
      if (!down?.isBand) return;
      const box = grid.getBoundingClientRect();
      const over = Math.min(0, down.client[1] - box.top - 24) + Math.max(0, down.client[1] - box.bottom + 24);
      if (over !== 0) {
        grid.scrollTop += Math.sign(over) * Math.min(Math.abs(over), 40) * 0.6;
        draw();
      }
      requestAnimationFrame(scroll);
    };
    grid.addEventListener("pointerdown", (event) => {
      // A finger scrolls.
      if (event.button !== 0 || event.pointerType === "touch" || event.offsetX > grid.clientWidth) return;
      const [x, y] = spot(event.clientX, event.clientY);
      const keeps = event.ctrlKey || event.metaKey || event.shiftKey;
      down = { x, y, row: this.#rowOf(event), before: keeps ? new Set(store.selected) : new Set(), isBand: false, client: [event.clientX, event.clientY] };
    });
    addEventListener("pointermove", (event) => {
      if (!down) return;
      down.client = [event.clientX, event.clientY];
      const [x, y] = spot(event.clientX, event.clientY);
      if (!down.isBand && Math.hypot(x - down.x, y - down.y) > 6) {
        down.isBand = true;
        grid.classList.add("banding");
        requestAnimationFrame(scroll);
      }
      draw();
    });
    const end = () => {
      const wasBand = down?.isBand === true;
      down = null;
      if (this.band) this.band.hidden = true;
      grid.classList.remove("banding");
      return wasBand;
    };
    let wasBand = false;
    addEventListener("pointerup", () => { wasBand = end(); });
    addEventListener("pointercancel", () => { end(); });
    grid.addEventListener("click", (event) => {
      if (wasBand) { wasBand = false; return; }
      const row = this.#rowOf(event);
      if (row === null) { if (event.target === this.space || event.target === grid) store.select([]); return; }
      this.at = row;
      if (event.shiftKey) this.range(this.anchor, row, event.ctrlKey || event.metaKey ? store.selected : []);
      else if (event.ctrlKey || event.metaKey) this.toggle(row);
      else if (event instanceof PointerEvent && event.pointerType === "touch" && store.selected.size > 0) this.toggle(row);
      else { this.anchor = row; store.select([store.sheet?.ids[row] ?? 0]); }
      this.draw(true);
      this.focusGrid();
    });
  }

  /** @param {KeyboardEvent} event */
  #keys(event) {
    const rows = Math.max(1, Math.floor((this.grid?.clientHeight ?? 0) / (this.cell.height + GAP)));
    const steps = {
      ArrowRight: 1, ArrowLeft: -1, ArrowDown: this.columns, ArrowUp: -this.columns, PageDown: rows * this.columns, PageUp: -rows * this.columns,
      Home: -Infinity, End: Infinity,
    };
    const step = steps[/** @type {keyof typeof steps} */ (event.key)];
    if (step !== undefined && !event.altKey) {
      event.preventDefault();
      event.stopPropagation();
      this.go(this.at + step, event.shiftKey);
      if (!event.shiftKey) this.anchor = this.at;
    } else if (event.key === " ") {
      event.preventDefault();
      if (event.shiftKey) this.range(this.anchor, this.at);
      else this.toggle(this.at);
    } else if (event.key === "Enter") {
      event.preventDefault();
      event.stopPropagation();
      this.enlarge(this.at);
    } else if (event.key === "Escape" && (store.selected.size > 0 || store.selectedFilter)) {
      event.preventDefault();
      event.stopPropagation();
      store.select([]);
    }
  }

  /** @param {number} row */
  enlarge(row) {
    this.dispatchEvent(new CustomEvent("enlarge", { bubbles: true, detail: row }));
  }

  #selection() {
    for (const [row, cell] of this.#cells) cell.setAttribute("aria-selected", String(this.isSelected(row)));
    this.#actions();
  }

  get count() {
    return store.selectedFilter ? this.length : store.selected.size;
  }

  #actions() {
    const { bar } = this;
    if (!bar) return;
    const { count } = this;
    const wasHidden = bar.hidden;
    bar.hidden = count === 0;
    this.classList.toggle("selecting", count > 0);
    if (count === 0) { bar.dataset.of = ""; return; }
    const text = `${number(count)} selected${store.selectedFilter ? ", all there are" : ""}`;
    const key = `${text} ${store.view.of}`;
    if (bar.dataset.of === key) return;
    bar.dataset.of = key;
    const had = bar.contains(document.activeElement) ? /** @type {HTMLElement} */ (document.activeElement).dataset.do : null;
    const tool = (/** @type {string} */ text, /** @type {string} */ what, /** @type {string} */ keys) =>
      el("button", { type: "button", class: "pill", "data-do": what, "aria-keyshortcuts": keys, disabled: !store.mayLabel, onclick: () => this.dispatchEvent(new CustomEvent("do", { bubbles: true, detail: what })) },
        text, el("kbd", { "aria-hidden": "true" }, keys));
    bar.replaceChildren(el("b", null, text), tool("Move…", "move", "M"), tool("New group", "new", "G"), tool("Belongs", "confirm", "C"),
      store.view.of === "noise" ? "" : tool("Not here", "reject", "R"), store.view.of === "noise" ? "" : tool("Noise", "noise", "X"),
      el("button", { type: "button", class: "quiet", "aria-label": "Clear the selection", onclick: () => { store.select([]); this.focusGrid(); } }, "✕"));
    if (had) /** @type {HTMLElement | null} */ (bar.querySelector(`[data-do="${had}"]`))?.focus();
    if (wasHidden) this.#keepSeen();
    announce(text);
  }

  /** The bar must not lie on what the keys are at. */
  #keepSeen() {
    if (this.grid?.contains(document.activeElement)) requestAnimationFrame(() => this.#reveal(this.at));
  }

  // The line between typical and doubtful.

  get hasLine() {
    return this.cut !== undefined && !this.cut.hidden;
  }

  #cutShow() {
    const { sheet, view } = store;
    const { cut, slider } = this;
    if (!sheet || !cut || !slider) return;
    const isOpen = sheet.states.includes(STATE.sorted);
    cut.hidden = !(view.of === "group" && view.sort === "surest" && isOpen && sheet.length > 1 && store.mayLabel);
    if (cut.hidden) return;
    slider.max = String(sheet.length);
    if (!this.lineSet) {
      const before = (/** @type {number} */ share) => {
        for (let row = 0; row < sheet.length; row++) if (sure(sheet, row) < share) return row;
        return sheet.length;
      };
      // Where everything is in doubt, a line before all of it would say nothing.
      this.line = before(DOUBT) || before(DOUBT / 2) || sheet.length;
    }
    this.line = Math.min(this.line, sheet.length);
    slider.value = String(this.line);
    this.#cutWords();
  }

  /** The items before the line that nobody has confirmed yet, and those behind it. */
  #sides() {
    const { sheet } = store;
    if (!sheet) return { front: [], tail: [] };
    const all = [...sheet.ids];
    return { front: all.slice(0, this.line).filter((_, row) => sheet.states[row] !== STATE.confirmed), tail: all.slice(this.line) };
  }

  #cutWords() {
    const { accept, release, slider } = this;
    if (!accept || !release || !slider) return;
    const { front, tail } = this.#sides();
    accept.textContent = `Accept ${number(front.length)} in front`;
    accept.disabled = front.length === 0;
    release.textContent = `Release ${number(tail.length)} behind`;
    release.disabled = tail.length === 0;
    slider.setAttribute("aria-valuetext", `${number(this.line)} of ${number(this.length)} in front of the line`);
    slider.style.setProperty("--share", `${this.length > 0 ? (100 * this.line) / this.length : 0}%`);
  }

  acceptFront() {
    const { front } = this.#sides();
    if (front.length === 0) return;
    store.act({ do: "confirm", items: front });
    announce(`Accepted ${number(front.length)}`);
  }

  releaseTail() {
    const { tail } = this.#sides();
    if (tail.length === 0) return;
    store.act({ do: "reject", items: tail });
    announce(`Released ${number(tail.length)}`);
  }
}
customElements.define("genus-sheet", SheetView);
