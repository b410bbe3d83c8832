"""Prompts: texts in files, one a task and language, each with the version that its answers are kept under.

Our own words, not the papers' (IMP-16); those in Chinese are an extension, since ImpScore is English only (X-07).
Whoever reproduces a paper types its exact wording into files of the same names in a folder of their own.
"""

import hashlib
import re
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
def load(name: str, folder: Path | None = None) -> Prompt:
    """A prompt by its name, which is that of its file without `.md`; read once a process.

    Args:
        name: such as explicit_en.
        folder: where files that take precedence over the shipped ones lie.

    Raises:
        BadInput: there is no such folder or prompt, or its file is empty, not UTF-8 or cannot be read.
    """
    folders = [FOLDER] if folder is None else [_existing(folder), FOLDER]
    texts = (_read(f / f"{name}.md") for f in folders if _NAME.fullmatch(name))
    text = next((found for found in texts if found is not None), None)
    if text is None:
        known = sorted({p.stem for f in folders for p in f.glob("*.md")})
        raise BadInput(f"no prompt {name!r}; there are {', '.join(known)}")
    return Prompt(name, text, hashlib.sha256(text.encode()).hexdigest()[:12])


def _existing(folder: Path) -> Path:
    """The folder, which has to be one: with a misspelt one the shipped wording would be asked with, unnoticed."""
    try:
        is_one = folder.is_dir()
    except OSError as why:
        raise BadInput(f"{str(folder)!r}: cannot be read: {why.strerror}") from why
    if not is_one:
        raise BadInput(f"{str(folder)!r}: there is no such folder of prompts; see UNDERTONE_LLM_PROMPTS")
    return folder


def _read(path: Path) -> str | None:
    """The text of a prompt's file; none where there is no such file."""
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


def messages(text: str, name: str, folder: Path | None = None) -> list[dict[str, str]]:
    """The prompt as the system's message and the text as the user's: a message of its own, never spliced in."""
    return [{"role": "system", "content": load(name, folder).text}, {"role": "user", "content": text}]
