"""Overlap with references as tasks: of files, of what commenters made, and metrics held against people."""

from pathlib import Path

import polars as pl
import pytest

from pipeline import sample, warehouse
from pipeline.errors import BadInput
from pipeline.metrics.overlap import scoring
from pipeline.tasks.commenting import overlap
from pipeline.tasks.commenting.overlap import Files

DAY = sample.DAY
CANDIDATES = "the bus is late\n我喜欢这座桥\n\n"
REFERENCES = '["the bus is very late", "a bus"]\n["我们喜欢这座桥"]\n["so what"]\n'


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Three candidates, the last of them empty, and their references."""
    (tmp_path / "c.txt").write_text(CANDIDATES, encoding="utf-8")
    (tmp_path / "r.jsonl").write_text(REFERENCES, encoding="utf-8")
    return tmp_path / "c.txt", tmp_path / "r.jsonl"


def test_weights_of_one_change_nothing(files: tuple[Path, Path], tmp_path: Path) -> None:
    """With all weights one every metric is what it is without weights (AAC-19)."""
    path, names = tmp_path / "w.jsonl", [*overlap.NAMES, "cider_d"]
    path.write_text("[1, 1]\n[1.0]\n[1]\n", encoding="utf-8")
    plain, weighted = (overlap.measure_files(Files(*files, ones), names)["score"].to_list() for ones in (None, path))
    assert weighted == plain


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("r.jsonl", "the bus\n" * 3, r"r.jsonl, line 1: broken JSON at character 1"),
        ("r.jsonl", '"the bus"\n' * 3, r"r.jsonl, line 1: expected a JSON list of references"),
        ("r.jsonl", "[]\n" * 3, r"r.jsonl, line 1: expected a JSON list of references, found \[\]"),
        ("w.jsonl", "[1]\n[1]\n[1]\n", "row 1, weights: expected a list of 2"),
        ("r.jsonl", "[" * 100_000 + "\n", r"r.jsonl, line 1: JSON nested too deeply"),
        ("w.jsonl", "1\n1\n1\n", r"w.jsonl, line 1: expected a JSON list of weights"),
    ],
)
def test_bad_files_are_refused(files: tuple[Path, Path], tmp_path: Path, name: str, text: str, message: str) -> None:
    """What does not fit is named by file and line."""
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(BadInput, match=message):
        overlap.measure_files(Files(*files, tmp_path / "w.jsonl" if name == "w.jsonl" else None))


def test_small_scores_have_three_significant_digits() -> None:
    """A W-CIDEr of .00119 is no .001."""
    assert overlap.format_numbers(pl.DataFrame({"value": [0.00119, 0.4567, 0.0]}))["value"].to_list() == [
        "0.00119", "0.457", "0.000",
    ]  # fmt: skip


def test_generated_comments_are_measured_plain_and_weighted(graded: Path) -> None:
    """Each comment has each metric twice; weighted scores are lower, and equal the library's own on the same words."""
    assert overlap.measure(DAY, preset="(s-1)/4") == {"sample_news": 6 * len(overlap.NAMES) * 2}
    rows = warehouse.scan("metric_scores").collect().sort("generated_id", "metric", "is_weighted")
    wide = rows.pivot("is_weighted", index=["generated_id", "metric"], values="value")
    assert (wide["true"] <= wide["false"]).all()
    references = overlap.read_references("(s-1)/4")
    comments = warehouse.scan("generated_comments").collect()
    comments = comments.join(references, on=["source", "thread_id"], suffix="_of").sort("generated_id")
    metrics = overlap.build_metrics(["meteor"], lambda: iter(()))
    columns = (comments[name].to_list() for name in ("tokens", "tokens_of", "weights"))
    expected = scoring.score_segments(metrics, *columns)["meteor"].round(6)
    assert rows.filter(pl.col("metric") == "meteor", "is_weighted")["value"].to_list() == expected.to_list()
    overlap.measure(DAY, preset="(s-1)/4")
    repeated = warehouse.scan("metric_scores").collect().sort("generated_id", "metric", "is_weighted")
    assert repeated.equals(rows)
