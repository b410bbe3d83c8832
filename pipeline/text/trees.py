"""Dependency trees of sentences, read from CoNLL-U or parsed by stanza; their subtrees and depths (NDD, sections 4.2
and 5.1; NDD-21, NDD-34).

Words are counted from 0, and the head of the root is -1. Functions on heads take those of any tree, projective or not.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.errors import BadInput
from pipeline.io.lines import read_lines
from pipeline.text.segment import load_pipeline

_PARTS_OF_SPEECH = "ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X"
UPOS = tuple(_PARTS_OF_SPEECH.split())
_ID = re.compile(r"[1-9]\d*|(\d+[-.]\d+)")


class Word(NamedTuple):
    """The row of a word; what the file does not give is empty."""

    line: int
    form: str
    lemma: str
    upos: str
    features: str
    head: str


class Sentence(NamedTuple):
    """The words of a sentence, and the comments before it by name."""

    words: list[Word]
    comments: dict[str, str]


def read_sentences(path: Path) -> Iterator[Sentence]:
    """The sentences of a CoNLL-U file, without its word ranges (1-2) and empty nodes (1.1).

    BadInput if a row does not have ten columns, words are not numbered from 1, a form is empty, or a part of speech is
    not universal.
    """
    sentence = Sentence([], {})
    for number, line in chain(read_lines(path), [(0, "")]):
        row = line.rstrip("\r\n")
        if row.startswith("#"):
            name, _, value = row[1:].partition("=")
            sentence.comments[name.strip()] = value.strip()
        elif row.strip():
            sentence.words.extend(_parse_row(row, number, len(sentence.words) + 1, f"{path}, line {number}"))
        else:
            if sentence.words:
                yield sentence
            sentence = Sentence([], {})


def _parse_row(row: str, line: int, position: int, place: str) -> Iterator[Word]:
    fields = row.split("\t")
    if len(fields) != 10:
        raise BadInput(f"{place}: expected the 10 columns of CoNLL-U, between tabs, found {len(fields)}: {row:.60}")
    number, form, lemma, upos, _, features, head = fields[:7]
    match = _ID.fullmatch(number)
    if not match or (not match[1] and number != str(position)):
        expected = f"{position}, a range as {position}-{position + 1} or {position}.1"
        raise BadInput(f"{place}: field ID should be {expected}, found {number!r:.60}")
    if match[1]:
        return
    if not form.strip():
        raise BadInput(f"{place}: field FORM should be a word, found {form!r:.60}")
    if upos not in UPOS:
        raise BadInput(f"{place}: field UPOS should be one of {' '.join(UPOS)}, found {upos!r:.60}")
    lemma = "" if lemma == "_" != form else lemma
    yield Word(line, form, lemma, upos, "" if features == "_" else features, head)


IndexArray = npt.NDArray[np.int64]
Heads = Sequence[int] | IndexArray
_HEAD = re.compile(r"[0-9]{1,9}")
PROCESSORS = "tokenize,pos,lemma,depparse"
CHUNK = 512  # sentences that stanza has at a time: it sorts them by length into batches of 5,000 words


class Tree(NamedTuple):
    """A sentence's words, each with its head; what a file or model does not give is empty."""

    words: tuple[str, ...]
    heads: tuple[int, ...]
    upos: tuple[str, ...]
    lemmas: tuple[str, ...]
    features: tuple[str, ...]  # as in CoNLL-U: Mood=Ind|Tense=Past
    sent_id: str = ""
    text: str = ""  # as it was written, with its blanks


Parse = Callable[[Iterable[Sequence[str]]], Iterator[Tree]]  # sentences, each of its words


def read(path: Path) -> Iterator[Tree]:
    """Trees of a CoNLL-U file.

    BadInput as of `read_sentences`, for a head that is not the number of another word, and for heads that make no tree.
    """
    for words, comments in read_sentences(path):
        _, forms, lemmas, upos, features, _ = zip(*words, strict=True)
        names = comments.get("sent_id", ""), comments.get("text", "")
        heads = []
        for place, word in enumerate(words, 1):
            if not _HEAD.fullmatch(word.head) or int(word.head) > len(words) or int(word.head) == place:
                expected = f"a number from 0 to {len(words)}, and not {place}, the word itself"
                raise BadInput(f"{path}, line {word.line}: field HEAD should be {expected}; found {word.head!r:.60}")
            heads.append(int(word.head) - 1)
        sentence_place = f"{path}, line {words[0].line}: field HEAD of the sentence that begins here"
        if (roots := heads.count(-1)) != 1:
            raise BadInput(f"{sentence_place} should be 0 for one word, the root, found {roots} of them")
        try:
            measure_depths(heads)
        except ValueError as why:
            raise BadInput(f"{sentence_place} should lead from each word to the root, but {why}") from why
        yield Tree(forms, tuple(heads), upos, lemmas, features, *names)


def load_parser(folder: Path, lang: str) -> Parse:
    """Stanza's parser of a language, on the CPU, with the models in a folder; nothing is downloaded.

    It takes words as they are, and raises BadInput for a sentence without words or with one of blanks alone. Without
    the models of all of PROCESSORS for the language, as stanza names it, it is Missing.
    """
    pipeline = load_pipeline(folder, lang, PROCESSORS, tokenize_pretokenized=True)

    def parse(sentences: Iterable[Sequence[str]]) -> Iterator[Tree]:
        batches = _check_words(sentences)
        while chunk := [*islice(batches, CHUNK)]:
            yield from map(_convert_sentence, pipeline(chunk).sentences)

    return parse


def _check_words(sentences: Iterable[Sequence[str]]) -> Iterator[list[str]]:
    for number, words in enumerate(sentences, 1):
        if not words or not all(map(str.strip, words)):
            raise BadInput(f"sentence {number}: expected words that are not blank, at least one, found {words!r:.60}")
        yield [*words]


def _convert_sentence(sentence: Any) -> Tree:
    def column(name: str) -> tuple[str, ...]:
        return tuple(getattr(word, name) or "" for word in sentence.words)

    heads = tuple(word.head - 1 for word in sentence.words)
    return Tree(column("text"), heads, column("upos"), column("lemma"), column("feats"))


def match_trees(trees: Iterable[Tree], sentences: Sequence[Sequence[str]]) -> list[Tree | None]:
    """Find the tree of each sentence by its words, the first of several, else None; only trees asked for are held."""
    keys = [tuple(words) for words in sentences]
    by_words: dict[tuple[str, ...], Tree | None] = dict.fromkeys(keys)
    for tree in trees:
        if by_words.get(tree.words, tree) is None:
            by_words[tree.words] = tree
    return [by_words[words] for words in keys]


def measure_depths(heads: Heads) -> IndexArray:
    """How many words it takes from each word up to the root, both counted: 1 for the root (figure 5), [n].

    ValueError if the heads of some words form a cycle.
    """
    up = np.asarray(heads, np.int64)
    depths, above = np.ones_like(up), up
    while (below := above >= 0).any():  # twice as far up each time
        depths = depths + np.where(below, depths[above], 0)
        if depths.max() > len(up):
            raise ValueError(f"the heads of word {int(depths.argmax()) + 1} form a cycle")
        above = np.where(below, above[above], -1)
    return depths


def find_subtrees(heads: Heads) -> IndexArray:
    """Spans that are a word with all its descendants, but for the whole sentence (section 4.2; NDD-21).

    Start and end (exclusive) of each, [k, 2], in their order. A word apart from its descendants has none.
    """
    up = np.asarray(heads, np.int64).tolist()
    first, last, size = [*range(len(up))], [*range(len(up))], [1] * len(up)
    for word in np.argsort(-measure_depths(heads)).tolist():  # before its head
        if (head := up[word]) >= 0:
            first[head] = min(first[head], first[word])
            last[head] = max(last[head], last[word])
            size[head] += size[word]
    spans = zip(first, last, size, strict=True)
    subtrees = sorted((start, end + 1) for start, end, count in spans if end + 1 - start == count < len(up))
    return np.array(subtrees, np.int64).reshape(-1, 2)


def drop_words(heads: Heads, is_kept: Sequence[bool] | npt.NDArray[np.bool_]) -> IndexArray:
    """Heads of the words that are kept, counted again, once subtrees were dropped; both inputs are of each word."""
    up, stays = np.asarray(heads, np.int64), np.asarray(is_kept, np.bool_)
    place = np.append(np.cumsum(stays) - 1, -1)  # the last one is for the root: its head is -1
    return np.asarray(place[up[stays]], np.int64)
