"""Commands that apply a model: score, rank, choose, distance."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Annotated

import polars as pl
import typer

from pipeline import left_out, sample
from pipeline.commands.terminal import console, files
from pipeline.commands.terminal.options import Day, Encoding, Json, Model, check_source, tell, today
from pipeline.errors import BadInput, Missing
from pipeline.progress import track
from pipeline.tasks.record.retry import retry


def score_implicitness(
    file: Annotated[
        Path | None,
        typer.Argument(help="Texts: txt (one a line), csv, tsv, jsonl, json, parquet or xlsx; a day's by default."),
    ] = None,
    day: Day = "",
    text_column: Annotated[str | None, typer.Option("--text-column", "-c", help="Column with the texts.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write csv, tsv, jsonl, parquet, or txt (the scores alone).")
    ] = None,
    model: Model = None,
    encoding: Encoding = "utf-8-sig",
    as_json: Json = False,
) -> None:
    """Score texts for implicitness, 0 (explicit) to 2: of a file, or a day's comments into the table `scores`.

    Adds the columns `implicitness` and `signature` to a file, empty where there is no text. Without --out, prints csv.

    Examples: `undertone score implicitness reviews.csv --text-column body --out scored.parquet`;
    `undertone score implicitness lines.txt | sort -t, -k2 -n | tail`;
    `undertone score implicitness --day 2026-11-19`
    """
    check_source(file, day)
    if file is None:
        if model or out or text_column:
            raise BadInput("--model, --out and --text-column are for a file; a day is scored by the model in force")
        _score_day(day or today())
        return
    from pipeline.tasks.impscore import scoring

    blank = []

    def scored() -> Iterator[pl.DataFrame]:
        for frame, column in files.texts(file, text_column, encoding):
            with track(f"scoring {file.name}", frame.height) as done:
                found = scoring.add_scores(frame, column, model, done)
            blank.append(found["implicitness"].null_count())
            yield found

    files.put(scored(), out, as_json=as_json)
    left_out.record_rows("score", {"no_text": sum(blank)})


def _score_day(day: str) -> None:
    from pipeline.tasks.daily import score

    with track("scoring") as done:
        rows = retry(partial(score.run, day, done))
    if not rows:
        raise Missing(f"there are no comments on {day}; `undertone tables` counts the days there are")
    console.say(f"{rows:,} scores for {day}")


def rank(
    groups: Annotated[
        Path | None,
        typer.Option(help="Graded groups as .jsonl; by default the shipped English ones kept apart from training."),
    ] = None,
    model: Model = None,
    as_json: Json = False,
) -> None:
    """Rank graded groups by implicitness: Kendall's tau and Spearman's rho, with surface baselines beside them.

    A line of the file is {"group": name, "sentences": [from most explicit to most implicit]}.

    Examples: `undertone groups rank`; `undertone groups rank --groups mine.jsonl --model model/ --json`
    """
    from pipeline.examples.impscore.groups import read
    from pipeline.tasks.impscore import rank as work

    sentences, learnt = (read(groups), None) if groups else _default_groups()
    with track("ranking", sentences.height) as done:
        found = work.rank(sentences, model, done, learnt)
    tell(found, found.drop("by").row(0, named=True), as_json)


def agree(
    ratings: Annotated[
        Path, typer.Option(help="Raters' orders as .jsonl: rater, group, ranks (one a sentence, 1 the most explicit).")
    ],
    groups: Annotated[Path, typer.Option(help="The graded groups they ranked, as .jsonl.")],
    model: Model = None,
    figure: Annotated[Path | None, typer.Option(help="Also draw the matrix of Kendall's tau, as .svg.")] = None,
    as_json: Json = False,
) -> None:
    """How far raters, the groups' own order and a model agree on the order of graded groups, each with each.

    Example: `undertone groups agree --ratings ratings.jsonl --groups groups.jsonl`
    """
    from pipeline.examples.impscore.groups import read, read_ratings
    from pipeline.report.impscore import model_figures
    from pipeline.tasks.impscore import rank as work

    sentences = read(groups)
    found = work.measure_agreement(sentences, read_ratings(ratings, sentences), model)
    kendall = found["kendall"]
    if figure:
        drawn = model_figures.draw_matrix(kendall["by"].to_list(), kendall.drop("by").to_numpy(), "Kendall's tau")
        figure.write_text(drawn, encoding="utf-8")
    tell(kendall, {"spearman": found["spearman"].to_dicts()}, as_json)
    if not as_json:
        console.table(found["spearman"], "Spearman's rho")


def choose(
    questions: Annotated[
        Path | None,
        typer.Option(
            help="Choice questions as .jsonl; by default made of the shipped groups kept apart from training."
        ),
    ] = None,
    model: Model = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Also write every answer.")] = None,
    as_json: Json = False,
) -> None:
    """Answer choice questions: the option of least pragmatic distance to the reference.

    A line of the file is {"reference": text, "options": [texts], "answer": place of the right one, from 0}.

    Examples: `undertone groups choose`; `undertone groups choose --questions mine.jsonl --json`
    """
    from pipeline.examples.impscore.questions import from_groups, read
    from pipeline.tasks.impscore import rank as work

    asked = read(questions) if questions else from_groups(_default_groups()[0]).drop("group")
    with track("choosing") as done:
        answered = work.choose(asked, model, done)
    if out:
        with files.Writer(out) as writer:
            writer.write(answered)
    found = work.measure_accuracy(answered)
    tell(found, found.drop("by").row(0, named=True), as_json)


def distance(
    pairs: Annotated[Path, typer.Option(help="csv, tsv, jsonl, json, parquet or xlsx with two text columns.")],
    columns: Annotated[
        str | None,
        typer.Option(help="The two columns, comma-separated; implicit,explicit or the first two by default."),
    ] = None,
    model: Model = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write csv, tsv, jsonl or parquet.")] = None,
    encoding: Encoding = "utf-8-sig",
    as_json: Json = False,
) -> None:
    """Pragmatic distance of the two sentences of each row: 0 means the same.

    Adds the column `pragmatic_distance`, empty where there is no text. Without --out, prints csv.

    Example: `undertone pairs distance --pairs pairs.csv --out distances.csv`
    """
    from pipeline.io.rows import read_chunks
    from pipeline.tasks.impscore import rank as work

    def measured() -> Iterator[pl.DataFrame]:
        for chunk in read_chunks(pairs, encoding):
            frame = pl.DataFrame(chunk.rows, infer_schema_length=None, strict=False)
            one, other = _two(pairs, frame, columns)
            with track(f"measuring {pairs.name}") as done:
                found = work.add_distances(frame, one, other, model, done)
            yield found

    files.put(measured(), out, as_json=as_json)


def _two(path: Path, frame: pl.DataFrame, columns: str | None) -> tuple[str, str]:
    """The two text columns of a file."""
    texts = [name for name, kind in frame.schema.items() if kind == pl.String]
    usual = ["implicit", "explicit"]
    names = columns.split(",") if columns else usual if set(usual) <= set(texts) else texts[:2]
    if len(names) != 2 or not set(names) <= set(texts):
        raise BadInput(
            f"{path}: expected two text columns; there are {', '.join(texts) or 'none'}; name them by --columns"
        )
    return names[0], names[1]


def _default_groups() -> tuple[pl.DataFrame, pl.DataFrame]:
    """The shipped English groups that the shipped model was not trained on, and those it was."""
    from pipeline.examples.impscore import groups

    every = groups.add_split(groups.read(sample.GROUPS["en"]))
    is_test = pl.col("split") == "test"
    return every.filter(is_test), every.filter(~is_test)
