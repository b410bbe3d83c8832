"""Heal: days whose comments lack tokens or scores, found in the tables and made good."""

from pipeline import warehouse
from pipeline.tasks.daily import score, tokenize


def find_holes() -> dict[str, list[str]]:
    """Days lacking `tokens` and days lacking `scores`, each sorted."""
    rows = warehouse.query("select missing, day from holes order by day").rows()
    days: dict[str, list[str]] = {"tokens": [], "scores": []}
    for table, day in rows:
        days[table].append(day.isoformat())
    return days


def heal(missing_days: dict[str, list[str]]) -> dict[str, int]:
    """Make what is missing, in this process; return the days healed by table."""
    for day in missing_days["tokens"]:
        tokenize.run(day)
    for day in missing_days["scores"]:
        score.run(day)
    return {name: len(days) for name, days in missing_days.items()}
