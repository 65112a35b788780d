// What a span means, and who caused it.
const ENDS = ["it had no job left", "its slice was over", "a more urgent flow took the worker", "it gave the worker away"];
const CAUSE_STEPS = 5000;

/** The latest moment of a kind in a range of time that fits: {lane, time}. */
function latest(kind, after, until, fits) {
  let best = null;
  for (const lane of threads) {
    const { times, names: numbers } = lane.moments;
    let at = countUntil(times, until) - 1;
    for (let step = 0; step < CAUSE_STEPS && at >= 0 && times[at] >= after; step += 1, at -= 1) {
      if (kindOf(numbers[at]) !== kind || !fits(lane.moments, at)) continue;
      if (!best || times[at] > best.time) best = { lane, time: times[at] };
      break;
    }
  }
  return best;
}

/** Who woke an idle worker, or gave work to a flow: {lane, time, to}. */
function causeOf({ row, span }) {
  const kind = kindOf(row.names[span]), start = row.starts[span], end = row.ends[span];
  if (kind === "idle" && row.lane.worker !== null && row.lane.worker !== undefined) {
    const found = latest("wake", start, end, (moments, at) => moments.values[at] === row.lane.worker);
    return found && { ...found, to: end };
  }
  if (kind === "run" && row.flows[span] !== 0) {
    const flow = row.flows[span], turns = flowByNumber.get(flow)?.rows[0];
    const before = turns ? countUntil(turns.starts, start - 1e-9) - 1 : -1;
    // A flow that had more to do was ready from the end of its turn on.
    if (before >= 0 && turns.values[before] >= 2) return null;
    const found = latest("ready", before >= 0 ? turns.starts[before] : 0, start, (moments, at) => moments.flows[at] === flow);
    return found && { ...found, to: start };
  }
  return null;
}

const percentText = (part, all) => (all > 0 ? (100 * part / all).toFixed(1) + " %" : "-");
const rateText = (count, ns) => (ns > 0 ? bytes(count / ns * 1e9) + "/s" : "-");

function explain(found) {
  const { row, span } = found, name = names[row.names[span]], start = row.starts[span], took = row.ends[span] - start, value = row.values[span];
  const thread = threadOf(row, span), lines = [];
  const title = name.kind === "run" && row.flows[span] ? "flow " + row.flows[span] : name.text;
  lines.push(title + ": " + duration(took));
  lines.push("from " + axisText(start, 100) + " on " + thread.title);
  if (["stage", "read", "write"].includes(name.kind) && value > 0) lines.push(bytes(value) + ", " + rateText(value, took));
  if (name.kind === "idle") lines.push(value === 1 ? "it slept" : "it stayed awake");
  if (name.kind === "wait" && row.parents && row.parents[span] >= 0 && value === 1) lines.push("to write");
  if (name.kind === "lock") lines.push("taken in line " + value + " of the source");
  if (name.kind === "run") lines.push("it ended because " + (ENDS[value] || "of something unknown"));
  const cause = causeOf(found);
  if (cause) {
    const verb = name.kind === "idle" ? "woken by " : "given work by ";
    lines.push(verb + cause.lane.title + (row.lane === cause.lane ? " itself" : "") + " " + duration(Math.max(0, cause.to - cause.time)) + " before");
  }
  const parent = row.parents ? row.parents[span] : -1;
  if (parent >= 0) {
    const above = row.lane.rows[row.depth - 1], outer = names[above.names[parent]];
    lines.push("inside " + (outer.kind === "run" && above.flows[parent] ? "flow " + above.flows[parent] : outer.text));
  }
  return lines.join("\n");
}

/** The span, or the value of a count, at a place of the canvas. */
function at(x, y) {
  const down = y + box.scrollTop, time = timeOf(x), near = 3 * (view.to - view.from) / width;
  if (y < AXIS) return null;
  for (const lane of lanes) {
    if (lane.kind === "count" && down >= lane.top && down < lane.top + TITLE + COUNT) {
      const sample = countUntil(lane.of.times, time) - 1;
      return sample < 0 ? null : { text: lane.title + ": " + countText(lane, lane.of.values[sample]) + "\nat " + axisText(time, near) };
    }
    if (lane.moments && down >= lane.top && down < lane.top + TITLE) return momentAt(lane, time, near);
    for (const row of lane.rows) {
      if (down < row.top || down >= row.top + ROW) continue;
      let span = countUntil(row.starts, time) - 1, best = null, distance = near;
      for (const each of [span, span + 1]) {
        if (each < 0 || each >= row.starts.length) continue;
        const away = Math.max(0, row.starts[each] - time, time - row.ends[each]);
        if (away < distance || (away === 0 && best === null)) { distance = away; best = each; }
      }
      return best === null ? null : { row, span: best };
    }
  }
  return null;
}

function momentAt(lane, time, near) {
  const { times, names: numbers, values, flows: of } = lane.moments;
  const index = countUntil(times, time + near) - 1;
  if (index < 0 || times[index] < time - near) return null;
  const isWake = kindOf(numbers[index]) === "wake", target = laneOfWorker.get(values[index]);
  const text = isWake ? lane.title + " wakes " + (target ? target.title : "worker " + values[index]) + (of[index] ? " for flow " + of[index] : "")
    : lane.title + " gives work to flow " + of[index];
  return { text: text + "\nat " + axisText(times[index], 100) };
}

const textOf = (found) => (found ? found.text || explain(found) : "");

/** Arrows of wake-ups: all if there are few in view, else those of what the pointer is at. */
const ARROWS_MAX = 80;
function drawArrows(scrolled) {
  const arrows = [], apart = 8 * (view.to - view.from) / width;
  for (const lane of threads) {
    const { times, names: numbers, values } = lane.moments;
    const from = countUntil(times, view.from - 1e-9), to = countUntil(times, view.to);
    if (to - from > 4 * ARROWS_MAX) { arrows.length = ARROWS_MAX + 1; break; }
    let last = -Infinity;
    for (let index = from; index < to && arrows.length <= ARROWS_MAX; index += 1) {
      if (times[index] - last < apart) continue;
      const target = kindOf(numbers[index]) === "wake" && laneOfWorker.get(values[index]), row = target && target.rows[0];
      if (!row) continue;
      last = times[index];
      const next = countUntil(row.starts, times[index]);
      arrows.push([times[index], lane.top + TITLE - 2, next < row.starts.length ? row.starts[next] : times[index], row.top + ROW / 2, "accent"]);
    }
  }
  if (arrows.length > ARROWS_MAX) arrows.length = 0;
  for (const found of [state.hovered, state.selected]) {
    const cause = found && found.row && causeOf(found);
    if (cause) arrows.push([cause.time, cause.lane.top + TITLE - 2, cause.to, found.row.top + ROW / 2, "ink"]);
  }
  for (const [time, top, until, bottom, name] of arrows) {
    const x = xOf(time), y = Math.max(AXIS, top - scrolled), toX = xOf(until), toY = Math.max(AXIS, bottom - scrolled), angle = Math.atan2(toY - y, toX - x);
    if (Math.max(x, toX) < 0 || Math.min(x, toX) > width) continue;
    context.strokeStyle = context.fillStyle = color(name);
    context.beginPath();
    context.moveTo(x, y); context.lineTo(toX, toY);
    context.stroke();
    context.beginPath();
    context.moveTo(toX, toY);
    context.lineTo(toX - 6 * Math.cos(angle - 0.4), toY - 6 * Math.sin(angle - 0.4));
    context.lineTo(toX - 6 * Math.cos(angle + 0.4), toY - 6 * Math.sin(angle + 0.4));
    context.fill();
  }
}
