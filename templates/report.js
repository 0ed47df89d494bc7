"use strict";
(() => {
  const all = (selector, root = document) => Array.from(root.querySelectorAll(selector));

  // Dark or light by choice; without a choice the system decides.
  const theme = document.getElementById("theme");
  theme.hidden = false;
  theme.addEventListener("click", () => {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });

  // A button beside each command; selecting the text stays possible without it.
  for (const pre of all(".commands pre")) {
    const code = pre.querySelector("code");
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(code);
        button.textContent = "Selected";
      }
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
    pre.prepend(button);
  }

  // Paper cannot be unfolded.
  addEventListener("beforeprint", () => { for (const item of all("details")) item.open = true; });

  // Zoom of the timeline: every panel's viewBox is in seconds.
  const chart = document.querySelector("svg.timeline");
  if (!chart) return;
  const first = Number(chart.dataset.start), whole = Number(chart.dataset.span);
  let start = first, span = whole;
  const clock = (seconds) => {
    const s = Math.trunc(seconds), a = Math.abs(s), two = (n) => String(n).padStart(2, "0");
    return `${s < 0 ? "-" : ""}${Math.trunc(a / 3600)}:${two(Math.trunc(a % 3600 / 60))}:${two(a % 60)}`;
  };
  const draw = () => {
    span = Math.min(whole, Math.max(span, whole / 512));
    start = Math.min(first + whole - span, Math.max(first, start));
    for (const plot of all(".plot", chart)) plot.setAttribute("viewBox", `${start} 0 ${span} 100`);
    for (const tick of all(".tick", chart)) tick.textContent = clock(start + Number(tick.dataset.share) * span);
  };
  const moves = {
    in: () => { start += span / 4; span /= 2; },
    out: () => { start -= span / 2; span *= 2; },
    left: () => { start -= span / 2; },
    right: () => { start += span / 2; },
    all: () => { start = first; span = whole; },
  };
  const zoom = document.querySelector(".zoom");
  zoom.hidden = false;
  zoom.addEventListener("click", (event) => {
    const move = moves[event.target.dataset.zoom];
    if (move) { move(); draw(); }
  });
})();
