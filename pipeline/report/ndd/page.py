"""One HTML page of NDD: compressors, the measure held against people, and what it knows of trees and predicates.

Parts without rows are left out, and the page says which. Sentences and names are hostile data: everything but our own
figures is escaped. The paper's numbers stand beside ours; they are of other models and data.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import polars.selectors as cs
from markupsafe import Markup

from pipeline.errors import BadInput
from pipeline.metrics.ndd.predicates import TABLE_8
from pipeline.metrics.ndd.pruning import DEPTHS, SUBTREES
from pipeline.papers import ndd as paper
from pipeline.papers.ndd import BASELINES, METRICS, SYSTEMS
from pipeline.report.impscore.study_sections import Section, number
from pipeline.report.ndd import figures
from pipeline.report.ndd.figures import LONG, Row, in_order, named, short
from pipeline.report.templates import templates

EXAMPLES = 12  # sentences, and pairs of sentences, that the page shows
_UNSPACED = ("zh", "ja")

_TEMPLATES = templates()
_BEST = "★ "
_SHOWN = ("f1_macro", *paper.RATIO, *paper.QUALITY[1:], *paper.BLEU)  # no F1 without its CR
_SPREAD = {5: "5 %", 25: "25 %", 50: "median", 75: "75 %", 95: "95 %"}
_KNOWN: Mapping[str, Mapping[str, str]] = {
    "test": paper.TESTS, "measure": paper.MEASURES, "edit": paper.EDITS, "metric": METRICS,
    "system": {"gold": "gold", **SYSTEMS}, "label": {"positive": "positive", "negative": "negative"},
    "other": {"implicitness": "implicitness", "subtext": "subtext", "word_count": "word count"},
}  # fmt: skip


class Ndd(NamedTuple):
    """What the page shows; what is None or without rows is a part that is left out.

    Values are as the metrics give them: shares in [0, 1], which the page shows in percent, and correlations in [-1, 1].
    """

    compressions: pl.DataFrame | None = None  # source, lang, by, metric, value, low, high, n
    significance: pl.DataFrame | None = None  # source, one, other, metric, difference, low, high, p
    positions: pl.DataFrame | None = None  # source, system (or gold), bin (0 to 9), value, n
    ratios: pl.DataFrame | None = None  # threshold, longest, source, metric, value
    tests: pl.DataFrame | None = None  # test, measure, metric, value, low, high, n
    overlap: pl.DataFrame | None = None  # measure, threshold (1: all words are shared; < 0: none), metric, value, low,
    # high, n
    distributions: pl.DataFrame | None = None  # test, measure, label, quantile (0 to 100), value, n
    pruning: pl.DataFrame | None = None  # system, threshold, metric, value, low, high, n
    predicates: pl.DataFrame | None = None  # measure, edit, metric, value, low, high, n
    shift: pl.DataFrame | None = None  # source, other, metric (spearman, partial), value, low, high, n
    shift_values: pl.DataFrame | None = None  # source, quantile, value
    human: pl.DataFrame | None = None  # system, metric (syntax, semantics), mean, low, high, n
    examples: Sequence[Mapping[str, Any]] | None = None  # source, lang, words, rounds, system, gold (or None)
    explained: Sequence[Mapping[str, Any]] | None = None  # one, other, value, rows: word, place, divergence, weight
    signatures: Sequence[str] = ()  # of models and measures that all this comes from


# the columns that tell rows apart, and the others
_COLUMNS: Mapping[str, tuple[Sequence[str], Sequence[str]]] = {
    "compressions": (("source", "lang", "by", "metric"), ("value", "low", "high", "n")),
    "significance": (("source", "one", "other", "metric"), ("difference", "low", "high", "p")),
    "positions": (("source", "system", "bin"), ("value", "n")),
    "ratios": (("source", "threshold", "longest", "metric"), ("value",)),
    "tests": (("test", "measure", "metric"), ("value", "low", "high", "n")),
    "overlap": (("measure", "threshold", "metric"), ("value", "low", "high", "n")),
    "distributions": (("test", "measure", "label", "quantile"), ("value", "n")),
    "pruning": (("system", "threshold", "metric"), ("value", "low", "high", "n")),
    "predicates": (("measure", "edit", "metric"), ("value", "low", "high", "n")),
    "shift": (("source", "other", "metric"), ("value", "low", "high", "n")),
    "shift_values": (("source", "quantile"), ("value",)),
    "human": (("system", "metric"), ("mean", "low", "high", "n")),
}


def page(day: str, told: Ndd) -> str:
    """The page as text.

    Args:
        day: that the page is of.
        told: what it shows.

    Raises:
        BadInput: a frame lacks a column or a value that tells rows apart, or holds a row twice; a sentence has not as
            many rounds or gold marks as words, or a neighbour stands outside of its sentence.
    """
    given: dict[str, Any] = {
        name: frame.with_columns(cs.float().fill_nan(None))
        for name in _COLUMNS
        if (frame := getattr(told, name)) is not None and frame.height
    }
    for name, frame in given.items():
        _check(name, frame)
    given |= {name: rows for name in ("examples", "explained") if (rows := getattr(told, name))}
    counts = {}
    if "compressions" in given:
        by_source = given["compressions"].group_by("source", "lang").agg(pl.col("n").max())
        counts = {"systems": given["compressions"]["by"].n_unique(), "sentences compressed": by_source["n"].sum()}
    if "tests" in given:
        counts["tests of the measure"] = given["tests"]["test"].n_unique()
    return _TEMPLATES.get_template("ndd.html").render(
        day=day,
        counts=[(name, f"{count:,}") for name, count in counts.items()],
        sections=[section for name, (_, make) in _PARTS.items() if name in given for section in make(given[name])],
        missing=[said for name, (said, _) in _PARTS.items() if name not in given],
        warning=_warning(told.signatures),
        signatures=told.signatures,
    )


def _warning(signatures: Sequence[str]) -> str:
    if not any(part.startswith("count:") for signature in signatures for part in signature.split("|")):
        return ""
    return (
        "Mechanics only: counts of two neighbours, no result. A masked language model was not there; numbers by counts "
        "show that everything runs, and say nothing about NDD."
    )


def _check(name: str, frame: pl.DataFrame) -> None:
    keys, others = _COLUMNS[name]
    if lacking := [column for column in (*keys, *others) if column not in frame.columns]:
        raise BadInput(f"{name}: expected a column {lacking[0]}, found {', '.join(frame.columns)}")
    for column in keys:
        if count := frame[column].null_count():
            raise BadInput(f"{name}: expected a value of {column} in each row, found {count} null")
    if (twice := frame.filter(frame.select(keys).is_duplicated())).height:
        row = ", ".join(str(value)[:40] for value in twice.select(keys).row(0))
        raise BadInput(f"{name}: expected a row for each {', '.join(keys)}, found several of {row}")


def _count(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"


def _minus(value: float | None, digits: int = 3) -> str:
    shown = number(value, digits)
    return shown.removeprefix("-") if not shown.strip("-0.") else shown.replace("-", "−")


def _signed(value: float | None) -> str:
    return "–" if value is None else f"{value:+.2f}".replace("-", "−")


def _interval(row: Row, scale: float = 1, digits: int = 3, value: str = "value") -> str:
    """A number, and below it its interval."""
    found = [None if row.get(name) is None else scale * row[name] for name in (value, "low", "high")]
    shown, low, high = (_minus(each, digits) for each in found)
    return shown if None in found[1:] else f"{shown}\n{low} to {high}"


def _p(value: float | None) -> str:
    return "< 0.0001" if value is not None and value < 0.0001 else number(value, 4)


def _measured(row: Row, metric: str) -> str:
    """A measure of a compressor as the paper prints it: percent, CR as a share, ΔC with its sign."""
    if metric == "ratio_delta":
        return _signed(row.get("value"))
    return _interval(row, 1, 2) if metric == "ratio" else _interval(row, 100, 1)


def _paper(row: Row, metric: str) -> str:
    value = row.get(metric)
    return _signed(value) if metric == "ratio_delta" else _minus(value, 2 if metric == "ratio" else 1)


def _by(frame: pl.DataFrame, *keys: str) -> dict[tuple[Any, ...], Row]:
    return {tuple(row[key] for key in keys): row for row in frame.iter_rows(named=True)}


def _names(frame: pl.DataFrame, column: str) -> dict[str, str]:
    """What is in a column, in the order of the page, and what it is called."""
    known = _KNOWN.get(column, {})
    return {key: known.get(key, key) for key in in_order(frame[column], known)}


def _n(rows: Sequence[Row]) -> str:
    return _count(max((row["n"] for row in rows if row.get("n") is not None), default=None))


def _compressions(frame: pl.DataFrame) -> list[Section]:
    parts = frame.sort("source", "lang").partition_by("source", "lang", maintain_order=True)
    return [_compressors(part, *part.select("source", "lang").row(0)) for part in parts]


def _compressors(frame: pl.DataFrame, source: str, lang: str) -> Section:
    known, printed = _by(frame, "by", "metric"), paper.PAPER_COMPRESSORS.get(lang, {})
    names = in_order(frame["by"], SYSTEMS)
    metrics = [name for name in _SHOWN if name in set(frame["metric"])]
    best = [_best(known, names, metric) for metric in metrics]
    rows = []
    for name in (*names, *(name for name in printed if name not in names)):
        if name in names:
            found = [known.get((name, metric), {}) for metric in metrics]
            cells = [_measured(row, metric) for row, metric in zip(found, metrics, strict=True)]
            stars = [_BEST if its == name else "" for its in best]
            rows.append([named(name), "here", *map("".join, zip(stars, cells, strict=True)), _n(found)])
        if name in printed:
            rows.append([named(name), "paper", *(_paper(printed[name], metric) for metric in metrics), "–"])
    beside = {"en": "tables 3 and 12, of Google's sentences", "zh": "table 5, of Colloquial-SC"}.get(lang)
    return Section(
        f"How compressors fare: {source} ({lang})",
        f"{_said(known, names)}F1, ROUGE and BLEU are in percent, CR is the share of words that stay and ΔC how far it "
        "is from that of people. No F1 says anything without its CR: copying the sentence has all of its words. A star "
        "marks the best of the systems that search; none of them has learnt from compressions. "
        + (f"Beside them is the paper's {beside}." if beside else "The paper has no such language."),
        figures.compressions(frame, lang),
        ("system", "where", *(METRICS[name] for name in metrics), "n"),
        rows,
        texts=2,
    )


def _best(known: Mapping[tuple[Any, ...], Row], names: Sequence[str], metric: str) -> str | None:
    """The best system that is no baseline; of CR there is no best one, and of ΔC the one nearest to 0."""
    found = {name: known.get((name, metric), {}).get("value") for name in names if name not in (*BASELINES, "gold")}
    values = {
        name: -abs(value) if metric == "ratio_delta" else value for name, value in found.items() if value is not None
    }
    return max(values, key=values.__getitem__) if values and metric != "ratio" else None


def _said(known: Mapping[tuple[Any, ...], Row], names: Sequence[str]) -> str:
    """Which system that searches is best, and whether it is better than what reads no word, and than copying."""
    if (best := _best(known, names, "f1_macro")) is None:
        return ""
    values = {name: known.get((name, "f1_macro"), {}).get("value") for name in names}
    best_value, ratio, copy = values[best], known.get((best, "ratio"), {}).get("value"), values.get("unedited")
    best_f1 = _minus(100 * (best_value or 0), 1)
    told = f"Of the systems that search {named(best)} is best, with an F1 of {best_f1} % at a CR of {number(ratio, 2)}"
    blind = {name: values[name] or 0 for name in BASELINES if name != "unedited" and values.get(name) is not None}
    if blind:
        first = max(blind, key=blind.__getitem__)
        told += f"; of those that read no word {named(first)} has {_minus(100 * blind[first], 1)} %"
    if copy is None:
        return f"{told}. "
    found = [value for name, value in values.items() if name not in (*BASELINES, "gold") and value is not None]
    above = sum(value > copy for value in found)
    return f"{told}; copying has {_minus(100 * copy, 1)} % at 1.00, and {above} of {len(found)} systems have more. "


def _significance(frame: pl.DataFrame) -> list[Section]:
    frame = frame.sort("source", "metric", "one", "other")
    sure = frame.filter(pl.col("p") < 0.05)
    better = sure.filter(pl.col("difference") > 0).height
    return [Section(
        "Whether compressors differ beyond chance",
        f"{sure.height} of {frame.height} differences have p < 0.05 by a paired bootstrap over sentences: {better} of "
        f"them are above the other system, {sure.height - better} below. No p is corrected "
        "for how many there are. The paper underlines what is above the highest baseline so (table 3).",
        "",
        ("source", "measure", "one", "other", "difference", "p"),
        [[row["source"], METRICS.get(row["metric"], row["metric"]), named(row["one"]), named(row["other"]),
          _interval(row, value="difference"), _p(row["p"])] for row in frame.iter_rows(named=True)],
        texts=4,
    )]  # fmt: skip


def _positions(frame: pl.DataFrame) -> list[Section]:
    if wrong := sorted(set(frame["bin"]) - set(range(10))):
        raise BadInput(f"positions: expected a bin of 0 to 9, found {wrong[0]}")
    rows = [
        [str(source), name, *(_interval(known.get((at,), {}), 100, 0) for at in range(10))]
        for (source,), part in frame.sort("source").group_by("source", maintain_order=True)
        for key, name in _names(part, "system").items()
        if (known := _by(part.filter(pl.col("system") == key), "bin"))
    ]
    return [Section(
        "Where in a sentence words stay",
        "Of the words of each tenth of a sentence, how many stay, in percent. In the paper people keep the beginnings "
        "of Google's sentences, which its weight ν favours (figure 6, appendix C).",
        figures.positions(frame),
        ("source", "system", *(f"{at}–{at + 10}" for at in range(0, 100, 10))),
        rows,
        texts=2,
    )]  # fmt: skip


def _ratios(frame: pl.DataFrame) -> list[Section]:
    known = _by(frame, "source", "longest", "threshold", "metric")
    metrics = [name for name in _SHOWN if name in set(frame["metric"])]
    keys = frame.select("source", -pl.col("longest").cast(pl.Int64), -pl.col("threshold").cast(pl.Float64))
    rows = []
    for source, longest, threshold in (
        keys.unique().sort(keys.columns).select("source", -pl.col("longest", "threshold")).iter_rows()
    ):
        found = [_measured(known.get((source, longest, threshold, metric), {}), metric) for metric in metrics]
        start = [source, f"{threshold:g}", str(longest)]
        rows.append([*start, "here", *found])
        if printed := paper.TABLE_6.get((threshold, longest)):
            rows.append([*start, "paper", *(_paper(printed, metric) for metric in metrics)])
    return [Section(
        "How thresholds set the ratio",
        "N_max is what a span may cost, L_max how many words it may have: the lower the one and the shorter the other, "
        "the more words stay. The paper's row 1.00 / 5 is that of Fast NDD+SC, of which its text says L_max is 9 "
        "(table 6, errata E20).",
        figures.ratios(frame),
        ("source", "N_max", "L_max", "where", *(METRICS[name] for name in metrics)),
        rows,
        texts=4,
    )]  # fmt: skip


class _Beside(NamedTuple):
    """What the paper prints: a column of text, and ticks of the figure by metric, row and mark."""

    column: str
    text: Callable[[str, str], str]
    printed: Mapping[tuple[str, str, str], float]


def _dotted(
    title: str, sentence: str, frame: pl.DataFrame, row: str, mark: str, beside: _Beside | None = None, *,
    scale: float = 1, digits: int = 3, chance: Mapping[str, float] | None = None, is_shared: bool = False,
) -> Section:  # fmt: skip
    """A part of numbers with intervals, by the columns row and mark, a panel and a column each metric."""
    known = _by(frame, "metric", row, mark)
    panels, rows, marks = (_names(frame, column) for column in ("metric", row, mark))
    cells = []
    for key, name in rows.items():
        for own, called in marks.items():
            found = [known.get((kind, key, own), {}) for kind in panels]
            if any(found):
                shown = [_interval(each, scale, digits) for each in found]
                printed = [beside.text(key, own)] if beside else []
                cells.append([name, called, *shown, *printed, _n(found)])
    figure = figures.dots(known, panels, rows, marks, printed=beside.printed if beside else {}, scale=scale,
                          chance=chance, is_shared=is_shared)  # fmt: skip
    columns = (row, mark, *panels.values(), *([beside.column] if beside else []), "n")
    return Section(title, sentence, figure, columns, cells, texts=2)


def _tests(frame: pl.DataFrame) -> list[Section]:
    printed = {("pearson", *key): value for key, value in paper.TABLE_1.items()}
    beside = _Beside("paper, r", lambda *key: number(paper.TABLE_1.get(key)), printed)
    return [_dotted(
        "Whether the measure sees what changed",
        "Words are replaced by such as share a property (positive) or do not (negative); in the supervised test people "
        "graded the pairs. Above 0 a measure agrees with labels or people, whether it is a distance or a similarity; "
        "the paired accuracy is how often it puts the negative edit of a sentence farther away, by chance 0.5. The "
        "paper has Pearson's r and calls NDD best in all tests; its ensemble has a ratio without scale or sign (table "
        "1).",
        frame, "test", "measure", beside, chance={"pearson": 0, "spearman": 0, "paired_accuracy": 0.5},
    )]  # fmt: skip


def _overlap(frame: pl.DataFrame) -> list[Section]:
    sections, measures = [], _names(frame, "measure")
    for metric, name in _names(frame, "metric").items():
        part = frame.filter(pl.col("metric") == metric)
        known, rows = _by(part, "threshold", "measure"), []
        for at in sorted(set(part["threshold"])):
            found = [known.get((at, measure), {}) for measure in measures]
            shown = "none" if at < 0 else "all" if at >= 1 else f"> {at:g}"
            rows.append([shown, *map(_interval, found), _n(found)])
        sections.append(Section(
            f"How overlap changes it: {name}",
            "Correlation with what people say of pairs of which the shorter sentence shares more than so many of its "
            "words. In the paper the cosine falls below 0 above 0.8, and NDD rises (figure 3).",
            figures.overlap(part, name), ("words shared", *measures.values(), "n"), rows,
        ))  # fmt: skip
    return sections


def _spread(known: Mapping[tuple[Any, ...], Row], *key: str) -> dict[int, float]:
    found = {at: known.get((*key, at), {}).get("value") for at in _SPREAD}
    return {at: np.nan if value is None else value for at, value in found.items()}


def _distributions(frame: pl.DataFrame) -> list[Section]:
    sections = []
    for measure, name in _names(frame, "measure").items():
        part = frame.filter(pl.col("measure") == measure)
        known, counts = _by(part, "test", "label", "quantile"), _by(part, "test", "label")
        there = [
            (test, label) for test in _names(part, "test") for label in _names(part, "label") if (test, label) in counts
        ]
        groups: dict[str, dict[str, Mapping[int, float]]] = {}
        rows = []
        for test, label in there:
            name_of = paper.TESTS.get(test, test)
            at = groups.setdefault(name_of, {})[label] = _spread(known, test, label)
            rows.append([name_of, label, *map(_minus, at.values()), _count(counts[test, label]["n"])])
        sections.append(Section(
            f"How far edits are apart: {name}",
            "Positive edits share a property with what they replace, negative ones do not; the less strips overlap, "
            "the better the measure tells them apart. The paper draws bounded and unbounded NDD (figures 7 and 8).",
            figures.strips(groups, name), ("test", "edits", *_SPREAD.values(), "pairs"), rows, texts=2,
        ))  # fmt: skip
    return sections


def _pruning(frame: pl.DataFrame) -> list[Section]:
    metrics, known = (*DEPTHS, *SUBTREES), _by(frame, "system", "threshold", "metric")
    rows = []
    for key, name in _names(frame, "system").items():
        for size in sorted(set(frame.filter(pl.col("system") == key)["threshold"])):
            found = [known.get((key, size, metric), {}) for metric in metrics]
            rows.append([name, f"{size:g}", "here", *(_interval(row, 100, 0) for row in found)])
            if printed := paper.TABLE_7.get((key, size)):
                rows.append([name, f"{size:g}", "paper", *map(str, printed)])
    return [Section(
        "Whether what is dropped hangs low in the tree",
        "Of the dropped words, how many stand at each depth (1 is the root), and of the dropped spans of so many "
        "words, how many are whole subtrees; in percent. Who knows syntax drops whole subtrees and few words near the "
        "root. The paper's are of PTB-3, whose trees are others than those of Universal Dependencies (table 7).",
        figures.pruning(frame),
        ("system", "N_max", "where", *(("subtrees of " if m == SUBTREES[0] else "") + METRICS[m] for m in metrics)),
        rows,
        texts=3,
    )]  # fmt: skip


def _predicates(frame: pl.DataFrame) -> list[Section]:
    def text(edit: str, measure: str) -> str:
        rows = TABLE_8.get(({"perplexity": "ppl"}.get(measure, measure), edit), ())
        return " · ".join(f"{precision} / {area}" for precision, area in rows) or "–"

    printed = {
        (kind, edit, measure): row[kind.split("_")[0]]
        for (measure, edit), row in paper.PAPER_PREDICATES.items()
        for kind in ("map", "auc", "auc_pooled", "auc_mean")
    }
    return [_dotted(
        "Whether words that matter are predicates",
        "Each word is edited in turn and counts as much as the sentence thereby moves; in percent. The paper's mAP / "
        "AUC are of English in domain, English out of domain, and Spanish, and its ticks in the figure of the first "
        "(table 8); it does not say over what its AUC is taken. Its English model has no published head (errata E19).",
        frame, "edit", "measure", _Beside("paper, mAP / AUC", text, printed), scale=100, digits=1,
    )]  # fmt: skip


def _shift(frame: pl.DataFrame) -> list[Section]:
    return [_dotted(
        "What goes with the shift by context",
        "How much a context changes what a comment's words lead to expect, held against other measures of the same "
        "comments: Spearman's ρ, and the same at equal length of the comment, as short comments stand nearer to their "
        "context. A large shift does not say that anything else is meant. The paper has no such measure.",
        frame, "other", "source", chance={"spearman": 0, "partial": 0}, is_shared=True,
    )]  # fmt: skip


def _shift_values(frame: pl.DataFrame) -> list[Section]:
    known = _by(frame, "source", "quantile")
    values = {source: _spread(known, source) for source in sorted(set(frame["source"]))}
    return [Section(
        "How far contexts shift comments",
        "The shift of the comments of each source; 0 is no change, and by Hellinger's distance nothing is above 1.",
        figures.strips({source: {"": at} for source, at in values.items()}, "shift by context"),
        ("source", *_SPREAD.values()),
        [[source, *map(_minus, at.values())] for source, at in values.items()],
    )]  # fmt: skip


def _human(frame: pl.DataFrame) -> list[Section]:
    frame = frame.with_columns(value="mean", grade=pl.lit("mean"))
    printed = {(kind, name, "mean"): value for name, row in paper.PAPER_HUMAN.items() for kind, value in row.items()}

    def text(system: str, _: str) -> str:
        return " / ".join(f"{value:.2f}" for value in paper.PAPER_HUMAN.get(system, {}).values()) or "–"

    return [_dotted(
        "How whole compressions are to people",
        "Grades from 0 to 5 of syntax and of semantics, by people who do not know which system left which words. The "
        "paper graded 100 of Google's sentences and tells of no agreement (table 13).",
        frame, "system", "grade", _Beside("paper, syntax / semantics", text, printed), digits=2, is_shared=True,
    )]  # fmt: skip


def _examples(rows: Sequence[Row]) -> list[Section]:
    drawn, table = [figures.LEGEND], []
    for i, row in enumerate(rows, 1):
        words, rounds = _given(row, f"examples, row {i}", "words", "rounds", "source", "lang", "system")[:2]
        for name, marks in (("rounds", rounds), ("gold", words if row.get("gold") is None else row["gold"])):
            if len(marks) != len(words):
                raise BadInput(f"examples, row {i}, {name}: expected {len(words)}, one a word, found {len(marks)}")
        if i > EXAMPLES:
            continue
        blank = "" if row["lang"] in _UNSPACED else " "
        drawn.append(figures.sentence(row, blank))
        stay, *taken = [
            blank.join(short(word) for word, at in zip(words[:LONG], rounds, strict=False) if at == n)
            for n in (0, *sorted({*rounds[:LONG]} - {0}))
        ]
        told = " · ".join(f"{n}: {said}" for n, said in zip(sorted({*rounds[:LONG]} - {0}), taken, strict=True))
        count = sum(dropped == 0 for dropped in rounds)
        table.append([row["source"], named(row["system"]), stay, told or "–", f"{count:,} of {len(words):,}"])
    return [Section(
        "What each round took",
        "What a system dropped is struck through, shaded more with each round, whose number stands behind; what people "
        f"keep is underlined where that is known. The table has the same as text.{_few(rows, 'sentences')}",
        Markup("").join(drawn),
        ("source", "system", "what stays", "what each round took", "words"),
        table,
        texts=4,
    )]  # fmt: skip


def _explained(pairs: Sequence[Row]) -> list[Section]:
    drawn, table = [], []
    for i, pair in enumerate(pairs[:EXAMPLES], 1):
        one, _, _, rows = _given(pair, f"explained, row {i}", "one", "other", "value", "rows")
        shares = {row["place"]: row["divergence"] * row["weight"] for row in rows}
        if wrong := [at for at in shares if not -1 <= at <= len(one)]:
            raise BadInput(f"explained, row {i}, place: expected one of {len(one)} words, found {wrong[0]}")
        drawn.append(figures.bars(pair, shares))
        total = sum(shares.values())
        for row in sorted(rows, key=lambda row: row["place"]):
            numbers = map(_minus, (row["divergence"], row["weight"]))
            part = number(100 * shares[row["place"]] / total if total else None, 1)
            table.append([str(i), short(row["word"]), _count(row["place"] + 1), *numbers, part])
    return [Section(
        "Which words tell that two sentences differ",
        "Bars are the shares of the distance: at each word that both sentences have, how much less alike are what a "
        "model expects there, times its weight. Words of the first sentence alone are struck through."
        + _few(pairs, "pairs"),
        Markup("").join(drawn),
        ("pair", "word", "place", "divergence", "weight", "% of the distance"),
        table,
        texts=2,
    )]  # fmt: skip


def _given(row: Row, where: str, *names: str) -> list[Any]:
    if lacking := [name for name in names if name not in row]:
        raise BadInput(f"{where}: expected {lacking[0]}, found {', '.join(map(str, row))}")
    return [row[name] for name in names]


def _few(rows: Sequence[Row], what: str) -> str:
    return f" {EXAMPLES} of {len(rows):,} {what} are shown." if len(rows) > EXAMPLES else ""


_PARTS: dict[str, tuple[str, Callable[[Any], list[Section]]]] = {
    "compressions": ("how compressors fare", _compressions),
    "significance": ("whether compressors differ beyond chance", _significance),
    "examples": ("what each round took", _examples),
    "ratios": ("how thresholds set the ratio", _ratios),
    "positions": ("where in a sentence words stay", _positions),
    "human": ("how whole compressions are to people", _human),
    "tests": ("whether the measure sees what changed", _tests),
    "overlap": ("how overlap changes it", _overlap),
    "distributions": ("how far edits are apart", _distributions),
    "explained": ("which words tell that two sentences differ", _explained),
    "pruning": ("whether what is dropped hangs low in the tree", _pruning),
    "predicates": ("whether words that matter are predicates", _predicates),
    "shift": ("what goes with the shift by context", _shift),
    "shift_values": ("how far contexts shift comments", _shift_values),
}
"""By what is given: what the page says is missing without it, and the parts it makes; in the order of the page."""
