"""What a recurrent reader answers: which option of a cloze item is right, or which words might be (ReCAM, 3.5).

A reader scores any word that has a vector, so it chooses among options whatever its training was over.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
import torch
from torch import Tensor, nn
from torch.nn.functional import embedding
from torch.nn.utils.rnn import pad_sequence

from pipeline.errors import BadInput
from pipeline.examples.recam import items as cloze
from pipeline.models.recam.readers import Padded, Reader, Shape
from pipeline.training.batches import IndexArray
from pipeline.training.recam import reading
from pipeline.training.recam.reading import Candidates, Inputs, Lexicon, Recipe

ROWS = 1024  # items prepared in one go
_GLOSSES = 256  # glosses encoded at a time
_SCORES = 1 << 24  # scores held at a time

Floats = npt.NDArray[np.float64]


class Answerer(nn.Module):
    """A reader and the vectors of its words, candidates and glosses."""

    def __init__(self, recipe: Recipe, table: Tensor, answers: Tensor, glosses: Tensor | None) -> None:
        super().__init__()
        sizes = (table.shape[1], recipe.hidden, recipe.hops, recipe.dropout, recipe.unit, recipe.has_gloss)
        self.reader = Reader(Shape(*sizes))
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
    order = rows[np.argsort(inputs.lengths()[rows], kind="stable")]
    chunk_size = size if has_options else max(size, min(ROWS, _SCORES // max(len(candidates.vectors), 1)))
    for start in range(0, len(order), chunk_size):
        chunk = order[start : start + chunk_size]
        v = torch.cat([model.summarise(inputs, chunk[i : i + size]) for i in range(0, len(chunk), size)])
        if has_options:
            distinct, positions = np.unique(inputs.options[chunk], return_inverse=True)
            scores = model.score_all(v, candidates.select(torch.from_numpy(distinct)))
            yield chunk, np.take_along_axis(scores, positions.reshape(len(chunk), -1), axis=1)
        else:
            yield chunk, model.score_all(v, candidates)


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
    if config.get("kind") != "reader":
        raise BadInput(f"the model is of kind {config.get('kind')!r}, not 'reader'")
    recipe = Recipe(**{field.name: config[field.name] for field in fields(Recipe)})
    model = Answerer(recipe, tensors["table"], tensors["answers"], tensors.get("glosses"))
    model.load_state_dict(tensors)
    lexicons = Lexicon(config["words"], 3), Lexicon(config["gloss_words"], 2)
    return TrainedReader(model.eval().to(device), recipe, *lexicons, config["candidates"], config["glosses"])


def answer(reader: TrainedReader, items: pl.DataFrame, glosses: Mapping[str, Sequence[str]] | None = None) -> Floats:
    """Compute the probabilities of the five options of each item: [n, 5], whatever the reader's softmax was over.

    Options may be new to the reader; their glosses are given then.
    """
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

    Columns: item_id, candidates (the `top` best, of equal ones the first by alphabet), probabilities (of all the
    vocabulary's); items in their order.
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
