"""The shift of comments in their contexts: what is written to `scores`, and how it is held against other measures."""

import json
from pathlib import Path

import polars as pl
import pytest

from pipeline import warehouse
from pipeline.metrics.commenting.correlation import correlate
from pipeline.tables import TABLES
from pipeline.tasks.ndd import compressions, context_shift, masked_lm
from pipeline.tasks.ndd.context_shift import METRIC, beside, frame, related, score_day
from tests.support.filled import DAY as DATE
from tests.support.filled import filled

DAY = DATE.isoformat()
EN, ZH = "You really are on time.", "你可真准时"
KEY = ["source", "day", "thread_id", "comment_id"]
WORDS = ("late", "bus", "always", "shop", "nobody", "window", "cold", "again")


@pytest.fixture
def comments(tables: Path) -> pl.DataFrame:
    """An English and a Chinese comment in context, and one without."""
    del tables
    rows = filled(
        "comments",
        {"comment_id": "en", "text": EN, "context": "The bus was an hour late.", "lang": "en"},
        {"comment_id": "zh", "text": ZH, "context": "他迟到了一小时", "lang": "zh"},
        {"comment_id": "alone", "text": EN, "context": "", "lang": "en"},
    )
    put(rows)
    return rows


@pytest.fixture
def many(tables: Path) -> pl.DataFrame:
    """Sixteen comments of two sources and four threads, the longer ones last, with implicitness but no subtext."""
    del tables
    rows = filled("comments", *(
        {"comment_id": f"c{at:02d}", "thread_id": f"t{at % 4}", "source": f"s{at % 2}", "lang": "en",
         "text": " ".join(["it", *WORDS[: at // 2 + 1]]), "context": "the bus was late"}
        for at in range(16)
    ))  # fmt: skip
    put(rows)
    scores("implicitness", {f"c{at:02d}": at / 16 for at in range(16)}, rows)
    score_day(DAY)
    return rows


def put(rows: pl.DataFrame) -> None:
    """Comments of the day."""
    warehouse.overwrite("comments", warehouse.slice_of(day=DAY), rows)


def scores(metric: str, values: dict[str, float], rows: pl.DataFrame, model: str = "m") -> None:
    """Scores of the day's comments by another metric, beside those that are there."""
    mine = rows.filter(pl.col("comment_id").is_in([*values])).select(
        *KEY, "text_hash", metric=pl.lit(metric), model_id=pl.lit(model), signature=pl.lit("sig|test|1"),
        value=pl.col("comment_id").replace_strict(values, return_dtype=pl.Float64),
    )  # fmt: skip
    columns = TABLES["scores"].schema.column_names()
    warehouse.replace(
        "scores", warehouse.slice_of(day=DAY),
        lambda present: pl.concat([present.select(columns), mine.lazy().select(columns)]),
    )  # fmt: skip


def scored() -> pl.DataFrame:
    """All scores, in order."""
    return warehouse.scan("scores").sort("comment_id", "metric", "model_id").collect()


def test_a_frame_comes_back_with_the_shift() -> None:
    """0 without a context, above 0 and at most 1 with one, null without a text; other columns stay as they are."""
    rows = pl.DataFrame({
        "id": range(6), "text": [EN, EN, ZH, None, "\u202e[MASK] =1+1", " "],
        "context": ["The bus was late.", None, "他迟到了", "so", "<b>{0}</b>", "so"], "signature": ["old"] * 6,
    })  # fmt: skip
    told: list[int] = []
    found = frame(rows, done=told.append)
    assert found.columns == ["id", "text", "context", METRIC, "signature"]
    assert found.select("id", "text", "context").equals(rows.select("id", "text", "context"))
    shift = found[METRIC].to_list()
    assert shift[1] == 0
    assert all(0 < shift[at] <= 1 for at in (0, 2, 4))
    assert shift[3] is shift[5] is None
    assert [each is None for each in found["signature"]] == [False, False, False, True, False, True]
    assert found["signature"][0].startswith("context_shift|count:")
    assert f"cache:{context_shift.CACHE}|divergence:hellinger" in found["signature"][0]
    assert found["signature"][0] != found["signature"][2]
    assert sum(told) == 6


def test_an_empty_frame_stays_empty() -> None:
    """No rows, with the columns that rows would have."""
    rows = pl.DataFrame(schema={"text": pl.String, "context": pl.String})
    assert frame(rows).schema == {"text": pl.String, "context": pl.String, METRIC: pl.Float64, "signature": pl.String}


def test_a_day_is_scored(comments: pl.DataFrame) -> None:
    """A row a comment, as the frame has it; a comment without context has 0; other days stay."""
    later = filled("comments", {"comment_id": "later", "text": EN, "context": "so", "day": DATE.replace(day=20)})
    warehouse.overwrite("comments", warehouse.slice_of(day="2026-11-20"), later)
    assert score_day(DAY) == 3
    rows = scored()
    TABLES["scores"].schema.validate(rows)
    assert rows["comment_id"].to_list() == ["alone", "en", "zh"]
    assert rows["value"][0] == 0
    assert rows["value"].is_between(0, 1).all()
    expected = frame(comments.sort("comment_id"))
    assert rows["value"].to_list() == expected[METRIC].to_list()
    assert rows["signature"].to_list() == expected["signature"].to_list()
    assert set(rows["model_id"]) == {masked_lm.SAMPLE}


@pytest.mark.usefixtures("tables")
def test_a_day_without_comments() -> None:
    """Nothing is written, and nothing is related."""
    assert score_day(DAY) == 0
    assert related(DAY).height == 0


def test_scoring_again_replaces_its_own_rows_alone(comments: pl.DataFrame, tmp_path: Path) -> None:
    """The same twice is the same; a comment that is gone loses its row; other metrics and models keep theirs."""
    scores("implicitness", {"en": 0.5, "zh": 1.5}, comments)
    score_day(DAY)
    before = scored()
    score_day(DAY)
    assert scored().equals(before)
    assert before.filter(metric="implicitness")["value"].to_list() == [0.5, 1.5]
    masked_lm.count_file([EN, "The bus was late."], tmp_path / "counts")
    score_day(DAY, str(tmp_path / "counts"))
    assert scored().filter(pl.col("model_id") == masked_lm.SAMPLE).height == 3
    assert scored().height == before.height + 3
    put(comments.filter(pl.col("comment_id") != "zh"))
    score_day(DAY)
    rows = scored().filter(pl.col("model_id") == masked_lm.SAMPLE)
    assert rows.select("comment_id", "metric").rows() == [("alone", METRIC), ("en", METRIC)]
    assert scored().filter(metric="implicitness").height == 2


def test_comments_beside_their_other_scores(comments: pl.DataFrame) -> None:
    """Those in a context with all that is known of them; of two models the one whose id comes last."""
    score_day(DAY)
    scores("implicitness", {"en": 0.25, "alone": 1.0}, comments, "a")
    scores("implicitness", {"en": 0.75}, comments, "b")
    rows = beside(DAY, [masked_lm.SAMPLE])
    assert rows.columns == ["source", "thread_id", METRIC, "implicitness", "subtext", "word_count"]
    shift = dict(scored().filter(metric=METRIC).select("comment_id", "value").iter_rows())
    assert sorted(rows.select(METRIC, "implicitness", "subtext", "word_count").rows()) == sorted([
        (shift["en"], 0.75, None, 6), (shift["zh"], None, None, 4),
    ])  # fmt: skip
    assert beside(DAY, ["another"]).height == 0


def test_how_the_shift_goes_with_others(many: pl.DataFrame) -> None:
    """Spearman's as `metrics.commenting.correlation` gives it, over all and by source; the unknown has no row."""
    rows = related(DAY)
    TABLES["studies"].schema.validate(rows)
    assert set(rows["study"]) == {"context_shift"}
    assert set(rows["subset"]) == {"all", "s0", "s1"}
    told = rows.with_columns(other=pl.col("setting").str.json_decode(pl.Struct({"other": pl.String})).struct[0])
    every = beside(DAY, [masked_lm.SAMPLE])
    assert every.height == many.height == 16
    row = told.filter(subset="all", other="implicitness", metric="spearman").row(0, named=True)
    expected = correlate(every[METRIC], every["implicitness"], every["thread_id"])
    assert expected.spearman is not None
    assert (row["value"], row["row_count"]) == (round(expected.spearman, 6), 16)
    assert row["low"] <= row["value"] <= row["high"]
    assert told.filter(subset="all", other="word_count", metric="spearman")["value"].item() < 0  # the first word counts
    assert told.filter(subset="s1", other="implicitness", metric="spearman")["row_count"].item() == 8
    assert set(told["other"].drop_nulls()) == {"implicitness", "word_count"}
    assert not told.filter(other="word_count", metric="partial").height
    quantiles = told.filter(pl.col("metric").str.starts_with("q"), subset="all").sort("metric")
    assert quantiles["metric"].to_list() == [f"q{share:03d}" for share in range(0, 101, 5)]
    assert quantiles["value"].is_sorted()
    assert (quantiles["value"][0], quantiles["value"][-1]) == (every[METRIC].min(), every[METRIC].max())


@pytest.mark.usefixtures("many")
def test_related_rows_replace_those_before() -> None:
    """Put twice they stand once; each setting is JSON."""
    rows = related(DAY)
    for _ in range(2):
        compressions.put("context_shift", rows, DAY)
    found = warehouse.scan("studies").collect()
    assert found.height == rows.height
    assert all(isinstance(json.loads(each), dict) for each in found["setting"])
