"""Pages below the reports folder."""

import os
import tempfile
from pathlib import Path

from pipeline import settings
from pipeline.private import make_folder


def write_page(name: str, text: str) -> str:
    """Write a page below the reports folder, complete or not at all; return its path."""
    folder = make_folder(settings.reports())
    handle, draft = tempfile.mkstemp(prefix=".draft-", suffix=".html", dir=folder)
    path = folder / name
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(draft).replace(path)
    finally:
        Path(draft).unlink(missing_ok=True)  # still there only if something failed
    return str(path)
