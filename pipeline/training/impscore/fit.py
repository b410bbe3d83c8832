"""Fitting ImpScore (section 5.1), on cached embeddings or through the encoder.

The released code encodes every sentence at every step; as its encoder is frozen, once gives the same. Equation 9 lists
the encoder's weights among the trained ones (errata E1): then all are (`full`), or low-rank changes of its matrices
(`adapter`: W + B A, rank 8), which are small enough to ship.
"""

import copy
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import polars as pl
import torch
from torch import Tensor, nn

from pipeline.errors import BadInput
from pipeline.metrics.resample import Floats
from pipeline.models import impscore
from pipeline.models.adapter import adapt
from pipeline.models.encoder import Encoder, Normalize, Vectors, embed_batch, encode, limit_rows, make_features
from pipeline.models.impscore import Design, ImpScore, Meaning, Metric, Readout, Space, pragmatic_distance
from pipeline.training import loop


class Frozen:
    """Embeddings of texts in an array [n, d], which may be mapped from a file; nothing of the encoder is trained."""

    device = "cpu"
    trained: ClassVar[dict[str, nn.Parameter]] = {}  # weights of the encoder by name

    def __init__(self, vectors: Vectors, last: int | None = None) -> None:
        """Take the embeddings; `last` features of them, by default all, are those of the encoder's last layer."""
        self.vectors, self.dim, self.last = vectors, vectors.shape[1], last or vectors.shape[1]

    def __call__(self, rows: Tensor) -> Tensor:
        """Return embeddings [len(rows), dim], with gradient if the encoder is trained."""
        return torch.from_numpy(self.vectors[rows.numpy()])

    def training(self, mode: bool) -> None:
        """Switch dropout on or off."""


class Tuned:
    """Embeddings through a copy of an encoder, which is trained; its methods are those of `Frozen`."""

    def __init__(self, encoder: Encoder, texts: Sequence[str], mode: str, generator: torch.Generator) -> None:
        """Copy the encoder and make its weights trainable; in the mode `full` all, in `adapter` those of adapters."""
        if encoder.module is None:
            raise BadInput(f"the encoder {encoder.name!r} has nothing to train; use tune=none")
        self.encoder = replace(encoder.with_module(copy.deepcopy(encoder.module)), threads=1)
        self.dim, self.last, self.device = encoder.dim, encoder.last, encoder.device
        self.texts = list(texts)
        inner: Any = self.encoder.module[0].model
        inner.requires_grad_(mode == "full")
        self.trained = dict(inner.named_parameters()) if mode == "full" else adapt(inner, generator)
        if encoder.device == "cuda":  # memory for the activations of one layer instead of all, at a third more time
            inner.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})

    def __call__(self, rows: Tensor) -> Tensor:
        texts = [self.texts[i] for i in rows.tolist()]
        if not torch.is_grad_enabled():
            return torch.from_numpy(encode(self.encoder, texts)).to(self.device)
        with torch.autocast(self.device, torch.bfloat16, enabled=self.device == "cuda"):
            return embed_batch(self.encoder, make_features(self.encoder, texts)).float()

    def training(self, mode: bool) -> None:
        self.encoder.module.train(mode)


Embedding = Frozen | Tuned
SIDES = ("implicit", "explicit", "negative")


@dataclass(frozen=True, slots=True)
class Corpus:
    """Distinct texts, and pairs and groups that refer to them by row."""

    texts: list[str]
    pairs: pl.DataFrame  # rows of `pairs`
    triples: Tensor  # [pairs, 3]: rows of implicit, explicit, negative
    groups: pl.DataFrame  # group, level, text, split
    graded: Tensor  # [sentences of groups]: their rows

    def select_triples(self, split: str) -> Tensor:
        """Select the triples of a split: [n, 3]."""
        return self.triples[torch.from_numpy((self.pairs["split"] == split).to_numpy())]

    def select_groups(self, split: str) -> list[Tensor]:
        """Select the rows of each group of a split, from its most explicit sentence to its most implicit."""
        numbered = self.groups.with_columns(row=pl.Series(self.graded.numpy())).filter(split=split)
        rows_of_groups = numbered.sort("group", "level").group_by("group", maintain_order=True).agg("row")["row"]
        return [torch.from_numpy(rows.to_numpy().copy()) for rows in rows_of_groups]

    def replace_train(self, train: pl.DataFrame) -> "Corpus":
        """Return the corpus with another training part, whose sentences are among the texts."""
        pairs = pl.concat([train, self.pairs.filter(pl.col("split") != "train")])
        row_of = {text: row for row, text in enumerate(self.texts)}
        rows = [[row_of[text] for text in texts] for texts in pairs.select(SIDES).iter_rows()]
        return replace(self, pairs=pairs, triples=torch.tensor(rows, dtype=torch.int64).reshape(-1, len(SIDES)))


def make_corpus(pairs: pl.DataFrame, groups: pl.DataFrame | None = None) -> Corpus:
    """Number the distinct texts of rows of `pairs` and, if there are any, of groups: group, level, text, split."""
    if groups is None:
        groups = pl.DataFrame(schema={"group": pl.String, "level": pl.Int64, "text": pl.String, "split": pl.String})
    texts = pl.concat([pairs[side].rename("text") for side in SIDES] + [groups["text"]])
    distinct, rows = np.unique(texts.to_numpy().astype(object), return_inverse=True)
    parts = rows[: 3 * pairs.height].reshape(3, -1).T, rows[3 * pairs.height :]
    triples, graded = (torch.from_numpy(part.copy()) for part in parts)
    return Corpus([*map(str, distinct)], pairs, triples, groups, graded)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """The numbers of section 5.1; seed and l from the released code (errata E3)."""

    features: int = impscore.FEATURES
    gamma_implicitness: float = impscore.GAMMA_IMPLICITNESS
    gamma_pragmatics: float = impscore.GAMMA_PRAGMATICS
    alpha: float = impscore.ALPHA
    implicitness: Metric = "cosine"
    pragmatics: Metric = "euclidean"
    space: Space = "p2s"
    reduction: Literal["mean", "sum"] = "mean"
    learning_rate: float = 0.01
    weight_decay: float = 0.0
    batch: int = 8192
    epochs: int = 30
    seed: int = 42
    pooling: Literal["model", "layers"] = "model"
    normalize: Normalize = "model_default"  # whether embeddings have length 1 (errata E2)
    is_balanced: bool = False  # train on pairs among which length tells nothing
    has_hard_negatives: bool = False  # train with negatives that are near to the pair's explicit sentence
    hidden: int = 0  # width of a layer before the projections; 0: none, as in the paper
    dropout: float = 0.0
    group_sharpness: float = 0.0  # of the ranking loss on graded groups; 0: no training on groups
    group_batch: int = 64  # groups a step
    tune: Literal["none", "adapter", "full"] = "none"  # which weights of the encoder are trained
    tune_rate: float = 1e-4
    tune_batch: int = 32  # triples or groups a step when the encoder is trained

    @property
    def design(self) -> Design:
        """The variant of table 2."""
        return Design(self.implicitness, self.pragmatics, self.space)


PROFILES = {  # the numbers of the paper, of the released code (errata E3), and ours, which also trains on graded groups
    "paper": Recipe(),
    "official": Recipe(weight_decay=1e-3),
    "undertone": Recipe(pooling="layers", hidden=128, dropout=0.5, learning_rate=1e-3, epochs=60, alpha=0.3,
                        group_sharpness=8.0, batch=128, group_batch=40, is_balanced=True),
}  # fmt: skip

READOUT_PENALTIES = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
"""Penalties of the squared weights of a readout; without validation texts the penalty is 10."""

make_recipe = partial(loop.replace_numbers, PROFILES, from_zero={"hidden"})


@dataclass(slots=True)
class TrainingResult:
    """A trained model, its tensors with those of a trained encoder, its recipe, and the numbers of its epochs."""

    model: ImpScore
    tensors: dict[str, Tensor]
    recipe: dict[str, Any]
    history: pl.DataFrame  # epoch, value, count


def fit(corpus: Corpus, embedding: Embedding, recipe: Recipe, state: Path | None = None) -> TrainingResult:
    """Train on the `train` split and keep the epoch with the best accuracy on `validation`.

    That accuracy is the paper's implicitness accuracy; in a training on graded groups, the pairs of their sentences
    count as well. Without a validation part, the training part decides. For `state` see `loop.run`.
    """
    generator = loop.seed_all(recipe.seed)
    options = (recipe.design, recipe.hidden, recipe.dropout, embedding.last)
    model = ImpScore(embedding.dim, recipe.features, generator, *options).to(embedding.device)
    if recipe.hidden:
        train_rows = torch.unique(torch.cat([corpus.select_triples("train").flatten(), *corpus.select_groups("train")]))
        order = torch.randperm(len(train_rows), generator=generator)[: limit_rows(embedding.dim)]
        sample = train_rows[order.sort().values]
        with torch.no_grad():
            model.initialise(embedding(sample))
    rates = ((model.parameters(), recipe.learning_rate), (embedding.trained.values(), recipe.tune_rate))
    groups = [{"params": list(parameters), "lr": rate} for parameters, rate in rates]
    optimiser = torch.optim.Adam(groups, weight_decay=recipe.weight_decay)

    def weights() -> dict[str, Tensor]:
        state = model.state_dict() | {f"encoder.{name}": value for name, value in embedding.trained.items()}
        return {name: value.detach().clone().cpu() for name, value in state.items()}

    def restore(state: dict[str, Tensor]) -> None:
        model.load_state_dict({name: state[name] for name in model.state_dict()})
        with torch.no_grad():
            for name, value in embedding.trained.items():
                value.copy_(state[f"encoder.{name}"])

    learner = loop.Learner(optimiser, generator, weights, restore)

    def epoch(number: int) -> tuple[float, int]:
        embedding.training(mode=True)
        model.train()
        for step in _draw_steps(corpus, recipe, generator):
            loop.descend(_compute_loss(step, model, embedding, recipe), learner, number)
        embedding.training(mode=False)
        model.eval()
        return _measure_accuracy(corpus, model, embedding, recipe)

    criterion = loop.Criterion(("value", "count"), best_by="value", chance=0.5)
    outcome = loop.run(epoch, learner, criterion, recipe.epochs, state)
    restore(outcome.weights)
    updates = max((int(values["step"]) for values in optimiser.state.values()), default=0)  # of all epochs
    facts = {**asdict(recipe), "best_epoch": outcome.best_epoch, "updates": updates}
    return TrainingResult(model.eval(), outcome.weights, facts, outcome.history)


Step = Tensor | list[Tensor]  # triples [n, 3], or the rows of graded groups


def _draw_steps(corpus: Corpus, recipe: Recipe, generator: torch.Generator) -> Iterator[Step]:
    """Draw the batches of one epoch: triples, and groups in a training on groups, in mixed order."""
    size = recipe.batch if recipe.tune == "none" else recipe.tune_batch
    triples = corpus.select_triples("train")
    triples = triples[torch.randperm(len(triples), generator=generator)]
    steps: list[Step] = list(torch.split(triples, size)) if len(triples) else []
    if recipe.group_sharpness:
        groups = corpus.select_groups("train")
        size = recipe.group_batch if recipe.tune == "none" else recipe.tune_batch
        order = torch.randperm(len(groups), generator=generator).tolist()
        steps += [[groups[i] for i in order[start : start + size]] for start in range(0, len(order), size)]
        steps = [steps[i] for i in torch.randperm(len(steps), generator=generator).tolist()]
    yield from steps


def _compute_loss(step: Step, model: ImpScore, embedding: Embedding, recipe: Recipe) -> Tensor:
    """Compute the loss of a step; each of its distinct sentences is embedded and projected once."""
    rows = torch.cat(step) if isinstance(step, list) else step
    distinct, positions = torch.unique(rows, return_inverse=True)
    meanings: Meaning = model(embedding(distinct))
    positions = positions.to(meanings.implicitness.device)
    if isinstance(step, list):
        return _compute_group_loss(meanings.select(positions), [len(group) for group in step], recipe)
    s1, s2, s3 = (meanings.select(positions[:, side]) for side in range(3))
    weights = (recipe.gamma_implicitness, recipe.gamma_pragmatics, recipe.alpha)
    return impscore.loss(s1, s2, s3, *weights, pragmatics=recipe.pragmatics, reduction=recipe.reduction)


def _compute_group_loss(meanings: Meaning, sizes: list[int], recipe: Recipe) -> Tensor:
    """Compute the loss of groups: their order, and smaller distances within them than to the next group."""
    comparisons, near_rows, far_rows, start = [], [], [], 0
    for number, size in enumerate(sizes):
        after = (start + size) % sum(sizes)
        comparisons += [(start + high, start + low, high - low) for low, high in combinations(range(size), 2)]
        near_rows += [start + (level + 1) % size for level in range(size)]
        far_rows += [after + level % sizes[(number + 1) % len(sizes)] for level in range(size)]
        start += size
    higher, lower, steps = torch.tensor(comparisons, device=meanings.implicitness.device).T
    total = impscore.ranking_loss(meanings.implicitness, higher, lower, steps, recipe.group_sharpness)
    if len(sizes) > 1:
        other_meanings = (meanings.select(torch.tensor(rows)) for rows in (near_rows, far_rows))
        near, far = (pragmatic_distance(meanings, other, recipe.pragmatics) for other in other_meanings)
        total = total + recipe.alpha * torch.relu(recipe.gamma_pragmatics - (far - near)).mean()
    return total


@torch.no_grad()
def compute_meanings(rows: Tensor, model: ImpScore, embedding: Embedding) -> Meaning:
    """Compute the meanings of texts by row, a bounded number of embeddings at a time."""
    parts = [model(embedding(part)) for part in torch.split(rows, limit_rows(embedding.dim))]
    return Meaning(*(torch.cat(field) for field in zip(*parts, strict=True)))


def _measure_accuracy(corpus: Corpus, model: ImpScore, embedding: Embedding, recipe: Recipe) -> tuple[float, int]:
    """Measure the accuracy that chooses the epoch; return it with the number of triples and groups."""
    split = "validation" if len(corpus.select_triples("validation")) or corpus.select_groups("validation") else "train"
    triples, groups = corpus.select_triples(split), corpus.select_groups(split) if recipe.group_sharpness else []
    distinct, positions = torch.unique(torch.cat([triples.flatten(), *groups]), return_inverse=True)
    values = compute_meanings(distinct, model, embedding).implicitness.cpu()[positions]
    i = values[: triples.numel()].reshape(-1, 3)
    correct_count, comparison_count = int((i[:, :1] > i[:, 1:]).sum()), 2 * len(triples)
    for part in torch.split(values[triples.numel() :], [len(group) for group in groups]) if groups else ():
        correct_count += int((part.unsqueeze(0) > part.unsqueeze(1)).triu(1).sum())
        comparison_count += len(part) * (len(part) - 1) // 2
    return correct_count / max(comparison_count, 1), len(triples) + len(groups)


def fit_readout(
    vectors: Vectors, values: Floats, validation_vectors: Vectors, validation_values: Floats
) -> tuple[Readout, float]:
    """Ridge-regress a judge's values [n] on embeddings [n, dim]; return it and its penalty, chosen on validation."""
    from sklearn.linear_model import Ridge

    has_validation = len(validation_values) > 0
    models = [Ridge(a).fit(vectors, values) for a in (READOUT_PENALTIES if has_validation else READOUT_PENALTIES[2:3])]
    best = models[0]
    if has_validation:
        best = min(models, key=lambda m: float(np.mean((m.predict(validation_vectors) - validation_values) ** 2)))
    weight, bias = (torch.tensor(part, dtype=torch.float32) for part in (best.coef_, best.intercept_))
    return Readout(weight, bias), float(best.alpha)
