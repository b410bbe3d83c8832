"""The subtext recogniser as tasks: labelled comments to a model, a model to scores (CSD-02, CSD-28 to CSD-31)."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pipeline import __version__, settings, warehouse
from pipeline.errors import BadInput, Missing
from pipeline.examples.splits import SEED
from pipeline.examples.subtext import contexts
from pipeline.tables import TABLES
from pipeline.tasks.record import day_texts as texts
from pipeline.tasks.record import model_registry, runs

if TYPE_CHECKING:
    from pipeline.models.word_vectors import WordVectors
    from pipeline.training.registry import Model
    from pipeline.training.subtext.recogniser import SubtextModel

KIND = METRIC = "subtext"
PROFILE = "undertone"
DECIMALS = 6
QUOTED = 6  # characters from which a text within another is a quotation


def read(path: Path, source: str = "own", *, by_topic: bool = False) -> pl.DataFrame:
    """Labelled comments of a file: text, context, label, split; see `examples.subtext.contexts.SOURCES`.

    Split by topic where asked, or where the file has no split.
    """
    if source not in contexts.SOURCES:
        raise BadInput(f"no source {source!r}; there are {', '.join(contexts.SOURCES)}")
    rows = contexts.SOURCES[source](path).rows
    return contexts.split_by_topic(rows) if by_topic or rows["split"].null_count() else rows


def read_released(release: str | None = None) -> pl.DataFrame:
    """Published comments that raters were sure about, split by context.

    Of the release named, else of all but those that simulated raters labelled.
    """
    rows = warehouse.scan("annotated_comments", pl.col("is_subtext").is_not_null()).sort("release", "row_id").collect()
    made_up = list_simulated_rows()
    rows = rows.filter(pl.col("release") == release if release else ~pl.col("row_id").is_in(made_up.implode()))
    if not rows.height:
        raise Missing("annotated_comments holds nothing to learn from; `undertone label release` publishes labels")
    label = pl.col("is_subtext").cast(pl.Int8).cast(pl.String)
    told = rows.select(
        "text", pl.col("context").fill_null(""), label=label, item_id="row_id", split=pl.lit(None, pl.String)
    )
    return contexts.split_by_topic(told.with_columns(topic="context").unique(("text", "context"), maintain_order=True))


def list_simulated_rows() -> pl.Series:
    """Rows of releases whose labels come from simulated raters, by row_id."""
    labels = warehouse.scan("labels", pl.col("tool") == "simulated").select("project", "task_id").unique().collect()
    tasks = warehouse.scan("label_tasks").select("project", "task_id", "row_id").collect()
    return tasks.join(labels, on=["project", "task_id"], how="semi")["row_id"]


def load_vectors(
    rows: pl.DataFrame, path: Path | None = None, tokenizer: str = "jieba", others: Sequence[str] = ()
) -> "WordVectors":
    """Word vectors of a file in GloVe's format; else trained on the texts to learn from and others beside them.

    Skip-gram over words and characters; no label is looked at, no text of the validation and test parts, and none that
    quotes one: what is said around a quoted comment may tell its label, as where one data set explains another's.
    """
    from pipeline.models import word_vectors
    from pipeline.text import segment
    from pipeline.training import word_vectors as fitting

    if path:
        return word_vectors.read(path)
    learnt = rows.filter(pl.col("split") == "train")
    held_out = set(rows.filter(pl.col("split") != "train")["text"])
    said = pl.concat([learnt["text"], learnt["context"]]).unique(maintain_order=True).to_list()
    quoted = [text for text in held_out if len(text) >= QUOTED]
    beside = pl.Series(others, dtype=pl.String)
    said += beside.filter(~beside.is_in(held_out) & ~beside.str.contains_any(quoted)).to_list()
    cut = segment.load_tokenizer(tokenizer).cut
    return fitting.fit([*(segment.split_words(text, cut) for text in said), *map(list, said)])


def fit(
    rows: pl.DataFrame,
    profile: str = PROFILE,
    changes: Mapping[str, Any] | None = None,
    path: Path | None = None,
    others: Sequence[str] = (),
) -> model_registry.TrainedModel:
    """A recogniser of labelled comments, and its numbers.

    Args:
        rows: text, context, label, split.
        profile: paper or undertone.
        changes: to its numbers.
        path: of word vectors.
        others: unlabelled texts to learn word vectors from as well.
    """
    from pipeline.training.subtext import recogniser

    if not (rows["split"] != "train").any():
        raise BadInput(
            f"all {rows.height} rows are of the split 'train', so the recogniser could not be measured; give some the "
            "split 'validation' or 'test', or leave the column out and give more rows, which are then divided"
        )
    recipe = recogniser.make_recipe(profile, **(changes or {}))
    if recipe.units == "pieces":
        from pipeline.models import encoder as encoders

        source: Any = encoders.load(settings.encoder(), settings.precision(), settings.threads(), pooling="layers")
    else:
        source = load_vectors(rows, path, recipe.tokenizer, others)
    data_hash = hash_rows(rows)
    state = model_registry.locate_state(data_hash, asdict(recipe), source.revision)
    done = recogniser.fit(rows, recipe, source, state)
    config = {**done.config, "kind": KIND, "profile": profile, "data_hash": data_hash}
    trained = recogniser.load(done.tensors, config, source if recipe.units == "pieces" else None)
    epochs = model_registry.build_epoch_rows(done.history, {"value": ("macro_f1", "validation")})
    unlabelled = [] if config["encoder"] else [pl.Series("text", others, dtype=pl.String)]  # word vectors read all
    return model_registry.TrainedModel(
        kind=KIND, tensors=done.tensors, config=config,
        evaluations=pl.concat([epochs, measure(rows, trained)]),
        texts=pl.concat([rows["text"], rows["context"].alias("text"), *unlabelled]),
        summary={name: config[name] for name in ("profile", *recogniser.Recipe.__slots__)},
        encoder="word vectors", encoder_revision="of the model",
    )  # fmt: skip


def hash_rows(rows: pl.DataFrame) -> str:
    """SHA-256 of what a recogniser is trained and chosen on."""
    told = rows.select("text", "context", "label", "split").sort(pl.all()).write_ndjson()
    return hashlib.sha256(told.encode()).hexdigest()


def train_file(
    rows: pl.DataFrame, out: Path, profile: str = PROFILE, changes: Mapping[str, Any] | None = None,
    path: Path | None = None,
) -> pl.DataFrame:  # fmt: skip
    """Train into a folder; the model's numbers."""
    return model_registry.train_into(out, lambda: fit(rows, profile, changes, path))[1]


def train(
    day: str, release: str | None = None, *, profile: str = PROFILE, changes: Mapping[str, Any] | None = None,
    run_id: str = "cli",
) -> str:  # fmt: skip
    """Train on published comments into the registry; the model's id. It is in force from that day on.

    But not one of labels that were made up: it is kept and says nothing about comments.
    """

    def fit_release() -> model_registry.TrainedModel:
        comments = warehouse.scan("comments").select(pl.col("text").unique().sort()).collect()["text"].to_list()
        rows = read_released(release)
        trained = fit(rows, profile, changes, others=comments)
        is_made_up = rows["item_id"].is_in(list_simulated_rows().implode()).any()
        return replace(trained, summary={**trained.summary, "release": release}, is_promoted=not is_made_up)

    return model_registry.train(day, fit_release, run_id)


def load_model(ref: str | None = None, day: str | None = None) -> "Model":
    """A recogniser by its folder or id; without one that in force for a day."""
    return model_registry.load_model(
        KIND, ref, day, "no recogniser is in force; train one: `undertone train subtext --help`"
    )


def build_recogniser(model: "Model") -> "SubtextModel":
    """A recogniser ready to be asked."""
    from pipeline.training.subtext import recogniser

    encoder = None
    if name := model.config.get("encoder"):
        from pipeline.models import encoder as encoders

        encoder = encoders.load(name, settings.precision(), settings.threads(), pooling="layers")
    return model.build(recogniser.load, encoder)


def evaluate(rows: pl.DataFrame, ref: str | None = None) -> pl.DataFrame:
    """Numbers of a recogniser on labelled comments; those of another data set than its own are all test."""
    model = load_model(ref)
    if hash_rows(rows) != model.config.get("data_hash"):
        rows = rows.with_columns(split=pl.lit("test"))
    return measure(rows, build_recogniser(model))


def measure(rows: pl.DataFrame, by: "SubtextModel") -> pl.DataFrame:
    """Macro precision, recall and F1 (errata E9) with intervals, calibration and the same without the context.

    Beside F1 of the test part stand the majority class and a linear SVM on TF-IDF of characters, fitted on the training
    part.

    Returns:
        Rows of `evaluations` without their keys.
    """
    from pipeline.metrics import classification
    from pipeline.metrics.labelling import predictability
    from pipeline.training.subtext import recogniser

    place = {name: number for number, name in enumerate(by.classes)}
    if unknown := sorted(set(rows["label"]) - set(place)):
        raise BadInput(f"the recogniser knows the labels {', '.join(place)}, not {', '.join(unknown)}")
    found: list[dict[str, Any]] = []
    learnt = rows.filter(pl.col("split") == "train")
    for (split,), part in rows.partition_by("split", as_dict=True, maintain_order=True).items():
        truth = np.array([place[label] for label in part["label"]])
        said = recogniser.probabilities(by, part["text"].to_list(), part["context"].to_list())
        blind = recogniser.decide(by, recogniser.probabilities(by, part["text"].to_list(), [""] * part.height))
        row = {"split": split, "subset": "all", "pair_count": part.height}
        for metric in ("precision", "recall", "f1", "accuracy"):
            measured = classification.estimate_interval(truth, recogniser.decide(by, said), metric)
            named = zip(("", "_low", "_high"), measured[:3], strict=True)
            name = metric if metric == "accuracy" else f"macro_{metric}"
            found += [{**row, "metric": f"{name}{end}", "value": value} for end, value in named]
        found.append({**row, "metric": "calibration_error", "value": classification.calibration(truth, said).error})
        found.append({
            **row, "metric": "macro_f1_without_context", "value": classification.macro_f1(truth, blind),
        })  # fmt: skip
        if split == "test" and learnt["label"].n_unique() > 1:
            told = (learnt["text"].to_list(), learnt["label"].to_list(), part["text"].to_list())
            beside = predictability.predict_baselines(*told, SEED)
            for name, guessed in beside.items():
                value = classification.macro_f1(truth, np.array([place[label] for label in guessed]))
                found.append({**row, "metric": f"{name}_baseline", "value": value})
    return model_registry.complete_evaluations(
        pl.DataFrame(found, infer_schema_length=None).with_columns(epoch=pl.lit(0, pl.Int64))
    )


def summarize(found: pl.DataFrame) -> pl.DataFrame:
    """Numbers of the last epoch as people read them: a row a split."""
    rows = found.filter((pl.col("epoch") == 0) & ~pl.col("metric").str.contains("_(low|high)$"))
    return rows.rename({"pair_count": "n"}).pivot("metric", index=["split", "n"], values="value", maintain_order=True)


def score_frame(rows: pl.DataFrame, ref: str | None = None) -> pl.DataFrame:
    """Any frame of text and context with `subtext`, the probability that there is some, and `signature`."""
    from pipeline.training.subtext import recogniser

    model = load_model(ref)
    said = rows.select(pl.col("text").fill_null("").str.strip_chars(), pl.col("context").fill_null(""))
    held = said["text"] != ""
    value = np.full(rows.height, np.nan)
    asked = said.filter(held)
    value[held.to_numpy()] = recogniser.predict(
        build_recogniser(model), asked["text"].to_list(), asked["context"].to_list()
    )
    found = pl.Series(METRIC, value.round(DECIMALS)).fill_nan(None)
    signed = pl.when(held).then(pl.lit(format_signature(model)))
    return rows.drop(METRIC, "signature", strict=False).hstack([found]).with_columns(signature=signed)


def format_signature(model: "Model") -> str:
    """What made a score, as text."""
    by = model.config.get("encoder") or "word-vectors"
    return f"{METRIC}|model:{model.model_id[:12]}|encoder:{by}|undertone:{__version__}"


def score_day(day: str, ref: str | None = None, run_id: str = "cli") -> int:
    """Score a day's comments in their contexts into `scores`, those by the same model anew; return the count."""
    began = runs.start()
    model = load_model(ref, day)
    columns = ("source", "day", "thread_id", "comment_id", "text_hash", "text", "context")
    comments = texts.scan_comments(day, warehouse.snapshot("comments"), *columns).collect()
    comments = comments.sort("source", "thread_id", "comment_id")
    told = score_frame(comments, ref or model.model_id).select(
        "source", "day", "thread_id", "comment_id", "text_hash", "signature", metric=pl.lit(METRIC),
        model_id=pl.lit(model.model_id), value=METRIC,
    )  # fmt: skip
    where = {**warehouse.slice_of(day=day), "metric": METRIC, "model_id": model.model_id}
    count = warehouse.overwrite("scores", where, told.select(TABLES["scores"].schema.column_names()), run_id)
    runs.record_scores(told, day, "score_subtext", METRIC, [model.model_id], run_id, began)
    return count
