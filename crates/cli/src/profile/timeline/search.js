// Finding spans by name, or by the number of a flow.
let wanted = { names: null, flow: 0 };

const matches = (row, span) => (wanted.flow > 0 ? row.flows[span] === wanted.flow && kindOf(row.names[span]) === "run" : wanted.names[row.names[span]] === 1);

function search(text) {
  const query = text.trim().toLowerCase(), flow = /^flow\s+(\d+)$/.exec(query);
  if (query === "") {
    wanted = { names: null, flow: 0 };
    state.isMatch = null;
    byId("found").textContent = "";
  } else {
    const found = Uint8Array.from(names, (name) => (name.text.toLowerCase().includes(query) ? 1 : 0));
    wanted = flow ? { names: Uint8Array.from(names, (name) => (name.kind === "run" ? 1 : 0)), flow: Number(flow[1]) } : { names: found, flow: 0 };
    state.isMatch = new Uint8Array(paintCount);
    state.isMatch.set(wanted.names);
    const count = flow ? (flowByNumber.get(wanted.flow)?.rows[0].starts.length || 0)
      : nameCounts.reduce((sum, each, name) => sum + (found[name] ? each : 0), 0);
    byId("found").textContent = count === 0 ? "nothing found" : count + " found";
    byId("found").dataset.count = count;
  }
  makePalette();
  makeLevels();
  ask();
}

/** Selects the match after (1) or before (-1) the selected span, by the time of the beginning. */
function jump(direction) {
  if (!wanted.names) return;
  const from = state.selected, isFrom = (row, span) => from && from.row === row && from.span === span;
  const edge = from ? from.row.starts[from.span] : direction > 0 ? -1 : Infinity;
  const order = (row) => threads.indexOf(row.lane) * 1000 + row.depth, place = from && from.row.lane.kind === "thread" ? order(from.row) : -1;
  let best = null, bestTime = 0;
  for (const thread of threads) {
    for (const row of thread.rows) {
      let span = direction > 0 ? countUntil(row.starts, edge - 1e-9) : countUntil(row.starts, edge) - 1;
      for (; span >= 0 && span < row.starts.length; span += direction) {
        const time = row.starts[span];
        if (best && (direction > 0 ? time >= bestTime : time <= bestTime)) break;
        if (isFrom(row, span) || !matches(row, span)) continue;
        // Of those that begin at the same time each is visited once.
        if (time === edge && (direction > 0 ? order(row) < place : order(row) > place)) continue;
        best = { row, span };
        bestTime = time;
        break;
      }
    }
  }
  if (best) reveal(best);
}
let searching = 0;
byId("find").addEventListener("input", (event) => { clearTimeout(searching); searching = setTimeout(() => search(event.target.value), 120); });
byId("find").addEventListener("keydown", (event) => {
  if (event.key === "Enter") { event.preventDefault(); clearTimeout(searching); search(event.target.value); jump(event.shiftKey ? -1 : 1); }
  if (event.key === "Escape") { event.target.value = ""; search(""); event.target.blur(); }
});
byId("next").addEventListener("click", () => jump(1));
byId("previous").addEventListener("click", () => jump(-1));
