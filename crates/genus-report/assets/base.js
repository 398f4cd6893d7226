// What all parts of the report share: the data, and the parts that can be jumped to.

const data = JSON.parse($("data").textContent);
const { categories, items, examples } = data;
const total = categories.reduce((sum, category) => sum + category.items, 0);
const shown = items.id.length;

// Where the items of each category begin, and which category each is in.
const starts = [0];
for (const length of data.sheets) starts.push(starts[starts.length - 1] + length);
const categoryOf = new Uint32Array(shown);
data.sheets.forEach((_, at) => categoryOf.fill(at, starts[at], starts[at + 1]));
const itemsOf = (category) => Array.from({ length: data.sheets[category] }, (_, at) => starts[category] + at);
const unsure = new Set(items.unsure);
const mistakes = new Set(items.mistakes);
// The items of every scene, where some are of one.
const scenes = new Map();
items.scene?.forEach((scene, item) => {
  if (scene === null) return;
  if (!scenes.has(scene)) scenes.set(scene, []);
  scenes.get(scene).push(item);
});
const framesOf = (item) => scenes.get(items.scene?.[item]) ?? [item];

const things = (count) => `${number(count)} ${plural(count, data.things[0], data.things[1])}`;
/** Where an item is among several of one scene. */
function frame(item) {
  const frames = framesOf(item);
  return frames.length > 1 ? `frame ${number(frames.indexOf(item) + 1)} of ${number(frames.length)}` : null;
}
/** In how many scenes some items are, where that is not clear. */
function inScenes(list) {
  if (scenes.size === 0) return "";
  const count = new Set(list.map((item) => items.scene[item])).size;
  return ` in ${number(count)} ${plural(count, "scene", "scenes")}`;
}
const decimals = (value) => (value === null ? "–" : value.toFixed(2));
const percent = (share) => (share === null ? "–" : `${(100 * share).toFixed(1)} %`);

/** The mark of a category: a disc when it is known, a diamond when it is new. */
function mark(category) {
  const { known, colour } = categories[category];
  return shape(known ? "disc" : "diamond", colour);
}

/** A link to the sheet of a category. */
function who(category) {
  return el("a", { class: "who", href: `#sheet-${category}`, onclick: (e) => { e.preventDefault(); goToSheet(category); } },
    mark(category), name(categories[category].name));
}

// Pictures of a category are read when the first of them is wanted.
const read = new Map();
function pictures(category) {
  if (!read.has(category)) {
    const block = $(`pictures-${category}`);
    read.set(category, block ? JSON.parse(block.textContent) : {});
  }
  return read.get(category);
}
const picture = (item) => pictures(categoryOf[item])[`i${item}`];
const examplePicture = (at) => pictures(examples[at].class)[`e${at}`];
const pictured = categories.some((_, category) => $(`pictures-${category}`));

/** Up to so many pictures that stand for a category: typical ones, if it has any. */
function covers(category, count) {
  const own = itemsOf(category);
  const doubtful = (item) => Number(mistakes.has(item) || unsure.has(item));
  // Other frames of a scene that is shown already say no more.
  const repeated = (item) => Number(framesOf(item)[0] !== item);
  own.sort((a, b) => doubtful(a) - doubtful(b) || repeated(a) - repeated(b));
  return own.map(picture).filter(Boolean).slice(0, count).map((source) => image(source, ""));
}

/** Does something when an element comes near the view. */
function whenNear(element, work) {
  const watcher = new IntersectionObserver((entries) => {
    if (entries.some((entry) => entry.isIntersecting)) {
      watcher.disconnect();
      work();
    }
  }, { rootMargin: "900px" });
  watcher.observe(element);
}

themeButton($("theme"));

// The part that is being read.
const links = [...document.querySelectorAll(".top nav a")];
const parts = links.map((link) => $(link.getAttribute("href").slice(1)));
addEventListener("scroll", () => {
  const seen = parts.filter((part) => !part.hidden && part.getBoundingClientRect().top < innerHeight * 0.4);
  const current = seen[seen.length - 1] ?? parts[0];
  links.forEach((link, at) => link.setAttribute("aria-current", String(parts[at] === current)));
}, { passive: true });
