"use strict";
// What all pages share. The data of the page is `data`.
const data = JSON.parse(document.getElementById("data").textContent);

/** An element with attributes and children; text is never read as markup. */
function element(name, attributes = {}, ...children) {
  const isSvg = ["svg", "g", "rect", "path", "line", "text", "circle", "title", "polyline"].includes(name);
  const made = isSvg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children.map((child) => (child instanceof Node ? child : String(child))));
  return made;
}

/** The value of a color of the page: "a" to "h", "ink", "faint", "line", "raised". */
function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
}

/** The hue of a stage: the same on every page. */
function stageHue(name) {
  if (name in stageHues) return stageHues[name];
  const sum = [...new TextEncoder().encode(name)].reduce((all, byte) => (all + byte) & 0xffff, 0);
  return (sum * 47) % 360;
}

/** The color of a stage (CSS). */
const stageColor = (name) => "hsl(" + stageHue(name) + " 52% var(--stage))";

/** Bytes in decimal units, three digits. */
function bytes(count) {
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let unit = 0;
  while (count >= 999.5 && unit + 1 < units.length) { count /= 1000; unit += 1; }
  return (unit === 0 ? Math.round(count) : count.toPrecision(3)) + " " + units[unit];
}

/** Nanoseconds in a fitting unit, three digits, as in the terminal. */
function duration(ns) {
  const units = ["ns", "µs", "ms", "s"];
  let unit = 0;
  while (ns >= 999.5 && unit + 1 < units.length) { ns /= 1000; unit += 1; }
  return (unit === 0 ? Math.round(ns) : ns >= 999.5 ? Math.round(ns) : ns.toPrecision(3)) + " " + units[unit];
}

/** Shows text beside the pointer; hides it without text. */
function hover(event, text) {
  let box = document.getElementById("hover");
  if (!box) { box = element("div", { id: "hover", role: "status" }); document.body.append(box); }
  box.style.display = text ? "block" : "none";
  if (!text) return;
  box.textContent = text;
  const right = event.clientX + 16 + box.offsetWidth > innerWidth;
  box.style.left = Math.max(4, right ? event.clientX - box.offsetWidth - 12 : event.clientX + 16) + "px";
  box.style.top = Math.min(event.clientY + 14, innerHeight - box.offsetHeight - 4) + "px";
}

/** A table. Columns are [title, value(row), text(value) or null]; numbers are on the right, and a click on a title sorts. */
function table(rows, columns) {
  const body = element("tbody");
  const fill = (sorted) => body.replaceChildren(...sorted.map((row) => element("tr", {}, ...columns.map(([, value, text]) => {
    const found = value(row);
    return element("td", typeof found === "number" ? { class: "number" } : {}, text ? text(found) : found);
  }))));
  const head = element("tr");
  columns.forEach(([title, value], column) => {
    const isNumber = rows.length > 0 && typeof value(rows[0]) === "number";
    const cell = element("th", { "data-sort": column, tabindex: 0, ...(isNumber ? { class: "number" } : {}) }, title);
    let down = !isNumber;
    const sort = () => {
      down = !down;
      const order = (a, b) => (a < b ? -1 : a > b ? 1 : 0) * (down ? 1 : -1);
      fill([...rows].sort((a, b) => order(value(b), value(a))));
    };
    cell.addEventListener("click", sort);
    cell.addEventListener("keydown", (event) => { if (event.key === "Enter") sort(); });
    head.append(cell);
  });
  fill(rows);
  return element("div", { class: "wide" }, element("table", {}, element("thead", {}, head), body));
}
