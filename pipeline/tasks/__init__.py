"""Transactions, called by DAGs and commands: each function here reads a slice, calls the library and writes a slice."""

from functools import partial

from pipeline import settings
from pipeline.models import pinned

pinned.cache = partial(settings.scratch, "hashes")
