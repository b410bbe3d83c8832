"""Metrics held against people's grades as tasks: of the tables, and of files."""

import csv
import random
from collections import defaultdict
from pathlib import Path

import polars as pl
import pytest

from pipeline import sample, warehouse
from pipeline.errors import BadInput, Missing
from pipeline.metrics.commenting import correlation
from pipeline.metrics.overlap import scoring, weights
from pipeline.tasks.commenting import correlations, generated, overlap

DAY = sample.DAY


def written(path: Path, text: str) -> Path:
    """A file with this text."""
    path.write_text(text, encoding="utf-8")
    return path


def test_metrics_are_held_against_people(graded: Path) -> None:
    """Correlations of the tables are scipy's on the same numbers, weighted beside plain, and people beside people."""
    overlap.measure(DAY)
    assert correlations.write_correlations(DAY) > 0
    found = correlations.read_correlations(DAY)
    told = correlations.read_judged()
    meteor = told.filter(pl.col("metric") == "meteor", "is_weighted")
    expected = correlation.correlate(meteor["value"], meteor["grade"], meteor["group"])
    mine = found.filter(pl.col("metric") == "meteor", "is_weighted", coefficient="spearman").row(0, named=True)
    assert (mine["value"], mine["n"]) == (round(expected.spearman or 0, 6), 6)
    assert mine["difference"] is not None
    assert found.filter(metric="human").height == 2
    shown = correlations.format_table_4(found)
    assert {"meteor", "w_meteor", "human"} <= set(shown["metric"])
    tried = correlations.measure_sensitivity(["meteor"])
    assert set(tried["preset"]) == set(weights.PRESETS)
    assert tried.filter(preset="none")["ratio"].to_list() == pytest.approx([1.0, 1.0])


def test_without_grades_there_are_the_plain_metrics(sample_corpus: Path) -> None:
    """Nobody graded: there are scores without weights, no correlations, and no error."""
    generated.generate(DAY, generated.HUMAN)
    overlap.measure(DAY)
    assert warehouse.scan("metric_scores").collect()["is_weighted"].any() is False
    assert correlations.write_correlations(DAY) == 0
    with pytest.raises(Missing, match="nothing that was measured was graded"):
        correlations.read_correlations(DAY)


def test_a_table_of_scores_is_correlated(tmp_path: Path) -> None:
    """Columns of numbers are metrics; one called `w_x` is the weighted form of `x`."""
    path = tmp_path / "scores.csv"
    lines = [f"{n},{n % 5},{n % 7},{n % 5},a{n // 4}" for n in range(40)]
    path.write_text("id,meteor,bleu,w_bleu,article\n" + "\n".join(lines), encoding="utf-8")
    found = (
        correlations.correlate_table(path, "meteor", "article")
        .filter(coefficient="pearson", metric="bleu")
        .sort("is_weighted")
    )
    assert found["value"][1] == pytest.approx(1)
    assert found["difference"][1] == pytest.approx(1 - found["value"][0])
    with pytest.raises(BadInput, match=r"scores.csv: no column 'grade'; there are id, meteor"):
        correlations.correlate_table(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("grade,meteor\n1,0.1\n2,\n3,0.3\n", "row 2, field 'meteor': expected a number, found ''"),
        ("grade,meteor\n1,0.1\nnan,0.2\n3,0.3\n", "row 2, field 'grade': expected a number, found"),
        ("grade,name\n1,a\n2,b\n", "expected columns of numbers beside 'grade', found none"),
    ],
)
def test_bad_tables_are_refused(tmp_path: Path, text: str, message: str) -> None:
    """A gap in a metric or a grade is named by row and field."""
    with pytest.raises(BadInput, match=message):
        correlations.correlate_table(written(tmp_path / "t.csv", text))


def test_any_names_of_columns_will_do(tmp_path: Path) -> None:
    """Metrics may be called what the inside calls its own columns."""
    lines = "\n".join(f"{n % 5},{n},{n % 3},{n}" for n in range(20))
    found = correlations.correlate_table(written(tmp_path / "t.csv", f"human,item_id,group,grade\n{lines}\n"), "human")
    assert set(found["metric"]) == {"item_id", "group", "grade"}


def test_weights_raise_correlation_on_real_comments(data: Path) -> None:
    """On graded English news comments W-METEOR and W-ROUGE-L go further with the crowd than the plain ones."""
    path = data / "c3_constructive_comments_en" / "c3_12000_selected_columns.csv"
    by: dict[str, list[tuple[list[str], float]]] = defaultdict(list)
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            by[row["article_id"]].append((row["comment_text"].lower().split()[:60], float(row["constructive"])))
    draw, rows = random.Random(42), []
    for article in sorted(by)[:150]:
        some = sorted(by[article])
        draw.shuffle(some)
        rows += [(article, *one, some[2:14]) for one in some[:2] if len(some) > 8]
    candidates, references = [row[1] for row in rows], [[words for words, _ in row[3]] for row in rows]
    worth = [weights.normalise([1 + 4 * value for _, value in row[3]], "(s-1)/4").tolist() for row in rows]
    metrics = overlap.build_metrics(["meteor", "rouge_l"], lambda: iter(()))
    plain, weighed = (scoring.score_segments(metrics, candidates, references, given) for given in (None, worth))
    for name in ("meteor", "rouge_l"):
        gain = correlation.compare(weighed[name], plain[name], [row[2] for row in rows], [row[0] for row in rows])
        assert gain.spearman_low is not None
        assert gain.spearman_low > 0
