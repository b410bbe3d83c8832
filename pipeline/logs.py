"""Log lines that machines read: what happened, and fields beside it.

A field is a count, a name of ours or a slice; words of a comment or an id of a person never are.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pipeline import settings

if TYPE_CHECKING:
    from structlog.typing import Processor


ANSWERS = logging.getLogger("pipeline.answers")
_ANSWERED: set[str] = set()


def log_answer(key: str, text: str) -> None:
    """Log which model answers and why, once for each key; commands always print it."""
    if key not in _ANSWERED:
        _ANSWERED.add(key)
        ANSWERS.info("%s", text)


@contextmanager
def hide_answers() -> Iterator[None]:
    """Log no line of `log_answer`: models are compared."""
    ANSWERS.disabled = True
    try:
        yield
    finally:
        ANSWERS.disabled = False


def show_answers() -> None:
    """Show the lines of `log_answer`, from the first one."""
    _ANSWERED.clear()
    ANSWERS.setLevel(logging.INFO)


def log_event(log: logging.Logger, text: str, **fields: Any) -> None:
    """Log a line for people, with fields for machines; run, dag and task are added where Airflow runs the task.

    Fields travel as context variables of structlog: Airflow's formatter drops `extra` and merges these.
    """
    import structlog

    filled = {name: value for name, value in {**settings.airflow_task(), **fields}.items() if value is not None}
    with structlog.contextvars.bound_contextvars(**filled):
        log.info("%s", text)


def create_formatter() -> logging.Formatter:
    """A formatter of JSON lines: timestamp, level, logger, event, and the fields of `log_event`."""
    import structlog

    before: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    after: list[Processor] = [
        structlog.stdlib.ProcessorFormatter.remove_processors_meta,
        structlog.processors.format_exc_info,
        structlog.processors.JSONRenderer(ensure_ascii=False, default=str),
    ]
    return structlog.stdlib.ProcessorFormatter(processors=after, foreign_pre_chain=before)
