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
from pipeline.metrics.labelling.agreement import encode_values


def class_ratios(labels: pl.DataFrame) -> pl.DataFrame:
    """Count how often each value of each field was given (figure 1; CSD-25).

    Returns:
        field, value, count, ratio: a row for every value of the schema, also those never given, in its order. Ratios
        of a field sum to 1; they are null where it has no labels.
    """
    parts = []
    for field, codes in _encode_fields(labels).items():
        values = FIELDS[field].values
        count = np.bincount(codes.drop_nulls().to_numpy(), minlength=len(values))
        ratio = pl.Series("ratio", count / count.sum() if count.any() else [None] * len(values), pl.Float64)
        parts.append(pl.DataFrame({"field": field, "value": values, "count": count.astype(np.int64), "ratio": ratio}))
    return pl.concat(parts)


def overlaps(labels: pl.DataFrame) -> pl.DataFrame:
    """Count how many instances of one field are instances of another (figure 2; CSD-26).

    An instance is a comment labelled `1`; in sentiment, one that is not neutral; in emotion, one that shows any. The
    paper does not say what it divides by: here are both directions, as the rows (a, b) and (b, a), and Jaccard's index.

    Returns:
        a, b, both_count |A∩B|, a_count |A|, b_count |B|, overlap |A∩B|/|A|, jaccard |A∩B|/|A∪B|: a row for each
        ordered pair of fields, each with itself too; null where it would divide by 0.
    """
    instances = {field: _is_instance(field, codes) for field, codes in _encode_fields(labels).items()}
    rows = []
    for a, b in itertools.product(instances, instances):
        has_both = instances[a].is_not_null() & instances[b].is_not_null()
        first_labels, second_labels = instances[a].filter(has_both), instances[b].filter(has_both)
        rows.append(
            (a, b, int((first_labels & second_labels).sum()), int(first_labels.sum()), int(second_labels.sum()))
        )
    counts = ("both_count", "a_count", "b_count")
    schema = {"a": pl.String, "b": pl.String} | dict.fromkeys(counts, pl.Int64)
    shared_count, a_count, b_count = pl.col(counts[0]), pl.col(counts[1]), pl.col(counts[2])
    return pl.DataFrame(rows, schema=schema, orient="row").with_columns(
        overlap=(shared_count / a_count).fill_nan(None).round(6),
        jaccard=(shared_count / (a_count + b_count - shared_count)).fill_nan(None).round(6),
    )


def correlations(labels: pl.DataFrame) -> pl.DataFrame:
    """Compute Spearman's rank correlation of each pair of fields, tied ranks averaged (figure 3; CSD-27).

    Values are ranked -1, 0, 1. Emotions have no order: any of them counts as 1, `None` as -1.

    Returns:
        a, b, spearman, n (comments with both): a row for each ordered pair of fields, each with itself too; null where
        a field is constant or fewer than two comments have both.
    """
    ranks = {field: _rank_values(field, codes) for field, codes in _encode_fields(labels).items()}
    rows = []
    for a, b in itertools.product(ranks, ranks):
        has_both = ranks[a].is_not_null() & ranks[b].is_not_null()
        first_ranks, second_ranks = ranks[a].filter(has_both), ranks[b].filter(has_both)
        is_varied = first_ranks.n_unique() > 1 and second_ranks.n_unique() > 1
        rho = float(stats.spearmanr(first_ranks.to_numpy(), second_ranks.to_numpy()).statistic) if is_varied else None
        rows.append((a, b, rho, len(first_ranks)))
    schema = {"a": pl.String, "b": pl.String, "spearman": pl.Float64, "n": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row").with_columns(pl.col("spearman").round(6))


def _encode_fields(labels: pl.DataFrame) -> dict[str, pl.Series]:
    """Encode the fields of a frame as positions among their values, in the schema's order."""
    codes_by_field = {field: encode_values(field, labels[field]) for field in FIELDS if field in labels.columns}
    if not codes_by_field:
        raise BadInput(f"labels: expected a column of {', '.join(FIELDS)}; found {', '.join(labels.columns)}")
    return codes_by_field


def _is_instance(field: str, codes: pl.Series) -> pl.Series:
    values = FIELDS[field].values
    if field == "sentiment":
        return codes != values.index(UNSURE)
    return codes != values.index("None") if field == "emotion" else codes == values.index(YES)


def _rank_values(field: str, codes: pl.Series) -> pl.Series:
    if field == "emotion":
        return _is_instance(field, codes).cast(pl.Int8) * 2 - 1
    return codes.replace_strict([*range(3)], [int(value) for value in FIELDS[field].values], return_dtype=pl.Int8)
