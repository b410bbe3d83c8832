"""Hostile files, imported as a user would: one of them; `make fuzz` takes all, `values_test.py` the worst in-process."""

from pathlib import Path

from tests.fuzz import corpus


def test_a_hostile_file_is_read_right_or_refused(tmp_path: Path) -> None:
    """What took all memory, minutes or the process ends as a right import or one error, within 20 s and 1 GB."""
    name = ".xlsx a far cell in a sheet under another name"
    outcome = corpus.import_as_user(name, corpus.cases()[name], tmp_path)
    assert outcome.verdict in corpus.FINE, outcome


def test_there_are_many() -> None:
    """The findings of the audit, R5 and R6, and at least sixty more, of each kind of file."""
    kinds = {case.kind for case in corpus.cases().values()}
    assert len(corpus.cases()) >= 70
    assert kinds >= {"text", "csv", "tsv", "jsonl", "json", "parquet", "xlsx", "sqlite", "zip"}
