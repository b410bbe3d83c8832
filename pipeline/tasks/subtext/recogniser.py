"""The subtext recogniser as tasks: from labelled comments to a model, from a model to scores (CSD-02, 28 to 31)."""

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pipeline import left_out, warehouse
from pipeline.errors import BadInput, Missing, check_name
from pipeline.examples.subtext import contexts
from pipeline.metrics import classification
from pipeline.metrics.labelling import label_analysis
from pipeline.metrics.resample import Floats
from pipeline.models import word_vectors
from pipeline.models.word_vectors import WordVectors
from pipeline.reasons import choose_first, split_off
from pipeline.tasks.record import day_texts, model_choice, model_registry, promotion, replace, runs
from pipeline.tasks.record.encoders import load_encoder
from pipeline.tasks.record.model_registry import TrainedModel
from pipeline.tasks.record.promotion import HeldOut
from pipeline.text import segment
from pipeline.training.registry import Model

if TYPE_CHECKING:
    from pipeline.training.subtext.recogniser import SubtextModel

KIND = METRIC = "subtext"
PROFILE = "undertone"
QUOTED = 6  # characters from which a text within another is a quotation


def read(path: Path, source: str = "own", *, by_topic: bool = False) -> pl.DataFrame:
    """Read labelled comments (text, context, label, split), split by topic on request or if the file has no split."""
    rows = contexts.SOURCES[check_name("source", source, contexts.SOURCES)](path)
    return contexts.split_by_topic(rows) if by_topic or rows["split"].null_count() else rows


def read_released(release: str | None = None) -> pl.DataFrame:
    """Read the published comments that raters were sure about; without a release none of simulated raters."""
    is_asked = pl.col("release") == release if release else None
    rows = warehouse.scan("annotated_comments", is_asked).sort("release", "row_id").collect()
    is_simulated = pl.col("row_id").is_in(list_simulated_rows().implode()) & pl.lit(release is None)
    reason = choose_first({"no_label": pl.col("is_subtext").is_null(), "simulated_labels": is_simulated})
    rows, dropped = split_off(rows, reason, ["reason"])
    runs.report_dropped(KIND, dropped)
    label, context = pl.col("is_subtext").cast(pl.Int8).cast(pl.String), pl.col("context").fill_null("")
    examples = rows.select("text", context, label=label, item_id="row_id", topic=context)
    if not examples.height:
        lines = [
            f"{KIND}: left out {row.row_count:,} as {row.reason}" for row in left_out.list_rows() if row.step == KIND
        ]
        remedy = "; ".join(lines) or "`undertone label release` publishes labels"
        raise Missing(f"annotated_comments holds nothing to learn from; {remedy}")
    distinct = examples.unique(("text", "context"), keep="last", maintain_order=True)  # with the last release's label
    left_out.record_rows(KIND, {"repeated_text": examples.height - distinct.height}, "text")
    return contexts.split_by_topic(distinct)


def list_simulated_rows() -> pl.Series:
    """List the row_id of released comments that simulated raters labelled."""
    labels = warehouse.scan("labels", pl.col("tool") == "simulated").select("project", "task_id").unique().collect()
    tasks = warehouse.scan("label_tasks").select("project", "task_id", "row_id").collect()
    return tasks.join(labels, on=["project", "task_id"], how="semi")["row_id"]


def load_vectors(
    rows: pl.DataFrame, path: Path | None = None, tokenizer: str = "jieba", extra_texts: Sequence[str] = ()
) -> WordVectors:
    """Load word vectors from a file, or train them on the train split and extra texts that quote no other split."""
    from pipeline.training import word_vectors as fitting

    if path:
        return word_vectors.read(path)
    is_train = rows["split"] == "train"
    train_rows, held_out = rows.filter(is_train), set(rows["text"].filter(~is_train))
    texts = pl.concat([train_rows["text"], train_rows["context"]]).unique(maintain_order=True).to_list()
    quoted = pl.Series([text for text in held_out if len(text) >= QUOTED], dtype=pl.String)  # typed, as it may be empty
    extra = pl.Series(extra_texts, dtype=pl.String)
    texts += extra.filter(~extra.is_in(held_out) & ~extra.str.contains_any(quoted.implode())).to_list()
    tokenize = segment.load_tokenizer(tokenizer).cut
    return fitting.fit([*(segment.split_words(text, tokenize) for text in texts), *map(list, texts)])


def fit(
    rows: pl.DataFrame,
    profile: str = PROFILE,
    changes: Mapping[str, Any] | None = None,
    path: Path | None = None,
    extra_texts: Sequence[str] = (),
) -> TrainedModel:
    """Fit a recogniser on labelled comments (text, context, label, split), with word vectors of `load_vectors`."""
    from pipeline.training.subtext import recogniser

    if not (rows["split"] != "train").any():
        copy_count = sum(row.row_count for row in left_out.list_rows() if row.reason == "repeated_row")
        copies = f" ({copy_count:,} copies of earlier rows were left out)" if copy_count else ""
        raise BadInput(
            f"all {rows.height} rows are of the split 'train'{copies}, so the recogniser could not be measured; give "
            "some the split 'validation' or 'test', or leave the column out and give more rows, which are then divided"
        )
    recipe = recogniser.make_recipe(profile, **(changes or {}))
    encoder = load_encoder(pooling="layers") if recipe.units == "pieces" else None
    vectors = encoder or load_vectors(rows, path, recipe.tokenizer, extra_texts)
    data_hash = hash_rows(rows)
    state = model_registry.locate_state(data_hash, dataclasses.asdict(recipe), vectors.revision)
    result = recogniser.fit(rows, recipe, vectors, state)
    config = {**result.config, "kind": KIND, "profile": profile, "data_hash": data_hash}
    epochs = model_registry.build_epoch_rows(result.history, {"value": ("macro_f1", "validation")})
    evaluations = pl.concat([epochs, measure(rows, recogniser.load(result.tensors, config, encoder))])
    is_seen = rows["split"] != "test"  # labels of the test split decide nothing
    labelled = pl.concat([rows["text"], rows["context"].alias("text")]).filter(pl.concat([is_seen, is_seen]))
    texts = [rows["text"], rows["context"].alias("text")]
    if not encoder:  # word vectors read all, without labels
        texts.append(pl.Series("text", extra_texts, dtype=pl.String))
    return TrainedModel(
        kind=KIND,
        tensors=result.tensors,
        config=config,
        evaluations=evaluations,
        texts=pl.concat(texts),
        labelled=labelled,
        summary={"profile": profile, **dataclasses.asdict(recipe)},
        encoder="word vectors",
        encoder_revision="of the model",
    )


def hash_rows(rows: pl.DataFrame) -> str:
    """Return the SHA-256 of all columns that training depends on."""
    text = rows.select("text", "context", "label", "split").sort(pl.all()).write_ndjson()
    return hashlib.sha256(text.encode()).hexdigest()


def train(day: str, release: str | None = None, *, promote: bool = False, run_id: str = "cli", **options: Any) -> str:
    """Train on published comments into the registry; labels by simulated raters need a request. Return the id."""

    def fit_release() -> TrainedModel:
        comments = warehouse.scan("comments").select(pl.col("text").unique().sort()).collect()["text"].to_list()
        rows = read_released(release)
        trained = fit(rows, extra_texts=comments, **options)
        is_simulated = rows["item_id"].is_in(list_simulated_rows().implode()).any()
        return dataclasses.replace(
            trained,
            summary={**trained.summary, "release": release},
            doubt="simulated raters made some of its labels" if is_simulated else None,
            make_held_out=lambda: make_held_out(rows),
        )

    return model_registry.train(day, fit_release, run_id, promote=promote)


def make_held_out(rows: pl.DataFrame) -> list[HeldOut]:
    """Hold out labelled comments, by the macro F1 of which models are compared, also with the baselines."""
    from pipeline.training.subtext import recogniser

    part, train_rows = promotion.select_held_out(rows), rows.filter(pl.col("split") == "train")
    if not part.height:
        return []
    names = sorted(rows["label"].unique())
    texts, size = part["text"].to_list(), len(names) + 1  # the last class is any other

    def count(labels: Sequence[str]) -> Floats:  # a confusion table for each row: [n, size * size]
        sides = (part["label"], labels)
        gold, predicted = ([names.index(name) if name in names else size - 1 for name in side] for side in sides)
        return np.asarray(np.eye(size**2)[np.array(gold) * size + np.array(predicted)])

    def answer(model: "Model") -> Floats:
        built = build_recogniser(model)
        decisions = recogniser.decide(built, recogniser.predict_probabilities(built, texts, part["context"].to_list()))
        return count([built.classes[decision] for decision in decisions])

    def measure(sums: Floats) -> Floats:
        return classification.compute_metric(sums.astype(np.int64).reshape(*sums.shape[:-1], size, size), "f1")

    examples = train_rows["text"].to_list(), train_rows["label"].to_list()
    predictions = label_analysis.predict_baselines(*examples, texts)
    baselines = {name: count(labels) for name, labels in predictions.items()}
    return [HeldOut(metric="macro_f1", answer=answer, baselines=baselines, measure=measure, texts=part["text"])]


def load_model(ref: str | None = None, day: str | None = None) -> "Model":
    """Load a recogniser by its folder or id; without `ref`, the one in force for a day."""
    missing = "no recogniser is in force; train one: `undertone train subtext --help`"
    return model_choice.load_model(KIND, ref, day, missing)


def build_recogniser(model: "Model") -> "SubtextModel":
    """Build a recogniser from a model of the registry."""
    from pipeline.training.subtext import recogniser

    has_encoder = bool(model.config.get("encoder"))
    return model.build(recogniser.load, load_encoder(model.config, pooling="layers") if has_encoder else None)


def evaluate(rows: pl.DataFrame, ref: str | None = None) -> pl.DataFrame:
    """Evaluate a recogniser on labelled comments; of another data set all are test that it did not learn from."""
    model = load_model(ref)
    if hash_rows(rows) != model.config.get("data_hash"):
        rows = model_registry.split_seen(rows, "text", model.model_id)
    return measure(rows, build_recogniser(model))


def measure(rows: pl.DataFrame, model: "SubtextModel") -> pl.DataFrame:
    """Measure macro precision, recall and F1 (errata E9), calibration, F1 without the context, and baselines."""
    from pipeline.training.subtext import recogniser

    class_index = {name: number for number, name in enumerate(model.classes)}
    if unknown := sorted(set(rows["label"]) - set(class_index)):
        raise BadInput(f"the recogniser knows the labels {', '.join(class_index)}, not {', '.join(unknown)}")
    results: list[dict[str, Any]] = []
    train_rows = rows.filter(pl.col("split") == "train")
    for (split,), part in rows.partition_by("split", as_dict=True, maintain_order=True).items():
        truth, texts = np.array([class_index[label] for label in part["label"]]), part["text"].to_list()
        probabilities = recogniser.predict_probabilities(model, texts, part["context"].to_list())
        decisions = recogniser.decide(model, probabilities)
        values: dict[str, float] = {}
        for metric in ("precision", "recall", "f1", "accuracy"):
            name = metric if metric == "accuracy" else f"macro_{metric}"
            interval = classification.estimate_interval(truth, decisions, metric)
            values |= {name: interval.value, f"{name}_low": interval.low, f"{name}_high": interval.high}
        values["calibration_error"] = classification.calibration_error(truth, probabilities)
        without_context = recogniser.decide(model, recogniser.predict_probabilities(model, texts, [""] * part.height))
        values["macro_f1_without_context"] = classification.macro_f1(truth, without_context)
        if split == "test" and train_rows["label"].n_unique() > 1:
            examples = train_rows["text"].to_list(), train_rows["label"].to_list()
            for name, labels in label_analysis.predict_baselines(*examples, texts).items():
                predictions = np.array([class_index[label] for label in labels])
                values[f"{name}_baseline"] = classification.macro_f1(truth, predictions)
        row = {"split": split, "pair_count": part.height}
        results += [{**row, "metric": name, "value": value} for name, value in values.items()]
    return model_registry.complete_evaluations(pl.DataFrame(results, infer_schema_length=None))


def summarize(evaluations: pl.DataFrame) -> pl.DataFrame:
    """Summarize the evaluation of the last epoch for display: a row for each split."""
    rows = evaluations.filter((pl.col("epoch") == 0) & ~pl.col("metric").str.contains("_(low|high)$"))
    return rows.rename({"pair_count": "n"}).pivot("metric", index=["split", "n"], values="value", maintain_order=True)


def score_frame(rows: pl.DataFrame, ref: str | None = None) -> pl.DataFrame:
    """Add `subtext`, the probability that there is some, and `signature` to a frame of text and context."""
    from pipeline.training.subtext import recogniser

    model = load_model(ref)
    texts = rows.select("text", pl.col("context").fill_null(""))

    def score(filled: pl.DataFrame) -> Floats:
        columns = [column.to_list() for column in filled]
        return recogniser.predict(build_recogniser(model), *columns)

    return replace.add_scores(rows, METRIC, texts, model, score, "word-vectors")


def score_day(day: str, ref: str | None = None, run_id: str = "cli") -> int:
    """Score a day's comments in context into `scores`, replacing those by the same model; return the count."""
    timer = runs.start()
    model = load_model(ref, day)
    columns = (*replace.ITEM, "text", "context")
    comments = day_texts.scan_comments(day, warehouse.get_snapshot_id("comments"), *columns)
    rows = comments.sort("source", "thread_id", "comment_id").collect()
    scored_rows = score_frame(rows, ref or model.model_id)
    return replace.write_scores(scored_rows, METRIC, day, model.model_id, run_id, timer)
