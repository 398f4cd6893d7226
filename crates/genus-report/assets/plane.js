// A plane of points that is moved, zoomed and pointed at: what the maps of all pages share. What a point looks like and what becomes of
// it is for whoever extends it.

import { el, isDark, root, themed } from "./shared.js";

/** @typedef {[number, number]} Spot */

export class Plane {
  /**
   * @param {Float32Array} x where the points are; what is no number is not on the map
   * @param {Float32Array} y
   * @param {string} label
   * @param {Spot[]} [more] further places that must be seen
   */
  constructor(x, y, label, more = []) {
    this.x = x;
    this.y = y;
    /** The numbers of the points that are on the map. */
    this.drawn = new Uint32Array();
    /** The corners of what there is. */
    this.box = [0, 0, 0, 0];
    /** Squares of the plane: how many in a row, their side, where the points of each begin, and the points. */
    this.side = 1;
    this.square = 1;
    this.begins = new Uint32Array(2);
    this.inSquares = new Uint32Array();
    /** Where the middle of the plane is on the screen, and how many pixels a step on it is. */
    this.left = 0;
    this.top = 0;
    this.scale = 1;
    this.whole = 1;
    this.width = 0;
    this.height = 0;
    this.ratio = 1;
    /** The point under the pointer. @type {number | null} */
    this.over = null;
    /** Where everything was when it was drawn last. @type {null | { left: number, top: number, scale: number }} */
    this.drawnAt = null;
    /** @type {number | null} */
    this.frame = null;
    this.work = () => {};
    /** Whether the wheel zooms without Ctrl, where there is nothing to scroll. */
    this.takesWheel = false;
    this.rest = 0;
    this.base = el("canvas", { tabindex: "0", role: "img", "aria-label": label });
    this.above = el("canvas", { "aria-hidden": "true" });
    this.layer = el("canvas");
    this.tip = el("div", { class: "tip", hidden: true });
    const tool = (/** @type {string} */ label, /** @type {string} */ text, /** @type {() => void} */ work) =>
      el("button", { type: "button", "aria-label": label, title: label, onclick: work }, text);
    this.tools = el("div", { class: "tools" }, tool("Zoom out", "−", () => this.zoom(1 / 1.5, ...this.middle)), tool("Zoom in", "+", () => this.zoom(1.5, ...this.middle)), tool("Show all", "⤢", () => this.reset()));
    this.field = el("div", { class: "field" }, this.base, this.above, this.tip, this.tools);
    this.place(x, y, more);
    this.#listen();
    themed.push(() => this.redraw());
    new ResizeObserver(() => this.#resize()).observe(this.field);
  }

  /** @returns {Spot} */
  get middle() {
    return [this.width / 2, this.height / 2];
  }

  /** Puts other points in the place of those that are there. @param {Float32Array} x @param {Float32Array} y @param {Spot[]} [more] */
  place(x, y, more = []) {
    Object.assign(this, { x, y, over: null });
    this.drawn = Uint32Array.from(Array.from(x.keys()).filter((at) => !Number.isNaN(x[at])));
    let [left, bottom, right, top] = [Infinity, Infinity, -Infinity, -Infinity];
    const include = (/** @type {number} */ px, /** @type {number} */ py) => {
      [left, bottom, right, top] = [Math.min(left, px), Math.min(bottom, py), Math.max(right, px), Math.max(top, py)];
    };
    for (const at of this.drawn) include(x[at], y[at]);
    more.forEach((place) => include(...place));
    this.box = left <= right ? [left, bottom, right, top] : [0, 0, 0, 0];
    this.#squares();
  }

  // What is for others to say.

  /** Draws everything. @param {CanvasRenderingContext2D} pen */
  draw(pen) { void pen; }

  /** What is drawn above the points, and anew in every frame. @param {CanvasRenderingContext2D} pen */
  drawAbove(pen) { void pen; }

  /** Whether a point can be pointed at. @param {number} at */
  isShown(at) { return at >= 0; }

  /** What is said of the point under the pointer. @param {number} at @returns {(Node | string)[]} */
  tell(at) { return [String(at)]; }

  /** A point, or none, was chosen. @param {number | null} at @param {PointerEvent} event */
  choose(at, event) { void at; void event; }

  /** Whether a movement of the pointer that begins here is not to move the map. @param {Spot} spot @param {PointerEvent} event */
  grabs(spot, event) { void spot; void event; return false; }

  /** Such a movement. @param {Spot} spot */
  grabbed(spot) { void spot; }

  /** Its end. @param {PointerEvent} event */
  released(event) { void event; }

  radius() {
    const count = this.drawn.length;
    const base = count > 6000 ? 2.2 : count > 1200 ? 3 : count > 200 ? 4 : 5.5;
    return base * Math.min(Math.sqrt(this.scale / this.whole), 2.2);
  }

  // Where things are.

  /** Points by the square that they are in, so that the one under the pointer is found without looking at all. */
  #squares() {
    const [left, bottom, right, top] = this.box;
    const side = Math.max(1, Math.ceil(Math.sqrt(this.drawn.length / 2)));
    this.side = side;
    this.square = Math.max(right - left, top - bottom, 1e-9) / side;
    const places = new Uint32Array(this.drawn.length);
    const counts = new Uint32Array(side * side + 1);
    this.drawn.forEach((at, no) => {
      places[no] = this.#squareOf(this.x[at], this.y[at]);
      counts[places[no] + 1]++;
    });
    for (let at = 1; at < counts.length; at++) counts[at] += counts[at - 1];
    this.begins = counts.slice();
    this.inSquares = new Uint32Array(this.drawn.length);
    this.drawn.forEach((at, no) => { this.inSquares[counts[places[no]]++] = at; });
  }

  /** @param {number} x @param {number} y */
  #squareOf(x, y) {
    const { side, square } = this;
    const within = (/** @type {number} */ value) => Math.min(Math.max(Math.floor(value / square), 0), side - 1);
    return within(y - this.box[1]) * side + within(x - this.box[0]);
  }

  /** The points of a part of the plane, and some around it. @param {Spot} low @param {Spot} high @param {(at: number) => void} work */
  within(low, high, work) {
    const { side, begins, inSquares } = this;
    const [first, last] = [this.#squareOf(...low), this.#squareOf(...high)];
    const [from, to] = [first % side, last % side];
    for (let row = Math.floor(first / side); row <= Math.floor(last / side); row++) {
      for (let no = begins[row * side + from]; no < begins[row * side + to + 1]; no++) work(inSquares[no]);
    }
  }

  /** The point nearest to a spot on the screen, if one is near. @param {number} px @param {number} py */
  nearest(px, py) {
    const [x, y] = this.placeOf([px, py]);
    const reach = (this.radius() + 6) / this.scale;
    let [best, found] = [reach * reach, /** @type {number | null} */ (null)];
    this.within([x - reach, y - reach], [x + reach, y + reach], (at) => {
      if (!this.isShown(at)) return;
      const distance = (this.x[at] - x) ** 2 + (this.y[at] - y) ** 2;
      if (distance < best) [best, found] = [distance, at];
    });
    return found;
  }

  /** Where a place is on the screen; up is up. @param {number} x @param {number} y @returns {Spot} */
  at(x, y) {
    return [this.left + this.scale * x, this.top - this.scale * y];
  }

  /** The place that is at a spot of the screen. @param {Spot} spot @returns {Spot} */
  placeOf([px, py]) {
    return [(px - this.left) / this.scale, (this.top - py) / this.scale];
  }

  // Moving.

  #resize() {
    const { width, height } = this.field.getBoundingClientRect();
    if (width === 0 || height === 0) return;
    const first = this.width === 0;
    const ratio = Math.min(devicePixelRatio || 1, 2);
    Object.assign(this, { width, height, ratio });
    for (const canvas of [this.base, this.above, this.layer]) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    if (first) this.reset();
    else this.redraw();
  }

  reset() {
    const [left, bottom, right, top] = this.box;
    const pad = 36;
    // A map of one point is as good at any scale.
    const extent = Math.max(right - left, top - bottom) || 1;
    this.scale = Math.max(Math.min((this.width - 2 * pad) / Math.max(right - left, extent / 8), (this.height - 2 * pad) / Math.max(top - bottom, extent / 8)), 1e-6);
    this.whole = this.scale;
    this.left = this.width / 2 - (this.scale * (left + right)) / 2;
    this.top = this.height / 2 + (this.scale * (bottom + top)) / 2;
    this.redraw();
  }

  /** @param {number} by @param {number} px @param {number} py */
  zoom(by, px, py) {
    const scale = Math.min(Math.max(this.scale * by, this.whole * 0.6), this.whole * 60);
    const factor = scale / this.scale;
    this.left = px - (px - this.left) * factor;
    this.top = py - (py - this.top) * factor;
    this.scale = scale;
    this.moved();
  }

  /** @param {number} dx @param {number} dy */
  pan(dx, dy) {
    this.left += dx;
    this.top += dy;
    this.moved();
  }

  /** While the map moves, what was drawn last is moved along; it is drawn anew when the map rests. */
  moved() {
    if (!this.drawnAt) return;
    this.next(() => this.show());
    clearTimeout(this.rest);
    this.rest = window.setTimeout(() => this.redraw(), 90);
  }

  redraw() {
    this.next(() => {
      const pen = /** @type {CanvasRenderingContext2D} */ (this.layer.getContext("2d"));
      this.drawnAt = { left: this.left, top: this.top, scale: this.scale };
      pen.setTransform(1, 0, 0, 1, 0, 0);
      pen.clearRect(0, 0, this.layer.width, this.layer.height);
      this.draw(pen);
      this.show();
    });
  }

  /** Does the last of what is asked for, once a frame. @param {() => void} work */
  next(work) {
    if (this.width === 0) return;
    this.work = work;
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      this.work();
    });
  }

  /** Brings what was drawn last to where it is now. */
  show() {
    const pen = this.base.getContext("2d");
    if (!pen || !this.drawnAt) return;
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, this.base.width, this.base.height);
    const grown = this.scale / this.drawnAt.scale;
    const [dx, dy] = [this.left - this.drawnAt.left * grown, this.top - this.drawnAt.top * grown];
    pen.drawImage(this.layer, dx * this.ratio, dy * this.ratio, this.layer.width * grown, this.layer.height * grown);
    this.light();
  }

  /** Draws what is above the points: the ring around the one under the pointer. */
  light() {
    const pen = this.above.getContext("2d");
    if (!pen) return;
    pen.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    pen.clearRect(0, 0, this.width, this.height);
    this.drawAbove(pen);
    if (this.over === null) return;
    pen.lineWidth = 2;
    pen.strokeStyle = getComputedStyle(root).getPropertyValue("--ink").trim();
    pen.beginPath();
    pen.arc(...this.at(this.x[this.over], this.y[this.over]), this.radius() + 4, 0, 2 * Math.PI);
    pen.stroke();
  }

  /**
   * Writes names; one that would lie on another is left out.
   * @param {CanvasRenderingContext2D} pen
   * @param {Array<{ text: string, place: Spot }>} names those that matter most first
   */
  write(pen, names) {
    pen.save();
    pen.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    pen.font = "600 12px Inter, system-ui, sans-serif";
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    const style = getComputedStyle(root);
    pen.lineJoin = "round";
    pen.lineWidth = 4;
    pen.strokeStyle = style.getPropertyValue("--card").trim();
    pen.fillStyle = style.getPropertyValue("--ink").trim();
    /** @type {[number, number, number][]} */
    const taken = [];
    for (const { text: whole, place } of names) {
      const [x, y] = this.at(...place);
      const text = whole.length > 26 ? `${whole.slice(0, 25)}…` : whole;
      const half = pen.measureText(text).width / 2 + 3;
      if (taken.some(([tx, ty, th]) => Math.abs(tx - x) < th + half && Math.abs(ty - y) < 16)) continue;
      taken.push([x, y, half]);
      pen.strokeText(text, x, y);
      pen.fillText(text, x, y);
    }
    pen.restore();
  }

  // Pointing.

  /** @param {number} px @param {number} py */
  hover(px, py) {
    const at = this.nearest(px, py);
    if (at !== this.over) {
      this.over = at;
      this.field.classList.toggle("over", at !== null);
      this.light();
      this.tip.hidden = at === null;
      if (at === null) return;
      this.tip.replaceChildren(...this.tell(at));
    }
    if (at === null) return;
    const { offsetWidth: w, offsetHeight: h } = this.tip;
    this.tip.style.left = `${Math.min(Math.max(px + 16, 8), this.width - w - 8)}px`;
    this.tip.style.top = `${py + 16 + h > this.height - 8 ? Math.max(py - h - 16, 8) : py + 16}px`;
  }

  leave() {
    this.over = null;
    this.tip.hidden = true;
    this.field.classList.remove("over");
    this.light();
  }

  #listen() {
    /** @type {Map<number, Spot>} */
    const pointers = new Map();
    let moved = 0;
    let isGrabbed = false;
    const spot = (/** @type {PointerEvent | WheelEvent} */ event) => {
      const box = this.base.getBoundingClientRect();
      return /** @type {Spot} */ ([event.clientX - box.left, event.clientY - box.top]);
    };
    this.base.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      pointers.set(event.pointerId, spot(event));
      this.base.setPointerCapture(event.pointerId);
      moved = 0;
      isGrabbed = pointers.size === 1 && this.grabs(spot(event), event);
    });
    this.base.addEventListener("pointermove", (event) => {
      const now = spot(event);
      const before = pointers.get(event.pointerId);
      if (!before) { this.hover(...now); return; }
      const other = [...pointers].find(([id]) => id !== event.pointerId)?.[1];
      moved += Math.hypot(now[0] - before[0], now[1] - before[1]);
      if (isGrabbed) {
        this.leave();
        this.grabbed(now);
      } else if (other) {
        // Two fingers zoom.
        const apart = (/** @type {Spot} */ place) => Math.max(Math.hypot(place[0] - other[0], place[1] - other[1]), 1);
        this.zoom(apart(now) / apart(before), (now[0] + other[0]) / 2, (now[1] + other[1]) / 2);
      } else if (moved > 4) {
        this.field.classList.add("dragging");
        this.leave();
        this.pan(now[0] - before[0], now[1] - before[1]);
      }
      pointers.set(event.pointerId, now);
    });
    const release = (/** @type {PointerEvent} */ event) => {
      const wasDown = pointers.delete(event.pointerId);
      this.field.classList.remove("dragging");
      if (!wasDown) return;
      if (isGrabbed) {
        isGrabbed = false;
        this.released(event);
        if (moved > 4) return;
      }
      if (event.type !== "pointerup" || moved > 4) return;
      this.choose(this.nearest(...spot(event)), event);
    };
    this.base.addEventListener("pointerup", release);
    this.base.addEventListener("pointercancel", release);
    this.base.addEventListener("pointerleave", () => this.leave());
    this.base.addEventListener("wheel", (event) => {
      if (!this.takesWheel && !event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY / 300), ...spot(event));
    }, { passive: false });
    this.base.addEventListener("keydown", (event) => {
      const work = /** @type {Record<string, () => void>} */ ({
        ArrowLeft: () => this.pan(60, 0), ArrowRight: () => this.pan(-60, 0), ArrowUp: () => this.pan(0, 60), ArrowDown: () => this.pan(0, -60),
        "+": () => this.zoom(1.5, ...this.middle), "=": () => this.zoom(1.5, ...this.middle), "-": () => this.zoom(1 / 1.5, ...this.middle), 0: () => this.reset(),
      })[event.key];
      if (!work || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      work();
    });
  }
}

/**
 * Every kind of point, drawn once to be copied from then on: a row a colour, and in it a filled point, a hollow one and a star.
 * @param {Array<{ colour: string, isDisc: boolean }>} kinds
 * @param {number} radius
 * @param {number} ratio
 */
export function stamps(kinds, radius, ratio) {
  const size = Math.ceil((2 * radius + 4) * ratio);
  const sheet = el("canvas", { width: size * 3, height: Math.max(1, size * kinds.length) });
  const pen = /** @type {CanvasRenderingContext2D} */ (sheet.getContext("2d"));
  const paper = getComputedStyle(root).getPropertyValue("--card").trim();
  kinds.forEach(({ colour, isDisc }, row) => {
    for (let column = 0; column < 3; column++) {
      pen.save();
      pen.translate((column + 0.5) * size, (row + 0.5) * size);
      pen.scale(ratio, ratio);
      pen.beginPath();
      if (column === 2) star(pen, radius * 1.7);
      else if (isDisc) pen.arc(0, 0, radius, 0, 2 * Math.PI);
      else diamond(pen, radius * 1.25);
      pen.closePath();
      if (column === 1) {
        pen.lineWidth = 1.2;
        pen.strokeStyle = colour;
        pen.stroke();
      } else {
        pen.globalAlpha = column === 2 ? 1 : 0.82;
        pen.fillStyle = colour;
        pen.fill();
        pen.globalAlpha = 1;
        pen.lineWidth = column === 2 ? 1 : 0.5;
        pen.strokeStyle = paper;
        pen.stroke();
      }
      pen.restore();
    }
  });
  return { key: `${radius.toFixed(1)} ${isDark()}`, sheet, size };
}

/** @param {CanvasRenderingContext2D} pen @param {number} r */
function diamond(pen, r) {
  pen.moveTo(0, -r);
  pen.lineTo(r, 0);
  pen.lineTo(0, r);
  pen.lineTo(-r, 0);
}

/** @param {CanvasRenderingContext2D} pen @param {number} r */
function star(pen, r) {
  for (let point = 0; point < 10; point++) {
    const [angle, reach] = [(Math.PI * point) / 5 - Math.PI / 2, point % 2 === 0 ? r : r * 0.48];
    pen.lineTo(reach * Math.cos(angle), reach * Math.sin(angle));
  }
}
