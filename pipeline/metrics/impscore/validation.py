"""How far a scorer orders texts as it should, next to what their surface and a constant reach.
In: rows of group (drawn as a whole for intervals), item (within it values are compared), level and text, and a value of
each text. The items are graded groups or pairs; of labelled texts all values are compared.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from pipeline.metrics import resample
from pipeline.metrics.impscore.artefacts import BASELINES, predict_levels
from pipeline.metrics.impscore.ranking import kendall_tau
from pipeline.metrics.ndd.predicates import auc
from pipeline.metrics.resample import DRAWS, SEED, bounds, draw_counts, iterate_counts, number_units

TAU, SHARE, AUC = "kendall_tau", "pairs_in_order", "auc"
CHANCE: Mapping[str, float] = {TAU: 0.0, SHARE: 0.5, AUC: 0.5}
SURFACE = BASELINES[:3]
TRANSFER = "shipped words"  # words, fitted on the shipped groups as the shipped model is
OTHERS = (*SURFACE, TRANSFER, "chance")
LEAST = 10  # groups for an interval


def measure(rows: pl.DataFrame, values: pl.Series, metric: str) -> dict[str, Any] | None:
    """Measure values of texts: metric, value, low, high (95 %), n (groups, pairs or texts); None with nothing to order.

    - kendall_tau: the mean over items; a tie is neither right nor wrong.
    - pairs_in_order: the share of pairs in which the implicit text has the higher value; a tie is half.
    - auc: the chance that a text labelled 1 has a higher value than one labelled 0; a tie is half.

    An item of which a text has no value is left out. Without ten groups there is no interval.
    """
    has_value = pl.col("value").is_not_null()
    scored = rows.with_columns(value=values.cast(pl.Float64))
    scored = scored.filter(has_value if metric == AUC else has_value.all().over("item"))
    if scored["level"].n_unique() < 2:
        return None
    if metric == AUC:
        units, is_implicit = number_units(scored["group"], scored.height), (scored["level"] > 0).to_numpy()
        ranks, counts = scored["value"].rank("dense").to_numpy(), iterate_counts(int(units.max()) + 1, DRAWS, SEED)
        value, *areas = (auc(ranks, is_implicit, count[units]) for count in counts)
        n, samples = scored.height, np.array(areas)
    else:
        items = scored.group_by("item", maintain_order=True).agg("level", "value", pl.col("group").first())
        numbers = np.array([kendall_tau(*lists) for lists in items.select("level", "value").iter_rows()])
        numbers = (numbers + 1) / 2 if metric == SHARE else numbers
        n, value = items.height, float(numbers.mean())
        sums = resample.sum_units(np.column_stack([numbers, np.ones(n)]), number_units(items["group"], n))
        totals, sizes = resample.sum_samples(sums, draw_counts(len(sums), DRAWS, SEED)).T
        samples = totals / sizes
    low, high = bounds(samples) if scored["group"].n_unique() >= LEAST else (None, None)
    return {"metric": metric, "value": value, "low": low, "high": high, "n": n}


def predict_surface(rows: pl.DataFrame, training_rows: pl.DataFrame | None = None) -> dict[str, pl.Series]:
    """Predict levels by length, punctuation and words, fitted on training rows or crosswise; `chance` is constant."""
    predictions = {name: predict_levels(name, rows, training_rows).round(9) for name in SURFACE}
    return {name: pl.Series(values) for name, values in {**predictions, "chance": np.zeros(rows.height)}.items()}
