"""Sentences on the page of NDD, as HTML: what each round of a compressor took, and which words tell a pair apart.

Words are hostile data: all are escaped.
"""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from markupsafe import Markup, escape

from pipeline.errors import BadInput
from pipeline.io.visible import escape_invisible
from pipeline.report.ndd.figures import named
from pipeline.report.sections import Section, count, minus, number

Row = Mapping[str, Any]
EXAMPLES = 12  # sentences, and pairs of sentences, that the page shows
LONG = 80  # words of a sentence that are shown
_LETTERS = 40  # of a word
_HIGH = 3.0  # rem, of the highest bar
_UNSPACED = ("zh", "ja")


def show_rounds(rows: Sequence[Row]) -> Section:
    """Sentences and what each round took of them: source, lang, words, rounds, system, gold (or None)."""
    drawn, table = [_LEGEND], []
    for i, row in enumerate(rows, 1):
        words, rounds = _given(row, f"examples, row {i}", "words", "rounds", "source", "lang", "system")[:2]
        for name, marks in (("rounds", rounds), ("gold", words if row.get("gold") is None else row["gold"])):
            if len(marks) != len(words):
                raise BadInput(f"examples, row {i}, {name}: expected {len(words)}, one a word, found {len(marks)}")
        if i > EXAMPLES:
            continue
        blank = "" if row["lang"] in _UNSPACED else " "
        drawn.append(_draw_sentence(row, blank))
        stay, *taken = [
            blank.join(short(word) for word, at in zip(words[:LONG], rounds, strict=False) if at == n)
            for n in (0, *sorted({*rounds[:LONG]} - {0}))
        ]
        told = " · ".join(f"{n}: {said}" for n, said in zip(sorted({*rounds[:LONG]} - {0}), taken, strict=True))
        stays = sum(dropped == 0 for dropped in rounds)
        table.append([row["source"], named(row["system"]), stay, told or "–", f"{stays:,} of {len(words):,}"])
    return Section(
        "What each round took",
        "What a system dropped is struck through, shaded more with each round, whose number stands behind; what people "
        f"keep is underlined where that is known. The table has the same as text.{_few(rows, 'sentences')}",
        Markup("").join(drawn),
        ("source", "system", "what stays", "what each round took", "words"),
        table,
        texts=4,
    )


def explain_pairs(pairs: Sequence[Row]) -> Section:
    """Pairs and the words that tell them apart: one, other, value, rows of word, place, divergence, weight."""
    drawn, table = [], []
    for i, pair in enumerate(pairs[:EXAMPLES], 1):
        one, _, _, rows = _given(pair, f"explained, row {i}", "one", "other", "value", "rows")
        shares = {row["place"]: row["divergence"] * row["weight"] for row in rows}
        if wrong := [at for at in shares if not -1 <= at <= len(one)]:
            raise BadInput(f"explained, row {i}, place: expected one of {len(one)} words, found {wrong[0]}")
        drawn.append(_draw_bars(pair, shares))
        total = sum(shares.values())
        for row in sorted(rows, key=lambda row: row["place"]):
            numbers = map(minus, (row["divergence"], row["weight"]))
            part = number(100 * shares[row["place"]] / total if total else None, 1)
            table.append([str(i), short(row["word"]), count(row["place"] + 1), *numbers, part])
    return Section(
        "Which words tell that two sentences differ",
        "Bars are the shares of the distance: at each word that both sentences have, how much less alike are what a "
        "model expects there, times its weight. Words of the first sentence alone are struck through."
        + _few(pairs, "pairs"),
        Markup("").join(drawn),
        ("pair", "word", "place", "divergence", "weight", "% of the distance"),
        table,
        texts=2,
    )


def _given(row: Row, where: str, *names: str) -> list[Any]:
    if lacking := [name for name in names if name not in row]:
        raise BadInput(f"{where}: expected {lacking[0]}, found {', '.join(map(str, row))}")
    return [row[name] for name in names]


def _few(rows: Sequence[Row], what: str) -> str:
    return f" {EXAMPLES} of {len(rows):,} {what} are shown." if len(rows) > EXAMPLES else ""


def short(word: str) -> str:
    """A word that fits on the page, with what is unseen in it shown."""
    word = escape_invisible(word)
    return word if len(word) <= _LETTERS else word[:_LETTERS] + "…"


_DROPPED = Markup('<del class="r{}"><span>{}</span><sub>\u2060{}</sub></del>')  # no line begins with the number
_LEGEND = Markup('<p class="legend"><span>stays</span>{}<u>kept by people</u></p>').format(
    Markup("").join(_DROPPED.format(n, "round", f"{n}{' and on' * (n == 5)}") for n in range(1, 6))
)


def _draw_sentence(row: Row, blank: str) -> Markup:
    """A sentence with what was dropped struck through, words in a row with the same fate together; no SVG.

    Args:
        row: source, lang, words, rounds (0: stays), system, and gold (whether people keep a word) or None.
        blank: between words.
    """
    words, rounds = row["words"][:LONG], row["rounds"]
    fates = zip(words, rounds, row.get("gold") or [False] * len(rounds), strict=False)
    parts = []
    for dropped, some in groupby(fates, lambda fate: fate[1]):
        runs = [
            (kept, blank.join(short(word) for word, *_ in run)) for kept, run in groupby(some, lambda fate: fate[2])
        ]
        text = escape(blank).join(Markup("<u>{}</u>").format(run) if kept else run for kept, run in runs)
        parts.append(_DROPPED.format(min(dropped, 5), text, dropped) if dropped else text)
    told = f"{row['source']} · {named(row['system'])} · {sum(at == 0 for at in rounds)} of {len(rounds)} words stay"
    more = " …" if len(row["words"]) > LONG else ""
    return Markup('<p class="strip" lang="{}"><small>{}</small>{}{}</p>').format(
        row["lang"], told, escape(blank).join(parts), more
    )


def _draw_bars(pair: Row, shares: Mapping[int, float]) -> Markup:
    """The first sentence, on each word that both have a bar of its share; the other one below; no SVG.

    Args:
        pair: one, other, value, rows (word, place).
        shares: of the distance, by place.
    """
    outside = {row["place"]: row["word"] for row in pair["rows"] if not 0 <= row["place"] < len(pair["one"])}
    words = dict(sorted({**dict(enumerate(pair["one"][:LONG])), **outside}.items()))
    highest = max(shares.values(), default=0) or 1
    drawn = Markup('<span><b>{}</b><i style="height: {}rem"></i>{}</span>')
    cells = [
        drawn.format(f"{shares[at]:.2f}", f"{_HIGH * max(shares[at], 0) / highest:.2f}", short(word))
        if at in shares
        else Markup('<span><del class="r2"><span>{}</span></del></span>').format(short(word))
        for at, word in words.items()
    ]
    return Markup('<div class="strip"><small>NDD {}</small><div class="bars">{}</div>{}</div>').format(
        "–" if pair["value"] is None else f"{pair['value']:.3f}", Markup("").join(cells),
        " ".join(map(short, pair["other"][:LONG])),
    )  # fmt: skip
