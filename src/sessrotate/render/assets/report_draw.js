"use strict";
// What the page is drawn with. Rule: a word of a session becomes a text node or the value of a
// harmless attribute; the names of elements and attributes are constants of these scripts.

const root = document.documentElement;
root.classList.add("scripted");

const remembered = (() => {
  try { return localStorage; } catch { return {}; } // where a browser gives files no storage
})();
if (["light", "dark"].includes(remembered.sessrotateTheme)) root.dataset.theme = remembered.sessrotateTheme;

const SVG = "http://www.w3.org/2000/svg";
const LONGEST = 400; // characters of a text that are put on the page

const filled = (node, attributes, children) => {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
};
const make = (name, attributes = {}, ...children) => filled(document.createElement(name), attributes, children);
const shape = (name, attributes = {}, ...children) => filled(document.createElementNS(SVG, name), attributes, children);
const button = (text, act, attributes = {}) => {
  const made = make("button", { type: "button", ...attributes }, text);
  made.addEventListener("click", act);
  return made;
};

// ── words ──────────────────────────────────────────────────────────────────────────────────

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
const LARGEST = 1e17; // a number that no size and no count reaches

const size = (bytes) => {
  if (!(bytes < LARGEST)) return "very much";
  let value = bytes;
  let unit = 0;
  while (value >= (unit ? 999.95 : 1024) && unit + 1 < UNITS.length) { value /= 1024; unit++; }
  if (value % 1 === 0.25) value -= 0.05; // a half goes to the even tenth, as in the terminal
  return unit ? `${value.toFixed(1)} ${UNITS[unit]}` : `${bytes} B`;
};
const count = (number) => {
  if (number === null || number === undefined) return "–";
  return Math.abs(number) < LARGEST ? number.toLocaleString("en") : "very many";
};
const many = (number, one, more = one + "s") => `${count(number)} ${number === 1 ? one : more}`;
const percent = (part, whole) => {
  if (!whole) return "–";
  const share = (100 * part) / whole;
  return part > 0 && share < 0.1 ? "< 0.1 %" : `${share.toFixed(share < 9.95 ? 1 : 0)} %`;
};
const clipped = (text, limit = LONGEST) => {
  const line = String(text ?? "").slice(0, 4 * limit).replace(/[\s\p{Cc}]+/gu, " ").trim();
  return line.length > limit ? line.slice(0, limit - 1) + "…" : line;
};
const moment = (text) => (text ? clipped(String(text).slice(0, 16)).replace("T", " ") : "–");
const titled = (session) => clipped(session.title) || clipped(session.session, 36);
const tail = (folder) => { // the end of a path says most
  const parts = clipped(folder, 1000).split("/").filter(Boolean);
  return parts.length > 2 ? parts.slice(-2).join("/") : "/" + parts.join("/");
};

// ── small parts ────────────────────────────────────────────────────────────────────────────

const isolated = (text, attributes = {}) => make("bdi", attributes, text);

const copied = async (text, code, made) => {
  try {
    await navigator.clipboard.writeText(text);
  } catch { // no clipboard for this page: what is selected can be copied by hand
    getSelection().selectAllChildren(code);
    if (!document.execCommand("copy")) { made.textContent = "Selected"; return; }
  }
  made.textContent = "Copied";
  setTimeout(() => { made.textContent = "Copy"; }, 1500);
};
const command = (text) => {
  const code = make("code", { tabindex: 0 }, String(text));
  const made = button("Copy", () => copied(String(text), code, made), { "aria-label": `Copy: ${clipped(text, 200)}` });
  return make("div", { class: "command" }, code, made);
};

const card = (title, { name = null, note = null, wide = false } = {}, ...children) => {
  const head = make("header", {}, make("h2", {}, title), note === null ? null : make("p", {}, note));
  return make("section", { class: wide ? "card wide" : "card", "data-card": name }, head, ...children);
};

const figures = (rows) => make("dl", { class: "figures" }, ...rows.filter(Boolean).map(([name, value, note, tone]) =>
  make("div", { class: tone ?? null }, make("dt", {}, name), make("dd", {}, value, note ? make("small", {}, note) : null))));

const legend = (rows) => make("ul", { class: "legend" }, ...rows.map(([tone, text]) =>
  make("li", {}, make("i", { class: tone }), text)));

const hover = (() => { // one box that tells what is under the pointer
  const box = make("div", { id: "hover", role: "status" });
  box.hidden = true;
  return {
    box,
    show(x, y, lines) {
      box.replaceChildren(...lines.filter(Boolean).map((line, number) => make(number ? "span" : "b", {}, line)));
      box.hidden = false;
      const { width, height } = box.getBoundingClientRect();
      box.style.left = `${Math.max(8, Math.min(x + 14, innerWidth - width - 8))}px`;
      box.style.top = `${y + height + 24 > innerHeight ? y - height - 12 : y + 14}px`;
    },
    hide() { box.hidden = true; },
  };
})();
const telling = (node, lines) => {
  node.addEventListener("pointermove", (event) => hover.show(event.clientX, event.clientY, lines()));
  node.addEventListener("pointerleave", hover.hide);
  return node;
};
