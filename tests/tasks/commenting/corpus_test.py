"""The commenting corpus as tasks: the sample's articles with comments to parts and references."""

from pathlib import Path

import polars as pl
import pytest

from pipeline import sample, warehouse
from pipeline.errors import BadInput, Missing
from pipeline.tables import empty
from pipeline.tasks.commenting import corpus, generated, overlap
from pipeline.tasks.commenting.corpus import Rules
from pipeline.tasks.daily import collect, tokenize

DAY = sample.DAY


def table(name: str) -> pl.DataFrame:
    """Read the rows of a table, sorted."""
    rows = warehouse.scan(name).collect()
    return rows.sort([c for c, kind in rows.schema.items() if not kind.is_nested()])


def test_the_sample_is_divided(sample_corpus: Path) -> None:
    """Two articles of the sample break a filter each, with its reason; ten may be tested, six of them are.

    The funnel has every article: those that are in, and those that are not with their reasons.
    """
    rows, reasons = table("threads"), {"a25": "short_content", "a26": "few_comments"}
    assert dict(rows.drop_nulls("reason").select("thread_id", "reason").iter_rows()) == reasons
    run = warehouse.scan("runs", pl.col("step") == corpus.STEP).collect().row(0, named=True)
    assert (run["read_count"], run["kept_count"], run["dropped_count"]) == (26, 24, 2)
    dropped = warehouse.scan("dropped", pl.col("step") == corpus.STEP).select("row_key", "reason").collect()
    assert dict(dropped.iter_rows()) == reasons
    counts = dict(rows.group_by("split").len().drop_nulls().iter_rows())
    assert counts == {"train": 12, "validation": 6, "test": 6}
    tested = set(rows.filter(split="test")["thread_id"])
    assert tested <= {f"a{n:02}" for n in range(1, 11)}
    roles = table("reference_comments").group_by("thread_id", "role").len()
    assert set(roles.filter(role="reference")["len"]) == {27}
    assert set(roles["thread_id"]) == tested


def test_shards_and_other_days_change_nothing(sample_corpus: Path) -> None:
    """Cut in one share or in many, and with the same articles imported for another day, the same rows come out."""
    before = [table("threads"), table("reference_comments")]
    collect.import_files([sample.THREADS], "sample_news", "2026-11-20", mapping=sample.THREAD_COLUMNS)
    tokenize.run("2026-11-20")
    parts = corpus.plan(rows_per_shard=1)  # of which some are empty
    assert len(parts) == 26
    corpus.publish([corpus.stage_words(part) for part in parts], DAY, Rules(share=0.25))
    assert table("threads").equals(before[0])
    assert table("reference_comments").equals(before[1])


def test_a_window_of_days(sample_corpus: Path) -> None:
    """Articles whose earliest comment, or collection, is outside of the window are left out as such (AAC-02)."""
    with pytest.raises(BadInput, match="the last day, 2017-04-01, is before the first, 2017-08-31"):
        corpus.parse_rules({"first_day": "2017-08-31", "last_day": "2017-04-01"})
    days = warehouse.scan("comments").group_by("thread_id").agg(
        pl.coalesce(pl.col("created_at").dt.date(), "day").min().alias("first")
    ).collect()  # fmt: skip
    last = str(days["first"].sort()[12])
    counts = corpus.build(DAY, corpus.parse_rules({"last_day": last, "share": 0.25}))
    outside = set(days.filter(pl.col("first") > pl.lit(last).str.to_date())["thread_id"])
    rows = table("threads")
    assert set(rows.filter(pl.col("reason").str.contains("outside_window"))["thread_id"]) == outside
    assert sum(counts.values()) == rows.height == 26
    assert "outside_window" in corpus.build(
        DAY, corpus.parse_rules({"first_day": "2017-04-01", "last_day": "2017-08-31"})
    )
    with pytest.raises(Missing, match=r"no articles of train; it dropped .*outside_window.*; lower the limits"):
        corpus.read_threads("train")


def test_without_articles_there_is_no_corpus(tables: Path) -> None:
    """The message names what to do."""
    with pytest.raises(Missing, match="undertone import"):
        corpus.plan()


def test_statistics_stand_beside_the_papers(sample_corpus: Path) -> None:
    """Of the test part the references count, 27 an article as in table 2, also for words; a source may stand alone."""
    statistics = corpus.list_statistics(corpus.measure_corpus())
    test = {row["metric"]: row for row in statistics.filter(split="test").iter_rows(named=True)}
    assert test["comments_per_article"]["value"] == test["comments_per_article"]["paper"] == 27
    assert (test["articles"]["value"], test["articles"]["paper"]) == (6, 1610)
    assert test["content_words"]["paper"] is None
    comments = corpus.join_tokens(corpus.scan_comments()).collect()
    articles = table("threads").filter(pl.col("split").is_not_null())
    references = set(table("reference_comments").filter(role="reference")["comment_id"])
    learned = set(articles.filter(pl.col("split") != "test")["thread_id"])
    counted = comments.filter(pl.col("thread_id").is_in(learned) | pl.col("comment_id").is_in(references))
    words = pl.concat([articles["title_tokens"], articles["content_tokens"], counted["tokens"]]).explode()
    all_parts = {row["metric"]: row["value"] for row in statistics.filter(split="all").iter_rows(named=True)}
    assert (all_parts["comments"], all_parts["vocabulary"]) == (counted.height, words.n_unique())
    assert corpus.list_statistics(corpus.measure_corpus("sample_news"), "sample_news").equals(statistics)
    with pytest.raises(Missing, match="there is no corpus"):
        corpus.measure_corpus("other_news")
    columns = corpus.tabulate_statistics(corpus.measure_corpus())
    assert columns.filter(metric="articles")["test"].item() == "6 (1610)"


def test_comments_that_are_not_tokenized_are_missing(sample_corpus: Path) -> None:
    """Where tokens are missing, comments are not dropped silently: the message names the days."""
    warehouse.overwrite("tokens", warehouse.make_slice(source="sample_news"), empty("tokens"))
    before = warehouse.get_snapshot_id("threads")
    with pytest.raises(Missing, match=f"692 comments are not tokenized: .* for {DAY}"):
        corpus.build(DAY)
    assert warehouse.get_snapshot_id("threads") == before
    with pytest.raises(Missing, match=f"162 comments are not tokenized: .* for {DAY}"):
        overlap.read_references()
    assert corpus.measure_corpus()["comments"].to_list() == [0, 0, 0, 0]


def test_an_erased_source_leaves_nothing(sample_corpus: Path) -> None:
    """Articles of a source that are erased take its threads and references along, and what was generated for them."""
    path = sample_corpus.parent / "other.jsonl"
    path.write_text("\n".join(sample.THREADS.read_text(encoding="utf-8").splitlines()[-3:]), encoding="utf-8")
    collect.import_files([path], "other_news", DAY, mapping=sample.THREAD_COLUMNS)
    tokenize.run(DAY)
    corpus.build(DAY, Rules(share=0.25))
    assert set(table("threads")["source"]) == {"sample_news", "other_news"}
    generated.generate(DAY, generated.HUMAN)
    for name in ("articles", "comments"):
        warehouse.overwrite(name, warehouse.make_slice(source="sample_news"), empty(name))
    corpus.build(DAY, Rules(share=0.25))
    assert set(table("threads")["source"]) == {"other_news"}
    assert table("reference_comments").height == 0
    with pytest.raises(Missing, match="no articles of test"):
        generated.generate(DAY, generated.HUMAN)
    assert table("generated_comments").height == 0


def test_comments_without_an_article_are_recorded(sample_corpus: Path) -> None:
    """A comment whose article was removed is in `dropped`, and in the funnel with its reason."""
    rows = warehouse.scan("articles").filter(pl.col("thread_id") != "a03").collect()
    warehouse.overwrite("articles", warehouse.make_slice(source="sample_news"), rows)
    corpus.build(DAY, Rules(share=0.25))
    funnel = warehouse.query("select reason, row_count from funnel where step = 'threads' order by reason")
    assert dict(funnel.rows()) == {"few_comments": 1, "no_article": 33, "short_content": 1}
