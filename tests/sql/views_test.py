"""Each view: small tables in, exact rows out."""

from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import numpy as np
import pytest

from pipeline.score.reference import Reference, Scale, tabulate
from tests.sql.conftest import Select
from tests.support.oracles.estimates import estimate_mean, explain_refusal
from tests.support.rows.filled import DAY, NEXT, digest

OLD, NEW = digest("old"), digest("new")


def score(name: str, model: str, value: float, **more: Any) -> dict[str, Any]:
    """A row of `scores`: comment, model, value."""
    return {"comment_id": name, "model_id": model, "value": value, **more}


def test_articles_distinct_takes_the_longer_text(select: Select) -> None:
    """Of one article's rows the longest text is taken, of equally long ones the first origin; others stay."""
    articles = [
        {"origin": "b", "text": "long text"}, {"origin": "a", "text": "short"},
        {"origin": "b", "text": "tie", "thread_id": "t2"}, {"origin": "a", "text": "tea", "thread_id": "t2"},
        {"origin": "a", "text": "next", "day": NEXT},
    ]  # fmt: skip
    sql = "select day, thread_id, origin, text from articles_distinct order by day, thread_id"
    rows = [(DAY, "t1", "b", "long text"), (DAY, "t2", "a", "tea"), (NEXT, "t1", "a", "next")]
    assert select(sql, articles=articles) == rows
    described = [select(f"select column_name from (describe {name})") for name in ("articles", "articles_distinct")]
    assert described[0] == described[1]


def test_comments_scored_takes_the_newest_model(select: Select) -> None:
    """A comment has the score of the model trained last, a registered one first; other metrics stand beside."""
    created_at = datetime(2026, 11, 19, 8, tzinfo=UTC)
    tables: dict[str, Any] = {
        "comments": [
            {"text": "two models", "context": "so?", "like_count": 3, "created_at": created_at, "is_hot": True},
            {"text": "one unknown model", "thread_id": "t2", "parent_id": "c1"},
            {"text": "not scored"},
            {"text": "two unknown models", "thread_id": "t3"},
        ],
        "scores": [
            score("c1", OLD, 0.1), score("c1", NEW, 0.2, signature="sig|new|1"), score("c1", "0", 0.3),
            score("c1", NEW, 9.0, metric="sarcasm"), score("c1", OLD, 0.25, metric="context_shift"),
            score("c1", "b", 0.75, metric="subtext"), score("c2", "x", 0.4, thread_id="t2"),
            score("c4", "y", 0.6, thread_id="t3"), score("c4", "x", 0.5, thread_id="t3"), score("c9", NEW, 0.9),
        ],
        "articles": [
            {"title": "Weather", "text": "cold", "category": "news"},
            {"title": None, "text": "y" * 50, "thread_id": "t2"},
        ],
        "models": [{"model_id": OLD, "day": DAY}, {"model_id": NEW, "day": NEXT}],
    }  # fmt: skip
    assert [name for (name,) in select("select column_name from (describe comments_scored)")] == [
        "source", "day", "thread_id", "comment_id", "parent_id", "lang", "text", "context", "like_count",
        "duplicate_count", "created_at", "is_hot", "title", "category", "implicitness", "percentile", "band",
        "subtext", "context_shift", "model_id", "signature", "weakness",
    ]  # fmt: skip
    is_same_time = "created_at = timestamptz '2026-11-19 08:00:00+00'"
    sql = f"select * replace ({is_same_time} as created_at) from comments_scored order by comment_id"
    assert select(sql, **tables)[0] == (
        "weibo", DAY, "t1", "c1", None, "en", "two models", "so?", 3, 0, True, True, "Weather", "news", 0.2,
        None, None, 0.75, 0.25, NEW, "sig|new|1", None,
    )  # fmt: skip
    columns = "comment_id, parent_id, title, category, implicitness, model_id"
    assert select(f"select {columns} from comments_scored order by comment_id", **tables)[1:] == [
        ("c2", "c1", "y" * 40, None, 0.4, "x"),
        ("c4", None, None, None, 0.5, "x"),
    ]


def test_a_model_without_a_row_is_in_force(select: Select) -> None:
    """The shipped model has no row: it goes before a model on trial and after a promoted one of ImpScore's kind."""
    other = digest("of another kind")
    models = [{"model_id": OLD}, {"model_id": NEW, "day": NEXT, "is_promoted": False}]
    models += [{"model_id": other, "day": NEXT, "kind": "subtext"}]
    values = {"c1": {NEW: 0.2, "shipped": 0.3}, "c2": {OLD: 0.1, "shipped": 0.3, NEW: 0.2}, "c3": {NEW: 0.2}}
    values["c4"] = {OLD: 0.1, other: 0.2}
    scores = [score(name, model, value) for name, by_model in values.items() for model, value in by_model.items()]
    comments = [{}, {"text": "b"}, {"text": "c"}, {"text": "d"}]
    sql = "select comment_id, model_id from comments_scored order by all"
    rows = select(sql, comments=comments, scores=scores, models=models)
    assert rows == [("c1", "shipped"), ("c2", OLD), ("c3", NEW), ("c4", OLD)]


def test_funnel_lists_each_reason_of_each_run(select: Select) -> None:
    """A run stands once for each reason it dropped rows for, or once with none; pairs are counted apart."""
    runs = [
        {"read_count": 10, "kept_count": 5, "dropped_count": 5},
        {"read_count": 5, "kept_count": 4, "dropped_count": 1, "step": "pairs"},
        {"source": "zhihu"},
    ]
    dropped = [
        {"step": "clean", "reason": "empty"}, {"step": "clean", "reason": "empty", "row_key": "2"},
        {"step": "deduplicate", "reason": "same_comment"}, {"step": "parse", "reason": "deleted"},
        {"step": "erased", "reason": "erased"}, {"step": "pairs", "reason": "same_words"},
        {"step": "clean", "reason": "empty", "origin": "elsewhere"},
    ]  # fmt: skip
    assert select("select * from funnel order by all", runs=runs, dropped=dropped) == [
        (DAY, "weibo", "test", "collect", 10, 5, 5, "clean", "empty", 2),
        (DAY, "weibo", "test", "collect", 10, 5, 5, "deduplicate", "same_comment", 1),
        (DAY, "weibo", "test", "collect", 10, 5, 5, "erased", "erased", 1),
        (DAY, "weibo", "test", "collect", 10, 5, 5, "parse", "deleted", 1),
        (DAY, "weibo", "test", "pairs", 5, 4, 1, "pairs", "same_words", 1),
        (DAY, "zhihu", "test", "collect", 1, 1, 0, None, None, None),
    ]


def test_views_of_papers_count_and_average(select: Select) -> None:
    """Tokens are counted by reason in source and subtask; sentences, ratios, rounds by data set and system."""
    targets = [{"reason": "concrete"}, {"reason": "concrete", "start": 0}, {}, {"subtask": "nonspecificity"}]
    assert select("select * from cloze_funnel order by all", cloze_targets=targets) == [
        ("weibo", "imperceptibility", "concrete", 2),
        ("weibo", "imperceptibility", "target", 1),
        ("weibo", "nonspecificity", "target", 1),
    ]
    compressions = [{"item_id": "1"}, {"item_id": "2", "rounds": [0, 3]}, {"item_id": "1", "system": "gold"}]
    columns = "source, lang, system, sentence_count, ratio_mean, round_count"
    rows = select(f"select {columns} from compression_by_system order by all", compressions=compressions)
    assert rows == [("weibo", "en", "att", 2, 0.5, 3), ("weibo", "en", "gold", 1, 0.5, 1)]


def test_commenter_scores_are_means(select: Select) -> None:
    """Scores and grades are averaged by commenter; a comment graded in two projects counts once."""
    first, second = digest("a", 32), digest("b", 32)
    values = {first: 0.2, second: 0.4}
    grades = [
        {"comment_id": first, "grade": 4.0}, {"comment_id": first, "grade": 2.0, "project": "b"},
        {"comment_id": second, "grade": 2.0}, {"comment_id": "c1", "grade": 1.0},
    ]  # fmt: skip
    rows = select(
        "select * from commenter_scores order by all",
        generated_comments=[{"generated_id": name} for name in values],
        metric_scores=[{"metric": "meteor", "generated_id": name, "value": value} for name, value in values.items()],
        comment_grades=grades,
    )
    assert [(*row[:4], round(row[4], 9), row[5]) for row in rows] == [
        ("weibo", "att", "human", False, 2.5, 2),
        ("weibo", "att", "meteor", True, 0.3, 2),
    ]


def test_holes_count_what_is_missing(select: Select) -> None:
    """Texts without tokens are counted once each, comments without scores one by one; whole days are not listed."""
    comments = [
        {"text": "done"}, {"text": "same", "day": NEXT}, {"text": "same", "day": NEXT, "thread_id": "t2"},
        {"text": "other", "day": NEXT}, {"text": "tokenized", "day": NEXT},
    ]  # fmt: skip
    days = {"done": DAY, "tokenized": NEXT, "same": DAY}
    tokens = [{"text_hash": digest(text, 32), "day": day} for text, day in days.items()]
    scores = [{"comment_id": "c1"}, {"comment_id": "c5", "day": NEXT}]
    rows = select("select * from holes order by all", comments=comments, tokens=tokens, scores=scores)
    assert rows == [(NEXT, "scores", 3), (NEXT, "tokens", 2)]


def scored(*values: tuple[str, str, float, int | None]) -> dict[str, list[dict[str, Any]]]:
    """Comments and scores: source, language, value, likes."""
    tables: dict[str, list[dict[str, Any]]] = {"comments": [], "scores": []}
    for number, (source, lang, value, likes) in enumerate(values):
        key = {"source": source, "comment_id": f"c{number}"}
        tables["comments"].append({**key, "lang": lang, "like_count": likes})
        tables["scores"].append({**key, "value": value})
    return tables


def test_implicitness_by_source_day_sums_up(select: Select) -> None:
    """Count, mean, sample standard deviation and median, to six decimals; one comment has no deviation."""
    tables = scored(
        ("weibo", "zh", 0.1, 0), ("weibo", "zh", 0.2, 0), ("weibo", "zh", 0.6, 0), ("weibo", "en", 0.5, 0),
        ("zhihu", "zh", 1.0, 0), ("zhihu", "zh", 0.0, 0),
    )  # fmt: skip
    none = (None, None, None, 0, "uncorrected: no judged sample", None)
    assert select("select * from implicitness_by_source_day order by all", **tables) == [
        ("weibo", DAY, "en", 1, 0.5, None, None, 0.5, None, *none),
        ("weibo", DAY, "zh", 3, 0.3, None, 0.264575, 0.2, None, *none),  # sqrt(((0.2)^2 + (0.1)^2 + (0.3)^2) / 2)
        ("zhihu", DAY, "zh", 2, 0.5, None, 0.707107, 0.5, None, *none),
    ]


def test_scores_have_percentile_band_and_weakness(select: Select) -> None:
    """Views read a score by the reference `sample` of model and language; without one it has no percentile."""
    scale = Scale(5, [0.02 * step for step in range(101)], [0.5, 1.0, 1.5], kendall_tau=0.5)
    reference = Reference("sample", NEW, "", {"zh": scale})
    tables = scored(("weibo", "zh", 0.5, 0), ("weibo", "zh", 1.01, 0), ("zhihu", "zh", 2.0, 0), ("weibo", "en", 1.0, 0))
    for row in tables["scores"]:
        row["model_id"] = NEW
    tables["reference_scales"] = tabulate([reference, reference._replace(name="forum")])
    weakness = "weak: Kendall's tau 0.50"
    assert select("select implicitness, percentile, band, weakness from most_implicit", **tables) == [
        (2.0, 100.0, "veiled", weakness), (1.01, 50.5, "hinted", weakness), (1.0, None, None, None),
        (0.5, 25.0, "indirect", weakness),
    ]  # fmt: skip
    columns = "source, lang, percentile_mean, percentile_median, weakness"
    assert select(f"select {columns} from implicitness_by_source_day order by all", **tables) == [
        ("weibo", "en", None, None, None), ("weibo", "zh", 37.8, 37.8, weakness), ("zhihu", "zh", 100, 100, weakness)
    ]  # fmt: skip


def test_implicitness_by_source_day_is_corrected_by_a_judge(select: Select) -> None:
    """The mean, its interval and its reason are those of `estimates`; of judges the one with most comments counts."""
    rng = np.random.default_rng(3)
    values = rng.random(390) * 2
    judged = np.clip(np.round(4 * values / 2 + rng.normal(size=390)), 0, 4)
    part = np.arange(390) % 3 == 0  # every third comment of each source is judged
    names = ["weibo", "zhihu", "netease", "bilibili", "level", "grown"]
    sources = np.repeat(names, [90, 60, 10, 70, 70, 90])
    tables = scored(*((source, "en", value, 0) for source, value in zip(sources, values, strict=True)))
    judged[sources == "bilibili"] = 2
    for row in tables["scores"]:
        row["value"] = 1.0 if row["source"] == "level" else row["value"]
    values[sources == "level"] = 1.0
    judges = [("gpt:scale", part), ("few:scale", np.arange(390) == 0), ("gpt:pairwise", np.arange(390) >= 0)]
    for judge, mask in judges:
        for number in np.flatnonzero(mask):
            key = {"source": str(sources[number]), "comment_id": f"c{number}", "metric": "implicitness_judged"}
            size = 80 if sources[number] == "grown" else (sources == sources[number]).sum()
            more = {"signature": f"implicitness_judged|day:{size}"}
            tables["scores"].append({**key, "model_id": judge, "value": float(judged[number]), **more})
    columns = "source, corrected_mean, corrected_low, corrected_high, judged_count, correction"
    rows = {row[0]: row[1:] for row in select(f"select {columns} from implicitness_by_source_day", **tables)}
    for source in ("weibo", "zhihu", "level"):
        own = sources == source
        sample = part & own
        expected = estimate_mean(values[own], judged[sample] / 2, values[sample])
        assert rows[source][:3] == pytest.approx(expected[:3], abs=2e-4)
        assert rows[source][3:] == (sample.sum(), f"gpt:scale, {sample.sum()} judged comments")
    for source in ("netease", "bilibili"):
        sample = part & (sources == source)
        assert rows[source] == (None, None, None, sample.sum(), f"uncorrected: {explain_refusal(judged[sample])}")
    reason = "uncorrected: the day grew from 80 to 90 comments since it was judged"
    assert rows["grown"] == (None, None, None, 30, reason)


def test_most_implicit_ranks_without_ties(select: Select) -> None:
    """The most implicit comes first, unasked; equal ones by likes, unknown likes last, then by source and id."""
    tables = scored(
        ("zhihu", "zh", 0.5, 1), ("weibo", "zh", 0.5, None), ("weibo", "zh", 0.9, 0), ("weibo", "zh", 0.5, 1),
        ("weibo", "zh", 0.5, 7), ("weibo", "zh", 0.5, 1),
    )  # fmt: skip
    assert select("select rank, source, comment_id, implicitness from most_implicit", **tables) == [
        (1, "weibo", "c2", 0.9), (2, "weibo", "c4", 0.5), (3, "weibo", "c3", 0.5), (4, "weibo", "c5", 0.5),
        (5, "zhihu", "c0", 0.5), (6, "weibo", "c1", 0.5),
    ]  # fmt: skip


def test_views_of_labels(select: Select) -> None:
    """Fields are counted by state, reason and round; the share of subtext is of what raters were sure about."""
    first, second = digest("a", 32), digest("b", 32)
    open_ = {"task_id": first, "state": "open", "value": None, "reason": "to_adjudicate"}
    adopted = {"task_id": second, "state": "adopted", "value": "1", "reason": "unanimous"}
    annotations = [open_, {**open_, "field": "sarcasm"}, adopted]
    rows = select("select * from label_progress order by state", annotations=annotations)
    assert rows == [("csd", "adopted", "unanimous", 1, 1, 1), ("csd", "open", "to_adjudicate", 1, 2, 1)]
    comments = [{"row_id": digest(n, 16), "is_subtext": v} for n, v in enumerate((True, False, False, None))]
    rows = select("select * from subtext_by_source", annotated_comments=comments)
    assert rows == [("csd", "weibo", "en", 4, 1, 1, 0.333333)]
    rows = select("select paper_class from paper_class_index order by row_id", annotated_comments=comments)
    assert sorted(row[0] for row in rows if row[0] is not None) == [0, 1, 1]  # subtext is 0 in section 1 (CSD-13)
    assert len(rows) == 4


def _run(day: date, read: int = 100, dropped: int = 10, **more: Any) -> dict[str, Any]:
    """A row of `runs` that began an hour after its day's end and took ten seconds, unless it says otherwise."""
    started_at = datetime.combine(day + timedelta(days=1), time(1), UTC)
    counts = {"read_count": read, "kept_count": read - dropped, "dropped_count": dropped}
    return {"day": day, "seconds": 10.0, "started_at": started_at, **counts, **more}


LONG_AFTER = datetime(2026, 11, 24, 1, tzinfo=UTC)
HEALTH = "select {} from pipeline_health order by day, step"


def test_health_sums_a_step_over_sources(select: Select) -> None:
    """A day and step is one row: counts, seconds, bytes, tokens and cost of all sources, and its age in hours."""
    took = {"byte_count": 5, "input_tokens": 7, "output_tokens": 2, "cost_usd": 0.5}
    runs = [_run(DAY, **took), _run(DAY, 50, 0, source="zhihu", **took), _run(DAY, step="ask", seconds=None)]
    columns = "step, status, read_count, kept_count, dropped_count, dropped_ratio, seconds, byte_count, input_tokens, "
    columns += "output_tokens, cost_usd, age_hours"
    assert select(HEALTH.format(columns), runs=runs) == [
        ("ask", "ok", 100, 90, 10, 0.1, None, None, None, None, None, 1.0),
        ("collect", "ok", 150, 140, 10, 10 / 150, 20.0, 10, 14, 4, 1.0, 1.0),
    ]


def test_health_finds_what_is_missing(select: Select) -> None:
    """Comments without tokens or scores, and days between collected ones within a week, are missing; long gaps not."""
    gap, end, later = (DAY + timedelta(days=n) for n in (1, 2, 10))
    runs = [_run(DAY), _run(DAY, step="tokenize"), _run(end), _run(later)]
    sql = HEALTH.format("day, step, status, why, waiting_count")
    assert select(sql, runs=runs, comments=[{"day": DAY}]) == [
        (DAY, "collect", "ok", None, 0), (DAY, "score", "missing", "rows wait", 1),
        (DAY, "tokenize", "missing", "rows wait", 1), (gap, "collect", "missing", "nothing collected", 0),
        (end, "collect", "ok", None, 0), (later, "collect", "ok", None, 0),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("last", "status", "why"),
    [
        ({"read": 100}, "ok", None), ({"read": 50}, "ok", None), ({"read": 49, "dropped": 4}, "unusual", "few rows"),
        ({"read": 201, "dropped": 20}, "unusual", "many rows"),
        ({"read": 100, "dropped": 31}, "unusual", "share dropped"), ({"seconds": 91.0}, "unusual", "slow"),
        ({"seconds": 90.0}, "ok", None), ({"started_at": LONG_AFTER, "run_id": "scheduled__1"}, "late", "began late"),
        ({"started_at": LONG_AFTER, "run_id": "backfill__1"}, "backfill", "by a backfill or by hand"),
        ({"started_at": LONG_AFTER, "run_id": "cli-1"}, "backfill", "by a backfill or by hand"),
        ({"read": 49, "dropped": 4, "started_at": LONG_AFTER}, "unusual", "few rows"),
    ],
)  # fmt: skip
def test_health_holds_a_day_against_the_week_before(
    select: Select, last: dict[str, Any], status: str, why: str | None
) -> None:
    """Rows, share dropped and seconds are held against the median of the days before, and the hour against the day."""
    before = [_run(DAY + timedelta(days=n)) for n in range(3)]
    day = DAY + timedelta(days=3)
    rows = select(HEALTH.format("day, step, status, why"), runs=[*before, _run(day, **last)])
    assert rows[-1] == (day, "collect", status, why)


@pytest.mark.parametrize(("hours", "status"), [(24, "ok"), (25, "late")])
def test_the_age_of_a_step_counts_from_the_collection(select: Select, hours: int, status: str) -> None:
    """Tokens of a day that a backfill collected long after are late only if they are late after that."""
    tokenized = {"step": "tokenize", "run_id": "asset_triggered__1", "started_at": LONG_AFTER + timedelta(hours=hours)}
    runs = [_run(DAY, started_at=LONG_AFTER, run_id="backfill__1"), _run(DAY, **tokenized)]
    assert select(HEALTH.format("status, age_hours"), runs=runs)[1] == (status, hours)


@pytest.mark.parametrize(
    ("run", "family"),
    [
        ({"step": "score_implicitness_judged"}, "judge"),
        ({"step": "ask", "origin": "m: judge_implicitness_scale_en"}, "judge"),
        ({"step": "ask", "origin": "m: explicit_en"}, "impscore"),
        ({"step": "train", "source": "impscore"}, "impscore"),
        ({"step": "train", "source": "reader_nonspecificity"}, "recam"),
        ({"step": "cloze_ratings", "origin": "label:cloze_nonspecificity"}, "recam"),
        ({"step": "train", "source": "commenter_att"}, "commenting"),
        ({"step": "grades", "origin": "label:quality_references"}, "commenting"),
        ({"step": "grades", "origin": "label:integrity_sample"}, "ndd"),
        ({"step": "score_context_shift", "origin": "model x"}, "ndd"),
        ({"step": "study", "source": "ablation"}, "studies"),
        ({"step": "select", "origin": "label:csd"}, "csd"),
        ({"step": "publish", "origin": "release csd"}, "csd"),
    ],
)
def test_each_step_belongs_to_a_family(select: Select, run: dict[str, Any], family: str) -> None:
    """A step of each paper is counted with the DAG whose work it is."""
    assert select(HEALTH.format("family"), runs=[_run(DAY, **run)]) == [(family,)]
