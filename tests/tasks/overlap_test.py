"""Overlap with references as tasks: of files, of what commenters made, and metrics held against people."""

import csv
import json
import math
import random
from collections import defaultdict
from pathlib import Path

import polars as pl
import pytest

from pipeline import sample, warehouse
from pipeline.errors import BadInput, Missing
from pipeline.metrics import correlation
from pipeline.metrics.overlap import scoring, weights
from pipeline.tasks import commenters, grading, overlap

DAY = sample.DAY
CANDIDATES = "the bus is late\n我喜欢这座桥\n\n"
REFERENCES = '["the bus is very late", "a bus"]\n["我们喜欢这座桥"]\n["so what"]\n'


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Three candidates, the last of them empty, and their references."""
    (tmp_path / "c.txt").write_text(CANDIDATES, encoding="utf-8")
    (tmp_path / "r.jsonl").write_text(REFERENCES, encoding="utf-8")
    return tmp_path / "c.txt", tmp_path / "r.jsonl"


def written(path: Path, text: str) -> Path:
    """A file with this text."""
    path.write_text(text, encoding="utf-8")
    return path


def test_files_are_measured_line_by_line(files: tuple[Path, Path], tmp_path: Path) -> None:
    """BLEU-1 by hand: all 10 units match, and 14 are in the closest references; a match is worth its weight."""
    found = overlap.of_files(*files, names=["bleu_1"], tokenize="chars")
    assert found["score"].item() == pytest.approx(10 / 10 * math.exp(1 - 14 / 10))
    worth = written(tmp_path / "w.jsonl", "[0.5, 0.25]\n[1]\n[1]\n")
    less = overlap.of_files(*files, worth, names=["bleu_1"], tokenize="chars")
    assert less["score"].item() == pytest.approx(8 / 10 * math.exp(1 - 14 / 10))
    assert less["signature"].item().startswith("bleu_1|")
    assert less["signature"].item().endswith("|weights:file|tokenizer:chars")


def test_weights_of_one_change_nothing(files: tuple[Path, Path], tmp_path: Path) -> None:
    """With all weights one every metric is what it is without weights (AAC-19)."""
    ones = written(tmp_path / "w.jsonl", "[1, 1]\n[1.0]\n[1]\n")
    names = [*overlap.NAMES, "cider_d"]
    plain, weighed = (overlap.of_files(*files, given, names)["score"].to_list() for given in (None, ones))
    assert weighed == plain


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("r.jsonl", REFERENCES.splitlines()[0], "no references, but candidate"),
        ("r.jsonl", "the bus\n" * 3, r"r.jsonl, line 1: expected JSON, found 'the bus'"),
        ("r.jsonl", '"the bus"\n' * 3, r"r.jsonl, line 1: expected a JSON list of references"),
        ("r.jsonl", "[]\n" * 3, r"r.jsonl, line 1: expected a JSON list of references, found \[\]"),
        ("w.jsonl", "[1]\n[1]\n[1]\n", "row 1, weights: expected a list of 2"),
        ("w.jsonl", "[1, 2]\n[1]\n[1]\n", "row 1, weights: expected numbers between 0 and 1, found 2"),
        ("r.jsonl", "[" * 100_000 + "\n", r"r.jsonl, line 1: expected JSON"),
        ("w.jsonl", "1\n1\n1\n", r"w.jsonl, line 1: expected a JSON list of weights"),
    ],
)
def test_bad_files_are_refused(files: tuple[Path, Path], tmp_path: Path, name: str, text: str, message: str) -> None:
    """What does not fit is named by file and line."""
    written(tmp_path / name, text)
    with pytest.raises(BadInput, match=message):
        overlap.of_files(*files, tmp_path / "w.jsonl" if name == "w.jsonl" else None)


def test_unknown_names_are_refused(files: tuple[Path, Path]) -> None:
    """Metrics and tokenizers are named where there is no such."""
    with pytest.raises(BadInput, match="no metric 'blue'; there are bleu_1"):
        overlap.of_files(*files, names=["blue"])
    with pytest.raises(BadInput, match="metrics should be named once"):
        overlap.of_files(*files, names=["bleu_1", "bleu_1"])
    with pytest.raises(BadInput, match="no tokenizer 'spacy'; there are jieba, chars, none"):
        overlap.of_files(*files, tokenize="spacy")


@pytest.fixture
def graded(corpus: Path) -> Path:
    """The sample's corpus with real comments beside, all graded by the sample's own grades."""
    commenters.generate(DAY, commenters.HUMAN)
    rows = ["thread_id,comment_id,rater_id,grade"]
    for line in sample.THREADS.read_text(encoding="utf-8").splitlines():
        article = json.loads(line)
        for comment in article["comments"]:
            for rater, grade in zip("xy", comment["grades"], strict=True):
                rows.append(f"{article['article_id']},{comment['comment_id']},{rater},{grade}")
    path = corpus.parent / "grades.csv"
    path.write_text("\n".join(rows), encoding="utf-8")
    grading.bring(path, "sample")
    return corpus


def test_what_was_made_is_measured_plain_and_weighted(graded: Path) -> None:
    """Each comment has each metric twice; weighted scores are lower, and equal the library's own on the same words."""
    assert overlap.measure(DAY, preset="(s-1)/4") == {"sample_news": 6 * len(overlap.NAMES) * 2}
    rows = warehouse.scan("metric_scores").collect()
    wide = rows.pivot("is_weighted", index=["generated_id", "metric"], values="value")
    assert (wide["true"] <= wide["false"]).all()
    refs = overlap.references("(s-1)/4")
    made = warehouse.scan("generated_comments").collect().join(refs, on=["source", "thread_id"], suffix="_of")
    metrics = overlap.built(["meteor"], lambda: iter(()))
    own = scoring.segment_scores(
        metrics, made["tokens"].to_list(), made["tokens_of"].to_list(), made["weights"].to_list()
    )
    told = rows.filter(pl.col("metric") == "meteor", "is_weighted").select("generated_id", "value")
    both = made.select("generated_id", own=own["meteor"].round(6)).join(told, on="generated_id")
    assert both["own"].to_list() == both["value"].to_list()
    before = rows.sort("generated_id", "metric", "is_weighted")
    overlap.measure(DAY, preset="(s-1)/4")
    assert warehouse.scan("metric_scores").collect().sort("generated_id", "metric", "is_weighted").equals(before)


def test_metrics_are_held_against_people(graded: Path) -> None:
    """Correlations of the tables are scipy's on the same numbers, weighted beside plain, and people beside people."""
    overlap.measure(DAY)
    assert overlap.correlations(DAY) > 0
    found = overlap.table(DAY)
    told = overlap.judged()
    meteor = told.filter(pl.col("metric") == "meteor", "is_weighted")
    expected = correlation.correlate(meteor["value"], meteor["grade"], meteor["group"])
    mine = found.filter(pl.col("metric") == "meteor", "is_weighted", coefficient="spearman").row(0, named=True)
    assert (mine["value"], mine["n"]) == (round(expected.spearman or 0, 6), 6)
    assert mine["difference"] is not None
    assert found.filter(metric="human").height == 2
    shown = overlap.table_4(found)
    assert {"meteor", "w_meteor", "human"} <= set(shown["metric"])
    tried = overlap.sensitivity(["meteor"])
    assert set(tried["preset"]) == set(weights.PRESETS)
    assert tried.filter(preset="none")["ratio"].to_list() == pytest.approx([1.0, 1.0])


def test_without_grades_there_are_the_plain_metrics(corpus: Path) -> None:
    """Nobody graded: there are scores without weights, no correlations, and no error."""
    commenters.generate(DAY, commenters.HUMAN)
    overlap.measure(DAY)
    assert warehouse.scan("metric_scores").collect()["is_weighted"].any() is False
    assert overlap.correlations(DAY) == 0
    with pytest.raises(Missing, match="nothing that was measured was graded"):
        overlap.table(DAY)


def test_a_table_of_scores_is_correlated(tmp_path: Path) -> None:
    """Columns of numbers are metrics; one called `w_x` is the weighted form of `x`."""
    path = tmp_path / "scores.csv"
    lines = [f"{n},{n % 5},{n % 7},{n % 5},a{n // 4}" for n in range(40)]
    path.write_text("id,meteor,bleu,w_bleu,article\n" + "\n".join(lines), encoding="utf-8")
    found = overlap.of_table(path, "meteor", "article").filter(coefficient="pearson", metric="bleu").sort("is_weighted")
    assert found["value"][1] == pytest.approx(1)
    assert found["difference"][1] == pytest.approx(1 - found["value"][0])
    with pytest.raises(BadInput, match=r"scores.csv: no column 'grade'; there are id, meteor"):
        overlap.of_table(path)


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
        overlap.of_table(written(tmp_path / "t.csv", text))


def test_any_names_of_columns_will_do(tmp_path: Path) -> None:
    """Metrics may be called what the inside calls its own columns."""
    lines = "\n".join(f"{n % 5},{n},{n % 3},{n}" for n in range(20))
    found = overlap.of_table(written(tmp_path / "t.csv", f"human,item_id,group,grade\n{lines}\n"), "human")
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
    metrics = overlap.built(["meteor", "rouge_l"], lambda: iter(()))
    plain, weighed = (scoring.segment_scores(metrics, candidates, references, given) for given in (None, worth))
    for name in ("meteor", "rouge_l"):
        gain = correlation.difference(weighed[name], plain[name], [row[2] for row in rows], [row[0] for row in rows])
        assert gain.spearman_low is not None
        assert gain.spearman_low > 0
