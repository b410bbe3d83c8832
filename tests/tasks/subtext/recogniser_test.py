"""The subtext recogniser as tasks: from labels to a model, from a model to scores, measured beside baselines."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from pipeline import left_out, sample, warehouse
from pipeline.collect.clean import hash_text
from pipeline.errors import Missing
from pipeline.tasks.record import model_choice, model_registry, promotion
from pipeline.tasks.subtext import recogniser
from tests.examples.sources.writing import jsonl
from tests.support.rows.filled import digest, filled

DAY = sample.DAY
SMALL: dict[str, Any] = {"epochs": 2, "members": 1, "hidden": 8, "meaning": 4, "ngrams": 1}
TEXTS = {"1": "你可真准时啊真准时", "0": "今天的会三点开始"}


def labelled(count: int = 24, start: int = 0) -> list[dict[str, Any]]:
    """Comments of two kinds, each in a context of its own."""
    return [
        {"text": f"{TEXTS[label]}{n}", "context": f"第{n}个话题", "label": label}
        for n, label in enumerate(["1", "0"] * (count // 2), start)
    ]


def release(name: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Publish labelled comments; return the rows."""
    published = filled(
        "annotated_comments",
        *(
            {
                "release": name, "row_id": digest(row["text"], 16), "text": row["text"], "context": row["context"],
                "is_subtext": row["label"] and row["label"] == "1",
            }
            for row in rows
        ),
    )  # fmt: skip
    warehouse.overwrite("annotated_comments", warehouse.make_slice(release=name), published)
    return rows


@pytest.fixture
def labelled_file(tmp_path: Path) -> Path:
    """Labelled comments as a file."""
    return jsonl(tmp_path / "own.jsonl", *labelled())


@pytest.fixture
def published(tables: Path) -> None:
    """The same as a release, two comments that raters were unsure about among them."""
    release("csd", [*labelled(), *({"text": f"嗯{n}", "context": "标题", "label": None} for n in (90, 91))])
    comments = filled("comments", {"text": TEXTS["1"], "context": "标题"}, {"text": TEXTS["0"], "context": None})
    warehouse.overwrite("comments", warehouse.make_slice(day=DAY), comments)


def test_a_release_becomes_a_model_in_force(published: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trained again on the same labels the model is the same; it is in force from its day on, its numbers are kept.

    Another one is compared with it and with both baselines on the same held-out rows.
    """
    first = recogniser.train(DAY, changes=SMALL)
    assert recogniser.train(DAY, changes=SMALL) == first == model_choice.select_model_id("subtext", DAY)
    row = warehouse.scan("models").collect().row(0, named=True)
    config = json.loads(row["config"])
    assert (row["kind"], row["is_promoted"], config["epochs"]) == ("subtext", True, 2)
    assert "there is nothing to compare with" in config["promotion"]["reason"]  # 4 held-out rows are too few
    evaluations = warehouse.scan("evaluations", pl.col("epoch") == 0).collect()
    assert evaluations.group_by("split").agg(pl.col("pair_count").first())["pair_count"].sum() == 24
    metrics = {"macro_f1", "macro_f1_low", "macro_f1_high", "calibration_error", "svm_baseline", "majority_baseline"}
    assert metrics <= set(evaluations.filter(pl.col("split") == "test")["metric"])
    monkeypatch.setattr(promotion, "MIN_ROWS", 2)
    promoted = model_registry.read_model(recogniser.train(DAY, changes={**SMALL, "seed": 7}))["promotion"]
    assert [row["rival"] for row in promoted["comparisons"]] == ["majority", "svm", promotion.IN_FORCE]
    assert promoted["replaced"] == first
    release("csd_2", [{**labelled(2)[0], "label": "0"}])  # labelled again, with another result
    assert recogniser.read_released().filter(context="第0个话题")["label"].to_list() == ["0"]
    assert ("repeated_text", 1) in [row[1:3] for row in left_out.list_rows() if row.step == "subtext"]


def test_a_rival_is_compared_on_texts_that_it_read_without_their_labels(
    tables: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Vectors read every comment, which an erasure knows; the rival is compared on those whose labels it never saw."""
    rows = release("first", labelled(24))
    later_rows = labelled(24, start=24)
    comments = ({"text": row["text"], "context": row["context"]} for row in rows + later_rows)
    warehouse.overwrite("comments", warehouse.make_slice(day=DAY), filled("comments", *comments))
    first = recogniser.train(DAY, changes=SMALL)
    read = warehouse.scan("training_texts", pl.col("model_id") == first).collect()
    hashes = hash_text(pl.Series([row["text"] for row in later_rows]))
    assert read.filter(pl.col("text_hash").is_in(hashes.implode()))["is_labelled"].to_list() == [False] * 24
    release("second", later_rows)
    assert set(recogniser.evaluate(recogniser.read_released(), first)["split"]) == {"train", "test"}
    monkeypatch.setattr(promotion, "MIN_ROWS", 1)
    promoted = model_registry.read_model(recogniser.train(DAY, changes=SMALL))["promotion"]
    compared = {row["rival"]: row["rows"] for row in promoted["comparisons"]}
    held_out = recogniser.read_released().filter(split="test")
    seen = recogniser.read_released("first").filter(pl.col("split") != "test")["text"]
    assert compared[promotion.IN_FORCE] == held_out.filter(~pl.col("text").is_in(seen.implode())).height > 0


def test_days_are_scored_in_their_contexts(published: None) -> None:
    """Every comment of the day gets a probability signed by the model; scored again nothing changes, others' stay."""
    implicit = filled("scores", {"comment_id": "c1", "metric": "implicitness", "model_id": digest("i")})
    warehouse.overwrite("scores", warehouse.make_slice(day=DAY), implicit)
    model_id = recogniser.train(DAY, changes=SMALL)
    assert recogniser.score_day(DAY) == 2
    rows = warehouse.scan("scores").sort("metric", "comment_id").collect()
    assert rows.select("metric", "comment_id").rows() == [("implicitness", "c1"), ("subtext", "c1"), ("subtext", "c2")]
    scores = rows.filter(metric="subtext")
    assert scores["value"].is_between(0, 1).all()
    assert scores["signature"].str.contains(f"model:{model_id[:12]}").all()
    assert recogniser.score_day(DAY) == 2
    assert_frame_equal(warehouse.scan("scores").sort("metric", "comment_id").collect(), rows)


def test_the_context_alone_decides(tmp_path: Path) -> None:
    """f(s) = f(c + s): where the same words occur in both kinds of context, held-out ones are recognised (CSD-02).

    Without the context, as for a reader of the text alone, half of them can be right.
    """
    contexts = {
        "1": ("他又迟到了", "等了他一小时", "人到现在没来"),
        "0": ("他提前到了", "八点整门就开了", "他第一个到场"),
    }
    words = ("真准时", "时间观念真强", "效率真高", "可真会安排", "说到做到", "佩服佩服", "学习了", "值得表扬")
    splits = ("train", "train", "train", "validation", "test")
    rows = [
        {"text": f"{text}{'啊呢哦吧'[n:n + 1]}", "context": f"{context}，第{n}天", "label": label,
         "split": splits[(n + m) % 5]}
        for m, text in enumerate(words) for n in range(5) for label, texts in contexts.items() for context in texts
    ]  # fmt: skip
    path = jsonl(tmp_path / "own.jsonl", *rows)
    changes = {"epochs": 30, "members": 1, "hidden": 32, "ngrams": 1}
    fit = partial(recogniser.fit, recogniser.read(path), changes=changes)
    _, numbers = model_registry.train_into(tmp_path / "m", fit)
    final = dict(numbers.filter(epoch=0, split="test").select("metric", "value").iter_rows())
    assert final["macro_f1"] > 0.9
    assert final["macro_f1_without_context"] < 0.6
    held_out = pl.DataFrame([row for row in rows if row["split"] == "test"])
    scored = recogniser.score_frame(held_out, str(tmp_path / "m"))
    is_right = (scored["subtext"] > 0.5) == (held_out["label"] == "1")
    assert is_right.mean() == pytest.approx(final["accuracy"])


def test_made_up_labels_make_no_model_in_force(published: None) -> None:
    """What simulated raters labelled is learnt from only where it is named, and scores no day by itself."""
    ids = [{"task_id": digest(row["text"], 32), "row_id": digest(row["text"], 16)} for row in labelled()]
    tasks = [{"project": "csd", **row} for row in ids]
    warehouse.overwrite("label_tasks", warehouse.make_slice(project="csd"), filled("label_tasks", *tasks))
    made_up = [{"task_id": task["task_id"], "tool": "simulated", "value": "1"} for task in tasks]
    warehouse.overwrite("labels", warehouse.make_slice(project="csd"), filled("labels", *made_up))
    with pytest.raises(Missing, match="nothing to learn from; subtext: left out 24 as simulated_labels"):
        recogniser.train(DAY, changes=SMALL)
    assert [row[1:3] for row in left_out.list_rows() if row.step == "subtext"] == [
        ("simulated_labels", 24),
        ("no_label", 2),
    ]
    recogniser.train(DAY, "csd", changes=SMALL)
    assert [row[1:3] for row in left_out.list_rows() if row.step == "subtext"] == [("no_label", 2)]
    assert warehouse.scan("models").collect()["is_promoted"].to_list() == [False]
    assert model_choice.select_model_id("subtext", DAY) is None


def test_vectors_are_learnt_without_what_is_held_out(labelled_file: Path) -> None:
    """Vectors trained at hand know the words of other texts, but not of held-out texts or of what quotes one."""
    rows = recogniser.read(labelled_file)
    is_test = pl.col("split") == "test"
    strange = rows.with_columns(text=pl.when(is_test).then(pl.lit("龘龘龘龘龘龘龘龘")).otherwise("text"))
    extra_texts = ["猫在晒太阳", "龘龘龘龘龘龘龘龘", "有人说龘龘龘龘龘龘龘龘是讽刺"] * 9
    words = set(recogniser.load_vectors(strange, extra_texts=extra_texts).words)
    assert {"会", "猫"} <= words
    assert not {"龘", "讽"} & words
    short = rows.with_columns(pl.col("text").str.head(3))  # nothing that is held out can be quoted
    assert "猫" in recogniser.load_vectors(short, extra_texts=extra_texts).words


@pytest.mark.nightly
def test_real_data(data: Path, tmp_path: Path) -> None:
    """On ToSarcasm split by topic one small member reaches more than the majority; baselines stand beside."""
    rows = recogniser.read(data / "tosarcasm_zh", "tosarcasm", by_topic=True)
    short_rows = rows.filter(pl.col("text").str.len_chars() < 40)
    fit = partial(recogniser.fit, short_rows, changes={**SMALL, "epochs": 2, "hidden": 16})
    _, evaluations = model_registry.train_into(tmp_path / "m", fit)
    test_rows = evaluations.filter(pl.col("epoch") == 0, pl.col("split") == "test")
    test = dict(test_rows.select("metric", "value").iter_rows())
    assert test["majority_baseline"] < 0.42  # .37 to .38 by the topic splits tried
    assert test["macro_f1"] > test["majority_baseline"]
    assert 0.6 < test["svm_baseline"] < 0.75


def test_the_hash_of_a_data_set_stays() -> None:
    """The hash is that of 0.2.0, computed there: by another a model would take its own data for foreign."""
    columns = {"text": ["b", "a"], "context": [None, "c"], "label": ["1", "0"], "split": ["test", "train"]}
    wanted = "5a83dc6f9b7de916b0583a83b243e42048874c895a4558bcbddfadf73ad13cb1"
    assert recogniser.hash_rows(pl.DataFrame(columns)) == wanted
