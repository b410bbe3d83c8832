"""How time and memory of the studies' computations grow, from 10^3 to 10^5: run it as it is.

Inputs are made up with a seed. Each computation at each size has a process of its own. Time is of the computation
alone, memory of the process. Arguments: names of computations, all by default.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("POLARS_MAX_THREADS", "2")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np
import polars as pl

from tests.bench.measure import peak_memory, run_apart

PART = 1_000  # items that are made up at a time
QUERIES = 1_000  # articles for which similar ones are looked for


def draw_words(count: int, seed: int, longest: int = 30) -> list[list[str]]:
    """Draw texts of 5 to `longest` words by Zipf's law."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(5, longest, count)
    words = np.char.add("w", (rng.zipf(1.3, sizes.sum()) % 30_000).astype(str))
    return [part.tolist() for part in np.split(words, sizes.cumsum()[:-1])]


def prepare_options(count: int) -> Callable[[], dict[str, Any]]:
    """Wrong options for so many cloze items, and what the baselines find above chance in these."""
    from pipeline.examples.recam.balance import choose_balanced
    from pipeline.metrics.recam.audit import audit
    from tests.examples.recam.balance_test import simulate

    parts = [simulate(PART, seed) for seed in range(count // PART)]
    items, candidates = (
        pl.concat(frame.with_columns(item_id=f"{n} " + pl.col("item_id")) for n, frame in enumerate(frames))
        for frames in zip(*parts, strict=True)
    )
    items = items.with_columns(article=pl.col("item_id"))

    def compute() -> dict[str, Any]:
        rows = choose_balanced(items, candidates).rows
        gaps = audit(rows).select(pl.col("gap") - 2 * pl.col("error"))
        return {"items": rows.height, "gap": round(gaps.to_series().max(), 3)}  # type: ignore[arg-type]

    return compute


def prepare_overlap(count: int) -> Callable[[], dict[str, Any]]:
    """Four overlap metrics of so many candidates with five references each, with intervals."""
    from pipeline.metrics.overlap import build_metrics
    from pipeline.metrics.overlap.scoring import measure

    def draw(kind: int) -> Iterator[Any]:
        for seed in range(count // PART):
            texts = draw_words(PART * 5, 10 * seed + kind)
            yield from (texts[n * 5 : n * 5 + 5] if kind else texts[n] for n in range(PART))

    def compute() -> dict[str, Any]:
        metrics = build_metrics(("bleu_4", "meteor", "rouge_l", "cider"), lambda: draw(1))
        rows = measure(metrics, draw(0), draw(1), ([1.0] * 5 for _ in range(count)))
        return dict(rows.select("metric", pl.col("score").round(3)).iter_rows())

    return compute


def prepare_agreement(count: int) -> Callable[[], dict[str, Any]]:
    """Alpha, kappa and TAE of so many labels of four raters, with intervals."""
    from pipeline.metrics.labelling.agreement import estimate_interval, simulate

    codes = simulate(count, 0.8, 0.2)
    return lambda: {
        name: round(estimate_interval(name, codes).value, 3) for name in ("alpha_nominal", "fleiss_kappa", "tae")
    }


def prepare_index(count: int) -> Callable[[], dict[str, Any]]:
    """An index of so many articles, and the five nearest of a thousand."""
    from pipeline.models.commenting.relevance import build_index, find_nearest

    articles = pl.concat(pl.Series(draw_words(PART, seed, 200)) for seed in range(count // PART))
    return lambda: {"first": int(find_nearest(build_index(articles), articles.head(QUERIES), 5).places[:, 0].sum())}


def prepare_compression(count: int) -> Callable[[], dict[str, Any]]:
    """So many sentences compressed by NDD with the counting model."""
    from pipeline.score.compress import scorers, search
    from pipeline.tasks.ndd import masked_lm

    sentences = draw_words(count, 2)
    model = masked_lm.load_model().model
    return lambda: {"kept": sum(int(c.is_kept.sum()) for c in search.compress(sentences, scorers.ndd(model)))}


def prepare_judging(count: int) -> Callable[[], dict[str, Any]]:
    """Ten comparisons for each of so many texts, in ten rounds, by a judge with noise."""
    from pipeline.metrics.judging import bradley_terry

    truth = np.random.default_rng(0).normal(0, 1.5, count)

    def compute() -> dict[str, Any]:
        chance, pairs = np.random.default_rng(1), bradley_terry.draw_first_pairs(count, 0)
        outcome = np.empty(0, np.int64)
        for number in range(1, 11):
            first, second = np.array(pairs).T
            leads = truth[first] - truth[second] + chance.logistic(size=len(pairs))
            outcome = np.append(outcome, np.sign(leads[len(outcome) :]).astype(np.int64))
            comparisons = bradley_terry.Comparisons(first, second, outcome)
            if number < 10:
                fit = bradley_terry.fit_values(comparisons, count)
                errors = bradley_terry.approximate_errors(comparisons, fit)
                pairs += bradley_terry.choose_pairs(fit.values, errors, pairs, count, number)
        result = bradley_terry.estimate(comparisons, count)
        covered = np.abs(result.values - truth + truth.mean()) <= bradley_terry.Z * result.errors
        return {"comparisons": len(pairs), "covered": round(float(covered.mean()), 3)}

    return compute


class Computation(NamedTuple):
    """A computation, prepared for a size, and the sizes."""

    prepare: Callable[[int], Callable[[], dict[str, Any]]]
    sizes: tuple[int, ...] = (1_000, 10_000, 100_000)


COMPUTATIONS = {
    "cloze options": Computation(prepare_options), "overlap metrics": Computation(prepare_overlap),
    "agreement": Computation(prepare_agreement), "similar articles": Computation(prepare_index),
    "compression": Computation(prepare_compression, (100, 1_000, 10_000)), "judging": Computation(prepare_judging),
}  # fmt: skip


def measure(name: str, count: int) -> dict[str, Any]:
    """Run a computation in this process."""
    compute = COMPUTATIONS[name].prepare(count)
    start = time.process_time()
    result = compute()
    return {"cpu": time.process_time() - start, "peak": peak_memory(), "result": result}


def main(names: list[str]) -> None:
    """Measure, and print rows of the table in docs/scale.md."""
    print("| computation | n: CPU s, MB | time against linear | result |\n| --- | --- | --- | --- |")
    for name in names or COMPUTATIONS:
        sizes = COMPUTATIONS[name].sizes
        results = [run_apart(f"scale_studies.measure({name!r}, {count})") for count in sizes]
        cells = "; ".join(
            f"{count:,}: {result['cpu']:,.1f}, {result['peak']:,.0f}"
            for count, result in zip(sizes, results, strict=True)
        )
        growth = ", ".join(
            f"{after['cpu'] / before['cpu'] * size_before / size:.2f}"
            for (size_before, before), (size, after) in pairwise(zip(sizes, results, strict=True))
        )
        print(f"| {name} | {cells} | {growth} | {results[-1]['result']} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
