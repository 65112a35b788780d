// What is drawn from top to bottom: threads, flows, counts. A flow's turns are taken from the threads that ran it.
const TITLE = 15, ROW = 14, COUNT = 34, AXIS = 18, GROUP = 22, FLOWS_MAX = 200;
// Paints are names, and after them the threads: flows are colored by the thread that ran them.
const paintCount = names.length + threads.length;

function flowLanes() {
  const turns = new Map(), rows = threads.flatMap((thread) => thread.rows), next = new Int32Array(rows.length);
  // When the next turn of each row begins.
  const heads = new Float64Array(rows.length);
  const toRun = (at) => {
    const { names: numbers, flows: of, starts } = rows[at], count = starts.length;
    let span = next[at];
    while (span < count && (isRun[numbers[span]] === 0 || of[span] === 0)) span += 1;
    next[at] = span;
    heads[at] = span < count ? starts[span] : Infinity;
  };
  rows.forEach((_, at) => toRun(at));
  for (;;) {
    let best = 0;
    for (let at = 1; at < heads.length; at += 1) if (heads[at] < heads[best]) best = at;
    if (heads.length === 0 || heads[best] === Infinity) break;
    const row = rows[best], span = next[best], flow = row.flows[span];
    let found = turns.get(flow);
    if (!found) turns.set(flow, found = { rows: [], spans: [] });
    found.rows.push(row);
    found.spans.push(span);
    next[best] += 1;
    toRun(best);
  }
  const busiest = [...turns].sort((a, b) => b[1].spans.length - a[1].spans.length || a[0] - b[0]);
  const shown = busiest.slice(0, FLOWS_MAX).sort((a, b) => a[0] - b[0]);
  const lanes = shown.map(([flow, found]) => {
    const count = found.spans.length, row = { starts: new Float64Array(count), ends: new Float64Array(count), names: new Uint16Array(count),
      values: new Float64Array(count), flows: new Uint32Array(count).fill(flow), paints: new Uint16Array(count), depth: 0 };
    for (let at = 0; at < count; at += 1) {
      const from = found.rows[at], span = found.spans[at];
      // Helpers run parts of a flow at the same time; what is drawn does not overlap.
      row.starts[at] = at > 0 ? Math.max(from.starts[span], row.ends[at - 1]) : from.starts[span];
      row.ends[at] = Math.max(row.starts[at], from.ends[span]);
      row.names[at] = from.names[span];
      row.values[at] = from.values[span];
      row.paints[at] = names.length + from.lane.number;
    }
    const lane = { kind: "flow", flow, title: "flow " + flow + ", " + count + (count === 1 ? " turn" : " turns"), rows: [row] };
    row.lane = lane;
    return lane;
  });
  return [lanes, turns.size - lanes.length];
}
/** The thread on which a span of any row ran. */
const threadOf = (row, span) => (row.lane.kind === "flow" ? threads[row.paints[span] - names.length] : row.lane);

const [flows, flowsHidden] = flowLanes();
const flowByNumber = new Map(flows.map((lane) => [lane.flow, lane]));
const lanes = [];
const group = (title, members) => { if (members.length > 0) lanes.push({ kind: "group", title, rows: [] }, ...members); };
group("Threads", threads.filter((thread) => thread.rows.length > 0 || thread.moments.times.length > 0));
group("Flows, colored by the thread that ran them" + (flowsHidden > 0 ? " (" + flowsHidden + " with fewer turns are left out)" : ""), flows);
group("Counts", counts.map((count) => ({ kind: "count", title: count.title, of: count, rows: [] })));
let total = AXIS;
for (const lane of lanes) {
  lane.top = total;
  lane.rows.forEach((row, depth) => { row.top = lane.top + TITLE + depth * (ROW + 1); });
  total += lane.kind === "group" ? GROUP : lane.kind === "count" ? TITLE + COUNT : TITLE + lane.rows.length * (ROW + 1) + 4;
}
total += 4;
const allRows = lanes.flatMap((lane) => lane.rows);
const laneOfWorker = new Map(threads.filter((thread) => thread.worker !== null).map((thread) => [thread.worker, thread]));

// ---------------------------------------------------------------------------------- colors
const HUES = [215, 145, 275, 188, 52, 318, 95, 245, 165, 292, 75, 230];
const isDark = () => matchMedia("(prefers-color-scheme: dark)").matches;
const rgbOfHex = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
function rgbOfHsl(hue, saturation, light) {
  return [0, 8, 4].map((shift) => {
    const k = (shift + hue / 30) % 12;
    return Math.round(255 * (light - saturation * Math.min(light, 1 - light) * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
  });
}
/** Of threads. */
function rgbOfHue(number) {
  const round = Math.floor(number / HUES.length);
  return rgbOfHsl(HUES[number % HUES.length], 0.52 - 0.12 * (round % 2), (isDark() ? 0.66 : 0.46) + 0.08 * (round % 3));
}
const rgbOfStage = (name) => rgbOfHsl(stageHue(name), 0.52, isDark() ? 0.66 : 0.42);
const stagesByTime = names.map((_, name) => name).filter((name) => kindOf(name) === "stage").sort((a, b) => nameTimes[b] - nameTimes[a]);
const SPECIAL = { run: "h", idle: "line", lock: "e", wait: "b", read: "f", write: "g", wake: "accent", ready: "c", count: "a", results: "line" };

function rgbOfPaint(paint) {
  if (paint >= names.length) return rgbOfHue(paint - names.length);
  const kind = kindOf(paint);
  return kind === "stage" ? rgbOfStage(names[paint].text) : rgbOfHex(color(SPECIAL[kind]));
}
const cssOf = (rgb) => "rgb(" + rgb.join(",") + ")";

const KINDS = [["run", "a flow runs, outside of stages"], ["idle", "idle, or waits for results of others"], ["lock", "waits for a lock"], ["wait", "waits: for memory, a device"],
  ["read", "reads"], ["write", "writes"], ["wake", "wakes a worker (mark above a thread)"], ["ready", "gives a flow work (mark)"]];
function showLegend() {
  const item = (rgb, text) => { const mark = element("i"); mark.style.background = cssOf(rgb); return element("span", {}, mark, text); };
  const present = new Set(names.map((name) => name.kind));
  byId("legend").replaceChildren(...stagesByTime.slice(0, 12).map((name) => item(rgbOfPaint(name), names[name].text)),
    ...KINDS.filter(([kind]) => present.has(kind)).map(([kind, text]) => item(rgbOfHex(color(SPECIAL[kind])), text)));
}
