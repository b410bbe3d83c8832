"""List the models of the tables, describe one, promote one by request, and roll a promotion back."""

import json
from typing import Any

import polars as pl

from pipeline import settings, warehouse
from pipeline.errors import BadInput, Missing
from pipeline.slices import parse_day
from pipeline.tables import empty
from pipeline.tasks.record import model_choice, model_registry

HEADLINES = ["implicitness_accuracy", "macro_f1", "accuracy", "spearman", "pearson", "mrr", "cross_entropy", "loss"]
"""Metrics by which a model is known, the first that it has."""


def list_models() -> pl.DataFrame:
    """List the models: kind, model_id, day, is_promoted, is_in_force (today), metric, value of the held-out rows."""
    rows = warehouse.scan("models").select("kind", "model_id", "day", "is_promoted").collect()
    evaluations = warehouse.scan("evaluations", pl.col("metric").is_in(HEADLINES) & (pl.col("split") != "train"))
    order = (
        pl.col("metric").replace_strict({name: rank for rank, name in enumerate(HEADLINES)}, return_dtype=pl.Int64),
        pl.col("epoch") > 0, pl.col("split") != "test", pl.col("subset") != "all", -pl.col("epoch"),
    )  # fmt: skip
    headlines = evaluations.sort(*order).unique(["kind", "model_id"], keep="first").collect()
    in_force = [(kind, model_choice.select_model_id(kind, None)) for kind in rows["kind"].unique()]
    schema = {"kind": pl.String, "model_id": pl.String}
    current = pl.DataFrame(in_force, schema, orient="row").with_columns(is_in_force=pl.lit(value=True))
    current = current.join(rows.filter("is_promoted").group_by("kind").agg(pl.col("day").max()), on="kind")
    keys = ["kind", "model_id"]
    rows = rows.join(current, on=[*keys, "day"], how="left").with_columns(pl.col("is_in_force").fill_null(value=False))
    rows = rows.join(headlines.select(*keys, "metric", "value"), on=keys, how="left")
    return rows.sort("kind", "day", "model_id")


def read_model(ref: str) -> dict[str, Any]:
    """Read the newest row of a model by its id or the beginning of it, with `config` and `promotion` parsed."""
    rows = warehouse.scan("models", pl.col("model_id").str.starts_with(ref)).sort("day").collect()
    if (count := rows["model_id"].n_unique()) != 1:
        raise Missing(f"{ref}: expected the id of one model in the tables, found {count}; see `undertone models list`")
    return _parse(rows)


def _parse(rows: pl.DataFrame) -> dict[str, Any]:
    row = rows.row(-1, named=True)
    config = json.loads(row["config"])
    return {**row, "promotion": config.pop("promotion", None) or {}, "config": config}


def read_evaluations(row: dict[str, Any]) -> pl.DataFrame:
    """Read the evaluations of a model from its newest day; those with an epoch above 0 are of its training."""
    is_of_model = (pl.col("kind") == row["kind"]) & (pl.col("model_id") == row["model_id"])
    rows = warehouse.scan("evaluations", is_of_model).collect()
    rows = rows.filter(pl.col("day") == pl.col("day").max())
    return rows.drop("kind", "day", "model_id").sort("split", "subset", "epoch", "metric")


def tabulate_epochs(evaluations: pl.DataFrame) -> pl.DataFrame:
    """Tabulate the numbers of a training: a row for each epoch, a column for each metric, split and head."""
    part = pl.when(pl.col("subset").is_in(["all", "epochs"])).then(pl.lit("")).otherwise(", " + pl.col("subset"))
    rows = evaluations.filter(pl.col("epoch") > 0).with_columns(on=pl.format("{}, {}{}", "metric", "split", part))
    return rows.sort("on", "epoch").pivot("on", index="epoch", values="value").sort("epoch")


def promote(ref: str, day: str, run_id: str = "cli") -> dict[str, Any]:
    """Put a model in force from a day on; return its row, which records the request."""
    row = read_model(ref)
    if row["promotion"].get("is_barred"):
        raise BadInput(f"model {row['model_id'][:12]} cannot be promoted: {row['promotion']['reason']}")
    if not (settings.models() / row["model_id"]).is_dir():
        raise Missing(f"model {row['model_id'][:12]}: its folder is not in {settings.models()}; copy it there")
    current = model_choice.select_model_id(row["kind"], day)
    changes = {"is_promoted": True, "is_forced": True, "reason": "promoted by request"}
    changes["replaced"] = current if current != row["model_id"] else row["promotion"].get("replaced")
    promoted = _change({**row, "day": parse_day(day)}, **changes)
    _write([promoted], run_id)
    return promoted


def roll_back(kind: str, run_id: str = "cli") -> dict[str, Any]:
    """Take the newest promoted model of a kind out of force; the one before it is in force again. Return its row."""
    rows = warehouse.scan("models", (pl.col("kind") == kind) & pl.col("is_promoted")).sort("day").collect()
    if not rows.height:
        kinds = warehouse.scan("models", pl.col("is_promoted")).select(pl.col("kind").unique().sort()).collect()
        raise Missing(f"no model of kind {kind!r} is promoted; kinds with one: {', '.join(kinds['kind']) or 'none'}")
    rolled_back = _change(_parse(rows), is_promoted=False, reason="rolled back")
    is_before = (pl.col("kind") == kind) & (pl.col("model_id") == (rolled_back["promotion"].get("replaced") or ""))
    before = warehouse.scan("models", is_before & (pl.col("day") == rolled_back["day"])).collect()
    changed = [rolled_back]
    if before.height:  # of the same day: it was demoted
        changed.append(_change(_parse(before), is_promoted=True, reason="in force again by a rollback"))
    _write(changed, run_id)
    return rolled_back


def _change(row: dict[str, Any], **promotion: Any) -> dict[str, Any]:
    return {**row, "promotion": {**row["promotion"], **promotion}, "is_promoted": promotion["is_promoted"]}


def _write(rows: list[dict[str, Any]], run_id: str) -> None:
    configs = [json.dumps({**row["config"], "promotion": row["promotion"]}, sort_keys=True) for row in rows]
    columns = {name: [row[name] for row in rows] for name in empty("models").columns} | {"config": configs}
    model_registry.write_rows(pl.DataFrame(columns, schema=empty("models").schema), str(rows[0]["day"]), run_id)
