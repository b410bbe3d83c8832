"""Which files of a folder are data, and what else lies there and why it is left out."""

import re
from pathlib import Path
from typing import NamedTuple

from pipeline.errors import BadInput
from pipeline.explanations import is_undecodable
from pipeline.io.rows import ENDINGS
from pipeline.reasons import find_fault

_NOTE = re.compile(r"(?i)(^|[_.-])(notes?|read_?me|licen[cs]e|copying|notice|authors|changelog|citation)([_.-]|$)")
_MOST_LISTED = 20


class Inputs(NamedTuple):
    """Files to read, and what is left out of their folders: a name and why."""

    files: list[Path]
    left_out: list[str]


def list_inputs(folder: Path, *, may_be_empty: bool = False) -> Inputs:
    """The data files of a folder; what lies in folders inside it is not looked at.

    A text file that is named as a note (NOTE.txt, README.txt, license.txt) is data only where nothing else is. A folder
    without data files is BadInput; one that is empty, or holds hidden files alone, may be allowed.
    """
    try:
        entries = sorted(folder.iterdir())
    except OSError as why:
        raise BadInput(f"{folder}: cannot be read: {why.strerror}") from why
    if undecodable := next((path for path in entries if is_undecodable(path.name)), None):
        raise BadInput(f"{folder}: {undecodable.name!a}: this name is not UTF-8; rename the file or folder")
    reasons = {path: _find_reason(path) for path in entries}
    files = [path for path, reason in reasons.items() if not reason]
    notes = {path for path in files if path.suffix.lower() == ".txt" and _NOTE.search(path.stem)}
    if len(notes) < len(files):
        reasons |= dict.fromkeys(notes, "a note beside the data; import it by its own name if it is data")
        files = [path for path in files if path not in notes]
    left_out = [f"{path.name}: {reason}" for path, reason in reasons.items() if reason]
    has_misplaced = any(reason not in (None, "hidden") for reason in reasons.values())
    if not files and (has_misplaced or not may_be_empty):
        note = f"; left out {'; '.join(left_out[:_MOST_LISTED])}" if left_out else ""
        raise BadInput(f"{folder}: the folder holds no file to import; expected {', '.join(ENDINGS)}{note}")
    return Inputs(files, left_out)


def _find_reason(path: Path) -> str | None:
    faults = {
        "hidden": path.name.startswith("."),
        "a folder; import it by its own name": path.is_dir(),
        "a link to nothing": path.is_symlink() and not path.exists(),
        "no regular file": not path.is_file(),
        "no format that can be read": path.suffix.lower() not in ENDINGS,
    }
    return find_fault(**faults)
