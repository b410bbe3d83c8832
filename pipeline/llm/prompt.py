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
        BadInput: there is no such prompt, or its file is empty or not UTF-8.
    """
    folders = [f for f in (folder, FOLDER) if f is not None]
    paths = [f / f"{name}.md" for f in folders if _NAME.fullmatch(name)]
    path = next((p for p in paths if p.is_file()), None)
    if path is None:
        known = sorted({p.stem for f in folders for p in f.glob("*.md")})
        raise BadInput(f"no prompt {name!r}; there are {', '.join(known)}")
    try:
        text = path.read_text(encoding="utf-8-sig").strip()
    except UnicodeDecodeError as why:
        raise BadInput(f"{path}: not UTF-8") from why
    if not text:
        raise BadInput(f"{path}: the prompt is empty")
    return Prompt(name, text, hashlib.sha256(text.encode()).hexdigest()[:12])


def messages(text: str, name: str, folder: Path | None = None) -> list[dict[str, str]]:
    """The prompt as the system's message and the text as the user's: a message of its own, never spliced in."""
    return [{"role": "system", "content": load(name, folder).text}, {"role": "user", "content": text}]
