"""Fine-tuning of a sequence-to-sequence model that writes the meanings of comments (CSD-03; the paper names none)."""

from dataclasses import asdict, dataclass
from typing import Any

import polars as pl
import torch
from torch import Tensor

from pipeline.errors import BadInput
from pipeline.models.subtext.seq2seq import SOURCE, TARGET, Keep, Seq2Seq, encode_texts
from pipeline.training import loop
from pipeline.training.loop import TrainingResult

_IGNORED = -100  # the label that PyTorch's cross entropy ignores


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """The hyperparameters of a fit: AdamW on the cross entropy of the meanings' tokens."""

    learning_rate: float = 1e-3  # for a small model of random weights; about 1e-4 for a pretrained model
    weight_decay: float = 0.01
    clip: float = 1.0  # largest norm of the gradient
    batch: int = 16
    epochs: int = 10
    source: int = SOURCE  # longest input and output in tokens
    target: int = TARGET
    keep: Keep = "end"  # the part kept of a long context; "start" for an article's content
    seed: int = 42


def fit(rows: pl.DataFrame, model: Seq2Seq, recipe: Recipe) -> TrainingResult:
    """Train on the split `train` and keep the epoch with the least loss on `validation`; the model is changed in place.

    Without a validation part, the training part chooses the epoch. The same rows, model and recipe give the same
    weights. Rows are text, context (null if absent), meaning, split; other splits are ignored. BadInput if there are no
    training rows, a text or meaning is null, or the loss is not finite.
    """
    rows = rows.filter(pl.col("split").is_in(["train", "validation"]))
    train, validation = (rows.filter(pl.col("split") == name) for name in ("train", "validation"))
    if not train.height:
        raise BadInput("rows of the split 'train': expected at least one, found none")
    for field in ("text", "meaning"):
        if rows[field].null_count():
            raise BadInput(f"rows to train on: field {field!r} is null in {rows[field].null_count()} of {rows.height}")
    generator, module = loop.seed_all(recipe.seed), model.module
    optimiser = torch.optim.AdamW(module.parameters(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay)
    learner = loop.make_learner(module, optimiser, generator, recipe.clip)

    def epoch(number: int) -> tuple[float, float]:
        shuffled = train[torch.randperm(train.height, generator=generator).tolist()]
        train_loss = _run_epoch(shuffled, model, recipe, learner, number)
        loss = _run_epoch(validation if validation.height else train, model, recipe)
        loop.check_loss(loss, number)
        return train_loss, loss

    outcome = loop.run(epoch, learner, loop.LOSSES, recipe.epochs)
    learner.restore(outcome.weights)
    module.eval()
    base = {"base": model.name, "base_revision": model.revision, "best_epoch": outcome.best_epoch}
    return TrainingResult(outcome.weights, asdict(recipe) | base, outcome.history)


def _run_epoch(
    rows: pl.DataFrame, model: Seq2Seq, recipe: Recipe, learner: loop.Learner | None = None, epoch: int = 0
) -> float:
    """Return the mean loss a token over the rows; train on them if a learner is given."""
    module, total, count = model.module.train(learner is not None), 0.0, 0
    for part in rows.iter_slices(recipe.batch):
        texts: dict[str, Any] = {"text_target": part["meaning"].to_list(), "return_tensors": "pt", "padding": True}
        encoded = model.tokenizer(**texts, truncation=True, max_length=recipe.target)
        labels = encoded["input_ids"].masked_fill(encoded["attention_mask"] == 0, _IGNORED).to(model.device)
        batch = encode_texts(model, part["text"].to_list(), part["context"].to_list(), recipe.source, recipe.keep)
        with torch.set_grad_enabled(learner is not None):
            loss: Tensor = module(**batch, labels=labels).loss
        if learner:
            loop.descend(loss, learner, epoch)
        size = int((labels != _IGNORED).sum())
        total, count = total + loss.item() * size, count + size
    return total / max(count, 1)
