"""Commands about the data of a day: create, import, collect, tokenize, count, report."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import polars as pl
from typer import Argument, Option, echo

from pipeline import private, settings, warehouse
from pipeline.collect import columns
from pipeline.commands.terminal import console
from pipeline.commands.terminal.options import Day, Encoding, FirstDay, Json, KeepDuplicates, LastDay, SkipBadRows
from pipeline.errors import format_quantity
from pipeline.progress import track
from pipeline.tasks import upkeep
from pipeline.tasks.record.retry import retry
from pipeline.text.segment import count_disagreements


def init() -> None:
    """Create the catalog and the tables. Safe to repeat: it aligns tables of an earlier version with their contracts.

    Example: `undertone init`
    """
    messages, created = warehouse.align(), warehouse.create()
    if count := private.tighten(settings.home()):
        messages += [f"{count:,} files and folders of {settings.home()} could be read by others; now by you alone"]
    for message in messages:
        console.report(message)
    console.report(f"created {', '.join(created)}" if created else "all tables exist")


def import_(
    paths: Annotated[list[Path], Argument(help="Files or folders: csv, tsv, txt, jsonl, json, parquet, xlsx, SQLite.")],
    source: Annotated[str | None, Option(help="Name to file the rows under; known exports name their own.")] = None,
    day: Day = "",
    mapping: Annotated[str | None, Option("--map", help="Our field=their column, comma-separated.")] = None,
    origin: Annotated[str | None, Option(help="Name of this import within the day; the file's by default.")] = None,
    encoding: Encoding = "utf-8-sig",
    skip_bad_rows: SkipBadRows = False,
    keep_duplicates: KeepDuplicates = False,
    first_day: FirstDay = None,
    last_day: LastDay = None,
    as_json: Json = False,
) -> None:
    """Import comments from files. Importing a file again replaces its rows.

    Examples: `undertone import comments.csv --source forum --map text=body,like_count=likes`;
    `undertone import weibo_note_comment.jsonl` (a MediaCrawler export is recognised by its columns);
    `undertone import posts.jsonl --map thread_id=id,article_text=text,comments=replies` (a list of comments a row)
    """
    from pipeline.tasks.daily import collect as collect_task

    warehouse.create()
    inputs = [collect_task.list_files(path, source, day) for path in paths]
    files = [file for part in inputs for file in part.files]
    ignored = [name for part in inputs for name in part.left_out]
    if len(files) > 1 or ignored:
        more = f" and {len(files) - 20:,} more" if len(files) > 20 else ""
        console.report(f"reading {', '.join(file.name for file in files[:20])}{more}")
    name = origin or (collect_task.name_origin(paths[0]) if len(paths) == 1 else None)
    options: dict[str, Any] = {"mapping": columns.parse(mapping), "origin": name, "ignored": ignored}
    options["selection"] = {"keep_duplicates": keep_duplicates, "first_day": first_day, "last_day": last_day}
    with track("importing") as on_progress:
        options |= {"encoding": encoding, "skip_bad_rows": skip_bad_rows, "on_progress": on_progress}
        collected = retry(collect_task.import_bounded, files, source, day, **options)
    _print(collected, as_json)


def collect(
    source: Annotated[str, Option(help="all, or one source.")] = "all",
    day: Day = "",
    path: Annotated[str | None, Option(help="`sample`, a file or a folder; the day's inbox by default.")] = None,
    mapping: Annotated[str | None, Option("--map", help="Our field=their column, comma-separated.")] = None,
    encoding: Encoding = "utf-8-sig",
    skip_bad_rows: SkipBadRows = False,
    live: Annotated[bool, Option("--live", help="Ask the site, politely.")] = False,
    thread_id: Annotated[list[str] | None, Option(help="Id of a post, song or article to fetch; repeat it.")] = None,
    keep_duplicates: KeepDuplicates = False,
    first_day: FirstDay = None,
    last_day: LastDay = None,
    as_json: Json = False,
) -> None:
    """Collect a day: from the inbox, the sample, a path, or a site, as the DAG does for the day before it runs.

    Examples: `undertone collect --path sample --day 2026-11-19`;
    `undertone collect --source netease --live --thread-id 186016`
    """
    from pipeline.tasks.daily import collect as collect_task

    warehouse.create()
    collected: list[Any] = []
    options: dict[str, Any] = {"path": path, "mapping": mapping, "live": live}
    options["selection"] = {"keep_duplicates": keep_duplicates, "first_day": first_day, "last_day": last_day}
    with track("collecting") as on_progress:
        options |= {"encoding": encoding, "skip_bad_rows": skip_bad_rows, "on_progress": on_progress}
        for name in collect_task.list_sources(source, path, live=live, threads=thread_id or []):
            collected += retry(partial(collect_task.run, day=day, threads=thread_id or [], **options), name)
    if not collected:
        console.report(f"nothing found for {day}")
    _print(collected, as_json)


def _print(collected: Sequence[Mapping[str, Any]], as_json: bool) -> None:
    if collected:
        console.show(pl.DataFrame(collected, schema=["source", "articles", "read", "kept", "dropped"]), as_json)
    for source in collected:
        if source["articles"] and not source["read"]:
            console.report(f"{source['source']}: articles alone; the other counts are of comments")
        if source["stopped"]:
            console.report(f"{source['source']} stopped before its end: {source['stopped']}")


def tokenize(
    day: Day = "",
    chinese: Annotated[Literal["jieba", "rjieba"], Option(help="Of texts in Chinese.")] = "jieba",
    english: Annotated[Literal["nltk", "stanza"], Option(help="Of texts in English.")] = "nltk",
    compare: Annotated[bool, Option("--compare", help="Only report where jieba and rjieba disagree.")] = False,
) -> None:
    """Tokenize a day's comments; only new texts are tokenized.

    Examples: `undertone tokenize --day 2026-11-19`; `undertone tokenize --compare`
    """
    from pipeline.tasks.daily import tokenize as tokenize_task

    if compare:
        texts = warehouse.scan("comments", pl.col("lang") == "zh").select(pl.col("text").unique()).collect()["text"]
        differing_count, examples = count_disagreements(texts.to_list())
        console.report(f"jieba and rjieba tokenize {differing_count:,} of {len(texts):,} texts differently")
        rows = [(text, " ".join(jieba), " ".join(rjieba)) for text, jieba, rjieba in examples]
        console.table(pl.DataFrame(rows, schema=["text", "jieba", "rjieba"], orient="row"))
        return
    with track("tokenizing") as on_progress:
        row_count = retry(tokenize_task.run, day, chinese, english, on_progress)
    quantity = format_quantity(row_count, "text")
    console.report(f"tokens of {quantity} for {day}; a text that a source has several times counts once")


def tables(as_json: Annotated[bool, Option("--json", help="One JSON object a line.")] = False) -> None:
    """List the tables with their rows. Example: `undertone tables`"""
    console.show(upkeep.count_rows(), as_json)


def report(day: Day = "") -> None:
    """Write a day's HTML report and print its path.

    Example: `undertone report --day 2026-11-19`
    """
    from pipeline.tasks.daily import report as report_task

    with console.working("writing the report"):
        path = report_task.write(day)
    echo(path)
