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
from pipeline.examples.sources.files import find_files
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


def replace_masks(words: Iterable[str]) -> list[str]:
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
    return _drop_faulty(path, _list_google(path, annotator), least)


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
    return _drop_faulty(path, _list_broadcast(path, annotator), least)


def read_colloquial(path: Path, held_out: int = HELD_OUT) -> Read:
    """Colloquial-SC in its official order: the last 150 for testing, the 150 before them for validation (NDD-27).

    The order is that of all rows, those included that are no Python literals. Masks are left as they are: see
    `replace_masks`.

    Args:
        path: the folder with `alldata-<n>.txt` and `shuffled_idx-<n>.txt`.
        held_out: items of the test part, and of the validation part.

    Returns:
        All are Chinese; an item_id is `colloquial:<number>`.

    Raises:
        BadInput: naming file and line, for lines that are not in twos with a running number from 0, and for an order
            that does not name each item once.
    """
    return _drop_faulty(path, _list_colloquial(path, held_out))


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
    return _drop_faulty(path, _list_own(path, cut))


def _drop_faulty(path: Path, items: Iterable[_Item], least: int = 1) -> Read:
    rows, dropped, names = [], [], set()
    for name, words, flags, lang, split, item_reason in items:
        if name in names:
            raise BadInput(f"{path}: field 'item_id' should differ between items, found {name!r:.60} twice")
        names.add(name)
        reason = item_reason
        if reason is None:
            reason = "no_words" if not words else "short" if len(words) < least else None
        if reason is None:
            reason = "not_aligned" if not flags else "nothing_kept" if not any(flags) else None
        if reason:
            dropped.append((reason, name))
        else:
            rows.append(
                (name, words, flags, [word for word, is_kept in zip(words, flags, strict=True) if is_kept], lang, split)
            )
    if not names:
        raise BadInput(f"{path}: expected sentences, found none")
    sentences = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    languages = sentences.select(text=pl.col("words").list.join(" ")).select(detect_language("text")).to_series()
    return Read(
        sentences.with_columns(lang=pl.col("lang").fill_null(languages)),
        pl.DataFrame(dropped, schema=DROPPED, orient="row"),
    )


def _list_google(path: Path, annotator: int) -> Iterator[_Item]:
    if annotator < 1:
        raise ValueError(f"annotators are counted from 1, found {annotator}")
    for file in find_files(path, "*.jsonl"):
        for row, (line, entry) in enumerate(read_json_lines(file), 1):
            location = f"{file}, line {line}"
            summaries = entry.get("summaries")
            if (
                not isinstance(summaries, list)
                or len(summaries) < annotator
                or not all(isinstance(summary, str) for summary in summaries)
            ):
                raise BadInput(f"{location}: field 'summaries' should be a list of {annotator} or more texts, "
                               f"found {summaries!r:.60}")  # fmt: skip
            words = UNIT.findall(_check_text(entry, "text", location))
            yield _Item(f"{file.name}:{row}", words, _align(words, summaries[annotator - 1]), "en", "test")


def _list_broadcast(path: Path, annotator: int) -> Iterator[_Item]:
    source, gold = path / "input.txt", path / f"gold.{annotator}.comp"
    for pair in zip_longest(read_lines(source), read_lines(gold)):
        if None in pair:
            short, line = (source, pair[1][0]) if pair[0] is None else (gold, pair[0][0])
            raise BadInput(f"{short}, line {line}: there is none, but one in the other file; expected as many")
        (number, sentence), (_, compressed) = pair
        words = sentence.split()
        yield _Item(f"{source.name}:{number}", words, _align(words, compressed), "en", "test")


def _list_colloquial(path: Path, held_out: int) -> Iterator[_Item]:
    data, order = (
        find_files(path, pattern, is_each_needed=True)[0] for pattern in ("alldata-*.txt", "shuffled_idx-*.txt")
    )
    items: list[_Item] = []
    pairs = iter(read_lines(data))
    for line, text in pairs:
        number, mark, word_text = text.rstrip("\r\n").partition("\t")
        if number != str(len(items)) or not mark:
            raise BadInput(f"{data}, line {line}: expected {len(items)}, a tab and words, found {text.strip():.60}")
        label_line, labels = next(pairs, (line + 1, ""))
        if not labels.startswith("\t"):
            raise BadInput(f"{data}, line {label_line}: expected a tab and labels, found {labels.strip():.60}")
        items.append(_build_item(f"colloquial:{number}", _parse_literal(word_text), _parse_literal(labels.strip())))
    places = parse_value(read_text(order), order)
    if not isinstance(places, list) or any(type(place) is not int for place in places):
        raise BadInput(f"{order}: expected a list of whole numbers, found {places!r:.60}")
    if sorted(places) != [*range(len(items))] or not items:
        raise BadInput(f"{order}: expected each number from 0 to {len(items) - 1}, the items of {data.name}, once")
    for rank, place in enumerate(places, 1):
        parts = 1 + (rank > len(items) - 2 * held_out) + (rank > len(items) - held_out)
        yield items[place]._replace(split=SPLITS[parts - 1])


def _build_item(name: str, words: list[str] | None, labels: list[str] | None) -> _Item:
    reason = None
    if words is None:
        reason = "malformed_words"
    elif labels is None or not set(labels) <= {"0", "1"}:
        reason = "malformed_labels"
    elif len(words) != len(labels):
        reason = "lengths_differ"
    return _Item(name, words or [], [label == "1" for label in labels or []], "zh", None, reason)


def _parse_literal(text: str) -> list[str] | None:
    """The list of texts that a Python literal stands for; None for anything else, and for what is too long to parse."""
    if len(text) > LONGEST:
        return None
    try:
        with warnings.catch_warnings(action="ignore"):  # of escapes that Python does not know
            value = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None
    return value if isinstance(value, list) and all(isinstance(word, str) and word for word in value) else None


def _list_own(path: Path, cut: Cut) -> Iterator[_Item]:
    for line, entry in read_json_lines(path):
        location = f"{path}, line {line}"
        words = (
            _check_words(entry, "words", location) if "words" in entry else cut(_check_text(entry, "text", location))
        )
        if "kept" in entry:
            flags = _check_kept(entry["kept"], len(words), location)
        elif isinstance(entry.get("compressed"), list):
            flags = _align(words, " ".join(_check_words(entry, "compressed", location)))
        else:
            flags = _align(words, _check_text(entry, "compressed", location))
        name, lang, split = (
            _check_text(entry, f, location) if entry.get(f) else None for f in ("item_id", "lang", "split")
        )
        if split not in (None, *SPLITS):
            raise BadInput(f"{location}: field 'split' should be one of {', '.join(SPLITS)}, found {split!r:.60}")
        yield _Item(name or f"{path.name}:{line}", words, flags, lang, split)


def _check_text(entry: dict[str, Any], field: str, location: str) -> str:
    value = entry.get(field)
    if not isinstance(value, str):
        raise BadInput(f"{location}: field {field!r} should be a text, found {value!r:.60}")
    return value.strip()


def _check_words(entry: dict[str, Any], field: str, location: str) -> list[str]:
    value = entry[field]
    if not isinstance(value, list) or not all(isinstance(word, str) and word.strip() for word in value):
        raise BadInput(f"{location}: field {field!r} should be a list of words, found {value!r:.60}")
    return value


def _check_kept(value: object, size: int, location: str) -> list[bool]:
    flags = value if isinstance(value, list) else []
    if len(flags) != size or not all(isinstance(flag, bool | int) and flag in (0, 1) for flag in flags):
        raise BadInput(
            f"{location}: field 'kept' should be true or false for each of {size} words, found {value!r:.60}"
        )
    return [*map(bool, flags)]


def _align(words: Sequence[str], compressed: str) -> list[bool]:
    """Which words are kept, or nothing if the compression is none of them.

    Whole words first. Where that does not come out, a word that has part of it in the compression is kept ("7-5" for
    "7"), and then marks that the annotator put there are passed over.
    """
    word_pieces = [_PIECE.findall(word.casefold()) for word in words]
    gold_pieces = _PIECE.findall(compressed.casefold())
    gold_words = [piece for piece in gold_pieces if piece.isalnum()]
    return (
        _match_greedily(word_pieces, gold_pieces, True)
        or _match_greedily(word_pieces, gold_pieces, False)
        or _match_greedily(word_pieces, gold_words, False)
    )


def _match_greedily(words: list[list[str]], gold: list[str], is_whole: bool) -> list[bool]:
    position, flags = 0, []
    for pieces in words:
        before = position
        if is_whole:
            position += len(pieces) * (gold[position : position + len(pieces)] == pieces)
        else:
            for piece in pieces:
                position += gold[position : position + 1] == [piece]
        flags.append(position > before)
    return flags if position == len(gold) else []
