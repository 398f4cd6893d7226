// Works on the page of a running service in Chromium.
// node page.test.cjs GENUS WORK [many]
// With `many`, only a collection of 100,000 items is opened and measured. ONLY=name runs what is called so; SCREENSHOTS is a folder
// to put screenshots into.
"use strict";

const assert = require("node:assert/strict");
const { execFileSync, spawn } = require("node:child_process");
const fs = require("node:fs");
const net = require("node:net");
const path = require("node:path");
const { chromium } = require("playwright-core");
const { HOSTILE, collection, emoji, features, random, table } = require("./fixtures.cjs");

const [genus, work, mode] = process.argv.slice(2);
const only = process.env.ONLY;
const screenshots = process.env.SCREENSHOTS;
/** Modules from this folder instead of from the binary, while they are written. */
const assets = process.env.ASSETS;
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const DESK = { width: 1440, height: 900 };
const PHONE = { width: 390, height: 844 };

/** The service as a process. */
class Service {
  static async start(folder, port) {
    const service = new Service();
    service.folder = folder;
    service.port = port ?? await freePort();
    service.base = `http://127.0.0.1:${service.port}`;
    service.child = spawn(genus, ["serve", folder, "--address", `127.0.0.1:${service.port}`, "--author", "Ada"], { stdio: ["ignore", "ignore", "inherit"] });
    for (let tries = 0; ; tries++) {
      if (await fetch(`${service.base}/readyz`).then((answer) => answer.ok, () => false)) return service;
      assert.ok(tries < 600 && service.child.exitCode === null, "the service does not start");
      await new Promise((go) => setTimeout(go, 50));
    }
  }

  async end(signal = "SIGTERM") {
    const over = new Promise((go) => this.child.once("exit", go));
    this.child.kill(signal);
    await over;
  }

  async get(path) {
    const answer = await fetch(this.base + path, { headers: this.headers ?? {} });
    assert.ok(answer.ok, `${path}: ${answer.status}`);
    return answer.json();
  }

  async act(action) {
    const answer = await fetch(`${this.base}/v1/actions`, { method: "POST", body: JSON.stringify(action) });
    assert.ok(answer.ok, `${JSON.stringify(action)}: ${answer.status} ${await answer.clone().text()}`);
    return answer.json();
  }

  async take(name, row) {
    const answer = await fetch(`${this.base}/v1/items`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ name, features: row }) });
    return answer.json();
  }

  async group(id) {
    return (await this.get("/v1/groups")).groups.find((group) => group.id === id);
  }

  async called(name) {
    return (await this.get("/v1/groups")).groups.find((group) => group.name === name);
  }
}

function freePort() {
  return new Promise((go) => {
    const server = net.createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => go(port));
    });
  });
}

/** Waits until something is so. */
async function until(what, check, tries = 300) {
  let last;
  for (let left = tries; left > 0; left--) {
    last = await check();
    if (last) return last;
    await new Promise((go) => setTimeout(go, 50));
  }
  assert.fail(`never: ${what}`);
}

/** A page that remembers whatever it should not have done. */
async function opened(context, service, hash = "") {
  const page = await context.newPage();
  page.sins = [];
  page.mayFail = false;
  page.on("console", (message) => {
    if (!["error", "warning"].includes(message.type())) return;
    // A browser says of every request that failed that it did.
    if (page.mayFail && /Failed to load resource|ERR_/.test(message.text())) return;
    page.sins.push(`${message.type()}: ${message.text()}`);
  });
  page.on("pageerror", (error) => page.sins.push(`exception: ${error.stack ?? error}`));
  page.on("request", (request) => { if (!request.url().startsWith(service.base) && !/^(data|blob):/.test(request.url())) page.sins.push(`request: ${request.url()}`); });
  page.on("dialog", (dialog) => { page.sins.push(`dialog: ${dialog.message()}`); void dialog.dismiss(); });
  await routed(page);
  await page.goto(service.base + hash);
  await page.locator("body[data-ready]").waitFor({ state: "attached" });
  return page;
}

/** Modules as they are written, where that is wanted. */
async function routed(page) {
  if (assets) {
    await page.route("**/page/*", (route) => {
      const name = path.basename(new URL(route.request().url()).pathname);
      const file = [assets, path.join(assets, "../../genus-report/assets")].map((folder) => path.join(folder, name)).find((file) => fs.existsSync(file));
      return file ? route.fulfill({ path: file, contentType: name.endsWith(".css") ? "text/css" : "text/javascript" }) : route.continue();
    });
  }
  return page;
}

async function closed(page) {
  assert.equal(await page.evaluate(() => window.pwned), undefined);
  assert.deepEqual(page.sins, []);
  await page.close();
}

/** Nothing is under way. */
const settled = (page) => until("saved", () => page.evaluate(async () => (await import("/page/store.js")).store.changes.length === 0));
const view = (page) => page.evaluate(async () => (await import("/page/store.js")).store.view);
const selected = (page) => page.evaluate(async () => [...(await import("/page/store.js")).store.selected]);
const shown = (page) => page.evaluate(async () => [...(await import("/page/store.js")).store.sheet.ids]);
const tile = (page, row) => page.locator(`genus-sheet .tile[data-row="${row}"]`);
const title = (page) => page.locator("genus-name input");
/** Looks at a group as a hand would. */
async function look(page, id) {
  await page.locator(`#group-${id}`).click();
  await until("the items of the group", async () => {
    const now = await view(page);
    return now.group === id && await page.evaluate(async (id) => (await import("/page/store.js")).store.sheet?.groups[0] === id, id);
  });
}
const todo = (group) => (group.named ? group.doubtful : group.items);

const TESTS = {
  /** 1: the largest and most doubtful first, arrow keys, progress. */
  async queue({ context, things }) {
    const page = await opened(context, things);
    const { groups } = await things.get("/v1/groups");
    const rows = page.locator("genus-queue [data-group]");
    await until("all groups", async () => (await rows.count()) === groups.length);
    const ids = await rows.evaluateAll((all) => all.map((row) => Number(row.dataset.group)));
    const work = ids.map((id) => todo(groups.find((group) => group.id === id)));
    assert.deepEqual(work, [...work].sort((a, b) => b - a));
    assert.match(await page.locator("genus-queue .queue-head p").innerText(), /^[\d,]+ of 360 items settled, \d+ groups? to go$/);
    const list = page.locator("genus-queue .list");
    await list.focus();
    assert.equal((await view(page)).group, ids[0]);
    await page.keyboard.press("ArrowDown");
    await until("the second group", async () => (await view(page)).group === ids[1]);
    assert.equal(await list.getAttribute("aria-activedescendant"), `group-${ids[1]}`);
    await page.keyboard.press("End");
    await until("the last group", async () => (await view(page)).group === ids.at(-1));
    await page.keyboard.press("Home");
    await page.keyboard.press("k");
    await page.keyboard.press("j");
    await until("the second group by j", async () => (await view(page)).group === ids[1]);
    assert.match(page.url(), new RegExp(`group=${ids[1]}\\b`));
    await closed(page);
  },

  /** 2: a name by type-ahead; one that exists offers a merge; Enter goes on. */
  async naming({ context, things }) {
    const page = await opened(context, things);
    const [first, second, third] = await page.locator("genus-queue [data-group]").evaluateAll((all) => all.map((row) => Number(row.dataset.group)));
    await look(page, first);
    await page.keyboard.press("n");
    await page.keyboard.type("Robin");
    await page.keyboard.press("Enter");
    // The next group is there, and its name can be typed at once.
    await until("the next group", async () => (await view(page)).group === second);
    assert.equal(await page.evaluate(() => document.activeElement.getAttribute("role")), "combobox");
    assert.equal(await title(page).inputValue(), "");
    await settled(page);
    assert.equal((await things.group(first)).name, "Robin");
    // An existing name: type-ahead has it, Enter offers, and only Enter again merges.
    const before = await things.group(second);
    await page.keyboard.type("rob");
    const option = page.locator("genus-name [role=option]");
    await option.first().waitFor();
    assert.match(await option.first().innerText(), /Robin[\s\S]*merge with/);
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.locator(".offer:not(:empty)").waitFor();
    assert.match(await page.locator(".offer").innerText(), /Robin has \d+ items? already/);
    assert.equal((await things.group(second)).name, before.name);
    await page.keyboard.press("Enter");
    await until("the third group", async () => (await view(page)).group === third);
    await settled(page);
    assert.equal(await things.group(second), undefined);
    const robin = await things.group(first);
    assert.ok(robin.items >= before.items);
    // A name of one's own hostile choosing is a text.
    await page.keyboard.type(HOSTILE[0]);
    await page.keyboard.press("Enter");
    await settled(page);
    assert.equal((await things.group(third)).name, HOSTILE[0]);
    assert.equal(await page.locator(`#group-${third} bdi`).innerText(), HOSTILE[0]);
    await things.act({ do: "undo" });
    await things.act({ do: "undo" });
    await things.act({ do: "undo" });
    await closed(page);
  },

  /** 3: a click selects, Shift a range, Ctrl toggles, a band over the grid. */
  async selecting({ context, things }) {
    const page = await opened(context, things, "#groups?items=all");
    const ids = await shown(page);
    await tile(page, 2).click();
    assert.deepEqual(await selected(page), [ids[2]]);
    await tile(page, 6).click({ modifiers: ["Shift"] });
    assert.deepEqual(await selected(page), ids.slice(2, 7));
    await tile(page, 4).click({ modifiers: ["Control"] });
    assert.deepEqual((await selected(page)).sort(), [ids[2], ids[3], ids[5], ids[6]].sort());
    assert.equal(await tile(page, 3).getAttribute("aria-selected"), "true");
    assert.equal(await tile(page, 4).getAttribute("aria-selected"), "false");
    // A band from within the first tile to within the last of the second row.
    const columns = await page.locator("genus-sheet").evaluate((sheet) => sheet.columns);
    const box = async (row) => tile(page, row).boundingBox();
    const [from, to] = [await box(0), await box(2 * columns - 1)];
    await page.mouse.move(from.x + 10, from.y + 10);
    await page.mouse.down();
    await page.mouse.move(to.x + 4, to.y + 4, { steps: 4 });
    assert.equal(await page.locator(".band").isVisible(), true);
    await page.mouse.up();
    assert.deepEqual((await selected(page)).sort((a, b) => a - b), ids.slice(0, 2 * columns).sort((a, b) => a - b));
    await page.keyboard.press("Escape");
    assert.deepEqual(await selected(page), []);
    // The same by keys.
    await tile(page, 0).click();
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("Shift+ArrowRight");
    await page.keyboard.press("Shift+ArrowRight");
    assert.deepEqual(await selected(page), ids.slice(1, 4));
    assert.equal(await page.evaluate(() => document.activeElement.dataset.row), "3");
    await closed(page);
  },

  /** 4: all under the filter, sent as a filter. */
  async filtering({ context, things }) {
    const page = await opened(context, things, "#groups?items=all");
    await page.keyboard.press("/");
    await page.keyboard.type("thing-1-");
    await until("the filter", async () => (await view(page)).name === "thing-1-");
    const { total } = await things.get("/v1/items?name=thing-1-");
    await until("what is under it", async () => (await shown(page)).length === total);
    await page.keyboard.press("Enter");
    await page.keyboard.press("Control+a");
    assert.match(await page.locator(".actions b").innerText(), new RegExp(`^${total} selected, all there are$`));
    const sent = page.waitForRequest((request) => request.url().endsWith("/v1/actions"));
    await page.keyboard.press("c");
    const body = (await sent).postDataJSON();
    assert.deepEqual(body, { do: "confirm", filter: { name: "thing-1-" } });
    await settled(page);
    assert.equal((await things.get("/v1/items?name=thing-1-&confirmed=true")).total, total);
    await things.act({ do: "undo" });
    await closed(page);
  },

  /** 5: the line between typical and doubtful. */
  async slider({ context, things }) {
    const page = await opened(context, things);
    const { groups } = await things.get("/v1/groups");
    const group = groups.find((group) => group.items > 12 && group.confirmed === 0);
    await look(page, group.id);
    const ids = await shown(page);
    const order = (await things.get(`/v1/items?group=${group.id}&sort=surest&limit=1000`)).items.map((item) => item.id);
    assert.deepEqual(ids, order);
    await page.keyboard.press("l");
    assert.equal(await page.evaluate(() => document.activeElement.type), "range");
    await page.keyboard.press("End");
    for (let step = 0; step < 4; step++) await page.keyboard.press("ArrowLeft");
    assert.match(await page.locator(".cut .strong").innerText(), new RegExp(`Accept ${ids.length - 4} in front`));
    await until("what is behind the line", async () => (await page.locator("genus-sheet .tile.behind").count()) > 0 || (await tile(page, ids.length - 1).count()) === 0);
    await page.keyboard.press("f");
    await settled(page);
    assert.equal((await things.group(group.id)).confirmed, ids.length - 4);
    await page.keyboard.press("t");
    await settled(page);
    assert.equal((await things.group(group.id)).items, ids.length - 4);
    const last = await things.get(`/v1/items/${ids.at(-1)}`);
    assert.equal(last.kind, "waiting");
    await things.act({ do: "undo" });
    await things.act({ do: "undo" });
    await closed(page);
  },

  /** 6: the selection into another group or a new one. */
  async moving({ context, things }) {
    const page = await opened(context, things);
    const { groups } = await things.get("/v1/groups");
    const [from, to] = groups.filter((group) => group.items > 5);
    await look(page, from.id);
    const ids = await shown(page);
    await tile(page, 0).click();
    await page.keyboard.press("Shift+ArrowRight");
    await page.keyboard.press("m");
    await page.keyboard.type(to.name);
    await page.locator("dialog.where [role=option]").first().waitFor();
    await page.keyboard.press("Enter");
    // It shows before the disk has it.
    assert.deepEqual((await shown(page)).includes(ids[0]), false);
    await settled(page);
    assert.equal((await things.get(`/v1/items/${ids[1]}`)).group, to.id);
    // A new one.
    await tile(page, 0).click();
    await page.keyboard.press("g");
    await settled(page);
    const moved = await things.get(`/v1/items/${ids[2]}`);
    assert.ok(![from.id, to.id].includes(moved.group) && moved.confirmed);
    await until("the new group in the queue", () => page.locator(`#group-${moved.group}`).count());
    // A new one with a name.
    await tile(page, 0).click();
    await page.keyboard.press("m");
    await page.keyboard.type("Odd ones");
    await page.keyboard.press("Enter");
    await settled(page);
    assert.equal((await things.called("Odd ones")).items, 1);
    for (let step = 0; step < 3; step++) await things.act({ do: "undo" });
    await closed(page);
  },

  /** 7: many groups become one beside a preview; two names never by accident. */
  async merging({ context, emoji }) {
    const page = await opened(context, emoji);
    const { groups } = await emoji.get("/v1/groups");
    const [a, b, c] = groups.filter((group) => !group.holds_groups && group.items > 3);
    await emoji.act({ do: "name", group: a.id, name: "Ayes" });
    await emoji.act({ do: "name", group: b.id, name: "Bees" });
    await page.reload();
    await page.locator("body[data-ready]").waitFor({ state: "attached" });
    for (const group of [a, b, c]) await page.locator(`#group-${group.id}`).click({ modifiers: ["Control"] });
    await page.locator(".merging .strong").click();
    const dialog = page.locator("dialog.merge");
    await until("the preview", async () => (await dialog.locator(".column").count()) === 3 && (await dialog.locator(".column").first().locator("img").count()) > 4);
    // Nothing is chosen, and nothing can be done.
    assert.equal(await dialog.locator("input:checked").count(), 0);
    const go = dialog.locator(".foot .strong");
    assert.equal(await go.isDisabled(), true);
    assert.match(await dialog.locator(".foot p").innerText(), /more than one of these has a name/i);
    await dialog.locator(`input[value="${b.id}"]`).check();
    assert.match(await dialog.locator(".foot p").innerText(), /will be Bees and no longer Ayes/);
    await shot(page, "merge");
    await go.click();
    await settled(page);
    const whole = await emoji.called("Bees");
    assert.equal(whole.items, a.items + b.items + c.items);
    // A type-ahead that meets another name asks as well, and does nothing by itself.
    await emoji.act({ do: "undo" });
    await page.reload();
    await page.locator("body[data-ready]").waitFor({ state: "attached" });
    await look(page, a.id);
    await page.keyboard.press("n");
    await page.keyboard.type("Bees");
    await page.keyboard.press("Enter");
    await dialog.waitFor();
    assert.equal(await go.isDisabled(), true);
    await page.keyboard.press("Escape");
    assert.ok(await emoji.called("Ayes"));
    await emoji.act({ do: "undo" });
    await emoji.act({ do: "undo" });
    await closed(page);
  },

  /** 8: a group into the parts that it has. */
  async splitting({ context, emoji }) {
    const page = await opened(context, emoji);
    const { groups } = await emoji.get("/v1/groups");
    const group = groups.filter((group) => group.items > 8 && !group.holds_groups).sort((a, b) => b.items - a.items)[0];
    await look(page, group.id);
    await page.keyboard.press("s");
    const dialog = page.locator("dialog.split");
    await dialog.locator(".part").first().waitFor();
    await dialog.locator("select").selectOption("3");
    await until("three parts", async () => (await dialog.locator(".part").count()) === 3);
    assert.ok((await dialog.locator(".part").first().locator("img").count()) > 0);
    await shot(page, "split");
    await until("the button", () => dialog.locator(".foot .strong").isEnabled());
    await dialog.locator(".foot .strong").click();
    await settled(page);
    const after = (await emoji.get("/v1/groups")).groups;
    assert.equal(after.filter((group) => !group.holds_groups).length, groups.filter((group) => !group.holds_groups).length + 2);
    await until("the parts in the queue", async () => (await page.locator("genus-queue [data-group]").count()) === after.filter((group) => !group.holds_groups).length);
    await emoji.act({ do: "undo" });
    await closed(page);
  },

  /** 9: undo and redo of whole actions across reloads, with the history. */
  async undoing({ context, things }) {
    const page = await opened(context, things);
    const [first] = await page.locator("genus-queue [data-group]").evaluateAll((all) => all.map((row) => Number(row.dataset.group)));
    const before = await things.group(first);
    await look(page, first);
    await page.keyboard.press("Control+a");
    await page.keyboard.press("x");
    await settled(page);
    assert.equal((await things.get("/v1/status")).noise, before.items);
    await page.reload();
    await page.locator("body[data-ready]").waitFor({ state: "attached" });
    assert.match(await page.locator("#undo").getAttribute("title"), /Undo noise/);
    await page.keyboard.press("Control+z");
    await settled(page);
    assert.equal((await things.group(first)).items, before.items);
    await page.reload();
    await page.locator("body[data-ready]").waitFor({ state: "attached" });
    await page.keyboard.press("Control+Shift+z");
    await settled(page);
    assert.equal((await things.get("/v1/status")).noise, before.items);
    await page.keyboard.press("h");
    const log = page.locator("dialog.drawer .log li");
    await log.first().waitFor();
    const words = await log.allInnerTexts();
    assert.match(words[0], /Ada[\s\S]*did again: noise/);
    assert.match(words[1], /undid noise/);
    assert.match(words[2], /called \d+ items? noise/);
    await page.locator("dialog.drawer .foot button").first().click();
    await until("the undo in the history", async () => /undid noise/.test(await log.first().innerText()));
    await page.keyboard.press("Escape");
    await settled(page);
    assert.equal((await things.get("/v1/status")).noise, 0);
    await closed(page);
  },

  /** 10: a lasso on the map selects in the grid, and back. */
  async map({ context, emoji }) {
    const page = await opened(context, emoji);
    await page.keyboard.press("p");
    const field = page.locator("genus-map .field");
    await field.waitFor();
    await until("the points", () => page.evaluate(() => document.querySelector("genus-map").points?.sheet != null && document.querySelector("genus-map").points.drawnAt !== null));
    const { points, box } = await page.evaluate(() => {
      const { points } = document.querySelector("genus-map");
      return { points: points.ids.map((id, at) => ({ id, spot: points.at(points.x[at], points.y[at]) })), box: points.base.getBoundingClientRect().toJSON() };
    });
    // Around one point, by hand.
    const { spot: [cx, cy] } = points[10];
    const around = (share) => [box.x + cx + 46 * Math.cos(2 * Math.PI * share), box.y + cy + 46 * Math.sin(2 * Math.PI * share)];
    await page.mouse.move(...around(0));
    await page.mouse.down();
    for (let step = 1; step <= 24; step++) await page.mouse.move(...around(step / 24));
    await page.mouse.up();
    const inside = points.filter(({ spot: [x, y] }) => Math.hypot(x - cx, y - cy) < 42).map(({ id }) => id);
    const outside = new Set(points.filter(({ spot: [x, y] }) => Math.hypot(x - cx, y - cy) > 50).map(({ id }) => id));
    const found = await selected(page);
    assert.ok(inside.length > 0 && inside.every((id) => found.includes(id)), `${inside} in ${found}`);
    assert.ok(found.every((id) => !outside.has(id)));
    assert.deepEqual((await shown(page)).sort(), [...found].sort());
    assert.equal(await page.locator("genus-sheet .tile[aria-selected=true]").count() > 0, true);
    await shot(page, "map");
    // And back: one of them alone is lit.
    await tile(page, 0).click();
    const lit = () => page.evaluate(() => { const { points } = document.querySelector("genus-map"); return points.ids.filter((_, at) => points.lit[at] === 1); });
    await until("one lit point", async () => { const now = await lit(); return now.length === 1 && now[0] === (await shown(page))[0]; });
    // By keys: Enter on the map selects what is seen.
    await page.locator("genus-map canvas").first().focus();
    await page.keyboard.press("0");
    await page.keyboard.press("Enter");
    await until("everything seen", async () => (await selected(page)).length === points.length);
    await closed(page);
  },

  /** 10: the unsure queue, digits, and a key for noise. */
  async unsure({ context, things }) {
    const page = await opened(context, things);
    const { items } = await things.get("/v1/unsure?limit=60");
    assert.ok(items.length > 3, `${items.length} unsure`);
    await page.keyboard.press("u");
    const card = page.locator("genus-unsure");
    await until("the first", async () => (await card.locator("h2").innerText()) === items[0].name);
    assert.ok((await card.locator(".candidates li").count()) > 1);
    await page.keyboard.press("2");
    await settled(page);
    const first = await things.get(`/v1/items/${items[0].id}`);
    assert.deepEqual([first.group, first.confirmed], [items[0].candidates[1].group, true]);
    await page.keyboard.press("0");
    await settled(page);
    assert.equal((await things.get(`/v1/items/${items[1].id}`)).kind, "noise");
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("1");
    await settled(page);
    assert.equal((await things.get(`/v1/items/${items[3].id}`)).group, items[3].candidates[0].group);
    assert.match(await card.locator(".unsure-head p").innerText(), /3 answered/);
    for (let step = 0; step < 3; step++) await things.act({ do: "undo" });
    await closed(page);
  },

  /** A change shows at once, and goes back where the service refuses it. */
  async optimism({ context, things }) {
    const page = await opened(context, things);
    page.mayFail = true;
    const [first] = await page.locator("genus-queue [data-group]").evaluateAll((all) => all.map((row) => Number(row.dataset.group)));
    await look(page, first);
    const before = await things.group(first);
    let release;
    const held = new Promise((go) => { release = go; });
    await page.route("**/v1/actions", async (route) => {
      await held;
      await route.fulfill({ status: 409, contentType: "application/problem+json", body: JSON.stringify({ type: "urn:genus:refused", title: "no", status: 409, detail: "the moon is full" }) });
    }, { times: 1 });
    await page.keyboard.press("n");
    await page.keyboard.type("Too soon");
    await page.keyboard.press("Enter");
    await until("the name in the queue", async () => (await page.locator(`#group-${first} bdi`).innerText()) === "Too soon");
    assert.equal((await things.group(first)).name, before.name);
    release();
    await until("the message", async () => /Not done: the moon is full/.test(await page.locator("#notes").innerText()));
    await until("the old name", async () => (await page.locator(`#group-${first} bdi`).innerText()) === before.name);
    // Somebody else was faster: it is said who, what, and how to do it anyway.
    await look(page, first);
    let pass;
    const waits = new Promise((go) => { pass = go; });
    await page.route("**/v1/actions", async (route) => { await waits; await route.continue(); }, { times: 1 });
    await page.keyboard.press("n");
    await page.keyboard.type("Mine");
    await page.keyboard.press("Enter");
    await until("the name at once", async () => (await page.locator(`#group-${first} bdi`).innerText()) === "Mine");
    await things.act({ do: "name", group: first, name: "Theirs" });
    pass();
    await until("the explanation", async () => /Not done, because Ada was faster: named “Theirs”/.test(await page.locator("#notes").innerText()));
    await until("their name", async () => (await page.locator(`#group-${first} bdi`).innerText()) === "Theirs");
    await page.getByRole("button", { name: "Do it anyway" }).click();
    await settled(page);
    assert.equal((await things.group(first)).name, "Mine");
    await things.act({ do: "undo" });
    await things.act({ do: "undo" });
    await closed(page);
  },

  /** Two people at once: each sees what the other does, and nothing is moved from under the hand. */
  async together({ browser, context, things }) {
    const page = await opened(context, things);
    const other = await browser.newContext({ viewport: DESK });
    const second = await opened(other, things);
    const rows = await page.locator("genus-queue [data-group]").evaluateAll((all) => all.map((row) => Number(row.dataset.group)));
    await look(page, rows[1]);
    await look(second, rows[0]);
    await second.keyboard.press("n");
    await second.keyboard.type("Wren");
    await second.keyboard.press("Enter");
    await until("the other's name", async () => (await page.locator(`#group-${rows[0]} bdi`).innerText()) === "Wren");
    assert.match(await page.locator("#notes").innerText(), /Ada named “Wren”/);
    assert.deepEqual(await page.locator("genus-queue [data-group]").evaluateAll((all) => all.map((row) => Number(row.dataset.group))), rows);
    // What comes in waits for the hand: the grid is as it was until it asks.
    const before = await shown(page);
    await tile(page, 3).click();
    const next = random(99);
    let landed = 0;
    for (let at = 0; landed < 3 && at < 60; at++) {
      const item = await things.take(`late ${at}`, features(at % 9, next, 16, 9, false));
      if (item.group === rows[1] && item.kind !== "waiting") landed++;
    }
    assert.equal(landed, 3);
    const chip = page.locator("genus-sheet .sheet-bar .fresh");
    await until("the chip", async () => (await chip.isVisible()) && /^3 new items · show$/.test(await chip.innerText()));
    assert.deepEqual(await shown(page), before);
    assert.equal(await page.evaluate(() => document.activeElement.dataset.row), "3");
    assert.deepEqual(await selected(page), [before[3]]);
    await page.keyboard.press("a");
    await until("the new ones", async () => (await shown(page)).length === before.length + 3);
    assert.deepEqual(await selected(page), [before[3]]);
    await things.act({ do: "undo" });
    await closed(second);
    await other.close();
    await closed(page);
  },

  /** A reload in the middle: what was under way is done, once. */
  async reloading({ context, things }) {
    const page = await opened(context, things);
    page.mayFail = true;
    const [first] = await page.locator("genus-queue [data-group]").evaluateAll((all) => all.map((row) => Number(row.dataset.group)));
    await look(page, first);
    const { log } = await things.get("/v1/status");
    // The request arrives, and the answer never does.
    await page.route("**/v1/actions", async (route) => { await route.fetch(); }, { times: 1 });
    await page.keyboard.press("n");
    await page.keyboard.type("Half way");
    await page.keyboard.press("Enter");
    await until("the name on the disk", async () => (await things.group(first)).name === "Half way");
    await page.reload();
    await page.locator("body[data-ready]").waitFor({ state: "attached" });
    await settled(page);
    assert.equal((await things.get("/v1/status")).log, log + 1);
    // The request never arrives.
    await look(page, first);
    await page.route("**/v1/actions", () => {}, { times: 1 });
    await page.keyboard.press("n");
    await page.keyboard.type("All the way");
    await page.keyboard.press("Enter");
    await until("the name in the queue", async () => (await page.locator(`#group-${first} bdi`).innerText()) === "All the way");
    await page.reload();
    await page.locator("body[data-ready]").waitFor({ state: "attached" });
    await settled(page);
    assert.equal((await things.group(first)).name, "All the way");
    assert.equal((await things.get("/v1/status")).log, log + 2);
    await things.act({ do: "undo" });
    await things.act({ do: "undo" });
    await closed(page);
  },

  /** The service is killed and comes back; the page waits and goes on by itself. */
  async killing({ context, things }) {
    const page = await opened(context, things);
    page.mayFail = true;
    const rows = await page.locator("genus-queue [data-group]").evaluateAll((all) => all.map((row) => Number(row.dataset.group)));
    await look(page, rows[0]);
    await things.end("SIGKILL");
    await page.keyboard.press("n");
    await page.keyboard.type("Phoenix");
    await page.keyboard.press("Enter");
    await until("the light", async () => /away; trying again/.test(await page.locator("#link").innerText()));
    Object.assign(things, await Service.start(things.folder, things.port));
    await settled(page);
    assert.equal((await things.group(rows[0])).name, "Phoenix");
    await until("the light goes out", async () => (await page.locator("#link").innerText()) === "");
    // It hears again what others do.
    await things.act({ do: "name", group: rows[1], name: "Ashes" });
    await until("the news", async () => (await page.locator(`#group-${rows[1]} bdi`).innerText()) === "Ashes");
    await things.act({ do: "undo" });
    await things.act({ do: "undo" });
    await closed(page);
  },

  /** The keyboard alone is enough, and what has the focus is seen. */
  async keyboard({ context, things }) {
    const page = await opened(context, things);
    await page.keyboard.press("?");
    await page.locator("dialog.keys").waitFor();
    await shot(page, "keys");
    await page.keyboard.press("Escape");
    await until("no dialog", async () => (await page.locator("dialog").count()) === 0);
    const seen = new Set();
    for (let step = 0; step < 60 && !seen.has("the grid"); step++) {
      await page.keyboard.press("Tab");
      const at = await page.evaluate(() => {
        const now = document.activeElement;
        const style = getComputedStyle(now);
        const ring = style.outlineStyle !== "none" || style.boxShadow !== "none" || now.matches(".list");
        const called = now.getAttribute("aria-label") ?? now.textContent.trim() ?? "";
        return { what: now.matches(".grid .tile") ? "the grid" : now.matches(".list") ? "the queue" : now.id || now.tagName, ring, called: called.length > 0 };
      });
      assert.ok(at.ring, `${at.what} shows no focus`);
      assert.ok(at.called, `${at.what} has no name`);
      seen.add(at.what);
    }
    for (const what of ["undo", "history", "help", "the queue", "the grid"].filter((what) => what !== "undo")) assert.ok(seen.has(what), `${what} is not reached: ${[...seen]}`);
    // One stop in the grid, and arrows within it.
    assert.equal(await page.locator(".grid .tile[tabindex='0']").count(), 1);
    const ids = await shown(page);
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press(" ");
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press(" ");
    assert.deepEqual(await selected(page), [ids[1], ids[2]]);
    await page.keyboard.press("c");
    await settled(page);
    assert.equal((await things.get(`/v1/items/${ids[1]}`)).confirmed, true);
    await page.keyboard.press("Control+z");
    await settled(page);
    assert.equal((await things.get(`/v1/items/${ids[1]}`)).confirmed, false);
    await page.keyboard.press("i");
    await page.keyboard.press("Enter");
    const dialog = page.locator("dialog.item");
    await dialog.locator(".candidates li").first().waitFor();
    const name = await dialog.locator("h2").innerText();
    await page.keyboard.press("ArrowRight");
    await until("the next item", async () => (await dialog.locator("h2").innerText()) !== name);
    await page.keyboard.press("Escape");
    assert.equal(await page.evaluate(() => document.activeElement.matches(".grid .tile")), true);
    await page.keyboard.press("q");
    assert.equal(await page.evaluate(() => document.activeElement.matches(".list")), true);
    assert.ok((await page.locator("#said").innerText()).length > 0);
    await closed(page);
  },

  /** Whoever needs a token is asked for it. */
  async tokens({ context, things }) {
    const token = (name, role) => execFileSync(genus, ["token", "create", things.folder, "--name", name, "--role", role, "--quiet"]).toString().trim();
    const [label, reader] = [token("Bea", "label"), token("Cy", "read")];
    await new Promise((go) => setTimeout(go, 1200));
    const enter = async (secret) => {
      await page.locator("dialog.who input").fill(secret);
      await page.keyboard.press("Enter");
    };
    let page = await context.newPage();
    await page.goto(things.base);
    await page.locator("dialog.who").waitFor();
    await shot(page, "sign-in");
    await enter("genus_wrong");
    await until("the refusal", async () => /Not signed in/.test(await page.locator("dialog.who [role=alert]").innerText()));
    await enter(label);
    await page.locator("body[data-ready]").waitFor({ state: "attached" });
    assert.equal(await page.evaluate(() => document.cookie), "");
    const rows = await page.locator("genus-queue [data-group]").evaluateAll((all) => all.map((row) => Number(row.dataset.group)));
    await look(page, rows[0]);
    await page.keyboard.press("n");
    await page.keyboard.type("Bea was here");
    await page.keyboard.press("Enter");
    await settled(page);
    await page.keyboard.press("Escape");
    await page.keyboard.press("Escape");
    await page.keyboard.press("h");
    await until("her name in the history", async () => /Bea[\s\S]*named “Bea was here”/.test(await page.locator("dialog.drawer .log li").first().innerText().catch(() => "")));
    await page.keyboard.press("Escape");
    await page.keyboard.press("Control+z");
    await settled(page);
    // Who may only look cannot do anything.
    await context.clearCookies();
    await page.reload();
    await page.locator("dialog.who").waitFor();
    await enter(reader);
    await page.locator("body[data-ready]").waitFor({ state: "attached" });
    assert.equal(await title(page).isDisabled(), true);
    await page.keyboard.press("?");
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.locator("dialog.who").waitFor();
    await page.close();
    await context.clearCookies();
    for (const name of ["Bea", "Cy"]) execFileSync(genus, ["token", "revoke", things.folder, name, "--quiet"]);
    await new Promise((go) => setTimeout(go, 1200));
  },

  /** Names that would do harm as markup are texts. */
  async names({ context, things }) {
    const page = await opened(context, things, "#groups?items=all");
    const names = await page.evaluate(async () => (await import("/page/store.js")).store.sheet.names);
    for (const name of HOSTILE) assert.ok(names.includes(name), name);
    const at = names.indexOf(HOSTILE[0]);
    await page.locator("genus-sheet").evaluate((sheet, at) => sheet.go(at), at);
    assert.equal(await tile(page, at).locator("bdi").first().innerText(), HOSTILE[0]);
    await page.keyboard.press("Enter");
    assert.equal(await page.locator("dialog.item h2").innerText(), HOSTILE[0]);
    await page.keyboard.press("Escape");
    assert.equal(await page.locator("genus-sheet img[src='x']").count(), 0);
    await closed(page);
  },

  /** Photographs and folders that are dropped are added. */
  async dropping({ context, emoji, loose }) {
    const page = await opened(context, emoji, "#groups?items=all");
    const before = (await emoji.get("/v1/status")).items;
    const session = await context.newCDPSession(page);
    const drop = async (files) => {
      for (const type of ["dragEnter", "dragOver", "drop"]) await session.send("Input.dispatchDragEvent", { type, x: 700, y: 400, data: { items: [], files, dragOperationsMask: 1 } });
    };
    const files = fs.readdirSync(loose).map((name) => path.join(loose, name));
    await drop(files.filter((file) => !file.endsWith("broken.png")).slice(0, 2));
    await until("two more", async () => (await emoji.get("/v1/status")).items === before + 2);
    await until("the words", async () => /^2 photographs added\.$/.test(await page.locator(".adding [role=status]").innerText()));
    // The whole folder: what was there already is not there twice, and what is none is said.
    await drop([loose]);
    await until("the rest", async () => (await emoji.get("/v1/status")).items === before + files.length - 1);
    await until("the words", async () => /2 were there already, 1 could not be/.test(await page.locator(".adding [role=status]").innerText()));
    const chip = page.locator("genus-sheet .sheet-bar .fresh");
    await until("the chip", async () => /new items · show/.test(await chip.innerText().catch(() => "")));
    page.sins = page.sins.filter((sin) => !/status of 4\d\d/.test(sin));
    await shot(page, "adding");
    await closed(page);
  },

  /** Dark, and on a phone. */
  async dress({ browser, emoji, things }) {
    for (const [name, viewport, colorScheme] of [["light", DESK, "light"], ["dark", DESK, "dark"], ["phone", PHONE, "light"], ["phone-dark", PHONE, "dark"]]) {
      const context = await browser.newContext({ viewport, colorScheme, hasTouch: viewport === PHONE, isMobile: viewport === PHONE });
      const page = await opened(context, emoji);
      const paper = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      assert.equal(paper, colorScheme === "dark" ? "rgb(19, 21, 23)" : "rgb(251, 250, 248)");
      await page.waitForTimeout(400);
      await shot(page, `groups-${name}`);
      if (viewport === PHONE) {
        // The queue is the page; a group opens, is named, and one goes back.
        assert.equal(await page.locator("genus-sheet").isVisible(), false);
        await page.locator("genus-queue [data-group]").first().tap();
        await page.locator("genus-sheet .tile").first().waitFor();
        assert.equal(await page.locator("genus-queue").isVisible(), false);
        await page.waitForTimeout(400);
        await shot(page, `sheet-${name}`);
        await title(page).tap();
        await page.keyboard.type(`Phone ${name}`);
        await page.keyboard.press("Enter");
        await settled(page);
        assert.ok(await emoji.called(`Phone ${name}`));
        await page.locator("genus-sheet .back").tap();
        assert.equal(await page.locator("genus-queue").isVisible(), true);
        await emoji.act({ do: "undo" });
      }
      const isWide = () => page.evaluate((width) => Math.max(document.documentElement.scrollWidth, innerWidth) > width, viewport.width);
      assert.equal(await isWide(), false, `${name} is too wide`);
      for (const way of ["unsure", "map"]) {
        await page.locator(`a[data-way=${way}]`).click();
        await page.waitForTimeout(700);
        await shot(page, `${way}-${name}`);
        assert.equal(await isWide(), false, `${way} ${name} is too wide`);
      }
      await closed(page);
      await context.close();
    }
    assert.ok(things);
  },
};

async function shot(page, name) {
  if (!screenshots) return;
  await page.waitForTimeout(350);
  await page.screenshot({ path: path.join(screenshots, `${name}.png`) });
}

/** Opens very many items: how long that takes, and how long the frames are while they go by. */
async function many(browser, count) {
  const source = path.join(work, "many.csv");
  table(source, count, 120, 32, false);
  const start = Date.now();
  const service = await Service.start(collection(genus, path.join(work, "many"), source));
  console.log(`made ${count} items in ${((Date.now() - start) / 1000).toFixed(0)} s`);
  try {
    const context = await browser.newContext({ viewport: DESK });
    for (const hash of ["", "#groups?items=all"]) {
      const page = await routed(await context.newPage());
      const begin = Date.now();
      await page.goto(service.base + hash);
      await page.locator("genus-sheet .tile").first().waitFor();
      console.log(`opened ${hash || "the queue"} in ${Date.now() - begin} ms`);
      if (hash) {
        assert.equal((await shown(page)).length, count);
        console.log(`  cells on the page: ${await page.locator("genus-sheet .tile").count()}`);
        for (const [what, speed] of [["scrolling", 40], ["flinging", 4000]]) console.log(`  ${what}: ${await frames(page, what, speed)}`);
        // What is at the end is the end.
        await page.locator("genus-sheet .grid").evaluate((grid) => { grid.scrollTop = grid.scrollHeight; });
        await tile(page, count - 1).waitFor();
      }
      await page.close();
    }
    const page = await routed(await context.newPage());
    let begin = Date.now();
    await page.goto(`${service.base}#map`);
    await until("the map", () => page.evaluate(() => document.querySelector("genus-map").points?.sheet != null && document.querySelector("genus-map").points.drawnAt !== null), 6000);
    console.log(`the map was laid out in ${Date.now() - begin} ms`);
    await page.close();
    const again = await routed(await context.newPage());
    begin = Date.now();
    await again.goto(`${service.base}#map`);
    await until("the map", () => again.evaluate(() => document.querySelector("genus-map").points?.sheet != null && document.querySelector("genus-map").points.drawnAt !== null));
    console.log(`the map opened again in ${Date.now() - begin} ms`);
    console.log(`  moving: ${await frames(again, "moving", 6)}`);
    console.log(`  a redraw takes ${await again.evaluate(() => {
      const { points } = document.querySelector("genus-map");
      const begin = performance.now();
      for (let times = 0; times < 5; times++) points.draw(points.layer.getContext("2d"));
      return ((performance.now() - begin) / 5).toFixed(1);
    })} ms`);
    await again.close();
    await context.close();
  } finally {
    await service.end();
  }
}

/** The lengths of frames while something goes on for two seconds. */
function frames(page, what, speed) {
  return page.evaluate(([what, speed]) => new Promise((done) => {
    const grid = document.querySelector("genus-sheet .grid");
    const { points } = document.querySelector("genus-map");
    const lengths = [];
    let last = performance.now();
    const begin = last;
    const step = (now) => {
      lengths.push(now - last);
      last = now;
      if (now - begin > 2000) {
        lengths.shift();
        lengths.sort((a, b) => a - b);
        const at = (share) => lengths[Math.min(lengths.length - 1, Math.floor(share * lengths.length))].toFixed(1);
        done(`${(1000 * lengths.length / lengths.reduce((sum, one) => sum + one, 0)).toFixed(0)} frames/s, median ${at(0.5)} ms, p95 ${at(0.95)} ms, longest ${at(1)} ms`);
        return;
      }
      if (what === "moving") points.pan(speed * Math.sin((now - begin) / 200), speed);
      else grid.scrollTop += speed;
      requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }), [what, speed]);
}

async function main() {
  if (screenshots) fs.mkdirSync(screenshots, { recursive: true });
  const launch = () => chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", headless: true, args: FLAGS });
  if (mode === "many") {
    const browser = await launch();
    try { await many(browser, Number(process.env.ITEMS ?? 100_000)); } finally { await browser.close(); }
    return;
  }
  const photos = path.join(work, "photos");
  emoji(photos, (kind, file) => ["birds", "clocks", "flags", "fruit", "hearts", "vehicles"].includes(kind) && !/^(owl|swan|dove)/.test(file));
  const loose = path.join(work, "loose");
  emoji(loose, (_, file) => /^(owl|swan|dove|guitar|snail)/.test(file));
  fs.writeFileSync(path.join(loose, "broken.png"), "this is no picture");
  const source = path.join(work, "things.csv");
  table(source, 360, 9, 16, true);
  const start = Date.now();
  const [things, pictures] = [await Service.start(collection(genus, path.join(work, "things"), source)), await Service.start(collection(genus, path.join(work, "emoji"), photos))];
  console.log(`collections in ${((Date.now() - start) / 1000).toFixed(1)} s`);
  const browser = await launch();
  const failed = [];
  try {
    for (const [name, test] of Object.entries(TESTS)) {
      if (only && !only.split(",").includes(name)) continue;
      const begin = Date.now();
      const context = await browser.newContext({ viewport: DESK, colorScheme: "light" });
      try {
        await test({ browser, context, things, emoji: pictures, loose });
      } catch (error) {
        for (const page of context.pages()) {
          if (screenshots) await page.screenshot({ path: path.join(screenshots, `failed-${name}.png`) }).catch(() => {});
          console.error("  said:", page.sins ?? []);
        }
        console.error(`${name} failed:`, error);
        failed.push(name);
        await context.close();
        continue;
      }
      await context.close();
      console.log(`${name}: ${((Date.now() - begin) / 1000).toFixed(1)} s`);
    }
  } finally {
    await browser.close();
    await things.end();
    await pictures.end();
  }
  assert.deepEqual(failed, [], "these failed");
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
