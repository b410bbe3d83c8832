"""Runs of the pipeline, calm or disturbed by kills, duplicates and ghosts, and what their tables say."""

import json
import random
import signal
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from pipeline import warehouse
from pipeline.tables import PROVENANCE, TABLES
from tests.faults.attempts import Attempt, Call, Outcome

LIMIT = 300.0  # seconds after which an attempt is taken to hang
TRIES = 4  # as the DAGs': a first one and three retries
OWN = {*PROVENANCE, "row_id"}  # the last is random, so that nobody can tell who wrote a comment
RECEIPTS = {"erasures", "model_erasures"}  # their ids are random, and a kill takes the count of one store with it
UNSEEN = {"tests.faults.whole:forget", "tests.faults.whole:rebuild"}
"""Tasks beside which no table is read: an erasure removes the states that a reader is held to, and a rebuild begins
without a catalog."""

Flow = Callable[[Callable[..., Any]], None]
Slices = dict[tuple[str, str], int]
"""(table, values of its partition columns) -> a hash of the rows."""


def rows_of(name: str, snapshot: int | None = None) -> pl.DataFrame:
    """The rows of a table without what differs from run to run, in an order of their own."""
    frame = warehouse.scan(name, snapshot_id=snapshot).collect().drop(OWN, strict=False)
    return frame.sort([c for c, kind in frame.schema.items() if not kind.is_nested()])


def every_row() -> dict[str, pl.DataFrame]:
    """The rows of every table."""
    return {name: rows_of(name) for name in TABLES if name not in RECEIPTS}


def slices(name: str, snapshot: int | None = None) -> Slices:
    """What a reader sees of a table: a hash of each partition that has rows."""
    frame, lines = rows_of(name, snapshot), defaultdict(list)
    keys = frame.select(pl.concat_str(pl.col(TABLES[name].partitions).cast(pl.String), separator="/")).to_series()
    for key, line in zip(keys, frame.write_ndjson().splitlines(), strict=True):
        lines[name, key].append(line)
    return {key: hash(tuple(rows)) for key, rows in lines.items()}


class Fault(NamedTuple):
    """What happens to one call: its kind, and after which share of its calm time, or after which commit."""

    kind: str
    share: float


@dataclass
class Run:
    """One run of the pipeline in a home of its own.

    Attributes:
        home: UNDERTONE_HOME.
        env: of every attempt.
        faults: by the number of the call.
        calm: the undisturbed run, whose times and states faults and readers go by; None for that run itself.
    """

    home: Path
    env: Mapping[str, str]
    faults: Mapping[int, Sequence[Fault]] = field(default_factory=dict)
    calm: "Run | None" = None
    took: list[tuple[str, float]] = field(default_factory=list)
    commits: list[int] = field(default_factory=list)  # how many each call made, of the calm run
    states: dict[tuple[str, str], set[int]] = field(default_factory=lambda: defaultdict(set))
    emptied: set[tuple[str, str]] = field(default_factory=set)  # slices that lost all their rows, of the calm run
    filled: set[tuple[str, str]] = field(default_factory=set)  # slices that have rows
    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    killed_asking: int = 0
    reads: int = 0
    half: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        log = self.home.parent / f"{self.home.name}.log"
        self.env = {"UNDERTONE_HOME": str(self.home), "FAULTS_LOG": str(log), "POLARS_MAX_THREADS": "2", **self.env}
        self.ledger = self.home.parent / f"{self.home.name}.commits"
        self.ledger.touch()
        if self.calm is None:
            self.env = {**self.env, "FAULTS_COMMITS": str(self.ledger)}
        self.dice = random.Random(0)

    def start(self, call: Call, **env: str) -> Attempt:
        """Start an attempt at a task."""
        return Attempt(call, {**self.env, **env})

    def list_published(self) -> list[tuple[str, int]]:
        """Table and snapshot of every commit of the calm run so far."""
        return [tuple(json.loads(line)) for line in self.ledger.read_text(encoding="utf-8").splitlines()]

    def do(self, task: str, *args: Any, **options: Any) -> Any:
        """Do a task, whatever happens to its attempts."""
        call = Call(task, args, options)
        number, timer, before = len(self.took), time.monotonic(), len(self.list_published())
        for fault in self.faults.get(number, ()):
            place = fault.share if fault.kind == "between" else fault.share * self._calm_time(number)
            getattr(self, f"_{fault.kind}")(call, place)
        outcome = self.retry(call)
        if task in UNSEEN:
            warehouse.close()  # this process still has the catalog open that was there before
        self.took.append((task, time.monotonic() - timer))
        self.commits.append(len(self.list_published()) - before)
        if self.calm is None:
            self._record_states(before)
        return outcome.value

    def _record_states(self, first: int) -> None:
        """Record what a reader sees after each of a call's commits, before an erasure removes some of these states."""
        for name, snapshot in self.list_published()[first:]:
            if snapshot is None or warehouse.load_table(name).snapshot_by_id(snapshot) is None:
                continue
            states = slices(name, snapshot)
            for key, state in states.items():
                self.states[key].add(state)
            self.emptied |= {key for key in self.filled if key[0] == name} - states.keys()
            self.filled |= states.keys()

    def _calm_time(self, number: int) -> float:
        assert self.calm is not None
        return self.calm.took[number][1]

    def retry(self, call: Call) -> Outcome:
        """Try a task as Airflow does, until it is done."""
        for _ in range(TRIES):
            attempt = self.start(call)
            self.watch(attempt, LIMIT)
            outcome = self.end(attempt)
            if outcome.word == "done":
                return outcome
            assert outcome.word == "Retry", f"{call.task}: {outcome}"
        raise AssertionError(f"{call.task}: {outcome}, {TRIES} times")

    def end(self, attempt: Attempt) -> Outcome:
        """How an attempt ended; one that does not end hangs."""
        assert attempt.wait(LIMIT), f"{attempt.task} hangs"
        return attempt.outcome()

    def watch(self, attempt: Attempt, seconds: float) -> None:
        """Read tables as long as an attempt works, for so many seconds at most; beside a long one less and less."""
        timer = now = time.monotonic()
        while not attempt.wait(max(0.0, min(0.2 + (now - timer) / 20, timer + seconds - now))):
            if (now := time.monotonic()) >= timer + seconds:
                return
            if self.calm is not None and attempt.task not in UNSEEN:
                self._look(self.dice.choice(self.list_tables()))
                now = time.monotonic()

    def list_tables(self) -> list[str]:
        """The tables that have rows in the end."""
        assert self.calm is not None
        return sorted({table for table, _ in self.calm.states} - RECEIPTS)

    def look(self, task: str) -> None:
        """Read all tables, unless the task removes states: a slice is as after some commit of the calm run."""
        for name in self.list_tables() if task not in UNSEEN else ():
            self._look(name)

    def _look(self, name: str) -> None:
        assert self.calm is not None
        self.reads += 1
        current = slices(name)
        for key, state in current.items():
            if state not in self.calm.states[key]:
                self.half.append(f"{key}: a state that the calm run never showed")
        lost = {key for key in self.filled if key[0] == name} - current.keys() - self.calm.emptied
        self.half += [f"{key}: no rows any more, which the calm run never showed" for key in sorted(lost)]
        self.filled |= current.keys()

    def _between(self, call: Call, commits: float) -> None:
        """An attempt dies right after one of its commits, before the next: where a half-done task would show."""
        outcome = self.end(self.start(call, FAULTS_DIES_AFTER=str(int(commits))))
        self.look(call.task)
        self.outcomes["kill between two commits", outcome.word] += 1

    def _kill(self, call: Call, seconds: float) -> None:
        """An attempt dies at some moment; where it had ended before that, another one dies twice as early."""
        for halved in range(TRIES):
            attempt = self.start(call)
            self.watch(attempt, seconds / 2**halved)
            was_at_work = attempt.signal(signal.SIGKILL)
            outcome = self.end(attempt)
            self.killed_asking += call.task.endswith(":ask") and outcome.word == "killed"
            self.outcomes["kill", outcome.word if was_at_work else "had ended"] += 1
            if was_at_work:
                self.look(call.task)
                return

    def _twice(self, call: Call, _: float) -> None:
        """Two attempts at once; one may lose a race, and is then tried again by itself."""
        attempts = [self.start(call) for _ in range(2)]
        self.watch(attempts[0], LIMIT)
        words = [self.end(attempt).word for attempt in attempts]
        assert set(words) <= {"done", "Retry"}, f"{call.task}: {words}"
        self.outcomes["twice", " + ".join(sorted(words))] += 1

    def _ghost(self, call: Call, seconds: float) -> None:
        """An attempt stands still, its retry does the task, and then it goes on to its end: nothing changes."""
        ghost = self.start(call)
        self.watch(ghost, seconds)
        is_still = ghost.signal(signal.SIGSTOP)
        retry = self.start(call)
        if not retry.wait(20):  # it waits for what the ghost holds: a lock of SQLite, a claim of the ledger
            ghost.signal(signal.SIGCONT)
        word = self.end(retry).word
        before = every_row() if word == "done" and is_still else None
        ghost.signal(signal.SIGCONT)
        ghost_word = self.end(ghost).word
        if before is not None:
            for name, frame in every_row().items():
                assert frame.equals(before[name]), f"{call.task}: its ghost changed {name}"
        self.outcomes["ghost", f"{ghost_word}, retry {word}" if is_still else "had ended"] += 1


def calm(home: Path, flow: Flow, env: Mapping[str, str]) -> Run:
    """The undisturbed run; it knows every state that a reader saw."""
    run = Run(home, env)
    flow(run.do)
    return run


def planned(seed: int, calm: Run, kinds: Mapping[str, int]) -> dict[int, list[Fault]]:
    """Faults at random calls, which commit unless it is a kill; `between` comes after each commit before any twice."""
    dice, faults = random.Random(seed), defaultdict(list)
    calls, writing = range(len(calm.took)), [call for call, count in enumerate(calm.commits) if count]
    commits = [(call, n + 1) for call, count in enumerate(calm.commits) for n in range(count)]
    for kind, count in kinds.items():
        if kind == "between":
            rounds = [dice.sample(commits, len(commits)) for _ in range(-(-count // len(commits)))]
            for call, number in [commit for commits_ in rounds for commit in commits_][:count]:
                faults[call].append(Fault(kind, number))
        else:
            for _ in range(count):
                call = dice.choice(calls if kind == "kill" else writing)
                faults[call].append(Fault(kind, dice.random()))
    return faults
