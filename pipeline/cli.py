"""The `undertone` command. Data goes to standard output, words for people to standard error.

Exit codes: 0 done; 1 a check does not hold or something failed; 2 bad input or usage; 3 a source refused; 4 something
is missing; 75 try again.
"""

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, TypeVar

import polars as pl
import tenacity
import typer

from pipeline import __version__, sample, warehouse
from pipeline.commands import console
from pipeline.errors import BadInput, Missing, Retry, UndertoneError
from pipeline.slices import parse_day

T = TypeVar("T")

app = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown", pretty_exceptions_enable=False, help=__doc__)
train_app = typer.Typer(no_args_is_help=True, help="Train models.")
score_app = typer.Typer(no_args_is_help=True, help="Score texts.")
app.add_typer(train_app, name="train")
app.add_typer(score_app, name="score")

Day = Annotated[str, typer.Option("--day", help="UTC day, YYYY-MM-DD.", show_default="today")]
Encoding = Annotated[str, typer.Option(help="Encoding of text files, such as gb18030.")]


def main() -> None:
    """Run the command; one of our errors becomes one line and its exit code."""
    try:
        app()
    except UndertoneError as why:
        console.say(f"undertone: {why}")
        raise SystemExit(why.exit_code) from None


def _today() -> str:
    return dt.datetime.now(dt.UTC).date().isoformat()


def _again(work: Callable[[], T]) -> T:
    """Do a transaction, anew if another writer was faster."""
    wait = tenacity.wait_random_exponential(multiplier=0.2, max=5)
    for attempt in tenacity.Retrying(
        retry=tenacity.retry_if_exception_type(Retry), stop=tenacity.stop_after_attempt(5), wait=wait, reraise=True
    ):
        with attempt:
            return work()
    raise AssertionError("tenacity ends by return or raise")


@app.callback()
def options(
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Say what is written where.")] = False,
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    """Measure what text means but does not say."""
    console.logging_to_stderr(verbose)
    if version:
        typer.echo(__version__)
        raise typer.Exit


@app.command()
def init() -> None:
    """Create the catalog and the tables. Safe to repeat.

    Example: `undertone init`
    """
    created = warehouse.create()
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
) -> None:
    """Import comments from files. Importing a file again replaces what it brought.

    Examples: `undertone import comments.csv --source forum --map text=body,like_count=likes`;
    `undertone import weibo_note_comment.jsonl` (a MediaCrawler export is recognised by its columns);
    `undertone import posts.jsonl --map thread_id=id,article_text=text,comments=replies` (a list of comments a row)
    """
    from pipeline.collect import columns
    from pipeline.tasks import collect
    from pipeline.tasks.intake import Collected

    warehouse.create()
    files = [file for path in paths for file in collect.files(str(path), source, day or _today())]
    name = origin or (collect.origin_of(str(paths[0])) if len(paths) == 1 else None)
    columns_given = columns.parse(mapping)
    with console.progress("importing") as done:

        def work() -> list[Collected]:
            return collect.import_files(
                files, source, day or _today(), mapping=columns_given, origin=name, encoding=encoding, done=done
            )

        collected = _again(work)
    _told(collected)


@app.command()
def collect(
    source: Annotated[str, typer.Option(help="all, or one source.")] = "all",
    day: Day = "",
    path: Annotated[str | None, typer.Option(help="`sample`, a file or a folder; the day's inbox by default.")] = None,
    mapping: Annotated[str | None, typer.Option("--map", help="Our field=their column, comma-separated.")] = None,
    encoding: Encoding = "utf-8-sig",
    live: Annotated[bool, typer.Option("--live", help="Ask the site, politely.")] = False,
    thread: Annotated[list[str] | None, typer.Option(help="Id of a post, song or article to fetch; repeat it.")] = None,
) -> None:
    """Collect a day: from the inbox, the sample, a path, or a site, as the DAG does for the day before it runs.

    Examples: `undertone collect --path sample --day 2026-11-19`;
    `undertone collect --source netease --live --thread 186016`
    """
    from pipeline.tasks import collect as work
    from pipeline.tasks.intake import Collected

    warehouse.create()
    day = day or _today()
    collected: list[Collected] = []
    with console.progress("collecting") as done:
        for one in work.sources(source, path):
            given = partial(work.run, one, day, path=path, mapping=mapping, encoding=encoding, done=done)
            collected += _again(partial(given, live=live, threads=thread or []))
    if not collected:
        console.say(f"nothing found for {day}")
    _told(collected)


def _told(done: Sequence[Mapping[str, object]]) -> None:
    if done:
        console.table(pl.DataFrame(done).drop("stopped"))
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
    from pipeline.tasks import segment
    from pipeline.text.segment import disagreement

    if compare:
        texts = warehouse.scan("comments", pl.col("lang") == "zh").select(pl.col("text").unique()).collect()["text"]
        apart, examples = disagreement(texts.to_list())
        console.say(f"{apart:,} of {len(texts):,} texts are cut otherwise")
        rows = [(text, " ".join(one), " ".join(other)) for text, one, other in examples]
        console.table(pl.DataFrame(rows, schema=["text", "jieba", "rjieba"], orient="row"))
        return
    with console.progress("cutting") as done:
        rows_written = _again(partial(segment.run, day or _today(), chinese, english, done))
    console.say(f"{rows_written:,} rows of tokens for {day or _today()}")


@train_app.command("impscore")
def train_impscore(
    cassette: Annotated[Path | None, typer.Option(help="A .jsonl cassette of completions.")] = None,
    use_sample: Annotated[bool, typer.Option("--sample", help="Train on the pairs shipped with Undertone.")] = False,
    day: Day = "",
    epochs: Annotated[int | None, typer.Option(min=1, help="30, as in the paper, unless given.")] = None,
    seed: Annotated[int | None, typer.Option(help="42, as in the released code, unless given.")] = None,
) -> None:
    """Train ImpScore and put it into the registry. The same pairs and numbers give the same model.

    Example: `undertone train impscore --sample`
    """
    from pipeline.tasks import impscore

    if (cassette is None) != use_sample:
        raise BadInput("say either --sample or --cassette FILE")
    warehouse.create()
    day = day or _today()
    for source in _again(lambda: impscore.play(day, str(cassette) if cassette else None)):
        pairs = _again(partial(impscore.build_pairs, source, day, seed))
        console.say(f"{source}: {pairs} pairs")
    with console.progress("encoding", 3 * warehouse.scan("pairs").select(pl.len()).collect().item()) as done:
        model_id = _again(lambda: impscore.train(day, epochs=epochs, seed=seed, done=done))
    numbers = warehouse.query(
        "select split, metric, value, baseline, pair_count from evaluations "
        "where model_id = ? and day = ? and epoch = 0 and subset = 'all' and metric like '%accuracy' order by all",
        [model_id, parse_day(day)],
    )
    console.table(numbers)
    typer.echo(model_id)


@score_app.command("implicitness")
def score_implicitness(
    file: Annotated[Path, typer.Argument(help="txt (one text a line), csv, tsv, jsonl, json, parquet or xlsx.")],
    text_column: Annotated[str | None, typer.Option("--text-column", "-c", help="Column with the texts.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write csv, tsv, jsonl, parquet, or txt (the scores alone).")
    ] = None,
    model: Annotated[str | None, typer.Option(help="Model id; the newest by default.")] = None,
    encoding: Encoding = "utf-8-sig",
) -> None:
    """Score each text of a file for implicitness: 0 says what it means, towards 2 more is left unsaid.

    Adds the columns `implicitness` and `signature`, both empty where there is no text. Without --out, prints csv.

    Examples: `undertone score implicitness reviews.csv --text-column body --out scored.parquet`;
    `undertone score implicitness lines.txt | sort -t, -k2 -n | tail`
    """
    from pipeline.commands import files
    from pipeline.tasks import impscore, score

    model_id = model or impscore.model_for(None)
    first, blank = True, 0
    with files.Writer(out or Path("stdout.csv")) as writer:
        for frame, column in files.texts(file, text_column, encoding):
            with console.progress(f"scoring {file.name}", frame.height) as done:
                scored = score.frame(frame, column, model_id, done)
            if out:
                writer.write(scored)
            else:
                typer.echo(files.as_text(scored, ".csv", header=first), nl=False)
            first = False
            blank += scored["implicitness"].null_count()
    if blank:
        console.say(f"{blank:,} rows hold no text and have no score")
    if out:
        console.say(f"wrote {out}")


@score_app.command("day")
def score_day(day: Annotated[str, typer.Argument(help="UTC day, YYYY-MM-DD.")]) -> None:
    """Score a day's comments into the table `scores`.

    Example: `undertone score day 2026-11-19`
    """
    from pipeline.tasks import score

    with console.progress("scoring") as done:
        rows = _again(partial(score.run, day, done))
    if not rows:
        raise Missing(f"there are no comments on {day}; `undertone tables` counts the days there are")
    console.say(f"{rows:,} scores for {day}")


@app.command()
def rank(
    groups: Annotated[
        Path | None, typer.Option(help="Graded groups as .jsonl; the shipped English ones by default.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="Model id; the newest by default.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """Rank graded groups by implicitness: Kendall's tau and Spearman's rho, with surface baselines beside them.

    A line of the file is {"group": name, "sentences": [from most explicit to most implicit]}.

    Examples: `undertone rank`; `undertone rank --groups mine.jsonl --json`
    """
    from pipeline.commands import files
    from pipeline.examples.groups import read
    from pipeline.tasks import rank as work

    path = groups or sample.GROUPS["en"]
    with console.progress(f"ranking {path.name}", read(path).height) as done:
        found = work.rank(path, model, done)
    files.to_stdout(found, ".jsonl") if as_json else console.table(found)


@app.command()
def tables(as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False) -> None:
    """List the tables with their rows.

    Example: `undertone tables`
    """
    from pipeline.commands import files
    from pipeline.tasks.tables import counts

    frame = counts()
    files.to_stdout(frame, ".jsonl") if as_json else console.table(frame)


@app.command()
def query(
    sql: Annotated[str, typer.Argument(help="SQL in DuckDB's dialect, over tables and views.")],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="csv, safe for spreadsheets.")] = False,
) -> None:
    """Ask the tables.

    Examples: `undertone query "select * from most_implicit limit 5"`;
    `undertone query "select * from implicitness_by_source_day" --csv`
    """
    from pipeline.commands import files

    frame = warehouse.query(sql)
    if as_json or as_csv:
        files.to_stdout(frame, ".jsonl" if as_json else ".csv")
    else:
        console.table(frame)


@app.command()
def check() -> None:
    """Run the data checks of sql/checks; exit code 1 if one does not hold.

    Example: `undertone check`
    """
    failed = 0
    for name in warehouse.checks():
        rows = warehouse.run_check(name)
        failed += bool(rows)
        console.out.print(f"{'FAILED' if rows else 'holds '}  {name}", markup=False)
        if rows:
            console.table(pl.DataFrame(rows))
    raise typer.Exit(1 if failed else 0)


@app.command()
def report(day: Day = "") -> None:
    """Write a day's HTML report and print its path.

    Example: `undertone report --day 2026-11-19`
    """
    from pipeline.tasks import report as work

    with console.working("writing the report"):
        path = work.write(day or _today())
    typer.echo(path)


@app.command()
def heal(dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list the days.")] = False) -> None:
    """Find days that lack tokens or scores, because a DAG was paused or failed, and make them.

    Examples: `undertone heal --dry-run`; `undertone heal`
    """
    from pipeline.tasks import heal as work

    found = work.holes()
    for name, days in found.items():
        console.say(f"days without {name}: {', '.join(days) or 'none'}")
    if not dry_run:
        with console.working("making what is missing"):
            _again(lambda: work.heal(found))


@app.command()
def maintain() -> None:
    """Compact small files, expire snapshots older than a week, sweep orphans older than a day.

    Example: `undertone maintain`
    """
    with console.working("tidying"):
        done = warehouse.maintain()
    console.table(pl.DataFrame([{"table": name, **what} for name, what in done.items()]))


@app.command()
def up() -> None:
    """Start Airflow on this machine, on loopback only.

    Example: `undertone up`
    """
    from pipeline.commands import demo as work

    work.up()


@app.command()
def down() -> None:
    """Stop the Airflow that `up` or `demo` started; no process of it stays.

    Example: `undertone down`
    """
    from pipeline.commands import stack

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
    from pipeline.commands import demo as work

    console.say(f"the sample of {len(sample.sources())} sites, filed under {sample.DAY}")
    work.demo()


@app.command()
def doctor(as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False) -> None:
    """Say what is installed and found, and what to do about each thing that is not.

    Example: `undertone doctor`
    """
    from pipeline.commands import doctor as work
    from pipeline.commands import files

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
