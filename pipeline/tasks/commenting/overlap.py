"""Overlap with weighted references as tasks: of files, and of what commenters made (AAC-11 to AAC-20).

The weights of references are people's grades of them (`comment_grades`); without grades there are only the plain forms.
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
    """What makes tokens of a text: jieba's words, Chinese characters and whole words of other writing, or blanks alone.

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
    """Corpus scores of a file of candidates, with intervals.

    Args:
        candidates: a candidate a line.
        references: a JSON list of references a line.
        weights_: a JSON list of their weights in [0, 1] a line; all one by default.
        names: of `overlap.METRICS`.
        tokenize: jieba, chars or none.

    Returns:
        What `scoring.measure` gives, a row a metric.

    Raises:
        BadInput: naming file and line.
    """
    cut = load_tokenizer(tokenize)
    rows = partial(_read_references, references, cut)
    given = _read_weights(weights_) if weights_ else None
    try:
        metrics = build_metrics(names, rows)
        found = scoring.measure(metrics, _read_candidates(candidates, cut), rows(), given)
    except BadInput as why:
        if not str(why).startswith("row "):
            raise
        files = ", ".join(map(str, filter(None, (candidates, references, weights_))))
        raise BadInput(f"{files}: {why}") from why
    tokenizer = tokenize if tokenize != "jieba" else "jieba-{}".format(segment.load_tokenizer("jieba").version)
    tail = f"weights:{'file' if weights_ else 'none'}|tokenizer:{tokenizer}"
    return found.with_columns(signature=pl.format("{}|{}|{}", "metric", "signature", pl.lit(tail)))


def _read_candidates(path: Path, cut: Cut) -> Iterator[list[str]]:
    for _, line in _read_lines(path):
        yield cut(line)


def _read_references(path: Path, cut: Cut) -> Iterator[list[list[str]]]:
    for number, line in _read_lines(path):
        told = _parse_json(path, number, line)
        if not isinstance(told, list) or not told or not all(isinstance(text, str) for text in told):
            raise BadInput(f"{path}, line {number}: expected a JSON list of references, found {line[:60]}")
        yield [cut(text) for text in told]


def _read_weights(path: Path) -> Iterator[list[float]]:
    for number, line in _read_lines(path):
        told = _parse_json(path, number, line)
        if not isinstance(told, list):
            raise BadInput(f"{path}, line {number}: expected a JSON list of weights, found {line[:60]}")
        yield told


def _read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Lines as JSON Lines and text files end them: by the line feed alone, as a text may hold other breaks."""
    if not path.is_file():
        raise BadInput(f"{path}: there is no such file")
    try:
        with path.open(encoding="utf-8-sig", newline="\n") as file:
            for number, line in enumerate(file, 1):
                yield number, line.rstrip("\r\n")
    except UnicodeDecodeError as why:
        raise BadInput(f"{path}: expected UTF-8, found {why.reason} at byte {why.start}") from why


def _parse_json(path: Path, number: int, line: str) -> Any:
    try:
        return json.loads(line)
    except (json.JSONDecodeError, RecursionError) as why:  # the latter of a thousand brackets
        raise BadInput(f"{path}, line {number}: expected JSON, found {line[:60]!r}") from why


# ----------------------------------------------------------------------------------------------------------- tables


def read_references(preset: str = PRESET) -> pl.DataFrame:
    """References of the test articles, and their weights where all of an article's have grades.

    Returns:
        source, thread_id, comment_ids, tokens (a list of lists), weights (null where a grade is missing).

    Raises:
        BadInput: there is no such preset.
    """
    if preset not in weights.PRESETS:
        raise BadInput(f"no weights {preset!r}; there are {', '.join(weights.PRESETS)}")
    rows = warehouse.scan("reference_comments", pl.col("role") == "reference").select(*COMMENT, "place")
    said = corpus.read_tokenized_comments(rows.select(COMMENT)).select(*COMMENT, "tokens")
    grades = grading.scan_grades().group_by(COMMENT).agg(pl.col("grade").mean()).collect()
    every = rows.collect().join(said, on=COMMENT, how="inner").join(grades, on=COMMENT, how="left")
    found = every.sort(*THREAD, "place")
    graded = found.drop_nulls("grade")
    key = graded.select(pl.concat_str(THREAD, separator="/")).to_series().to_list()
    weighed = graded.with_columns(weight=pl.Series(weights.normalise(graded["grade"].to_numpy(), preset, key)))
    told = found.join(weighed.select(*COMMENT, "weight"), on=COMMENT, how="left", maintain_order="left")
    by = told.group_by(THREAD, maintain_order=True).agg("tokens", comment_ids="comment_id", weights="weight")
    whole = pl.col("weights").list.eval(pl.element().is_null()).list.any()
    return by.with_columns(weights=pl.when(~whole).then("weights"))


def measure(
    day: str, preset: str = PRESET, names: Sequence[str] = NAMES, source: str | None = None, run_id: str = "cli"
) -> dict[str, int]:
    """Measure what commenters made against the references of its article into `metric_scores`; rows by source.

    Raises:
        Missing: nothing was generated, or its articles have no references.
    """
    parse_day(day)
    began = runs.start()
    grading.prune(run_id)
    rows, metrics = read_material(preset, names)
    counts = {}
    there = warehouse.scan("metric_scores").select(pl.col("source").unique()).collect()["source"]
    for name in [source] if source else pl.concat([rows["source"], there]).unique().sort():
        part = rows.filter(pl.col("source") == name)
        told = pl.concat(
            [_sign(score(metrics, part, weighted), metrics, weighted, preset) for weighted in (False, True)]
        )
        counts[name] = warehouse.overwrite("metric_scores", warehouse.slice_of(source=name), told, run_id)
        runs.record_step(name, day, "generated", "measure", counts[name], None, {"weights": preset}, run_id, began)
        began = runs.start()  # what sources share is counted with the first
    if not rows.height:
        raise Missing("no generated comment has references; see `undertone commenting build` and `generate`")
    return counts


def read_material(preset: str, names: Sequence[str]) -> tuple[pl.DataFrame, list[Metric]]:
    """What commenters made, with the references of its article and their weights; and the metrics."""
    refs = read_references(preset)
    made = warehouse.scan("generated_comments").select(*THREAD, "generated_id", "tokens").collect()
    rows = made.join(refs, on=THREAD, how="inner", suffix="_of").sort(*THREAD, "generated_id")
    return rows, build_metrics(names, _repeat(refs["tokens"])) if rows.height else []


def build_metrics(names: Sequence[str], references_: Callable[[], Iterable[Any]]) -> list[Metric]:
    """Metrics that go by the names they were asked for.

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
    """The values one by one, as often as wanted."""
    return lambda: (value.to_list() for value in values)


def score(metrics: Sequence[Metric], rows: pl.DataFrame, weighted: bool) -> pl.DataFrame:
    """source, thread_id, generated_id, metric, value; weighted, of articles whose references all have grades."""
    rows = rows.filter(pl.col("weights").is_not_null()) if weighted else rows
    key = [*THREAD, "generated_id"]
    if not rows.height:
        return pl.DataFrame(schema=dict.fromkeys([*key, "metric"], pl.String) | {"value": pl.Float64})
    weights_ = rows["weights"].to_list() if weighted else None
    found = scoring.score_segments(metrics, rows["tokens"].to_list(), _repeat(rows["tokens_of"])(), weights_)
    wide = rows.select(key).hstack(found)
    return wide.unpivot(found.columns, index=key, variable_name="metric", value_name="value")


def _sign(rows: pl.DataFrame, metrics: Sequence[Metric], weighted: bool, preset: str) -> pl.DataFrame:
    """Rows of `metric_scores`."""
    cut = "+".join(sorted({corpus.format_tokenizer(by) for by in corpus.load_tokenizers().values()}))
    tail = f"weights:{preset if weighted else 'none'}|tokens:{cut}"
    signatures = {metric.name: f"{metric.name}|{metric.signature}|{tail}" for metric in metrics}
    return rows.with_columns(
        pl.col("value").round(DECIMALS), is_weighted=pl.lit(weighted),
        signature=pl.col("metric").replace_strict(signatures, return_dtype=pl.String),
    ).select(TABLES["metric_scores"].schema.column_names())  # fmt: skip


def average_by_system() -> pl.DataFrame:
    """Mean of each metric by commenter, and of people's grades (table 7): metric, is_weighted, system, value, n."""
    return warehouse.query(
        "select metric, is_weighted, system, sum(value * row_count) / sum(row_count) as value, "
        "sum(row_count)::bigint as n from commenter_scores group by metric, is_weighted, system "
        "order by metric, is_weighted, system"
    )


def format_table_7(rows: pl.DataFrame) -> pl.DataFrame:
    """The same as people read it: a row a metric, a column a commenter."""
    return rows.select(format_name(), "system", pl.col("value").round(4)).pivot(
        "system", index="metric", values="value"
    )


def format_name() -> pl.Expr:
    """`w_` before the name of a weighted metric."""
    return pl.when("is_weighted").then(pl.format("w_{}", "metric")).otherwise("metric").alias("metric")
