"""Fine-tuning a sequence-to-sequence model to write what comments mean (CSD-03; the paper names no model)."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars as pl
import torch
from torch import Tensor

from pipeline.errors import BadInput
from pipeline.models.subtext.seq2seq import SOURCE, TARGET, Keep, Seq2Seq, sources
from pipeline.training import loop

_UNSAID = -100  # a label that PyTorch's cross entropy passes over


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How a model is fitted: AdamW on the cross entropy of the meanings' tokens."""

    learning_rate: float = 1e-3  # for a small model of random weights; for a pretrained one about 1e-4
    weight_decay: float = 0.01
    clip: float = 1.0  # largest norm of the gradient
    batch: int = 16
    epochs: int = 10
    source: int = SOURCE  # tokens read and written at most
    target: int = TARGET
    keep: Keep = "end"  # of a long context; "start" of an article's content
    seed: int = 42


@dataclass(slots=True)
class Fitted:
    """A fitted model, its recipe with what came of it, and the epochs' numbers."""

    model: Seq2Seq
    recipe: dict[str, Any]
    history: pl.DataFrame  # epoch, train_loss, validation_loss (nats a token)


def fit(rows: pl.DataFrame, model: Seq2Seq, recipe: Recipe, state: Path | None = None) -> Fitted:
    """Train on the split `train` and keep the epoch with the least loss on `validation`; the model is changed in place.

    Without a validation part, the training part decides. The same rows, model, recipe and seed give the same weights.

    Args:
        rows: text, context (null where there is none), meaning, split (others than train and validation are let be).
        model: of `models.subtext.seq2seq.load` or `fresh`.
        recipe: hyperparameters.
        state: file that keeps the state after each epoch; an interrupted training goes on from it and ends with the
            same model. More epochs may be asked for.

    Raises:
        BadInput: there is nothing to train on, a text or meaning is null, the loss is no number, or `state` is of
            other rows or another recipe.
    """
    rows = rows.filter(pl.col("split").is_in(["train", "validation"]))
    train, held = (rows.filter(pl.col("split") == name) for name in ("train", "validation"))
    if not train.height:
        raise BadInput("rows of the split 'train': expected at least one, found none")
    for field in ("text", "meaning"):
        if rows[field].null_count():
            raise BadInput(f"rows to train on: field {field!r} is null in {rows[field].null_count()} of {rows.height}")
    generator = loop.seed_all(recipe.seed)
    module = model.module
    optimiser = torch.optim.AdamW(module.parameters(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay)
    learner = loop.learner_of(module, optimiser, generator, recipe.clip)

    def epoch(number: int) -> tuple[float, float]:
        shuffled = train[torch.randperm(train.height, generator=generator).tolist()]
        train_loss = _pass(shuffled, model, recipe, learner, number)
        loss = _pass(held if held.height else train, model, recipe)
        loop.check_loss(loss, number)
        return train_loss, loss

    facts = (asdict(recipe) | {"epochs": None}, model.name, model.revision, module.config.to_json_string())
    made_of = loop.fingerprint(facts, rows.select("text", "context", "meaning", "split"))
    outcome = loop.run(epoch, learner, loop.LOSSES, recipe.epochs, state, made_of)
    module.load_state_dict(outcome.weights)
    module.eval()
    base = {"base": model.name, "base_revision": model.revision, "best_epoch": outcome.best_epoch}
    return Fitted(model, asdict(recipe) | base, outcome.history)


def _pass(
    rows: pl.DataFrame, model: Seq2Seq, recipe: Recipe, learner: loop.Learner | None = None, epoch: int = 0
) -> float:
    """Mean loss a token of one pass over the rows, which are learnt from where there is a learner."""
    module, total, count = model.module.train(learner is not None), 0.0, 0
    for part in rows.iter_slices(recipe.batch):
        labels = _labels(model, part["meaning"].to_list(), recipe.target)
        read = sources(model, part["text"].to_list(), part["context"].to_list(), recipe.source, recipe.keep)
        with torch.set_grad_enabled(learner is not None):
            loss: Tensor = module(**read, labels=labels).loss
        if learner:
            loop.descend(loss, learner, epoch)
        size = int((labels != _UNSAID).sum())
        total, count = total + loss.item() * size, count + size
    return total / max(count, 1)


def _labels(model: Seq2Seq, meanings: list[str], longest: int) -> Tensor:
    """Token ids [n, ≤ longest] of the meanings, what fills a row up being passed over."""
    found = model.tokenizer(
        text_target=meanings, truncation=True, max_length=longest, padding=True, return_tensors="pt"
    )
    filled = found["input_ids"].masked_fill(found["attention_mask"] == 0, _UNSAID)
    labels: Tensor = filled.to(model.device)
    return labels
