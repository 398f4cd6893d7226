// The items that nobody is sure of, in one list: the least likely first.

if (unsure.size > 0) {
  const FIRST = 60;
  const section = $("unsure");
  section.hidden = false;
  document.querySelector('.top nav a[href="#unsure"]').hidden = false;
  const likely = (item) => items.probability?.[item] ?? items.margin?.[item] ?? items.score[item] ?? 0;
  const all = [...unsure].sort((a, b) => likely(a) - likely(b) || a - b);
  section.append(el("p", { class: "soft" },
    `${things(all.length)} ${plural(all.length, "is", "are")} put with a best guess only. Look at these first; choose one to see it beside its category.`));
  const list = el("ol", { class: "unsure-list" });
  const row = (item) => {
    const rival = items.rival?.[item];
    const chance = items.probability?.[item];
    const source = picture(item);
    return el("li", null,
      el("button", { type: "button", class: "plain", "data-unsure": item, onclick: () => enlarge(item, all) }, source ? image(source, "") : null, name(items.id[item])),
      chance === null || chance === undefined ? null : el("b", null, `${Math.round(100 * chance)} %`),
      el("span", null, who(categoryOf[item])),
      rival === null || rival === undefined ? null : el("span", null, "or ", who(rival)));
  };
  list.append(...all.slice(0, FIRST).map(row));
  section.append(list);
  if (all.length > FIRST) {
    const button = el("button", { type: "button", class: "pill" }, `Show all ${number(all.length)}`);
    button.addEventListener("click", () => { button.remove(); list.append(...all.slice(FIRST).map(row)); });
    section.append(el("div", { class: "more" }, button));
  }
}
