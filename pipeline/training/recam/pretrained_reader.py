"""Training of the pretrained reader on cloze items, with the strong recipe as options (ReCAM, section 4; REC-31).

    options in the placeholder    `style` filled (Wang et al., 2021); masked asks the placeholder itself
    task-adaptive pre-training    the encoder is a folder of `training.recam.masked_lm`
    sliding window                `window`, `stride`, `windows`, `windows_by` (Xie et al., 2021a)
    label smoothing               `smoothing` (Xie et al., 2021a)
    weight averaging              `averaged` last epochs (Izmailov et al., 2018)
    wrong-answer ensemble         `wrong` (Kim and Fung, 2020), see `models.recam.pretrained_reader.ensembled`
    glosses                       `has_gloss` (Jiang et al., 2021)
    hypernyms                     `hypernyms` (section 4.2), see `training.recam.hypernyms`

It is called as `training.recam.readers` is, so that callers treat both alike. A question is cut at its placeholder
before it is cut into pieces, so that no tokenizer can glue the two.
"""

import hashlib
import logging
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy
from torch.optim.swa_utils import get_swa_multi_avg_fn

from pipeline.errors import BadInput
from pipeline.examples.recam import items as cloze
from pipeline.models.encoder import EMBEDDED, PRECISIONS
from pipeline.models.recam import pretrained_reader as models
from pipeline.models.recam.pretrained_reader import Batch, Over, Pieces, Pool, PretrainedReader, Shape, Style
from pipeline.training import checkpoint, recipes
from pipeline.training.batches import by_length
from pipeline.training.recam import hypernyms, readers
from pipeline.training.recam.masked_lm import Precision, learnt, optimiser_of, paced

log = logging.getLogger(__name__)

KIND = "pretrained_reader"
ROWS = 1024  # items prepared in one go when nothing is learnt
_OPTION = 16  # pieces of an option that are read
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s+|(?<=[。！？])|\n+")

Floats = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """The numbers of a training; the paper names the options and none of the numbers."""

    style: Style = "filled"
    pool: Pool = "option"  # of a filled question, the states that are scored
    masks: Literal["one", "each"] = "one"  # for a placeholder, or for each piece of an option
    passage: Literal["first", "relevant"] = "first"  # what is read of one that is too long, see `relevant`
    window: int = 160  # pieces of the passage in a sequence
    stride: int = 80  # pieces from a window's beginning to the next one's
    windows: int = 1  # of a passage, at most
    windows_by: Over = "max"
    longest_question: int = 40  # pieces to either side of the placeholder
    has_gloss: bool = False
    longest_gloss: int = 32  # pieces
    smoothing: float = 0.0  # share of the truth that is spread over all options
    wrong: float = 0.0  # weight of the wrong answers; 0: they are not learnt
    averaged: int = 0  # last epochs whose weights are averaged; 0: the best epoch is kept
    hypernyms: float = 0.0  # chance of a noun to be replaced in the copies that items get; 0: there are none
    tuned_layers: int = 100  # last layers that learn; with all of them the first embeddings but those of words
    is_embedding_tuned: bool = False  # words' too
    dropout: float = 0.1
    precision: Precision = "float32"  # of what is multiplied; bfloat16 is about twice as fast where the hardware has it
    is_checkpointed: bool = False  # less memory on a GPU, a third more time
    learning_rate: float = 5e-5
    faster: float = 1.0  # so many times as fast learn the heads that are new
    is_falling: bool = True  # the learning rate, to 0; else it stays, as for averaged weights
    warmup: float = 0.1  # share of the steps in which the learning rate rises
    weight_decay: float = 0.01
    clip: float = 1.0  # longest gradient
    batch: int = 16  # items
    parts: int = 1  # a batch is computed in: gradients add up
    epochs: int = 3
    seed: int = 42


PROFILES = {
    "filled": Recipe(
        passage="relevant", window=40, stride=20, longest_question=24, tuned_layers=2, learning_rate=2e-4, faster=5.0,
        epochs=1,
    ),
    "masked": Recipe(style="masked", passage="relevant", window=80, stride=40, learning_rate=2e-4, epochs=2),
    "strong": Recipe(
        window=256, stride=128, windows=2, has_gloss=True, smoothing=0.1, wrong=0.5, averaged=2, hypernyms=0.1,
        precision="bfloat16", learning_rate=1e-5, faster=10.0, batch=32, parts=8, epochs=4,
    ),
}  # fmt: skip
"""The two styles, sized for the embedded encoder on a CPU; and all options at once for a large one on a GPU, which
nobody has measured here.

Trained in bfloat16 on 2,625 trial items without the dev articles, chosen by 299 others; accuracy on the dev files of
imperceptibility and nonspecificity, with 95 % intervals:

    filled, the embedded encoder           34.1 [30.9, 37.3]    24.3 [21.6, 27.3]    on the 299 52.8
    the same, asked without the passage    33.3 [30.2, 36.6]    24.7 [21.9, 27.7]    on the 299 47.2
    masked, adapted for one epoch          25.2 [22.4, 28.3]    19.9 [17.3, 22.7]    on the 299 44.5 (its first epoch)
    the same, untrained                    15.4 [13.1, 18.0]    20.2 [17.7, 23.0]    on the 299 29.1 (window of 120)
    how often an option is right elsewhere 22.3 [19.6, 25.3]    17.6 [15.2, 20.3]    on the 299 37.5

The last row reads nothing: part of what trial items teach is their bias (REC-32), which the dev files do not share.
So small an encoder answers by what fits into the question; it hardly reads the passage.
"""


def recipe_of(profile: str, **changes: Any) -> Recipe:
    """A profile with some numbers changed; those that are None stay."""
    from_zero = {"averaged", "tuned_layers", "epochs", "seed"}
    above_zero = {"learning_rate", "faster", "clip"}
    recipe = recipes.changed(PROFILES, profile, changes, from_zero=from_zero, above_zero=above_zero)
    for name in ("smoothing", "hypernyms", "warmup"):
        if getattr(recipe, name) >= 1:
            raise BadInput(f"{name} should be a share below 1; found {getattr(recipe, name)!r}")
    if recipe.stride > recipe.window:
        raise BadInput(f"stride should be {recipe.window} at most, the window, so that no piece is passed over; "
                       f"found {recipe.stride}")  # fmt: skip
    if recipe.averaged > recipe.epochs:
        raise BadInput(f"averaged should be {recipe.epochs} at most, the epochs; found {recipe.averaged}")
    if recipe.parts > recipe.batch:
        raise BadInput(f"parts should be {recipe.batch} at most, the batch; found {recipe.parts}")
    return recipe


class _Inputs(NamedTuple):
    """Pieces of some items."""

    passages: list[list[int]]  # of each item, what is read of it
    before: list[list[int]]  # of the question
    after: list[list[int]]
    options: list[list[list[int]]]  # [n, 5]
    glosses: list[list[list[int]]]  # [n, 5]; empty for a reader that reads none
    truth: Tensor  # [n]: place of the right option

    def lengths(self) -> IndexArray:
        """Pieces that are read of each passage."""
        return np.fromiter(map(len, self.passages), np.int64, len(self.passages))


def _inputs(items: pl.DataFrame, recipe: Recipe, pieces: Pieces, told: Mapping[str, str]) -> _Inputs:
    halves = []
    for item, question in items.select("item_id", "question").iter_rows():
        before, found, after = question.partition(cloze.PLACEHOLDER)
        if not found:
            raise BadInput(f"item {item}: field 'question' should hold {cloze.PLACEHOLDER}, found {question!r:.60}")
        halves.append((before, after))
    # a blank before an option belongs to it where blanks are parts of pieces
    before = [ids[-recipe.longest_question :] for ids in pieces.cut([half.rstrip() for half, _ in halves])]
    after = [ids[: recipe.longest_question] for ids in pieces.cut([half for _, half in halves])]
    forms = [
        [(" " if half[-1:].isspace() else "") + option.strip() for option in options]
        for (half, _), options in zip(halves, items["options"], strict=True)
    ]
    known = _cut({form for row in forms for form in row}, pieces, _OPTION)
    said = _cut(set(told.values()), pieces, recipe.longest_gloss) if recipe.has_gloss else {}
    sentences = _cut_articles(items["article"].unique().to_list(), pieces)
    room = recipe.window + (recipe.windows - 1) * recipe.stride
    passages = [
        relevant(sentences[article], left + right, room)
        if recipe.passage == "relevant"
        else [piece for sentence in sentences[article] for piece in sentence][:room]
        for article, left, right in zip(items["article"], before, after, strict=True)
    ]
    return _Inputs(
        passages, before, after, [[known[form] for form in row] for row in forms],
        [[said[told[_form(option)]] for option in row] for row in items["options"]] if said else [],
        torch.from_numpy(items["label"].to_numpy().copy()) if "label" in items.columns else torch.zeros(len(items)),
    )  # fmt: skip


def _form(word: str) -> str:
    return word.strip().lower()


def _cut(texts: set[str], pieces: Pieces, longest: int) -> dict[str, list[int]]:
    """The first pieces of each text; a text without any is one mask."""
    every = sorted(texts)
    return {text: ids[:longest] or [pieces.mask] for text, ids in zip(every, pieces.cut(every), strict=True)}


def _cut_articles(articles: list[str], pieces: Pieces) -> dict[str, list[list[int]]]:
    """The pieces of each article by sentence."""
    split = [[part for part in _SENTENCE.split(article) if part.strip()] for article in articles]
    ids = iter(pieces.cut([part for parts in split for part in parts]))
    return {article: [next(ids) for _ in parts] for article, parts in zip(articles, split, strict=True)}


def relevant(sentences: Sequence[Sequence[int]], question: Sequence[int], room: int) -> list[int]:
    """The sentences of a passage that share most with a question, in their order, as many as there is room for.

    A sentence counts Σ log(1 + n / df) over the distinct pieces it shares with the question, divided by the square root
    of its length; n sentences, of which df hold the piece. Of equals the first one counts. The last one chosen is cut.
    """
    if sum(map(len, sentences)) <= room:
        return [piece for sentence in sentences for piece in sentence]
    asked = set(question)
    held = [asked.intersection(sentence) for sentence in sentences]
    df = Counter(piece for some in held for piece in some)
    worth = [
        sum(math.log1p(len(sentences) / df[piece]) for piece in sorted(some)) / math.sqrt(max(len(sentence), 1))
        for some, sentence in zip(held, sentences, strict=True)
    ]
    chosen: dict[int, int] = {}
    for at in sorted(range(len(sentences)), key=lambda at: (-worth[at], at)):
        if room <= 0:
            break
        chosen[at] = min(len(sentences[at]), room)
        room -= chosen[at]
    return [piece for at in sorted(chosen) for piece in sentences[at][: chosen[at]]]


def windows(length: int, recipe: Recipe) -> list[tuple[int, int]]:
    """Where the windows of a passage begin and end; the last one ends where it does. Every piece is in one.

    The passage has been cut to what `windows` of them hold.
    """
    last = max(length - recipe.window, 0)
    starts = [*range(0, last, recipe.stride), last]
    return [(start, min(start + recipe.window, length)) for start in starts]


def _batch(inputs: _Inputs, at: Sequence[int], recipe: Recipe, pieces: Pieces) -> Batch:
    """The sequences of some items."""
    rows: list[tuple[list[int], int, int, int, int, list[bool]]] = []
    for item, row in enumerate(at):
        for start, end in windows(len(inputs.passages[row]), recipe):
            passage = inputs.passages[row][start:end]
            for stands, gloss, serves in _fillings(inputs, row, recipe, pieces):
                first = [*pieces.before, *inputs.before[row]]
                head = [*first, *stands, *inputs.after[row], *gloss, *pieces.between]
                whole = [*head, *passage, *pieces.after]
                rows.append((whole, len(head), len(first), len(stands), item, serves))
    longest = max(len(whole) for whole, *_ in rows)
    ids = torch.full((len(rows), longest), pieces.pad)
    types = torch.full((len(rows), longest), pieces.types[1])
    is_there = torch.zeros(len(rows), longest, dtype=torch.bool)
    for number, (whole, length, *_) in enumerate(rows):
        ids[number, : len(whole)] = torch.tensor(whole)
        types[number, :length] = pieces.types[0]
        is_there[number, : len(whole)] = True
    _, _, starts, widths, items, serve = zip(*rows, strict=True)
    is_masked = recipe.style == "masked"
    options = [inputs.options[row] for row in at] if is_masked else []
    glosses = [inputs.glosses[row] for row in at] if is_masked and inputs.glosses else []
    return Batch(
        ids, is_there, types, torch.tensor(starts), torch.tensor(widths), torch.tensor(items),
        torch.tensor(serve), _padded(options), _padded(glosses),
    )  # fmt: skip


def _fillings(
    inputs: _Inputs, row: int, recipe: Recipe, pieces: Pieces
) -> Iterator[tuple[list[int], list[int], list[bool]]]:
    """What stands in the placeholder, the gloss behind the question, and the options that it is for."""
    options = inputs.options[row]
    if recipe.style == "filled":
        for place, option in enumerate(options):
            gloss = [*pieces.between, *inputs.glosses[row][place]] if inputs.glosses else []
            yield option, gloss, [other == place for other in range(len(options))]
    elif recipe.masks == "one":
        yield [pieces.mask], [], [True] * len(options)
    else:
        for count in sorted({len(option) for option in options}):
            yield [pieces.mask] * count, [], [len(option) == count for option in options]


def _padded(rows: list[list[list[int]]]) -> Tensor:
    """[n, 5, k], padded with -1."""
    longest = max((len(one) for row in rows for one in row), default=0)
    filled = [[one + [-1] * (longest - len(one)) for one in row] for row in rows]
    return torch.tensor(filled, dtype=torch.int64).reshape(len(rows), cloze.OPTIONS if rows else 0, longest)


class Fitted(NamedTuple):
    """What training gives: tensors and configuration, which together are the model, and the epochs' numbers."""

    tensors: dict[str, Tensor]
    config: dict[str, Any]  # the recipe; encoder, encoder_revision, architecture, pieces, glosses, best_epoch
    history: pl.DataFrame  # epoch, value (accuracy on the validation part), loss (an item of the training part), count


def fit(
    items: pl.DataFrame,
    recipe: Recipe,
    encoder: str | Path = EMBEDDED,
    state: Path | None = None,
    *,
    glosses: Mapping[str, Sequence[str]] | None = None,
    device: str = "cpu",
) -> Fitted:
    """Train a reader and keep the epoch with the best accuracy on the validation part, or the mean of the last ones.

    On a CPU the same items, recipe and encoder give the same bits.

    Args:
        items: item_id, article, question, options and label as of `examples.recam.items`; split where there is one:
            only train and validation are read. Without validation items a tenth of the articles is kept for it, all
            items of an article together.
        recipe: hyperparameters; without epochs the encoder is asked as it is.
        encoder: as `models.recam.pretrained_reader.opened` names it; a folder of `training.recam.masked_lm` is one
            adapted to the task.
        state: file that keeps the state after each epoch; an interrupted training goes on from it and ends with the
            same model on a CPU.
        glosses: the words of each option's gloss, the option in small letters; a word without is its own gloss.
        device: cpu or cuda.

    Raises:
        BadInput: nothing to learn or to choose by, a column or a placeholder is missing, sequences longer than the
            encoder reads, the loss is no number, or `state` is of another training.
        Missing: hypernyms are asked for, and WordNet is not here.
    """
    # the same parts as those of the other readers, so that both can be compared
    items = readers.parted(items, readers.Recipe(seed=recipe.seed))
    if recipe.hypernyms:
        more = hypernyms.augmented(items.filter(pl.col("split") == "train"), recipe.hypernyms, recipe.seed)
        items = pl.concat([items, more])
    generator = torch.Generator().manual_seed(recipe.seed)
    torch.manual_seed(recipe.seed)  # new heads and dropout draw from the global source
    found = models.opened(encoder, is_masked=recipe.style == "masked")
    told_pieces = models.pieces_of(found)
    pieces = models.pieces(told_pieces)
    _check_length(recipe, pieces)
    told = _told(items, glosses or {}, recipe)
    model = _model(found.module, recipe).to(device)
    if recipe.is_checkpointed:
        model.transformer.activation_checkpointing_enable({"use_reentrant": False})
    is_held = (items["split"] == "validation").to_numpy()
    inputs = _inputs(items, recipe, pieces, told)
    training = _Training(model, recipe, inputs, pieces, np.flatnonzero(~is_held), np.flatnonzero(is_held), generator)
    training.run(state, _made_of(items, recipe, found, told))
    models.into(model, training.best)
    config = {
        **asdict(recipe),
        "kind": KIND,
        "encoder": found.name,
        "encoder_revision": found.revision,
        "architecture": models.architecture(found.module),
        "pieces": told_pieces,
        "glosses": told,
        "best_epoch": training.best_epoch,
        "averaged_value": training.averaged_value,
    }
    schema = {"epoch": pl.Int64, "value": pl.Float64, "loss": pl.Float64, "count": pl.Int64}
    return Fitted(models.weights(model), config, pl.DataFrame(training.history, schema=schema, orient="row"))


def _check_length(recipe: Recipe, pieces: Pieces) -> None:
    """BadInput if the longest sequence is longer than the encoder reads."""
    gloss = recipe.longest_gloss + len(pieces.between) if recipe.has_gloss and recipe.style == "filled" else 0
    around = len(pieces.before) + len(pieces.between) + len(pieces.after)
    longest = recipe.window + 2 * recipe.longest_question + _OPTION + gloss + around
    if longest > pieces.longest:
        raise BadInput(
            f"the window of {recipe.window} pieces comes to {longest} with question, option"
            f"{' and gloss' if gloss else ''}; the encoder reads {pieces.longest}: take a window of "
            f"{max(pieces.longest - longest + recipe.window, 0)} at most"
        )


def _told(items: pl.DataFrame, glosses: Mapping[str, Sequence[str]], recipe: Recipe) -> dict[str, str]:
    """The gloss of each option, which is itself where there is none; none at all for a reader that reads none."""
    if not recipe.has_gloss:
        return {}
    words = sorted({_form(option) for options in items["options"] for option in options})
    found = {word: glosses.get(word) or [word] for word in words}
    return {word: gloss if isinstance(gloss, str) else " ".join(gloss) for word, gloss in found.items()}


def _model(transformer: Any, recipe: Recipe) -> PretrainedReader:
    for name in ("hidden_dropout_prob", "attention_probs_dropout_prob"):
        if hasattr(transformer.config, name):
            setattr(transformer.config, name, recipe.dropout)
    for part in transformer.modules():
        if isinstance(part, nn.Dropout):
            part.p = recipe.dropout
    shape = Shape(recipe.style, recipe.pool, recipe.windows_by, recipe.has_gloss, recipe.wrong > 0, recipe.dropout)
    model = PretrainedReader(transformer, shape)
    models.freeze(model.encoder, recipe.tuned_layers, recipe.is_embedding_tuned)
    return model


def _made_of(items: pl.DataFrame, recipe: Recipe, found: models.Opened, told: object) -> str:
    """SHA-256 of what a training is made of; of how many epochs, since the learning rate falls over all of them."""
    key = hashlib.sha256(repr((asdict(recipe), found.revision, told)).encode())
    for part in items.iter_slices(ROWS):
        key.update(part.write_ndjson().encode())
    return key.hexdigest()


class _Training:
    """A model while it learns: its best weights so far, the mean of its last ones, and the numbers of the epochs."""

    def __init__(
        self, model: PretrainedReader, recipe: Recipe, inputs: _Inputs, pieces: Pieces, train: IndexArray,
        held: IndexArray, generator: torch.Generator,
    ) -> None:  # fmt: skip
        self.model, self.recipe, self.inputs, self.pieces = model, recipe, inputs, pieces
        self.train, self.held, self.generator = train, held, generator
        self.optimiser = optimiser_of(
            model, recipe.learning_rate, recipe.weight_decay, recipe.faster, slow=model.transformer
        )
        self.best, self.history = learnt(model), list[tuple[int, float, float, int]]()
        self.mean: dict[str, Tensor] = {}
        self.averaged_value: float | None = None

    @property
    def best_epoch(self) -> int | None:
        """None where the weights of several are averaged."""
        if self.recipe.averaged:
            return None
        return max(self.history, key=lambda row: (row[1], -row[0]))[0] if self.history else 0

    def run(self, state: Path | None, made_of: str) -> None:
        if state and (found := checkpoint.read(state)):
            if found[1]["made_of"] != made_of:
                raise BadInput(f"{state}: the state of a training on other items, another recipe or another encoder")
            self._resume(*found)
            log.info("training goes on after epoch %d", len(self.history))
        for epoch in range(len(self.history) + 1, self.recipe.epochs + 1):
            loss, value = self._pass(epoch), self._accuracy()
            log.info("epoch %d of %d: loss %.4f, accuracy %.4f", epoch, self.recipe.epochs, loss, value)
            if value > max((row[1] for row in self.history), default=-1.0):
                self.best = learnt(self.model)
            self.history.append((epoch, value, loss, len(self.held)))
            self._average(epoch - (self.recipe.epochs - self.recipe.averaged) - 1)
            if state:
                self._keep(state, made_of)
        if self.recipe.averaged:
            self.best = self.mean
            models.into(self.model, self.mean)
            self.averaged_value = self._accuracy()
            log.info("the mean of the last %d epochs: accuracy %.4f", self.recipe.averaged, self.averaged_value)

    @torch.no_grad()
    def _average(self, seen: int) -> None:
        """Take this epoch's weights into the mean; so many epochs are in it."""
        if seen == 0 and self.recipe.averaged:
            self.mean = learnt(self.model)
        elif seen > 0:
            now = learnt(self.model)
            mean = [self.mean[name] for name in now]
            average = get_swa_multi_avg_fn()  # type: ignore[no-untyped-call]
            average(mean, list(now.values()), seen)  # in place

    def _pass(self, epoch: int) -> float:
        """One pass over the training part; the mean loss of an item."""
        self.model.train()
        total = 0.0
        batches = list(by_length(self.inputs.lengths(), self.train, self.recipe.batch, self.generator))
        for number, at in enumerate(batches, (epoch - 1) * len(batches)):
            self.optimiser.zero_grad()
            for part in np.array_split(at, min(self.recipe.parts, len(at))):
                loss = self._loss(part) * (len(part) / len(at))
                if not torch.isfinite(loss):
                    raise BadInput(f"the loss is {loss.item()} in epoch {epoch}: the learning rate is too high")
                loss.backward()  # type: ignore[no-untyped-call]
                total += loss.item() * len(at)
            nn.utils.clip_grad_norm_(self.model.parameters(), self.recipe.clip)
            paced(self.optimiser, number, len(batches) * self.recipe.epochs, self.recipe.warmup, self.recipe.is_falling)
            self.optimiser.step()
        return total / len(self.train)

    def _loss(self, at: IndexArray) -> Tensor:
        right, wrong = _scores(self.model, self.inputs, at, self.recipe, self.pieces)
        truth = self.inputs.truth[torch.from_numpy(at)].to(right.device)
        return loss_of(right, wrong, truth, self.recipe)

    def _accuracy(self) -> float:
        found = [
            said.argmax(dim=1) == self.inputs.truth[torch.from_numpy(at)]
            for at, said in _asked(self.model, self.inputs, self.held, self.recipe, self.pieces)
        ]
        return float(torch.cat(found).float().mean())

    def _keep(self, path: Path, made_of: str) -> None:
        now = learnt(self.model) | {f"mean.{name}": value for name, value in self.mean.items()}
        tensors = checkpoint.of_training(self.best, now, self.optimiser, self.generator)
        checkpoint.save(path, tensors, {"history": self.history, "made_of": made_of})

    def _resume(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        self.best, now = checkpoint.into_training(tensors, self.optimiser, self.generator)
        self.mean = {name[5:]: now.pop(name) for name in list(now) if name.startswith("mean.")}
        models.into(self.model, now)
        self.history = [(int(epoch), float(value), float(loss), int(n)) for epoch, value, loss, n in facts["history"]]


def loss_of(right: Tensor, wrong: Tensor | None, truth: Tensor, recipe: Recipe) -> Tensor:
    """What is learnt from: the cross entropy of the right option, and of each option's being wrong.

    With smoothing ε the truth is 1 − ε + ε/5 for the right option and ε/5 for the others.

    Args:
        right: scores, [n, 5].
        wrong: scores of the second head, [n, 5].
        truth: place of the right option, [n].
        recipe: its smoothing and the weight of the second loss.
    """
    loss = cross_entropy(right, truth, label_smoothing=recipe.smoothing)
    if wrong is None:
        return loss
    is_wrong = torch.ones_like(wrong).scatter(1, truth.unsqueeze(1), 0.0)
    return loss + recipe.wrong * binary_cross_entropy_with_logits(wrong, is_wrong)


def _scores(
    model: PretrainedReader, inputs: _Inputs, at: IndexArray, recipe: Recipe, pieces: Pieces
) -> tuple[Tensor, Tensor | None]:
    device = next(model.parameters()).device
    with torch.autocast(device.type, PRECISIONS["bfloat16"], enabled=recipe.precision == "bfloat16"):
        found: tuple[Tensor, Tensor | None] = model(_batch(inputs, at.tolist(), recipe, pieces).to(str(device)))
    return found


@torch.no_grad()
def _asked(
    model: PretrainedReader, inputs: _Inputs, rows: IndexArray, recipe: Recipe, pieces: Pieces
) -> Iterator[tuple[IndexArray, Tensor]]:
    """Some rows and the log probabilities of their options [n, 5], until each row had its turn."""
    model.eval()
    order = rows[np.argsort(inputs.lengths()[rows], kind="stable")]
    size = max(1, recipe.batch // recipe.parts)
    for start in range(0, len(order), size):
        at = order[start : start + size]
        yield at, models.ensembled(*_scores(model, inputs, at, recipe, pieces), recipe.wrong).cpu()


class Trained(NamedTuple):
    """A reader that can be asked."""

    model: PretrainedReader
    recipe: Recipe
    pieces: Pieces
    glosses: dict[str, str]  # of the options it learnt of


def load(tensors: dict[str, Tensor], config: dict[str, Any], device: str = "cpu") -> Trained:
    """A reader of what `fit` gave or `registry.read` read; the encoder that it was made of is not needed.

    Raises:
        BadInput: it is no pretrained reader, or a weight is of another one.
    """
    if config.get("kind") != KIND:
        raise BadInput(f"the model is of kind {config.get('kind')!r}, not {KIND!r}")
    recipe = Recipe(**{field.name: config[field.name] for field in fields(Recipe)})
    model = _model(models.built(config["architecture"], is_masked=recipe.style == "masked"), recipe)
    if missing := sorted(set(models.weights(model)) - set(tensors)):
        raise BadInput(f"the model lacks the weight {missing[0]!r} and {len(missing) - 1} others")
    models.into(model, tensors)
    return Trained(model.eval().to(device), recipe, models.pieces(config["pieces"]), config["glosses"])


def answer(trained: Trained, items: pl.DataFrame, glosses: Mapping[str, Sequence[str]] | None = None) -> Floats:
    """Probabilities of the five options of each item: [n, 5].

    Args:
        trained: the reader.
        items: item_id, article, question, options.
        glosses: of options that are new to the reader.
    """
    out = np.empty((len(items), cloze.OPTIONS), np.float64)
    for start in range(0, len(items), ROWS):
        part = items[start : start + ROWS]
        told = _told(part, glosses or {}, trained.recipe) | trained.glosses
        inputs = _inputs(part, trained.recipe, trained.pieces, told)
        for at, said in _asked(trained.model, inputs, np.arange(len(part)), trained.recipe, trained.pieces):
            out[start + at] = said.double().softmax(dim=1).numpy()
    return out
