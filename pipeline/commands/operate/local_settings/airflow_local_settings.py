"""What Airflow's scheduler imports before it forks its tasks; it finds this by its name (`stack.environment`).

polars and pyarrow are not imported: they start threads, which are not there after a fork.
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
