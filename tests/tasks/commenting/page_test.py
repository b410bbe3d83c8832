"""The page about article commenting, out of the tables."""

from pathlib import Path

from pipeline import sample
from pipeline.tasks.commenting import correlations, generated, grades, overlap, page

DAY = sample.DAY


def test_the_page_shows_what_there_is(sample_corpus: Path) -> None:
    """Before anything is graded the page has the corpus; afterwards people, metrics and made-up raters named so."""
    early = Path(page.write(DAY)).read_text(encoding="utf-8")
    assert "Corpus statistics" in early
    assert "Correlation of metrics with human grades" not in early
    generated.generate(DAY, generated.HUMAN)
    for kind in grades.KINDS:
        grades.assign_tasks(kind, DAY, "simulated")
        grades.collect(kind, tool="simulated")
    overlap.measure(DAY)
    correlations.write_correlations(DAY)
    late = Path(page.write(DAY)).read_text(encoding="utf-8")
    assert "Correlation of metrics with human grades" in late
    assert "simulated raters" not in early
    assert "simulated raters graded 168 comments" in late
