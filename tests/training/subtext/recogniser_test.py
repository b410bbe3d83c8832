"""Training the recogniser: it learns, its context matters, it repeats to the bit, it goes on where it was stopped."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch

from pipeline.errors import BadInput
from pipeline.examples.subtext import contexts
from pipeline.metrics.classification import macro_f1
from pipeline.models import encoder as encoders
from pipeline.models.encoder import Encoder
from pipeline.models.word_vectors import WordVectors
from pipeline.training import registry
from pipeline.training.loop import Fitted
from pipeline.training.subtext import recogniser
from pipeline.training.subtext.recogniser import Recipe, fit, load, predict, probabilities, recipe_of
from tests.support.killed import killed_after

TEXTS = ["真是好样的", "谢谢你这么准时", "今天天气不错", "这部电影很长", "你可真聪明"]
CONTEXTS = ["他又迟到了两小时", "他提前十分钟到了", "外面下着暴雨", "我们聊聊周末"]

TINY = Recipe(
    units="characters", hidden=8, meaning=6, learning_rate=0.02, batch=8, epochs=3, pooling="attention", dropout=0.1,
    is_bidirectional=True, ngrams=1, members=2, comparison="product",
)  # fmt: skip
SMALL = {"hidden": 16, "meaning": 8, "learning_rate": 0.03, "batch": 20, "epochs": 60}


def drawn(words: list[str], dim: int = 6, seed: int = 1) -> WordVectors:
    """Vectors at random."""
    return WordVectors(words, np.random.default_rng(seed).normal(size=(len(words), dim)).astype(np.float32))


@pytest.fixture(scope="module")
def vectors() -> WordVectors:
    """Vectors of all characters but a few, and of some words."""
    return drawn([*sorted(set("".join(TEXTS + CONTEXTS)) - set("谢影")), "聪明", "天气", "迟到"])


@pytest.fixture(scope="module")
def rows() -> pl.DataFrame:
    """Five sentences in four contexts; what is meant depends on both: half of the twenty hold subtext (CSD-01)."""
    made = [
        (text, context, str((i + j) % 2), "train") for i, text in enumerate(TEXTS) for j, context in enumerate(CONTEXTS)
    ]
    return pl.DataFrame(made, schema=["text", "context", "label", "split"], orient="row")


@pytest.fixture(scope="module")
def parted(rows: pl.DataFrame) -> pl.DataFrame:
    """The same, every fourth row kept for validation."""
    split = ["validation" if i % 4 == i // 4 % 4 else "train" for i in range(len(rows))]
    return rows.with_columns(split=pl.Series(split))


@pytest.fixture(scope="module")
def fitted(parted: pl.DataFrame, vectors: WordVectors) -> Fitted:
    """What three epochs come to."""
    return fit(parted, TINY, vectors)


def equal(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    """The same names and the same bits."""
    return one.keys() == other.keys() and all(torch.equal(value, other[name]) for name, value in one.items())


def scores(found: Fitted, rows: pl.DataFrame, **more: Any) -> np.ndarray:
    """Probability of subtext of each row."""
    return predict(load(found.tensors, found.config, **more), rows["text"].to_list(), rows["context"].to_list())


def f1(found: Fitted, rows: pl.DataFrame, **more: Any) -> float:
    """Macro F1 on some rows."""
    return macro_f1(rows["label"].cast(pl.Int64).to_numpy(), (scores(found, rows, **more) > 0.5).astype(int))


def ironic(rows: pl.DataFrame) -> pl.DataFrame:
    """Praise holds subtext after what is bad, and nothing else does: a context can only add to what a sentence says."""
    bad, praise = pl.col("context").is_in([CONTEXTS[0], CONTEXTS[2]]), pl.col("text").is_in([TEXTS[0], TEXTS[4]])
    return rows.with_columns(label=(bad & praise).cast(pl.Int64).cast(pl.String))


@pytest.mark.parametrize("pooling", ["last", "mean", "max", "attention"])
def test_a_tiny_one_learns_20_rows_by_heart(rows: pl.DataFrame, vectors: WordVectors, pooling: str) -> None:
    """Algorithm 1 learns twenty rows in which the same praise is meant otherwise after bad news (CSD-01, CSD-29)."""
    recipe = recipe_of("paper", units="characters", pooling=pooling, **SMALL)
    some = ironic(rows)
    assert f1(fit(some, recipe, vectors), some) == 1.0


def test_only_a_product_learns_what_context_turns_round(rows: pl.DataFrame, vectors: WordVectors) -> None:
    """Where each context turns some sentences one way and others the other, a linear comparison must fail."""
    linear, product = (
        f1(fit(rows, recipe_of("paper", units="characters", comparison=how, **SMALL), vectors), rows)
        for how in ("linear", "product")
    )
    assert linear < 0.8
    assert product == 1.0


def test_without_contexts(rows: pl.DataFrame, vectors: WordVectors) -> None:
    """With every context empty a sentence has one score wherever it stands, and half of the rows are wrong."""
    found = fit(rows, recipe_of("paper", units="characters", has_context=False, **SMALL | {"epochs": 5}), vectors)
    for text in TEXTS:
        assert np.ptp(scores(found, rows.filter(pl.col("text") == text))) < 1e-6
    assert f1(found, rows) <= 0.5


def test_words_are_units_too(rows: pl.DataFrame) -> None:
    """Words with vectors trained along, and classes weighted: the rows are learnt by heart."""
    vectors = drawn(["好", "准时", "天气", "电影", "聪明", "迟到", "提前", "暴雨", "周末", "真", "你"])
    recipe = recipe_of("paper", is_tuned=True, is_weighted=True, **SMALL)
    found = fit(ironic(rows), recipe, vectors)
    assert f1(found, ironic(rows)) == 1.0
    assert found.config["words"] == vectors.words
    raw = torch.from_numpy(vectors.vectors)
    assert not torch.allclose(found.tensors["table"][1:], raw / raw.square().mean().sqrt())
    assert not found.tensors["table"][0].any()  # padding stays zero


def test_pieces_of_an_encoder(rows: pl.DataFrame, encoder: Encoder) -> None:
    """A transformer's last layer can stand for the word vectors (CSD-28); it is named and not kept in the model."""
    found = fit(rows, Recipe(units="pieces", hidden=16, learning_rate=0.02, batch=20, epochs=2), encoder)
    assert found.config["encoder_revision"] == encoder.revision
    assert all(name.startswith("members.") for name in found.tensors)
    assert found.tensors["members.0.extract.weight_ih_l0"].shape[1] == encoder.last
    assert scores(found, rows, encoder=encoder).shape == (20,)
    with pytest.raises(BadInput, match="give that one"):
        load(found.tensors, found.config)


def test_two_trainings_are_equal_to_the_bit(parted: pl.DataFrame, vectors: WordVectors, fitted: Fitted) -> None:
    """The same rows and recipe give the same weights and numbers; another seed gives others."""
    again = fit(parted, TINY, vectors)
    assert equal(again.tensors, fitted.tensors)
    assert again.config == fitted.config
    assert again.history.equals(fitted.history)
    assert not equal(fit(parted, replace(TINY, seed=43, epochs=1), vectors).tensors, fitted.tensors)


@pytest.mark.parametrize("is_tuned", [False, True])
def test_goes_on_where_it_was_stopped(
    parted: pl.DataFrame, vectors: WordVectors, tmp_path: Path, is_tuned: bool
) -> None:
    """A training killed after its first epoch and started again ends with the same bits as one that was not."""
    recipe, state = replace(TINY, is_tuned=is_tuned), tmp_path / "state"
    whole = fit(parted, recipe, vectors)
    with killed_after(1):
        fit(parted, recipe, vectors, state)
    resumed = fit(parted, recipe, vectors, state)
    assert equal(resumed.tensors, whole.tensors)
    assert resumed.config == whole.config
    assert resumed.history.equals(whole.history)


def test_a_model_that_was_kept_gives_the_same_scores(fitted: Fitted, parted: pl.DataFrame, tmp_path: Path) -> None:
    """Written to the registry and read again, the recogniser says the same of texts it has not seen either."""
    model = registry.fetch(tmp_path, registry.keep(tmp_path, fitted.tensors, fitted.config))
    again = load(model.tensors(), model.config)
    new = pl.concat([parted, parted.with_columns(text=pl.lit("谢谢，这电影真快"), context=pl.lit(""))])
    one, other = (
        probabilities(each, new["text"].to_list(), new["context"].to_list())
        for each in (load(fitted.tensors, fitted.config), again)
    )
    assert np.array_equal(one, other)
    assert one.sum(axis=1) == pytest.approx(np.ones(len(new)))


def test_scores_do_not_depend_on_company(fitted: Fitted, parted: pl.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    """Alone, in another order or three at a time, a text has the same score but for rounding."""
    whole = scores(fitted, parted)
    assert scores(fitted, parted.reverse())[::-1] == pytest.approx(whole, abs=1e-6)
    assert scores(fitted, parted[3:4]) == pytest.approx(whole[3:4], abs=1e-6)
    monkeypatch.setattr(recogniser, "ROWS", 3)
    assert scores(fitted, parted) == pytest.approx(whole, abs=1e-6)
    assert len(scores(fitted, parted.clear())) == 0


def test_unknown_words_are_read_by_their_characters(fitted: Fitted) -> None:
    """A token without a vector is the mean of its characters that have one; one whose characters have none is zero."""
    trained = load(fitted.tensors, fitted.config)
    reader, table = trained.reader, trained.model.table
    assert table is not None
    inputs = reader.read(["聪明", "[迟好]谢"], ["", ""])  # what stands in brackets is one token
    assert (inputs.rows[inputs.texts[0]] <= len(reader.words)).all()
    ids, lengths = inputs.padded(inputs.texts[1:])
    assert lengths.tolist() == [2]
    vectors = trained.model._vectors(ids, inputs.extra)[0]
    mean = table[[reader.place["迟"], reader.place["好"]]].mean(dim=0)
    assert torch.allclose(vectors[0], torch.cat([mean, mean]))
    assert not vectors[1].any()


def test_temperature_makes_probabilities_honest(vectors: WordVectors) -> None:
    """Where three labels in ten are noise, a model that fits them is too sure: its temperature lies above 1.

    Without a validation part probabilities stay as they come.
    """
    rng = np.random.default_rng(5)
    letters = sorted(set("".join(TEXTS + CONTEXTS)) - set("谢影"))
    texts = ["".join(rng.choice(letters, 6)) for _ in range(120)]
    labels = ["1" if ("好" in text) != (rng.random() < 0.3) else "0" for text in texts]
    split = ["train"] * 60 + ["validation"] * 60
    rows = pl.DataFrame({"text": texts, "context": [""] * 120, "label": labels, "split": split})
    recipe = Recipe(units="characters", hidden=16, learning_rate=0.02, epochs=1, batch=20)
    sure = fit(rows, replace(recipe, epochs=30), vectors)
    assert sure.config["temperature"] > 1
    assert fit(rows.filter(pl.col("split") == "train"), recipe, vectors).config["temperature"] == 1


def test_classes_are_as_frequent_as_they_were(vectors: WordVectors) -> None:
    """Trained as if classes were equal, probabilities still have their frequency; a class is told above its share.

    One comment in five holds subtext, and nothing tells which: each is given about a fifth.
    """
    rng = np.random.default_rng(3)
    letters = sorted(set("".join(TEXTS + CONTEXTS)) - set("谢影"))
    texts = ["".join(rng.choice(letters, 6)) for _ in range(400)]
    labels = ["1" if i % 5 == 0 else "0" for i in range(400)]
    rows = pl.DataFrame({"text": texts, "context": [""] * 400, "label": labels, "split": ["train", "validation"] * 200})
    recipe = Recipe(units="characters", hidden=4, epochs=1, is_weighted=True, ngrams=2, penalty=50.0)
    found = fit(rows, recipe, vectors)
    assert found.config["shares"] == pytest.approx([0.8, 0.2])
    trained = load(found.tensors, found.config)
    said = probabilities(trained, texts, [""] * 400)
    assert said[:, 1].mean() == pytest.approx(0.2, abs=0.03)
    assert recogniser.decide(trained, said).tolist() == (said[:, 1] > 0.2).tolist()
    assert said[:, 1].max() < 0.5


def test_profile_paper_is_algorithm_1() -> None:
    """Words, one LSTM read to its last state, one member, nothing joined (CSD-28 to CSD-30)."""
    recipe = recipe_of("paper")
    assert (recipe.units, recipe.pooling, recipe.is_bidirectional, recipe.members) == ("words", "last", False, 1)
    assert (recipe.ngrams, recipe.is_tuned, recipe.has_context, recipe.dropout) == (0, False, True, 0.0)
    assert recipe_of("paper", epochs=3, seed=None) == replace(recipe, epochs=3)


def test_profile_undertone() -> None:
    """Ours sees sentence and context together, the whole LSTM, and n-grams beside it; members are averaged."""
    recipe = recipe_of("undertone")
    assert (recipe.comparison, recipe.pooling, recipe.is_bidirectional) == ("product", "max", True)
    assert (recipe.ngrams, recipe.is_weighted, recipe.members, recipe.units) == (2, True, 3, "words")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"layers": 2}, "a recipe has no layers"),
        ({"pooling": "first"}, "pooling should be one of last, mean, max, attention; found 'first'"),
        ({"epochs": 0}, "epochs should be a whole number from 1; found 0"),
        ({"hidden": 1.5}, "hidden should be a whole number from 1"),
        ({"dropout": 1.0}, "dropout should be a number from 0 to below 1"),
        ({"learning_rate": float("nan")}, "learning_rate should be a number from 0"),
        ({"penalty": 0.0}, "penalty should be a number above 0"),
        ({"is_tuned": 1}, "is_tuned should be true or false"),
    ],
)
def test_what_a_recipe_does_not_know(changes: dict[str, Any], said: str) -> None:
    """An unknown name or value is BadInput, which says what there is."""
    with pytest.raises(BadInput, match=said):
        recipe_of("paper", **changes)
    with pytest.raises(BadInput, match="no profile 'ours'; there are paper, undertone"):
        recipe_of("ours")


def test_what_cannot_be_learnt(parted: pl.DataFrame, vectors: WordVectors, encoder: Encoder) -> None:
    """One class, a label that only validation knows, vectors of the wrong kind, a loss beyond numbers: BadInput."""
    with pytest.raises(BadInput, match="at least two labels; found 1"):
        fit(parted.filter(pl.col("label") == "1"), TINY, vectors)
    strange = pl.when(pl.col("split") == "validation").then(pl.lit("2")).otherwise("label")
    with pytest.raises(BadInput, match="label '2' is in the validation part"):
        fit(parted.with_columns(label=strange), TINY, vectors)
    with pytest.raises(BadInput, match="those of an encoder"):
        fit(parted, TINY, encoder)
    with pytest.raises(BadInput, match="'characters' has no pieces"):
        fit(parted, replace(TINY, units="pieces"), encoders.load("characters"))
    with pytest.raises(BadInput, match="learning rate is too high"):
        fit(parted, replace(TINY, learning_rate=1e30), vectors)


def test_what_cannot_be_asked(fitted: Fitted, parted: pl.DataFrame, vectors: WordVectors) -> None:
    """Each text needs a context; other labels than 1 have no probability of subtext; another kind is no recogniser."""
    trained = load(fitted.tensors, fitted.config)
    with pytest.raises(ValueError, match="2 texts and 1 contexts"):
        probabilities(trained, ["好", "真好"], [""])
    named = fit(parted.with_columns(label="l" + pl.col("label")), replace(TINY, epochs=1), vectors)
    with pytest.raises(BadInput, match="knows l0, l1"):
        predict(load(named.tensors, named.config), ["好"], [""])
    with pytest.raises(BadInput, match="kind 'impscore'"):
        load({}, {"kind": "impscore"})


def test_learns_from_real_comments(data: Path) -> None:
    """On 600 comments of ToSarcasm a tiny model gets better than always saying the more frequent class."""
    every = contexts.tosarcasm(data / "tosarcasm_zh").rows
    some = pl.concat([part.head(300) for part in every.partition_by("split")])
    letters = sorted(set("".join(some["text"])))
    small = {"members": 1, "hidden": 8, "epochs": 2}
    recipe = recipe_of("undertone", units="characters", has_context=False, **small)
    found = fit(some, recipe, drawn(letters, 8))
    test = some.filter(pl.col("split") == "test")
    assert f1(found, test) > macro_f1(test["label"].cast(pl.Int64).to_numpy(), np.ones(len(test), int)) + 0.05
