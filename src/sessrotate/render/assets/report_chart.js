// ── size over time ─────────────────────────────────────────────────────────────────────────

const MINUTE = 60e3;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const EARLIEST = Date.UTC(2020, 0); // before any of the clients: such a clock was wrong

const two = (number) => String(number).padStart(2, "0");
const dated = (time) => {
  const date = new Date(time);
  return `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]} ${date.getUTCFullYear()}`;
};
const clock = (time) => `${two(new Date(time).getUTCHours())}:${two(new Date(time).getUTCMinutes())}`;
const when = (text, made) => { // milliseconds, or null for what is no time that could be true
  const time = Date.parse(/^\d{4}-\d\d-\d\d(T|$)/.test(text ?? "") ? text : "");
  return time >= EARLIEST && time <= made + 2 * DAY ? time : null;
};

const monthly = (months) => ({
  start: (time) => {
    const date = new Date(time);
    const month = Math.floor((date.getUTCFullYear() * 12 + date.getUTCMonth()) / months) * months;
    return Date.UTC(Math.floor(month / 12), month % 12);
  },
  next: (time) => { const date = new Date(time); return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + months); },
  length: months * 30 * DAY,
  label: (time, isFirst) => {
    const date = new Date(time);
    const month = MONTHS[date.getUTCMonth()];
    return months >= 12 ? String(date.getUTCFullYear()) : isFirst || !date.getUTCMonth() ? `${month} ${date.getUTCFullYear()}` : month;
  },
});
const regular = (length, label, origin = 0) => ({
  start: (time) => Math.floor((time - origin) / length) * length + origin,
  next: (time) => time + length,
  length,
  label,
});
const dayLabel = (time) => `${new Date(time).getUTCDate()} ${MONTHS[new Date(time).getUTCMonth()]}`;
const hourLabel = (time) => (time % DAY ? clock(time) : dayLabel(time));
const MONDAY = 4 * DAY; // the first one after 1970-01-01
const STEPS = [
  ...[1, 5, 15, 30].map((each) => regular(each * MINUTE, hourLabel)),
  ...[1, 3, 6, 12].map((each) => regular(each * HOUR, hourLabel)),
  ...[1, 2].map((each) => regular(each * DAY, dayLabel)),
  ...[7, 14].map((each) => regular(each * DAY, dayLabel, MONDAY)),
  ...[1, 3, 6, 12, 24, 60, 120].map(monthly),
];
const stepOf = (span, most, steps = STEPS) => steps.find(({ length }) => span / length <= most) ?? steps.at(-1);
const stepsIn = (step, from, to) => {
  const found = [];
  for (let time = step.start(from); time <= to; time = step.next(time)) if (time >= from) found.push(time);
  return found;
};
const levels = (top, most) => {
  let unit = 1;
  while (top / unit >= 1024) unit *= 1024;
  const step = [1, 2, 5, 10, 20, 50, 100, 200, 250, 500, 1024].map((each) => each * unit).find((each) => top / each <= most) ?? top;
  const found = [];
  for (let level = step; level <= top; level += step) found.push(level);
  return found;
};
const level = (bytes) => size(bytes).replace(".0 ", " ");

/** Bytes by day → sums by bin, as [from, to, bytes]; days, weeks, months or years as there is room. */
const binned = (days, from, to) => {
  const step = stepOf(to - from, 75, STEPS.filter(({ length }) => [1, 7].includes(length / DAY) || length >= 30 * DAY));
  const sums = new Map();
  for (const [time, bytes] of days) {
    const start = step.start(time);
    sums.set(start, (sums.get(start) ?? 0) + bytes);
  }
  return {
    unit: step.length === DAY ? "day" : step.length === 7 * DAY ? "week" : step.length < 60 * DAY ? "month" : "period",
    bins: [...sums].map(([start, bytes]) => [start, step.next(start), bytes]),
  };
};

const GAP = 20; // pixels between the two parts
const MARGIN = { top: 18, right: 12, bottom: 24, left: 68 };

/**
 * Draws size over time: `points` [[time, bytes]] as an area, `bins` as bars below it, `marks`
 * [{time, bytes, lines}] as lines with a knob. Drawn anew whenever its width changes.
 */
const timeline = ({ points, bins = [], unit = "day", marks = [], label }) => {
  const frame = make("div", { class: "chart", tabindex: 0, role: "group", "aria-label": `${label} Arrow keys go through it.` });
  const from = points[0][0];
  const to = Math.max(points.at(-1)[0], from + MINUTE);
  const top = Math.max(...points.map(([, bytes]) => bytes), 1) * 1.04;
  const highest = Math.max(...bins.map(([, , bytes]) => bytes), 1);
  const stops = [...points.map(([time, bytes]) => ({ time, bytes })), ...marks].sort((a, b) => a.time - b.time);
  let at = -1;

  const draw = (width) => {
    const isNarrow = width < 480;
    const below = bins.length > 3 ? 64 : 0;
    const above = isNarrow ? 190 : 260;
    const left = MARGIN.left;
    const right = width - MARGIN.right;
    const floor = MARGIN.top + above;
    const base = floor + (below ? GAP + below : 0);
    const x = (time) => left + ((time - from) / (to - from)) * (right - left);
    const y = (bytes) => floor - (bytes / top) * above;
    const picture = shape("svg", { width, height: base + MARGIN.bottom, role: "img", "aria-label": label }, shape("title", {}, label));
    const grid = shape("g", { class: "grid" });
    for (const each of [0, ...levels(top, 5)]) {
      grid.append(shape("line", { x1: left, x2: right, y1: y(each), y2: y(each) }),
        shape("text", { x: left - 8, y: y(each) + 4, "text-anchor": "end" }, level(each)));
    }
    const step = stepOf(to - from, Math.max(2, (right - left) / (isNarrow ? 62 : 80)));
    let last = -Infinity;
    for (const each of stepsIn(step, from, to)) {
      const place = x(each);
      grid.append(shape("line", { class: "tick", x1: place, x2: place, y1: base, y2: base + 4 }));
      if (place - last < 54 || place > right - 8) continue;
      const isFirst = last < 0;
      last = place;
      grid.append(shape("text", { x: place, y: base + 18, "text-anchor": place < left + 24 ? "start" : "middle" }, step.label(each, isFirst)));
    }
    const line = points.map(([time, bytes], number) => `${number ? "L" : "M"}${x(time).toFixed(1)} ${y(bytes).toFixed(1)}`).join("");
    picture.append(grid,
      shape("path", { class: "area", d: `${line}L${x(points.at(-1)[0]).toFixed(1)} ${floor}L${left} ${floor}Z` }),
      shape("path", { class: "line", d: line }));
    const knobs = shape("g", { class: marks.length > 40 ? "marks dense" : "marks" });
    for (const { time, bytes } of marks) {
      knobs.append(shape("line", { x1: x(time), x2: x(time), y1: MARGIN.top - 6, y2: floor }),
        shape("circle", { cx: x(time), cy: y(bytes), r: marks.length > 40 ? 2 : 3.5 }));
    }
    picture.append(knobs);
    if (below) {
      const bars = shape("g", { class: "bins" });
      bars.append(shape("line", { x1: left, x2: right, y1: base, y2: base }),
        shape("text", { x: left - 8, y: base - below + 9, "text-anchor": "end" }, level(highest)),
        shape("text", { x: left - 8, y: base - 1, "text-anchor": "end" }, `a ${unit}`));
      for (const [start, end, bytes] of bins) {
        const one = Math.max(left, x(start));
        const other = Math.min(right, x(end));
        const height = Math.max((bytes / highest) * below, bytes ? 1 : 0);
        bars.append(shape("rect", { x: one, y: base - height, width: Math.max(other - one - (other - one > 4 ? 1.5 : 0), 1), height }));
      }
      picture.append(bars);
    }
    const cross = shape("g", { class: "cross" }, shape("line", { y1: MARGIN.top - 6, y2: base }), shape("circle", { r: 4 }));
    cross.style.display = "none";
    picture.append(cross);
    frame.replaceChildren(picture);

    const tell = (number, where) => {
      at = Math.max(0, Math.min(stops.length - 1, number));
      const { time, bytes, lines = [] } = stops[at];
      cross.style.display = "";
      cross.firstChild.setAttribute("x1", x(time));
      cross.firstChild.setAttribute("x2", x(time));
      cross.lastChild.setAttribute("cx", x(time));
      cross.lastChild.setAttribute("cy", y(bytes));
      const bin = bins.find(([start, end]) => start <= time && time < end);
      const box = frame.getBoundingClientRect();
      hover.show(where ? where.clientX : box.left + x(time), where ? where.clientY : box.top + y(bytes), [
        size(bytes), `${dated(time)}, ${clock(time)} UTC`, ...lines,
        below && bin ? `${size(bin[2])} in this ${unit}` : null,
      ]);
    };
    const leave = () => { cross.style.display = "none"; hover.hide(); };
    picture.addEventListener("pointermove", (event) => {
      const time = from + ((event.clientX - frame.getBoundingClientRect().left - left) / (right - left)) * (to - from);
      let low = 0;
      let high = stops.length - 1;
      while (low < high) { const middle = (low + high) >> 1; if (stops[middle].time < time) low = middle + 1; else high = middle; }
      if (low && time - stops[low - 1].time < stops[low].time - time) low--;
      const near = 5 * ((to - from) / (right - left)); // a mark is taken from a few pixels off
      const mark = stops.findIndex((stop) => stop.lines && Math.abs(stop.time - time) < near);
      tell(mark < 0 ? low : mark, event);
    });
    picture.addEventListener("pointerleave", leave);
    frame.onblur = leave;
    frame.onkeydown = (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (by === undefined) return;
      event.preventDefault();
      tell(at + by);
    };
  };
  new ResizeObserver(([{ contentRect }]) => { if (contentRect.width > 0) draw(Math.floor(contentRect.width)); }).observe(frame);
  return frame;
};

/** One bar made of parts [{bytes, tone, lines}], as wide as its frame. */
const strip = (parts, label) => {
  const whole = parts.reduce((sum, { bytes }) => sum + bytes, 0);
  const gap = parts.length > 60 ? 0 : 1;
  const frame = make("div", { class: "strip", role: "img", "aria-label": label });
  new ResizeObserver(([{ contentRect }]) => {
    const width = contentRect.width;
    const picture = shape("svg", { width, height: 28, "aria-hidden": "true" });
    let done = 0;
    for (const { bytes, tone, lines } of parts) {
      const start = (done / whole) * width;
      const length = Math.max((bytes / whole) * width - gap, 0.75);
      picture.append(telling(shape("rect", { x: start, y: 0, width: length, height: 28, class: tone }), () => lines));
      done += bytes;
    }
    frame.replaceChildren(picture);
  }).observe(frame);
  return whole ? frame : null;
};
