// What was done to a collection, the last first.

if (data.history.length > 0) {
  const section = $("history");
  section.hidden = false;
  document.querySelector('.top nav a[href="#history"]').hidden = false;
  const head = el("tr", null, ["When (UTC)", "Who", "What"].map((title) => el("th", { scope: "col" }, title)));
  const rows = data.history.map(([when, who, what]) => el("tr", null, el("td", { class: "soft" }, when), el("td", null, name(who)), el("td", null, name(what))));
  section.append(el("div", { class: "figure" }, el("table", { class: "history" }, el("thead", null, head), el("tbody", null, rows))));
}
