"""Human grades of the output of compressors (NDD, appendix F, table 13; NDD-36).

In: grades as `label.compression.grades` has them, from 0 to 5, of syntax and semantics. Intervals are of a bootstrap
over sentences, all grades of a sentence together: they estimate results on other sentences with similar raters.
"""

import polars as pl

from pipeline.label import quality
from pipeline.label.compression import FIELDS
from pipeline.metrics.labelling.agreement import estimate_interval
from pipeline.metrics.resample import DRAWS, SEED, bounds, draw_counts, sum_samples

AGREEMENT = ("weighted_kappa_linear", "weighted_kappa_quadratic", "alpha_ordinal")
_NUMBERS = {"value": pl.Float64, "low": pl.Float64, "high": pl.Float64, "n": pl.Int64}


def summarize(grades: pl.DataFrame, *, draws: int = DRAWS) -> pl.DataFrame:
    """Compute mean grades of each system over its compressions: item_id, system, field, grade (or null).

    Returns a row a system and field, in order of system: system, field, value, low, high, n (sentences).
    """
    graded = grades.drop_nulls("grade").sort("system", pl.col("field").cast(pl.Enum(FIELDS)), "item_id")
    rows = []
    for (system, field), part in graded.group_by("system", "field", maintain_order=True):
        value, count = part["grade"].to_numpy(), part.height
        samples = sum_samples(value, draw_counts(count, draws, SEED)) / count
        rows.append((system, field, float(value.mean()), *bounds(samples), count))
    return pl.DataFrame(rows, {"system": pl.String, "field": pl.String, **_NUMBERS}, orient="row")


def measure_agreement(grades: pl.DataFrame, *, draws: int = DRAWS) -> pl.DataFrame:
    """Measure how far raters agree on each field: weighted kappa, linear and quadratic, and ordinal alpha.

    Grades have task_id, field, grades, raters. A compression that systems share counts once. The interval takes
    compressions for independent, which those of one sentence are not, and so is rather narrow.

    Returns a row a field and measure: field, metric, value, low, high, n (compressions with two grades or more); null
    where there is nothing to measure.
    """
    rows = []
    for field in FIELDS:
        regraded = grades.filter(pl.col("field") == field, pl.col("grades").list.len() > 1).unique("task_id")
        # codes of grades from 1, which these are not
        shifted = regraded.sort("task_id").with_columns(pl.col("grades").list.eval(pl.element() + 1))
        codes = quality.encode_grades(shifted)
        rows += [(field, name, *estimate_interval(name, codes, draws)[:3], len(codes)) for name in AGREEMENT]
    return pl.DataFrame(rows, {"field": pl.String, "metric": pl.String, **_NUMBERS}, orient="row").fill_nan(None)
