"""The quality of pairs by a judge: a sample to judge, and ratings of the answers (ImpScore, appendix A.2).

A pair is appropriate if its first sentence is more implicit, and both mean the same just if the pair is positive.
"""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from pipeline import left_out
from pipeline.errors import BadInput
from pipeline.examples.splits import SEED
from pipeline.io.fields import check_field
from pipeline.io.rows import number_rows

PER_SOURCE = 20
BOUNDS = (0.2, 0.4, 0.6, 0.8)
PUBLISHED = {  # ratings of table 7, from 1 to 5, by our names of the sources; `ishate` is its Adversarial
    **dict.fromkeys(("toxigen", "latent_hatred", "dghsd", "ishate", "sbic", "imppres", "ludwig"), 5),
    **dict.fromkeys(("semeval_irony", "snarks", "r3"), 5),
    **dict.fromkeys(("implicatures", "absa", "pdtb"), 4),
}
VERDICTS = {"": None} | dict.fromkeys(("1", "1.0", "yes", "true"), True)
VERDICTS |= dict.fromkeys(("0", "0.0", "no", "false"), False)


def sample(pairs: pl.DataFrame, per_source: int = PER_SOURCE, seed: int = SEED) -> pl.DataFrame:
    """Draw sentence pairs to judge, half of them positive, each from another pair, in random order.

    A source with fewer pairs gives all of them, or one fewer if their number is odd. Returns item (from 1), source,
    first, second, which the judge sees; kind (positive or negative), which is hidden.
    """
    rng = np.random.default_rng(seed)
    parts = []
    for source in pairs.sort("source", "pair_id").partition_by("source", maintain_order=True):
        half = min(per_source, len(source)) // 2
        picks = source[rng.permutation(len(source))[: 2 * half]]
        is_positive = pl.when(pl.int_range(pl.len()) < half)
        second = is_positive.then("explicit").otherwise("negative")
        kind = is_positive.then(pl.lit("positive")).otherwise(pl.lit("negative"))
        parts.append(picks.select("source", first="implicit", second=second, kind=kind))
    texts = dict.fromkeys(("source", "first", "second", "kind"), pl.String)
    rows = pl.concat([pl.DataFrame(schema=texts), *parts])
    return rows[rng.permutation(len(rows))].with_row_index("item", 1)


def read_judgements(path: Path, key: Path) -> pl.DataFrame:
    """Read a judge's file with its key, for `rate_sources`: source, appropriate (null where an answer is blank).

    The file is that of `sample` with `same_meaning` and `first_more_implicit` filled with 1 or 0; the key has item,
    source, kind. BadInput with file, row and field for a fault.
    """
    key_rows, kinds = {}, ("positive", "negative")
    for number, row in number_rows(key):
        check_field(row, "kind", f"{key}, row {number}", " or ".join(kinds), _get_text(row, "kind") in kinds)
        key_rows[_get_text(row, "item")] = row
    rows, items = [], set()
    for number, row in number_rows(path):
        location, item = f"{path}, row {number}", _get_text(row, "item")
        if item not in key_rows:
            raise BadInput(f"{location}: field 'item' is {item!r}, expected an item of {key}")
        check_field(row, "item", location, "one that no other row has", item not in items)
        items.add(item)
        verdicts = [_parse_verdict(row, name, location) for name in ("same_meaning", "first_more_implicit")]
        is_positive = _get_text(key_rows[item], "kind") == "positive"
        is_appropriate = None if None in verdicts else verdicts == [is_positive, True]
        rows.append((_get_text(key_rows[item], "source"), is_appropriate))
    unjudged_count = len(key_rows) - sum(is_appropriate is not None for _, is_appropriate in rows)
    left_out.record_rows("judge", {"unjudged": unjudged_count}, path.name)
    return pl.DataFrame(rows, schema={"source": pl.String, "appropriate": pl.Boolean}, orient="row")


def _get_text(row: dict[str, Any], name: str) -> str:
    return "" if row.get(name) is None else str(row[name]).strip()


def _parse_verdict(row: dict[str, Any], name: str, location: str) -> bool | None:
    if name not in row or (text := _get_text(row, name).lower()) not in VERDICTS:
        raise BadInput(f"{location}: field {name!r} should be 1 or 0, found {row.get(name)!r}")
    return VERDICTS[text]


def rate_sources(answers: pl.DataFrame) -> pl.DataFrame:
    """Rate the sources of judged pairs (source, appropriate: bool): source, n, share, rating, published (or null).

    The rating is 1 for a share below 20 %, 2 below 40 %, 3 below 60 %, 4 below 80 %, else 5.
    """
    groups = answers.drop_nulls("appropriate").group_by("source")
    shares = groups.agg(n=pl.len().cast(pl.Int64), share=pl.col("appropriate").mean()).sort("source")
    return shares.with_columns(
        rating=1 + pl.sum_horizontal((pl.col("share") >= bound).cast(pl.Int64) for bound in BOUNDS),
        published=pl.col("source").replace_strict(PUBLISHED, default=None, return_dtype=pl.Int64),
    )
