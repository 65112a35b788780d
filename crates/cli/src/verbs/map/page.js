const byId = (id) => document.getElementById(id);
const percent = (part, whole) => (whole > 0 ? (100 * part / whole).toFixed(1) + " %" : "-");
const memberName = (number) => (number === null || !data.members[number] ? "?" : data.members[number].name || "(no name)");
const DISTANCE_COLORS = ["c", "f", "g", "d", "e", "h"];
const COLORS = ["c", "f", "a", "d", "b", "e", "g", "h"];

/** Shows text for a pointer over an element, and for the keyboard. */
function explain(made, text) {
  made.addEventListener("pointermove", (event) => hover(event, text()));
  made.addEventListener("pointerleave", (event) => hover(event, ""));
  return made;
}

function legend(id, rows) {
  byId(id).replaceChildren(...rows.map(([name, text]) => {
    const mark = element("i");
    mark.style.background = name.includes("(") ? name : "var(--" + name + ")";
    return element("span", {}, mark, text);
  }));
}

// ---------------------------------------------------------------------------------- picture
const picture = byId("picture");
const KINDS = [["a", "occurs for the first time"], ["b", "repeats"], ["line", "runs"]];
function showColors(by) {
  picture.dataset.color = by;
  const limits = ["less than 1 MiB", "1 MiB or more", "16 MiB or more", "256 MiB or more", "4 GiB or more", "64 GiB or more"];
  const arcs = by === "distance"
    ? limits.map((text, number) => [DISTANCE_COLORS[number], "arc: " + text]).filter((_, number) => picture.querySelector(".arc.d" + number))
    : data.members.slice(0, 8).map((member, number) => [COLORS[number], "arc into " + memberName(number)]);
  legend("legend", [...KINDS, ...arcs]);
}
byId("color").addEventListener("change", (event) => showColors(event.target.value));
showColors("distance");

// The titles of arcs are for those who open the picture alone.
picture.querySelectorAll(".arc title").forEach((title) => title.remove());
const inFile = (passage) => passage.path || memberName(passage.member);
const inSource = (passage) => passage.source_path || memberName(passage.source_member);
function passageText(passage) {
  return bytes(passage.repeated_bytes) + " repeat\nin " + inFile(passage) + "\nfirst in " + inSource(passage) +
    "\nat " + bytes(passage.content_offset) + ", first at " + bytes(passage.source_offset) + ", " + bytes(passage.content_offset - passage.source_offset) + " apart";
}
picture.addEventListener("pointerleave", (event) => hover(event, ""));
picture.addEventListener("pointermove", (event) => {
  const { passage, member } = event.target.dataset;
  if (passage !== undefined) { hover(event, passageText(data.passages[passage])); return; }
  if (member !== undefined) {
    const found = data.members[member];
    hover(event, memberName(member) + "\n" + bytes(found.content_bytes) + ", stored " + bytes(found.stored_bytes));
    return;
  }
  const box = picture.getBoundingClientRect();
  const columns = data.columns;
  const column = Math.floor((event.clientX - box.left) / box.width * columns.count);
  if (column < 0 || column >= columns.count) { hover(event, ""); return; }
  hover(event, "at " + bytes(data.content_bytes * column / columns.count) + "\nnew " + bytes(columns.first_bytes[column]) +
    "\nrepeated " + bytes(columns.repeated_bytes[column]) + "\nruns " + bytes(columns.run_bytes[column]) +
    "\nstored " + bytes(columns.stored_bytes[column]));
});
byId("passages").append(table(data.passages.slice(0, 100), [
  ["Bytes that repeat", (row) => row.repeated_bytes, bytes],
  ["In", inFile],
  ["First in", inSource],
  ["At", (row) => row.content_offset, bytes],
  ["First at", (row) => row.source_offset, bytes],
  ["Apart", (row) => row.content_offset - row.source_offset, bytes],
]));

// --------------------------------------------------------------------------------- distances
function showDistances() {
  if (data.distances.length === 0) { byId("distances").textContent = "Nothing repeats."; return; }
  const most = Math.max(...data.distances.map((row) => row.repeated_bytes), 1);
  const head = element("tr", {}, element("th", {}, "From"), element("th", { class: "number" }, "Repeated"),
    element("th", { class: "number" }, "Share"), element("th", { class: "bar" }, ""));
  const rows = data.distances.map((row) => {
    const bar = element("i");
    bar.style.width = 100 * row.repeated_bytes / most + "%";
    return explain(element("tr", {}, element("td", {}, bytes(row.from)), element("td", { class: "number" }, bytes(row.repeated_bytes)),
      element("td", { class: "number" }, percent(row.repeated_bytes, data.repeated_bytes)), element("td", { class: "bar" }, bar)),
    () => bytes(row.repeated_bytes) + " in " + row.extents + " extents\nare " + bytes(row.from) + " to " + bytes(2 * row.from) + " behind their first occurrence");
  });
  byId("distances").append(element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows)));
}
showDistances();

function showMatrix() {
  const canvas = byId("matrix"), size = data.matrix.size, pixel = canvas.width / size;
  const context = canvas.getContext("2d"), ink = color("b"), cells = new Map();
  const most = Math.max(1, ...data.matrix.cells.map((cell) => cell[2]));
  context.clearRect(0, 0, canvas.width, canvas.height);
  for (const [place, source, count] of data.matrix.cells) {
    cells.set(place * size + source, count);
    context.globalAlpha = 0.12 + 0.88 * Math.log1p(count) / Math.log1p(most);
    context.fillStyle = ink;
    context.fillRect(source * pixel, place * pixel, pixel, pixel);
  }
  explain(canvas, () => "");
  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect();
    const source = Math.floor((event.clientX - box.left) / box.width * size), place = Math.floor((event.clientY - box.top) / box.height * size);
    const count = cells.get(place * size + source) || 0;
    hover(event, "content at " + bytes(data.content_bytes * place / size) + "\nfirst at " + bytes(data.content_bytes * source / size) + "\n" + bytes(count) + " repeat");
  });
}
showMatrix();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", showMatrix);

// ------------------------------------------------------------------------------------ strips
/** Columns from left to right: [left 0..1, width 0..1, height 0..1, color, text]. */
function strip(id, label, rows) {
  const svg = element("svg", { class: "strip", viewBox: "0 0 1200 140", role: "img", "aria-label": label });
  for (const [left, width, height, name, text] of rows) {
    const tall = Math.max(0.5, 140 * Math.min(1, height));
    const rect = element("rect", { x: (1200 * left).toFixed(2), y: (140 - tall).toFixed(1), width: Math.max(0.5, 1200 * width).toFixed(2), height: tall.toFixed(1) });
    rect.style.fill = name.includes("(") ? name : "var(--" + name + ")";
    svg.append(explain(rect, () => text));
  }
  byId(id).append(svg);
}
const stored = data.columns.stored_bytes, mostStored = Math.max(1, ...stored);
strip("costs", "Stored bytes by part of the content", stored.map((count, column) => [column / stored.length, 1 / stored.length, count / mostStored, "a",
  "at " + bytes(data.content_bytes * column / stored.length) + "\nstored " + bytes(count)]));
const codecs = data.store_columns.codecs;
const codecColor = (number) => stageColor("codec " + codecs[number].split(" ")[0]);
strip("blocks", "Compressed share by part of the store", data.store_columns.rows.map(([at, raw, left, codec]) => [at / data.store_bytes, raw / data.store_bytes,
  left / raw, codecColor(codec), "store at " + bytes(at) + "\n" + bytes(raw) + " became " + bytes(left) + " (" + percent(left, raw) + ")\n" + codecs[codec]]));
legend("codecs-legend", codecs.map((name, number) => [codecColor(number), name]));
byId("codecs").append(table(data.codecs, [
  ["Codec", (row) => row.codec + (row.filters ? " + " + row.filters : "")],
  ["Blocks", (row) => row.blocks],
  ["Bytes", (row) => row.raw_bytes, bytes],
  ["Compressed", (row) => row.stored_bytes, bytes],
  ["Left", (row) => (row.raw_bytes ? 100 * row.stored_bytes / row.raw_bytes : 0), (share) => share.toFixed(1) + " %"],
]));

// ----------------------------------------------------------------------------------- treemap
const nodes = data.folder_tree, below = nodes.map(() => []);
nodes.forEach((node, number) => { if (node.parent !== undefined) below[node.parent].push(number); });

/** Lays out sizes in a rectangle, rows as square as they can be: [left, top, width, height] for each. */
function squares(sizes, left, top, width, height) {
  const places = [], total = sizes.reduce((sum, size) => sum + size, 0);
  let scale = width * height / total, from = 0;
  const worst = (row, sum, side) => Math.max(...[row[0], row[row.length - 1]].map((size) => {
    const other = sum * scale / side, along = size * scale / other;
    return Math.max(other / along, along / other);
  }));
  while (from < sizes.length) {
    const side = Math.min(width, height);
    let to = from + 1, sum = sizes[from];
    while (to < sizes.length && worst(sizes.slice(from, to + 1), sum + sizes[to], side) <= worst(sizes.slice(from, to), sum, side)) { sum += sizes[to]; to += 1; }
    const thick = side > 0 ? sum * scale / side : 0;
    let at = 0;
    for (const size of sizes.slice(from, to)) {
      const long = thick > 0 ? size * scale / thick : 0;
      places.push(width >= height ? [left, top + at, thick, long] : [left + at, top, long, thick]);
      at += long;
    }
    if (width >= height) { left += thick; width -= thick; } else { top += thick; height -= thick; }
    from = to;
  }
  return places;
}

function nodeText(node) {
  return node.name + "\nstored " + bytes(node.stored_bytes) + " (" + percent(node.stored_bytes, nodes[0].stored_bytes) + " of all)\nfiles " + bytes(node.file_bytes) +
    " in " + node.files + "\nnew " + bytes(node.first_bytes);
}

/** What a folder consists of, the largest first. */
function partsOf(number) {
  const parts = below[number].map((at) => ({ number: at, size: nodes[at].stored_bytes, name: nodes[at].name }));
  const node = nodes[number];
  if (node.own_bytes > 0) parts.push({ size: node.own_bytes, name: parts.length ? "files of this folder" : node.name });
  if (node.other_bytes > 0) parts.push({ size: node.other_bytes, name: "smaller folders" });
  return parts.filter((part) => part.size > 0).sort((a, b) => b.size - a.size);
}

const isFolder = (part) => part.number !== undefined && (below[part.number].length > 0 || nodes[part.number].other_bytes > 0);

/** A box of the treemap, with what it is called where there is room. */
function boxOf(part, [left, top, wide, tall], attributes) {
  const opens = isFolder(part), className = [opens ? "folder" : "", attributes.class || ""].join(" ").trim();
  const box = element("div", { ...(className ? { class: className } : {}), ...(opens ? { tabindex: 0, role: "button", "data-folder": part.number } : {}) });
  if (wide > 34 && tall > 16) box.append(element("b", {}, part.name || "(no name)"), " " + bytes(part.size));
  Object.assign(box.style, { left: left + "px", top: top + "px", width: wide + "px", height: tall + "px" });
  const text = () => (part.number === undefined ? part.name + "\nstored " + bytes(part.size) : nodeText(nodes[part.number]));
  box.addEventListener("pointermove", (event) => { event.stopPropagation(); hover(event, text()); });
  box.addEventListener("pointerleave", (event) => hover(event, ""));
  if (opens) {
    box.addEventListener("click", (event) => { event.stopPropagation(); showFolder(part.number); });
    box.addEventListener("keydown", (event) => { if (event.key === "Enter" && event.target === box) showFolder(part.number); });
  }
  return box;
}

/** What is in a folder, as boxes inside its box, below its name. */
const INNER_TOP = 19, INNER_MIN = 44;
function fillFolder(box, part, wide, tall) {
  if (!isFolder(part) || wide < INNER_MIN || tall < INNER_MIN + INNER_TOP) return;
  const inner = partsOf(part.number);
  if (inner.length === 0) return;
  const places = squares(inner.map((one) => one.size), 2, INNER_TOP, wide - 6, tall - INNER_TOP - 4);
  box.classList.add("filled");
  box.append(...inner.map((one, order) => boxOf(one, places[order], { class: "inner" })));
}

function showFolder(number) {
  const way = [];
  for (let at = number; at !== undefined; at = nodes[at].parent) way.unshift(at);
  byId("way").replaceChildren(...way.map((at) => {
    const button = element("button", { type: "button", "data-folder": at }, nodes[at].name || "(no name)");
    button.addEventListener("click", () => showFolder(at));
    return button;
  }));
  const shown = partsOf(number);
  const map = byId("treemap"), width = map.clientWidth, height = map.clientHeight;
  hover({ clientX: 0, clientY: 0 }, "");
  if (shown.length === 0) { map.replaceChildren(element("p", {}, "Nothing here occurs for the first time.")); return; }
  const places = squares(shown.map((part) => part.size), 0, 0, width, height);
  map.replaceChildren(...shown.map((part, order) => {
    const box = boxOf(part, places[order], {});
    box.style.background = part.number === undefined ? "var(--h)" : "var(--" + COLORS[order % 7] + ")";
    fillFolder(box, part, places[order][2], places[order][3]);
    return box;
  }));
  map.dataset.folder = number;
}
showFolder(0);
addEventListener("resize", () => showFolder(Number(byId("treemap").dataset.folder || 0)));
byId("folders").append(table(data.folders, [
  ["Stored", (row) => row.stored_bytes, bytes],
  ["New", (row) => row.first_bytes, bytes],
  ["Files", (row) => row.file_bytes, bytes],
  ["Number", (row) => row.files],
  ["Name", (row) => row.path],
]));
if (data.generations.length > 0) {
  byId("nights").hidden = false;
  const isDate = (seconds) => seconds !== null && Math.abs(seconds) < 8e12;
  byId("generations").append(table(data.generations, [
    ["Generation", (row) => row.generation],
    ["Time", (row) => (isDate(row.created) ? new Date(row.created * 1000).toISOString().slice(0, 16) + "Z" : "")],
    ["New", (row) => row.first_bytes, bytes],
    ["Stored", (row) => row.stored_bytes, bytes],
    ["Repeated", (row) => row.repeated_bytes, bytes],
    ["What costs most", (row) => row.folders.slice(0, 5).map((folder) => folder.path + " " + bytes(folder.stored_bytes)).join(", ")],
  ]));
}
