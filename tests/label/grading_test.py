"""Grades of any form: the guidelines, and labels that are none of the form's."""

from typing import Any

import polars as pl
import pytest

from pipeline.errors import BadInput
from pipeline.label import compression, grading, label_files, quality
from pipeline.label.schema import Form


def test_guidelines_in_other_languages() -> None:
    """There are none, and no path is made of the name."""
    assert grading.read_guidelines("quality", "en") != grading.read_guidelines("quality", "zh")
    with pytest.raises(BadInput, match=r"guidelines are in zh or en, not '\.\./en'"):
        grading.read_guidelines("quality", "../en")


@pytest.mark.parametrize("form", [quality.FORM, compression.FORM])
@pytest.mark.parametrize("change", [{"value": "6"}, {"field": "subtext"}, {"round": 2}, {"stage": 2}])
def test_labels_of_another_form_are_told(form: Form, change: dict[str, Any]) -> None:
    """The message names task and rater, what the form asks, and what was said."""
    field = next(iter(form.fields))
    label = {"task_id": "t", "rater_id": "amy", "field": field, "value": "3", "round": 1, "stage": 1, "tool": "file"}
    task_ids = pl.Series(["t"])
    assert grading.pick_latest(pl.DataFrame([label], label_files.COLUMNS), task_ids, form)[0].height == 1
    changed = {**label, **change}
    grades = ", ".join(form.fields[field].values)
    told = f"task t, rater amy: expected {' or '.join(form.fields)} of {grades} in round 1 and stage 1, found "
    with pytest.raises(BadInput) as caught:
        grading.pick_latest(pl.DataFrame([changed], label_files.COLUMNS), task_ids, form)
    assert str(caught.value) == told + "{field} {value!r} in {round} and {stage}".format(**changed)
