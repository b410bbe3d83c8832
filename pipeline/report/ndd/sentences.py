"""Sentences on the page of NDD, as HTML: what each round of a compressor took, and which words tell a pair apart."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from markupsafe import Markup, escape

from pipeline.io.visible import escape_invisible
from pipeline.report.ndd.figures import name_system
from pipeline.report.sections import Section, format_count, format_number

Row = Mapping[str, Any]
EXAMPLES = 12  # sentences, and pairs of sentences, that the page shows
LONG = 80  # words of a sentence that are shown
_LETTERS = 40  # of a word
_HIGH = 3.0  # rem, of the highest bar
_UNSPACED = ("zh", "ja")


def show_rounds(rows: Sequence[Row]) -> Section:
    """Show sentences and what each round took of them: source, lang, words, rounds, system, gold (or None)."""
    strips, table = [_LEGEND], []
    for row in rows[:EXAMPLES]:
        words, rounds, words_by_round = row["words"], row["rounds"], defaultdict[int, list[str]](list)
        blank = "" if row["lang"] in _UNSPACED else " "
        strips.append(_draw_sentence(row, blank))
        for word, round_number in zip(words[:LONG], rounds, strict=False):
            words_by_round[round_number].append(shorten_word(word))
        staying = blank.join(words_by_round.pop(0, []))
        dropped = " · ".join(f"{n}: {blank.join(words_by_round[n])}" for n in sorted(words_by_round))
        count = f"{sum(n == 0 for n in rounds):,} of {len(words):,}"
        table.append([row["source"], name_system(row["system"]), staying, dropped or "–", count])
    sentence = (
        "Dropped words are struck through. The shade and the number after the words are the round. Words that people "
        f"keep are underlined, if known. The table has the same text.{_describe_limit(rows, 'sentences')}"
    )
    names = ("source", "system", "kept words", "dropped words by round", "words")
    return Section(sentence, names, table, Markup("").join(strips), text_count=4)


def explain_pairs(pairs: Sequence[Row]) -> Section:
    """Show pairs and the words that tell them apart: one, other, value, rows of word, place, divergence, weight."""
    strips, table = [], []
    for i, pair in enumerate(pairs[:EXAMPLES], 1):
        shares = {row["place"]: row["divergence"] * row["weight"] for row in pair["rows"]}
        strips.append(_draw_bars(pair, shares))
        total = sum(shares.values())
        for row in sorted(pair["rows"], key=lambda row: row["place"]):
            numbers = map(format_number, (row["divergence"], row["weight"]))
            part = format_number(100 * shares[row["place"]] / total if total else None, 1)
            table.append([str(i), shorten_word(row["word"]), format_count(row["place"] + 1), *numbers, part])
    sentence = (
        "Each bar is a word that both sentences have. Its height is its share of the distance: the divergence of the "
        "model's predictions at this word, multiplied by the weight of the word. Words that only the first sentence "
        "has are struck through." + _describe_limit(pairs, "pairs")
    )
    names = ("pair", "word", "place", "divergence", "weight", "% of the distance")
    return Section(sentence, names, table, Markup("").join(strips), text_count=2)


def _describe_limit(rows: Sequence[Row], noun: str) -> str:
    return f" The page shows {EXAMPLES} of {len(rows):,} {noun}." if len(rows) > EXAMPLES else ""


def shorten_word(word: str) -> str:
    """Shorten a word to fit on the page, with what is invisible in it shown."""
    word = escape_invisible(word)
    return word if len(word) <= _LETTERS else word[:_LETTERS] + "…"


_DROPPED = Markup('<del class="r{}"><span>{}</span><sub>\u2060{}</sub></del>')  # no line begins with the number
_LEGEND = Markup('<p class="legend"><span>kept</span>{}<u>kept by people</u></p>').format(
    Markup("").join(_DROPPED.format(n, "round", f"{n}{' and later' * (n == 5)}") for n in range(1, 6))
)


def _draw_sentence(row: Row, blank: str) -> Markup:
    """Draw a sentence with what was dropped struck through, words in a row with the same fate together; no SVG."""
    words, rounds = row["words"][:LONG], row["rounds"]
    fates = zip(words, rounds, row.get("gold") or [False] * len(rounds), strict=False)
    parts = []
    for dropped, same_round in groupby(fates, lambda fate: fate[1]):
        runs = []
        for is_gold, run in groupby(same_round, lambda fate: fate[2]):
            text = blank.join(shorten_word(word) for word, *_ in run)
            runs.append(Markup("<u>{}</u>").format(text) if is_gold else text)
        text = escape(blank).join(runs)
        parts.append(_DROPPED.format(min(dropped, 5), text, dropped) if dropped else text)
    staying_count = sum(n == 0 for n in rounds)
    caption = f"{row['source']} · {name_system(row['system'])} · {staying_count} of {len(rounds)} words kept"
    ellipsis = " …" if len(row["words"]) > LONG else ""
    return Markup('<p class="strip" lang="{}"><small>{}</small>{}{}</p>').format(
        row["lang"], caption, escape(blank).join(parts), ellipsis
    )


def _draw_bars(pair: Row, shares: Mapping[int, float]) -> Markup:
    """Draw the first sentence, on each word that both have a bar of its share by place; the other below; no SVG."""
    outside = {row["place"]: row["word"] for row in pair["rows"] if not 0 <= row["place"] < len(pair["one"])}
    words = sorted({**dict(enumerate(pair["one"][:LONG])), **outside}.items())
    highest = max(shares.values(), default=0) or 1
    bar = Markup('<span><b>{}</b><i style="height: {}rem"></i>{}</span>')
    struck_word = Markup('<span><del class="r2"><span>{}</span></del></span>')
    cells = Markup("")
    for place, word in words:
        if place in shares:
            height = f"{_HIGH * max(shares[place], 0) / highest:.2f}"
            cells += bar.format(format_number(shares[place], 2), height, shorten_word(word))
        else:
            cells += struck_word.format(shorten_word(word))
    strip = Markup('<div class="strip"><small>NDD {}</small><div class="bars">{}</div>{}</div>')
    return strip.format(format_number(pair["value"]), cells, " ".join(map(shorten_word, pair["other"][:LONG])))
