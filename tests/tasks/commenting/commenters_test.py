"""Commenters as tasks: the sample's corpus to models, models to comments."""

import json
from pathlib import Path

import polars as pl
import pytest

from pipeline import sample, warehouse
from pipeline.errors import BadInput, Missing
from pipeline.models.decoding import Decoding
from pipeline.tasks.commenting import commenters, corpus, generated
from pipeline.tasks.record import model_choice, model_registry, promotion
from pipeline.training.commenting import retrieval

DAY = sample.DAY
RETRIEVAL = {"hidden": 8, "embedding": 8, "epochs": 1, "judged": 20, "foreign": 5}
WRITER = {"hidden": 8, "embedding": 8, "epochs": 1, "content_words": 20, "vocabulary": 200}


@pytest.mark.parametrize("system", ["ir_tc", "att"])
def test_a_commenter_comments_on_the_test_articles(
    sample_corpus: Path, system: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Promoted by request it comments on each test article, with its model; again the same.

    A retrieved comment is word for word the one that `found_in` names; articles without a comment are dropped.
    """
    monkeypatch.setattr(promotion, "MIN_ROWS", 6)  # articles of the sample's test split
    changes = RETRIEVAL if system == "ir_tc" else WRITER
    model_id = commenters.train(DAY, system, changes=changes, promote=True)
    (comparison,) = model_registry.read_model(model_id)["promotion"]["comparisons"]
    expected = ("mrr", "chance") if system == "ir_tc" else ("log_probability", "word frequencies")
    assert (comparison["metric"], comparison["rival"]) == expected
    assert model_choice.select_model_id(commenters.get_kind(system), DAY) == model_id
    frames = []
    for _ in range(2):
        assert generated.generate(DAY, system) == 6
        frames.append(warehouse.scan("generated_comments").collect().sort("generated_id"))
    rows = frames[0]
    assert rows.equals(frames[1])
    tested = warehouse.scan("threads", pl.col("split") == "test").collect()
    assert set(rows["thread_id"]) == set(tested["thread_id"])
    assert rows["model_id"].unique().to_list() == [model_id]
    assert rows["signature"].str.contains(f"{system}|model:{model_id[:12]}", literal=True).all()
    row = rows.row(0, named=True)
    assert "".join(row["tokens"]).replace(" ", "") == row["text"].replace(" ", "")
    assert ("beams" in json.loads(row["config"])) == (system == "att")
    if system == "att":
        return
    training_comments = corpus.read_tokenized_comments(corpus.read_threads("train").lazy().select(corpus.THREAD))
    existing = set(training_comments.select(corpus.COMMENT_ID, "text").iter_rows())
    assert set(rows.select("found_in", "text").iter_rows()) <= existing
    no_comments = pl.DataFrame(schema={**generated.SCHEMA, "relevance": pl.Float64, "comment_id": pl.String})
    monkeypatch.setattr(retrieval, "comment", lambda *_: no_comments)
    assert generated.generate(DAY, "ir_tc") == 0
    dropped = warehouse.scan("dropped", pl.col("step") == generated.STEP).collect()
    assert dropped["reason"].to_list() == ["no_comment"] * 6


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
    decoding, folder = Decoding(method="sample", best=2, longest=6), str(tmp_path / "model")
    comments = generated.comment(rows, folder, decoding=decoding)
    assert comments.height == 4
    assert comments.drop_nulls()["signature"].str.starts_with("pretrained|model:").all()
    assert comments.equals(generated.comment(rows, folder, decoding=decoding))
    assert generated.generate(DAY, "pretrained", ref=folder, decoding=Decoding(method="sample", longest=6)) == 6
    generated_comments = warehouse.scan("generated_comments").collect()
    assert set(generated_comments["system"]) == {"pretrained"}
    assert generated_comments["model_id"].n_unique() == 1
    with pytest.raises(BadInput, match="name its folder"):
        generated.generate(DAY, "pretrained")


def test_words_are_joined_as_their_language_has_it() -> None:
    """Chinese words stand without blanks, Latin ones and numbers with."""
    assert generated.join_words(["我", "用", "iPhone", "8", "拍", "的"], "zh") == "我用iPhone 8拍的"
    assert generated.join_words(["so", "far", "away"], "en") == "so far away"


def test_a_file_without_comments_is_refused(tmp_path: Path) -> None:
    """The message names the file and what it held."""
    path = tmp_path / "articles.jsonl"
    path.write_text('{"id": "1", "t": "A bridge", "b": "It is long", "c": []}\n', encoding="utf-8")
    message = r"articles.jsonl: expected articles with comments, found 1 articles, 0 comments"
    with pytest.raises(BadInput, match=message):
        commenters.read_file(path, {"thread_id": "id", "article_title": "t", "article_text": "b", "comments": "c"})


def test_no_model_is_missing(sample_corpus: Path) -> None:
    """Without a model in force the message says how to train one; an unknown name is refused."""
    with pytest.raises(Missing, match="undertone train commenter"):
        generated.generate(DAY, "att")
    with pytest.raises(BadInput, match="no commenter 'gpt'; there are ir_t, ir_tc, seq2seq, att, att_tc"):
        generated.generate(DAY, "gpt")
