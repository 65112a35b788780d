// Moving: wheel, drag, keys, touch.
const SPAN_MIN = 50;

function show(from, to) {
  const span = Math.min(whole, Math.max(SPAN_MIN, to - from));
  const start = Math.max(0, Math.min(whole - span, from));
  view.from = start;
  view.to = start + span;
  ask();
}

/** Closer (a factor below one) or wider around a place, 0 to 1 from the left. */
function zoom(factor, place = 0.5) {
  const span = view.to - view.from, next = Math.min(whole, Math.max(SPAN_MIN, span * factor)), fixed = view.from + span * place;
  show(fixed - next * place, fixed + next * (1 - place));
}
const pan = (share) => { const by = share * (view.to - view.from); show(view.from + by, view.to + by); };

canvas.addEventListener("wheel", (event) => {
  event.preventDefault();
  const lines = event.deltaMode === 1 ? 16 : 1;
  if (event.shiftKey) { box.scrollTop += (event.deltaY || event.deltaX) * lines; return; }
  if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) { pan(event.deltaX * lines / width); return; }
  zoom(Math.exp(event.deltaY * lines * 0.002), event.offsetX / width);
}, { passive: false });

const pointers = new Map();
let moved = 0;
canvas.addEventListener("pointerdown", (event) => {
  if (pointers.size === 0) moved = 0;
  pointers.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
  try { canvas.setPointerCapture(event.pointerId); } catch { /* A pointer that a script made. */ }
});
canvas.addEventListener("pointermove", (event) => {
  const last = pointers.get(event.pointerId), now = { x: event.offsetX, y: event.offsetY };
  if (!last) { look(event); return; }
  if (pointers.size === 1) {
    pan((last.x - now.x) / width);
    if (event.pointerType === "mouse") box.scrollTop += last.y - now.y;
    moved += Math.abs(last.x - now.x) + Math.abs(last.y - now.y);
  } else if (pointers.size === 2) {
    const other = [...pointers].find(([id]) => id !== event.pointerId)[1];
    const before = Math.max(8, Math.abs(last.x - other.x)), after = Math.max(8, Math.abs(now.x - other.x));
    pan(((last.x - now.x) / 2) / width);
    zoom(before / after, (now.x + other.x) / 2 / width);
    moved += 100;
  }
  pointers.set(event.pointerId, now);
  hover(event, "");
});
function release(event) {
  if (pointers.delete(event.pointerId) && event.type === "pointerup" && pointers.size === 0 && moved < 6) select(at(event.offsetX, event.offsetY));
}
canvas.addEventListener("pointerup", release);
canvas.addEventListener("pointercancel", release);
canvas.addEventListener("pointerleave", (event) => { state.hovered = null; hover(event, ""); ask(); });
canvas.addEventListener("dblclick", (event) => zoom(0.25, event.offsetX / width));

function look(event) {
  const found = at(event.offsetX, event.offsetY);
  state.hovered = found && found.row ? found : null;
  hover(event, textOf(found));
  ask();
}

function select(found) {
  state.selected = found && found.row ? found : null;
  byId("details").textContent = textOf(found) || "Nothing is selected.";
  ask();
}

/** Makes a span visible: large enough to be seen, and in the window. */
function reveal(found) {
  const { row, span } = found, start = row.starts[span], took = row.ends[span] - start, seen = view.to - view.from;
  const wanted = took / seen < 4 / width || took > seen ? Math.max(SPAN_MIN, took * 40) : seen;
  const middle = start + took / 2;
  if (wanted !== seen || start < view.from || row.ends[span] > view.to) show(middle - wanted / 2, middle + wanted / 2);
  if (row.top < box.scrollTop + AXIS || row.top + ROW > box.scrollTop + height) box.scrollTop = row.top - height / 2;
  select(found);
}

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target instanceof HTMLInputElement) return;
  const keys = {
    ArrowLeft: () => pan(-0.15), ArrowRight: () => pan(0.15), ArrowUp: () => { box.scrollTop -= 40; }, ArrowDown: () => { box.scrollTop += 40; },
    "+": () => zoom(0.6), "=": () => zoom(0.6), "-": () => zoom(1 / 0.6), 0: () => show(0, whole), "/": () => byId("find").focus(),
    n: () => jump(1), N: () => jump(-1), Escape: () => select(null),
  };
  if (!keys[event.key]) return;
  event.preventDefault();
  keys[event.key]();
});
byId("in").addEventListener("click", () => zoom(0.5));
byId("out").addEventListener("click", () => zoom(2));
byId("whole").addEventListener("click", () => show(0, whole));
box.addEventListener("scroll", ask);
