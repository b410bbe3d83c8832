"""Tests of the SQL files."""

from pathlib import Path

SQL = Path(__file__).parents[2] / "sql"
