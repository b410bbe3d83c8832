"""Training of the quality scorer on graded comments, or on their likes (commenting, section 6; AAC-34).

    L(w) = (1 - ρ) mean_i l(s_i, z_i) + ρ mean_ij log(1 + e^(s_j - s_i)) + λ |w|² / 2

Grades: z is in [0, 1] between the least and the largest, l(s, z) = log(1 + e^s) - z s. Likes: z is log(1 + likes) with
mean 0 and deviation 1, l(s, z) = (s - z)² / 2. (i, j) are two comments of one article of which i has the higher target.
λ has the least loss, but for its own term, on the validation part, as have the a > 0 and b of the score a s + b.
"""

import logging
import math
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl
import torch

from pipeline.errors import BadInput
from pipeline.models.commenting import quality as models
from pipeline.models.commenting.quality import Design, Features, Floats, Scale, scale_features
from pipeline.models.encoder import Encoder, IndexArray, describe_encoder, encode
from pipeline.models.vectors import load_or_encode
from pipeline.training import loop
from pipeline.training.loop import TrainingResult

log = logging.getLogger(__name__)
PENALTIES = tuple(10 ** (-step / 2) for step in range(1, 11))  # λ, from strong to weak
_ENOUGH = 20  # comments that a part has at least for the scale of scores to be read off it
_RANK = {"regression": 0.0, "ranking": 1.0, "both": 0.5}  # ρ


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """The numbers of a training."""

    target: Literal["grade", "upvotes"] = "grade"  # upvotes are learnt as log(1 + likes)
    objective: Literal["regression", "ranking", "both"] = "regression"
    characters: int = 3  # of the longest n-gram of characters; 0: none
    words: int = 2  # of the longest n-gram of words; 0: none
    buckets: int = 65_536  # that the n-grams of a kind are hashed into
    least: int = 2  # comments that an n-gram stands in
    tokenizer: Literal["jieba", "rjieba", "nltk"] = "jieba"
    has_surface: bool = True
    has_embedding: bool = True  # where an encoder is given
    has_relation: bool = True  # where there is an article
    most: int = 50_000  # comments of a part; of more, so many are drawn at random
    pairs: int = 10  # partners drawn for each comment from its article, where order is learnt
    penalty: float = 0.001  # λ where no validation part chooses it
    seed: int = 42


PROFILES = {"undertone": Recipe(), "upvotes": Recipe(target="upvotes", objective="ranking")}
"""Ours, as the paper has none: for grades, and for likes.

Chosen on C3 (12,000 comments, five folds by article), where the three objectives do alike (Pearson 0.932, 0.932, 0.932;
pairs of one length 0.616, 0.609, 0.616), and regression needs no articles; and on likes of Bilibili (16,000, three
splits), which the few comments of very many likes keep a regression from learning.
"""

make_recipe = partial(loop.replace_numbers, PROFILES, from_zero={"characters", "words"}, above_zero={"penalty"})


def fit(
    rows: pl.DataFrame, recipe: Recipe, encoder: Encoder | None = None, state: Path | None = None
) -> TrainingResult:
    """Train on the split `train`; the split `validation`, if there is one, chooses how much is learnt.

    Rows have text, article_id (null: of no article that others are of), target (grades or likes; null in other parts),
    split; title and content where the article is known. Without an encoder there are no embeddings; `state` is a folder
    that stores them for another training. The same rows, recipe and encoder give the same scorer on one machine.
    The history has penalty, train_loss and validation_loss (null without a validation part). BadInput if a column is
    missing, a row has no text or no number as its target, likes are below 0, or there is nothing to learn from.
    """
    parts = _split_rows(rows, recipe)
    has_article = bool(models.mark_articles(rows).any())
    if recipe.has_relation and not has_article:
        log.info("no comment has an article: the scorer looks at comments alone")
    encoder = encoder if recipe.has_embedding else None
    sizes = (recipe.characters, recipe.words, recipe.buckets, recipe.tokenizer)
    dim = encoder.dim if encoder else 0
    design = Design(*sizes, recipe.has_surface, recipe.has_relation and has_article, dim)
    if not design.grams() and not design.families():
        raise BadInput("the recipe leaves no features to learn from; expected n-grams, surface, embedding or relation")
    encode_texts = partial(load_or_encode, state) if state else encode
    embed = partial(encode_texts, encoder) if encoder else None
    features = {name: models.make_features(part, design, embed) for name, part in parts.items()}
    scale = models.measure_scale(features["train"])
    data = {name: _Data(features[name], parts[name], scale, design, recipe) for name in parts}
    return _train(data, scale, design, recipe, encoder)


def _split_rows(rows: pl.DataFrame, recipe: Recipe) -> dict[str, pl.DataFrame]:
    """Select the training and validation rows with their target as it is learnt."""
    if absent := sorted({"text", "article_id", "target", "split"} - set(rows.columns)):
        raise BadInput(f"expected columns text, article_id, target and split; missing {', '.join(absent)}")
    is_learnt = rows["split"].is_in(["train", "validation"])
    used_rows, numbers = rows.filter(is_learnt), (is_learnt.arg_true() + 1)
    models.check_comments(used_rows, numbers)
    is_likes = recipe.target == "upvotes"
    value = pl.col("target").cast(pl.Float64)
    is_valid = value.is_finite() & (value >= (0 if is_likes else -math.inf))
    if len(invalid := used_rows.select(~is_valid.fill_null(value=False)).to_series().arg_true()):
        target, expected = used_rows["target"][invalid[0]], "likes, 0 or more" if is_likes else "a number"
        raise BadInput(f"row {numbers[invalid[0]]}: field 'target' is {target!r}; expected {expected}")
    used_rows = used_rows.with_columns(target=value.log1p() if is_likes else value)
    parts = {name: used_rows.filter(pl.col("split") == name) for name in ("train", "validation")}
    if parts["train"]["target"].n_unique() < 2:
        raise BadInput(f"{parts['train'].height} comments to train on have fewer than two targets; nothing is learnt")
    for name, part in parts.items():
        if part.height > recipe.most:
            log.info("%d of %d comments of the %s part are drawn", recipe.most, part.height, name)
            order = np.random.default_rng(recipe.seed).permutation(part.height)[: recipe.most]
            parts[name] = part[np.sort(order)]
    return {name: part for name, part in parts.items() if part.height}


class _Data:  # a part as the optimiser sees it
    def __init__(self, features: Features, rows: pl.DataFrame, scale: Scale, design: Design, recipe: Recipe) -> None:
        self.grams, self.numbers = scale_features(features, scale, design)
        self.target = rows["target"].to_numpy()
        self.is_grade = recipe.target == "grade"
        self.better, self.worse = _draw_pairs(rows, recipe)

    def measure_unit(self) -> tuple[float, float]:
        """Return the target that is learnt as 0, and how far above it the one is that is learnt as 1."""
        if self.is_grade:
            return float(self.target.min()), float(np.ptp(self.target))
        return float(self.target.mean()), float(self.target.std())

    def scale_target(self, train: "_Data") -> Floats:
        """Scale the target as the training part's; no grade is outside of that part's."""
        origin, size = train.measure_unit()
        scaled: Floats = (self.target - origin) / size
        return scaled.clip(0, 1) if self.is_grade else scaled

    def compute_scores(self, weights: Floats) -> Floats:
        """Compute scores [n] by weights of n-grams, of numbers and the bias in one row."""
        width = self.grams.shape[1]
        scores: Floats = self.grams @ weights[:width] + self.numbers @ weights[width:-1] + weights[-1]
        return scores

    def gradient(self, slopes: Floats) -> Floats:
        """Convert slopes by the scores [n] to slopes by the weights."""
        return np.concatenate([self.grams.T @ slopes, self.numbers.T @ slopes, [slopes.sum()]])

    def loss(self, scores: Floats, target: Floats, rank: float) -> tuple[float, Floats]:
        """Compute the loss without its penalty, and its slopes by the scores [n]."""
        from scipy.special import expit

        count = len(target)
        if self.is_grade:
            value, slopes = float(np.mean(np.logaddexp(0, scores) - target * scores)), expit(scores) - target
        else:
            value, slopes = float(np.mean((scores - target) ** 2)) / 2, scores - target
        value, slopes = (1 - rank) * value, (1 - rank) * slopes / count
        if rank and len(self.better):
            differences = scores[self.worse] - scores[self.better]
            value += rank * float(np.logaddexp(0, differences).mean())
            push = rank * expit(differences) / len(differences)
            slopes += np.bincount(self.worse, push, count) - np.bincount(self.better, push, count)
        return value, slopes


def _draw_pairs(rows: pl.DataFrame, recipe: Recipe) -> tuple[IndexArray, IndexArray]:
    """Pair rows of one article, the first with the higher target: each comment meets some drawn at random."""
    if not _RANK[recipe.objective]:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    rated = rows.select("article_id", "target").with_row_index("row").drop_nulls("article_id").sort("article_id", "row")
    row_ids, target = rated["row"].to_numpy().astype(np.int64), rated["target"].to_numpy()
    articles = rated["article_id"].rank("dense").to_numpy()
    _, start, group, size = np.unique(articles, return_index=True, return_inverse=True, return_counts=True)
    random_values = np.random.default_rng(recipe.seed).random((len(row_ids), recipe.pairs))
    second = (start[group][:, None] + (random_values * size[group][:, None]).astype(np.int64)).ravel()
    first = np.repeat(np.arange(len(row_ids)), recipe.pairs)
    differs = target[first] != target[second]
    first, second = first[differs], second[differs]
    is_better = target[first] > target[second]
    return row_ids[np.where(is_better, first, second)], row_ids[np.where(is_better, second, first)]


def _train(
    data: dict[str, _Data], scale: Scale, design: Design, recipe: Recipe, encoder: Encoder | None
) -> TrainingResult:
    train = data["train"]
    if _RANK[recipe.objective] and not len(train.better):
        problem = f"no article has two comments of different {recipe.target}: their order cannot be learnt"
        raise BadInput(f"{problem}; give article_id, or learn by objective regression")
    weights, penalty, history = _choose_penalty(data, recipe)
    evaluation = data.get("validation", train)
    evaluation = evaluation if len(evaluation.target) >= _ENOUGH and np.ptp(evaluation.target) else train
    origin, size = (0.0, 1.0) if recipe.target == "grade" else train.measure_unit()
    slope, offset = 1.0, 0.0
    if evaluation is not train or recipe.objective == "ranking":  # what is regressed is in place in its own part
        slope, offset = _fit_line(evaluation, evaluation.compute_scores(weights), evaluation.scale_target(train))
    weights = weights * slope * size
    weights[-1] += offset * size + origin
    kinds, families = design.grams(), design.families()
    *grams, numbers = np.split(weights[:-1], design.buckets * np.arange(1, len(kinds) + 1))
    tensors = {"weights.numbers": numbers, "mean": scale.mean, "spread": scale.spread}
    tensors |= {f"rarity.{kind}": rarity for kind, rarity in zip(kinds, scale.rarity, strict=True)}
    tensors |= {f"weights.{kind}": values for kind, values in zip(kinds, grams, strict=True)}
    features = {f"ngrams of {kind}": design.buckets for kind in kinds} | {
        family: len(names) if family == "embedding" else names for family, names in families.items()
    }
    config = {
        **asdict(recipe), **design._asdict(), "kind": models.KINDS[recipe.target],
        "unit": "grade" if recipe.target == "grade" else "log(1 + likes)", "low": float(train.target.min()),
        "high": float(train.target.max()), "bias": float(weights[-1]), "penalty": penalty, "features": features,
        "row_counts": {name: len(part.target) for name, part in data.items()}, **describe_encoder(encoder),
        "encoder_pooling": encoder.pooling if encoder else None,
    }  # fmt: skip
    arrays = {name: torch.from_numpy(np.asarray(value, np.float32)) for name, value in tensors.items()}
    return TrainingResult(arrays, config, history)


def _choose_penalty(data: dict[str, _Data], recipe: Recipe) -> tuple[Floats, float, pl.DataFrame]:
    """Return the weights under the best penalty, it, and the losses under each. Each starts where the last ended."""
    train, rank = data["train"], _RANK[recipe.objective]
    targets = {name: part.scale_target(train) for name, part in data.items()}
    is_common = np.ones(train.grams.shape[1] + train.numbers.shape[1] + 1, bool)
    is_common[: train.grams.shape[1]] = train.grams.getnnz(axis=0) >= recipe.least
    weights, best, results = np.zeros(len(is_common)), None, []
    can_choose = "validation" in data and (rank < 1 or len(data["validation"].better) > 0)
    for penalty in PENALTIES if can_choose else (recipe.penalty,):
        weights = _minimise(train, targets["train"], rank, penalty, weights, is_common)
        losses = {name: part.loss(part.compute_scores(weights), targets[name], rank)[0] for name, part in data.items()}
        results.append((penalty, losses["train"], losses.get("validation")))
        log.info("penalty %.2g: loss %.4f of training, %s of validation", *results[-1])
        if best is None or losses["validation"] < best[0]:
            best = (losses.get("validation", math.inf), weights, penalty)
        elif penalty < best[2] / 150:
            break  # likes have a long tail, so that the loss may rise for a while; and what is weak takes long
    assert best is not None
    schema = dict.fromkeys(("penalty", *loop.LOSSES.columns), pl.Float64)
    return best[1], best[2], pl.DataFrame(results, schema=schema, orient="row")


def _minimise(
    train: _Data, target: Floats, rank: float, penalty: float, start: Floats, is_common: npt.NDArray[np.bool_]
) -> Floats:
    """Find the weights of least loss; those of rare n-grams stay 0."""
    from scipy.optimize import minimize

    def objective(weights: Floats) -> tuple[float, Floats]:
        all_weights = np.zeros(len(is_common))
        all_weights[is_common] = weights
        value, slopes = train.loss(train.compute_scores(all_weights), target, rank)
        decay = np.append(weights[:-1], 0.0) * penalty  # the bias is free
        return value + float(decay @ weights) / 2, train.gradient(slopes)[is_common] + decay

    options = {"maxiter": 300, "ftol": 1e-7}
    solution = minimize(objective, start[is_common], jac=True, method="L-BFGS-B", options=options)
    all_weights = np.zeros(len(is_common))
    all_weights[is_common] = solution.x
    return all_weights


def _fit_line(part: _Data, scores: Floats, target: Floats) -> tuple[float, float]:
    """Find slope and offset of least loss between scores and target; the slope rises."""
    from scipy.optimize import minimize

    def objective(line: Floats) -> tuple[float, Floats]:
        value, slopes = part.loss(line[0] * scores + line[1], target, 0.0)
        return value, np.array([slopes @ scores, slopes.sum()])

    solution = minimize(objective, [1.0, 0.0], jac=True, method="L-BFGS-B", bounds=[(1e-3, 1e3), (None, None)])
    return float(solution.x[0]), float(solution.x[1])
