"""Transactions: each function here reads a slice, calls the library and writes a slice.

DAG files and the command line call the same functions, so that a day has the same rows either way. Only this layer and
the commands touch the warehouse and the settings.
"""

from functools import partial

from pipeline import settings
from pipeline.models import pinned

pinned.cache = partial(settings.scratch, "hashes")
