"""Undertone measures what text means but does not say."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("undertone")
except PackageNotFoundError:  # run from a checkout that was never installed
    __version__ = "0+unknown"
