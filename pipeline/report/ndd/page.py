"""One HTML page of NDD: compressors, the measure held against people, and what it knows of trees and predicates.

Parts without rows are left out, and the page says which. Sentences and names are hostile data: everything but our own
figures is escaped. The paper's numbers stand beside ours; they are of other models and data.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from pipeline.errors import BadInput
from pipeline.metrics.ndd.pruning import DEPTHS, SUBTREES
from pipeline.papers import ndd as paper
from pipeline.papers.ndd import BASELINES, METRICS, SYSTEMS
from pipeline.report import sections
from pipeline.report.ndd import figures, sentences
from pipeline.report.ndd import measure_sections as measures
from pipeline.report.ndd.figures import named
from pipeline.report.ndd.measure_sections import largest_n, names_of
from pipeline.report.sections import (
    BEST,
    Part,
    Section,
    in_order,
    interval,
    minus,
    number,
    p_value,
    rows_by,
    signed,
)

Row = Mapping[str, Any]
_SHOWN = ("f1_macro", *paper.RATIO, *paper.QUALITY[1:], *paper.BLEU)  # no F1 without its CR


class Ndd(NamedTuple):
    """What the page shows; what is None or without rows is a part that is left out.

    Values are as the metrics give them: shares in [0, 1], which the page shows in percent, and correlations in [-1, 1].
    `PARTS` has the columns; `sentences` those of `examples` and `explained`.
    """

    compressions: pl.DataFrame | None = None
    significance: pl.DataFrame | None = None
    positions: pl.DataFrame | None = None
    ratios: pl.DataFrame | None = None
    tests: pl.DataFrame | None = None
    overlap: pl.DataFrame | None = None
    distributions: pl.DataFrame | None = None
    pruning: pl.DataFrame | None = None
    predicates: pl.DataFrame | None = None
    shift: pl.DataFrame | None = None
    shift_values: pl.DataFrame | None = None
    human: pl.DataFrame | None = None
    examples: Sequence[Mapping[str, Any]] | None = None
    explained: Sequence[Mapping[str, Any]] | None = None
    signatures: Sequence[str] = ()  # of models and measures that all this comes from


def page(day: str, told: Ndd) -> str:
    """The page as text.

    Args:
        day: that the page is of.
        told: what it shows.

    Raises:
        BadInput: a frame lacks a column or a value that tells rows apart, or holds a row twice; a sentence has not as
            many rounds or gold marks as words, or a neighbour stands outside of its sentence.
    """
    rows = sections.fill(PARTS, told._asdict())
    counts = {}
    if "compressions" in rows:
        by_source = rows["compressions"].group_by("source", "lang").agg(pl.col("n").max())
        counts = {"systems": rows["compressions"]["by"].n_unique(), "sentences compressed": by_source["n"].sum()}
    if "tests" in rows:
        counts["tests of the measure"] = rows["tests"]["test"].n_unique()
    return sections.render(
        f"NDD, {day}",
        "Neighbouring distribution divergence",
        f"How far two sentences that share words are apart, and what a sentence can lose (NDD), {day}.",
        **sections.build(PARTS, rows),
        counts=counts,
        warning=_warning(told.signatures),
        note=_NOTE,
        signatures=told.signatures,
        template="ndd.html",
    )


_NOTE = (
    "The paper's numbers are of its own models and data (BERT, RoBERTa and SpanBERT; Google's sentences, "
    "Colloquial-SC, STS-B, PTB-3, CoNLL-2009): beside ours they say what was hoped for, not what was missed."
)


def _warning(signatures: Sequence[str]) -> str:
    if not any(part.startswith("count:") for signature in signatures for part in signature.split("|")):
        return ""
    return (
        "Mechanics only: counts of two neighbours, no result. A masked language model was not there; numbers by counts "
        "show that everything runs, and say nothing about NDD."
    )


def _measured(row: Row, metric: str) -> str:
    """A measure of a compressor as the paper prints it: percent, CR as a share, ΔC with its sign."""
    if metric == "ratio_delta":
        return signed(row.get("value"), 2)
    return interval(row, digits=2) if metric == "ratio" else interval(row, scale=100, digits=1)


def _paper(row: Row, metric: str) -> str:
    value = row.get(metric)
    return signed(value, 2) if metric == "ratio_delta" else minus(value, 2 if metric == "ratio" else 1)


def _compressions(frame: pl.DataFrame) -> list[Section]:
    parts = frame.sort("source", "lang").partition_by("source", "lang", maintain_order=True)
    return [_compressors(part, *part.select("source", "lang").row(0)) for part in parts]


def _compressors(frame: pl.DataFrame, source: str, lang: str) -> Section:
    known, printed = rows_by(frame, "by", "metric"), paper.PAPER_COMPRESSORS.get(lang, {})
    names = in_order(frame["by"], SYSTEMS)
    metrics = [name for name in _SHOWN if name in set(frame["metric"])]
    best = [_best(known, names, metric) for metric in metrics]
    rows = []
    for name in (*names, *(name for name in printed if name not in names)):
        if name in names:
            found = [known.get((name, metric), {}) for metric in metrics]
            cells = [_measured(row, metric) for row, metric in zip(found, metrics, strict=True)]
            stars = [BEST if its == name else "" for its in best]
            rows.append([named(name), "here", *map("".join, zip(stars, cells, strict=True)), largest_n(found)])
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
    best_f1 = minus(100 * (best_value or 0), 1)
    told = f"Of the systems that search {named(best)} is best, with an F1 of {best_f1} % at a CR of {number(ratio, 2)}"
    blind = {name: values[name] or 0 for name in BASELINES if name != "unedited" and values.get(name) is not None}
    if blind:
        first = max(blind, key=blind.__getitem__)
        told += f"; of those that read no word {named(first)} has {minus(100 * blind[first], 1)} %"
    if copy is None:
        return f"{told}. "
    found = [value for name, value in values.items() if name not in (*BASELINES, "gold") and value is not None]
    above = sum(value > copy for value in found)
    return f"{told}; copying has {minus(100 * copy, 1)} % at 1.00, and {above} of {len(found)} systems have more. "


def _significance(frame: pl.DataFrame) -> Section:
    frame = frame.sort("source", "metric", "one", "other")
    sure = frame.filter(pl.col("p") < 0.05)
    better = sure.filter(pl.col("difference") > 0).height
    return Section(
        "Whether compressors differ beyond chance",
        f"{sure.height} of {frame.height} differences have p < 0.05 by a paired bootstrap over sentences: {better} of "
        f"them are above the other system, {sure.height - better} below. No p is corrected "
        "for how many there are. The paper underlines what is above the highest baseline so (table 3).",
        "",
        ("source", "measure", "one", "other", "difference", "p"),
        [
            [
                row["source"],
                METRICS.get(row["metric"], row["metric"]),
                named(row["one"]),
                named(row["other"]),
                interval(row, "difference"),
                p_value(row["p"]),
            ]
            for row in frame.iter_rows(named=True)
        ],
        texts=4,
    )


def _positions(frame: pl.DataFrame) -> Section:
    if wrong := sorted(set(frame["bin"]) - set(range(10))):
        raise BadInput(f"positions: expected a bin of 0 to 9, found {wrong[0]}")
    rows = [
        [str(source), name, *(interval(known.get((at,), {}), scale=100, digits=0) for at in range(10))]
        for (source,), part in frame.sort("source").group_by("source", maintain_order=True)
        for key, name in names_of(part, "system").items()
        if (known := rows_by(part.filter(pl.col("system") == key), "bin"))
    ]
    return Section(
        "Where in a sentence words stay",
        "Of the words of each tenth of a sentence, how many stay, in percent. In the paper people keep the beginnings "
        "of Google's sentences, which its weight ν favours (figure 6, appendix C).",
        figures.positions(frame),
        ("source", "system", *(f"{at}–{at + 10}" for at in range(0, 100, 10))),
        rows,
        texts=2,
    )


def _ratios(frame: pl.DataFrame) -> Section:
    known = rows_by(frame, "source", "longest", "threshold", "metric")
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
    return Section(
        "How thresholds set the ratio",
        "N_max is what a span may cost, L_max how many words it may have: the lower the one and the shorter the other, "
        "the more words stay. The paper's row 1.00 / 5 is that of Fast NDD+SC, of which its text says L_max is 9 "
        "(table 6, errata E20).",
        figures.ratios(frame),
        ("source", "N_max", "L_max", "where", *(METRICS[name] for name in metrics)),
        rows,
        texts=4,
    )


def _pruning(frame: pl.DataFrame) -> Section:
    metrics, known = (*DEPTHS, *SUBTREES), rows_by(frame, "system", "threshold", "metric")
    rows = []
    for key, name in names_of(frame, "system").items():
        for size in sorted(set(frame.filter(pl.col("system") == key)["threshold"])):
            found = [known.get((key, size, metric), {}) for metric in metrics]
            rows.append([name, f"{size:g}", "here", *(interval(row, scale=100, digits=0) for row in found)])
            if printed := paper.TABLE_7.get((key, size)):
                rows.append([name, f"{size:g}", "paper", *map(str, printed)])
    return Section(
        "Whether what is dropped hangs low in the tree",
        "Of the dropped words, how many stand at each depth (1 is the root), and of the dropped spans of so many "
        "words, how many are whole subtrees; in percent. Who knows syntax drops whole subtrees and few words near the "
        "root. The paper's are of PTB-3, whose trees are others than those of Universal Dependencies (table 7).",
        figures.pruning(frame),
        ("system", "N_max", "where", *(("subtrees of " if m == SUBTREES[0] else "") + METRICS[m] for m in metrics)),
        rows,
        texts=3,
    )


PARTS = {
    "compressions": Part("how compressors fare", _compressions, "source lang by metric", "value? low? high? n?"),
    "significance": Part(
        "whether compressors differ beyond chance", _significance, "source one other metric",
        "difference? low? high? p?",
    ),
    "examples": Part("what each round took", sentences.show_rounds),
    "ratios": Part("how thresholds set the ratio", _ratios, "source threshold longest metric", "value?"),
    "positions": Part("where in a sentence words stay", _positions, "source system bin", "value? n?"),
    "human": Part("how whole compressions are to people", measures.human, "system metric", "mean? low? high? n?"),
    "tests": Part(
        "whether the measure sees what changed", measures.tests, "test measure metric", "value? low? high? n?"
    ),
    "overlap": Part("how overlap changes it", measures.overlap, "measure threshold metric", "value? low? high? n?"),
    "distributions": Part(
        "how far edits are apart", measures.distributions, "test measure label quantile", "value? n?"
    ),
    "explained": Part("which words tell that two sentences differ", sentences.explain_pairs),
    "pruning": Part(
        "whether what is dropped hangs low in the tree", _pruning, "system threshold metric", "value? low? high? n?"
    ),
    "predicates": Part(
        "whether words that matter are predicates", measures.predicates, "measure edit metric", "value? low? high? n?"
    ),
    "shift": Part("what goes with the shift by context", measures.shift, "source other metric", "value? low? high? n?"),
    "shift_values": Part("how far contexts shift comments", measures.shift_values, "source quantile", "value?"),
}  # fmt: skip
"""In the order of the page. Systems of `positions` may be `gold`, its bins are 0 to 9; quantiles are 0 to 100; a
threshold of `overlap` is 1 where all words are shared and below 0 where none is."""
