"""Overlap with references weighted by people's grades, as tasks: of files and of generated comments (AAC-11 to 20)."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import polars as pl

from pipeline import warehouse
from pipeline.errors import BadInput, Missing, check_name
from pipeline.io.lines import parse_value
from pipeline.metrics import overlap
from pipeline.metrics.overlap import scoring
from pipeline.metrics.overlap.metric import Metric
from pipeline.tables import TABLES
from pipeline.tasks.commenting import corpus
from pipeline.tasks.commenting import grades as grading
from pipeline.tasks.commenting.corpus import COMMENT, THREAD, THREAD_ID
from pipeline.tasks.record import runs
from pipeline.text import segment

NAMES = ("bleu_1", "bleu_2", "bleu_3", "bleu_4", "meteor", "rouge_l", "cider")  # the metrics of the paper's table 4
TOKENIZERS = ("jieba", "chars", "none")
DECIMALS = 6
PRESET = scoring.DEFAULT_PRESET
Cut = Callable[[str], list[str]]
Value = TypeVar("Value")


def load_tokenizer(tokenize: str) -> Cut:
    """Load a function that tokenizes text: jieba, chars (Chinese characters and whole other words), none (blanks)."""
    if check_name("tokenizer", tokenize, TOKENIZERS) == "chars":
        return segment.UNIT.findall
    return str.split if tokenize == "none" else partial(segment.split_words, cut=segment.load_tokenizer("jieba").cut)


class Files(NamedTuple):
    """Files that are measured line by line, and how they are read."""

    candidates: Path  # a candidate a line
    references: Path  # a JSON list of references a line
    weights: Path | None = None  # a JSON list of weights in [0, 1] a line; all one by default
    preset: str | None = None  # of `scoring.PRESETS`, if the lists are grades from 1 to 5
    documents: Path | None = None  # references in which CIDEr counts documents; those measured by default
    groups: Path | None = None  # a line each: what a candidate is drawn with, such as its article
    tokenize: str = "jieba"  # jieba, chars or none

    def read_weights(self) -> Iterator[list[float]] | None:
        if self.weights is None:
            return None
        if self.preset:
            check_name("weights", self.preset, scoring.PRESETS)
        rows = _read_lists(self.weights, "weights", lambda values: {*map(type, values)} <= {int, float})
        return (scoring.normalise_grades(row, self.preset).tolist() for row in rows) if self.preset else rows

    def read_groups(self) -> list[str] | None:
        return self._check_count("group", [line for _, line in _read_lines(self.groups)]) if self.groups else None

    def read_grades(self, path: Path) -> list[float]:
        grades = []
        for number, line in _read_lines(path):
            value = math.nan
            with suppress(ValueError):
                value = float(line)
            if not math.isfinite(value):
                raise BadInput(f"{path}, line {number}: expected a finite number, found {line[:60]!r}")
            grades.append(value)
        return self._check_count("grade", grades)

    def _check_count(self, name: str, values: list[Value]) -> list[Value]:
        if len(values) != (count := sum(1 for _ in _read_lines(self.candidates))):
            raise BadInput(f"{name}: expected a line for each of {count} candidates, found {len(values)}")
        return values


def measure_files(
    files: Files,
    names: Sequence[str] = NAMES,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    against: Path | None = None,
    **sampling: Any,
) -> pl.DataFrame:
    """Measure the corpus scores of a file of candidates, with intervals, or how they differ from another system's.

    The options are of the metrics' constructors, by name; `against` has the other system's candidates; sampling is as
    of `scoring.measure`. Returns the columns of `scoring.measure` or `scoring.compare`, and signature.
    """
    cut = load_tokenizer(files.tokenize)
    with _name_files(files, against):
        metrics = _build_file_metrics(files, names, options, cut)
        candidates = _read_candidates(files.candidates, cut)
        gold = _read_references(files.references, cut), files.read_weights()
        sampling["groups"] = files.read_groups()
        if against:
            scores = scoring.compare(metrics, candidates, _read_candidates(against, cut), *gold, **sampling)
        else:
            scores = scoring.measure(metrics, candidates, *gold, **sampling)
    is_jieba = files.tokenize == "jieba"
    tokenizer = f"jieba-{segment.load_tokenizer('jieba').version}" if is_jieba else files.tokenize
    facts = f"weights:{(files.preset or 'file') if files.weights else 'none'}|tokenizer:{tokenizer}"
    return scores.with_columns(signature=pl.format("{}|{}|{}", "metric", "signature", pl.lit(facts)))


def score_files(
    files: Files,
    names: Sequence[str] = NAMES,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    grades: Path | None = None,
) -> pl.DataFrame:
    """Score each candidate of a file: a column a metric, `w_` before weighted ones; group and grade if given."""
    cut = load_tokenizer(files.tokenize)
    parts = []
    with _name_files(files, grades):
        metrics = _build_file_metrics(files, names, options, cut)
        for row_weights in (None, files.read_weights()) if files.weights else (None,):
            texts, references = _read_candidates(files.candidates, cut), _read_references(files.references, cut)
            scores = scoring.score_segments(metrics, texts, references, row_weights)
            parts.append(scores.rename(lambda name: f"w_{name}") if row_weights else scores)
        columns = {"group": files.read_groups(), "grade": files.read_grades(grades) if grades else None}
        parts += [pl.DataFrame({name: values}) for name, values in columns.items() if values]
    return pl.concat(parts[::-1], how="horizontal")


def _build_file_metrics(
    files: Files, names: Sequence[str], options: Mapping[str, Mapping[str, Any]] | None, cut: Cut
) -> list[Metric]:
    rows = partial(_read_references, files.documents or files.references, cut)
    try:
        return build_metrics(names, rows, options)
    except ValueError as error:
        raise BadInput(f"options of metrics: {error}") from error


@contextmanager
def _name_files(files: Files, other: Path | None) -> Iterator[None]:
    """Name the files where an error names a row alone."""
    try:
        yield
    except BadInput as error:
        if not str(error).startswith("row "):
            raise
        paths = (files.candidates, other, files.references, files.weights)
        raise BadInput(f"{', '.join(map(str, filter(None, paths)))}: {error}") from error


def _read_candidates(path: Path, cut: Cut) -> Iterator[list[str]]:
    return (cut(line) for _, line in _read_lines(path))


def _read_references(path: Path, cut: Cut) -> Iterator[list[list[str]]]:
    for texts in _read_lists(path, "references", lambda values: values and {*map(type, values)} == {str}):
        yield [cut(text) for text in texts]


def _read_lists(path: Path, items: str, is_valid: Callable[[list[Any]], object]) -> Iterator[list[Any]]:
    for number, line in _read_lines(path):
        values = parse_value(line, path, number)
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
    """Read the references of the test articles, with weights where all references of an article have grades."""
    check_name("weights", preset, scoring.PRESETS)
    rows = warehouse.scan("reference_comments", pl.col("role") == "reference").select(*COMMENT, "place")
    comments = corpus.read_tokenized_comments(rows.select(COMMENT)).select(*COMMENT, "tokens")
    grades = grading.scan_grades().group_by(COMMENT).agg(pl.col("grade").mean()).collect()
    references = rows.collect().join(comments, on=COMMENT, how="inner").join(grades, on=COMMENT, how="left")
    ordered = references.sort(*THREAD, "place")
    graded = ordered.drop_nulls("grade")
    key = graded.select(THREAD_ID).to_series()
    weighted = graded.with_columns(weight=pl.Series(scoring.normalise_grades(graded["grade"].to_numpy(), preset, key)))
    rows_with_weights = ordered.join(weighted.select(*COMMENT, "weight"), on=COMMENT, how="left", maintain_order="left")
    threads = rows_with_weights.group_by(THREAD, maintain_order=True)
    by_article = threads.agg("tokens", comment_ids="comment_id", weights="weight")
    has_gap = pl.col("weights").list.eval(pl.element().is_null()).list.any()
    return by_article.with_columns(weights=pl.when(~has_gap).then("weights"))


def measure(day: str, preset: str = PRESET, run_id: str = "cli") -> dict[str, int]:
    """Measure generated comments by the references of their article into `metric_scores`; count rows by source."""
    timer = runs.start()
    grading.prune(run_id)
    rows, metrics = read_material(preset)
    counts = {}
    for source in corpus.list_sources("metric_scores", rows["source"]):
        part = rows.filter(pl.col("source") == source)
        scored = pl.concat(_sign(score(metrics, part, flag), metrics, flag, preset) for flag in (False, True))
        counts[source] = warehouse.overwrite("metric_scores", warehouse.make_slice(source=source), scored, run_id)
        runs.record_step(source, day, "generated", "measure", counts[source], None, {"weights": preset}, run_id, timer)
    if not rows.height:
        raise Missing("no generated comment has references; see `undertone commenting build` and `generate`")
    return counts


def read_material(preset: str, names: Sequence[str] = NAMES) -> tuple[pl.DataFrame, list[Metric]]:
    """Read the generated comments with the references of their article and their weights, and build the metrics."""
    references = read_references(preset)
    generated = warehouse.scan("generated_comments").select(*THREAD, "generated_id", "tokens").collect()
    rows = generated.join(references, on=THREAD, how="inner", suffix="_of").sort(*THREAD, "generated_id")
    return rows, build_metrics(names, partial(_iterate, references["tokens"])) if rows.height else []


def build_metrics(
    names: Sequence[str],
    references: Callable[[], Iterable[Any]],
    options: Mapping[str, Mapping[str, Any]] | None = None,
) -> list[Metric]:
    """Build metrics under the names that were asked for."""
    for name in names:
        check_name("metric", name, overlap.METRICS)
    if len(set(names)) < len(names):
        raise BadInput(f"metrics should be named once, found {', '.join(names)}")
    metrics = overlap.build_metrics(names, references, options=options)
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
    return rows.select(key).hstack(scores).unpivot(scores.columns, index=key, variable_name="metric")


def _sign(rows: pl.DataFrame, metrics: Sequence[Metric], is_weighted: bool, preset: str) -> pl.DataFrame:
    tokenizers = "+".join(sorted({f"{tool.name} {tool.version}" for tool in corpus.load_tokenizers().values()}))
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


def format_numbers(rows: pl.DataFrame) -> pl.DataFrame:
    """Format the scores for display: three digits after the point, three significant ones of what is small."""

    def format_number(value: float) -> str:
        return f"{value:.3{'f' if not value or abs(value) >= 0.1 else 'g'}}"

    return rows.with_columns(pl.col(pl.Float64).map_elements(format_number, return_dtype=pl.String))


def format_name() -> pl.Expr:
    """Format the name of a metric, with `w_` before that of a weighted one."""
    return pl.when("is_weighted").then(pl.format("w_{}", "metric")).otherwise("metric").alias("metric")
