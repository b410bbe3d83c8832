"""Sentences with their compressions, in the layouts in which they are published (NDD, section 4.2; NDD-23, 26 to 28).

Rows are item_id, words [n], kept [n], compression (at least one word), lang, split (or null). A compression given as
text is aligned greedily, from left to right: its words are right, their places may be earlier than those the annotator
meant. Capitals do not count. What cannot be read is BadInput with file, line and field.
"""

import ast
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from itertools import compress, zip_longest
from pathlib import Path
from typing import NamedTuple

import polars as pl

from pipeline.errors import BadInput
from pipeline.examples.recam.items import DROPPED
from pipeline.examples.recam.summaries import SPLITS
from pipeline.examples.sources.files import find_files
from pipeline.io.fields import check_field, check_text, is_text_list
from pipeline.io.lines import parse_value, read_json_lines, read_lines, read_text
from pipeline.reasons import Read, find_fault
from pipeline.text.language import detect_language
from pipeline.text.segment import UNIT

SCHEMA: dict[str, pl.DataType] = {
    "item_id": pl.String(), "words": pl.List(pl.String()), "kept": pl.List(pl.Boolean()),
    "compression": pl.List(pl.String()), "lang": pl.String(), "split": pl.String(),
}  # fmt: skip
# what stands for the masks of Colloquial-SC, which no language model knows (appendix D, table 11; NDD-28)
EXPRESSIONS = {"[业务名词]": "某业务", "[电话号码]": "电话", "[编号]": "1", "[名词]": "这个", "[地址]": "某地"}
LEAST = 20  # tokens of a broadcast sentence (E18)
HELD_OUT = 150  # of Colloquial-SC for testing, and as many for validation
LONGEST = 20_000  # characters of a literal; the published ones have up to 164
_PIECE = re.compile(r"[\u3400-\u9fff]|[^\W_\u3400-\u9fff]+|[^\w\s]|_")
_MASK = re.compile("|".join(map(re.escape, EXPRESSIONS)))


class _Item(NamedTuple):
    name: str
    words: list[str]
    flags: list[bool]  # whether each word is kept
    lang: str | None
    split: str | None
    reason: str | None = None


def replace_masks(words: Iterable[str]) -> list[str]:
    """Replace the masks in words by expressions, so many words as before (NDD-28)."""
    return [_MASK.sub(lambda mask: EXPRESSIONS[mask[0]], word) for word in words]


def read_google(path: Path) -> Read:
    """Read Google's 1,000 test sentences, or others in the layout `{"text": str, "summaries": [str]}` a line.

    By the words of `segment.UNIT` they are about as long as table 9 says (27.86; 27.71). The first summary counts.
    """
    return _drop_faulty(path, _list_google(path))


def read_broadcast(path: Path) -> Read:
    """Read the paper's subset of broadcast news from the two files of SLAHAN's `share/bcn` (E18).

    The folder has `input.txt` and `gold.1.comp`, of the first annotator, with a sentence a line and blanks between its
    tokens; sentences of fewer tokens than `LEAST` are dropped.
    """
    return _drop_faulty(path, _list_broadcast(path), LEAST)


def read_colloquial(path: Path) -> Read:
    """Read Colloquial-SC in its official order: the last 150 for testing, the 150 before for validation (NDD-27).

    Lines are in twos: `number <tab> words`, `<tab> labels`, Python literals. The order is that of all rows, those
    included that are no literals. Masks stay: see `replace_masks`.
    """
    return _drop_faulty(path, _list_colloquial(path))


def read(path: Path) -> Read:
    """Read our own layout, jsonl: text or words, and compressed (a text or words) or kept (true or false a word).

    `item_id` (else `<file name>:<line>`), `lang` (else what the script says) and `split` may be there. The words of a
    text are Chinese characters, words of other writing, and marks.
    """
    return _drop_faulty(path, _list_items(path))


def _drop_faulty(path: Path, items: Iterable[_Item], least: int = 1) -> Read:
    rows, dropped, names = [], [], set()
    for name, words, flags, lang, split, item_reason in items:
        if name in names:
            raise BadInput(f"{path}: field 'item_id' should differ between items, found {name!r:.60} twice")
        names.add(name)
        is_short, has_kept = len(words) < least, any(flags)
        reason = find_fault(no_words=not words, short=is_short, not_aligned=not flags, nothing_kept=not has_kept)
        if item_reason or reason:
            dropped.append((item_reason or reason, name))
        else:
            rows.append((name, words, flags, [*compress(words, flags)], lang, split))
    if not names:
        raise BadInput(f"{path}: expected sentences, found none")
    sentences = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    languages = sentences.select(text=pl.col("words").list.join(" ")).select(detect_language("text")).to_series()
    sentences = sentences.with_columns(lang=pl.col("lang").fill_null(languages))
    return Read(sentences, pl.DataFrame(dropped, schema=DROPPED, orient="row"))


def _list_google(path: Path) -> Iterator[_Item]:
    for file in find_files(path, "*.jsonl"):
        for row, (line, entry) in enumerate(read_json_lines(file), 1):
            location = f"{file}, line {line}"
            is_valid = is_text_list(entry.get("summaries"), may_be_blank=True) and entry["summaries"]
            summaries = check_field(entry, "summaries", location, "a list of texts", is_valid)
            words = UNIT.findall(check_text(entry, "text", location, may_be_blank=True))
            yield _Item(f"{file.name}:{row}", words, _align(words, summaries[0]), "en", "test")


def _list_broadcast(path: Path) -> Iterator[_Item]:
    source, gold = path / "input.txt", path / "gold.1.comp"
    for pair in zip_longest(read_lines(source), read_lines(gold)):
        if None in pair:
            short, line = (source, pair[1][0]) if pair[0] is None else (gold, pair[0][0])
            raise BadInput(f"{short}, line {line}: there is none, but one in the other file; expected as many")
        (number, sentence), (_, compressed) = pair
        words = sentence.split()
        yield _Item(f"{source.name}:{number}", words, _align(words, compressed), "en", "test")


def _list_colloquial(path: Path) -> Iterator[_Item]:
    if path.is_file():
        raise BadInput(f"{path}: expected the folder that holds alldata-*.txt and shuffled_idx-*.txt")
    data, order = (find_files(path, pattern)[0] for pattern in ("alldata-*.txt", "shuffled_idx-*.txt"))
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
        parts = 1 + (rank > len(items) - 2 * HELD_OUT) + (rank > len(items) - HELD_OUT)
        yield items[place]._replace(split=SPLITS[parts - 1])


def _build_item(name: str, words: list[str] | None, labels: list[str] | None) -> _Item:
    is_malformed = labels is None or not set(labels) <= {"0", "1"}
    differs = len(words or []) != len(labels or [])
    reason = find_fault(malformed_words=words is None, malformed_labels=is_malformed, lengths_differ=differs)
    return _Item(name, words or [], [label == "1" for label in labels or []], "zh", None, reason)


def _parse_literal(text: str) -> list[str] | None:
    """Parse a Python literal of a list of texts; None for anything else, and for what is too long to parse."""
    if len(text) > LONGEST:
        return None
    try:
        with warnings.catch_warnings(action="ignore"):  # of escapes that Python does not know
            value = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None
    return value if is_text_list(value, may_be_blank=True) and all(value) else None


def _list_items(path: Path) -> Iterator[_Item]:
    for line, entry in read_json_lines(path):
        location = f"{path}, line {line}"
        if "words" in entry:
            words = check_field(entry, "words", location, "a list of words", is_text_list(entry["words"]))
        else:
            words = UNIT.findall(check_text(entry, "text", location, may_be_blank=True))
        if "kept" in entry:
            labels = entry["kept"] if isinstance(entry["kept"], list) else []
            is_valid = len(labels) == len(words) and all(isinstance(flag, int) and flag in (0, 1) for flag in labels)
            check_field(entry, "kept", location, f"true or false for each of {len(words)} words", is_valid)
            flags = [*map(bool, labels)]
        elif isinstance(compressed := entry.get("compressed"), list):
            check_field(entry, "compressed", location, "a list of words", is_text_list(compressed))
            flags = _align(words, " ".join(compressed))
        else:
            flags = _align(words, check_text(entry, "compressed", location, may_be_blank=True))
        fields = ("item_id", "lang", "split")
        name, lang, split = (
            check_text(entry, field, location, may_be_blank=True) if entry.get(field) else None for field in fields
        )
        check_field({"split": split}, "split", location, f"one of {', '.join(SPLITS)}", split in (None, *SPLITS))
        yield _Item(name or f"{path.name}:{line}", words, flags, lang, split)


def _align(words: Sequence[str], compressed: str) -> list[bool]:
    """Mark the words that are kept, or return nothing if the compression is none of them: whole words first.

    Else a word in part counts ("7-5" for "7"), and then marks that the annotator put there are passed over.
    """
    word_pieces = [_PIECE.findall(word.casefold()) for word in words]
    gold = _PIECE.findall(compressed.casefold())
    ways = ((gold, True), (gold, False), ([piece for piece in gold if piece.isalnum()], False))
    return next((flags for way in ways if (flags := _match_greedily(word_pieces, *way))), [])


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
