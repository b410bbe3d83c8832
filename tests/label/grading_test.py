"""Grades of any form: the guidelines, and labels that are none of the form's."""

from typing import Any

import polars as pl
import pytest

from pipeline.errors import BadInput
from pipeline.label import compression, grading, quality
from pipeline.label.schema import Form
from tests.support.rows.labels import build_grades


@pytest.mark.parametrize("form", [quality.FORM, compression.FORM])
@pytest.mark.parametrize("change", [{"value": "6"}, {"field": "subtext"}, {"round": 2}, {"stage": 2}])
def test_labels_of_another_form_are_named(form: Form, change: dict[str, Any]) -> None:
    """The message names task and rater, what the form asks, and what was said."""
    field = next(iter(form.fields))
    labels, task_ids = build_grades(("t", "amy", field, 3)), pl.Series(["t"])
    assert grading.pick_latest(labels, task_ids, form)[0].height == 1
    changed = labels.to_dicts()[0] | change
    grades = ", ".join(form.fields[field].values)
    message = f"task t, rater amy: expected {' or '.join(form.fields)} of {grades} in round 1 and stage 1, found "
    with pytest.raises(BadInput) as error:
        grading.pick_latest(pl.DataFrame([changed], labels.schema), task_ids, form)
    assert str(error.value) == message + "{field} {value!r} in {round} and {stage}".format(**changed)
