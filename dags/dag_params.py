"""Parameters of DAGs, as the form in the UI shows them."""

from collections.abc import Sequence
from typing import Any

from airflow.sdk import Param


def optional(kind: str, title: str, description: str, **schema: Any) -> Param:
    """Build a parameter that is empty by default."""
    return Param(None, type=["null", kind], title=title, description=description, **schema)


def number(default: float | None, title: str, description: str, minimum: float = 1, kind: str = "integer") -> Param:
    """Build a parameter with a number that has a lower limit."""
    return Param(default, type=kind, minimum=minimum, title=title, description=description)


def switch(default: bool, title: str, description: str) -> Param:
    """Build a parameter that is on or off."""
    return Param(default, type="boolean", title=title, description=description)


def choice(values: Sequence[str | None], title: str, description: str) -> Param:
    """Build a parameter with one of some values, by default the first."""
    return Param(values[0], enum=values, title=title, description=description)


_DAY = "UTC day, as YYYY-MM-DD. Empty: the partition key of the run, or yesterday."
DAY = optional("string", "Day", _DAY, format="date")
