"""The environment of all pages: whatever is not markup of our own is escaped, and its unseen characters are shown."""

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from pipeline.io.visible import visible


def templates() -> Environment:
    """The templates of this folder."""
    return Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        finalize=_shown,
    )  # fmt: skip


def _shown(value: Any) -> Any:
    return visible(value) if type(value) is str else value  # markup is a kind of str, and ours
