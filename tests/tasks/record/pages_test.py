"""Pages and their indexes: what links to what, with two writers at once, after a failure and after a removal."""

import re
from pathlib import Path

import pytest

from pipeline import settings
from pipeline.report.sections import render_template
from pipeline.tasks.record import pages
from tests.support.pages import check_offline, loads

DAY, NEXT = "2026-11-19", "2026-11-20"
TEXT = render_template("index.html", title="</body>", rows=[])


def links(name: str = "index.html") -> list[str]:
    """Where a written page leads to."""
    html = (settings.reports() / name).read_text(encoding="utf-8")
    check_offline(re.sub('href="[^"]*"', "", html))
    return loads(html)


def test_each_page_leads_to_its_indexes_and_they_to_it(home: Path) -> None:
    """Days stand from the newest, pages in a fixed order, those of no day last; every page links both indexes."""
    for name in (f"ndd-{DAY}", f"health-{NEXT}", f"{NEXT}", f"{DAY}", f"health-{DAY}", "labels-csd", f"new-{DAY}"):
        pages.write_page(f"{name}.html", TEXT)
    of_day = [f"{DAY}.html", f"health-{DAY}.html", f"ndd-{DAY}.html", f"new-{DAY}.html"]
    of_next = [f"{NEXT}.html", f"health-{NEXT}.html"]
    assert links() == [f"index-{NEXT}.html", *of_next, f"index-{DAY}.html", *of_day, "labels-csd.html"]
    assert links(f"index-{DAY}.html") == [*of_day, "index.html"]
    assert links(f"ndd-{DAY}.html") == [f"index-{DAY}.html", "index.html"]
    assert links("labels-csd.html") == ["index.html"]
    assert all((settings.reports() / name).is_file() for name in links())


def test_a_page_that_another_task_writes_meanwhile_is_listed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that comes between the listing and the writing of an index is in the index."""
    write, others = pages.write_text, [f"{NEXT}.html", f"ndd-{DAY}.html"]

    def write_beside(path: Path, text: str) -> None:
        if path.name.startswith("index") and others:
            write(path.with_name(others.pop()), TEXT)
        write(path, text)

    monkeypatch.setattr(pages, "write_text", write_beside)
    pages.write_page(f"{DAY}.html", TEXT)
    assert links() == [f"index-{NEXT}.html", f"{NEXT}.html", f"index-{DAY}.html", f"{DAY}.html", f"ndd-{DAY}.html"]
    assert links(f"index-{DAY}.html") == [f"{DAY}.html", f"ndd-{DAY}.html", "index.html"]


def test_an_index_follows_failures_upgrades_and_removals(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A day of an earlier version gets an index, the try after a failure writes it, a day without pages has none."""
    (home / "reports").mkdir(parents=True)
    (home / "reports" / f"{DAY}.html").write_text(TEXT)
    with monkeypatch.context() as patch:
        patch.setattr(pages, "render_template", None)
        with pytest.raises(TypeError):
            pages.write_page(f"{NEXT}.html", TEXT)
    pages.write_page(f"{NEXT}.html", TEXT)
    assert links() == [f"index-{NEXT}.html", f"{NEXT}.html", f"index-{DAY}.html", f"{DAY}.html"]
    assert links(f"index-{DAY}.html") == [f"{DAY}.html", "index.html"]
    (home / "reports" / f"{DAY}.html").unlink()
    pages.write_indexes([f"{DAY}.html"])
    assert links() == [f"index-{NEXT}.html", f"{NEXT}.html"]
    assert not pages.locate_index(DAY).exists()
