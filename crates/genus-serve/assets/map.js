// The map: every item a point, alike ones side by side. A lasso selects in the grid, and what is selected in the grid is lit here.

import { reach, read, thumbnail } from "./api.js";
import { el, image, isDark, lifted, name, number, plural } from "./shared.js";
import { Plane, stamps } from "./plane.js";
import { mark } from "./queue.js";
import { STATE, Sheet, store } from "./store.js";
import { announce } from "./words.js";

/** @typedef {import("./plane.js").Spot} Spot */

/** With more points than this they are written into a picture pixel by pixel, which is faster than any pen. */
const BY_PEN = 4000;
const NAMED = 60;

/** Where items are, apart. @param {number[]} ids @param {number[]} xy @returns {[Float32Array, Float32Array]} */
const axes = (ids, xy) => [Float32Array.from(ids, (_, at) => xy[2 * at]), Float32Array.from(ids, (_, at) => xy[2 * at + 1])];

class Points extends Plane {
  /** @param {number[]} ids @param {number[]} xy */
  constructor(ids, xy) {
    super(...axes(ids, xy), `Map of ${number(ids.length)} items. Arrow keys move it, plus and minus zoom, 0 shows all, Enter selects what is seen.`);
    this.ids = ids;
    this.takesWheel = true;
    this.groups = new Int32Array(ids.length);
    this.states = new Uint8Array(ids.length);
    this.lit = new Uint8Array(ids.length);
    this.isLit = false;
    /** The row of each point in the sheet of all items. */
    this.rows = new Int32Array(ids.length);
    /** @type {{ text: string, place: Spot }[]} */
    this.names = [];
    /** @type {Spot[] | null} */
    this.lasso = null;
    this.isLasso = true;
    /** @type {(points: number[], isMore: boolean) => void} */
    this.selected = () => {};
    /** @type {(at: number | null) => void} */
    this.chosen = () => {};
    /** @type {Sheet | null} */
    this.sheet = null;
    this.base.addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault();
      const [low, high] = [this.placeOf([0, this.height]), this.placeOf([this.width, 0])];
      this.#inside([low, [high[0], low[1]], high, [low[0], high[1]]], event.shiftKey);
    });
  }

  /** Shows other items; the map stays where it is. @param {number[]} ids @param {number[]} xy */
  replace(ids, xy) {
    Object.assign(this, { ids, groups: new Int32Array(ids.length), states: new Uint8Array(ids.length), lit: new Uint8Array(ids.length), rows: new Int32Array(ids.length) });
    this.place(...axes(ids, xy));
  }

  /** @param {Sheet} sheet */
  colour(sheet) {
    this.sheet = sheet;
    this.ids.forEach((id, at) => {
      const row = sheet.row(id);
      this.rows[at] = row ?? -1;
      this.groups[at] = row === undefined ? 0 : sheet.groups[row];
      this.states[at] = row === undefined ? STATE.noise : sheet.states[row];
    });
    /** @type {Map<number, number[]>} */
    const members = new Map();
    this.groups.forEach((group, at) => {
      if (!group || this.states[at] === STATE.waiting) return;
      const own = members.get(group) ?? [];
      if (own.length === 0) members.set(group, own);
      if (own.length < 800) own.push(at);
    });
    // The middle of each group, where its name stands: the median, which strays do not move.
    const found = [...members].map(([group, own]) => {
      const median = (/** @type {Float32Array} */ axis) => Float32Array.from(own, (at) => axis[at]).sort()[own.length >> 1];
      return { group: store.groups.get(group), place: /** @type {Spot} */ ([median(this.x), median(this.y)]) };
    });
    found.sort((a, b) => Number(b.group?.named ?? false) - Number(a.group?.named ?? false) || (b.group?.items ?? 0) - (a.group?.items ?? 0));
    this.names = found.slice(0, NAMED).map(({ group, place }) => ({ text: group?.name ?? "", place }));
    this.redraw();
  }

  /** Lights what is selected. */
  lightSelected() {
    this.lit.fill(0);
    const { selected, selectedFilter, sheet } = store;
    const chosen = selectedFilter ? new Set(sheet?.ids) : selected;
    this.isLit = chosen.size > 0;
    if (this.isLit) this.ids.forEach((id, at) => { if (chosen.has(id)) this.lit[at] = 1; });
    this.redraw();
  }

  /** @param {number} at */
  isShown(at) {
    return this.rows[at] >= 0;
  }

  /** @param {number} at */
  tell(at) {
    const { sheet } = this;
    const row = this.rows[at];
    if (!sheet || row < 0) return [];
    const group = store.groups.get(this.groups[at]);
    const state = this.states[at];
    return [
      ...(sheet.pictures[row] === "1" ? [image(thumbnail(this.ids[at], 160), "")] : []), el("div", null, name(sheet.names[row])),
      el("div", { class: "called" }, group ? [mark(group), name(group.name)] : state === STATE.noise ? "noise" : "waits", group && state === STATE.waiting ? el("span", { class: "soft" }, "perhaps") : null)];
  }

  /** @param {number | null} at @param {PointerEvent} event */
  choose(at, event) {
    if (at !== null && (event.shiftKey || event.ctrlKey)) this.selected([at], true);
    else this.chosen(at);
  }

  // The lasso.

  /** @param {Spot} spot @param {PointerEvent} event */
  grabs(spot, event) {
    if (this.isLasso === event.altKey) return false;
    this.lasso = [spot];
    return true;
  }

  /** @param {Spot} spot */
  grabbed(spot) {
    const last = this.lasso?.at(-1);
    if (!this.lasso || !last || Math.hypot(spot[0] - last[0], spot[1] - last[1]) < 3) return;
    this.lasso.push(spot);
    this.next(() => this.show());
  }

  /** @param {PointerEvent} event */
  released(event) {
    const lasso = this.lasso;
    this.lasso = null;
    this.next(() => this.show());
    if (!lasso || lasso.length < 3 || event.type !== "pointerup") return;
    this.#inside(lasso.map((spot) => this.placeOf(spot)), event.shiftKey || event.ctrlKey);
  }

  /** Selects what is inside of a line. @param {Spot[]} line @param {boolean} isMore */
  #inside(line, isMore) {
    const [xs, ys] = [line.map(([x]) => x), line.map(([, y]) => y)];
    const reduce = (/** @type {number[]} */ of, /** @type {(a: number, b: number) => number} */ best) => of.reduce((a, b) => best(a, b));
    /** @type {number[]} */
    const found = [];
    this.within([reduce(xs, Math.min), reduce(ys, Math.min)], [reduce(xs, Math.max), reduce(ys, Math.max)], (at) => {
      if (!this.isShown(at)) return;
      const [x, y] = [this.x[at], this.y[at]];
      // Inside is where a line to the right crosses an odd number of times.
      let isIn = false;
      for (let to = 0, from = line.length - 1; to < line.length; from = to++) {
        if ((ys[to] > y) !== (ys[from] > y) && x < ((xs[from] - xs[to]) * (y - ys[to])) / (ys[from] - ys[to]) + xs[to]) isIn = !isIn;
      }
      if (isIn) found.push(at);
    });
    this.selected(found, isMore);
  }

  // Drawing.

  /** @param {CanvasRenderingContext2D} pen */
  draw(pen) {
    /** @type {Map<number, number>} */
    const kinds = new Map([[0, 0]]);
    const colours = [{ colour: isDark() ? "#6a7078" : "#a9aeb5", isDisc: true }];
    for (const group of store.groups.values()) {
      kinds.set(group.id, colours.length);
      colours.push({ colour: lifted(group.colour), isDisc: group.named });
    }
    const kind = (/** @type {number} */ at) => (this.states[at] === STATE.waiting ? 0 : kinds.get(this.groups[at]) ?? 0);
    if (this.drawn.length <= BY_PEN) this.#byPen(pen, colours, kind);
    else this.#byPixel(pen, colours.map(({ colour }) => colour), kind);
    if (!this.isLit || this.names.length <= NAMED) this.write(pen, this.names);
  }

  /** @param {CanvasRenderingContext2D} pen @param {{ colour: string, isDisc: boolean }[]} colours @param {(at: number) => number} kind */
  #byPen(pen, colours, kind) {
    const { ratio } = this;
    const { sheet, size } = stamps(colours, this.radius(), ratio);
    for (const lit of this.isLit ? [0, 1] : [0]) {
      pen.globalAlpha = this.isLit && lit === 0 ? 0.18 : 1;
      for (const at of this.drawn) {
        if (this.isLit && this.lit[at] !== lit) continue;
        if (this.rows[at] < 0) continue;
        const [x, y] = this.at(this.x[at], this.y[at]);
        if (x < -20 || y < -20 || x > this.width + 20 || y > this.height + 20) continue;
        const column = this.states[at] === STATE.waiting ? 1 : 0;
        pen.drawImage(sheet, column * size, kind(at) * size, size, size, Math.round(x * ratio - size / 2), Math.round(y * ratio - size / 2), size, size);
      }
    }
    pen.globalAlpha = 1;
  }

  /** @param {CanvasRenderingContext2D} pen @param {string[]} colours @param {(at: number) => number} kind */
  #byPixel(pen, colours, kind) {
    const { width, height } = pen.canvas;
    const picture = pen.createImageData(width, height);
    const pixels = new Uint32Array(picture.data.buffer);
    const values = Uint32Array.from(colours, (colour) => pixelOf(colour));
    const { x, y, left, top, scale, ratio, lit, rows } = this;
    const radius = this.radius() * ratio;
    const spread = (/** @type {number} */ radius) => {
      const places = [];
      const reach = Math.ceil(radius);
      for (let dy = -reach; dy <= reach; dy++) {
        for (let dx = -reach; dx <= reach; dx++) if (Math.hypot(dx, dy) <= radius) places.push(dx, dy);
      }
      return Int16Array.from(places);
    };
    const discs = [spread(radius * 0.9), spread(radius * 1.15)];
    for (const pass of this.isLit ? [0, 1] : [0]) {
      const disc = discs[pass];
      const alpha = (this.isLit && pass === 0 ? 0x38 : 0xe6) << 24;
      const reach = Math.ceil(radius * 1.15) + 1;
      for (const at of this.drawn) {
        if ((this.isLit && lit[at] !== pass) || rows[at] < 0) continue;
        const px = Math.round((left + scale * x[at]) * ratio);
        const py = Math.round((top - scale * y[at]) * ratio);
        if (px < reach || py < reach || px >= width - reach || py >= height - reach) continue;
        const value = (values[kind(at)] & 0xffffff) | alpha;
        const middle = py * width + px;
        for (let no = 0; no < disc.length; no += 2) pixels[middle + disc[no + 1] * width + disc[no]] = value;
      }
    }
    pen.putImageData(picture, 0, 0);
  }

  /** @param {CanvasRenderingContext2D} pen */
  drawAbove(pen) {
    if (!this.lasso || this.lasso.length < 2) return;
    const style = getComputedStyle(this.field);
    pen.beginPath();
    this.lasso.forEach((spot) => pen.lineTo(...spot));
    pen.closePath();
    pen.fillStyle = style.getPropertyValue("--accent-wash").trim();
    pen.strokeStyle = style.getPropertyValue("--accent").trim();
    pen.lineWidth = 1.5;
    pen.fill();
    pen.stroke();
  }
}

/** A colour as the bytes of a pixel. @param {string} colour */
function pixelOf(colour) {
  const [r, g, b] = colour.startsWith("#") ? [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16)) : (colour.match(/\d+/g) ?? []).map(Number);
  return (b << 16) | (g << 8) | r;
}

export class MapView extends HTMLElement {
  /** @type {Points | null} */
  points = null;
  #tag = "";
  #loading = false;
  #took = 0;

  connectedCallback() {
    this.words = el("p", { class: "soft", role: "status" });
    const mode = (/** @type {string} */ text, /** @type {boolean} */ isLasso, /** @type {string} */ title) =>
      el("button", { type: "button", class: "pill", title, "aria-pressed": String(isLasso), onclick: () => this.#mode(isLasso) }, text);
    this.modes = [mode("Lasso", true, "Dragging selects; with Alt it moves the map"), mode("Move", false, "Dragging moves the map; with Alt it selects")];
    this.place = el("div", { class: "place" });
    this.append(el("div", { class: "map-bar" }, this.modes, this.words), this.place);
    store.addEventListener("selection", () => { if (!this.hidden) this.points?.lightSelected(); });
    let timer = 0;
    store.addEventListener("groups", () => {
      if (this.hidden || !this.points) return;
      clearTimeout(timer);
      timer = window.setTimeout(() => this.open(), Math.max(400, 4 * this.#took));
    });
  }

  /** @param {boolean} isLasso */
  #mode(isLasso) {
    if (this.points) this.points.isLasso = isLasso;
    this.points?.field.classList.toggle("lasso", isLasso);
    this.modes?.forEach((button, at) => button.setAttribute("aria-pressed", String((at === 0) === isLasso)));
  }

  /** Reads the map, and what the items are. */
  async open() {
    if (this.#loading || !this.words || !this.place) return;
    this.#loading = true;
    const start = performance.now();
    if (!this.points) this.words.textContent = "Laying out the map …";
    try {
      const [sheet, answer] = await Promise.all([
        read("/v1/sheet").then((data) => new Sheet(/** @type {any} */ (data))),
        reach("/v1/map", this.#tag ? { headers: { "if-none-match": this.#tag } } : {}),
      ]);
      if (answer.status !== 304) {
        this.#tag = answer.headers.get("etag") ?? "";
        /** @type {{ ids: number[], xy: number[] }} */
        const { ids, xy } = await answer.json();
        if (this.points) this.points.replace(ids, xy);
        else {
          this.points = new Points(ids, xy);
          this.points.selected = (points, isMore) => this.#select(points, isMore);
          this.points.chosen = (at) => this.#choose(at);
          this.place.replaceChildren(this.points.field);
          this.#mode(true);
        }
      }
      this.points?.colour(sheet);
      this.points?.lightSelected();
      const count = this.points?.ids.length ?? 0;
      this.words.textContent = count < 3 ? "It takes a few items to draw a map." : `${number(count)} ${plural(count, "item", "items")}, alike ones side by side`;
    } finally {
      this.#loading = false;
      this.#took = performance.now() - start;
    }
  }

  /** @param {number[]} found @param {boolean} isMore */
  #select(found, isMore) {
    const { points } = this;
    if (!points?.sheet) return;
    const ids = new Set(found.map((at) => points.ids[at]));
    if (isMore) store.selected.forEach((id) => ids.add(id));
    if (ids.size === 0) { store.select([]); return; }
    const rows = [...ids].map((id) => points.sheet?.row(id)).filter((row) => row !== undefined);
    store.lookAt(points.sheet.only(rows), [...ids]);
    store.select(ids);
    announce(`${number(ids.size)} selected`);
  }

  /** @param {number | null} at */
  async #choose(at) {
    const { points } = this;
    if (!points || at === null) { store.select([]); return; }
    const id = points.ids[at];
    const state = points.states[at];
    if (state === STATE.waiting || state === STATE.noise) await store.look({ of: state === STATE.waiting ? "waiting" : "noise" });
    else await store.look({ of: "group", group: points.groups[at], sort: "surest" });
    store.select([id]);
    this.dispatchEvent(new CustomEvent("found", { bubbles: true, detail: id }));
  }
}
customElements.define("genus-map", MapView);
