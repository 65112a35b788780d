const byId = (id) => document.getElementById(id);
const whole = Math.max(1, data.whole_ns);

function bytesOf(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const raw = atob(text), made = new Uint8Array(raw.length);
  for (let at = 0; at < raw.length; at += 1) made[at] = raw.charCodeAt(at);
  return made;
}

/** A column of numbers, each in groups of seven bits. */
function column(text, made) {
  const from = bytesOf(text);
  let at = 0;
  for (let index = 0; index < made.length; index += 1) {
    let byte = from[at++], value = byte & 127, scale = 128;
    while (byte > 127) { byte = from[at++]; value += (byte & 127) * scale; scale *= 128; }
    made[index] = value;
  }
  return made;
}

/** Makes of gaps the times, in place. */
function sums(gaps) {
  let time = 0;
  for (let index = 0; index < gaps.length; index += 1) { time += gaps[index]; gaps[index] = time; }
  return gaps;
}

/** The number of times that are at most `time`; the times rise. */
function countUntil(times, time) {
  let low = 0, high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] <= time) low = middle + 1; else high = middle;
  }
  return low;
}

/** Like `countUntil`, for a count that is at least `from` and probably little more. */
function countUntilFrom(times, time, from) {
  let low = from, step = 1;
  while (low + step <= times.length && times[low + step - 1] <= time) { low += step; step *= 2; }
  let high = Math.min(times.length, low + step);
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] <= time) low = middle + 1; else high = middle;
  }
  return low;
}

/** For each span of a row the number of the span around it, in the row above. */
function parentsOf(row, above) {
  const parents = new Int32Array(row.starts.length).fill(-1);
  let at = 0;
  for (let index = 0; index < parents.length; index += 1) {
    while (at + 1 < above.starts.length && above.starts[at + 1] <= row.starts[index]) at += 1;
    if (above.ends[at] >= row.ends[index] && above.starts[at] <= row.starts[index]) parents[index] = at;
  }
  return parents;
}

function decodeRow(packed, above) {
  const count = packed.count, starts = column(packed.gaps, new Float64Array(count)), ends = column(packed.lengths, new Float64Array(count));
  let time = 0;
  for (let index = 0; index < count; index += 1) { time += starts[index]; starts[index] = time; time += ends[index]; ends[index] = time; }
  const row = { starts, ends, names: column(packed.names, new Uint16Array(count)),
    values: column(packed.arguments, new Float64Array(count)), flows: column(packed.flows, new Uint32Array(count)) };
  row.paints = row.names;
  row.parents = above ? parentsOf(row, above) : null;
  return row;
}

const names = data.names;
const kinds = names.map((name) => name.kind), kindOf = (name) => kinds[name];
const isRun = Uint8Array.from(kinds, (kind) => (kind === "run" ? 1 : 0));
const threads = data.lanes.map((packed, number) => {
  const rows = [];
  for (const row of packed.rows) rows.push(decodeRow(row, rows[rows.length - 1]));
  const moments = { times: sums(column(packed.moments.gaps, new Float64Array(packed.moments.count))),
    names: column(packed.moments.names, new Uint16Array(packed.moments.count)),
    values: column(packed.moments.arguments, new Float64Array(packed.moments.count)),
    flows: column(packed.moments.flows, new Uint32Array(packed.moments.count)) };
  const made = { kind: "thread", number, title: packed.name, worker: packed.worker, lost: packed.lost, rows, moments };
  rows.forEach((row, depth) => { row.lane = made; row.depth = depth; });
  return made;
});
const counts = data.counts.map((packed) => {
  const times = sums(column(packed.gaps, new Float64Array(packed.count))), values = column(packed.changes, new Float64Array(packed.count));
  let value = 0, most = 0;
  for (let index = 0; index < values.length; index += 1) {
    const change = values[index];
    value += change % 2 ? -(change + 1) / 2 : change / 2;
    values[index] = value;
    if (value > most) most = value;
  }
  return { kind: "count", title: packed.name, times, values, most };
});
data.lanes = data.counts = null;

/** How often each name occurs, and how long it took in all. */
const nameCounts = new Float64Array(names.length), nameTimes = new Float64Array(names.length);
for (const { rows } of threads) {
  for (const row of rows) {
    for (let index = 0; index < row.names.length; index += 1) {
      nameCounts[row.names[index]] += 1;
      nameTimes[row.names[index]] += row.ends[index] - row.starts[index];
    }
  }
}
