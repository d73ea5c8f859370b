// ── one session ────────────────────────────────────────────────────────────────────────────

const grown = (session, made) => {
  const limit = when(session.last_timestamp, made) ?? Infinity;
  let points = [];
  const marks = [];
  for (const part of session.segments) {
    const first = when(part.first_timestamp, made) ?? when(part.boundary?.timestamp, made);
    if (first !== null) points.push([first, part.start]);
    if (when(part.last_timestamp, made) !== null) points.push([when(part.last_timestamp, made), part.end]);
    const time = when(part.boundary?.timestamp, made);
    if (time === null) continue;
    const { trigger, pre_tokens: tokens } = part.boundary;
    marks.push({ time, bytes: part.start, lines: [
      `Compaction ${marks.length + 1} opens segment ${part.index}`,
      [clipped(trigger, 40), tokens === null ? null : `${count(tokens)} tokens before`].filter(Boolean).join(", "),
    ] });
  }
  const days = session.growth.map(({ day, bytes }) => [when(day, made), bytes]);
  let done = 0;
  for (const [day, bytes] of days) { // days without a date come first
    done += bytes;
    if (day !== null && day + DAY < limit) points.push([day + DAY, done]);
  }
  points = points.sort(([a, x], [b, y]) => a - b || x - y);
  let most = 0;
  for (const point of points) { most = Math.max(most, point[1]); point[1] = most; } // history never shrinks
  return { points, marks, days: days.filter(([day]) => day !== null) };
};

const sizeOverTime = (session, made) => {
  const { points, marks, days } = grown(session, made);
  if (points.length < 2) return null;
  const [from, to] = [points[0][0], points.at(-1)[0]];
  if (to - from < MINUTE) return null; // one step is no picture
  const { unit, bins } = binned(days, from, to);
  const told = session.compactions ? `, with ${many(session.compactions, "compaction")} marked` : "";
  return card("Size over time", { name: "growth", wide: true, note: `All that was ever written${told}.` },
    timeline({ points, marks, unit, bins: to - from > 3 * DAY ? bins : [],
      label: `The history of the session grew to ${size(points.at(-1)[1])} from ${dated(from)} to ${dated(to)}${told}.` }));
};

const isInPlace = (session) => String(session.command).startsWith("sessrotate rotate"); // else it stands elsewhere
const advice = (session) => {
  if (!session.command) return [make("p", {}, `There is nothing to rotate now. ${clipped(session.would_free_reason)}`)];
  const freed = make("b", { class: "frees" }, size(session.would_free_bytes));
  const left = make("b", {}, size(session.live_tail_bytes));
  return [
    isInPlace(session) ? make("p", {}, `A rotation moves ${size(session.live_bytes - session.live_tail_bytes)} to the archive, and compresses it: that frees about `, freed, " on disk. The live tail of ", left, " stays.")
      : make("p", {}, freed, " stand before the last compaction, ", left, " from it on. This cuts the file into segments:"),
    command(session.command),
    ...(session.room_missing_bytes ? [make("p", {}, `The disk has no room for that: free ${size(session.room_missing_bytes)} more first.`)] : []),
  ];
};
const rotation = (session) => {
  const parts = session.segments.map((part, number) => {
    const isLast = number === session.segments.length - 1;
    const tone = part.standing === "absent" ? "absent" : part.standing === "sealed" ? "sealed" : session.command && !isLast ? "frees" : "stays";
    return { bytes: part.bytes, tone, lines: [
      `Segment ${part.index}: ${size(part.bytes)}`, `${moment(part.first_timestamp)} to ${moment(part.last_timestamp)}`, part.problem && clipped(part.problem),
    ] };
  });
  const has = (wanted) => parts.some(({ tone }) => tone === wanted);
  return card("What a rotation frees", { name: "rotation", wide: true, note: `${many(parts.length, "segment")}, oldest first` },
    strip(parts, `${many(parts.length, "segment")}, oldest first`),
    legend([...STATES, ["absent", "not there"]].filter(([tone]) => has(tone))),
    ...advice(session));
};

const segments = (session) => {
  const longest = Math.max(...session.segments.map(({ bytes }) => bytes), 1);
  const table = sorted({
    caption: "Segments", kind: "segments",
    columns: [
      { label: "#", class: "index", first: "up", isHead: true, value: (row) => row.index, show: (row) => [count(row.index)] },
      measured("Size", "bytes", longest),
      { label: "Lines", class: "number", first: "down", value: (row) => row.lines, show: (row) => [count(row.lines)] },
      { label: "Opened by", class: "aside", value: (row) => row.boundary?.trigger, show: plain((row) => (row.boundary ? clipped(row.boundary.trigger, 40) || "compaction" : "–")) },
      { label: "Tokens before", class: "number tokens aside", first: "down", value: (row) => row.boundary?.pre_tokens, show: (row) => [count(row.boundary?.pre_tokens)] },
      { label: "First", class: "time", value: (row) => row.first_timestamp, show: plain((row) => moment(row.first_timestamp)) },
      { label: "Last", class: "time aside spare", value: (row) => row.last_timestamp, show: plain((row) => moment(row.last_timestamp)) },
      { label: "Where", class: "aside", value: (row) => row.standing, show: plain((row) => (row.problem ? clipped(row.problem) : row.standing === "sealed" ? "archive" : row === session.segments.at(-1) ? "live tail" : row.standing)) },
    ],
  });
  table.fill(session.segments);
  return card("Segments", { name: "segments", wide: true, note: "A segment ends where the client compacted." }, table.node);
};

const facts = (session) => figures([
  ["Size", size(session.bytes), many(session.lines, "line")],
  session.live_bytes === null ? ["Live file", "none"] : ["Live file", size(session.live_bytes), `live tail ${size(session.live_tail_bytes)}`],
  ["Archive", session.archived_bytes ? size(session.archived_bytes) : "–", session.archived_bytes ? percent(session.archived_bytes, session.bytes) : null],
  ["Compactions", count(session.compactions)],
  copies(session),
  ["A rotation frees", session.would_free_bytes ? size(session.would_free_bytes) : "nothing", session.live_bytes && session.would_free_bytes ? `${percent(session.would_free_bytes, session.live_bytes)} of the live file` : null, session.would_free_bytes ? "frees" : null],
]);
const origin = (session) => make("p", { class: "origin" },
  make("span", {}, clipped(session.client, 40)), session.project ? isolated(clipped(session.project)) : null,
  make("span", {}, `${moment(session.first_timestamp)} – ${moment(session.last_timestamp)}`),
  session.running ? make("span", { class: "running" }, "running") : null);

const ofSession = (session, made) => [
  make("header", { class: "title" }, make("h1", {}, isolated(titled(session))), origin(session), make("p", { class: "path" }, isolated(clipped(session.path, 1000)))),
  facts(session), sizeOverTime(session, made), rotation(session), ...contents(session), segments(session),
  session.largest_lines?.length ? largest(session.largest_lines) : null,
];

