"""The scorer of comments as tasks: grades or upvotes to a model, a model to scores of any corpus (AAC-34)."""

import logging
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl

from pipeline import __version__, settings, warehouse
from pipeline.errors import BadInput, Missing
from pipeline.examples.splits import NAMES, draw_uniform
from pipeline.io.rows import read_chunks
from pipeline.tables import TABLES
from pipeline.tasks.commenting.corpus import COMMENT, THREAD
from pipeline.tasks.commenting.correlations import MIN_ARTICLES
from pipeline.tasks.record import day_texts, model_registry, runs
from pipeline.tasks.record.model_registry import TrainedModel, select_scalars

if TYPE_CHECKING:
    from pipeline.training.commenting.quality import Scorer
    from pipeline.training.registry import Model

Target = Literal["grade", "upvotes"]
TARGETS: dict[str, Target] = {"quality": "grade", "upvotes": "upvotes"}
"""What a scorer learns, by its kind, which is the metric of its scores too."""

log = logging.getLogger(__name__)
DECIMALS = 6
_ROWS = ["text", "title", "content", "article_id", "target", "split"]
RANGES: dict[str, tuple[float, float]] = {"grade": (1, 5), "upvotes": (0, math.inf)}
SHARES = (0.8, 0.9)  # of the articles up to which they are for training, and for validation


def check_kind(kind: str) -> str:
    """The kind of a scorer, checked."""
    if kind not in TARGETS:
        raise BadInput(f"no scorer of {kind!r}; there are {' and '.join(TARGETS)}")
    return kind


def read(path: Path, kind: str) -> pl.DataFrame:
    """Comments to learn from of a file: `text`, `grade` or `upvotes`, and `article_id`, `title`, `content` if known.

    Returns:
        text, title, content, article_id, target, split (by article, where the file has none).

    Raises:
        BadInput: naming file, row and field.
    """
    wanted = TARGETS[check_kind(kind)]
    rows = []
    for chunk in read_chunks(path, "utf-8-sig"):
        for number, row in enumerate(chunk.rows, chunk.first):
            for name in ("text", wanted):
                if name not in row:
                    raise BadInput(f"{path}, row {number}: no column {name!r}; there are {', '.join(row)}")
                if row.get(name) in (None, ""):
                    raise BadInput(f"{path}, row {number}, field {name!r}: expected a value, found none")
            target = _parse_number(row[wanted])
            low, high = RANGES[wanted]
            if not low <= target <= high:
                found = f"{row[wanted]!r:.40}"
                span = f"a number from {low:g} to {high:g}" if math.isfinite(high) else f"a number of {low:g} or more"
                raise BadInput(f"{path}, row {number}, field {wanted!r}: expected {span}, found {found}")
            if row.get("split") not in (None, "", *NAMES):
                raise BadInput(
                    f"{path}, row {number}, field 'split': expected {', '.join(NAMES)}, found {row['split']!r:.40}"
                )
            told = (row.get(name) for name in ("title", "content", "article_id", "split"))
            rows.append((str(row["text"]), *(None if value in (None, "") else str(value) for value in told), target))
    schema = {**dict.fromkeys(("text", "title", "content", "article_id", "split"), pl.String), "target": pl.Float64}
    return _split_rows(pl.DataFrame(rows, schema=schema, orient="row"))


def _parse_number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


def _split_rows(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows whose split is not given with one by article; what is of no article is dealt one by one."""
    if not rows["split"].null_count():
        return rows
    key = draw_uniform(rows.select(pl.coalesce("article_id", "text")).to_series())
    drawn = pl.when(key < SHARES[0]).then(pl.lit("train")).when(key < SHARES[1]).then(pl.lit("validation"))
    return rows.with_columns(split=pl.coalesce("split", drawn.otherwise(pl.lit("test"))))


def read_tables(kind: str) -> pl.DataFrame:
    """The same of the tables: comments that people graded, or all with upvotes, with their articles.

    Grades that simulated raters made up are left out.

    Raises:
        Missing: there are none.
    """
    about = day_texts.scan_articles(pl.lit(value=True)).select(*THREAD, "title", content="text")
    said = warehouse.scan("comments").sort("day").unique(COMMENT, keep="last")
    if check_kind(kind) == "quality":
        real = ~pl.col("tool").str.contains("simulated", literal=True)
        grades = warehouse.scan("comment_grades", real).group_by(COMMENT).agg(target=pl.col("grade").mean())
        made = warehouse.scan("generated_comments").select(*THREAD, "text", comment_id="generated_id")
        every = pl.concat([said.select(*COMMENT, "text"), made.select(*COMMENT, "text")])
        rows = every.join(grades, on=COMMENT, how="inner")
    else:
        rows = said.drop_nulls("like_count").select(*COMMENT, "text", target=pl.col("like_count").cast(pl.Float64))
    told = rows.join(about, on=THREAD, how="left").sort(COMMENT).select(
        "text", "title", "content", "target", article_id=pl.concat_str(THREAD, separator="/"),
        split=pl.lit(None, pl.String),
    ).collect()  # fmt: skip
    if not told.height:
        what = "graded by people" if kind == "quality" else "with upvotes"
        raise Missing(f"no comment is {what}; see `undertone commenting ratings --help`, or give a file by --data")
    return _split_rows(told)


def fit(
    rows: pl.DataFrame, kind: str, profile: str | None = None, changes: Mapping[str, Any] | None = None
) -> TrainedModel:
    """A scorer and its numbers; promoted unless it could not be measured."""
    from pipeline.training.commenting import quality

    recipe = quality.make_recipe(profile or _profile(kind), **(changes or {}))
    if recipe.target != TARGETS[check_kind(kind)]:
        raise BadInput(f"profile {profile!r} learns {recipe.target}, not {TARGETS[kind]}")
    done = quality.fit(rows, recipe, _load_encoder() if recipe.has_embedding else None, settings.scratch("embeddings"))
    data_hash = model_registry.hash_rows(rows.select(_ROWS))
    config = {**done.config, "kind": kind, "data_hash": data_hash}
    evaluations = measure(rows, kind, _load_scorer(done.tensors, config))
    return TrainedModel(
        kind=kind, tensors=done.tensors, config=config, evaluations=evaluations, is_promoted=not evaluations.is_empty(),
        texts=pl.concat([rows[name].alias("text") for name in ("text", "title", "content")]),
        summary=select_scalars(config),
    )  # fmt: skip


def _profile(kind: str) -> str:
    return "upvotes" if kind == "upvotes" else "undertone"


def _load_encoder() -> Any:
    from pipeline.models import encoder

    return encoder.load(settings.encoder(), settings.precision(), settings.threads())


def _load_scorer(tensors: dict[str, Any], config: dict[str, Any]) -> "Scorer":
    from pipeline.training.commenting import quality

    return quality.load(tensors, config, _load_encoder() if config.get("encoder") else None)


def measure(rows: pl.DataFrame, kind: str, scorer: "Scorer") -> pl.DataFrame:
    """How well the test part is scored, with intervals over articles, beside the best baseline for each number."""
    from pipeline.metrics.commenting import grading
    from pipeline.training.commenting import quality

    test = rows.filter(pl.col("split") == "test")
    if not test.height:
        return model_registry.complete_evaluations(pl.DataFrame(schema={"metric": pl.String}))
    unit = pl.col("target").log1p() if TARGETS[kind] == "upvotes" else pl.col("target")
    found = grading.report(test.with_columns(unit, score=pl.Series(quality.score_comments(scorer, test))))
    best = (
        _select_best(grading.report_baselines(rows.with_columns(unit), draws=0))
        if (rows["split"] == "train").any()
        else _NO_BEST
    )
    told = found.join(best, on="metric", how="left", maintain_order="left")
    parts = [told.select("metric", "value", "baseline", "baseline_name", pair_count="n")]
    has_interval = test["article_id"].n_unique() >= MIN_ARTICLES or test["article_id"].null_count() >= MIN_ARTICLES
    parts += (
        []
        if not has_interval
        else [
            told.select(metric=pl.format("{}_{}", "metric", pl.lit(end)), value=end, pair_count="n")
            for end in ("low", "high")
        ]
    )
    every = pl.concat(parts, how="diagonal").drop_nulls("value")
    return model_registry.complete_evaluations(
        every.with_columns(split=pl.lit("test"), subset=pl.lit("all"), epoch=pl.lit(0, pl.Int64))
    )


_NO_BEST = pl.DataFrame(schema={"metric": pl.String, "baseline": pl.Float64, "baseline_name": pl.String})


def _select_best(beside: pl.DataFrame) -> pl.DataFrame:
    """The best baseline for each number: metric, baseline, baseline_name."""
    goodness = pl.when(metric="mae").then(-pl.col("value")).otherwise("value")
    ordered = beside.drop_nulls("value").sort(goodness, "baseline", descending=[True, False])
    first = ordered.unique("metric", keep="first", maintain_order=True)
    return first.select("metric", baseline="value", baseline_name="baseline")


def train_file(
    rows: pl.DataFrame, kind: str, out: Path, profile: str | None = None, changes: Mapping[str, Any] | None = None
) -> pl.DataFrame:
    """Train into a folder; the model's numbers."""
    return model_registry.train_into(out, lambda: fit(rows, kind, profile, changes))[1]


def train(
    day: str, kind: str, *, profile: str | None = None, changes: Mapping[str, Any] | None = None, run_id: str = "cli"
) -> str:
    """Train on the tables into the registry, in force from that day on; the model's id.

    But not one that could not be measured, as there are too few articles for a test part.
    """
    return model_registry.train(day, lambda: fit(read_tables(kind), kind, profile, changes), run_id)


def train_if_graded(day: str, run_id: str = "cli") -> str | None:
    """A scorer of quality as `train` makes it; None, with a warning, where people graded too little to learn from."""
    try:
        return train(day, "quality", run_id=run_id)
    except (Missing, BadInput) as why:
        log.warning("no scorer: %s", why)
        return None


def load_model(kind: str, ref: str | None = None, day: str | None = None) -> "Model":
    """A scorer by its folder or id; without one that of a kind which is in force for a day."""
    model = model_registry.load_model(
        check_kind(kind), ref, day, f"no scorer of {kind} is in force; train one: `undertone train quality --help`"
    )
    if model.config.get("kind") != kind:
        raise BadInput(f"model {model.model_id[:12]}: it is of kind {model.config.get('kind')!r}, expected {kind!r}")
    return model


def score_frame(
    rows: pl.DataFrame, kind: str = "quality", ref: str | None = None, column: str = "text"
) -> pl.DataFrame:
    """Any frame of comments with a score named as its kind, and `signature`; both are null where there is no text.

    Args:
        rows: the comments and, where they are known, title and content.
        kind: quality or upvotes.
        ref: folder or id of a scorer; that in force by default.
        column: with the comments.
    """
    from pipeline.training.commenting import quality

    model = load_model(kind, ref)
    about = {name: pl.lit(None, pl.String) for name in ("title", "content") if name not in rows.columns}
    said = rows.with_columns(text=pl.col(column).fill_null("").str.strip_chars(), **about)
    held = said["text"] != ""
    value = np.full(rows.height, np.nan)
    asked = said.filter(held)
    if asked.height:
        value[held.to_numpy()] = quality.score_comments(model.build(_load_scorer), asked)
    found = pl.Series(kind, value.round(DECIMALS)).fill_nan(None)
    signed = pl.when(held).then(pl.lit(format_signature(kind, model)))
    return rows.drop(kind, "signature", strict=False).hstack([found]).with_columns(signature=signed)


def format_signature(kind: str, model: "Model") -> str:
    """What made a score, as text."""
    by = model.config.get("encoder") or "none"
    return f"{kind}|model:{model.model_id[:12]}|encoder:{by}|undertone:{__version__}"


def score_day(day: str, kind: str = "quality", ref: str | None = None, run_id: str = "cli") -> int:
    """Score a day's comments with their articles into `scores`, those by the same model anew; return the count."""
    began = runs.start()
    model = load_model(kind, ref, day)
    columns = ("source", "day", "thread_id", "comment_id", "text_hash", "text")
    about = day_texts.scan_articles(pl.lit(value=True)).select(*THREAD, "title", content="text")
    comments = day_texts.scan_comments(day, warehouse.snapshot("comments"), *columns).join(about, on=THREAD, how="left")
    told = score_frame(comments.sort(COMMENT).collect(), kind, ref or model.model_id).drop_nulls(kind).select(
        "source", "day", "thread_id", "comment_id", "text_hash", "signature", metric=pl.lit(kind),
        model_id=pl.lit(model.model_id), value=kind,
    )  # fmt: skip
    where = {**warehouse.slice_of(day=day), "metric": kind, "model_id": model.model_id}
    count = warehouse.overwrite("scores", where, told.select(TABLES["scores"].schema.column_names()), run_id)
    runs.record_scores(told, day, f"score_{kind}", kind, [model.model_id], run_id, began)
    return count


def evaluate(rows: pl.DataFrame, kind: str, ref: str | None = None) -> pl.DataFrame:
    """Numbers of a scorer on comments; those of another data set than its own are all test."""
    model = load_model(kind, ref)
    if model_registry.hash_rows(rows.select(_ROWS)) != model.config.get("data_hash"):
        rows = rows.with_columns(split=pl.lit("test"))
    return measure(rows, kind, model.build(_load_scorer))


def summarize(found: pl.DataFrame) -> pl.DataFrame:
    """Numbers as people read them: metric, value with its interval, the best baseline, n."""
    rows = found.filter(pl.col("split") == "test")
    ends = {
        end: rows.filter(pl.col("metric").str.ends_with(f"_{end}")).select(
            pl.col("metric").str.strip_suffix(f"_{end}"), pl.col("value").alias(end)
        )
        for end in ("low", "high")
    }
    told = rows.filter(~pl.col("metric").str.contains("_(low|high)$"))
    for frame_ in ends.values():
        told = told.join(frame_, on="metric", how="left", maintain_order="left")
    return told.select("metric", "value", "low", "high", "baseline", by="baseline_name", n="pair_count")
