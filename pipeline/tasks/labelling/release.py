"""Results of a labelling project: its page, the card for approval, the published data set.

A comment can be withdrawn by the random id it was published under.
"""

import hashlib
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from pipeline import settings, warehouse
from pipeline.errors import BadInput, Missing
from pipeline.io.spreadsheets import escape_formula
from pipeline.label import schema, stages
from pipeline.label.rhetoric import fold_rare
from pipeline.slices import parse_day
from pipeline.tables import empty
from pipeline.tasks.labelling.csd import count_waiting, decide, measure_agreement, read_tasks
from pipeline.tasks.labelling.projects import check_name, format_origin
from pipeline.tasks.record import runs

if TYPE_CHECKING:
    from pipeline.report.labelling.data_card import Facts

LICENCE = "not stated"  # of the annotations; the user who releases gives one
REQUIRED = ("subtext",)  # fields without which a comment is not published


def collect_facts(
    project: str, day: str, licence: str = LICENCE, required: Sequence[str] = REQUIRED, name: str | None = None
) -> "Facts":
    """Collect the facts about a project for its page and for the card of its release."""
    from pipeline.metrics.labelling import label_analysis
    from pipeline.report.labelling.data_card import Facts

    tasks, decided = read_tasks(project), decide(project)
    released = stages.release(decided.annotations, required)
    published = tasks.join(released.left_out, on="task_id", how="anti")
    counts = (("source", "lang"), ("tool",))
    by_source, by_tool = (
        frame.group_by(columns).agg(row_count=pl.len().cast(pl.Int64)).sort(columns)
        for frame, columns in zip((published, decided.kept), counts, strict=True)
    )
    funnel_rows = warehouse.scan(
        "runs", (pl.col("origin") == format_origin(project)) & (pl.col("step") == "select")
    ).collect()
    numbers = ("read_count", "kept_count", "dropped_count")
    steps = [("select", *(int(funnel_rows[name].sum()) for name in numbers))] if funnel_rows.height else []
    steps.append(("release", tasks.height, published.height, released.left_out.height))
    return Facts(
        release=name or project,
        created=parse_day(day),
        rows=by_source,
        funnel=pl.DataFrame(steps, schema=["step", *numbers], orient="row"),
        classes=label_analysis.class_ratios(released.values),
        agreement=measure_agreement(decided),
        deletions=released.left_out.filter(pl.col("reason") != "unfinished")
        .group_by("reason")
        .agg(row_count=pl.len().cast(pl.Int64))
        .sort("reason"),
        tools=by_tool,
        rater_count=decided.kept["rater_id"].n_unique(),
        licence=licence,
        data_hash=hashlib.sha256(build_rows(project, name or project, required).write_ndjson().encode()).hexdigest(),
    )


def render_card(project: str, day: str, required: Sequence[str] = REQUIRED, licence: str = LICENCE) -> str:
    """Render the card of the release in Markdown, for approval."""
    from pipeline.report.labelling import data_card

    return data_card.render(collect_facts(project, day, licence, required))


def get_page_path(project: str) -> Path:
    """Return the path of a project's page."""
    return settings.reports() / f"labels-{check_name(project)}.html"


def write_page(project: str, day: str) -> str:
    """Write the project's page: funnel, progress, agreement, ratios, overlaps, correlations; return its path."""
    from pipeline.metrics.labelling import agreement_study, label_analysis, predictability
    from pipeline.report.labelling import page
    from pipeline.text import segment

    decided, facts = decide(project), collect_facts(project, day)
    values = stages.release(decided.annotations, ()).values
    by_language = segment.load_tokenizers()
    texts = values.join(read_tasks(project), on="task_id", maintain_order="left").select("text", "lang")
    tokens = [
        segment.split_words(text, by_language.get(lang, by_language["und"]).cut) for text, lang in texts.iter_rows()
    ]
    waiting = [(*step, count) for step, count in count_waiting(decided).items()]
    html = page.render(
        page.Inputs(
            project=project,
            facts=facts,
            agreement=facts.agreement,
            ratios=label_analysis.class_ratios(values),
            overlaps=label_analysis.overlaps(values),
            correlations=label_analysis.correlations(values),
            predictability=predictability.measure_fields(tokens, values) if values.height else None,
            study=agreement_study.study(),
            open=pl.DataFrame(waiting, schema=["round", "stage", "field_count"], orient="row"),
        )
    )
    path = get_page_path(project)
    path.parent.mkdir(parents=True, exist_ok=True)
    _write_text(path, html)
    return str(path)


def build_rows(project: str, release: str, required: Sequence[str] = REQUIRED, min_count: int = 50) -> pl.DataFrame:
    """Build the rows of a release: settled comments with random ids, in the order of these (CSD-08).

    Args:
        project: labelling project.
        release: name of the release.
        required: fields that must not have been deleted.
        min_count: figures of speech named fewer times become `other` (CSD-12).
    """
    decided = decide(project)
    notes = stages.choose_notes(decided.kept)
    rows = stages.release(decided.annotations, required).values
    rows = rows.join(read_tasks(project), on="task_id").join(notes, on="task_id", how="left")
    spans = [
        schema.parse_span(span, text) if span else (None, None)
        for span, text in rows.select("span", "text").iter_rows()
    ]
    names, _ = fold_rare(rows["rhetoric"], min_count)
    subtext = pl.col("subtext")
    return rows.with_columns(
        release=pl.lit(release),
        is_subtext=pl.when(subtext != schema.UNSURE).then(subtext == schema.YES),
        rhetoric=pl.Series(names).replace("other", None),
        span_start=pl.Series([start for start, _ in spans], dtype=pl.Int64),
        span_end=pl.Series([end for _, end in spans], dtype=pl.Int64),
    ).select(empty("annotated_comments").columns).sort("row_id")  # fmt: skip


def release(
    project: str, name: str | None = None, required: Sequence[str] = REQUIRED, licence: str = LICENCE,
    day: str | None = None, run_id: str = "cli", approved: str | None = None,
) -> Path:  # fmt: skip
    """Publish a project's settled comments in `annotated_comments`, and as files with a data card; return the folder.

    Args:
        project: labelling project.
        name: of the release; the project's by default.
        required: fields without which a comment is not published.
        licence: of the annotations, for the card.
        day: of the release, for the card; by default that of the newest comment.
        run_id: of Airflow.
        approved: the card that was approved (`render_card`).

    Raises:
        BadInput: a field is still open, or labels changed after the approval.
    """
    from pipeline.report.labelling import data_card

    timer, name = runs.start(), check_name(name or project)
    decided = decide(project)
    if not stages.is_finished(decided.annotations):
        count = decided.annotations.filter(state="open").height
        raise BadInput(f"project {project!r}: {count} fields wait for a rater or the adjudicator; nothing is released")
    card = data_card.render(
        collect_facts(project, day or max(read_tasks(project)["day"]).isoformat(), licence, required, name)
    )
    if approved not in (None, card):
        raise BadInput(f"project {project!r}: labels changed after they were approved; clear `summary` and look again")
    rows = build_rows(project, name, required)
    warehouse.overwrite("annotated_comments", warehouse.slice_of(release=name), rows, run_id)
    folder = settings.releases() / name
    folder.mkdir(parents=True, exist_ok=True)
    _write_text(folder / "README.md", card)
    write_files(name)
    newest = max(read_tasks(project)["day"]).isoformat()
    runs.record_step(project, day or newest, f"release {name}", "publish", rows.height, None, {}, run_id, timer)
    return folder


def write_files(release: str) -> None:
    """Write the files of a release from `annotated_comments`, each completely or not at all."""
    rows = warehouse.scan("annotated_comments", pl.col("release") == release).sort("row_id").collect()
    folder = settings.releases() / release
    written_columns = pl.col("context", "text", "rhetoric", "plain", "meaning")  # free text of people
    spreadsheet = rows.with_columns(written_columns.map_elements(escape_formula, return_dtype=pl.String))
    _write_text(folder / "data.jsonl", rows.write_ndjson())
    _write_text(folder / "data.csv", spreadsheet.write_csv())
    draft = folder / f".{secrets.token_hex(4)}.parquet"
    rows.write_parquet(draft)
    draft.replace(folder / "data.parquet")  # last, as `withdraw` reads from it which rows the folder holds


def _write_text(path: Path, text: str) -> None:
    draft = path.with_name(f".{secrets.token_hex(4)}.{path.name}")
    draft.write_text(text, encoding="utf-8", newline="\n")
    draft.replace(path)


def withdraw(row_ids: Sequence[str], run_id: str = "cli") -> pl.DataFrame:
    """Withdraw comments from labelling and from every release, by the random ids they were published under (CSD-08).

    Their rows are erased from `label_tasks`, `labels`, `annotations` and `annotated_comments`, also from the
    data files, and the files of releases are written again. The hash of the task stays in `dropped`, so that `select`
    does not select the same words in the same context again. Sheets and the labelling tool
    keep their copies until a user deletes them.

    Returns:
        A row a project: project, row_count, releases.

    Raises:
        Missing: an id is none of a labelled comment; nothing was taken out.
    """
    tasks = warehouse.scan("label_tasks", pl.col("row_id").is_in(list(row_ids))).collect()
    if unknown := sorted(set(row_ids) - set(tasks["row_id"])):
        raise Missing(f"no labelled comment has the row_id {', '.join(unknown)}; nothing was taken out")
    counts = []
    for (project,), project_tasks in tasks.partition_by("project", as_dict=True, maintain_order=True).items():
        for (day,), day_tasks in project_tasks.partition_by("day", as_dict=True).items():
            _record_withdrawn(str(project), day.isoformat(), day_tasks["task_id"], run_id)
        warehouse.erase("annotated_comments", {"row_id": project_tasks["row_id"].to_list()})
        releases = _find_releases(
            project_tasks["row_id"]
        )  # by their files: a run may have been killed after its rows went
        for name in releases:
            write_files(name)
        ids = project_tasks["task_id"].to_list()
        for table in ("annotations", "labels", "label_tasks"):  # the last is what a run that is repeated starts from
            warehouse.erase(table, {"project": [project], "task_id": ids})
        counts.append((project, project_tasks.height, ", ".join(releases)))
    return pl.DataFrame(counts, schema=["project", "row_count", "releases"], orient="row")


def _find_releases(row_ids: pl.Series) -> list[str]:
    """Find the releases whose files hold one of the rows."""
    is_row = pl.col("row_id").is_in(row_ids.implode())
    files = sorted(settings.releases().glob("*/data.parquet"))
    return [path.parent.name for path in files if pl.scan_parquet(path).select(is_row.any()).collect().item()]


def _record_withdrawn(project: str, day: str, task_ids: pl.Series, run_id: str) -> None:
    is_withdrawal = (pl.col("origin") == format_origin(project)) & (pl.col("step") == "withdraw")
    existing = warehouse.scan("dropped", is_withdrawal & (pl.col("day") == parse_day(day))).collect()["row_key"]
    withdrawn = pl.concat([existing, task_ids]).unique().sort()
    tasks = warehouse.scan("label_tasks", (pl.col("project") == project) & (pl.col("day") == parse_day(day)))
    kept_count = tasks.filter(~pl.col("task_id").is_in(withdrawn.implode())).select(pl.len()).collect().item()
    dropped = pl.DataFrame({"row_key": withdrawn}).with_columns(source=pl.lit(project), reason=pl.lit("withdrawn"))
    runs.record_step(project, day, format_origin(project), "withdraw", kept_count, dropped, {}, run_id)
