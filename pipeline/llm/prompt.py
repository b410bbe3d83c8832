"""Prompts: texts in files, one a task and language, each with a version that is stored with its answers.

They are in our own words (IMP-16), the Chinese ones an extension (X-07); a folder of your own goes before them.
"""

import hashlib
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

from pipeline.errors import BadInput

FOLDER = Path(__file__).parent / "prompts"
_NAME = re.compile(r"[a-z0-9_]+")


class Prompt(NamedTuple):
    """A prompt's name, its text, and its version: the first 12 digits of the text's SHA-256."""

    name: str
    text: str
    version: str


@cache
def load(name: str, folder: Path | None = None, source: str | None = None) -> Prompt:
    """Load a prompt by the name of its file without `.md`, once a process.

    Files of `folder` take precedence; among them that of the source, such as `toxigen.md`, whose texts are asked about.
    BadInput: there is no such folder or prompt, or its file is empty, not UTF-8 or cannot be read.
    """
    folders = [FOLDER] if folder is None else [_check_folder(folder), FOLDER]
    paths = [candidate / f"{name}.md" for candidate in folders if _NAME.fullmatch(name)]
    if folder and source:
        paths.insert(0, folder / f"{source}.md")
    for path in paths:
        if text := _read(path):
            return Prompt(name, text, hashlib.sha256(text.encode()).hexdigest()[:12])
    names = sorted({path.stem for candidate in folders for path in candidate.glob("*.md")})
    raise BadInput(f"no prompt {name!r}; there are {', '.join(names)}")


def check_sources(folder: Path, prompts: Iterable[tuple[str, str]]) -> None:
    """Check that a folder has a file for each pair of a source and its prompt, of the name of the one or the other."""
    _check_folder(folder)
    missing = [source for source, name in prompts if not any((folder / f"{n}.md").exists() for n in (source, name))]
    if missing:
        files = ", ".join(f"{source}.md" for source in missing)
        expected = "a file with the prompt of each source that is asked about"
        raise BadInput(f"{str(folder)!r}: no {files}; expected {expected}")


def _check_folder(folder: Path) -> Path:
    """Check that the folder exists: with a misspelt one the shipped wording would be sent without notice."""
    try:
        is_folder = folder.is_dir()
    except OSError as why:
        raise BadInput(f"{str(folder)!r}: cannot be read: {why.strerror}") from why
    if not is_folder:
        raise BadInput(f"{str(folder)!r}: there is no such folder of prompts; check --prompts or UNDERTONE_LLM_PROMPTS")
    return folder


def _read(path: Path) -> str | None:
    try:
        text = path.read_text(encoding="utf-8-sig").strip()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as why:
        raise BadInput(f"{str(path)!r}: not UTF-8") from why
    except OSError as why:
        raise BadInput(f"{str(path)!r}: cannot be read: {why.strerror}") from why
    if not text:
        raise BadInput(f"{str(path)!r}: the prompt is empty")
    return text


def build_messages(text: str, name: str, folder: Path | None = None, source: str | None = None) -> list[dict[str, str]]:
    """Build the prompt as the system's message and the text as the user's: a message of its own, never spliced in."""
    return [{"role": "system", "content": load(name, folder, source).text}, {"role": "user", "content": text}]
