// Charts of the lab: lines over sizes, bars over names. Colors are variables of the style, so light and dark need no redraw.
const COLORS = ["a", "b", "c", "d", "e", "f", "g", "h"];

/** Sizes in binary units, as the experiments choose them. */
function size(count) {
  const units = ["B", "KiB", "MiB", "GiB"];
  let unit = 0;
  while (count >= 1024 && unit + 1 < units.length) { count /= 1024; unit += 1; }
  return +count.toFixed(1) + " " + units[unit];
}

/** A number with the unit of its column. */
function valueText(value, unit) {
  switch (unit) {
    case "bytes": return size(value);
    case "ns": return duration(value);
    case "bytes/s": return bytes(value) + "/s";
    case "1/s": return bytes(value).replace(/ ?k?B$/, (found) => (found.includes("k") ? " k" : "")).replace(/B$/, "").trim() + "/s";
    case "ratio": return value.toFixed(2) + " x";
    default: return String(+value.toPrecision(4));
  }
}

/** Where values lie between `from` and `to`, on a logarithmic scale where `isLog`. */
function scale(least, most, from, to, isLog) {
  const place = isLog ? Math.log10 : (value) => value;
  const [low, high] = [place(least), place(most)];
  const span = high - low || 1;
  return (value) => from + ((place(value) - low) / span) * (to - from);
}

/** Round values between `least` and `most` for the lines of a grid. */
function ticks(least, most, isLog) {
  const found = [];
  if (isLog) {
    for (let power = Math.floor(Math.log10(least)); power <= Math.ceil(Math.log10(most)); power += 1) {
      for (const digit of most / least < 30 ? [1, 2, 5] : [1]) {
        const value = digit * 10 ** power;
        if (value >= least * 0.999 && value <= most * 1.001) found.push(value);
      }
    }
    return found;
  }
  const rough = (most - least) / 4 || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((digit) => digit * power).find((candidate) => candidate >= rough);
  for (let value = Math.ceil(least / step) * step; value <= most + step / 1e6; value += step) found.push(value);
  return found;
}

function legend(names) {
  return element("div", { class: "legend" }, ...names.map((name, index) =>
    element("span", {}, element("i", { style: `background: var(--${COLORS[index % COLORS.length]})` }), name)));
}

/** The points of a section, in groups by the texts of the column that separates them. */
function groupsOf(section) {
  const { x, y, by } = section.chart;
  const groups = new Map();
  for (const row of section.rows) {
    if (typeof row[y] !== "number") continue;
    const name = by === null ? "" : String(row[by]) + (section.columns[by].unit === "count" ? " " + section.columns[by].name : "");
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push({ x: row[x], y: row[y], row });
  }
  return groups;
}

function describe(section, row) {
  return section.columns.map((column, index) => {
    const cell = row[index];
    const text = typeof cell === "number" ? valueText(cell, column.unit) : typeof cell === "string" ? cell : "n/a";
    return `${column.name}: ${text}`;
  }).join("\n");
}

function hoverable(node, section, row) {
  node.addEventListener("pointermove", (event) => hover(event, describe(section, row)));
  node.addEventListener("pointerleave", (event) => hover(event, ""));
  return node;
}

function lines(section, groups, width) {
  const { x, y } = section.chart;
  const [xUnit, yUnit] = [section.columns[x].unit, section.columns[y].unit];
  const points = [...groups.values()].flat();
  const [xs, ys] = [points.map((point) => point.x), points.map((point) => point.y)];
  const [left, right, top, bottom, height] = [76, 18, 14, 44, 300];
  const isLogX = Math.min(...xs) > 0 && Math.max(...xs) / Math.min(...xs) > 8;
  const isLogY = section.chart.log && Math.min(...ys) > 0;
  const least = isLogY ? Math.min(...ys) / 1.15 : Math.min(0, ...ys);
  const most = (isLogY ? Math.max(...ys) * 1.15 : Math.max(...ys) * 1.05) || 1;
  const toX = scale(Math.min(...xs), Math.max(...xs), left + 6, width - right, isLogX);
  const toY = scale(least, most, height - bottom, top, isLogY);
  const svg = element("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img" }, element("title", {}, section.title));
  for (const value of ticks(least, most, isLogY)) {
    svg.append(element("line", { x1: left, x2: width - right, y1: toY(value), y2: toY(value) }),
      element("text", { x: left - 6, y: toY(value) + 4, "text-anchor": "end" }, valueText(value, yUnit)));
  }
  let last = -Infinity;
  for (const value of [...new Set(xs)].sort((a, b) => a - b)) {
    const place = toX(value);
    svg.append(element("line", { x1: place, x2: place, y1: height - bottom, y2: height - bottom + 4 }));
    const isAtEnd = place > width - 50;
    const middle = isAtEnd ? place - 26 : place;
    if (middle - last < 62) continue;
    last = middle;
    const anchor = isAtEnd ? "end" : "middle";
    svg.append(element("text", { x: place, y: height - bottom + 18, "text-anchor": anchor }, valueText(value, xUnit)));
  }
  svg.append(element("text", { x: left + 6, y: height - 6 }, `${section.columns[x].name}, and ${section.columns[y].name} upwards`));
  [...groups.values()].forEach((group, index) => {
    const stroke = `stroke: var(--${COLORS[index % COLORS.length]})`;
    const sorted = [...group].sort((a, b) => a.x - b.x);
    svg.append(element("polyline", { points: sorted.map((point) => `${toX(point.x)},${toY(point.y)}`).join(" "), style: stroke }));
    for (const point of sorted) {
      const circle = element("circle", { cx: toX(point.x), cy: toY(point.y), r: 4, style: `fill: var(--${COLORS[index % COLORS.length]})` });
      svg.append(hoverable(circle, section, point.row));
    }
  });
  return svg;
}

function bars(section, groups, width) {
  const { y, x } = section.chart;
  const unit = section.columns[y].unit;
  const names = [...groups.keys()];
  const all = names.flatMap((name, index) => groups.get(name).map((point) => ({ ...point, index })));
  const values = all.map((point) => point.y);
  const isLog = section.chart.log && Math.min(...values) > 0 && Math.max(...values) / Math.min(...values) > 20;
  // A bar on a logarithmic scale begins a power of ten below the least.
  const least = isLog ? 10 ** (Math.floor(Math.log10(Math.min(...values))) - 1) : 0;
  const [left, right, rowHeight] = [10, 96, 40];
  const toX = scale(least, Math.max(...values) || 1, left, width - right, isLog);
  const height = all.length * rowHeight + (isLog ? 30 : 12);
  const svg = element("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img" }, element("title", {}, section.title));
  all.forEach((point, row) => {
    const top = row * rowHeight + 8;
    const length = Math.max(1, toX(point.y) - left);
    const bar = element("rect", { x: left, y: top + 16, width: length, height: 12, style: `fill: var(--${COLORS[point.index % COLORS.length]})` });
    svg.append(element("text", { x: left, y: top + 11 }, point.x), hoverable(bar, section, point.row),
      element("text", { x: left + length + 6, y: top + 26, class: "value" }, valueText(point.y, unit)));
  });
  if (isLog) svg.append(element("text", { x: left, y: height - 8 }, "logarithmic: each tenfold is as long as the one before"));
  return svg;
}

function draw() {
  for (const place of document.querySelectorAll(".chart")) {
    const section = data.experiments[place.dataset.experiment].sections[place.dataset.section];
    const groups = groupsOf(section);
    const width = Math.max(300, Math.min(900, place.clientWidth));
    if (groups.size === 0) { place.replaceChildren(element("p", { class: "faint" }, "Nothing to draw: no value was available.")); continue; }
    const isBars = section.columns[section.chart.x].unit === "text";
    const chart = (isBars ? bars : lines)(section, groups, width);
    place.replaceChildren(...(groups.size > 1 ? [legend([...groups.keys()])] : []), chart);
  }
}
draw();
let drawnWidth = innerWidth;
addEventListener("resize", () => { if (innerWidth !== drawnWidth) { drawnWidth = innerWidth; draw(); } });
