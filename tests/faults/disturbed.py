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
from tests.faults.attempts import Attempt, Outcome

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
    frame, found = rows_of(name, snapshot), defaultdict(list)
    keys = frame.select(pl.concat_str(pl.col(TABLES[name].partitions).cast(pl.String), separator="/")).to_series()
    for key, line in zip(keys, frame.write_ndjson().splitlines(), strict=True):
        found[name, key].append(line)
    return {key: hash(tuple(lines)) for key, lines in found.items()}


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
    gone: set[tuple[str, str]] = field(default_factory=set)  # slices that lost all their rows, of the calm run
    seen: set[tuple[str, str]] = field(default_factory=set)  # slices that have rows
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

    def start(self, task: str, args: tuple[Any, ...], given: Mapping[str, Any], **env: str) -> Attempt:
        """An attempt at a task."""
        return Attempt(task, args, given, {**self.env, **env})

    def published(self) -> list[tuple[str, int]]:
        """Table and snapshot of every commit of the calm run so far."""
        return [tuple(json.loads(line)) for line in self.ledger.read_text(encoding="utf-8").splitlines()]

    def do(self, task: str, *args: Any, **given: Any) -> Any:
        """Have a task done, whatever happens to its attempts."""
        number, began, before = len(self.took), time.monotonic(), len(self.published())
        for fault in self.faults.get(number, ()):
            if fault.kind == "between":
                self._between(task, args, given, int(fault.share))
            else:
                getattr(self, f"_{fault.kind}")(task, args, given, fault.share * self._calmly(number))
        done = self.at_last(task, args, given)
        if task in UNSEEN:
            warehouse.close()  # this process still has the catalog open that was there before
        self.took.append((task, time.monotonic() - began))
        self.commits.append(len(self.published()) - before)
        if self.calm is None:
            self._record_states(before)
        return done.value

    def _record_states(self, first: int) -> None:
        """Record what a reader sees after each of a call's commits, before an erasure removes some of these states."""
        for name, snapshot in self.published()[first:]:
            if snapshot is None or warehouse.table(name).snapshot_by_id(snapshot) is None:
                continue
            states = slices(name, snapshot)
            for key, state in states.items():
                self.states[key].add(state)
            self.gone |= {key for key in self.seen if key[0] == name} - states.keys()
            self.seen |= states.keys()

    def _calmly(self, number: int) -> float:
        assert self.calm is not None
        return self.calm.took[number][1]

    def _between(self, task: str, args: tuple[Any, ...], given: Mapping[str, Any], commits: int) -> None:
        """An attempt dies right after one of its commits, before the next: where a half-done task would show."""
        outcome = self.ended(self.start(task, args, given, FAULTS_DIES_AFTER=str(commits)))
        if task not in UNSEEN:
            self.look(*self.tables())
        self._told("kill between two commits", outcome.word)

    def at_last(self, task: str, args: tuple[Any, ...], given: Mapping[str, Any]) -> Outcome:
        """The task tried as Airflow does, until it is done."""
        for _ in range(TRIES):
            attempt = self.start(task, args, given)
            self.watch(attempt, LIMIT)
            outcome = self.ended(attempt)
            if outcome.word == "done":
                return outcome
            assert outcome.word == "Retry", f"{task}: {outcome}"
        raise AssertionError(f"{task}: {outcome}, {TRIES} times")

    def ended(self, attempt: Attempt) -> Outcome:
        """How an attempt ended; one that does not end hangs."""
        assert attempt.wait(LIMIT), f"{attempt.task} hangs"
        return attempt.outcome()

    def watch(self, attempt: Attempt, seconds: float) -> None:
        """Read tables as long as an attempt works, for so many seconds at most; beside a long one less and less."""
        began = now = time.monotonic()
        while not attempt.wait(max(0.0, min(0.2 + (now - began) / 20, began + seconds - now))):
            if (now := time.monotonic()) >= began + seconds:
                return
            if self.calm is not None and attempt.task not in UNSEEN:
                self.look()
                now = time.monotonic()

    def look(self, *names: str) -> None:
        """Read tables, any one if none is named: a slice is as after some commit of the calm run, and none is lost."""
        for name in names or [self.dice.choice(self.tables())]:
            self._look(name)

    def tables(self) -> list[str]:
        """The tables that have rows in the end."""
        assert self.calm is not None
        return sorted({table for table, _ in self.calm.states} - RECEIPTS)

    def _look(self, name: str) -> None:
        assert self.calm is not None
        self.reads += 1
        found = slices(name)
        for key, state in found.items():
            if state not in self.calm.states[key]:
                self.half.append(f"{key}: a state that the calm run never showed")
        lost = {key for key in self.seen if key[0] == name} - found.keys() - self.calm.gone
        self.half += [f"{key}: no rows any more, which the calm run never showed" for key in sorted(lost)]
        self.seen |= found.keys()

    def _kill(self, task: str, args: tuple[Any, ...], given: Mapping[str, Any], seconds: float) -> None:
        """An attempt dies at some moment; where it had ended before that, another one dies twice as early."""
        for halved in range(TRIES):
            attempt = self.start(task, args, given)
            self.watch(attempt, seconds / 2**halved)
            was_at_work = attempt.signal(signal.SIGKILL)
            outcome = self.ended(attempt)
            self.killed_asking += task.endswith(":ask") and outcome.word == "killed"
            self._told("kill", outcome.word if was_at_work else "had ended")
            if was_at_work:
                if task not in UNSEEN:
                    self.look(*self.tables())
                return

    def _twice(self, task: str, args: tuple[Any, ...], given: Mapping[str, Any], _: float) -> None:
        """Two attempts at once; one may lose a race, and is then tried again by itself."""
        attempts = [self.start(task, args, given) for _ in range(2)]
        self.watch(attempts[0], LIMIT)
        words = [self.ended(attempt).word for attempt in attempts]
        assert set(words) <= {"done", "Retry"}, f"{task}: {words}"
        self._told("twice", " + ".join(sorted(words)))

    def _ghost(self, task: str, args: tuple[Any, ...], given: Mapping[str, Any], seconds: float) -> None:
        """An attempt stands still, its retry does the task, and then it goes on to its end: nothing changes."""
        ghost = self.start(task, args, given)
        self.watch(ghost, seconds)
        stands = ghost.signal(signal.SIGSTOP)
        retry = self.start(task, args, given)
        if not retry.wait(20):  # it waits for what the ghost holds: a lock of SQLite, a claim of the ledger
            ghost.signal(signal.SIGCONT)
        word = self.ended(retry).word
        before = every_row() if word == "done" and stands else None
        ghost.signal(signal.SIGCONT)
        came = self.ended(ghost).word
        if before is not None:
            for name, frame in every_row().items():
                assert frame.equals(before[name]), f"{task}: its ghost changed {name}"
        self._told("ghost", f"{came}, retry {word}" if stands else "had ended")

    def _told(self, kind: str, word: str) -> None:
        self.outcomes[kind, word] += 1


def calm(home: Path, flow: Flow, env: Mapping[str, str]) -> Run:
    """The undisturbed run; it knows every state that a reader saw."""
    run = Run(home, env)
    flow(run.do)
    return run


def planned(seed: int, calm: Run, kinds: Mapping[str, int]) -> dict[int, list[Fault]]:
    """Faults at random calls and moments; those `between` after random commits, each once before any comes twice.

    Only calls that commit are started twice or haunted: what the others do nobody sees.
    """
    dice, found = random.Random(seed), defaultdict(list)
    every, writing = range(len(calm.took)), [call for call, count in enumerate(calm.commits) if count]
    commits = [(call, n + 1) for call, count in enumerate(calm.commits) for n in range(count)]
    for kind, count in kinds.items():
        if kind == "between":
            rounds = -(-count // len(commits))
            for call, number in [one for _ in range(rounds) for one in dice.sample(commits, len(commits))][:count]:
                found[call].append(Fault(kind, number))
        else:
            for _ in range(count):
                call = dice.choice(every if kind == "kill" else writing)
                found[call].append(Fault(kind, dice.random()))
    return found
