"""Pages below the reports folder."""

from pipeline import settings
from pipeline.io.atomic import write_text
from pipeline.private import make_folder


def write_page(name: str, text: str) -> str:
    """Write a page below the reports folder, complete or not at all; return its path."""
    path = make_folder(settings.reports()) / name
    write_text(path, text)
    return str(path)
