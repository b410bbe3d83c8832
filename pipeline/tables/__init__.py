"""The data contracts: every table's columns, types, rules, key and partitions, in one place.

A frame is checked against its contract before it is written (`warehouse.overwrite`). The documented DDL in
`sql/tables/` is compared with this module by a test. Times are UTC with microseconds; ids stay text because several
sites' ids exceed 2^53; shares are in [0, 1].
"""

from functools import cache
from typing import NamedTuple

import dataframely as dy
import polars as pl

from pipeline.tables.collected import Articles, Comments, Embeddings, RawPages, Tokens
from pipeline.tables.columns import SOURCE
from pipeline.tables.commenting import CommentGrades, GeneratedComments, MetricScores, ReferenceComments, Threads
from pipeline.tables.examples import ClozeItems, ClozeTargets, Completions, Pairs, Sentences
from pipeline.tables.labels import AnnotatedComments, Annotations, Labels, LabelTasks
from pipeline.tables.records import ERASED, PROVENANCE, Dropped, Erasures, ModelErasures, Runs, TrainingTexts
from pipeline.tables.scores import Compressions, Evaluations, Models, Projections, Scores, ScoresExplained, Studies

__all__ = ["ERASED", "PROVENANCE", "SOURCE", "TABLES", "AnnotatedComments", "Labels", "Sentences", "Table", "empty"]


class Table(NamedTuple):
    """A contract, the columns that identify a row, the identity partitions, and the rows of a Parquet row group."""

    schema: type[dy.Schema]
    key: tuple[str, ...]
    partitions: tuple[str, ...]
    row_group: int = 50_000  # small groups keep the buffers of the streaming sink, and so its memory, flat


_COMMENT = ("source", "day", "thread_id", "comment_id")

TABLES: dict[str, Table] = {
    "raw_pages": Table(RawPages, ("source", "day", "origin", "page_id"), ("source", "day")),
    "articles": Table(Articles, ("source", "day", "thread_id"), ("source", "day")),
    "comments": Table(Comments, _COMMENT, ("source", "day")),
    "tokens": Table(
        Tokens, ("source", "day", "text_hash", "tokenizer", "tokenizer_version", "dictionary_hash"), ("source", "day")
    ),
    "sentences": Table(Sentences, ("source", "item_id"), ("source",)),
    "completions": Table(Completions, ("source", "completion_id"), ("source",)),
    "pairs": Table(Pairs, ("pair_id",), ("source",)),
    "cloze_targets": Table(ClozeTargets, ("source", "subtask", "thread_id", "start"), ("source",)),
    "cloze_items": Table(ClozeItems, ("item_id",), ("subtask",)),
    "label_tasks": Table(LabelTasks, ("project", "task_id"), ("project",)),
    "labels": Table(Labels, ("project", "task_id", "round", "stage", "rater_id", "field"), ("project",)),
    "annotations": Table(Annotations, ("project", "task_id", "field"), ("project",)),
    "annotated_comments": Table(AnnotatedComments, ("release", "row_id"), ("release",)),
    "threads": Table(Threads, ("source", "thread_id"), ("source",)),
    "reference_comments": Table(ReferenceComments, ("source", "thread_id", "comment_id"), ("source",)),
    "comment_grades": Table(CommentGrades, ("project", "source", "thread_id", "comment_id"), ("project",)),
    "generated_comments": Table(GeneratedComments, ("source", "thread_id", "generated_id"), ("source", "system")),
    "metric_scores": Table(MetricScores, ("source", "thread_id", "generated_id", "metric", "is_weighted"), ("source",)),
    "compressions": Table(Compressions, ("source", "day", "item_id", "system"), ("source", "day")),
    "models": Table(Models, ("kind", "day", "model_id"), ("kind",)),
    "evaluations": Table(
        Evaluations, ("kind", "day", "model_id", "metric", "split", "subset", "epoch"), ("kind", "day")
    ),
    "studies": Table(Studies, ("study", "day", "setting", "metric", "subset", "run"), ("study", "day")),
    "training_texts": Table(TrainingTexts, ("kind", "model_id", "text_hash"), ("kind",)),
    "erasures": Table(Erasures, ("erasure_id", "store"), ("day",)),
    "model_erasures": Table(ModelErasures, ("erasure_id", "kind", "model_id"), ("kind",)),
    "scores": Table(Scores, (*_COMMENT, "metric", "model_id"), ("source", "day")),
    "scores_explained": Table(ScoresExplained, (*_COMMENT, "model_id", "position"), ("source", "day")),
    "embeddings": Table(Embeddings, ("encoder", "bucket", "text_hash"), ("encoder", "bucket"), row_group=2_000),
    "projections": Table(Projections, ("source", "day", "text_hash"), ("source", "day")),
    "dropped": Table(Dropped, (), ("source", "day")),
    "runs": Table(Runs, ("source", "day", "origin", "step"), ("day",)),
}
"""Every table by name. `dropped` has no key: a file may hold the same bad row twice."""

_DOCUMENTED = (part for table in TABLES.values() for part in (table.schema.__doc__, *table.schema.columns().values()))
DOCUMENTATION = "\n".join(part.description or "" if isinstance(part, dy.Column) else str(part) for part in _DOCUMENTED)
"""Of tables and columns. The metadata of tables hold these words, so an erasure does not take them for a person's."""


def empty(name: str) -> pl.DataFrame:
    """A frame of the table's columns and no rows. It is made once, so do not change it in place."""
    return _create_empty(TABLES[name].schema)


@cache
def _create_empty(schema: type[dy.Schema]) -> pl.DataFrame:
    return schema.create_empty()


def list_personal(name: str) -> list[str]:
    """The columns of a table that stand for a person, by its contract."""
    columns = TABLES[name].schema.columns()
    return [column for column, rules in columns.items() if (rules.metadata or {}).get("is_personal")]
