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
from pipeline.tasks.commenting.corpus import COMMENT, THREAD, THREAD_ID
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


def measure_files(
    candidates: Path,
    references: Path,
    weights_file: Path | None = None,
    names: Sequence[str] = NAMES,
    tokenize: str = "jieba",
) -> pl.DataFrame:
    """Measure the corpus scores of a file of candidates, with intervals.

    Args:
        candidates: file with one candidate in each line.
        references: file with a JSON list of references in each line.
        weights_file: file with a JSON list of their weights in [0, 1] in each line; all one by default.
        names: of `overlap.METRICS`.
        tokenize: jieba, chars or none.

    Returns:
        The columns of `scoring.measure`, and signature; a row for each metric.

    Raises:
        BadInput: with file and line.
    """
    cut = load_tokenizer(tokenize)
    rows = partial(_read_references, references, cut)
    weight_rows = _read_lists(weights_file, "weights") if weights_file else None
    try:
        metrics = build_metrics(names, rows)
        texts = (cut(line) for _, line in _read_lines(candidates))
        scores = scoring.measure(metrics, texts, rows(), weight_rows)
    except BadInput as error:
        if not str(error).startswith("row "):
            raise
        files = ", ".join(map(str, filter(None, (candidates, references, weights_file))))
        raise BadInput(f"{files}: {error}") from error
    tokenizer = tokenize if tokenize != "jieba" else f"jieba-{segment.load_tokenizer('jieba').version}"
    facts = f"weights:{'file' if weights_file else 'none'}|tokenizer:{tokenizer}"
    return scores.with_columns(signature=pl.format("{}|{}|{}", "metric", "signature", pl.lit(facts)))


def _read_references(path: Path, cut: Cut) -> Iterator[list[list[str]]]:
    for texts in _read_lists(path, "references", lambda values: values and {*map(type, values)} == {str}):
        yield [cut(text) for text in texts]


def _read_lists(
    path: Path, items: str, is_valid: Callable[[list[Any]], object] = lambda _: True
) -> Iterator[list[Any]]:
    """Yield the JSON list in each line."""
    for number, line in _read_lines(path):
        try:
            values = json.loads(line)
        except (json.JSONDecodeError, RecursionError) as error:  # RecursionError: a thousand brackets
            raise BadInput(f"{path}, line {number}: expected JSON, found {line[:60]!r}") from error
        if not isinstance(values, list) or not is_valid(values):
            raise BadInput(f"{path}, line {number}: expected a JSON list of {items}, found {line[:60]}")
        yield values


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
    key = graded.select(THREAD_ID).to_series()
    weighted = graded.with_columns(weight=pl.Series(weights.normalise(graded["grade"].to_numpy(), preset, key)))
    rows_with_weights = ordered.join(weighted.select(*COMMENT, "weight"), on=COMMENT, how="left", maintain_order="left")
    by_article = rows_with_weights.group_by(THREAD, maintain_order=True).agg(
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
    for name in [source] if source else corpus.list_sources("metric_scores", rows["source"]):
        part = rows.filter(pl.col("source") == name)
        scored = [
            _sign(score(metrics, part, is_weighted), metrics, is_weighted, preset) for is_weighted in (False, True)
        ]
        counts[name] = warehouse.overwrite(
            "metric_scores", warehouse.make_slice(source=name), pl.concat(scored), run_id
        )
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
    return rows, build_metrics(names, partial(_iterate, references["tokens"])) if rows.height else []


def build_metrics(names: Sequence[str], references: Callable[[], Iterable[Any]]) -> list[Metric]:
    """Build metrics under the names that were asked for.

    Raises:
        BadInput: there is no such metric.
    """
    if unknown := [name for name in names if name not in overlap.METRICS]:
        raise BadInput(f"no metric {unknown[0]!r}; there are {', '.join(overlap.METRICS)}")
    if len(set(names)) < len(names):
        raise BadInput(f"metrics should be named once, found {', '.join(names)}")
    metrics = overlap.build_metrics(names, references)
    return [metric._replace(name=name) for name, metric in zip(names, metrics, strict=True)]


def _iterate(values: pl.Series) -> Iterator[Any]:
    return (value.to_list() for value in values)


def score(metrics: Sequence[Metric], rows: pl.DataFrame, is_weighted: bool) -> pl.DataFrame:
    """Score each comment: source, thread_id, generated_id, metric, value; weighted only where all weights are known."""
    rows = rows.filter(pl.col("weights").is_not_null()) if is_weighted else rows
    key = [*THREAD, "generated_id"]
    if not rows.height:
        return pl.DataFrame(schema=dict.fromkeys([*key, "metric"], pl.String) | {"value": pl.Float64})
    row_weights = rows["weights"].to_list() if is_weighted else None
    scores = scoring.score_segments(metrics, rows["tokens"].to_list(), _iterate(rows["tokens_of"]), row_weights)
    return (
        rows.select(key).hstack(scores).unpivot(scores.columns, index=key, variable_name="metric", value_name="value")
    )


def _sign(rows: pl.DataFrame, metrics: Sequence[Metric], is_weighted: bool, preset: str) -> pl.DataFrame:
    """Make rows of `metric_scores` with their signatures."""
    tokenizers = "+".join(
        sorted({corpus.format_tokenizer(tokenizer) for tokenizer in corpus.load_tokenizers().values()})
    )
    facts = f"weights:{preset if is_weighted else 'none'}|tokens:{tokenizers}"
    signatures = {metric.name: f"{metric.name}|{metric.signature}|{facts}" for metric in metrics}
    signature = pl.col("metric").replace_strict(signatures, return_dtype=pl.String)
    value = pl.col("value").round(DECIMALS)
    rows = rows.with_columns(value, is_weighted=pl.lit(is_weighted), signature=signature)
    return rows.select(TABLES["metric_scores"].schema.column_names())


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
    """Format the name of a metric, with `w_` before that of a weighted one."""
    return pl.when("is_weighted").then(pl.format("w_{}", "metric")).otherwise("metric").alias("metric")
