"""Files and folders that are complete or not there."""

from pathlib import Path

import pytest

from pipeline.io.atomic import create_folder, replace_file, write_text
from pipeline.io.hashes import hash_file


def fill(path: Path, text: str) -> None:
    """Write a file, or one in a folder, and then fail where the text says so."""
    (path / "text" if path.is_dir() else path).write_text(text)
    if text == "fail":
        raise OSError("disk full")


def test_a_file_is_replaced_at_the_end(tmp_path: Path) -> None:
    """Folders are made, the draft has the file's ending, and the old content stays until the new one is complete."""
    path = tmp_path / "a" / "page.html"
    write_text(path, "old\n")
    with replace_file(path) as draft:
        draft.write_text("new")
        assert (draft.parent, draft.suffix, draft.name[:7]) == (path.parent, ".html", ".draft-")
        assert path.read_text() == "old\n"
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o600
    assert [*path.parent.iterdir()] == [path]


def test_an_error_leaves_what_was_there(tmp_path: Path) -> None:
    """A file is as it was before, a folder is absent, and no draft stays."""
    path = tmp_path / "file"
    write_text(path, "old")
    with pytest.raises(OSError, match="disk full"), replace_file(path) as draft:
        fill(draft, "fail")
    with pytest.raises(OSError, match="disk full"), create_folder(tmp_path / "folder", may_exist=True) as draft:
        fill(draft, "fail")
    assert [*tmp_path.iterdir()] == [path]
    assert path.read_text() == "old"


@pytest.mark.parametrize("may_exist", [True, False])
def test_a_folder_that_another_process_made_first(tmp_path: Path, may_exist: bool) -> None:
    """Its content stays, which is an error unless it may; one that is empty is replaced."""
    folder = tmp_path / "folder"
    folder.mkdir()
    with create_folder(folder) as draft:
        fill(draft, "first")
    if may_exist:
        with create_folder(folder, may_exist=True) as draft:
            fill(draft, "second")
    else:
        with pytest.raises(OSError, match="not empty"), create_folder(folder) as draft:
            fill(draft, "second")
    assert (folder / "text").read_text() == "first"
    assert [*tmp_path.iterdir()] == [folder]


def test_a_file_is_named_by_its_content(tmp_path: Path) -> None:
    """SHA-256 of "abc" (FIPS 180-2, appendix B.1)."""
    write_text(tmp_path / "abc", "abc")
    assert hash_file(tmp_path / "abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
