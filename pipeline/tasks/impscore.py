"""ImpScore: completions to pairs, pairs to a model, the model into `models` and its numbers into `evaluations`."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

from pipeline import __version__, sample, settings, warehouse
from pipeline.errors import Missing
from pipeline.examples import pairs as examples
from pipeline.llm import cassette
from pipeline.slices import parse_day
from pipeline.tables import TABLES

KIND = "impscore"
SAMPLE_SOURCES = ("sample_en", "sample_zh")


def play(day: str, path: str | None = None, run_id: str = "cli") -> list[str]:
    """Add a cassette's answers to `completions`; return its sources. The shipped sample's by default."""
    parse_day(day)
    rows = cassette.read(sample.COMPLETIONS if path in (None, "sample") else Path(str(path)).expanduser())
    for source in (sources := sorted(rows["source"].unique())):
        mine = rows.filter(pl.col("source") == source)

        def with_others(present: pl.LazyFrame, mine: pl.DataFrame = mine) -> pl.LazyFrame:
            others = present.join(mine.lazy(), on="completion_id", how="anti")  # an answer paid for is kept
            return pl.concat([others.select(mine.columns), mine.lazy()])

        warehouse.replace("completions", warehouse.slice_of(source=source), with_others, run_id)
    return sources


def answered() -> list[str]:
    """Sources that have completions."""
    return warehouse.scan("completions").select(pl.col("source").unique().sort()).collect()["source"].to_list()


def build_pairs(source: str, day: str, seed: int | None = None, run_id: str = "cli") -> int:
    """Pairs of one source from its completions; answers that give none are in `dropped`."""
    seed = examples.SEED if seed is None else seed
    where = warehouse.slice_of(source=source)
    completions = warehouse.scan("completions", pl.col("source") == source).sort("completion_id").collect()
    rows, gone = examples.build(completions, seed)
    stamp = {"day": pl.lit(parse_day(day)), "origin": pl.lit("completions")}
    lost = gone.with_columns(**stamp, step=pl.lit("pairs"))
    slot = warehouse.slice_of(source=source, day=day, origin="completions")
    warehouse.overwrite("dropped", slot, lost, run_id)
    run = pl.DataFrame(
        {"source": [source], "step": ["pairs"], "read_count": [completions.height], "kept_count": [rows.height],
         "dropped_count": [completions.height - rows.height], "config": [json.dumps({"seed": seed})],
         "run_id": [run_id], "code_version": [__version__]}
    ).with_columns(**stamp)  # fmt: skip
    warehouse.overwrite("runs", {**slot, "step": "pairs"}, run, run_id)
    return warehouse.overwrite("pairs", where, rows, run_id)


def train(
    day: str,
    *,
    epochs: int | None = None,
    seed: int | None = None,
    done: Callable[[int], None] = lambda _: None,
    run_id: str = "cli",
) -> str:
    """Train on all pairs and promote the model for the day; return its id. Equal pairs and numbers give an equal model.

    The sample's pairs are left out as soon as there are others.
    """
    from pipeline.models import encoder as encoders
    from pipeline.training import impscore, registry

    parse_day(day)
    rows = warehouse.scan("pairs").sort("pair_id").collect()
    own = rows.filter(~pl.col("source").is_in(SAMPLE_SOURCES))
    rows = own if own.height else rows
    if not rows.height:
        raise Missing("the table pairs is empty; bring completions in first: `undertone train impscore --sample`")
    encoder = encoders.load(settings.encoder(), settings.precision(), settings.threads())
    fitted = impscore.fit(
        rows,
        encoder,
        impscore.Recipe(**{k: v for k, v in {"epochs": epochs, "seed": seed}.items() if v is not None}),
        done,
    )
    lines = rows.select(pl.concat_str(pl.all(), separator="\t", ignore_nulls=True)).to_series()
    data_hash = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    used = warehouse.scan("completions").select("completion_id", "model").collect()
    answered_by = rows.join(used, on="completion_id", how="left")["model"].drop_nulls().unique().sort().to_list()
    config = {
        "kind": KIND, "encoder": encoder.name, "encoder_revision": encoder.revision, "recipe": fitted.recipe,
        "data_hash": data_hash, "completion_models": answered_by,
    }  # fmt: skip
    model_id = registry.keep(settings.models(), fitted.model.state_dict(), config)
    _publish(day, model_id, config, fitted.evaluations, run_id)
    return model_id


def _publish(day: str, model_id: str, config: dict[str, Any], evaluations: pl.DataFrame, run_id: str) -> None:
    where = warehouse.slice_of(kind=KIND, day=day)
    stamp = {"kind": pl.lit(KIND), "day": pl.lit(parse_day(day)), "model_id": pl.lit(model_id)}
    warehouse.overwrite("evaluations", {**where, "model_id": model_id}, evaluations.with_columns(**stamp), run_id)
    row = pl.DataFrame(
        {"encoder": [config["encoder"]], "encoder_revision": [config["encoder_revision"]], "is_promoted": [True],
         "config": [json.dumps(config["recipe"], sort_keys=True)], "data_hash": [config["data_hash"]],
         "completion_models": [config["completion_models"]], "code_version": [__version__]},
        schema_overrides={"completion_models": pl.List(pl.String)},
    ).with_columns(**stamp).select(TABLES["models"].schema.column_names())  # fmt: skip

    def with_others(present: pl.LazyFrame) -> pl.LazyFrame:
        others = present.filter(pl.col("model_id") != model_id).with_columns(is_promoted=pl.lit(value=False))
        return pl.concat([others.select(row.columns), row.lazy()])

    warehouse.replace("models", where, with_others, run_id)


def model_for(day: str | None) -> str:
    """Id of the model a day is scored by: the newest promoted for that day or before, else the oldest there is.

    A rule on the tables rather than "the latest", so that scoring a day again gives the same model.
    """
    promoted = (pl.col("kind") == KIND) & pl.col("is_promoted")
    known = warehouse.scan("models", promoted).select("day", "model_id").sort("day").collect()
    if not known.height:
        raise Missing("there is no trained model; run the DAG impscore or `undertone train impscore --sample`")
    if day is None:
        return str(known["model_id"][-1])
    past = known.filter(pl.col("day") <= parse_day(day))
    return str(past["model_id"][-1] if past.height else known["model_id"][0])
