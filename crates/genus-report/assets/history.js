// What people were asked about a collection, and what was done to it.

{
  /** Shows a part of the page with a table in it. */
  const table = (id, titles, rows) => {
    const section = $(id);
    section.hidden = false;
    document.querySelector(`.top nav a[href="#${id}"]`).hidden = false;
    const head = el("tr", null, titles.map((title) => el("th", { scope: "col" }, title)));
    section.append(el("div", { class: "figure" }, el("table", { class: "history" }, el("thead", null, head), el("tbody", null, rows))));
  };
  const when = (text) => el("td", { class: "soft" }, text);
  if (data.asked.length > 0) {
    const open = data.asked.filter(([, , answer]) => answer === null).length;
    $("asked").append(el("p", { class: "soft" }, open === 0 ? "Everything that was asked is answered."
      : `${number(open)} of ${number(data.asked.length)} ${plural(data.asked.length, "question is", "questions are")} open. Those come first.`));
    table("asked", ["When (UTC)", "Question", "Answer"], data.asked.map(([time, question, answer]) => el("tr", null,
      when(time), el("td", null, name(question)), el("td", answer === null ? { class: "soft" } : null, answer === null ? "open" : name(answer)))));
  }
  if (data.history.length > 0) {
    table("history", ["When (UTC)", "Who", "What"], data.history.map(([time, author, what]) => el("tr", null,
      when(time), el("td", null, name(author)), el("td", null, name(what)))));
  }
}
