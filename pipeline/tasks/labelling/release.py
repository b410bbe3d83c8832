"""Results of a labelling project: its page, the card for approval, the published data set, and withdrawing from it."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from pipeline import settings, warehouse
from pipeline.errors import BadInput, Missing, format_quantity
from pipeline.io.atomic import replace_file, write_text
from pipeline.io.spreadsheets import escape_formula
from pipeline.label import schema, stages
from pipeline.metrics.labelling import agreement, label_analysis
from pipeline.report.labelling import data_card
from pipeline.slices import parse_day
from pipeline.tables import empty
from pipeline.tasks.labelling.csd import count_waiting, decide, measure_agreement, read_tasks
from pipeline.tasks.labelling.projects import check_name, format_origin, is_step
from pipeline.tasks.record import pages, runs
from pipeline.text import segment

LICENCE = "not stated"  # of the annotations; the user who releases gives one
REQUIRED = ("subtext",)  # fields without which a comment is not published


def collect_facts(
    project: str, day: str, licence: str = LICENCE, required: Sequence[str] = REQUIRED, name: str | None = None
) -> data_card.Facts:
    """Collect the facts about a project for its page and for the card of its release."""
    tasks, decisions = read_tasks(project), decide(project)
    released = stages.release(decisions.annotations, required)
    published = tasks.join(released.dropped, on="task_id", how="anti")
    counts = ("read_count", "kept_count", "dropped_count")
    selections = warehouse.scan("runs", is_step(project, "select")).select(counts).collect()
    steps = [("select", *selections.sum().row(0))] if selections.height else []
    steps.append(("release", tasks.height, published.height, released.dropped.height))
    rows = build_rows(project, name or project, required).write_ndjson()
    return data_card.Facts(
        release=name or project,
        created=parse_day(day),
        rows=_count_rows(published, "source", "lang"),
        funnel=pl.DataFrame(steps, schema=["step", *counts], orient="row"),
        classes=label_analysis.class_ratios(released.rows),
        agreement=measure_agreement(decisions),
        deletions=_count_rows(released.dropped.filter(pl.col("reason") != "unfinished"), "reason"),
        tools=_count_rows(decisions.labels, "tool"),
        rater_count=decisions.labels["rater_id"].n_unique(),
        licence=licence,
        data_hash=hashlib.sha256(rows.encode()).hexdigest(),
    )


def _count_rows(frame: pl.DataFrame, *columns: str) -> pl.DataFrame:
    return frame.group_by(columns).agg(row_count=pl.len().cast(pl.Int64)).sort(columns)


def render_card(project: str, day: str, required: Sequence[str] = REQUIRED, licence: str = LICENCE) -> str:
    """Render the card of the release in Markdown, for approval."""
    return data_card.render(collect_facts(project, day, licence, required))


def get_page_path(project: str) -> Path:
    """Return the path of a project's page."""
    return settings.reports() / f"labels-{check_name(project)}.html"


def write_page(project: str, day: str) -> str:
    """Write the project's page: funnel, progress, agreement, ratios, overlaps, correlations; return its path."""
    from pipeline.report.labelling import page

    decisions, facts = decide(project), collect_facts(project, day)
    values = stages.release(decisions.annotations, ()).rows
    cuts = {lang: tokenizer.cut for lang, tokenizer in segment.load_tokenizers().items()}
    texts = values.join(read_tasks(project), on="task_id", maintain_order="left").select("text", "lang")
    tokens = [segment.split_words(text, cuts.get(lang, cuts["und"])) for text, lang in texts.iter_rows()]
    waiting = [(*step, count) for step, count in count_waiting(decisions).items()]
    html = page.render(
        project,
        facts,
        pl.DataFrame(waiting, schema=["round", "stage", "field_count"], orient="row"),
        ratios=label_analysis.class_ratios(values),
        overlaps=label_analysis.overlaps(values),
        correlations=label_analysis.correlations(values),
        predictability=label_analysis.measure_fields(tokens, values) if values.height else None,
        study=agreement.study(),
    )
    return pages.write_page(get_page_path(project).name, html)


def build_rows(
    project: str, release: str, required: Sequence[str] = REQUIRED, min_count: int = stages.LEAST_NAMED
) -> pl.DataFrame:
    """Build the rows of a release: settled comments in order of random ids, without rare figures of speech."""
    decisions = decide(project)
    notes = stages.choose_notes(decisions.labels)
    rows = stages.release(decisions.annotations, required).rows
    rows = rows.join(read_tasks(project), on="task_id").join(notes, on="task_id", how="left")
    subtext = pl.col("subtext")
    span = pl.when(subtext != schema.NO).then(pl.col("span").str.split("-"))
    start, end = (span.list.get(n).cast(pl.Int64) for n in (0, 1))
    rows = rows.with_columns(
        release=pl.lit(release),
        is_subtext=pl.when(subtext != schema.UNSURE).then(subtext == schema.YES),
        rhetoric=stages.fold_rare(rows["rhetoric"], min_count).replace(stages.OTHER, None),
        span_start=start,
        span_end=end,
    )
    return rows.select(empty("annotated_comments").columns).sort("row_id")


def release(
    project: str,
    name: str | None = None,
    required: Sequence[str] = REQUIRED,
    licence: str = LICENCE,
    day: str | None = None,
    run_id: str = "cli",
    approved: str | None = None,
) -> Path:
    """Publish a project's settled comments in `annotated_comments`, and as files with a data card; return the folder.

    The release has the name of the project by default, and the day of its newest comment. Comments without one of the
    `required` fields are not published. `approved` is the card that was approved; BadInput if labels changed since.
    """
    timer, name = runs.start(), check_name(name or project)
    is_other = (pl.col("release") == name) & ~pl.col("row_id").is_in(read_tasks(project)["row_id"].implode())
    if count := warehouse.scan("annotated_comments", is_other).collect().height:
        comments = format_quantity(count, "comment")
        raise BadInput(f"the release {name!r} has {comments} of another project; choose another name (--name)")
    decisions = decide(project)
    if count := decisions.annotations.filter(state="open").height:
        fields = format_quantity(count, "field")
        raise BadInput(f"project {project!r}: raters or the adjudicator settle {fields} first; see `label status`")
    day = day or max(read_tasks(project)["day"]).isoformat()
    card = data_card.render(collect_facts(project, day, licence, required, name))
    if approved not in (None, card):
        raise BadInput(f"project {project!r}: labels changed after they were approved; clear `summary` and look again")
    rows = build_rows(project, name, required)
    warehouse.overwrite("annotated_comments", warehouse.make_slice(release=name), rows, run_id)
    folder = settings.releases() / name
    write_text(folder / "README.md", card)
    write_files(name)
    runs.record_step(project, day, f"release {name}", "publish", rows.height, None, {}, run_id, timer)
    return folder


def write_files(release: str) -> None:
    """Write the files of a release from `annotated_comments`, each completely or not at all, and update its card."""
    rows = warehouse.scan("annotated_comments", pl.col("release") == release).sort("row_id").collect()
    folder = settings.releases() / release
    free_text = pl.col("context", "text", "rhetoric", "plain", "meaning")
    spreadsheet = rows.with_columns(free_text.map_elements(escape_formula, return_dtype=pl.String))
    write_text(folder / "data.jsonl", rows.write_ndjson())
    write_text(folder / "data.csv", spreadsheet.write_csv())
    if (path := folder / "README.md").is_file():
        data_hash = hashlib.sha256((folder / "data.jsonl").read_bytes()).hexdigest()
        counts, classes = _count_rows(rows, "source", "lang"), label_analysis.class_ratios(rows)
        write_text(path, data_card.update(path.read_text(encoding="utf-8"), counts, classes, data_hash))
    with replace_file(folder / "data.parquet") as draft:  # last, as `withdraw` reads which rows the folder holds
        rows.write_parquet(draft)


def withdraw(row_ids: Sequence[str], run_id: str = "cli") -> pl.DataFrame:
    """Withdraw comments from labelling and from every release, by the random ids they were published under (CSD-08).

    Their rows are erased from the tables, also from the data files, and the files of releases are written again. The
    hash of the task stays in `dropped`, so that `select` does not select it again. Sheets and the labelling tool keep
    their copies until a user deletes them. Returns a row a project: project, row_count, releases.
    """
    tasks = warehouse.scan("label_tasks", pl.col("row_id").is_in(list(row_ids))).collect()
    if unknown := sorted(set(row_ids) - set(tasks["row_id"])):
        raise Missing(f"no labelled comment has the row_id {', '.join(unknown)}; nothing was taken out")
    counts = []
    for (project,), project_tasks in tasks.partition_by("project", as_dict=True, maintain_order=True).items():
        for (day,), day_tasks in project_tasks.partition_by("day", as_dict=True).items():
            _record_withdrawn(str(project), day.isoformat(), day_tasks["task_id"], run_id)
        warehouse.erase("annotated_comments", {"row_id": project_tasks["row_id"].to_list()})
        # found by their files: a run may have been killed after its rows were erased
        is_row = pl.col("row_id").is_in(project_tasks["row_id"].implode())
        files = sorted(settings.releases().glob("*/data.parquet"))
        releases = [path.parent.name for path in files if pl.scan_parquet(path).select(is_row.any()).collect().item()]
        for name in releases:
            write_files(name)
        ids = project_tasks["task_id"].to_list()
        for table in ("annotations", "labels", "label_tasks"):  # the last is what a run that is repeated starts from
            warehouse.erase(table, {"project": [project], "task_id": ids})
        counts.append((project, project_tasks.height, ", ".join(releases)))
    return pl.DataFrame(counts, schema=["project", "row_count", "releases"], orient="row")


def _record_withdrawn(project: str, day: str, task_ids: pl.Series, run_id: str) -> None:
    is_day = pl.col("day") == parse_day(day)
    withdrawn_rows = warehouse.scan("dropped", is_step(project, "withdraw") & is_day).collect()
    withdrawn = pl.concat([withdrawn_rows["row_key"], task_ids]).unique().sort()
    tasks = warehouse.scan("label_tasks", (pl.col("project") == project) & is_day)
    task_count = tasks.filter(~pl.col("task_id").is_in(withdrawn.implode())).select(pl.len()).collect().item()
    dropped = pl.DataFrame({"row_key": withdrawn}).with_columns(source=pl.lit(project), reason=pl.lit("withdrawn"))
    runs.record_step(project, day, format_origin(project), "withdraw", task_count, dropped, {}, run_id)
