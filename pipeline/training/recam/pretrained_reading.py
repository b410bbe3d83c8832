"""What the pretrained reader reads: cloze items as sequences of pieces, cut at the placeholder (ReCAM 4; REC-31).

And more items to learn from: nouns of passage and options, right and wrong alike, become a hypernym by chance (section
4.2; the paper does not say how).
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Literal, NamedTuple

import numpy as np
import polars as pl
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from pipeline.errors import BadInput
from pipeline.examples.recam import items as cloze
from pipeline.models.encoder import IndexArray
from pipeline.models.recam.pretrained_reader import Batch, Pieces, Shape
from pipeline.text import wordnet
from pipeline.training.recam.masked_lm import Precision
from pipeline.training.recam.reading import normalise

_OPTION = 16  # pieces of an option that are read
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s+|(?<=[。！？])|\n+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe(Shape):
    """The numbers of a training; the paper names the options and none of the numbers."""

    masks: Literal["one", "each"] = "one"  # for a placeholder, or for each piece of an option
    passage: Literal["first", "relevant"] = "first"  # what is read of one that is too long, see `select_sentences`
    window: int = 160  # pieces of the passage in a sequence
    stride: int = 80  # pieces from a window's beginning to the next one's
    windows: int = 1  # of a passage, at most
    longest_question: int = 40  # pieces to either side of the placeholder
    longest_gloss: int = 32  # pieces
    smoothing: float = 0.0  # share of the truth that is spread over all options
    averaged: int = 0  # last epochs whose weights are averaged; 0: the best epoch is kept
    hypernyms: float = 0.0  # chance of a noun to be replaced in the copies that items get; 0: there are none
    tuned_layers: int = 100  # last layers that learn; with all of them the first embeddings but those of words
    is_embedding_tuned: bool = False  # words' too
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


def list_glosses(items: pl.DataFrame, glosses: Mapping[str, Sequence[str]], recipe: Recipe) -> dict[str, str]:
    """Return the gloss of each option, which is itself where there is none; a reader without glosses gets none."""
    if not recipe.has_gloss:
        return {}
    words = sorted({normalise(option) for options in items["options"] for option in options})
    return {word: " ".join(glosses.get(word) or [word]) for word in words}


def check_length(recipe: Recipe, pieces: Pieces) -> None:
    """Raise BadInput if the longest sequence is longer than the encoder reads."""
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
    """Pieces of some items, and what sequences are made by."""

    passages: list[list[int]]  # of each item, what is read of it
    before: list[list[int]]  # of the question
    after: list[list[int]]
    options: list[list[list[int]]]  # [n, 5]
    glosses: list[list[list[int]]]  # [n, 5]; empty for a reader that reads none
    truth: Tensor  # [n]: place of the right option
    recipe: Recipe
    pieces: Pieces

    def lengths(self) -> IndexArray:
        """Count the pieces that are read of each passage."""
        return np.fromiter(map(len, self.passages), np.int64, len(self.passages))


def read(items: pl.DataFrame, recipe: Recipe, pieces: Pieces, glosses: Mapping[str, str]) -> Inputs:
    """Cut items into pieces; the gloss of each option is one of `glosses`, where the recipe reads any."""
    halves = [cloze.split_question(*row) for row in items.select("item_id", "question").iter_rows()]
    # a blank before an option belongs to it where blanks are parts of pieces
    before = [ids[-recipe.longest_question :] for ids in pieces.tokenize([half.rstrip() for half, _ in halves])]
    after = [ids[: recipe.longest_question] for ids in pieces.tokenize([half for _, half in halves])]
    forms = [
        [(" " if half[-1:].isspace() else "") + option.strip() for option in row]
        for (half, _), row in zip(halves, items["options"], strict=True)
    ]
    option_ids = _tokenize_texts({form for row in forms for form in row}, pieces, _OPTION)
    gloss_ids = _tokenize_texts(set(glosses.values()), pieces, recipe.longest_gloss) if recipe.has_gloss else {}
    texts = {text: [part for part in _SENTENCE.split(text) if part.strip()] for text in items["article"].unique()}
    ids_of_parts = iter(pieces.tokenize(list(chain(*texts.values()))))
    sentences = {text: [next(ids_of_parts) for _ in parts] for text, parts in texts.items()}
    room = recipe.window + (recipe.windows - 1) * recipe.stride
    passages = [
        select_sentences(sentences[article], before_ids + after_ids, room)
        if recipe.passage == "relevant"
        else list(chain(*sentences[article]))[:room]
        for article, before_ids, after_ids in zip(items["article"], before, after, strict=True)
    ]
    option_pieces = [[option_ids[form] for form in row] for row in forms]
    words = items["options"].to_list() if gloss_ids else []
    option_glosses = [[gloss_ids[glosses[normalise(option)]] for option in row] for row in words]
    truth = torch.from_numpy(items["label"].to_numpy().copy()) if "label" in items.columns else torch.zeros(len(items))
    return Inputs(passages, before, after, option_pieces, option_glosses, truth, recipe, pieces)


def _tokenize_texts(texts: set[str], pieces: Pieces, longest: int) -> dict[str, list[int]]:
    """The first pieces of each text; a text without any is one mask."""
    ordered = sorted(texts)
    return {text: ids[:longest] or [pieces.mask] for text, ids in zip(ordered, pieces.tokenize(ordered), strict=True)}


def select_sentences(sentences: Sequence[Sequence[int]], question: Sequence[int], room: int) -> list[int]:
    """Select the sentences of a passage that share most with a question, in their order, as many as there is room for.

    A sentence counts Σ log(1 + n / df) over the distinct pieces it shares with the question, divided by the square root
    of its length; n sentences, of which df hold the piece. Of equals the first one counts. The last one chosen is cut.
    """
    if sum(map(len, sentences)) <= room:
        return list(chain(*sentences))
    question_pieces = set(question)
    shared = [question_pieces.intersection(sentence) for sentence in sentences]
    df = Counter(chain(*shared))
    weights = [
        sum(math.log1p(len(sentences) / df[piece]) for piece in sorted(common)) / math.sqrt(max(len(sentence), 1))
        for common, sentence in zip(shared, sentences, strict=True)
    ]
    lengths = [0] * len(sentences)
    for i in sorted(range(len(sentences)), key=lambda number: -weights[number]):
        lengths[i] = min(len(sentences[i]), room)
        room -= lengths[i]
    return [piece for sentence, length in zip(sentences, lengths, strict=True) for piece in sentence[:length]]


def list_windows(length: int, recipe: Recipe) -> list[tuple[int, int]]:
    """List where the windows of a passage begin and end; the last one ends where it does. Every piece is in one."""
    last = max(length - recipe.window, 0)
    starts = [*range(0, last, recipe.stride), last]
    return [(start, min(start + recipe.window, length)) for start in starts]


def make_batch(inputs: Inputs, item_rows: Sequence[int]) -> Batch:
    """Make the sequences of some items."""
    recipe, pieces = inputs.recipe, inputs.pieces
    sequences, heads, rows = list[Tensor](), list[int](), list[tuple[int, int, int, list[bool]]]()
    for item, row in enumerate(item_rows):
        fillings = list(_list_fillings(inputs, row))
        for start, end in list_windows(len(inputs.passages[row]), recipe):
            for filling, gloss, is_served in fillings:
                pieces_before = [*pieces.before, *inputs.before[row]]
                head = [*pieces_before, *filling, *inputs.after[row], *gloss, *pieces.between]
                sequences.append(torch.tensor([*head, *inputs.passages[row][start:end], *pieces.after]))
                heads.append(len(head))
                rows.append((len(pieces_before), len(filling), item, is_served))
    ids = pad_sequence(sequences, batch_first=True, padding_value=pieces.pad)
    lengths = torch.tensor([len(sequence) for sequence in sequences]).unsqueeze(1)
    place = torch.arange(ids.shape[1])
    first_type, second_type = pieces.types
    types = torch.where(place < torch.tensor(heads).unsqueeze(1), first_type, second_type)
    starts, widths, items, served = map(torch.tensor, zip(*rows, strict=True))
    is_masked = recipe.style == "masked"
    options = _pad_pieces([inputs.options[row] for row in item_rows] if is_masked else [])
    glosses = _pad_pieces([inputs.glosses[row] for row in item_rows] if is_masked and inputs.glosses else [])
    return Batch(ids, place < lengths, types, starts, widths, items, served, options, glosses)


def _list_fillings(inputs: Inputs, row: int) -> Iterator[tuple[list[int], list[int], list[bool]]]:
    """What stands in the placeholder, the gloss behind the question, and the options that it is for."""
    options, pieces = inputs.options[row], inputs.pieces
    if inputs.recipe.style == "filled":
        for position, option in enumerate(options):
            gloss = [*pieces.between, *inputs.glosses[row][position]] if inputs.glosses else []
            yield option, gloss, [i == position for i in range(len(options))]
    elif inputs.recipe.masks == "one":
        yield [pieces.mask], [], [True] * len(options)
    else:
        for count in sorted({len(option) for option in options}):
            yield [pieces.mask] * count, [], [len(option) == count for option in options]


def _pad_pieces(rows: list[list[list[int]]]) -> Tensor:
    """[n, 5, k], padded with -1."""
    longest = max((len(ids) for row in rows for ids in row), default=0)
    filled = [[ids + [-1] * (longest - len(ids)) for ids in row] for row in rows]
    return torch.tensor(filled, dtype=torch.int64).reshape(len(rows), cloze.OPTIONS if rows else 0, longest)


MARK = "+hypernyms"  # behind the id of a copy
_WORD = re.compile(r"[^\W\d_]+")


@lru_cache(1 << 16)
def find_hypernym(word: str) -> str | None:
    """Return the first lemma of the hypernym of a noun's first sense; None for a root, or what is mostly no noun."""
    lemma = wordnet.lemmatize(word, "NOUN")
    senses = wordnet.list_synsets(lemma, "n")
    if not senses or any(_count(lemma, pos) >= _count(lemma, "n") for pos in "var" if wordnet.list_synsets(lemma, pos)):
        return None
    hypernyms = sorted(senses[0].hypernyms(), key=lambda synset: synset.name())  # nltk's order is not always the same
    return str(hypernyms[0].lemma_names()[0]).replace("_", " ") if hypernyms else None


def _count(lemma: str, pos: str) -> int:
    lemmas = (item for synset in wordnet.list_synsets(lemma, pos) for item in synset.lemmas())
    return sum(item.count() for item in lemmas if item.name().lower() == lemma.replace(" ", "_"))


def augment(items: pl.DataFrame, share: float, seed: int) -> pl.DataFrame:
    """Return a marked copy of each item in which words were replaced by their hypernyms, each with probability `share`.

    Capitalised words, most of them names, stay, and so does an option that would come to equal another.
    """
    rng = np.random.default_rng(seed)
    rows = []
    for row in items.iter_rows(named=True):
        article = _WORD.sub(lambda match: _generalise(match[0], share, rng), row["article"])
        options = list(row["options"])
        for position, option in enumerate(options):
            hypernym = _generalise(option, share, rng)
            if hypernym.lower() not in {existing.strip().lower() for existing in options}:
                options[position] = hypernym
        if (article, options) != (row["article"], row["options"]):
            rows.append(row | {"item_id": row["item_id"] + MARK, "article": article, "options": options})
    return pl.DataFrame(rows, schema=items.schema)


def _generalise(word: str, share: float, rng: np.random.Generator) -> str:
    """A word or, by chance, its hypernym. Chance is asked for each word, so that it does not depend on WordNet."""
    is_drawn = rng.random() < share
    return (is_drawn and word.islower() and find_hypernym(word)) or word
