"""Forget: everything that comes from some people's comments goes, everywhere, in one run (CSD-08).

What is erased is found from the comments (`request`) and followed into every table by the rules of `rules`,
into files, caches and databases by the words themselves. The comments go last, and only when a search of
everything finds nothing else: an erasure that was killed, or that failed, is simply run again.
"""

import fcntl
import hmac
import logging
import re
import secrets
import time
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import polars as pl

from pipeline import __version__, settings, warehouse
from pipeline.errors import BadInput, Missing, Retry
from pipeline.private import make_folder
from pipeline.progress import iterate
from pipeline.slices import parse_day
from pipeline.tables import TABLES, empty
from pipeline.tasks.erasure import models
from pipeline.tasks.erasure.files import clean_file, erase_from_ledger, erase_from_spool
from pipeline.tasks.erasure.request import CheckedRequest, Request, check_request, resolve
from pipeline.tasks.erasure.rows import recount, select_rows
from pipeline.tasks.erasure.rules import RULES, Targets
from pipeline.tasks.labelling import release
from pipeline.tasks.record.retry import retry

log = logging.getLogger(__name__)

PASSES = 3  # over everything: a writer in flight may bring something back
GRACE = timedelta(hours=24)  # a file of a table that nobody refers to may be a write in flight until then
_ID = re.compile("[0-9a-f]{32}")
_COUNTS = ("row_count", "file_count")


class Outcome(NamedTuple):
    """What an erasure came to.

    Attributes:
        receipts: rows of `erasures`, a row a store.
        models: rows of `model_erasures`: which models learnt from it, what became of them, what replaced them.
        problems: why a model could not be trained again, by its id.
        removed: files that are gone as a whole, and folders of models.
        days: days whose report went and should be written again.
        closed: files that the search could not look into; a person must.
    """

    receipts: pl.DataFrame
    models: pl.DataFrame
    problems: dict[str, str]
    removed: list[str]
    days: list[str]
    closed: list[str]


Count = tuple[int, int]  # rows, files


class _Erasure(NamedTuple):
    """An erasure on its way."""

    gone: Targets
    asked: CheckedRequest
    erasure_id: str
    run_id: str
    grace: timedelta
    day: date  # of its receipts: that of the first try
    counts: dict[str, Count]  # of all tries
    told: dict[str, Count]  # of them, what the receipts say already
    removed: list[str]
    closed: set[str]  # paths of what nobody can look into


def forget(
    request: Request, *, key: bytes | None = None, run_id: str = "cli", verify: bool = True, grace: timedelta = GRACE,
    retrain: bool = False,
) -> Outcome:  # fmt: skip
    """Erase everything that comes from what is named: rows, files, bytes, models; write receipts.

    It can be run again after a kill; another of its kind waits for its end. Other runs may go on, but one that read the
    comments before may write what it made of them after: let runs in flight end first.

    Args:
        request: whom or what it is about.
        key: of the pseudonyms; that of the environment by default.
        run_id: of Airflow.
        verify: search everything for what is left, before the comments go and after.
        grace: age from which files are removed that no state of a table refers to.
        retrain: train the models again that were in force and had to go.

    Raises:
        BadInput: the request is wrong, or another table's rows lie in a folder of ours; nothing was erased.
        Retry: another writer was faster again and again, or something is left; where, is told. Run it again.
    """
    asked = check_request(request, key)
    warehouse.widen()  # receipts have columns that a warehouse of an earlier version lacks
    warehouse.refuse_unknown_states(RULES)
    with _lock(), _open_erasure(asked, key or settings.user_key()) as erasure_id:
        gone = resolve(asked)
        receipts = warehouse.scan("erasures", pl.col("erasure_id") == erasure_id).collect()
        told = {store: (rows, files) for store, rows, files in receipts.select("store", *_COUNTS).iter_rows()}
        day = next(iter(receipts["day"].to_list()), datetime.now(UTC).date())
        one = _Erasure(gone, asked, erasure_id, run_id, grace, day, {**told}, told, [], set())
        log.info(
            "erasing %d comments and %d articles and what was made of them", gone.comments.height, gone.articles.height
        )
        try:
            _erase_all(one, verify)
        finally:  # what is erased is told, however it ended
            retry(lambda: _write_receipts(one))
        return _build_outcome(one, models.retrain(erasure_id, run_id) if retrain else {})


@contextmanager
def _lock() -> Iterator[None]:
    """One erasure at a time: of two people who wrote the same, each would leave its words to the other.

    The lock goes with its process. It lies in the folder that all machines share.
    """
    make_folder(settings.home())
    with (settings.home() / "forget.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            log.info("another erasure is going on; waiting for its end")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def _open_erasure(asked: CheckedRequest, key: bytes | None) -> Iterator[str]:
    """The id of an erasure, kept in the home until it is done: whoever runs it again adds to the receipts of before.

    It is random, as one made of the request would tell for ever whether a person is among those who went. The file's
    name is made of it, under the key where there is one, and goes with the last of what is erased.
    """
    named = [*map(repr, asked.user_ids), *sorted(map(repr, (*asked.comments.rows(), *asked.threads.rows())))]
    about = repr((named, asked.kind, asked.origin, asked.source)).encode()
    path = settings.home() / f"forget.{hmac.new(key or b'', about, 'sha256').hexdigest()[:32]}"
    erasure_id = path.read_text(encoding="ascii") if path.is_file() else ""
    if not _ID.fullmatch(erasure_id):
        erasure_id = secrets.token_hex(16)
        path.write_text(erasure_id, encoding="ascii")
    yield erasure_id
    path.unlink(missing_ok=True)


def _erase_all(one: _Erasure, verify: bool) -> None:
    left: list[warehouse.Place] = []
    for _ in range(PASSES if verify else 1):
        for store, step in iterate([*list_steps(one)], "stores erased"):
            _run_step(one, store, step)
        left = _find_remaining(one) if verify else []
        if not left:
            break
        for name in sorted({place.store for place in left} & {*TABLES}):
            tidy = warehouse.sweep if name == "comments" else warehouse.purge  # their old states lead to the rest
            retry(lambda name=name, tidy=tidy: tidy(name, one.grace))  # type: ignore[misc]
    if left:
        raise Retry(f"the comments are still there, as what was made of them is not all gone: {_format_places(left)}")
    _run_step(one, "comments", lambda: _erase_table(one, "comments"))
    if verify and (left := _search(one, {"comments"})):
        raise Retry(f"something erased is left: {_format_places(left)}")


def _search(one: _Erasure, stores: Container[str] | None = None) -> list[warehouse.Place]:
    """Where something of it is, but for the file that names it."""
    met = warehouse.search(one.gone.marks, stores, one.closed)
    return [place for place in met if place.path != str(one.asked.file)]


def _format_places(left: Sequence[warehouse.Place]) -> str:
    where = ", ".join(f"{place.store} ({place.path})" for place in left[:10])
    if not any(place.store in TABLES for place in left):
        return where
    why = "a file that no state of its table refers to may be of a run in flight, and goes after a day (--grace-hours)"
    return f"{where}; {why}"


def list_steps(one: _Erasure) -> Iterator[tuple[str, Callable[[], Count]]]:
    """What is done, store by store, in order; all but the comments."""
    yield "models", lambda: _erase_models(one)
    yield "ledger", lambda: (erase_from_ledger(one.gone), 0)
    yield "spool", lambda: (erase_from_spool(one.gone), 0)
    yield "inbox", lambda: _erase_inbox(one)
    for store in ("labelling", "reports", "scratch", "home"):
        yield store, lambda store=store: _erase_files(one, store)  # type: ignore[misc]
    for name in RULES:
        if name not in ("models", "comments"):
            yield name, lambda name=name: _erase_table(one, name)  # type: ignore[misc]
        if name == "annotated_comments":
            yield "releases", lambda: _erase_releases(one)


def _run_step(one: _Erasure, store: str, step: Callable[[], Count]) -> None:
    _add_count(one, store, *retry(step))
    if store not in TABLES:  # those tell it themselves
        retry(lambda: _write_receipts(one))  # at once: a kill takes the count of one store with it at most


def _add_count(one: _Erasure, store: str, rows: int, files: int) -> None:
    if rows or files:
        log.info("%s: erased %d rows, %d files", store, rows, files)
        before = one.counts.get(store, (0, 0))
        one.counts[store] = (before[0] + rows, before[1] + files)


def _erase_table(one: _Erasure, name: str) -> Count:
    """Erase a table's rows and mend its fields; where its former states have some, these go."""
    is_meant, rows = select_rows(one.gone, name)
    if is_meant is None:
        return 0, 0
    if name == "dropped":
        recount(one.gone, one.run_id)
    for count in warehouse.rewrite(name, is_meant, rows, one.run_id):
        _add_count(one, name, count, 0)  # at once: a race that is lost later takes nothing back
    retry(lambda: _write_receipts(one))  # before the old states go: after them nothing leads here again
    has_some = warehouse.met(warehouse.history(name), is_meant).head(1).collect().height
    return 0, warehouse.purge(name, one.grace) if has_some else 0


def _erase_models(one: _Erasure) -> Count:
    """Remove the folders of models that hold words of it; such a model is in force no longer."""
    count, folders = models.erase_models(one.gone, _search_models(one), one.erasure_id, one.run_id)
    one.removed.extend(folders)
    return count, len(folders)


def _search_models(one: _Erasure) -> set[str]:
    """Files of models in which the search meets something of it."""
    return {place.path for place in _search(one, {"models"})}


def _erase_inbox(one: _Erasure) -> Count:
    """Take records out of the files of the inbox. Rows from there are filed under `inbox`, not under a file's name."""
    root, sources = settings.inbox(), set(one.gone.commented["source"]) | set(one.gone.threads["source"])
    rows = files = 0
    met = {place.path for place in _search(one, {"inbox"})}
    for path in sorted(root.rglob("*")) if root.is_dir() else ():
        of = path.relative_to(root).parts[0]
        if not path.is_file() or path == one.asked.file:
            continue
        if str(path) in met or of in {*sources, one.asked.source}:
            count = clean_file(path, one.gone, is_met=str(path) in met)
            rows, files = rows + count, files + bool(count)
            one.removed.extend([] if path.exists() else [str(path)])
    return rows, files


def _erase_releases(one: _Erasure) -> Count:
    """Write the files of releases anew that hold something erased."""
    root = settings.releases()
    met = {Path(place.path).relative_to(root).parts[0] for place in _search(one, {"releases"})}
    for name in sorted(met):
        for stray in [p for p in (root / name).iterdir() if p.name.startswith(".") or p.suffix not in _OF_RELEASE]:
            stray.unlink(missing_ok=True)  # of a run that was killed
        release.write_files(name)
    return 0, len(met)


_OF_RELEASE = (".md", ".jsonl", ".csv", ".parquet")


def _erase_files(one: _Erasure, store: str) -> Count:
    """Clean or remove what a folder holds of it; of scratch what can be made again, as vectors tell of texts too."""
    rows = files = 0
    for place in _search(one, {store}):
        path = Path(place.path)
        if store == "home" and path.suffix.startswith((".db", ".pid")):
            continue  # not ours to cut, nor is the log of writes beside it: the search tells of it
        if store in ("labelling", "home"):
            rows += clean_file(path, one.gone)
        elif store == "scratch":
            warehouse.discard([place.path])
        else:
            path.unlink(missing_ok=True)
        one.removed.extend([] if path.exists() or store == "scratch" else [place.path])
        files += 1
    if store == "reports":  # they show short texts too, which no search would tell from others'
        pages = [settings.reports() / f"{day}.html" for day in one.gone.comments["day"].unique().sort()]
        for path in [path for path in pages if path.is_file()]:
            path.unlink()
            one.removed.append(str(path))
            files += 1
    if store == "scratch" and (one.gone.comments.height or one.gone.articles.height):
        for path in [path for path in settings.scratch("").rglob("*") if path.is_file()]:
            path.unlink(missing_ok=True)
            files += 1
    return rows, files


def _find_remaining(one: _Erasure) -> list[warehouse.Place]:
    """Where something is left, but for the comments themselves."""
    strays = warehouse.strays("comments")  # its other files hold them until the end
    one.closed.clear()  # some of it may have gone meanwhile
    met = _search(one)
    found = [place for place in met if place.store != "comments" or place.path in strays]
    found += [warehouse.Place("models", str(model.folder)) for model in models.trace_models(one.gone, set())
              if model.action == models.REMOVED]  # fmt: skip
    for name in RULES:
        is_meant, _ = select_rows(one.gone, name)
        if name != "comments" and is_meant is not None:
            count = warehouse.met(warehouse.scan(name), is_meant).select(pl.len()).collect().item()
            found += [warehouse.Place(name, f"{count} rows")] if count else []
    return found


def _write_receipts(one: _Erasure) -> None:
    """Tell what was erased of each store, in all tries."""
    if one.counts == one.told:
        return
    about = {
        "erasure_id": one.erasure_id, "day": one.day, "erased_at": datetime.now(UTC), "kind": one.asked.kind,
        "request_count": one.asked.request_count, "run_id": one.run_id, "code_version": __version__,
    }  # fmt: skip
    rows = [{**about, "store": store, **dict(zip(_COUNTS, n, strict=True))} for store, n in one.counts.items()]
    told = pl.DataFrame(rows, schema=empty("erasures").schema).lazy()
    day = warehouse.slice_of(day=one.day.isoformat())
    others = pl.col("erasure_id") != one.erasure_id  # those of before, and a commit that nobody knows the end of
    warehouse.replace("erasures", day, lambda there: pl.concat([there.filter(others), told]), one.run_id)
    one.told.update(one.counts)


def _build_outcome(one: _Erasure, problems: dict[str, str]) -> Outcome:
    mine = pl.col("erasure_id") == one.erasure_id
    receipts = warehouse.scan("erasures", mine).sort("store").collect()
    of_models = warehouse.scan("model_erasures", mine).sort("kind", "model_id").collect()
    if one.closed:
        log.warning("encrypted, damaged, or too large unpacked; look into these yourself: %s", sorted(one.closed))
    days = [Path(path).stem for path in one.removed if path.endswith(".html") and _is_day(Path(path).stem)]
    return Outcome(receipts, of_models, problems, one.removed, sorted(days), sorted(one.closed))


def _is_day(text: str) -> bool:
    try:
        parse_day(text)
    except BadInput:
        return False
    return True


def preview(request: Request, *, key: bytes | None = None) -> pl.DataFrame:
    """What `forget` would find, changing nothing: store, row_count, file_count (that hold it now)."""
    asked = check_request(request, key)
    gone = resolve(asked)
    rows: dict[str, int] = {}
    for name in RULES:
        is_meant, _ = select_rows(gone, name)
        if is_meant is not None:
            rows[name] = warehouse.met(warehouse.scan(name), is_meant).select(pl.len()).collect().item()
    files = pl.Series("store", [place.store for place in warehouse.search(gone.marks)], dtype=pl.String).value_counts()
    counts: dict[str, int] = dict(files.iter_rows())
    if removed := sum(model.action == models.REMOVED for model in models.trace_models(gone, set())):
        counts["models"] = removed
    found = [(name, rows.get(name, 0), counts.get(name, 0)) for name in sorted({*rows, *counts})]
    schema = {"store": pl.String, "row_count": pl.Int64, "file_count": pl.Int64}
    return pl.DataFrame([row for row in found if row[1] or row[2]], schema=schema, orient="row")


def forget_file(
    path: str | None, origin: str | None, source: str | None, key: str | None, run_id: str, *, dry_run: bool = False,
    retrain: bool = False,
) -> dict[str, object]:  # fmt: skip
    """What the DAG does: erase by a file of ids, which goes at the end, or by an origin; counts by store.

    Nothing but counts, days, ids and numbers of models comes back, as it is kept in Airflow's database.
    """
    request = Request(origin=origin or None, source=source or None, file=Path(path).expanduser() if path else None)
    if request.file and not request.file.is_file():
        raise Missing(f"{request.file}: there is no such file; one that was erased by is removed at the end")
    secret = key.encode() if key else None
    if dry_run:
        return {"stores": preview(request, key=secret).to_dicts()}
    timer = time.monotonic()
    done = forget(request, key=secret, run_id=run_id, retrain=retrain)
    if request.file:
        request.file.unlink(missing_ok=True)
    log.info("erased in %.0f s", time.monotonic() - timer)
    return {
        "stores": done.receipts.select("store", "row_count", "file_count").to_dicts(),
        "models": models.summarize(done.models, done.problems),
        "days_to_report_again": done.days, "files_to_look_into": len(done.closed),
    }  # fmt: skip
