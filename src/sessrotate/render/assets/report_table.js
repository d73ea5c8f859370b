// ── bars and tables ────────────────────────────────────────────────────────────────────────

/**
 * A table of bars: `rows` [{name, hint, bytes, parts: [[tone, bytes, what]], act}], the first
 * `most` of them at first. `isTall`: the bar is below the name, which may be long.
 */
const bars = (caption, rows, { whole = null, most = 12, columns = [], isTall = false } = {}) => {
  const longest = Math.max(...rows.map(({ bytes }) => bytes), 1);
  const numbers = [["Size", ({ bytes }) => size(bytes)], ...(whole === null ? [] : [["Of all", ({ bytes }) => percent(bytes, whole)]]), ...columns];
  const head = make("tr", {}, make("td"), isTall ? null : make("td"), ...numbers.map(([label], number) => make("th", { scope: "col", class: number ? "number soft" : "number" }, label)));
  const body = make("tbody");
  const row = (each) => {
    const name = isolated(clipped(each.name) || "(no name)");
    const bar = make("div", { class: "bar", "aria-hidden": "true" });
    for (const [tone, bytes, what] of each.parts) {
      if (!(bytes > 0)) continue;
      const part = make("i", { class: tone });
      part.style.width = `${(100 * bytes) / longest}%`;
      bar.append(telling(part, () => [size(bytes), what]));
    }
    return make("tr", {},
      make("th", { scope: "row", title: clipped(each.hint ?? each.name) }, each.act ? button(name, each.act) : name, isTall ? bar : null),
      isTall ? null : make("td", { class: "of" }, bar),
      ...numbers.map(([, value], number) => make("td", { class: number ? "number soft" : "number" }, value(each))));
  };
  const add = (some) => body.append(...some.map(row));
  add(rows.slice(0, most));
  const table = make("table", { class: isTall ? "bars tall" : "bars" }, make("caption", {}, caption), make("thead", {}, head), body);
  return make("div", {}, table, further(rows.slice(most), add));
};

/** A button that gives some more of the `rest` to `add` each time, null where there is no rest. */
const further = (rest, add) => {
  if (!rest.length) return null;
  const words = () => `Show ${count(Math.min(rest.length, MORE))} more`;
  const made = button(words(), () => {
    add(rest.splice(0, MORE));
    if (rest.length) made.textContent = words(); else made.remove();
  }, { class: "more" });
  return made;
};

const MORE = 50; // rows that are shown more by a click
const HEIGHT = 33; // pixels of a row; rows may be higher, and not lower, or there would be gaps
const ABOVE = 6; // rows that are drawn beyond what is seen, so that scrolling shows no gap

/**
 * A table that sorts by a click on a header and draws only the rows that are seen.
 *
 * `columns` [{label, value(row), show(row), first: "down" | "up", class, title}]; `open(row)` is
 * called for a row that is clicked. Returns {node, fill(rows)}; `fill` keeps the order.
 */
const sorted = ({ caption, columns, sort = 0, open = null, kind = "" }) => {
  let rows = [];
  let by = sort;
  let isDown = columns[sort].first === "down";
  const heads = columns.map((column, number) => {
    const made = button(column.label, () => {
      isDown = by === number ? !isDown : column.first === "down";
      by = number;
      order();
    });
    return make("th", { scope: "col", class: column.class, title: column.title }, made);
  });
  const body = make("tbody");
  const table = make("table", { class: `sorted ${kind}` }, make("caption", {}, caption),
    make("colgroup", {}, ...columns.map((column) => make("col", { class: column.class }))),
    make("thead", {}, make("tr", { "aria-rowindex": 1 }, ...heads)), body);
  const node = make("div", { class: "window", tabindex: 0, role: "region", "aria-label": caption }, table);

  const blank = (lines) => {
    const row = make("tr", { class: "blank", "aria-hidden": "true" }, make("td"));
    row.firstChild.style.height = `${lines * HEIGHT}px`;
    return row;
  };
  const line = (row, number) => {
    const made = make("tr", { "aria-rowindex": number + 2 }, ...columns.map((column) =>
      make(column.isHead ? "th" : "td", { class: column.class, scope: column.isHead ? "row" : null }, ...[column.show(row)].flat())));
    if (open) {
      made.classList.add("open");
      made.addEventListener("click", () => { if (!String(getSelection())) open(row); });
    }
    return made;
  };
  let drawn = "";
  const draw = (isNew = false) => {
    const first = Math.max(0, Math.floor(node.scrollTop / HEIGHT) - ABOVE);
    const last = Math.min(rows.length, first + Math.ceil((node.clientHeight || 600) / HEIGHT) + 2 * ABOVE);
    const now = `${first} ${last}`;
    if (!isNew && now === drawn) return;
    drawn = now;
    const held = document.activeElement?.closest?.("tr")?.getAttribute("aria-rowindex");
    body.replaceChildren(...(first ? [blank(first)] : []), ...rows.slice(first, last).map((row, number) => line(row, first + number)),
      ...(last < rows.length ? [blank(rows.length - last)] : []));
    if (held > 1 && document.activeElement === document.body) body.querySelector(`[aria-rowindex="${held}"] button`)?.focus({ preventScroll: true });
  };
  const order = () => {
    const { value } = columns[by];
    const sign = isDown ? -1 : 1;
    const keys = new Map(rows.map((row) => [row, value(row)]));
    const isMissing = (key) => key === null || key === undefined || key === "";
    const words = new Intl.Collator("en", { numeric: true });
    rows.sort((one, other) => {
      const [a, b] = [keys.get(one), keys.get(other)];
      if (isMissing(a) || isMissing(b)) return isMissing(a) - isMissing(b); // last either way
      return sign * (typeof a === "number" && typeof b === "number" ? a - b : words.compare(String(a), String(b)));
    });
    heads.forEach((head, number) => {
      if (number === by) head.setAttribute("aria-sort", isDown ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    node.scrollTop = 0;
    draw(true);
  };
  let isDue = false;
  node.addEventListener("scroll", () => {
    if (isDue) return;
    isDue = true;
    requestAnimationFrame(() => { isDue = false; draw(); });
  }, { passive: true });
  new ResizeObserver(() => draw(true)).observe(node);
  return {
    node,
    fill(given) {
      rows = [...given];
      table.setAttribute("aria-rowcount", rows.length + 1);
      order();
    },
  };
};
