"""Changes between two weeks: by hand, next to linearised errors, with threads as units; corrected means combined."""

import numpy as np
import polars as pl
import pytest

from pipeline.metrics.weeks import combine_corrected, measure_change


def threads_of(rng: np.random.Generator, count: int, sd: float = 0.3, step: float = 0.0) -> pl.DataFrame:
    """Sums over threads of two weeks, 1 to 6 comments each, that differ by thread more than within one."""
    is_now, sizes = np.arange(2 * count) < count, rng.integers(1, 7, 2 * count)
    means = 1 + step * is_now + rng.normal(0, sd, 2 * count) + rng.normal(0, 0.1, 2 * count) / np.sqrt(sizes)
    names = [f"t{n:05}" for n in range(2 * count)]
    return pl.DataFrame({"thread_id": names, "is_now": is_now, "comment_count": sizes, "total": sizes * means})


def test_the_change_and_its_interval_next_to_linearisation() -> None:
    """The interval is that of a ratio's linearised variance over threads; ten copies of a comment narrow nothing."""
    rows = threads_of(np.random.default_rng(1), 400, step=0.2)
    change, low, high = measure_change(rows)
    weeks = [rows.filter(is_now=is_now).select("comment_count", "total").to_numpy().T for is_now in (True, False)]
    means = [totals.sum() / counts.sum() for counts, totals in weeks]
    # Taylor linearisation (Cochran, Sampling Techniques, 6.4)
    errors = [((y - mean * n) ** 2).sum() / n.sum() ** 2 for (n, y), mean in zip(weeks, means, strict=True)]
    assert change == pytest.approx(means[0] - means[1])
    half = 1.96 * sum(errors) ** 0.5
    assert (low, high) == pytest.approx((change - half, change + half), abs=0.1 * half)
    copies = rows.with_columns(pl.col("comment_count", "total") * 10)
    assert measure_change(copies) == pytest.approx((change, low, high))


def test_intervals_cover_the_true_change() -> None:
    """With 40 threads a week, 95 % intervals hold the true change in 95 % of 300 draws, within what chance allows."""
    rng = np.random.default_rng(7)
    intervals = [measure_change(threads_of(rng, 40, step=0.1)) for _ in range(300)]
    assert 0.91 < np.mean([low <= 0.1 <= high for _, low, high in intervals]) < 0.985


def test_a_thread_of_both_weeks_is_one_unit() -> None:
    """The same ten threads in both weeks, each higher by 0.1, have no error; as others they do; nine are too few."""
    week = threads_of(np.random.default_rng(3), 5).with_columns(is_now=False)
    rows = pl.concat([week.with_columns(is_now=True, total=pl.col("total") + 0.1 * pl.col("comment_count")), week])
    assert measure_change(rows) == pytest.approx((0.1, 0.1, 0.1))
    assert measure_change(rows.with_columns(thread_id=pl.format("{}{}", "thread_id", "is_now"))).low < 0
    assert np.isnan(measure_change(rows[1:])).tolist() == [False, True, True]


def test_corrected_means_are_weighted_by_comments() -> None:
    """Errors add as squares. A group with an uncorrected day or with two judges is left out."""
    columns = ("source", "is_now", "comment_count", "corrected_mean", "corrected_low", "corrected_high", "judge")
    rows = [
        ("a", True, 100, 1.0, 0.6, 1.4, "gpt:scale"), ("a", True, 300, 1.4, 1.2, 1.6, "gpt:scale"),
        ("a", False, 50, 1.0, 0.8, 1.2, "gpt:scale"),
        ("b", True, 10, 1.0, 0.9, 1.1, "gpt:scale"), ("b", False, 10, None, None, None, "uncorrected"),
        ("c", True, 10, 1.0, 0.9, 1.1, "gpt:scale"), ("c", False, 10, 1.0, 0.9, 1.1, "ana:scale"),
    ]  # fmt: skip
    frame = pl.DataFrame(rows, schema=columns, orient="row").with_columns(lang=pl.lit("zh"))
    (row,) = combine_corrected(frame).to_dicts()
    assert (row["source"], row["judge"]) == ("a", "gpt:scale")
    half = ((0.25 * 0.4) ** 2 + (0.75 * 0.2) ** 2 + 0.2**2) ** 0.5
    assert row["corrected"] == pytest.approx(0.25 * 1.0 + 0.75 * 1.4 - 1.0)
    assert (row["corrected_low"], row["corrected_high"]) == pytest.approx((0.3 - half, 0.3 + half))
