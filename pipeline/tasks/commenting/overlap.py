"""Overlap with weighted references as tasks: of files, and of generated comments (AAC-11 to AAC-20).

The weights of references are people's grades of them (`comment_grades`); without grades only plain metrics exist.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from pipeline import warehouse
from pipeline.errors import BadInput, Missing
from pipeline.metrics import overlap
from pipeline.metrics.overlap import scoring, weights
from pipeline.metrics.overlap.metric import Metric
from pipeline.slices import parse_day
from pipeline.tables import TABLES
from pipeline.tasks.commenting import corpus
from pipeline.tasks.commenting import grades as grading
from pipeline.tasks.commenting.corpus import COMMENT, THREAD
from pipeline.tasks.record import runs
from pipeline.text import segment

NAMES = ("bleu_1", "bleu_2", "bleu_3", "bleu_4", "meteor", "rouge_l", "cider")
"""The metrics of the paper's table 4."""

TOKENIZERS = ("jieba", "chars", "none")
DECIMALS = 6
PRESET = weights.DEFAULT

Cut = Callable[[str], list[str]]


def load_tokenizer(tokenize: str) -> Cut:
    """Load a function that tokenizes text: jieba, chars (Chinese characters and whole other words), none (blanks).

    Raises:
        BadInput: there is no such tokenizer.
    """
    if tokenize not in TOKENIZERS:
        raise BadInput(f"no tokenizer {tokenize!r}; there are {', '.join(TOKENIZERS)}")
    if tokenize == "chars":
        return segment.UNIT.findall
    return str.split if tokenize == "none" else partial(segment.split_words, cut=segment.load_tokenizer("jieba").cut)


# ------------------------------------------------------------------------------------------------------------ files


def measure_files(
    candidates: Path, references: Path, weights_: Path | None = None, names: Sequence[str] = NAMES,
    tokenize: str = "jieba",
) -> pl.DataFrame:  # fmt: skip
    """Measure the corpus scores of a file of candidates, with intervals.

    Args:
        candidates: file with one candidate in each line.
        references: file with a JSON list of references in each line.
        weights_: file with a JSON list of their weights in [0, 1] in each line; all one by default.
        names: of `overlap.METRICS`.
        tokenize: jieba, chars or none.

    Returns:
        The columns of `scoring.measure`, and signature; a row for each metric.

    Raises:
        BadInput: with file and line.
    """
    tokenizer_function = load_tokenizer(tokenize)
    rows = partial(_read_references, references, tokenizer_function)
    weight_rows = _read_weights(weights_) if weights_ else None
    try:
        metrics = build_metrics(names, rows)
        scores = scoring.measure(metrics, _read_candidates(candidates, tokenizer_function), rows(), weight_rows)
    except BadInput as error:
        if not str(error).startswith("row "):
            raise
        files = ", ".join(map(str, filter(None, (candidates, references, weights_))))
        raise BadInput(f"{files}: {error}") from error
    tokenizer = tokenize if tokenize != "jieba" else "jieba-{}".format(segment.load_tokenizer("jieba").version)
    settings_text = f"weights:{'file' if weights_ else 'none'}|tokenizer:{tokenizer}"
    return scores.with_columns(signature=pl.format("{}|{}|{}", "metric", "signature", pl.lit(settings_text)))


def _read_candidates(path: Path, tokenizer_function: Cut) -> Iterator[list[str]]:
    for _, line in _read_lines(path):
        yield tokenizer_function(line)


def _read_references(path: Path, tokenizer_function: Cut) -> Iterator[list[list[str]]]:
    for number, line in _read_lines(path):
        texts = _parse_json(path, number, line)
        if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
            raise BadInput(f"{path}, line {number}: expected a JSON list of references, found {line[:60]}")
        yield [tokenizer_function(text) for text in texts]


def _read_weights(path: Path) -> Iterator[list[float]]:
    for number, line in _read_lines(path):
        line_weights = _parse_json(path, number, line)
        if not isinstance(line_weights, list):
            raise BadInput(f"{path}, line {number}: expected a JSON list of weights, found {line[:60]}")
        yield line_weights


def _read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield lines, which end with a line feed alone: a text may hold other line breaks."""
    if not path.is_file():
        raise BadInput(f"{path}: there is no such file")
    try:
        with path.open(encoding="utf-8-sig", newline="\n") as file:
            for number, line in enumerate(file, 1):
                yield number, line.rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: expected UTF-8, found {error.reason} at byte {error.start}") from error


def _parse_json(path: Path, number: int, line: str) -> Any:
    try:
        return json.loads(line)
    except (json.JSONDecodeError, RecursionError) as error:  # RecursionError: a thousand brackets
        raise BadInput(f"{path}, line {number}: expected JSON, found {line[:60]!r}") from error


# ----------------------------------------------------------------------------------------------------------- tables


def read_references(preset: str = PRESET) -> pl.DataFrame:
    """Read the references of the test articles, with weights where all references of an article have grades.

    Returns:
        source, thread_id, comment_ids, tokens (a list of lists), weights (null where a grade is missing).

    Raises:
        BadInput: there is no such preset.
    """
    if preset not in weights.PRESETS:
        raise BadInput(f"no weights {preset!r}; there are {', '.join(weights.PRESETS)}")
    rows = warehouse.scan("reference_comments", pl.col("role") == "reference").select(*COMMENT, "place")
    comments = corpus.read_tokenized_comments(rows.select(COMMENT)).select(*COMMENT, "tokens")
    grades = grading.scan_grades().group_by(COMMENT).agg(pl.col("grade").mean()).collect()
    references = rows.collect().join(comments, on=COMMENT, how="inner").join(grades, on=COMMENT, how="left")
    ordered = references.sort(*THREAD, "place")
    graded = ordered.drop_nulls("grade")
    key = graded.select(pl.concat_str(THREAD, separator="/")).to_series().to_list()
    weighted = graded.with_columns(weight=pl.Series(weights.normalise(graded["grade"].to_numpy(), preset, key)))
    all_references = ordered.join(weighted.select(*COMMENT, "weight"), on=COMMENT, how="left", maintain_order="left")
    by_article = all_references.group_by(THREAD, maintain_order=True).agg(
        "tokens", comment_ids="comment_id", weights="weight"
    )
    has_gap = pl.col("weights").list.eval(pl.element().is_null()).list.any()
    return by_article.with_columns(weights=pl.when(~has_gap).then("weights"))


def measure(
    day: str, preset: str = PRESET, names: Sequence[str] = NAMES, source: str | None = None, run_id: str = "cli"
) -> dict[str, int]:
    """Measure generated comments by the references of their article into `metric_scores`; return row counts by source.

    Raises:
        Missing: nothing was generated, or its articles have no references.
    """
    parse_day(day)
    timer = runs.start()
    grading.prune(run_id)
    rows, metrics = read_material(preset, names)
    counts = {}
    existing_sources = warehouse.scan("metric_scores").select(pl.col("source").unique()).collect()["source"]
    for name in [source] if source else pl.concat([rows["source"], existing_sources]).unique().sort():
        part = rows.filter(pl.col("source") == name)
        scored_rows = pl.concat(
            [_sign(score(metrics, part, weighted), metrics, weighted, preset) for weighted in (False, True)]
        )
        counts[name] = warehouse.overwrite("metric_scores", warehouse.slice_of(source=name), scored_rows, run_id)
        runs.record_step(name, day, "generated", "measure", counts[name], None, {"weights": preset}, run_id, timer)
        timer = runs.start()  # the first source has the time of what all sources share
    if not rows.height:
        raise Missing("no generated comment has references; see `undertone commenting build` and `generate`")
    return counts


def read_material(preset: str, names: Sequence[str]) -> tuple[pl.DataFrame, list[Metric]]:
    """Read the generated comments with the references of their article and their weights, and build the metrics."""
    references = read_references(preset)
    generated = warehouse.scan("generated_comments").select(*THREAD, "generated_id", "tokens").collect()
    rows = generated.join(references, on=THREAD, how="inner", suffix="_of").sort(*THREAD, "generated_id")
    return rows, build_metrics(names, _repeat(references["tokens"])) if rows.height else []


def build_metrics(names: Sequence[str], references_: Callable[[], Iterable[Any]]) -> list[Metric]:
    """Build metrics under the names that were asked for.

    Raises:
        BadInput: there is no such metric.
    """
    if unknown := [format_name for format_name in names if format_name not in overlap.METRICS]:
        raise BadInput(f"no metric {unknown[0]!r}; there are {', '.join(overlap.METRICS)}")
    if len(set(names)) < len(names):
        raise BadInput(f"metrics should be named once, found {', '.join(names)}")
    return [
        metric._replace(name=name)
        for name, metric in zip(names, overlap.build_metrics(names, references_), strict=True)
    ]


def _repeat(values: pl.Series) -> Callable[[], Iterable[Any]]:
    """Make a function that iterates over the values from the start each time."""
    return lambda: (value.to_list() for value in values)


def score(metrics: Sequence[Metric], rows: pl.DataFrame, weighted: bool) -> pl.DataFrame:
    """Score each comment: source, thread_id, generated_id, metric, value; weighted only where all weights are known."""
    rows = rows.filter(pl.col("weights").is_not_null()) if weighted else rows
    key = [*THREAD, "generated_id"]
    if not rows.height:
        return pl.DataFrame(schema=dict.fromkeys([*key, "metric"], pl.String) | {"value": pl.Float64})
    weights_ = rows["weights"].to_list() if weighted else None
    metric_scores = scoring.score_segments(metrics, rows["tokens"].to_list(), _repeat(rows["tokens_of"])(), weights_)
    score_columns = rows.select(key).hstack(metric_scores)
    return score_columns.unpivot(metric_scores.columns, index=key, variable_name="metric", value_name="value")


def _sign(rows: pl.DataFrame, metrics: Sequence[Metric], weighted: bool, preset: str) -> pl.DataFrame:
    """Make rows of `metric_scores` with their signatures."""
    tokenizer_names = "+".join(
        sorted({corpus.format_tokenizer(tokenizer) for tokenizer in corpus.load_tokenizers().values()})
    )
    settings_text = f"weights:{preset if weighted else 'none'}|tokens:{tokenizer_names}"
    signatures = {metric.name: f"{metric.name}|{metric.signature}|{settings_text}" for metric in metrics}
    return rows.with_columns(
        pl.col("value").round(DECIMALS), is_weighted=pl.lit(weighted),
        signature=pl.col("metric").replace_strict(signatures, return_dtype=pl.String),
    ).select(TABLES["metric_scores"].schema.column_names())  # fmt: skip


def average_by_system() -> pl.DataFrame:
    """Average metrics and people's grades by commenter (table 7): metric, is_weighted, system, value, n."""
    return warehouse.query(
        "select metric, is_weighted, system, sum(value * row_count) / sum(row_count) as value, "
        "sum(row_count)::bigint as n from commenter_scores group by metric, is_weighted, system "
        "order by metric, is_weighted, system"
    )


def format_table_7(rows: pl.DataFrame) -> pl.DataFrame:
    """Format `average_by_system` for display: a row for each metric, a column for each commenter."""
    return rows.select(format_name(), "system", pl.col("value").round(4)).pivot(
        "system", index="metric", values="value"
    )


def format_name() -> pl.Expr:
    """Put `w_` before the name of a weighted metric."""
    return pl.when("is_weighted").then(pl.format("w_{}", "metric")).otherwise("metric").alias("metric")
