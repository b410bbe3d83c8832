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
from pipeline.report.browse.view import View, parse_view
from pipeline.tasks.erasure import run
from pipeline.tasks.erasure.request import Request
from tests.commands.browse.conftest import JUDGE, TEXTS, USER, A, B, write_rows
from tests.support.rows.filled import DAY

Built = tuple[Path, pl.DataFrame]


@pytest.mark.parametrize(("fields", "condition"), [
    ({}, pl.lit(value=True)),
    ({"search": "LOVELY train"}, pl.col("text").str.contains("(?i)lovely train")),
    ({"search": "真"}, pl.col("text").str.contains("真")),
    ({"search": "% _' --"}, pl.lit(value=False)),
    ({"search": "o'brien? ;"}, pl.col("text").str.starts_with("O'Brien")),
    ({"among": {"lang": ["zh", "' or 1=1"]}}, pl.col("lang") == "zh"),
    ({"between": {"day": [None, str(DAY)], "likes": [100, None]}}, pl.col("day").eq(DAY) & (pl.col("like_count") > 99)),
    ({"between": {A: [0.5, 1.5]}, "among": {"lang": ["zh"]}}, pl.col("lang").eq("zh") & pl.col(A).is_between(0.5, 1.5)),
])  # fmt: skip
def test_views_are_as_in_polars(corpus: Corpus, built: Built, fields: dict[str, object], condition: pl.Expr) -> None:
    """Rows, their order, their count and the bins of a view are those of Polars; a view is JSON or an address."""
    text = json.dumps({**fields, "sort": "likes", "descending": True})
    view = parse_view(f"http://127.0.0.1:1/#{quote(text)}", corpus.columns)
    assert view == parse_view(text, corpus.columns)
    answer, expected = corpus.list_rows(view), built[1].filter(condition)
    likes = expected["like_count"].sort(descending=True, nulls_last=True).to_list()
    assert (answer["count"], [row["likes"] for row in answer["rows"]]) == (expected.height, likes)
    assert sorted(row["text"] for row in answer["rows"]) == sorted(map(escape_invisible, expected["text"]))
    counts = corpus.count_bins(view, [A, JUDGE, "lang", "day"])
    assert sum(counts[JUDGE]) == expected[JUDGE].count()
    if fields == {"among": {"lang": ["zh", "' or 1=1"]}}:  # the filter of a column does not count for its bins
        assert (counts["lang"], counts["day"]) == (
            [35, 25],
            expected["day"].value_counts().sort("day")["count"].to_list(),
        )
    assert corpus.list_rows(view, 9)["rows"] == []


@pytest.mark.parametrize("text", [
    "[]", "{", '{"search": 1, "among": 3}', '{"among": {"text": ["a"]}}', '{"between": {"likes": [1]}}',
    '{"sort": "n; drop table comments"}', '{"among": {"source) or (1=1": ["a"]}}', '{"sort": "user_id"}',
    '{"sort": ["n"]}', '{"between": {"likes) or true --": [1, 2]}}', '{"between": {"source": ["a", "b"]}}',
    '{"between": {"likes": ["1); drop table comments", 2]}}', '{"between": {"likes": [[1], null]}}',
])  # fmt: skip
def test_wrong_views_are_refused(corpus: Corpus, text: str) -> None:
    """A view that is no JSON of the right shape, names another column, or has a value of another kind is refused."""
    with pytest.raises(BadInput):
        corpus.list_rows(parse_view(text, corpus.columns))
    with pytest.raises(BadInput, match="no score 'likes; select 1'"):
        corpus.compare(View(), A, "likes; select 1")
    assert corpus.describe()["count"] == 60


def test_a_thread_has_its_article_its_replies_and_the_words(corpus: Corpus) -> None:
    """A reply names its parent, the words of the score are in their order, hidden characters and markup are text."""
    numbers = dict(corpus.select_rows(View(), ids="n, comment_id").select("comment_id", "n").iter_rows())
    answer = corpus.read_thread(numbers["c13"])
    comments = {row["n"]: row for row in answer["comments"]}
    assert (answer["count"], answer["title"]) == (20, "<script>alert(1)</script>")
    assert comments[numbers["c13"]]["parent"] == numbers["c10"]
    assert [word["word"] for word in comments[numbers["c13"]]["words"]] == ["lovely", "train"]
    assert comments[numbers["c9"]]["text"] == "⟨U+202E⟩gnitteg ⟨U+200B⟩retteb"


def test_comparing_two_scores(corpus: Corpus, built: Built) -> None:
    """The correlation is Spearman's by scipy; the largest disagreement is first; cells add up."""
    answer = corpus.compare(View(), A, B)
    assert answer["correlation"] == pytest.approx(spearmanr(built[1][A], built[1][B]).statistic, abs=0.0006)
    gap = built[1].select(pl.col(A).rank() - pl.col(B).rank()).to_series().abs().max()
    assert abs(answer["rows"][0]["rank_a"] - answer["rows"][0]["rank_b"]) == pytest.approx(gap / 60 * 100, abs=2)
    assert sum(count for *_, count in answer["cells"]) == answer["count"] == 60
    assert (corpus.compare(View(), A, JUDGE)["count"], len(corpus.points["x"])) == (20, 60)


def test_nothing_personal_is_in_a_corpus_or_a_site(corpus: Corpus, tmp_path: Path) -> None:
    """A corpus has no pseudonyms, and its texts uncompressed; a site has no id of the platform either."""
    content = corpus.path.read_bytes()
    assert (USER.encode() in content, TEXTS[0].encode() in content) == (False, True)
    view = View(sort="likes", descending=True)
    assert write_site(corpus, view, 50, tmp_path) == 50
    text = (tmp_path / "data.json").read_text(encoding="utf-8")
    assert not [word for word in ("comment_id", "thread_id", "site-", '"c13"', USER, "\u202e") if word in text]
    assert [row["likes"] for row in json.loads(text)["rows"]] == [
        r["likes"] for r in corpus.list_rows(view)["rows"][:50]
    ]


def test_an_erasure_removes_the_corpus(tables: Path) -> None:
    """After `forget` there is no copy, and one that is open answers no more."""
    write_rows()
    corpus = Corpus(warehouse.make_corpus())
    run.forget(Request(comment_ids=["c13"]), verify=False)
    assert [*(tables / "scratch" / "browse").iterdir()] == []
    with pytest.raises(Missing, match="start it again"):
        corpus.describe()
    assert Corpus(warehouse.make_corpus()).describe()["count"] == 59
