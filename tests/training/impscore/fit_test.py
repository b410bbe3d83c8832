"""Fitting ImpScore: it learns, it repeats to the bit, it keeps the best epoch, it goes on where it was stopped."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch

from pipeline.examples.splits import SPLIT_OF
from pipeline.metrics.impscore.studies import kendall_tau
from pipeline.models.encoder import Encoder
from pipeline.models.impscore import ImpScore, Meaning
from pipeline.training.impscore import fit as impscore
from pipeline.training.impscore.fit import (
    SIDES,
    Corpus,
    Frozen,
    Recipe,
    TrainingResult,
    Tuned,
    fit,
    make_corpus,
    make_recipe,
)
from tests.support.killed import equal_weights, killed_after

Embed = Callable[[Corpus], Frozen]

SMALL = Recipe(batch=10)


@pytest.fixture(scope="module")
def corpus(pairs: pl.DataFrame) -> Corpus:
    return make_corpus(pairs)


@pytest.fixture(scope="module")
def train_corpus(pairs: pl.DataFrame) -> Corpus:
    return make_corpus(pairs.with_columns(split=pl.lit("train")))


@pytest.fixture(scope="module")
def group_corpus(pairs: pl.DataFrame, groups: pl.DataFrame) -> Corpus:
    """Ten graded groups and no pair."""
    return make_corpus(pairs.clear(), groups)


@pytest.fixture(scope="module")
def result(corpus: Corpus, frozen: Embed) -> TrainingResult:
    return fit(corpus, frozen(corpus), SMALL)


def train(corpus: Corpus, frozen: Embed, recipe: Recipe) -> tuple[TrainingResult, Meaning]:
    embedding = frozen(corpus)
    result = fit(corpus, embedding, recipe)
    return result, impscore.compute_meanings(torch.arange(len(corpus.texts)), result.model, embedding)


def test_profile_paper() -> None:
    """Adam at 0.01, batches of 2^13, 30 epochs (IMP-23); margins and alpha (IMP-24); l and seed of the code (E3)."""
    recipe = make_recipe("paper")
    assert recipe == Recipe()
    assert (recipe.learning_rate, recipe.batch, recipe.epochs) == (0.01, 2**13, 30)
    assert (recipe.gamma_implicitness, recipe.gamma_pragmatics, recipe.alpha) == (0.5, 0.7, 1.0)
    assert (recipe.features, recipe.seed, recipe.weight_decay) == (64, 42, 0.0)
    assert (recipe.design, recipe.reduction) == (("cosine", "euclidean", "p2s"), "mean")
    assert (recipe.pooling, recipe.tune, recipe.group_sharpness, recipe.is_balanced) == ("model", "none", 0.0, False)
    assert (recipe.hidden, recipe.dropout) == (0, 0.0)


def test_profile_official() -> None:
    """The released code differs by weight decay 1e-3 and a split of 90:5:5 (E3); the paper splits 8:1:1."""
    assert make_recipe("official") == replace(Recipe(), weight_decay=1e-3)
    assert SPLIT_OF == {"paper": "paper", "official": "official", "undertone": "grouped"}
    assert SPLIT_OF.keys() == impscore.PROFILES.keys()
    assert make_recipe("paper", epochs=3, hidden=0, seed=None) == replace(Recipe(), epochs=3)


def test_overfits_32_triples(train_corpus: Corpus, frozen: Embed) -> None:
    """32 triples are learnt by heart: every implicit sentence above both others, every own explicit one the nearer."""
    _, meanings = train(train_corpus, frozen, Recipe(epochs=150))
    i = meanings.implicitness[train_corpus.triples]
    assert (i[:, :1] > i[:, 1:]).all()
    p = meanings.pragmatic[train_corpus.triples]
    near, far = ((p[:, 0] - p[:, side]).norm(dim=1) for side in (1, 2))
    assert (near < far).float().mean() > 0.8  # the epoch is chosen by the other accuracy


def test_the_reading_of_equation_9_hardly_matters(corpus: Corpus, frozen: Embed) -> None:
    """Under Adam the sum trains as the mean does: one step of each differs by the optimiser's epsilon (IMP-10)."""
    recipes = (Recipe(epochs=1, reduction="mean"), Recipe(epochs=1, reduction="sum"))
    mean_result, sum_result = (fit(corpus, frozen(corpus), recipe) for recipe in recipes)
    for name, weights in mean_result.tensors.items():
        apart = (weights - sum_result.tensors[name]).abs()
        assert apart.mean() < 1e-5  # the step itself is 1e-2
        assert (apart < 1e-4).double().mean() > 0.99  # but for weights with hardly any gradient


def test_every_triple_is_seen_once_an_epoch(corpus: Corpus) -> None:
    """An epoch's batches are the training triples, each once, in an order that the next epoch changes.

    30 epochs of the paper's pairs are 180 updates, 30 x ceil(45,032 / 8,192) (IMP-23); a trained encoder's are smaller.
    """
    generator = torch.Generator().manual_seed(1)
    epochs = [torch.cat(list(impscore._draw_steps(corpus, SMALL, generator))) for _ in range(2)]
    for triples in epochs:
        assert sorted(triples.tolist()) == sorted(corpus.select_triples("train").tolist())
    assert not torch.equal(*epochs)
    paper = replace(corpus, pairs=pl.DataFrame({"split": ["train"] * 45_032}), triples=torch.zeros(45_032, 3))
    assert 30 * len(list(impscore._draw_steps(paper, Recipe(), generator))) == 180
    steps = impscore._draw_steps(corpus, Recipe(tune="full", tune_batch=7), generator)
    assert [len(step) for step in steps] == [7, 7, 7, 3]


def test_learns_ten_groups_by_heart(group_corpus: Corpus, frozen: Embed) -> None:
    """Ten graded groups of five steps are ranked without a fault in the end (tau 1), with no pair to learn from."""
    value = train(group_corpus, frozen, Recipe(epochs=200, group_sharpness=8.0))[1].implicitness
    assert [kendall_tau(range(5), value[rows].tolist()) for rows in group_corpus.select_groups("train")] == [1.0] * 10


def test_groups_and_pairs_in_one_model(groups: pl.DataFrame, pairs: pl.DataFrame, frozen: Embed) -> None:
    """Groups that are learnt from have batches of their own, and choose the epoch with the pairs."""
    is_held = pl.col("group").is_in(groups["group"].unique().sort()[:3].implode())
    split_groups = groups.with_columns(split=pl.when(is_held).then(pl.lit("validation")).otherwise(pl.lit("train")))
    corpus = make_corpus(pairs, split_groups)
    recipe = replace(SMALL, group_sharpness=8.0, group_batch=4, epochs=3)
    steps = list(impscore._draw_steps(corpus, recipe, torch.Generator().manual_seed(1)))
    assert sorted(len(step) for step in steps if isinstance(step, list)) == [3, 4]
    assert sorted(len(step) for step in steps if not isinstance(step, list)) == [4, 10, 10]
    result = fit(corpus, frozen(corpus), recipe)
    assert result.history["count"].to_list() == [7, 7, 7]  # four triples and three groups


@pytest.mark.parametrize(
    ("triple", "group", "right"),
    [
        ([3, 2, 1], [1, 2, 3], 5),
        ([3, 2, 1], [1, 3, 2], 4),  # 1, 3, 2 has two of three in order
        ([2, 3, 1], [3, 2, 1], 1),
        ([1, 1, 1], [1, 1, 1], 0),  # equal ones are not in order
    ],
)
@pytest.mark.parametrize("has_groups", [True, False], ids=["with groups", "without"])
def test_accuracy_by_hand(triple: list[float], group: list[float], right: int, has_groups: bool) -> None:
    """A triple is two comparisons and a group of three is three, all alike; without learning from groups just two."""
    value_of = dict(zip("abcxyz", map(float, triple + group), strict=True))
    rows = pl.DataFrame({"implicit": ["a"], "explicit": ["b"], "negative": ["c"], "split": ["validation"]})
    graded = pl.DataFrame({"group": ["g"] * 3, "level": [1, 2, 3], "text": list("xyz"), "split": ["validation"] * 3})
    corpus = make_corpus(rows, graded)
    values = Frozen(np.array([[value_of[text]] for text in corpus.texts], np.float32))

    def stub(i: torch.Tensor) -> Meaning:
        return Meaning(i[:, 0], i, i)

    recipe = Recipe(group_sharpness=8.0 * has_groups)
    accuracy = impscore._measure_accuracy(corpus, stub, values, recipe)  # type: ignore[arg-type]
    above = (triple[0] > triple[1]) + (triple[0] > triple[2])
    assert accuracy == ((right / 5, 2) if has_groups else (above / 2, 1))


@pytest.mark.parametrize("rows", [5, 16_384])
def test_a_deep_model_looks_at_a_sample(
    corpus: Corpus, frozen: Embed, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    """Before training it looks at distinct training texts, at no more than fit into memory; the seed says which."""
    samples: list[torch.Tensor] = []
    initialise = ImpScore.initialise
    monkeypatch.setattr("pipeline.models.encoder.FLOATS", rows * frozen(corpus).dim)
    monkeypatch.setattr(ImpScore, "initialise", lambda self, e: samples.append(e) or initialise(self, e))
    for _ in range(2):
        fit(corpus, frozen(corpus), replace(SMALL, epochs=0, hidden=4))
    train_rows = torch.unique(corpus.select_triples("train"))
    assert len(samples[0]) == min(rows, len(train_rows))
    assert torch.equal(samples[0], samples[1])
    embeddings = frozen(corpus)(train_rows)
    assert ((samples[0][:, None] == embeddings[None]).all(-1).sum(1) == 1).all()


def test_loss_of_groups_by_hand() -> None:
    """Two groups of two: implicitness falls by .1 and rises by .2, so the ranking loss at sharpness 8 is that of both.

    Each sentence's neighbour in its group is 1 away; of the other group the sentence of its level is 4 away, and .7 - 3
    is below zero. With the other group only .5 away, .7 - (.5 - 1) = 1.2 of each is added.
    """
    recipe = Recipe(group_sharpness=8.0)
    ranking = (math.log1p(math.exp(0.8)) + math.log1p(math.exp(-1.6))) / 2
    values = torch.tensor([0.6, 0.5, 0.3, 0.5])
    for place, apart in ((4.0, 0.0), (0.5, 1.2)):
        features = torch.tensor([[0.0], [1.0], [place], [place + 1]])
        loss = impscore._compute_group_loss(Meaning(values, features, features), [2, 2], recipe)
        assert loss.item() == pytest.approx(ranking + apart, abs=1e-6)


@pytest.mark.parametrize("deep", [{}, {"hidden": 8, "dropout": 0.5}], ids=["paper", "deep"])
def test_goes_on_where_it_was_stopped(
    groups: pl.DataFrame, pairs: pl.DataFrame, frozen: Embed, tmp_path: Path, deep: dict[str, Any]
) -> None:
    """Killed after two of four epochs and begun again, training comes to the same bits, numbers and best epoch."""
    corpus = make_corpus(pairs, groups)
    recipe = replace(SMALL, epochs=4, group_sharpness=8.0, group_batch=4, weight_decay=1e-3, **deep)
    straight = fit(corpus, frozen(corpus), recipe, tmp_path / "other.safetensors")
    with killed_after(2):
        fit(corpus, frozen(corpus), recipe, tmp_path / "state.safetensors")
    torch.manual_seed(99)  # whatever happens between the two
    resumed = fit(corpus, frozen(corpus), recipe, tmp_path / "state.safetensors")
    assert equal_weights(resumed.tensors, straight.tensors)
    assert resumed.history.equals(straight.history)
    assert resumed.recipe == straight.recipe


def test_goes_on_when_the_encoder_is_trained(
    groups: pl.DataFrame, pairs: pl.DataFrame, encoder: Encoder, tmp_path: Path
) -> None:
    """The same with a trained encoder, whose dropout draws from the global source: weights, adapters, optimiser."""
    is_first = pl.col("group").is_in(groups["group"].unique().sort()[:4].implode())
    corpus = make_corpus(pairs.head(16), groups.filter(is_first))
    recipe = Recipe(epochs=2, tune="adapter", tune_batch=8, tune_rate=1e-3, group_sharpness=8.0)

    def embedding() -> Tuned:
        return Tuned(encoder, corpus.texts, "adapter", torch.Generator().manual_seed(recipe.seed))

    straight = fit(corpus, embedding(), recipe)
    assert any(name.startswith("encoder.") for name in straight.tensors)
    with killed_after(1):
        fit(corpus, embedding(), recipe, tmp_path / "state")
    resumed = fit(corpus, embedding(), recipe, tmp_path / "state")
    assert equal_weights(resumed.tensors, straight.tensors)
    assert resumed.history.equals(straight.history)


@pytest.mark.parametrize("tune", ["adapter", "full"])
def test_a_trained_encoder_changes(train_corpus: Corpus, encoder: Encoder, tune: str) -> None:
    """Fine-tuning moves the encoder's weights and learns."""
    recipe = Recipe(epochs=4, tune=tune, tune_batch=8, tune_rate=1e-3)
    embedding, untrained = (
        Tuned(encoder, train_corpus.texts, tune, torch.Generator().manual_seed(1)) for _ in range(2)
    )
    result = fit(train_corpus, embedding, recipe)
    before = {f"encoder.{name}": value.detach() for name, value in untrained.trained.items()}
    assert before.keys() == {name for name in result.tensors if name.startswith("encoder.")}
    moved = {name for name, value in before.items() if not torch.equal(value, result.tensors[name])}
    idle = {name for name in before if "pooler" in name or "token_type" in name}  # what no embedding depends on
    assert moved >= before.keys() - idle
    assert result.history["value"].max() > 0.6


def test_triples_point_at_their_texts(pairs: pl.DataFrame, groups: pl.DataFrame) -> None:
    """Row numbers point at the texts of each triple; a group's rows come by level, of its own split alone."""
    corpus = make_corpus(pairs, groups)
    assert len(set(corpus.texts)) == len(corpus.texts)
    assert {*corpus.texts} == {t for side in SIDES for t in pairs[side]} | {*groups["text"]}
    assert [tuple(corpus.texts[i] for i in row) for row in corpus.triples.tolist()] == pairs.select(SIDES).rows()
    assert [corpus.texts[i] for i in corpus.graded.tolist()] == groups["text"].to_list()
    corpus = make_corpus(pairs.clear(), groups.sample(fraction=1.0, shuffle=True, seed=3))
    expected = groups.sort("group", "level").group_by("group", maintain_order=True).agg("text")["text"].to_list()
    assert [[corpus.texts[i] for i in rows] for rows in corpus.select_groups("train")] == expected
    assert corpus.select_groups("test") == []


def test_another_training_part(pairs: pl.DataFrame) -> None:
    """A training part with other rows and negatives is numbered by the same texts; validation and test stay whole."""
    corpus = make_corpus(pairs)
    train = pairs.filter(pl.col("split") == "train")
    other = train.head(6).with_columns(negative=train["explicit"][6:12])
    changed = corpus.replace_train(other)
    assert changed.texts is corpus.texts
    for side, text in enumerate(SIDES):
        assert [corpus.texts[i] for i in changed.select_triples("train")[:, side]] == other[text].to_list()
    for split in ("validation", "test"):
        assert torch.equal(changed.select_triples(split), corpus.select_triples(split))
    assert corpus.replace_train(train.clear()).select_triples("train").shape == (0, 3)
