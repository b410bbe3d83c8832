"""What Airflow's scheduler imports before it forks its tasks; it finds this by its name (`stack.environment`).

A task would spend a CPU second on it, one with torch five. polars and pyarrow are not among it: they start threads when
they are imported, which are not there after a fork. A file of this name on PYTHONPATH comes first.
"""

import contextlib
import importlib
import multiprocessing
import sys

__all__: list[str] = []  # Airflow takes every other name for a setting of its own

if sys.argv[1:2] == ["scheduler"] and multiprocessing.get_start_method() == "fork":
    for _name in ("pyiceberg.catalog.sql", "nltk", "sentence_transformers"):
        with contextlib.suppress(Exception):  # not installed, or broken: the task that needs it says so
            importlib.import_module(_name)
