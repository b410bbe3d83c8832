"""Commands that apply a model: score, rank, choose, distance."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated

import polars as pl
from typer import Argument, Option

from pipeline import left_out, sample
from pipeline.commands.reading import print_words
from pipeline.commands.terminal import console, files
from pipeline.commands.terminal.options import Encoding, Json, MaybeDay, Model, TableFile, Texts, check_source, today
from pipeline.errors import BadInput, Missing
from pipeline.progress import track
from pipeline.tasks.record.retry import retry


def score_implicitness(
    file: Annotated[
        Path | None,
        Argument(help="Texts: txt (one a line), csv, tsv, jsonl, json, parquet or xlsx; a day's by default."),
    ] = None,
    day: MaybeDay = "",
    text_column: Texts = None,
    out: Annotated[
        Path | None, Option("--out", "-o", help="Write csv, tsv, jsonl, parquet, or txt (the scores alone).")
    ] = None,
    model: Model = None,
    reference: Annotated[
        str | None, Option(help="Percentiles among this corpus of `reference build`; by default the sample.")
    ] = None,
    calibrated: Annotated[
        str | None,
        Option(help="Add what this measure would be, with an interval: judge, judge:NAME, people or grades."),
    ] = None,
    is_explained: Annotated[
        bool, Option("--explain", help="Print the words of each text with the change when it lacks the word.")
    ] = False,
    limit: Annotated[
        int | None, Option(min=1, help="Of a day, explain so many comments of each end of a source.", show_default="20")
    ] = None,
    encoding: Encoding = "utf-8-sig",
    as_json: Json = False,
) -> None:
    """Score texts for implicitness, 0 (explicit) to 2: of a file, or a day's comments into the table `scores`.

    Adds the columns `implicitness`, `percentile`, `band` and `signature` to a file, empty where there is no text.
    Without --out, prints csv. The percentile is among a reference corpus of the same language, the band is outright,
    indirect, hinted or veiled. --explain has a row a word: above 0, its `change` makes the text more implicit. Of a day
    it writes the words of the highest and the lowest scores into `scores_explained`. --calibrated reads each value by
    the newest `undertone calibrate scorer`: columns `judged_like`, `low` and `high` (95 %).

    Examples: `undertone score implicitness reviews.csv --text-column body --out scored.parquet`;
    `undertone score implicitness lines.txt | sort -t, -k2 -n | tail`;
    `undertone score implicitness lines.txt --explain`; `undertone score implicitness --day 2026-11-19 --explain`
    """
    check_source(file, day)
    if limit and (file or not is_explained):
        raise BadInput("--limit is for --explain of a day")
    if file is None:
        if model or out or text_column or reference or calibrated:
            options = "--model, --out, --text-column, --reference and --calibrated"
            raise BadInput(f"{options} are for a file; a day is scored by the model in force")
        _score_day(day or today(), is_explained, limit)
        return
    if (is_explained or calibrated) and out and out.suffix.lower() == ".txt":
        raise BadInput(f"{out}: .txt holds the scores alone; write words and intervals as csv, tsv, jsonl or parquet")
    from pipeline.tasks.impscore import in_force, references

    model = model or in_force.load_model().model_id  # one for the whole file
    corpus = references.load_reference(model, reference)
    add_intervals = _load_intervals(calibrated, in_force.choose_model(model).model_id) if calibrated else None
    blank_count, column = 0, ""

    def score_chunks() -> Iterator[pl.DataFrame]:
        nonlocal blank_count, column
        for frame, column in files.texts(file, text_column, encoding):
            with track(f"scoring {file.name}", frame.height) as on_progress:
                scores = references.add_readings(frame, column, model, corpus, on_progress)
            blank_count += scores["implicitness"].null_count()
            scores = add_intervals(scores, column) if add_intervals else scores
            if is_explained:
                with track("explaining", frame.height) as on_progress:
                    scores = references.add_words(scores, column, model, on_progress)
            yield scores

    if is_explained and not out and not as_json:
        for scores in score_chunks():
            print_words(scores, column)
    else:
        chunks = score_chunks()
        if is_explained:
            chunks = (scores.explode("words").unnest("words") for scores in chunks)
        files.write_frames(chunks, out, as_json=as_json)
    left_out.record_rows("score", {"no_text": blank_count})


def _load_intervals(measure: str, model_id: str) -> Callable[[pl.DataFrame, str], pl.DataFrame]:
    from pipeline.tasks.calibration import calibrate

    return partial(calibrate.add_intervals, maps=calibrate.load_maps(measure, model_id))


def _score_day(day: str, is_explained: bool, limit: int | None) -> None:
    from pipeline.tasks.daily import explanations, score
    from pipeline.tasks.impscore import references

    explained = (limit or explanations.LIMIT) if is_explained else 0
    with track("scoring") as on_progress:
        count = retry(score.run, day, on_progress, explained)
    if not count:
        raise Missing(f"there are no comments on {day}; `undertone tables` lists the days with comments")
    references.warn_weak(None, references.load_reference(None))
    table = "; words of the highest and lowest are in scores_explained" if explained else ""
    console.report(f"{count:,} scores for {day}{table}")


def rank(
    groups: Annotated[Path | None, Option(help="Graded groups as .jsonl; by default shipped test groups.")] = None,
    model: Model = None,
    as_json: Json = False,
) -> None:
    """Rank graded groups by implicitness: Kendall's tau and Spearman's rho, with surface baselines.

    A line of the file is {"group": name, "sentences": [from most explicit to most implicit]}.

    Examples: `undertone groups rank`; `undertone groups rank --groups mine.jsonl --model model/ --json`
    """
    from pipeline.examples.impscore.groups import read
    from pipeline.score.reference import WEAK, describe_weakness
    from pipeline.tasks.impscore import rank as work

    sentences, training_groups = (read(groups), None) if groups else read_default_groups()
    with track("ranking", sentences.height) as on_progress:
        correlations = work.rank(sentences, model, on_progress, training_groups)
    console.print_result(correlations, correlations.drop("by").row(0, named=True), as_json)
    if (tau := correlations["kendall_tau"][0]) < WEAK:
        console.report(describe_weakness({"": tau}))


def agree(
    ratings: Annotated[
        Path | None,
        Option(help="Orders as .jsonl: rater, group, ranks (1 is the most explicit); by default the table's."),
    ] = None,
    groups: Annotated[
        Path | None, Option(help="The graded groups they ranked, as .jsonl; by default shipped test groups.")
    ] = None,
    model: Model = None,
    figure: Annotated[Path | None, Option(help="Also draw the matrix of Kendall's tau, as .svg.")] = None,
    as_json: Json = False,
) -> None:
    """Measure how far raters, the order of the groups and a model agree on graded groups, each with each.

    Examples: `undertone groups agree --ratings ratings.jsonl --groups groups.jsonl`; `undertone groups agree` (of
    people's orders in the tables)
    """
    from pipeline.examples.impscore.groups import read, read_ratings
    from pipeline.report.impscore import model_figures
    from pipeline.tasks.impscore import rank as work
    from pipeline.tasks.impscore import user_study

    sentences = read(groups) if groups else read_default_groups()[0]
    orders = read_ratings(ratings, sentences) if ratings else user_study.load_orders(sentences)
    matrices = work.measure_agreement(sentences, orders, model)
    kendall, spearman, concordance = (matrices[name] for name in ("kendall", "spearman", "concordance"))
    if figure:
        if "set" in kendall.columns:
            raise BadInput("--figure draws the orders of a file; give them with --ratings")
        svg = model_figures.draw_matrix(kendall["by"].to_list(), kendall.drop("by").to_numpy(), "Kendall's tau")
        figure.write_text(svg, encoding="utf-8")
    console.print_result(kendall, {"spearman": spearman.to_dicts(), "concordance": concordance.to_dicts()}, as_json)
    if not as_json:
        console.table(spearman, "Spearman's rho")
        console.table(concordance, "Kendall's W")


def choose(
    questions: Annotated[
        Path | None, Option(help="Choice questions as .jsonl; by default made of the shipped groups for tests.")
    ] = None,
    model: Model = None,
    out: Annotated[Path | None, Option("--out", "-o", help="Also write every answer.")] = None,
    as_json: Json = False,
) -> None:
    """Answer choice questions: the option of least pragmatic distance to the reference.

    A line of the file is {"reference": text, "options": [texts], "answer": place of the right one, from 0}.

    Examples: `undertone groups choose`; `undertone groups choose --questions mine.jsonl --json`
    """
    from pipeline.examples.impscore.questions import build_questions, read
    from pipeline.tasks.impscore import rank as work

    rows = read(questions) if questions else build_questions(read_default_groups()[0]).drop("group")
    with track("choosing") as on_progress:
        answered = work.choose(rows, model, on_progress)
    if out:
        with files.Writer(out) as writer:
            writer.write(answered)
    accuracy = work.measure_accuracy(answered)
    console.print_result(accuracy, accuracy.drop("by").row(0, named=True), as_json)


def distance(
    pairs: Annotated[Path, Option(help="csv, tsv, jsonl, json, parquet or xlsx with two text columns.")],
    columns: Annotated[
        str | None, Option(help="Two columns, comma-separated; implicit,explicit or the first two by default.")
    ] = None,
    model: Model = None,
    out: TableFile = None,
    encoding: Encoding = "utf-8-sig",
    as_json: Json = False,
) -> None:
    """Measure the pragmatic distance of the two sentences of each row: 0 means the same.

    Adds the column `pragmatic_distance`, empty where there is no text. Without --out, prints csv.

    Example: `undertone pairs distance --pairs pairs.csv --out distances.csv`
    """
    from pipeline.io.rows import read_chunks
    from pipeline.tasks.impscore import rank as work

    def measure_chunks() -> Iterator[pl.DataFrame]:
        for chunk in read_chunks(pairs, encoding):
            frame = pl.DataFrame(chunk.rows, infer_schema_length=None, strict=False)
            first, second = _choose_columns(pairs, frame, columns)
            with track(f"measuring {pairs.name}") as on_progress:
                distances = work.add_distances(frame, first, second, model, on_progress)
            yield distances

    files.write_frames(measure_chunks(), out, as_json=as_json)


def _choose_columns(path: Path, frame: pl.DataFrame, columns: str | None) -> list[str]:
    """Choose the two text columns of a file."""
    texts = [name for name, kind in frame.schema.items() if kind == pl.String]
    usual = ["implicit", "explicit"]
    names = columns.split(",") if columns else usual if set(usual) <= set(texts) else texts[:2]
    if len(names) != 2 or not set(names) <= set(texts):
        existing = ", ".join(texts) or "none"
        raise BadInput(f"{path}: expected two text columns; there are {existing}; name them by --columns")
    return names


def read_default_groups() -> tuple[pl.DataFrame, pl.DataFrame]:
    """Read the shipped English groups that the shipped model was not trained on, and those that it was trained on."""
    from pipeline.examples.impscore import groups

    rows = groups.add_split(groups.read(sample.GROUPS["en"]))
    is_test = pl.col("split") == "test"
    return rows.filter(is_test), rows.filter(~is_test)
