// Opens every report of a folder in Chromium and clicks through every part of it.
// node report.test.cjs REPORTS PROFILE [PAGE...]
"use strict";

const assert = require("node:assert/strict");
const fs = require("node:fs");
const path = require("node:path");
const { pathToFileURL } = require("node:url");
const { chromium } = require("playwright-core");

const [folder, profile] = process.argv.slice(2);
const screenshots = process.env.SCREENSHOTS;
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

/** What every report must be able to do; the numbers are those of `examples/fixtures.rs`. */
const REPORTS = {
  ten: { sentence: /^Of 10 photos, \d are of your 2 classes and \d form 1 new group\.$/, sheets: 3, map: true, truth: false, pictures: false, evil: true, texts: true },
  thousand: { sentence: /^Of 1,000 photos in 8\d\d scenes, \d+ are of your 5 classes, \d+ form 9 new groups, and \d+ are unsure\.$/, sheets: 14, map: true, truth: true, pictures: true, evil: true, scenes: true },
  "twenty-thousand": { sentence: /^Of 20,000 photos, [\d,]+ are of your 20 classes, [\d,]+ form 60 new groups, and [\d,]+ are unsure\.$/, sheets: 60, map: true, truth: false, pictures: true },
  "nothing-new": { sentence: /^Of 40 photos, 40 are of your 3 classes\. Nothing new was found\.$/, sheets: 3, map: false, truth: false, pictures: false, levels: true },
  sample: { sentence: /^Of 1,2\d\d,\d{3} photos, /, sheets: 12, map: true, truth: false, pictures: false, sampled: true },
};

async function main() {
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", headless: true, args: FLAGS, viewport: { width: 1280, height: 900 }, colorScheme: "light",
  });
  try {
    for (const [name, expected] of Object.entries(REPORTS)) await check(context, name, expected);
    await keyboard(context);
    await phone(context);
    if (screenshots) await draw(context);
  } finally {
    await context.close();
  }
}

/** A page that remembers whatever it should not have done. */
async function opened(context, file) {
  const page = await context.newPage();
  page.sins = [];
  page.on("console", (message) => { if (["error", "warning"].includes(message.type())) page.sins.push(`${message.type()}: ${message.text()}`); });
  page.on("pageerror", (error) => page.sins.push(`exception: ${error.stack ?? error}`));
  page.on("request", (request) => { if (!/^(file|data):/.test(request.url())) page.sins.push(`request: ${request.url()}`); });
  page.on("dialog", (dialog) => { page.sins.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
  const start = Date.now();
  await page.goto(pathToFileURL(file).href);
  page.took = Date.now() - start;
  return page;
}

async function check(context, report, expected) {
  const file = path.join(folder, `${report}.html`);
  const page = await opened(context, file);
  const near = (id) => page.locator(id).scrollIntoViewIfNeeded();

  // The overview.
  assert.match(await page.locator("h1").innerText(), expected.sentence);
  assert.equal(await page.locator(".note").count(), expected.sampled || expected.scenes ? 1 : 0);
  const facts = await page.locator(".facts").innerText();
  for (const word of ["Method", "Encoder", "Seed", "Time"]) assert.ok(facts.includes(word), word);

  // Categories that are one in the level above fold out from under its name, and what was asked is a table.
  const set = page.locator("#overview details.set");
  assert.equal(await set.count(), expected.levels ? 1 : 0);
  assert.ok((await page.locator("#overview .glance > li").count()) > 0);
  assert.equal(await page.locator("#asked").isVisible(), expected.levels === true);
  if (expected.levels) {
    assert.equal(await set.locator("li").first().isVisible(), false);
    await set.locator("summary").click();
    assert.equal(await set.locator("li").first().isVisible(), true);
    assert.deepEqual(await page.locator("#asked tbody td:last-child").allInnerTexts(), ["open", "Class 1"]);
  }

  // Sheets: the bar leads to them, and they show what there is.
  assert.equal(await page.locator(".sheet").count(), expected.sheets);
  await page.locator(".bar button").last().click();
  await near("#sheet-0");
  await page.locator("#sheet-0 .tile, #sheet-0 .line").first().waitFor();
  assert.equal((await page.locator("#sheet-0 .tiles .tile").count()) > 0, expected.pictures);
  const more = page.locator("#sheet-0 .more button");
  while (await more.count()) await more.first().click();
  if (expected.pictures) {
    const broken = await page.locator("#sheet-0 .tile img").evaluateAll((all) => all.filter((img) => img.complete && img.naturalWidth === 0).length);
    assert.equal(broken, 0);
    assert.equal(await page.locator("#sheet-0 .examples .tile").count(), 5);
  }

  // The first frame of a scene says how many there are, and enlarged every one says which it is.
  const badges = page.locator("#sheet-0 .frames");
  assert.equal((await badges.count()) > 0, expected.scenes === true);
  if (expected.scenes) {
    assert.match(await page.locator("#sheet-0 aside").innerText(), /photos in \d+ scenes/);
    assert.match(await badges.first().innerText(), /^[23] frames$/);
    await page.locator("#sheet-0 .tile", { has: page.locator(".frames") }).first().click();
    assert.match(await page.locator("dialog").innerText(), /frame 1 of [23]/);
    await page.keyboard.press("Escape");
  }

  // What is unsure is listed, the least likely first, and only where something is.
  const unsure = await page.locator("#unsure").isVisible();
  assert.equal(unsure, /unsure\.$/.test(await page.locator("h1").innerText()));
  assert.equal(await page.locator('.top nav a[href="#unsure"]').isVisible(), unsure);
  if (unsure) {
    const chances = (await page.locator("#unsure li b").allInnerTexts()).map((text) => Number.parseInt(text, 10));
    assert.deepEqual(chances, [...chances].sort((a, b) => a - b));
    const first = page.locator("#unsure li button").first();
    const name = (await first.innerText()).trim();
    await first.click();
    assert.ok((await page.locator("dialog h3").innerText()).includes(name), name);
    await page.keyboard.press("Escape");
    const shown = await page.locator("#unsure li").count();
    const more = page.locator("#unsure .more button");
    if (await more.count()) {
      await more.click();
      assert.ok((await page.locator("#unsure li").count()) > shown);
    }
  }

  // One item enlarged: by click, keys and Escape; the focus goes back to where it was.
  const entries = page.locator("#sheet-0 [data-item]");
  await entries.first().click();
  const title = () => page.locator("dialog h3").innerText();
  const first = await title();
  await page.keyboard.press("ArrowRight");
  const second = await title();
  assert.notEqual(first, second);
  await page.keyboard.press("ArrowLeft");
  assert.equal(await title(), first);
  await page.keyboard.press("ArrowLeft");
  assert.equal(await title(), first);
  await page.keyboard.press("Escape");
  assert.equal(await page.locator("dialog[open]").count(), 0);
  assert.equal(await page.evaluate(() => document.activeElement.dataset.item), await entries.first().getAttribute("data-item"));
  await page.keyboard.press("Enter");
  assert.equal(await page.locator("dialog[open]").count(), 1);
  await page.locator("dialog .close").click();
  await page.locator("#sheet-0 .examples button").first().click();
  assert.match(await page.locator("dialog").innerText(), /Example of/);
  await page.keyboard.press("Escape");

  await map(page, expected);
  await why(page, report);
  await truth(page, expected);
  if (expected.evil) await evil(page, expected);
  await themes(page);

  assert.deepEqual(page.sins, []);
  console.log(`${report}: ${(fs.statSync(file).size / 1e6).toFixed(1)} MB, opened in ${page.took} ms`);
  await page.close();
}

async function map(page, expected) {
  await page.locator("#map").scrollIntoViewIfNeeded();
  if (!expected.map) {
    assert.match(await page.locator("#map").innerText(), /There is no map/);
    return;
  }
  const canvas = page.locator("#map canvas").first();
  await canvas.waitFor();
  await canvas.scrollIntoViewIfNeeded();
  await page.waitForTimeout(300);
  // How many pixels are not empty, counted on a copy.
  const ink = () => canvas.evaluate((original) => {
    const copy = document.createElement("canvas");
    [copy.width, copy.height] = [original.width, original.height];
    const pen = copy.getContext("2d", { willReadFrequently: true });
    pen.drawImage(original, 0, 0);
    return pen.getImageData(0, 0, copy.width, copy.height).data.reduce((sum, v, at) => sum + (at % 4 === 3 && v > 0 ? 1 : 0), 0);
  });
  const all = await ink();
  assert.ok(all > 100, "points are drawn");
  // Nothing is left when all categories are hidden, and all comes back.
  const button = (text) => page.locator("#map .legend .all button", { hasText: new RegExp(`^${text}$`) });
  await button("None").click();
  await page.waitForTimeout(250);
  assert.equal(await ink(), 0);
  await button("All").click();
  await page.locator("#map .entry").first().click();
  await page.mouse.move(5, 5);
  await page.waitForTimeout(250);
  assert.ok((await ink()) < all, "the legend hides a category");
  assert.equal(await page.locator("#map .entry").first().getAttribute("aria-pressed"), "false");
  await button("All").click();
  // Keys zoom and move.
  await canvas.focus();
  const before = await canvas.screenshot();
  await page.keyboard.press("+");
  await page.keyboard.press("ArrowLeft");
  await page.waitForTimeout(250);
  assert.ok(!before.equals(await canvas.screenshot()), "the map moves");
  await page.keyboard.press("0");
  await page.mouse.move(5, 5);
  await page.waitForTimeout(250);
  // Dragging does not choose a point.
  const box = await canvas.boundingBox();
  const middle = [box.x + box.width / 2, box.y + box.height / 2];
  const scroll = () => page.evaluate(() => scrollY);
  const at = await scroll();
  await page.mouse.move(...middle);
  await page.mouse.down();
  await page.mouse.move(middle[0] + 40, middle[1] + 30, { steps: 4 });
  await page.mouse.up();
  assert.equal(await scroll(), at);
  await canvas.focus();
  await page.keyboard.press("0");
  await page.waitForTimeout(250);
  // A point under the pointer says what it is; choosing it leads to its sheet.
  const spot = await point(page, canvas);
  const tip = await page.locator(".tip").innerText();
  await page.mouse.click(...spot);
  await page.locator(".found").waitFor();
  const found = await page.evaluate(() => document.activeElement.title.split("\n")[0]);
  assert.ok(tip.replace(/\s/g, "").includes(found.replace(/\s/g, "")), `${tip} and ${found}`);
  const sheet = await page.evaluate(() => document.activeElement.closest(".sheet").getAttribute("aria-label"));
  assert.ok(tip.includes(sheet));
}

/** Moves the pointer over the map until it is above a point. */
async function point(page, canvas) {
  const box = await canvas.boundingBox();
  for (let y = 30; y < box.height - 60; y += 11) {
    for (let x = 30; x < box.width - 130; x += 11) {
      const spot = [box.x + x, box.y + y];
      if (spot[1] < 60 || spot[1] > 890) continue;
      await page.mouse.move(...spot);
      if (await page.locator(".tip").isVisible()) return spot;
    }
  }
  throw new Error("no point on the map");
}

async function why(page, report) {
  await page.locator("#why").scrollIntoViewIfNeeded();
  const tree = page.locator("#why svg[aria-label='Tree of the categories']");
  const communities = ["thousand", "sample"].includes(report);
  if (!communities) await tree.waitFor();
  const text = await page.locator("#why").innerText();
  assert.equal(/How the categories hang together/.test(text), !communities);
  assert.equal(/more than half of the votes/.test(text), communities);
  assert.equal(/What ties items together/.test(text), communities);
  assert.match(text, /How well things fit/);
  if (report !== "nothing-new") assert.match(text, /closest to\s+\S+[^]*?,\s*-?\d\.\d\d/);
  assert.ok((await page.locator("#why svg rect").count()) > 5, "bars");
  if (["thousand", "twenty-thousand", "sample"].includes(report)) assert.match(text, /unsure to the left/);
  else assert.match(text, /cut at 0\.30/);
  if (report === "twenty-thousand") assert.match(text, /the tree that this gives was divided/);
  if (report === "sample") assert.match(text, /were not looked up again/);
  if (report === "thousand") await ties(page);
  if (communities) assert.equal(await tree.count(), 0, "no tree decided");
  await page.locator("#why h3", { hasText: "easily confused" }).scrollIntoViewIfNeeded();
}

/** What ties items to their category and links two; neighbours can be gone through. */
async function ties(page) {
  const block = (title) => page.locator("#why .block", { has: page.locator("h3", { hasText: title }) });
  assert.match(await block("What ties items together").innerText(), /On average, \d\.\d of an item's 10 nearest neighbours are in the same category/);
  const loose = block("What ties items together").locator(".torn");
  await block("What ties items together").scrollIntoViewIfNeeded();
  await loose.first().waitFor();
  assert.match(await loose.first().innerText(), /\d of its 10 nearest neighbours (is|are) in this category/);
  await loose.first().locator("button").first().click();
  assert.match(await page.locator("dialog").innerText(), /Ties\s+\d+ of its 10 nearest neighbours (is|are) in this category/);
  const title = () => page.locator("dialog h3").innerText();
  const first = await title();
  await page.locator("dialog .nearest button").first().click();
  assert.notEqual(await title(), first);
  const broken = await page.locator("dialog img").evaluateAll((all) => all.filter((img) => img.complete && img.naturalWidth === 0).length);
  assert.equal(broken, 0);
  const before = await page.evaluate(() => scrollY);
  await page.keyboard.press("Escape");
  await page.waitForTimeout(100);
  assert.ok(Math.abs((await page.evaluate(() => scrollY)) - before) < 5, "back to where it was");
  // An example among the neighbours says that it is one.
  await page.locator("#sheet-0 [data-item]").first().click();
  await page.locator("dialog .nearest button[title*='example of']").click();
  assert.match(await page.locator("dialog").innerText(), /Example of/);
  await page.keyboard.press("Escape");
  await block("What links two groups").scrollIntoViewIfNeeded();
  await block("What links two groups").locator(".torn").first().waitFor();
  const links = await block("What links two groups").innerText();
  assert.match(links, /\d+ % of the ties of [^]* lead to [^]*, (less than )?\d+ % the other way/);
  assert.match(links, /more than half would have to/);
}

async function truth(page, expected) {
  assert.equal(await page.locator("#truth").isVisible(), expected.truth);
  assert.equal(await page.locator(".top nav a[href='#truth']").isVisible(), expected.truth);
  if (!expected.truth) return;
  await page.locator("#truth").scrollIntoViewIfNeeded();
  await page.locator(".matrix").waitFor();
  assert.match(await page.locator(".shares").innerText(), /\d\d\.\d %/);
  assert.equal(await page.locator(".matrix td.own").count(), 14);
  // Mistakes stand first in their sheet.
  const wrong = await page.locator("#sheet-0 [data-item]").evaluateAll((all) => all.map((one) => one.classList.contains("wrong")));
  assert.ok(wrong[0] && !wrong[wrong.length - 1], "mistakes first");
  assert.deepEqual(wrong, [...wrong].sort((a, b) => b - a));
}

/** Names are shown as they are and run nothing; these are those of `examples/fixtures.rs`. */
async function evil(page, expected) {
  const names = [
    "</script><script>window.hacked = 1</script>.jpg", '<img src=x onerror="window.hacked = 2">.png', "\"quoted\" and 'single'.jpg",
    "🐦 bird & \u2028friends\u2029 &lt;b&gt;.webp", "\u202egnp.exe\u202c turned", "עברית שם קובץ.jpg", "العربية.png",
    "{{title}} ${window.hacked=3} `x`", "<!-- comment --><![CDATA[ x ]]>", "javascript:window.hacked=4//\\u003cscript\\u003e",
  ];
  for (const sheet of await page.locator(".sheet").all()) {
    await sheet.scrollIntoViewIfNeeded();
    await sheet.locator("[data-item]").first().waitFor();
  }
  const shown = await page.locator(".sheet [data-item] bdi").evaluateAll((all) => all.map((one) => one.textContent));
  for (const name of names) assert.ok(shown.includes(name), name);
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  assert.equal(await page.locator("main img[src='x'], main script, main bdi *").count(), 0);
  if (expected.texts) assert.ok((await page.locator(".sheet .text").first().innerText()).includes("<b>"));
}

async function themes(page) {
  const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await paper();
  await page.emulateMedia({ colorScheme: "dark" });
  const dark = await paper();
  assert.notEqual(light, dark, "as the system says");
  await page.locator("#theme").click();
  assert.equal(await paper(), light, "the button says otherwise");
  await page.locator("#theme").click();
  assert.equal(await paper(), dark);
  await page.emulateMedia({ colorScheme: "light" });
  await page.locator("#theme").click();
  assert.equal(await paper(), light);
  await page.evaluate(() => { delete document.documentElement.dataset.theme; localStorage.clear(); });
}

/** Everything can be reached by the Tab key, beginning with the way past the menu. */
async function keyboard(context) {
  const page = await opened(context, path.join(folder, "ten.html"));
  const seen = [];
  for (let step = 0; step < 12; step++) {
    await page.keyboard.press("Tab");
    seen.push(await page.evaluate(() => document.activeElement.textContent.trim()));
  }
  assert.deepEqual(seen.slice(0, 5), ["Skip to the report", "Overview", "Categories", "Map", "Why"]);
  assert.deepEqual(page.sins, []);
  await page.close();
}

/** On a phone nothing is wider than the screen. */
async function phone(context) {
  for (const report of ["thousand", "ten"]) {
    const page = await opened(context, path.join(folder, `${report}.html`));
    await page.setViewportSize({ width: 390, height: 844 });
    for (const part of ["#overview", "#categories", "#map", "#why"]) await page.locator(part).scrollIntoViewIfNeeded();
    await page.waitForTimeout(200);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${report} is too wide for a phone`);
    assert.deepEqual(page.sins, []);
    await page.close();
  }
}

/** Pictures of the pages named on the command line, or of one of the made-up ones. */
async function draw(context) {
  fs.mkdirSync(screenshots, { recursive: true });
  const named = process.argv.slice(4);
  for (const file of named.length > 0 ? named : [path.join(folder, "thousand.html")]) {
    const page = await opened(context, file);
    for (const theme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme: theme });
      for (const part of ["overview", "categories", "map", "why", "truth"]) {
        if (!(await page.locator(`#${part}`).isVisible())) continue;
        await page.evaluate((id) => document.getElementById(id).scrollIntoView({ behavior: "instant" }), part);
        await page.waitForTimeout(600);
        await page.screenshot({ path: path.join(screenshots, `${path.basename(path.dirname(file))}-${path.basename(file, ".html")}-${theme}-${part}.png`) });
      }
    }
    await page.close();
  }
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
