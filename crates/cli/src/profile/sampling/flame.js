// Zooms, searches and explains the boxes of a flame graph.
{
  "use strict";
  const flame = document.querySelector(".flame");
  const number = (box, name) => parseFloat(box.getAttribute(name));
  const boxes = [...flame.querySelectorAll(".box")].map((element) => ({
    element, text: element.querySelector("text"), about: element.querySelector("title").textContent,
    from: number(element, "x"), share: number(element, "width"), level: number(element, "y"),
  }));
  const find = (part) => flame.querySelector(".bar ." + part);
  let zoomed = boxes[0];

  /** Names are shown where there is room for some letters. */
  function names() {
    const pixels = flame.querySelector(".boxes").getBoundingClientRect().width / 100;
    for (const box of boxes) {
      box.text.style.display = number(box.element, "width") * pixels > 28 ? "" : "none";
    }
  }

  /** One box takes the whole width; those below it, too. */
  function zoom(to) {
    zoomed = to;
    const end = to.from + to.share, slack = 1e-4;
    for (const box of boxes) {
      const isAround = box.level < to.level && box.from <= to.from + slack && box.from + box.share >= end - slack;
      const isInside = box.level >= to.level && box.from >= to.from - slack && box.from + box.share <= end + slack;
      box.element.style.display = isAround || isInside ? "" : "none";
      box.element.classList.toggle("above", isAround);
      box.element.setAttribute("x", isAround ? "0%" : ((box.from - to.from) / to.share) * 100 + "%");
      box.element.setAttribute("width", isAround ? "100%" : (box.share / to.share) * 100 + "%");
    }
    find("reset").disabled = to === boxes[0];
    names();
  }

  /** Marks what contains a text, and says its share of the whole: boxes on marked ones do not count again. */
  function search(text) {
    const wanted = text.trim().toLowerCase();
    let share = 0, count = 0, covered = [];
    for (const box of boxes) {
      const isHit = wanted !== "" && box.about.toLowerCase().includes(wanted);
      box.element.classList.toggle("hit", isHit);
      if (!isHit) continue;
      count += 1;
      const isCovered = covered.some((under) => box.level > under.level && box.from >= under.from - 1e-4
        && box.from + box.share <= under.from + under.share + 1e-4);
      if (isCovered) continue;
      covered.push(box);
      share += box.share;
    }
    find("found").textContent = wanted === "" ? "" : count + " found: " + share.toFixed(1) + " %";
  }

  boxes.forEach((box) => box.element.addEventListener("click", () => zoom(box)));
  flame.addEventListener("mouseover", (event) => {
    const element = event.target.closest && event.target.closest(".box");
    const box = boxes.find((one) => one.element === element);
    if (box) flame.querySelector(".about").textContent = box.about;
  });
  find("search").addEventListener("input", (event) => search(event.target.value));
  find("reset").addEventListener("click", () => zoom(boxes[0]));
  addEventListener("resize", names);
  addEventListener("keydown", (event) => { if (event.key === "Escape") zoom(boxes[0]); });
  zoom(zoomed);
}
