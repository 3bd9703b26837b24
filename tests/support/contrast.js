// What is faint on a page: texts, and lines of drawings, whose contrast with what lies behind them is
// less than these, as WCAG computes it.
({ least_of_texts, least_of_lines }) => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const known = new Map();
  const read = colour => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const [red, green, blue, alpha] = canvas.getImageData(0, 0, 1, 1).data;
    return [red, green, blue, alpha / 255];
  };
  const rgba = colour => {
    if (!known.has(colour)) known.set(colour, read(colour));
    return known.get(colour);
  };
  const over = (front, alpha, back) => back.map((value, i) => front[i] * alpha + value * (1 - alpha));
  const luminance = colour => {
    const [red, green, blue] = colour.map(value => {
      const part = value / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const ancestors = element => {
    const found = [];
    for (let one = element; one; one = one.parentElement) found.unshift(one);
    return found;
  };
  const holds = (outer, inner) => {
    const [x, y] = [(inner.left + inner.right) / 2, (inner.top + inner.bottom) / 2];
    return outer.left <= x && x <= outer.right && outer.top <= y && y <= outer.bottom;
  };
  // What an SVG has painted before an element, at the middle of the element.
  const painted = (element, back) => {
    const place = element.getBoundingClientRect();
    for (const shape of element.closest("svg").querySelectorAll("rect, circle, ellipse, polygon, path")) {
      const style = getComputedStyle(shape);
      const before = shape.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING;
      if (!before || style.fill === "none" || !holds(shape.getBoundingClientRect(), place)) continue;
      back = over(rgba(style.fill), rgba(style.fill)[3] * style.fillOpacity * style.opacity, back);
    }
    return back;
  };
  // `paint` is the property with the colour.
  const measured = (element, paint) => {
    let [back, opacity] = [[255, 255, 255], 1];
    for (const one of ancestors(element)) {
      const style = getComputedStyle(one);
      opacity *= style.opacity;
      back = over(rgba(style.backgroundColor), rgba(style.backgroundColor)[3], back);
    }
    if (paint !== "color") back = painted(element, back);
    const style = getComputedStyle(element);
    const colour = rgba(style[paint]);
    const front = over(colour, colour[3] * opacity * (style[`${paint}Opacity`] ?? 1), back);
    const [light, dark] = [luminance(front), luminance(back)].sort((one, other) => other - one);
    return { ratio: (light + 0.05) / (dark + 0.05), front, back };
  };
  const faults = [];
  const compare = (name, least, { ratio, front, back }) => {
    const [one, other] = [front, back].map(colour => `rgb(${colour.map(Math.round)})`);
    if (ratio < least) faults.push(`${name}: ${ratio.toFixed(2)}, ${one} on ${other}`);
  };
  const shown = element => element.checkVisibility({ opacityProperty: true, visibilityProperty: true });
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const [text, element] = [texts.currentNode.data.trim(), texts.currentNode.parentElement];
    if (!text || !shown(element) || element.matches("script, style, title, noscript")) continue;
    const paint = element.closest("svg") ? "fill" : "color";
    compare(text.slice(0, 40), least_of_texts, measured(element, paint));
  }
  for (const line of document.querySelectorAll("svg :is(rect, path, line, polyline, polygon, circle)")) {
    if (getComputedStyle(line).stroke === "none" || !shown(line)) continue;
    compare(line.outerHTML.slice(0, 60), least_of_lines, measured(line, "stroke"));
  }
  return faults;
}
