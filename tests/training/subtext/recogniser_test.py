"""Training of the recogniser: it learns, uses the context, repeats to the bit and resumes."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch

from pipeline.errors import BadInput
from pipeline.metrics.classification import macro_f1
from pipeline.models import encoder as encoders
from pipeline.models.encoder import Encoder
from pipeline.models.word_vectors import WordVectors
from pipeline.training.loop import TrainingResult
from pipeline.training.subtext import recogniser
from pipeline.training.subtext.recogniser import Recipe, fit, load, make_recipe, predict, predict_probabilities
from tests.support.killed import check_resuming, equal_weights

TEXTS = ["真是好样的", "谢谢你这么准时", "今天天气不错", "这部电影很长", "你可真聪明"]
CONTEXTS = ["他又迟到了两小时", "他提前十分钟到了", "外面下着暴雨", "我们聊聊周末"]

TINY = Recipe(
    units="characters", hidden=8, meaning=6, learning_rate=0.02, batch=8, epochs=3, pooling="attention", dropout=0.1,
    is_bidirectional=True, ngrams=1, members=2, comparison="product",
)  # fmt: skip
SMALL = {"hidden": 16, "meaning": 8, "learning_rate": 0.03, "batch": 20, "epochs": 60}


def draw_vectors(words: list[str], dim: int = 6, seed: int = 1) -> WordVectors:
    return WordVectors(words, np.random.default_rng(seed).normal(size=(len(words), dim)).astype(np.float32))


@pytest.fixture(scope="module")
def vectors() -> WordVectors:
    """Draw vectors of all characters but two, and of three words."""
    return draw_vectors([*sorted(set("".join(TEXTS + CONTEXTS)) - set("谢影")), "聪明", "天气", "迟到"])


@pytest.fixture(scope="module")
def rows() -> pl.DataFrame:
    """Combine five sentences and four contexts; both decide about subtext, which half of the rows have (CSD-01)."""
    cells = [
        (text, context, str((i + j) % 2), "train") for i, text in enumerate(TEXTS) for j, context in enumerate(CONTEXTS)
    ]
    return pl.DataFrame(cells, schema=["text", "context", "label", "split"], orient="row")


@pytest.fixture(scope="module")
def split_rows(rows: pl.DataFrame) -> pl.DataFrame:
    split = ["validation" if i % 4 == i // 4 % 4 else "train" for i in range(len(rows))]
    return rows.with_columns(split=pl.Series(split))


@pytest.fixture(scope="module")
def result(split_rows: pl.DataFrame, vectors: WordVectors) -> TrainingResult:
    return fit(split_rows, TINY, vectors)


def scores(result: TrainingResult, rows: pl.DataFrame, **more: Any) -> np.ndarray:
    """Predict the probability of subtext of each row, by a configuration that went through JSON."""
    model = load(result.tensors, json.loads(json.dumps(result.config)), **more)
    return predict(model, rows["text"].to_list(), rows["context"].to_list())


def f1(result: TrainingResult, rows: pl.DataFrame, **more: Any) -> float:
    return macro_f1(rows["label"].cast(pl.Int64).to_numpy(), (scores(result, rows, **more) > 0.5).astype(int))


def label_irony(rows: pl.DataFrame) -> pl.DataFrame:
    """Label praise after a bad event as subtext, and nothing else, so that a context only adds to the sentence."""
    bad, praise = pl.col("context").is_in([CONTEXTS[0], CONTEXTS[2]]), pl.col("text").is_in([TEXTS[0], TEXTS[4]])
    return rows.with_columns(label=(bad & praise).cast(pl.Int64).cast(pl.String))


@pytest.mark.parametrize("pooling", ["last", "mean", "max", "attention"])
def test_a_tiny_model_memorises_20_rows(rows: pl.DataFrame, vectors: WordVectors, pooling: str) -> None:
    """Algorithm 1 learns rows in which the same praise has another meaning after bad news (CSD-01, CSD-29)."""
    recipe = make_recipe("paper", units="characters", pooling=pooling, **SMALL)
    subset = label_irony(rows)
    assert f1(fit(subset, recipe, vectors), subset) == 1.0


def test_without_contexts(rows: pl.DataFrame, vectors: WordVectors) -> None:
    """With empty contexts a sentence has the same score in every row, and half of the rows are wrong."""
    result = fit(rows, make_recipe("paper", units="characters", has_context=False, **SMALL | {"epochs": 5}), vectors)
    for text in TEXTS:
        assert np.ptp(scores(result, rows.filter(pl.col("text") == text))) < 1e-6
    assert f1(result, rows) <= 0.5


def test_words_are_units_too(rows: pl.DataFrame) -> None:
    """A model with tuned word vectors and weighted classes memorises the rows."""
    vectors = draw_vectors(["好", "准时", "天气", "电影", "聪明", "迟到", "提前", "暴雨", "周末", "真", "你"])
    recipe = make_recipe("paper", is_tuned=True, is_weighted=True, **SMALL)
    result = fit(label_irony(rows), recipe, vectors)
    assert f1(result, label_irony(rows)) == 1.0
    assert result.config["words"] == vectors.words
    raw = torch.from_numpy(vectors.vectors)
    assert not torch.allclose(result.tensors["table"][1:], raw / raw.square().mean().sqrt())
    assert not result.tensors["table"][0].any()  # padding stays zero


def test_pieces_of_an_encoder(rows: pl.DataFrame, encoder: Encoder) -> None:
    """A transformer's last layer can replace the word vectors (CSD-28); the model names it but does not contain it."""
    result = fit(rows, Recipe(units="pieces", hidden=16, learning_rate=0.02, batch=20, epochs=2), encoder)
    assert result.config["encoder_revision"] == encoder.revision
    assert all(name.startswith("members.") for name in result.tensors)
    assert result.tensors["members.0.extract.weight_ih_l0"].shape[1] == encoder.last
    assert scores(result, rows, encoder=encoder).shape == (20,)
    with pytest.raises(BadInput, match="give the same encoder"):
        load(result.tensors, result.config)


def test_a_killed_training_resumes(split_rows: pl.DataFrame, vectors: WordVectors, tmp_path: Path) -> None:
    """A training killed after its first epoch resumes and ends with the same bits as an uninterrupted one."""
    recipe, state = replace(TINY, is_tuned=True), tmp_path / "state"
    uninterrupted = fit(split_rows, recipe, vectors)
    check_resuming(lambda: fit(split_rows, recipe, vectors, state), uninterrupted)
    other_seed = fit(split_rows, replace(recipe, seed=43, epochs=1), vectors)
    assert not equal_weights(other_seed.tensors, uninterrupted.tensors)


def test_scores_do_not_depend_on_company(
    result: TrainingResult, split_rows: pl.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A text has the same score, up to rounding, alone, in another order or in chunks of three."""
    uninterrupted = scores(result, split_rows)
    assert scores(result, split_rows.reverse())[::-1] == pytest.approx(uninterrupted, abs=1e-6)
    assert scores(result, split_rows[3:4]) == pytest.approx(uninterrupted[3:4], abs=1e-6)
    monkeypatch.setattr(recogniser, "ROWS", 3)
    assert scores(result, split_rows) == pytest.approx(uninterrupted, abs=1e-6)
    assert len(scores(result, split_rows.clear())) == 0


def test_unknown_words_are_read_by_their_characters(result: TrainingResult) -> None:
    """A token without a vector gets the mean of its characters' vectors, or zeros if none of them has one."""
    trained = load(result.tensors, result.config)
    reader, table = trained.reader, trained.model.table
    assert table is not None
    inputs = reader.read(["聪明", "[迟好]谢"], ["", ""])  # text in brackets is one token
    assert (inputs.rows[inputs.texts[0]] <= len(reader.words)).all()
    ids, lengths = inputs.pad(inputs.texts[1:])
    assert lengths.tolist() == [2]
    vectors = trained.model._vectors(ids, inputs.extra)[0]
    mean = table[[reader.place["迟"], reader.place["好"]]].mean(dim=0)
    assert torch.allclose(vectors[0], torch.cat([mean, mean]))
    assert not vectors[1].any()


def draw_texts(count: int, seed: int) -> tuple[list[str], np.random.Generator]:
    """Draw texts of six known characters; return the generator too."""
    rng = np.random.default_rng(seed)
    letters = sorted(set("".join(TEXTS + CONTEXTS)) - set("谢影"))
    return ["".join(rng.choice(letters, 6)) for _ in range(count)], rng


def test_temperature_makes_probabilities_honest(vectors: WordVectors) -> None:
    """A model that overfits noisy labels gets a temperature above 1; without a validation part it is 1."""
    texts, rng = draw_texts(120, 5)
    labels = ["1" if ("好" in text) != (rng.random() < 0.3) else "0" for text in texts]
    split = ["train"] * 60 + ["validation"] * 60
    rows = pl.DataFrame({"text": texts, "context": [""] * 120, "label": labels, "split": split})
    recipe = Recipe(units="characters", hidden=16, learning_rate=0.02, epochs=1, batch=20)
    confident = fit(rows, replace(recipe, epochs=30), vectors)
    assert confident.config["temperature"] > 1
    assert fit(rows.filter(pl.col("split") == "train"), recipe, vectors).config["temperature"] == 1


def test_classes_are_as_frequent_as_they_were(vectors: WordVectors) -> None:
    """A model trained with equal class weights predicts class frequencies, and decides above the class share."""
    texts, _ = draw_texts(400, 3)
    labels = ["1" if i % 5 == 0 else "0" for i in range(400)]
    rows = pl.DataFrame({"text": texts, "context": [""] * 400, "label": labels, "split": ["train", "validation"] * 200})
    recipe = Recipe(units="characters", hidden=4, epochs=1, is_weighted=True, ngrams=2, penalty=50.0)
    result = fit(rows, recipe, vectors)
    assert result.config["shares"] == pytest.approx([0.8, 0.2])
    trained = load(result.tensors, result.config)
    predicted = predict_probabilities(trained, texts, [""] * 400)
    assert predicted[:, 1].mean() == pytest.approx(0.2, abs=0.03)
    assert recogniser.decide(trained, predicted).tolist() == (predicted[:, 1] > 0.2).tolist()
    assert predicted[:, 1].max() < 0.5


def test_what_cannot_be_learnt(split_rows: pl.DataFrame, vectors: WordVectors, encoder: Encoder) -> None:
    """One class, a label only in validation, vectors of the wrong kind or an infinite loss raises BadInput."""
    with pytest.raises(BadInput, match="at least two labels; found 1"):
        fit(split_rows.filter(pl.col("label") == "1"), TINY, vectors)
    labels = pl.when(pl.col("split") == "validation").then(pl.lit("2")).otherwise("label")
    with pytest.raises(BadInput, match="label '2' is in the validation part"):
        fit(split_rows.with_columns(label=labels), TINY, vectors)
    with pytest.raises(BadInput, match="'pieces' need an encoder"):
        fit(split_rows, TINY, encoder)
    with pytest.raises(BadInput, match="'characters' is not a transformer"):
        fit(split_rows, replace(TINY, units="pieces"), encoders.load("characters"))
    with pytest.raises(BadInput, match="learning rate is too high"):
        fit(split_rows, replace(TINY, learning_rate=1e30), vectors)


def test_what_cannot_be_asked(result: TrainingResult, split_rows: pl.DataFrame, vectors: WordVectors) -> None:
    """A missing context, labels other than 1 and 0, or a model of another kind is refused."""
    trained = load(result.tensors, result.config)
    with pytest.raises(ValueError, match="2 texts and 1 contexts"):
        predict_probabilities(trained, ["好", "真好"], [""])
    renamed = fit(split_rows.with_columns(label="l" + pl.col("label")), replace(TINY, epochs=1), vectors)
    with pytest.raises(BadInput, match="has the classes l0, l1"):
        predict(load(renamed.tensors, renamed.config), ["好"], [""])
    with pytest.raises(BadInput, match="kind 'impscore'"):
        load({}, {"kind": "impscore"})
