"""Read a score: its percentile among the scores of a reference corpus, and a band in words.

A reference belongs to one model. It has a scale for each language: the quantiles of the scores of its texts, and three
thresholds between the bands, fitted on graded groups, of whose levels 3 and 4 are both hinted.
"""

import json
from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.errors import BadInput, refuse_damage

BANDS = ("outright", "indirect", "hinted", "veiled")
LEVELS = np.array([0, 1, 2, 2, 3])  # the band of each level
MIN_TEXTS = 100  # of a language, for 101 quantiles
WEAK = 0.6  # a model with a lower Kendall tau on graded groups is weak
SHIPPED = Path(__file__).parents[1] / "models" / "shipped" / "reference.json"
SCHEMA = {
    "reference": pl.String, "model_id": pl.String, "lang": pl.String, "low": pl.Float64, "high": pl.Float64,
    "percentile": pl.Float64, "slope": pl.Float64, "band": pl.String, "weakness": pl.String,
}  # fmt: skip

Floats = npt.NDArray[np.float64]


class Scale(NamedTuple):
    """The scores of a reference corpus in one language, and what graded groups of the language say of the model."""

    text_count: int
    quantiles: list[float]  # at 0, 1 … 100 percent
    thresholds: list[float] | None = None  # where indirect, hinted and veiled begin; None without graded groups
    agreement: float | None = None  # quadratic-weighted kappa of band and level, on groups of the test split
    kendall_tau: float | None = None  # of score and level, on the same groups
    group_count: int = 0


class Reference(NamedTuple):
    """A named reference corpus, as one model scores it."""

    name: str
    model_id: str
    source: str  # how it was made
    scales: dict[str, Scale]

    def read(self, value: float | None, lang: str | None) -> tuple[float | None, str | None]:
        """Return percentile and band of a score, None without a scale of the language."""
        scale = self._get_scale(lang)
        if value is None or scale is None:
            return None, None
        percentile = float(self.measure_percentiles(np.array(value), lang))
        return percentile, BANDS[bisect_right(scale.thresholds, value)] if scale.thresholds else None

    def measure_percentiles(self, values: Floats, lang: str | None) -> Floats:
        """Measure the percentiles of scores of one language; NaN without a scale."""
        scale = self._get_scale(lang)
        return np.interp(values, scale.quantiles, range(101)).round(1) if scale else np.full_like(values, np.nan)

    def _get_scale(self, lang: str | None) -> Scale | None:
        return self.scales.get(lang or "en")

    def list_weak(self, langs: Collection[str] | None = None) -> dict[str, float]:
        """List Kendall's tau of the languages, by default all, in which the model is weak."""
        taus = {lang: self.scales[lang].kendall_tau for lang in sorted(self.scales) if langs is None or lang in langs}
        return {lang: tau for lang, tau in taus.items() if tau is not None and tau < WEAK}


def describe_weakness(taus: Mapping[str, float]) -> str:
    """Describe in one line where a model is weak, from Kendall's tau by language; empty if it is nowhere."""
    weak = ", ".join(f"{lang} {tau:.2f}".strip() for lang, tau in taus.items())
    return weak and f"the model is weak here (Kendall's tau on graded groups {weak}, expected {WEAK})"


def tabulate(references: Iterable[Reference]) -> pl.DataFrame:
    """Tabulate the scales: the percentile of a score from `low` to below `high` is percentile + slope * (score - low).

    `weakness` is null where the model is not weak.
    """
    rows: list[tuple[Any, ...]] = []
    for reference in references:
        for lang, scale in reference.scales.items():
            quantiles, thresholds = np.array(scale.quantiles), scale.thresholds or []
            lows = np.unique([0.0, *quantiles, *thresholds])
            highs = np.append(lows[1:], max(3.0, lows[-1] + 1))  # no score is above 2
            starts = np.interp(lows, quantiles, range(101))
            ends = 100 - np.interp(-highs, -quantiles[::-1], range(101))  # of equal quantiles the first
            slopes = (ends - starts) / (highs - lows)
            tau = scale.kendall_tau
            weakness = None if tau is None or tau >= WEAK else f"weak: Kendall's tau {tau:.2f}"
            for low, *numbers in zip(lows.tolist(), highs.tolist(), starts.tolist(), slopes.tolist(), strict=True):
                band = BANDS[bisect_right(thresholds, low)] if thresholds else None
                rows.append((reference.name, reference.model_id, lang, low, *numbers, band, weakness))
    return pl.DataFrame(rows, SCHEMA, orient="row")


def measure_quantiles(values: Floats) -> list[float]:
    """Compute the quantiles at 0, 1 … 100 percent, rounded to 6 decimals."""
    return [round(float(value), 6) for value in np.quantile(values, np.linspace(0, 1, 101))]


def fit_thresholds(values: Floats, levels: npt.NDArray[np.int64]) -> list[float]:
    """Fit the thresholds of the bands: those of the highest agreement of band and level.

    The agreement is Cohen's kappa with quadratic weights. All triples of 39 quantiles of the scores are tried.
    """
    cuts = np.quantile(values, np.arange(1, 40) / 40)
    triples = np.array(list(combinations(range(len(cuts)), 3)))
    best = int(_measure_kappa(_count_bands(values, levels, cuts[triples])).argmax())
    return [round(float(cut), 6) for cut in cuts[triples[best]]]


def measure_agreement(values: Floats, levels: npt.NDArray[np.int64], thresholds: list[float]) -> float:
    """Measure the quadratic-weighted kappa of band and level."""
    return round(float(_measure_kappa(_count_bands(values, levels, np.array([thresholds])))[0]), 6)


def _count_bands(values: Floats, levels: npt.NDArray[np.int64], cuts: Floats) -> Floats:
    """Count the texts of each level's band (columns) that each row of cuts gives each band: [rows, given, level]."""
    expected = LEVELS[levels - 1]
    below = np.stack([np.searchsorted(np.sort(values[expected == band]), cuts) for band in range(len(BANDS))], axis=-1)
    totals = np.bincount(expected, minlength=len(BANDS))
    edges = np.concatenate([np.zeros_like(below[:, :1]), below, np.broadcast_to(totals, below[:, :1].shape)], axis=1)
    return np.diff(edges, axis=1).astype(np.float64)


def _measure_kappa(counts: Floats) -> Floats:
    """Compute Cohen's kappa with quadratic weights of tables [n, bands, bands]; 0 where chance alone is expected."""
    weights = np.square(np.subtract.outer(np.arange(len(BANDS)), np.arange(len(BANDS))))
    chance = counts.sum(axis=2)[:, :, None] * counts.sum(axis=1)[:, None, :] / counts.sum(axis=(1, 2))[:, None, None]
    expected = (weights * chance).sum(axis=(1, 2))
    observed = (weights * counts).sum(axis=(1, 2))
    return np.asarray(1 - np.divide(observed, expected, out=np.ones_like(observed), where=expected > 0), np.float64)


def format_reference(reference: Reference) -> str:
    """Format a reference as JSON."""
    scales = {lang: scale._asdict() for lang, scale in reference.scales.items()}
    return json.dumps({**reference._asdict(), "scales": scales}, ensure_ascii=False) + "\n"


def parse_reference(text: str, location: str) -> Reference:
    """Parse the JSON of a reference; BadInput with its location if it is none."""
    with refuse_damage(location, "build the reference again"):
        fields = json.loads(text)
        scales = {lang: Scale(**scale) for lang, scale in fields["scales"].items()}
        if any(len(scale.quantiles) != 101 for scale in scales.values()):
            raise BadInput(f"{location}: expected 101 quantiles of each language; build the reference again")
        return Reference(**{**fields, "scales": scales})
