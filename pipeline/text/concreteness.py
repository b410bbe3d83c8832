"""How concrete words are: lists of ratings, scaled to [0, 1], and which words are imperceptible (ReCAM, section 3.2).

    f(rating) = (rating - low) / (high - low)     low, high: the least and the greatest rating of the list (REC-04)

On MRC's list, 158 to 670, a score under 0.35 is a rating under 337.2. MRC's licence forbids shipping it (CC BY-NC-SA):
it is a file that the user gives. What is shipped is a list of our own on the same scale (`load_embedded`).
"""

from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import polars as pl

from pipeline.errors import BadInput
from pipeline.io.hashes import hash_file
from pipeline.io.lines import read_records

LIST = Path(__file__).with_name("concreteness_en.tsv")
MRC_BOUNDS = (100.0, 700.0)
PUBLISHED_BOUNDS = {"conc": MRC_BOUNDS, "conc.m": (1.0, 5.0)}  # columns of MRC's list and of Brysbaert et al. (2014)
THRESHOLD = 0.35  # section 3.2
CONTENT_POS = frozenset({"NOUN", "VERB", "ADJ", "ADV"})  # of words that can be targets: not PROPN nor AUX (REC-07)
_NUMBER = r"^-?[0-9]+(\.[0-9]+)?$"  # what polars surely reads: a field it does not would pass for an empty one


class Ratings(NamedTuple):
    """A list of rated words, and what it is, for signatures."""

    name: str  # of the file, or `load_embedded`
    revision: str  # SHA-256 of the file
    low: float  # the least rating, whose score is 0
    high: float  # the greatest, whose score is 1
    rows: pl.DataFrame  # word (lower case, each once), rating, score in [0, 1]; in the order of the file
    dropped: pl.DataFrame  # line, word, reason (no_word, no_rating or duplicate)

    @property
    def signature(self) -> str:
        """Which list it is: ours is not human ratings and says so."""
        kind = "ratings by a language model" if self.name == "embedded" else "ratings of"
        return f"{kind} {self.name}@{self.revision[:12]}, {self.low:g} to {self.high:g}"


def read(path: Path, column: str | None = None, bounds: tuple[float, float] | None = None) -> Ratings:
    """Ratings of a table with a header: commas (.csv) or tabs between the fields; lines of `#` before it are comments.

    The file is UTF-8 and has a column `word`, and a column `rating` or one of `PUBLISHED_BOUNDS`, in any case, or the
    named one. Other columns than those need the bounds of their scale. MRC's ratings may be divided by 100. Words
    become lower case. Dropped: a word without a rating, a rating without a word, and a word that is repeated with its
    rating. BadInput if a rating is no number or outside the scale, if a word has two ratings, or if no two ratings
    differ.
    """
    records = read_records(path, "," if path.suffix.lower() == ".csv" else "\t", has_comments=True)
    _, header = next(records, (0, []))
    columns = {name.strip().lower(): place for place, name in reversed(list(enumerate(header)))}
    rating_column = column.lower() if column else next((name for name in PUBLISHED_BOUNDS if name in columns), "rating")
    if missing := [name for name in ("word", rating_column) if name not in columns]:
        header_text = ", ".join(header) or "no header"
        raise BadInput(f"{path}: expected the column {', '.join(missing)}; found {header_text:.200}")
    if bounds is None and rating_column not in PUBLISHED_BOUNDS:
        question = f"on what scale is {rating_column!r}?"
        raise BadInput(f"{path}: {question} give its least and greatest rating, such as 1 and 5")
    raw = [(line, fields[columns["word"]].lower(), fields[columns[rating_column]]) for line, fields in records]
    rows = pl.DataFrame(raw, schema={"line": pl.Int64, "word": pl.String, "field": pl.String}, orient="row")
    rows = rows.with_columns(pl.col("word", "field").str.strip_chars())
    if (bad := rows.filter((pl.col("field") != "") & ~pl.col("field").str.contains(_NUMBER))).height:
        line, _, field = bad.row(0)
        raise BadInput(f"{path}, line {line}: field {rating_column!r} should be a number; found {field!r:.40}")
    rows = rows.select("line", "word", rating=pl.col("field").cast(pl.Float64, strict=False))
    if bounds is None:
        bounds = PUBLISHED_BOUNDS[rating_column]
        if bounds == MRC_BOUNDS and (rows["rating"].max() or 0) <= bounds[1] / 100:  # type: ignore[operator]
            rows = rows.with_columns((pl.col("rating") * 100).round(6))
    return _scale(path, rating_column, rows, bounds)


def _scale(path: Path, name: str, rows: pl.DataFrame, bounds: tuple[float, float]) -> Ratings:
    if (bad := rows.filter(~pl.col("rating").is_between(*bounds))).height:
        line, word, rating = bad.row(0)
        expected = f"field {name!r} should be from {bounds[0]:g} to {bounds[1]:g}"
        raise BadInput(f"{path}, line {line}: {expected}; found {rating:g} for {word!r:.40}")
    rated = rows.filter((pl.col("word") != "") & pl.col("rating").is_not_null())
    if (bad := rated.filter(pl.col("rating") != pl.col("rating").first().over("word"))).height:
        line, word, _ = bad.row(0)
        raise BadInput(f"{path}, line {line}: {word!r:.40} has another rating further up; keep one of them")
    if rated["rating"].n_unique() < 2:
        raise BadInput(f"{path}: expected ratings in {name!r} of which two differ; found {rated.height} rated words")
    distinct = rated.unique("word", keep="first", maintain_order=True)
    without_word = pl.when(pl.col("word") == "").then(pl.lit("no_word"))
    reason = without_word.when(pl.col("rating").is_null()).then(pl.lit("no_rating")).otherwise(pl.lit("duplicate"))
    dropped = rows.join(distinct, on="line", how="anti").select("line", "word", reason=reason)
    ratings = distinct["rating"].to_numpy()
    low, high = float(ratings.min()), float(ratings.max())
    score = pl.Series((ratings - low) / (high - low))  # by polars the greatest may become 1 - 1e-16
    revision = hash_file(path)
    return Ratings(path.name, revision, low, high, distinct.select("word", "rating", score=score), dropped.sort("line"))


@lru_cache(maxsize=1)
def load_embedded() -> Ratings:
    """The shipped list: English words rated by a language model, not by people, from 158 to 670 as on MRC's scale."""
    return read(LIST, bounds=MRC_BOUNDS)._replace(name="embedded")
