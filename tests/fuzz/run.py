"""Fuzz the adapters, importers and parsers: `make fuzz`, a million inputs and a little more.

    python tests/fuzz/run.py [--inputs N] [--seed S] [--only NAME] [--from N]

An input follows from the seed, the target's name and its number, so a finding is seen again by
`--only "<target>" --from <number> --inputs 1`. Exits with 1 if there is one.
"""

import argparse
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("POLARS_MAX_THREADS", "1")
sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parents[2])]

from fuzz.targets import TARGETS, One  # noqa: E402
from pipeline.errors import UndertoneError  # noqa: E402

LONGEST = 20.0  # seconds of one input: a busy machine is slow, but what takes this long does not end
MEMORY = 6 << 30  # bytes of address space beyond what is taken at the start


class Finding(NamedTuple):
    """What was raised that is none of our errors, and by which input."""

    target: str
    number: int
    what: str
    where: str


class TooLong(BaseException):
    """An input that takes longer than `LONGEST`."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raise TooLong in whatever runs longer."""

    def stop(*_: Any) -> None:
        raise TooLong(f"took longer than {seconds:g} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def tried(one: One, name: str, number: int, seed: int, outcomes: Counter[str]) -> Finding | None:
    """One input; what it came to is counted."""
    rng = random.Random(f"{seed} {name} {number}")
    try:
        with within(LONGEST), warnings.catch_warnings(action="ignore"):
            one(rng)
    except UndertoneError as why:
        outcomes[type(why).__name__] += 1
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as why:  # noqa: BLE001  # a panic of a library in Rust is no Exception
        outcomes["finding"] += 1
        frames = traceback.extract_tb(why.__traceback__)
        ours = [frame for frame in frames if "/pipeline/" in frame.filename] or frames
        where = f"{'/'.join(Path(ours[-1].filename).parts[-2:])}:{ours[-1].lineno}"
        return Finding(name, number, f"{type(why).__name__}: {why}"[:300], where)
    else:
        outcomes["read"] += 1
    return None


def fuzz(name: str, count: int, seed: int, folder: Path, first: int = 0) -> tuple[Counter[str], list[Finding]]:
    """`count` inputs of a target; how often which outcome came, and the first finding of each kind."""
    own = folder / name.replace(" ", "-")
    own.mkdir()
    one, outcomes, found = TARGETS[name].ready(own), Counter[str](), dict[str, Finding]()
    for number in range(first, first + count):
        if finding := tried(one, name, number, seed, outcomes):
            found.setdefault(f"{finding.where} {finding.what.partition(':')[0]}", finding)
    return outcomes, list(found.values())


def main() -> int:
    """Run the targets one after the other, and tell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, help="in all; by default the sum of the targets' shares")
    parser.add_argument("--seed", type=int, default=20261122)
    parser.add_argument("--only", choices=list(TARGETS), help="this target alone")
    parser.add_argument("--from", type=int, default=0, dest="first", help="number of the first input")
    told = parser.parse_args()
    names = [told.only] if told.only else list(TARGETS)
    shares = sum(TARGETS[name].share for name in names)
    resource.setrlimit(resource.RLIMIT_AS, (max(_taken() + MEMORY, MEMORY), resource.RLIM_INFINITY))
    total, findings, began = Counter[str](), [], time.monotonic()
    print(f"{'target':<28} {'inputs':>9} {'seconds':>8}  outcomes")
    memory = Path("/dev/shm")  # noqa: S108  # a file is read at once and never again
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        for name in names:
            count = -(-TARGETS[name].share * (told.inputs or shares) // shares)
            start = time.monotonic()
            outcomes, found = fuzz(name, count, told.seed, Path(folder), told.first)
            total += outcomes
            findings += found
            said = ", ".join(f"{what} {n}" for what, n in outcomes.most_common())
            print(f"{name:<28} {count:>9,} {time.monotonic() - start:>8.1f}  {said}", flush=True)
    for finding in findings:
        print(f"FINDING {finding.target} --from {finding.number}: {finding.what} at {finding.where}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"{total.total():,} inputs in {time.monotonic() - began:.0f} s, {len(findings)} findings, peak {peak} MB")
    return 1 if findings else 0


def _taken() -> int:
    """Bytes of address space that are taken now."""
    pages = Path("/proc/self/statm").read_text().split()[0] if Path("/proc/self/statm").exists() else "0"
    return int(pages) * resource.getpagesize()


if __name__ == "__main__":
    sys.exit(main())
