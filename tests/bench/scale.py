"""`make scale`: what a million comments cost by stage, and what that comes to at 10^6, 10^8 and 10^10.

Comments are generated with a seed; their lengths and copies are those of real ones (`texts.py`).
Each stage runs in a process of its own, so that CPU seconds and peak memory are its own. A busy machine
inflates CPU seconds less than wall time. Beside a named size: `python tests/bench/scale.py 10000 100000`.
"""

import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("POLARS_MAX_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ["TOKENIZERS_PARALLELISM"] = "false"

from tests.bench.texts import generate_comments

DAY, OTHER = "2026-11-19", "2026-11-18"
SIZES = (10_000, 100_000)
SCORED = 10_000  # comments beyond which scoring is not measured: it is linear, and slow without a GPU
SLICES = 100  # commits by which the growth of the metadata is measured
AIMS = (10**6, 10**8, 10**10)
MOVED_BY = {
    "import": "sources and days side by side (one task a source and day); BUCKET_ROWS bounds its memory",
    "deduplicate": "part of import; BUCKET_ROWS",
    "tokenize (jieba)": "rows_per_shard and workers; --chinese rjieba",
    "tokenize (rjieba)": "rows_per_shard and workers",
    "score": "GPU workers on the queue gpu; rows_per_shard; UNDERTONE_PRECISION=bfloat16",
    "publish": "one writer a slice: more slices (sources, days), never more writers in one",
    "compact": "target_megabytes, small_files, gigabytes of `maintain`",
    "views": "filter by day; larger marts in Trino or Spark over the same tables",
    "check": "footers=False of `maintain`",
    "commits": "PostgreSQL as catalog; `maintain` merges manifests and expires snapshots",
}


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


def stage_deduplicate(rows: int) -> None:
    """Only the search for copies, which import does bucket by bucket."""
    import polars as pl

    from pipeline import warehouse
    from pipeline.collect.dedupe import deduplicate

    rows_of_day = warehouse.scan("comments", pl.col("day") == pl.lit(DAY).str.to_date()).collect()
    deduplicate(
        rows_of_day.with_row_index("row_key").with_columns(pl.col("row_key").cast(pl.String)).drop("duplicate_count")
    )


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
    "import": stage_import, "deduplicate": stage_deduplicate, "tokenize (jieba)": stage_tokenize,
    "tokenize (rjieba)": lambda rows: stage_tokenize(rows, "rjieba"), "score": stage_score, "views": stage_views,
    "publish": stage_publish, "compact": stage_compact, "check": stage_check, "commits": stage_commits,
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
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print("DONE", json.dumps({"cpu": time.process_time() - start, "wall": time.monotonic() - wall, "peak": peak}))


def measured(stage: str, rows: int) -> dict[str, Any]:
    """A stage in a process of its own."""
    words = [sys.executable, __file__, "--stage", stage, str(rows)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{stage} of {rows} failed:\n{done.stderr[-3_000:]}")
    results = {line.split(" ", 1)[0]: json.loads(line.split(" ", 1)[1]) for line in done.stdout.splitlines()
             if line.startswith(("DONE ", "GROWTH "))}  # fmt: skip
    return {**results["DONE"], "growth": results.get("GROWTH")}


def sizes() -> dict[str, tuple[int, float]]:
    """Rows and bytes a row of each table."""
    from pipeline.warehouse.upkeep import check, maintain

    states = {name: check.check(name) for name in maintain.list_written()}
    return {name: (state.rows, state.bytes / state.rows) for name, state in states.items() if state.rows}


def print_tables(numbers: dict[int, dict[str, dict[str, Any]]]) -> None:
    """The tables of the page."""
    small, large = min(numbers), max(numbers)
    print(f"\n| stage | CPU s a million, from {small:,} | from {large:,} | peak MB | core-hours at 10^6 | 10^8 | 10^10 "
          "| what moves it |\n| --- | --: | --: | --: | --: | --: | --: | --- |")  # fmt: skip
    for stage in STAGES:
        if stage == "commits":
            continue
        costs = {rows: stages[stage]["cpu"] / rows * 1e6 for rows, stages in numbers.items() if stage in stages}
        best = costs[max(costs)]
        hours = " | ".join(f"{best * aim / 1e6 / 3600:,.2f}" if aim < 10**8 else f"{best * aim / 1e6 / 3600:,.0f}"
                           for aim in AIMS)  # fmt: skip
        peaks = " / ".join(f"{stages[stage]['peak']:,.0f}" for _, stages in sorted(numbers.items()) if stage in stages)
        least = f"{costs[large]:,.0f}" if large in costs else "not run"
        print(f"| {stage} | {costs[small]:,.0f} | {least} | {peaks} | {hours} | {MOVED_BY[stage]} |")


def main(given: list[str]) -> None:
    """Measure all stages at all sizes and tell what follows."""
    numbers: dict[int, dict[str, dict[str, Any]]] = {}
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; one core is used", flush=True)
    for rows in [int(word) for word in given] or SIZES:
        with tempfile.TemporaryDirectory(prefix="undertone-scale-") as home:
            os.environ["UNDERTONE_HOME"] = home
            with (Path(home) / "scale.jsonl").open("w", encoding="utf-8") as file:
                for row in generate_rows(rows):
                    file.write(json.dumps(row, ensure_ascii=False) + "\n")
            numbers[rows] = {}
            for stage in STAGES:
                if (stage == "score" and rows > SCORED) or (stage == "commits" and len(numbers) > 1):
                    continue
                if stage == "commits":
                    at_rest = sizes()
                result = numbers[rows][stage] = measured(stage, rows)
                spent = f"{result['cpu']:8.2f} cpu-s {result['wall']:8.2f} s {result['peak']:6,.0f} MB"
                print(f"{rows:>9,} {stage:20} {spent}", flush=True)
                if result["growth"]:
                    print(f"{'':9} metadata: {result['growth']}")
            if rows == max(numbers):
                at_rest = sizes() if len(numbers) > 1 else at_rest
    print_tables(numbers)
    print("\n| table | rows | bytes a row | at 10^6 | 10^8 | 10^10 comments |\n| --- | --: | --: | --: | --: | --: |")
    comments = at_rest["comments"][0]
    for name, (rows, size) in at_rest.items():
        share = rows / comments
        scaled = " | ".join(f"{size * share * aim / 1e9:,.2f} GB" for aim in AIMS)
        print(f"| {name} | {rows:,} | {size:.0f} | {scaled} |")


if __name__ == "__main__":
    child(sys.argv[2], int(sys.argv[3])) if sys.argv[1:2] == ["--stage"] else main(sys.argv[1:])
