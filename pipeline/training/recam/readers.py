"""Training of the recurrent readers on cloze items (ReCAM, section 3.5, appendix D; REC-16, REC-20, REC-21).

A reader learns to choose among an item's five options, or among all candidates, which is how distractors are made: then
an item needs only its answer. Word vectors of passage and summary stay; those of glosses and candidates begin as these
and are trained (appendix D). A reader scores any word that has a vector, whatever its training was over.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, embedding
from torch.nn.utils.rnn import pad_sequence

from pipeline.errors import BadInput
from pipeline.examples.recam import items as cloze
from pipeline.metrics.resample import Floats
from pipeline.models.encoder import IndexArray, check_kind
from pipeline.models.recam.readers import Padded, Reader
from pipeline.models.word_vectors import WordVectors
from pipeline.training import loop
from pipeline.training.loop import TrainingResult, read_recipe, shuffle_batches, sort_batches
from pipeline.training.recam import reading
from pipeline.training.recam.reading import Candidates, Inputs, Lexicon, Recipe

ROWS = 1024  # items prepared in one go
_GLOSSES = 256  # glosses encoded at a time
_SCORES = 1 << 24  # scores held at a time

PROFILES = {
    "gated": Recipe(), "attentive": Recipe(hops=1), "gloss": Recipe(hops=1, has_gloss=True),
    "official": Recipe(unit="lstm", hidden=128, hops=2, dropout=0.5, is_tuned=True, longest=800, epochs=30),
}  # fmt: skip
"""The three readers of the paper, whose vectors have 300 dimensions; and the numbers of its code (errata E14).

That code counts gates, one, where hops are counted here. Its head is not taken over: it maps five options laid side by
side to five scores, which a permutation of the options changes, and its last version learns by SGD.
"""

SMALL: dict[str, Any] = {
    "dim": 100, "hidden": 48, "longest": 50, "longest_gloss": 20, "learning_rate": 2e-3, "epochs": 6,
}  # fmt: skip
"""Changes to a profile for a few thousand items and a CPU: `make_recipe("gated", **SMALL)`.

With glosses `drawn=128` as well: over a vocabulary all of them are read for each batch. Measured over the 1,836 words
of 6,432 imperceptible targets, of ReCAM's trial and dev pairs and 1,000 of XSum, with vectors of the embedded encoder:
readers of three quarters have .27 to .28 of the others' targets among their ten best, where the ten commonest words
are .09 of them. The paper's have .28 to .38, from all of XSum (Table 3).
"""

make_recipe = partial(
    loop.replace_numbers, PROFILES, from_zero={"drawn", "vocabulary"}, above_zero={"clip", "learning_rate"}
)


class Answerer(nn.Module):
    """A reader and the vectors of its words, candidates and glosses."""

    def __init__(self, recipe: Recipe, table: Tensor, answers: Tensor, glosses: Tensor | None) -> None:
        super().__init__()
        self.reader = Reader(table.shape[1], recipe)
        self.table = nn.Parameter(table, requires_grad=recipe.is_tuned)
        self.answers = nn.Parameter(answers)
        self.glosses = None if glosses is None else nn.Parameter(glosses)

    def summarise(self, inputs: Inputs, rows: IndexArray) -> Tensor:
        """Compute the vectors v of some items."""
        passage = self._pad([inputs.articles[row] for row in inputs.article_of[rows]], self.table)
        question = self._pad([inputs.questions[row] for row in rows], self.table)
        return self.reader.summarise(passage, question, inputs.place[rows].to(self.table.device))

    def score(self, v: Tensor, candidates: Candidates) -> Tensor:
        """Score candidates: [n, m]."""
        glosses = None if self.glosses is None else self._pad(candidates.glosses, self.glosses)
        return self.reader.score(v, candidates.vectors, glosses)

    def _pad(self, rows: list[Tensor], table: Tensor) -> Padded:
        lengths = torch.tensor([len(row) for row in rows]).to(table.device)
        return embedding(pad_sequence(rows, batch_first=True).to(table.device), table, padding_idx=0), lengths

    @torch.no_grad()
    def score_all(self, v: Tensor, candidates: Candidates) -> Floats:
        """Score candidates when nothing is learnt, glosses a few at a time."""
        numbers = torch.arange(len(candidates.vectors))
        parts = numbers.chunk(1 if self.glosses is None else -(-len(numbers) // _GLOSSES))
        return torch.cat([self.score(v, candidates.select(chunk)) for chunk in parts], dim=1).double().cpu().numpy()


@torch.no_grad()
def score_items(
    model: Answerer, inputs: Inputs, candidates: Candidates, rows: IndexArray, size: int
) -> Iterator[tuple[IndexArray, Floats]]:
    """Yield chunks of the rows, and the scores of their options [n, 5] or of all candidates [n, m]."""
    model.eval()
    has_options = inputs.options.shape[1] > 0
    chunk_size = size if has_options else max(size, min(ROWS, _SCORES // max(len(candidates.vectors), 1)))
    for chunk in sort_batches(inputs.lengths(), rows, chunk_size):
        v = torch.cat([model.summarise(inputs, chunk[i : i + size]) for i in range(0, len(chunk), size)])
        if has_options:
            distinct, positions = np.unique(inputs.options[chunk], return_inverse=True)
            scores = model.score_all(v, candidates.select(torch.from_numpy(distinct)))
            yield chunk, np.take_along_axis(scores, positions.reshape(len(chunk), -1), axis=1)
        else:
            yield chunk, model.score_all(v, candidates)


def fit(
    items: pl.DataFrame,
    recipe: Recipe,
    vectors: WordVectors,
    state: Path | None = None,
    *,
    glosses: Mapping[str, Sequence[str]] | None = None,
    candidates: Collection[str] = (),
    device: str = "cpu",
) -> TrainingResult:
    """Train a reader and keep the epoch with the best accuracy on the validation part.

    Over a vocabulary that is recall at 1. On a CPU the same items, recipe and vectors give the same bits.

    Items have item_id, article, question, and options and label as of `examples.recam.items`, or, over a vocabulary,
    answer; for split see `split_items`, for state `loop.run`. Glosses are the words of each candidate's gloss (appendix
    D: of its lemma, the first sense of each part of speech), the candidate in small letters; a word without is its own
    gloss. `candidates` are further answers. BadInput if there is nothing to learn or to choose by, a placeholder is
    missing, the loss is no number, or `state` is of another training.
    """
    items = split_items(items, recipe.seed)
    generator = loop.seed_all(recipe.seed)
    item_options = reading.list_options(items, recipe.over)
    words = sorted({*map(reading.normalise, candidates), *(word for row in item_options for word in row)})
    number_of = {word: row for row, word in enumerate(words)}
    texts = reading.tokenize(items, recipe)
    lexicon, table = reading.make_table([*texts.words, *words], vectors, recipe.dim, 3, generator, recipe.vocabulary)
    answers = table[lexicon.rows(words)]
    gloss_of = reading.select_glosses(words, glosses or {}, recipe)
    gloss_words = {word for gloss in gloss_of.values() for word in gloss}
    gloss_lexicon, gloss_table = reading.make_table(gloss_words, vectors, recipe.dim, 2, generator)
    gloss_rows = [gloss_lexicon.rows(gloss_of[word]) for word in words] if gloss_of else []

    places = np.array([[number_of[word] for word in row] for row in item_options], np.int64)
    is_open = recipe.over == "vocabulary"
    options, truth = (places[:, :0], places[:, 0]) if is_open else (places, items["label"].to_numpy())
    inputs = reading.make_inputs(items, texts, lexicon, options, truth)
    model = Answerer(recipe, table, answers, gloss_table if recipe.has_gloss else None).to(device)
    is_held = (items["split"] == "validation").to_numpy()
    criterion = loop.ACCURACY._replace(chance=1 / (len(words) if is_open else places.shape[1]))
    training = _Training(model, recipe, inputs, is_held, gloss_rows, generator)
    facts = (asdict(recipe) | {"epochs": None}, words, gloss_of, vectors.words)
    training_id = loop.hash_facts(facts, vectors.vectors, items)
    outcome = loop.run(training.epoch, training.learner, criterion, recipe.epochs, state, training_id)
    config = {
        **asdict(recipe), "kind": "reader", "words": lexicon.words, "candidates": words, "glosses": gloss_of,
        "gloss_words": gloss_lexicon.words, "best_epoch": outcome.best_epoch,
    }  # fmt: skip
    frozen = {name: value.detach().cpu() for name, value in model.named_parameters() if not value.requires_grad}
    return TrainingResult(outcome.weights | frozen, config, outcome.history)


def split_items(items: pl.DataFrame, seed: int) -> pl.DataFrame:
    """Return the items of train and validation, which is by default a tenth of the articles; BadInput for too few."""
    if "split" in items.columns:
        items = items.filter(pl.col("split").is_in(["train", "validation"]))
    if "split" not in items.columns or not (items["split"] == "validation").any():
        groups = items.select(cloze.normalise()).to_series()
        articles = groups.unique().sort()
        order = np.random.default_rng(seed).permutation(len(articles))
        held_articles = articles.gather(order[: max(1, round(len(articles) / 10))])
        is_held = groups.is_in(held_articles.implode())
        items = items.with_columns(split=pl.when(is_held).then(pl.lit("validation")).otherwise(pl.lit("train")))
    if not (items["split"] == "train").any():
        raise BadInput(f"items to train on: expected at least two articles, found {len(items)} items of one or none")
    return items


@dataclass
class _Training:  # a model in training, and the items that it learns from and is judged by
    model: Answerer
    recipe: Recipe
    inputs: Inputs
    is_held: npt.NDArray[np.bool_]
    glosses: list[Tensor]
    generator: torch.Generator

    def __post_init__(self) -> None:
        self.train, self.held = np.flatnonzero(~self.is_held), np.flatnonzero(self.is_held)
        parameters = [value for value in self.model.parameters() if value.requires_grad]
        optimiser = torch.optim.Adam(parameters, lr=self.recipe.learning_rate)
        self.learner = loop.make_learner(self.model, optimiser, self.generator, self.recipe.clip)

    @property
    def candidates(self) -> Candidates:
        return Candidates(self.model.answers, self.glosses)

    def epoch(self, number: int) -> tuple[float, float, int]:
        """Train on all items once and evaluate; return accuracy, the mean loss of an item (appendix D), and a count."""
        self.model.train()
        total = 0.0
        for rows in shuffle_batches(self.inputs.lengths(), self.train, self.recipe.batch, self.generator):
            total += loop.descend(self._loss(rows), self.learner, number) * len(rows)
        chunks = score_items(self.model, self.inputs, self.candidates, self.held, self.recipe.batch)
        is_right = [scores.argmax(axis=1) == self.inputs.truth[rows] for rows, scores in chunks]
        return float(np.concatenate(is_right).mean()), total / len(self.train), len(self.held)

    def _loss(self, rows: IndexArray) -> Tensor:
        """Compute the loss of a batch, over each item's options, or over a vocabulary or what is drawn of it."""
        truth, v = self.inputs.truth[rows], self.model.summarise(self.inputs, rows)
        pool, positions = np.arange(len(self.model.answers)), None
        if self.inputs.options.shape[1]:
            pool, positions = np.unique(self.inputs.options[rows], return_inverse=True)
        elif self.recipe.drawn:
            sample = torch.randperm(len(pool), generator=self.generator)[: self.recipe.drawn].numpy()
            pool = np.union1d(truth, sample)
        scores = self.model.score(v, self.candidates.select(torch.from_numpy(pool)))
        if positions is not None:
            scores = scores.gather(1, torch.from_numpy(positions).reshape(len(rows), -1).to(scores.device))
            return cross_entropy(scores, torch.from_numpy(truth).to(scores.device))
        truth_positions = torch.from_numpy(np.searchsorted(pool, truth))
        # what is in the pool stands for what is not: an answer that comes with many batches is no likelier
        corrected = scores - torch.from_numpy(self._estimate_chances()[pool]).log().to(scores)
        is_right = nn.functional.one_hot(truth_positions, len(pool)).bool().to(scores.device)
        return cross_entropy(torch.where(is_right, scores, corrected), truth_positions.to(scores.device))

    def _estimate_chances(self) -> Floats:
        """Estimate each candidate's chance to be scored with an item of another answer (Bengio and Senécal, 2008)."""
        count = len(self.model.answers)
        sampled_share = min(self.recipe.drawn or count, count) / count
        share = np.bincount(self.inputs.truth[self.train], minlength=count) / max(len(self.train), 1)
        return 1 - (1 - sampled_share) * (1 - share) ** (self.recipe.batch - 1)


class TrainedReader(NamedTuple):
    """A trained reader, and what it needs to read items."""

    model: Answerer
    recipe: Recipe
    lexicon: Lexicon
    gloss_lexicon: Lexicon
    words: list[str]  # the candidates it learnt of
    glosses: dict[str, list[str]]


def load(tensors: dict[str, Tensor], config: dict[str, Any], device: str = "cpu") -> TrainedReader:
    """Load a reader from the tensors and configuration of `readers.fit` or `registry.read`; BadInput if it is none."""
    check_kind(config, "reader")
    recipe = read_recipe(Recipe, config)
    model = Answerer(recipe, tensors["table"], tensors["answers"], tensors.get("glosses"))
    model.load_state_dict(tensors)
    lexicons = Lexicon(config["words"], 3), Lexicon(config["gloss_words"], 2)
    return TrainedReader(model.eval().to(device), recipe, *lexicons, config["candidates"], config["glosses"])


def answer(reader: TrainedReader, items: pl.DataFrame, glosses: Mapping[str, Sequence[str]] | None = None) -> Floats:
    """Compute the probabilities of the five options of each item, [n, 5]; glosses are given of options new to it."""
    options_of = reading.list_options(items, "options")
    words, candidates = _collect_candidates(reader, {word for row in options_of for word in row}, glosses or {})
    options = np.array([[words[word] for word in row] for row in options_of], np.int64)
    all_scores = np.empty((len(items), cloze.OPTIONS), np.float64)
    for rows, scores in _score(reader, items, candidates, options):
        all_scores[rows] = scores
    return torch.from_numpy(all_scores).softmax(dim=1).numpy()


def _score(
    reader: TrainedReader, items: pl.DataFrame, candidates: Candidates, options: IndexArray
) -> Iterator[tuple[IndexArray, Floats]]:
    """Yield rows of items, some at a time, and their scores as of `score_items`."""
    for start in range(0, len(items), ROWS):
        part = items[start : start + ROWS]
        texts, truth = reading.tokenize(part, reader.recipe), np.zeros(len(part), np.int64)
        inputs = reading.make_inputs(part, texts, reader.lexicon, options[start : start + ROWS], truth)
        for chunk, scores in score_items(reader.model, inputs, candidates, np.arange(len(part)), reader.recipe.batch):
            yield start + chunk, scores


def _collect_candidates(
    reader: TrainedReader, options: set[str], glosses: Mapping[str, Sequence[str]]
) -> tuple[dict[str, int], Candidates]:
    """Numbers of candidates by word, and the candidates: those that were learnt, then new ones."""
    new_words = sorted(options - set(reader.words))
    vectors: Tensor = reader.model.answers
    if new_words:
        vectors = torch.cat([vectors, reader.model.table[reader.lexicon.rows(new_words)]])
    gloss_of = reader.glosses | reading.select_glosses(new_words, glosses, reader.recipe)
    words = [*reader.words, *new_words]
    rows = [reader.gloss_lexicon.rows(gloss_of[word]) for word in words] if gloss_of else []
    return {word: row for row, word in enumerate(words)}, Candidates(vectors, rows)


def rank_candidates(reader: TrainedReader, items: pl.DataFrame, top: int = 10) -> pl.DataFrame:
    """Rank the words that a reader would put in the place of each placeholder, of all it was trained with (REC-16).

    Columns: item_id, candidates (the `top` best, ties by alphabet), probabilities among all words.
    """
    words, candidates = _collect_candidates(reader, set(), {})
    names = np.array(list(words), dtype=object)
    ranked: list[tuple[list[str], list[float]]] = [([], [])] * len(items)
    for rows, scores in _score(reader, items, candidates, np.zeros((len(items), 0), np.int64)):
        probabilities = torch.from_numpy(scores).softmax(dim=1).numpy()
        order = np.argsort(-scores, axis=1, kind="stable")[:, :top]
        for row, positions, item_probabilities in zip(rows, order, probabilities, strict=True):
            ranked[row] = names[positions].tolist(), item_probabilities[positions].tolist()
    schema = {"candidates": pl.List(pl.String), "probabilities": pl.List(pl.Float64)}
    return items.select("item_id").hstack(pl.DataFrame(ranked, schema=schema, orient="row"))
