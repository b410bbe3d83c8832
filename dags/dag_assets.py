"""The assets: every table of the warehouse and every page, grouped by the stage that makes them.

A consumer of a table is scheduled by the partition key of its events, which is the day. `announce`, which runs after
each task, adds to the events of the outlets the day, the rows written and the snapshot, or the paths of the page and
its index.
"""

from typing import Any

from airflow.sdk import Asset

_TABLES = {
    "corpus": {
        "raw_pages": "Answers of sites without personal fields",
        "articles": "Subjects of comments",
        "comments": "Reader comments, anonymised, cleaned and deduplicated",
        "tokens": "Words of each distinct text of a day",
    },
    "labels": {
        "label_tasks": "Comments for raters",
        "labels": "Answers of each rater to each task",
        "annotations": "Result of each field of each task after the two stages",
        "annotated_comments": "The published data set",
    },
    "pairs": {
        "sentences": "Sentences of data sets on implicitness",
        "completions": "Answers of language models",
        "pairs": "ImpScore training triples",
    },
    "cloze": {
        "cloze_targets": "Tokens of summaries",
        "cloze_items": "Cloze items with five options, from summaries",
    },
    "commenting": {
        "threads": "Tokenized articles of the commenting corpus",
        "reference_comments": "Real comments on test articles",
        "generated_comments": "Comments that commenters retrieved or wrote for test articles",
        "comment_grades": "Human grades of the quality of comments",
        "metric_scores": "Overlap of a generated comment with the references of its article",
    },
    "models": {
        "models": "Trained models",
        "evaluations": "Measures of models",
        "training_texts": "Hashes of the training texts of each model",
    },
    "scores": {
        "scores": "Scores of comments by model and metric",
        "scores_explained": "Words of the most and the least implicit comments of a source and day",
        "embeddings": "Embeddings of texts, kept so that a new model scores known texts without encoding them again",
        "projections": "Places of the distinct texts of a day on a map",
        "compressions": "Sentences of data sets with the words that people and systems dropped",
        "studies": "Numbers of studies",
    },
    "records": {
        "dropped": "Rows that a step dropped",
        "runs": "Rows that each run read, kept and dropped",
        "erasures": "Receipts of erasures by store",
        "model_erasures": "Models that learned from erased texts",
    },
}
_PAGES = {
    "report": "<day>.html", "health": "health-<day>.html", "labels": "labels-<project>.html",
    "cloze": "cloze-<day>.html", "commenting": "commenting-<day>.html", "ndd": "ndd-<day>.html",
    "studies": "studies-<day>.html",
}  # fmt: skip
TABLES_URI = "iceberg://undertone/"

TABLES = {
    name: Asset(
        name=name,
        uri=f"{TABLES_URI}{name}",
        group=group,
        extra={"description": description, "columns": f"sql/tables/{name}.sql"},
    )
    for group, descriptions in _TABLES.items()
    for name, description in descriptions.items()
}
PAGES = {
    name: Asset(name=f"page_{name}", uri=f"undertone://reports/{name}", group="pages", extra={"file": file})
    for name, file in _PAGES.items()
}


def tables(names: str) -> list[Asset]:
    """Look up the assets of tables by their names, which blanks part."""
    return [TABLES[name] for name in names.split()]


MODELS = tables("models evaluations training_texts runs")  # what a training writes


def locate_page(page: Asset, day: str, project: str = "") -> str:
    """Return the path of a page of a day, or of a labelling project."""
    from pipeline import settings

    return str(settings.reports() / page.extra["file"].replace("<day>", day).replace("<project>", project))


def announce(context: Any, result: Any) -> None:
    """Add the day, and rows and snapshot or the paths of page and index, to the events of a task's outlets."""
    outlets = context["task"].outlets
    if not outlets:
        return
    from pipeline import warehouse
    from pipeline.tasks.record import pages

    ti = context["ti"]
    day = ti.xcom_pull(task_ids="day") if context["dag"].has_task("day") else None
    for asset in outlets:
        event = context["outlet_events"][asset]
        if asset.uri.startswith(TABLES_URI):
            event.extra = {**warehouse.describe_writes(asset.name), "run": ti.run_id}
        else:
            path = locate_page(asset, day, context["params"].get("project", ""))
            index = pages.locate_index(day if "<day>" in asset.extra["file"] else "")
            event.extra = {"page": path, "index": str(index), "run": ti.run_id}
        if day:
            event.add_partitions([day])
