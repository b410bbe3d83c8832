"""Training the readers: they learn, they read the passage, they repeat to the bit and go on where they were stopped."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch

from pipeline.errors import BadInput
from pipeline.examples.recam import items as cloze
from pipeline.models.word_vectors import WordVectors
from pipeline.training.loop import TrainingResult
from pipeline.training.recam import readers
from pipeline.training.recam.readers import PROFILES, Recipe, answer, fit, load, make_recipe, rank_candidates
from tests.support.killed import check_resuming, equal_weights
from tests.training.recam.cases import check_company, duplicate_items, make_items

READINGS = {"rain": "wet", "sun": "dry", "snow": "cold"}
WORDS = ["it", "was", "a", "day", "the", "of", "in", "very", "rain", "sun", "snow", "wet", "dry", "cold", "calm"]
GLOSSES = {"wet": ["full", "of", "rain"], "dry": ["the", "sun"], "cold": ["snow", "and", "snow"], "calm": ["day"]}
TINY = Recipe(hidden=6, hops=2, learning_rate=0.03, batch=6, epochs=3, vocabulary=0)
FAST = {"learning_rate": 0.04, "batch": 4, "epochs": 10}


@pytest.fixture(scope="module")
def vectors() -> WordVectors:
    """Vectors at random; `odd` has none."""
    matrix = np.random.default_rng(1).normal(size=(len(WORDS), 8)).astype(np.float32)
    return WordVectors(WORDS, matrix)


@pytest.fixture(scope="module")
def items() -> pl.DataFrame:
    return make_items(READINGS, ["calm", "odd"], "In it was the {}.", " Very")


@pytest.fixture(scope="module")
def result(items: pl.DataFrame, vectors: WordVectors) -> TrainingResult:
    return fit(items, TINY, vectors)


def load_reader(result: TrainingResult) -> readers.TrainedReader:
    """The reader that was fitted, by a configuration that went through JSON."""
    return load(result.tensors, json.loads(json.dumps(result.config)))


@pytest.mark.parametrize(
    ("profile", "over"),
    [("attentive", "options"), ("official", "options"), ("gated", "vocabulary"), ("gloss", "vocabulary")],
)
def test_each_reader_learns_items_by_heart(items: pl.DataFrame, vectors: WordVectors, profile: str, over: str) -> None:
    """The question says nothing, so the passage is read; the best candidate of a vocabulary is the answer then."""
    recipe = make_recipe(profile, hidden=8, hops=min(2, PROFILES[profile].hops), dropout=0.0, over=over, **FAST)
    result = fit(duplicate_items(items), recipe, vectors, glosses=GLOSSES)
    assert result.history["value"].max() == 1.0
    best = rank_candidates(load_reader(result), items, top=1)
    assert best["item_id"].to_list() == items["item_id"].to_list()
    if over == "vocabulary":
        assert best["candidates"].to_list() == [[word] for word in items.select(cloze.select_right_option())["answer"]]
    else:
        assert (answer(load_reader(result), items).argmax(axis=1) == items["label"].to_numpy()).all()


def test_hyperparameters_of_the_paper() -> None:
    """Appendix D: GRU of 150, three hops, batches of 32, Adam at 1e-3, dropout .3, fixed vectors (REC-21)."""
    paper = asdict(PROFILES["gated"])
    numbers = {"unit": "gru", "hidden": 150, "hops": 3, "batch": 32, "learning_rate": 1e-3, "dropout": 0.3}
    assert paper | numbers | {"is_tuned": False, "has_gloss": False} == paper
    assert replace(PROFILES["attentive"], hops=3) == PROFILES["gated"]
    assert replace(PROFILES["gloss"], has_gloss=False) == PROFILES["attentive"]
    official = asdict(PROFILES["official"])  # errata E14; one gate is two hops
    numbers = {"unit": "lstm", "hidden": 128, "hops": 2, "dropout": 0.5, "is_tuned": True, "clip": 10.0}
    assert official | numbers == official


@pytest.mark.parametrize("changes", [{}, {"has_gloss": True, "is_tuned": True, "over": "vocabulary", "drawn": 2}])
def test_goes_on_where_it_was_stopped(
    items: pl.DataFrame, vectors: WordVectors, tmp_path: Path, changes: dict[str, Any]
) -> None:
    """Killed after its first epoch and started again a training ends with the same bits; another seed gives others."""
    recipe, state = replace(TINY, **changes), tmp_path / "state"
    uninterrupted = fit(items, recipe, vectors, glosses=GLOSSES)
    check_resuming(lambda: fit(items, recipe, vectors, state, glosses=GLOSSES), uninterrupted)
    assert not equal_weights(
        fit(items, replace(recipe, seed=43), vectors, glosses=GLOSSES).tensors, uninterrupted.tensors
    )
    with pytest.raises(BadInput, match="a training on other data"):
        fit(items[1:], recipe, vectors, state, glosses=GLOSSES)


def test_answers_do_not_depend_on_company(
    result: TrainingResult, items: pl.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Alone, in another order or five at a time, an item has the same probabilities; an option takes its own along."""
    trained = load_reader(result)
    expected = check_company(answer, trained, items, 1e-6)
    best = rank_candidates(trained, items, top=2)["candidates"].to_list()
    monkeypatch.setattr(readers, "ROWS", 5)
    monkeypatch.setattr(readers, "_GLOSSES", 2)
    assert answer(trained, items) == pytest.approx(expected, abs=1e-6)
    assert rank_candidates(trained, items, top=2)["candidates"].to_list() == best
    assert rank_candidates(trained, items.clear()).is_empty()


def test_options_and_vocabulary_are_scored_alike(result: TrainingResult, items: pl.DataFrame) -> None:
    """Among an item's options the order by probability is their order in the whole vocabulary (REC-16)."""
    trained = load_reader(result)
    ranked = rank_candidates(trained, items, top=99)
    assert ranked["probabilities"].list.sum().to_numpy() == pytest.approx(np.ones(len(items)))
    rows = zip(items["options"].to_list(), answer(trained, items), ranked["candidates"], strict=True)
    for options, row, candidates in rows:
        assert sorted(candidates) == sorted(result.config["candidates"])
        assert [options[place] for place in np.argsort(-row)] == [word for word in candidates if word in set(options)]


def test_a_tenth_of_the_articles_chooses_the_epoch(items: pl.DataFrame, vectors: WordVectors) -> None:
    """Without a validation part a tenth of the articles is one, the items of an article on one side; else it stays."""
    # two items of each article, written with other blanks
    twice = pl.concat([items, items.with_columns(pl.col("article").str.replace_all(" ", "  "))])
    split_rows = readers.split_items(twice, 42)
    assert split_rows.group_by(cloze.normalise()).agg(pl.col("split").n_unique())["split"].to_list() == [1] * 12
    assert (split_rows["split"] == "validation").sum() == 2
    assert readers.split_items(duplicate_items(items), 42).equals(duplicate_items(items))
    assert fit(twice, replace(TINY, epochs=1), vectors).history["count"].to_list() == [2]


def test_only_what_is_trained_changes(items: pl.DataFrame, vectors: WordVectors) -> None:
    """Word vectors stay as they are, sized to about 1, but where they are tuned; candidates' and glosses' learn."""
    recipe = replace(TINY, has_gloss=True, epochs=1)
    for is_tuned in (False, True):
        result = fit(items, replace(recipe, is_tuned=is_tuned), vectors, glosses=GLOSSES)
        table = result.tensors["table"]
        raw = torch.from_numpy(vectors.vectors[[vectors.words.index(word) for word in result.config["words"]]])
        assert torch.allclose(table[3:], raw / raw.square().mean().sqrt(), atol=1e-6) != is_tuned
        assert not table[0].any()  # padding
        place = result.config["words"].index("wet") + 3
        assert not torch.allclose(result.tensors["answers"][result.config["candidates"].index("wet")], table[place])
        assert result.config["glosses"]["odd"] == ["odd"]  # it has none


def test_the_placeholder_is_found_where_it_is_glued(result: TrainingResult, items: pl.DataFrame) -> None:
    """Letters right after the placeholder do not hide it, and hostile texts are read as any other."""
    trained = load_reader(result)
    odd = items[:3].with_columns(
        question=pl.Series(["@placeholders", "in(@placeholder)@placeholder_", "\u200b@placeholder"]),
        article=pl.Series(["@placeholder @placeholder", "\u0000\ud7ff[doge]", "..."]),
    )
    assert answer(trained, odd).sum(axis=1) == pytest.approx(np.ones(3))
    with pytest.raises(BadInput, match=r"item i0: field 'question' should hold @placeholder, found 'none'"):
        answer(trained, items[:1].with_columns(question=pl.lit("none")))


def test_distractors_need_no_options(items: pl.DataFrame, vectors: WordVectors) -> None:
    """Over a vocabulary an item has an answer alone; other candidates can be named, and a draw of them suffices."""
    bare = items.select("item_id", "article", "question", cloze.select_right_option())
    recipe = replace(TINY, over="vocabulary", drawn=1, epochs=2)
    result = fit(bare, recipe, vectors, candidates=["Calm", "sun"])
    assert result.config["candidates"] == ["calm", "cold", "dry", "sun", "wet"]
    candidates = rank_candidates(load_reader(result), bare, top=3)["candidates"]
    assert candidates.list.n_unique().to_list() == [3] * 12
    repeated = fit(items, recipe, vectors, candidates=["calm", "sun"])  # the answer is the option at the label
    assert equal_weights(repeated.tensors, result.tensors)


def test_a_draw_of_candidates_keeps_what_is_frequent(vectors: WordVectors) -> None:
    """Where texts say nothing an answer is as likely as it is frequent, by a draw of candidates as by all of them.

    Seven of ten answers are one word here. It is in every batch, the others in half of them: without the chances of
    being scored the reader would give it .42, not .57.
    """
    answer_words = ["wet"] * 7 + ["dry", "cold", "calm"]
    rows = [(f"i{i}", "it was", "a @placeholder day", answer_words[i % 10]) for i in range(800)]
    bare = pl.DataFrame(rows, schema=["item_id", "article", "question", "answer"], orient="row")
    split = pl.when(pl.int_range(pl.len()) < 10).then(pl.lit("validation")).otherwise(pl.lit("train"))
    recipe = replace(TINY, over="vocabulary", hops=1, batch=4, dropout=0.0, learning_rate=0.01, epochs=1)
    shares = []
    for sample_size in (0, 1):
        trained = load_reader(fit(bare.with_columns(split=split), replace(recipe, drawn=sample_size), vectors))
        best = rank_candidates(trained, bare[:1])
        assert best["candidates"].to_list()[0][0] == "wet"
        shares.append(best["probabilities"].to_list()[0][0])
    assert shares[1] == pytest.approx(shares[0], abs=0.07)


def test_what_cannot_be_learnt_is_refused(items: pl.DataFrame, vectors: WordVectors) -> None:
    """One article only, a loss that is no number, and a number of candidates below 0."""
    with pytest.raises(BadInput, match="a whole number from 0"):
        make_recipe("gated", drawn=-1)
    for few in (items[:1], items.clear(), items.with_columns(split=pl.lit("test"))):
        with pytest.raises(BadInput, match="at least two articles"):
            fit(few, TINY, vectors)
    broken = WordVectors(vectors.words, vectors.vectors * np.float32(np.inf))
    with pytest.raises(BadInput, match="the loss is nan in epoch 1"):
        fit(items, TINY, broken)
