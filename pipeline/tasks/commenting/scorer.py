"""The scorer of comments as tasks: from grades or upvotes to a model, from a model to scores (AAC-34)."""

import logging
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl

from pipeline import settings, warehouse
from pipeline.errors import BadInput, Missing
from pipeline.examples.splits import NAMES, draw_uniform
from pipeline.io.rows import read_chunks
from pipeline.score import signature
from pipeline.tables import TABLES
from pipeline.tasks.commenting import corpus, grades
from pipeline.tasks.commenting.corpus import COMMENT, THREAD, THREAD_ID
from pipeline.tasks.commenting.correlations import MIN_ARTICLES
from pipeline.tasks.record import day_texts, model_choice, model_registry, promotion, runs
from pipeline.tasks.record.encoders import load_encoder
from pipeline.tasks.record.model_registry import TrainedModel, select_scalars
from pipeline.tasks.record.promotion import HeldOut

if TYPE_CHECKING:
    from pipeline.models.commenting.quality import Scorer
    from pipeline.training.registry import Model

Target = Literal["grade", "upvotes"]
TARGETS: dict[str, Target] = {"quality": "grade", "upvotes": "upvotes"}
"""What a scorer learns, by its kind, which is also the metric of its scores."""

log = logging.getLogger(__name__)
DECIMALS = 6
_ROWS = ["text", "title", "content", "article_id", "target", "split"]
RANGES: dict[str, tuple[float, float]] = {"grade": (1, 5), "upvotes": (0, math.inf)}
SHARES = (0.8, 0.9)  # of the articles: train up to the first, validation up to the second


def check_kind(kind: str) -> str:
    """Check the kind of a scorer and return it."""
    if kind not in TARGETS:
        raise BadInput(f"no scorer of {kind!r}; there are {' and '.join(TARGETS)}")
    return kind


def read(path: Path, kind: str) -> pl.DataFrame:
    """Read training comments: `text`, `grade` or `upvotes`, and where known `article_id`, `title`, `content`, `split`.

    Returns:
        text, title, content, article_id, target, split (by article, where the file has none).

    Raises:
        BadInput: with file, row and field.
    """
    target, columns = TARGETS[check_kind(kind)], ("text", "title", "content", "article_id", "split")
    rows = []
    for chunk in read_chunks(path, "utf-8-sig"):
        for number, row in enumerate(chunk.rows, chunk.first):
            place = f"{path}, row {number}"
            value = grades.parse_number(row, target, place, RANGES[target], "text")
            if row.get("split") not in (None, "", *NAMES):
                raise BadInput(f"{place}, field 'split': expected {', '.join(NAMES)}, found {row['split']!r:.40}")
            texts = [None if row.get(name) in (None, "") else str(row[name]) for name in columns]
            rows.append((*texts, value))
    schema = {**dict.fromkeys(columns, pl.String), "target": pl.Float64}
    return _split_rows(pl.DataFrame(rows, schema=schema, orient="row"))


def _split_rows(rows: pl.DataFrame) -> pl.DataFrame:
    """Give rows without a split one, by article, or by text where there is no article."""
    draw = draw_uniform(rows.select(pl.coalesce("article_id", "text")).to_series())
    split = pl.when(draw < SHARES[0]).then(pl.lit("train")).when(draw < SHARES[1]).then(pl.lit("validation"))
    return rows.with_columns(split=pl.coalesce("split", split.otherwise(pl.lit("test"))))


def read_tables(kind: str) -> pl.DataFrame:
    """Read training comments of the tables with their articles: those that people graded, or all with upvotes.

    Grades of simulated raters do not count. The columns are those of `read`.

    Raises:
        Missing: there are none.
    """
    comments = corpus.scan_comments()
    if check_kind(kind) == "quality":
        is_human = ~pl.col("tool").str.contains("simulated", literal=True)
        targets = warehouse.scan("comment_grades", is_human).group_by(COMMENT).agg(target=pl.col("grade").mean())
        generated = warehouse.scan("generated_comments").select(*THREAD, "text", comment_id="generated_id")
        all_comments = pl.concat([comments.select(*COMMENT, "text"), generated.select(*COMMENT, "text")])
        rows = all_comments.join(targets, on=COMMENT, how="inner")
    else:
        rows = comments.drop_nulls("like_count").select(*COMMENT, "text", target=pl.col("like_count").cast(pl.Float64))
    columns = {"article_id": THREAD_ID, "split": pl.lit(None, pl.String)}
    rows = rows.join(corpus.scan_articles(), on=THREAD, how="left").sort(COMMENT)
    examples = rows.select("text", "title", "content", "target", **columns).collect()
    if not examples.height:
        condition = "graded by people" if kind == "quality" else "with upvotes"
        raise Missing(f"no comment is {condition}; see `undertone commenting ratings --help`, or give a file by --data")
    return _split_rows(examples)


def fit(
    rows: pl.DataFrame, kind: str, profile: str | None = None, changes: Mapping[str, Any] | None = None
) -> TrainedModel:
    """Fit a scorer and measure it."""
    from pipeline.training.commenting import quality

    recipe = quality.make_recipe(profile or ("upvotes" if kind == "upvotes" else "undertone"), **(changes or {}))
    if recipe.target != TARGETS[check_kind(kind)]:
        raise BadInput(f"profile {profile!r} learns {recipe.target}, not {TARGETS[kind]}")
    encoder = load_encoder() if recipe.has_embedding else None
    result = quality.fit(rows, recipe, encoder, settings.scratch("embeddings"))
    config = {**result.config, "kind": kind, "data_hash": model_registry.hash_rows(rows.select(_ROWS))}
    evaluations = measure(rows, kind, _load_scorer(result.tensors, config))
    return TrainedModel(
        kind=kind,
        tensors=result.tensors,
        config=config,
        evaluations=evaluations,
        doubt="there are too few articles for a test part" if evaluations.is_empty() else None,
        make_held_out=lambda: make_held_out(rows),
        texts=pl.concat([rows[name].alias("text") for name in ("text", "title", "content")]),
        summary=select_scalars(config),
    )


def make_held_out(rows: pl.DataFrame) -> list[HeldOut]:
    """Hold out comments, by the rank correlation of which scorers are compared, also with the baselines."""
    from pipeline.metrics.commenting import grading
    from pipeline.models.commenting import quality

    test, train_rows = promotion.select_held_out(rows), rows.filter(pl.col("split") == "train")
    if not test.height:
        return []

    count, baselines = promotion.rank_against(test["target"]), {}
    if train_rows.height:
        baselines = {name: count(scores) for name, scores in grading.predict_baselines(train_rows, test).items()}
    articles = test.select(pl.coalesce("article_id", pl.format("\0{}", pl.int_range(pl.len())))).to_series()
    return [
        HeldOut(
            metric="spearman",
            answer=lambda model: count(quality.score_comments(model.build(_load_scorer), test)),
            baselines=baselines,
            measure=promotion.compute_correlation,
            units=articles,
        )
    ]


def _load_scorer(tensors: dict[str, Any], config: dict[str, Any]) -> "Scorer":
    from pipeline.models.commenting import quality

    return quality.load(tensors, config, load_encoder(config) if config.get("encoder") else None)


def measure(rows: pl.DataFrame, kind: str, scorer: "Scorer") -> pl.DataFrame:
    """Measure the scores of the test part, with intervals over articles and the best baseline for each metric."""
    from pipeline.metrics.commenting import grading
    from pipeline.models.commenting import quality

    unit = pl.col("target").log1p() if TARGETS[kind] == "upvotes" else pl.col("target")
    test = rows.filter(pl.col("split") == "test").with_columns(unit)
    if not test.height:
        return model_registry.complete_evaluations(pl.DataFrame(schema={"metric": pl.String}))
    report = grading.report(test.with_columns(score=pl.Series(quality.score_comments(scorer, test))))
    best = pl.DataFrame(schema={"metric": pl.String, "baseline": pl.Float64, "baseline_name": pl.String})
    if (rows["split"] == "train").any():
        best = _select_best(grading.report_baselines(rows.with_columns(unit), draws=0))
    report = report.join(best, on="metric", how="left", maintain_order="left")
    parts = [report.select("metric", "value", "baseline", "baseline_name", pair_count="n")]
    if test["article_id"].n_unique() >= MIN_ARTICLES or test["article_id"].null_count() >= MIN_ARTICLES:
        parts += [
            report.select(metric=pl.format("{}_{}", "metric", pl.lit(end)), value=end, pair_count="n")
            for end in ("low", "high")
        ]
    all_rows = pl.concat(parts, how="diagonal").drop_nulls("value")
    facts = {"split": pl.lit("test"), "subset": pl.lit("all"), "epoch": pl.lit(0, pl.Int64)}
    return model_registry.complete_evaluations(all_rows.with_columns(**facts))


def _select_best(baselines: pl.DataFrame) -> pl.DataFrame:
    """Select the best baseline for each metric: metric, baseline, baseline_name."""
    goodness = pl.when(metric="mae").then(-pl.col("value")).otherwise("value")
    ordered = baselines.drop_nulls("value").sort(goodness, "baseline", descending=[True, False])
    first = ordered.unique("metric", keep="first", maintain_order=True)
    return first.select("metric", baseline="value", baseline_name="baseline")


def train_file(
    rows: pl.DataFrame,
    kind: str,
    out: Path,
    profile: str | None = None,
    changes: Mapping[str, Any] | None = None,
    *,
    force: bool = False,
) -> pl.DataFrame:
    """Train into a folder; return the model's evaluation."""
    return model_registry.train_into(out, lambda: fit(rows, kind, profile, changes), force=force)[1]


def train(
    day: str,
    kind: str,
    *,
    profile: str | None = None,
    changes: Mapping[str, Any] | None = None,
    promote: bool = False,
    run_id: str = "cli",
) -> str:
    """Train on the tables into the registry; return the model's id.

    The model is promoted from that day on if it is as good as its rivals, and unless there are too few articles for a
    test part; `promote` overrides both.
    """
    return model_registry.train(day, lambda: fit(read_tables(kind), kind, profile, changes), run_id, promote=promote)


def train_if_graded(day: str, run_id: str = "cli") -> str | None:
    """Train a scorer of quality; return None and log a warning where people graded too few comments."""
    try:
        return train(day, "quality", run_id=run_id)
    except (Missing, BadInput) as error:
        log.warning("no scorer: %s", error)
        return None


def load_model(kind: str, ref: str | None = None, day: str | None = None) -> "Model":
    """Load a scorer by its folder or id; without `ref`, the one of a kind that is in force for a day."""
    model = model_choice.load_model(
        check_kind(kind), ref, day, f"no scorer of {kind} is in force; train one: `undertone train quality --help`"
    )
    if model.config.get("kind") != kind:
        model_kind = model.config.get("kind")
        hint = f"; give --target {model_kind}" if model_kind in TARGETS else ""
        raise BadInput(f"model {model.model_id[:12]}: it is of kind {model_kind!r}, expected {kind!r}{hint}")
    return model


def score_frame(
    rows: pl.DataFrame, kind: str = "quality", ref: str | None = None, column: str = "text"
) -> pl.DataFrame:
    """Add a score named as its kind and `signature` to a frame of comments; both are null where there is no text.

    The rows have the comments in a column and, where they are known, title and content. `ref` is the folder or id of a
    scorer; by default it is the one in force.
    """
    from pipeline.models.commenting import quality

    model, scored_rows = load_model(kind, ref), signature.drop_earlier_scores(rows, kind, (kind, "signature"))
    missing_columns = {name: pl.lit(None, pl.String) for name in ("title", "content") if name not in rows.columns}
    texts = rows.with_columns(text=pl.col(column).fill_null("").str.strip_chars(), **missing_columns)
    has_text = texts["text"] != ""
    values = np.full(rows.height, np.nan)
    if has_text.any():
        values[has_text.to_numpy()] = quality.score_comments(model.build(_load_scorer), texts.filter(has_text))
    scores = pl.Series(kind, values.round(DECIMALS)).fill_nan(None)
    text = signature.with_encoder(kind, model.model_id, model.config, "none")
    return scored_rows.hstack([scores]).with_columns(signature=pl.when(has_text).then(pl.lit(text)))


def score_day(day: str, kind: str = "quality", ref: str | None = None, run_id: str = "cli") -> int:
    """Score a day's comments with their articles into `scores`, replacing those by the same model; return the count."""
    timer = runs.start()
    model = load_model(kind, ref, day)
    columns = ("source", "day", "thread_id", "comment_id", "text_hash")
    comments = day_texts.scan_comments(day, warehouse.get_snapshot_id("comments"), *columns, "text")
    rows = comments.join(corpus.scan_articles(), on=THREAD, how="left").sort(COMMENT).collect()
    scored_rows = score_frame(rows, kind, ref or model.model_id).drop_nulls(kind)
    facts = {"metric": pl.lit(kind), "model_id": pl.lit(model.model_id)}
    scores = scored_rows.select(*columns, "signature", value=kind, **facts)
    partition = {**warehouse.make_slice(day=day), "metric": kind, "model_id": model.model_id}
    count = warehouse.overwrite("scores", partition, scores.select(TABLES["scores"].schema.column_names()), run_id)
    runs.record_scores(scores, day, f"score_{kind}", kind, [model.model_id], run_id, timer)
    return count


def evaluate(rows: pl.DataFrame, kind: str, ref: str | None = None) -> pl.DataFrame:
    """Evaluate a scorer on comments; comments of another data set than its own are all test."""
    model = load_model(kind, ref)
    if model_registry.hash_rows(rows.select(_ROWS)) != model.config.get("data_hash"):
        rows = rows.with_columns(split=pl.lit("test"))
    return measure(rows, kind, model.build(_load_scorer))


def summarize(evaluations: pl.DataFrame) -> pl.DataFrame:
    """Summarize evaluations for display: metric, value with its interval, the best baseline, n."""
    rows = evaluations.filter(pl.col("split") == "test")
    wide = rows.filter(~pl.col("metric").str.contains("_(low|high)$"))
    for end in ("low", "high"):
        bounds = rows.filter(pl.col("metric").str.ends_with(f"_{end}"))
        bounds = bounds.select(pl.col("metric").str.strip_suffix(f"_{end}"), pl.col("value").alias(end))
        wide = wide.join(bounds, on="metric", how="left", maintain_order="left")
    return wide.select("metric", "value", "low", "high", "baseline", by="baseline_name", n="pair_count")
