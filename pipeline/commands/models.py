"""Commands that use models: train, score, rank."""

from functools import partial
from pathlib import Path
from typing import Annotated

import polars as pl
import typer

from pipeline import sample, warehouse
from pipeline.commands import console
from pipeline.commands.options import Day, Encoding, again, today
from pipeline.errors import BadInput, Missing
from pipeline.slices import parse_day

train_app = typer.Typer(no_args_is_help=True, help="Train models.")
score_app = typer.Typer(no_args_is_help=True, help="Score texts.")


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
    day = day or today()
    for source in again(lambda: impscore.play(day, str(cassette) if cassette else None)):
        pairs = again(partial(impscore.build_pairs, source, day, seed))
        console.say(f"{source}: {pairs} pairs")
    with console.progress("encoding", 3 * warehouse.scan("pairs").select(pl.len()).collect().item()) as done:
        model_id = again(lambda: impscore.train(day, epochs=epochs, seed=seed, done=done))
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
        rows = again(partial(score.run, day, done))
    if not rows:
        raise Missing(f"there are no comments on {day}; `undertone tables` counts the days there are")
    console.say(f"{rows:,} scores for {day}")


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
