// Figures: histograms that filter, the plot of two scores, the map.

import {edge, scale} from "./data.js";

const SVG = "http://www.w3.org/2000/svg", WIDTH = 240, HEIGHT = 56;
const RAMP = ["#2f6fd0", "#f08a24"];  // low and high, as in page.css
export const COLORS = ["#3d8fc4", "#c1666b", "#5b8e55", "#b8860b", "#7b5ea7", "#3a9d9d", "#a0522d", "#d46a9f"];

export function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

export function draw(tag, attributes, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

export const format = value => value === null || value === undefined ? "–"
  : typeof value === "number" ? value.toLocaleString("en", {maximumFractionDigits: 3}) : String(value);

// A list of values with their counts, each of which can be checked
export function drawChoices(column, counts, chosen, onChange) {
  const most = Math.max(...counts, 1);
  return make("ul", {className: "choices"}, ...column.values.map((value, i) => {
    const box = make("input", {type: "checkbox", checked: chosen.includes(value)});
    box.onchange = () => onChange(box.checked ? [...chosen, value] : chosen.filter(other => other !== value));
    const meter = make("meter", {max: most, value: counts[i]});
    meter.setAttribute("aria-hidden", "true");
    return make("li", {}, make("label", {}, box, make("bdi", {textContent: value})), meter, format(counts[i]));
  }));
}

// A histogram to brush with the mouse, and the same bounds as two fields for the keyboard
export function drawHistogram(column, counts, bounds, onChange) {
  const most = Math.max(...counts, 1), width = WIDTH / column.bins;
  const total = counts.reduce((sum, count) => sum + count, 0);
  const [low, high] = bounds || [null, null];
  const place = value => (scale(column, value) - column.low) / column.step * width;
  const isInside = i => (low === null || edge(column, i + 1) > low) && (high === null || edge(column, i) <= high);
  const bars = counts.map((count, i) => draw("rect", {
    x: i * width, width: Math.max(width - 1, .5), y: HEIGHT - HEIGHT * count / most, height: HEIGHT * count / most,
    class: isInside(i) ? "bar" : "bar out",
  }));
  const brush = draw("rect", {class: "brush", y: 0, height: HEIGHT, x: 0, width: 0});
  if (bounds) {
    const x = low === null ? 0 : Math.max(place(low), 0), end = high === null ? WIDTH : Math.min(place(high) + 1, WIDTH);
    brush.setAttribute("x", x);
    brush.setAttribute("width", Math.max(end - x, 1));
  }
  const label = `${column.label}: ${format(total)} comments from ${edge(column, 0)} to ${edge(column, column.bins)}`;
  const figure = draw("svg", {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img",
    "aria-label": label}, brush, ...bars);
  let start = null;
  const find = event => {
    const box = figure.getBoundingClientRect();
    const share = (event.clientX - box.left) / box.width;
    return Math.min(Math.max(Math.floor(share * column.bins), 0), column.bins - 1);
  };
  figure.onpointerdown = event => { start = find(event); figure.setPointerCapture(event.pointerId); };
  figure.onpointermove = event => {
    if (start === null) return;
    const [first, last] = [start, find(event)].sort((a, b) => a - b);
    brush.setAttribute("x", first * width);
    brush.setAttribute("width", (last - first + 1) * width);
  };
  figure.onpointerup = event => {
    const [first, last] = [start, find(event)].sort((a, b) => a - b), isClick = start === find(event);
    start = null;
    // without a bound at either end: a rounded one would leave out the lowest or the highest comment
    const low = first ? edge(column, first) : null, high = last + 1 < column.bins ? edge(column, last + 1, 1) : null;
    onChange((isClick && bounds) || (low === null && high === null) ? null : [low, high]);
  };
  const fields = ["from", "to"].map((name, i) => {
    const kind = column.kind === "date" ? "date" : "number";
    const value = (bounds || [null, null])[i];
    const field = make("input", {type: kind, step: "any", value: value === null ? "" : value});
    field.placeholder = edge(column, i ? column.bins : 0);
    field.setAttribute("aria-label", `${column.label} ${name}`);
    field.onchange = () => {
      const values = fields.map(({value}) => value === "" ? null : kind === "date" ? value : Number(value));
      onChange(values.every(value => value === null) ? null : values);
    };
    return field;
  });
  return make("div", {}, figure, make("p", {className: "bounds"}, fields[0], " to ", fields[1]));
}

export function drawCells(cells, a, b) {
  const most = Math.log(Math.max(...cells.map(cell => cell[2]), 1) + 1);
  const label = `Counts of comments by ${a.label} (across) and ${b.label} (up)`;
  const figure = draw("svg", {viewBox: `0 0 ${a.bins} ${b.bins}`, role: "img", "aria-label": label},
    draw("rect", {x: 0, y: 0, width: a.bins, height: b.bins, class: "frame"}));
  for (const [x, y, count] of cells) {
    const opacity = .15 + .85 * Math.log(count + 1) / most;
    const title = draw("title", {}, `${format(count)} comments`);
    figure.append(draw("rect", {x, y: b.bins - 1 - y, width: .94, height: .94, class: "bar", opacity}, title));
  }
  const ends = [`${format(edge(a, 0))} … ${format(edge(a, a.bins))}`, `${format(edge(b, 0))} … ${format(edge(b, b.bins))}`];
  return make("figure", {}, make("figcaption", {}, `↑ ${b.label}, ${ends[1]}`), figure,
    make("figcaption", {}, `→ ${a.label}, ${ends[0]}`));
}

// Draw the points; returns a function from a place on the canvas to the number of the nearest comment
export function drawMap(canvas, points, column, isShown) {
  const size = canvas.clientWidth, height = Math.round(Math.min(size * .7, innerHeight * .75)), ratio = window.devicePixelRatio || 1;
  Object.assign(canvas, {width: size * ratio, height: height * ratio});
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  const count = points.n.length;
  const places = points.n.map((_, i) => [
    6 + (size - 12) * points.x[i] / count, height - 6 - (height - 12) * points.y[i] / count,  // x and y are ranks
  ]);
  const values = points[column.name], shares = new Map();
  values.filter(value => value !== null).sort((a, b) => (a > b) - (a < b)).forEach((value, i) => shares.set(value, i / count));
  const color = value => {
    if (value === null) return "#9aa5b1";
    if (column.kind === "choice") return COLORS[column.values.indexOf(value) % COLORS.length];
    return `color-mix(in oklab, ${RAMP[1]} ${Math.round(100 * shares.get(value))}%, ${RAMP[0]})`;
  };
  const shown = points.n.map((_, i) => isShown(i));
  for (const pass of [false, true]) {
    places.forEach(([x, y], i) => {
      if (shown[i] !== pass) return;
      context.globalAlpha = pass ? .75 : .12;
      context.fillStyle = pass ? color(values[i]) : "#9aa5b1";
      context.fillRect(x - 1.5, y - 1.5, 3, 3);
    });
  }
  return (x, y) => {
    let nearest = null, least = 144;
    places.forEach(([px, py], i) => {
      const distance = (px - x) ** 2 + (py - y) ** 2;
      if (shown[i] && distance < least) [nearest, least] = [points.n[i], distance];
    });
    return nearest;
  };
}
