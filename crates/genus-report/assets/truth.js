// How right it is, where the truth is known.

if (data.truth) {
  const MOST = 60;
  const { truth } = data;
  const section = $("truth");
  section.hidden = false;
  document.querySelector('.top nav a[href="#truth"]').hidden = false;
  const share = (title, value, text) => el("div", null, el("i", null, title), el("b", null, percent(value)), el("span", null, text));
  section.append(
    el("p", { class: "soft" },
      `The true class of ${things(truth.judged)} is known. An item of one of your classes is right when it is in that class. New groups are matched with new classes one to one, so that most items are right.`),
    el("div", { class: "shares" },
      share("All", truth.all, "of everything is right"), share("Old", truth.old, "of what is of your classes"), share("New", truth.new, "of what was never labelled")));

  // Classes that have a category first, in the order of the classes; then categories that stand for none.
  const at = new Map(truth.counts.map(([cls, category, count]) => [`${cls} ${category}`, count]));
  const sizes = truth.classes.map(() => 0);
  truth.counts.forEach(([cls, , count]) => { sizes[cls] += count; });
  const classes = truth.classes.map((_, cls) => cls).filter((cls) => sizes[cls] > 0);
  const owner = new Map();
  truth.classOf.forEach((cls, category) => { if (cls !== null) owner.set(cls, category); });
  const filled = new Set(truth.counts.map(([, category]) => category));
  const matched = classes.map((cls) => owner.get(cls)).filter((category) => category !== undefined);
  const others = [...filled].filter((category) => !matched.includes(category)).sort((a, b) => a - b);
  const columns = matched.concat(others);

  const box = el("div", { class: "block" }, el("h3", null, "What became of every class"),
    el("p", { class: "soft small" }, `A row is a true class, a column a category, and a framed field is where the class belongs.${classes.length > MOST || columns.length > MOST ? ` The first ${MOST} of each are shown, out of ${number(classes.length)} classes and ${number(columns.length)} categories.` : ""}`));
  section.append(box);
  whenNear(box, () => {
    const head = el("tr", null, el("td", { class: "corner", "--share": 0 }), columns.slice(0, MOST).map((category) => el("th", { scope: "col" },
      el("a", { href: `#sheet-${category}`, title: categories[category].name, onclick: (e) => { e.preventDefault(); goToSheet(category); } }, name(categories[category].name)))));
    const rows = classes.slice(0, MOST).map((cls) => el("tr", null, el("th", { scope: "row" }, name(truth.classes[cls])),
      columns.slice(0, MOST).map((category) => {
        const count = at.get(`${cls} ${category}`) ?? 0;
        const part = count / sizes[cls];
        const own = truth.classOf[category] === cls;
        return el("td", { class: `${own ? "own" : ""}${part > 0.5 ? " dark" : ""}`, "--share": (0.92 * Math.sqrt(part)).toFixed(3), title: `${number(count)} of ${number(sizes[cls])} ${truth.classes[cls]} in ${categories[category].name}` }, count > 0 ? number(count) : "");
      })));
    box.append(el("div", { class: "figure" }, el("table", { class: "matrix" }, el("thead", null, head), el("tbody", null, rows))));
  });
}
