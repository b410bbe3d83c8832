"""Training of the recurrent readers on cloze items (ReCAM, section 3.5, appendix D; REC-16, REC-20, REC-21).

A reader learns either to choose among an item's five options, or among all candidates, which is how distractors are
made: then an item needs no options, only its answer. Passage and summary share word vectors, which stay as they are;
glosses and candidates have vectors of their own that begin as those and are trained (appendix D).

A question is cut at its placeholder before it is cut into words, so that no tokenizer can glue the two.
"""

import hashlib
import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, embedding
from torch.nn.utils.rnn import pad_sequence

from pipeline.errors import BadInput
from pipeline.examples import cloze
from pipeline.models.readers import Padded, Reader, Shape, Unit
from pipeline.models.word_vectors import WordVectors
from pipeline.text import segment
from pipeline.training import checkpoint, recipes
from pipeline.training.batches import by_length

log = logging.getLogger(__name__)

ROWS = 1024  # items prepared in one go when nothing is learnt
_PADDING, _UNKNOWN, _PLACEHOLDER = range(3)  # rows of the table before those of the words
_GLOSSES = 256  # glosses encoded at a time when nothing is learnt
_SCORES = 1 << 24  # scores held at a time

Floats = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.int64]
Ids = npt.NDArray[np.int32]
Over = Literal["options", "vocabulary"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """The numbers of a training; those of the paper, where it names them (appendix D), are the defaults."""

    over: Over = "options"  # what the softmax of the training is over
    drawn: int = 0  # of a vocabulary, so many candidates a batch beside its answers; 0: all
    tokenizer: Literal["nltk", "jieba", "rjieba"] = "nltk"
    vocabulary: int = 20_000  # first words of the vectors that are kept beside those of the items
    longest: int = 400  # words of an article that are read; and of a question to either side of its placeholder
    longest_gloss: int = 60
    unit: Unit = "gru"
    hidden: int = 150  # to either side
    hops: int = 3
    has_gloss: bool = False
    is_tuned: bool = False  # train the vectors of passage and summary along
    dropout: float = 0.3
    clip: float = 10.0  # longest gradient; the paper names none, its code this one
    learning_rate: float = 1e-3
    batch: int = 32
    epochs: int = 10
    seed: int = 42


PROFILES = {
    "gated": Recipe(),
    "attentive": Recipe(hops=1),
    "gloss": Recipe(hops=1, has_gloss=True),
    "official": Recipe(unit="lstm", hidden=128, hops=2, dropout=0.5, is_tuned=True, longest=800, epochs=30),
}
"""The three readers of the paper, whose vectors have 300 dimensions; and the numbers of its code (errata E14).

That code counts gates, one, where hops are counted here. Its head is not taken over: it maps five options laid side by
side to five scores, which a permutation of the options changes, and its last version learns by SGD.
"""


def recipe_of(profile: str, **changes: Any) -> Recipe:
    """A profile with some numbers changed; those that are None stay."""
    above_zero = {"clip", "learning_rate"}
    return recipes.changed(PROFILES, profile, changes, from_zero={"drawn", "vocabulary", "seed"}, above_zero=above_zero)


class _Texts(NamedTuple):
    """Items cut into words, which are numbers: those of `words`."""

    articles: list[Ids]  # each distinct one once
    article_of: IndexArray  # [n]
    questions: list[Ids]  # the placeholder is -1
    words: list[str]


def _cut(items: pl.DataFrame, recipe: Recipe) -> _Texts:
    number: dict[str, int] = {}
    cut = segment.tokenizer(recipe.tokenizer).cut

    def read(text: str) -> list[int]:
        return [number.setdefault(word, len(number)) for word in segment.words(text, cut)]

    row_of: dict[str, int] = {}
    article_of = [row_of.setdefault(article, len(row_of)) for article in items["article"]]
    articles = [np.array(read(article)[: recipe.longest], np.int32) for article in row_of]
    questions = []
    for item, question in items.select("item_id", "question").iter_rows():
        before, found, after = question.partition(cloze.PLACEHOLDER)
        if not found:
            raise BadInput(f"item {item}: field 'question' should hold {cloze.PLACEHOLDER}, found {question!r:.60}")
        question_ids = [*read(before)[-recipe.longest :], -1, *read(after)[: recipe.longest]]
        questions.append(np.array(question_ids, np.int32))
    return _Texts(articles, np.array(article_of, np.int64), questions, list(number))


class _Lexicon:
    """Words that have vectors, by row of a table; a word in another case is that in small letters."""

    def __init__(self, words: Sequence[str], first: int) -> None:
        self.words = words
        self.place = {word: row for row, word in enumerate(words, first)}

    def row(self, word: str) -> int:
        return self.place.get(word) or self.place.get(word.lower()) or _UNKNOWN

    def rows(self, words: Sequence[str]) -> Tensor:
        return torch.tensor([self.row(word) for word in words] or [_UNKNOWN], dtype=torch.int64)


def _table(
    needed: Collection[str], vectors: WordVectors, first: int, generator: torch.Generator, commonest: int = 0
) -> tuple[_Lexicon, Tensor]:
    """Words that are kept and their vectors, sized so that numbers are about 1.

    Before them stand `first` rows: zeros for padding, and drawn ones for what has no vector: unknown words share one.
    """
    forms = {form for word in needed for form in (word, word.lower())}
    kept = [row for row, word in enumerate(vectors.words) if row < commonest or word in forms]
    chosen = torch.from_numpy(vectors.vectors[kept])
    scale = chosen.square().mean().sqrt().clamp(min=1e-12) if kept else torch.tensor(1.0)
    special = torch.randn(first, vectors.vectors.shape[1], generator=generator)
    special[_PADDING] = 0
    return _Lexicon([vectors.words[row] for row in kept], first), torch.cat([special, chosen / scale])


class _Inputs(NamedTuple):
    """Everything of some items that batches are made of."""

    articles: list[Tensor]
    article_of: IndexArray
    questions: list[Tensor]
    place: Tensor  # of the placeholder, [n]
    options: IndexArray  # numbers of candidates [n, 5]; [n, 0] where the softmax is over a vocabulary
    truth: IndexArray  # [n]: place of the right option, or number of the right candidate

    def lengths(self) -> IndexArray:
        """Words of each item's article."""
        every = np.fromiter(map(len, self.articles), np.int64, len(self.articles))
        return every[self.article_of]


def _inputs(items: pl.DataFrame, texts: _Texts, lexicon: _Lexicon, options: IndexArray, truth: IndexArray) -> _Inputs:
    rows = torch.cat([lexicon.rows(texts.words), torch.tensor([_PLACEHOLDER])]).int()  # -1 is the last
    empty = torch.tensor([_UNKNOWN], dtype=torch.int32)
    articles = [rows[torch.from_numpy(ids).long()] if len(ids) else empty for ids in texts.articles]
    questions = [rows[torch.from_numpy(ids).long()] for ids in texts.questions]
    place = torch.tensor([int(np.flatnonzero(ids == -1)[0]) for ids in texts.questions], dtype=torch.int64)
    return _Inputs(articles, texts.article_of, questions, place, options.reshape(len(items), -1), truth)


class _Candidates(NamedTuple):
    """Words that may be answers: their vectors a^e, and the rows of their glosses' words."""

    vectors: Tensor  # [m, d]
    glosses: list[Tensor]  # [m] of ids; empty for a reader without

    def some(self, at: Tensor) -> "_Candidates":
        return _Candidates(self.vectors[at], [self.glosses[row] for row in at.tolist()] if self.glosses else [])


class _Answerer(nn.Module):
    """A reader and the vectors of its words, candidates and glosses."""

    def __init__(self, shape: Shape, table: Tensor, answers: Tensor, glosses: Tensor | None, is_tuned: bool) -> None:
        super().__init__()
        self.reader = Reader(shape)
        self.table = nn.Parameter(table, requires_grad=is_tuned)
        self.answers = nn.Parameter(answers)
        self.glosses = None if glosses is None else nn.Parameter(glosses)

    def summarised(self, inputs: _Inputs, at: IndexArray) -> Tensor:
        """The vectors v of some items."""
        passage = self._padded([inputs.articles[row] for row in inputs.article_of[at]], self.table)
        question = self._padded([inputs.questions[row] for row in at], self.table)
        return self.reader.summarised(passage, question, inputs.place[at].to(self.table.device))

    def scores(self, v: Tensor, candidates: _Candidates) -> Tensor:
        """[n, m]"""
        glosses = None if self.glosses is None else self._padded(candidates.glosses, self.glosses)
        return self.reader.scores(v, candidates.vectors, glosses)

    def _padded(self, rows: list[Tensor], table: Tensor) -> Padded:
        lengths = torch.tensor([len(row) for row in rows]).to(table.device)
        return embedding(pad_sequence(rows, batch_first=True).to(table.device), table, padding_idx=0), lengths

    @torch.no_grad()
    def all_scores(self, v: Tensor, candidates: _Candidates) -> Floats:
        """The same when nothing is learnt, glosses a few at a time."""
        every = torch.arange(len(candidates.vectors))
        parts = every.chunk(1 if self.glosses is None else -(-len(every) // _GLOSSES))
        return torch.cat([self.scores(v, candidates.some(at)) for at in parts], dim=1).double().cpu().numpy()


class Fitted(NamedTuple):
    """What training gives: tensors and configuration, which together are the model, and the epochs' numbers."""

    tensors: dict[str, Tensor]
    config: dict[str, Any]  # the recipe; words, candidates, glosses, gloss_words, best_epoch
    history: pl.DataFrame  # epoch, value (accuracy on the validation part), loss (an item of the training part), count


def fit(
    items: pl.DataFrame,
    recipe: Recipe,
    vectors: WordVectors,
    state: Path | None = None,
    *,
    glosses: Mapping[str, Sequence[str]] | None = None,
    candidates: Collection[str] = (),
    device: str = "cpu",
) -> Fitted:
    """Train a reader and keep the epoch with the best accuracy on the validation part.

    Over a vocabulary that is recall at 1. On a CPU the same items, recipe and vectors give the same bits.

    Args:
        items: item_id, article, question, and options and label as of `examples.cloze`, or, over a vocabulary, answer;
            split where there is one: only train and validation are read. Without validation items a tenth of the
            articles is kept for it, all items of an article together.
        recipe: hyperparameters.
        vectors: of words.
        state: file that keeps the state after each epoch; an interrupted training goes on from it and ends with the
            same model on a CPU.
        glosses: the words of each candidate's gloss (appendix D: of its lemma, the first sense of each part of speech),
            the candidate in small letters; a word without is its own gloss.
        candidates: words that `candidates` may name beside the options, or answers, of the items.
        device: cpu or cuda.

    Raises:
        BadInput: nothing to learn or to choose by, a column or a placeholder is missing, the loss is no number, or
            `state` is of another training.
    """
    items = _parted(items, recipe)
    generator = torch.Generator().manual_seed(recipe.seed)
    torch.manual_seed(recipe.seed)  # weights and dropout draw from the global source
    said = _said(items, recipe.over)
    known = sorted({*map(_form, candidates), *(word for row in said for word in row)})
    number = {word: row for row, word in enumerate(known)}
    texts = _cut(items, recipe)
    lexicon, table = _table([*texts.words, *known], vectors, 3, generator, recipe.vocabulary)
    answers = table[lexicon.rows(known)]
    told = _told(known, glosses or {}, recipe)
    gloss_lexicon, gloss_table = _table({w for gloss in told.values() for w in gloss}, vectors, 2, generator)
    of_gloss = [gloss_lexicon.rows(told[word]) for word in known] if told else []

    places = np.array([[number[word] for word in row] for row in said], np.int64)
    is_open = recipe.over == "vocabulary"
    options, truth = (places[:, :0], places[:, 0]) if is_open else (places, items["label"].to_numpy())
    inputs = _inputs(items, texts, lexicon, options, truth)
    model = _Answerer(
        _shape(recipe, table), table, answers, gloss_table if recipe.has_gloss else None, recipe.is_tuned
    ).to(device)
    is_held = (items["split"] == "validation").to_numpy()
    training = _Training(model, recipe, inputs, np.flatnonzero(~is_held), np.flatnonzero(is_held), of_gloss, generator)
    training.run(state, _made_of(items, recipe, vectors, known, told))
    tensors = training.best | ({} if recipe.is_tuned else {"table": table})
    config = {
        **asdict(recipe),
        "kind": "reader",
        "words": lexicon.words,
        "candidates": known,
        "glosses": told,
        "gloss_words": gloss_lexicon.words,
        "best_epoch": training.best_epoch,
    }
    schema = {"epoch": pl.Int64, "value": pl.Float64, "loss": pl.Float64, "count": pl.Int64}
    return Fitted(tensors, config, pl.DataFrame(training.history, schema=schema, orient="row"))


def _parted(items: pl.DataFrame, recipe: Recipe) -> pl.DataFrame:
    """The items to learn from and to choose the epoch by, split said."""
    needed = {"item_id", "article", "question"}
    needed |= {"options", "label"} if recipe.over == "options" or "answer" not in items.columns else {"answer"}
    if missing := sorted(needed - set(items.columns)):
        raise BadInput(f"items to train on: there is no column {', '.join(missing)}")
    for name in sorted(needed):
        if items[name].null_count():
            raise BadInput(f"items to train on: field {name!r} is null in {items[name].null_count()} of {len(items)}")
    if "split" in items.columns:
        items = items.filter(pl.col("split").is_in(["train", "validation"]))
    if "split" not in items.columns or not (items["split"] == "validation").any():
        groups = items.select(cloze.normalised()).to_series()
        every = groups.unique().sort()
        drawn = np.random.default_rng(recipe.seed).permutation(len(every))[: max(1, round(len(every) / 10))]
        held = groups.is_in(every.gather(drawn).implode())
        items = items.with_columns(split=pl.when(held).then(pl.lit("validation")).otherwise(pl.lit("train")))
    if not (items["split"] == "train").any():
        raise BadInput(f"items to train on: expected two articles at least, found {len(items)} items without")
    return items


def _form(word: str) -> str:
    return word.strip().lower()


def _said(items: pl.DataFrame, over: Over) -> list[list[str]]:
    """The options of each item, or its answer alone; in small letters."""
    if over == "options":
        return [[_form(option) for option in options] for options in items["options"]]
    found = items["answer"] if "answer" in items.columns else items.select(cloze.answers()).to_series()
    return [[_form(word)] for word in found]


def _told(words: Sequence[str], glosses: Mapping[str, Sequence[str]], recipe: Recipe) -> dict[str, list[str]]:
    """The gloss of each word, which is itself where there is none; none at all for a reader that reads none."""
    if not recipe.has_gloss:
        return {}
    return {word: [*(glosses.get(word) or [word])][: recipe.longest_gloss] for word in words}


def _shape(recipe: Recipe, table: Tensor) -> Shape:
    return Shape(table.shape[1], recipe.hidden, recipe.hops, recipe.dropout, recipe.unit, recipe.has_gloss)


def _made_of(items: pl.DataFrame, recipe: Recipe, vectors: WordVectors, known: list[str], told: object) -> str:
    """SHA-256 of what a training is made of; the number of epochs is none of it, so that it may go on."""
    facts = (asdict(recipe) | {"epochs": None}, known, told, vectors.words)
    key = hashlib.sha256(repr(facts).encode() + vectors.vectors.tobytes())
    for part in items.iter_slices(ROWS):
        key.update(part.write_ndjson().encode())
    return key.hexdigest()


class _Training:
    """A model while it learns: its best weights so far, and the numbers of the epochs."""

    def __init__(
        self, model: _Answerer, recipe: Recipe, inputs: _Inputs, train: IndexArray, held: IndexArray,
        glosses: list[Tensor], generator: torch.Generator,
    ) -> None:  # fmt: skip
        self.model, self.recipe, self.inputs, self.generator = model, recipe, inputs, generator
        self.train, self.held, self.glosses = train, held, glosses
        learnt = [value for value in model.parameters() if value.requires_grad]
        self.optimiser = torch.optim.Adam(learnt, lr=recipe.learning_rate)
        self.best, self.history = self._weights(), list[tuple[int, float, float, int]]()

    @property
    def candidates(self) -> _Candidates:
        return _Candidates(self.model.answers, self.glosses)

    @property
    def best_epoch(self) -> int:
        return max(self.history, key=lambda row: (row[1], -row[0]))[0] if self.history else 0

    def run(self, state: Path | None, made_of: str) -> None:
        if state and (found := checkpoint.read(state)):
            if found[1]["made_of"] != made_of:
                raise BadInput(f"{state}: the state of a training on other items, another recipe or other vectors")
            self._resume(*found)
            log.info("training goes on after epoch %d", len(self.history))
        for epoch in range(len(self.history) + 1, self.recipe.epochs + 1):
            loss, value = self._pass(epoch), self._accuracy()
            log.info("epoch %d of %d: loss %.4f, accuracy %.4f", epoch, self.recipe.epochs, loss, value)
            if value > max((row[1] for row in self.history), default=-1.0):
                self.best = self._weights()
            self.history.append((epoch, value, loss, len(self.held)))
            if state:
                self._keep(state, made_of)

    def _pass(self, epoch: int) -> float:
        """One pass over the training part; the mean loss of an item, its negative log-likelihood (appendix D)."""
        self.model.train()
        total = 0.0
        for at in by_length(self.inputs.lengths(), self.train, self.recipe.batch, self.generator):
            pool, right = self._pool(at)
            scores = self.model.scores(self.model.summarised(self.inputs, at), self.candidates.some(pool))
            if self.inputs.options.shape[1]:
                among = np.searchsorted(pool.numpy(), self.inputs.options[at])
                scores = scores.gather(1, torch.from_numpy(among).to(scores.device))
            loss = cross_entropy(scores, right.to(scores.device))
            if not torch.isfinite(loss):
                raise BadInput(f"the loss is {loss.item()} in epoch {epoch}: the learning rate is too high")
            self.optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(self.model.parameters(), self.recipe.clip)
            self.optimiser.step()
            total += loss.item() * len(at)
        return total / len(self.train)

    def _pool(self, at: IndexArray) -> tuple[Tensor, Tensor]:
        """Candidates to be scored for a batch, in order, and the right one of each item: among its options or these."""
        truth = self.inputs.truth[at]
        if self.inputs.options.shape[1]:
            return torch.from_numpy(np.unique(self.inputs.options[at])), torch.from_numpy(truth)
        pool = np.arange(len(self.model.answers))
        if self.recipe.drawn:
            drawn = torch.randperm(len(pool), generator=self.generator)[: self.recipe.drawn].numpy()
            pool = np.union1d(truth, drawn)
        return torch.from_numpy(pool), torch.from_numpy(np.searchsorted(pool, truth))

    def _accuracy(self) -> float:
        found = [
            scores.argmax(axis=1) == self.inputs.truth[at]
            for at, scores in _asked(self.model, self.inputs, self.candidates, self.held, self.recipe.batch)
        ]
        return float(np.concatenate(found).mean())

    def _weights(self) -> dict[str, Tensor]:
        frozen = {name for name, value in self.model.named_parameters() if not value.requires_grad}
        found = self.model.state_dict().items()
        return {name: value.detach().clone().cpu() for name, value in found if name not in frozen}

    def _keep(self, path: Path, made_of: str) -> None:
        tensors = checkpoint.of_training(self.best, self._weights(), self.optimiser, self.generator)
        checkpoint.save(path, tensors, {"history": self.history, "made_of": made_of})

    def _resume(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        self.best, now = checkpoint.into_training(tensors, self.optimiser, self.generator)
        self.model.load_state_dict(now, strict=False)
        self.history = [(int(epoch), float(value), float(loss), int(n)) for epoch, value, loss, n in facts["history"]]


@torch.no_grad()
def _asked(
    model: _Answerer, inputs: _Inputs, candidates: _Candidates, rows: IndexArray, size: int
) -> Iterator[tuple[IndexArray, Floats]]:
    """Some rows and their scores, of their options [n, 5] or of all candidates [n, m], until each row had its turn."""
    model.eval()
    order = rows[np.argsort(inputs.lengths()[rows], kind="stable")]
    many = size if inputs.options.shape[1] else max(size, min(ROWS, _SCORES // max(len(candidates.vectors), 1)))
    for start in range(0, len(order), many):
        at = order[start : start + many]
        v = torch.cat([model.summarised(inputs, at[i : i + size]) for i in range(0, len(at), size)])
        if inputs.options.shape[1]:
            pool, among = np.unique(inputs.options[at], return_inverse=True)
            scores = model.all_scores(v, candidates.some(torch.from_numpy(pool)))
            yield at, np.take_along_axis(scores, among.reshape(len(at), -1), axis=1)
        else:
            yield at, model.all_scores(v, candidates)


class Trained(NamedTuple):
    """A reader that can be asked."""

    model: _Answerer
    recipe: Recipe
    lexicon: _Lexicon
    gloss_lexicon: _Lexicon
    words: list[str]  # the candidates it learnt of
    glosses: dict[str, list[str]]


def load(tensors: dict[str, Tensor], config: dict[str, Any], device: str = "cpu") -> Trained:
    """A reader of what `fit` gave or `registry.read` read.

    Raises:
        BadInput: it is no reader.
    """
    if config.get("kind") != "reader":
        raise BadInput(f"the model is of kind {config.get('kind')!r}, not 'reader'")
    recipe = Recipe(**{field.name: config[field.name] for field in fields(Recipe)})
    shape = _shape(recipe, tensors["table"])
    model = _Answerer(shape, tensors["table"], tensors["answers"], tensors.get("glosses"), recipe.is_tuned)
    model.load_state_dict(tensors)
    lexicons = _Lexicon(config["words"], 3), _Lexicon(config["gloss_words"], 2)
    return Trained(model.eval().to(device), recipe, *lexicons, config["candidates"], config["glosses"])


def answer(trained: Trained, items: pl.DataFrame, glosses: Mapping[str, Sequence[str]] | None = None) -> Floats:
    """Probabilities of the five options of each item: [n, 5]; what the reader was not trained on it takes as it reads.

    Args:
        trained: the reader, whatever its softmax was over.
        items: item_id, article, question, options.
        glosses: of options that are new to the reader.
    """
    out = np.empty((len(items), cloze.OPTIONS), np.float64)
    for start in range(0, len(items), ROWS):
        part = items[start : start + ROWS]
        said = _said(part, "options")
        words, candidates = _known(trained, {word for row in said for word in row}, glosses or {})
        options = np.array([[words[word] for word in row] for row in said], np.int64)
        texts = _cut(part, trained.recipe)
        inputs = _inputs(part, texts, trained.lexicon, options, np.zeros(len(part), np.int64))
        for at, scores in _asked(trained.model, inputs, candidates, np.arange(len(part)), trained.recipe.batch):
            out[start + at] = torch.from_numpy(scores).softmax(dim=1).numpy()
    return out


def _known(
    trained: Trained, asked: set[str], glosses: Mapping[str, Sequence[str]]
) -> tuple[dict[str, int], _Candidates]:
    """Numbers of candidates by word, and the candidates: those that were learnt, then those asked for."""
    learnt = set(trained.words)
    new = sorted(asked - learnt)
    vectors: Tensor = trained.model.answers
    if new:
        vectors = torch.cat([vectors, trained.model.table[trained.lexicon.rows(new)]])
    told = trained.glosses | _told(new, glosses, trained.recipe)
    every = [*trained.words, *new]
    rows = [trained.gloss_lexicon.rows(told[word]) for word in every] if told else []
    return {word: row for row, word in enumerate(every)}, _Candidates(vectors, rows)


def candidates(trained: Trained, items: pl.DataFrame, top: int = 10) -> pl.DataFrame:
    """The words a reader would put in the place of each placeholder, of all it was trained with (REC-16).

    Args:
        trained: the reader.
        items: item_id, article, question.
        top: so many, or all there are.

    Returns:
        A row an item, in the items' order: item_id, candidates (best first; of equal ones the first by alphabet),
        probabilities (of all the vocabulary's).
    """
    words, known = _known(trained, set(), {})
    names = np.array(list(words), dtype=object)
    found: list[tuple[list[str], list[float]]] = []
    for start in range(0, len(items), ROWS):
        part = items[start : start + ROWS]
        nothing = np.zeros((len(part), 0), np.int64)
        inputs = _inputs(part, _cut(part, trained.recipe), trained.lexicon, nothing, np.zeros(len(part), np.int64))
        rows: list[tuple[list[str], list[float]]] = [([], [])] * len(part)
        for at, scores in _asked(trained.model, inputs, known, np.arange(len(part)), trained.recipe.batch):
            share = torch.from_numpy(scores).softmax(dim=1).numpy()
            order = np.argsort(-scores, axis=1, kind="stable")[:, :top]
            for row, best, shares in zip(at, order, share, strict=True):
                rows[row] = names[best].tolist(), shares[best].tolist()
        found += rows
    columns = {"candidates": [one for one, _ in found], "probabilities": [one for _, one in found]}
    schema = {"candidates": pl.List(pl.String), "probabilities": pl.List(pl.Float64)}
    return items.select("item_id").hstack(pl.DataFrame(columns, schema=schema))
