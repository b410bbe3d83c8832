"""Heal: days whose comments lack tokens or scores, found in the tables and made good."""

from pipeline import warehouse
from pipeline.tasks.daily import score, tokenize


def holes() -> dict[str, list[str]]:
    """Days lacking `tokens` and days lacking `scores`, each sorted."""
    rows = warehouse.query("select missing, day from holes order by day").rows()
    found: dict[str, list[str]] = {"tokens": [], "scores": []}
    for missing, day in rows:
        found[missing].append(day.isoformat())
    return found


def heal(found: dict[str, list[str]]) -> dict[str, int]:
    """Make what is missing, in this process; return the days healed by table."""
    for day in found["tokens"]:
        tokenize.run(day)
    for day in found["scores"]:
        score.run(day)
    return {name: len(days) for name, days in found.items()}
