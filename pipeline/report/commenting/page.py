"""One HTML page of article commenting: the corpus, the grades, metrics held against people, and the commenters."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from pipeline.papers.commenting import CATEGORIES, COMMENTS_TOLD, GRADES, KAPPA, SYSTEMS, TABLE_2
from pipeline.report import sections
from pipeline.report.commenting import figures
from pipeline.report.figures import Floats
from pipeline.report.sections import Columns, Part, Section, format_count, format_interval, format_number, index_rows

PAIRS: Sequence[tuple[figures.Metric, figures.Metric]] = (  # metrics whose disagreements tables 5 and 6 show
    (("meteor", False), ("bleu_1", False)),
    (("meteor", False), ("meteor", True)),
)
EXAMPLES = 4  # comments of each pair
LONG = 300  # characters of a comment that the page shows


def render(day: str, signatures: Sequence[str] = (), simulated_count: int = 0, **frames: pl.DataFrame | None) -> str:
    """Render the page of the frames that `PARTS` names; `is_weighted` is true of W-METEOR."""
    rows = sections.select_filled(PARTS, frames)
    names = figures.list_rows(rows["correlations"]) if "correlations" in rows else []
    counts = {
        "graded comments": rows["grades"]["item_id"].n_unique() if "grades" in rows else None,
        "metrics compared with people": sum(name != figures.HUMAN for name, _ in names) if names else None,
        "commenters": rows["systems"]["system"].n_unique() if "systems" in rows else None,
    }
    warning = (
        f"Warning: simulated raters graded {simulated_count:,} comments. A program made these grades; no person "
        "read the comments. Numbers from these grades are no evidence about comments, metrics or commenters."
    )
    return sections.render(
        f"article commenting, {day}",
        "Article commenting",
        "The corpus, the correlation of metrics with human grades, and the scores of the commenters (Automatic "
        f"Article Commenting), {day}.",
        **sections.build_sections(PARTS, rows),
        counts=counts,
        warning=warning if simulated_count else "",
        signatures=signatures,
    )


def _format_value(value: float | None) -> str:
    """Format a whole number without a point, and another one with two digits at most."""
    text = format_number(value, 2, ",")
    return text.rstrip("0").removesuffix(".") if "." in text else text


def _build_statistics(frame: pl.DataFrame) -> Section:
    splits = sections.order_names(frame["split"], ("train", "validation", "dev", "test", "all"))
    rows_by_key = index_rows(frame, "metric", "split")
    paper = TABLE_2["all"]
    rows = []
    for metric in frame["metric"].unique(maintain_order=True):
        split_rows = [rows_by_key.get((metric, split), {}) for split in splits]
        for origin, column in (("here", "value"), ("in the paper", "paper")):
            numbers = [row.get(column) for row in split_rows]
            if origin == "here" or any(number is not None for number in numbers):
                rows.append([metric.replace("_", " "), origin, *map(_format_value, numbers)])
    sentence = (
        "The paper selects articles with at least 30 words and 20 comments. Its test articles have at least 30 "
        f"comments of more than 5 words and over 200 upvotes (section 3). Its total of {COMMENTS_TOLD:,} comments "
        f"contradicts its table 2: {paper.articles:,} articles with {paper.comments_per_article} comments each have "
        f"{paper.comments:,} comments (errata E12)."
    )
    return Section(sentence, ("what", "where", *splits), rows, text_count=2)


def _build_categories(frame: pl.DataFrame) -> Section:
    svg = figures.draw_categories(frame)
    frame = frame.sort(-pl.col("n").cast(pl.Int64), "category", nulls_last=True)
    frame = frame.with_columns(pl.col("category").fill_null("not known"))
    limit = f" The figure shows the {figures.TOP} most frequent categories." if frame.height > figures.TOP else ""
    columns: Columns = {"category": "category", "articles": "n"}
    columns["% of all"] = lambda row: format_number(None if row["share"] is None else 100 * row["share"], 1)
    names, rows = sections.tabulate(frame, columns)
    sentence = (
        f"The corpus has {format_count(int(frame['n'].sum()))} articles in {frame.height} categories. The most "
        f"frequent category is {rows[0][0]} ({rows[0][1]}).{limit} The paper has {CATEGORIES} categories (figure 2)."
    )
    return Section(sentence, names, rows, svg)


def _build_grades(frame: pl.DataFrame) -> Section:
    grade = pl.col("grade")
    items = frame.group_by("item_id").agg(grade.mean(), least=grade.min(), best=grade.max())
    low, high, share = items.select(
        pl.col("least").min(), pl.col("best").max().alias("high"), share=100 * (pl.col("best") >= 5).mean()
    ).row(0)
    counts = (items.height, frame["grade"].count(), GRADES.items, 2 * GRADES.items)
    here_counts, paper_counts = [*map(format_count, counts[:2])], [*map(format_count, counts[2:])]
    moments = [format_number(number, 2) for number in (items["grade"].mean(), items["grade"].std())]
    paper_moments = [format_number(number, 1) for number in (GRADES.mean, GRADES.sd)]
    rows = [
        ["here", *here_counts, *moments, format_number(share, 1)],
        ["in the paper", *paper_counts, *paper_moments, format_number(100 * GRADES.five_share, 0)],
    ]
    sentence = (
        f"Grades run from {low:g} to {high:g}. The grade of a comment is the mean of its raters; mean and standard "
        "deviation are over comments. In the paper grades run from 1 to 5, and two raters grade each comment. A fifth "
        "of its comments have a 5 from at least one rater (section 3)."
    )
    names = ("where", "comments", "grades", "mean", "s.d.", "% with a 5")
    return Section(sentence, names, rows, figures.draw_grades(frame))


def _build_kappa(frame: pl.DataFrame) -> Section:
    frame = frame.sort("weights")
    printed = {"paper, weights unknown": lambda _: f"{KAPPA:.2f}"}
    columns: Columns = {"weights": "weights", "κ": format_interval, **printed, "n": "n"}
    values = frame.select("weights", "value").iter_rows()
    finding = " and ".join(f"{format_number(value)} with {weights} weights" for weights, value in values)
    sentence = (
        f"Cohen's weighted κ is {finding}. The paper has {KAPPA} and does not name its weights (section 3). Quadratic "
        "weights give a higher κ if most disagreements are small."
    )
    return Section(sentence, *sections.tabulate(frame, columns))


def _build_correlations(frame: pl.DataFrame) -> Section:
    rows_by_key = index_rows(frame, "metric", "is_weighted", "coefficient")
    rows, gains = [], []
    for kind, coefficient in figures.COEFFICIENTS.items():
        differences = []
        for metric in sections.order_names(frame["metric"], figures.METRICS):
            keys = [(metric, is_weighted, kind) for is_weighted in (False, True)]
            plain, weighted = (rows_by_key.get(key, {}) for key in keys)
            if plain or weighted:
                ends = {"value": "difference", "low": "difference_low", "high": "difference_high"}
                differences.append({name: weighted.get(column) for name, column in ends.items()})
                numbers = [(format_interval(row), sections.format_p(row.get("p"))) for row in (plain, weighted)]
                printed = [format_number(figures.PAPER_CORRELATIONS.get(key), 4) for key in keys]
                cells = [*numbers[0], *numbers[1], format_interval(differences[-1]), *printed]
                rows.append([figures.name_metric(metric), coefficient, *cells, format_count((plain or weighted)["n"])])
        gains += _describe_gains(coefficient, differences)
    sentence = (
        f"{' '.join(gains) or 'No metric has both plain and weighted scores.'} A difference is significant if its "
        "interval excludes zero. The paper calls the improvement consistent, but its own numbers for BLEU-1 fall: from "
        "0.2145 to 0.2076 and from 0.1790 to 0.1604 (tables 3 and 4, errata E12). The row of human grades compares "
        "two halves of the raters."
    )
    names = ("metric", "coefficient", "plain", "p", "weighted", "p", "difference", "paper, plain", "paper, weighted")
    return Section(sentence, (*names, "n"), rows, figures.draw_correlations(frame), text_count=2)


def _describe_gains(coefficient: str, differences: Sequence[Mapping[str, Any]]) -> list[str]:
    """Describe what weights do to a coefficient; nothing where no metric has both forms."""
    compared = [row for row in differences if row.get("value") is not None]
    bounded = [row for row in compared if None not in {row.get("low"), row.get("high")}]
    gain_count, loss_count = sum(row["low"] > 0 for row in bounded), sum(row["high"] < 0 for row in bounded)
    raised_count = sum(row["value"] > 0 for row in compared)
    gain = f"Weights raise {coefficient} of {raised_count} of {len(compared)} metrics ({gain_count} significantly)"
    return [f"{gain} and lower it significantly for {loss_count}."] if compared else []


def _subtract(value: float | None, subtrahend: float | None) -> float | None:
    return None if value is None or subtrahend is None else value - subtrahend


def _build_scatter(frame: pl.DataFrame) -> Section:
    frame = frame.drop_nulls(["value", "grade"])
    rows = []
    for metric in figures.list_rows(frame):
        part = frame.filter(metric=metric[0], is_weighted=metric[1])
        moments = [number for name in ("value", "grade") for number in (part[name].mean(), part[name].std())]
        rows.append([figures.name_metric(*metric), *map(format_number, moments), format_count(part.height)])
    panels = ", ".join(figures.name_metric(*panel) for panel in figures.PANELS)
    sentence = (
        "Each point is a comment; the line is the least-squares fit. As in figure 1 of the paper, there is a panel "
        f"for each metric: {panels}. "
        f"Noise with a standard deviation of {figures.JITTER} grades makes overlapping points visible. The paper also "
        "uses 0.05 and does not state whether it is the standard deviation or the variance."
    )
    names = ("metric", "mean", "s.d.", "mean grade", "s.d.", "comments")
    return Section(sentence, names, rows, figures.draw_scatter(frame))


def _build_sensitivity(frame: pl.DataFrame) -> Section:
    rows_by_key = index_rows(frame, "preset", "metric", "coefficient")
    rows = []
    for metric in sections.order_names(frame["metric"], figures.METRICS):
        for preset in sorted(set(frame["preset"])):
            coefficient_rows = [rows_by_key.get((preset, metric, kind), {}) for kind in figures.COEFFICIENTS]
            if any(coefficient_rows):
                ratio = next((row["ratio"] for row in coefficient_rows if row.get("ratio") is not None), None)
                numbers = (*(row.get("value") for row in coefficient_rows), ratio)
                name = figures.name_metric(metric)
                rows.append([name, preset, *map(format_number, numbers), _format_ratios(metric)])
    sentence = (
        "The paper requires weights in [0, 1] and does not state how it computes them from grades (section 4). The "
        "ratio is the weighted score divided by the plain score. No single formula gives the ratios of all metrics in "
        "the paper's table 7 (errata E11)."
    )
    names = ("metric", "weights", *figures.COEFFICIENTS.values(), "weighted / plain", "in the paper")
    return Section(sentence, names, rows, text_count=2)


def _format_ratios(metric: str) -> str:
    """Format the ratios of weighted to plain scores of the systems of table 7, from the least to the most."""
    plain, weighted = figures.build_values([(metric, False), (metric, True)], [*SYSTEMS], figures.PAPER_CELLS)
    ratios = sorted({f"{ratio:.2f}" for ratio in weighted / plain if np.isfinite(ratio)})
    return " to ".join(dict.fromkeys((ratios[0], ratios[-1]))) if ratios else "–"


def _build_systems(frame: pl.DataFrame) -> Section:
    names, metrics = sections.order_names(frame["system"], SYSTEMS), figures.list_rows(frame)
    cells = {"here": figures.index_cells(frame), "in the paper": figures.PAPER_CELLS}
    tables = {origin: figures.build_values(metrics, names, cells_there) for origin, cells_there in cells.items()}
    people = (figures.HUMAN, False)
    rows = []
    for y, metric in enumerate(metrics):
        counts = frame.filter(metric=metric[0], is_weighted=metric[1])["n"]
        for origin, values in tables.items():
            is_here = origin == "here"
            if is_here or np.isfinite(values[y]).any():
                ranks = zip(values[y], figures.rank_values(values[y]), strict=True)
                texts = [f"{sections.BEST if rank == 1 else ''}{format_number(value)}" for value, rank in ranks]
                is_compared = people in metrics and metric != people
                tau = figures.compute_tau(values[y], values[metrics.index(people)]) if is_compared else None
                n = sections.format_range(counts) if is_here else "–"
                rows.append([figures.name_metric(*metric), origin, *texts, sections.format_signed(tau, 2), n])
    sentence = (
        f"{_describe_winners(metrics, names, tables['here'])} Kendall's τ compares a metric's order of the commenters "
        "with the order by human grades. The paper's text calls IR-TC best under most metrics. In its table 7, IR-TC "
        "leads 4 of 9 rows, one of them human grades, and ties for the lead in a fifth (errata E12)."
    )
    columns = ("metric", "where", *map(figures.name_system, names), "τ", "n")
    return Section(sentence, columns, rows, text_count=2)


def _describe_winners(metrics: Sequence[figures.Metric], names: Sequence[str], values: Floats) -> str:
    findings = []
    for is_people in (False, True):
        places = [y for y, row in enumerate(metrics) if (row[0] == figures.HUMAN) == is_people]
        ranks = [figures.rank_values(values[y]) for y in places]
        wins = (np.array(ranks).reshape(-1, len(names)) == 1).sum(axis=0)
        order = sorted(np.flatnonzero(wins).tolist(), key=lambda x: -wins[x])
        firsts = [f"{figures.name_system(names[x])}{'' if is_people else f' ({wins[x]})'}" for x in order]
        if firsts:
            group = "people" if is_people else f"{len(ranks)} metrics"
            findings.append(f"Ranked first by {group}: {', '.join(firsts)}.")
    return " ".join(findings) or "No metric ranks them."


def _build_examples(frame: pl.DataFrame) -> Section:
    items: dict[tuple[Any, ...], dict[figures.Metric, Mapping[str, Any]]] = {}
    for row in frame.iter_rows(named=True):  # a comment may stand under an article twice
        items.setdefault((row["title"], row["text"], row["grade"]), {})[row["metric"], row["is_weighted"]] = row
    metrics = [metric for metric in figures.list_rows(frame) if any(metric in pair for pair in PAIRS)]
    rows = []
    for pair in PAIRS:
        pair_name = " / ".join(figures.name_metric(*metric) for metric in pair)
        scores = {key: [item.get(metric, {}).get("normalised") for metric in pair] for key, item in items.items()}
        differences = {key: _subtract(*values) for key, values in scores.items()}
        distances = {key: abs(value) for key, value in differences.items() if value is not None}
        for key in sorted(distances, key=lambda key: (-distances[key], str(key)))[:EXAMPLES]:
            texts = ["–" if text is None else sections.shorten(text, LONG) for text in key[:2]]
            score_texts = [_format_score(items[key].get(metric, {})) for metric in metrics]
            numbers = [format_number(key[2], 1), *score_texts, format_number(distances[key], 1)]
            rows.append([pair_name, *texts, *numbers])
    sentence = (
        "The table shows the comments with the largest difference between two metrics. It compares METEOR with BLEU-1 "
        "(table 5 of the paper) and METEOR with W-METEOR (table 6). All scores are scaled to the mean and the variance "
        "of human grades and limited to 1 to 5. The original scores are in brackets."
    )
    names = ("pair", "title", "comment", "people", *(figures.name_metric(*metric) for metric in metrics), "difference")
    return Section(sentence, names, rows, text_count=3)


def _format_score(row: Mapping[str, Any]) -> str:
    return f"{format_number(row['normalised'], 1)}\n({format_number(row['value'], 2)})" if row else "–"


def _build_errata(frame: pl.DataFrame) -> Section:
    answers = {True: "yes", False: "no", None: "undecided"}
    yes, no = ((frame["holds"] == answer).sum() for answer in (True, False))
    columns: Columns = {"paper": "system", "place": "place", "claim": "claim", "found": "found"}
    columns["holds"] = lambda row: answers[row["holds"]]
    sentence = (
        f"{yes} of {frame.height} claims hold, {no} do not (errata E11 and E12). The table compares each claim with "
        "the paper's own numbers."
    )
    return Section(sentence, *sections.tabulate(frame, columns), text_count=5)


PARTS = {
    "statistics": Part("Corpus statistics", _build_statistics),
    "categories": Part("Article categories", _build_categories),
    "grades": Part("Distribution of grades", _build_grades),
    "kappa": Part("Rater agreement on grades", _build_kappa),
    "correlations": Part("Correlation of metrics with human grades", _build_correlations),
    "scatter": Part("Metric scores and grades by comment", _build_scatter),
    "sensitivity": Part("Sensitivity to the weights", _build_sensitivity),
    "systems": Part("Scores of the commenters", _build_systems),
    "examples": Part("Examples of metric disagreement", _build_examples),
    "errata": Part("Claims of the paper", _build_errata),
}
"""In the order of the page. A row of `grades` is of a rater, one of `scatter` of a comment; a difference is of weighted
and plain and stands on the weighted row; `ratio` is of weighted to plain scores."""
