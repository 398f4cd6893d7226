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

  class ItemMap extends Plane {
    constructor(section) {
      const axis = (at) => Float32Array.from(items.id, (_, item) => places[item]?.[at] ?? NaN);
      super(axis(0), axis(1), `Map of ${things(drawn.length)} in ${categories.length} categories. Arrow keys move it, plus and minus zoom, 0 shows all.`,
        examples.map((example) => example.place).filter(Boolean));
      this.visible = categories.map(() => true);
      this.lit = null;
      // The middle of each category, where its name stands: the median, which strays do not move.
      this.middles = categories.map((_, category) => {
        const own = itemsOf(category).filter((item) => places[item]);
        if (own.length === 0) return null;
        const median = (axis) => own.map((item) => places[item][axis]).sort((a, b) => a - b)[own.length >> 1];
        return [median(0), median(1)];
      });
      section.append(el("div", { class: "mapped" }, this.field, this.legend()));
    }

    isShown(item) {
      return this.visible[categoryOf[item]];
    }

    choose(item) {
      if (item === null) return;
      this.leave();
      goToItem(item);
    }

    tell(item) {
      const source = picture(item);
      const category = categoryOf[item];
      const text = items.text?.[item];
      return [
        source ? image(source, "") : null, el("div", null, name(items.id[item])), text ? el("div", { class: "soft", dir: "auto" }, text.length > 120 ? `${text.slice(0, 119)}…` : text) : null,
        el("div", { class: "who" }, mark(category), name(categories[category].name)),
        el("div", { class: "soft" }, [`${decimals(items.score[item])}${unsure.has(item) ? ", unsure" : ""}`, frame(item)].filter(Boolean).join(", "))].filter(Boolean);
    }

    draw(pen) {
      const { ratio } = this;
      const radius = this.radius();
      if (this.stamps?.key !== `${radius.toFixed(1)} ${isDark()}` || this.stamps.ratio !== ratio) {
        this.stamps = { ...stamps(categories.map(({ colour, known }) => ({ colour: lifted(colour), isDisc: known })), radius, ratio), ratio };
      }
      const { sheet, size } = this.stamps;
      const stamp = (place, category, column) => {
        const [x, y] = this.at(...place);
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
      if (categories.length > 60 && this.lit === null) return;
      // A name that is left out is in the legend.
      const named = categories.map((_, at) => at).filter((at) => this.visible[at] && this.middles[at] && (this.lit === null || this.lit === at));
      this.write(pen, named.map((at) => ({ text: categories[at].name, place: this.middles[at] })));
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
}
