"""Fitting ImpScore: it learns, it repeats to the bit, it keeps the best epoch."""

import logging
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch

from pipeline.examples import pairs as examples
from pipeline.llm import cassette
from pipeline.models.encoder import Encoder, encode, load
from pipeline.models.impscore import ImpScore
from pipeline.sample import COMPLETIONS
from pipeline.score.implicitness import implicitness, model_from
from pipeline.training import impscore, registry
from pipeline.training.impscore import Fitted, Recipe, fit


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    """The encoder that is shipped as a package."""
    return load()


@pytest.fixture(scope="module")
def pairs() -> pl.DataFrame:
    """32 triples of the sample, half of each language, 24 of them to train on and 4 each to validate and test."""
    rows = examples.build(cassette.read(COMPLETIONS))[0]
    some = pl.concat([rows.filter(pl.col("lang") == lang).head(16) for lang in ("en", "zh")])
    return examples.with_split(some, (0.75, 0.125, 0.125)).sort("pair_id")


@pytest.fixture(scope="module")
def fitted(pairs: pl.DataFrame, encoder: Encoder) -> Fitted:
    """What 30 epochs in batches of 10 come to."""
    return fit(pairs, encoder, Recipe(batch=10))


def value(found: Fitted, metric: str, split: str, subset: str = "all", epoch: int = 0) -> float:
    """One number of the evaluations."""
    keys = {"metric": metric, "split": split, "subset": subset, "epoch": epoch}
    return found.evaluations.row(by_predicate=pl.all_horizontal(pl.col(k) == v for k, v in keys.items()), named=True)[
        "value"
    ]


def test_recipe_is_the_papers() -> None:
    """Adam at 0.01, batches of 2^13, 30 epochs (IMP-23); margins and alpha (IMP-24); l and seed of the code (E3)."""
    recipe = Recipe()
    assert (recipe.learning_rate, recipe.batch, recipe.epochs) == (0.01, 2**13, 30)
    assert (recipe.gamma_implicitness, recipe.gamma_pragmatics, recipe.alpha) == (0.5, 0.7, 1.0)
    assert (recipe.features, recipe.seed, recipe.weight_decay) == (64, 42, 0.0)


def test_overfits_32_triples_and_reloads(pairs: pl.DataFrame, encoder: Encoder, tmp_path: Path) -> None:
    """32 triples are learnt by heart; saved and reloaded, the model gives the same scores."""
    found = fit(pairs.with_columns(split=pl.lit("train")), encoder, Recipe(epochs=60))
    assert value(found, "implicitness_accuracy", "train") == 1.0
    near, far = (value(found, f"pragmatic_distance_{sign}", "train") for sign in ("positive", "negative"))
    assert near < far
    assert value(found, "pragmatics_accuracy", "train") > 0.8  # the epoch is chosen by the other accuracy
    config = {"encoder": encoder.name, "encoder_revision": encoder.revision, "recipe": found.recipe}
    model_id = registry.keep(tmp_path, found.model.state_dict(), config)
    reloaded = model_from(*registry.fetch(tmp_path, model_id), encoder)
    texts = pairs["implicit"].to_list()
    assert np.array_equal(implicitness(texts, encoder, reloaded), implicitness(texts, encoder, found.model))


def test_two_trainings_are_equal_to_the_bit(pairs: pl.DataFrame, encoder: Encoder, fitted: Fitted) -> None:
    """The same pairs and recipe give the same weights and numbers; another seed gives others."""
    again = fit(pairs, encoder, Recipe(batch=10))
    for name, weights in fitted.model.state_dict().items():
        assert torch.equal(weights, again.model.state_dict()[name])
    assert again.evaluations.equals(fitted.evaluations)
    assert again.recipe == fitted.recipe
    other = fit(pairs, encoder, Recipe(batch=10, seed=43, epochs=1))
    assert not torch.equal(other.model.semantic, fitted.model.semantic)


@pytest.mark.parametrize(("batch", "expected"), [(8192, 30), (24, 30), (10, 90), (1, 720)])
def test_updates(
    pairs: pl.DataFrame, encoder: Encoder, monkeypatch: pytest.MonkeyPatch, batch: int, expected: int
) -> None:
    """30 epochs of 24 triples make 30 x ceil(24 / batch) updates, as 30 x ceil(45,032 / 8,192) = 180 (IMP-23)."""
    steps: list[int] = []
    step = torch.optim.Adam.step

    def counted(self: torch.optim.Adam, *args: Any, **kwargs: Any) -> Any:
        steps.append(1)
        return step(self, *args, **kwargs)

    monkeypatch.setattr(torch.optim.Adam, "step", counted)
    fit(pairs, encoder, Recipe(batch=batch))
    assert len(steps) == expected


def test_best_epoch_is_kept(fitted: Fitted, pairs: pl.DataFrame, encoder: Encoder) -> None:
    """The model is that of the first epoch with the best validation accuracy (IMP-23), not that of the last."""
    history = fitted.evaluations.filter(pl.col("epoch") > 0).sort("epoch")
    assert history["epoch"].to_list() == list(range(1, 31))
    best = int(history["value"].arg_max() or 0) + 1
    assert fitted.recipe["best_epoch"] == best
    assert value(fitted, "implicitness_accuracy", "validation") == history["value"].max()
    stopped = fit(pairs, encoder, Recipe(batch=10, epochs=best))
    assert torch.equal(stopped.model.transform, fitted.model.transform)


def test_an_epoch_that_gets_worse_is_not_kept(
    pairs: pl.DataFrame, encoder: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of validation accuracies .2, .9, .4, .9 the second epoch is kept: the first best, and its weights."""
    seen: list[torch.Tensor] = []
    measure = impscore._measure

    def canned(model: ImpScore, vectors: dict[str, torch.Tensor]) -> dict[str, float]:
        seen.append(model.semantic.detach().clone())
        found = measure(model, vectors)
        return found | {"implicitness_accuracy": [0.2, 0.9, 0.4, 0.9][len(seen) - 1]} if len(seen) <= 4 else found

    monkeypatch.setattr(impscore, "_measure", canned)
    found = fit(pairs, encoder, Recipe(batch=10, epochs=4))
    assert found.recipe["best_epoch"] == 2
    assert torch.equal(found.model.semantic, seen[1])
    assert not torch.equal(seen[1], seen[3])


def test_evaluations_by_split_and_source(fitted: Fitted, pairs: pl.DataFrame) -> None:
    """Every split is measured whole and by source, on its own pairs; beside the accuracy stands the length baseline."""
    final = fitted.evaluations.filter(pl.col("epoch") == 0)
    subsets = final.group_by("split").agg(pl.col("subset").unique().sort()).rows()
    assert sorted(subsets) == [(s, ["all", "sample_en", "sample_zh"]) for s in ("test", "train", "validation")]
    counted = final.filter(pl.col("subset") == "all").select("split", "pair_count").unique().sort("split").rows()
    assert counted == [("test", 4), ("train", 24), ("validation", 4)]
    assert final.filter(pl.col("baseline").is_not_null())["metric"].unique().to_list() == ["implicitness_accuracy"]
    train = pairs.filter(pl.col("split") == "train")
    longer = [len(r["implicit"]) > len(r[s]) for r in train.iter_rows(named=True) for s in ("explicit", "negative")]
    row = final.row(by_predicate=(pl.col("metric") == "implicitness_accuracy") & (pl.col("split") == "train")
                    & (pl.col("subset") == "all"), named=True)  # fmt: skip
    assert row["baseline"] == pytest.approx(np.mean(longer), abs=1e-6)


def test_numbers_agree_with_a_second_computation(fitted: Fitted, pairs: pl.DataFrame, encoder: Encoder) -> None:
    """Accuracies over the test split, computed from the scores one by one, are those recorded (IMP-25, IMP-26)."""
    test = pairs.filter(pl.col("split") == "test")
    one, two, three = (
        fitted.model(torch.from_numpy(encode(encoder, test[side].to_list())))
        for side in ("implicit", "explicit", "negative")
    )
    right = [bool(one.implicitness[i] > s.implicitness[i]) for s in (two, three) for i in range(test.height)]
    near, far = ((one.pragmatic - s.pragmatic).norm(dim=1) for s in (two, three))
    assert value(fitted, "implicitness_accuracy", "test") == pytest.approx(np.mean(right), abs=1e-6)
    assert value(fitted, "pragmatics_accuracy", "test") == pytest.approx((near < far).float().mean().item(), abs=1e-6)
    assert value(fitted, "pragmatic_distance_negative", "test") == pytest.approx(far.mean().item(), abs=1e-5)


def test_progress_is_told(pairs: pl.DataFrame, encoder: Encoder, caplog: pytest.LogCaptureFixture) -> None:
    """Every sentence of every side is counted, and each epoch leaves a line in the log."""
    told: list[int] = []
    with caplog.at_level(logging.INFO, logger=impscore.__name__):
        fit(pairs, encoder, Recipe(epochs=2), told.append)
    assert sum(told) == 3 * len(pairs)
    assert [r.message[:12] for r in caplog.records if r.name == impscore.__name__] == ["epoch 1 of 2", "epoch 2 of 2"]
