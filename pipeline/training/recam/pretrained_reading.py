"""What the pretrained reader reads: cloze items as sequences of pieces (ReCAM, section 4; REC-31).

A question is cut at its placeholder before it is cut into pieces, so that no tokenizer can glue the two.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
import torch
from torch import Tensor

from pipeline.errors import BadInput
from pipeline.examples.recam import items as cloze
from pipeline.models.recam.pretrained_reader import Batch, Over, Pieces, Pool, Style
from pipeline.training.recam.masked_lm import Precision

_OPTION = 16  # pieces of an option that are read
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s+|(?<=[。！？])|\n+")

IndexArray = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """The numbers of a training; the paper names the options and none of the numbers."""

    style: Style = "filled"
    pool: Pool = "option"  # of a filled question, the states that are scored
    masks: Literal["one", "each"] = "one"  # for a placeholder, or for each piece of an option
    passage: Literal["first", "relevant"] = "first"  # what is read of one that is too long, see `select_sentences`
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


def gloss_options(items: pl.DataFrame, glosses: Mapping[str, Sequence[str]], recipe: Recipe) -> dict[str, str]:
    """The gloss of each option, which is itself where there is none; none at all for a reader that reads none."""
    if not recipe.has_gloss:
        return {}
    words = sorted({_normalise(option) for options in items["options"] for option in options})
    texts = {word: glosses.get(word) or [word] for word in words}
    return {word: gloss if isinstance(gloss, str) else " ".join(gloss) for word, gloss in texts.items()}


def check_length(recipe: Recipe, pieces: Pieces) -> None:
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


class Inputs(NamedTuple):
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


def read(items: pl.DataFrame, recipe: Recipe, pieces: Pieces, glosses: Mapping[str, str]) -> Inputs:
    """The pieces of items; the gloss of each option is one of `glosses`, where the recipe reads any.

    Raises:
        BadInput: a question has no placeholder.
    """
    halves = []
    for item, question in items.select("item_id", "question").iter_rows():
        before, placeholder, after = question.partition(cloze.PLACEHOLDER)
        if not placeholder:
            raise BadInput(f"item {item}: field 'question' should hold {cloze.PLACEHOLDER}, found {question!r:.60}")
        halves.append((before, after))
    # a blank before an option belongs to it where blanks are parts of pieces
    before = [ids[-recipe.longest_question :] for ids in pieces.tokenize([half.rstrip() for half, _ in halves])]
    after = [ids[: recipe.longest_question] for ids in pieces.tokenize([half for _, half in halves])]
    forms = [
        [(" " if half[-1:].isspace() else "") + option.strip() for option in row]
        for (half, _), row in zip(halves, items["options"], strict=True)
    ]
    options = _tokenize_texts({form for row in forms for form in row}, pieces, _OPTION)
    gloss_pieces = _tokenize_texts(set(glosses.values()), pieces, recipe.longest_gloss) if recipe.has_gloss else {}
    sentences = _tokenize_articles(items["article"].unique().to_list(), pieces)
    room = recipe.window + (recipe.windows - 1) * recipe.stride
    passages = [
        select_sentences(sentences[article], question_start + question_end, room)
        if recipe.passage == "relevant"
        else [piece for sentence in sentences[article] for piece in sentence][:room]
        for article, question_start, question_end in zip(items["article"], before, after, strict=True)
    ]
    option_pieces = [[options[form] for form in row] for row in forms]
    option_glosses = []
    if gloss_pieces:
        option_glosses = [
            [gloss_pieces[glosses[_normalise(option)]] for option in row] for row in items["options"].to_list()
        ]
    truth = torch.from_numpy(items["label"].to_numpy().copy()) if "label" in items.columns else torch.zeros(len(items))
    return Inputs(passages, before, after, option_pieces, option_glosses, truth)


def _normalise(word: str) -> str:
    return word.strip().lower()


def _tokenize_texts(texts: set[str], pieces: Pieces, longest: int) -> dict[str, list[int]]:
    """The first pieces of each text; a text without any is one mask."""
    ordered = sorted(texts)
    return {text: ids[:longest] or [pieces.mask] for text, ids in zip(ordered, pieces.tokenize(ordered), strict=True)}


def _tokenize_articles(articles: list[str], pieces: Pieces) -> dict[str, list[list[int]]]:
    """The pieces of each article by sentence."""
    sentences = [[part for part in _SENTENCE.split(article) if part.strip()] for article in articles]
    ids = iter(pieces.tokenize([part for parts in sentences for part in parts]))
    return {article: [next(ids) for _ in parts] for article, parts in zip(articles, sentences, strict=True)}


def select_sentences(sentences: Sequence[Sequence[int]], question: Sequence[int], room: int) -> list[int]:
    """The sentences of a passage that share most with a question, in their order, as many as there is room for.

    A sentence counts Σ log(1 + n / df) over the distinct pieces it shares with the question, divided by the square root
    of its length; n sentences, of which df hold the piece. Of equals the first one counts. The last one chosen is cut.
    """
    if sum(map(len, sentences)) <= room:
        return [piece for sentence in sentences for piece in sentence]
    question_pieces = set(question)
    shared = [question_pieces.intersection(sentence) for sentence in sentences]
    df = Counter(piece for common in shared for piece in common)
    weights = [
        sum(math.log1p(len(sentences) / df[piece]) for piece in sorted(common)) / math.sqrt(max(len(sentence), 1))
        for common, sentence in zip(shared, sentences, strict=True)
    ]
    lengths: dict[int, int] = {}
    for i in sorted(range(len(sentences)), key=lambda at: (-weights[at], at)):
        if room <= 0:
            break
        lengths[i] = min(len(sentences[i]), room)
        room -= lengths[i]
    return [piece for i in sorted(lengths) for piece in sentences[i][: lengths[i]]]


def list_windows(length: int, recipe: Recipe) -> list[tuple[int, int]]:
    """Where the windows of a passage begin and end; the last one ends where it does. Every piece is in one.

    The passage has been cut to what `list_windows` of them hold.
    """
    last = max(length - recipe.window, 0)
    starts = [*range(0, last, recipe.stride), last]
    return [(start, min(start + recipe.window, length)) for start in starts]


def make_batch(inputs: Inputs, item_rows: Sequence[int], recipe: Recipe, pieces: Pieces) -> Batch:
    """The sequences of some items."""
    rows: list[tuple[list[int], int, int, int, int, list[bool]]] = []
    for item, row in enumerate(item_rows):
        for start, end in list_windows(len(inputs.passages[row]), recipe):
            passage = inputs.passages[row][start:end]
            for filling, gloss, is_served in _list_fillings(inputs, row, recipe, pieces):
                head_start = [*pieces.before, *inputs.before[row]]
                head = [*head_start, *filling, *inputs.after[row], *gloss, *pieces.between]
                sequence = [*head, *passage, *pieces.after]
                rows.append((sequence, len(head), len(head_start), len(filling), item, is_served))
    longest = max(len(sequence) for sequence, *_ in rows)
    ids = torch.full((len(rows), longest), pieces.pad)
    types = torch.full((len(rows), longest), pieces.types[1])
    is_piece = torch.zeros(len(rows), longest, dtype=torch.bool)
    for number, (sequence, length, *_) in enumerate(rows):
        ids[number, : len(sequence)] = torch.tensor(sequence)
        types[number, :length] = pieces.types[0]
        is_piece[number, : len(sequence)] = True
    _, _, starts, widths, items, served = zip(*rows, strict=True)
    is_masked = recipe.style == "masked"
    options = [inputs.options[row] for row in item_rows] if is_masked else []
    glosses = [inputs.glosses[row] for row in item_rows] if is_masked and inputs.glosses else []
    return Batch(
        ids, is_piece, types, torch.tensor(starts), torch.tensor(widths), torch.tensor(items),
        torch.tensor(served), _pad_pieces(options), _pad_pieces(glosses),
    )  # fmt: skip


def _list_fillings(
    inputs: Inputs, row: int, recipe: Recipe, pieces: Pieces
) -> Iterator[tuple[list[int], list[int], list[bool]]]:
    """What stands in the placeholder, the gloss behind the question, and the options that it is for."""
    options = inputs.options[row]
    if recipe.style == "filled":
        for position, option in enumerate(options):
            gloss = [*pieces.between, *inputs.glosses[row][position]] if inputs.glosses else []
            yield option, gloss, [i == position for i in range(len(options))]
    elif recipe.masks == "one":
        yield [pieces.mask], [], [True] * len(options)
    else:
        for count in sorted({len(option) for option in options}):
            yield [pieces.mask] * count, [], [len(option) == count for option in options]


def _pad_pieces(rows: list[list[list[int]]]) -> Tensor:
    """[n, 5, k], padded with -1."""
    longest = max((len(ids) for row in rows for ids in row), default=0)
    filled = [[ids + [-1] * (longest - len(ids)) for ids in row] for row in rows]
    return torch.tensor(filled, dtype=torch.int64).reshape(len(rows), cloze.OPTIONS if rows else 0, longest)
