"""Fuzz the adapters, importers and parsers: `make fuzz`, a million inputs and a little more, then the hostile files.

    python tests/fuzz/run.py [--inputs N] [--seed S] [--only NAME] [--from N]

Each target runs in a process of its own with limits on memory and time; one that dies is a finding, and another goes
on after it. An input follows from the seed, the target's name and its number, so a finding is seen again by
`--only "<target>" --from <number> --inputs 1`. Exits with 1 if there is one.
"""

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
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

import psutil

os.environ.setdefault("POLARS_MAX_THREADS", "1")
sys.path[:0] = [str(Path(__file__).resolve().parents[2])]

from pipeline.errors import UndertoneError  # noqa: E402
from pipeline.tasks.daily.bounded_child import limit_memory  # noqa: E402
from tests.fuzz import corpus  # noqa: E402
from tests.fuzz.targets import TARGETS  # noqa: E402

LONGEST = 10.0  # CPU seconds of one input
MEMORY = 1_000_000_000  # bytes of a worker that are resident
POLL_SECONDS = 0.05


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
    """Raise TooLong in whatever takes more CPU time."""

    def stop(*_: Any) -> None:
        raise TooLong(f"took longer than {seconds:g} CPU seconds")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def try_input(name: str, number: int, seed: int, folder: Path) -> str | Finding:
    """One input; what it came to: `read`, the class of one of our errors, or a finding."""
    rng = random.Random(f"{seed} {name} {number}")
    try:
        with within(LONGEST), warnings.catch_warnings(action="ignore"):
            TARGETS[name].try_one(rng, folder)
    except UndertoneError as error:
        return type(error).__name__
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001  # a panic of a library in Rust is no Exception
        frames = traceback.extract_tb(error.__traceback__)
        ours = [frame for frame in frames if "/pipeline/" in frame.filename] or frames
        where = f"{'/'.join(Path(ours[-1].filename).parts[-2:])}:{ours[-1].lineno}"
        return Finding(name, number, f"{type(error).__name__}: {error}"[:300], where)
    return "read"


def fuzz(name: str, count: int, seed: int, folder: Path, first: int = 0) -> Iterator[str | Finding]:
    """What each of `count` inputs of a target comes to, in this process."""
    target_folder = folder / name.replace(" ", "-")
    target_folder.mkdir(exist_ok=True)
    for number in range(first, first + count):
        yield try_input(name, number, seed, target_folder)


def work(name: str, count: int, seed: int, folder: Path, first: int) -> None:
    """`fuzz`, with a line of JSON on standard output for each input; for a process of its own."""
    out = os.dup(1)
    os.dup2(2, 1)  # what libraries print
    limit_memory(MEMORY)
    for outcome in fuzz(name, count, seed, folder, first):
        os.write(out, (json.dumps(outcome) + "\n").encode())


class Totals(NamedTuple):
    """Outcomes with their counts, the first finding of each kind, and bytes of the largest worker."""

    outcomes: Counter[str]
    findings: dict[str, Finding]
    peak: int

    def add(self, outcome: str | Finding) -> None:
        """Count an outcome."""
        self.outcomes["finding" if isinstance(outcome, Finding) else outcome] += 1
        if isinstance(outcome, Finding):
            self.findings.setdefault(f"{outcome.where} {outcome.what.partition(':')[0]}", outcome)


def fuzz_in_workers(name: str, count: int, seed: int, folder: Path, first: int = 0) -> Totals:
    """`fuzz` in limited processes, one after the other: the next goes on behind the input that ended the last."""
    totals = Totals(Counter(), {}, 0)
    while (number := first + totals.outcomes.total()) < first + count:
        command = [sys.executable, __file__, "--work", "--only", name, "--seed", str(seed), "--from", str(number)]
        command += ["--inputs", str(first + count - number), "--folder", str(folder)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as worker:
            peak, reason = _follow(worker, totals)
        totals = totals._replace(peak=max(totals.peak, peak))
        number = first + totals.outcomes.total()
        if number < first + count:
            totals.add(Finding(name, number, reason or f"the worker ended with {worker.returncode}", "worker"))
    return totals


def _follow(worker: "subprocess.Popen[bytes]", totals: Totals) -> tuple[int, str]:
    """Count a worker's outcomes until it ends; the memory it took at most, and why it was ended, if it was."""
    assert worker.stdout is not None
    os.set_blocking(worker.stdout.fileno(), False)
    process, partial_line, peak, cpu_before = psutil.Process(worker.pid), b"", 0, 0.0
    while True:
        with contextlib.suppress(BlockingIOError):
            if not (data := os.read(worker.stdout.fileno(), 1 << 16)):
                return peak, ""
            *lines, partial_line = (partial_line + data).split(b"\n")
            for line in lines:
                outcome = json.loads(line)
                totals.add(outcome if isinstance(outcome, str) else Finding(*outcome))
            cpu_before = -1.0
        with contextlib.suppress(psutil.Error):
            times, resident = process.cpu_times(), process.memory_info().rss
            peak = max(peak, resident)
            cpu_before = times.user + times.system if cpu_before < 0 else cpu_before
            is_long = times.user + times.system - cpu_before > 3 * LONGEST
            if is_long or resident > MEMORY:
                worker.kill()
                return peak, f"took more than {3 * LONGEST:g} CPU seconds" if is_long else "took more than 1 GB"
        time.sleep(POLL_SECONDS)


def main() -> int:
    """Run the targets one after the other, then the hostile files, and print what they came to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, help="in all; by default the sum of the targets' shares")
    parser.add_argument("--seed", type=int, default=20261122)
    parser.add_argument("--only", choices=[*TARGETS, "hostile files"], help="this target alone")
    parser.add_argument("--from", type=int, default=0, dest="first", help="number of the first input")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(options.only, options.inputs, options.seed, options.folder, options.first)
        return 0
    names = [name for name in TARGETS if options.only in (None, name)]
    findings = _fuzz_targets(names, options.inputs, options.seed, options.first) if names else 0
    if options.only in (None, "hostile files"):
        outcomes = corpus.run([*corpus.cases()])
        print(corpus.table(outcomes))
        findings += sum(outcome.verdict not in corpus.FINE for outcome in outcomes)
    return 1 if findings else 0


def _fuzz_targets(names: list[str], inputs: int | None, seed: int, first: int) -> int:
    shares = sum(TARGETS[name].share for name in names)
    every, started_at = Totals(Counter(), {}, 0), time.monotonic()
    print(f"{'target':<28} {'inputs':>9} {'seconds':>8} {'MB':>5}  outcomes")
    memory = Path("/dev/shm")  # noqa: S108  # a file is read at once and never again
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        for name in names:
            count = -(-TARGETS[name].share * (inputs or shares) // shares)
            timer = time.monotonic()
            totals = fuzz_in_workers(name, count, seed, Path(folder), first)
            every = Totals(
                every.outcomes + totals.outcomes, every.findings | totals.findings, max(every.peak, totals.peak)
            )
            summary = ", ".join(f"{outcome} {n:,}" for outcome, n in totals.outcomes.most_common())
            seconds = time.monotonic() - timer
            print(f"{name:<28} {count:>9,} {seconds:>8.1f} {totals.peak // 1_000_000:>5}  {summary}", flush=True)
    for finding in every.findings.values():
        print(f"FINDING {finding.target} --from {finding.number}: {finding.what} at {finding.where}")
    print(f"{every.outcomes.total():,} inputs in {time.monotonic() - started_at:.0f} s, {len(every.findings)} findings, "
          f"largest {every.peak // 1_000_000} MB")  # fmt: skip
    return len(every.findings)


if __name__ == "__main__":
    sys.exit(main())
