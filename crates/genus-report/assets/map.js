// The map: every item a point, alike ones side by side.

{
  const section = $("map");
  const places = items.places;
  const drawn = places ? items.id.map((_, at) => at).filter((at) => places[at]) : [];
  if (drawn.length < 3) {
    section.append(el("p", { class: "empty" }, "There is no map: it takes a few items to draw one."));
  } else {
    section.append(el("p", { class: "soft" },
      `Every ${data.things[0]} is a point, and those that look alike to the encoder lie side by side (${data.projection}). Drag to move, and zoom with the buttons, with + and −, or with the wheel while holding Ctrl. Choose a point to see it in its sheet.`));
    whenNear(section, () => new ItemMap(section));
  }

  class ItemMap {
    constructor(section) {
      this.visible = categories.map(() => true);
      this.lit = null;
      this.over = null;
      this.base = el("canvas", { tabindex: "0", role: "img", "aria-label": `Map of ${things(drawn.length)} in ${categories.length} categories. Arrow keys move it, plus and minus zoom, 0 shows all.` });
      this.top = el("canvas", { "aria-hidden": "true" });
      this.layer = el("canvas");
      this.tip = el("div", { class: "tip", hidden: true });
      const tool = (label, text, work) => el("button", { type: "button", "aria-label": label, title: label, onclick: work }, text);
      const middle = () => [this.width / 2, this.height / 2];
      this.field = el("div", { class: "field" }, this.base, this.top, this.tip, el("div", { class: "tools" },
        tool("Zoom out", "−", () => this.zoom(1 / 1.5, ...middle())), tool("Zoom in", "+", () => this.zoom(1.5, ...middle())), tool("Show all", "⤢", () => this.reset())));
      section.append(el("div", { class: "mapped" }, this.field, this.legend()));
      this.bounds();
      this.grid();
      this.listen();
      themed.push(() => { this.sprites = null; this.redraw(); });
      new ResizeObserver(() => this.resize()).observe(this.field);
    }

    bounds() {
      const all = drawn.map((at) => places[at]).concat(examples.map((e) => e.place).filter(Boolean));
      const side = (axis, of) => all.reduce((best, place) => of(best, place[axis]), all[0][axis]);
      this.box = [side(0, Math.min), side(1, Math.min), side(0, Math.max), side(1, Math.max)];
      // The middle of each category, where its name stands: the median, which strays do not move.
      this.middles = categories.map((_, category) => {
        const own = [];
        for (let at = starts[category]; at < starts[category + 1]; at++) if (places[at]) own.push(places[at]);
        if (own.length === 0) return null;
        const median = (axis) => own.map((place) => place[axis]).sort((a, b) => a - b)[own.length >> 1];
        return [median(0), median(1)];
      });
    }

    /** Points by the square they are in, so that the one under the pointer is found without looking at all. */
    grid() {
      this.cells = new Map();
      this.cell = 200;
      for (const at of drawn) {
        const key = this.key(places[at][0], places[at][1]);
        if (!this.cells.has(key)) this.cells.set(key, []);
        this.cells.get(key).push(at);
      }
    }

    key(x, y) {
      return Math.floor(x / this.cell) * 65536 + Math.floor(y / this.cell);
    }

    resize() {
      const { width, height } = this.field.getBoundingClientRect();
      if (width === 0) return;
      const first = this.width === undefined;
      const ratio = Math.min(devicePixelRatio || 1, 2);
      Object.assign(this, { width, height, ratio });
      for (const canvas of [this.base, this.top, this.layer]) {
        canvas.width = Math.round(width * ratio);
        canvas.height = Math.round(height * ratio);
      }
      this.sprites = null;
      if (first) this.reset();
      else this.redraw();
    }

    reset() {
      const [left, top, right, bottom] = this.box;
      const pad = 36;
      this.scale = Math.min((this.width - 2 * pad) / Math.max(right - left, 1), (this.height - 2 * pad) / Math.max(bottom - top, 1));
      this.whole = this.scale;
      this.x = this.width / 2 - (this.scale * (left + right)) / 2;
      this.y = this.height / 2 + (this.scale * (top + bottom)) / 2;
      this.redraw();
    }

    /** Where a place is on the screen; up is up. */
    at(place) {
      return [this.x + this.scale * place[0], this.y - this.scale * place[1]];
    }

    zoom(by, px, py) {
      const scale = Math.min(Math.max(this.scale * by, this.whole * 0.6), this.whole * 60);
      const factor = scale / this.scale;
      this.x = px - (px - this.x) * factor;
      this.y = py - (py - this.y) * factor;
      this.scale = scale;
      this.moved();
    }

    pan(dx, dy) {
      this.x += dx;
      this.y += dy;
      this.moved();
    }

    /** While the map moves, what was drawn last is moved along; it is drawn anew when the map rests. */
    moved() {
      if (!this.drawnAt) return;
      this.next(() => this.show());
      clearTimeout(this.rest);
      this.rest = setTimeout(() => this.redraw(), 90);
    }

    redraw() {
      this.next(() => {
        this.draw();
        this.show();
      });
    }

    /** Does the last of what is asked for, once a frame. */
    next(work) {
      if (this.width === undefined) return;
      this.work = work;
      this.frame ??= requestAnimationFrame(() => {
        this.frame = null;
        this.work();
      });
    }

    /** Brings what was drawn last to where it is now. */
    show() {
      const pen = this.base.getContext("2d");
      pen.setTransform(1, 0, 0, 1, 0, 0);
      pen.clearRect(0, 0, this.base.width, this.base.height);
      const grown = this.scale / this.drawnAt.scale;
      const [dx, dy] = [this.x - this.drawnAt.x * grown, this.y - this.drawnAt.y * grown];
      pen.drawImage(this.layer, dx * this.ratio, dy * this.ratio, this.layer.width * grown, this.layer.height * grown);
      this.light();
    }

    radius() {
      const base = drawn.length > 6000 ? 2.2 : drawn.length > 1200 ? 3 : drawn.length > 200 ? 4 : 5.5;
      return base * Math.min(Math.sqrt(this.scale / this.whole), 2.2);
    }

    /** Every kind of point is drawn once and copied from then on. */
    makeSprites(radius) {
      const key = `${radius.toFixed(1)} ${isDark()}`;
      if (this.sprites?.key === key) return this.sprites;
      const size = Math.ceil((2 * radius + 4) * this.ratio);
      const sheet = el("canvas", { width: size * 3, height: size * categories.length });
      const pen = sheet.getContext("2d");
      const paper = getComputedStyle(root).getPropertyValue("--card").trim();
      categories.forEach((category, row) => {
        const colour = lifted(category.colour);
        for (let column = 0; column < 3; column++) {
          pen.save();
          pen.translate((column + 0.5) * size, (row + 0.5) * size);
          pen.scale(this.ratio, this.ratio);
          pen.beginPath();
          const r = column === 2 ? radius * 1.7 : radius;
          if (column === 2) star(pen, r);
          else if (category.known) pen.arc(0, 0, radius, 0, 2 * Math.PI);
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
      this.sprites = { key, sheet, size };
      return this.sprites;
    }

    draw() {
      const pen = this.layer.getContext("2d");
      const { ratio } = this;
      this.drawnAt = { x: this.x, y: this.y, scale: this.scale };
      pen.setTransform(1, 0, 0, 1, 0, 0);
      pen.clearRect(0, 0, this.layer.width, this.layer.height);
      const { sheet, size } = this.makeSprites(this.radius());
      const stamp = (place, category, column) => {
        const [x, y] = this.at(place);
        if (x < -20 || y < -20 || x > this.width + 20 || y > this.height + 20) return;
        pen.drawImage(sheet, column * size, category * size, size, size, Math.round(x * ratio - size / 2), Math.round(y * ratio - size / 2), size, size);
      };
      for (const pass of [0, 1]) {
        for (const item of drawn) {
          const category = categoryOf[item];
          if (!this.visible[category]) continue;
          const dim = this.lit !== null && this.lit !== category;
          if (dim !== (pass === 0)) continue;
          pen.globalAlpha = dim ? 0.12 : 1;
          stamp(places[item], category, unsure.has(item) ? 1 : 0);
        }
      }
      for (const example of examples) {
        if (!example.place || !this.visible[example.class]) continue;
        pen.globalAlpha = this.lit !== null && this.lit !== example.class ? 0.12 : 1;
        stamp(example.place, example.class, 2);
      }
      pen.globalAlpha = 1;
      this.names(pen);
    }

    names(pen) {
      if (categories.length > 60 && this.lit === null) return;
      pen.save();
      pen.scale(this.ratio, this.ratio);
      pen.font = "600 12px Inter, system-ui, sans-serif";
      pen.textAlign = "center";
      pen.textBaseline = "middle";
      const style = getComputedStyle(root);
      pen.lineJoin = "round";
      pen.lineWidth = 4;
      pen.strokeStyle = style.getPropertyValue("--card").trim();
      pen.fillStyle = style.getPropertyValue("--ink").trim();
      const taken = [];
      categories.forEach((category, at) => {
        if (!this.visible[at] || !this.middles[at] || (this.lit !== null && this.lit !== at)) return;
        const [x, y] = this.at(this.middles[at]);
        const text = category.name.length > 26 ? `${category.name.slice(0, 25)}…` : category.name;
        const half = pen.measureText(text).width / 2 + 3;
        // A name that would lie on another is left out; the legend has it.
        if (taken.some(([tx, ty, th]) => Math.abs(tx - x) < th + half && Math.abs(ty - y) < 16)) return;
        taken.push([x, y, half]);
        pen.strokeText(text, x, y);
        pen.fillText(text, x, y);
      });
      pen.restore();
    }

    /** The ring around the point under the pointer. */
    light() {
      const pen = this.top.getContext("2d");
      pen.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
      pen.clearRect(0, 0, this.width, this.height);
      if (this.over === null) return;
      const [x, y] = this.at(places[this.over]);
      pen.lineWidth = 2;
      pen.strokeStyle = getComputedStyle(root).getPropertyValue("--ink").trim();
      pen.beginPath();
      pen.arc(x, y, this.radius() + 4, 0, 2 * Math.PI);
      pen.stroke();
    }

    /** The point nearest to a spot on the screen, if one is near. */
    nearest(px, py) {
      const [x, y] = [(px - this.x) / this.scale, (this.y - py) / this.scale];
      const reach = (this.radius() + 6) / this.scale;
      let [best, found] = [reach * reach, null];
      const steps = Math.min(Math.ceil(reach / this.cell), 20);
      for (let dx = -steps; dx <= steps; dx++) {
        for (let dy = -steps; dy <= steps; dy++) {
          for (const item of this.cells.get(this.key(x + dx * this.cell, y + dy * this.cell)) ?? []) {
            if (!this.visible[categoryOf[item]]) continue;
            const distance = (places[item][0] - x) ** 2 + (places[item][1] - y) ** 2;
            if (distance < best) [best, found] = [distance, item];
          }
        }
      }
      return found;
    }

    hover(px, py) {
      const item = this.nearest(px, py);
      if (item !== this.over) {
        this.over = item;
        this.field.classList.toggle("over", item !== null);
        this.light();
        this.tip.hidden = item === null;
        if (item === null) return;
        const source = picture(item);
        const category = categoryOf[item];
        const text = items.text?.[item];
        this.tip.replaceChildren(...[
          source ? image(source, "") : null, el("div", null, name(items.id[item])), text ? el("div", { class: "soft", dir: "auto" }, text.length > 120 ? `${text.slice(0, 119)}…` : text) : null,
          el("div", { class: "who" }, mark(category), name(categories[category].name)),
          el("div", { class: "soft" }, [`${decimals(items.score[item])}${unsure.has(item) ? ", unsure" : ""}`, frame(item)].filter(Boolean).join(", "))].filter(Boolean));
      }
      if (item === null) return;
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

    listen() {
      const pointers = new Map();
      let moved = 0;
      const spot = (event) => {
        const box = this.base.getBoundingClientRect();
        return [event.clientX - box.left, event.clientY - box.top];
      };
      this.base.addEventListener("pointerdown", (event) => {
        pointers.set(event.pointerId, spot(event));
        this.base.setPointerCapture(event.pointerId);
        moved = 0;
      });
      this.base.addEventListener("pointermove", (event) => {
        const now = spot(event);
        const before = pointers.get(event.pointerId);
        if (!before) { this.hover(...now); return; }
        const others = [...pointers].filter(([id]) => id !== event.pointerId).map(([, place]) => place);
        moved += Math.hypot(now[0] - before[0], now[1] - before[1]);
        if (others.length > 0) {
          // Two fingers zoom.
          const apart = (place) => Math.max(Math.hypot(place[0] - others[0][0], place[1] - others[0][1]), 1);
          this.zoom(apart(now) / apart(before), (now[0] + others[0][0]) / 2, (now[1] + others[0][1]) / 2);
        } else if (moved > 4) {
          this.field.classList.add("dragging");
          this.leave();
          this.pan(now[0] - before[0], now[1] - before[1]);
        }
        pointers.set(event.pointerId, now);
      });
      const release = (event) => {
        const wasDown = pointers.delete(event.pointerId);
        this.field.classList.remove("dragging");
        if (!wasDown || event.type !== "pointerup" || moved > 4) return;
        const item = this.nearest(...spot(event));
        if (item !== null) { this.leave(); goToItem(item); }
      };
      this.base.addEventListener("pointerup", release);
      this.base.addEventListener("pointercancel", release);
      this.base.addEventListener("pointerleave", () => this.leave());
      this.base.addEventListener("wheel", (event) => {
        if (!event.ctrlKey && !event.metaKey) return;
        event.preventDefault();
        this.zoom(Math.exp(-event.deltaY / 300), ...spot(event));
      }, { passive: false });
      this.base.addEventListener("keydown", (event) => {
        const middle = [this.width / 2, this.height / 2];
        const work = {
          ArrowLeft: () => this.pan(60, 0), ArrowRight: () => this.pan(-60, 0), ArrowUp: () => this.pan(0, 60), ArrowDown: () => this.pan(0, -60),
          "+": () => this.zoom(1.5, ...middle), "=": () => this.zoom(1.5, ...middle), "-": () => this.zoom(1 / 1.5, ...middle), 0: () => this.reset(),
        }[event.key];
        if (!work || event.ctrlKey || event.metaKey) return;
        event.preventDefault();
        work();
      });
    }

    legend() {
      const entries = categories.map((category, at) => {
        const button = el("button", { type: "button", class: "entry", "aria-pressed": "true", title: `Show or hide ${category.name}` },
          mark(at), name(category.name), el("span", { class: "count" }, number(category.items)));
        button.addEventListener("click", () => this.toggle(at, !this.visible[at]));
        const lit = (on) => () => { this.lit = on ? at : null; this.redraw(); };
        button.addEventListener("pointerenter", lit(true));
        button.addEventListener("pointerleave", lit(false));
        button.addEventListener("focus", lit(true));
        button.addEventListener("blur", lit(false));
        return button;
      });
      this.toggle = (at, on) => {
        this.visible[at] = on;
        entries[at].setAttribute("aria-pressed", String(on));
        this.leave();
        this.redraw();
      };
      const choose = (text, wanted) => el("button", { type: "button", class: "pill", onclick: () => categories.forEach((category, at) => this.toggle(at, wanted(category))) }, text);
      const some = categories.some((c) => c.known) && categories.some((c) => !c.known);
      return el("div", { class: "legend" },
        el("div", { class: "all" }, choose("All", () => true), choose("None", () => false), some ? choose("New", (c) => !c.known) : null, some ? choose("Known", (c) => c.known) : null),
        el("div", { class: "list" }, entries),
        el("div", { class: "shapes" },
          el("span", null, shape("disc"), "known"), el("span", null, shape("diamond"), "new"),
          unsure.size > 0 ? el("span", null, shape("ring"), "unsure") : null,
          examples.some((e) => e.place) ? el("span", null, shape("cross"), "your examples") : null));
    }
  }

  function diamond(pen, r) {
    pen.moveTo(0, -r);
    pen.lineTo(r, 0);
    pen.lineTo(0, r);
    pen.lineTo(-r, 0);
  }

  function star(pen, r) {
    for (let point = 0; point < 10; point++) {
      const [angle, reach] = [(Math.PI * point) / 5 - Math.PI / 2, point % 2 === 0 ? r : r * 0.48];
      pen.lineTo(reach * Math.cos(angle), reach * Math.sin(angle));
    }
  }

  /** A colour as the page shows it: lighter when the page is dark. */
  function lifted(colour) {
    if (!isDark()) return colour;
    const part = (at) => parseInt(colour.slice(at, at + 2), 16);
    return `rgb(${[1, 3, 5].map((at) => Math.round(part(at) + (255 - part(at)) * 0.28)).join(" ")})`;
  }
}
