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

from pipeline.errors import BadInput, Missing
from pipeline.io.lines import read_lines
from pipeline.text import tagging

IndexArray = npt.NDArray[np.int64]
Heads = Sequence[int] | IndexArray

PROCESSORS = "tokenize,pos,lemma,depparse"
CHUNK = 512  # sentences that stanza has at a time: it sorts them by length into batches of 5,000 words


class Tree(NamedTuple):
    """A sentence's words, each with its head; what a file or model does not give is empty."""

    words: tuple[str, ...]
    heads: tuple[int, ...]
    relations: tuple[str, ...]  # such as nsubj, of each word to its head
    upos: tuple[str, ...]
    lemmas: tuple[str, ...]
    features: tuple[str, ...]  # as in CoNLL-U: Mood=Ind|Tense=Past
    sent_id: str = ""
    text: str = ""  # as it was written, with its blanks


Parse = Callable[[Iterable[Sequence[str]]], Iterator[Tree]]  # sentences, each of its words


def read(conllu: Path) -> Iterator[Tree]:
    """Trees of a CoNLL-U file; ranges of words (1-2) and empty nodes (1.1) are passed over.

    Raises:
        BadInput: naming file, line and field, as of `tagging.read`, or if a head is not the number of another word,
            or the heads of a sentence do not make one tree.
    """
    # of each sentence the tagger's reader goes first, so that ours only meets rows whose columns and numbers are right
    for words, (rows, comments) in zip(tagging.read(conllu), _read_sentences(conllu), strict=True):
        forms, lemmas, upos = zip(*words, strict=True)
        features, relations = (
            tuple("" if fields[column] == "_" else fields[column] for _, fields in rows) for column in (5, 7)
        )
        yield Tree(forms, _parse_heads(rows, conllu), relations, upos, lemmas, features,
                   comments.get("sent_id", ""), comments.get("text", ""))  # fmt: skip


_Rows = list[tuple[int, list[str]]]  # number of the line, fields


def _read_sentences(conllu: Path) -> Iterator[tuple[_Rows, dict[str, str]]]:
    """The rows of each sentence's words, and its comments."""
    rows: _Rows = []
    comments: dict[str, str] = {}
    for number, line in chain(read_lines(conllu), [(0, "")]):
        row = line.rstrip("\r\n")
        fields = row.split("\t")
        if row.startswith("#"):
            name, _, value = row[1:].partition("=")
            comments[name.strip()] = value.strip()
        elif fields[0].isdigit():
            rows.append((number, fields))
        elif not row.strip():
            if rows:
                yield rows, comments
            rows, comments = [], {}


_HEAD = re.compile(r"[0-9]{1,9}")


def _parse_heads(rows: _Rows, conllu: Path) -> tuple[int, ...]:
    heads = []
    for place, (number, fields) in enumerate(rows, 1):
        head = fields[6]
        if not _HEAD.fullmatch(head) or int(head) > len(rows) or int(head) == place:
            raise BadInput(f"{conllu}, line {number}: field HEAD should be a number from 0 to {len(rows)}, and not "
                           f"{place}, the word itself; found {head!r:.60}")  # fmt: skip
        heads.append(int(head) - 1)
    place_in_file = f"{conllu}, line {rows[0][0]}: field HEAD of the sentence that begins here"
    if (roots := heads.count(-1)) != 1:
        raise BadInput(f"{place_in_file} should be 0 for one word, the root, found {roots} of them")
    try:
        measure_depths(heads)
    except ValueError as why:
        raise BadInput(f"{place_in_file} should lead from each word to the root, but {why}") from why
    return tuple(heads)


def load_parser(folder: Path, lang: str) -> Parse:
    """Stanza's parser of a language, on the CPU, with the models in a folder; nothing is downloaded.

    It takes words as they are, and raises BadInput for a sentence without words or with one of blanks alone.

    Args:
        folder: that of stanza's resources.json.
        lang: as stanza names it, such as en or zh.

    Raises:
        Missing: there are no models of the language, or not those of all of PROCESSORS.
    """
    remedy = f"stanza.download({lang!r}, model_dir='{folder}')"
    if not (folder / "resources.json").is_file():
        raise Missing(f"stanza has no models in {folder}: {remedy}")
    from stanza import Pipeline
    from stanza.pipeline.core import PipelineRequirementsException

    try:
        pipeline = Pipeline(
            lang,
            dir=str(folder),
            processors=PROCESSORS,
            tokenize_pretokenized=True,
            download_method=None,
            use_gpu=False,
            verbose=False,
        )
    except (OSError, ValueError, KeyError, PipelineRequirementsException) as why:
        raise Missing(f"stanza's models of {lang} in {folder} are not complete ({why}): {remedy}") from why
    # one that its list does not name is left out with a warning
    if lacking := [name for name in PROCESSORS.split(",") if name not in pipeline.processors]:
        raise Missing(f"stanza's models of {lang} in {folder} are without {', '.join(lacking)}: {remedy}")

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
    return Tree(column("text"), heads, column("deprel"), column("upos"), column("lemma"), column("feats"))


def match_trees(trees: Iterable[Tree], sentences: Sequence[Sequence[str]]) -> list[Tree | None]:
    """The tree of each sentence by its words, the first where several have them; None where none has.

    Only trees that are asked for are held.
    """
    keys = [tuple(words) for words in sentences]
    by_words: dict[tuple[str, ...], Tree | None] = dict.fromkeys(keys)
    for tree in trees:
        if by_words.get(tree.words, tree) is None:
            by_words[tree.words] = tree
    return [by_words[words] for words in keys]


def measure_depths(heads: Heads) -> IndexArray:
    """How many words it takes from each word up to the root, both counted: 1 for the root (figure 5), [n].

    Raises:
        ValueError: the heads of some words form a cycle.
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

    A word whose descendants do not stand together with it has none.

    Returns:
        Start and end (exclusive) of each, [k, 2], in their order.
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
    """Heads of the words that are kept, counted anew, once subtrees were dropped.

    Args:
        heads: of each word, [n].
        is_kept: whether it stays, [n].

    Raises:
        ValueError: a word stays whose head does not, or not as many of one as of the other.
    """
    up, stays = np.asarray(heads, np.int64), np.asarray(is_kept, np.bool_)
    if len(up) != len(stays):
        raise ValueError(f"expected for each of {len(up)} words if it is kept, got {len(stays)}")
    orphans = stays & ~np.append(stays, True)[up]  # the last one is for the root: its head is -1
    if orphans.any():
        raise ValueError(f"word {int(orphans.argmax()) + 1} is kept, but its head is not: no subtree was dropped")
    place = np.append(np.cumsum(stays) - 1, -1)
    return np.asarray(place[up[stays]], np.int64)
