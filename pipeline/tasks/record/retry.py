"""Retry a transaction that lost a race, in commands and within tasks; Airflow retries whole tasks."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import tenacity

from pipeline.errors import Retry

P = ParamSpec("P")
T = TypeVar("T")


def retry(work: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
    """Run a transaction; after `Retry` run it up to seven times more, with random, growing delays."""
    is_race, wait = tenacity.retry_if_exception_type(Retry), tenacity.wait_random_exponential(multiplier=0.2, max=5)
    attempts = tenacity.Retrying(retry=is_race, stop=tenacity.stop_after_attempt(8), wait=wait, reraise=True)
    return attempts(work, *args, **options)
