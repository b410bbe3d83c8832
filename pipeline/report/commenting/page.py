"""One HTML page of article commenting: the corpus, the grades, metrics held against people, and the commenters.

Parts without rows are left out, and the page says which. Titles, comments and names are hostile data: everything but
our own figures is escaped. The paper's numbers stand beside ours; they are of its own data, which are not public.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import polars.selectors as cs

from pipeline.errors import BadInput
from pipeline.examples.commenting.threads import CATEGORIES, COMMENTS_TOLD, TABLE_2
from pipeline.label.quality import PAPER, PAPER_KAPPA
from pipeline.papers.commenting import SYSTEMS
from pipeline.report.commenting import figures
from pipeline.report.commenting.figures import (
    COEFFICIENTS,
    HUMAN,
    PANELS,
    PAPER_CORRELATIONS,
    PAPER_SYSTEMS,
    TOP,
    Metric,
    metric_name,
    metrics_of,
    rows_of,
    system_name,
    systems_of,
)
from pipeline.report.figures import Floats
from pipeline.report.impscore.study_sections import Section, number
from pipeline.report.templates import templates

PAIRS: Sequence[tuple[Metric, Metric]] = ((("meteor", False), ("bleu_1", False)), (("meteor", False), ("meteor", True)))
"""Metrics whose disagreements tables 5 and 6 show."""
EXAMPLES = 4  # comments of each pair
LONG = 300  # characters of a comment that the page shows

_TEMPLATES = templates()
_SPLITS = ("train", "validation", "dev", "test", "all")
_BEST = "★ "


class Commenting(NamedTuple):
    """What the page shows; frames that are None or without rows are parts that are left out.

    Metrics have their plain names (`meteor`, `bleu_1`, `human`); `is_weighted` is true of W-METEOR, whose references
    are weighted by their grades.
    """

    statistics: pl.DataFrame | None = None  # split, metric, value, paper
    categories: pl.DataFrame | None = None  # category, n, share in [0, 1]
    grades: pl.DataFrame | None = None  # item_id, grade: a row a rater
    kappa: pl.DataFrame | None = None  # weights (linear, quadratic), value, low, high, n
    correlations: pl.DataFrame | None = None  # metric, is_weighted, coefficient (spearman, pearson), value, low, high,
    # p, n; and difference, difference_low, difference_high of weighted and plain, on the weighted row
    scatter: pl.DataFrame | None = None  # metric, is_weighted, value, grade: a row a comment
    sensitivity: pl.DataFrame | None = None  # preset, metric, coefficient, value, ratio (of weighted to plain scores)
    systems: pl.DataFrame | None = None  # metric, is_weighted, system, value, n
    examples: pl.DataFrame | None = None  # title, text, grade, metric, is_weighted, value, normalised (AAC-29)
    numbers: pl.DataFrame | None = None  # metric, split, subset, value, baseline, baseline_name, pair_count
    history: pl.DataFrame | None = None  # system, epoch, train_loss, validation_loss
    errata: pl.DataFrame | None = None  # system, place, claim, found, holds
    signatures: Sequence[str] = ()  # of the metrics and models that all this comes from
    made_up: int = 0  # comments that simulated raters graded


# the columns that tell rows apart, and the others
_COLUMNS: Mapping[str, tuple[Sequence[str], Sequence[str]]] = {
    "statistics": (("metric", "split"), ("value", "paper")),
    "categories": (("category",), ("n", "share")),
    "grades": ((), ("item_id", "grade")),
    "kappa": (("weights",), ("value", "low", "high", "n")),
    "correlations": (
        ("metric", "is_weighted", "coefficient"),
        ("value", "low", "high", "p", "n", "difference", "difference_low", "difference_high"),
    ),
    "scatter": ((), ("metric", "is_weighted", "value", "grade")),
    "sensitivity": (("preset", "metric", "coefficient"), ("value", "ratio")),
    "systems": (("metric", "is_weighted", "system"), ("value", "n")),
    "examples": ((), ("title", "text", "grade", "metric", "is_weighted", "value", "normalised")),
    "numbers": (("metric", "split", "subset", "baseline_name"), ("value", "baseline", "pair_count")),
    "history": (("system", "epoch"), ("train_loss", "validation_loss")),
    "errata": ((), ("system", "place", "claim", "found", "holds")),
}
_NEEDED = {
    "split", "metric", "weights", "is_weighted", "coefficient", "preset", "system", "epoch", "item_id", "text", "n",
    "claim",
}  # fmt: skip


def page(day: str, data: Commenting) -> str:
    """The page as text.

    Args:
        day: that the page is of.
        data: what it shows.

    Raises:
        BadInput: a frame lacks a column or a value, or holds a row twice.
    """
    # a NaN is no number either, and would sort before all
    given = {name: frame.with_columns(cs.float().fill_nan(None)) for name in _COLUMNS
             if (frame := getattr(data, name)) is not None and frame.height}  # fmt: skip
    for name, frame in given.items():
        _check(name, frame)
    counts = {
        "graded comments": given["grades"]["item_id"].n_unique() if "grades" in given else None,
        "metrics against people": len(_measured(given["correlations"])) if "correlations" in given else None,
        "commenters": given["systems"]["system"].n_unique() if "systems" in given else None,
    }
    return _TEMPLATES.get_template("commenting.html").render(
        day=day,
        counts=[(name, f"{count:,}") for name, count in counts.items() if count is not None],
        sections=[section(given[name]) for name, (_, section) in _PARTS.items() if name in given],
        missing=[told for name, (told, _) in _PARTS.items() if name not in given],
        warning=_warning(data.made_up),
        signatures=data.signatures,
    )


def _warning(made_up: int) -> str:
    if not made_up:
        return ""
    return (
        f"Warning: {made_up:,} comments were graded by simulated raters. A program made their grades up, so nothing "
        "that stands on grades here says anything about comments, metrics or commenters."
    )


def _check(name: str, frame: pl.DataFrame) -> None:
    keys, others = _COLUMNS[name]
    needed = [*keys, *others]
    if lacking := [column for column in needed if column not in frame.columns]:
        raise BadInput(f"{name}: expected a column {lacking[0]}, found {', '.join(frame.columns)}")
    for column in needed:
        if column in _NEEDED and (count := frame[column].null_count()):
            raise BadInput(f"{name}: expected a value of {column} in each row, found {count} null")
    if keys and (twice := frame.filter(frame.select(keys).is_duplicated())).height:
        row = ", ".join(str(value)[:40] for value in twice.select(keys).row(0))
        raise BadInput(f"{name}: expected a row for each {', '.join(keys)}, found several of {row}")
    if "coefficient" in needed and (other := set(frame["coefficient"]) - set(COEFFICIENTS)):
        raise BadInput(f"{name}: expected a coefficient of {', '.join(COEFFICIENTS)}, found {min(other)[:40]}")


def _measured(correlations: pl.DataFrame) -> list[Metric]:
    """The metrics that are no people."""
    return [row for row in rows_of(correlations) if row[0] != HUMAN]


def _count(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"


def _signed(value: float | None, digits: int = 3) -> str:
    return "–" if value is None else f"{value:+.{digits}f}".replace("-", "−")


def _minus(value: float | None, digits: int = 3) -> str:
    return number(value, digits).replace("-", "−")


def _interval(row: Mapping[str, Any]) -> str:
    """A number, and below it its interval."""
    shown, low, high = (_minus(row.get(name)) for name in ("value", "low", "high"))
    return shown if None in {row.get("low"), row.get("high")} else f"{shown}\n{low} to {high}"


def _p(value: float | None) -> str:
    return "< 0.0001" if value is not None and value < 0.0001 else number(value, 4)


def _plain(value: float | None) -> str:
    """A count as a count, another number with two digits at most."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if value == int(value) else f"{round(value, 2):,}".replace("-", "−")


def _cut(text: str | None) -> str:
    if text is None:
        return "–"
    return text if len(text) <= LONG else text[:LONG].rstrip() + "…"


def _statistics(frame: pl.DataFrame) -> Section:
    splits = sorted(set(frame["split"]), key=lambda name: ((*_SPLITS, name).index(name), name))
    known = {(row["metric"], row["split"]): row for row in frame.iter_rows(named=True)}
    paper = TABLE_2["all"]
    rows = []
    for metric in frame["metric"].unique(maintain_order=True):
        told = [known.get((metric, split), {}) for split in splits]
        name = metric.replace("_", " ")
        rows.append([name, "here", *(_plain(row.get("value")) for row in told)])
        if any(row.get("paper") is not None for row in told):
            rows.append([name, "in the paper", *(_plain(row.get("paper")) for row in told)])
    return Section(
        "What the corpus is made of",
        "The paper takes articles with at least 30 words and 20 comments, and for the test those with at least 30 "
        f"comments of more than 5 words and over 200 upvotes (section 3). Its {COMMENTS_TOLD:,} comments do not go "
        f"with its table 2: {paper.articles:,} articles with {paper.comments_per_article} comments each would have "
        f"{paper.articles * paper.comments_per_article:,} (errata E12).",
        "",
        ("what", "where", *splits),
        rows,
        texts=2,
    )


def _categories(frame: pl.DataFrame) -> Section:
    frame = frame.sort(-pl.col("n").cast(pl.Int64), "category", nulls_last=True)
    first = frame.row(0, named=True)
    few = f", of which the {TOP} most frequent are drawn" if frame.height > TOP else ""
    name = "not known" if first["category"] is None else first["category"]
    return Section(
        "What the articles are about",
        f"{frame.height} categories of {_count(int(frame['n'].sum()))} articles{few}; most are of {name} "
        f"({_count(first['n'])}). The paper has {CATEGORIES} (figure 2).",
        figures.categories(frame),
        ("category", "articles", "% of all"),
        [["not known" if row["category"] is None else row["category"], _count(row["n"]),
          number(None if row["share"] is None else 100 * row["share"], 1)] for row in frame.iter_rows(named=True)],
    )  # fmt: skip


def _grades(frame: pl.DataFrame) -> Section:
    grade = pl.col("grade")
    items = frame.group_by("item_id").agg(grade.mean(), least=grade.min(), best=grade.max()).drop_nulls("grade")
    if items.is_empty():
        raise BadInput(f"grades: expected a value of grade, found {frame.height} null")
    low, high, share = items.select(
        pl.col("least").min(), pl.col("best").max().alias("high"), share=100 * (pl.col("best") >= 5).mean()
    ).row(0)
    is_theirs = high > 1  # on another scale than 1 to 5 the paper's numbers say nothing
    return Section(
        "How good people find the comments",
        f"Grades run from {low:g} to {high:g}; mean and standard deviation are over comments, each with the mean of "
        "its raters. In the paper a grade is from 1 to 5, two raters see each comment, and a fifth of the comments "
        "have a 5 from one at least (section 3).",
        figures.grades(frame, PAPER.mean if is_theirs else None),
        ("where", "comments", "grades", "mean", "s.d.", "% with a 5"),
        [["here", _count(items.height), _count(frame["grade"].count()), number(items["grade"].mean(), 2),
          number(items["grade"].std(), 2), number(share if is_theirs else None, 1)],
         ["in the paper", _count(PAPER.items), _count(2 * PAPER.items), number(PAPER.mean, 1), number(PAPER.sd, 1),
          number(100 * (PAPER.five_share or 0), 0)]],
    )  # fmt: skip


def _kappa(frame: pl.DataFrame) -> Section:
    frame = frame.sort("weights")
    said = " and ".join(f"{number(row['value'])} with {row['weights']} weights" for row in frame.iter_rows(named=True))
    return Section(
        "Whether people agree on the grades",
        f"Cohen's weighted κ is {said}. The paper has {PAPER_KAPPA} and does not say with which weights (section 3): "
        "quadratic ones give more where grades lie near each other.",
        "",
        ("weights", "κ", "paper, weights not told", "n"),
        [
            [row["weights"], _interval(row), f"{PAPER_KAPPA:.2f}", _count(row["n"])]
            for row in frame.iter_rows(named=True)
        ],
    )


def _correlations(frame: pl.DataFrame) -> Section:
    known = {(row["metric"], row["is_weighted"], row["coefficient"]): row for row in frame.iter_rows(named=True)}
    kinds = [kind for kind in COEFFICIENTS if kind in set(frame["coefficient"])]
    rows, said = [], []
    for kind in kinds:
        differences = []
        for metric in metrics_of(frame["metric"]):
            plain, weighted = (known.get((metric, own, kind), {}) for own in (False, True))
            if not plain and not weighted:
                continue
            difference = _difference(plain, weighted)
            differences.append(difference)
            printed = (number(PAPER_CORRELATIONS.get((metric, own, kind)), 4) for own in (False, True))
            rows.append([
                metric_name(metric), COEFFICIENTS[kind], _interval(plain), _p(plain.get("p")), _interval(weighted),
                _p(weighted.get("p")), _interval(difference), *printed, _count((plain or weighted)["n"]),
            ])  # fmt: skip
        said += _gains(COEFFICIENTS[kind], differences)
    return Section(
        "Whether metrics grade as people do",
        f"{'Weights raise ' + ', '.join(said) if said else 'No metric is here with weights and without'}. Beyond "
        "chance is a difference whose interval does not hold zero. The paper calls the improvement consistent, yet its "
        "own numbers for BLEU-1 fall, from 0.2145 to 0.2076 and from 0.1790 to 0.1604 (tables 3 and 4, errata E12). "
        "Human grades are held against each other, by halves.",
        figures.correlations(frame),
        ("metric", "coefficient", "plain", "p", "weighted", "p", "difference", "paper, plain", "paper, weighted", "n"),
        rows,
        texts=2,
    )


def _gains(coefficient: str, differences: Sequence[Mapping[str, Any]]) -> list[str]:
    """What weights do to a coefficient, in words; nothing where no metric has both forms."""
    there = [row for row in differences if row.get("value") is not None]
    sure = [row for row in there if None not in {row.get("low"), row.get("high")}]
    up, down = sum(row["low"] > 0 for row in sure), sum(row["high"] < 0 for row in sure)
    more = sum(row["value"] > 0 for row in there)
    told = f"{coefficient} of {more} of {len(there)} metrics ({up} beyond chance; {down} fall beyond it)"
    return [told] if there else []


def _difference(plain: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, float | None]:
    """Weighted minus plain with its interval, from either row; without one, of the values."""
    for row in (own, plain):
        if row.get("difference") is not None:
            return {name: row[f"difference{end}"] for name, end in (("value", ""), ("low", "_low"), ("high", "_high"))}
    return {"value": _less(own.get("value"), plain.get("value"))}


def _scatter(frame: pl.DataFrame) -> Section:
    frame = frame.drop_nulls(["value", "grade"])
    if frame.is_empty():
        raise BadInput("scatter: expected a row with value and grade, found none")
    rows = []
    for metric, weighted in rows_of(frame):
        part = frame.filter((pl.col("metric") == metric) & (pl.col("is_weighted") == weighted))
        spread = [f for name in ("value", "grade") for f in (part[name].mean(), part[name].std())]
        rows.append([metric_name(metric, weighted), *(number(value) for value in spread), _count(part.height)])
    return Section(
        "Metrics and grades of the same comments",
        f"Each point is a comment; the line is the least-squares fit. Panels as in figure 1 of the paper: "
        f"{', '.join(metric_name(*panel) for panel in PANELS)}. Noise with a standard deviation of {figures.JITTER} "
        "grades shows where points lie on each other; the paper leaves open whether its 0.05 is that or the variance.",
        figures.scatter(frame),
        ("metric", "mean", "s.d.", "mean grade", "s.d.", "comments"),
        rows,
    )


def _sensitivity(frame: pl.DataFrame) -> Section:
    known = {(row["preset"], row["metric"], row["coefficient"]): row for row in frame.iter_rows(named=True)}
    rows = []
    for metric in metrics_of(frame["metric"]):
        for preset in sorted(set(frame["preset"])):
            told = [known.get((preset, metric, kind), {}) for kind in COEFFICIENTS]
            if any(told):
                ratio = next((row["ratio"] for row in told if row.get("ratio") is not None), None)
                values = (_minus(row.get("value")) for row in told)
                rows.append([metric_name(metric), preset, *values, number(ratio), _ratios(metric)])
    return Section(
        "How grades become weights",
        "The paper wants weights in [0, 1] and does not say how it makes them of grades (section 4). The ratio is that "
        "of weighted scores to plain ones: in its table 7 no one way gives the ratios of all metrics (errata E11).",
        figures.sensitivity(frame),
        ("metric", "weights", *COEFFICIENTS.values(), "weighted / plain", "in the paper"),
        rows,
        texts=2,
    )


def _ratios(metric: str) -> str:
    """Weighted to plain scores of the systems of table 7, from the least to the most."""
    there = [(PAPER_SYSTEMS.get((metric, True, name)), PAPER_SYSTEMS.get((metric, False, name))) for name in SYSTEMS]
    ratios = [f"{own / plain:.2f}" for own, plain in there if own is not None and plain]
    return "–" if not ratios else ratios[0] if len(set(ratios)) == 1 else f"{min(ratios)} to {max(ratios)}"


def _systems(frame: pl.DataFrame) -> Section:
    names, metrics = systems_of(frame["system"]), rows_of(frame)
    tables = {
        "here": figures.values_of(metrics, names, figures.cells(frame)),
        "in the paper": figures.values_of(metrics, names, PAPER_SYSTEMS),
    }
    counts = {key: part["n"] for key, part in frame.group_by("metric", "is_weighted")}
    rows = []
    for y, metric in enumerate(metrics):
        for where, values in tables.items():
            if where == "here" or np.isfinite(values[y]).any():
                first = figures.places(values[y]) == 1
                cells = [f"{_BEST if one else ''}{_minus(value)}" for value, one in zip(values[y], first, strict=True)]
                tau = _signed(_like_people(metrics, values, y), 2)
                n = _range(counts[metric]) if where == "here" else "–"
                rows.append([metric_name(*metric), where, *cells, tau, n])
    return Section(
        "How commenters fare",
        f"{_winners(metrics, names, tables['here'])}. τ is Kendall's, of a metric's order of the commenters with that "
        "by human grades. The paper's text has IR-TC best under most metrics; in its table 7 it leads 4 of 9 rows, of "
        "which human grades are one, and shares the lead of a fifth (errata E12).",
        figures.systems(frame),
        ("metric", "where", *map(system_name, names), "τ", "n"),
        rows,
        texts=2,
    )


def _like_people(metrics: Sequence[Metric], values: Floats, row: int) -> float | None:
    people = (HUMAN, False)
    if people not in metrics or metrics[row] == people:
        return None
    return figures.ranked_as(values[row], values[metrics.index(people)])


def _winners(metrics: Sequence[Metric], names: Sequence[str], values: Floats) -> str:
    """Which systems metrics and people put first, and how often."""
    said = []
    for kind, is_people in (("metrics", False), ("people", True)):
        own = values[[y for y, (metric, _) in enumerate(metrics) if (metric == HUMAN) == is_people]]
        wins = (np.array([figures.places(row) for row in own]).reshape(len(own), len(names)) == 1).sum(axis=0)
        order = sorted(range(len(names)), key=lambda x: -wins[x])
        firsts = [f"{system_name(names[x])}{'' if is_people else f' ({wins[x]})'}" for x in order if wins[x]]
        if firsts:
            count = "people" if is_people else f"{len(own)} {kind}"
            said.append(f"{count} put first {', '.join(firsts)}")
    return "; ".join(said) or "Nothing ranks them"


def _range(counts: pl.Series) -> str:
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _examples(frame: pl.DataFrame) -> Section:
    # a comment may stand under an article twice
    items: dict[tuple[Any, ...], dict[Metric, Mapping[str, Any]]] = {}
    for row in frame.iter_rows(named=True):
        items.setdefault((row["title"], row["text"], row["grade"]), {})[row["metric"], row["is_weighted"]] = row
    metrics = [row for row in rows_of(frame) if any(row in pair for pair in PAIRS)]
    rows = []
    for pair in PAIRS:
        scores = {key: [told.get(metric, {}).get("normalised") for metric in pair] for key, told in items.items()}
        apart = {key: abs(one - other) for key, (one, other) in scores.items() if one is not None and other is not None}
        names = " / ".join(metric_name(*metric) for metric in pair)
        for key in sorted(apart, key=lambda key: (-apart[key], str(key)))[:EXAMPLES]:
            title, text, grade = key
            shown = [_score(items[key].get(metric, {})) for metric in metrics]
            rows.append([names, _cut(title), _cut(text), number(grade, 1), *shown, number(apart[key], 1)])
    return Section(
        "Where metrics disagree",
        "Comments on which two metrics are furthest apart: METEOR and BLEU-1 as in table 5 of the paper, METEOR with "
        "weights and without as in table 6. Scores have the mean and the variance of human grades and are cut to 1 to "
        "5, so that they can be held against each other; those in brackets are as they were.",
        "",
        ("apart", "title", "comment", "people", *(metric_name(*metric) for metric in metrics), "by"),
        rows,
        texts=3,
    )


def _score(row: Mapping[str, Any]) -> str:
    return f"{number(row['normalised'], 1)}\n({number(row['value'], 2)})" if row else "–"


def _numbers(frame: pl.DataFrame) -> Section:
    frame = frame.sort("metric", "subset", "split", "baseline_name", nulls_last=True)
    both = frame.drop_nulls(["value", "baseline"])
    return Section(
        "How well grades can be predicted",
        f"{both.filter(pl.col('value') > pl.col('baseline')).height} of {both.height} numbers are above their "
        "baseline; of an error the lower one is the better. The paper has no such scorer.",
        "",
        ("measure", "of", "split", "baseline", "value", "baseline", "apart", "n"),
        [[row["metric"].replace("_", " "), row["subset"] or "all", row["split"], row["baseline_name"] or "–",
          _minus(row["value"]), _minus(row["baseline"]), _signed(_less(row["value"], row["baseline"])),
          _count(row["pair_count"])] for row in frame.iter_rows(named=True)],
        texts=4,
    )  # fmt: skip


def _less(value: float | None, other: float | None) -> float | None:
    return None if value is None or other is None else value - other


def _history(frame: pl.DataFrame) -> Section:
    rows = []
    for name in systems_of(frame["system"]):
        part = frame.filter(pl.col("system") == name).sort("epoch")
        best = part.drop_nulls("validation_loss").sort("validation_loss", "epoch").head(1)
        least = best.row(0, named=True) if best.height else {}
        last = part.row(-1, named=True)
        losses = last["train_loss"], last["validation_loss"], least.get("validation_loss")
        rows.append([system_name(name), _count(part.height), *map(number, losses), _count(least.get("epoch"))])
    return Section(
        "How commenters learn",
        "A validation loss that rises while the other falls means that the commenter learns its articles by heart.",
        figures.history(frame),
        ("commenter", "epochs", "loss at the end", "on validation", "least on validation", "at epoch"),
        rows,
    )


def _errata(frame: pl.DataFrame) -> Section:
    holds = {True: "yes", False: "no", None: "cannot be told"}
    yes, no = ((frame["holds"] == answer).sum() for answer in (True, False))
    return Section(
        "What the paper says and what is found",
        f"{yes} of {frame.height} claims hold, {no} do not (errata E11 and E12).",
        "",
        ("paper", "place", "claim", "found", "holds"),
        [[row["system"], row["place"] or "–", row["claim"], row["found"] or "–", holds[row["holds"]]]
         for row in frame.iter_rows(named=True)],
        texts=5,
    )  # fmt: skip


_PARTS: dict[str, tuple[str, Callable[[pl.DataFrame], Section]]] = {
    "statistics": ("what the corpus is made of", _statistics),
    "categories": ("what the articles are about", _categories),
    "grades": ("how good people find the comments", _grades),
    "kappa": ("whether people agree on the grades", _kappa),
    "correlations": ("whether metrics grade as people do", _correlations),
    "scatter": ("how metrics and grades of the same comments lie", _scatter),
    "sensitivity": ("how much the way from grades to weights changes", _sensitivity),
    "systems": ("how commenters fare", _systems),
    "examples": ("where metrics disagree", _examples),
    "numbers": ("how well grades can be predicted", _numbers),
    "history": ("how commenters learn", _history),
    "errata": ("what of the paper's claims holds", _errata),
}
"""By frame: what the page says is missing without it, and the part it makes; in the order of the page."""
