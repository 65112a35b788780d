// The table of what the visible part took, once the view rests.
let totalling = 0, totalled = "";

function askTotals() {
  const key = view.from + " " + view.to;
  if (key === totalled) return;
  clearTimeout(totalling);
  totalling = setTimeout(() => { totalled = key; showTotals(); }, 200);
}

function totals() {
  const rows = names.map((name, number) => ({ number, text: name.kind === "run" ? "flow, outside of stages" : name.text, kind: name.kind, count: 0, time: 0, own: 0, longest: 0, bytes: 0 }));
  for (const { rows: ofThread } of threads) {
    ofThread.forEach((row, depth) => {
      const above = depth > 0 ? ofThread[depth - 1] : null;
      for (let span = countUntil(row.ends, view.from); span < row.starts.length && row.starts[span] < view.to; span += 1) {
        const took = row.ends[span] - row.starts[span], seen = Math.min(view.to, row.ends[span]) - Math.max(view.from, row.starts[span]), sum = rows[row.names[span]];
        sum.count += 1;
        sum.time += seen;
        sum.own += seen;
        if (took > sum.longest) sum.longest = took;
        if (sum.kind === "stage" || sum.kind === "read" || sum.kind === "write") sum.bytes += took > 0 ? row.values[span] * seen / took : row.values[span];
        if (above && row.parents[span] >= 0) rows[above.names[row.parents[span]]].own -= seen;
      }
    });
  }
  return rows.filter((row) => row.count > 0).sort((a, b) => b.own - a.own);
}

function showTotals() {
  const rows = totals(), span = view.to - view.from, own = rows.reduce((sum, row) => sum + row.own, 0);
  byId("range").textContent = duration(span) + " from " + axisText(view.from, span / 100) + " on (" + percentText(span, whole) + " of the run), all threads. " +
    "Own time is without what is inside.";
  byId("totals").replaceChildren(table(rows, [
    ["Name", (row) => row.text],
    ["Times", (row) => row.count],
    ["Own time", (row) => row.own, duration],
    ["Share", (row) => (own > 0 ? row.own / own : 0), (share) => (100 * share).toFixed(1) + " %"],
    ["Time", (row) => row.time, duration],
    ["Average", (row) => row.time / row.count, duration],
    ["Longest", (row) => row.longest, duration],
    ["Bytes", (row) => row.bytes, (count) => (count > 0 ? bytes(count) : "-")],
    ["Rate", (row) => (row.time > 0 ? row.bytes / row.time : 0), (rate) => (rate > 0 ? bytes(rate * 1e9) + "/s" : "-")],
  ]));
}

function repaint() { makePalette(); showLegend(); ask(); }
makePalette();
makeLevels();
showLegend();
resize();
addEventListener("resize", resize);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
draw();
document.documentElement.dataset.ready = Math.round(performance.now());
