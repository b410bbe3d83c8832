"""A full disk, a cut catalog, a failing language model: an attempt publishes nothing, and the next one finishes."""

import contextlib
import random
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from polars.testing import assert_frame_equal

from pipeline import warehouse
from tests.faults import whole
from tests.faults.attempts import Call
from tests.faults.disturbed import Run, calm, every_row
from tests.faults.proxy import Proxy
from tests.support.servers.llm_server import Faults, Server
from tests.support.servers.postgres import server
from tests.support.servers.store import bucket, running_store, store_settings

postgres = server  # a fixture under another name
Break = Callable[[], AbstractContextManager[None]]
TASKS = {
    "daily.collect.run", "daily.tokenize.publish", "impscore.pairs.replay_cassette", "impscore.pairs.build",
    "tests.faults.whole:select", "tests.faults.whole:look",
}  # fmt: skip


def small(do: whole.Do) -> None:
    """A flow that writes eleven tables and takes seconds."""
    do("daily.collect.run", "weibo", whole.DAY, path="sample", run_id=whole.RUN)
    pinned = do("daily.tokenize.pin_snapshots")
    shards = do("daily.tokenize.plan_shards", whole.DAY, pinned)
    staged = [do("daily.tokenize.tokenize_shard", shard) for shard in shards]
    do("daily.tokenize.publish", staged, whole.DAY, pinned, run_id=whole.RUN)
    do("impscore.pairs.replay_cassette", "sample", whole.RUN)
    do("impscore.pairs.build", "sample_en", whole.DAY, run_id=whole.RUN)
    do("tests.faults.whole:select", "csd")
    do("tests.faults.whole:look", "csd", [1, 1])


class Broken(Run):
    """A run in which the first attempt at each task that writes meets a fault."""

    break_: Break

    def do(self, task: str, *args: Any, **options: Any) -> Any:
        """Break, try, mend, and do."""
        if task in TASKS:
            call = Call(task, args, options)
            share = self.dice.random()
            attempt = self.start(call)
            attempt.wait(share * self._calm_time(len(self.took)) / 2)
            with self.break_():
                self.watch(attempt, 1.0)
            self.outcomes["broken", self.end(attempt).word] += 1
        return super().do(task, *args, **options)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, dict[str, Any]]:
    """The flow without a fault, and its rows."""
    home = tmp_path_factory.mktemp("undisturbed") / "home"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNDERTONE_HOME", str(home))
        warehouse.create()
        run = calm(home, small, {})
        rows = every_row()
        warehouse.close()
    return run, rows


def run_broken(undisturbed: tuple[Run, dict[str, Any]], home: Path, break_: Break, env: dict[str, str]) -> Run:
    """Run the flow with a fault in every task; its tables are as undisturbed."""
    run = Broken(home, env, {}, undisturbed[0])
    run.break_ = break_
    small(run.do)
    rows = every_row()
    for name, frame in undisturbed[1].items():
        assert_frame_equal(rows[name], frame, check_exact=True)
    assert run.half == []
    print(dict(run.outcomes))  # noqa: T201
    return run


def test_what_forks_attempts_has_no_threads_of_polars(tmp_path: Path) -> None:
    """A fork after the imports would wait forever for threads that it does not have."""
    attempt = Run(tmp_path / "home", {}).start(Call("tests.faults.attempts:list_server_threads", (), {}))
    names = attempt.outcome().value
    assert "python" in names
    assert not [name for name in names if name.startswith("polars-") and name[7:].isdigit()]


def misbehave(relay: Proxy, mode: str) -> Break:
    """The fault that a relay cuts, stalls or is busy for a second."""

    @contextlib.contextmanager
    def fault() -> Iterator[None]:
        relay.mode = mode
        time.sleep(1.0)
        relay.mode = "pass"
        yield

    return fault


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 48 MB, where one may be mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", str(folder)]
    if subprocess.run(mount, check=False, stderr=subprocess.DEVNULL).returncode:
        pytest.skip("nobody may mount a file system here")
    yield folder
    warehouse.close()
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.slow
def test_a_full_disk(undisturbed: tuple[Run, dict[str, Any]], small_disk: Path, in_force: Callable[..., Path]) -> None:
    """A disk that fills up in the middle of a task stops that attempt and harms nothing that was there."""
    home = in_force(small_disk / "home")
    dice = random.Random(3)

    @contextlib.contextmanager
    def fill() -> Iterator[None]:
        ballast = small_disk / "ballast"
        with ballast.open("wb", buffering=0) as file:
            with contextlib.suppress(OSError):
                while True:
                    file.write(b"\0" * 4096)
            file.truncate(max(0, file.tell() - 4096 * dice.randrange(8)))
        yield
        ballast.unlink()

    run = run_broken(undisturbed, home, fill, {})
    assert sum(n for (_, word), n in run.outcomes.items() if word != "done") > 0, "no attempt met the full disk"


@pytest.mark.slow
@pytest.mark.parametrize(
    "mode", [*(pytest.param(mode, marks=pytest.mark.nightly) for mode in ("cut", "stall")), "terminated"]
)
def test_a_catalog_that_is_cut_off(
    undisturbed: tuple[Run, dict[str, Any]], postgres: str, tmp_path: Path, in_force: Callable[..., Path], mode: str
) -> None:
    """PostgreSQL out of reach, silent, or with every session ended in the middle of a commit: nothing is half there."""
    engine = sa.create_engine(postgres, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    with engine.connect() as connection:
        connection.execute(sa.text(f"create database {mode}"))  # each mode begins without tables
    others = "pid <> pg_backend_pid() and backend_type = 'client backend'"
    terminate = sa.text(f"select pg_terminate_backend(pid) from pg_stat_activity where {others}")
    ended_counts: list[int] = []

    @contextlib.contextmanager
    def end_sessions() -> Iterator[None]:
        with engine.connect() as connection:
            for _ in range(10):
                ended_counts.append(len(connection.execute(terminate).all()))
                time.sleep(0.05)
        warehouse.close()  # ours was ended, too
        yield

    with Proxy("127.0.0.1", int(postgres.rpartition(":")[2].partition("/")[0])) as relay:
        far = f"postgresql+psycopg2://undertone@127.0.0.1:{relay.port}/{mode}?connect_timeout=5"
        home = in_force(tmp_path / "home", UNDERTONE_CATALOG=postgres.replace("/postgres", f"/{mode}"))
        fault = end_sessions if mode == "terminated" else misbehave(relay, mode)
        run = run_broken(undisturbed, home, fault, {"UNDERTONE_CATALOG": far})
    assert run.reads
    assert mode != "terminated" or sum(ended_counts), "no session was there to be ended"


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("mode", ["cut", "stall", "busy"])
def test_an_object_store_that_fails(
    undisturbed: tuple[Run, dict[str, Any]], tmp_path: Path, in_force: Callable[..., Path], mode: str
) -> None:
    """A store that cuts connections, stalls or is too busy: attempts wait it out or fail, nothing is half there."""
    with running_store() as (host, port), Proxy(host, port) as relay:
        keys = store_settings(f"http://{host}:{port}", f"s3://faults/{mode}")
        far = {**keys, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{relay.port}"}
        with bucket(keys):
            run_broken(undisturbed, in_force(tmp_path / "home"), misbehave(relay, mode), far)
            warehouse.close()


@pytest.mark.parametrize(
    "mode", ["cut", *(pytest.param(mode, marks=pytest.mark.nightly) for mode in ("stall", "busy"))]
)
def test_a_language_model_that_fails(tmp_path: Path, in_force: Callable[..., Path], mode: str) -> None:
    """All 40 questions to a server that misbehaves, behind a bad line, are answered; an answer is paid for once."""
    home = in_force(tmp_path / "home")
    whole.files(tmp_path / "given")
    path = str(tmp_path / "given" / "own.csv")
    with Server(Faults(too_many=0.1, broken=0.1, malformed=0.1, seconds=0.02)) as server:
        with Proxy("127.0.0.1", int(server.url.split(":")[2].partition("/")[0])) as relay:
            run, url = Run(home, {}), f"http://127.0.0.1:{relay.port}/v1"
            run.do("impscore.pairs.import_sentences", "mine", path, whole.DAY, whole.RUN, is_own=True)
            attempt = run.start(Call("tests.faults.whole:ask", ("mine", url), {}))
            limit = time.monotonic() + 60
            while server.served.total() < 8 and time.monotonic() < limit:
                time.sleep(0.01)
            with misbehave(relay, mode)():
                assert run.end(attempt).word in ("done", "Retry")
            run.do("tests.faults.whole:ask", "mine", url)
        assert server.paid <= 4  # what was in flight when the line was cut
        assert len(server.served) == 40
    rows = warehouse.scan("completions").collect()
    assert rows.height == rows["completion_id"].n_unique() == 40
