"""The server that forks attempts."""

import subprocess
import sys

from tests.faults.attempts import PRELOADED

CODE = f"""
import importlib, pathlib
for name in {PRELOADED!r}:
    importlib.import_module(name)
print(*(path.read_text().strip() for path in pathlib.Path("/proc/self/task").glob("*/comm")))
"""


def test_imports_start_no_threads_of_polars() -> None:
    """A fork after the imports would wait forever for threads that it does not have."""
    names = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True).stdout.split()
    assert "python" in names
    assert not [name for name in names if name.startswith("polars-") and name[7:].isdigit()]
