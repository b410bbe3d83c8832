"""One head: what is fitted is what is measured, stored and loaded again."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from pipeline.examples.impscore.pairs import balance_lengths
from pipeline.models.encoder import Encoder, encode
from pipeline.score import implicitness as scoring
from pipeline.training import registry
from pipeline.training.impscore import fit as impscore
from pipeline.training.impscore import heads
from pipeline.training.impscore.fit import Corpus, Recipe

SMALL: dict[str, Any] = {"batch": 10, "epochs": 3, "pooling": "layers"}


@pytest.fixture
def corpora(monkeypatch: pytest.MonkeyPatch) -> list[Corpus]:
    """Grows with every corpus that a model is fitted on."""
    fitted: list[Corpus] = []
    fit = impscore.fit
    monkeypatch.setattr(impscore, "fit", lambda corpus, *rest: fitted.append(corpus) or fit(corpus, *rest))
    return fitted


def scores_again(head: heads.Head, encoder: Encoder, folder: Path, texts: list[str]) -> np.ndarray:
    """Scores by the head after it was kept in a registry and read again."""
    tensors = {f"any.{name}": value for name, value in head.tensors.items()}
    model_id = registry.add(folder, tensors, {"kind": "impscore", "heads": {"any": head.config}})
    model = registry.fetch(folder, model_id)
    loaded = scoring.load_heads(model.tensors(), model.config, lambda _: encoder)
    return scoring.implicitness(texts, loaded["any"])


@pytest.mark.parametrize("tune", ["none", "adapter", "full"])
def test_reloaded_it_gives_the_same_scores(
    pairs: pl.DataFrame, groups: pl.DataFrame, encoder: Encoder, tmp_path: Path, tune: str
) -> None:
    """Kept and read again, a head scores every text as it did when it was fitted, its trained encoder with it."""
    recipe = Recipe(**SMALL, tune=tune, tune_batch=16, tune_rate=1e-3, group_sharpness=8.0)
    head = heads.fit(pairs, groups, recipe, encoder, tmp_path / "embeddings")
    scores = scores_again(head, encoder, tmp_path, pairs["implicit"].to_list())
    assert scores == pytest.approx(head.triples["i1"].to_list(), abs=2e-6)  # a batch moves 2e-7, and the last digit
    graded = scores_again(head, encoder, tmp_path, groups["text"].to_list())
    assert graded == pytest.approx(head.graded["value"].to_list(), abs=2e-6)
    assert head.graded["pragmatic"].to_numpy().shape == (50, 64)
    assert head.config["encoder_revision"] == encoder.revision
    assert 1 <= head.config["recipe"]["best_epoch"] <= head.config["recipe"]["epochs"] == head.history.height == 3


@pytest.mark.parametrize(
    "design",
    [{"space": "third"}, {"space": "s2p", "pragmatics": "cosine"}, {"hidden": 8, "dropout": 0.5}],
    ids=["third", "s2p-cosine", "deep"],
)
def test_variants_are_reloaded_as_they_are(
    pairs: pl.DataFrame, encoder: Encoder, tmp_path: Path, design: dict[str, Any]
) -> None:
    """The variant is in the recipe, so that a model of another space, metric or depth comes back as it was."""
    head = heads.fit(pairs, None, Recipe(**SMALL, **design), encoder, tmp_path / "embeddings")
    scores = scores_again(head, encoder, tmp_path, pairs["implicit"].to_list())
    assert scores == pytest.approx(head.triples["i1"].to_list(), abs=2e-6)


def test_numbers_agree_with_a_second_computation(pairs: pl.DataFrame, encoder: Encoder, tmp_path: Path) -> None:
    """What a head says of each pair is what equations 2 to 6 give from its matrices, one by one."""
    head = heads.fit(pairs, None, Recipe(**SMALL), encoder, tmp_path)
    w = {name: value.numpy() for name, value in head.tensors.items()}
    e = {side: encode(encoder, pairs[side].to_list()) for side in ("implicit", "explicit", "negative")}

    def implicitness(rows: np.ndarray) -> np.ndarray:
        semantic, transformed = rows @ w["semantic"], rows @ w["pragmatic"] @ w["transform"]
        lengths = np.linalg.norm(semantic, axis=1) * np.linalg.norm(transformed, axis=1)
        return 1 - (semantic * transformed).sum(1) / lengths

    for name, side in (("i1", "implicit"), ("i2", "explicit"), ("i3", "negative")):
        assert head.triples[name].to_numpy() == pytest.approx(implicitness(e[side]), abs=1e-5)
    for name, side in (("near", "explicit"), ("far", "negative")):
        expected = np.linalg.norm((e["implicit"] - e[side]) @ w["pragmatic"], axis=1)
        assert head.triples[name].to_numpy() == pytest.approx(expected, abs=1e-5)
    assert head.triples.select("pair_id", "source", "split").equals(pairs.select("pair_id", "source", "split"))


def test_balanced_pairs_are_learnt_from_and_all_are_measured(
    pairs: pl.DataFrame, encoder: Encoder, tmp_path: Path, corpora: list[Corpus]
) -> None:
    """Of the pairs to train on only length-matched ones are seen, but every pair has its numbers."""
    head = heads.fit(pairs, None, Recipe(**SMALL, is_balanced=True), encoder, tmp_path)
    balanced = balance_lengths(pairs.filter(pl.col("split") == "train"), 42)
    assert len(corpora[0].select_triples("train")) == balanced.height < 24
    assert head.triples.height == 32


def test_hard_negatives_are_learnt_from_and_those_given_are_measured(
    pairs: pl.DataFrame, encoder: Encoder, tmp_path: Path, corpora: list[Corpus]
) -> None:
    """Foreign sentences to learn from are nearer to the own explicit one than those given, which are measured."""
    head = heads.fit(pairs, None, Recipe(**SMALL, has_hard_negatives=True), encoder, tmp_path)
    plain = heads.fit(pairs, None, Recipe(**SMALL), encoder, tmp_path)
    hard, plain_pairs = (corpus.pairs.filter(pl.col("split") == "train").sort("pair_id") for corpus in corpora)
    assert hard.drop("negative").equals(plain_pairs.drop("negative"))
    assert (hard["negative"] != hard["explicit"]).all()
    columns = (plain_pairs["explicit"], hard["negative"], plain_pairs["negative"])
    explicit, *foreign = (encode(encoder, texts.to_list()) for texts in columns)
    nearer, further = (np.einsum("nd,nd->n", explicit, other).mean() for other in foreign)
    assert nearer > further + 0.05
    assert head.triples["near"].len() == 32
    assert not head.triples["far"].equals(plain.triples["far"])
    assert corpora[0].pairs.filter(pl.col("split") != "train").equals(pairs.filter(pl.col("split") != "train"))
