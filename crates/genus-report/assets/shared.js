// What every page shares, the report and the service's: elements made of text and never of markup, marks, pictures, light and dark.
// The report writes it into its one script, and the service serves it as the module that it is.

/** @param {string} id */
export const $ = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

/**
 * An element with properties and children; strings become text.
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Record<string, any> | null} [properties]
 * @param {...any} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function el(tag, properties, ...children) {
  return dressed(document.createElement(tag), properties, children);
}

/**
 * The same for drawings.
 * @param {string} tag
 * @param {Record<string, any> | null} [properties]
 * @param {...any} children
 */
export function svg(tag, properties, ...children) {
  return dressed(document.createElementNS("http://www.w3.org/2000/svg", tag), properties, children);
}

/**
 * @template {HTMLElement | SVGElement} E
 * @param {E} element
 * @param {Record<string, any> | null | undefined} properties
 * @param {any[]} children
 * @returns {E}
 */
function dressed(element, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name.startsWith("--")) element.style.setProperty(name, value);
    else if (name === "style") Object.assign(element.style, value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) element.append(child);
  }
  return element;
}

/**
 * A name that came from outside: it keeps its own direction of writing to itself.
 * @param {string} text
 * @param {Record<string, any>} [properties]
 */
export const name = (text, properties) => el("bdi", { title: text, ...properties }, text);

/** @param {number} value */
export const number = (value) => value.toLocaleString("en-US");
/** @type {(count: number, one: string, many: string) => string} */
export const plural = (count, one, many) => (count === 1 ? one : many);

/**
 * A mark: a disc for what is known, a diamond for what is new.
 * @param {"disc" | "diamond" | "ring" | "cross"} kind
 * @param {string} [colour]
 */
export function shape(kind, colour) {
  const drawing = {
    disc: () => svg("circle", { cx: 8, cy: 8, r: 7 }),
    diamond: () => svg("path", { d: "M8 0 16 8 8 16 0 8Z" }),
    ring: () => svg("circle", { class: "hollow", cx: 8, cy: 8, r: 6 }),
    cross: () => svg("path", { d: "M8 0 10.2 5.4 16 6.1 11.6 9.9 13 16 8 12.7 3 16 4.4 9.9 0 6.1 5.8 5.4Z" }),
  }[kind]();
  return svg("svg", { class: "mark", viewBox: "0 0 16 16", "aria-hidden": "true", "--c": colour }, drawing);
}

/**
 * A picture of few pixels is shown with its pixels, not smeared.
 * @param {string} source
 * @param {string} text
 */
export function image(source, text) {
  const img = el("img", { alt: text, decoding: "async" });
  img.addEventListener("load", () => img.classList.toggle("crisp", img.naturalWidth <= 40));
  img.src = source;
  return img;
}

// Light and dark: as the system says, until the button says otherwise.
export const root = document.documentElement;
export const isDark = () => (root.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
/** What is to be done when it changes. @type {(() => void)[]} */
export const themed = [];
const tellTheme = () => themed.forEach((work) => work());
// A page from disk may have no place to remember anything.
try {
  const before = localStorage.getItem("genus-theme");
  if (before === "dark" || before === "light") root.dataset.theme = before;
} catch { /* as the system says */ }
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", tellTheme);

/** Makes a button change between light and dark. @param {HTMLElement} button */
export function themeButton(button) {
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    try { localStorage.setItem("genus-theme", root.dataset.theme); } catch { /* for this time only */ }
    tellTheme();
  });
}

/** A colour as the page shows it: lighter when the page is dark. @param {string} colour */
export function lifted(colour) {
  if (!isDark()) return colour;
  const part = (/** @type {number} */ at) => parseInt(colour.slice(at, at + 2), 16);
  return `rgb(${[1, 3, 5].map((at) => Math.round(part(at) + (255 - part(at)) * 0.28)).join(" ")})`;
}
