"use strict";
// A click on a column's title sorts its table by it: numbers from the largest, text from the first; a second click turns it.
for (const table of document.querySelectorAll("table")) {
  const heads = [...table.tHead.rows[0].cells];
  const body = table.tBodies[0];
  heads.forEach((head, column) => {
    head.firstElementChild.addEventListener("click", () => {
      const isNumber = head.classList.contains("n");
      const first = isNumber ? "descending" : "ascending";
      const second = isNumber ? "ascending" : "descending";
      const order = head.getAttribute("aria-sort") === first ? second : first;
      const turn = order === "ascending" ? 1 : -1;
      const value = (row) => {
        const cell = row.cells[column];
        return cell.dataset.v === undefined ? undefined : Number(cell.dataset.v);
      };
      const compare = (a, b) => {
        const [x, y] = [value(a), value(b)];
        if (x !== undefined && y !== undefined) return turn * (x - y);
        // What has no number comes last, whichever way.
        if (x !== undefined) return -1;
        if (y !== undefined) return 1;
        return turn * a.cells[column].textContent.localeCompare(b.cells[column].textContent, "en", { numeric: true });
      };
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", order);
      body.append(...[...body.rows].sort(compare));
    });
  });
}
