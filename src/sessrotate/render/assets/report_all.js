// ── all sessions ───────────────────────────────────────────────────────────────────────────

const show = (session) => {
  const box = make("dialog", { "aria-label": titled(session) },
    make("form", { method: "dialog" }, make("button", { "aria-label": "Close" }, "×")),
    make("h2", {}, isolated(titled(session))), origin(session), make("p", { class: "path" }, isolated(clipped(session.path, 1000))), facts(session),
    ...reading(session), ...advice(session));
  box.addEventListener("click", (event) => { if (event.target === box) box.close(); });
  box.addEventListener("close", () => box.remove());
  document.body.append(box);
  box.showModal();
};

let pages = {}; // of sessions that were exported beside this page, by their ids
const pageOf = ({ session }) => (Object.hasOwn(pages, session) ? pages[session] : null);

const reading = (session) => [
  session.client_deletes ? make("p", {}, `Its client deletes it after ${moment(session.client_deletes)} UTC, unless it is used until then. `, "To keep it: ", make("code", {}, "sessrotate setup"), ".") : null,
  pageOf(session) ? make("p", {}, make("a", { href: pageOf(session) }, "Read it in the page that was exported")) : null,
  command(session.read_command),
].filter(Boolean);

const growthOfAll = (report, made) => {
  let undated = 0;
  const days = [];
  for (const { day, bytes } of report.growth) {
    const time = when(day, made);
    if (time === null) undated += bytes; else days.push([time, bytes]);
  }
  if (!days.length) return null;
  days.sort(([a], [b]) => a - b);
  let done = undated;
  const points = [[days[0][0], done]];
  for (const [time, bytes] of days) {
    if (time > points.at(-1)[0]) points.push([time, done]); // flat where nothing was written
    done += bytes;
    points.push([time + DAY, done]);
  }
  const { unit, bins } = binned(days, points[0][0], points.at(-1)[0]);
  return card("Growth", { name: "growth", wide: true, note: `Bytes by the day they were written.${undated ? ` The dates of ${size(undated)} are unknown: these bytes are at the start.` : ""}` },
    timeline({ points, bins, unit, label: `All sessions grew to ${size(done)} from ${dated(points[0][0])} to ${dated(points.at(-1)[0])}.` }));
};

const ALL_AT_ONCE = "sessrotate tidy";

const worthRotating = (report) => {
  const rows = report.worth_rotating;
  if (!rows.length) return card("Worth rotating", { name: "worth", wide: true }, make("p", { class: "empty" }, "No session: a rotation would free nothing to speak of."));
  const list = make("ol", { class: "worth" });
  const longest = Math.max(...rows.map((row) => row.would_free_bytes), 1);
  const item = (row) => {
    const bar = make("div", { class: "bar", "aria-hidden": "true" }, make("i", { class: "frees" }));
    bar.firstChild.style.width = `${(100 * row.would_free_bytes) / longest}%`;
    return make("li", {},
      make("div", { class: "what" }, make("b", {}, isolated(titled(row))),
        make("small", {}, clipped(row.client, 40), row.project ? " · " : null, row.project ? isolated(tail(row.project), { title: clipped(row.project) }) : null)),
      make("div", { class: "frees" }, make("b", {}, size(row.would_free_bytes)), make("small", {}, ` of ${size(row.bytes)}`), bar),
      command(row.command));
  };
  const add = (some) => list.append(...some.map(item));
  add(rows.slice(0, 5));
  return card("Worth rotating", { name: "worth", wide: true,
    note: `${many(rows.length, "session")} would free about ${size(rows.reduce((sum, row) => sum + row.would_free_bytes, 0))} on disk; nothing is lost, the history goes to the archive.` }, list, further(rows.slice(5), add), make("p", {}, "All of it at once:"), command(ALL_AT_ONCE));
};

const whatElse = (report) => {
  const item = (step) => make("li", {},
    make("div", { class: "what" }, make("b", {}, `${clipped(step.client, 40)}: ${many(step.sessions, "session")}`), make("small", { title: step.what }, clipped(step.what, 400))),
    make("div", { class: "frees" }, make("b", {}, size(step.bytes)), make("small", {}, step.is_most ? " at most" : " about")),
    step.command ? command(step.command) : null);
  return report.next_steps.length ? card("What else takes up space", { name: "else", wide: true }, make("ol", { class: "worth" }, ...report.next_steps.map(item))) : null;
};

const allSessions = (report) => {
  const rows = report.sessions.map((session) => ({
    ...session, name: titled(session),
    text: [session.title, session.session, session.project, session.path].join("\n").toLowerCase(),
  }));
  const longest = Math.max(...rows.map(({ bytes }) => bytes), 1);
  const table = sorted({
    caption: "All sessions", kind: "sessions", open: show, sort: 4,
    columns: [
      { label: "Title", class: "name", isHead: true, value: (row) => row.name.toLowerCase(),
        show: (row) => [make("div", {}, row.running ? make("i", { class: "running", title: "running", role: "img", "aria-label": "running" }) : null,
          button(isolated(row.name), (event) => { event.stopPropagation(); show(row); }, { title: row.name }))] },
      { label: "Id", class: "id aside spare", value: (row) => row.session, show: (row) => [pageOf(row) ? make("a", { href: pageOf(row), title: row.session }, row.session.slice(0, 8)) : make("code", { title: row.session }, row.session.slice(0, 8))] },
      { label: "Project", class: "project aside", value: (row) => row.project, show: (row) => [isolated(row.project ? tail(row.project) : "–", { title: clipped(row.project) })] },
      { label: "Client", class: "client aside spare", value: (row) => row.client, show: plain((row) => clipped(row.client, 20)) },
      measured("Size", "bytes", longest),
      sizes("On disk", "disk_bytes", { class: "number aside", title: "What all of it takes of the disk" }),
      sizes("Frees", "would_free_bytes", { title: "What a rotation would free on disk" }),
      { label: "Last", class: "day aside", first: "down", value: (row) => row.last_timestamp, show: plain((row) => moment(row.last_timestamp).slice(0, 10)) },
      { label: "Deleted", class: "day aside spare", title: "When its client deletes it, if nobody uses it", value: (row) => row.client_deletes, show: plain((row) => moment(row.client_deletes).slice(0, 10)) },
    ],
  });
  const query = make("input", { id: "query", type: "search", placeholder: "Filter ( / )", "aria-label": "Filter by title, project or id", autocomplete: "off", spellcheck: "false" });
  const choice = (id, name, totals) => make("select", { id, "aria-label": name }, make("option", { value: "" }, `All ${name}s`),
    ...totals.map((each) => make("option", { value: "=" + each }, clipped(each, 60) || `(no ${name})`)));
  const client = choice("client", "client", [...new Set(report.clients.map(({ name }) => name))]);
  const project = choice("project", "project", [...new Set(report.projects.map(({ name }) => name))].slice(0, 1000));
  client.hidden = report.clients.length < 2;
  const worth = make("input", { id: "frees", type: "checkbox" });
  const told = make("output", { id: "shown", for: "query client project frees" });
  const apply = () => {
    const words = query.value.toLowerCase().split(/\s+/).filter(Boolean);
    const shown = rows.filter((row) => words.every((word) => row.text.includes(word)) && (!client.value || "=" + row.client === client.value) &&
      (!project.value || "=" + (row.project ?? "") === project.value) && (!worth.checked || row.would_free_bytes > 0));
    const sum = (key) => shown.reduce((whole, row) => whole + row[key], 0);
    told.value = `${shown.length === rows.length ? "" : `${count(shown.length)} of `}${many(rows.length, "session")}, ${size(sum("bytes"))}`;
    table.fill(shown);
  };
  query.addEventListener("input", apply);
  for (const each of [client, project, worth]) each.addEventListener("change", apply);
  apply();
  const node = card("All sessions", { name: "sessions", wide: true },
    make("search", {}, query, client, project, make("label", {}, worth, " a rotation frees something"), told), table.node);
  return { node, query, only(name) {
    query.value = "";
    client.value = "";
    worth.checked = false;
    project.value = "=" + name;
    apply();
    node.scrollIntoView();
  } };
};

const summed = (totals) => { // a project's sums over its clients
  const sums = new Map();
  for (const each of totals) {
    const sum = sums.get(each.name);
    if (!sum) sums.set(each.name, { ...each });
    else for (const key of ["sessions", "bytes", "archived_bytes", "would_free_bytes"]) sum[key] += each[key];
  }
  return [...sums.values()].sort((one, other) => other.bytes - one.bytes);
};

const ofAll = (report, made) => {
  const all = allSessions(report);
  const total = ({ name, ...row }, act = null, shown = name) => ({ name: shown, hint: name, bytes: row.bytes, sessions: row.sessions, parts: standing(row), act });
  const sessions = ["Sessions", (row) => count(row.sessions)];
  const parts = () => legend(STATES);
  const projects = summed(report.projects);
  addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input, select, dialog")) return;
    event.preventDefault();
    all.query.focus();
    all.query.scrollIntoView({ block: "center" });
  });
  return [
    make("header", { class: "title" }, make("h1", {}, "Coding-agent sessions on this machine"),
      make("p", { class: "origin" }, make("span", {}, report.clients.map(({ name }) => clipped(name, 40)).join(", ")))),
    figures([
      ["Sessions", count(report.sessions.length), many(projects.length, "project")],
      ["Size", size(report.bytes), many(report.lines, "line")],
      ["On disk", size(report.disk_bytes), report.trash_bytes ? `${size(report.trash_bytes)} in the trash` : null],
      ["Archive", report.archived_bytes ? size(report.archived_bytes) : "–", report.archived_bytes ? percent(report.archived_bytes, report.bytes) : null],
      copies(report),
      ["Rotations free", report.would_free_bytes ? size(report.would_free_bytes) : "nothing", many(report.worth_rotating.length, "session worth it", "sessions worth it"), report.would_free_bytes ? "frees" : null],
    ]),
    growthOfAll(report, made),
    worthRotating(report),
    whatElse(report),
    report.sessions.length ? card("Largest projects", { name: "projects" }, parts(),
      bars("Largest projects", projects.map((each) => total(each, () => all.only(each.name), each.name ? tail(each.name) : "(no project)")), { columns: [sessions], most: 10, isTall: true })) : null,
    report.sessions.length ? card("Largest sessions", { name: "largest-sessions" }, parts(),
      bars("Largest sessions", report.sessions.map((each) => ({ name: titled(each), bytes: each.bytes, parts: standing(each), act: () => show(each) })), { whole: report.bytes, most: 10, isTall: true })) : null,
    ...contents(report),
    report.clients.length > 1 ? card("Clients", { name: "clients", wide: true }, parts(), bars("By client", report.clients.map((each) => total(each)), { whole: report.bytes, columns: [sessions] })) : null,
    all.node,
    report.largest_lines?.length ? largestOfAll(report) : null,
    report.unreadable.length ? card("Could not be read", { name: "unreadable", wide: true }, make("ul", { class: "unreadable" }, ...report.unreadable.slice(0, 200).map(({ path, reason }) =>
      make("li", {}, make("code", {}, clipped(path, 1000)), make("span", {}, clipped(reason)))))) : null,
  ];
};
const largestOfAll = (report) => {
  const named = new Map(report.sessions.map((session) => [session.session, session]));
  return largest(report.largest_lines, (row) => (named.has(row.session) ? titled(named.get(row.session)) : clipped(row.session, 36)),
    (row) => { if (named.has(row.session)) show(named.get(row.session)); });
};

// ── the page ───────────────────────────────────────────────────────────────────────────────

document.addEventListener("DOMContentLoaded", () => {
  const report = JSON.parse(document.getElementById("data").textContent);
  const made = Date.parse(report.made);
  const main = document.querySelector("main");
  pages = report.pages ?? {};
  const parts = report.machine ? [ofAll(report.machine, made)] : report.sessions.map((session) => ofSession(session, made));
  main.append(...parts.map((cards) => make("article", {}, ...cards.filter(Boolean))));
  document.body.append(hover.box);

  const switchTheme = () => {
    const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = isDark ? "light" : "dark";
    try { remembered.sessrotateTheme = root.dataset.theme; } catch { /* it holds for this visit */ }
  };
  document.getElementById("theme").addEventListener("click", switchTheme);
  addEventListener("keydown", (event) => {
    if (event.key === "t" && !event.ctrlKey && !event.metaKey && !event.altKey && !event.target.closest?.("input, select")) switchTheme();
    if (event.key === "Escape") hover.hide();
  });
  addEventListener("scroll", hover.hide, { passive: true, capture: true });
});
