"use strict";
// The page is complete without this script, which adds search, keys, switches and the prompts in
// the sidebar. It only reads text and sets classes: nothing of a session is ever parsed as HTML.

const root = document.documentElement;
root.classList.add("scripted", "no-notes", "no-other");

const remembered = (() => {
  try { return localStorage; } catch { return {}; } // where a browser gives files no storage
})();
if (["light", "dark"].includes(remembered.sessrotateTheme)) root.dataset.theme = remembered.sessrotateTheme;

const SLICE = 24; // milliseconds of searching between two chances to draw and to type
const PAUSE = 150; // milliseconds without typing before a search starts
const MOST = 2000; // highlighted hits in one record
const LABEL = 100; // characters of a prompt in the sidebar

document.addEventListener("DOMContentLoaded", () => {
  const id = (name) => document.getElementById(name);
  const main = document.querySelector("main");
  const all = [...main.querySelectorAll("article")];
  const sections = [...main.children];
  const numbers = new Map(all.map((record, number) => [record, number]));
  const prompts = [];

  // ── the sidebar ──────────────────────────────────────────────────────────────────────────

  const segments = new Map(); // id of a segment → its list of prompts
  for (const entry of document.querySelectorAll("#sidebar > ol > li")) {
    const inner = entry.querySelector("ol"); // a segment with a page of its own has none
    if (inner) segments.set(entry.querySelector("a").hash.slice(1), inner);
  }
  let list = null;
  for (const child of main.querySelectorAll("h2, article")) {
    if (child.tagName === "H2") list = segments.get(child.id);
    if (!child.classList.contains("prompt")) continue;
    const link = document.createElement("a");
    link.href = "#" + child.id;
    const said = child.querySelector(".text");
    link.textContent = (said ? said.textContent.slice(0, LABEL).trim() : "") || "(no text)";
    link.title = link.textContent;
    const item = document.createElement("li");
    item.append(link);
    list?.append(item);
    prompts.push({ number: numbers.get(child), link });
  }
  for (const inner of segments.values()) {
    const note = document.createElement("i");
    note.textContent = inner.children.length.toLocaleString("en");
    note.title = "prompts";
    inner.parentElement.querySelector("a").after(note);
  }
  id("menu").addEventListener("click", () => root.classList.toggle("sidebar"));
  id("sidebar").addEventListener("click", (event) => {
    if (event.target.closest("a")) root.classList.remove("sidebar");
  });

  // ── where the reader is ──────────────────────────────────────────────────────────────────

  let here = null; // the record that keys start from
  let marked = null; // its prompt's link in the sidebar

  const below = () => id("bar").getBoundingClientRect().bottom + 24;
  const isShown = (record) => record.checkVisibility();
  const inView = (record) => {
    const box = record.getBoundingClientRect();
    return box.bottom > below() && box.top < innerHeight;
  };
  const atTop = () => { // sections are where they seem; what is in one is only once it is drawn
    let low = 0;
    let high = sections.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (sections[middle].getBoundingClientRect().bottom <= below()) low = middle + 1; else high = middle;
    }
    let number = numbers.get(sections[low].querySelector("article")) ?? 0;
    while (number < all.length - 1) {
      if (isShown(all[number]) && all[number].getBoundingClientRect().bottom > below()) break;
      number++;
    }
    return number;
  };
  const promptOf = (number) => {
    let low = 0;
    let high = prompts.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (prompts[middle].number <= number) low = middle + 1; else high = middle;
    }
    return prompts[low - 1];
  };
  const follow = () => {
    const link = promptOf(here && inView(here) ? numbers.get(here) : atTop())?.link ?? null;
    if (link === marked) return;
    marked?.classList.remove("here");
    marked = link;
    if (!link) return;
    link.classList.add("here");
    const folder = link.closest("details");
    for (const other of document.querySelectorAll("#sidebar details[open]")) {
      if (other !== folder && other.dataset.followed) { other.open = false; delete other.dataset.followed; }
    }
    if (!folder.open) { folder.open = true; folder.dataset.followed = "1"; }
    const side = id("sidebar");
    const box = link.getBoundingClientRect();
    const frame = side.getBoundingClientRect();
    if (box.top < frame.top || box.bottom > frame.bottom) side.scrollTop += box.top - frame.top - frame.height / 3;
  };
  let isDue = false;
  addEventListener("scroll", () => {
    if (isDue) return;
    isDue = true;
    requestAnimationFrame(() => { isDue = false; follow(); });
  }, { passive: true });

  const stand = (record) => {
    here?.classList.remove("here");
    here = record;
    here?.classList.add("here");
    follow();
  };
  const start = () => (here && inView(here) ? numbers.get(here) : atTop() - 0.5);
  const step = (by, wanted) => {
    const from = start();
    let number = by > 0 ? Math.floor(from) + 1 : Math.ceil(from) - 1;
    while (all[number] && !(wanted(all[number]) && isShown(all[number]))) number += by;
    if (!all[number]) return;
    stand(all[number]);
    here.scrollIntoView({ block: here.offsetHeight > innerHeight / 2 ? "start" : "nearest" });
  };

  // ── search ───────────────────────────────────────────────────────────────────────────────

  const query = id("query");
  let found = []; // records with hits: {record, count, before: hits in the records before it}
  let total = 0;
  let at = -1; // the current hit, counted over the whole page
  let pattern = null;
  let turn = 0; // a search that is not the latest one stops

  const pause = () => new Promise((resolve) => { setTimeout(resolve); });
  const say = (isDone) => {
    const figures = total.toLocaleString("en") + (total === 1 ? " hit" : " hits");
    const place = at < 0 ? figures : `${(at + 1).toLocaleString("en")} of ${figures}`;
    id("hits").value = !pattern ? "" : isDone ? place : figures + " …";
    root.dataset.search = !pattern ? "" : isDone ? "done" : "running";
  };
  const search = async () => {
    const mine = ++turn;
    for (const { record } of found) record.classList.remove("hit");
    found = [];
    total = 0;
    at = -1;
    pattern = query.value ? new RegExp(query.value.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"), "gi") : null;
    clear();
    say(false);
    if (!pattern) { root.classList.remove("only"); id("only").checked = false; return; }
    let until = performance.now() + SLICE;
    for (const record of all) {
      const count = record.textContent.match(pattern)?.length ?? 0;
      if (count) {
        found.push({ record, count, before: total });
        total += count;
        record.classList.add("hit");
      }
      if (performance.now() < until) continue;
      say(false);
      await pause();
      if (mine !== turn) return;
      until = performance.now() + SLICE;
    }
    say(true);
    const first = atTop();
    const next = found.find(({ record }) => numbers.get(record) >= first) ?? found[0];
    if (next) go(next.before);
  };

  const holder = (number) => { // binary search for the record that holds the hit
    let low = 0;
    let high = found.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (found[middle].before <= number) low = middle; else high = middle - 1;
    }
    return found[low];
  };
  const rangesIn = (record, wanted) => {
    const nodes = [];
    let text = "";
    const walker = document.createTreeWalker(record, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      nodes.push({ node: walker.currentNode, start: text.length });
      text += walker.currentNode.data;
    }
    const ranges = [];
    let number = 0;
    let index = 0;
    for (const match of text.matchAll(pattern)) {
      if (number > Math.max(MOST, wanted)) break;
      if (number < MOST || number === wanted) {
        const end = match.index + match[0].length;
        while (index + 1 < nodes.length && nodes[index + 1].start <= match.index) index++;
        let last = index;
        while (last + 1 < nodes.length && nodes[last + 1].start < end) last++;
        const range = new Range();
        range.setStart(nodes[index].node, match.index - nodes[index].start);
        range.setEnd(nodes[last].node, end - nodes[last].start);
        ranges.push({ range, isCurrent: number === wanted });
      }
      number++;
    }
    return ranges;
  };
  const clear = () => { if (globalThis.CSS?.highlights) CSS.highlights.clear(); };
  const paint = (name, ranges) => {
    if (globalThis.CSS?.highlights) CSS.highlights.set(name, new Highlight(...ranges));
  };
  const unfold = (element) => {
    for (let fold = element.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  };
  const reveal = (record) => { // show what hides the record: an agent's fold, or its kind's switch
    unfold(record.parentElement);
    for (const box of document.querySelectorAll("#show input")) {
      if (!box.checked && !isShown(record)) { box.checked = true; toggle(box); }
    }
  };
  const go = (number) => {
    if (!total) return;
    at = (number + total) % total;
    const { record, before } = holder(at);
    reveal(record);
    stand(record);
    const ranges = rangesIn(record, at - before);
    const range = ranges.find(({ isCurrent }) => isCurrent).range;
    for (let fold = range.startContainer.parentElement.closest("details"); fold; fold = fold.parentElement.closest("details")) {
      if (!range.startContainer.parentElement.closest("summary") || fold.parentElement.closest("details")) fold.open = true;
    }
    paint("hits", ranges.map((each) => each.range));
    paint("hit", [range]);
    say(true);
    record.scrollIntoView({ block: "nearest" });
    const wanted = at;
    const settle = (left) => { // boxes get their real heights as they come into view
      if (wanted !== at) return;
      const frame = range.startContainer.parentElement.closest("pre");
      if (frame) {
        const inner = range.getBoundingClientRect().top - frame.getBoundingClientRect().top;
        if (inner < 0 || inner > frame.clientHeight - 20) frame.scrollTop += inner - frame.clientHeight / 2;
      }
      const box = range.getBoundingClientRect();
      if (box.top < below() || box.bottom > innerHeight - 24) scrollBy(0, box.top - innerHeight / 3);
      if (left) requestAnimationFrame(() => settle(left - 1));
    };
    settle(3);
  };
  const next = (by) => { if (at >= 0) go(at + by); };

  let timer = 0;
  query.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(search, PAUSE); });
  query.addEventListener("keydown", (event) => {
    if (event.key === "Enter") { event.preventDefault(); next(event.shiftKey ? -1 : 1); }
    if (event.key === "Escape") { query.value = ""; search(); query.blur(); }
  });
  id("next").addEventListener("click", () => next(1));
  id("previous").addEventListener("click", () => next(-1));
  id("only").addEventListener("change", (event) => {
    root.classList.toggle("only", event.target.checked && pattern !== null);
    here?.scrollIntoView({ block: "nearest" });
  });

  // ── switches and keys ────────────────────────────────────────────────────────────────────

  const toggle = (box) => root.classList.toggle("no-" + box.value, !box.checked);
  for (const box of document.querySelectorAll("#show input")) {
    box.checked = !root.classList.contains("no-" + box.value); // not what a reload remembers
    box.addEventListener("change", () => toggle(box));
  }
  const foldAll = (isOpen) => { for (const fold of main.querySelectorAll("details")) fold.open = isOpen; };
  id("unfold").addEventListener("click", () => foldAll(true));
  id("fold").addEventListener("click", () => foldAll(false));
  const switchTheme = () => {
    const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = isDark ? "light" : "dark";
    try { remembered.sessrotateTheme = root.dataset.theme; } catch { /* it holds for this visit */ }
  };
  id("theme").addEventListener("click", switchTheme);
  addEventListener("click", (event) => { if (!event.target.closest?.("#show")) id("show").open = false; });

  const isPrompt = (record) => record.classList.contains("prompt");
  const keys = {
    "/": () => { query.focus(); query.select(); },
    j: () => step(1, () => true),
    k: () => step(-1, () => true),
    J: () => step(1, isPrompt),
    K: () => step(-1, isPrompt),
    n: () => next(1),
    N: () => next(-1),
    t: switchTheme,
    o: () => {
      const folds = here ? [...here.querySelectorAll("details")] : [];
      const isOpen = folds.every((fold) => fold.open);
      for (const fold of folds) fold.open = !isOpen;
    },
    Escape: () => { root.classList.remove("sidebar"); id("show").open = false; },
  };
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input, textarea")) return;
    if (!Object.hasOwn(keys, event.key)) return;
    event.preventDefault();
    keys[event.key]();
  });

  const arrive = () => {
    const target = document.getElementById(location.hash.slice(1));
    if (!target || !numbers.has(target)) return;
    reveal(target);
    stand(target);
    target.scrollIntoView();
  };
  addEventListener("hashchange", arrive);
  arrive();
  follow();
});
