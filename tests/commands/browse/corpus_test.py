"""What the page asks a corpus for, next to the same in Polars, and hostile requests."""

import json
from pathlib import Path
from urllib.parse import quote

import polars as pl
import pytest
from scipy.stats import spearmanr

from pipeline import warehouse
from pipeline.errors import BadInput, Missing
from pipeline.io.visible import escape_invisible
from pipeline.report.browse.corpus import Corpus
from pipeline.report.browse.site import write_site
from pipeline.report.browse.view import parse_view
from pipeline.tasks.erasure import run
from pipeline.tasks.erasure.request import Request
from tests.commands.browse.conftest import TEXTS, USER, write_rows
from tests.support.rows.filled import DAY

A, B = "implicitness_aaaaaaaa", "implicitness_bbbbbbbb"
VIEWS = [
    ({}, pl.lit(value=True)),
    ({"search": "LOVELY train"}, pl.col("text").str.contains("(?i)lovely train")),
    ({"search": "真"}, pl.col("text").str.contains("真")),
    ({"search": "% _' --"}, pl.lit(value=False)),
    ({"search": "o'brien? ;"}, pl.col("text").str.starts_with("O'Brien")),
    ({"among": {"source": ["zhihu", "' or 1=1"]}}, pl.col("source") == "zhihu"),
    ({"between": {"day": [None, str(DAY)], "likes": [100, None]}}, pl.col("day").eq(DAY) & (pl.col("like_count") > 99)),
    ({"between": {A: [0.5, 1.5]}, "among": {"lang": ["zh"]}}, pl.col("lang").eq("zh") & pl.col(A).is_between(0.5, 1.5)),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "condition"), VIEWS)
def test_views_are_as_in_polars(
    corpus: Corpus, rows: pl.DataFrame, fields: dict[str, object], condition: pl.Expr
) -> None:
    """Rows, their order, their count and the bins of a view are those that Polars finds."""
    view = parse_view(json.dumps({**fields, "sort": "likes", "descending": True}), corpus.columns)
    answer = corpus.list_rows(view)
    expected = rows.filter(condition)
    assert answer["count"] == expected.height
    likes = expected["like_count"].sort(descending=True, nulls_last=True).to_list()
    assert [row["likes"] for row in answer["rows"]] == likes
    assert sorted(row["text"] for row in answer["rows"]) == sorted(map(escape_invisible, expected["text"]))
    free = [name for name in (A, B, "quality_judge_x", "lang", "day") if name not in {*view.among, *view.between}]
    for name, counts in corpus.count_bins(view, free).items():
        assert sum(counts) == expected[name].count()
    assert corpus.list_rows(view, 9)["rows"] == []
    assert parse_view(f"http://127.0.0.1:1/#{quote(json.dumps(fields))}", corpus.columns) == parse_view(
        json.dumps(fields), corpus.columns
    )


def test_the_filter_of_a_column_does_not_count_for_its_bins(corpus: Corpus, rows: pl.DataFrame) -> None:
    """The bins of a filtered column stay, those of others shrink."""
    view = parse_view('{"among": {"source": ["zhihu"]}}', corpus.columns)
    counts = corpus.count_bins(view, ["source", "day"])
    assert dict(zip(corpus.columns["source"].values, counts["source"], strict=True)) == {"weibo": 45, "zhihu": 15}
    assert counts["day"] == rows.filter(source="zhihu")["day"].value_counts(sort=True)["count"].to_list()


@pytest.mark.parametrize("text", [
    "[]", "{", '{"search": 1, "among": 3}', '{"among": {"text": ["a"]}}', '{"between": {"likes": [1]}}',
    '{"sort": "n; drop table comments"}', '{"among": {"source) or (1=1": ["a"]}}', '{"sort": "user_id"}',
    '{"sort": ["n"]}',
    '{"between": {"likes) or true --": [1, 2]}}', '{"between": {"source": ["a", "b"]}}',
])  # fmt: skip
def test_wrong_views_are_refused(corpus: Corpus, text: str) -> None:
    """A view that is no JSON of the right shape, or names another column, is refused before any SQL."""
    with pytest.raises(BadInput):
        parse_view(text, corpus.columns)


@pytest.mark.parametrize("bound", ["1 or 1=1", "1); drop table comments", [1], "x"])
def test_wrong_values_are_refused(corpus: Corpus, bound: object) -> None:
    """A bound that is no number is refused, and the corpus stays."""
    view = parse_view(json.dumps({"between": {"likes": [bound, None]}}), corpus.columns)
    with pytest.raises(BadInput, match="no number or day"):
        corpus.list_rows(view)
    with pytest.raises(BadInput, match="no score 'likes; select 1'"):
        corpus.compare(parse_view("", corpus.columns), A, "likes; select 1")
    assert corpus.describe()["count"] == 60


def test_nothing_personal_is_in_a_corpus(corpus: Corpus) -> None:
    """No column has ids of people, and the file has not the pseudonym of any; it has the texts uncompressed."""
    columns = corpus.select("select column_name from duckdb_columns() where not internal").to_series()
    assert columns.filter(columns.str.contains("user|adapter|origin")).to_list() == []
    content = corpus.path.read_bytes()
    assert (USER.encode() in content, TEXTS[0].encode() in content) == (False, True)


def test_a_thread_has_its_article_its_replies_and_the_words(corpus: Corpus) -> None:
    """A thread is of one day; a reply names its parent; the words of the score are in their order, all made visible."""
    rows = corpus.select_rows(parse_view("", corpus.columns), ids="n, comment_id")
    numbers = dict(rows.select("comment_id", "n").iter_rows())
    answer = corpus.read_thread(numbers["c13"])
    comments = {row["n"]: row for row in answer["comments"]}
    assert (answer["count"], answer["article"]["title"]) == (15, "<script>alert(1)</script>")
    assert comments[numbers["c13"]]["parent"] == numbers["c10"]
    assert [word["word"] for word in comments[numbers["c13"]]["words"]] == ["Nice", "13"]
    assert "⟨U+202E⟩gnitteg" in comments[numbers["c9"]]["text"]
    with pytest.raises(Missing):
        corpus.read_thread(999)


def test_comparing_two_scores(corpus: Corpus, rows: pl.DataFrame) -> None:
    """The correlation is Spearman's by scipy; the worst disagreement is first; cells add up."""
    answer = corpus.compare(parse_view("", corpus.columns), A, B)
    assert answer["correlation"] == pytest.approx(spearmanr(rows[A], rows[B]).statistic, abs=0.0006)
    ranks = rows.select(pl.col(A, B).rank() / 60 * 100)
    assert abs(answer["rows"][0]["rank_a"] - answer["rows"][0]["rank_b"]) == pytest.approx(
        (ranks[A] - ranks[B]).abs().max(), abs=2
    )
    assert sum(count for *_, count in answer["cells"]) == answer["count"] == 60
    assert corpus.compare(parse_view("", corpus.columns), A, "quality_judge_x")["count"] == 20
    assert len(corpus.points["x"]) == 60


def test_a_site_has_the_same_rows_without_ids(corpus: Corpus, tmp_path: Path) -> None:
    """The data of a site are the first rows of a view, with no id of the platform, and parents by number."""
    view = parse_view('{"sort": "likes", "descending": true}', corpus.columns)
    (tmp_path / "site").mkdir()
    assert write_site(corpus, view, 50, tmp_path / "site") == 50
    text = (tmp_path / "site" / "data.json").read_text(encoding="utf-8")
    assert not [word for word in ("comment_id", "thread_id", "site-thread", '"c13"', USER, "\u202e") if word in text]
    content = json.loads(text)
    assert [row["likes"] for row in content["rows"]] == [row["likes"] for row in corpus.list_rows(view)["rows"][:50]]
    assert 'data-source="data.json"' in (tmp_path / "site" / "index.html").read_text(encoding="utf-8")


def test_an_erasure_removes_the_corpus(tables: Path) -> None:
    """After `forget` there is no copy, and one that is open answers no more."""
    write_rows()
    corpus = Corpus(warehouse.make_corpus())
    run.forget(Request(comment_ids=["c13"]), verify=False)
    assert [*(tables / "scratch" / "browse").iterdir()] == []
    with pytest.raises(Missing, match="start it again"):
        corpus.describe()
    assert Corpus(warehouse.make_corpus()).describe()["count"] == 59
