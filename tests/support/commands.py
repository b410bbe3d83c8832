"""Commands of `undertone` as a person runs them, in a process of its own, and imports without one."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

_RUN = """
import json, sys
from pipeline.cli import main
for words in json.loads(sys.argv[1]):
    sys.argv[1:] = words
    try:
        main()
    except SystemExit as error:
        if error.code:
            raise
"""


def run(
    *commands: Sequence[object], umask: int = -1, python: str | Path = sys.executable
) -> "subprocess.CompletedProcess[str]":
    """Run commands one after another in one process, whose start takes longer than they do; a failure ends it."""
    words = json.dumps([[*map(str, command)] for command in commands])
    return subprocess.run([python, "-c", _RUN, words], capture_output=True, text=True, check=False, umask=umask)


def import_here(patch: pytest.MonkeyPatch) -> None:
    """Import files in this process; the child that guards it takes seconds, and `bounded_test.py` is about that."""
    from pipeline.tasks.daily import collect

    patch.setattr(
        collect, "run_bounded", lambda _, options, __, report: collect.import_files(**options, on_progress=report)
    )
