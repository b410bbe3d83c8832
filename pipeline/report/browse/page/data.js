// Where the rows come from: the server of `undertone browse`, or data.json beside the page of `undertone export site`.

const PAGE = 100, WORST = 50;

async function request(name, fields = {}, options = {}) {
  const response = await fetch(`api/${name}?${new URLSearchParams(fields)}`, options);
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error);
  return answer;
}

export function formatView({search, among, between, sort, descending}) {
  return JSON.stringify({search, among, between, sort, descending});
}

const server = {
  describe: () => request("meta"),
  rows: (view, page) => request("rows", {view: formatView(view), page}),
  bins: (view, columns) => request("bins", {view: formatView(view), columns: columns.join(",")}),
  thread: n => request("thread", {n}),
  compare: (view, a, b) => request("compare", {view: formatView(view), a, b}),
  map: day => request("map", {day}),
  judge: (n, score, rater) => request("label", {}, {
    method: "POST", body: JSON.stringify({n, score, rater}), headers: {"Content-Type": "application/json"},
  }),
  link: (view, format) => `api/export?${new URLSearchParams({format, view: formatView(view)})}`,
};

export function scale(column, value) {
  if (column.kind === "date") return Date.parse(value) / 864e5;
  return column.is_log ? Math.log2(value + 1) : value;
}

// The value at the lower edge of a bin; for whole numbers and days, `end` is 1 less of the next
export function edge(column, bin, end = 0) {
  const place = column.low + bin * column.step;
  if (column.kind === "date") return new Date((place - end) * 864e5).toISOString().slice(0, 10);
  return column.is_log ? Math.round(2 ** place) - 1 - end : Number(place.toPrecision(4));
}

function bin(column, value) {
  return Math.min(Math.max(Math.floor((scale(column, value) - column.low) / column.step), 0), column.bins - 1);
}

class Memory {
  constructor(content) {
    this.content = content;
    this.columns = Object.fromEntries(content.columns.map(column => [column.name, column]));
    this.all = content.rows;
    for (const row of this.all) row.folded = row.text.toLowerCase();
  }

  describe() { return {...this.content, count: this.all.length}; }

  select(view, without) {
    const words = (view.search || "").toLowerCase().split(/\s+/).filter(Boolean);
    const among = Object.entries(view.among || {}).filter(([name]) => name !== without);
    const between = Object.entries(view.between || {}).filter(([name]) => name !== without);
    return this.all.filter(row => words.every(word => row.folded.includes(word))
      && among.every(([name, values]) => values.includes(row[name]))
      && between.every(([name, [low, high]]) => row[name] !== null
        && (low === null || row[name] >= low) && (high === null || row[name] <= high)));
  }

  rows(view, page) {
    const name = view.sort || "n", sign = view.descending ? -1 : 1, rows = this.select(view);
    rows.sort((a, b) => (a[name] === null) - (b[name] === null)
      || (a[name] < b[name] ? -sign : a[name] > b[name] ? sign : a.n - b.n));
    return {rows: rows.slice(page * PAGE, (page + 1) * PAGE), count: rows.length};
  }

  bins(view, names) {
    return Object.fromEntries(names.map(name => {
      const column = this.columns[name], counts = new Array(column.bins).fill(0);
      for (const row of this.select(view, name)) {
        if (row[name] === null) continue;
        const place = column.kind === "choice" ? column.values.indexOf(row[name]) : bin(column, row[name]);
        if (place >= 0) counts[place] += 1;
      }
      return [name, counts];
    }));
  }

  thread(n) {
    const {thread, title} = this.all.find(row => row.n === n), text = this.content.articles[thread];
    const comments = this.all.filter(row => row.thread === thread);
    return {title, text, comments, count: comments.length};
  }

  rank(name) {
    const rows = this.all.filter(row => row[name] !== null).sort((a, b) => a[name] - b[name]), ranks = {};
    for (let first = 0, last; first < rows.length; first = last) {
      for (last = first; last < rows.length && rows[last][name] === rows[first][name];) last += 1;
      for (let i = first; i < last; i += 1) {  // the middle of those with the same value, as the server has it
        ranks[rows[i].n] = 50 * (first / Math.max(rows.length - 1, 1) + last / rows.length);
      }
    }
    return ranks;
  }

  compare(view, a, b) {
    const ofA = this.rank(a), ofB = this.rank(b), cells = new Map();
    const rows = this.select(view).filter(row => row[a] !== null && row[b] !== null)
      .map(row => ({n: row.n, text: row.text, a: row[a], b: row[b], rank_a: ofA[row.n], rank_b: ofB[row.n]}));
    for (const row of rows) {
      const key = `${bin(this.columns[a], row.a)},${bin(this.columns[b], row.b)}`;
      cells.set(key, (cells.get(key) || 0) + 1);
    }
    rows.sort((x, y) => Math.abs(y.rank_a - y.rank_b) - Math.abs(x.rank_a - x.rank_b) || x.n - y.n);
    return {
      cells: [...cells].map(([key, count]) => [...key.split(",").map(Number), count]), count: rows.length,
      rows: rows.slice(0, WORST), correlation: correlate(rows.map(row => [row.rank_a, row.rank_b])),
    };
  }

  map() {
    const names = ["n", "x", "y", ...Object.keys(this.columns)];
    return Object.fromEntries(names.map(name => [name, this.all.map(row => row[name])]));
  }
}

function correlate(pairs) {
  const mean = i => pairs.reduce((sum, pair) => sum + pair[i], 0) / pairs.length, a = mean(0), b = mean(1);
  const product = (i, j, p, q) => pairs.reduce((sum, pair) => sum + (pair[i] - p) * (pair[j] - q), 0);
  const value = product(0, 1, a, b) / Math.sqrt(product(0, 0, a, a) * product(1, 1, b, b));
  return Number.isFinite(value) ? Number(value.toFixed(3)) : null;
}

export async function openData() {
  const address = document.documentElement.dataset.source;
  return address ? new Memory(await (await fetch(address)).json()) : server;
}
