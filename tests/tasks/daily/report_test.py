"""The report as a task, whose page is written whole or not at all; and the page of health."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from pipeline import sample, settings, warehouse
from pipeline.errors import BadInput, Missing
from pipeline.slices import parse_day
from pipeline.tables import empty
from pipeline.tasks.daily import report, score
from pipeline.tasks.impscore import references, scoring
from tests.support.pages import tables as read_tables
from tests.support.rows.filled import filled

DAY, NEXT = sample.DAY, "2026-11-20"


def read_page(day: str = DAY) -> str:
    """The page of a day, written now."""
    return Path(report.write(day)).read_text(encoding="utf-8")


def test_page_of_the_shipped_model(scored: object) -> None:
    """The shipped model's facts are of its folder; the page is private and the same again; others have none."""
    shipped = scoring.load_model(None)
    assert shipped.model_id not in warehouse.scan("models").collect()["model_id"]
    html = read_page()
    path = settings.reports() / f"{DAY}.html"
    assert (report.locate_page(DAY), path.stat().st_mode & 0o777) == (path, 0o600)
    assert read_page() == html
    assert sorted(p.name for p in path.parent.iterdir()) == [path.name, f"index-{DAY}.html", "index.html"]
    assert f"model:{shipped.model_id[:12]}" in html
    assert html.count('<p class="warn">') == 2
    assert "The model is weak here (Kendall&#39;s tau on graded groups en 0.56, zh 0.51, expected 0.6)" in html
    assert "The table models has no row" not in html
    heads = shipped.config["heads"]
    for fact in (shipped.model_id, shipped.config["data_hash"], *(heads[lang]["encoder_revision"] for lang in heads)):
        assert fact in html
    assert "the model ships with Undertone" in html
    assert "undertone-sample" not in html  # a warning for models trained on the sample to try things out
    rows = warehouse.scan("scores").collect().with_columns(model_id=pl.lit("e" * 64))
    warehouse.overwrite("scores", warehouse.make_slice(day=DAY), rows)
    html = read_page()
    assert "The table models has no row for this model" in html
    assert "the model ships with Undertone" not in html


def test_extremes(scored: object) -> None:
    """The most implicit come from the top down, the least from the bottom up, ten each, with percentile and words."""
    most, least = report.select_extremes(DAY)
    rows = warehouse.scan("scores").collect()["value"].sort(descending=True).to_list()
    assert most["implicitness"].to_list() == rows[:10]
    assert least["implicitness"].to_list() == rows[:-11:-1]
    assert report.select_extremes(None, 3)[0].equals(most.head(3))
    assert report.select_extremes(NEXT)[0].height == 0
    reference = references.load_reference(None)
    assert reference
    assert most["percentile"].to_list() == [
        reference.read(*pair)[0] for pair in most["implicitness", "lang"].iter_rows()
    ]
    assert most["words"].null_count() == 10
    score.run(DAY, explained=1)
    most = report.select_extremes(DAY, 1)[0]
    assert "".join(part["word"] for part in most["words"][0]) == most["text"][0].replace(" ", "")


def test_day_without_scores(scored: object) -> None:
    """A day nobody scored is Missing, a path is no day; a check that does not hold is named with its first rows."""
    remedy = f"run `undertone score implicitness --day {NEXT}`"
    with pytest.raises(Missing, match=f"no comment of {NEXT} has a score; {remedy}"):
        report.write(NEXT)
    with pytest.raises(BadInput, match="not a day"):
        report.write("../../etc/passwd")
    assert not settings.reports().exists()
    for name in warehouse.list_checks():
        report.check(name, DAY)
    warehouse.overwrite("comments", warehouse.make_slice(source="weibo", day=DAY), empty("comments"))
    with pytest.raises(BadInput, match=r"check scores_have_comments does not hold; first rows: .*weibo"):
        report.check("scores_have_comments", DAY)


def test_the_sample_s_steps_are_told(scored: Path) -> None:
    """Collecting, cutting and scoring the sample have a row each with seconds; nothing is missing."""
    steps = report.build_health(DAY)
    chain = steps.filter(steps["step"].is_in(["collect", "tokenize", "score"]))
    assert sorted(chain["step"]) == ["collect", "score", "tokenize"]
    assert chain["kept_count"].to_list()[0] == 301  # comments of the sample
    assert chain["seconds"].null_count() == 0
    assert "missing" not in steps["status"]
    for days in (0, 800_000):  # more than the calendar has
        with pytest.raises(BadInput, match=rf"expected 1 to 739,\d+, found {days:,}"):
            report.build_health(DAY, days)


def test_days_after_the_last_are_missing(imported: Path) -> None:
    """When nothing is collected any more, each later day that is over says so, however many days are looked at."""
    last = parse_day(DAY)
    silent = [last + timedelta(days=n) for n in (1, 2, 3)]
    steps = report.build_health(silent[-1].isoformat(), 4).filter(step="collect", status="missing")
    over = [day for day in silent if day <= datetime.now(UTC).date() - timedelta(days=2)]
    assert steps["day"].to_list() == over
    assert set(steps["why"]) == ({"nothing collected"} if over else set())
    much_later = report.build_health("2026-11-21", 1)
    assert much_later["day"].to_list() == ([parse_day("2026-11-21")] if len(over) > 1 else [])


def test_rows_of_all_imports_of_a_day_add_up(tables: Path) -> None:
    """The last day of a source has the rows of all its origins."""
    rows = [{"origin": str(n), "read_count": n, "kept_count": n, "dropped_count": 0} for n in (3, 4)]
    warehouse.overwrite("runs", warehouse.make_slice(day=DAY), filled("runs", *rows))
    html = Path(report.write_health(DAY)).read_text(encoding="utf-8")
    assert read_tables(html)["Sources"] == [["weibo", DAY, "0", "7"]]
