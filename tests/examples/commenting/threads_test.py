"""The commenting corpus: boundaries of its rules, draws that depend on ids alone, statistics, pairs; real posts."""

from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from pipeline.errors import BadInput
from pipeline.examples.commenting import threads as commenting
from pipeline.examples.commenting.threads import PAPER, Rules, build_corpus
from pipeline.papers.commenting import COMMENTS_TOLD, TABLE_2, Part

SMALL = Rules(least_words=2, least_comments=2, test_comments=3, references=2, likes=5, test=4, validation=3, share=0.5)
ARTICLE = ["source", "thread_id", "title_words", "content_words", "category"]
COMMENT = ["source", "thread_id", "comment_id", "words", "like_count"]
KINDS = dict.fromkeys([*ARTICLE, *COMMENT], pl.String) | dict.fromkeys(
    ("title_words", "content_words", "words", "like_count"), pl.Int64
)
Thread = tuple[int, list[tuple[int, int | None]]]  # words of an article's content, and words and likes of its comments


def make_frames(*threads: Thread) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Make articles t000, t001, … and their comments c0, c1, …."""
    articles = [("news", f"t{n:03}", 3, content, "sport" if n % 3 else None) for n, (content, _) in enumerate(threads)]
    comments = [
        ("news", f"t{n:03}", f"c{k}", *numbers)
        for n, (_, thread_comments) in enumerate(threads)
        for k, numbers in enumerate(thread_comments)
    ]
    return make_frame(articles, ARTICLE), make_frame(comments, COMMENT)


def make_frame(rows: list[Any], columns: list[str]) -> pl.DataFrame:
    return pl.DataFrame(rows, {name: KINDS[name] for name in columns}, orient="row")


@pytest.mark.parametrize(
    ("content", "comment_count", "reason"),
    [(30, 20, None), (29, 20, "short_content"), (30, 19, "few_comments"), (29, 19, "short_content+few_comments")],
)
def test_what_is_in(content: int, comment_count: int, reason: str | None) -> None:
    """An article takes 30 words of content and 20 comments of any length; both reasons are given (AAC-04)."""
    threads = build_corpus(*make_frames(*[(content, [(1, None)] * comment_count)] * 2)).threads
    assert threads.select("split", "reason").row(0) == (None if reason else "train", reason)


@pytest.mark.parametrize(
    ("comments", "is_fit"),
    [
        pytest.param([(6, 7)] * 30, True, id="30 of 6 words"),
        pytest.param([(6, 7)] * 29 + [(5, 7)] * 9, False, id="29 and short ones"),
        pytest.param([(6, 7)] * 29 + [(6, 0)], True, id="203 likes"),
        pytest.param([(6, 6)] * 30 + [(1, 21)], True, id="201 likes, short ones' too"),
        pytest.param([(6, 6)] * 30 + [(1, 20), (99, None)], False, id="200 likes"),
    ],
)
def test_what_may_be_of_the_test(comments: list[tuple[int, int | None]], is_fit: bool) -> None:
    """30 comments of more than 5 words, counted without the short ones, and over 200 likes in total (AAC-07)."""
    rules = PAPER._replace(test=2, validation=0, share=0.5)
    corpus = build_corpus(*make_frames((30, comments), (30, comments)), rules)
    assert (corpus.threads["split"] == "test").sum() == is_fit
    assert corpus.references["role"].to_list() == (["reference"] * 27 + ["candidate"]) * is_fit


some_articles = st.lists(
    st.tuples(st.integers(0, 4), st.lists(st.tuples(st.integers(1, 9), st.none() | st.integers(0, 4)), max_size=6)),
    max_size=14,
)


@settings(deadline=None, max_examples=30)
@given(some_articles, st.integers(0, 3), st.randoms(use_true_random=False))
def test_each_article_has_a_split_or_a_reason(threads: list[Thread], seed: int, random: Any) -> None:
    """Nothing is lost, the parts keep to their sizes and rules, and no order of rows makes a difference."""
    articles, comments = make_frames(*threads)
    corpus = build_corpus(articles, comments, SMALL._replace(seed=seed))
    rows = corpus.threads
    assert rows.schema == pl.Schema(commenting.THREADS)
    assert rows["thread_id"].to_list() == articles["thread_id"].to_list()
    assert (rows["split"].is_null() != rows["reason"].is_null()).all()
    assert rows["comment_count"].to_list() == [len(c) for _, c in threads]
    assert rows["like_count"].to_list() == [sum(likes or 0 for _, likes in c) for _, c in threads]
    assert corpus.dropped["row_key"].to_list() == rows.filter(pl.col("split").is_null())["thread_id"].to_list()
    accepted = [number for number, split in enumerate(rows["split"]) if split]
    is_fit = [sum(words > 5 for words, _ in c) >= 3 and sum(likes or 0 for _, likes in c) >= 5 for _, c in threads]
    fit = {number for number in accepted if is_fit[number]}
    counts = dict(rows["split"].value_counts().iter_rows())
    assert counts.get("test", 0) == min(4, len(accepted) // 2, len(fit))
    assert counts.get("validation", 0) == min(3, len(accepted) // 2)
    assert {n for n in accepted if rows["split"][n] == "test"} <= fit
    shuffled = [frame.sample(fraction=1, shuffle=True, seed=random.randrange(99)) for frame in (articles, comments)]
    for frame, other in zip(build_corpus(*shuffled, SMALL._replace(seed=seed)), corpus, strict=True):
        assert_frame_equal(frame, other)


@settings(deadline=None, max_examples=20)
@given(some_articles.filter(bool), st.integers(1, 4))
def test_references_are_drawn_of_fit_comments(threads: list[Thread], count: int) -> None:
    """Each test article has so many different fit comments, and one more as candidate where one is left (AAC-26)."""
    corpus = build_corpus(*make_frames(*threads), SMALL._replace(references=count))
    assert corpus.references.schema == pl.Schema(commenting.REFERENCES)
    tested = corpus.threads.filter(split="test")["thread_id"].to_list()
    assert set(corpus.references["thread_id"]) == set(tested)
    for thread in tested:
        rows = corpus.references.filter(thread_id=thread)
        fit = {f"c{k}" for k, (words, _) in enumerate(threads[int(thread[1:])][1]) if words > 5}
        assert set(rows["comment_id"]) <= fit
        assert rows["comment_id"].n_unique() == rows.height == min(count + 1, len(fit))
        assert rows["place"].to_list() == [*range(rows.height)]
        assert rows["role"].to_list() == (["reference"] * count + ["candidate"])[: rows.height]


MANY = make_frames(*[(50, [(9, n % 5) for n in range(8)]) for _ in range(400)])


def test_draws_are_at_random() -> None:
    """Another seed draws others; parts have their sizes, in any half of the ids; places fall on all comments.

    Articles fit for the test are in validation as often as in train: what the test left over does not come last.
    """
    articles: list[Thread] = [(50, [(9, 9)] * 3 if n % 2 else [(9, 0)] * 3) for n in range(400)]
    threads = build_corpus(*make_frames(*articles), SMALL._replace(test=100, validation=100)).threads
    fit = threads.filter(split="validation").select((pl.col("like_count") > 0).sum()).item()
    assert 17 <= fit <= 50  # 100 of 300 left are fit, so 33 expected; 4 standard deviations are 16
    rules = SMALL._replace(test=100, validation=150)
    corpus, other = build_corpus(*MANY, rules), build_corpus(*MANY, rules._replace(seed=1))
    assert {*corpus.threads["split"].value_counts().rows()} == {("validation", 150), ("train", 150), ("test", 100)}
    assert not corpus.threads.equals(other.threads)
    first_half = corpus.threads["split"].head(200) == "test"
    assert 30 <= first_half.sum() <= 70  # 50 expected; 4 standard deviations are 17
    first = corpus.references.filter(place=0)["comment_id"].value_counts()
    assert first.height == 8
    assert first["count"].max() < 30  # 12.5 expected; 4 standard deviations are 13


def test_a_share_of_more_than_a_half_is_an_error() -> None:
    """Two parts of more than a half each cannot be."""
    for share in (-0.1, 0.51, float("nan")):
        with pytest.raises(BadInput, match=r"share should be in 0-0\.5"):
            build_corpus(*make_frames(), PAPER._replace(share=share))


def test_the_papers_numbers() -> None:
    """Table 2 adds up to the whole; 27 comments of 198,112 articles are not the stated 4.5 million (errata E12)."""
    assert sum(TABLE_2[name].articles for name in ("train", "validation", "test")) == TABLE_2["all"].articles == 198_112
    assert TABLE_2["all"].articles * 27 == 5_349_024 != COMMENTS_TOLD
    assert PAPER.test * PAPER.references == 43_470  # "over 43K"
    assert (PAPER.test, PAPER.validation) == (TABLE_2["test"].articles, TABLE_2["validation"].articles)


def test_statistics_by_hand() -> None:
    """Means and counts of each split beside the paper's; categories fall by counts, the unknown among them (AAC-31)."""
    columns: dict[str, Any] = {"source": "news", "thread_id": [*"abcd"], "category": None, "comment_count": 0}
    columns |= {"like_count": 0, "title_words": [10, 20, 6, 99], "content_words": [100, 300, 50, 9]}
    columns |= {"split": ["train", "train", "test", None], "reason": [None, None, None, "short_content"]}
    threads = pl.DataFrame(columns, schema_overrides=commenting.THREADS)
    rows = [("a", 4, 1), ("a", 8, None), ("b", 6, 3), ("c", 2, None), ("d", 99, 99)]
    numbered = [("news", thread, f"c{n}", *numbers) for n, (thread, *numbers) in enumerate(rows)]
    statistics = commenting.compute_statistics(threads, make_frame(numbered, COMMENT))
    assert statistics.select(*statistics.columns[:8]).rows() == [
        ("train", 2, 3, 1.5, 2.0, 15.0, 200.0, 6.0), ("validation", 0, 0, None, None, None, None, None),
        ("test", 1, 1, 1.0, None, 6.0, 50.0, 2.0), ("all", 3, 4, pytest.approx(4 / 3), 2.0, 12.0, 150.0, 5.0),
    ]  # fmt: skip
    assert statistics.columns[1:8] == ["articles", "comments", *Part._fields[1:]]
    assert statistics.select(pl.col("^paper_.*$")).rows() == [tuple(part) for part in TABLE_2.values()]
    articles, comments = make_frames(*[(9, [(1, 1)] * 2)] * 5, (1, []))
    categories = commenting.count_categories(build_corpus(articles, comments, SMALL).threads)
    assert categories.rows() == [("sport", 3, pytest.approx(0.6)), (None, 2, pytest.approx(0.4))]
