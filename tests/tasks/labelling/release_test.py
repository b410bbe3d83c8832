"""What a labelling project gives: its page, the card that is approved, the published data set, and taking out again."""

import hashlib
from functools import partial
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from pipeline import sample, settings, warehouse
from pipeline.errors import BadInput, Missing
from pipeline.label import schema
from pipeline.metrics.labelling import agreement
from pipeline.tasks.labelling import csd, release
from tests.support.rows.labelled import label_all, read_table

DAY = sample.DAY


def test_a_release_leads_back_to_nobody(simulated: str) -> None:
    """Published rows hold no id of the platform, say that raters were simulated, and are the same in every file."""
    folder = release.release(simulated, "first", licence="CC-BY-4.0", day=DAY)
    rows = warehouse.scan("annotated_comments").sort("row_id").collect()
    assert 0 < rows.height <= 60
    assert_frame_equal(pl.read_parquet(folder / "data.parquet"), rows)
    assert_frame_equal(pl.read_ndjson(folder / "data.jsonl", schema=rows.schema), rows)
    ids = csd.read_tasks(simulated).select("thread_id", "comment_id", "task_id")
    files = "".join((folder / name).read_text(encoding="utf-8") for name in ("data.csv", "data.jsonl", "README.md"))
    assert not [name for row in ids.iter_rows() for name in row if len(name) > 4 and name in files]
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert "simulated raters" in card
    assert "CC-BY-4.0" in card
    assert release.release(simulated, "first", licence="CC-BY-4.0", day=DAY) == folder
    assert_frame_equal(warehouse.scan("annotated_comments").sort("row_id").collect(), rows)


def test_values_of_a_release_are_those_that_stand(simulated: str) -> None:
    """Every published value is the annotation's; unsure subtext is neither true nor false."""
    rows = release.build_rows(simulated, "r")
    task_of = dict(csd.read_tasks(simulated).select("row_id", "task_id").iter_rows())
    values = {(t, f): v for t, f, v in read_table("annotations").select("task_id", "field", "value").iter_rows()}
    for row in rows.iter_rows(named=True):
        assert {f: row[f] for f in schema.FIELDS} == {f: values[task_of[row["row_id"]], f] for f in schema.FIELDS}
        assert row["is_subtext"] == {"1": True, "-1": False}.get(row["subtext"])


@pytest.mark.parametrize(("subtext", "span"), [("1", (1, 4)), ("0", (1, 4)), ("-1", (None, None))])
def test_notes_are_published_and_rare_figures_folded(
    project: str, subtext: str, span: tuple[int | None, int | None]
) -> None:
    """A figure of speech named fewer times than the least is `other` alone; from it on it is published (CSD-12).

    A span stays where there is subtext, or perhaps some (CSD-04).
    """
    for rater in ("a", "b", "c"):
        csd.add_labels(project, label_all(project, rater, {"other": "1", "subtext": subtext}))
    label = label_all(project, "a").filter(task_id=csd.read_tasks(project)["task_id"][0], field="other")
    for field, value in (("rhetoric", "反问"), ("span", "1-4")):
        csd.add_labels(project, label.with_columns(field=pl.lit(field), value=pl.lit(value)))
    assert release.build_rows(project, "r", min_count=2)["rhetoric"].to_list() == [None] * 3
    notes = release.build_rows(project, "r", min_count=1).drop_nulls("rhetoric")
    assert notes.select("rhetoric", "span_start", "span_end").rows() == [("反问", *span)]


def test_nothing_open_is_released(project: str) -> None:
    """While labels wait a release is refused, says how many fields, and writes nothing."""
    csd.add_labels(project, label_all(project, "a"))
    with pytest.raises(BadInput, match="raters or the adjudicator settle 24 fields first"):
        release.release(project)
    assert not settings.releases().exists()
    assert read_table("annotated_comments").height == 0


def test_the_page_of_a_project(simulated: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page tells the numbers of agreement and that raters were simulated."""
    monkeypatch.setattr(agreement, "study", partial(agreement.study, items=100))  # takes seconds
    path = Path(release.write_page(simulated, DAY))
    assert path == release.get_page_path(simulated)
    html = path.read_text(encoding="utf-8")
    assert "simulated raters" in html
    subtext = csd.measure_agreement(csd.decide(simulated)).filter(field="subtext").row(0, named=True)
    for name in ("fleiss", "tae"):
        assert f"{subtext[name]:.3f}" in html
    assert csd.read_tasks(simulated)["comment_id"][0] not in html


def test_what_was_not_approved_is_not_published(simulated: str) -> None:
    """The card approved is that of the release; when one label changed since, publishing is refused."""
    card = release.render_card(simulated, DAY)
    folder = release.release(simulated, day=DAY, approved=card)
    assert (folder / "README.md").read_text(encoding="utf-8") == card
    assert hashlib.sha256((folder / "data.jsonl").read_bytes()).hexdigest() in card
    rows = read_table("annotated_comments")
    unanimous = read_table("annotations").filter(field="emotion", state="adopted").row(0, named=True)
    other = next(value for value in schema.FIELDS["emotion"].values if value != unanimous["value"])
    labels = read_table("labels").filter(task_id=unanimous["task_id"], field="emotion")
    csd.add_labels(simulated, labels.with_columns(value=pl.lit(other)))
    csd.write_annotations(simulated)
    with pytest.raises(BadInput, match="labels changed after they were approved"):
        release.release(simulated, day=DAY, approved=card)
    assert_frame_equal(read_table("annotated_comments"), rows)


def test_a_comment_is_taken_out_of_everything(simulated: str, home: Path) -> None:
    """A withdrawn row leaves all tables and files, byte for byte, is counted, and is not selected again."""
    folder = release.release(simulated, "first", day=DAY)
    csd.select("other", DAY, csd.Rules(limit=1))
    with pytest.raises(BadInput, match="comments of another project; choose another name"):
        release.release("other", "first")
    rows = read_table("annotated_comments")
    row_id = rows["row_id"][0]
    task_id = read_table("label_tasks").filter(row_id=row_id)["task_id"].item()
    assert release.withdraw([row_id]).rows() == [(simulated, 1, "first")]
    assert_frame_equal(read_table("annotated_comments"), rows.filter(pl.col("row_id") != row_id))
    for name in ("label_tasks", "labels", "annotations"):
        assert read_table(name).filter(task_id=task_id).is_empty()
        assert read_table(name).height > 0
    for file in ("data.parquet", "data.jsonl", "data.csv"):
        assert row_id.encode() not in (folder / file).read_bytes()
    assert pl.read_parquet(folder / "data.parquet").height == rows.height - 1
    lake = [path for path in (home / "warehouse").rglob("*") if path.is_file()]
    assert not [path for path in lake if row_id.encode() in path.read_bytes()]
    data, card = ((settings.releases() / "first" / name).read_bytes() for name in ("data.jsonl", "README.md"))
    assert f"`{hashlib.sha256(data).hexdigest()}`".encode() in card
    assert card.split(b"\n\n")[1].startswith(f"{len(data.splitlines())} comments".encode())
    withdrawn = read_table("dropped").filter(step="withdraw")
    assert withdrawn.select("reason", "row_key").rows() == [("withdrawn", task_id)]
    before = read_table("label_tasks")
    csd.select(simulated, DAY, csd.Rules(limit=12))
    assert_frame_equal(read_table("label_tasks"), before)
    assert "withdrawn" in read_table("dropped").filter(step="select")["reason"].to_list()


def test_taking_out_goes_on_where_it_was_killed(simulated: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed between two tables and run again, the comment is gone from all of them and counted once."""
    folder = release.release(simulated, "first", day=DAY)
    row_ids = read_table("annotated_comments")["row_id"].to_list()[:2]
    erase, calls = warehouse.erase, []

    def dying(name: str, *rest: object) -> int:
        calls.append(name)
        if len(calls) > 1:
            raise KeyboardInterrupt
        return erase(name, *rest)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(warehouse, "erase", dying)
        with pytest.raises(KeyboardInterrupt):
            release.withdraw(row_ids)
    assert release.withdraw(row_ids)["row_count"].to_list() == [2]
    assert not set(row_ids) & set(read_table("label_tasks")["row_id"])
    assert not set(row_ids) & set(pl.read_parquet(folder / "data.parquet")["row_id"])
    assert not [row_id for row_id in row_ids if row_id in (folder / "data.csv").read_text(encoding="utf-8")]
    assert read_table("dropped").filter(step="withdraw").height == 2
    with pytest.raises(Missing, match="no labelled comment has the row_id"):
        release.withdraw(row_ids)
