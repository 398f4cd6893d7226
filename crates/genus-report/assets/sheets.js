// Contact sheets: what is in every category, from typical to doubtful.

const FIRST_TILES = 21;
const FIRST_LINES = 24;
// How many of the first are the most doubtful ones, where not all are shown.
const LAST = 7;
const MORE_LINES = 600;
const FIRST_SHEETS = 40;
const sheets = [];

/** One item as a picture, or as a line where it has none. */
function entry(item, list) {
  const source = picture(item);
  const [isUnsure, isWrong] = [unsure.has(item), mistakes.has(item)];
  const id = items.id[item];
  const classes = `${isUnsure ? " unsure" : ""}${isWrong ? " wrong" : ""}`;
  const is = isWrong ? el("span", { class: "is" }, "is ", name(truthName(item))) : null;
  const chance = items.probability?.[item];
  const likely = chance === null || chance === undefined ? decimals(items.score[item]) : `${Math.round(100 * chance)} %`;
  const score = `${likely}${isUnsure ? ", unsure" : ""}`;
  // A scene's frames follow each other; the first says how many there are.
  const frames = framesOf(item);
  const badge = frames.length > 1 && frames[0] === item ? el("span", { class: "frames" }, `${number(frames.length)} frames`) : null;
  const properties = { type: "button", "data-item": item, title: [id, score, frame(item)].filter(Boolean).join("\n"), onclick: () => enlarge(item, list) };
  if (source) {
    return el("button", { ...properties, class: `tile${classes}`, "aria-label": [id, score, frame(item)].filter(Boolean).join(", ") },
      image(source, ""), is, badge, el("span", { class: "cap" }, name(id), score));
  }
  const text = items.text?.[item];
  return el("button", { ...properties, class: `line${classes}` }, name(id), el("span", { class: "score" }, score), is, badge,
    text ? el("bdi", { class: "text" }, text) : null);
}

const truthName = (item) => data.truth.classes[items.truth[item]];

class Sheet {
  constructor(category) {
    this.category = category;
    this.all = itemsOf(category);
    this.body = el("div");
    this.aside = el("aside");
    this.element = el("section", { class: "sheet", id: `sheet-${category}`, tabindex: "-1", "aria-label": categories[category].name }, this.aside, this.body);
    this.head();
    whenNear(this.element, () => this.build());
  }

  head() {
    const { category } = this;
    const { name: title, items: count, unsure: doubtful, known } = categories[category];
    this.aside.append(el("h4", null, mark(category), name(title)));
    this.aside.append(el("p", null, el("b", null, number(count)), ` ${plural(count, data.things[0], data.things[1])}${inScenes(this.all)}`,
      doubtful > 0 ? `, ${number(doubtful)} of them unsure` : ""));
    const parent = data.parents?.[category];
    if (parent) this.aside.append(el("p", null, "one of ", el("b", null, name(parent))));
    const nearest = data.why.nearest[category]?.[0];
    if (!known && nearest) this.aside.append(el("p", null, "closest to ", el("b", null, name(categories[nearest[0]].name)), `, ${decimals(nearest[1])}`));
    if (data.truth) {
      const wrong = this.all.filter((item) => mistakes.has(item)).length;
      const stands = data.truth.classOf[category];
      if (stands !== null && stands !== undefined && !known) this.aside.append(el("p", null, "stands for ", el("b", null, name(data.truth.classes[stands]))));
      if (wrong > 0) this.aside.append(el("p", { class: "errors" }, `${number(wrong)} of ${number(this.all.length)} do not belong, shown first`));
    }
  }

  build() {
    if (this.built) return;
    this.built = true;
    this.examples();
    if (this.all.length === 0) {
      this.body.append(el("p", { class: "empty" }, categories[this.category].items > 0 ? "None of its items are on this page." : "Nothing was put here."));
      return;
    }
    this.withPicture = this.all.filter((item) => picture(item));
    this.without = this.all.filter((item) => !picture(item));
    this.tiles = el("div", { class: "tiles" });
    this.lines = el("div", { class: "lines" });
    this.more = el("div", { class: "more" });
    this.tail = el("div", { class: "tail" });
    this.body.append(this.tiles, this.lines, this.tail, this.more);
    this.shownTiles = 0;
    this.shownLines = 0;
    const [tiles, lines] = this.withPicture.length > 0 ? [FIRST_TILES, 0] : [0, FIRST_LINES];
    const list = tiles > 0 ? this.withPicture : this.without;
    const cut = list.length > tiles + lines ? LAST : 0;
    if (cut > 0) {
      this.tail.append(el("p", { class: "soft" }, "… and the most doubtful"),
        el("div", { class: tiles > 0 ? "tiles" : "lines" }, list.slice(-cut).map((item) => entry(item, this.all))));
    }
    this.add(Math.max(0, tiles - cut), Math.max(0, lines - cut));
  }

  examples() {
    const own = examples.map((example, at) => [example, at]).filter(([example]) => example.class === this.category);
    if (own.length === 0) return;
    const tiles = el("div", { class: own.some(([, at]) => examplePicture(at)) ? "tiles" : null });
    own.slice(0, 24).forEach(([example, at]) => {
      const source = examplePicture(at);
      const open = { type: "button", title: example.id, onclick: () => enlargeExample(at) };
      tiles.append(source
        ? el("button", { ...open, class: "tile", "aria-label": `Example ${example.id}` }, image(source, ""))
        : el("button", { ...open, class: "plain" }, name(example.id)));
    });
    this.aside.append(el("div", { class: "examples" },
      el("span", null, own.length === 1 ? "your example" : `your ${number(own.length)} examples`, own.length > 24 ? ", some of them" : ""), tiles));
  }

  /** Shows so many more; when all are there, the most doubtful are among them. */
  add(tiles, lines) {
    if (this.shownTiles + this.shownLines > 0 && tiles + lines > 0) this.tail.replaceChildren();
    const next = (list, from, count) => list.slice(from, from + count).map((item) => entry(item, this.all));
    this.tiles.append(...next(this.withPicture, this.shownTiles, tiles));
    this.lines.append(...next(this.without, this.shownLines, lines));
    this.shownTiles = Math.min(this.shownTiles + tiles, this.withPicture.length);
    this.shownLines = Math.min(this.shownLines + lines, this.without.length);
    this.tiles.hidden = this.withPicture.length === 0;
    this.lines.hidden = this.shownLines === 0;
    this.tellMore();
  }

  tellMore() {
    const { items: count } = categories[this.category];
    const [tiles, lines] = [this.withPicture.length - this.shownTiles, this.without.length - this.shownLines];
    const onPage = this.shownTiles + this.shownLines + this.tail.querySelectorAll("[data-item]").length;
    const button = (text, work) => el("button", { type: "button", class: "pill", onclick: work }, text);
    this.more.replaceChildren();
    if (onPage === count && count <= FIRST_TILES) return;
    this.more.append(`${number(onPage)} of ${number(count)}${this.tail.hasChildNodes() ? "" : ", most typical first"}`);
    if (tiles > 0) this.more.append(button(`Show all ${number(this.withPicture.length)}${lines > 0 ? " pictures" : ""}`, () => this.add(tiles, 0)));
    else if (lines > 0) {
      const next = Math.min(lines, MORE_LINES);
      this.more.append(button(this.withPicture.length > 0 && this.shownLines === 0
        ? `List ${next < lines ? `${number(next)} of ` : ""}the ${number(lines)} without a picture` : `Show ${number(next)} more`, () => this.add(0, next)));
    }
  }

  /** Brings one of its items into view. */
  find(item) {
    this.build();
    const [tile, line] = [this.withPicture.indexOf(item), this.without.indexOf(item)];
    this.add(Math.max(0, tile + 1 - this.shownTiles), Math.max(0, line + 1 - this.shownLines));
    const element = this.body.querySelector(`[data-item="${item}"]`);
    if (!element) return;
    element.scrollIntoView({ block: "center" });
    element.focus({ preventScroll: true });
    element.classList.remove("found");
    requestAnimationFrame(() => element.classList.add("found"));
  }
}

/** Makes sure that a sheet is on the page. */
function sheetOf(category) {
  const hiddenSheets = $("categories").querySelectorAll("button.rest");
  if (!sheets[category]) hiddenSheets.forEach((button) => button.click());
  return sheets[category];
}

function goToSheet(category) {
  const sheet = sheetOf(category);
  sheet.build();
  sheet.element.scrollIntoView({ block: "start" });
  sheet.element.focus({ preventScroll: true });
}

function goToItem(item) {
  sheetOf(categoryOf[item]).find(item);
}

{
  const section = $("categories");
  section.append(el("p", { class: "soft" },
    `The most typical come first and the doubtful last, with ${items.probability ? "how likely they belong there" : "how much they look like it"}${data.truth ? ", after those that do not belong" : ""}. ${pictured ? "Choose a picture to enlarge it" : "Choose one to see more of it"}.`));
  const group = (title, known, nothing) => {
    const own = categories.map((_, at) => at).filter((at) => categories[at].known === known);
    const box = el("div", { class: "group" }, el("h3", null, title));
    section.append(box);
    if (own.length === 0) box.append(el("p", { class: "empty" }, nothing));
    const place = (list) => list.forEach((category) => {
      sheets[category] = new Sheet(category);
      box.append(sheets[category].element);
    });
    place(own.slice(0, FIRST_SHEETS));
    const rest = own.slice(FIRST_SHEETS);
    if (rest.length > 0) {
      const button = el("button", { type: "button", class: "pill rest" }, `Show ${number(rest.length)} smaller ${known ? "classes" : "groups"}`);
      const more = el("div", { class: "more" }, button);
      button.addEventListener("click", () => { more.remove(); place(rest); });
      box.append(more);
    }
  };
  group("Classes you named", true, "No class was named.");
  group("New groups", false, `Nothing new: every one of the ${number(total)} ${data.things[1]} was put with a class that you named.`);
  addEventListener("beforeprint", () => sheets.forEach((sheet) => sheet.build()));
}
