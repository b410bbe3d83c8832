"""Metrics held against people's grades as tasks: of the tables, and of files."""

import csv
import random
from collections import defaultdict
from pathlib import Path

import polars as pl
import pytest

from pipeline import sample, warehouse
from pipeline.errors import BadInput
from pipeline.metrics.commenting import correlation
from pipeline.metrics.overlap import scoring
from pipeline.tasks.commenting import correlations, overlap
from tests.examples.sources.writing import text

DAY = sample.DAY


def test_metrics_are_held_against_people(graded: Path) -> None:
    """Correlations of the tables are scipy's on the same numbers, weighted beside plain, and people beside people."""
    overlap.measure(DAY)
    rows = correlations.write_correlations(DAY)
    is_meteor = (pl.col("metric") == "meteor") & pl.col("is_weighted")
    judged = correlations.read_judged().filter(is_meteor)
    expected = correlation.correlate(judged["value"], judged["grade"], judged["group"])
    meteor = rows.filter(is_meteor, coefficient="spearman").row(0, named=True)
    assert (meteor["value"], meteor["n"]) == (round(expected.spearman or 0, 6), 6)
    assert meteor["difference"] is not None
    is_spearman = pl.col("metric").str.starts_with("spearman")
    of_meteor = warehouse.scan("studies").filter(is_spearman, subset="w_meteor").collect()
    parts = dict(of_meteor.select("metric", "value").iter_rows())
    columns = {"spearman": "value", "spearman_p": "p", "spearman_difference": "difference"}
    assert parts == pytest.approx({name: meteor[column] for name, column in columns.items()}, abs=1e-6)
    human = rows.filter(metric="human")
    assert human.height == human.drop_nulls(["low", "high"]).height == 2
    value = correlations.correct_halves(rows).filter(metric="human")["value"]
    assert value.to_list() == pytest.approx([2 * r / (1 + r) for r in human["value"]])  # Spearman and Brown's formula
    assert {"meteor", "w_meteor", "human"} <= set(correlations.format_table_4(rows)["metric"])
    sensitivity = correlations.measure_sensitivity(["meteor"])
    assert set(sensitivity["preset"]) == set(scoring.PRESETS)
    assert sensitivity.filter(preset="none")["ratio"].to_list() == pytest.approx([1.0, 1.0])


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("grade,meteor\n1,0.1\n2,\n3,0.3\n", "row 2, field 'meteor': expected a number, found ''"),
        ("grade,meteor\n1,0.1\nnan,0.2\n3,0.3\n", "row 2, field 'grade': expected a number, found"),
        ("grade,name\n1,a\n2,b\n", "expected columns of numbers besides 'grade', found none"),
        ("grade,meteor,article\n1,0.1,a\n2,0.2,\n", "row 2, field 'article': expected an article, found none"),
    ],
)
def test_bad_tables_are_refused(tmp_path: Path, table: str, message: str) -> None:
    """A gap in a metric, a grade or the articles is named by row and field."""
    with pytest.raises(BadInput, match=message):
        correlations.correlate_table(text(tmp_path / "t.csv", table), group="article" if "article" in table else None)


def test_weights_raise_correlation_on_real_comments(data: Path) -> None:
    """On graded English news comments W-METEOR and W-ROUGE-L go further with the crowd than the plain ones."""
    path = data / "c3_constructive_comments_en" / "c3_12000_selected_columns.csv"
    comments: dict[str, list[tuple[list[str], float]]] = defaultdict(list)
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            words = row["comment_text"].lower().split()[:60]
            comments[row["article_id"]].append((words, float(row["constructive"])))
    random_source, rows = random.Random(42), []
    for article in sorted(comments)[:150]:
        shuffled = sorted(comments[article])
        random_source.shuffle(shuffled)
        rows += [(article, *candidate, shuffled[2:14]) for candidate in shuffled[:2] if len(shuffled) > 8]
    articles, candidates, grades, reference_rows = zip(*rows, strict=True)
    references = [[words for words, _ in row] for row in reference_rows]
    row_weights = [
        scoring.normalise_grades([1 + 4 * grade for _, grade in row], "(s-1)/4").tolist() for row in reference_rows
    ]
    metrics = overlap.build_metrics(["meteor", "rouge_l"], lambda: iter(()))
    plain = scoring.score_segments(metrics, candidates, references)
    weighted = scoring.score_segments(metrics, candidates, references, row_weights)
    for name in ("meteor", "rouge_l"):
        gain = correlation.compare(weighted[name], plain[name], grades, articles)
        assert gain.spearman_low is not None
        assert gain.spearman_low > 0
