"""Commenters as tasks: the sample's corpus to models, models to comments."""

import json
from pathlib import Path

import polars as pl
import pytest

from pipeline import sample, warehouse
from pipeline.errors import BadInput, Missing
from pipeline.tasks.commenting import commenters, corpus, generated, writing
from pipeline.tasks.record import model_registry

DAY = sample.DAY
RETRIEVAL = {"hidden": 8, "embedding": 8, "epochs": 1, "judged": 20, "foreign": 5}
WRITER = {"hidden": 8, "embedding": 8, "epochs": 1, "content_words": 20, "vocabulary": 200}


def changes(system: str) -> dict[str, int]:
    """A recipe that takes a second."""
    return RETRIEVAL if system in commenters.RETRIEVING else WRITER


@pytest.mark.parametrize("system", ["ir_tc", "att"])
def test_a_commenter_comments_on_the_test_articles(sample_corpus: Path, system: str) -> None:
    """Trained on the corpus it is in force, and each test article gets a comment with what made it; again the same."""
    model_id = commenters.train(DAY, system, changes=changes(system))
    assert model_registry.select_model_id(commenters.get_kind(system), DAY) == model_id
    rows = {}
    for turn in range(2):
        assert generated.generate(DAY, system) == 6
        rows[turn] = warehouse.scan("generated_comments").collect().sort("generated_id")
    assert rows[0].equals(rows[1])
    tested = warehouse.scan("threads", pl.col("split") == "test").collect()
    assert set(rows[0]["thread_id"]) == set(tested["thread_id"])
    assert rows[0]["model_id"].unique().to_list() == [model_id]
    assert rows[0]["signature"].str.contains(f"{system}|model:{model_id[:12]}", literal=True).all()
    told = rows[0].row(0, named=True)
    assert "".join(told["tokens"]).replace(" ", "") == told["text"].replace(" ", "")
    assert ("beams" in json.loads(told["config"])) == (system == "att")


def test_what_is_retrieved_was_said_elsewhere(sample_corpus: Path) -> None:
    """A retrieved comment is one of a training article, word for word."""
    commenters.train(DAY, "ir_tc", changes=RETRIEVAL)
    generated.generate(DAY, "ir_tc")
    found = warehouse.scan("generated_comments").select("found_in", "text").collect()
    learnt = corpus.read_thread_comments("train").select(
        pl.concat_str("source", "thread_id", "comment_id", separator="/"), "text"
    )
    assert set(found.iter_rows()) <= set(learnt.iter_rows())


def test_real_comments_stand_beside(sample_corpus: Path) -> None:
    """Of each test article the one real comment that is no reference is there as `human`."""
    assert generated.generate(DAY, generated.HUMAN) == 6
    rows = warehouse.scan("generated_comments").collect()
    assert rows["model_id"].null_count() == 6
    apart = warehouse.scan("reference_comments", pl.col("role") == "candidate").collect()
    told = pl.concat_str("source", "thread_id", "comment_id", separator="/")
    assert set(rows["found_in"]) == set(apart.select(told).to_series())


def test_an_article_without_a_comment_is_told_of(sample_corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What gets no comment is in `dropped` with the reason, and the funnel adds up."""
    none = pl.DataFrame(schema=writing.MADE)
    commenters.train(DAY, "ir_tc", changes=RETRIEVAL)
    monkeypatch.setattr(writing, "_retrieve", lambda *_: none)
    assert generated.generate(DAY, "ir_tc") == 0
    gone = warehouse.scan("dropped", pl.col("step") == generated.STEP).collect()
    assert gone["reason"].to_list() == ["no_comment"] * 6


def test_a_file_becomes_a_model_that_comments(tmp_path: Path) -> None:
    """Articles with comments of a file are enough to train in a folder, which comments on a title and a body."""
    data = commenters.read_file(sample.THREADS, sample.THREAD_COLUMNS)
    assert set(data.articles["split"]) == {"train", "validation"}
    assert data.comments.height == 692
    found = commenters.train_file("seq2seq", data, tmp_path / "model", WRITER)
    assert {("loss", "train"), ("loss", "validation")} == set(found.select("metric", "split").iter_rows())
    rows = pl.DataFrame({"title": ["新桥今天通车", "A new bridge"], "content": ["桥长三公里", None], "id": [7, 8]})
    said = writing.comment(rows, str(tmp_path / "model"), best=2, decoding=writing.make_decoding(best=2, longest=5))
    assert said["id"].to_list() == [7, 7, 8, 8]
    assert said.drop_nulls("comment")["signature"].str.starts_with("seq2seq|model:").all()


def test_a_pretrained_model_is_fitted_and_comments(sample_corpus: Path, tmp_path: Path) -> None:
    """An encoder-decoder of a folder is fitted to the pairs of a file, and comments on any article, or on the tests."""
    from pipeline.models.subtext import seq2seq

    data = commenters.read_file(sample.THREADS, sample.THREAD_COLUMNS)
    few = commenters.Data(data.articles.head(4), data.comments.join(data.articles.head(4), on="article_id", how="semi"))
    start = seq2seq.make_model(few.comments["text"].to_list(), width=8, layers=1)
    seq2seq.save(start, tmp_path / "start", {})
    history = commenters.fit_pretrained(few, tmp_path / "model", str(tmp_path / "start"), {"epochs": 1, "source": 32})
    assert history["epoch"].to_list() == [1]
    rows = pl.DataFrame({"title": ["公交改线", "新桥"], "content": [None, "桥长三公里"]})
    how = writing.make_decoding(method="sample", best=2, longest=6)
    said = writing.comment(rows, str(tmp_path / "model"), decoding=how, best=2)
    assert said.height == 4
    assert said.drop_nulls()["signature"].str.starts_with("pretrained|model:").all()
    assert said.equals(writing.comment(rows, str(tmp_path / "model"), decoding=how, best=2))
    short = writing.make_decoding(method="sample", longest=6)
    assert generated.generate(DAY, "pretrained", ref=str(tmp_path / "model"), decoding=short) == 6
    made = warehouse.scan("generated_comments").collect()
    assert set(made["system"]) == {"pretrained"}
    assert made["model_id"].n_unique() == 1
    with pytest.raises(BadInput, match="say which"):
        generated.generate(DAY, "pretrained")


def test_words_are_put_together_as_their_language_has_it() -> None:
    """Chinese words stand without blanks, Latin ones and numbers with."""
    assert writing.join_words(["我", "用", "iPhone", "8", "拍", "的"], "zh") == "我用iPhone 8拍的"
    assert writing.join_words(["so", "far", "away"], "en") == "so far away"


def test_a_file_without_comments_is_refused(tmp_path: Path) -> None:
    """The message names the file and what it held."""
    path = tmp_path / "articles.jsonl"
    path.write_text('{"id": "1", "t": "A bridge", "b": "It is long", "c": []}\n', encoding="utf-8")
    with pytest.raises(
        BadInput, match=r"articles.jsonl: expected articles with comments, found 1 articles, 0 comments"
    ):
        commenters.read_file(path, {"thread_id": "id", "article_title": "t", "article_text": "b", "comments": "c"})


def test_no_model_is_missing(sample_corpus: Path) -> None:
    """Without a model in force the message says how to train one; a name nobody knows is refused."""
    with pytest.raises(Missing, match="undertone train commenter"):
        generated.generate(DAY, "att")
    with pytest.raises(BadInput, match="no commenter 'gpt'; there are ir_t, ir_tc, seq2seq, att, att_tc"):
        generated.generate(DAY, "gpt")
