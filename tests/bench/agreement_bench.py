"""Agreement of 1,000,000 labels beside statsmodels and scikit-learn, and the memory it takes: run it as it is.

statsmodels is no dependency of ours; where it is not installed its line is left out.
"""

import os
import sys
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path

import numpy as np
from sklearn.metrics import cohen_kappa_score

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ.setdefault("OMP_NUM_THREADS", "1")

from pipeline.metrics.labelling.agreement import estimate_interval, measure
from pipeline.metrics.labelling.measures import MEASURES
from tests.bench.measure import compare, cpu, peak_memory

LABELS = 1_000_000


def labels(classes: int, raters: int = 4) -> np.ndarray:
    """Raters who are right in seven of ten items and guess in the others: [items, raters], int8."""
    rng = np.random.default_rng(1)
    items = LABELS // raters
    truth = rng.integers(0, classes, (items, 1), dtype=np.int8)
    guess = rng.integers(0, classes, (items, raters), dtype=np.int8)
    return np.where(rng.random((items, raters), dtype=np.float32) < 0.7, truth, guess)


def main() -> None:
    """Our measures with intervals first, as the memory of the references would hide ours."""
    for classes in (3, 9):
        codes, before = labels(classes), peak_memory()
        seconds = cpu(lambda codes=codes: [estimate_interval(name, codes) for name in MEASURES])
        print(f"{LABELS:,} labels, {classes} classes, {len(MEASURES)} measures with 1,000 resamples each: "
              f"{seconds:.1f} cpu-s, {peak_memory() - before:,.0f} MB above the {before:,.0f} MB of start")  # fmt: skip
    codes = labels(3)
    pairs = list(combinations(range(4), 2))
    theirs = lambda: np.mean([cohen_kappa_score(codes[:, i], codes[:, j]) for i, j in pairs])
    assert abs(measure("cohen_kappa", codes) - theirs()) < 1e-12
    cohen = lambda: measure("cohen_kappa", codes)
    compare("Cohen's kappa, mean of 6 pairs", LABELS, cohen, theirs, "sklearn cohen_kappa_score")
    if find_spec("statsmodels"):
        from statsmodels.stats.inter_rater import aggregate_raters
        from statsmodels.stats.inter_rater import fleiss_kappa as reference

        fleiss = lambda: reference(aggregate_raters(codes)[0])
        assert abs(measure("fleiss_kappa", codes) - fleiss()) < 1e-12
        compare("Fleiss' kappa", LABELS, lambda: measure("fleiss_kappa", codes), fleiss, "statsmodels fleiss_kappa")


if __name__ == "__main__":
    main()
