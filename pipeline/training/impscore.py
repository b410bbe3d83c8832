"""Fitting ImpScore on cached embeddings (section 5.1).

The released code encodes every sentence at every step without gradient; as the encoder is frozen (errata E1),
encoding each once gives the same numbers with a fifty-seventh of the encodes.
"""

import logging
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl
import torch

from pipeline.metrics.implicitness import implicitness_accuracy, longer_is_implicit, pragmatics_accuracy
from pipeline.models.encoder import Encoder, encode
from pipeline.models.impscore import (
    ALPHA,
    FEATURES,
    GAMMA_IMPLICITNESS,
    GAMMA_PRAGMATICS,
    ImpScore,
    loss,
    pragmatic_distance,
)

log = logging.getLogger(__name__)

_SIDES = ("implicit", "explicit", "negative")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """The numbers of section 5.1; seed from the released code."""

    features: int = FEATURES
    gamma_implicitness: float = GAMMA_IMPLICITNESS
    gamma_pragmatics: float = GAMMA_PRAGMATICS
    alpha: float = ALPHA
    learning_rate: float = 0.01
    weight_decay: float = 0.0  # the released code has 1e-3 (errata E3)
    batch: int = 8192
    epochs: int = 30
    seed: int = 42


@dataclass(slots=True)
class Fitted:
    """A trained model, its recipe, and rows of `evaluations` without their keys."""

    model: ImpScore
    recipe: dict[str, Any]
    evaluations: pl.DataFrame


def fit(
    pairs: pl.DataFrame, encoder: Encoder, recipe: Recipe | None = None, done: Callable[[int], None] = lambda _: None
) -> Fitted:
    """Train on the `train` split, keep the epoch best on `validation`, measure all splits.

    Args:
        pairs: rows of the table `pairs`.
        encoder: a loaded encoder.
        recipe: hyperparameters.
        done: told how many sentences each batch encoded.
    """
    recipe = recipe or Recipe()
    vectors = {s: torch.from_numpy(encode(encoder, pairs[s].to_list(), done)) for s in _SIDES}
    rows = {
        name: torch.from_numpy(np.flatnonzero((pairs["split"] == name).to_numpy())) for name in ("train", "validation")
    }
    generator = torch.Generator().manual_seed(recipe.seed)
    model = ImpScore(encoder.dim, recipe.features, generator)
    optimiser = torch.optim.Adam(model.parameters(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay)
    chosen = rows["validation"] if len(rows["validation"]) else rows["train"]
    best, best_at, state, history = -1.0, 0, model.state_dict(), []
    for epoch in range(1, recipe.epochs + 1):
        order = rows["train"][torch.randperm(len(rows["train"]), generator=generator)]
        for batch in torch.split(order, recipe.batch):
            s1, s2, s3 = (model(vectors[s][batch]) for s in _SIDES)
            optimiser.zero_grad()
            loss(s1, s2, s3, recipe.gamma_implicitness, recipe.gamma_pragmatics, recipe.alpha).backward()  # type: ignore[no-untyped-call]
            optimiser.step()
        accuracy = _measure(model, {s: v[chosen] for s, v in vectors.items()})["implicitness_accuracy"]
        history.append(("implicitness_accuracy", "validation", "all", epoch, accuracy, None, None, len(chosen)))
        log.info("epoch %d of %d: validation implicitness accuracy %.4f", epoch, recipe.epochs, accuracy)
        if accuracy > best:
            best, best_at, state = accuracy, epoch, {k: v.clone() for k, v in model.state_dict().items()}
    model.load_state_dict(state)
    return Fitted(model.eval(), {**asdict(recipe), "best_epoch": best_at}, _evaluate(model, pairs, vectors, history))


def _measure(model: ImpScore, vectors: dict[str, torch.Tensor]) -> dict[str, float]:
    """The two accuracies, and the means of figure 3, of triples."""
    with torch.inference_mode():
        s1, s2, s3 = (model(vectors[s]) for s in _SIDES)
        i1, i2, i3 = (s.implicitness.numpy() for s in (s1, s2, s3))
        near, far = pragmatic_distance(s1, s2).numpy(), pragmatic_distance(s1, s3).numpy()
    return {
        "implicitness_accuracy": implicitness_accuracy(np.r_[i1, i1], np.r_[i2, i3]),
        "pragmatics_accuracy": pragmatics_accuracy(near, far),
        "implicitness_of_implicit": float(i1.mean()),
        "implicitness_of_explicit": float(np.r_[i2, i3].mean()),
        "pragmatic_distance_positive": float(near.mean()),
        "pragmatic_distance_negative": float(far.mean()),
    }


def _evaluate(
    model: ImpScore, pairs: pl.DataFrame, vectors: dict[str, torch.Tensor], history: list[Any]
) -> pl.DataFrame:
    """Every metric by split and source, with the length baseline beside the implicitness accuracy."""
    rows = list(history)
    indexed = pairs.with_row_index("_i")
    for split in ("train", "validation", "test"):
        of_split = indexed.filter(pl.col("split") == split)
        subsets = {"all": of_split} | {
            key[0]: part for key, part in of_split.partition_by("source", as_dict=True).items()
        }
        for subset, part in subsets.items():
            if not part.height:
                continue
            at = torch.from_numpy(part["_i"].to_numpy().astype(np.int64))
            baseline = longer_is_implicit(
                [*part["implicit"], *part["implicit"]], [*part["explicit"], *part["negative"]]
            )
            for metric, value in _measure(model, {s: v[at] for s, v in vectors.items()}).items():
                beside = (baseline, "longer_is_implicit") if metric == "implicitness_accuracy" else (None, None)
                rows.append((metric, split, subset, 0, value, *beside, part.height))
    columns = {"metric": pl.String, "split": pl.String, "subset": pl.String, "epoch": pl.Int64, "value": pl.Float64,
               "baseline": pl.Float64, "baseline_name": pl.String, "pair_count": pl.Int64}  # fmt: skip
    return pl.DataFrame(rows, schema=columns, orient="row").with_columns(pl.col("value", "baseline").round(6))
