"""Training of the subtext recogniser on comments in context (CSD, appendix A.2; CSD-02, CSD-28 to CSD-30).

Comments and contexts are rows of vectors. The profile `undertone` adds the LSTMs' logits to those of a linear
classifier of n-grams (`models.subtext.recogniser`).
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import polars as pl
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, embedding, embedding_bag

from pipeline.errors import BadInput
from pipeline.metrics.classification import macro_f1
from pipeline.metrics.resample import Floats
from pipeline.models.encoder import Encoder, IndexArray, check_kind, describe_encoder
from pipeline.models.subtext import recogniser
from pipeline.models.subtext.recogniser import Shape, Subtext
from pipeline.models.word_vectors import WordVectors, find_rows
from pipeline.text import segment
from pipeline.training import loop
from pipeline.training.loop import TrainingResult, shuffle_batches, sort_batches


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe(Shape):
    """The hyperparameters of a training."""

    units: Literal["words", "characters", "pieces"] = "words"  # pieces: the tokens of a transformer
    tokenizer: Literal["jieba", "rjieba", "nltk"] = "jieba"
    vocabulary: int = 20_000  # vectors kept from the head of the list, besides those of the training texts
    longest: int = 128  # tokens of a text that are read
    has_context: bool = True  # False: every context is empty (ablation)
    is_tuned: bool = False  # also train the word vectors
    ngrams: int = 0  # fewest texts of an n-gram of the linear classifier; 0: no such classifier, as in the paper
    penalty: float = 0.5  # on the classifier's weights
    members: int = 1  # recognisers trained together, whose probabilities are averaged
    is_weighted: bool = False  # weight the classes equally
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    batch: int = 64
    epochs: int = 10
    seed: int = 42


@dataclass
class Inputs:
    """Distinct texts as rows of vectors, the row numbers of sentences and contexts, and the initial logits."""

    rows: list[Tensor]
    extra: Tensor | None  # rows of the vectors whose mean an unknown word gets
    texts: IndexArray
    contexts: IndexArray
    logits: Tensor | None

    def __post_init__(self) -> None:
        self.lengths = np.fromiter(map(len, self.rows), np.int64, len(self.rows))

    def __len__(self) -> int:
        return len(self.texts)

    def pad(self, rows: IndexArray) -> tuple[Tensor, Tensor]:
        """Return ids [n, t, channels], padded with 0, and lengths [n]."""
        ids = nn.utils.rnn.pad_sequence([self.rows[row] for row in rows], batch_first=True)
        return ids, torch.from_numpy(self.lengths[rows])


class Reader:
    """Turns texts into tensors, in training and in prediction."""

    def __init__(
        self, recipe: Recipe, words: Sequence[str], linear: recogniser.Ngrams | None, encoder: Encoder | None
    ) -> None:
        self.recipe, self.words, self.linear, self.encoder = recipe, words, linear, encoder
        self.place = {word: row for row, word in enumerate(words, 1)}  # row 0 is padding
        self.split_words = partial(segment.split_words, cut=segment.load_tokenizer(recipe.tokenizer).cut)

    def tokenize(self, text: str) -> list[tuple[str, ...]]:
        """Return the tokens of a text: words, or characters, each with its word."""
        words, pairs = self.split_words(text), list[tuple[str, ...]]()
        if self.recipe.units == "words":
            return [(word,) for word in words[: self.recipe.longest]]
        for word in words:
            pairs += [(letter, word) for letter in ([word] if segment.CODE.fullmatch(word) else word)]
        return pairs[: self.recipe.longest]

    def read(self, texts: Sequence[str], contexts: Sequence[str]) -> Inputs:
        """Return the inputs of some texts and their contexts."""
        if not self.recipe.has_context:
            contexts = [""] * len(texts)
        distinct = {text: row for row, text in enumerate(dict.fromkeys([*texts, *contexts]))}
        rows, extra = self._index_pieces(list(distinct)) if self.encoder else self._index_words(list(distinct))
        logits = self.linear.logits(texts, contexts, self.split_words) if self.linear else None
        numbers = np.array([[distinct[text] for text in column] for column in (texts, contexts)], np.int64)
        tensor = None if logits is None else torch.from_numpy(logits).float()
        return Inputs(rows, extra, numbers[0], numbers[1], tensor)

    def _index_words(self, texts: list[str]) -> tuple[list[Tensor], Tensor | None]:
        unknown_ids: dict[str, int] = {}

        def index(word: str) -> int:
            return self.place.get(word) or len(self.words) + 1 + unknown_ids.setdefault(word, len(unknown_ids))

        rows, padding = [], [[0] if self.recipe.units == "words" else [0, 0]]
        for text in texts:
            ids = [[index(word) for word in token] for token in self.tokenize(text)]
            rows.append(torch.tensor(ids or padding, dtype=torch.int64))
        means = [find_rows(self.place, word) or [0] for word in unknown_ids]
        width = max(map(len, means), default=1)
        return rows, torch.tensor([mean + [0] * (width - len(mean)) for mean in means]).reshape(-1, width)

    def _index_pieces(self, texts: list[str]) -> tuple[list[Tensor], None]:
        assert self.encoder is not None
        tokenizer = self.encoder.module.tokenizer
        ids = tokenizer(texts, truncation=True, max_length=min(self.recipe.longest, self.encoder.module.max_seq_length))
        return [torch.tensor(piece_ids, dtype=torch.int64).unsqueeze(1) + 1 for piece_ids in ids["input_ids"]], None


POSITIVE = "1"  # the class of texts with subtext
ROWS = 4096  # texts prepared at a time for prediction
_CLIP = 5.0  # largest norm of a member's gradient
_LINEAR = ("rarity", "weights", "bias")

PROFILES = {
    "paper": Recipe(),
    "undertone": Recipe(
        pooling="max", is_bidirectional=True, comparison="product", hidden=48, meaning=32, ngrams=2, is_weighted=True,
        members=3, dropout=0.5, weight_decay=0.1, batch=32, epochs=8,
    ),
}  # fmt: skip
"""Algorithm 1 over words with the last state of one LSTM; and ours, chosen on the validation parts of ToSarcasm."""

make_recipe = partial(loop.replace_numbers, PROFILES, from_zero={"vocabulary", "ngrams"}, above_zero={"penalty"})


class Recogniser(nn.Module):
    """The members and the word vectors that they share."""

    def __init__(self, recipe: Recipe, classes: int, table: Tensor | None, encoder: Encoder | None) -> None:
        super().__init__()
        channels = 2 if recipe.units == "characters" else 1
        dim = encoder.last if encoder else channels * (0 if table is None else table.shape[1])
        self.classes = classes
        self.members = nn.ModuleList(Subtext(dim, classes, recipe) for _ in range(recipe.members))
        self.table = None if table is None else nn.Parameter(table, requires_grad=recipe.is_tuned)
        self._encoder = None if encoder is None else [encoder]  # a list hides it: it is neither trained nor saved

    def forward(self, inputs: Inputs, positions: IndexArray) -> Tensor:
        """Return logits [members, n, classes] of the sentences at some positions."""
        pairs = []
        for rows in (inputs.texts[positions], inputs.contexts[positions]):
            distinct, inverse = np.unique(rows, return_inverse=True)
            ids, lengths = inputs.pad(distinct)
            pairs.append((self._vectors(ids, inputs.extra)[inverse], lengths[inverse]))
        logits = torch.stack([member(*pairs) for member in self.members])
        return logits if inputs.logits is None else logits + inputs.logits[positions]

    def _vectors(self, ids: Tensor, extra: Tensor | None) -> Tensor:
        if self.table is None:
            return self._states(ids)
        word_count = len(self.table)
        vectors = embedding(ids.clamp(max=word_count - 1), self.table, padding_idx=0)
        if extra is not None and (is_unknown := ids >= word_count).any():
            means = embedding_bag(extra[ids[is_unknown] - word_count], self.table, mode="mean", padding_idx=0)
            vectors = vectors.index_put((is_unknown,), means)
        return vectors.flatten(2)

    @torch.no_grad()
    def _states(self, ids: Tensor) -> Tensor:
        assert self._encoder is not None
        model = self._encoder[0].module[0].model
        ids = ids.to(self._encoder[0].device)
        mask = (ids > 0).squeeze(2)
        states: Tensor = model(input_ids=(ids.squeeze(2) - 1).clamp(min=0), attention_mask=mask.long())[0]
        return states.float().cpu()


def fit(
    rows: pl.DataFrame, recipe: Recipe, vectors: WordVectors | Encoder, state: Path | None = None
) -> TrainingResult:
    """Train on the `train` split, on a CPU, and keep the epoch with the best macro F1 on `validation` (errata E9).

    The validation part calibrates the probabilities by a temperature (Guo et al., 2017). Without one, the training
    part chooses the epoch and nothing is calibrated. The same rows, recipe and vectors give the same bits on a CPU.
    Rows have text, context, label, split, as of `examples.subtext.contexts`; vectors are of words and characters, or an
    encoder for pieces; for `state` see `loop.run`. BadInput for fewer than two classes in the training part, a label
    that only the validation part has, vectors of the wrong kind, or a loss that is not finite.
    """
    encoder = vectors if isinstance(vectors, Encoder) else None
    if (recipe.units == "pieces") != (encoder is not None):
        raise BadInput("units 'pieces' need an encoder, other units need word vectors")
    if encoder and encoder.module is None:
        raise BadInput(f"the encoder {encoder.name!r} is not a transformer; give a transformer or word vectors")
    parts = {name: rows.filter(pl.col("split") == name) for name in ("train", "validation")}
    classes = sorted(parts["train"]["label"].unique())
    if len(classes) < 2:
        raise BadInput(f"the training part should have at least two labels; found {', '.join(classes) or 'no rows'}")
    if unknown_labels := sorted(set(parts["validation"]["label"]) - set(classes)):
        raise BadInput(f"the label {unknown_labels[0]!r} is in the validation part but not in the training part")
    if parts["validation"].is_empty():
        del parts["validation"]
    generator = loop.seed_all(recipe.seed)
    words, table = ([], None) if isinstance(vectors, Encoder) else _select_vectors(parts["train"], recipe, vectors)
    reader = Reader(recipe, words, None, encoder)
    truth = {name: np.array([classes.index(label) for label in part["label"]]) for name, part in parts.items()}
    held_out_logits = _fit_ngrams(reader, parts["train"], truth["train"]) if recipe.ngrams else None
    inputs = {name: reader.read(part["text"].to_list(), part["context"].to_list()) for name, part in parts.items()}
    inputs["train"].logits = held_out_logits
    model = Recogniser(recipe, len(classes), table, encoder)
    training = _Training(model, recipe, inputs, truth, generator)
    outcome = loop.run(training.run_epoch, training.learner, loop.ACCURACY, recipe.epochs, state)
    training.learner.restore(outcome.weights)
    tensors = outcome.weights
    if table is not None and not recipe.is_tuned:
        tensors["table"] = table
    linear = reader.linear
    if linear:
        tensors |= {f"ngrams.{name}": torch.from_numpy(getattr(linear, name)) for name in _LINEAR}
    config = {
        **asdict(recipe), "kind": "subtext", "classes": classes, "shares": training.shares,
        "grams": linear.grams if linear else None, "words": words, "best_epoch": outcome.best_epoch,
        "temperature": training.fit_temperature(), **describe_encoder(encoder),
    }  # fmt: skip
    return TrainingResult(tensors, config, outcome.history)


def _select_vectors(rows: pl.DataFrame, recipe: Recipe, vectors: WordVectors) -> tuple[list[str], Tensor]:
    """Return the words with vectors, and their vectors after a row of zeros, scaled to a mean square of 1."""
    reader = Reader(recipe, [], None, None)
    texts = [*rows["text"].unique(), *rows["context"].unique()]
    needed = {word for text in texts for token in reader.tokenize(text) for word in token}
    needed |= {form for word in needed for form in (word.lower(), *word)}
    kept_rows = [row for row, word in enumerate(vectors.words) if row < recipe.vocabulary or word in needed]
    matrix = torch.from_numpy(vectors.vectors[kept_rows])
    scale = matrix.square().mean().sqrt().clamp(min=1e-12) if kept_rows else torch.tensor(1.0)
    padding = torch.zeros(1, vectors.vectors.shape[1])
    return [vectors.words[row] for row in kept_rows], torch.cat([padding, matrix / scale])


def _fit_ngrams(reader: Reader, rows: pl.DataFrame, truth: IndexArray) -> Tensor:
    """Fit the reader's classifier of n-grams; return its logits of each row when held out, [n, classes]."""
    recipe = reader.recipe
    texts, contexts = rows["text"].to_list(), list(rows["context"]) if recipe.has_context else [""] * rows.height
    options: dict[str, Any] = {"least": recipe.ngrams, "penalty": recipe.penalty, "is_weighted": recipe.is_weighted}
    ngram_fit = recogniser.fit_ngrams(texts, contexts, truth, reader.split_words, seed=recipe.seed, **options)
    reader.linear, held_out_logits = ngram_fit
    return torch.from_numpy(held_out_logits).float()


@dataclass
class _Training:  # a model in training, and its training and validation rows
    model: Recogniser
    recipe: Recipe
    inputs: dict[str, Inputs]
    truth: dict[str, IndexArray]
    generator: torch.Generator

    def __post_init__(self) -> None:
        recipe, parameters = self.recipe, [value for value in self.model.parameters() if value.requires_grad]
        optimiser = torch.optim.AdamW(parameters, lr=recipe.learning_rate, weight_decay=recipe.weight_decay)
        learner = loop.make_learner(self.model, optimiser, self.generator, _CLIP)
        self.learner = replace(learner, modules=list(self.model.members))
        counts = np.bincount(self.truth["train"])
        self.weights = torch.from_numpy(counts.sum() / (len(counts) * counts)).float() if recipe.is_weighted else None
        # a model that learns with equal class weights gets the class frequencies back in its predictions
        self.shares = (counts / counts.sum() if recipe.is_weighted else np.full(len(counts), 1 / len(counts))).tolist()

    def run_epoch(self, number: int) -> tuple[float, float, int]:
        """Train an epoch and evaluate it on the validation part if there is one: macro F1, mean loss of a row, rows."""
        self.model.train()
        inputs, loss = self.inputs["train"], 0.0
        lengths, positions = inputs.lengths[inputs.texts], np.arange(len(inputs))
        for rows in shuffle_batches(lengths, positions, self.recipe.batch, self.generator):
            truth = torch.from_numpy(self.truth["train"][rows])
            losses = [cross_entropy(logits, truth, self.weights) for logits in self.model(inputs, rows)]
            batch_loss = loop.descend(torch.stack(losses).sum(), self.learner, number)
            loss += batch_loss * len(rows) / self.recipe.members
        part = "validation" if "validation" in self.inputs else "train"
        classes = _predict(self.model, self.inputs[part]).argmax(axis=1)
        return macro_f1(self.truth[part], classes), loss / len(inputs), len(classes)

    def fit_temperature(self) -> float:
        """Return the temperature with the least loss on the validation part; 1 if there is none."""
        from scipy.optimize import minimize_scalar

        if "validation" not in self.inputs:
            return 1.0
        predicted, truth = _predict(self.model, self.inputs["validation"]), self.truth["validation"]

        def loss(scale: float) -> float:
            likelihoods = _calibrate(predicted, math.exp(scale), self.shares)[np.arange(len(truth)), truth]
            return -float(np.mean(np.log(np.clip(likelihoods, 1e-12, 1))))

        return round(math.exp(minimize_scalar(loss, bounds=(-3, 3), method="bounded").x), 6)


@torch.no_grad()
def _predict(model: Recogniser, inputs: Inputs) -> Floats:
    """Return the mean of the members' probabilities, [n, classes]."""
    model.eval()
    out = np.empty((len(inputs), model.classes), np.float64)
    for rows in sort_batches(inputs.lengths[inputs.texts], np.arange(len(inputs)), 256):
        out[rows] = model(inputs, rows).double().softmax(dim=2).mean(dim=0).numpy()
    return out


class SubtextModel(NamedTuple):
    """A recogniser ready to predict."""

    model: Recogniser
    reader: Reader
    classes: list[str]
    temperature: float
    shares: list[float]  # class frequencies if it was trained with equal class weights, else equal shares


def load(tensors: dict[str, Tensor], config: dict[str, Any], encoder: Encoder | None = None) -> SubtextModel:
    """Load a recogniser of `fit` or `registry.read`; BadInput for another kind of model, or another encoder."""
    check_kind(config, "subtext")
    if config["encoder_revision"] != (encoder.revision if encoder else None):
        raise BadInput(f"the recogniser was trained with encoder {config['encoder']}; give the same encoder")
    recipe = loop.read_recipe(Recipe, config)
    weights, linear = dict(tensors), None
    if config["grams"]:
        linear = recogniser.Ngrams(tuple(config["grams"]), *[weights.pop(f"ngrams.{name}").numpy() for name in _LINEAR])
    reader = Reader(recipe, config["words"], linear, encoder)
    model = Recogniser(recipe, len(config["classes"]), weights.get("table"), encoder)
    model.load_state_dict(weights)
    return SubtextModel(model.eval(), reader, config["classes"], config["temperature"], config["shares"])


def predict_probabilities(model: SubtextModel, texts: Sequence[str], contexts: Sequence[str]) -> Floats:
    """Predict calibrated class probabilities [n, classes]. Each text needs a context, maybe empty (CSD-01)."""
    if len(texts) != len(contexts):
        raise ValueError(f"{len(texts)} texts and {len(contexts)} contexts: expected one context a text, maybe empty")
    out = np.empty((len(texts), len(model.classes)), np.float64)
    for start in range(0, len(texts), ROWS):
        part = slice(start, start + ROWS)
        raw = _predict(model.model, model.reader.read(texts[part], contexts[part]))
        out[part] = _calibrate(raw, model.temperature, model.shares)
    return out


def _calibrate(probabilities: Floats, temperature: float, shares: Sequence[float]) -> Floats:
    tempered = np.clip(probabilities, 1e-12, 1) ** (1 / temperature) * np.array(shares)
    return np.asarray(tempered / tempered.sum(axis=1, keepdims=True), np.float64)


def decide(model: SubtextModel, probabilities: Floats) -> IndexArray:
    """Choose the class of each row, [n], by the ratio of probability to class share, as macro F1 weighs classes."""
    return np.asarray((probabilities / np.array(model.shares)).argmax(axis=1), np.int64)


def predict(model: SubtextModel, texts: Sequence[str], contexts: Sequence[str]) -> Floats:
    """Predict the probability [n] that each text has subtext in its context; BadInput without a class 1."""
    if POSITIVE not in model.classes:
        raise BadInput(f"the recogniser has the classes {', '.join(model.classes)}, and no class {POSITIVE!r}")
    return predict_probabilities(model, texts, contexts)[:, model.classes.index(POSITIVE)]
