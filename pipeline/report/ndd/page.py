"""One HTML page of NDD: compressors, the measure held against people, and what it knows of trees and predicates."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from pipeline.metrics.ndd.pruning import DEPTHS, SUBTREES
from pipeline.papers import ndd as paper
from pipeline.papers.ndd import BASELINES, METRICS, SYSTEMS
from pipeline.report import sections
from pipeline.report.ndd import figures
from pipeline.report.ndd.figures import name_system
from pipeline.report.ndd.measure_sections import (
    Row,
    build_distributions,
    build_human,
    build_overlap,
    build_predicates,
    build_shift,
    build_shift_values,
    build_tests,
    format_largest_n,
    list_names,
)
from pipeline.report.sections import Columns, Part, Section

COMMON = ", sentences of all systems"  # behind the name of a data set
_UNSPACED = ("zh", "ja")  # languages that are written without blanks
_METRICS = ("f1_macro", *paper.RATIO, *paper.QUALITY[1:], *paper.BLEU)  # no F1 without its CR


def render(day: str, signatures: Sequence[str] = (), **parts: Any) -> str:
    """Render the page of the rows that `PARTS` names, in percent; shares are in [0, 1], correlations in [-1, 1]."""
    rows, counts = sections.select_filled(PARTS, parts), {}
    if "compressions" in rows:
        is_whole = ~pl.col("source").str.ends_with(COMMON)
        by_source = rows["compressions"].filter(is_whole).group_by("source", "lang").agg(pl.col("n").max())
        counts = {"systems": rows["compressions"]["by"].n_unique(), "sentences compressed": by_source["n"].sum()}
    if "tests" in rows:
        counts["tests of the measure"] = rows["tests"]["test"].n_unique()
    return sections.render(
        f"NDD, {day}",
        "Neighbouring distribution divergence",
        f"A distance between sentences that share words, and sentence compression with this distance (NDD), {day}.",
        **sections.build_sections(PARTS, rows),
        counts=counts,
        warning=_format_warning(signatures),
        note=_NOTE,
        signatures=signatures,
    )


_NOTE = (
    "The paper's numbers come from its own models (BERT, RoBERTa and SpanBERT) and data (Google's sentences, "
    "Colloquial-SC, STS-B, PTB-3, CoNLL-2009). Here they are targets; they do not measure an error of this pipeline."
)


def _format_warning(signatures: Sequence[str]) -> str:
    if not any(part.startswith("count:") for signature in signatures for part in signature.split("|")):
        return ""
    return (
        "Demonstration only, no result: counts of two neighbours replace the masked language model, which was not "
        "available. These numbers show that the pipeline runs. They are no evidence about NDD."
    )


def _format_measure(row: Row, metric: str) -> str:
    """Format a measure of a compressor as the paper prints it: percent, CR as a share, ΔC with its sign."""
    if metric == "ratio_delta":
        return sections.format_signed(row.get("value"), 2)
    scale, digits = (1, 2) if metric == "ratio" else (100, 1)
    return sections.format_interval(row, scale=scale, digits=digits)


def _format_printed(row: Row, metric: str) -> str:
    form = sections.format_signed if metric == "ratio_delta" else sections.format_number
    return form(row.get(metric), 2 if metric in paper.RATIO else 1)


def _build_compressions(frame: pl.DataFrame) -> list[Section]:
    parts = frame.sort("source", "lang").group_by("source", "lang", maintain_order=True)
    return [_build_compressors(part, str(source), str(lang)) for (source, lang), part in parts]


def _build_compressors(frame: pl.DataFrame, source: str, lang: str) -> Section:
    rows_by_key, (tables, printed) = sections.index_rows(frame, "by", "metric"), paper.find_compressors(source)
    names = sections.order_names(frame["by"], SYSTEMS)
    metrics = [name for name in _METRICS if name in set(frame["metric"])]
    best = [_find_best(rows_by_key, names, metric) for metric in metrics]
    rows = []
    for name in (*names, *(name for name in printed if name not in names)):
        if name in names:
            metric_rows = [rows_by_key.get((name, metric), {}) for metric in metrics]
            stars = [sections.BEST if best_name == name else "" for best_name in best]
            cells = [*map("".join, zip(stars, map(_format_measure, metric_rows, metrics), strict=True))]
            rows.append([name_system(name), "here", *cells, format_largest_n(metric_rows)])
        if name in printed:
            cells = [_format_printed(printed[name], metric) for metric in metrics]
            rows.append([name_system(name), "paper", *cells, "–"])
    note = "No numbers of the paper: they are shown for sources named google, broadcast, bnc or colloquial."
    sentence = (
        f"{_describe_best(rows_by_key, names)}F1, ROUGE and BLEU are in percent. CR is the share of kept words of "
        "all sentences together, and ΔC is its difference from the CR of people; the paper's ΔC goes by the mean CR of "
        "sentences (0.44 for Google's people). Compare F1 only with its CR: a copy of the sentence keeps all words. "
        "A star marks the best search system; no search system learned from compressions. "
        + (f"The paper's numbers are from {tables}." if tables else note)
    )
    columns, title = ("system", "where", *(METRICS[name] for name in metrics), "n"), "Compression quality"
    figure = figures.draw_compressions(frame, printed)
    return Section(sentence, columns, rows, figure, text_count=2, title=f"{title}: {source} ({lang})")


def _find_best(rows_by_key: Mapping[tuple[Any, ...], Row], names: Sequence[str], metric: str) -> str | None:
    """Find the best system that is no baseline; of CR there is no best one, and of ΔC the one nearest to 0."""
    values = _get_values(rows_by_key, names, metric)
    worths = {name: -abs(value) if metric == "ratio_delta" else value for name, value in values.items()}
    searching = [name for name in worths if name not in (*BASELINES, "gold")]
    return max(searching, key=worths.__getitem__) if searching and metric != "ratio" else None


def _get_values(rows_by_key: Mapping[tuple[Any, ...], Row], names: Sequence[str], metric: str) -> dict[str, float]:
    values = {name: rows_by_key.get((name, metric), {}).get("value") for name in names}
    return {name: value for name, value in values.items() if value is not None}


def _describe_best(rows_by_key: Mapping[tuple[Any, ...], Row], names: Sequence[str]) -> str:
    if (best := _find_best(rows_by_key, names, "f1_macro")) is None:
        return ""
    values = _get_values(rows_by_key, names, "f1_macro")
    percents = {name: sections.format_number(100 * value, 1) for name, value in values.items()}
    ratio = sections.format_number(_get_values(rows_by_key, [best], "ratio").get(best), 2)
    sentences = f"The best search system is {name_system(best)}, with an F1 of {percents[best]} % at a CR of {ratio}. "
    if blind := [name for name in BASELINES if name != "unedited" and name in values]:
        first = max(blind, key=values.__getitem__)
        sentences += f"The best baseline that reads no words is {name_system(first)}, with {percents[first]} %. "
    if "unedited" not in values:
        return sentences
    searching = [value for name, value in values.items() if name not in (*BASELINES, "gold")]
    above_count = sum(value > values["unedited"] for value in searching)
    above = f"{above_count} of {len(searching)} search systems have more"
    return f"{sentences}Copying has {percents['unedited']} % at a CR of 1.00; {above}. "


def _build_significance(frame: pl.DataFrame) -> Section:
    frame = frame.sort("source", "metric", "one", "other")
    significant = frame.filter(pl.col("p") < 0.05)
    better = significant.filter(pl.col("difference") > 0).height
    columns: Columns = {"source": "source", "measure": lambda row: METRICS.get(row["metric"], row["metric"])}
    columns |= {"one": lambda row: name_system(row["one"]), "other": lambda row: name_system(row["other"])}
    columns["difference"] = lambda row: sections.format_interval(row, "difference")
    columns["p"] = lambda row: sections.format_p(row["p"])
    sentence = (
        f"{significant.height} of {frame.height} differences have p < 0.05 in a paired bootstrap over sentences: "
        f"{better} above the other system, {significant.height - better} below. The p values have no correction for "
        "multiple tests. The paper underlines numbers that are significantly above the highest baseline (table 3)."
    )
    return Section(sentence, *sections.tabulate(frame, columns), text_count=4)


def _build_positions(frame: pl.DataFrame) -> Section:
    rows = []
    for (source,), part in frame.sort("source").group_by("source", maintain_order=True):
        rows_by_key = sections.index_rows(part, "system", "bin")
        for key, name in list_names(part, "system").items():
            shares = (rows_by_key.get((key, place), {}) for place in range(10))
            cells = (sections.format_interval(share, scale=100, digits=0) for share in shares)
            rows.append([str(source), name, *cells])
    sentence = (
        "The table has the percentage of kept words in each tenth of a sentence. In the paper, people keep the "
        "beginnings of Google's sentences; its weight ν favours them (figure 6, appendix C)."
    )
    names = ("source", "system", *(f"{place}–{place + 10}" for place in range(0, 100, 10)))
    return Section(sentence, names, rows, figures.draw_positions(frame), text_count=2)


def _build_examples(rows: Sequence[Row]) -> Section:
    """Build the table of sentences and what each round took: source, lang, words, rounds, system, gold (or None)."""
    table = []
    for row in rows:
        blank, words_by_round = "" if row["lang"] in _UNSPACED else " ", defaultdict[int, list[str]](list)
        for word, number in zip(row["words"], row["rounds"], strict=True):
            words_by_round[number].append(word)
        count = f"{len(words_by_round[0]):,} of {len(row['words']):,}"
        kept, *dropped = (f"{n}: {blank.join(words_by_round[n])}" for n in sorted(words_by_round))
        gold = [word for word, is_kept in zip(row["words"], row["gold"] or (), strict=False) if is_kept]
        texts = (kept.removeprefix("0: "), " · ".join(dropped) or "–", blank.join(gold) or "–")
        table.append([row["source"], name_system(row["system"]), *texts, count])
    sentence = "Each round drops words that the ones before it kept. Words that people keep are shown, if known."
    names = ("source", "system", "kept words", "dropped words by round", "kept by people", "words")
    return Section(sentence, names, table, text_count=5)


def _build_pairs(pairs: Sequence[Row]) -> Section:
    """Build the table of words that tell pairs apart: one, other, value, rows of word, place, divergence, weight."""
    table = []
    for pair in pairs:
        texts = (" ".join(pair["one"]), " ".join(pair["other"]))
        total = sum(row["divergence"] * row["weight"] for row in pair["rows"])
        for row in sorted(pair["rows"], key=lambda row: row["place"]):
            numbers = map(sections.format_number, (row["divergence"], row["weight"]))
            share = 100 * row["divergence"] * row["weight"] / total if total else None
            cells = (sections.format_number(pair["value"]), sections.format_count(row["place"] + 1), *numbers)
            table.append([*texts, row["word"], *cells, sections.format_number(share, 1)])
    sentence = (
        "The share of a word that both sentences have is the divergence of the model's predictions at this word, "
        "multiplied by the weight of the word."
    )
    names = ("one", "other", "word", "NDD", "place", "divergence", "weight", "% of the distance")
    return Section(sentence, names, table, text_count=3)


def _build_ratios(frame: pl.DataFrame) -> Section:
    rows_by_key = sections.index_rows(frame, "source", "longest", "threshold", "metric")
    metrics = [name for name in _METRICS if name in set(frame["metric"])]
    keys = frame.select("source", pl.col("longest").cast(pl.Int64), pl.col("threshold").cast(pl.Float64)).unique()
    rows = []
    for key in keys.sort(keys.columns, descending=[False, True, True]).iter_rows():
        source, longest, threshold = key
        cells = [_format_measure(rows_by_key.get((*key, metric), {}), metric) for metric in metrics]
        start = [source, f"{threshold:g}", str(longest)]
        rows.append([*start, "here", *cells])
        if printed := paper.TABLE_6.get((threshold, longest)):
            rows.append([*start, "paper", *(_format_printed(printed, metric) for metric in metrics)])
    sentence = (
        "N_max limits the cost of a dropped span; L_max limits its number of words. A system keeps more words if "
        "either limit is lower. The paper's row 1.00 / 5 equals its row of Fast NDD+SC, for which its text has an "
        "L_max of 9 (table 6, errata E20)."
    )
    names = ("source", "N_max", "L_max", "where", *(METRICS[name] for name in metrics))
    return Section(sentence, names, rows, text_count=4)


def _build_pruning(frame: pl.DataFrame) -> Section:
    metrics, rows_by_key = (*DEPTHS, *SUBTREES), sections.index_rows(frame, "system", "threshold", "metric")
    rows = []
    for key, name in list_names(frame, "system").items():
        for size in sorted(set(frame.filter(pl.col("system") == key)["threshold"])):
            metric_rows = (rows_by_key.get((key, size, metric), {}) for metric in metrics)
            cells = (sections.format_interval(row, scale=100, digits=0) for row in metric_rows)
            rows.append([name, f"{size:g}", "here", *cells])
            if printed := paper.TABLE_7.get((key, size)):
                rows.append([name, f"{size:g}", "paper", *map(str, printed)])
    sentence = (
        "The table has the percentage of dropped words at each depth of the tree; 1 is the root. It also has the "
        "percentage of dropped spans that are whole subtrees, by span length. A system that knows syntax drops whole "
        "subtrees and few words near the root. The paper uses PTB-3, whose trees differ from those of Universal "
        "Dependencies (table 7)."
    )
    names = ("system", "N_max", "where", *(("subtrees of " if m == SUBTREES[0] else "") + METRICS[m] for m in metrics))
    return Section(sentence, names, rows, text_count=3)


PARTS = {
    "compressions": Part("Compression quality", _build_compressions),
    "significance": Part("Significance of differences", _build_significance),
    "examples": Part("Dropped words by round", _build_examples),
    "ratios": Part("Compression ratio by threshold", _build_ratios),
    "positions": Part("Kept words by position", _build_positions),
    "human": Part("Human grades of compressions", build_human),
    "tests": Part("Agreement with labels", build_tests),
    "overlap": Part("Correlation by word overlap", build_overlap),
    "distributions": Part("Distances of edits", build_distributions),
    "explained": Part("Contribution of words to the distance", _build_pairs),
    "pruning": Part("Dropped words in the syntax tree", _build_pruning),
    "predicates": Part("Predicate detection", build_predicates),
    "shift": Part("Correlations of the context shift", build_shift),
    "shift_values": Part("Context shift by source", build_shift_values),
}
"""In the order of the page. Systems of `positions` may be `gold`, its bins are 0 to 9; quantiles are 0 to 100; a
threshold of `overlap` is 1 where all words are shared and below 0 where none is."""
