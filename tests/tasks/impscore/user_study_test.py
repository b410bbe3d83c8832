"""Graded groups and choice questions to people and back (ImpScore, section 6; IMP-34, IMP-38)."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import polars as pl
import pytest

from pipeline import left_out, sample, warehouse
from pipeline.errors import BadInput, Missing
from pipeline.examples.impscore import groups
from pipeline.label import user_study as forms
from pipeline.tasks.impscore import rank, user_study
from pipeline.tasks.labelling.projects import Tool

PEOPLE = tuple(f"p{number}" for number in range(10))


@pytest.fixture
def items(tables: Path) -> pl.DataFrame:
    """Shipped groups."""
    return groups.read(sample.GROUPS["en"])


@pytest.fixture
def model(tables: Path, enlist: Callable[..., str]) -> str:
    """A model with random weights on the tiny encoder."""
    return enlist("2026-11-19", 1)


def collect(kind: str, items: pl.DataFrame, paths: Sequence[Path] = (), tool: Tool = "files") -> int:
    """Collect answers; the label count."""
    return user_study.collect(kind, items, paths, tool, None, "cli")


def fill_in(folder: Path, rater: str, items: pl.DataFrame, *, is_reversed: bool = False) -> Path:
    """Fill in the sheet of a rater with the right order, or its opposite."""
    tasks = pl.read_excel(folder / f"{rater}.xlsx", sheet_id=1).select("task_id")
    _, key, form = forms.build_tasks("ranking", items)
    places = key.with_columns(value=6 - pl.col("grade") if is_reversed else "grade")
    rows = tasks.join(places.pivot("field", index="task_id", values="value"), on="task_id")
    path = folder / f"{rater}.csv"
    rows.select("task_id", *form.fields, rater_id=pl.lit(rater)).write_csv(path)
    return path


def test_two_sets_of_five_people(items: pl.DataFrame, model: str, tmp_path: Path) -> None:
    """Ten people rank half of ten groups each; right orders have tau 1, the opposite one -1 (appendix A.5)."""
    with pytest.raises(Missing, match="none of these items was given to people: `undertone groups rate ranking`"):
        user_study.read_tasks("ranking", items)
    assert user_study.select("ranking", items, sample.DAY) == 10
    assert user_study.export("ranking", items, tmp_path, PEOPLE) == 10
    with pytest.raises(BadInput, match=r"p0\.xlsx: is there"):
        user_study.export("ranking", items, tmp_path, PEOPLE)
    sheets = [set(pl.read_excel(tmp_path / f"{name}.xlsx", sheet_id=1)["task_id"]) for name in PEOPLE]
    assert {len(sheet) for sheet in sheets} == {5}
    assert sheets[0] == sheets[2]
    assert not sheets[0] & sheets[1]
    assert (tmp_path / "hiring.md").is_file()
    paths = [fill_in(tmp_path, name, items, is_reversed=name == "p2") for name in PEOPLE]
    (tmp_path / "model.csv").write_text(paths[0].read_text().replace("p0", "model"))
    export = partial(user_study.export, "ranking", items, tmp_path, ["model"])
    for call in (export, partial(collect, "ranking", items, [tmp_path / "model.csv"])):
        with pytest.raises(BadInput, match="rater 'model': the model has this name in the results"):
            call()
    assert collect("ranking", items, paths) == collect("ranking", items, paths) == 10 * 5 * 5
    others = items.with_columns(text=pl.col("text") + "!")  # items of the same size in the same project
    user_study.select("ranking", others, sample.DAY)
    collect("ranking", others, tool="simulated")
    numbers = user_study.measure("ranking", items, model, "cli")
    assert numbers.group_by("set").len().sort("set").rows() == [(1, 6), (2, 6)]
    taus = {row["by"]: row["kendall_tau"] for row in numbers.to_dicts() if row["by"] != "model"}
    assert taus == {**dict.fromkeys(PEOPLE, 1.0), "p2": -1.0}
    ratings = {row["by"]: row["implicitness_rating"] for row in numbers.to_dicts()}
    assert (ratings["p1"], ratings["p2"]) == (10, 0)  # pairs of five sentences (IMP-37)
    assert set(numbers["n"]) == {5}
    orders = user_study.load_orders(items)
    with pytest.raises(BadInput, match="rater 'model': the table of agreement has a column of this name"):
        rank.measure_agreement(items, orders.with_columns(rater=pl.lit("model")), model)
    agreement = rank.measure_agreement(items, orders, model)
    # set 1: four orders and their opposite; W = ((5 - 1) r + 1) / 5 with the mean Spearman r = (6 - 4) / 10
    assert sorted(agreement["concordance"]["kendall_w"]) == pytest.approx([0.36, 1.0])
    assert set(agreement["kendall"]["set"]) == {1, 2}
    run = warehouse.scan("runs", pl.col("step") == user_study.STEP).collect()
    assert run.select("kept_count", "dropped_count").rows() == [(250, 0)]


def test_a_set(items: pl.DataFrame, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Raters who share an item are one set; their agreement is over the groups that all of them ranked, if any."""
    user_study.select("ranking", items, sample.DAY, 3)
    user_study.export("ranking", items, tmp_path, PEOPLE[:3])
    paths = [fill_in(tmp_path, name, items) for name in PEOPLE[:3]]
    lines = paths[0].read_text().splitlines()
    paths[0].write_text("\n".join([*lines[:-1], lines[-1].replace("5", "")]))
    collect("ranking", items, paths)
    numbers = user_study.measure("ranking", items, model, "cli")
    assert numbers.select("set", "by", "n").rows() == [(1, "p0", 2), (1, "p1", 3), (1, "p2", 3), (1, "model", 3)]
    concordance = rank.measure_agreement(items, user_study.load_orders(items), model)["concordance"]
    assert concordance.select("raters", "groups", "kendall_w").rows() == [(3, 2, 1.0)]
    assert "left out of the agreement, as not all raters of the set ranked them, groups: 1" in left_out.list_lines()
    is_first = pl.col("item_id") == items["group"][0]
    answers = user_study.load_answers("ranking", items).filter((pl.col("rater") == "p0") == is_first)
    monkeypatch.setattr(user_study, "load_answers", lambda _, __: answers)
    with pytest.raises(Missing, match="no group was ranked by all raters of its set"):
        user_study.load_orders(items)


def test_meanings_are_counted(items: pl.DataFrame, model: str, tmp_path: Path) -> None:
    """The rating of pragmatics is how many sentences of a group mean the same, 0 if none do (appendix A.5; IMP-37)."""
    user_study.select("meaning", items, sample.DAY, 2)
    user_study.export("meaning", items, tmp_path, ["anna", "ben"])
    tasks, _, project = user_study.read_tasks("meaning", items)
    sheets = []
    for rater, meanings in (("anna", "11111"), ("ben", "12111"), ("chen", "12345")):
        answers = {name: pl.lit(value) for name, value in zip(project.form.fields, meanings, strict=True)}
        sheets.append(tmp_path / f"{rater}.csv")
        tasks.select("task_id", rater_id=pl.lit(rater), **answers).write_csv(sheets[-1])
    collect("meaning", items, sheets)
    rows = user_study.measure("meaning", items, model, "cli")
    assert rows.rows() == [(1, "anna", 2, 5.0), (1, "ben", 2, 4.0), (1, "chen", 2, 0.0)]
