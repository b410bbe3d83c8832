"""Models in the tables: their rows, their evaluations, their training texts, and which of a kind a day is scored by."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from pipeline import __version__, settings, warehouse
from pipeline.collect.clean import text_hash
from pipeline.errors import Missing
from pipeline.slices import parse_day
from pipeline.tables import ERASED, empty
from pipeline.tasks.record import runs

if TYPE_CHECKING:
    from torch import Tensor

    from pipeline.training.registry import Model

DECIMALS = 6
_ROWS = 10_000  # written out at once


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedModel:
    """A model that is not kept yet, and what the tables say of it."""

    kind: str
    tensors: "dict[str, Tensor]"
    config: dict[str, Any]  # of its folder
    evaluations: pl.DataFrame  # rows of the table without kind, day and model_id
    texts: pl.Series | None  # it was trained on, one a row; None where they are nobody's, such as rated words
    summary: Mapping[str, Any]  # what `models` shows of the configuration
    data_hash: str | None = None  # where it is not one of the configuration
    encoder: str = "none"  # shown where the configuration names none
    encoder_revision: str = "none"
    completion_models: Sequence[str] = ()
    is_promoted: bool = True  # days are scored by it
    evaluate: "Callable[[Model], pl.DataFrame] | None" = None  # more evaluations, of the model as it was kept

    def build_row(self) -> dict[str, Any]:
        """Its row of `models` without kind, day and model_id."""
        return {
            "encoder": self.config.get("encoder") or self.encoder,
            "encoder_revision": self.config.get("encoder_revision") or self.encoder_revision,
            "config": json.dumps(self.summary, sort_keys=True), "data_hash": self.data_hash or self.config["data_hash"],
            "completion_models": list(self.completion_models), "is_promoted": self.is_promoted,
            "code_version": __version__,
        }  # fmt: skip

    def collect_evaluations(self, folder: Path) -> pl.DataFrame:
        """All evaluations of the model, which was kept in a folder."""
        from pipeline.training import registry

        more = [self.evaluate(registry.read(folder))] if self.evaluate else []
        return pl.concat([self.evaluations, *more])


def train(day: str, fit: Callable[[], TrainedModel], run_id: str) -> str:
    """Train a model into the registry and the tables, in force from a day on where it is promoted; its id."""
    parse_day(day)
    started = runs.start()
    return register(fit(), day, run_id, started)


def train_into(out: Path, fit: Callable[[], TrainedModel]) -> tuple[str, pl.DataFrame]:
    """Train a model into a folder, which holds nothing or another model; its id and its evaluations."""
    from pipeline.training import registry

    registry.writable(out)
    trained = fit()
    model_id = registry.write(out, trained.tensors, trained.config)
    if trained.texts is not None:
        record_texts_of_folder(trained.kind, out, trained.texts)
    return model_id, trained.collect_evaluations(out)


def register(trained: TrainedModel, day: str, run_id: str, started: runs.Start | None = None) -> str:
    """Keep a model in the registry, and replace its row of `models` and its evaluations of a day; its id.

    A promoted model takes the place of that which was promoted for the same kind and day.
    """
    from pipeline.training import registry

    kind, model_id = trained.kind, registry.keep(settings.models(), trained.tensors, trained.config)
    evaluations = trained.collect_evaluations(settings.models() / model_id)
    if trained.texts is not None:
        record_texts(kind, model_id, trained.texts, run_id)  # first: no model is in force of which this is not known
    partition = warehouse.slice_of(kind=kind, day=day)
    key = {"kind": pl.lit(kind), "day": pl.lit(parse_day(day)), "model_id": pl.lit(model_id)}
    warehouse.overwrite("evaluations", {**partition, "model_id": model_id}, evaluations.with_columns(**key), run_id)
    row = pl.DataFrame(
        [trained.build_row()], schema_overrides={"completion_models": pl.List(pl.String)}, orient="row"
    ).with_columns(**key).select(empty("models").columns)  # fmt: skip

    def with_other_models(current: pl.LazyFrame) -> pl.LazyFrame:
        other_models = current.filter(pl.col("model_id") != model_id)
        if trained.is_promoted:
            other_models = other_models.with_columns(is_promoted=pl.lit(value=False))
        return pl.concat([other_models.select(row.columns), row.lazy()])

    warehouse.replace("models", partition, with_other_models, run_id)
    count = evaluations.height + 1  # the model's own row
    runs.record_step(kind, day, "models", "train", count, None, {"model_id": model_id}, run_id, started)
    return model_id


def locate_state(*facts: object) -> Path:
    """The file of a training's state, named by what the training is made of."""
    key = hashlib.sha256(json.dumps([*facts, __version__]).encode())
    return settings.scratch("training") / f"{key.hexdigest()}.safetensors"


def record_texts(kind: str, model_id: str, texts: pl.Series, run_id: str = "cli") -> None:
    """Write the hashes of the texts a model was trained on into `training_texts`, by which an erasure finds it."""
    texts = texts.drop_nulls().rename("text")
    counts = texts.filter(texts != "").value_counts(name="row_count")
    rows = counts.select(
        kind=pl.lit(kind), model_id=pl.lit(model_id), text_hash=text_hash(counts["text"]),
        row_count=pl.col("row_count").cast(pl.Int64),
    ).lazy()  # fmt: skip

    def with_other_models(current: pl.LazyFrame) -> pl.LazyFrame:
        is_own = pl.col("model_id") == model_id
        erased_count = current.filter(is_own & (pl.col("text_hash") == ERASED)).select(pl.len()).collect().item()
        # the same model of the same texts: what was erased since has no hash, and gets none again
        return current if erased_count else pl.concat([current.filter(~is_own), rows])

    warehouse.replace("training_texts", warehouse.slice_of(kind=kind), with_other_models, run_id)


def record_texts_of_folder(kind: str, folder: Path, texts: pl.Series) -> None:
    """Do the same for a model outside the registry, if its folder lies where an erasure searches: below the home."""
    from pipeline.training import registry

    if any(folder.resolve().is_relative_to(root) for root in (settings.home(), settings.models())):
        with suppress(Missing):  # there are no tables, so nobody can be forgotten
            record_texts(kind, registry.read(folder).model_id, texts)


def list_flagged() -> pl.DataFrame:
    """List models that were trained on texts that were erased since, with their share (view `models_flagged`)."""
    return warehouse.query("select * from models_flagged order by kind, model_id")


def select_model_id(kind: str, day: str | None) -> str | None:
    """Id of the model a day is scored by: the newest promoted for that day or before, else the oldest; None without.

    A rule on the tables rather than "the latest", so that scoring a day again gives the same model.
    """
    promoted = (pl.col("kind") == kind) & pl.col("is_promoted")
    models = warehouse.scan("models", promoted).select("day", "model_id").sort("day").collect()
    if not models.height:
        return None
    if day is None:
        return str(models["model_id"][-1])
    past = models.filter(pl.col("day") <= parse_day(day))
    return str(past["model_id"][-1] if past.height else models["model_id"][0])


def load_model(kind: str, ref: str | None = None, day: str | None = None, missing: str = "") -> "Model":
    """Load a model by its folder or its id, else that of its kind which is in force for a day.

    Raises:
        Missing: none is in force; `missing` is the message.
    """
    from pipeline.training import registry

    ref = ref or select_model_id(kind, day)
    if ref is None:
        raise Missing(missing or f"no model of kind {kind} is in force")
    folder = Path(ref).expanduser()
    return registry.read(folder) if folder.is_dir() else registry.fetch(settings.models(), ref)


def complete_evaluations(frame: pl.DataFrame) -> pl.DataFrame:
    """Rows of `evaluations` without kind, day and model_id, of a frame that has some of its columns; others are null.

    Values are rounded, so that a table does not change with the machine's last digits.
    """
    schema = empty("evaluations").drop("kind", "day", "model_id").schema
    absent = [pl.lit(None, kind).alias(name) for name, kind in schema.items() if name not in frame.columns]
    return (
        frame.with_columns(*absent)
        .select(pl.col(name).cast(kind) for name, kind in schema.items())
        .with_columns(pl.col("value", "baseline").round(DECIMALS))
    )


def select_scalars(config: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers, words and truth values of a configuration."""
    return {name: value for name, value in config.items() if isinstance(value, (int, float, str, bool))}


def build_epoch_rows(history: pl.DataFrame, columns: Mapping[str, tuple[str, str]]) -> pl.DataFrame:
    """Numbers of a training's epochs as rows of `evaluations` without kind, day and model_id.

    Args:
        history: epoch, count, and some of the columns.
        columns: metric and split of each.
    """
    rows = [
        history.select(
            "epoch", value=name, metric=pl.lit(metric), split=pl.lit(split), subset=pl.lit("epochs"), pair_count="count"
        ).drop_nulls("value")
        for name, (metric, split) in columns.items() if name in history.columns
    ]  # fmt: skip
    return complete_evaluations(pl.concat(rows))


def hash_rows(*frames: pl.DataFrame) -> str:
    """SHA-256 of what a model is trained and chosen on: rows and columns in any order."""
    digest = hashlib.sha256()
    for frame in frames:
        rows = frame.select(sorted(frame.columns))
        for part in rows.sort([name for name, kind in rows.schema.items() if not kind.is_nested()]).iter_slices(_ROWS):
            digest.update(part.write_ndjson().encode())
    return digest.hexdigest()
