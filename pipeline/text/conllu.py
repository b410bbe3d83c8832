"""Sentences of a CoNLL-U file, each row of a word checked as far as every reader needs it."""

import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from pipeline.errors import BadInput
from pipeline.io.lines import read_lines

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
    relation: str


class Sentence(NamedTuple):
    """The words of a sentence, and the comments before it by name."""

    words: list[Word]
    comments: dict[str, str]


def read(path: Path) -> Iterator[Sentence]:
    """The sentences of a file, without its word ranges (1-2) and empty nodes (1.1).

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
    number, form, lemma, upos, _, features, head, relation = fields[:8]
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
    features, relation = ("" if field == "_" else field for field in (features, relation))
    yield Word(line, form, lemma, upos, features, head, relation)
