"""Weights of references from the grades 1 to 5 that people gave them (AAC-18; errata E11).
The paper assumes "properly normalized" s_j in [0, 1] and does not say how. No single preset gives the ratios of
weighted to plain scores in its table 7, so results should be given for each.
"""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.errors import BadInput
from pipeline.metrics.overlap.metric import check_choice
from pipeline.metrics.resample import Floats

LOWEST, HIGHEST = 1, 5
DEFAULT = "s/5"

PRESETS: dict[str, Callable[[Floats, Floats], Floats]] = {
    "s/5": lambda grades, _: grades / HIGHEST, "(s-1)/4": lambda grades, _: (grades - LOWEST) / (HIGHEST - LOWEST),
    "s/max": lambda grades, highest: grades / highest, "none": lambda grades, _: np.ones_like(grades),
}  # fmt: skip
"""Grades [m] and the highest grade of each one's article [m] -> weights [m]. Only `(s-1)/4` gives the lowest grade no
weight; `s/max` gives the best references of every article 1."""


def normalise(
    grades: Sequence[float] | npt.NDArray[np.floating] | pl.Series,
    preset: str = DEFAULT,
    articles: Sequence[object] | npt.NDArray[np.generic] | pl.Series | None = None,
) -> Floats:
    """Convert grades to reference weights in [0, 1].
    Grades are from 1 to 5, [m]; means of raters need not be whole. `articles` has the article of each reference, [m],
    for `s/max`; by default all are of one.
    BadInput for a grade that is missing or not between 1 and 5; it names the row, from 1. ValueError for an unknown
    preset, or not as many articles as grades.
    """
    check_choice("preset", preset, PRESETS)
    values = pl.Series("grade", grades, strict=False).cast(pl.Float64).to_numpy()  # null becomes NaN
    outside = np.flatnonzero(~((values >= LOWEST) & (values <= HIGHEST)))
    if len(outside):
        row = outside[0]
        raise BadInput(f"row {row + 1}, grade: expected {LOWEST} to {HIGHEST}, found {values[row]:g}")
    names = pl.Series("article", [0] * len(values) if articles is None else articles, strict=False)
    if len(names) != len(values):
        raise ValueError(f"expected an article for each of {len(values)} grades, got {len(names)}")
    graded = pl.DataFrame({"grade": values, "article": names})
    return PRESETS[preset](values, graded.select(pl.col("grade").max().over("article")).to_series().to_numpy())
