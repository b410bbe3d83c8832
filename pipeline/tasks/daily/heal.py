"""Heal: find days whose comments lack tokens or scores, and make what is missing."""

from pipeline import warehouse
from pipeline.progress import iterate
from pipeline.tasks.daily import score, tokenize


def find_holes() -> dict[str, list[str]]:
    """Find the days that lack `tokens` and the days that lack `scores`, each sorted."""
    days: dict[str, list[str]] = {"tokens": [], "scores": []}
    for table, day in warehouse.query("select missing, day from holes order by day").iter_rows():
        days[table].append(day.isoformat())
    return days


def heal(holes: dict[str, list[str]]) -> dict[str, int]:
    """Make what is missing, in this process; return the count of days by table."""
    for day in iterate(holes["tokens"], "days without tokens"):
        tokenize.run(day)
    for day in iterate(holes["scores"], "days without scores"):
        score.run(day)
    return {table: len(days) for table, days in holes.items()}
