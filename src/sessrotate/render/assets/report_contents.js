// ── what is said of a session, and of all ──────────────────────────────────────────────────

const TALK = ["user text", "assistant text", "thinking"];
const TOOLS = ["tool calls", "tool results", "images"];
const groupOf = (kind) => (TALK.includes(kind) ? "talk" : TOOLS.includes(kind) ? "tools" : "rest");
const STATES = [["sealed", "in the archive"], ["frees", "a rotation frees"], ["stays", "stays"]];

const standing = (row) => { // archived, what a rotation would free on disk, the rest
  const frees = Math.min(row.would_free_bytes, row.bytes - row.archived_bytes);
  return [["sealed", row.archived_bytes, STATES[0][1]], ["frees", frees, STATES[1][1]],
    ["stays", row.bytes - row.archived_bytes - frees, STATES[2][1]]];
};

const plain = (show) => (row) => [isolated(show(row))];
const sizes = (label, key, more = {}) => ({
  label, class: "number", first: "down", value: (row) => row[key], show: (row) => [row[key] ? size(row[key]) : "–"], ...more,
});
const measured = (label, key, longest) => sizes(label, key, {
  class: "number measured",
  show: (row) => {
    const bar = make("i", { "aria-hidden": "true" });
    bar.style.width = `${(100 * row[key]) / longest}%`;
    return [bar, size(row[key])];
  },
});

const copies = (report) => { // the figure for the top
  if (!report.kinds) return null;
  const bytes = report.duplicate_bytes;
  return ["Copies", bytes ? size(bytes) : "none", bytes ? percent(bytes, report.bytes) : null];
};

const contents = (report) => { // the cards that need all lines to be read
  if (!report.kinds) return [];
  const listed = (shares) => Object.entries(shares).map(([name, { lines, bytes }]) => ({ name, lines, bytes })).sort((one, other) => other.bytes - one.bytes);
  const kinds = listed(report.kinds);
  const tools = listed(report.tools);
  const copied = listed(report.copies).map((each) => `${each.name} ${size(each.bytes)}`).join(", ");
  const whole = kinds.reduce((sum, { bytes }) => sum + bytes, 0);
  const of = (group) => kinds.filter(({ name }) => groupOf(name) === group).reduce((sum, { bytes }) => sum + bytes, 0);
  const lines = ["Lines", (row) => count(row.lines)];
  const rowOf = (tone) => (each) => ({ ...each, parts: [[tone ?? groupOf(each.name), each.bytes, many(each.lines, "line")]] });
  const talk = of("talk");
  const groups = [["talk", "talk", talk], ["tools", "tools", of("tools")], ["rest", "bookkeeping", of("rest")]];
  return [
    card("What the bytes are", { name: "kinds", wide: !tools.length, note: `${percent(talk, whole)} of them are talk: ${size(talk)}.` },
      strip(groups.map(([tone, name, bytes]) => ({ bytes, tone, lines: [size(bytes), `${name}, ${percent(bytes, whole)}`] })),
        groups.map(([, name, bytes]) => `${name} ${size(bytes)}`).join(", ")),
      legend(groups.map(([tone, name, bytes]) => [tone, `${name} ${percent(bytes, whole)}`])),
      bars("Bytes by kind of line", kinds.map(rowOf()), { whole, columns: [lines], most: 12 }),
      report.duplicate_bytes ? make("p", { class: "note" }, make("b", {}, size(report.duplicate_bytes)),
        ` of it (${percent(report.duplicate_bytes, whole)}), in ${many(report.duplicate_lines, "line")}, are copies: ${copied}. ${size(report.unique_bytes)} is unique.`) : null),
    tools.length ? card("What tools gave", { name: "tools", note: `${size(tools.reduce((sum, { bytes }) => sum + bytes, 0))} of results, by tool.` },
      bars("Bytes of results by tool", tools.map(rowOf("tools")), { whole, columns: [lines] })) : null,
  ];
};

const largest = (lines, nameOf = null, open = null) => {
  const longest = Math.max(...lines.map(({ bytes }) => bytes), 1);
  const table = sorted({
    caption: "The largest lines", kind: "lines", open,
    columns: [
      measured("Size", "bytes", longest),
      { label: "Kind", class: "kind", value: (row) => row.kind, show: plain((row) => row.kind) },
      { label: "Tool", class: "aside", value: (row) => row.tool, show: plain((row) => clipped(row.tool, 80) || "–") },
      ...(nameOf ? [{ label: "Session", value: nameOf, show: plain(nameOf) }] : []),
      { label: "Segment", class: "number narrow", first: "up", value: (row) => row.segment, show: (row) => [count(row.segment)] },
      { label: "Offset", class: "number tokens aside", first: "up", title: "Where the line begins in its segment, in bytes", value: (row) => row.segment_offset, show: (row) => [count(row.segment_offset)] },
    ],
  });
  table.fill(lines);
  return card("Largest lines", { name: "largest", wide: true }, table.node);
};

