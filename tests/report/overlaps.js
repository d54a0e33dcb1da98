// Texts of the page that overlap or are cut, as sentences; boxes are shrunk to the ink of letters.
(paper => {
  const texts = [], found = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement, said = node.data.trim();
    if (!said || element.closest("title, style, script, textarea, defs, caption") || !element.checkVisibility()) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const rects = element.closest("text") && !element.closest("tspan")
      ? [element.closest("text").getBoundingClientRect()] : [...range.getClientRects()];
    const scrolls = element.closest(".scrolls, pre"), room = scrolls?.getBoundingClientRect();
    for (const r of rects) {
      if (r.width < 1) continue;
      const rim = 0.22 * r.height;
      const box = {left: r.left + 1, right: r.right - 1, top: r.top + rim, bottom: r.bottom - rim, said, element};
      if (room && !paper && r.right > room.right) continue;  // it can be scrolled to
      const edge = room ? room.right : innerWidth;
      if (r.left < -1 || r.right > edge + 1) found.push(`cut: ${said}`);
      texts.push(box);
    }
  }
  texts.sort((a, b) => a.top - b.top);
  for (let i = 0; i < texts.length; i++)
    for (let j = i + 1; j < texts.length && texts[j].top < texts[i].bottom; j++) {
      const a = texts[i], b = texts[j];
      if (a.element.closest("text") !== null && a.element.closest("text") === b.element.closest("text")) continue;
      if (a.left < b.right && b.left < a.right) found.push(`overlap: ${a.said} | ${b.said}`);
    }
  return found;
})
