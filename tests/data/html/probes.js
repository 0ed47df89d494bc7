// Asked of a rendered report by tests/integration/test_chromium.py. Each gives a list of faults, empty when all is well.

function overflowing() {
  const out = [], wide = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > wide) out.push("the page itself");
  for (const item of document.querySelectorAll("main *, header *, nav *, footer *")) {
    // Regions that scroll on purpose, the insides of drawings and folded details have no layout of their own.
    if (item.closest(".scroll") && !item.matches(".scroll")) continue;
    if (item.closest("svg") && !item.matches("svg, text")) continue;
    if (item.closest("details:not([open])") && !item.matches("details, summary")) continue;
    const box = item.getBoundingClientRect();
    if (box.width && (box.right > wide + 1 || box.left < -1))
      out.push(`${item.tagName} ${Math.round(box.left)}..${Math.round(box.right)} ${item.textContent.slice(0, 40)}`);
  }
  return out;
}

function overlapping() {
  const out = [];
  for (const drawing of document.querySelectorAll("svg.pic")) {
    const texts = Array.from(drawing.querySelectorAll("text"), (t) => [t.textContent, t.getBoundingClientRect()]);
    texts.forEach(([a, p], i) => {
      for (const [b, q] of texts.slice(i + 1)) {
        const x = Math.min(p.right, q.right) - Math.max(p.left, q.left);
        const y = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
        if (x > 2 && y > 4) out.push(`${a} / ${b}`);
      }
    });
  }
  return out;
}

function faint() {
  const channels = (colour) => {
    const found = colour.match(/[\d.]+/g).map(Number);
    return found.length < 4 ? [...found, 1] : found;
  };
  const luminance = (colour) => {
    const [r, g, b] = colour.slice(0, 3).map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (item) => {
    for (; item; item = item.parentElement) {
      const colour = channels(getComputedStyle(item).backgroundColor);
      if (colour[3] > 0) return colour;
    }
    return [255, 255, 255, 1];
  };
  const out = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const item = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || item.closest("svg, script, style, .skip, meter")) continue;
    if (!item.getClientRects().length) continue;
    const a = luminance(channels(getComputedStyle(item).color)), b = luminance(ground(item));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) out.push(`${ratio.toFixed(2)} ${item.className} ${item.textContent.slice(0, 40)}`);
  }
  return out;
}

function focused() {
  const item = document.activeElement, style = getComputedStyle(item);
  return {
    nothing: item === document.body,
    skip: item.className === "skip",
    inMain: Boolean(item.closest("main")),
    top: item.getBoundingClientRect().top,
    outline: style.outlineStyle,
    text: item.textContent.slice(0, 40),
  };
}
