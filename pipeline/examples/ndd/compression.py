"""Sentences with their compressions, in the layouts in which they are published (NDD, section 4.2; NDD-23, 26 to 28).

- Google 1,000: jsonl with text and summaries, of which there may be one for each annotator.
- Broadcast news (BNC), as SLAHAN shares it: `input.txt` and `gold.<annotator>.comp`, a tokenised sentence a line.
- Colloquial-SC: two lines an item, `number <tab> words` and `<tab> labels`, Python literals, and an official order.
- Our own: jsonl with text or words, and compressed or kept.

A compression keeps some words of its sentence and makes no new ones. Where it is given as text it is aligned greedily,
from left to right, each word with the first that it can be: the words are right, their places may be earlier than those
that the annotator had in mind. Capitals do not count.
"""

import ast
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from pipeline.errors import BadInput
from pipeline.examples.recam.items import DROPPED
from pipeline.examples.recam.summaries import SPLITS
from pipeline.examples.sources.files import find
from pipeline.io.lines import parse_value, read_json_lines, read_lines, read_text
from pipeline.text.language import detect_language
from pipeline.text.segment import UNIT

SCHEMA: dict[str, pl.DataType] = {
    "item_id": pl.String(), "words": pl.List(pl.String()), "kept": pl.List(pl.Boolean()),
    "compression": pl.List(pl.String()), "lang": pl.String(), "split": pl.String(),
}  # fmt: skip
EXPRESSIONS = {"[业务名词]": "某业务", "[电话号码]": "电话", "[编号]": "1", "[名词]": "这个", "[地址]": "某地"}
"""What stands for the masks of Colloquial-SC, which no language model knows (appendix D, table 11; NDD-28)."""
LEAST = 20  # tokens of a broadcast sentence (E18)
HELD_OUT = 150  # of Colloquial-SC for testing, and as many for validation
LONGEST = 20_000  # characters of a literal; the published ones have up to 164

_PIECE = re.compile(r"[\u3400-\u9fff]|[^\W_\u3400-\u9fff]+|[^\w\s]|_")
_MASK = re.compile("|".join(map(re.escape, EXPRESSIONS)))

Cut = Callable[[str], list[str]]


class Read(NamedTuple):
    """Sentences that are kept and those that are not; together they are the sentences that came in."""

    rows: pl.DataFrame
    """item_id, words [n], kept [n], compression (the words that are kept, at least one), lang, split (or null)."""
    dropped: pl.DataFrame
    """reason (no_words, short, malformed_words, malformed_labels, lengths_differ, not_aligned, nothing_kept), row_key
    (the item_id)."""


class _Item(NamedTuple):
    name: str
    words: list[str]
    kept: list[bool]
    lang: str | None
    split: str | None
    reason: str | None = None


def expressed(words: Iterable[str]) -> list[str]:
    """The words with expressions for the masks in them, so many as before (NDD-28)."""
    return [_MASK.sub(lambda mask: EXPRESSIONS[mask[0]], word) for word in words]


def read_google(path: Path, annotator: int = 1, least: int = 1) -> Read:
    """Google's 1,000 test sentences, or others in the layout `{"text": str, "summaries": [str]}` a line.

    The published compressions are cut into words otherwise than the sentences ("$ 30"). Words here are those of
    `segment.UNIT`, with each mark a word, by which the sentences are about as long as table 9 says (27.86; 27.71).

    Args:
        path: the jsonl file, or its folder.
        annotator: which of the summaries, from 1.
        least: words of a sentence; shorter ones are dropped.

    Returns:
        All are English test items; an item_id is `<file name>:<row>`.

    Raises:
        BadInput: naming file, line and field.
    """
    return _sorted_out(path, _of_google(path, annotator), least)


def read_broadcast(path: Path, annotator: int = 1, least: int = LEAST) -> Read:
    """Broadcast news from the two files of SLAHAN's `share/bcn`; the subset of the paper unless told otherwise (E18).

    Args:
        path: the folder with `input.txt` and `gold.<annotator>.comp`, which have a sentence a line with blanks
            between its tokens. `share/google` has the same layout but for the name of its gold file.
        annotator: 1, 2 or 3; the paper's is 1.
        least: tokens of a sentence; shorter ones are dropped.

    Returns:
        All are English test items; an item_id is `<file name>:<line>`.

    Raises:
        BadInput: a file that is not there, or files with different numbers of lines.
    """
    return _sorted_out(path, _of_broadcast(path, annotator), least)


def read_colloquial(path: Path, held_out: int = HELD_OUT) -> Read:
    """Colloquial-SC in its official order: the last 150 for testing, the 150 before them for validation (NDD-27).

    The order is that of all rows, those included that are no Python literals. Masks are left as they are: see
    `expressed`.

    Args:
        path: the folder with `alldata-<n>.txt` and `shuffled_idx-<n>.txt`.
        held_out: items of the test part, and of the validation part.

    Returns:
        All are Chinese; an item_id is `colloquial:<number>`.

    Raises:
        BadInput: naming file and line, for lines that are not in twos with a running number from 0, and for an order
            that does not name each item once.
    """
    return _sorted_out(path, _of_colloquial(path, held_out))


def read(path: Path, cut: Cut = UNIT.findall) -> Read:
    """Our own layout, jsonl: text or words, and compressed (a text or words) or kept (true or false for each word).

    `item_id`, `lang` (else what the script says) and `split` may be there.

    Args:
        path: the file.
        cut: the words of a text; by default Chinese characters, words of other writing, and marks.

    Returns:
        As they stand in the file; an item_id is `<file name>:<line>` unless given.

    Raises:
        BadInput: naming file, line and field.
    """
    return _sorted_out(path, _own(path, cut))


def _sorted_out(path: Path, items: Iterable[_Item], least: int = 1) -> Read:
    rows, dropped, seen = [], [], set()
    for name, words, kept, lang, split, given in items:
        if name in seen:
            raise BadInput(f"{path}: field 'item_id' should differ between items, found {name!r:.60} twice")
        seen.add(name)
        reason = given
        if reason is None:
            reason = "no_words" if not words else "short" if len(words) < least else None
        if reason is None:
            reason = "not_aligned" if not kept else "nothing_kept" if not any(kept) else None
        if reason:
            dropped.append((reason, name))
        else:
            rows.append((name, words, kept, [w for w, stays in zip(words, kept, strict=True) if stays], lang, split))
    if not seen:
        raise BadInput(f"{path}: expected sentences, found none")
    found = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    told = found.select(text=pl.col("words").list.join(" ")).select(detect_language("text")).to_series()
    return Read(
        found.with_columns(lang=pl.col("lang").fill_null(told)), pl.DataFrame(dropped, schema=DROPPED, orient="row")
    )


def _of_google(path: Path, annotator: int) -> Iterator[_Item]:
    if annotator < 1:
        raise ValueError(f"annotators are counted from 1, found {annotator}")
    for file in find(path, "*.jsonl"):
        for row, (line, entry) in enumerate(read_json_lines(file), 1):
            where = f"{file}, line {line}"
            told = entry.get("summaries")
            if not isinstance(told, list) or len(told) < annotator or not all(isinstance(each, str) for each in told):
                raise BadInput(f"{where}: field 'summaries' should be a list of {annotator} or more texts, "
                               f"found {told!r:.60}")  # fmt: skip
            words = UNIT.findall(_text(entry, "text", where))
            yield _Item(f"{file.name}:{row}", words, _aligned(words, told[annotator - 1]), "en", "test")


def _of_broadcast(path: Path, annotator: int) -> Iterator[_Item]:
    source, gold = path / "input.txt", path / f"gold.{annotator}.comp"
    for pair in zip_longest(read_lines(source), read_lines(gold)):
        if None in pair:
            short, line = (source, pair[1][0]) if pair[0] is None else (gold, pair[0][0])
            raise BadInput(f"{short}, line {line}: there is none, but one in the other file; expected as many")
        (number, sentence), (_, compressed) = pair
        words = sentence.split()
        yield _Item(f"{source.name}:{number}", words, _aligned(words, compressed), "en", "test")


def _of_colloquial(path: Path, held_out: int) -> Iterator[_Item]:
    data, order = (find(path, pattern, every=True)[0] for pattern in ("alldata-*.txt", "shuffled_idx-*.txt"))
    items: list[_Item] = []
    pairs = iter(read_lines(data))
    for line, text in pairs:
        number, mark, told = text.rstrip("\r\n").partition("\t")
        if number != str(len(items)) or not mark:
            raise BadInput(f"{data}, line {line}: expected {len(items)}, a tab and words, found {text.strip():.60}")
        label_line, labels = next(pairs, (line + 1, ""))
        if not labels.startswith("\t"):
            raise BadInput(f"{data}, line {label_line}: expected a tab and labels, found {labels.strip():.60}")
        items.append(_labelled(f"colloquial:{number}", _literal(told), _literal(labels.strip())))
    places = parse_value(read_text(order), order)
    if not isinstance(places, list) or any(type(place) is not int for place in places):
        raise BadInput(f"{order}: expected a list of whole numbers, found {places!r:.60}")
    if sorted(places) != [*range(len(items))] or not items:
        raise BadInput(f"{order}: expected each number from 0 to {len(items) - 1}, the items of {data.name}, once")
    for at, place in enumerate(places, 1):
        parts = 1 + (at > len(items) - 2 * held_out) + (at > len(items) - held_out)
        yield items[place]._replace(split=SPLITS[parts - 1])


def _labelled(name: str, words: list[str] | None, labels: list[str] | None) -> _Item:
    reason = None
    if words is None:
        reason = "malformed_words"
    elif labels is None or not set(labels) <= {"0", "1"}:
        reason = "malformed_labels"
    elif len(words) != len(labels):
        reason = "lengths_differ"
    return _Item(name, words or [], [label == "1" for label in labels or []], "zh", None, reason)


def _literal(text: str) -> list[str] | None:
    """The list of texts that a Python literal stands for; None for anything else, and for what is too long to parse."""
    if len(text) > LONGEST:
        return None
    try:
        with warnings.catch_warnings(action="ignore"):  # of escapes that Python does not know
            found = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None
    return found if isinstance(found, list) and all(isinstance(each, str) and each for each in found) else None


def _own(path: Path, cut: Cut) -> Iterator[_Item]:
    for line, entry in read_json_lines(path):
        where = f"{path}, line {line}"
        words = _words(entry, "words", where) if "words" in entry else cut(_text(entry, "text", where))
        if "kept" in entry:
            kept = _kept(entry["kept"], len(words), where)
        elif isinstance(entry.get("compressed"), list):
            kept = _aligned(words, " ".join(_words(entry, "compressed", where)))
        else:
            kept = _aligned(words, _text(entry, "compressed", where))
        name, lang, split = (_text(entry, f, where) if entry.get(f) else None for f in ("item_id", "lang", "split"))
        if split not in (None, *SPLITS):
            raise BadInput(f"{where}: field 'split' should be one of {', '.join(SPLITS)}, found {split!r:.60}")
        yield _Item(name or f"{path.name}:{line}", words, kept, lang, split)


def _text(entry: dict[str, Any], field: str, where: str) -> str:
    value = entry.get(field)
    if not isinstance(value, str):
        raise BadInput(f"{where}: field {field!r} should be a text, found {value!r:.60}")
    return value.strip()


def _words(entry: dict[str, Any], field: str, where: str) -> list[str]:
    value = entry[field]
    if not isinstance(value, list) or not all(isinstance(word, str) and word.strip() for word in value):
        raise BadInput(f"{where}: field {field!r} should be a list of words, found {value!r:.60}")
    return value


def _kept(value: object, size: int, where: str) -> list[bool]:
    given = value if isinstance(value, list) else []
    if len(given) != size or not all(isinstance(each, bool | int) and each in (0, 1) for each in given):
        raise BadInput(f"{where}: field 'kept' should be true or false for each of {size} words, found {value!r:.60}")
    return [*map(bool, given)]


def _aligned(words: Sequence[str], compressed: str) -> list[bool]:
    """Which words are kept, or nothing if the compression is none of them.

    Whole words first. Where that does not come out, a word that has part of it in the compression is kept ("7-5" for
    "7"), and then marks that the annotator put there are passed over.
    """
    own = [_PIECE.findall(word.casefold()) for word in words]
    gold = _PIECE.findall(compressed.casefold())
    spoken = [piece for piece in gold if piece.isalnum()]
    return _greedy(own, gold, True) or _greedy(own, gold, False) or _greedy(own, spoken, False)


def _greedy(words: list[list[str]], gold: list[str], whole: bool) -> list[bool]:
    at, kept = 0, []
    for pieces in words:
        before = at
        if whole:
            at += len(pieces) * (gold[at : at + len(pieces)] == pieces)
        else:
            for piece in pieces:
                at += gold[at : at + 1] == [piece]
        kept.append(at > before)
    return kept if at == len(gold) else []
