"""Ask a corpus, the DuckDB file that `warehouse` makes: what a page shows, as values or a file of JSON.

A view (which comments, in which order) stands as JSON in the address of the page. Column names in SQL are those of the
corpus itself; all else is a parameter. What cannot be seen in a text is shown.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast
from urllib.parse import unquote

import duckdb
import numpy as np
import polars as pl

from pipeline.errors import BadInput, Missing, check_name
from pipeline.io.visible import escape_invisible

NUMBER, DATE, CHOICE = "number", "date", "choice"
_KINDS = {NUMBER: "double", DATE: "date", CHOICE: "varchar"}
_PAGE_FIELDS = ("tab", "page", "charts", "a", "b", "color", "map", "open")  # of its state, beside the view


class Column(NamedTuple):
    """A column that a page filters and sorts by."""

    name: str
    label: str
    kind: str  # number, date or choice
    scale: str  # the SQL that makes a number of a value, by which it has its bin
    is_score: bool = False
    low: Any = None  # of the bins
    step: float = 1.0
    bins: int = 0
    is_log: bool = False  # bins double in width, from 0
    values: tuple[str, ...] = ()  # of a choice


class View(NamedTuple):
    search: str = ""  # words that are all in the text, in any case
    among: Mapping[str, list[str]] = {}  # values of choices
    between: Mapping[str, tuple[Any, Any]] = {}  # lowest and highest number or date, None without a bound
    sort: str = "n"
    descending: bool = False

    @property
    def order(self) -> str:
        return f"{self.sort}{' desc' * self.descending}, n"


def decode_view(text: str) -> str:
    """Return the JSON of a view that may be the address of a page, or the part of it after `#`."""
    return unquote(text.rpartition("#")[2]) if text.startswith(("http", "#", "%")) else text


def parse_view(text: str, columns: Mapping[str, Column]) -> View:
    """Parse a view from JSON, as it is or as the part of an address after `#`; other fields are the page's own."""
    text = decode_view(text)
    try:
        fields = json.loads(text or "{}")
        # a text is refused, as it would be a list of its letters
        among = {name: [*map(str, list.copy(values))] for name, values in fields.get("among", {}).items()}
        between = {name: (low, high) for name, (low, high) in fields.get("between", {}).items()}
        search, sort = (str(fields.get(name) or "") for name in ("search", "sort"))
        view = View(search, among, between, sort or "n", bool(fields.get("descending")))
    except (ValueError, TypeError, AttributeError) as error:
        expected = '{"search": "words", "among": {"lang": ["zh"]}, "between": {"likes": [10, null]}}'
        raise BadInput(f"this is no view: {text[:80]!r}; expected JSON such as {expected}") from error
    for name in fields:
        check_name("field of a view", name, (*View._fields, *_PAGE_FIELDS))
    names = {kind: [name for name, column in columns.items() if column.kind == kind] for kind in _KINDS}
    for name in [*among, *between, view.sort]:
        fitting = (
            names[CHOICE] if name in among else names[NUMBER] + names[DATE] if name in between else ["n", *columns]
        )
        check_name("column of this kind", name, fitting)
    return view


def build_condition(view: View, columns: Mapping[str, Column], without: str = "") -> tuple[str, list[Any]]:
    """Build the condition of a view as SQL with its values; `without` is a column whose filter is left out."""
    terms: list[tuple[str, Any]] = [("contains(folded, lower(?))", word) for word in view.search.split()]
    terms += [(f"list_contains(?::varchar[], {name})", view.among[name]) for name in view.among if name != without]
    for name, bounds in view.between.items():
        for sign, bound in zip((">=", "<="), bounds, strict=True):
            if name != without and bound is not None:
                terms.append((f"{name} {sign} ?::{_KINDS[columns[name].kind]}", bound))
    return " and ".join(["true", *(term for term, _ in terms)]), [value for _, value in terms]


PAGE = 100  # rows
BINS = 40
POINTS = 20_000  # of the map
_WORST = 50  # disagreements
_MOST_REPLIES = 500
_MOST_VALUES = 50  # of a choice
_COUNTS = ("likes", "length")  # many small ones and a few large
_PLAIN = {"source": CHOICE, "lang": CHOICE, "band": CHOICE, "day": DATE}
_PLAIN |= dict.fromkeys((*_COUNTS, "percentile"), NUMBER)


class Corpus:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._points: dict[str, dict[str, list[Any]]] = {}  # by day; "": of all days, by characters
        self._con = duckdb.connect(str(path), read_only=True, config={"memory_limit": "1GB"})
        self._con.execute("set enable_external_access = false; set default_null_order = 'nulls_last'")
        self._con.execute("set lock_configuration = true")
        self.select("select max(length(folded)) from comments")  # so that the first search finds the texts in memory
        self.columns = self._list_columns()
        self.names = ", ".join(self.columns)
        self.scores = [column.name for column in self.columns.values() if column.is_score]

    def select(self, sql: str, values: Any = ()) -> pl.DataFrame:
        """Return the rows of a query; Missing if an erasure or a newer corpus removed this one."""
        if not self.path.exists():
            raise Missing("the tables changed and this copy was removed; stop `undertone browse` and start it again")
        with self._con.cursor() as cursor:
            try:
                return cast("pl.DataFrame", pl.from_arrow(cursor.sql(sql, params=list(values)).to_arrow_table()))
            except (duckdb.ConversionException, duckdb.InvalidInputException) as error:
                raise BadInput(f"a value of the filter is no number or day: {error}") from error

    def _list_columns(self, numbers: list[int] | None = None) -> dict[str, Column]:
        """List the columns to filter, sort and draw by, with their bins, by name; of some comments or of all."""
        selection = "(select * from comments where n in (select unnest(?::int[])))"
        comments, values = ("comments", []) if numbers is None else (selection, [numbers])
        labels = dict(self.select("select name, label from scores").iter_rows())
        columns = {}
        for name, kind in {**dict.fromkeys(labels, NUMBER), **_PLAIN}.items():
            scale = f"log2({name} + 1)" if name in _COUNTS else name
            scale = f"({name} - date '1970-01-01')" if kind == DATE else scale
            column = Column(name, labels.get(name, name), kind, scale, name in labels, is_log=name in _COUNTS)
            if kind == CHOICE:
                sql = f"select {name} from {comments} where {name} is not null group by 1 order by count(*) desc, 1"
                choices = self.select(f"{sql} limit {_MOST_VALUES}", values).to_series().to_list()
                columns[name] = column._replace(values=tuple(choices), bins=len(choices))
                continue
            low, high = self.select(f"select min({scale}), max({scale}) from {comments}", values).row(0)
            if low is not None:
                columns[name] = column._replace(**_choose_bins(column, float(low), float(high)))
        return columns

    def describe(self, numbers: list[int] | None = None) -> dict[str, Any]:
        """Describe all comments or those with some numbers: columns, count, days with a map, where models are weak."""
        notes = self.select("select note from notes order by 1").to_series().to_list()
        columns_to_list = (self.columns if numbers is None else self._list_columns(numbers)).values()
        columns = [{**column._asdict(), "label": escape_invisible(column.label)} for column in columns_to_list]
        sql = "select distinct day::varchar from comments where projection is not null order by 1 desc"
        maps = self.select(sql).to_series().to_list()
        count = self.select("select count(*) from comments").item() if numbers is None else len(numbers)
        return {"columns": columns, "count": count, "notes": notes, "maps": maps}

    def list_rows(self, view: View, page: int = 0) -> dict[str, Any]:
        """List a page of the rows of a view, and count all its rows."""
        condition, values = build_condition(view, self.columns)
        hits = f"with hits as materialized (select n, {view.sort} from comments where {condition})"
        page_ids = f"select n from hits order by {view.order} limit {PAGE} offset ?"
        columns = f"n, text, title, {self.names}, (select count(*) from hits) as count"
        sql = f"{hits} select {columns} from comments where n in ({page_ids}) order by {view.order}"
        rows = self.select(sql, [*values, page * PAGE])
        return {"rows": list_dicts(rows.drop("count")), "count": rows["count"][0] if rows.height else 0}

    def count_bins(self, view: View, names: list[str]) -> dict[str, list[int]]:
        """Count the rows of a view by bin of some columns; the filter of a column does not count for itself."""
        for name in names:
            check_name("column", name, self.columns)
        filtered = {*view.among, *view.between}
        groups = [[name for name in names if name not in filtered], *([name] for name in names if name in filtered)]
        counts = {}
        for group in filter(None, groups):
            condition, values = build_condition(view, self.columns, group[0])
            bins = ", ".join(f"histogram({_bin(self.columns[name])})" for name in group)
            row = self.select(f"select {bins} from comments where {condition}", values).row(0)
            for name, by_bin in zip(group, row, strict=True):
                places = self.columns[name].values or range(self.columns[name].bins)
                counts[name] = [(by_bin or {}).get(place, 0) for place in places]
        return counts

    def read_thread(self, number: int) -> dict[str, Any]:
        """Read the thread of a comment: its article, and its comments; of many, the first and those that it answers."""
        thread = self.select("select thread from comments where n = ?", [number])
        if not thread.height:
            raise Missing(f"there is no comment {number}")
        comments = "comments as materialized (select * from main.comments where thread = ?)"
        line = "line as (select n, parent from comments where n = ? union "
        line += "select c.n, c.parent from comments as c join line on c.n = line.parent)"
        first = "select * from comments order by n not in (select n from line), created_at, n"
        sql = f"with recursive {comments}, {line} select n, parent, text, words, {self.names} from ({first}"
        rows = self.select(f"{sql} limit {_MOST_REPLIES}) order by created_at, n", [thread.item(), number])
        count = "(select count(*) from comments where thread = t.thread) as count"
        article = self.select(f"select title, text, {count} from threads as t where thread = ?", [thread.item()])
        return {**list_dicts(article)[0], "comments": list_dicts(rows)}

    def compare(self, view: View, a: str, b: str) -> dict[str, Any]:
        """Compare two scores: counts by cell, correlation of ranks among all with the score, largest disagreements."""
        x, y = (_bin(self.columns[check_name("score", name, self.scores)]) for name in (a, b))
        condition, values = build_condition(view, self.columns)
        ranks = f"rank_{a}::double as rank_a, rank_{b}::double as rank_b"
        rows = f"(select n, text, {a} as a, {b} as b, {x} as x, {y} as y, {ranks} from comments where {condition})"
        rows += " where a is not null and b is not null"
        cells = self.select(f"select x, y, count(*) from {rows} group by all", values).rows()
        worst = self.select(f"select * from {rows} order by abs(rank_a - rank_b) desc, n limit {_WORST}", values)
        value, count = self.select(f"select corr(rank_a, rank_b), count(*) from {rows}", values).row(0)
        correlation = None if value is None or np.isnan(value) else round(value, 3)
        return {"cells": cells, "rows": list_dicts(worst), "correlation": correlation, "count": count}

    def place_points(self, day: str = "") -> dict[str, list[Any]]:
        """Place a sample of comments on a map: n, x, y, and all columns.

        Those of a day are near others that their encoder finds alike (`projections`). Without a day, those of all days
        are near others with the same characters.
        """
        condition, place = ("day = ?::date and projection is not null", scale_places) if day else ("true", place_texts)
        sql = f"select n, text, x, y, projection, {self.names} from comments where {condition}"
        sample = self.select(f"{sql} order by hash(n) limit {POINTS}", [day] if day else ())
        if day not in self._points:
            points = place(sample).drop("text", "projection").with_columns(pl.col(pl.Date).cast(pl.String))
            self._points[day] = points.to_dict(as_series=False)
        return self._points[day]

    def select_rows(self, view: View, limit: int | None = None, ids: str = "thread_id, comment_id") -> pl.DataFrame:
        """Select the rows of a view, or the first of them, with `ids` and all that is not personal."""
        condition, values = build_condition(view, self.columns)
        sql = f"select {ids}, title, text, {self.names} from comments where {condition} order by {view.order}"
        return self.select(sql + (f" limit {limit}" if limit else ""), values)

    def read_rank(self, number: int, score: str) -> tuple[dict[str, Any], float]:
        """Read the key of a comment, and the percentile that a score gives it."""
        rank = f"rank_{check_name('score', score, self.scores)}"
        key = "source, day, thread_id, comment_id"
        sql = f"select {key}, {rank} as rank from comments where n = ? and rank is not null"
        rows = self.select(sql, [number]).to_dicts()
        if not rows:
            raise Missing(f"there is no comment {number} with a score {score}")
        return rows[0], rows[0].pop("rank")


def _choose_bins(column: Column, low: float, high: float) -> dict[str, Any]:
    if column.is_log:
        return {"low": 0, "bins": int(high) + 1}
    if column.kind == DATE:
        step = -(-(high - low + 1) // BINS)
        return {"low": low, "step": step, "bins": int(-(-(high - low + 1) // step))}
    return {"low": low, "step": (high - low) / BINS or 1.0, "bins": BINS if high > low else 1}


def _bin(column: Column) -> str:
    """The SQL for the bin of a column's value, from 0; for a choice, the value."""
    if column.kind == CHOICE:
        return column.name
    place = f"least(greatest(floor(({column.scale} - {column.low}) / {column.step}), 0), {column.bins - 1})::int"
    return f"case when {column.name} is not null then {place} end"  # `least` passes over null


def list_dicts(rows: pl.DataFrame) -> list[dict[str, Any]]:
    """List rows for JSON: days as text, and what cannot be seen in a text shown."""
    dicts = rows.with_columns(pl.col(pl.Date).cast(pl.String)).to_dicts()
    for row in dicts:
        row |= {name: escape_invisible(row[name] or "") for name in ("title", "text") if name in row}
        for word in row.get("words") or ():
            word["word"] = escape_invisible(word["word"])
    return dicts


def place_texts(rows: pl.DataFrame) -> pl.DataFrame:
    """Add x and y to rows by their text: the ranks on the second and third singular axis of its n-grams.

    The first axis is the length; by values instead of ranks, most texts would lie on each other.
    """
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer

    places = np.zeros((rows.height, 3))
    if rows.height > places.shape[1]:
        hashing = HashingVectorizer(analyzer="char", ngram_range=(1, 3), n_features=1 << 14, alternate_sign=False)
        features = TfidfTransformer(sublinear_tf=True).fit_transform(hashing.transform(rows["text"]))
        places = TruncatedSVD(places.shape[1], random_state=0).fit_transform(features)
    x, y = places[:, 1:].argsort(axis=0).argsort(axis=0).T
    return rows.with_columns(x=pl.Series(x), y=pl.Series(y))


def scale_places(rows: pl.DataFrame) -> pl.DataFrame:
    """Scale x and y to the number of rows; those of different projections stand side by side, each as wide as many."""
    x, y = (((pl.col(name) - pl.col(name).min()) / (pl.col(name).max() - pl.col(name).min())) for name in "xy")
    x, y = (share.over("projection").fill_nan(0.5) for share in (x, y))
    start, count = pl.col("projection").rank("min") - 1, pl.len().over("projection")
    return rows.with_columns(x=start + 0.97 * x * count, y=y * pl.len())


_FOLDER = Path(__file__).parent / "page"
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'"
)


def read_page(*, is_site: bool) -> dict[str, bytes]:
    """Read the files of the page by name; that of a site reads its rows from data.json, not from a server."""
    files = {path.name: path.read_bytes() for path in sorted(_FOLDER.iterdir()) if path.suffix in TYPES}
    source = b"data.json" if is_site else b""
    files["index.html"] = files["index.html"].replace(b"{source}", source).replace(b"{policy}", POLICY.encode())
    return files


def write_site(corpus: Corpus, view: View, limit: int, folder: Path) -> int:
    """Write the page and the first rows of a view into a folder; return the number of rows.

    Ids of the platform are left out: comments and threads have numbers. There are no user ids in a corpus. No
    count, value, bound or reply is of a comment that is not selected.
    """
    rows = place_texts(corpus.select_rows(view, limit, "n, parent, thread, words"))
    rows = rows.with_columns(pl.when(pl.col("parent").is_in(rows["n"].implode())).then(pl.col("parent")))
    sql = "select thread, text from threads where list_contains(?::int[], thread)"
    articles = corpus.select(sql, [rows["thread"].unique().to_list()])
    texts = {row["thread"]: row["text"] for row in list_dicts(articles)}
    content = corpus.describe(rows["n"].to_list()) | {"exports": [], "maps": []}
    content |= {"rows": list_dicts(rows), "articles": texts}
    for name, body in read_page(is_site=True).items():
        (folder / name).write_bytes(body)
    (folder / "data.json").write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    return rows.height
