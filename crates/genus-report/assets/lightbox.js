// One item, enlarged; the arrow keys go through its sheet.

const lightbox = $("lightbox");
let [open, openList, opener] = [null, [], null];

function enlarge(item, list) {
  openList = list;
  open = item;
  const category = categoryOf[item];
  const at = list.indexOf(item);
  const rival = items.rival[item];
  const rows = [["Category", who(category)], ["Score", decimals(items.score[item])],
    ["Lead", el("span", null, decimals(items.margin[item]), rival === null ? null : [" over ", name(categories[rival].name)])]];
  const chance = items.probability?.[item];
  if (chance !== null && chance !== undefined) rows.push(["Probability", `${Math.round(100 * chance)} %${unsure.has(item) ? ", unsure" : ""}`]);
  if (frame(item)) rows.push(["Scene", frame(item)]);
  if (items.tied?.[item]) rows.push(["Ties", el("span", null, tieWords(item), nearestOf(item))]);
  if (data.truth && items.truth[item] !== null) rows.push(["Truth", el("span", null, name(truthName(item)), mistakes.has(item) ? ", so it does not belong here" : "")]);
  const step = (by) => el("button", { type: "button", class: "quiet", "aria-label": by < 0 ? "Previous" : "Next", onclick: () => move(by) }, by < 0 ? "←" : "→");
  show(items.id[item], picture(item), items.text?.[item], rows,
    el("div", { class: "steps" }, step(-1), step(1), `${number(at + 1)} of ${number(list.length)}`));
}

/** How many of its nearest neighbours an item has in its category. */
function tieWords(item) {
  const [own] = items.tied[item];
  return `${number(own)} of its ${number(data.why.communities.neighbours)} nearest neighbours ${plural(own, "is", "are")} in this category`;
}

/** The nearest neighbours of an item, to be enlarged: examples have negative numbers. */
function nearestOf(item) {
  const one = (at) => {
    const example = at < 0 ? -1 - at : null;
    const [id, source, category] = example === null
      ? [items.id[at], picture(at), categoryOf[at]] : [examples[example].id, examplePicture(example), examples[example].class];
    const title = `${id}\n${example === null ? "in" : "example of"} ${categories[category].name}`;
    const open = { type: "button", title, onclick: () => (example === null ? enlarge(at, itemsOf(category)) : enlargeExample(example)) };
    return source ? el("button", { ...open, class: "near", "aria-label": title.replace("\n", ", ") }, image(source, "")) : el("button", { ...open, class: "plain" }, mark(category), name(id));
  };
  return el("span", { class: "nearest" }, items.tied[item].slice(1).map(one));
}

function enlargeExample(at) {
  open = null;
  show(examples[at].id, examplePicture(at), examples[at].text, [["Example of", who(examples[at].class)]], null);
}

function show(id, source, text, rows, steps) {
  const about = el("div", { class: "about" }, el("h3", null, name(id)),
    text ? el("div", { class: "text", dir: "auto" }, text) : null,
    el("dl", null, rows.map(([term, value]) => [el("dt", null, term), el("dd", null, value)])), steps);
  about.querySelectorAll("a").forEach((link) => link.addEventListener("click", () => lightbox.close()));
  const close = el("button", { type: "button", class: "close", "aria-label": "Close", onclick: () => lightbox.close() }, "✕");
  lightbox.replaceChildren(
    el("div", { class: `large${source ? "" : " bare"}` }, source ? el("div", { class: "stage" }, image(source, id)) : null, about), close);
  if (!lightbox.open) {
    opener = document.activeElement;
    lightbox.showModal();
  }
  // What had the focus is gone with the item before, and keys would go nowhere.
  lightbox.focus();
}

function move(by) {
  if (open === null) return;
  const next = openList[openList.indexOf(open) + by];
  if (next !== undefined) enlarge(next, openList);
}

lightbox.addEventListener("keydown", (event) => {
  const by = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
  if (by === undefined) return;
  event.preventDefault();
  move(by);
});
// A click beside it closes it.
lightbox.addEventListener("click", (event) => { if (event.target === lightbox) lightbox.close(); });
lightbox.addEventListener("close", () => {
  // Who came from elsewhere goes back there, which the browser sees to.
  if (opener?.closest("#why")) return;
  const tile = open === null ? null : document.querySelector(`[data-item="${open}"]`);
  tile?.focus();
});
