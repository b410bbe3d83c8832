"""Checksums: a changed byte in any file is found and named; files without one get it; the records stay few."""

import random
from collections.abc import Iterator
from contextlib import nullcontext
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import Result
from typer.testing import CliRunner

from pipeline import warehouse
from pipeline.cli import app
from pipeline.errors import BadInput
from pipeline.tasks.upkeep import count_rows
from pipeline.warehouse import catalog, checksums
from pipeline.warehouse.files import get_path
from pipeline.warehouse.upkeep import check, maintain
from pipeline.warehouse.upkeep.limits import KEEP, Limits
from tests.support.rows.filled import DAY, NEXT, filled
from tests.support.rows.held import age, data_files, list_files, texts, write

EAGER = Limits(keep=timedelta(0), grace=timedelta(seconds=-5), quiet=timedelta(0), files=1, weeks=1)


def table_files() -> list[Path]:
    """Data, manifests, lists and metadata of the comments."""
    return sorted(path for path in list_files() if "checksums" not in path.parts)


def damage() -> list[str]:
    """What the deep check of the comments finds."""
    checked = check.check("comments", footers=True, weeks=1)
    return [*checked.problems, *checked.other_problems]


def check_deep() -> Result:
    """Run the command."""
    return CliRunner().invoke(app, ["check", "--deep"])


def flips(count: int) -> Iterator[tuple[Path, int]]:
    """Files, one after the other, each with a random bit changed and set back after."""
    dice = random.Random(16)
    for number in range(count):
        path = table_files()[number % len(table_files())]
        content = path.read_bytes()
        bit = dice.randrange(len(content) * 8)
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        yield path, bit
        path.write_bytes(content)


def test_each_changed_bit_is_found_and_named(tables: Path) -> None:
    """In data, manifests, lists and metadata, whatever the bit means to a reader."""
    write(*(f"text number {number} of many" for number in range(300)))
    write("other", source="zhihu", day=NEXT)
    assert check.check("comments", footers=True).problems == []
    maintain.add_checksums("comments", [*check.check("comments", weeks=1).unrecorded])
    assert damage() == []
    missed = [(path, bit) for path, bit in flips(24) if not any(str(path) in line for line in damage())]
    assert missed == []


def test_damage_names_the_slice_and_writing_it_again_mends_it(tables: Path) -> None:
    """A changed byte stops upkeep with partition and file until the slice is written again; the old state is named."""
    write("one")
    write("two", source="zhihu", day=NEXT)
    (path,) = [path for path in data_files("comments") if pl.read_parquet(path)["text"].to_list() == ["two"]]
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 4
    path.write_bytes(content)
    with pytest.raises(BadInput, match=rf"source=zhihu/day={NEXT}, {path}: .*again: source=zhihu day={NEXT}"):
        warehouse.maintain("comments", EAGER)
    result = check_deep()
    assert result.exit_code == 1
    assert str(path) in result.stdout
    path.unlink()
    with pytest.raises(BadInput, match="comments: a data file cannot be read"):
        count_rows()
    path.write_bytes(content)
    write("two", source="zhihu", day=NEXT)
    assert "in a replaced state" in check_deep().stdout
    warehouse.maintain("comments", EAGER)
    assert not path.exists()
    result = check_deep()
    assert (result.exit_code, result.stdout) == (0, "")


def test_broken_metadata_is_named(tables: Path) -> None:
    """Metadata that is no JSON, and then a catalog that is no database, are damaged and named."""
    write("one")
    warehouse.overwrite("tokens", {"day": DAY}, filled("tokens", {}))
    path = Path(get_path(warehouse.load_table("comments").metadata_location))
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(BadInput, match=f"{path} is damaged"):
        warehouse.scan("comments")
    assert maintain.list_written() == ["comments", "tokens"]
    with pytest.raises(BadInput, match=f"metadata, {path}: .*recover-catalog"):
        warehouse.maintain("comments")
    (tables / "catalog.db").write_bytes(b"no database" * 999)
    result = check_deep()
    assert result.exit_code == 1
    assert "catalog.db is damaged" in result.stdout


def test_a_state_replaced_during_the_check_is_no_damage(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check looks again where the metadata file that it began with was replaced and removed meanwhile."""
    write("one")
    old, registered = warehouse.load_table("comments").metadata_location, catalog.list_registered
    answers = [registered()]
    write("two")
    Path(get_path(old)).unlink()
    monkeypatch.setattr(catalog, "list_registered", lambda: answers.pop() if answers else registered())
    assert check.check("comments", weeks=1).problems == []


def test_files_without_checksums_get_them_once(tables: Path) -> None:
    """Those of an earlier version: upkeep computes them, counts them, and finds them the next time."""
    write("one")
    write("two")
    for path in tables.rglob("checksums/*"):
        path.unlink()
    message = check_deep().stderr
    assert "no checksum yet: " in message
    assert "as it was written" not in message
    assert warehouse.maintain("comments", EAGER._replace(keep=KEEP))["checksums_added"] > 4
    assert warehouse.maintain("comments", EAGER._replace(keep=KEEP))["checksums_added"] == 0
    assert damage() == []


def test_a_writer_killed_after_its_commit_leaves_checksums_to_upkeep(
    tables: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows are published; their files get checksums by the next upkeep. A full disk then is no error."""

    def fail(*_: Any) -> None:
        raise error

    maintain.maintain("comments")
    for error in (KeyboardInterrupt(), OSError(28, "No space left on device")):
        with monkeypatch.context() as patch:
            patch.setattr(checksums, "record", fail)
            with nullcontext() if isinstance(error, OSError) else pytest.raises(KeyboardInterrupt):
                write(repr(error))
        assert texts() == [repr(error)]
        assert warehouse.maintain("comments")["checksums_added"] >= 4
        assert damage() == []


def test_all_files_are_verified_in_four_weeks(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each week a share of the data files is read, each file once in four weeks; metadata every time."""
    for number in range(8):
        write("text", source=f"site{number}")
    read: list[str] = []
    compute = checksums.compute
    monkeypatch.setattr(checksums, "compute", lambda system, path: read.append(path) or compute(system, path))
    shares = []
    for week in range(4):

        class Clock(datetime):
            @classmethod
            def now(cls, tz: Any = None) -> Any:
                return datetime(2026, 11, 23, tzinfo=tz) + timedelta(weeks=week)  # noqa: B023

        monkeypatch.setattr(check, "datetime", Clock)
        read.clear()
        check.check("comments", weeks=4)
        shares.append({path for path in read if path.endswith(".parquet")})
        assert len(read) > len(shares[-1])
    assert sum(map(len, shares)) == len(set().union(*shares)) == 8


def test_records_are_merged_and_forget_what_is_gone(tables: Path) -> None:
    """A record a commit becomes one; of removed files it holds metadata alone; a damaged one is named and kept."""
    for text in ("one", "two", "three"):
        write(text)
    folder = tables / "warehouse" / "undertone" / "comments" / "checksums"
    assert len(list(folder.glob("*.json"))) == 3
    (folder / "killed.json.0.part").write_bytes(b"{")
    age(tables)
    warehouse.maintain("comments", EAGER)
    merged = sorted(folder.glob("*.json"))
    assert len(merged) <= 2  # and that of the expiry
    recorded = checksums.read(warehouse.load_table("comments").location()).checksums
    removed = set(recorded) - {str(path) for path in table_files()}
    assert all(path.endswith(".metadata.json") for path in removed)  # `lineage` needs them
    assert damage() == []
    merged[0].write_bytes(merged[0].read_bytes().replace(b"a", b"b", 1))
    assert any(line.startswith(f"checksums, {merged[0]}") for line in damage())
