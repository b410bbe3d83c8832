"""Training of the pretrained reader on cloze items, with the strong recipe as options (ReCAM, section 4; REC-31).

options in the placeholder    `style` filled (Wang et al., 2021); masked predicts the placeholder itself
task-adaptive pre-training    the encoder is a folder of `training.recam.masked_lm`
sliding window                `window`, `stride`, `windows`, `windows_by` (Xie et al., 2021a)
label smoothing               `smoothing` (Xie et al., 2021a)
weight averaging              `averaged` last epochs (Izmailov et al., 2018)
wrong-answer ensemble         `wrong` (Kim and Fung, 2020), see `models.recam.pretrained_reader.combine_heads`
glosses, hypernyms            `has_gloss` (Jiang et al., 2021), `hypernyms` (section 4.2)
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy
from torch.optim.swa_utils import get_swa_multi_avg_fn

from pipeline.errors import BadInput
from pipeline.examples.recam import items as cloze
from pipeline.metrics.resample import Floats
from pipeline.models.encoder import EMBEDDED, PRECISIONS, IndexArray, check_kind
from pipeline.models.recam import pretrained_reader as models
from pipeline.models.recam.pretrained_reader import Batch, Pieces, PretrainedReader
from pipeline.training import loop
from pipeline.training.loop import TrainingResult, shuffle_batches, sort_batches
from pipeline.training.recam import pretrained_reading, readers
from pipeline.training.recam.masked_lm import make_optimiser, set_learning_rate
from pipeline.training.recam.pretrained_reading import Inputs, Recipe

KIND = "pretrained_reader"
ROWS = 1024  # items prepared in one go when nothing is learnt

PROFILES = {
    "filled": Recipe(passage="relevant", window=40, stride=20, longest_question=24, tuned_layers=2, learning_rate=2e-4,
                     faster=5.0, epochs=1),
    "masked": Recipe(style="masked", passage="relevant", window=80, stride=40, learning_rate=2e-4, epochs=2),
    "strong": Recipe(window=256, stride=128, windows=2, has_gloss=True, smoothing=0.1, wrong=0.5, averaged=2,
                     hypernyms=0.1, precision="bfloat16", learning_rate=1e-5, faster=10.0, batch=32, parts=8, epochs=4),
}  # fmt: skip
"""The two styles, sized for the embedded encoder on a CPU; and all options at once for a large one on a GPU, which
nobody has measured here. So small an encoder answers by what fits into the question (measured: docs/abstract-words.md).
"""


def make_recipe(profile: str, **changes: Any) -> Recipe:
    """Change some numbers of a profile, see `loop.replace_numbers`; BadInput for those that do not fit together."""
    bounds = {"from_zero": {"averaged", "tuned_layers", "epochs"}, "above_zero": {"learning_rate", "faster", "clip"}}
    below_one = {"smoothing", "hypernyms", "warmup"}
    recipe = loop.replace_numbers(PROFILES, profile, below_one=below_one, **bounds, **changes)
    limits = {"stride": ("window", ", so that no piece is skipped"), "averaged": ("epochs", ""), "parts": ("batch", "")}
    for name, (limit, reason) in limits.items():
        number, most = getattr(recipe, name), getattr(recipe, limit)
        if number > most:
            raise BadInput(f"{name} should be {most} at most, the {limit}{reason}; found {number}")
    return recipe


def fit(
    items: pl.DataFrame,
    recipe: Recipe,
    encoder: str | Path = EMBEDDED,
    state: Path | None = None,
    *,
    glosses: Mapping[str, Sequence[str]] | None = None,
    device: str = "cpu",
) -> TrainingResult:
    """Train a reader and keep the epoch with the best accuracy on the validation part, or the mean of the last ones.

    On a CPU the same items, recipe and encoder give the same bits. Without epochs the encoder stays as it is. It is
    named as for `models.recam.pretrained_reader.load_transformer`. The other arguments and errors are those of
    `readers.fit`; items have options and label. Sequences longer than the encoder reads are BadInput; hypernyms need
    WordNet.
    """
    # the same parts as those of the other readers, so that both can be compared
    items = readers.split_items(items, recipe.seed)
    if recipe.hypernyms:
        augmented = pretrained_reading.augment(items.filter(pl.col("split") == "train"), recipe.hypernyms, recipe.seed)
        items = pl.concat([items, augmented])
    generator = loop.seed_all(recipe.seed)
    transformer = models.load_transformer(encoder, is_masked=recipe.style == "masked")
    if recipe.style == "masked" and not models.has_plain_head(transformer.module):
        raise BadInput(f"{transformer.name}: readers do not know this kind of head; take BERT or RoBERTa")
    pieces_config = models.describe_tokenizer(transformer)
    pieces = models.make_pieces(pieces_config)
    pretrained_reading.check_length(recipe, pieces)
    option_glosses = pretrained_reading.list_glosses(items, glosses or {}, recipe)
    model = _make_model(transformer.module, recipe).to(device)
    if recipe.is_checkpointed:
        model.transformer.activation_checkpointing_enable({"use_reentrant": False})
    is_held = (items["split"] == "validation").to_numpy()
    inputs = pretrained_reading.read(items, recipe, pieces, option_glosses)
    training = _Training(model, inputs, is_held, generator)
    # the learning rate falls over all epochs, so that their number is part of the fingerprint
    training_id = loop.hash_facts((asdict(recipe), transformer.revision, option_glosses), items)
    criterion = loop.ACCURACY._replace(chance=1 / len(items["options"][0]))
    outcome = loop.run(training.epoch, training.learner, criterion, recipe.epochs, state, training_id)
    loop.load_weights(model, training.mean if recipe.averaged else outcome.weights)
    config = {
        **asdict(recipe), "kind": KIND, "encoder": transformer.name, "encoder_revision": transformer.revision,
        "architecture": models.describe_architecture(transformer.module), "pieces": pieces_config,
        "glosses": option_glosses, "best_epoch": None if recipe.averaged else outcome.best_epoch,
        "averaged_value": training.measure_accuracy() if recipe.averaged else None,
    }  # fmt: skip
    return TrainingResult(loop.copy_weights(model), config, outcome.history)


def _make_model(transformer: Any, recipe: Recipe) -> PretrainedReader:
    for name in ("hidden_dropout_prob", "attention_probs_dropout_prob"):
        if hasattr(transformer.config, name):
            setattr(transformer.config, name, recipe.dropout)
    for part in transformer.modules():
        if isinstance(part, nn.Dropout):
            part.p = recipe.dropout
    model = PretrainedReader(transformer, recipe)
    models.freeze(model.encoder, recipe.tuned_layers, recipe.is_embedding_tuned)
    return model


class _Training:
    """A model in training, the mean of its last weights, and the items that it learns from and is judged by."""

    def __init__(
        self, model: PretrainedReader, inputs: Inputs, is_held: npt.NDArray[np.bool_], generator: torch.Generator
    ) -> None:
        self.model, self.inputs, self.recipe, self.generator = model, inputs, inputs.recipe, generator
        self.train, self.held = np.flatnonzero(~is_held), np.flatnonzero(is_held)
        self.mean: dict[str, Tensor] = {}
        rates = self.recipe.learning_rate, self.recipe.weight_decay, self.recipe.faster
        optimiser = make_optimiser(model, *rates, slow=model.transformer)
        self.learner = replace(
            loop.make_learner(model, optimiser, generator, self.recipe.clip),
            restore=self._restore,
            extra=lambda: {f"mean.{name}": value for name, value in self.mean.items()},
        )

    def epoch(self, number: int) -> tuple[float, float, int]:
        loss, value = self._run_epoch(number), self.measure_accuracy()
        self._average(number - (self.recipe.epochs - self.recipe.averaged) - 1)
        return value, loss, len(self.held)

    def _restore(self, weights: dict[str, Tensor]) -> None:
        self.mean = {name[5:]: weights.pop(name) for name in list(weights) if name.startswith("mean.")}
        loop.load_weights(self.model, weights)

    @torch.no_grad()
    def _average(self, epoch_count: int) -> None:
        """Add this epoch's weights to the mean of so many epochs; below 0 the averaging has not begun."""
        weights = loop.copy_weights(self.model, is_trained=True) if epoch_count >= 0 else {}
        if epoch_count == 0:
            self.mean = weights
        elif epoch_count > 0:
            average = get_swa_multi_avg_fn()  # type: ignore[no-untyped-call]
            average([self.mean[name] for name in weights], list(weights.values()), epoch_count)  # in place

    def _run_epoch(self, epoch: int) -> float:
        self.model.train()
        total, optimiser = 0.0, self.learner.optimiser
        batches = list(shuffle_batches(self.inputs.lengths(), self.train, self.recipe.batch, self.generator))
        steps = len(batches) * self.recipe.epochs
        for number, rows in enumerate(batches, (epoch - 1) * len(batches)):
            optimiser.zero_grad()
            for part in np.array_split(rows, min(self.recipe.parts, len(rows))):
                right, wrong = _score_options(self.model, self.inputs, part)
                truth = self.inputs.truth[torch.from_numpy(part)].to(right.device)
                loss = compute_loss(right, wrong, truth, self.recipe) * (len(part) / len(rows))
                loop.check_loss(loss.item(), epoch)
                loss.backward()  # type: ignore[no-untyped-call]
                total += loss.item() * len(rows)
            nn.utils.clip_grad_norm_(self.model.parameters(), self.recipe.clip)
            set_learning_rate(optimiser, number, steps, self.recipe.warmup, self.recipe.is_falling)
            optimiser.step()
        return total / len(self.train)

    def measure_accuracy(self) -> float:
        chunks = _predict(self.model, self.inputs, self.held)
        is_right = [scores.argmax(dim=1) == self.inputs.truth[torch.from_numpy(rows)] for rows, scores in chunks]
        return float(torch.cat(is_right).float().mean())


def compute_loss(right: Tensor, wrong: Tensor | None, truth: Tensor, recipe: Recipe) -> Tensor:
    """Compute the cross entropy of the right option at `truth` [n], and by a second head of each option's being wrong.

    With smoothing ε the truth is 1 − ε + ε/5 for the right option and ε/5 for the others. Scores are [n, 5].
    """
    loss = cross_entropy(right, truth, label_smoothing=recipe.smoothing)
    if wrong is None:
        return loss
    is_wrong = torch.ones_like(wrong).scatter(1, truth.unsqueeze(1), 0.0)
    return loss + recipe.wrong * binary_cross_entropy_with_logits(wrong, is_wrong)


def _score_options(model: PretrainedReader, inputs: Inputs, rows: IndexArray) -> tuple[Tensor, Tensor | None]:
    device = next(model.parameters()).device
    batch = Batch._make(part.to(device) for part in pretrained_reading.make_batch(inputs, rows.tolist()))
    with torch.autocast(device.type, PRECISIONS["bfloat16"], enabled=inputs.recipe.precision == "bfloat16"):
        scores: tuple[Tensor, Tensor | None] = model(batch)
    return scores


@torch.no_grad()
def _predict(model: PretrainedReader, inputs: Inputs, rows: IndexArray) -> Iterator[tuple[IndexArray, Tensor]]:
    """Yield batches of the rows, and the log probabilities of their options [n, 5]."""
    model.eval()
    size = max(1, inputs.recipe.batch // inputs.recipe.parts)
    for batch in sort_batches(inputs.lengths(), rows, size):
        yield batch, models.combine_heads(*_score_options(model, inputs, batch), inputs.recipe.wrong).cpu()


class TrainedReader(NamedTuple):
    """A trained reader, and what it needs to read items."""

    model: PretrainedReader
    recipe: Recipe
    pieces: Pieces
    glosses: dict[str, str]  # of the options it learnt of


def load(tensors: dict[str, Tensor], config: dict[str, Any], device: str = "cpu") -> TrainedReader:
    """Load a reader of `fit`, without the encoder it came from; BadInput if it or a weight is of another kind."""
    check_kind(config, KIND)
    recipe = loop.read_recipe(Recipe, config)
    model = _make_model(models.build_transformer(config["architecture"], is_masked=recipe.style == "masked"), recipe)
    if missing := sorted(set(loop.copy_weights(model)) - set(tensors)):
        raise BadInput(f"the model lacks the weight {missing[0]!r} and {len(missing) - 1} others")
    loop.load_weights(model, tensors)
    return TrainedReader(model.eval().to(device), recipe, models.make_pieces(config["pieces"]), config["glosses"])


def answer(reader: TrainedReader, items: pl.DataFrame, glosses: Mapping[str, Sequence[str]] | None = None) -> Floats:
    """Compute the probabilities of the five options of each item: [n, 5]; glosses: of options new to the reader."""
    parts = [np.empty((0, cloze.OPTIONS), np.float64)]
    for part in items.iter_slices(ROWS):
        gloss_of = pretrained_reading.list_glosses(part, glosses or {}, reader.recipe) | reader.glosses
        inputs = pretrained_reading.read(part, reader.recipe, reader.pieces, gloss_of)
        probabilities = np.empty((len(part), cloze.OPTIONS), np.float64)
        for batch, scores in _predict(reader.model, inputs, np.arange(len(part))):
            probabilities[batch] = scores.double().softmax(dim=1).numpy()
        parts.append(probabilities)
    return np.concatenate(parts)
