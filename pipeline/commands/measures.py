"""Commands that score texts and by which a score can be read: references, words, distances, a test of the models."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Annotated

import polars as pl
from typer import Argument, Exit, Option

from pipeline.commands.terminal import console, files
from pipeline.commands.terminal import options as shared
from pipeline.errors import BadInput, Missing, format_quantity
from pipeline.io.rows import read_chunks
from pipeline.progress import track
from pipeline.slices import LIST_DAYS
from pipeline.tasks.impscore import rank, references, scoring
from pipeline.tasks.record.retry import retry


def score_implicitness(
    file: Annotated[
        Path | None,
        Argument(help="Texts: txt (one a line), csv, tsv, jsonl, json, parquet or xlsx; a day's by default."),
    ] = None,
    day: shared.MaybeDay = "",
    text_column: shared.Texts = None,
    out: Annotated[
        Path | None, Option("--out", "-o", help="Write csv, tsv, jsonl, parquet, or txt (the scores alone).")
    ] = None,
    model: shared.Model = None,
    reference: Annotated[str | None, Option(help="Percentiles among this reference; by default the sample.")] = None,
    calibrated: Annotated[
        str | None,
        Option(help="Add what this measure would be, with an interval: judge, judge:NAME, people or grades."),
    ] = None,
    is_explained: Annotated[bool, Option("--explain", help="Print each word, with the change without it.")] = False,
    limit: Annotated[
        int | None, Option(min=1, help="Comments to explain at each end of a source, of a day.", show_default="20")
    ] = None,
    encoding: shared.Encoding = "utf-8-sig",
    skip_bad_rows: shared.SkipBadRows = False,
    as_json: shared.Json = False,
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
    shared.check_source(file, day)
    if limit and (file or not is_explained):
        raise BadInput("--limit is for --explain of a day")
    if file is None:
        if model or out or text_column or reference or calibrated:
            options = "--model, --out, --text-column, --reference and --calibrated"
            raise BadInput(f"{options} are for a file; a day is scored by the model in force")
        _score_day(day or shared.today(), is_explained, limit)
        return
    if (is_explained or calibrated) and out and out.suffix.lower() == ".txt":
        raise BadInput(f"{out}: .txt holds the scores alone; write words and intervals as csv, tsv, jsonl or parquet")
    chunks = files.texts(file, text_column, encoding, skip_bad_rows=skip_bad_rows)
    first_chunks = list(islice(chunks, 1))  # a wrong file or column fails before a model is named
    model = model or scoring.load_model().model_id  # one for the whole file
    corpus = references.load_reference(model, reference)
    add_intervals: Callable[[pl.DataFrame, str], pl.DataFrame] | None = None
    if calibrated:
        from pipeline.tasks.calibration import calibrate

        maps = calibrate.load_maps(calibrated, scoring.choose_model(model).model_id)
        add_intervals = partial(calibrate.add_intervals, maps=maps)
    column = ""

    def score_chunks() -> Iterator[pl.DataFrame]:
        nonlocal column
        for frame, column in chain(first_chunks, chunks):
            with track(f"scoring {file.name}", frame.height) as on_progress:
                scores = references.add_readings(frame, column, model, corpus, on_progress)
            scores = add_intervals(scores, column) if add_intervals else scores
            if is_explained:
                with track("explaining", frame.height) as on_progress:
                    scores = references.add_words(scores, column, model, on_progress)
            yield scores

    scored = files.count_unscored(score_chunks(), "implicitness", "score")
    if is_explained and not out and not as_json:
        for scores in scored:
            print_words(scores, column)
    else:
        if is_explained:
            scored = (scores.explode("words").unnest("words") for scores in scored)
        files.write_frames(scored, out, as_json=as_json)


def _score_day(day: str, is_explained: bool, limit: int | None) -> None:
    from pipeline.tasks.daily import score

    explained = (limit or score.EXPLAINED) if is_explained else 0
    with track("scoring") as on_progress:
        count = retry(score.run, day, on_progress, explained)
    _check_count(count, day)
    references.warn_weak(None, references.load_reference(None))
    table = "; the words of the highest and the lowest are in the table `scores_explained`" if explained else ""
    console.report(f"{format_quantity(count, 'score')} for {day}{table}")


def _check_count(count: int, day: str) -> None:
    if not count:
        raise Missing(f"there are no comments on {day}; {LIST_DAYS}")


def project(day: shared.Day = "") -> None:
    """Place a day's comments on the map of `undertone browse`: those that an encoder finds alike are near each other.

    Writes the table `projections`, from embeddings by the encoders of the model in force, by t-SNE. Of more than 16,384
    texts (8,976 by the shipped encoder of Chinese) a sample is placed.

    Example: `undertone project --day 2026-11-19`
    """
    from pipeline.tasks.daily import score

    with track("placing") as on_progress:
        count = retry(score.place_texts, day, shared.this_run(), on_progress)
    _check_count(count, day)
    console.report(f"placed {format_quantity(count, 'text')} of {day} on the map of `undertone browse`")


def distance(
    pairs: Annotated[Path, Option(help="csv, tsv, jsonl, json, parquet or xlsx with two text columns.")],
    columns: Annotated[str | None, Option(help="Two; by default implicit,explicit or the only two of text.")] = None,
    model: shared.Model = None,
    out: shared.TableFile = None,
    encoding: shared.Encoding = "utf-8-sig",
    as_json: shared.Json = False,
) -> None:
    """Measure the pragmatic distance of the two sentences of each row: 0 means the same.

    Adds the column `pragmatic_distance`, empty where there is no text. Without --out, prints csv.

    Example: `undertone pairs distance --pairs pairs.csv --out distances.csv`
    """

    def measure_chunks() -> Iterator[pl.DataFrame]:
        names: list[str] = []
        for chunk in read_chunks(pairs, encoding):
            frame = pl.DataFrame(chunk.rows, infer_schema_length=None, strict=False)
            texts = [name for name, kind in frame.schema.items() if kind == pl.String]
            is_first, names = not names, names or _choose_columns(texts, columns)
            if len(names) != 2 or not set(names) <= set(texts):
                existing = ", ".join(texts) or "none"
                raise BadInput(f"{pairs}: expected two text columns; there are {existing}; name them by --columns")
            if is_first:
                console.report(f"{pairs}: the texts are in the columns {' and '.join(names)}")
            first, second = names
            with track(f"measuring {pairs.name}") as on_progress:
                distances = rank.add_distances(frame, first, second, model, on_progress)
            yield distances

    frames = files.count_unscored(measure_chunks(), "pragmatic_distance", "distance")
    files.write_frames(frames, out, as_json=as_json)


def _choose_columns(texts: list[str], columns: str | None) -> list[str]:
    if columns is None:
        usual = ["implicit", "explicit"]
        return usual if set(usual) <= set(texts) else texts
    exact_names = {name.strip(): name for name in texts}
    return [exact_names.get(name.strip(), name) for name in columns.split(",")]


def build_reference(
    file: Annotated[Path | None, Argument(help="Texts, as for `score implicitness`; our sample by default.")] = None,
    name: Annotated[str, Option(help="What `score implicitness --reference` calls it.")] = "sample",
    text_column: shared.Texts = None,
    model: shared.Model = None,
    encoding: shared.Encoding = "utf-8-sig",
    skip_bad_rows: shared.SkipBadRows = False,
    as_json: shared.Json = False,
) -> None:
    """Build a reference: the scores of a corpus of yours, among which `score implicitness` gives percentiles.

    Without a file it is the shipped sample, for a model that has none yet. A language needs at least 100 texts.

    Examples: `undertone reference build comments.csv -c body --name forum`; `undertone reference build --model model/`
    """
    texts = None
    if file is not None:
        chunks = files.texts(file, text_column, encoding, skip_bad_rows=skip_bad_rows)
        texts = [text for frame, column in chunks for text in frame[column]]
    source = {"source": f"{len(texts or ()):,} texts of {file.name}"} if file else {}
    with track(f"scoring {file.name if file else 'the sample'}") as on_progress:
        reference = references.build_reference(texts, name, model, on_progress, **source)
    path = references.write_reference(reference)
    rows = [{"lang": lang, **scale._asdict()} for lang, scale in reference.scales.items()]
    medians = [scale.quantiles[50] for scale in reference.scales.values()]
    frame = pl.DataFrame(rows).drop("quantiles", "thresholds").insert_column(2, pl.Series("median", medians))
    console.print_result(frame, {"name": reference.name, "model_id": reference.model_id, "path": path}, as_json)
    console.report(f"wrote {path}")


def selftest(as_json: shared.Json = False) -> None:
    """Compare scores of the shipped models with those that they should give. Exit code 1 if one is outside.

    Examples: `undertone selftest`; `undertone selftest --json`
    """
    rows = scoring.compare_scores()
    outside = rows.filter(~pl.col("is_within"))
    versions = dict(scoring.list_versions())
    if as_json:
        console.print_result(rows, {"is_right": outside.is_empty(), "versions": versions}, as_json)
    else:
        console.out.print(scoring.summarise_comparison(rows), markup=False, soft_wrap=True)
        console.out.print(", ".join(map(" ".join, versions.items())), markup=False, soft_wrap=True)
        if outside.height:
            console.table(outside.drop("is_within"))
            console.report("scores are not as expected: install the versions of constraints.txt")
    raise Exit(1 if outside.height else 0)


def print_words(frame: pl.DataFrame, column: str) -> None:
    """Print the score, percentile and band of each text, and its words with their changes."""
    for row in frame.iter_rows(named=True):
        words = [(part["word"], part["change"]) for part in row["words"] or ()]
        percentile = "" if row["percentile"] is None else f"percentile {row['percentile']:.0f}"
        value = "no text" if row["implicitness"] is None else f"{row['implicitness']:.3f}"
        like = row.get("judged_like")
        judged = "" if like is None else f"judged like {like:.1f}"
        judged += f" ({row['low']:.1f} to {row['high']:.1f})" if judged and row["low"] is not None else ""
        facts = [value, percentile, row["band"], judged, None if words else row[column]]
        console.print_changes("  ".join(fact for fact in facts if fact), words)
