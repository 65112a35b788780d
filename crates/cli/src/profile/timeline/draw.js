const canvas = byId("canvas"), box = byId("lanes"), context = canvas.getContext("2d", { alpha: false });
const view = { from: 0, to: whole };
const state = { hovered: null, selected: null, isMatch: null, flow: 0 };
const SHADES = 16;
let palette, ground, image, pixels, line, ratio = 1, width = 0, height = 0, isAsked = false;

const pack = ([red, green, blue]) => (255 << 24 | blue << 16 | green << 8 | red) >>> 0;
const mixed = (rgb, other, share) => rgb.map((value, at) => Math.round(value * share + other[at] * (1 - share)));

/** The colors of all paints, from hardly covered to covered. What a search does not find is faint. */
function makePalette() {
  const raised = rgbOfHex(color("raised"));
  ground = pack(raised);
  palette = new Uint32Array(paintCount * SHADES);
  for (let paint = 0; paint < paintCount; paint += 1) {
    const isFaint = state.isMatch && !state.isMatch[paint], rgb = rgbOfPaint(paint), most = isFaint ? 0.2 : 1;
    for (let shade = 0; shade < SHADES; shade += 1) {
      palette[paint * SHADES + shade] = pack(mixed(rgb, raised, most * (0.3 + 0.7 * shade / (SHADES - 1))));
    }
  }
}

function makeLevels() {
  for (const row of allRows) row.levels = levelsOf(row, state.isMatch);
}

function resize() {
  ratio = Math.min(3, devicePixelRatio || 1);
  width = box.clientWidth;
  height = Math.max(60, Math.min(total, Math.floor(innerHeight * 0.66) - 2));
  canvas.style.height = height + "px";
  byId("rest").style.height = total - height + "px";
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  image = context.createImageData(canvas.width, canvas.height);
  pixels = new Uint32Array(image.data.buffer);
  line = new Uint32Array(canvas.width);
  ask();
}

/** Draws with the next frame. */
function ask() {
  if (isAsked) return;
  isAsked = true;
  requestAnimationFrame(() => { isAsked = false; draw(); });
}

/** Paints a row whose parts are narrower than a pixel. */
function paintLevel(level, perPixel) {
  const { width: part, paints, cover } = level, last = paints.length - 1;
  for (let x = 0; x < line.length; x += 1) {
    const time = view.from + x * perPixel, to = Math.min(last, Math.floor((time + perPixel) / part));
    let best = 0, sum = 0, count = 0, most = 0;
    for (let at = Math.max(0, Math.floor(time / part)); at <= to; at += 1) {
      let weight = cover[at];
      sum += weight; count += 1;
      if (weight > 0 && state.isMatch && state.isMatch[paints[at]]) weight += 256;
      if (weight > most) { most = weight; best = paints[at]; }
    }
    if (most > 0) line[x] = palette[best * SHADES + (sum / count * (SHADES - 1) / 255 | 0)];
  }
}

/** Paints a row span by span; of those within a pixel the longest. */
function paintSpans(row, perPixel) {
  const { starts, ends, paints } = row, columns = line.length;
  let span = countUntil(ends, view.from);
  while (span < starts.length && starts[span] < view.to) {
    const left = Math.max(0, (starts[span] - view.from) / perPixel), right = Math.min(columns, (ends[span] - view.from) / perPixel);
    let x = left | 0;
    if (x >= columns) return;
    if (right - left >= 1) {
      // A line between two spans shows that they are two.
      const to = Math.max(x + 1, right - left >= 4 ? (right | 0) - (right < columns ? 1 : 0) : right | 0);
      const packed = palette[paints[span] * SHADES + SHADES - 1];
      for (; x < to; x += 1) line[x] = packed;
      span += 1;
      continue;
    }
    const pixelEnd = view.from + (x + 1) * perPixel;
    let best = paints[span], most = -1, sum = 0, looked = 0;
    while (span < starts.length && starts[span] < pixelEnd && looked < 64) {
      const time = Math.min(ends[span], pixelEnd) - starts[span], weight = state.isMatch && state.isMatch[paints[span]] ? time + 1e12 : time;
      sum += time; looked += 1;
      if (weight > most) { most = weight; best = paints[span]; }
      if (ends[span] > pixelEnd) break;
      span += 1;
    }
    if (looked === 64) span = countUntilFrom(ends, pixelEnd, span);
    line[x] = palette[best * SHADES + (Math.min(1, sum / perPixel) * (SHADES - 1) | 0)];
    // The rest of a span that reaches into the next pixels.
    if (span < starts.length && starts[span] < pixelEnd && ends[span] > pixelEnd) {
      const to = Math.min(columns, (ends[span] - view.from) / perPixel | 0), packed = palette[paints[span] * SHADES + SHADES - 1];
      for (x += 1; x < to; x += 1) line[x] = packed;
      span += 1;
    }
  }
}

function paintRow(row, perPixel) {
  line.fill(ground);
  let level = null;
  if (row.levels) for (const one of row.levels) if (one.width <= perPixel) level = one;
  if (level) paintLevel(level, perPixel); else paintSpans(row, perPixel);
}

/** Copies the line to the pixels of a row; both in pixels of the page, from the top of all lanes. */
function putLine(top, tall, scrolled) {
  const from = Math.max(Math.round(AXIS * ratio), Math.round((top - scrolled) * ratio)), to = Math.min(canvas.height, Math.round((top + tall - scrolled) * ratio));
  for (let y = from; y < to; y += 1) pixels.set(line, y * line.length);
}

/** Marks of wake-ups, at the foot of a thread's title. */
function paintMoments(moments, perPixel) {
  line.fill(ground);
  let at = countUntil(moments.times, view.from - 1e-9), any = false;
  while (at < moments.times.length && moments.times[at] < view.to) {
    const x = (moments.times[at] - view.from) / perPixel | 0;
    line[Math.min(x, line.length - 1)] = palette[moments.names[at] * SHADES + SHADES - 1];
    any = true;
    const next = view.from + (x + 1) * perPixel;
    at = countUntilFrom(moments.times, next - 1e-9, at + 1);
  }
  return any;
}

function paintCount_(lane, scrolled, perPixel, rgb) {
  const { of, top } = lane, high = Math.round(COUNT * ratio), packed = pack(rgb), columns = line.length;
  const base = Math.round((top + TITLE + COUNT - scrolled) * ratio), clip = Math.round(AXIS * ratio);
  let at = countUntil(of.times, view.from);
  for (let x = 0; x < columns; x += 1) {
    const next = countUntilFrom(of.times, view.from + (x + 1) * perPixel, at);
    const value = largest(of, Math.max(0, at - 1), Math.max(next, 1));
    at = next;
    const tall = next === 0 ? 0 : Math.round(high * value / Math.max(1, of.most));
    for (let y = Math.max(clip, base - tall); y < Math.min(base, canvas.height); y += 1) pixels[y * columns + x] = packed;
  }
}

function draw() {
  const scrolled = box.scrollTop, perPixel = (view.to - view.from) / canvas.width;
  pixels.fill(ground);
  const isVisible = (top, tall) => top + tall > scrolled + AXIS && top < scrolled + height;
  const countRgb = mixed(rgbOfHex(color("a")), rgbOfHex(color("raised")), 0.7);
  for (const lane of lanes) {
    if (lane.moments && isVisible(lane.top, TITLE) && paintMoments(lane.moments, perPixel)) putLine(lane.top + TITLE - 4, 4, scrolled);
    if (lane.kind === "count" && isVisible(lane.top, TITLE + COUNT)) paintCount_(lane, scrolled, perPixel, countRgb);
    for (const row of lane.rows) {
      if (!isVisible(row.top, ROW)) continue;
      paintRow(row, perPixel);
      putLine(row.top, ROW, scrolled);
    }
  }
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.putImageData(image, 0, 0);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  drawArrows(scrolled);
  drawText(scrolled, isVisible);
  outline(state.hovered, scrolled, 1);
  outline(state.selected, scrolled, 2);
  drawAxis();
  canvas.dataset.from = Math.round(view.from);
  canvas.dataset.to = Math.round(view.to);
  askTotals();
}

const xOf = (time) => (time - view.from) / (view.to - view.from) * width;
const timeOf = (x) => view.from + x / width * (view.to - view.from);
const widths = new Map();
function widthOf(text) {
  let found = widths.get(text);
  if (found === undefined) widths.set(text, found = context.measureText(text).width);
  return found;
}

function drawText(scrolled, isVisible) {
  const ink = color("ink"), faint = color("faint");
  context.textBaseline = "middle";
  context.font = "11px system-ui, sans-serif";
  for (const lane of lanes) {
    if (!isVisible(lane.top, TITLE)) continue;
    const isGroup = lane.kind === "group", y = lane.top - scrolled + (isGroup ? 13 : 7);
    let x = 4;
    if (lane.kind === "thread") {
      context.fillStyle = cssOf(rgbOfPaint(names.length + lane.number));
      context.fillRect(4, y - 4, 8, 8);
      x = 16;
    }
    const title = lane.title + (lane.lost > 0 ? " (" + lane.lost + " early events are missing)" : "") + (lane.kind === "count" ? ", at most " + countText(lane, lane.of.most) : "");
    const wide = widthOf(title);
    context.fillStyle = color("raised");
    context.fillRect(x - 1, y - 6, wide + 4, 12);
    context.fillStyle = isGroup ? faint : ink;
    context.fillText(title, x, y);
  }
  const perPixel = (view.to - view.from) / width;
  context.fillStyle = isDark() ? "#101114" : "#ffffff";
  for (const row of allRows) {
    if (!isVisible(row.top, ROW) || row.top - scrolled < AXIS - 2) continue;
    if (row.levels && row.levels[0].width <= perPixel / ratio) continue;
    let span = countUntil(row.ends, view.from), drawn = 0, looked = 0;
    for (; span < row.starts.length && row.starts[span] < view.to && drawn < 60 && looked < 4000; span += 1, looked += 1) {
      const left = Math.max(0, xOf(row.starts[span])), wide = Math.min(width, xOf(row.ends[span])) - left;
      if (wide < 24) continue;
      const name = names[row.names[span]];
      if (name.kind === "idle" || name.kind === "results" || (state.isMatch && !state.isMatch[row.paints[span]])) continue;
      const text = row.lane.kind === "flow" ? threadOf(row, span).title : name.kind === "run" && row.flows[span] ? "flow " + row.flows[span] : name.text;
      if (widthOf(text) > wide - 6) continue;
      context.fillText(text, left + 3, row.top - scrolled + ROW / 2 + 0.5);
      drawn += 1;
    }
  }
}

const countText = (lane, value) => (lane.title.startsWith("bytes") ? bytes(value) : String(value));

function drawAxis() {
  context.fillStyle = color("raised");
  context.fillRect(0, 0, width, AXIS);
  context.fillStyle = color("faint");
  context.strokeStyle = color("line");
  const wanted = (view.to - view.from) / Math.max(2, width / 110), power = 10 ** Math.floor(Math.log10(wanted));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= wanted);
  context.beginPath();
  for (let time = Math.ceil(view.from / step) * step; time < view.to; time += step) {
    const x = Math.round(xOf(time)) + 0.5;
    context.moveTo(x, AXIS - 5); context.lineTo(x, AXIS);
    context.fillText(axisText(time, step), x + 3, 8);
  }
  context.moveTo(0, AXIS - 0.5); context.lineTo(width, AXIS - 0.5);
  context.stroke();
}

/** A time with as many digits as neighbors at this distance need. */
function axisText(time, step) {
  const [scale, unit] = time < 1e3 && step < 1e3 && whole < 1e4 ? [1, "ns"] : whole < 1e7 ? [1e3, "µs"] : whole < 1e10 ? [1e6, "ms"] : [1e9, "s"];
  const digits = Math.max(0, Math.min(9, -Math.floor(Math.log10(step / scale) + 1e-9)));
  return (time / scale).toFixed(digits) + " " + unit;
}

function outline(found, scrolled, thick) {
  if (!found || found.row.top === undefined) return;
  const { row, span } = found, left = xOf(row.starts[span]), right = xOf(row.ends[span]), y = row.top - scrolled;
  if (right < 0 || left > width || y < AXIS - ROW) return;
  context.lineWidth = thick;
  context.strokeStyle = color("ink");
  context.strokeRect(Math.max(-2, left) + 0.5, y + 0.5, Math.max(2, Math.min(width + 2, right) - Math.max(-2, left) - 1), ROW - 1);
  context.lineWidth = 1;
}
