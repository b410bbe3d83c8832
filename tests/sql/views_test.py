"""Each view: small tables in, exact rows out."""

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import duckdb
import polars as pl
import pytest

from tests.support.filled import DAY, NEXT, digest, filled

Open = Callable[..., duckdb.DuckDBPyConnection]
OLD, NEW = digest("old"), digest("new")

MODELS = filled("models", {"model_id": OLD, "day": DAY}, {"model_id": NEW, "day": NEXT})


def test_articles_distinct_takes_the_longer_text(database: Open) -> None:
    """Of one article's rows the longest text is taken, of equally long ones the first origin; others stay."""
    articles = filled(
        "articles",
        {"origin": "b", "text": "long text"},
        {"origin": "a", "text": "short"},
        {"origin": "b", "text": "tie", "thread_id": "t2"},
        {"origin": "a", "text": "tea", "thread_id": "t2"},
        {"origin": "a", "text": "next", "day": NEXT},
    )
    found = database(articles=articles).sql("select * from articles_distinct order by day, thread_id").pl()
    assert found.columns == articles.columns
    assert found.select("day", "thread_id", "origin", "text").rows() == [
        (DAY, "t1", "b", "long text"),
        (DAY, "t2", "a", "tea"),
        (NEXT, "t1", "a", "next"),
    ]


def test_comments_scored_takes_the_newest_model(database: Open) -> None:
    """A comment has one row: the score of the model trained last, a registered one before an unknown one."""
    written = datetime(2026, 11, 19, 8, tzinfo=UTC)
    comments = filled(
        "comments",
        {"text": "two models", "context": "so?", "like_count": 3, "created_at": written, "is_hot": True},
        {"text": "one unknown model", "thread_id": "t2", "parent_id": "c1"},
        {"text": "not scored"},
        {"text": "two unknown models", "thread_id": "t3"},
    )
    scores = filled(
        "scores",
        {"comment_id": "c1", "model_id": OLD, "value": 0.1},
        {"comment_id": "c1", "model_id": NEW, "value": 0.2, "signature": "sig|new|1"},
        {"comment_id": "c1", "model_id": "0", "value": 0.3},
        {"comment_id": "c1", "model_id": NEW, "metric": "sarcasm", "value": 9.0},
        {"comment_id": "c2", "thread_id": "t2", "model_id": "x", "value": 0.4},
        {"comment_id": "c4", "thread_id": "t3", "model_id": "y", "value": 0.6},
        {"comment_id": "c4", "thread_id": "t3", "model_id": "x", "value": 0.5},
        {"comment_id": "c9", "model_id": NEW, "value": 0.9},
    )
    articles = filled(
        "articles",
        {"title": "Weather", "text": "cold", "category": "news"},
        {"title": None, "text": "y" * 50, "thread_id": "t2"},
    )
    con = database(comments=comments, scores=scores, articles=articles, models=MODELS)
    found = con.sql("select * from comments_scored order by comment_id").pl()
    assert found.columns == [
        "source", "day", "thread_id", "comment_id", "parent_id", "lang", "text", "context", "like_count",
        "duplicate_count", "created_at", "is_hot", "title", "category", "implicitness", "subtext", "context_shift",
        "model_id", "signature",
    ]  # fmt: skip
    assert found.row(0) == (
        "weibo", DAY, "t1", "c1", None, "en", "two models", "so?", 3, 0, written, True, "Weather", "news", 0.2,
        None, None, NEW, "sig|new|1",
    )  # fmt: skip
    assert found.select("comment_id", "parent_id", "title", "category", "implicitness", "model_id").rows()[1:] == [
        ("c2", "c1", "y" * 40, None, 0.4, "x"),
        ("c4", None, None, None, 0.5, "x"),
    ]


def test_a_model_without_a_row_is_in_force(database: Open) -> None:
    """The shipped model has no row: it goes before a model on trial, however new, and after a promoted one."""
    models = filled(
        "models",
        {"model_id": OLD, "day": DAY},
        {"model_id": NEW, "day": NEXT, "is_promoted": False},
    )
    scores = filled(
        "scores",
        {"comment_id": "c1", "model_id": NEW, "value": 0.2},
        {"comment_id": "c1", "model_id": "shipped", "value": 0.3},
        {"comment_id": "c2", "model_id": OLD, "value": 0.1},
        {"comment_id": "c2", "model_id": "shipped", "value": 0.3},
        {"comment_id": "c2", "model_id": NEW, "value": 0.2},
        {"comment_id": "c3", "model_id": NEW, "value": 0.2},
    )
    con = database(comments=filled("comments", {}, {"text": "b"}, {"text": "c"}), scores=scores, models=models)
    found = con.sql("select comment_id, model_id from comments_scored order by all").fetchall()
    assert found == [("c1", "shipped"), ("c2", OLD), ("c3", NEW)]


def test_a_model_of_another_kind_is_not_newer(database: Open) -> None:
    """Only the days of ImpScore models count."""
    models = pl.concat([filled("models", {"model_id": OLD}), filled("models", {"model_id": NEW, "kind": "subtext"})])
    scores = filled("scores", {"model_id": NEW, "value": 0.2}, {"comment_id": "c1", "model_id": OLD, "value": 0.1})
    con = database(comments=filled("comments", {}), scores=scores, models=models)
    assert con.sql("select implicitness from comments_scored").fetchall() == [(0.1,)]


def test_funnel_lists_each_reason_of_each_run(database: Open) -> None:
    """A run stands once for each reason it dropped rows for, or once with none; pairs are counted apart."""
    runs = filled(
        "runs",
        {"read_count": 10, "kept_count": 5, "dropped_count": 5},
        {"read_count": 5, "kept_count": 4, "dropped_count": 1, "step": "pairs"},
        {"source": "zhihu"},
    )
    dropped = filled(
        "dropped",
        {"step": "clean", "reason": "empty"},
        {"step": "clean", "reason": "empty", "row_key": "2"},
        {"step": "deduplicate", "reason": "same_comment"},
        {"step": "parse", "reason": "deleted"},
        {"step": "erased", "reason": "erased"},
        {"step": "pairs", "reason": "same_words"},
        {"step": "clean", "reason": "empty", "origin": "elsewhere"},
    )
    found = database(runs=runs, dropped=dropped).sql("select * from funnel order by all").fetchall()
    assert found == [
        (DAY, "weibo", "test", "collect", 10, 5, 5, "clean", "empty", 2),
        (DAY, "weibo", "test", "collect", 10, 5, 5, "deduplicate", "same_comment", 1),
        (DAY, "weibo", "test", "collect", 10, 5, 5, "erased", "erased", 1),
        (DAY, "weibo", "test", "collect", 10, 5, 5, "parse", "deleted", 1),
        (DAY, "weibo", "test", "pairs", 5, 4, 1, "pairs", "same_words", 1),
        (DAY, "zhihu", "test", "collect", 1, 1, 0, None, None, None),
    ]


def test_cloze_funnel_counts_each_reason(database: Open) -> None:
    """Tokens are counted by reason within source and subtask; those without one are the targets."""
    rows = filled(
        "cloze_targets", {"reason": "concrete"}, {"reason": "concrete", "start": 0}, {}, {"subtask": "nonspecificity"}
    )
    found = database(cloze_targets=rows).sql("select * from cloze_funnel order by all").fetchall()
    assert found == [
        ("weibo", "imperceptibility", "concrete", 2),
        ("weibo", "imperceptibility", "target", 1),
        ("weibo", "nonspecificity", "target", 1),
    ]


def test_commenter_scores_are_means(database: Open) -> None:
    """Scores and grades are averaged by commenter; a comment graded in two projects counts once."""
    one, other = digest("a", 32), digest("b", 32)
    score = {"metric": "meteor"}
    rows = {
        "generated_comments": filled("generated_comments", {"generated_id": one}, {"generated_id": other}),
        "metric_scores": filled(
            "metric_scores",
            {**score, "generated_id": one, "value": 0.2},
            {**score, "generated_id": other, "value": 0.4},
        ),
        "comment_grades": filled(
            "comment_grades",
            {"comment_id": one, "grade": 4.0},
            {"comment_id": one, "grade": 2.0, "project": "b"},
            {"comment_id": other, "grade": 2.0},
            {"comment_id": "c1", "grade": 1.0},
        ),
    }
    found = database(**rows).sql("select * from commenter_scores order by all").fetchall()
    assert [(*row[:4], round(row[4], 9), row[5]) for row in found] == [
        ("weibo", "att", "human", False, 2.5, 2),
        ("weibo", "att", "meteor", True, 0.3, 2),
    ]


def test_comments_scored_have_subtext_and_context_shift_beside(database: Open) -> None:
    """Each metric's newest value stands in the row of its comment, null where there is none."""
    rows = {
        "comments": filled("comments", {}, {}),
        "scores": filled(
            "scores",
            {"comment_id": "c1", "value": 1.5},
            {"comment_id": "c1", "metric": "context_shift", "value": 0.25},
            {"comment_id": "c1", "metric": "subtext", "value": 0.75, "model_id": "b"},
            {"comment_id": "c2", "value": 0.5},
        ),
        "models": filled("models"),
    }
    found = database(**rows).sql(
        "select comment_id, implicitness, subtext, context_shift from comments_scored order by all"
    )
    assert found.fetchall() == [("c1", 1.5, 0.75, 0.25), ("c2", 0.5, None, None)]


def test_compression_by_system_counts_and_averages(database: Open) -> None:
    """Sentences are counted, ratios averaged, and the most rounds told, by data set, language and system."""
    rows = filled(
        "compressions", {"item_id": "1"}, {"item_id": "2", "rounds": [0, 3]}, {"item_id": "1", "system": "gold"}
    )
    found = database(compressions=rows).sql(
        "select source, lang, system, sentence_count, ratio_mean, round_count from compression_by_system order by all"
    )
    assert found.fetchall() == [("weibo", "en", "att", 2, 0.5, 3), ("weibo", "en", "gold", 1, 0.5, 1)]


def test_holes_count_what_is_missing(database: Open) -> None:
    """Texts without tokens are counted once each, comments without scores one by one; whole days are not listed."""
    comments = filled(
        "comments",
        {"text": "done"},
        {"text": "same", "day": NEXT},
        {"text": "same", "day": NEXT, "thread_id": "t2"},
        {"text": "other", "day": NEXT},
        {"text": "tokenized", "day": NEXT},
    )
    tokens = filled(
        "tokens", {"text_hash": digest("done", 32)}, {"text_hash": digest("tokenized", 32), "day": NEXT},
        {"text_hash": digest("same", 32)},
    )  # fmt: skip
    scores = filled("scores", {"comment_id": "c1"}, {"comment_id": "c5", "day": NEXT})
    found = database(comments=comments, tokens=tokens, scores=scores).sql("select * from holes order by all")
    assert found.fetchall() == [(NEXT, "scores", 3), (NEXT, "tokens", 2)]


def scored(*values: tuple[str, str, float, int | None]) -> dict[str, pl.DataFrame]:
    """Comments and scores: source, language, value, likes."""
    rows = [{"source": s, "lang": lang, "like_count": likes, "comment_id": f"c{i}"}
            for i, (s, lang, _, likes) in enumerate(values)]  # fmt: skip
    scores = [{"source": s, "value": v, "comment_id": f"c{i}"} for i, (s, _, v, _) in enumerate(values)]
    return {"comments": filled("comments", *rows), "scores": filled("scores", *scores)}


def test_implicitness_by_source_day_sums_up(database: Open) -> None:
    """Count, mean, sample standard deviation and median, to six decimals; one comment has no deviation."""
    frames = scored(
        ("weibo", "zh", 0.1, 0), ("weibo", "zh", 0.2, 0), ("weibo", "zh", 0.6, 0), ("weibo", "en", 0.5, 0),
        ("zhihu", "zh", 1.0, 0), ("zhihu", "zh", 0.0, 0),
    )  # fmt: skip
    found = database(**frames).sql("select * from implicitness_by_source_day order by all").fetchall()
    assert found == [
        ("weibo", DAY, "en", 1, 0.5, None, 0.5),
        ("weibo", DAY, "zh", 3, 0.3, 0.264575, 0.2),  # sqrt(((0.2)^2 + (0.1)^2 + (0.3)^2) / 2)
        ("zhihu", DAY, "zh", 2, 0.5, 0.707107, 0.5),
    ]


def test_most_implicit_ranks_without_ties(database: Open) -> None:
    """The most implicit comes first; equal ones by likes, unknown likes last, then by source and id."""
    frames = scored(
        ("zhihu", "zh", 0.5, 1), ("weibo", "zh", 0.5, None), ("weibo", "zh", 0.9, 0), ("weibo", "zh", 0.5, 1),
        ("weibo", "zh", 0.5, 7), ("weibo", "zh", 0.5, 1),
    )  # fmt: skip
    found = database(**frames).sql("select rank, source, comment_id, implicitness from most_implicit order by rank")
    assert found.fetchall() == [
        (1, "weibo", "c2", 0.9),
        (2, "weibo", "c4", 0.5),
        (3, "weibo", "c3", 0.5),
        (4, "weibo", "c5", 0.5),
        (5, "zhihu", "c0", 0.5),
        (6, "weibo", "c1", 0.5),
    ]


def test_label_progress_counts_fields_and_tasks(database: Open) -> None:
    """Fields are counted by state, reason and round, and the tasks they are of."""
    one, other = digest("a", 32), digest("b", 32)
    annotations = filled(
        "annotations",
        {"task_id": one, "state": "open", "value": None, "reason": "to_adjudicate"},
        {"task_id": one, "state": "open", "value": None, "reason": "to_adjudicate", "field": "sarcasm"},
        {"task_id": other, "state": "adopted", "value": "1", "reason": "unanimous"},
    )
    found = database(annotations=annotations).sql("select * from label_progress order by state").pl()
    assert found.rows() == [("csd", "adopted", "unanimous", 1, 1, 1), ("csd", "open", "to_adjudicate", 1, 2, 1)]


def test_subtext_by_source_leaves_the_unsure_out_of_the_share(database: Open) -> None:
    """The share is of the comments that raters were sure about; the others are counted."""
    rows = filled(
        "annotated_comments",
        *({"row_id": digest(n, 16), "is_subtext": v} for n, v in enumerate((True, False, False, None))),
    )
    found = database(annotated_comments=rows).sql("select * from subtext_by_source").pl()
    assert found.rows() == [("csd", "weibo", "en", 4, 1, 1, 0.333333)]


def _runs(*rows: dict[str, Any]) -> pl.DataFrame:
    """Rows of `runs` that began an hour after their day's end and took ten seconds, unless they say otherwise."""
    made = [
        {"seconds": 10.0, "started_at": datetime.combine(row["day"] + timedelta(days=1), time(1), UTC), **row}
        for row in rows
    ]
    return filled("runs", *made)


def _run(day: date, read: int = 100, dropped: int = 10, **more: Any) -> dict[str, Any]:
    return {"day": day, "read_count": read, "kept_count": read - dropped, "dropped_count": dropped, **more}


def _health(con: duckdb.DuckDBPyConnection, columns: str = "day, step, status, why") -> list[tuple[Any, ...]]:
    return con.sql(f"select {columns} from pipeline_health order by day, step").fetchall()


def test_health_sums_a_step_over_sources(database: Open) -> None:
    """A day and step is one row: counts, seconds, bytes, tokens and cost of all sources, and its age in hours."""
    took = {"byte_count": 5, "input_tokens": 7, "output_tokens": 2, "cost_usd": 0.5}
    runs = _runs(_run(DAY, **took), _run(DAY, 50, 0, source="zhihu", **took), _run(DAY, step="ask", seconds=None))
    columns = "step, status, read_count, kept_count, dropped_count, dropped_ratio, seconds, byte_count, input_tokens, "
    found = _health(database(runs=runs), columns + "output_tokens, cost_usd, age_hours")
    assert found == [
        ("ask", "ok", 100, 90, 10, 0.1, None, None, None, None, None, 1.0),
        ("collect", "ok", 150, 140, 10, 10 / 150, 20.0, 10, 14, 4, 1.0, 1.0),
    ]


def test_health_finds_what_is_missing(database: Open) -> None:
    """Comments without tokens or scores, and days between collected ones within a week, are missing; long gaps not."""
    gap, end, later = (DAY + timedelta(days=n) for n in (1, 2, 10))
    comments = filled("comments", {"day": DAY})
    runs = _runs(_run(DAY), _run(DAY, step="tokenize"), _run(end), _run(later))
    found = database(runs=runs, comments=comments)
    assert _health(found, "day, step, status, why, waiting_count") == [
        (DAY, "collect", "ok", None, 0),
        (DAY, "score", "missing", "rows wait", 1),
        (DAY, "tokenize", "missing", "rows wait", 1),
        (gap, "collect", "missing", "nothing collected", 0),
        (end, "collect", "ok", None, 0),
        (later, "collect", "ok", None, 0),
    ]


@pytest.mark.parametrize(
    ("last", "status", "why"),
    [
        ({"read": 100}, "ok", None),
        ({"read": 50}, "ok", None),
        ({"read": 49, "dropped": 4}, "unusual", "few rows"),
        ({"read": 201, "dropped": 20}, "unusual", "many rows"),
        ({"read": 100, "dropped": 31}, "unusual", "share dropped"),
        ({"seconds": 91.0}, "unusual", "slow"),
        ({"seconds": 90.0}, "ok", None),
        ({"started_at": datetime(2026, 11, 24, 1, tzinfo=UTC)}, "late", "began late"),
        ({"read": 49, "dropped": 4, "started_at": datetime(2026, 11, 24, 1, tzinfo=UTC)}, "unusual", "few rows"),
    ],
)
def test_health_holds_a_day_against_the_week_before(
    database: Open, last: dict[str, Any], status: str, why: str | None
) -> None:
    """Rows, share dropped and seconds are held against the median of the days before, and the hour against the day."""
    before = [_run(DAY + timedelta(days=n)) for n in range(3)]
    day = DAY + timedelta(days=3)
    assert _health(database(runs=_runs(*before, _run(day, **last))))[-1] == (day, "collect", status, why)


def test_health_says_nothing_of_few_days(database: Open) -> None:
    """Two days are no custom, nor are days more than a week ago; and what is late is only the daily chain."""
    before = [_run(DAY - timedelta(days=n)) for n in (8, 9, 10)] + [_run(DAY + timedelta(days=n)) for n in range(2)]
    old = {"started_at": datetime(2026, 12, 24, tzinfo=UTC)}
    runs = _runs(*before, _run(DAY + timedelta(days=2), 1000), _run(DAY, step="train", **old))
    assert {row[2] for row in _health(database(runs=runs))} == {"ok"}
