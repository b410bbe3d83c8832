"""The context shift of comments: the rows of `scores`, and its correlation with other scores."""

from pathlib import Path

import polars as pl
import pytest

from pipeline import warehouse
from pipeline.metrics.commenting.correlation import correlate
from pipeline.tables import TABLES
from pipeline.tasks.ndd import context_shift, masked_lm
from pipeline.tasks.ndd.context_shift import METRIC, add_context_shift, correlate_day, join_scores, score_day
from tests.support.rows.filled import DAY as DATE
from tests.support.rows.filled import filled

DAY = DATE.isoformat()
EN, ZH = "You really are on time.", "你可真准时"
WORDS = ("late", "bus", "always", "shop", "nobody", "window", "cold", "again")


@pytest.fixture
def comments(tables: Path) -> pl.DataFrame:
    """An English and a Chinese comment in context, and one without."""
    rows = filled(
        "comments",
        {"comment_id": "en", "text": EN, "context": "The bus was an hour late.", "lang": "en"},
        {"comment_id": "zh", "text": ZH, "context": "他迟到了一小时", "lang": "zh"},
        {"comment_id": "alone", "text": EN, "context": "", "lang": "en"},
    )
    write_comments(rows)
    return rows


@pytest.fixture
def thread_comments(tables: Path) -> pl.DataFrame:
    """Sixteen comments of two sources and four threads, the longer ones last, with implicitness but no subtext."""
    rows = filled("comments", *(
        {"comment_id": f"c{number:02d}", "thread_id": f"t{number % 4}", "source": f"s{number % 2}", "lang": "en",
         "text": " ".join(["it", *WORDS[: number // 2 + 1]]), "context": "the bus was late"}
        for number in range(16)
    ))  # fmt: skip
    write_comments(rows)
    add_scores("implicitness", {f"c{number:02d}": number / 16 for number in range(16)}, rows)
    score_day(DAY)
    return rows


def write_comments(rows: pl.DataFrame) -> None:
    """Write comments of the day."""
    warehouse.overwrite("comments", warehouse.make_slice(day=DAY), rows)


def add_scores(metric: str, values: dict[str, float], rows: pl.DataFrame, model: str = "m") -> None:
    """Add scores of the day's comments by another metric."""
    columns, partition = TABLES["scores"].schema.column_names(), warehouse.make_slice(day=DAY)
    texts = {"metric": metric, "model_id": model, "signature": "sig|test|1"}
    value = pl.col("comment_id").replace_strict(values, return_dtype=pl.Float64)
    scores = rows.lazy().filter(pl.col("comment_id").is_in([*values]))
    scores = scores.with_columns(value=value, **{name: pl.lit(text) for name, text in texts.items()}).select(columns)
    warehouse.replace("scores", partition, lambda current: pl.concat([current.select(columns), scores]))


def load_scores() -> pl.DataFrame:
    """Load all scores, sorted."""
    return warehouse.scan("scores").sort("comment_id", "metric", "model_id").collect()


def test_a_frame_comes_back_with_the_shift() -> None:
    """0 without a context, above 0 and at most 1 with one, null without a text; other columns stay as they are."""
    rows = pl.DataFrame({
        "id": range(6), "text": [EN, EN, ZH, None, "\u202e[MASK] =1+1", " "],
        "context": ["The bus was late.", None, "他迟到了", "so", "<b>{0}</b>", "so"], "signature": ["old"] * 6,
    })  # fmt: skip
    progress: list[int] = []
    scored = add_context_shift(rows, on_progress=progress.append)
    assert scored.columns == ["id", "text", "context", METRIC, "signature"]
    assert scored.select("id", "text", "context").equals(rows.select("id", "text", "context"))
    shift = scored[METRIC].to_list()
    assert shift[1] == 0
    assert all(0 < shift[row] <= 1 for row in (0, 2, 4))
    assert shift[3] is shift[5] is None
    assert [signature is None for signature in scored["signature"]] == [False, False, False, True, False, True]
    assert scored["signature"][0].startswith("context_shift|count:")
    assert f"cache:{context_shift.CACHE}|divergence:hellinger" in scored["signature"][0]
    assert scored["signature"][0] != scored["signature"][2]
    assert sum(progress) == 6
    assert add_context_shift(rows.clear()).schema == scored.schema


def test_a_day_is_scored(comments: pl.DataFrame) -> None:
    """A row a comment, as the frame has it; a comment without context has 0; other days stay."""
    later = filled("comments", {"comment_id": "later", "text": EN, "context": "so", "day": DATE.replace(day=20)})
    warehouse.overwrite("comments", warehouse.make_slice(day="2026-11-20"), later)
    assert score_day(DAY) == 3
    rows = load_scores()
    TABLES["scores"].schema.validate(rows)
    assert rows["comment_id"].to_list() == ["alone", "en", "zh"]
    assert rows["value"][0] == 0
    assert rows["value"].is_between(0, 1).all()
    expected = add_context_shift(comments.sort("comment_id"))
    assert rows["value"].to_list() == expected[METRIC].to_list()
    assert rows["signature"].to_list() == expected["signature"].to_list()
    assert set(rows["model_id"]) == {masked_lm.SAMPLE}


def test_scoring_again_replaces_its_own_rows_alone(comments: pl.DataFrame, tmp_path: Path) -> None:
    """Scoring twice gives the same rows; a deleted comment loses its row; other metrics and models keep theirs."""
    add_scores("implicitness", {"en": 0.5, "zh": 1.5}, comments)
    score_day(DAY)
    before = load_scores()
    score_day(DAY)
    assert load_scores().equals(before)
    assert before.filter(metric="implicitness")["value"].to_list() == [0.5, 1.5]
    masked_lm.count_file([EN, "The bus was late."], tmp_path / "counts")
    score_day(DAY, str(tmp_path / "counts"))
    assert load_scores().filter(pl.col("model_id") == masked_lm.SAMPLE).height == 3
    assert load_scores().height == before.height + 3
    write_comments(comments.filter(pl.col("comment_id") != "zh"))
    score_day(DAY)
    rows = load_scores().filter(pl.col("model_id") == masked_lm.SAMPLE)
    assert rows.select("comment_id", "metric").rows() == [("alone", METRIC), ("en", METRIC)]
    assert load_scores().filter(metric="implicitness").height == 2


def test_comments_beside_their_other_scores(comments: pl.DataFrame) -> None:
    """Those in a context with all that is known of them; of two models the one whose id comes last."""
    score_day(DAY)
    add_scores("implicitness", {"en": 0.25, "alone": 1.0}, comments, "a")
    add_scores("implicitness", {"en": 0.75}, comments, "b")
    rows = join_scores(DAY, [masked_lm.SAMPLE])
    assert rows.columns == ["source", "thread_id", METRIC, "implicitness", "subtext", "word_count"]
    shift = dict(load_scores().filter(metric=METRIC).select("comment_id", "value").iter_rows())
    assert sorted(rows.select(METRIC, "implicitness", "subtext", "word_count").rows()) == sorted([
        (shift["en"], 0.75, None, 6), (shift["zh"], None, None, 4),
    ])  # fmt: skip
    assert join_scores(DAY, ["another"]).height == 0


def test_how_the_shift_goes_with_others(thread_comments: pl.DataFrame) -> None:
    """Spearman's as `metrics.commenting.correlation` gives it, over all and by source; the unknown has no row."""
    rows = correlate_day(DAY)
    TABLES["studies"].schema.validate(rows)
    assert set(rows["study"]) == {"context_shift"}
    assert set(rows["subset"]) == {"all", "s0", "s1"}
    assert rows["setting"].str.contains(r"divergence:hellinger\|weights:mean").all()
    correlations = rows.with_columns(other=pl.col("setting").str.json_decode(pl.Struct({"other": pl.String})).struct[0])
    comments = join_scores(DAY, [masked_lm.SAMPLE])
    assert comments.height == thread_comments.height == 16
    row = correlations.filter(subset="all", other="implicitness", metric="spearman").row(0, named=True)
    expected = correlate(comments[METRIC], comments["implicitness"], comments["thread_id"])
    assert expected.spearman is not None
    assert (row["value"], row["row_count"]) == (round(expected.spearman, 6), 16)
    assert row["low"] <= row["value"] <= row["high"]
    by_length = correlations.filter(subset="all", other="word_count", metric="spearman")
    assert by_length["value"].item() < 0  # the first word counts
    assert correlations.filter(subset="s1", other="implicitness", metric="spearman")["row_count"].item() == 8
    assert set(correlations["other"].drop_nulls()) == {"implicitness", "word_count"}
    assert not correlations.filter(other="word_count", metric="partial").height
    quantiles = correlations.filter(pl.col("metric").str.starts_with("q"), subset="all").sort("metric")
    assert quantiles["metric"].to_list() == [f"q{share:03d}" for share in range(0, 101, 5)]
    assert quantiles["value"].is_sorted()
    assert (quantiles["value"][0], quantiles["value"][-1]) == (comments[METRIC].min(), comments[METRIC].max())
