"""Rows of the table `studies` and of what a model makes of sentences, small and hand-made."""

import datetime
import json
from itertools import product
from typing import Any

import polars as pl

from pipeline.metrics.impscore.studies import LABELS
from pipeline.papers.impscore import TABLE_2

SCHEMA = {
    "study": pl.String, "day": pl.Date, "model_id": pl.String, "setting": pl.String, "metric": pl.String,
    "subset": pl.String, "run": pl.Int64, "value": pl.Float64, "low": pl.Float64, "high": pl.Float64,
    "row_count": pl.Int64, "effective_count": pl.Int64,
}  # fmt: skip
QUANTILES = ("q00", "q05", "q25", "q50", "q75", "q95", "q100")


def row(study: str, metric: str, value: float | None, subset: str = "all", run: int = 0, **more: Any) -> dict[str, Any]:
    """One row of the table `studies`; what is not a column is a field of the setting."""
    columns = {"row_count": 100, "day": datetime.date(2026, 11, 19)}
    columns |= {name: more.pop(name) for name in SCHEMA if name in more}
    columns |= {"study": study, "metric": metric, "value": value, "subset": subset, "run": run, "model_id": None}
    return {**columns, "setting": json.dumps(more)}


def spread(study: str, subset: str, middle: float, count: int = 2000) -> list[dict[str, Any]]:
    """Mean, deviation and quantiles around a middle."""
    steps = zip(("mean", "sd", *QUANTILES), (0, None, -0.5, -0.4, -0.2, 0, 0.2, 0.4, 0.5), strict=True)
    return [row(study, m, 0.25 if s is None else middle + s, subset, row_count=count) for m, s in steps]


def frame(*rows: dict[str, Any]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), schema=SCHEMA)


ABLATION = frame(
    *(
        row("ablation", f"{kind}_accuracy", value - 0.01 + 0.01 * run, run=run, implicitness=i, pragmatics=p, space=s)
        for ((i, p, s), values), run in product(TABLE_2.items(), range(3))
        for kind, value in zip(("implicitness", "pragmatics"), values, strict=True)
    )
)
GRID = list(product((0.1, 0.5, 1.5), (0.5, 2), (0.5, 1.0, 2)))
SENSITIVITY = frame(
    *(
        row("sensitivity", "implicitness_accuracy", 0.9 - 0.02 * (g1 - 0.5) ** 2 - 0.001 * (g2 + a) + 0.002 * run,
            run=run, gamma_implicitness=g1, gamma_pragmatics=g2, alpha=a)
        for (g1, g2, a), run in product(GRID, range(3))
    )
)  # fmt: skip
DATA_SETS = frame(
    *spread("data_sets", "toxigen", 0.6), *spread("data_sets", "dghsd", 0.8, 22175),
    *spread("data_sets", "dghsd:implicit", 1.1, 3439),
    row("data_sets", "percentile_mean", 61.4, "dghsd", row_count=22175),
)  # fmt: skip
DIVERSITY = frame(*spread("diversity", "toxigen", 1.3), *spread("diversity", "davidson", 0.9))
DETECTION = frame(
    *(
        row("detection", "accuracy", 0.9 - 0.1 * i, label, by=rater, low=0.8 - 0.1 * i, high=0.95 - 0.1 * i,
            row_count=1000 + i, effective_count=50 + i)
        for rater in ("gpt", "llama") for i, label in enumerate(LABELS) if (rater, i) != ("llama", 7)
    ),
    row("detection", "percentile", 7.2, LABELS[1], by="gpt"),
)  # fmt: skip
VALIDATION = frame(
    *(
        row("validation", metric, value, subset, by=by, lang="en", low=value - 0.05, high=value + 0.05)
        for subset, metric, values in (("groups_en", "kendall_tau", (0.6, 0.1, 0.5, 0.0)),
                                       ("irony", "auc", (0.4, 0.7, 0.6, 0.5)))
        for by, value in zip(("shipped model", "length", "words", "chance"), values, strict=True)
    ),
    row("validation", "missing", None, "pairs of yours", by="--pairs FILE"),
)  # fmt: skip
CALIBRATION = frame(
    *(row("calibration", metric, value, a=a, b="judge", low=value - 0.1, high=value + 0.1)
      for a, metric, value in (("scorer", "spearman", 0.5), ("scorer", "error", 0.8), ("length", "spearman", 0.2),
                               ("constant", "error", 1.1), ("scorer", "constant_error", 1.1))),
    *(row("calibration", metric, value, run=run, a="scorer", b="judge", low=value - 0.2, high=value + 0.2)
      for run in range(3) for metric, value in (("curve_x", 0.4 * run), ("curve", 0.9 * run), ("map_x", 0.5 * run),
                                                ("map_y", run))),
)  # fmt: skip
TRIPLES = pl.DataFrame(
    {"i1": [1.5, 1.0, 0.5], "i2": [0.5, 0.4, 0.3], "i3": [0.7, 0.1, 0.2], "near": [0.3, 0.2, 0.4],
     "far": [1.0, 2.0, 0.9], "split": ["test", "test", "train"], "p1": [70.0, 50.0, 5.0]}
)  # fmt: skip
AUDIT = pl.DataFrame(
    {"subset": ["all", "all", "esnli", "esnli"], "baseline": ["length", "words"] * 2,
     "accuracy": [0.85, 0.7, 0.9, 0.5], "pair_count": [300, 300, 120, 120]}
)  # fmt: skip
PEOPLE = frame(row("people", "kendall_tau", 0.7, "ranking", by="people", set=1, raters=5, row_count=50))
