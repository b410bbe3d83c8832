"""Training of the subtext recogniser on comments in context (CSD, appendix A.2; CSD-02, CSD-28 to CSD-30).

Tokens have vectors read from a file, trained on comments at hand (`training.word_vectors`), or of a transformer's last
layer, frozen. The paper states no hyperparameter; those of the profile `paper` are common ones. Ours begins where a
linear classifier of n-grams ends (`models.ngrams`): the LSTMs learn what that leaves.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, embedding, embedding_bag

from pipeline.errors import BadInput
from pipeline.metrics.classification import macro_f1
from pipeline.models import ngrams
from pipeline.models.encoder import Encoder
from pipeline.models.subtext.recogniser import Shape, Subtext
from pipeline.models.word_vectors import WordVectors
from pipeline.training import loop, recipes
from pipeline.training.batches import by_length, in_order
from pipeline.training.loop import Fitted
from pipeline.training.subtext.reading import Floats, IndexArray, Inputs, Reader, Recipe

__all__ = [
    "POSITIVE",
    "PROFILES",
    "Recipe",
    "Trained",
    "decide",
    "fit",
    "load",
    "predict",
    "probabilities",
    "recipe_of",
]

POSITIVE = "1"  # the class of what contains subtext
ROWS = 4096  # texts prepared in one go when nothing is learnt
_CLIP = 5.0  # longest gradient of a member
_LINEAR = ("rarity", "weights", "bias")


PROFILES = {
    "paper": Recipe(),
    "undertone": Recipe(
        pooling="max",
        is_bidirectional=True,
        comparison="product",
        hidden=48,
        meaning=32,
        ngrams=2,
        is_weighted=True,
        members=3,
        dropout=0.5,
        weight_decay=0.1,
        batch=32,
        epochs=8,
    ),
}
"""Algorithm 1 over words, read to the last state of one LSTM; and ours, chosen on the validation parts of ToSarcasm."""


def recipe_of(profile: str, **changes: Any) -> Recipe:
    """A profile with some numbers changed; those that are None stay."""
    from_zero = {"vocabulary", "ngrams", "seed"}
    return recipes.changed(PROFILES, profile, changes, from_zero=from_zero, above_zero={"penalty"})


class Recogniser(nn.Module):
    """Members that see the same vectors, and the vectors of the words."""

    def __init__(self, shape: Shape, members: int, table: Tensor | None, encoder: Encoder | None, tuned: bool) -> None:
        super().__init__()
        self.classes = shape.classes
        self.members = nn.ModuleList(Subtext(shape) for _ in range(members))
        self.table = None if table is None else nn.Parameter(table, requires_grad=tuned)
        self._encoder = None if encoder is None else [encoder]  # in a list: it is no part of what is trained or kept

    def forward(self, inputs: Inputs, at: IndexArray) -> Tensor:
        """Logits [members, n, classes] of some of the sentences."""
        pairs = []
        for rows in (inputs.texts[at], inputs.contexts[at]):
            distinct, inverse = np.unique(rows, return_inverse=True)
            ids, lengths = inputs.padded(distinct)
            pairs.append((self._vectors(ids, inputs.extra)[inverse], lengths[inverse]))
        logits = torch.stack([member(*pairs) for member in self.members])
        return logits if inputs.said is None else logits + inputs.said[at]

    def _vectors(self, ids: Tensor, extra: Tensor | None) -> Tensor:
        if self.table is None:
            return self._states(ids)
        known = len(self.table)
        found = embedding(ids.clamp(max=known - 1), self.table, padding_idx=0)
        if extra is not None and (strange := ids >= known).any():
            means = embedding_bag(extra[ids[strange] - known], self.table, mode="mean", padding_idx=0)
            found = found.index_put((strange,), means)
        return found.flatten(2)

    @torch.no_grad()
    def _states(self, ids: Tensor) -> Tensor:
        assert self._encoder is not None
        model = self._encoder[0].module[0].model
        ids = ids.to(self._encoder[0].device)
        mask = (ids > 0).squeeze(2)
        states: Tensor = model(input_ids=(ids.squeeze(2) - 1).clamp(min=0), attention_mask=mask.long())[0]
        return states.float().cpu()


def fit(rows: pl.DataFrame, recipe: Recipe, vectors: WordVectors | Encoder, state: Path | None = None) -> Fitted:
    """Train on the `train` split, on a CPU, and keep the epoch with the best macro F1 on `validation` (errata E9).

    Without a validation part the training part decides, and probabilities stay as they come; with one they are
    calibrated on it by a temperature (Guo et al., 2017). The same rows, recipe and vectors give the same bits on a CPU.

    Args:
        rows: text, context, label, split, as of `examples.subtext.contexts`.
        recipe: hyperparameters.
        vectors: of words (and characters, where the recipe's units are such); or an encoder, whose pieces are read.
        state: file that keeps the state after each epoch; an interrupted training goes on from it and ends with the
            same model.

    Raises:
        BadInput: fewer than two classes to learn, a label that only the validation part has, or a loss that is no
            number.
    """
    encoder = vectors if isinstance(vectors, Encoder) else None
    if (recipe.units == "pieces") != (encoder is not None):
        raise BadInput("units 'pieces' are those of an encoder, the others have word vectors")
    if encoder and encoder.module is None:
        raise BadInput(f"the encoder {encoder.name!r} has no pieces with states; give a transformer or word vectors")
    parts = {name: rows.filter(pl.col("split") == name) for name in ("train", "validation")}
    classes = sorted(parts["train"]["label"].unique())
    if len(classes) < 2:
        raise BadInput(f"the training part should hold at least two labels; found {', '.join(classes) or 'no rows'}")
    if strange := sorted(set(parts["validation"]["label"]) - set(classes)):
        raise BadInput(f"the label {strange[0]!r} is in the validation part and not in the training part")
    if parts["validation"].is_empty():
        del parts["validation"]
    generator = loop.seed_all(recipe.seed)
    words, table = ([], None) if isinstance(vectors, Encoder) else _table(parts["train"], recipe, vectors)
    reader = Reader(recipe, words, None, encoder)
    place = {label: number for number, label in enumerate(classes)}
    truth = {name: np.array([place[label] for label in part["label"]], np.int64) for name, part in parts.items()}
    unseen = _linear(reader, parts["train"], truth["train"]) if recipe.ngrams else None
    inputs = {name: reader.read(part["text"].to_list(), part["context"].to_list()) for name, part in parts.items()}
    inputs["train"].said = unseen
    model = Recogniser(_shape(recipe, len(classes), table, encoder), recipe.members, table, encoder, recipe.is_tuned)
    training = _Training(model, recipe, inputs, truth, generator)
    outcome = loop.run(training.epoch, training.learner, loop.ACCURACY, recipe.epochs, state)
    training.learner.restore(outcome.weights)
    tensors = outcome.weights
    if table is not None and not recipe.is_tuned:
        tensors["table"] = table
    if reader.linear:
        tensors |= {f"ngrams.{name}": torch.from_numpy(getattr(reader.linear, name)) for name in _LINEAR}
    config = {
        **asdict(recipe),
        "kind": "subtext",
        "classes": classes,
        "shares": training.shares,
        "grams": reader.linear.grams if reader.linear else None,
        "words": words,
        "best_epoch": outcome.best_epoch,
        "temperature": training.temperature(),
        "encoder": encoder.name if encoder else None,
        "encoder_revision": encoder.revision if encoder else None,
    }
    return Fitted(tensors, config, outcome.history)


def _table(rows: pl.DataFrame, recipe: Recipe, vectors: WordVectors) -> tuple[list[str], Tensor]:
    """The words that are kept, and their vectors after a row of zeros, sized so that numbers are about 1."""
    reader = Reader(recipe, [], None, None)
    texts = [*rows["text"].unique(), *rows["context"].unique()]
    needed = {word for text in texts for token in reader.tokens(text) for word in token}
    needed |= {form for word in needed for form in (word.lower(), *word)}
    kept = [row for row, word in enumerate(vectors.words) if row < recipe.vocabulary or word in needed]
    chosen = torch.from_numpy(vectors.vectors[kept])
    scale = chosen.square().mean().sqrt().clamp(min=1e-12) if kept else torch.tensor(1.0)
    nothing = torch.zeros(1, vectors.vectors.shape[1])
    return [vectors.words[row] for row in kept], torch.cat([nothing, chosen / scale])


def _linear(reader: Reader, rows: pl.DataFrame, truth: IndexArray) -> Tensor:
    """Give the reader a classifier of n-grams; what it says of each row when it does not know it, [n, classes]."""
    recipe = reader.recipe
    contexts = rows["context"] if recipe.has_context else [""] * rows.height
    reader.linear, unseen = ngrams.fit(
        rows["text"].to_list(), list(contexts), truth, reader.words_of, least=recipe.ngrams, penalty=recipe.penalty,
        is_weighted=recipe.is_weighted, seed=recipe.seed,
    )  # fmt: skip
    return torch.from_numpy(unseen).float()


def _shape(recipe: Recipe, classes: int, table: Tensor | None, encoder: Encoder | None) -> Shape:
    channels = 2 if recipe.units == "characters" else 1
    dim = encoder.last if encoder else channels * (0 if table is None else table.shape[1])
    return Shape(
        dim, classes, recipe.hidden, recipe.meaning, recipe.pooling, recipe.is_bidirectional, recipe.dropout,
        recipe.comparison,
    )  # fmt: skip


class _Training:
    """A model while it learns, and the rows that it is judged by."""

    def __init__(
        self, model: Recogniser, recipe: Recipe, inputs: dict[str, Inputs], truth: dict[str, IndexArray],
        generator: torch.Generator,
    ) -> None:  # fmt: skip
        self.model, self.recipe, self.inputs, self.truth, self.generator = model, recipe, inputs, truth, generator
        learnt = [value for value in model.parameters() if value.requires_grad]
        optimiser = torch.optim.AdamW(learnt, lr=recipe.learning_rate, weight_decay=recipe.weight_decay)
        learner = loop.learner_of(model, optimiser, generator, _CLIP)
        self.learner = replace(learner, modules=list(model.members))
        counts = np.bincount(truth["train"])
        self.weights = torch.from_numpy(counts.sum() / (len(counts) * counts)).float() if recipe.is_weighted else None
        # who learns as if all classes were as frequent is told afterwards how frequent they are
        self.shares = (counts / counts.sum() if recipe.is_weighted else np.full(len(counts), 1 / len(counts))).tolist()

    @property
    def judge(self) -> str:
        """The part that chooses the epoch."""
        return "validation" if "validation" in self.inputs else "train"

    def epoch(self, number: int) -> tuple[float, float, int]:
        """Learn from all rows and be judged: the numbers of the history."""
        loss = self._pass(number)
        predicted = _probabilities(self.model, self.inputs[self.judge]).argmax(axis=1)
        return macro_f1(self.truth[self.judge], predicted), loss, len(predicted)

    def _pass(self, epoch: int) -> float:
        """One pass over the training part; the mean loss of a row."""
        self.model.train()
        inputs, total = self.inputs["train"], 0.0
        for rows in by_length(inputs.lengths[inputs.texts], np.arange(len(inputs)), self.recipe.batch, self.generator):
            truth = torch.from_numpy(self.truth["train"][rows])
            losses = [cross_entropy(logits, truth, self.weights) for logits in self.model(inputs, rows)]
            loss = loop.descend(torch.stack(losses).sum(), self.learner, epoch)
            total += loss * len(rows) / self.recipe.members
        return total / len(inputs)

    def temperature(self) -> float:
        """What log probabilities are divided by so that they fit the validation part best; 1 without one."""
        from scipy.optimize import minimize_scalar

        if "validation" not in self.inputs:
            return 1.0
        said, truth = _probabilities(self.model, self.inputs["validation"]), self.truth["validation"]

        def loss(scale: float) -> float:
            found = _calibrated(said, math.exp(scale), self.shares)[np.arange(len(truth)), truth]
            return -float(np.mean(np.log(np.clip(found, 1e-12, 1))))

        return round(math.exp(minimize_scalar(loss, bounds=(-3, 3), method="bounded").x), 6)


@torch.no_grad()
def _probabilities(model: Recogniser, inputs: Inputs) -> Floats:
    """Mean of the members' probabilities, [n, classes]."""
    model.eval()
    out = np.empty((len(inputs), model.classes), np.float64)
    for rows in in_order(inputs.lengths[inputs.texts], np.arange(len(inputs)), 256):
        out[rows] = model(inputs, rows).double().softmax(dim=2).mean(dim=0).numpy()
    return out


class Trained(NamedTuple):
    """A recogniser that can be asked."""

    model: Recogniser
    reader: Reader
    classes: list[str]
    temperature: float
    shares: list[float]  # of the classes where it learnt as if they were equal; else equal


def load(tensors: dict[str, Tensor], config: dict[str, Any], encoder: Encoder | None = None) -> Trained:
    """A recogniser of what `fit` gave or `registry.read` read.

    Args:
        tensors: its weights, with the words' vectors among them.
        config: its configuration.
        encoder: the encoder that it was trained with, where it was trained with one.

    Raises:
        BadInput: it is no recogniser, or the encoder is another one.
    """
    if config.get("kind") != "subtext":
        raise BadInput(f"the model is of kind {config.get('kind')!r}, not 'subtext'")
    if config["encoder_revision"] != (encoder.revision if encoder else None):
        raise BadInput(f"the recogniser was trained with encoder {config['encoder']}; give that one")
    recipe = Recipe(**{field.name: config[field.name] for field in fields(Recipe)})
    weights = dict(tensors)
    linear = [weights.pop(f"ngrams.{name}").numpy() for name in _LINEAR] if config["grams"] else None
    grams = ngrams.Ngrams(tuple(config["grams"]), *linear) if linear else None
    reader = Reader(recipe, config["words"], grams, encoder)
    table = weights.get("table")
    shape = _shape(recipe, len(config["classes"]), table, encoder)
    model = Recogniser(shape, recipe.members, table, encoder, tuned=False)
    model.load_state_dict(weights)
    return Trained(model.eval(), reader, config["classes"], config["temperature"], config["shares"])


def probabilities(trained: Trained, texts: Sequence[str], contexts: Sequence[str]) -> Floats:
    """Calibrated probabilities of the classes: [n, classes]. The context of each text is required (CSD-01).

    Raises:
        ValueError: not as many contexts as texts.
    """
    if len(texts) != len(contexts):
        raise ValueError(f"{len(texts)} texts and {len(contexts)} contexts: each text should have one, maybe empty")
    out = np.empty((len(texts), len(trained.classes)), np.float64)
    for start in range(0, len(texts), ROWS):
        part = slice(start, start + ROWS)
        found = _probabilities(trained.model, trained.reader.read(texts[part], contexts[part]))
        out[part] = _calibrated(found, trained.temperature, trained.shares)
    return out


def _calibrated(probabilities: Floats, temperature: float, shares: Sequence[float]) -> Floats:
    tempered = np.clip(probabilities, 1e-12, 1) ** (1 / temperature) * np.array(shares)
    return np.asarray(tempered / tempered.sum(axis=1, keepdims=True), np.float64)


def decide(trained: Trained, probabilities: Floats) -> IndexArray:
    """The class of each row: the likeliest, where it learnt so each measured by how frequent it is; [n].

    Macro F1 counts all classes alike; of two that are likely, the rarer one is then the better guess.
    """
    return np.asarray((probabilities / np.array(trained.shares)).argmax(axis=1), np.int64)


def predict(trained: Trained, texts: Sequence[str], contexts: Sequence[str]) -> Floats:
    """Probability that each text holds subtext in its context: [n].

    Raises:
        BadInput: the recogniser was trained on other labels than 1 and 0.
    """
    if POSITIVE not in trained.classes:
        raise BadInput(f"the recogniser knows {', '.join(trained.classes)}, and no class {POSITIVE!r}")
    return probabilities(trained, texts, contexts)[:, trained.classes.index(POSITIVE)]
