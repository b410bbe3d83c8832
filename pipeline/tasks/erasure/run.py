"""Forget: erase everything that derives from some people's comments, in every store, in one run (CSD-08)."""

import hmac
import logging
import re
import secrets
import time
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from pipeline import __version__, settings, warehouse
from pipeline.errors import Missing, Retry
from pipeline.progress import iterate
from pipeline.tables import TABLES, empty
from pipeline.tasks.erasure import models
from pipeline.tasks.erasure.files import clean_file, erase_from_ledger, erase_from_spool
from pipeline.tasks.erasure.pages import recount, select_rows
from pipeline.tasks.erasure.request import CheckedRequest, Request, check_request, resolve
from pipeline.tasks.erasure.rules import RULES, Targets
from pipeline.tasks.labelling import release
from pipeline.tasks.record import pages
from pipeline.tasks.record.replace import replace_rows
from pipeline.tasks.record.retry import retry

log = logging.getLogger(__name__)
PASSES = 3  # over everything: a write in flight may restore something
GRACE = timedelta(hours=24)  # until then, an unreferenced file of a table may be a write in flight
_ID = re.compile("[0-9a-f]{32}")
_COUNTS = ("row_count", "file_count")
_PAGE = re.compile(r".*/(\d{4}-\d\d-\d\d)\.html")  # the report of a day


class Outcome(NamedTuple):
    """The outcome of an erasure."""

    receipts: pl.DataFrame  # rows of `erasures`, one for each store
    models: pl.DataFrame  # rows of `model_erasures`: models trained on something erased, the action, the replacement
    problems: dict[str, str]  # why a model could not be trained again, by its id
    removed_paths: list[str]  # removed files, and removed folders of models
    report_days: list[str]  # days whose report was removed and should be written again
    unreadable_paths: list[str]  # files that the search could not read; a person must check them
    is_unmatched: bool  # files had a user id, but no row of a table has its pseudonym: the key may be another


Count = tuple[int, int]  # rows, files


class _Erasure(NamedTuple):
    targets: Targets
    request: CheckedRequest
    erasure_id: str
    run_id: str
    grace: timedelta
    day: date  # of its receipts: that of the first attempt
    counts: dict[str, Count]  # of all attempts
    receipt_counts: dict[str, Count]  # the counts in the receipts
    removed_paths: list[str]
    unreadable_paths: set[str]


def forget(
    request: Request,
    *,
    key: bytes | None = None,
    run_id: str = "cli",
    verify: bool = True,
    grace: timedelta = GRACE,
    retrain: bool = False,
) -> Outcome:
    """Erase everything that derives from a request: rows, files, bytes, models; write receipts.

    It can run again after a kill; a second erasure waits for the end of the first. Let runs in flight end first: one
    that read the comments before may write rows derived from them later.

    The key of the pseudonyms is by default that of the environment. To `verify`, every store is searched before and
    after the comments are erased. `grace` is the age from which unreferenced files of tables are removed. `retrain`
    trains the removed models again that were in force.

    Raises:
        BadInput: the request is wrong, or rows of another table lie in our folder; nothing was erased.
        Retry: other writers won every race, or something remains; the message says where. Run it again.
    """
    checked = check_request(request, key)
    warehouse.align()  # receipts have columns that a warehouse of an earlier version lacks
    warehouse.refuse_unknown_states(RULES)
    with warehouse.lock_erasures(), _open_erasure(checked, key or settings.user_key()) as erasure_id:
        targets = resolve(checked)
        receipts = warehouse.scan("erasures", pl.col("erasure_id") == erasure_id).collect()
        counts = {store: (rows, files) for store, rows, files in receipts.select("store", *_COUNTS).iter_rows()}
        day = next(iter(receipts["day"].to_list()), datetime.now(UTC).date())
        erasure = _Erasure(targets, checked, erasure_id, run_id, grace, day, {**counts}, counts, [], set())
        sizes = (targets.comments.height, targets.articles.height)
        log.info("erasing %d comments and %d articles and what was derived from them", *sizes)
        try:
            _erase_all(erasure, verify)
        finally:  # receipts are complete even after an error
            retry(partial(_write_receipts, erasure))
        problems = models.retrain(erasure_id, run_id) if retrain else {}
        has_id = pl.col("erasure_id") == erasure_id
        receipts = warehouse.scan("erasures", has_id).sort("store").collect()
        model_rows = warehouse.scan("model_erasures", has_id).sort("kind", "model_id").collect()
        if unreadable_paths := sorted(erasure.unreadable_paths):
            log.warning("encrypted, damaged, or too large unpacked; check these files by hand: %s", unreadable_paths)
        report_days = sorted(page[1] for path in erasure.removed_paths if (page := _PAGE.fullmatch(path)))
        stores = {*receipts["store"]}
        is_unmatched = bool(checked.user_ids and stores) and stores.isdisjoint(TABLES)
        lists = (erasure.removed_paths, report_days, unreadable_paths)
        return Outcome(receipts, model_rows, problems, *lists, is_unmatched)


@contextmanager
def _open_erasure(request: CheckedRequest, key: bytes | None) -> Iterator[str]:
    """Keep the id of an erasure in the home until it ends, so that the next attempt adds to the same receipts."""
    # the id is random: a hash of the request would reveal for ever whether a person was erased
    ids = [*map(repr, request.user_ids), *sorted(map(repr, (*request.comments.rows(), *request.threads.rows())))]
    content = repr((ids, request.kind, request.origin, request.source)).encode()
    path = settings.home() / f"forget.{hmac.new(key or b'', content, 'sha256').hexdigest()[:32]}"
    erasure_id = path.read_text(encoding="ascii") if path.is_file() else ""
    if not _ID.fullmatch(erasure_id):
        erasure_id = secrets.token_hex(16)
        path.write_text(erasure_id, encoding="ascii")
    yield erasure_id
    path.unlink(missing_ok=True)


def _erase_all(erasure: _Erasure, verify: bool) -> None:
    places: list[warehouse.Place] = []
    for _ in range(PASSES if verify else 1):
        for store, step in iterate([*list_steps(erasure)], "stores erased"):
            _run_step(erasure, store, step)
        places = _find_remaining(erasure) if verify else []
        if not places:
            break
        for name in sorted({place.store for place in places} & {*TABLES}):
            tidy = warehouse.sweep if name == "comments" else warehouse.purge  # old states of comments lead to the rest
            retry(partial(tidy, name, erasure.grace))
    if places:
        raise Retry(f"the comments remain, as rows derived from them remain: {_format_places(places)}")
    _run_step(erasure, "comments", partial(_erase_table, erasure, "comments"))
    if verify and (places := _search(erasure, {"comments"})):
        raise Retry(f"something erased remains: {_format_places(places)}")


def _search(erasure: _Erasure, stores: Container[str] | None = None) -> list[warehouse.Place]:
    places = warehouse.search(erasure.targets.marks, stores, erasure.unreadable_paths)
    return [place for place in places if place.path != str(erasure.request.file)]


def _format_places(places: Sequence[warehouse.Place]) -> str:
    text = ", ".join(f"{place.store} ({place.path})" for place in places[:10])
    if not any(place.store in TABLES for place in places):
        return text
    return f"{text}; an unreferenced file may be of a run in flight and is removed after a day (--grace-hours)"


def list_steps(erasure: _Erasure) -> Iterator[tuple[str, Callable[[], Count]]]:
    """List the steps, store by store, in order; all but the comments."""
    targets = erasure.targets
    yield "models", partial(_erase_models, erasure)
    yield "ledger", lambda: (erase_from_ledger(targets), 0)
    yield "spool", lambda: (erase_from_spool(targets), 0)
    yield "inbox", partial(_erase_inbox, erasure)
    for store in ("labelling", "reports", "scratch", "home"):
        yield store, partial(_erase_files, erasure, store)
    for name in RULES:
        if name not in ("models", "comments"):
            yield name, partial(_erase_table, erasure, name)
        if name == "annotated_comments":
            yield "releases", partial(_erase_releases, erasure)


def _run_step(erasure: _Erasure, store: str, step: Callable[[], Count]) -> None:
    _add_count(erasure, store, *retry(step))
    if store not in TABLES:  # `_erase_table` writes its own receipts
        retry(partial(_write_receipts, erasure))  # at once: a kill loses the count of one store at most


def _add_count(erasure: _Erasure, store: str, row_count: int, file_count: int) -> None:
    if row_count or file_count:
        log.info("%s: erased %d rows, %d files", store, row_count, file_count)
        earlier = erasure.counts.get(store, (0, 0))
        erasure.counts[store] = (earlier[0] + row_count, earlier[1] + file_count)


def _erase_table(erasure: _Erasure, name: str) -> Count:
    is_changed, update = select_rows(erasure.targets, name)
    if is_changed is None:
        return 0, 0
    if name == "dropped":
        recount(erasure.targets, erasure.run_id)
    for count in warehouse.rewrite(name, is_changed, update, erasure.run_id):
        _add_count(erasure, name, count, 0)  # at once: these rows stay erased if a later partition loses its race
    retry(partial(_write_receipts, erasure))  # before the old states are removed: nothing leads here after that
    has_old_rows = warehouse.filter_exactly(warehouse.scan_history(name), is_changed).head(1).collect().height
    return 0, warehouse.purge(name, erasure.grace) if has_old_rows else 0


def _erase_models(erasure: _Erasure) -> Count:
    hit_paths = {place.path for place in _search(erasure, {"models"})}
    count, folders = models.erase_models(erasure.targets, hit_paths, erasure.erasure_id, erasure.run_id)
    erasure.removed_paths.extend(folders)
    return count, len(folders)


def _erase_inbox(erasure: _Erasure) -> Count:
    hit_paths = {place.path for place in _search(erasure, {"inbox"})}
    counts = _clean_inbox(erasure.targets, erasure.request, hit_paths)
    erasure.removed_paths.extend(str(path) for path, count in counts.items() if count and not path.exists())
    return sum(counts.values()), sum(map(bool, counts.values()))


def _clean_inbox(
    targets: Targets, request: CheckedRequest, hit_paths: Container[str], *, is_dry: bool = False
) -> dict[Path, int]:
    """Remove records from the files of the inbox, all of whose rows have the origin `inbox`; return counts by file."""
    root, counts = settings.inbox(), {}
    sources = {*targets.comment_keys["source"], *targets.threads["source"], request.source}
    for path in sorted(root.rglob("*")):
        is_hit, source = str(path) in hit_paths, path.relative_to(root).parts[0]
        if path.is_file() and path != request.file and (is_hit or source in sources):
            of_source = targets._replace(comment_keys=targets.comment_keys.filter(source=source))
            counts[path] = clean_file(path, of_source, is_hit=is_hit, is_dry=is_dry)
    return counts


def _erase_releases(erasure: _Erasure) -> Count:
    root = settings.releases()
    names = sorted({Path(place.path).relative_to(root).parts[0] for place in _search(erasure, {"releases"})})
    for name in names:
        for path in list((root / name).iterdir()):
            if path.name.startswith(".") or path.suffix not in (".md", ".jsonl", ".csv", ".parquet"):
                path.unlink(missing_ok=True)  # of a run that was killed
        release.write_files(name)
    return 0, len(names)


def _erase_files(erasure: _Erasure, store: str) -> Count:
    """Clean or remove files of a folder; remove all scratch files: vectors reveal texts too."""
    targets = erasure.targets
    row_count = file_count = 0
    for place in _search(erasure, {store}):
        path = Path(place.path)
        if store == "home" and path.suffix.startswith((".db", ".pid")):
            continue  # databases of others; the search reports them
        file_count += 1
        if store == "scratch":
            warehouse.discard(place.path)
            continue
        if store == "reports":
            path.unlink(missing_ok=True)
        else:
            row_count += clean_file(path, targets)
        erasure.removed_paths.extend([] if path.exists() else [place.path])
    paths: list[Path] = []
    if store == "reports":  # they show short texts too, which a search cannot tell from those of others
        days = targets.comments["day"].unique().sort()
        paths = [path for day in days if (path := settings.reports() / f"{day}.html").is_file()]
        erasure.removed_paths.extend(map(str, paths))
    if store == "scratch" and (targets.comments.height or targets.articles.height):
        paths = [path for path in settings.scratch("").rglob("*") if path.is_file()]
    for path in paths:
        path.unlink(missing_ok=True)
    if store == "reports" and file_count + len(paths):
        pages.write_indexes(Path(path).name for path in erasure.removed_paths)
    return row_count, file_count + len(paths)


def _find_remaining(erasure: _Erasure) -> list[warehouse.Place]:
    strays = warehouse.find_strays("comments")  # its other files have them until the end
    erasure.unreadable_paths.clear()  # some may be removed meanwhile
    places = [place for place in _search(erasure) if place.store != "comments" or place.path in strays]
    places += [warehouse.Place("models", str(folder)) for folder in _list_removed_models(erasure.targets)]
    counts = _count_rows(erasure.targets).items()
    return places + [warehouse.Place(name, f"{n} rows") for name, n in counts if n and name != "comments"]


def _list_removed_models(targets: Targets) -> list[Path | None]:
    return [trace.folder for trace in models.trace_models(targets, set()) if trace.action == models.REMOVED]


def _count_rows(targets: Targets) -> dict[str, int]:
    conditions = {name: condition for name in RULES if (condition := select_rows(targets, name)[0]) is not None}
    rows = {name: warehouse.filter_exactly(warehouse.scan(name), is_hit) for name, is_hit in conditions.items()}
    return {name: part.select(pl.len()).collect().item() for name, part in rows.items()}


def _write_receipts(erasure: _Erasure) -> None:
    if erasure.counts == erasure.receipt_counts:
        return
    facts = {
        "erasure_id": erasure.erasure_id, "day": erasure.day, "erased_at": datetime.now(UTC),
        "kind": erasure.request.kind, "request_count": erasure.request.request_count, "run_id": erasure.run_id,
        "code_version": __version__,
    }  # fmt: skip
    counts = {store: dict(zip(_COUNTS, count, strict=True)) for store, count in erasure.counts.items()}
    rows = [{**facts, "store": store, **count} for store, count in counts.items()]
    partition = warehouse.make_slice(day=erasure.day.isoformat())
    receipts = pl.DataFrame(rows, schema=empty("erasures").schema)
    # earlier receipts too, and those of a commit whose outcome is unknown
    replace_rows("erasures", partition, receipts, pl.col("erasure_id") == erasure.erasure_id, erasure.run_id)
    erasure.receipt_counts.update(erasure.counts)


def preview(request: Request, *, key: bytes | None = None) -> pl.DataFrame:
    """Count what `forget` would erase, and change nothing: store, row_count, file_count (files that have it now)."""
    checked = check_request(request, key)
    targets = resolve(checked)
    places = warehouse.search(targets.marks)
    inbox_counts = _clean_inbox(targets, checked, {place.path for place in places}, is_dry=True)
    row_counts = _count_rows(targets) | {"inbox": sum(inbox_counts.values())}
    file_counts = Counter(place.store for place in places)
    file_counts["inbox"] = sum(map(bool, inbox_counts.values()))
    if folders := _list_removed_models(targets):
        file_counts["models"] = len(folders)
    names = sorted({*row_counts, *file_counts})
    rows = [(name, row_counts.get(name, 0), file_counts[name]) for name in names]
    schema = {"store": pl.String, **dict.fromkeys(_COUNTS, pl.Int64)}
    return pl.DataFrame(rows, schema=schema, orient="row").filter(pl.any_horizontal(pl.col(_COUNTS) > 0))


def forget_file(params: Mapping[str, Any], key: str | None, run_id: str) -> dict[str, object]:
    """Erase for the DAG, by a file of ids, which is removed, or an origin; return counts, days and ids alone."""
    file = Path(params["path"]).expanduser() if params["path"] else None
    request = Request(origin=params["origin"] or None, source=params["source"] or None, file=file)
    if file and not file.is_file():
        raise Missing(f"{file}: there is no such file; a file of ids is removed at the end of its erasure")
    secret = key.encode() if key else None
    if params["dry_run"]:
        return {"stores": preview(request, key=secret).to_dicts()}
    timer = time.monotonic()
    outcome = forget(request, key=secret, run_id=run_id, retrain=params["retrain"])
    if outcome.is_unmatched:
        raise Missing("no comment has such a user id: it is only found with the user key of its import")
    if file:
        file.unlink(missing_ok=True)
    log.info("erased in %.0f s", time.monotonic() - timer)
    return {
        "stores": outcome.receipts.select("store", *_COUNTS).to_dicts(),
        "models": models.summarize(outcome.models, outcome.problems),
        "days_to_report_again": outcome.report_days,
        "files_to_look_into": len(outcome.unreadable_paths),
    }
