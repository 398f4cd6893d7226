// What all parts share: the data, elements made of text and never of markup, and the parts that can be jumped to.

const $ = (id) => document.getElementById(id);
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

/** An element with properties and children; strings become text. */
function el(tag, properties, ...children) {
  const element = document.createElement(tag);
  return dressed(element, properties, children);
}

/** The same for drawings. */
function svg(tag, properties, ...children) {
  return dressed(document.createElementNS("http://www.w3.org/2000/svg", tag), properties, children);
}

function dressed(element, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name.startsWith("--")) element.style.setProperty(name, value);
    else if (name === "style") Object.assign(element.style, value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined) element.append(child);
  }
  return element;
}

/** A name that came from outside: it keeps its own direction of writing to itself. */
const name = (text, properties) => el("bdi", { title: text, ...properties }, text);

const number = (value) => value.toLocaleString("en-US");
const plural = (count, one, many) => (count === 1 ? one : many);
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

function shape(kind, colour) {
  const drawing = {
    disc: () => svg("circle", { cx: 8, cy: 8, r: 7 }),
    diamond: () => svg("path", { d: "M8 0 16 8 8 16 0 8Z" }),
    ring: () => svg("circle", { class: "hollow", cx: 8, cy: 8, r: 6 }),
    cross: () => svg("path", { d: "M8 0 10.2 5.4 16 6.1 11.6 9.9 13 16 8 12.7 3 16 4.4 9.9 0 6.1 5.8 5.4Z" }),
  }[kind]();
  return svg("svg", { class: "mark", viewBox: "0 0 16 16", "aria-hidden": "true", "--c": colour }, drawing);
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

/** A picture of few pixels is shown with its pixels, not smeared. */
function image(source, text) {
  const img = el("img", { alt: text, decoding: "async" });
  img.addEventListener("load", () => img.classList.toggle("crisp", img.naturalWidth <= 40));
  img.src = source;
  return img;
}

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

// Light and dark: as the system says, until the button says otherwise.
const root = document.documentElement;
const isDark = () => (root.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
const themed = [];
const tellTheme = () => themed.forEach((work) => work());
// A page from disk may have no place to remember anything.
try { const before = localStorage.getItem("genus-theme"); if (before === "dark" || before === "light") root.dataset.theme = before; } catch { /* as the system says */ }
$("theme").addEventListener("click", () => {
  root.dataset.theme = isDark() ? "light" : "dark";
  try { localStorage.setItem("genus-theme", root.dataset.theme); } catch { /* for this time only */ }
  tellTheme();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", tellTheme);

// The part that is being read.
const links = [...document.querySelectorAll(".top nav a")];
const parts = links.map((link) => $(link.getAttribute("href").slice(1)));
addEventListener("scroll", () => {
  const seen = parts.filter((part) => !part.hidden && part.getBoundingClientRect().top < innerHeight * 0.4);
  const current = seen[seen.length - 1] ?? parts[0];
  links.forEach((link, at) => link.setAttribute("aria-current", String(parts[at] === current)));
}, { passive: true });
