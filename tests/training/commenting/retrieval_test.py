"""The commenters that retrieve: whose comments are candidates, their chances, and that a folder alone comments."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

from pipeline.errors import BadInput
from pipeline.models.commenting.relevance import find_nearest, number_words
from pipeline.training.commenting import relevance, retrieval
from pipeline.training.commenting.retrieval import Commenter, comment, fit, load
from pipeline.training.loop import TrainingResult
from tests.support.rows.thread_topics import ARTICLES, COMMENTS, SHORT, SMALL, topics

HOSTILE = "=1+1 <b>'\"; DROP {0} %s\u0000\n\u202e🌧️"
TINY = replace(SHORT, epochs=1, foreign=2)


def corpus() -> tuple[pl.DataFrame, pl.DataFrame]:
    """The topics; two of their articles have a text in common, one a hostile one; and an article without comments."""
    articles, comments = topics()
    twice = [(name, f"{name}same", "so say all", ["so", "say", "all"]) for name in ("a0.0", "a0.1", "a0.2")]
    odd = [("a7.1", "odd", HOSTILE, ["w7a", "w7b"]), ("a0.0", "a0.0again", "so say all", ["so", "say", "all"])]
    bare = pl.DataFrame([("bare", ["w0a", "today"], ["w0a"], "train")], ARTICLES, orient="row")
    return pl.concat([bare, articles]), pl.concat([comments, pl.DataFrame(twice + odd, COMMENTS, orient="row")])


@pytest.fixture(scope="module")
def result() -> TrainingResult:
    return fit(*corpus(), SMALL)


@pytest.fixture(scope="module")
def commenter(result: TrainingResult) -> Commenter:
    """The same, ready to be asked, by a configuration that went through JSON."""
    return load(result.tensors, json.loads(json.dumps(result.config)))


def make_articles(split: str = "validation") -> dict[str, Any]:
    """Titles and contents of a split."""
    rows = corpus()[0].filter(pl.col("split") == split)
    return {"titles": rows["title"].to_list(), "contents": rows["content"].to_list()}


def test_comments_are_of_the_articles_topic(commenter: Commenter) -> None:
    """Each held-out article gets a comment in its topic's words, written below a training article (AAC-21)."""
    rows = comment(commenter, **make_articles())
    assert rows.schema == retrieval.RESULT_SCHEMA
    assert rows["row"].to_list() == list(range(8))
    assert rows["rank"].to_list() == [1] * 8
    for topic, text in enumerate(rows["text"]):
        assert f"w{topic}" in text or text in ("so say all", HOSTILE)
    sources = corpus()[1].select("comment_id", "article_id", "text")
    assert rows.join(sources, on=["comment_id", "article_id", "text"], how="semi").height == 8


@pytest.mark.parametrize("k", [1, 3])
def test_candidates_are_the_comments_of_the_nearest_articles(commenter: Commenter, k: int) -> None:
    """Their union, each text once in the nearest article's name, hostile ones as they were written (stage 1, C.1)."""
    rows = comment(commenter, **make_articles(), k=k, best=10_000)
    articles, comments = corpus()
    train = articles.filter(pl.col("split") == "train", pl.col("article_id") != "bare")
    texts = [title + content for title, content in zip(*make_articles().values(), strict=True)]
    near = find_nearest(commenter.articles, pl.Series(texts), k)
    for row in range(8):
        ids = train["article_id"].gather(near.places[row]).to_list()
        union = comments.filter(pl.col("article_id").is_in(ids))["text"].unique()
        part = rows.filter(pl.col("row") == row)
        assert sorted(part["text"]) == sorted(union)
        assert part["rank"].to_list() == list(range(1, len(union) + 1))
        cosines = dict(zip(ids, near.cosines[row].tolist(), strict=True))
        assert part["cosine"].to_list() == pytest.approx([cosines[article_id] for article_id in part["article_id"]])
    assert HOSTILE in comment(commenter, [["w7a"]], [["w7b"]], best=100)["text"].to_list()
    article = articles.filter(article_id="a0.1")
    rows = comment(commenter, *article.select("title", "content"), k=k, best=100).filter(text="so say all")
    assert rows.select("article_id", "comment_id").rows() == [("a0.1", "a0.1same")]


def test_relevance_is_the_softmax_over_the_candidates(result: TrainingResult, commenter: Commenter) -> None:
    """P(c|x) = exp conv(x, c) / Σ exp conv(x, c'), and the best come first (C.2)."""
    rows = comment(commenter, **make_articles(), k=2, best=10_000)
    articles, comments = corpus()
    validation = articles.filter(pl.col("split") == "validation")
    words, model = result.config["words"], commenter.model
    article_texts = number_words(relevance.list_first_words(validation, SMALL), words, 430)
    queries = model.encode_articles(article_texts.pad(np.arange(8)))
    distinct = comments.unique("text", keep="first", maintain_order=True)
    vectors = model.encode_comments(number_words(distinct["words"], words, 50).pad(np.arange(distinct.height)))
    conv = model.score(queries.unsqueeze(1), vectors).detach().double().numpy()
    place = {text: i for i, text in enumerate(distinct["text"])}
    for row in range(8):
        part = rows.filter(pl.col("row") == row)
        scores = conv[row, [place[text] for text in part["text"]]]
        assert part["relevance"].to_numpy() == pytest.approx(scores - np.log(np.exp(scores).sum()), abs=1e-5)
        assert part["relevance"].round(4).is_sorted(descending=True)
        assert part["relevance"].exp().sum() == pytest.approx(1)


def test_the_batch_decides_nothing(commenter: Commenter, monkeypatch: pytest.MonkeyPatch) -> None:
    """One article at a time, all at once, and candidates in other blocks: the same comments, the same numbers."""
    expected = comment(commenter, **make_articles(), best=5)
    monkeypatch.setattr(retrieval, "_ROWS", 3)
    for batch in (1, 3):
        rows = comment(commenter, **make_articles(), best=5, batch=batch)
        assert rows.drop("relevance").equals(expected.drop("relevance"))
        assert rows["relevance"].to_numpy() == pytest.approx(expected["relevance"].to_numpy(), abs=1e-5)


def test_no_word_in_common_is_no_comment(commenter: Commenter, caplog: pytest.LogCaptureFixture) -> None:
    """Unknown words and an empty article have no row, which is told; words the model does not know do no harm."""
    rows = comment(commenter, [["zyx"], [], ["w3a", "zyx"]], [["zyx"], [], []])
    assert rows["row"].to_list() == [2]
    assert "2 of 3 articles share no word with a training article" in caplog.text
    assert comment(commenter, [], []).schema == retrieval.RESULT_SCHEMA


def test_what_each_stage_reads() -> None:
    """Words behind those that the relevance model reads still find similar articles; IR-T reads no content (AAC-21).

    A comment without an id cannot be given back.
    """
    articles, comments = corpus()
    with pytest.raises(BadInput, match="no column comment_id"):
        fit(articles, comments.drop("comment_id"), TINY)
    with pytest.raises(BadInput, match="of kind 'reader', not 'retrieval'"):
        load({}, {"kind": "reader"})
    training = fit(*corpus(), replace(TINY, content=2))
    rows = comment(load(training.tensors, training.config), [["zyx"]], [["zyx"] * 50 + ["w5b"]], k=1)
    assert rows["article_id"].str.starts_with("a5").to_list() == [True]
    training = fit(articles, comments, replace(TINY, reads="title"))
    assert "it" not in training.config["index_words"]
    reader, titles = load(training.tensors, training.config), make_articles()["titles"]
    assert comment(reader, titles, [[]] * 8).equals(comment(reader, titles, [["w0a"]] * 8))
