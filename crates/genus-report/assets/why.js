// Why it came out so: the ties or the tree, the scores, what lies near what.

{
  const section = $("why");
  const { why } = data;
  const method = data.made.method.split(":")[0];
  const words = {
    shc: "The two most alike were put together, then the next two, and so on, until two of your classes would have become one. What was together by then is a category; small remains joined the nearest.",
    calibrated: why.communities
      ? "Every item was joined to its nearest neighbours, your examples among them, and two that have many neighbours in common were joined more firmly. The pile was divided many times, with few and many neighbours, coarsely and finely. How clearly a division parts the pile, and how well it keeps your examples with their like, says how much it is worth. The best ones voted: items are in one category when more than half of the votes, by weight, put them together. An item that is not likely to belong where it was put is unsure."
      : "The most alike were put together step by step, and the tree that this gives was divided where two parts are more likely of two classes than of one. How far items of one class lie apart was learnt before. An item that is not likely to belong where it was put is unsure.",
    ukc: "Every class that you named began a cluster. Clusters that held two classes, or were far larger than yours, were split, and everything went to its nearest cluster, until nothing moved.",
    gcd: "The number of categories was estimated on your examples. Then everything went to the nearest of so many centres, and centres to the middle of what is theirs, until nothing moved.",
    rankstat: "Items whose two nearest known classes are the same, in the same order, form a category.",
    proto: "Everything went to the nearest of your classes; this method knows no new groups.",
  };
  if (words[method]) section.append(el("p", { class: "soft" }, words[method]));
  const block = (title, text, ...content) => {
    const box = el("div", { class: "block" }, el("h3", null, title), el("p", { class: "soft small" }, text), content);
    section.append(box);
    return box;
  };

  if (why.tree && why.tree.merges.length > 0) {
    const kinds = new Set(why.tree.branches).size;
    const fewer = kinds < categories.length ? ` The ${number(kinds)} largest categories are drawn.` : "";
    const box = block("How the categories hang together",
      `To the right everything is by itself, and to the left all is one. Branches of a category have its colour; grey is what was not put together any more.${why.cut === null ? "" : " At the dashed line two of your classes would have met, or the limit was reached."}${fewer}`);
    whenNear(box, () => box.append(el("div", { class: "figure" }, tree(why.tree, why.cut, Math.max(box.clientWidth - 250, 420)))));
  }

  if (why.communities) explainTies(why.communities);

  const scores = block("How well things fit",
    `A score is how much an item looks like the middle of its category, from −1 to 1. ${why.probabilities
      ? "The probability also looks at the next best category and at how much items of one class differ." : "The lead is by how much that exceeds the next best category."}`);
  const charts = el("div", { class: "pair" });
  scores.append(charts);
  const chart = (title, histogram, limit, text) => {
    if (histogram) charts.append(el("div", null, el("h3", { class: "small" }, title), bars(histogram, limit, text)));
  };
  chart("Score", why.scores, null, "");
  if (why.probabilities) chart("Probability of belonging", why.probabilities, why.doubt, "unsure to the left");
  else chart("Lead over the next category", why.margins, 0, "the other is nearer to the left");
  charts.after(el("div", { class: "key small" },
    el("span", null, el("i", { class: "swatch", style: { background: "var(--accent)" } }), "in classes you named"),
    el("span", null, el("i", { class: "swatch", style: { background: "var(--other)" } }), "in new groups")));

  const fresh = categories.map((_, at) => at).filter((at) => !categories[at].known && why.nearest[at]?.length > 0);
  if (fresh.length > 0) {
    const body = el("tbody");
    const row = (at) => {
      const [first, ...others] = why.nearest[at];
      const length = `${Math.max(0.1, 5 * Math.max(first[1], 0))}rem`;
      return el("tr", null, el("td", null, who(at)),
        el("td", null, "closest to ", who(first[0]), ", ", decimals(first[1])),
        el("td", null, el("i", { class: "amount", style: { width: length } })),
        el("td", { class: "soft small" }, others.slice(0, 2).map(([other, s], n) => [n > 0 ? ", " : "then ", name(categories[other].name), ` ${decimals(s)}`]).flat()));
    };
    const place = (list) => body.append(...list.map(row));
    place(fresh.slice(0, 20));
    const box = block("What new groups are close to", "The cosine between the middles of two categories: 1 is the same.", el("div", { class: "figure" }, el("table", null, body)));
    if (fresh.length > 20) {
      const button = el("button", { type: "button", class: "pill" }, `Show ${number(fresh.length - 20)} more`);
      button.addEventListener("click", () => { place(fresh.slice(20)); button.remove(); });
      box.append(el("div", { class: "more" }, button));
    }
  }

  const torn = why.confusable;
  const box = block("What is easily confused",
    torn.length > 0 ? "An item is torn when its lead over the next category is less than a quarter of the usual lead. Pairs with the most torn items come first; they are worth a look."
      : "No item is torn between two categories.");
  whenNear(box, () => {
    for (const pair of torn.slice(0, 8)) {
      const pictures = [covers(pair.first, 2), covers(pair.second, 2)];
      box.append(el("div", { class: "torn" },
        el("div", { class: "covers" }, pictures[0], pictures.every((p) => p.length > 0) ? el("i") : null, pictures[1]),
        el("div", null, who(pair.first), "  and  ", who(pair.second),
          el("div", { class: "soft small" }, `${number(pair.torn)} of ${number(pair.items)} ${data.things[1]} could nearly as well be in the other`))));
    }
  });

  /** What ties items to their category, and what links two. */
  function explainTies({ neighbours, links }) {
    if (links === null || !items.tied) {
      block("What ties items together", `The nearest neighbours of so many ${data.things[1]} were not looked up again, so this page does not name them.`);
      return;
    }
    const own = (item) => items.tied[item][0];
    const tied = Array.from({ length: shown }, (_, item) => item).filter((item) => items.tied[item]);
    const average = tied.reduce((sum, item) => sum + own(item), 0) / Math.max(tied.length, 1);
    const firm = tied.filter((item) => own(item) === neighbours).length;
    // Frames of a scene have the same ties.
    const loose = tied.filter((item) => own(item) < neighbours && framesOf(item)[0] === item).sort((a, b) => own(a) - own(b)).slice(0, 6);
    const summary = `On average, ${average.toFixed(1)} of an item's ${number(neighbours)} nearest neighbours are in the same category; ${things(firm)} ${plural(firm, "has", "have")} all of them there.`;
    const ties = block("What ties items together",
      `${summary} ${loose.length > 0 ? "Here are those with the fewest, and beside each what is nearest to it." : ""}${scenes.size > 0 ? " Frames of a scene count as one." : ""}`);
    whenNear(ties, () => {
      for (const item of loose) {
        const source = picture(item);
        const open = { type: "button", onclick: () => enlarge(item, loose) };
        const nearest = items.tied[item][1];
        const other = nearest === undefined ? categoryOf[item] : nearest < 0 ? examples[-1 - nearest].class : categoryOf[nearest];
        ties.append(el("div", { class: pictured ? "torn" : "torn bare" },
          el("div", { class: "covers" },
            source ? el("button", { ...open, class: "near", title: items.id[item], "aria-label": items.id[item] }, image(source, "")) : el("button", { ...open, class: "plain" }, name(items.id[item])),
            el("i"), nearestOf(item)),
          el("div", null, who(categoryOf[item]),
            el("div", { class: "soft small" }, tieWords(item), other === categoryOf[item] ? null : [", and the nearest is in ", name(categories[other].name)]))));
      }
    });

    const told = links.filter(([first, second]) => categories[first] && categories[second]);
    const between = block("What links two groups",
      told.length > 0
        ? "A tie leads from an item or example to each of its nearest neighbours. Here are pairs where at least one in twenty of the ties of either leads to the other, the most closely tied first."
        : "No two: of the ties of every category, less than one in twenty leads to any other.",
      told.length > 0 ? el("p", { class: "soft small" }, "They are two because no more than half of the divisions, by weight, put them together. For them to be one, more than half would have to: items that lie between them can do that, and a few examples of one name in both make them one class. Two classes that you named always stay two.") : null);
    whenNear(between, () => {
      const place = (list) => list.map(([first, second, there, back]) => {
        const pictures = [covers(first, 2), covers(second, 2)];
        const both = categories[first].known && categories[second].known;
        return el("div", { class: "torn" },
          el("div", { class: "covers" }, pictures[0], pictures.every((p) => p.length > 0) ? el("i") : null, pictures[1]),
          el("div", null, who(first), "  and  ", who(second),
            el("div", { class: "soft small" }, whole(there), " of the ties of ", name(categories[first].name), " lead to ", name(categories[second].name), `, ${whole(back)} the other way`,
              both ? "; you named both, so they stay two" : "")));
      });
      between.append(...place(told.slice(0, 8)));
      if (told.length <= 8) return;
      const button = el("button", { type: "button", class: "pill" }, `Show ${number(told.length - 8)} more`);
      const more = el("div", { class: "more" }, button);
      button.addEventListener("click", () => { more.remove(); between.append(...place(told.slice(8))); });
      between.append(more);
    });
  }

  function whole(share) {
    return share > 0 && share < 0.01 ? "less than 1 %" : `${Math.round(100 * share)} %`;
  }

  /** Bars of two kinds, stacked, and a limit. */
  function bars(histogram, limit, text) {
    const [width, height, foot] = [460, 150, 24];
    const { low, high } = histogram;
    const most = Math.max(...histogram.known.map((count, at) => count + histogram.new[at]), 1);
    const step = width / histogram.known.length;
    const drawing = svg("svg", { viewBox: `0 0 ${width} ${height + foot}`, width: "100%", role: "img", "aria-label": `Distribution from ${decimals(low)} to ${decimals(high)}` });
    histogram.known.forEach((known, at) => {
      const fresh = histogram.new[at];
      const tall = (count) => (count / most) * (height - 16);
      const bar = (kind, count, below) => count > 0 && drawing.append(svg("rect", { class: kind, x: at * step + 0.75, width: step - 1.5, y: height - tall(count + below), height: tall(count), rx: 1 }));
      bar("known", known, 0);
      bar("new", fresh, known);
    });
    drawing.append(svg("line", { class: "axis", x1: 0, x2: width, y1: height, y2: height }));
    for (let tick = 0; tick <= 4; tick++) {
      const anchor = tick === 0 ? "start" : tick === 4 ? "end" : "middle";
      drawing.append(svg("text", { x: (width * tick) / 4, y: height + 17, "text-anchor": anchor }, decimals(low + ((high - low) * tick) / 4)));
    }
    if (limit !== null && limit > low && limit < high) {
      const x = ((limit - low) / (high - low)) * width;
      const left = x > width / 2;
      drawing.append(svg("line", { class: "limit", x1: x, x2: x, y1: 0, y2: height }),
        svg("text", { class: "limit-text", x: x + (left ? -6 : 6), y: 11, "text-anchor": left ? "end" : "start" }, `${decimals(limit)}: ${text}`));
    }
    return drawing;
  }

  /** The tree: leaves below each other at the right, similarity to the left. */
  function tree({ ward, branches, merges, within }, cut, width) {
    const leaves = branches.length;
    const node = (at) => (at < leaves ? null : merges[at - leaves]);
    // Leaves in the order in which the tree meets them; every category gets room for its name.
    const order = [];
    const stack = [leaves + merges.length - 1];
    while (stack.length > 0) {
      const at = stack.pop();
      const merge = node(at);
      if (merge) stack.push(merge[1], merge[0]);
      else order.push(at);
    }
    const [row, least, names, foot] = [7, 22, 240, 28];
    const sizes = new Map();
    branches.forEach((category) => sizes.set(category, (sizes.get(category) ?? 0) + 1));
    const y = new Array(leaves + merges.length);
    const middles = [];
    let [top, next, previous] = [4, 0, null];
    for (const leaf of order) {
      const category = branches[leaf];
      if (category !== previous) {
        const own = sizes.get(category) * row;
        const room = Math.max(own, least);
        middles.push([category, top + room / 2]);
        next = top + (room - own) / 2 + row / 2;
        top += room;
        previous = category;
      }
      y[leaf] = next;
      next += row;
    }
    // The cost of a merge spans magnitudes, and the cheap ones are to the right.
    const level = (merge) => (ward ? -Math.log(Math.max(merge[2], 1e-4)) : merge[2]);
    const levels = merges.map(level).concat(cut ?? []);
    const [low, high] = [Math.min(...levels), Math.max(...levels)];
    const span = Math.max(high - low, 0.05);
    const x = (at) => 14 + ((at - low) / (span * 1.12)) * (width - 28);
    const drawing = svg("svg", { viewBox: `0 0 ${width + names} ${top + foot}`, width: width + names, height: top + foot, role: "img", "aria-label": "Tree of the categories" });
    const place = new Array(leaves + merges.length).fill(width);
    merges.forEach((merge, at) => {
      const [left, right] = merge;
      const own = leaves + at;
      // What was moved afterwards may lie nearer to others than to its own: a merge is never drawn before its parts.
      const here = Math.min(x(level(merge)), place[left], place[right]);
      place[own] = here;
      y[own] = (y[left] + y[right]) / 2;
      const inside = at < within;
      const path = svg("path", { class: inside ? "branch" : "trunk", d: `M${place[left]} ${y[left]}H${here}V${y[right]}H${place[right]}` });
      if (inside) path.style.setProperty("--c", categories[categoryIn(left)].colour);
      drawing.append(path);
    });
    function categoryIn(at) {
      let merge = node(at);
      while (merge) { at = merge[0]; merge = node(at); }
      return branches[at];
    }
    if (cut !== null) {
      drawing.append(svg("line", { class: "limit", x1: x(cut), x2: x(cut), y1: 0, y2: top }),
        svg("text", { class: "limit-text", x: x(cut), y: top + 18, "text-anchor": "middle" }, `cut at ${decimals(cut)}`));
    }
    const ticks = [low, low + span / 2, low + span].filter((tick) => !ward && (cut === null || Math.abs(x(tick) - x(cut)) > 70));
    if (ward) {
      drawing.append(svg("text", { x: 0, y: top + 18 }, "← further apart"), svg("text", { x: width, y: top + 18, "text-anchor": "end" }, "closer together →"));
    }
    for (const tick of ticks) drawing.append(svg("text", { x: x(tick), y: top + 18, "text-anchor": "middle" }, decimals(tick)));
    for (const [category, middle] of middles) {
      const known = categories[category].known;
      const label = svg("g", { "--c": categories[category].colour },
        svg("g", { class: "mark", transform: `translate(${width + 10} ${middle - 5}) scale(0.62)` }, known ? svg("circle", { cx: 8, cy: 8, r: 7 }) : svg("path", { d: "M8 0 16 8 8 16 0 8Z" })),
        svg("text", { class: "name", x: width + 28, y: middle + 4 }, shortened(categories[category].name, 26)));
      label.append(svg("title", null, `${categories[category].name}: ${things(categories[category].items)}`));
      drawing.append(label);
    }
    return drawing;
  }

  function shortened(text, most) {
    return text.length > most ? `${text.slice(0, most - 1)}…` : text;
  }
}
