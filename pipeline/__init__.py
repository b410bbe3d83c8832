"""Undertone measures what text means but does not say."""

from typing import Any


def __getattr__(name: str) -> Any:
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("undertone")
    except PackageNotFoundError:  # run from a checkout that was never installed
        return "0+unknown"
