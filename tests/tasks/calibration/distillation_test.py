"""A judge is distilled into the scorer: judged texts, training, and the comparison on held-out texts."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import pipeline
from pipeline import left_out, sample, settings, warehouse
from pipeline.errors import BadInput, Missing
from pipeline.tasks.calibration import distillation
from pipeline.tasks.erasure import models
from pipeline.tasks.impscore.scoring import SHIPPED
from pipeline.tasks.record import model_choice, model_registry

DAY = sample.DAY
CUES = "吗呢吧啊"
"""Characters that a simulated judge likes, the last most."""


def write_judged(path: Path, size: int = 240) -> Path:
    """Write Chinese texts, the value of which is the number of one of five cues; their lengths tell nothing."""
    rng = np.random.default_rng(3)
    values = rng.integers(0, 5, size)
    words = np.array(list("天地人山水火风云花鸟树石雨雪月星"))
    texts = ["".join(rng.choice(words, 8)) + ("" if value == 0 else CUES[value - 1] * 2) for value in values]
    pl.DataFrame({"text": texts, "implicitness_judged": values}).write_csv(path)
    return path


def test_what_the_judge_likes_is_learnt(tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The new model agrees with the judge; an erasure distils it again from its tables, but not one of a file."""
    rows = distillation.read_judged(write_judged(tmp_path / "judged.csv"))
    rivals = distillation.measure_rivals(rows)
    assert abs(rivals.filter(by="model that answers now")["spearman"][0]) < 0.5
    model_id = distillation.train(rows, DAY, None)
    (agreement,) = distillation.measure_model(rows, model_id, price=0.01).to_dicts()
    assert agreement["spearman"] > 0.8
    assert agreement["cost"] == pytest.approx(agreement["texts"] * 0.01)
    promotion = model_registry.read_model(model_id)["promotion"]
    assert promotion["reason"] == "worse than model in force in graded_groups_tau_zh"
    assert not promotion["is_promoted"]
    assert {row["metric"] for row in promotion["comparisons"]} == {"judge_spearman_zh", "graded_groups_tau_zh"}
    assert distillation.train(rows, DAY, None, promote=True) == model_id
    evaluations = model_registry.read_evaluations(model_registry.read_model(model_id)).filter(split="test")
    assert evaluations.select("metric", "subset", "value").row(0) == (
        "judge_spearman", "zh", pytest.approx(agreement["spearman"], abs=1e-6),
    )  # fmt: skip
    assert model_choice.select_model_id("impscore", DAY) == model_id
    curve = distillation.measure_curve(rows, (60, 10_000))
    assert curve["texts"].to_list() == [60]
    assert curve["spearman"][0] < agreement["spearman"]
    test = rows.filter(split="test")
    error = np.abs(np.array(pipeline.implicitness(test["text"].to_list())) * 2 - test["value"].to_numpy()).mean()
    assert error < 0.8
    texts = ["雨停了", "It is late."], ["外面没有下雨", "Please be quiet."]
    assert pipeline.distance(*texts) == pipeline.distance(*texts, model=str(SHIPPED))
    assert pipeline.implicitness(texts[0])[1] == pipeline.implicitness(texts[0], str(SHIPPED))[1]
    # on top of the first, whose texts shaped it too
    other_id = distillation.train(rows, "2026-11-20", "a:scale", promote=True)
    counts = warehouse.scan("training_texts").group_by("model_id").agg(pl.col("row_count").sum()).collect()
    assert dict(counts.iter_rows()) == {model_id: rows.height, other_id: 2 * rows.height}
    configs = [json.loads((settings.models() / ref / "config.json").read_bytes()) for ref in (model_id, other_id)]
    no_recipe, recipe = (models.build_recipe("impscore", config) for config in configs)
    assert no_recipe is None
    row = {"kind": "impscore", "model_id": other_id, "day": DAY, "recipe": json.dumps(recipe), "is_promoted": True}
    assert models.format_command(row) == f"undertone distil --judge a:scale --promote --day {DAY}"
    monkeypatch.setattr(distillation, "load_judged", {"a:scale": rows}.__getitem__)
    assert model_registry.read_model(models.train_again(row, "test"))["kind"] == "impscore"


def test_comparisons_are_stretched(tmp_path: Path) -> None:
    """Log-odds of comparisons become values from 0 to 4 in the same order."""
    path = write_judged(tmp_path / "judged.csv")
    judged = pl.read_csv(path).with_columns(pl.col("implicitness_judged") * 1.5 - 3)
    judged.write_csv(path)
    values = judged.join(distillation.read_judged(path), on="text")
    assert (values["value"].min(), values["value"].max()) == (0, 4)
    assert values.select(pl.corr("value", "implicitness_judged", method="spearman")).item() == pytest.approx(1)


def test_what_is_not_learnt_is_counted(tmp_path: Path) -> None:
    """Texts without a value, repeated texts, and those of a language with too few are left out with a count."""
    path = write_judged(tmp_path / "judged.csv")
    with path.open("a", encoding="utf-8") as file:
        file.write("雨停了,\n雨停了,1\n雨停了,3\nIt is late.,2\n")
    left_out.clear()
    rows = distillation.read_judged(path)
    assert rows.filter(text="雨停了")["value"].to_list() == [2]
    counts = {row.reason: row.row_count for row in left_out.list_rows() if row.step == "distil"}
    assert counts == {"no_text_or_value": 1, "repeated": 1, "few_of_language": 1}


def test_distil_in_python(home: Path, tmp_path: Path) -> None:
    """It gives the correlation with the judge by language, and a folder that scores."""
    rows = pl.read_csv(write_judged(tmp_path / "judged.csv"))
    folder = str(tmp_path / "model")
    agreement = pipeline.distil(rows["text"].to_list(), rows["implicitness_judged"].to_list(), folder)
    assert agreement["zh"] > 0.8
    assert pipeline.implicitness(["雨停了"], folder) != pipeline.implicitness(["雨停了"])


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("text,value\na,1\n", BadInput, "expected the column 'implicitness_judged'"),
        ("text,implicitness_judged\na,1\nb,much\n", BadInput, "line 3: field 'implicitness_judged' should be a number"),
        ("text,implicitness_judged\na,1\nb,\n", Missing, "expected 50 judged texts of a language or more"),
        ("text,implicitness_judged\n" + "".join(f"a{n},2\n" for n in range(60)), Missing, "with different values"),
    ],
)
def test_files_that_teach_nothing(tmp_path: Path, text: str, error: type[Exception], message: str) -> None:
    """A file without judged values, with too few or with one value only, is refused with the place."""
    path = tmp_path / "judged.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(error, match=message):
        distillation.read_judged(path)
