"""One HTML page of article commenting: the corpus, the grades, metrics held against people, and the commenters.

Parts without rows are left out, and the page says which. Titles, comments and names are hostile data: everything but
our own figures is escaped. The paper's numbers stand beside ours; they are of its own data, which are not public.
"""

from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from pipeline.errors import BadInput
from pipeline.papers.commenting import CATEGORIES, COMMENTS_TOLD, GRADES, KAPPA, TABLE_2
from pipeline.report import sections
from pipeline.report.commenting import figures, metric_sections
from pipeline.report.sections import (
    Part,
    Section,
    count,
    in_order,
    interval,
    minus,
    number,
    rows_by,
    signed,
)


class Commenting(NamedTuple):
    """What the page shows; frames that are None or without rows are parts that are left out.

    Metrics have their plain names (`meteor`, `bleu_1`, `human`); `is_weighted` is true of W-METEOR, whose references
    are weighted by their grades. `PARTS` has the columns.
    """

    statistics: pl.DataFrame | None = None
    categories: pl.DataFrame | None = None
    grades: pl.DataFrame | None = None
    kappa: pl.DataFrame | None = None
    correlations: pl.DataFrame | None = None
    scatter: pl.DataFrame | None = None
    sensitivity: pl.DataFrame | None = None
    systems: pl.DataFrame | None = None
    examples: pl.DataFrame | None = None
    numbers: pl.DataFrame | None = None
    history: pl.DataFrame | None = None
    errata: pl.DataFrame | None = None
    signatures: Sequence[str] = ()  # of the metrics and models that all this comes from
    made_up: int = 0  # comments that simulated raters graded


def page(day: str, data: Commenting) -> str:
    """The page as text.

    Args:
        day: that the page is of.
        data: what it shows.

    Raises:
        BadInput: a frame lacks a column or a value, or holds a row twice.
    """
    rows = sections.fill(PARTS, data._asdict())
    for name in {"correlations", "sensitivity"} & set(rows):
        if others := set(rows[name]["coefficient"]) - set(figures.COEFFICIENTS):
            raise BadInput(
                f"{name}: expected a coefficient of {', '.join(figures.COEFFICIENTS)}, found {min(others)[:40]}"
            )
    counts = {
        "graded comments": rows["grades"]["item_id"].n_unique() if "grades" in rows else None,
        "metrics against people": len(_measured(rows["correlations"])) if "correlations" in rows else None,
        "commenters": rows["systems"]["system"].n_unique() if "systems" in rows else None,
    }
    return sections.render(
        f"article commenting, {day}",
        "Article commenting",
        "What the corpus is made of, whether metrics grade comments as people do, and how commenters fare (Automatic "
        f"Article Commenting), {day}.",
        **sections.build(PARTS, rows),
        counts=counts,
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


def _measured(correlations: pl.DataFrame) -> list[figures.Metric]:
    """The metrics that are no people."""
    return [row for row in figures.rows_of(correlations) if row[0] != figures.HUMAN]


def _plain(value: float | None) -> str:
    """A count as a count, another number with two digits at most."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if value == int(value) else f"{round(value, 2):,}".replace("-", "−")


def _statistics(frame: pl.DataFrame) -> Section:
    splits = in_order(frame["split"], ("train", "validation", "dev", "test", "all"))
    known = rows_by(frame, "metric", "split")
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
        f"{paper.comments:,} (errata E12).",
        "",
        ("what", "where", *splits),
        rows,
        texts=2,
    )


def _categories(frame: pl.DataFrame) -> Section:
    frame = frame.sort(-pl.col("n").cast(pl.Int64), "category", nulls_last=True)
    first = frame.row(0, named=True)
    few = f", of which the {figures.TOP} most frequent are drawn" if frame.height > figures.TOP else ""
    name = "not known" if first["category"] is None else first["category"]
    return Section(
        "What the articles are about",
        f"{frame.height} categories of {count(int(frame['n'].sum()))} articles{few}; most are of {name} "
        f"({count(first['n'])}). The paper has {CATEGORIES} (figure 2).",
        figures.categories(frame),
        ("category", "articles", "% of all"),
        [
            [
                "not known" if row["category"] is None else row["category"],
                count(row["n"]),
                number(None if row["share"] is None else 100 * row["share"], 1),
            ]
            for row in frame.iter_rows(named=True)
        ],
    )


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
        figures.grades(frame, GRADES.mean if is_theirs else None),
        ("where", "comments", "grades", "mean", "s.d.", "% with a 5"),
        [
            [
                "here",
                count(items.height),
                count(frame["grade"].count()),
                number(items["grade"].mean(), 2),
                number(items["grade"].std(), 2),
                number(share if is_theirs else None, 1),
            ],
            [
                "in the paper",
                count(GRADES.items),
                count(2 * GRADES.items),
                number(GRADES.mean, 1),
                number(GRADES.sd, 1),
                number(100 * (GRADES.five_share), 0),
            ],
        ],
    )


def _kappa(frame: pl.DataFrame) -> Section:
    frame = frame.sort("weights")
    said = " and ".join(f"{number(row['value'])} with {row['weights']} weights" for row in frame.iter_rows(named=True))
    return Section(
        "Whether people agree on the grades",
        f"Cohen's weighted κ is {said}. The paper has {KAPPA} and does not say with which weights (section 3): "
        "quadratic ones give more where grades lie near each other.",
        "",
        ("weights", "κ", "paper, weights not told", "n"),
        [[row["weights"], interval(row), f"{KAPPA:.2f}", count(row["n"])] for row in frame.iter_rows(named=True)],
    )


def _numbers(frame: pl.DataFrame) -> Section:
    frame = frame.sort("metric", "subset", "split", "baseline_name", nulls_last=True)
    both = frame.drop_nulls(["value", "baseline"])
    return Section(
        "How well grades can be predicted",
        f"{both.filter(pl.col('value') > pl.col('baseline')).height} of {both.height} numbers are above their "
        "baseline; of an error the lower one is the better. The paper has no such scorer.",
        "",
        ("measure", "of", "split", "baseline", "value", "baseline", "apart", "n"),
        [
            [
                row["metric"].replace("_", " "),
                row["subset"] or "all",
                row["split"],
                row["baseline_name"] or "–",
                minus(row["value"]),
                minus(row["baseline"]),
                signed(metric_sections.less(row["value"], row["baseline"])),
                count(row["pair_count"]),
            ]
            for row in frame.iter_rows(named=True)
        ],
        texts=4,
    )


def _history(frame: pl.DataFrame) -> Section:
    rows = []
    for name in figures.systems_of(frame["system"]):
        part = frame.filter(pl.col("system") == name).sort("epoch")
        best = part.drop_nulls("validation_loss").sort("validation_loss", "epoch").head(1)
        least = best.row(0, named=True) if best.height else {}
        last = part.row(-1, named=True)
        losses = last["train_loss"], last["validation_loss"], least.get("validation_loss")
        rows.append([figures.system_name(name), count(part.height), *map(number, losses), count(least.get("epoch"))])
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
        [
            [row["system"], row["place"] or "–", row["claim"], row["found"] or "–", holds[row["holds"]]]
            for row in frame.iter_rows(named=True)
        ],
        texts=5,
    )


PARTS = {
    "statistics": Part("what the corpus is made of", _statistics, "metric split", "value? paper?"),
    "categories": Part("what the articles are about", _categories, "category?", "n share?"),
    "grades": Part("how good people find the comments", _grades, "", "item_id grade?"),
    "kappa": Part("whether people agree on the grades", _kappa, "weights", "value? low? high? n"),
    "correlations": Part(
        "whether metrics grade as people do",
        metric_sections.correlations,
        "metric is_weighted coefficient",
        "value? low? high? p? n difference? difference_low? difference_high?",
    ),
    "scatter": Part(
        "how metrics and grades of the same comments lie",
        metric_sections.scatter,
        "",
        "metric is_weighted value? grade?",
    ),
    "sensitivity": Part(
        "how much the way from grades to weights changes",
        metric_sections.sensitivity,
        "preset metric coefficient",
        "value? ratio?",
    ),
    "systems": Part("how commenters fare", metric_sections.systems, "metric is_weighted system", "value? n"),
    "examples": Part(
        "where metrics disagree",
        metric_sections.examples,
        "",
        "title? text grade? metric is_weighted value? normalised?",
    ),
    "numbers": Part(
        "how well grades can be predicted",
        _numbers,
        "metric split subset? baseline_name?",
        "value? baseline? pair_count?",
    ),
    "history": Part("how commenters learn", _history, "system epoch", "train_loss? validation_loss?"),
    "errata": Part("what of the paper's claims holds", _errata, "", "system place? claim found? holds?"),
}
"""In the order of the page. A row of `grades` is of a rater, one of `scatter` of a comment; a difference is of weighted
and plain and stands on the weighted row; `ratio` is of weighted to plain scores."""
