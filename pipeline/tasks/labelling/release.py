"""What a labelling project gives: its page, the card whoever approves it reads, the published data set.

A comment can be taken out again by the random id it was published under.
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

LICENCE = "not stated"  # of the annotations; whoever releases says
REQUIRED = ("subtext",)  # fields without which a comment is not published


def collect_facts(
    project: str, day: str, licence: str = LICENCE, required: Sequence[str] = REQUIRED, name: str | None = None
) -> "Facts":
    """What is told of a project: on its page, to whoever approves a release, and on the release's card."""
    from pipeline.metrics.labelling import label_analysis
    from pipeline.report.labelling.data_card import Facts

    tasks, found = read_tasks(project), decide(project)
    out = stages.release(found.annotations, required)
    kept = tasks.join(out.left_out, on="task_id", how="anti")
    counts = (("source", "lang"), ("tool",))
    by_source, by_tool = (
        frame.group_by(by).agg(row_count=pl.len().cast(pl.Int64)).sort(by)
        for frame, by in zip((kept, found.kept), counts, strict=True)
    )
    funnel_rows = warehouse.scan(
        "runs", (pl.col("origin") == format_origin(project)) & (pl.col("step") == "select")
    ).collect()
    numbers = ("read_count", "kept_count", "dropped_count")
    steps = [("select", *(int(funnel_rows[name].sum()) for name in numbers))] if funnel_rows.height else []
    steps.append(("release", tasks.height, kept.height, out.left_out.height))
    return Facts(
        release=name or project,
        created=parse_day(day),
        rows=by_source,
        funnel=pl.DataFrame(steps, schema=["step", *numbers], orient="row"),
        classes=label_analysis.class_ratios(out.values),
        agreement=measure_agreement(found),
        deletions=out.left_out.filter(pl.col("reason") != "unfinished")
        .group_by("reason")
        .agg(row_count=pl.len().cast(pl.Int64))
        .sort("reason"),
        tools=by_tool,
        rater_count=found.kept["rater_id"].n_unique(),
        licence=licence,
        data_hash=hashlib.sha256(build_rows(project, name or project, required).write_ndjson().encode()).hexdigest(),
    )


def render_card(project: str, day: str, required: Sequence[str] = REQUIRED, licence: str = LICENCE) -> str:
    """What whoever approves the release reads: the card it will have, in Markdown."""
    from pipeline.report.labelling import data_card

    return data_card.card(collect_facts(project, day, licence, required))


def get_page_path(project: str) -> Path:
    """Where a project's page lies."""
    return settings.reports() / f"labels-{check_name(project)}.html"


def write_page(project: str, day: str) -> str:
    """Write the project's page: funnel, progress, agreement, ratios, overlaps, correlations; return its path."""
    from pipeline.metrics.labelling import agreement_study, label_analysis, predictability
    from pipeline.report.labelling import page as report
    from pipeline.text import segment

    found, told = decide(project), collect_facts(project, day)
    values = stages.release(found.annotations, ()).values
    by_language = segment.load_tokenizers()
    texts = values.join(read_tasks(project), on="task_id", maintain_order="left").select("text", "lang")
    tokens = [
        segment.split_words(text, by_language.get(lang, by_language["und"]).cut) for text, lang in texts.iter_rows()
    ]
    open_ = [(*step, count) for step, count in count_waiting(found).items()]
    html = report.labels(
        report.Inputs(
            project=project,
            facts=told,
            agreement=told.agreement,
            ratios=label_analysis.class_ratios(values),
            overlaps=label_analysis.overlaps(values),
            correlations=label_analysis.correlations(values),
            predictability=predictability.measure_fields(tokens, values) if values.height else None,
            study=agreement_study.study(),
            open=pl.DataFrame(open_, schema=["round", "stage", "field_count"], orient="row"),
        )
    )
    path = get_page_path(project)
    path.parent.mkdir(parents=True, exist_ok=True)
    _write_text(path, html)
    return str(path)


def build_rows(project: str, release: str, required: Sequence[str] = REQUIRED, min_count: int = 50) -> pl.DataFrame:
    """The rows of a release: settled comments under random ids, in the order of those (CSD-08).

    Args:
        project: labelling project.
        release: name of the release.
        required: fields that must not have been deleted.
        min_count: figures of speech named fewer times are told only as `other` (CSD-12).
    """
    found = decide(project)
    told = stages.choose_notes(found.kept)
    rows = stages.release(found.annotations, required).values
    rows = rows.join(read_tasks(project), on="task_id").join(told, on="task_id", how="left")
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
    """Publish a project's settled comments: into `annotated_comments`, and as files with a data card; their folder.

    Args:
        project: labelling project.
        name: of the release; the project's by default.
        required: fields without which a comment is not published.
        licence: of the annotations, for the card.
        day: of the release, for the card; by default that of the newest comment.
        run_id: of Airflow.
        approved: the card that was approved (`render_card`).

    Raises:
        BadInput: something is still open, or what there is now is not what was approved.
    """
    from pipeline.report.labelling import data_card

    began, name = runs.start(), check_name(name or project)
    found = decide(project)
    if not stages.is_finished(found.annotations):
        count = found.annotations.filter(state="open").height
        raise BadInput(f"project {project!r}: {count} fields wait for a rater or the adjudicator; nothing is released")
    card = data_card.card(
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
    runs.record_step(project, day or newest, f"release {name}", "publish", rows.height, None, {}, run_id, began)
    return folder


def write_files(release: str) -> None:
    """Write the files of a release as `annotated_comments` has it, each whole or not at all."""
    rows = warehouse.scan("annotated_comments", pl.col("release") == release).sort("row_id").collect()
    folder = settings.releases() / release
    told = pl.col("context", "text", "rhetoric", "plain", "meaning")  # what people wrote
    spreadsheet = rows.with_columns(told.map_elements(escape_formula, return_dtype=pl.String))
    _write_text(folder / "data.jsonl", rows.write_ndjson())
    _write_text(folder / "data.csv", spreadsheet.write_csv())
    draft = folder / f".{secrets.token_hex(4)}.parquet"
    rows.write_parquet(draft)
    draft.replace(folder / "data.parquet")  # the last, as it tells which rows the folder holds


def _write_text(path: Path, text: str) -> None:
    draft = path.with_name(f".{secrets.token_hex(4)}.{path.name}")
    draft.write_text(text, encoding="utf-8", newline="\n")
    draft.replace(path)


def withdraw(row_ids: Sequence[str], run_id: str = "cli") -> pl.DataFrame:
    """Take comments out of labelling and of every release, by the random ids they were published under (CSD-08).

    Their rows and the bytes of these leave `label_tasks`, `labels`, `annotations` and `annotated_comments`, and the
    files of releases are written anew. The hash of the task stays in `dropped`, so that `select` does not take the
    same words in the same context again. Sheets and the labelling tool keep their copies until they are deleted there.

    Returns:
        A row a project: project, row_count, releases.

    Raises:
        Missing: an id is none of a labelled comment; nothing was taken out.
    """
    tasks = warehouse.scan("label_tasks", pl.col("row_id").is_in(list(row_ids))).collect()
    if unknown := sorted(set(row_ids) - set(tasks["row_id"])):
        raise Missing(f"no labelled comment has the row_id {', '.join(unknown)}; nothing was taken out")
    found = []
    for (project,), mine in tasks.partition_by("project", as_dict=True, maintain_order=True).items():
        for (day,), of_day in mine.partition_by("day", as_dict=True).items():
            _record_withdrawn(str(project), day.isoformat(), of_day["task_id"], run_id)
        warehouse.erase("annotated_comments", {"row_id": mine["row_id"].to_list()})
        releases = _find_releases(mine["row_id"])  # by their files: a run may have been killed after its rows went
        for name in releases:
            write_files(name)
        ids = mine["task_id"].to_list()
        for table in ("annotations", "labels", "label_tasks"):  # the last is what a run that is repeated starts from
            warehouse.erase(table, {"project": [project], "task_id": ids})
        found.append((project, mine.height, ", ".join(releases)))
    return pl.DataFrame(found, schema=["project", "row_count", "releases"], orient="row")


def _find_releases(row_ids: pl.Series) -> list[str]:
    """Releases whose files hold one of the rows."""
    is_one = pl.col("row_id").is_in(row_ids.implode())
    files = sorted(settings.releases().glob("*/data.parquet"))
    return [path.parent.name for path in files if pl.scan_parquet(path).select(is_one.any()).collect().item()]


def _record_withdrawn(project: str, day: str, task_ids: pl.Series, run_id: str) -> None:
    is_there = (pl.col("origin") == format_origin(project)) & (pl.col("step") == "withdraw")
    before = warehouse.scan("dropped", is_there & (pl.col("day") == parse_day(day))).collect()["row_key"]
    gone = pl.concat([before, task_ids]).unique().sort()
    there = warehouse.scan("label_tasks", (pl.col("project") == project) & (pl.col("day") == parse_day(day)))
    left = there.filter(~pl.col("task_id").is_in(gone.implode())).select(pl.len()).collect().item()
    told = pl.DataFrame({"row_key": gone}).with_columns(source=pl.lit(project), reason=pl.lit("withdrawn"))
    runs.record_step(project, day, format_origin(project), "withdraw", left, told, {}, run_id)
