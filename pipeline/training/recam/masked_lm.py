"""Adapting a transformer to guess masked words of the texts of a task (task-adaptive pre-training; ReCAM 4.1, REC-31).

A new head is tied to the word embeddings, and its bias begins at how frequent pieces are. Of the pieces 15 % are to be
guessed: of those 80 % are masked, 10 % are another piece, 10 % as they were (Devlin et al., 2019).
"""

import json
import math
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.utils.rnn import pad_sequence

from pipeline.errors import BadInput
from pipeline.io.atomic import create_folder
from pipeline.models.encoder import EMBEDDED, PRECISIONS, IndexArray
from pipeline.models.recam import pretrained_reader as models
from pipeline.training import loop
from pipeline.training.loop import TrainingResult, shuffle_batches, sort_batches

FACTS = "undertone.json"  # beside the weights: how they came about
_TEXTS = 1024  # texts tokenized in one go
Precision = Literal["float32", "bfloat16"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """The numbers of a training."""

    masked: float = 0.15  # share of the pieces that are to be guessed
    longest: int = 128  # pieces of a sequence; a text that has more is cut into several
    held: float = 0.05  # share of the texts that choose the epoch
    tuned_layers: int = 100  # last layers that learn; with all of them the first embeddings but those of words
    is_embedding_tuned: bool = False  # words' too
    precision: Precision = "float32"  # of what is multiplied; bfloat16 is about twice as fast where the hardware has it
    is_checkpointed: bool = False  # less memory on a GPU, a third more time
    learning_rate: float = 5e-4
    warmup: float = 0.06  # share of the steps in which the learning rate rises; then it falls to 0
    weight_decay: float = 0.01
    clip: float = 1.0  # longest gradient
    batch: int = 32
    epochs: int = 3
    seed: int = 42


PROFILES = {  # for the embedded encoder on a CPU; for a pretrained model of masked words on a GPU
    "embedded": Recipe(),
    "large": Recipe(longest=256, learning_rate=1e-4, precision="bfloat16", is_embedding_tuned=True, batch=64),
}


_ABOVE_ZERO, _BELOW_ONE = {"masked", "held", "learning_rate", "clip"}, {"masked", "held", "warmup"}
make_recipe = partial(
    loop.replace_numbers, PROFILES, from_zero={"tuned_layers"}, above_zero=_ABOVE_ZERO, below_one=_BELOW_ONE
)


def fit(
    texts: Sequence[str], recipe: Recipe, source: str | Path = EMBEDDED, state: Path | None = None, device: str = "cpu"
) -> TrainingResult:
    """Train on texts and keep the epoch with the least cross entropy on those held out.

    Each text counts once, and one without any piece not at all. The source is the encoder as
    `models.recam.pretrained_reader.load_transformer` names it; for `state` see `loop.run`. On a CPU the same texts,
    recipe and encoder give the same bits. BadInput for fewer than two texts, sequences longer than the encoder reads, a
    loss that is no number, or a `state` of another training.
    """
    generator = loop.seed_all(recipe.seed)
    transformer = models.load_transformer(source, is_masked=True)
    pieces = models.make_pieces(models.describe_tokenizer(transformer))
    rows, is_held = _make_sequences(list(dict.fromkeys(texts)), pieces, recipe)
    module = transformer.module
    if not transformer.is_headed:
        _set_unigram_bias(module, [row for row, is_row_held in zip(rows, is_held, strict=True) if not is_row_held])
    models.freeze(module.base_model, recipe.tuned_layers, recipe.is_embedding_tuned)
    if recipe.is_checkpointed:
        module.activation_checkpointing_enable({"use_reentrant": False})
    training = _Training(module.to(device), recipe, pieces, rows, is_held, generator)
    criterion = loop.Criterion(("loss", "cross_entropy", "accuracy", "count"), best_by="cross_entropy", is_loss=True)
    training_id = loop.hash_facts((asdict(recipe), transformer.revision), pl.DataFrame({"text": texts}))
    outcome = loop.run(training.epoch, training.learner, criterion, recipe.epochs, state, training_id)
    loop.load_weights(module, outcome.weights)
    config = {
        **asdict(recipe), "kind": "masked_lm", "encoder": transformer.name, "encoder_revision": transformer.revision,
        "architecture": models.describe_architecture(module), "tokenizer": _read_tokenizer_files(transformer.tokenizer),
        "texts": len(set(texts)), "pieces": int(sum(map(len, rows))), "best_epoch": outcome.best_epoch,
    }  # fmt: skip
    return TrainingResult(loop.copy_weights(module), config, outcome.history)


def _make_sequences(
    texts: list[str], pieces: models.Pieces, recipe: Recipe
) -> tuple[list[Tensor], npt.NDArray[np.bool_]]:
    """Pieces of all texts, in sequences that are about equally long, and whether each is of a text held out."""
    special_count = len(pieces.before) + len(pieces.after)
    if not special_count < recipe.longest <= pieces.longest:
        raise BadInput(f"longest should be from {special_count + 1} to {pieces.longest}; found {recipe.longest}")
    texts_ids = [ids for i in range(0, len(texts), _TEXTS) for ids in pieces.tokenize(texts[i : i + _TEXTS]) if ids]
    if len(texts_ids) < 2:
        raise BadInput(f"texts to train on: expected two that are not empty at least, found {len(texts_ids)}")
    order = np.random.default_rng(recipe.seed).permutation(len(texts_ids))
    held_texts = set(order[: max(1, round(len(texts_ids) * recipe.held))].tolist())
    rows, is_held, room = [], [], recipe.longest - special_count
    for i, ids in enumerate(texts_ids):
        for part in np.array_split(np.array(ids, np.int32), math.ceil(len(ids) / room)):
            rows.append(torch.tensor([*pieces.before, *part.tolist(), *pieces.after], dtype=torch.int32))
            is_held.append(i in held_texts)
    return rows, np.array(is_held)


@torch.no_grad()
def _set_unigram_bias(module: Any, rows: list[Tensor]) -> None:
    """Set the bias of a new head to log probabilities of the pieces, each counted once more."""
    bias = module.get_output_embeddings().bias
    counts = torch.bincount(torch.cat(rows).long(), minlength=len(bias)).double() + 1
    bias.copy_((counts / counts.sum()).log())


def mask_pieces(
    ids: Tensor, is_allowed: Tensor, share: float, mask: int, vocabulary: int, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Draw places [n, t] with probability `share` of those allowed; return sequences with masks, and the places."""
    chance, kind = (torch.rand(ids.shape, generator=generator) for _ in range(2))
    random_ids = torch.randint(vocabulary, ids.shape, generator=generator, dtype=ids.dtype)
    is_target = (chance < share) & is_allowed
    masked_ids = torch.where(is_target & (kind < 0.8), torch.full_like(ids, mask), ids)
    return torch.where(is_target & (kind >= 0.8) & (kind < 0.9), random_ids, masked_ids), is_target


def make_optimiser(
    module: nn.Module, learning_rate: float, weight_decay: float, faster: float = 1.0, slow: Any = None
) -> torch.optim.Optimizer:
    """Make AdamW over what learns; biases and norms do not decay, and what is not in `slow` learns faster."""
    slow_ids = {id(value) for value in (module if slow is None else slow).parameters()}
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    for value in filter(lambda value: value.requires_grad, module.parameters()):
        rate = learning_rate * (1.0 if id(value) in slow_ids else faster)
        groups.setdefault((rate, weight_decay if value.ndim > 1 else 0.0), []).append(value)
    return torch.optim.AdamW(
        {"params": params, "lr": rate, "full": rate, "weight_decay": decay} for (rate, decay), params in groups.items()
    )


def set_learning_rate(
    optimiser: torch.optim.Optimizer, step: int, steps: int, warmup: float, is_falling: bool = True
) -> None:
    """Set the learning rates of a step, from 0: they rise in the first share of all steps, then fall or stay."""
    warmup_steps = max(1, round(steps * warmup))
    share = min((step + 1) / warmup_steps, 1.0)
    if is_falling and step >= warmup_steps:
        share = (steps - step) / max(1, steps - warmup_steps)
    for group in optimiser.param_groups:
        group["lr"] = group["full"] * share


@dataclass
class _Training:  # a model in training, and the sequences that it learns from and is judged by
    module: Any
    recipe: Recipe
    pieces: models.Pieces
    rows: list[Tensor]
    is_held: npt.NDArray[np.bool_]
    generator: torch.Generator

    def __post_init__(self) -> None:
        self.has_plain_head = models.has_plain_head(self.module)
        self.lengths = np.fromiter(map(len, self.rows), np.int64, len(self.rows))
        optimiser = make_optimiser(self.module, self.recipe.learning_rate, self.recipe.weight_decay)
        self.learner = loop.make_learner(self.module, optimiser, self.generator, self.recipe.clip)

    def epoch(self, number: int) -> tuple[float, float, float, int]:
        self.module.train()
        total, count = 0.0, 0
        batches = list(shuffle_batches(self.lengths, np.flatnonzero(~self.is_held), self.recipe.batch, self.generator))
        for step, rows in enumerate(batches, (number - 1) * len(batches)):
            predicted, truth = self._predict_masked(rows, self.generator)
            if not len(truth):
                continue
            set_learning_rate(self.learner.optimiser, step, len(batches) * self.recipe.epochs, self.recipe.warmup)
            loss = loop.descend(cross_entropy(predicted, truth), self.learner, number)
            total, count = total + loss * len(truth), count + len(truth)
        return total / max(count, 1), *self._evaluate()

    def _predict_masked(self, rows: IndexArray, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Predict the masked places, drawn on the CPU, [m, vocabulary]; return the pieces that stood there, too."""
        ids = pad_sequence([self.rows[row].long() for row in rows], batch_first=True, padding_value=self.pieces.pad)
        lengths = torch.from_numpy(self.lengths[rows]).unsqueeze(1)
        place, vocabulary = torch.arange(ids.shape[1]), self.module.config.vocab_size
        is_allowed = (place >= len(self.pieces.before)) & (place < lengths - len(self.pieces.after))
        options = (self.recipe.masked, self.pieces.mask, vocabulary, generator)
        masked_ids, is_target = mask_pieces(ids, is_allowed, *options)
        device = self.module.device
        is_target, is_piece = is_target.to(device), (place < lengths).long().to(device)
        with torch.autocast(device.type, PRECISIONS["bfloat16"], enabled=self.recipe.precision == "bfloat16"):
            features = {"input_ids": masked_ids.to(device), "attention_mask": is_piece}
            if self.has_plain_head:
                states = self.module.base_model(**features).last_hidden_state
                predicted = models.compute_logits(self.module, states[is_target])
            else:
                predicted = self.module(**features).logits[is_target]
        return predicted.float(), ids.to(device)[is_target]

    @torch.no_grad()
    def _evaluate(self) -> tuple[float, float, int]:
        """Cross entropy and accuracy of held-out texts, masked each time in the same places, and their number."""
        self.module.eval()
        generator, entropy, right_count, count = torch.Generator().manual_seed(self.recipe.seed), 0.0, 0, 0
        for rows in sort_batches(self.lengths, np.flatnonzero(self.is_held), self.recipe.batch):
            predicted, truth = self._predict_masked(rows, generator)
            entropy += cross_entropy(predicted, truth, reduction="sum").item()
            right_count, count = right_count + int((predicted.argmax(dim=1) == truth).sum()), count + len(truth)
        return entropy / max(count, 1), right_count / max(count, 1), count


def _read_tokenizer_files(tokenizer: Any) -> dict[str, str]:
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save_pretrained(folder)
        return {path.name: path.read_text(encoding="utf-8") for path in sorted(Path(folder).iterdir())}


def write(path: Path, result: TrainingResult) -> None:
    """Write a model as a folder, absent before, that `AutoModelForMaskedLM` loads; complete or not at all."""
    module = models.build_transformer(result.config["architecture"], is_masked=True)
    loop.load_weights(module, result.tensors)
    facts = {name: value for name, value in result.config.items() if name not in {"tokenizer", "architecture"}}
    facts["history"] = result.history.to_dicts()
    with create_folder(path) as draft:
        module.save_pretrained(draft)
        for name, text in result.config["tokenizer"].items():
            (draft / name).write_text(text, encoding="utf-8")
        (draft / FACTS).write_text(json.dumps(facts, sort_keys=True, indent=1) + "\n", encoding="utf-8")
