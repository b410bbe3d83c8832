"""A transaction tried anew when another writer was faster: what Airflow's retries do, for commands and within tasks."""

from collections.abc import Callable
from typing import TypeVar

import tenacity

from pipeline.errors import Retry

T = TypeVar("T")


def again(work: Callable[[], T]) -> T:
    """Do a transaction; after `Retry` up to seven times more, at random moments that lie further and further apart."""
    wait = tenacity.wait_random_exponential(multiplier=0.2, max=5)
    for attempt in tenacity.Retrying(
        retry=tenacity.retry_if_exception_type(Retry), stop=tenacity.stop_after_attempt(8), wait=wait, reraise=True
    ):
        with attempt:
            return work()
    raise AssertionError("tenacity ends by return or raise")
