"""What labels look like together: ratios of classes, overlap and correlation of fields (CSD, figures 1 to 3).

In: a row a comment, a column a field of the schema, its values as text, null where there is none; other columns are
passed over. Whatever compares two fields does so over the comments that have both.
"""

import itertools
from collections.abc import Iterator

import numpy as np
import polars as pl
from scipy import stats

from pipeline.label.schema import FIELDS, UNSURE, YES
from pipeline.metrics.labelling.agreement import encode_values


def class_ratios(labels: pl.DataFrame) -> pl.DataFrame:
    """Count how often each value of each field was given (figure 1; CSD-25).

    Returns field, value, count, ratio: a row for every value of the schema, also those never given, in its order.
    Ratios of a field sum to 1; they are null where it has no labels.
    """
    parts = []
    for field, codes in _encode_fields(labels).items():
        values = FIELDS[field].values
        count = np.bincount(codes.drop_nulls().to_numpy(), minlength=len(values))
        parts.append(pl.DataFrame({"field": field, "value": values, "count": count.astype(np.int64)}))
    ratio = pl.col("count") / pl.col("count").sum().over("field")
    return pl.concat(parts).with_columns(ratio=ratio.fill_nan(None))


def overlaps(labels: pl.DataFrame) -> pl.DataFrame:
    """Count how many instances of one field are instances of another (figure 2; CSD-26).

    An instance is a comment labelled `1`; in sentiment, one that is not neutral; in emotion, one that shows any. The
    paper does not say what it divides by: here are both directions, as the rows (a, b) and (b, a), and Jaccard's index.

    Returns a, b, both_count |A∩B|, a_count |A|, b_count |B|, overlap |A∩B|/|A|, jaccard |A∩B|/|A∪B|: a row for each
    ordered pair of fields, each with itself too; null where it would divide by 0.
    """
    instances = {field: _is_instance(field, codes) for field, codes in _encode_fields(labels).items()}
    rows = [
        (a, b, (first & second).sum(), first.sum(), second.sum()) for a, b, first, second in _pair_fields(instances)
    ]
    shared_count, a_count, b_count = (pl.col(name) for name in ("both_count", "a_count", "b_count"))
    return pl.DataFrame(rows, schema=["a", "b", "both_count", "a_count", "b_count"], orient="row").with_columns(
        overlap=(shared_count / a_count).fill_nan(None).round(6),
        jaccard=(shared_count / (a_count + b_count - shared_count)).fill_nan(None).round(6),
    )


def correlations(labels: pl.DataFrame) -> pl.DataFrame:
    """Compute Spearman's rank correlation of each pair of fields, tied ranks averaged (figure 3; CSD-27).

    Values are ranked -1, 0, 1. Emotions have no order: any of them counts as 1, `None` as -1.

    Returns a, b, spearman, n (comments with both): a row for each ordered pair of fields, each with itself too; null
    where a field is constant or fewer than two comments have both.
    """
    ranks = {field: _rank_values(field, codes) for field, codes in _encode_fields(labels).items()}
    rows = []
    for a, b, first, second in _pair_fields(ranks):
        is_varied = first.n_unique() > 1 and second.n_unique() > 1
        rho = float(stats.spearmanr(first.to_numpy(), second.to_numpy()).statistic) if is_varied else None
        rows.append((a, b, rho, len(first)))
    schema = {"a": pl.String, "b": pl.String, "spearman": pl.Float64, "n": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row").with_columns(pl.col("spearman").round(6))


def _encode_fields(labels: pl.DataFrame) -> dict[str, pl.Series]:
    return {field: encode_values(field, labels[field]) for field in FIELDS if field in labels.columns}


def _pair_fields(columns: dict[str, pl.Series]) -> Iterator[tuple[str, str, pl.Series, pl.Series]]:
    """Pair each two fields, with their values where both have one."""
    for a, b in itertools.product(columns, columns):
        has_both = columns[a].is_not_null() & columns[b].is_not_null()
        yield a, b, columns[a].filter(has_both), columns[b].filter(has_both)


def _is_instance(field: str, codes: pl.Series) -> pl.Series:
    values = FIELDS[field].values
    if field == "sentiment":
        return codes != values.index(UNSURE)
    return codes != values.index("None") if field == "emotion" else codes == values.index(YES)


def _rank_values(field: str, codes: pl.Series) -> pl.Series:
    if field == "emotion":
        return _is_instance(field, codes).cast(pl.Int8) * 2 - 1
    return codes.replace_strict([*range(3)], [int(value) for value in FIELDS[field].values], return_dtype=pl.Int8)
