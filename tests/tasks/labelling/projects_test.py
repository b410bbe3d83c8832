"""What labelling projects of all forms share: which tasks they take, where a tool is."""

from pathlib import Path

import polars as pl
import pytest

from pipeline import sample, warehouse
from pipeline.errors import BadInput
from pipeline.label import quality
from pipeline.tasks.labelling import projects, release
from pipeline.tasks.record import runs

DAY = sample.DAY


def select(*items: str) -> int:
    """Give comments to the project `tries`."""
    rows = [{"item_id": item, "title": "t", "content": "c", "text": item} for item in items]
    tasks = quality.build_tasks(pl.DataFrame(rows)).with_columns(source=pl.lit("news"), thread_id="item_id")
    return projects.select("tries", DAY, tasks.rename({"item_id": "comment_id"}), {}, "cli", runs.start())


def test_tasks_keep_their_ids_and_what_was_withdrawn_stays_out(tables: Path) -> None:
    """Selected again tasks keep their random ids, others are added; one taken out on request does not come back."""
    assert select("a", "b") == 2
    before = projects.read_tasks("tries")
    assert select("a", "b", "c") == 3
    assert projects.read_tasks("tries").join(before, on=["task_id", "row_id"], how="semi").height == 2
    release.withdraw([before["row_id"][0]])
    assert select("a", "b", "c") == 2
    assert before["task_id"][0] not in projects.read_tasks("tries")["task_id"]
    run = warehouse.scan("runs", pl.col("step") == "select").collect().row(0, named=True)
    assert (run["source"], run["origin"], run["kept_count"]) == ("tries", "label:tries", 2)


@pytest.mark.parametrize("name", ["", "../x", "A", "a-b", "x" * 80])
def test_a_name_that_could_be_a_path_is_refused(name: str) -> None:
    """A project's name becomes that of a folder."""
    with pytest.raises(BadInput, match="is no name"):
        _ = projects.Project(name, quality.FORM).folder


def test_the_environments_token_goes_to_its_own_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """An address from a connection never gets the token of the environment."""
    monkeypatch.setenv("UNDERTONE_STUDIO_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("UNDERTONE_STUDIO_KEY", "secret")
    assert projects.find_studio() == projects.Studio("http://127.0.0.1:1", "secret")
    assert projects.find_studio("http://127.0.0.1:2") == projects.Studio("http://127.0.0.1:2", "")
