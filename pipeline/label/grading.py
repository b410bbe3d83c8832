"""What forms that ask for grades share: the guidelines, the ids of tasks, and which labels count."""

import hashlib
import json
from importlib.resources import files

import polars as pl

from pipeline.errors import BadInput
from pipeline.label.schema import Form
from pipeline.label.stages import drop_repeats


def read_guidelines(name: str, lang: str) -> str:
    """The guidelines of a form in Markdown, in Chinese (zh) or English (en).

    Raises:
        BadInput: there are none in this language.
    """
    if lang not in ("zh", "en"):
        raise BadInput(f"guidelines are in zh or en, not {lang!r}")
    return files("pipeline.label").joinpath("guidelines", f"{name}_{lang}.md").read_text(encoding="utf-8")


def make_task_id(*contents: object) -> str:
    """A hash of all that a task shows and of its item: a grade of what has changed is of no task there is."""
    return hashlib.blake2b(json.dumps(contents).encode(), digest_size=16).hexdigest()


def pick_latest(labels: pl.DataFrame, task_ids: pl.Series, form: Form) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Of each rater, task and field the label that was given last, and the others.

    Args:
        labels: task_id, round, stage, rater_id, field, value, labelled_at, tool, as `label_files.read` gives them.
        task_ids: the tasks that there are.
        form: what was asked; its fields have the same grades.

    Returns:
        The labels that count; and task_id, rater_id, field, round, stage, reason of those that do not: `unknown_task`;
        `duplicate` and `superseded`, as `stages.drop_repeats` has them.

    Raises:
        BadInput: a field or value that the form does not have, or a second round or stage; a rater who said two things
            without times that tell which came later.
    """
    values = next(iter(form.fields.values())).values
    is_good = pl.col("field").is_in(list(form.fields)) & pl.col("value").is_in(values)
    is_good &= (pl.col("round") == 1) & (pl.col("stage") == 1)
    faulty = labels.filter(~is_good.fill_null(value=False)).sort("task_id", "rater_id", "field")
    if faulty.height:  # imports check each label where file and row are known; here labels of another form are kept out
        row = faulty.row(0, named=True)
        raise BadInput(
            f"task {row['task_id']}, rater {row['rater_id']}: expected {' or '.join(form.fields)} of "
            f"{', '.join(values)} in round 1 and stage 1, found {row['field']} {str(row['value'])[:40]!r} in "
            f"{row['round']} and {row['stage']}"
        )
    is_known = pl.col("task_id").is_in(task_ids.implode())
    rows, repeated = drop_repeats(labels.filter(is_known))
    unknown = labels.filter(~is_known).with_columns(reason=pl.lit("unknown_task")).select(repeated.columns)
    return rows, pl.concat([repeated, unknown])
