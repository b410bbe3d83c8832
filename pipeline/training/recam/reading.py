"""What recurrent readers read: words of cloze items, cut at the placeholder, as rows of a table (REC-20, REC-21)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
import torch
from torch import Tensor

from pipeline.examples.recam import items as cloze
from pipeline.models.encoder import IndexArray
from pipeline.models.recam.readers import Shape
from pipeline.models.word_vectors import WordVectors
from pipeline.text import segment

_PADDING, _UNKNOWN, _PLACEHOLDER = range(3)  # rows of the table before those of the words
Ids = npt.NDArray[np.int32]
Over = Literal["options", "vocabulary"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe(Shape):
    """The numbers of a training; those of the paper, where it names them (appendix D), are the defaults."""

    over: Over = "options"  # what the softmax of the training is over
    drawn: int = 0  # of a vocabulary, so many candidates a batch beside its answers; 0: all
    tokenizer: Literal["nltk", "jieba", "rjieba"] = "nltk"
    dim: int = 300  # of words' vectors; longer ones, as of an encoder, are reduced to so many numbers
    vocabulary: int = 20_000  # first words of the vectors that are kept beside those of the items
    longest: int = 400  # words of an article that are read; and of a question to either side of its placeholder
    longest_gloss: int = 60
    is_tuned: bool = False  # train the vectors of passage and summary along
    clip: float = 10.0  # longest gradient; the paper names none, its code this one
    learning_rate: float = 1e-3
    batch: int = 32
    epochs: int = 10
    seed: int = 42


class Texts(NamedTuple):
    """Items cut into words, which are numbers: those of `words`."""

    articles: list[Ids]  # each distinct one once
    article_of: IndexArray  # [n]
    questions: list[Ids]  # the placeholder is -1
    words: list[str]


def tokenize(items: pl.DataFrame, recipe: Recipe) -> Texts:
    """Tokenize articles and questions, and keep as many words as the recipe reads."""
    id_of: dict[str, int] = {}
    cut_text = segment.load_tokenizer(recipe.tokenizer).cut

    def read(text: str) -> list[int]:
        return [id_of.setdefault(word, len(id_of)) for word in segment.split_words(text, cut_text)]

    row_of: dict[str, int] = {}
    article_of = [row_of.setdefault(article, len(row_of)) for article in items["article"]]
    articles = [np.array(read(article)[: recipe.longest], np.int32) for article in row_of]
    questions = []
    for row in items.select("item_id", "question").iter_rows():
        before, after = map(read, cloze.split_question(*row))
        questions.append(np.array([*before[-recipe.longest :], -1, *after[: recipe.longest]], np.int32))
    return Texts(articles, np.array(article_of, np.int64), questions, list(id_of))


class Lexicon:
    """Words that have vectors, by row of a table; a word in another case is that in small letters."""

    def __init__(self, words: Sequence[str], first: int) -> None:
        self.words = words
        self.place = {word: row for row, word in enumerate(words, first)}

    def rows(self, words: Sequence[str]) -> Tensor:
        """Look up the rows, int64 [words]; an empty text is one unknown word."""
        rows = [self.place.get(word) or self.place.get(word.lower()) or _UNKNOWN for word in words]
        return torch.tensor(rows or [_UNKNOWN], dtype=torch.int64)


def make_table(
    words: Collection[str], vectors: WordVectors, dim: int, first: int, generator: torch.Generator, commonest: int = 0
) -> tuple[Lexicon, Tensor]:
    """Make a table of words and their vectors, sized so that numbers are about 1.

    Before them stand `first` rows, 3 where a placeholder may stand, else 2: zeros for padding, and drawn ones for what
    has no vector. Words are kept where they have a vector, as they are or in small letters; so are the `commonest`
    first vectors. Vectors longer than `dim` are reduced to so many principal components.
    """
    forms = {form for word in words for form in (word, word.lower())}
    rows = [row for row, word in enumerate(vectors.words) if row < commonest or word in forms]
    matrix = torch.from_numpy(vectors.vectors[rows])
    if dim < matrix.shape[1] and rows:  # to the first principal components
        centred = matrix - matrix.mean(dim=0)
        directions = torch.linalg.eigh((centred.T @ centred).double()).eigenvectors  # the largest last
        matrix = centred @ directions[:, -dim:].flip(1).to(matrix)
    matrix = matrix[:, :dim]
    scale = matrix.square().mean().sqrt().clamp(min=1e-12) if rows else torch.tensor(1.0)
    special = torch.randn(first, matrix.shape[1], generator=generator)
    special[_PADDING] = 0
    return Lexicon([vectors.words[row] for row in rows], first), torch.cat([special, matrix / scale])


class Inputs(NamedTuple):
    """What batches of some items are made of."""

    articles: list[Tensor]
    article_of: IndexArray
    questions: list[Tensor]
    place: Tensor  # of the placeholder, [n]
    options: IndexArray  # numbers of candidates [n, 5]; [n, 0] where the softmax is over a vocabulary
    truth: IndexArray  # [n]: place of the right option, or number of the right candidate

    def lengths(self) -> IndexArray:
        """Count the words of each item's article."""
        article_lengths = np.fromiter(map(len, self.articles), np.int64, len(self.articles))
        return article_lengths[self.article_of]


def make_inputs(items: pl.DataFrame, texts: Texts, lexicon: Lexicon, options: IndexArray, truth: IndexArray) -> Inputs:
    """Make the inputs of some items; options and truth as of `Inputs`."""
    rows = torch.cat([lexicon.rows(texts.words), torch.tensor([_PLACEHOLDER])]).int()  # -1 is the last
    empty = torch.tensor([_UNKNOWN], dtype=torch.int32)
    articles = [rows[torch.from_numpy(ids).long()] if len(ids) else empty for ids in texts.articles]
    questions = [rows[torch.from_numpy(ids).long()] for ids in texts.questions]
    place = torch.tensor([int(np.flatnonzero(ids == -1)[0]) for ids in texts.questions], dtype=torch.int64)
    return Inputs(articles, texts.article_of, questions, place, options.reshape(len(items), -1), truth)


class Candidates(NamedTuple):
    """Words that may be answers: their vectors a^e, and the rows of their glosses' words."""

    vectors: Tensor  # [m, d]
    glosses: list[Tensor]  # [m] of ids; empty for a reader without

    def select(self, rows: Tensor) -> "Candidates":
        """Select some candidates by their rows."""
        return Candidates(self.vectors[rows], [self.glosses[row] for row in rows.tolist()] if self.glosses else [])


def normalise(word: str) -> str:
    """Normalise a candidate: small letters, stripped."""
    return word.strip().lower()


def list_options(items: pl.DataFrame, over: Over) -> list[list[str]]:
    """List the options of each item, or its answer alone; in small letters."""
    if over == "options":
        return [[normalise(option) for option in options] for options in items["options"]]
    answers = items["answer"] if "answer" in items.columns else items.select(cloze.select_right_option()).to_series()
    return [[normalise(word)] for word in answers]


def select_glosses(words: Sequence[str], glosses: Mapping[str, Sequence[str]], recipe: Recipe) -> dict[str, list[str]]:
    """Return the gloss of each word, which is itself where there is none; a reader without glosses gets none."""
    if not recipe.has_gloss:
        return {}
    return {word: [*(glosses.get(word) or [word])][: recipe.longest_gloss] for word in words}
