"""What labels look like together: ratios of classes, overlap and correlation of fields (CSD, figures 1 to 3).

In: a row a comment, a column a field of the schema, its values as text, null where there is none; other columns are
passed over. Whatever compares two fields does so over the comments that have both.
"""

import itertools

import numpy as np
import polars as pl
from scipy import stats

from pipeline.errors import BadInput
from pipeline.label.schema import FIELDS, UNSURE, YES
from pipeline.metrics.labelling.agreement import encoded


def class_ratios(labels: pl.DataFrame) -> pl.DataFrame:
    """How often each value of each field was given (figure 1; CSD-25).

    Returns:
        field, value, count, ratio: a row for every value of the schema, also those never given, in its order. Ratios
        of a field sum to 1; they are null where it has no labels.
    """
    parts = []
    for field, codes in _encoded(labels).items():
        values = FIELDS[field].values
        count = np.bincount(codes.drop_nulls().to_numpy(), minlength=len(values))
        ratio = pl.Series("ratio", count / count.sum() if count.any() else [None] * len(values), pl.Float64)
        parts.append(pl.DataFrame({"field": field, "value": values, "count": count.astype(np.int64), "ratio": ratio}))
    return pl.concat(parts)


def overlaps(labels: pl.DataFrame) -> pl.DataFrame:
    """How many of the instances of one field are instances of another (figure 2; CSD-26).

    An instance is a comment labelled `1`; in sentiment, one that is not neutral; in emotion, one that shows any. The
    paper does not say what it divides by: here are both directions, as the rows (a, b) and (b, a), and Jaccard's index.

    Returns:
        a, b, both_count |A∩B|, a_count |A|, b_count |B|, overlap |A∩B|/|A|, jaccard |A∩B|/|A∪B|: a row for each
        ordered pair of fields, each with itself too; null where it would divide by 0.
    """
    has = {field: _is_instance(field, codes) for field, codes in _encoded(labels).items()}
    rows = []
    for a, b in itertools.product(has, has):
        known = has[a].is_not_null() & has[b].is_not_null()
        one, other = has[a].filter(known), has[b].filter(known)
        rows.append((a, b, int((one & other).sum()), int(one.sum()), int(other.sum())))
    counts = ("both_count", "a_count", "b_count")
    schema = {"a": pl.String, "b": pl.String} | dict.fromkeys(counts, pl.Int64)
    both, of_a, of_b = pl.col(counts[0]), pl.col(counts[1]), pl.col(counts[2])
    return pl.DataFrame(rows, schema=schema, orient="row").with_columns(
        overlap=(both / of_a).fill_nan(None).round(6), jaccard=(both / (of_a + of_b - both)).fill_nan(None).round(6)
    )


def correlations(labels: pl.DataFrame) -> pl.DataFrame:
    """Spearman's rank correlation of each two fields, ties sharing their mean rank (figure 3; CSD-27).

    Values are ranked -1, 0, 1. Emotions have no order: any of them counts as 1, `None` as -1.

    Returns:
        a, b, spearman, n (comments with both): a row for each ordered pair of fields, each with itself too; null where
        a field is constant or fewer than two comments have both.
    """
    ranked = {field: _ordinal(field, codes) for field, codes in _encoded(labels).items()}
    rows = []
    for a, b in itertools.product(ranked, ranked):
        known = ranked[a].is_not_null() & ranked[b].is_not_null()
        one, other = ranked[a].filter(known), ranked[b].filter(known)
        varied = one.n_unique() > 1 and other.n_unique() > 1
        rho = float(stats.spearmanr(one.to_numpy(), other.to_numpy()).statistic) if varied else None
        rows.append((a, b, rho, len(one)))
    schema = {"a": pl.String, "b": pl.String, "spearman": pl.Float64, "n": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row").with_columns(pl.col("spearman").round(6))


def _encoded(labels: pl.DataFrame) -> dict[str, pl.Series]:
    """The fields there are, in the schema's order, as places among their values."""
    found = {field: encoded(field, labels[field]) for field in FIELDS if field in labels.columns}
    if not found:
        raise BadInput(f"labels: expected a column of {', '.join(FIELDS)}; found {', '.join(labels.columns)}")
    return found


def _is_instance(field: str, codes: pl.Series) -> pl.Series:
    values = FIELDS[field].values
    if field == "sentiment":
        return codes != values.index(UNSURE)
    return codes != values.index("None") if field == "emotion" else codes == values.index(YES)


def _ordinal(field: str, codes: pl.Series) -> pl.Series:
    if field == "emotion":
        return _is_instance(field, codes).cast(pl.Int8) * 2 - 1
    return codes.replace_strict([*range(3)], [int(value) for value in FIELDS[field].values], return_dtype=pl.Int8)
