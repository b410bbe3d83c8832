"""The `undertone` command. Data goes to standard output, words for people to standard error.

Exit codes: 0 done; 1 a check does not hold, or something failed in part; 2 bad input or usage; 3 a source refused, or
nothing that was asked has an answer; 4 something is missing; 70 a bug of Undertone; 75 try again; 130 and 143 stopped;
141 the reader of the output went away.
"""

import signal
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import polars as pl
import typer

from pipeline import __version__, left_out, private, sample, settings, warehouse
from pipeline.commands import asking, commenting, label, measures, models, pairs, recovery, studies, subtext
from pipeline.commands.ndd import compression, distance, grades
from pipeline.commands.operate import backfill, forget, query, upkeep
from pipeline.commands.recam import abstractness, cloze, readers
from pipeline.commands.terminal import console, failures  # fmt: skip
from pipeline.commands.terminal.options import Day, Encoding, SkipBadRows, today
from pipeline.errors import BadInput
from pipeline.explanations import is_undecodable
from pipeline.tasks.record.retry import again

if TYPE_CHECKING:
    from pipeline.tasks.daily.intake import Collected

app = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown", pretty_exceptions_enable=False, help=__doc__)
app.add_typer(pairs.app, name="pairs")
app.add_typer(label.app, name="label")
app.add_typer(asking.app, name="llm")
app.add_typer(cloze.app, name="cloze")
app.add_typer(commenting.app, name="commenting")
app.add_typer(commenting.metric_app, name="metric")
app.add_typer(studies.groups_app, name="groups")
app.add_typer(studies.app, name="study")
app.add_typer(distance.ndd_app, name="ndd-study")
app.add_typer(models.train_app, name="train")
app.add_typer(models.evaluate_app, name="evaluate")
app.add_typer(measures.score_app, name="score")
models.train_app.command("subtext")(subtext.train)
models.evaluate_app.command("subtext")(subtext.evaluate)
measures.score_app.command("subtext")(subtext.score)
models.train_app.command("abstractness")(abstractness.train)
measures.score_app.command("abstractness")(abstractness.score)
models.train_app.command("reader")(readers.train)
models.train_app.command("masked_lm")(readers.train_masked_lm)
models.evaluate_app.command("reader")(readers.evaluate)
models.train_app.command("commenter")(commenting.train)
app.command("comment")(commenting.comment)
app.command("correlate")(commenting.correlate)
models.train_app.command("quality")(commenting.train_quality)
models.evaluate_app.command("quality")(commenting.evaluate_quality)
models.evaluate_app.command("compression")(compression.evaluate)
measures.score_app.command("quality")(commenting.score_quality)
distance.ndd_app.command("rate")(grades.rate)
distance.ndd_app.command("ratings")(grades.ratings)
measures.score_app.command("context_shift")(distance.score_context_shift)
models.train_app.command("count_lm")(distance.train_count_lm)
app.command("ndd")(distance.ndd)
app.command("compress")(distance.compress)
app.command("recover")(recovery.recover)
app.command("query")(query.query)
app.command("backfill")(backfill.backfill)
app.command("forget")(forget.forget)
app.command("check")(upkeep.check)
app.command("maintain")(upkeep.maintain)
app.command("recover-catalog")(upkeep.recover_catalog)
models.train_app.command("recovery")(recovery.train)
models.evaluate_app.command("recovery")(recovery.evaluate)
for command in (measures.rank, measures.choose, measures.distance, measures.agree):
    app.command()(command)


def main() -> None:
    """Run the command. Whatever happens, it ends with a line for people and a documented exit code."""
    console.prepare_streams()
    left_out.clear()
    handler = signal.signal(signal.SIGTERM, _terminate)
    try:
        with private.private_umask() as mask:
            code = _run(mask)
    except BaseException as error:  # noqa: BLE001 - a panic of a library in Rust is no Exception
        code = console.report_failure(error, is_debug=settings.debug() or "--debug" in sys.argv)
    finally:
        signal.signal(signal.SIGTERM, handler)
    failures.silence()
    raise SystemExit(code)


def _run(mask: int) -> int:
    """The exit code of the command; what it left out is printed, also after a check that does not hold."""
    if odd := [word for word in sys.argv[1:] if is_undecodable(word)]:
        raise BadInput(f"{odd[0]!a}: this argument is not UTF-8; rename the file, or write the argument in UTF-8")
    outputs: list[private.Output] = []
    command = typer.main.get_command(app)
    _record_outputs(command, outputs)
    try:
        command()
    except SystemExit as ended:
        if failures.is_closed(ended) or not isinstance(ended.code, int) or ended.code > 1:
            raise
        console.say_left_out(as_json="--json" in sys.argv)
        sys.stdout.flush()
        return ended.code
    finally:
        for output in outputs:
            output.share(mask)
    return 0


def _record_outputs(command: Any, outputs: list[private.Output]) -> None:
    """Note what a person names as `out` of any command: it follows their umask, all else is private."""

    def record(_: object, __: object, value: str | Path | None) -> str | Path | None:
        if value:
            outputs.append(private.Output(Path(value), settings.home()))
        return value

    for param in command.params:
        if param.name == "out":
            param.callback = record
    for part in getattr(command, "commands", {}).values():
        _record_outputs(part, outputs)


def _terminate(*_: object) -> None:
    raise SystemExit(failures.TERMINATED)


@app.callback()
def options(
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Say what is written where.")] = False,
    log_json: Annotated[bool, typer.Option("--log-json", help="The same as JSON lines with fields.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Print the traceback of a bug.")] = False,  # noqa: ARG001
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    """Measure what text means but does not say."""
    console.logging_to_stderr(verbose, log_json)
    if version:
        typer.echo(__version__)
        raise typer.Exit


@app.command()
def init() -> None:
    """Create the catalog and the tables. Safe to repeat.

    Example: `undertone init`
    """
    created = warehouse.create()
    if count := private.tighten(settings.home()):
        console.say(f"{count:,} files and folders of {settings.home()} could be read by others; now by you alone")
    console.say(f"created {', '.join(created)}" if created else "all tables are there")


@app.command("import")
def import_(
    paths: Annotated[
        list[Path], typer.Argument(help="Files or folders: csv, tsv, txt, jsonl, json, parquet, xlsx, SQLite.")
    ],
    source: Annotated[
        str | None, typer.Option(help="Name to file the rows under; known exports name their own.")
    ] = None,
    day: Day = "",
    mapping: Annotated[str | None, typer.Option("--map", help="Our field=their column, comma-separated.")] = None,
    origin: Annotated[
        str | None, typer.Option(help="Name of this import within the day; the file's by default.")
    ] = None,
    encoding: Encoding = "utf-8-sig",
    skip_bad_rows: SkipBadRows = False,
) -> None:
    """Import comments from files. Importing a file again replaces what it brought.

    Examples: `undertone import comments.csv --source forum --map text=body,like_count=likes`;
    `undertone import weibo_note_comment.jsonl` (a MediaCrawler export is recognised by its columns);
    `undertone import posts.jsonl --map thread_id=id,article_text=text,comments=replies` (a list of comments a row)
    """
    from pipeline.collect import columns
    from pipeline.tasks.daily import collect
    from pipeline.tasks.daily.intake import Collected

    warehouse.create()
    inputs = [collect.inputs(str(path), source, day or today()) for path in paths]
    files = [file for part in inputs for file in part.files]
    ignored = [name for part in inputs for name in part.left_out]
    if len(files) > 1 or ignored:
        more = f" and {len(files) - 20:,} more" if len(files) > 20 else ""
        console.say(f"reading {', '.join(file.name for file in files[:20])}{more}")
    name = origin or (collect.origin_of(str(paths[0])) if len(paths) == 1 else None)
    columns_given = columns.parse(mapping)
    with console.progress("importing") as done:

        def work() -> list[Collected]:
            return collect.import_bounded(
                files, source, day or today(), mapping=columns_given, origin=name, encoding=encoding,
                skip_bad_rows=skip_bad_rows, ignored=ignored, on_progress=done,
            )  # fmt: skip

        collected = again(work)
    _told(collected)


@app.command()
def collect(
    source: Annotated[str, typer.Option(help="all, or one source.")] = "all",
    day: Day = "",
    path: Annotated[str | None, typer.Option(help="`sample`, a file or a folder; the day's inbox by default.")] = None,
    mapping: Annotated[str | None, typer.Option("--map", help="Our field=their column, comma-separated.")] = None,
    encoding: Encoding = "utf-8-sig",
    skip_bad_rows: SkipBadRows = False,
    live: Annotated[bool, typer.Option("--live", help="Ask the site, politely.")] = False,
    thread: Annotated[list[str] | None, typer.Option(help="Id of a post, song or article to fetch; repeat it.")] = None,
) -> None:
    """Collect a day: from the inbox, the sample, a path, or a site, as the DAG does for the day before it runs.

    Examples: `undertone collect --path sample --day 2026-11-19`;
    `undertone collect --source netease --live --thread 186016`
    """
    from pipeline.tasks.daily import collect as work
    from pipeline.tasks.daily.intake import Collected

    warehouse.create()
    day = day or today()
    collected: list[Collected] = []
    with console.progress("collecting") as done:
        for one in work.sources(source, path):
            given = partial(work.run, one, day, path=path, mapping=mapping, encoding=encoding, on_progress=done,
                            skip_bad_rows=skip_bad_rows)  # fmt: skip
            collected += again(partial(given, live=live, threads=thread or []))
    if not collected:
        console.say(f"nothing found for {day}")
    _told(collected)


def _told(done: "Sequence[Collected]") -> None:
    if done:
        console.table(pl.DataFrame(done, schema=["source", "articles", "read", "kept", "dropped"]))
    for one in done:
        if one["stopped"]:
            console.say(f"{one['source']} stopped before its end: {one['stopped']}")


@app.command()
def tokenize(
    day: Day = "",
    chinese: Annotated[str, typer.Option(help="jieba or rjieba.")] = "jieba",
    english: Annotated[str, typer.Option(help="nltk or stanza.")] = "nltk",
    compare: Annotated[bool, typer.Option("--compare", help="Only report where jieba and rjieba disagree.")] = False,
) -> None:
    """Cut a day's comments into words; only new texts are cut.

    Examples: `undertone tokenize --day 2026-11-19`; `undertone tokenize --compare`
    """
    from pipeline.tasks.daily import tokenize as segment
    from pipeline.text.segment import disagreement

    if compare:
        texts = warehouse.scan("comments", pl.col("lang") == "zh").select(pl.col("text").unique()).collect()["text"]
        apart, examples = disagreement(texts.to_list())
        console.say(f"{apart:,} of {len(texts):,} texts are cut otherwise")
        rows = [(text, " ".join(one), " ".join(other)) for text, one, other in examples]
        console.table(pl.DataFrame(rows, schema=["text", "jieba", "rjieba"], orient="row"))
        return
    with console.progress("cutting") as done:
        rows_written = again(partial(segment.run, day or today(), chinese, english, done))
    console.say(f"{rows_written:,} rows of tokens for {day or today()}")


@app.command()
def tables(as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False) -> None:
    """List the tables with their rows.

    Example: `undertone tables`
    """
    from pipeline.commands.terminal import files
    from pipeline.tasks.record.table_counts import counts

    frame = counts()
    files.to_stdout(frame, ".jsonl") if as_json else console.table(frame)


@app.command()
def report(day: Day = "") -> None:
    """Write a day's HTML report and print its path.

    Example: `undertone report --day 2026-11-19`
    """
    from pipeline.tasks.daily import report as work

    with console.working("writing the report"):
        path = work.write(day or today())
    typer.echo(path)


@app.command()
def health(
    day: Day = "",
    days: Annotated[int, typer.Option(min=1, help="So many days until it.")] = 14,
    page: Annotated[bool, typer.Option("--page", help="Write the page and print its path.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """Say how each step of the last days went: ok, late, unusual or missing. Exit code 1 if one is missing.

    Examples: `undertone health`; `undertone health --day 2026-11-19 --page`
    """
    from pipeline.commands.terminal.options import show
    from pipeline.tasks.daily import health as work

    if page:
        with console.working("writing the page"):
            path = work.write(day or today(), days)
        typer.echo(path)
        return
    found = work.table(day or today(), days)
    shown = ("day", "step", "status", "why", "read_count", "kept_count", "dropped_count", "seconds", "cost_usd")
    show(found if as_json else found.select(shown), as_json)
    raise typer.Exit(1 if "missing" in found["status"] else 0)


@app.command()
def heal(dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list the days.")] = False) -> None:
    """Find days that lack tokens or scores, because a DAG was paused or failed, and make them.

    Examples: `undertone heal --dry-run`; `undertone heal`
    """
    from pipeline.tasks.daily import heal as work

    found = work.holes()
    for name, days in found.items():
        console.say(f"days without {name}: {', '.join(days) or 'none'}")
    if any(found.values()) and not dry_run:
        with console.working("making what is missing"):
            again(lambda: work.heal(found))


@app.command()
def up() -> None:
    """Start Airflow on this machine, on loopback only.

    Example: `undertone up`
    """
    from pipeline.commands.operate import demo as work

    work.up()


@app.command()
def down() -> None:
    """Stop the Airflow that `up` or `demo` started; no process of it stays.

    Example: `undertone down`
    """
    from pipeline.commands.operate import stack

    if stack.state() is None:
        console.say("Airflow is not running")
        return
    killed = stack.stop()
    console.say("Airflow is stopped" + (f" ({killed} busy processes were ended)" if killed else ""))


@app.command()
def demo() -> None:
    """Run the shipped sample through the whole pipeline on Airflow and show what comes out.

    Example: `undertone demo`
    """
    from pipeline.commands.operate import demo as work

    console.say(f"the sample of {len(sample.sources())} sites, filed under {sample.DAY}")
    work.demo()


@app.command()
def doctor(as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False) -> None:
    """Say what is installed and found, and what to do about each thing that is not.

    Example: `undertone doctor`
    """
    from pipeline.commands.operate import doctor as work
    from pipeline.commands.terminal import files

    found = work.examine()
    if as_json:
        files.to_stdout(pl.DataFrame(found, schema=list(work.Finding._fields), orient="row"), ".jsonl")
    else:
        for one in found:
            mark = "ok     " if one.is_found else "MISSING" if one.needed else "absent "
            console.out.print(f"{mark}  {one.thing}: {one.detail}", markup=False, soft_wrap=True)
            if not one.is_found and one.remedy:
                console.out.print(f"           -> {one.remedy}", markup=False, soft_wrap=True)
    raise typer.Exit(1 if any(one.needed and not one.is_found for one in found) else 0)


if __name__ == "__main__":
    main()
