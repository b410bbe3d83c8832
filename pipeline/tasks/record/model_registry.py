"""Models in the tables: which there are, what they are worth, and which of a kind is in force for a day."""

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from pipeline import __version__, settings, warehouse
from pipeline.collect.clean import text_hash
from pipeline.errors import Missing
from pipeline.slices import parse_day
from pipeline.tables import ERASED, TABLES
from pipeline.tasks.record import runs

if TYPE_CHECKING:
    from pipeline.training.registry import Model

DECIMALS = 6
_ROWS = 10_000  # written out at once


def put(
    kind: str, day: str, model_id: str, about: Mapping[str, Any], evaluations: pl.DataFrame, run_id: str, *,
    is_promoted: bool, texts: pl.Series | None, since: runs.Start | None = None,
) -> None:  # fmt: skip
    """Put a model into `models` and its numbers into `evaluations`; promoted, it is the one of its kind and day.

    Args:
        kind: of model.
        day: it was trained for.
        model_id: its content hash.
        about: encoder, encoder_revision, config, data_hash, completion_models.
        evaluations: rows of the table without kind, day and model_id.
        run_id: of Airflow.
        is_promoted: whether days are scored by it.
        texts: it was trained on, one a row; None where they are nobody's, such as rated words.
        since: when the training began.
    """
    if texts is not None:
        learned(kind, model_id, texts, run_id)  # first: no model is in force of which this is not known
    where = warehouse.slice_of(kind=kind, day=day)
    stamp = {"kind": pl.lit(kind), "day": pl.lit(parse_day(day)), "model_id": pl.lit(model_id)}
    warehouse.overwrite("evaluations", {**where, "model_id": model_id}, evaluations.with_columns(**stamp), run_id)
    facts = {**about, "is_promoted": is_promoted, "code_version": __version__}
    row = pl.DataFrame(
        [facts], schema_overrides={"completion_models": pl.List(pl.String)}, orient="row"
    ).with_columns(**stamp).select(TABLES["models"].schema.column_names())  # fmt: skip

    def with_others(present: pl.LazyFrame) -> pl.LazyFrame:
        others = present.filter(pl.col("model_id") != model_id)
        if is_promoted:
            others = others.with_columns(is_promoted=pl.lit(value=False))
        return pl.concat([others.select(row.columns), row.lazy()])

    warehouse.replace("models", where, with_others, run_id)
    count = evaluations.height + 1  # the model's own row
    runs.tell(kind, day, "models", "train", count, None, {"model_id": model_id}, run_id, since)


def learned(kind: str, model_id: str, texts: pl.Series, run_id: str = "cli") -> None:
    """Put the hashes of the texts a model was trained on into `training_texts`, to tell later whose are erased."""
    texts = texts.drop_nulls().rename("text")
    counts = texts.filter(texts != "").value_counts(name="row_count")
    rows = counts.select(
        kind=pl.lit(kind), model_id=pl.lit(model_id), text_hash=text_hash(counts["text"]),
        row_count=pl.col("row_count").cast(pl.Int64),
    ).lazy()  # fmt: skip

    def with_others(there: pl.LazyFrame) -> pl.LazyFrame:
        is_mine = pl.col("model_id") == model_id
        erased = there.filter(is_mine & (pl.col("text_hash") == ERASED)).select(pl.len()).collect().item()
        # the same model of the same texts: what was erased since has no hash, and gets none again
        return there if erased else pl.concat([there.filter(~is_mine), rows])

    warehouse.replace("training_texts", warehouse.slice_of(kind=kind), with_others, run_id)


def learned_in_folder(kind: str, folder: Path, texts: pl.Series) -> None:
    """Do the same for a model outside the registry, if its folder lies where an erasure looks: below the home."""
    from pipeline.training import registry

    is_ours = any(folder.resolve().is_relative_to(root) for root in (settings.home(), settings.models()))
    if is_ours:
        with suppress(Missing):  # there are no tables, so nobody can be forgotten
            learned(kind, registry.read(folder).model_id, texts)


def flagged() -> pl.DataFrame:
    """Models that were trained on texts that were erased since, and on what share of them (view `models_flagged`)."""
    return warehouse.query("select * from models_flagged order by kind, model_id")


def model_for(kind: str, day: str | None) -> str | None:
    """Id of the model a day is scored by: the newest promoted for that day or before, else the oldest promoted.

    A rule on the tables rather than "the latest", so that scoring a day again gives the same model. None where none is
    promoted.
    """
    promoted = (pl.col("kind") == kind) & pl.col("is_promoted")
    known = warehouse.scan("models", promoted).select("day", "model_id").sort("day").collect()
    if not known.height:
        return None
    if day is None:
        return str(known["model_id"][-1])
    past = known.filter(pl.col("day") <= parse_day(day))
    return str(past["model_id"][-1] if past.height else known["model_id"][0])


def opened(kind: str, ref: str | None = None, day: str | None = None, missing: str = "") -> "Model":
    """A model by its folder or its id; without one that of its kind which is in force for a day.

    Raises:
        Missing: none is in force; what it says is given as `missing`.
    """
    from pipeline.training import registry

    ref = ref or model_for(kind, day)
    if ref is None:
        raise Missing(missing or f"no model of kind {kind} is in force")
    folder = Path(ref).expanduser()
    return registry.read(folder) if folder.is_dir() else registry.fetch(settings.models(), ref)


def numbers(found: pl.DataFrame) -> pl.DataFrame:
    """Rows of `evaluations` without kind, day and model_id, of a frame that has some of its columns; the rest is null.

    Values are rounded, so that a table does not change with the machine's last digits.
    """
    schema = TABLES["evaluations"].schema.create_empty().drop("kind", "day", "model_id").schema
    absent = [pl.lit(None, kind).alias(name) for name, kind in schema.items() if name not in found.columns]
    return (
        found.with_columns(*absent)
        .select(pl.col(name).cast(kind) for name, kind in schema.items())
        .with_columns(pl.col("value", "baseline").round(DECIMALS))
    )


def hash_of(*frames: pl.DataFrame) -> str:
    """SHA-256 of what a model is trained and chosen on: rows and columns in any order."""
    digest = hashlib.sha256()
    for frame in frames:
        rows = frame.select(sorted(frame.columns))
        for part in rows.sort([name for name, kind in rows.schema.items() if not kind.is_nested()]).iter_slices(_ROWS):
            digest.update(part.write_ndjson().encode())
    return digest.hexdigest()
