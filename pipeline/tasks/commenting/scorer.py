"""The scorer of comments as tasks: from grades or upvotes to a model, from a model to scores (AAC-34)."""

import logging
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from pipeline import left_out, settings, warehouse
from pipeline.errors import BadInput, Missing, check_name
from pipeline.examples.splits import NAMES, draw_uniform
from pipeline.io.rows import number_rows
from pipeline.label import simulated
from pipeline.metrics.commenting import grading
from pipeline.metrics.resample import Floats
from pipeline.tasks.commenting import corpus, grades
from pipeline.tasks.commenting.corpus import COMMENT, THREAD, THREAD_ID
from pipeline.tasks.commenting.correlations import MIN_ARTICLES
from pipeline.tasks.record import day_texts, model_choice, model_registry, promotion, replace, runs
from pipeline.tasks.record.encoders import load_encoder
from pipeline.training.registry import Model

if TYPE_CHECKING:
    from pipeline.models.commenting.quality import Scorer

TARGETS = {"quality": "grade", "upvotes": "upvotes"}
"""What a scorer learns, by its kind, which is also the metric of its scores."""

log = logging.getLogger(__name__)
_ROWS = ["text", "title", "content", "article_id", "target", "split"]
RANGES: dict[str, tuple[float, float]] = {"grade": (1, 5), "upvotes": (0, math.inf)}
SHARES = (0.8, 0.9)  # of the articles: train up to the first, validation up to the second


def read(path: Path, kind: str) -> pl.DataFrame:
    """Read training comments: `text`, `grade` or `upvotes`, and where known `article_id`, `title`, `content`, `split`.

    Returns text, title, content, article_id, target, split (by article, where the file has none).
    """
    target = TARGETS[check_name("scorer of", kind, TARGETS)]
    columns, rows = ("text", "title", "content", "article_id", "split"), []
    for number, row in number_rows(path):
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
    """Read what people graded, or all comments with upvotes, from the tables with their articles; columns of `read`."""
    comments = corpus.scan_comments()
    if check_name("scorer of", kind, TARGETS) == "quality":
        is_human = ~pl.col("tool").str.contains(simulated.TOOL, literal=True)
        targets = warehouse.scan("comment_grades").group_by(COMMENT).agg(target=pl.col("grade").filter(is_human).mean())
        generated = warehouse.scan("generated_comments").select(*THREAD, "text", comment_id="generated_id")
        all_comments = pl.concat([comments.select(*COMMENT, "text"), generated.select(*COMMENT, "text")])
        rows = all_comments.join(targets, on=COMMENT, how="inner")
    else:
        rows = comments.drop_nulls("like_count").select(*COMMENT, "text", target=pl.col("like_count").cast(pl.Float64))
    columns = {"article_id": THREAD_ID, "split": pl.lit(None, pl.String)}
    rows = rows.join(corpus.scan_articles(), on=THREAD, how="left").sort(COMMENT)
    examples = rows.select("text", "title", "content", "target", **columns).collect()
    left_out.record_rows(kind, {simulated.TOOL: examples["target"].null_count()})  # none of upvotes
    examples = examples.drop_nulls("target")
    if not examples.height:
        condition = "graded by people" if kind == "quality" else "with upvotes"
        raise Missing(f"no comment is {condition}; see `undertone commenting ratings --help`, or give a file by --data")
    return _split_rows(examples)


def fit(
    rows: pl.DataFrame, kind: str, profile: str | None = None, changes: Mapping[str, Any] | None = None
) -> model_registry.TrainedModel:
    """Fit a scorer and measure it."""
    from pipeline.training.commenting import quality

    recipe = quality.make_recipe(profile or ("upvotes" if kind == "upvotes" else "undertone"), **(changes or {}))
    if recipe.target != TARGETS[kind]:
        raise BadInput(f"profile {profile!r} learns {recipe.target}, not {TARGETS[kind]}")
    encoder = load_encoder() if recipe.has_embedding else None
    result = quality.fit(rows, recipe, encoder, settings.scratch("embeddings"))
    config = {**result.config, "kind": kind, "data_hash": model_registry.hash_rows(rows.select(_ROWS))}
    evaluations = measure(rows, kind, _load_scorer(result.tensors, config))
    return model_registry.TrainedModel(
        kind=kind,
        tensors=result.tensors,
        config=config,
        evaluations=evaluations,
        doubt="there are too few articles for a test part" if evaluations.is_empty() else None,
        make_held_out=lambda: make_held_out(rows),
        texts=pl.concat([rows[name].alias("text") for name in ("text", "title", "content")]),
        summary=model_registry.select_scalars(config),
    )


def make_held_out(rows: pl.DataFrame) -> list[promotion.HeldOut]:
    """Hold out comments, by the rank correlation of which scorers are compared, also with the baselines."""
    from pipeline.models.commenting import quality

    test, train_rows = promotion.select_held_out(rows), rows.filter(pl.col("split") == "train")
    if not test.height:
        return []
    count = promotion.rank_against(test["target"])
    guesses = grading.predict_baselines(train_rows, test) if train_rows.height else {}
    articles = test.select(pl.coalesce("article_id", pl.format("\0{}", pl.int_range(pl.len())))).to_series()

    def answer(model: Model) -> Floats:
        return count(quality.score_comments(model.build(_load_scorer), test))

    baselines, measure = {name: count(values) for name, values in guesses.items()}, promotion.compute_correlation
    return [promotion.HeldOut(metric="spearman", answer=answer, baselines=baselines, measure=measure, units=articles)]


def _load_scorer(tensors: dict[str, Any], config: dict[str, Any]) -> "Scorer":
    from pipeline.models.commenting import quality

    return quality.load(tensors, config, load_encoder(config) if config.get("encoder") else None)


def measure(rows: pl.DataFrame, kind: str, scorer: "Scorer") -> pl.DataFrame:
    """Measure the scores of the test part, with intervals over articles and the best baseline for each metric."""
    from pipeline.models.commenting import quality

    unit = pl.col("target").log1p() if TARGETS[kind] == "upvotes" else pl.col("target")
    test = rows.filter(pl.col("split") == "test").with_columns(unit)
    if not test.height:
        return model_registry.complete_evaluations(pl.DataFrame(schema={"metric": pl.String}))
    report = grading.report(test.with_columns(score=pl.Series(quality.score_comments(scorer, test))))
    parts = [report.select("metric", "value", pair_count="n")]
    if (rows["split"] == "train").any():
        goodness = pl.when(metric="mae").then(-pl.col("value")).otherwise("value")
        baselines = grading.report_baselines(rows.with_columns(unit), draws=0).drop_nulls("value")
        best = baselines.sort(goodness, "baseline", descending=[True, False]).unique("metric", keep="first")
        best = best.select("metric", baseline="value", baseline_name="baseline")
        parts = [parts[0].join(best, on="metric", how="left", maintain_order="left")]
    if test["article_id"].n_unique() >= MIN_ARTICLES or test["article_id"].null_count() >= MIN_ARTICLES:
        names = {end: pl.col("metric") + f"_{end}" for end in ("low", "high")}
        parts += [report.select(metric=name, value=end, pair_count="n") for end, name in names.items()]
    return model_registry.complete_evaluations(pl.concat(parts, how="diagonal").drop_nulls("value"))


def train(day: str, kind: str, *, promote: bool = False, run_id: str = "cli", **options: Any) -> str:
    """Train on the tables into the registry, with options of `fit`; return the model's id."""
    return model_registry.train(day, lambda: fit(read_tables(kind), kind, **options), run_id, promote=promote)


def train_if_graded(day: str, run_id: str = "cli") -> str | None:
    """Train a scorer of quality; return None and log a warning where people graded too few comments."""
    try:
        return train(day, "quality", run_id=run_id)
    except (Missing, BadInput) as error:
        log.warning("no scorer: %s", error)
        return None


def load_model(kind: str, ref: str | None = None, day: str | None = None) -> "Model":
    """Load a scorer by its folder or id; without `ref`, the one of a kind that is in force for a day."""
    missing = f"no scorer of {kind} is in force; train one: `undertone train quality --help`"
    model = model_choice.load_model(check_name("scorer of", kind, TARGETS), ref, day, missing)
    if (model_kind := model.config.get("kind")) != kind:
        hint = f"; give --target {model_kind}" if model_kind in TARGETS else ""
        raise BadInput(f"model {model.model_id[:12]}: it is of kind {model_kind!r}, expected {kind!r}{hint}")
    return model


def score_frame(
    rows: pl.DataFrame, kind: str = "quality", ref: str | None = None, column: str = "text"
) -> pl.DataFrame:
    """Add a score named as its kind and `signature` to a column of comments; both are null where there is no text."""
    from pipeline.models.commenting import quality

    model = load_model(kind, ref)
    missing = {name: pl.lit(None, pl.String) for name in ("title", "content") if name not in rows.columns}
    texts = rows.with_columns(pl.col(column).alias("text"), **missing)

    def score(filled: pl.DataFrame) -> Floats:
        return quality.score_comments(model.build(_load_scorer), filled)

    return replace.add_scores(rows, kind, texts, model, score, "none")


def score_day(day: str, kind: str = "quality", ref: str | None = None, run_id: str = "cli") -> int:
    """Score a day's comments with their articles into `scores`, replacing those by the same model; return the count."""
    timer = runs.start()
    model = load_model(kind, ref, day)
    comments = day_texts.scan_comments(day, warehouse.get_snapshot_id("comments"), *replace.ITEM, "text")
    rows = comments.join(corpus.scan_articles(), on=THREAD, how="left").sort(COMMENT).collect()
    scored_rows = score_frame(rows, kind, ref or model.model_id)
    return replace.write_scores(scored_rows, kind, day, model.model_id, run_id, timer)


def evaluate(rows: pl.DataFrame, kind: str, ref: str | None = None) -> pl.DataFrame:
    """Evaluate a scorer on comments; of another data set than its own all are test that it did not learn from."""
    model = load_model(kind, ref)
    if model_registry.hash_rows(rows.select(_ROWS)) != model.config.get("data_hash"):
        rows = model_registry.split_seen(rows, "text", model.model_id)
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
