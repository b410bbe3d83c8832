"""The scorer of comments as tasks: a file or the tables to a model, a model to scores."""

import json
from functools import partial
from pathlib import Path

import polars as pl
import pytest

from pipeline import left_out, sample, warehouse
from pipeline.errors import BadInput, Missing
from pipeline.tasks.commenting import grades, scorer
from pipeline.tasks.record import model_registry, promotion
from tests.support.rows.labels import EXAMPLES

DAY = sample.DAY
SMALL = {"has_embedding": False, "buckets": 512}


@pytest.fixture
def graded(tmp_path: Path) -> Path:
    """The sample's comments with the mean of their grades, their upvotes and their articles."""
    path = tmp_path / "graded.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for line in sample.THREADS.read_text(encoding="utf-8").splitlines():
            article = json.loads(line)
            facts = {name: article[name] for name in ("title", "content", "article_id")}
            for comment in article["comments"]:
                numbers = {"grade": sum(comment["grades"]) / 2, "upvotes": comment["upvotes"]}
                row = {"text": comment["text"], **numbers, **facts}
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
    return path


def test_the_papers_graded_examples(tmp_path: Path) -> None:
    """A file in the shape of tables 8 and 9, 26 comments an article with the printed grades, is read whole (AAC-32).

    The words are ours: the paper's are not in this repository.
    """
    words = ("还是坐地铁吧", "希望早点通车", "老人坐车怎么办", "支持", "票价也该说说", "堵了三年终于修好了")
    lines = ["text,grade,article_id,title,content,split"]
    for name, printed in EXAMPLES.items():
        texts = [f"{words[n % 6]}，第{n}条" for n in range(len(printed))]
        lines += [f"{text},{grade},{name},新桥通车,桥长三公里,test" for text, grade in zip(texts, printed, strict=True)]
    path = tmp_path / "examples.csv"
    path.write_text("\n".join(lines), encoding="utf-8")
    rows = scorer.read(path, "quality")
    assert rows.group_by("article_id", maintain_order=True).agg("target").rows() == [
        (name, [float(grade) for grade in printed]) for name, printed in EXAMPLES.items()
    ]
    assert rows.row(25) == ("希望早点通车，第25条", "新桥通车", "桥长三公里", "table_8", "test", 3.0)


def test_upvotes_are_another_target(graded: Path, tmp_path: Path) -> None:
    """Upvotes of a file make a scorer of their own; it is not one of grades."""
    fit = partial(scorer.fit, scorer.read(graded, "upvotes"), "upvotes", changes=SMALL)
    model_registry.train_into(tmp_path / "scorer", fit)
    rows = pl.DataFrame({"text": ["沙发", "说得对"]})
    assert (scorer.score_frame(rows, "upvotes", str(tmp_path / "scorer"))["upvotes"] >= 0).all()
    with pytest.raises(BadInput, match="it is of kind 'upvotes', expected 'quality'; give --target upvotes"):
        scorer.score_frame(rows, "quality", str(tmp_path / "scorer"))
    with pytest.raises(BadInput, match=r"column 'upvotes': .* rename yours"):
        scorer.score_frame(rows.with_columns(upvotes=pl.lit(3)), "upvotes", str(tmp_path / "scorer"))


def test_a_day_is_scored_by_what_people_graded(
    sample_corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Grades in the tables make a scorer in force, which scores every comment of a day; again the same rows."""
    path = tmp_path / "grades.csv"
    rows = ["thread_id,comment_id,grade"]
    for line in sample.THREADS.read_text(encoding="utf-8").splitlines():
        article = json.loads(line)
        rows += [f"{article['article_id']},{c['comment_id']},{c['grades'][0]}" for c in article["comments"]]
    path.write_text("\n".join(rows), encoding="utf-8")
    grades.import_grades(path, "sample")
    monkeypatch.setattr(promotion, "MIN_ROWS", 1)  # the only article that is held out
    model_id = scorer.train(DAY, "quality", changes=SMALL)
    assert scorer.score_day(DAY) == 692
    before = warehouse.scan("scores").collect().sort("comment_id")
    assert set(before["metric"]) == {"quality"}
    assert set(before["model_id"]) == {model_id}
    scorer.score_day(DAY)
    assert warehouse.scan("scores").collect().sort("comment_id").equals(before)
    other_id = scorer.train(DAY, "quality", changes={**SMALL, "buckets": 256})
    promotions = [model_registry.read_model(ref)["promotion"] for ref in (model_id, other_id)]
    assert ["no other model was in force" in row["reason"] for row in promotions] == [True, False]
    first, second = (row["comparisons"] for row in promotions)
    assert {row["metric"] for row in first} == {"spearman"}
    assert [row["rival"] for row in second] == [*(row["rival"] for row in first), promotion.IN_FORCE]


def test_simulated_grades_are_not_learnt(sample_corpus: Path) -> None:
    """A scorer is not trained on what simulated raters said; the comments that only they graded are counted."""
    grades.assign_tasks("references", DAY, "simulated")
    grades.collect("references", tool="simulated")
    with pytest.raises(Missing, match="no comment is graded by people"):
        scorer.train(DAY, "quality")
    assert {row[:2] for row in left_out.list_rows()} >= {("quality", "simulated")}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("text,grade\n,3\n", "row 2, field 'text': expected a value, found none"),
        ("text,grade\nfine,nan\n", "row 2, field 'grade': expected a number from 1 to 5, found 'nan'"),
        ("text,grade,split\nfine,3,dev\n", "row 2, field 'split': expected train, validation, test, found 'dev'"),
        ("text,score\nfine,3\n", "row 2: no column 'grade'; there are text, score"),
    ],
)
def test_bad_rows_are_refused(tmp_path: Path, text: str, message: str) -> None:
    """A wrong row is named by file, row and field."""
    path = tmp_path / "graded.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadInput, match=message):
        scorer.read(path, "quality")


def test_splits_of_a_file_stay(tmp_path: Path) -> None:
    """Only rows without a split get one, by their article and whatever the order."""
    path = tmp_path / "graded.csv"
    rows = [f"text {n},{n % 5 + 1},a{n},{'test' if n < 9 else ''}" for n in range(60)]
    path.write_text("text,grade,article_id,split\n" + "\n".join(rows), encoding="utf-8")
    splits = scorer.read(path, "quality")["split"]
    assert set(splits.head(9)) == {"test"}
    assert set(splits.tail(51)) == {"train", "validation", "test"}
