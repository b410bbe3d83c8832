"""Training of the subtext recogniser on comments in context (CSD, appendix A.2; CSD-02, CSD-28 to CSD-30).

Tokens have vectors read from a file, trained on comments at hand (`training.word_vectors`), or of a transformer's last
layer, frozen. The paper states no hyperparameter; those of the profile `paper` are common ones. Ours begins where a
linear classifier of n-grams ends (`models.ngrams`): the LSTMs learn what that leaves.
"""

import logging
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, embedding, embedding_bag

from pipeline.errors import BadInput
from pipeline.metrics.classification import macro_f1
from pipeline.models import ngrams
from pipeline.models.encoder import Encoder
from pipeline.models.subtext.recogniser import Comparison, Pooling, Shape, Subtext
from pipeline.models.word_vectors import WordVectors, rows_of
from pipeline.text import segment
from pipeline.training import checkpoint, recipes
from pipeline.training.batches import by_length

log = logging.getLogger(__name__)

POSITIVE = "1"  # the class of what contains subtext
ROWS = 4096  # texts prepared in one go when nothing is learnt
_CLIP = 5.0  # longest gradient of a member
_LINEAR = ("rarity", "weights", "bias")

Floats = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """The numbers of a training."""

    units: Literal["words", "characters", "pieces"] = "words"  # pieces: those of a transformer
    tokenizer: Literal["jieba", "rjieba", "nltk"] = "jieba"
    vocabulary: int = 20_000  # first words of the vectors that are kept beside those of the training texts
    longest: int = 128  # tokens of a text that are read
    hidden: int = 128
    meaning: int = 64
    pooling: Pooling = "last"
    is_bidirectional: bool = False
    comparison: Comparison = "linear"
    has_context: bool = True  # without: every context is empty (ablation)
    is_tuned: bool = False  # train the words' vectors along
    ngrams: int = 0  # texts that an n-gram of the linear classifier stands in; 0: there is none, as in the paper
    penalty: float = 0.5  # on its weights
    members: int = 1  # recognisers trained side by side, whose probabilities are averaged
    is_weighted: bool = False  # rare classes count more, so that each has the same weight
    dropout: float = 0.0
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    batch: int = 64
    epochs: int = 10
    seed: int = 42


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


class Reader:
    """Makes tensors of texts: the same way when a recogniser learns and when it is asked."""

    def __init__(
        self, recipe: Recipe, words: Sequence[str], linear: ngrams.Ngrams | None, encoder: Encoder | None
    ) -> None:
        self.recipe, self.words, self.linear, self.encoder = recipe, words, linear, encoder
        self.place = {word: row for row, word in enumerate(words, 1)}  # row 0 is padding
        self.cut = segment.tokenizer(recipe.tokenizer).cut

    def tokens(self, text: str) -> list[tuple[str, ...]]:
        """The tokens of a text: words; or characters, each with the word it stands in."""
        words = self.words_of(text)
        if self.recipe.units == "words":
            return [(word,) for word in words[: self.recipe.longest]]
        pairs: list[tuple[str, ...]] = [
            (letter, word) for word in words for letter in ([word] if segment.CODE.fullmatch(word) else word)
        ]
        return pairs[: self.recipe.longest]

    def read(self, texts: Sequence[str], contexts: Sequence[str]) -> "Inputs":
        """Everything of some texts that batches are made of."""
        if not self.recipe.has_context:
            contexts = [""] * len(texts)
        distinct = {text: row for row, text in enumerate(dict.fromkeys([*texts, *contexts]))}
        rows, extra = self._pieces(list(distinct)) if self.encoder else self._rows(list(distinct))
        said = self.linear.logits(texts, contexts, self.words_of) if self.linear else None
        return Inputs(rows, extra, [distinct[text] for text in texts], [distinct[text] for text in contexts], said)

    def words_of(self, text: str) -> list[str]:
        """The words of a text."""
        return segment.words(text, self.cut)

    def _rows(self, texts: list[str]) -> tuple[list[Tensor], Tensor | None]:
        unknown: dict[str, int] = {}
        found = []
        for text in texts:
            ids = [
                [self.place.get(word) or len(self.words) + 1 + unknown.setdefault(word, len(unknown)) for word in token]
                for token in self.tokens(text)
            ]
            channels = 1 if self.recipe.units == "words" else 2
            found.append(torch.tensor(ids or [[0] * channels], dtype=torch.int64))
        means = [rows_of(self.place, word) or [0] for word in unknown]
        width = max(map(len, means), default=1)
        return found, torch.tensor([mean + [0] * (width - len(mean)) for mean in means]).reshape(-1, width)

    def _pieces(self, texts: list[str]) -> tuple[list[Tensor], None]:
        assert self.encoder is not None
        cut = self.encoder.module.tokenizer
        ids = cut(texts, truncation=True, max_length=min(self.recipe.longest, self.encoder.module.max_seq_length))
        return [torch.tensor(one, dtype=torch.int64).unsqueeze(1) + 1 for one in ids["input_ids"]], None


class Inputs:
    """Texts as rows of vectors, each distinct one once; which are sentences and which contexts; where logits begin."""

    def __init__(
        self, rows: list[Tensor], extra: Tensor | None, texts: list[int], contexts: list[int],
        said: Floats | None,
    ) -> None:  # fmt: skip
        self.rows, self.extra = rows, extra
        self.said = None if said is None else torch.from_numpy(said).float()
        self.texts, self.contexts = np.array(texts, np.int64), np.array(contexts, np.int64)
        self.lengths = np.fromiter(map(len, rows), np.int64, len(rows))

    def __len__(self) -> int:
        return len(self.texts)

    def padded(self, rows: IndexArray) -> tuple[Tensor, Tensor]:
        """Ids [n, t, channels], 0 where a text has ended, and lengths [n]."""
        ids = nn.utils.rnn.pad_sequence([self.rows[row] for row in rows], batch_first=True)
        return ids, torch.from_numpy(self.lengths[rows])


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


class Fitted(NamedTuple):
    """What training gives: tensors and configuration, which together are the model, and the epochs' numbers."""

    tensors: dict[str, Tensor]
    config: dict[str, Any]  # the recipe; classes, words, temperature, best_epoch, encoder
    history: pl.DataFrame  # epoch, value (macro F1 of the validation part), loss (a row of the training part), count


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
    generator = torch.Generator().manual_seed(recipe.seed)
    torch.manual_seed(recipe.seed)  # weights and dropout draw from the global source
    words, table = ([], None) if isinstance(vectors, Encoder) else _table(parts["train"], recipe, vectors)
    reader = Reader(recipe, words, None, encoder)
    place = {label: number for number, label in enumerate(classes)}
    truth = {name: np.array([place[label] for label in part["label"]], np.int64) for name, part in parts.items()}
    unseen = _linear(reader, parts["train"], truth["train"]) if recipe.ngrams else None
    inputs = {name: reader.read(part["text"].to_list(), part["context"].to_list()) for name, part in parts.items()}
    inputs["train"].said = unseen
    model = Recogniser(_shape(recipe, len(classes), table, encoder), recipe.members, table, encoder, recipe.is_tuned)
    training = _Training(model, recipe, inputs, truth, generator)
    training.run(state)
    tensors = training.best
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
        "best_epoch": training.best_epoch,
        "temperature": training.temperature(),
        "encoder": encoder.name if encoder else None,
        "encoder_revision": encoder.revision if encoder else None,
    }
    schema = {"epoch": pl.Int64, "value": pl.Float64, "loss": pl.Float64, "count": pl.Int64}
    return Fitted(tensors, config, pl.DataFrame(training.history, schema=schema, orient="row"))


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
    """A model while it learns: its best weights so far, and the numbers of the epochs."""

    def __init__(
        self, model: Recogniser, recipe: Recipe, inputs: dict[str, Inputs], truth: dict[str, IndexArray],
        generator: torch.Generator,
    ) -> None:  # fmt: skip
        self.model, self.recipe, self.inputs, self.truth, self.generator = model, recipe, inputs, truth, generator
        learnt = [value for value in model.parameters() if value.requires_grad]
        self.optimiser = torch.optim.AdamW(learnt, lr=recipe.learning_rate, weight_decay=recipe.weight_decay)
        counts = np.bincount(truth["train"])
        self.weights = torch.from_numpy(counts.sum() / (len(counts) * counts)).float() if recipe.is_weighted else None
        # who learns as if all classes were as frequent is told afterwards how frequent they are
        self.shares = (counts / counts.sum() if recipe.is_weighted else np.full(len(counts), 1 / len(counts))).tolist()
        self.best, self.history = self._weights(), list[tuple[int, float, float, int]]()

    @property
    def judge(self) -> str:
        """The part that chooses the epoch."""
        return "validation" if "validation" in self.inputs else "train"

    @property
    def best_epoch(self) -> int:
        return max(self.history, key=lambda row: (row[1], -row[0]))[0] if self.history else 0

    def run(self, state: Path | None) -> None:
        if state and (found := checkpoint.read(state)):
            self._resume(*found)
            log.info("training goes on after epoch %d", len(self.history))
        for epoch in range(len(self.history) + 1, self.recipe.epochs + 1):
            loss = self._pass(epoch)
            predicted = _probabilities(self.model, self.inputs[self.judge]).argmax(axis=1)
            value = macro_f1(self.truth[self.judge], predicted)
            log.info("epoch %d of %d: loss %.4f, macro F1 %.4f", epoch, self.recipe.epochs, loss, value)
            if value > max((row[1] for row in self.history), default=-1.0):
                self.best = self._weights()
            self.history.append((epoch, value, loss, len(predicted)))
            if state:
                self._keep(state)
        self.model.load_state_dict(self.best, strict=False)  # vectors that were not trained are no part of it

    def _pass(self, epoch: int) -> float:
        """One pass over the training part; the mean loss of a row."""
        self.model.train()
        inputs, total = self.inputs["train"], 0.0
        for at in by_length(inputs.lengths[inputs.texts], np.arange(len(inputs)), self.recipe.batch, self.generator):
            truth = torch.from_numpy(self.truth["train"][at])
            logits = self.model(inputs, at)
            loss = torch.stack([cross_entropy(each, truth, self.weights) for each in logits]).sum()
            if not torch.isfinite(loss):
                raise BadInput(f"the loss is {loss.item()} in epoch {epoch}: the learning rate is too high")
            self.optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            for member in self.model.members:
                nn.utils.clip_grad_norm_(member.parameters(), _CLIP)
            self.optimiser.step()
            total += loss.item() * len(at) / self.recipe.members
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

    def _weights(self) -> dict[str, Tensor]:
        frozen = {name for name, value in self.model.named_parameters() if not value.requires_grad}
        found = self.model.state_dict().items()
        return {name: value.detach().clone() for name, value in found if name not in frozen}

    def _keep(self, path: Path) -> None:
        tensors = checkpoint.of_training(self.best, self._weights(), self.optimiser, self.generator)
        checkpoint.save(path, tensors, {"history": self.history})

    def _resume(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        self.best, now = checkpoint.into_training(tensors, self.optimiser, self.generator)
        self.model.load_state_dict(now, strict=False)
        self.history = [(int(epoch), float(f1), float(loss), int(n)) for epoch, f1, loss, n in facts["history"]]


@torch.no_grad()
def _probabilities(model: Recogniser, inputs: Inputs) -> Floats:
    """Mean of the members' probabilities, [n, classes]."""
    model.eval()
    order = np.argsort(inputs.lengths[inputs.texts], kind="stable")
    out = np.empty((len(order), model.classes), np.float64)
    for at in range(0, len(order), 256):
        rows = order[at : at + 256]
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
