"""Pages below the reports folder, and two kinds of index: one of all days, and one of the pages of each day."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import quote

from pipeline import settings
from pipeline.io.atomic import write_text
from pipeline.private import make_folder
from pipeline.report.sections import order_names, render_template

INDEX = "index.html"
_NAME = re.compile(r"(?:(?P<kind>.+)-)?(?P<day>\d{4}-\d\d-\d\d)\.html")
_TITLES = {
    "": "Comments of the day", "health": "Health of the pipeline", "studies": "Models and studies (ImpScore)",
    "cloze": "Cloze items and readers (ReCAM)", "commenting": "Commenting corpus and metrics",
    "ndd": "Neighbouring Distribution Divergence",
}  # fmt: skip
Link = tuple[str, str]  # address and text


def write_page(name: str, text: str) -> str:
    """Write a page below the reports folder, complete or not at all, and the indexes after it; return its path."""
    path = make_folder(settings.reports()) / name
    write_text(path, _add_footer(text, name))
    write_indexes([name])
    return str(path)


def locate_index(day: str = "") -> Path:
    """Return the path of the index of a day, or of all days, written or not."""
    return settings.reports() / (f"index-{day}.html" if day else INDEX)


def write_indexes(changed: Iterable[str]) -> None:
    """Write the index of all days and, of the days of the changed pages and where it is absent, that of the day.

    Other tasks write pages meanwhile. It ends when the folder has the pages that were listed before the last write, so
    the task that writes an index last has seen all pages. A day without pages has no index.
    """
    days, previous_names = _list_days(changed), None
    while previous_names != (names := _list_pages()):
        dated = _list_days(names)
        for day in dated:
            if day in days or not locate_index(day).is_file():
                _write_index(locate_index(day).name, f"Pages of {day}", [[link] for link in _list_links(names, day)])
        for day in {*days} - {*dated}:
            locate_index(day).unlink(missing_ok=True)
        rows = [[(locate_index(day).name, day), *_list_links(names, day)] for day in reversed(dated)]
        undated = [[(name, name.removesuffix(".html"))] for name in names if not _NAME.fullmatch(name)]
        _write_index(INDEX, "All days", [*rows, *undated])
        previous_names = names


def _list_pages() -> list[str]:
    names = (path.name for path in settings.reports().glob("*.html"))
    return sorted(name for name in names if not name.startswith((".", "index-")) and name != INDEX)


def _list_days(names: Iterable[str]) -> list[str]:
    return sorted({match["day"] for name in names if (match := _NAME.fullmatch(name))})


def _list_links(names: Sequence[str], day: str) -> list[Link]:
    kinds = {match["kind"] or "": name for name in names if (match := _NAME.fullmatch(name)) and match["day"] == day}
    return [(kinds[kind], _TITLES.get(kind, kind)) for kind in order_names(kinds, _TITLES)]


def _write_index(name: str, title: str, rows: Sequence[Sequence[Link]]) -> None:
    links = [[(quote(address), text) for address, text in row] for row in rows]
    write_text(settings.reports() / name, _add_footer(render_template("index.html", title=title, rows=links), name))


def _add_footer(text: str, name: str) -> str:
    """Add the links to the indexes at the end of a page; the index of all days has none."""
    links = [(locate_index(day).name, f"All pages of {day}") for day in _list_days([name])] + [(INDEX, "All days")]
    anchors = " · ".join(f'<a href="{address}">{title}</a>' for address, title in links if name not in (address, INDEX))
    body, tag, rest = text.rpartition("</body>")
    return f'{body}<footer class="pages"><nav aria-label="Indexes">{anchors}</nav></footer>\n{tag}{rest}'
