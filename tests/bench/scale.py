"""`make scale`: CPU seconds and peak memory of each stage at 10^5, 10^6 and 10^7 comments, and how they grow.

Comments are generated with a seed; their lengths and copies are those of real ones (`texts.py`).
Each stage runs in a process of its own, so that CPU seconds and peak memory are its own. A busy machine
inflates CPU seconds less than wall time. Other sizes: `python tests/bench/scale.py 10000 100000`.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("POLARS_MAX_THREADS", "2")  # as on the smallest machine; with one, writing holds twice as much
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ["TOKENIZERS_PARALLELISM"] = "false"

from tests.bench.measure import peak_memory
from tests.bench.texts import generate_comments

DAY, OTHER = "2026-11-19", "2026-11-18"
SIZES = (100_000, 1_000_000, 10_000_000)
SLICES = 100  # commits by which the growth of the metadata is measured
LONGEST, WIDEST = 1.15, 1.25  # goals: time against linear and peak memory, from one size to the next


def generate_rows(rows: int) -> Iterator[dict[str, Any]]:
    """Comments with the lengths and copies of real ones; a fifth are answers, 250 are in a thread."""
    chance = random.Random(20261122)
    for n, text in enumerate(generate_comments(rows)):
        thread, place = divmod(n, 250)
        yield {
            "text": text, "thread_id": f"t{thread}", "comment_id": str(n), "user": str(chance.randrange(rows)),
            "like_count": int(chance.paretovariate(1.2)) - 1,
            "parent_id": str(n - 1 - chance.randrange(min(place, 20))) if place and chance.random() < 0.2 else None,
        }  # fmt: skip


def stage_import(rows: int) -> None:
    """A file of comments to the five tables of a collection."""
    from pipeline.tasks.daily import collect

    path = Path(os.environ["UNDERTONE_HOME"]) / "scale.jsonl"
    collect.import_files([path], "scale", DAY, key=b"scale")


def stage_tokenize(rows: int, chinese: str = "jieba") -> None:
    """Cut in shards and publish."""
    from pipeline.tasks.daily import tokenize

    tokenize.run(DAY, chinese)


def stage_score(rows: int) -> None:
    """Implicitness by the shipped model, in shards, and publish."""
    from pipeline.tasks.daily import score

    score.run(DAY)


def _other() -> Any:
    import polars as pl

    from pipeline import warehouse

    return warehouse.scan("comments", pl.col("day") == pl.lit(DAY).str.to_date()).with_columns(
        day=pl.lit(OTHER).str.to_date()
    )


def stage_publish(rows: int) -> None:
    """One slice of as many comments, checked and written."""
    from pipeline import warehouse

    warehouse.overwrite("comments", warehouse.make_slice(source="scale", day=OTHER), _other())


def prepare_compact(rows: int) -> None:
    """The same slice in eight files."""
    import polars as pl

    from pipeline import warehouse
    from pipeline.tables import empty

    warehouse.overwrite("comments", warehouse.make_slice(day=OTHER), empty("comments"))
    for n in range(8):
        part = _other().with_columns(origin=pl.lit(f"part {n}")).filter(pl.col("comment_id").hash(seed=0) % 8 == n)
        warehouse.overwrite("comments", warehouse.make_slice(source="scale", day=OTHER, origin=f"part {n}"), part)


def stage_compact(rows: int) -> None:
    """Eight files of a partition to one."""
    from datetime import timedelta

    from pipeline.warehouse.upkeep import compact
    from pipeline.warehouse.upkeep.limits import Limits

    assert compact.compact("comments", Limits(quiet=timedelta(0)))[1] == 8


def stage_views(rows: int) -> None:
    """Four views of the daily report."""
    from pipeline import warehouse

    for view in ("implicitness_by_source_day", "funnel", "holes"):
        warehouse.query(f"select * from {view}")
    warehouse.query("select * from most_implicit limit 20")


def stage_health(rows: int) -> None:
    """The page of health of the last fortnight."""
    from pipeline.tasks.daily import report

    report.write_health(DAY)


def stage_browse_file(rows: int) -> None:
    """The copy of comments and scores that `undertone browse` reads."""
    from pipeline import warehouse

    warehouse.make_corpus()


def stage_browse(rows: int) -> None:
    """What a page of `undertone browse` asks: rows, bins, a search, a thread, a comparison and the map."""
    from pipeline import warehouse
    from pipeline.report.browse.corpus import Corpus, parse_view

    corpus = Corpus(warehouse.make_corpus())
    everything = parse_view("", corpus.columns)
    for view in (everything, everything._replace(search="今天")):
        corpus.list_rows(view)
        corpus.count_bins(view, [*corpus.columns])
    corpus.read_thread(0)
    corpus.compare(everything, "implicitness", "implicitness")
    corpus.place_points()


def stage_maintain(rows: int) -> None:
    """Upkeep of all tables: check, compact, expire, sweep."""
    from pipeline.warehouse.upkeep import maintain

    for name in maintain.list_written():
        maintain.maintain(name)


def stage_check(rows: int) -> None:
    """The check of every file and row count."""
    from pipeline.warehouse.upkeep import check, maintain

    for name in maintain.list_written():
        assert not check.check(name, footers=True).problems


def stage_commits(rows: int) -> None:
    """Slices of one row, each a commit; prints how the metadata grows."""
    from datetime import date, timedelta

    from pipeline import warehouse
    from pipeline.warehouse.upkeep import check, compact
    from tests.support.rows.filled import filled

    seconds = []
    for n in range(SLICES):
        day = date(2020, 1, 1) + timedelta(n)
        start = time.process_time()
        warehouse.overwrite(
            "tokens", {"source": "scale", "day": day}, filled("tokens", {"day": day, "source": "scale"})
        )
        seconds.append(time.process_time() - start)
    handle = warehouse.load_table("tokens")
    size = handle.io.new_input(handle.metadata_location).__len__()
    before, start = check.check("tokens").manifests, time.process_time()
    compact.merge_manifests("tokens", 20)
    growth = {
        "first": sum(seconds[:10]) / 10, "last": sum(seconds[-10:]) / 10,
        "metadata_bytes_a_snapshot": size / len(handle.snapshots()), "manifests": before,
        "merged": check.check("tokens").manifests, "merge_seconds": time.process_time() - start,
    }  # fmt: skip
    print("GROWTH", json.dumps(growth))


STAGES: dict[str, Callable[[int], None]] = {
    "import": stage_import, "tokenize (jieba)": stage_tokenize,
    "tokenize (rjieba)": lambda rows: stage_tokenize(rows, "rjieba"), "score": stage_score, "views": stage_views,
    "health": stage_health, "browse, its file": stage_browse_file, "browse, its queries": stage_browse,
    "maintain": stage_maintain, "check": stage_check, "publish": stage_publish, "compact": stage_compact,
    "commits": stage_commits,
}  # fmt: skip


def child(stage: str, rows: int) -> None:
    """One stage in this process; prints CPU seconds without its imports, and peak memory with them."""
    import polars  # noqa: F401

    from pipeline import warehouse

    warehouse.create()
    if stage == "compact":
        prepare_compact(rows)
    if stage == "score":
        import torch  # noqa: F401
    start, wall = time.process_time(), time.monotonic()
    STAGES[stage](rows)
    peak = peak_memory()
    print("DONE", json.dumps({"cpu": time.process_time() - start, "wall": time.monotonic() - wall, "peak": peak}))


def measure(stage: str, rows: int) -> dict[str, Any]:
    """A stage in a process of its own."""
    words = [sys.executable, __file__, "--stage", stage, str(rows)]
    process = subprocess.run(words, capture_output=True, text=True, check=False)
    if process.returncode:
        raise SystemExit(f"{stage} of {rows} failed:\n{process.stderr[-3_000:]}")
    results = {line.split(" ", 1)[0]: json.loads(line.split(" ", 1)[1]) for line in process.stdout.splitlines()
             if line.startswith(("DONE ", "GROWTH "))}  # fmt: skip
    return {**results["DONE"], "growth": results.get("GROWTH")}


def measure_tables() -> dict[str, tuple[int, float]]:
    """Rows and bytes a row of each table."""
    from pipeline.warehouse.upkeep import check, maintain

    states = {name: check.check(name) for name in maintain.list_written()}
    return {name: (state.rows, state.bytes / state.rows) for name, state in states.items() if state.rows}


def print_growth(results: dict[int, dict[str, dict[str, Any]]]) -> None:
    """The table of the page: growth from each size to the next, marked where it misses a goal."""
    columns = " | ".join(f"CPU s, {rows:,} | peak MB" for rows in results)
    print(f"\n| stage | {columns} | time against linear | peak against the size before |")
    print("| --- |" + " --: |" * (2 * len(results) + 2))
    for stage in STAGES:
        cells = [(rows, stages[stage]) for rows, stages in results.items() if stage in stages]
        if len(cells) < len(results):
            continue  # commits
        pairs = [*pairwise(cells)]
        times = [after["cpu"] * rows / before["cpu"] / more for (rows, before), (more, after) in pairs]
        peaks = [after["peak"] / before["peak"] for (_, before), (_, after) in pairs]
        measured_cells = " | ".join(f"{cell['cpu']:,.1f} | {cell['peak']:,.0f}" for _, cell in cells)
        ratios = [", ".join(f"{ratio:.2f}{' (!)' * (ratio > goal)}" for ratio in growth)
                  for growth, goal in ((times, LONGEST), (peaks, WIDEST))]  # fmt: skip
        print(f"| {stage} | {measured_cells} | {' | '.join(ratios)} |")


def main(sizes: list[int]) -> None:
    """Measure all stages at all sizes."""
    results: dict[int, dict[str, dict[str, Any]]] = {}
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", flush=True)
    for rows in sizes or SIZES:
        with tempfile.TemporaryDirectory(prefix="undertone-scale-") as home:
            os.environ["UNDERTONE_HOME"] = home
            with (Path(home) / "scale.jsonl").open("w", encoding="utf-8") as file:
                for row in generate_rows(rows):
                    file.write(json.dumps(row, ensure_ascii=False) + "\n")
            results[rows] = {}
            for stage in STAGES:
                if stage == "commits" and len(results) > 1:
                    continue
                result = results[rows][stage] = measure(stage, rows)
                spent = f"{result['cpu']:8.2f} cpu-s {result['wall']:8.2f} s {result['peak']:6,.0f} MB"
                print(f"{rows:>10,} {stage:20} {spent} {result['growth'] or ''}", flush=True)
            for name, (count, size) in measure_tables().items():
                print(f"{rows:>10,} {name:20} {count:,} rows of {size:.0f} bytes", flush=True)
    print_growth(results)


if __name__ == "__main__":
    child(sys.argv[2], int(sys.argv[3])) if sys.argv[1:2] == ["--stage"] else main([*map(int, sys.argv[1:])])
