// Rows of many spans have levels: the time is divided into equal parts, and of each part it is known which paint covers most of
// it, and how much is covered. Each further level has half as many parts.
const EXACT_MAX = 512, PARTS_MAX = 1 << 16, PARTS_MIN = 1 << 9;

function levelsOf(row, isPreferred) {
  const spans = row.starts.length;
  if (spans <= EXACT_MAX) return null;
  let parts = PARTS_MAX;
  while (parts > spans && parts > PARTS_MIN) parts /= 2;
  const width = whole / parts, paints = new Uint16Array(parts), cover = new Uint8Array(parts);
  const sums = new Float64Array(paintCount), seen = new Uint16Array(paintCount);
  let open = -1, seenCount = 0;
  const close = () => {
    let best = 0, most = -1, all = 0;
    for (let at = 0; at < seenCount; at += 1) {
      const paint = seen[at], time = sums[paint], weight = isPreferred && isPreferred[paint] ? 1e12 + time : time;
      all += time;
      if (weight > most) { most = weight; best = paint; }
      sums[paint] = 0;
    }
    if (seenCount > 0) { paints[open] = best; cover[open] = Math.max(1, Math.min(255, Math.round(255 * all / width))); }
    seenCount = 0;
  };
  for (let span = 0; span < spans; span += 1) {
    const from = row.starts[span], to = row.ends[span], paint = row.paints[span];
    let part = Math.min(parts - 1, Math.floor(from / width));
    do {
      if (part !== open) { close(); open = part; }
      if (sums[paint] === 0) seen[seenCount++] = paint;
      sums[paint] += Math.max(1e-3, Math.min(to, (part + 1) * width) - Math.max(from, part * width));
      part += 1;
    } while (part < parts && part * width < to);
  }
  close();
  const levels = [{ width, paints, cover }];
  while (levels[levels.length - 1].paints.length > PARTS_MIN) levels.push(half(levels[levels.length - 1], isPreferred));
  return levels;
}

function half(level, isPreferred) {
  const count = level.paints.length / 2, paints = new Uint16Array(count), cover = new Uint8Array(count);
  for (let part = 0; part < count; part += 1) {
    const a = 2 * part, b = a + 1, isFirst = level.cover[a] >= level.cover[b];
    let from = isFirst ? a : b;
    if (isPreferred) {
      const other = isFirst ? b : a;
      if (level.cover[other] > 0 && isPreferred[level.paints[other]] && !isPreferred[level.paints[from]]) from = other;
    }
    paints[part] = level.paints[from];
    cover[part] = (level.cover[a] + level.cover[b] + 1) >> 1;
  }
  return { width: level.width * 2, paints, cover };
}

/** The largest value in a range of a column; whole groups of 64 are looked up. */
function largest(of, from, to) {
  if (!of.groups) {
    of.groups = new Float64Array(Math.ceil(of.values.length / 64));
    for (let at = 0; at < of.values.length; at += 1) of.groups[at >> 6] = Math.max(of.groups[at >> 6], of.values[at]);
  }
  let most = 0, at = from;
  while (at < to) {
    if ((at & 63) === 0 && at + 64 <= to) { most = Math.max(most, of.groups[at >> 6]); at += 64; } else { most = Math.max(most, of.values[at]); at += 1; }
  }
  return most;
}
