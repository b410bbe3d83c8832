"""One HTML page of article commenting: the corpus, the grades, metrics held against people, and the commenters."""

from collections.abc import Sequence

import polars as pl

from pipeline.errors import BadInput
from pipeline.papers.commenting import CATEGORIES, COMMENTS_TOLD, GRADES, KAPPA, TABLE_2
from pipeline.report import sections
from pipeline.report.commenting import figures
from pipeline.report.commenting import metric_sections as metrics
from pipeline.report.sections import Columns, Part, Section, format_count, format_interval, format_number


def render(day: str, signatures: Sequence[str] = (), simulated_count: int = 0, **frames: pl.DataFrame | None) -> str:
    """Render the page of the frames that `PARTS` names, which `sections.check_rows` checks.

    Metrics have their plain names (`meteor`, `human`); `is_weighted` is true of W-METEOR. Signatures name their origin.
    """
    rows = sections.check_rows(PARTS, frames)
    names = figures.list_rows(rows["correlations"]) if "correlations" in rows else []
    counts = {
        "graded comments": rows["grades"]["item_id"].n_unique() if "grades" in rows else None,
        "metrics compared with people": len([name for name in names if name[0] != figures.HUMAN]) if names else None,
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
    rows_by_key = sections.index_rows(frame, "metric", "split")
    paper = TABLE_2["all"]
    rows = []
    for metric in frame["metric"].unique(maintain_order=True):
        split_rows = [rows_by_key.get((metric, split), {}) for split in splits]
        for origin, column in (("here", "value"), ("in the paper", "paper")):
            numbers = [row.get(column) for row in split_rows]
            if origin == "here" or any(number is not None for number in numbers):
                rows.append([metric.replace("_", " "), origin, *map(_format_value, numbers)])
    return Section(
        "The paper selects articles with at least 30 words and 20 comments. Its test articles have at least 30 "
        f"comments of more than 5 words and over 200 upvotes (section 3). Its total of {COMMENTS_TOLD:,} comments "
        f"contradicts its table 2: {paper.articles:,} articles with {paper.comments_per_article} comments each have "
        f"{paper.comments:,} comments (errata E12).",
        ("what", "where", *splits),
        rows,
        text_count=2,
    )


def _build_categories(frame: pl.DataFrame) -> Section:
    svg = figures.draw_categories(frame)
    frame = frame.sort(-pl.col("n").cast(pl.Int64), "category", nulls_last=True)
    frame = frame.with_columns(pl.col("category").fill_null("not known"))
    limit = f" The figure shows the {figures.TOP} most frequent categories." if frame.height > figures.TOP else ""
    columns: Columns = {"category": "category", "articles": "n"}
    columns["% of all"] = lambda row: format_number(None if row["share"] is None else 100 * row["share"], 1)
    names, rows = sections.tabulate(frame, columns)
    return Section(
        f"The corpus has {format_count(int(frame['n'].sum()))} articles in {frame.height} categories. The most "
        f"frequent category is {rows[0][0]} ({rows[0][1]}).{limit} The paper has {CATEGORIES} categories (figure 2).",
        names,
        rows,
        svg,
    )


def _build_grades(frame: pl.DataFrame) -> Section:
    grade = pl.col("grade")
    items = frame.group_by("item_id").agg(grade.mean(), least=grade.min(), best=grade.max()).drop_nulls("grade")
    if items.is_empty():
        raise BadInput(f"grades: expected a value of grade, found {frame.height} null")
    low, high, share = items.select(
        pl.col("least").min(), pl.col("best").max().alias("high"), share=100 * (pl.col("best") >= 5).mean()
    ).row(0)
    has_paper_scale = high > 1  # on another scale than 1 to 5 the paper's numbers do not compare
    counts = (items.height, frame["grade"].count(), GRADES.items, 2 * GRADES.items)
    here_counts, paper_counts = [*map(format_count, counts[:2])], [*map(format_count, counts[2:])]
    moments = [format_number(number, 2) for number in (items["grade"].mean(), items["grade"].std())]
    paper_moments = [format_number(number, 1) for number in (GRADES.mean, GRADES.sd)]
    rows = [
        ["here", *here_counts, *moments, format_number(share if has_paper_scale else None, 1)],
        ["in the paper", *paper_counts, *paper_moments, format_number(100 * GRADES.five_share, 0)],
    ]
    return Section(
        f"Grades run from {low:g} to {high:g}. The grade of a comment is the mean of its raters; mean and standard "
        "deviation are over comments. In the paper grades run from 1 to 5, and two raters grade each comment. A fifth "
        "of its comments have a 5 from at least one rater (section 3).",
        ("where", "comments", "grades", "mean", "s.d.", "% with a 5"),
        rows,
        figures.draw_grades(frame, GRADES.mean if has_paper_scale else None),
    )


def _build_kappa(frame: pl.DataFrame) -> Section:
    frame = frame.sort("weights")
    columns: Columns = {"weights": "weights", "κ": format_interval}
    columns |= {"paper, weights unknown": lambda _: f"{KAPPA:.2f}", "n": "n"}
    values = frame.select("weights", "value").iter_rows()
    finding = " and ".join(f"{format_number(value)} with {weights} weights" for weights, value in values)
    return Section(
        f"Cohen's weighted κ is {finding}. The paper has {KAPPA} and does not name its weights (section 3). Quadratic "
        "weights give a higher κ if most disagreements are small.",
        *sections.tabulate(frame, columns),
    )


def _build_numbers(frame: pl.DataFrame) -> Section:
    frame = frame.sort("metric", "subset", "split", "baseline_name", nulls_last=True)
    compared = frame.drop_nulls(["value", "baseline"])
    columns: Columns = {"measure": lambda row: row["metric"].replace("_", " ")}
    columns |= {"subset": lambda row: row["subset"] or "all", "split": "split"}
    columns |= {"baseline name": lambda row: row["baseline_name"] or "–", "value": "value", "baseline": "baseline"}
    columns["difference"] = lambda row: sections.format_signed(metrics.subtract(row["value"], row["baseline"]))
    return Section(
        f"{compared.filter(pl.col('value') > pl.col('baseline')).height} of {compared.height} numbers are above their "
        "baseline. For an error, a lower number is better. The paper has no such scorer.",
        *sections.tabulate(frame, columns | {"n": "pair_count"}),
        text_count=4,
    )


def _build_history(frame: pl.DataFrame) -> Section:
    rows = []
    for name in figures.list_systems(frame["system"]):
        part = frame.filter(pl.col("system") == name).sort("epoch")
        best = part.drop_nulls("validation_loss").sort("validation_loss", "epoch").to_dicts()[:1] or [{}]
        last = part.row(-1, named=True)
        losses = last["train_loss"], last["validation_loss"], best[0].get("validation_loss")
        epoch = format_count(best[0].get("epoch"))
        rows.append([figures.name_system(name), format_count(part.height), *map(format_number, losses), epoch])
    return Section(
        "If the validation loss rises while the training loss falls, the commenter overfits its training articles.",
        ("commenter", "epochs", "final training loss", "final validation loss", "lowest validation loss", "at epoch"),
        rows,
        figures.draw_history(frame),
    )


def _build_errata(frame: pl.DataFrame) -> Section:
    answers = {True: "yes", False: "no", None: "undecided"}
    yes, no = ((frame["holds"] == answer).sum() for answer in (True, False))
    columns: Columns = {"paper": "system", "place": lambda row: row["place"] or "–", "claim": "claim"}
    columns |= {"found": lambda row: row["found"] or "–", "holds": lambda row: answers[row["holds"]]}
    return Section(
        f"{yes} of {frame.height} claims hold, {no} do not (errata E11 and E12). The table compares each claim with "
        "the paper's own numbers.",
        *sections.tabulate(frame, columns),
        text_count=5,
    )


PARTS = {
    "statistics": Part("Corpus statistics", _build_statistics, "metric split", "value? paper?"),
    "categories": Part("Article categories", _build_categories, "category?", "n share?"),
    "grades": Part("Distribution of grades", _build_grades, "", "item_id grade?"),
    "kappa": Part("Rater agreement on grades", _build_kappa, "weights", "value? low? high? n"),
    "correlations": Part(
        "Correlation of metrics with human grades",
        metrics.build_correlations,
        "metric is_weighted coefficient",
        "value? low? high? p? n difference? difference_low? difference_high?",
    ),
    "scatter": Part(
        "Metric scores and grades by comment", metrics.build_scatter, columns="metric is_weighted value? grade?"
    ),
    "sensitivity": Part(
        "Sensitivity to the weights", metrics.build_sensitivity, "preset metric coefficient", "value? ratio?"
    ),
    "systems": Part("Scores of the commenters", metrics.build_systems, "metric is_weighted system", "value? n"),
    "examples": Part(
        "Examples of metric disagreement",
        metrics.build_examples,
        columns="title? text grade? metric is_weighted value? normalised?",
    ),
    "numbers": Part(
        "Grade prediction", _build_numbers, "metric split subset? baseline_name?", "value? baseline? pair_count?"
    ),
    "history": Part("Training curves", _build_history, "system epoch", "train_loss? validation_loss?"),
    "errata": Part("Claims of the paper", _build_errata, "", "system place? claim found? holds?"),
}
"""In the order of the page. A row of `grades` is of a rater, one of `scatter` of a comment; a difference is of weighted
and plain and stands on the weighted row; `ratio` is of weighted to plain scores."""
