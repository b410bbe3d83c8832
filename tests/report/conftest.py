"""Contents of a report, small and hand-made."""

from typing import Any

import polars as pl
import pytest

DAY = "2026-11-19"


@pytest.fixture
def contents() -> dict[str, Any]:
    """What a report of four comments from two sources shows."""
    scores = pl.DataFrame(
        {"source": ["weibo", "weibo", "zhihu", "zhihu"], "lang": ["zh", "zh", "en", "zh"],
         "implicitness": [0.25, 1.75, 2.0, 0.0], "percentile": [10.0, 90.0, None, 2.0]}
    )  # fmt: skip
    comments = pl.DataFrame(
        {"implicitness": [2.0, 1.75], "source": ["zhihu", "weibo"], "title": ["A hat", None],
         "text": ["Nice hat.", "你可真准时。"], "like_count": [3, None], "lang": ["en", "zh"],
         "percentile": [99.0, None], "band": ["veiled", None],
         "words": [[{"word": "Nice", "change": 0.25}, {"word": "hat", "change": -0.1}], None]},
        schema_overrides={"like_count": pl.Int64, "title": pl.String},
    )  # fmt: skip
    by_source = pl.DataFrame(
        {"source": ["weibo", "zhihu"], "lang": ["zh", "en"], "comment_count": [2, 1], "implicitness_mean": [1.0, 2.0],
         "implicitness_sd": [1.06066, None], "implicitness_median": [1.0, 2.0], "percentile_mean": [54.4, None],
         "percentile_median": [55.6, None]}
    )  # fmt: skip
    funnel = pl.DataFrame(
        {"source": ["weibo", "weibo", "zhihu"], "origin": ["sample"] * 3, "step": ["collect"] * 3,
         "read_count": [5, 5, 2], "kept_count": [2, 2, 2], "dropped_count": [3, 3, 0],
         "dropped_at": ["clean", "deduplicate", None], "reason": ["empty", "exact_duplicate", None],
         "row_count": [1, 2, None]},
        schema_overrides={"row_count": pl.Int64},
    )  # fmt: skip
    model = {"model_id": "ab" * 32, "day": DAY, "encoder": "embedded", "encoder_revision": "cd" * 32, "config": "{}",
             "data_hash": "ef" * 32, "completion_models": ["someone"], "code_version": "0.1.0"}  # fmt: skip
    evaluations = pl.DataFrame(
        {"metric": ["implicitness_accuracy", "pragmatics_accuracy"], "split": ["test"] * 2, "subset": ["all"] * 2,
         "value": [0.952, 0.962], "baseline": [0.844, None], "baseline_name": ["longer_is_implicit", None],
         "pair_count": [26, 26]}
    )  # fmt: skip
    counts = {"comment_count": 1200, "comment_count_before": 1000, "thread_count": 90, "thread_count_before": 80}
    shares = {"high_share": 0.4, "high_share_before": 0.25, "low_share": 0.2, "low_share_before": 0.25}
    change = {"lang": "zh", "day_count": 7, "mean": 1.1, "mean_before": 1.0, "change": 0.1, **counts, **shares}
    corrected = {"judge": "gpt:scale", "corrected": 0.08, "corrected_low": -0.01, "corrected_high": 0.17}
    unclear = {"low": float("nan"), "high": float("nan"), "is_clear": False, **dict.fromkeys(corrected)}
    clear = {"low": 0.05, "high": 0.15, "is_clear": True, **corrected}
    changes = pl.DataFrame([{"source": "weibo", **change, **clear}, {"source": "zhihu", **change, **unclear}])
    examples = comments.drop("words").with_columns(way=pl.Series([1, -1]))
    return {
        "weeks": {"changes": changes, "examples": examples},
        "day": DAY, "scores": scores, "by_source": by_source, "most": comments, "least": comments.reverse(),
        "funnel": funnel, "model": model, "evaluations": evaluations, "signatures": ["implicitness|model:abab|lang:en"],
        "reference": "sample", "weakness": "",
    }  # fmt: skip
