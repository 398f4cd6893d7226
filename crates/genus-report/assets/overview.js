// What was found, in a sentence, a bar and a list.

{
  const of = (known) => categories.filter((category) => category.known === known);
  const sure = (list) => list.reduce((sum, category) => sum + category.items - category.unsure, 0);
  const [known, found] = [of(true), of(false)];
  const [inKnown, inNew] = [sure(known), sure(found)];
  const doubtful = total - inKnown - inNew;
  const n = (text) => el("span", { class: "number" }, text);

  const parts = [];
  const classes = `your ${number(known.length)} ${plural(known.length, "class", "classes")}`;
  if (inKnown > 0) parts.push([n(number(inKnown)), ` ${plural(inKnown, "is", "are")} of ${classes}`]);
  else if (known.length > 0) parts.push([`none is of ${classes}`]);
  if (inNew > 0) parts.push([n(number(inNew)), ` ${plural(inNew, "forms", "form")} `, n(number(found.length)), ` new ${plural(found.length, "group", "groups")}`]);
  if (doubtful > 0) parts.push([n(number(doubtful)), ` ${plural(doubtful, "is", "are")} unsure`]);
  const sentence = [`Of ${things(total)}${inScenes(items.id.map((_, at) => at))}, `];
  parts.forEach((part, at) => {
    if (at > 0) sentence.push(at === parts.length - 1 ? (parts.length > 2 ? ", and " : " and ") : ", ");
    sentence.push(...part);
  });
  sentence.push(".");
  if (inNew === 0) sentence.push(el("span", { class: "tail" }, " Nothing new was found."));

  const bar = el("div", { class: "bar", role: "group", "aria-label": "Shares of the categories" });
  categories.forEach((category, at) => {
    const count = category.items - category.unsure;
    if (count === 0) return;
    bar.append(el("button", {
      type: "button", class: category.known ? "known" : "new", "--c": category.colour, style: { flexGrow: String(count) },
      title: `${category.name}: ${things(count)}`, "aria-label": `${category.name}: ${things(count)}`, onclick: () => goToSheet(at),
    }));
  });
  if (doubtful > 0) bar.append(el("span", { class: "doubt", style: { flexGrow: String(doubtful) }, title: `${things(doubtful)}, unsure` }));
  const key = el("div", { class: "key" },
    known.length > 0 ? el("span", null, el("i", { class: "swatch" }), "classes you named") : null,
    found.length > 0 ? el("span", null, el("i", { class: "swatch new" }), "new groups") : null,
    doubtful > 0 ? el("span", null, el("i", { class: "swatch doubt" }), "unsure, put with their best guess") : null);

  /** Every category with its most typical pictures, or by its name alone. */
  function glance() {
    const most = pictured ? 24 : 60;
    const inList = (list) => el("ul", { class: `glance${pictured ? "" : " bare"}` }, list.map(inGlance));
    const inGlance = (at) => {
      const category = categories[at];
      const cover = pictured ? el("div", { class: "cover" }) : null;
      if (cover) whenNear(cover, () => cover.append(...covers(at, 3)));
      return el("li", null, el("a", { href: `#sheet-${at}`, onclick: (e) => { e.preventDefault(); goToSheet(at); } }, cover,
        el("div", { class: "name" }, mark(at), name(category.name), el("span", { class: "count" }, number(category.items)))));
    };
    const all = categories.map((_, at) => at);
    const alone = all.filter((at) => !data.parents?.[at]);
    const list = inList(alone.slice(0, most));
    if (alone.length > most) list.append(el("li", { class: "soft small" }, `and ${number(alone.length - most)} more below`));
    // Those that are one in the level above fold out from under its name.
    const sets = new Map();
    all.filter((at) => data.parents?.[at]).forEach((at) => {
      const parent = data.parents[at];
      sets.set(parent, [...(sets.get(parent) ?? []), at]);
    });
    return [list, ...[...sets].map(([parent, members]) => el("details", { class: "set" },
      el("summary", null, name(parent), el("span", { class: "count" },
        `${number(members.length)} groups, ${things(members.reduce((sum, at) => sum + categories[at].items, 0))}`)),
      inList(members)))];
  }

  const { made } = data;
  const fact = (term, value) => (value ? [el("div", null, el("dt", null, term), el("dd", null, value))] : []);
  const seconds = made.seconds < 90 ? `${made.seconds.toFixed(1)} s` : `${Math.round(made.seconds / 60)} min`;
  const facts = el("dl", { class: "facts" },
    fact("Method", made.how || made.method), fact("Encoder", made.encoder ?? "not named"), fact("Examples", number(examples.length)),
    fact("Seed", made.seed), fact("Time", seconds));

  $("overview").append(
    el("p", { class: "eyebrow" }, name(data.title), ", sorted"),
    el("h1", { class: "lede" }, sentence), bar, key, ...glance(), facts);
  if (scenes.size > 0) {
    $("overview").append(el("p", { class: "note" },
      `Copies, crops and frames of a burst are one scene. It counts like one ${data.things[0]}, and all of it goes to one category.`));
  }
  if (shown < total) {
    $("overview").append(el("p", { class: "note" },
      `This page shows ${things(shown)} drawn at random out of ${number(total)}. They were looked at closely, and the others were put with them; every one is in the assignments.`));
  }
  document.querySelector("footer").append(`Made by Genus ${made.version}. This page is one file: it needs no network and tells nobody anything.`);
}
