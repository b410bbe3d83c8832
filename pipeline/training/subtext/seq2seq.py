"""Fine-tuning a sequence-to-sequence model to write what comments mean (CSD-03; the paper names no model)."""

import hashlib
import logging
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars as pl
import torch
from torch import Tensor

from pipeline.errors import BadInput
from pipeline.models.subtext.seq2seq import SOURCE, TARGET, Keep, Seq2Seq, sources
from pipeline.training import checkpoint

log = logging.getLogger(__name__)

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


History = list[tuple[int, float, float]]


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
    generator = torch.Generator().manual_seed(recipe.seed)
    torch.manual_seed(recipe.seed)  # dropout draws from the global source
    module, made_of = model.module, _made_of(rows, model, recipe)
    optimiser = torch.optim.AdamW(module.parameters(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay)
    best, history = _weights(module), History()
    if state and (found := checkpoint.read(state)):
        if found[1]["made_of"] != made_of:
            raise BadInput(f"{state}: the state of a training on other rows, another model or another recipe")
        best, history = _resume(*found, module, optimiser, generator)
        log.info("training goes on after epoch %d", len(history))
    for epoch in range(len(history) + 1, recipe.epochs + 1):
        shuffled = train[torch.randperm(train.height, generator=generator).tolist()]
        told = _pass(shuffled, model, recipe, optimiser)
        judged = _pass(held if held.height else train, model, recipe)
        if not torch.isfinite(torch.tensor([told, judged])).all():
            raise BadInput(f"the loss is {told} in epoch {epoch}: the learning rate is too high for these rows")
        log.info("epoch %d of %d: validation loss %.4f", epoch, recipe.epochs, judged)
        if judged < min((value for *_, value in history), default=float("inf")):
            best = _weights(module)
        history.append((epoch, told, judged))
        if state:
            _keep(state, best, history, made_of, module, optimiser, generator)
    module.load_state_dict(best)
    schema = {"epoch": pl.Int64, "train_loss": pl.Float64, "validation_loss": pl.Float64}
    best_epoch = min(history, key=lambda row: (row[2], row[0]))[0] if history else 0
    facts = {**asdict(recipe), "base": model.name, "base_revision": model.revision, "best_epoch": best_epoch}
    module.eval()
    return Fitted(model, facts, pl.DataFrame(history, schema=schema, orient="row"))


def _pass(rows: pl.DataFrame, model: Seq2Seq, recipe: Recipe, optimiser: torch.optim.Optimizer | None = None) -> float:
    """Mean loss a token of one pass over the rows, which are learnt from where there is an optimiser."""
    module, total, count = model.module.train(optimiser is not None), 0.0, 0
    for part in rows.iter_slices(recipe.batch):
        labels = _labels(model, part["meaning"].to_list(), recipe.target)
        read = sources(model, part["text"].to_list(), part["context"].to_list(), recipe.source, recipe.keep)
        with torch.set_grad_enabled(optimiser is not None):
            loss: Tensor = module(**read, labels=labels).loss
        if optimiser:
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(module.parameters(), recipe.clip)
            optimiser.step()
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


def _made_of(rows: pl.DataFrame, model: Seq2Seq, recipe: Recipe) -> str:
    """SHA-256 of what a training is made of; the number of epochs is none of it, so that it may go on."""
    texts = rows.select("text", "context", "meaning", "split").write_ndjson()
    facts = asdict(recipe) | {"epochs": None}
    if recipe.keep == "end":
        del facts["keep"]  # states that are older than the field go on
    told = (facts, model.name, model.revision, model.module.config.to_json_string(), texts)
    return hashlib.sha256(repr(told).encode()).hexdigest()


def _weights(module: torch.nn.Module) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in module.state_dict().items()}


def _keep(
    path: Path, best: dict[str, Tensor], history: History, made_of: str, module: torch.nn.Module,
    optimiser: torch.optim.Optimizer, generator: torch.Generator,
) -> None:  # fmt: skip
    tensors = checkpoint.of_training(best, module.state_dict(), optimiser, generator)
    checkpoint.save(path, tensors, {"history": history, "made_of": made_of})


def _resume(
    tensors: dict[str, Tensor], facts: dict[str, Any], module: torch.nn.Module, optimiser: torch.optim.Optimizer,
    generator: torch.Generator,
) -> tuple[dict[str, Tensor], History]:  # fmt: skip
    best, now = checkpoint.into_training(tensors, optimiser, generator)
    module.load_state_dict(now)
    return best, [(int(epoch), float(told), float(judged)) for epoch, told, judged in facts["history"]]
