"""A judge is distilled into the scorer: groups of judged texts, training, and the comparison on held-out texts."""

from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import pipeline
from pipeline import sample
from pipeline.errors import BadInput, Missing
from pipeline.tasks.calibration import distillation
from pipeline.tasks.impscore.train import read_shipped_groups
from pipeline.tasks.record import model_choice, models

DAY = sample.DAY
CHANGES = {"epochs": 25}
CUES = "吗呢吧啊"
"""Characters that a simulated judge likes, the last most."""


@pytest.fixture
def few_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenth of the shipped groups, so that a training takes seconds."""

    def read(lang: str) -> pl.DataFrame:
        rows = read_shipped_groups(lang)
        return rows.filter(pl.col("group").is_in(rows["group"].unique().sort()[::10].implode()))

    monkeypatch.setattr(distillation, "read_shipped_groups", read)


def write_judged(path: Path, size: int = 240) -> Path:
    """Write Chinese texts, the value of which is the number of one of five cues; their lengths tell nothing."""
    rng = np.random.default_rng(3)
    values = rng.integers(0, 5, size)
    words = np.array(list("天地人山水火风云花鸟树石雨雪月星"))
    texts = ["".join(rng.choice(words, 8)) + ("" if value == 0 else CUES[value - 1] * 2) for value in values]
    pl.DataFrame({"text": texts, "implicitness_judged": values}).write_csv(path)
    return path


def test_groups_hold_a_text_of_each_grade(tmp_path: Path) -> None:
    """Every text is in a group of its split; within a group values rise; rare grades fill as many groups."""
    rows = distillation.read_judged(write_judged(tmp_path / "judged.csv"))
    rare = rows.filter((pl.col("value") < 4) | (pl.col("text").hash() % 5 == 0))
    groups = distillation.build_groups(rare)
    assert set(groups.select("text", "split").iter_rows()) == set(rare.select("text", "split").iter_rows())
    joined = groups.join(rare.select("text", "value"), on="text").sort("group", "level")
    for _, group in joined.group_by("group"):
        assert group["split"].n_unique() == 1
        assert all(low < high for low, high in pairwise(group["value"]))
    sizes = joined.filter(split="train").group_by("value").len()["len"]
    assert sizes.n_unique() == 1
    assert groups.equals(distillation.build_groups(rare.reverse()))


def test_what_the_judge_likes_is_learnt(tables: Path, tmp_path: Path, few_groups: None) -> None:
    """On held-out texts the new model agrees with the judge where the shipped one does not, so it is promoted.

    More texts agree better. A second training on the same texts is the same model.
    """
    rows = distillation.read_judged(write_judged(tmp_path / "judged.csv"))
    rivals = distillation.measure_rivals(rows)
    assert abs(rivals.filter(by="model that answers now")["spearman"][0]) < 0.5
    model_id = distillation.train(rows, DAY, changes=CHANGES)
    (agreement,) = distillation.measure_model(rows, model_id, price=0.01).to_dicts()
    assert agreement["spearman"] > 0.8
    assert agreement["cost"] == pytest.approx(agreement["texts"] * 0.01)
    promotion = models.read_model(model_id)["promotion"]
    assert promotion["is_promoted"]
    assert {row["metric"] for row in promotion["comparisons"]} == {"judge_spearman_zh"}
    assert model_choice.select_model_id("impscore", DAY) == model_id == distillation.train(rows, DAY, changes=CHANGES)
    curve = distillation.measure_curve(rows, (60, 10_000), CHANGES)
    assert curve["texts"].to_list() == [60]
    assert curve["spearman"][0] < agreement["spearman"]


def test_distil_in_python(home: Path, tmp_path: Path, few_groups: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """It gives the correlation with the judge by language, and a folder that scores."""
    rows = pl.read_csv(write_judged(tmp_path / "judged.csv"))
    monkeypatch.setattr(distillation, "fit", partial(distillation.fit, changes={"epochs": 1}))
    folder = str(tmp_path / "model")
    agreement = pipeline.distil(rows["text"].to_list(), rows["implicitness_judged"].to_list(), folder)
    assert agreement.keys() == {"zh"}
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
