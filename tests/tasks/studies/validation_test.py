"""Every scorer on every set at hand: which sets and scorers there are, and what is written of them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipeline import left_out, sample, warehouse
from pipeline.errors import BadInput
from pipeline.report.impscore.page import render
from pipeline.tables import empty
from pipeline.tasks.impscore import pairs
from pipeline.tasks.studies import validation
from tests.support.pages import texts
from tests.support.rows.filled import filled

Enlist = Callable[..., str]

DAY = sample.DAY
OTHERS = ["length", "punctuation", "words", "chance"]


@pytest.fixture
def small(tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of small files; of the shipped sets there are 15 English groups and 15 obvious pairs, none Chinese."""
    groups = validation.read_shipped_groups("en")
    groups = groups.filter(pl.col("group").rank("dense").over("split") <= 15)
    chosen = groups.filter(pl.col("split") == "test", pl.col("level").is_in([1, 5]))
    chosen = chosen.pivot("level", index="group", values="text").rename({"1": "explicit", "5": "implicit"})
    chosen.write_ndjson(tmp_path / "obvious.jsonl")
    chosen.drop("group").write_csv(tmp_path / "mine.csv")
    sides = chosen.unpivot(["explicit", "implicit"], value_name="text")
    sides.select("text", label=(pl.col("variable") == "implicit").cast(pl.Int64)).write_csv(tmp_path / "irony.csv")
    sides.select("text", value=pl.col("variable").rank("dense")).write_csv(tmp_path / "oracle.csv")
    (tmp_path / "own.jsonl").write_text('{"group": "a", "sentences": ["close it", "is it cold?", "brr"]}\n')
    monkeypatch.setattr(validation, "read_shipped_groups", lambda _: groups)
    monkeypatch.setattr(sample, "OBVIOUS", {"en": tmp_path / "obvious.jsonl", "zh": tmp_path / "none.jsonl"})
    return tmp_path


def test_every_scorer_on_every_set(small: Path, enlist: Enlist) -> None:
    """Each set has the models, the values that there are, and the baselines; the page names what is not at hand."""
    model = enlist(DAY, 1)
    pairs.replay_cassette()
    pairs.build("sample_en", DAY)
    hashes = validation.hash_text(pl.read_csv(small / "irony.csv")["text"])[:20]  # 15 explicit, 5 implicit
    scores = filled("scores", *({"text_hash": name, "comment_id": name} for name in hashes))
    scores = scores.with_columns(metric=pl.lit("implicitness_judged"), model_id=pl.lit("gpt:scale"))
    warehouse.overwrite("scores", warehouse.make_slice(day=DAY), scores.select(empty("scores").columns), "test")
    numbers, missing = validation.measure(
        DAY, [model], [small / "oracle.csv"],
        groups=[small / "own.jsonl"], pair_files=[small / "mine.csv"], labelled=[small / "irony.csv"],
    )  # fmt: skip
    by = {name: part["by"].to_list() for (name,), part in numbers.partition_by("set", as_dict=True).items()}
    models, others = ["model in force", "shipped model"], [*OTHERS, "shipped words"]
    valued = [*models, "gpt:scale", "oracle"]
    assert by == {
        "groups_en": [*models, *OTHERS], "groups_zh": [*models, *OTHERS],
        "obvious_en": [*valued, *OTHERS], "mine": [*valued, *others], "irony": [*valued, *others],
        "own": [*models, *others], "pairs:sample_en": [*models, *others],
    }  # fmt: skip
    assert missing == {"obvious_zh": "install Undertone again"}
    oracle = numbers.filter(by="oracle")
    assert oracle["value"].to_list() == [1.0] * 3
    assert dict(oracle.select("set", "n").iter_rows()) == {"obvious_en": 15, "mine": 15, "irony": 30}
    judged = numbers.filter(by="gpt:scale")
    assert judged.select("set", "n", "low").rows() == [("obvious_en", 5, None), ("mine", 5, None), ("irony", 20, 0.5)]
    fits = numbers.filter(by="words").select("set", pl.col("signature").str.extract(r"fitted:([a-z ]+)\|"))
    assert dict(fits.iter_rows()) == {
        "groups_en": "shipped groups", "groups_zh": "shipped groups", "obvious_en": "shipped groups",
        "mine": "crosswise", "irony": "crosswise", "own": "crosswise", "pairs:sample_en": "training part",
    }  # fmt: skip
    for _ in range(2):
        validation.write_study(numbers, missing, DAY)
    studies = warehouse.scan("studies").collect()
    assert studies.height == numbers.height + 1
    page = texts(render(DAY, studies=studies))
    assert "gpt:scale on 0 of 3 sets" in page
    assert "Not at hand: obvious_zh." in page


def test_held_out_pairs_are_measured(small: Path) -> None:
    """Of a file with splits the test rows count, and what is nearly the same in `train` is not learned from."""
    rows = pl.read_csv(small / "mine.csv").with_columns(split=pl.Series(["train"] * 10 + ["test"] * 5))
    again = rows.tail(1).with_columns(pl.col("implicit") + "!", split=pl.lit("train"))
    pl.concat([rows, again]).write_csv(small / "split.csv")
    (benchmark,) = (b for b in validation.list_benchmarks(pair_files=[small / "split.csv"])[0] if b.name == "split")
    assert benchmark.rows.height == 2 * 5
    assert benchmark.training_rows is not None
    assert benchmark.training_rows.height == 2 * 10


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"labelled": ["yes.csv"]}, r"row 3: expected the fields 'text' with a text and 'label' with 0 or 1, found"),
        ({"labelled": ["blank.csv"]}, "expected texts labelled 0 and texts labelled 1, found one kind"),
        ({"pair_files": ["mine.csv", "mine.csv"]}, r"two sets have the name 'mine \(en\)'"),
        ({"values": ["oracle.csv", "oracle.csv"]}, "two scorers have the name 'oracle'"),
        ({"values": ["irony.csv"]}, "expected the column 'implicitness_judged' or 'value'"),
    ],
)
def test_faults(small: Path, arguments: dict[str, Any], message: str) -> None:
    """A fault is named with its file before anything is scored; so are two sets or scorers of one name."""
    for name, lines in (("yes", "text,label\na,1\nb,yes"), ("blank", "text,label\na,1\n,0\n \u200b,0")):
        (small / f"{name}.csv").write_text(lines)
    left_out.clear()
    with pytest.raises(BadInput, match=message):
        validation.measure(DAY, **{kind: [small / name for name in names] for kind, names in arguments.items()})
    assert [row.row_count for row in left_out.list_rows()] == [2] * ("blank.csv" in str(arguments))
