// The page: its state stands in the address after `#`, so that a view is a link; every change of it draws again.

import {COLORS, drawCells, drawChoices, drawHistogram, drawMap, format, make} from "./charts.js";
import {formatView, openData} from "./data.js";
import {showThread} from "./thread.js";

const find = selector => document.querySelector(selector);
const START = {search: "", among: {}, between: {}, sort: "n", descending: false, tab: "table", page: 0};
const CHARTS = ["implicitness", "day", "source", "likes", "length"], SHOWN = [...CHARTS.slice(0, 4), "percentile", "band"];
let data, meta, columns, state, keys = {}, findPoint = () => null, opener = null;

function readState() {
  let fields = {};
  try { fields = JSON.parse(decodeURIComponent(location.hash.slice(1)) || "{}"); } catch { report("this link is damaged"); }
  state = {...START, charts: CHARTS.filter(name => columns[name]), ...fields};
  const scores = meta.columns.filter(column => column.is_score && column.bins);
  state.a = columns[state.a] ? state.a : scores[0]?.name;
  state.b = columns[state.b] ? state.b : (scores[2] || scores[1])?.name;
  state.color = columns[state.color] ? state.color : state.a || "source";
  state.map = meta.maps.includes(state.map) ? state.map : state.map === "" ? "" : meta.maps[0] || "";
  state.charts = state.charts.filter(name => columns[name]);
}

function change(fields) {
  Object.assign(state, {page: 0}, fields);
  const rest = Object.entries(state).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(START[name]));
  history.replaceState(null, "", `#${encodeURIComponent(JSON.stringify(Object.fromEntries(rest)))}`);
  refresh();
}

function report(text, isError = true) {
  find("#status").textContent = text;
  find("#status").className = isError ? "error" : "";
}

// Run what draws a part; a later change makes its answer void
async function draw(part, key, load, show) {
  if (keys[part] === key) return;
  keys[part] = key;
  try {
    const answer = await load();
    if (keys[part] === key) show(answer);
  } catch (error) {
    keys[part] = null;
    report(error.message);
  }
}

function refresh() {
  const view = formatView(state);
  find("#search input").value = state.search;
  for (const button of document.querySelectorAll("[data-tab]")) {
    button.setAttribute("aria-pressed", button.dataset.tab === state.tab);
    find(`#${button.dataset.tab}`).hidden = button.dataset.tab !== state.tab;
  }
  for (const link of document.querySelectorAll("#exports a")) link.href = data.link(state, link.textContent);
  find("#previous").disabled = !state.page;
  const bins = `${formatView({...state, sort: "", descending: false})}${state.charts}`;
  draw("rows", `${view}${state.page}`, () => data.rows(state, state.page), showRows)
    .then(() => draw("bins", bins, () => data.bins(state, state.charts), showCharts));  // the rows do not wait for them
  const isPair = columns[state.a] && columns[state.b] && state.a !== state.b;
  find("#pair").hidden = !isPair;
  if (state.tab === "compare" && !isPair) {
    keys.compare = null;
    find("#summary").textContent = meta.columns.filter(column => column.is_score && column.bins).length > 1
      ? "Choose two different scores." : "A comparison needs two scores, and these comments have fewer. Add one of a day, for"
      + " example by `undertone score context-shift --day DAY` or `undertone judge --day DAY --llm NAME`. Then run the"
      + " command that made this page again.";
  }
  if (state.tab === "compare" && isPair) {
    const show = answer => showComparison(answer, state.a, state.b);
    draw("compare", `${view}${state.a} ${state.b}`, () => data.compare(state, state.a, state.b), show);
  }
  if (state.tab === "map") {
    const points = `points ${state.map}`;
    if (!keys[points]) report("placing the comments on the map …", false);
    keys[points] ||= data.map(state.map);
    draw("map", `${view}${state.map}${state.color}${find("#map").clientWidth}`, () => keys[points], showMap);
  }
  if (state.open === undefined) keys.thread = null;
  find("#thread").hidden = state.open === undefined;
  if (state.open !== undefined) draw("thread", state.open, () => data.thread(state.open), answer => showPane(answer, state.open));
}

// A line of a table that opens a thread
function makeOpener(row) {
  const text = make("button", {className: "text", dir: "auto", textContent: row.text});
  text.onclick = () => { opener = row.n; change({open: row.n, page: state.page}); };
  text.dataset.n = row.n;
  return text;
}

function showRows({rows, count}) {
  const shown = SHOWN.filter(name => columns[name]?.bins);
  const scores = meta.columns.filter(column => column.is_score && column.bins && !shown.includes(column.name)).slice(0, 3);
  const names = [...shown.slice(0, 1), ...scores.map(column => column.name), ...shown.slice(1)];
  find("#table thead").replaceChildren(make("tr", {}, make("th", {textContent: "comment", scope: "col"}), ...names.map(name => {
    const isSorted = state.sort === name || (state.sort === "n" && name === "implicitness");
    const isDescending = state.sort === "n" || state.descending;
    const head = make("button", {textContent: `${columns[name].label} ${isSorted ? isDescending ? "↓" : "↑" : ""}`});
    head.onclick = () => change({sort: name, descending: !(isSorted && isDescending)});
    const cell = make("th", {scope: "col"}, head);
    cell.setAttribute("aria-sort", isSorted ? isDescending ? "descending" : "ascending" : "none");
    return cell;
  })));
  find("#table tbody").replaceChildren(...rows.map(row => {
    const title = make("span", {className: "soft", dir: "auto", textContent: row.title});
    return make("tr", {}, make("td", {}, makeOpener(row), title), ...names.map(name => make("td", {
      className: columns[name].kind, textContent: format(row[name]),
    })));
  }));
  const first = state.page * 100;
  find("#range").textContent = count ? `${format(first + 1)} to ${format(first + rows.length)} of ${format(count)}` : "none";
  find("#next").disabled = first + rows.length >= count;
  report(`${format(count)} of ${format(meta.count)} comments`, false);
}

function showCharts(counts) {
  const active = document.activeElement?.getAttribute("aria-label");
  find("#charts").replaceChildren(...state.charts.map(name => {
    const column = columns[name], isChoice = column.kind === "choice", kind = isChoice ? "among" : "between";
    const filter = state[kind][name];
    const set = value => {
      const rest = {...state[kind]};
      delete rest[name];
      change({[kind]: value && value.length ? {...rest, [name]: value} : rest});
    };
    const head = make("legend", {}, column.label);
    if (filter) {
      const clear = make("button", {textContent: "clear", onclick: () => set(null)});
      clear.setAttribute("aria-label", `clear ${column.label}`);
      head.append(" ", clear);
    }
    const figure = isChoice ? drawChoices(column, counts[name], filter || [], set)
      : drawHistogram(column, counts[name], filter, set);
    return make("fieldset", {}, head, figure);
  }));
  if (active) [...document.querySelectorAll("#charts [aria-label]")].find(element => element.getAttribute("aria-label") === active)?.focus();
  const hidden = meta.columns.filter(column => column.bins && !state.charts.includes(column.name));
  find("#more").replaceChildren(make("option", {textContent: "add a column …", value: ""}),
    ...hidden.map(column => make("option", {textContent: column.label, value: column.name})));
}

function showComparison({cells, rows, count, correlation}, a, b) {
  find("#summary").textContent = `${format(count)} comments have both scores; their ranks correlate by ${format(correlation)}.`
    + " Ranks are percentiles among all comments with the score.";
  find("#scatter").replaceChildren(drawCells(cells, columns[a], columns[b]));
  const heads = ["comment", columns[a].label, columns[b].label, ...(data.judge ? ["who is right?"] : [])];
  find("#compare thead").replaceChildren(make("tr", {}, ...heads.map(textContent => make("th", {scope: "col", textContent}))));
  find("#compare tbody").replaceChildren(...rows.map(row => {
    const cell = (value, rank) => make("td", {className: "number", textContent: `${format(value)} (rank ${Math.round(rank)})`});
    const line = make("tr", {}, make("td", {}, makeOpener(row)), cell(row.a, row.rank_a), cell(row.b, row.rank_b));
    if (data.judge) {
      line.append(make("td", {}, ...[a, b].map(name => make("button", {
        textContent: columns[name].label, onclick: event => judge(event.target, row.n, name),
      }))));
    }
    return line;
  }));
}

async function judge(button, n, score) {
  const rater = find("[name=rater]");
  if (!rater.value.trim()) {
    rater.focus();
    return report("write your name as a rater first");
  }
  try {
    const {count} = await data.judge(n, score, rater.value.trim());
    for (const sibling of button.parentElement.children) sibling.setAttribute("aria-pressed", sibling === button);
    report(`saved; the project browse has ${format(count)} labels`, false);
  } catch (error) {
    report(error.message);
  }
}

function showMap(points) {
  const column = columns[state.color], among = Object.entries(state.among), between = Object.entries(state.between);
  const isShown = i => among.every(([name, values]) => values.includes(points[name][i])) && between.every(([name, [low, high]]) =>
    points[name][i] !== null && (low === null || points[name][i] >= low) && (high === null || points[name][i] <= high));
  findPoint = drawMap(find("#map canvas"), points, column, isShown);
  find("#legend").replaceChildren(...column.kind === "choice" ? column.values.map((value, i) => {
    const dot = make("i");
    dot.style.background = COLORS[i % COLORS.length];
    return make("span", {}, dot, make("bdi", {textContent: value}));
  }) : [make("i", {className: "low"}), "low ", make("i", {className: "high"}), "high"]);
  find("#near").textContent = state.map
    ? `Comments of ${state.map} that their encoder finds alike lie near each other; encoders stand side by side.`
    : "Comments with the same characters lie near each other.";
  report(`${format(points.n.length)} comments on the map`, false);
}

function showPane(answer, number) {
  const pane = find("#thread");
  showThread(pane, answer, number, meta.columns, {onOpen: n => change({open: n, page: state.page}), onClose: leaveThread});
  pane.focus({preventScroll: true});
  pane.scrollTop = 0;
}

function leaveThread() {
  change({open: undefined, page: state.page});
  document.querySelector(`section:not([hidden]) [data-n="${opener}"]`)?.focus();
}

function listen() {
  find("#search").onsubmit = event => {
    event.preventDefault();
    change({search: find("#search input").value.trim()});
  };
  find("#search input").oninput = event => { if (!event.target.value) change({search: ""}); };
  for (const button of document.querySelectorAll("[data-tab]")) {
    button.onclick = () => change({tab: button.dataset.tab, page: state.page});
  }
  find("#previous").onclick = () => change({page: state.page - 1});
  find("#next").onclick = () => change({page: state.page + 1});
  find("#clear").onclick = () => change({search: "", among: {}, between: {}});
  find("#more").onchange = event => change({charts: [...state.charts, event.target.value], page: state.page});
  for (const [name, names] of [["a", "is_score"], ["b", "is_score"], ["color", "bins"]]) {
    const options = meta.columns.filter(column => column[names] && column.bins);
    const field = find(`select[name=${name}]`);
    field.replaceChildren(...options.map(column => make("option", {textContent: column.label, value: column.name})));
    field.value = state[name];
    field.onchange = () => change({[name]: field.value, page: state.page});
  }
  const maps = [...meta.maps, ""].map(day => make("option", {textContent: day ? `encoder, ${day}` : "characters, all days", value: day}));
  find("select[name=map]").replaceChildren(...maps);
  find("select[name=map]").value = state.map;
  find("select[name=map]").onchange = event => change({map: event.target.value, page: state.page});
  find("#exports").onclick = ({target}) => {
    const command = "undertone label export --project NAME --ids comment_ids.csv";
    if (target.textContent === "to label") report(`to give these comments to raters, run: ${command}`, false);
  };
  find("#map canvas").onclick = event => {
    const box = event.target.getBoundingClientRect(), n = findPoint(event.clientX - box.left, event.clientY - box.top);
    if (n !== null) change({open: n, page: state.page});
  };
  document.onkeydown = event => { if (event.key === "Escape" && !find("#thread").hidden) leaveThread(); };
  window.onhashchange = () => { readState(); refresh(); };
  window.onresize = () => { if (state.tab === "map") refresh(); };
}

try {
  data = await openData();
  meta = await data.describe();
  columns = Object.fromEntries(meta.columns.map(column => [column.name, column]));
  readState();
  if (matchMedia("(max-width: 800px)").matches) find("#filters").open = false;
  find("#exports").append(...meta.exports.map(format => make("a", {textContent: format, download: ""})));
  find("#exports").hidden = !meta.exports.length;
  find("#notes").textContent = meta.notes.join(" ");
  find("#notes").hidden = !meta.notes.length;
  find("#judging").hidden = !data.judge;
  listen();
  refresh();
} catch (error) {
  report(error.message);
}
