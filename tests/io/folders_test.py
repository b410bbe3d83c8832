"""Which files of a folder are data, and what is said of the others."""

import os
from pathlib import Path

import pytest

from pipeline.errors import BadInput
from pipeline.io.rows import list_inputs


def test_what_is_left_out_is_named(tmp_path: Path) -> None:
    """Notes, folders, links to nothing, pipes, hidden files and unknown endings are left out, each with its reason."""
    folder = tmp_path / "dir.csv"
    (folder / "sub").mkdir(parents=True)
    for name in ("a.csv", "comments.txt", "NOTE.txt", "mrc_README.txt", ".hidden.csv", "b.docx"):
        (folder / name).write_text("text\nx\n", encoding="utf-8")
    (folder / "dangling.csv").symlink_to("nowhere.csv")
    (folder / "linked.csv").symlink_to(folder / "a.csv")
    os.mkfifo(folder / "pipe.csv")
    inputs = list_inputs(folder)
    assert [path.name for path in inputs.files] == ["a.csv", "comments.txt", "linked.csv"]
    assert [line.partition(";")[0] for line in inputs.left_out] == [
        ".hidden.csv: hidden", "NOTE.txt: a note beside the data", "b.docx: no format that can be read",
        "dangling.csv: a link to nothing", "mrc_README.txt: a note beside the data", "pipe.csv: no regular file",
        "sub: a folder",
    ]  # fmt: skip


def test_a_text_that_is_all_there_is(tmp_path: Path) -> None:
    """A file named as a note is data where nothing else is; a name that is not UTF-8 is refused, escaped."""
    (tmp_path / "notes.txt").write_text("one\n", encoding="utf-8")
    assert [path.name for path in list_inputs(tmp_path).files] == ["notes.txt"]
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.csv")).touch()
    with pytest.raises(BadInput, match=r"'caf\\udce9\.csv': this name is not UTF-8; rename"):
        list_inputs(tmp_path)


def test_a_folder_without_data(tmp_path: Path) -> None:
    """A folder without files but hidden ones is refused unless it may be empty; one that holds no data always is."""
    with pytest.raises(BadInput, match=r"the folder holds no file to import; expected \.csv, "):
        list_inputs(tmp_path)
    (tmp_path / ".gitkeep").touch()
    assert list_inputs(tmp_path, may_be_empty=True) == ([], [".gitkeep: hidden"])
    (tmp_path / "a.docx").write_bytes(b"x")
    with pytest.raises(BadInput, match=r"no file to import.*left out \.gitkeep: hidden; a\.docx: no format"):
        list_inputs(tmp_path, may_be_empty=True)
