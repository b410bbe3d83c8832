"""Undertone measures what text means but does not say.

The public functions are those of `pipeline.api`, imported when they are first used:
`pipeline.implicitness(["What a day."])`. Everything else is private by convention.
"""

from importlib import import_module
from typing import Any

__all__ = [
    "agreement", "build_reference", "compress", "distance", "distil", "explain", "implicitness", "interpret", "judge",
    "ndd", "overlap", "query", "rank", "scan", "tokenize",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import PackageNotFoundError, version

        try:
            return version("undertone-text")
        except PackageNotFoundError:  # run from a checkout that was never installed
            return "0+unknown"
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("pipeline.api"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})
