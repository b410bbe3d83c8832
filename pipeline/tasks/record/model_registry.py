"""Models in the tables: register them with their evaluations and training texts, and read those of a kind."""

import hashlib
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from pipeline import __version__, left_out, logs, settings, warehouse
from pipeline.collect.clean import hash_text
from pipeline.errors import BadInput, Missing
from pipeline.slices import parse_day
from pipeline.tables import ERASED, empty
from pipeline.tasks.record import model_choice, promotion, runs
from pipeline.tasks.record.model_choice import choose_model

if TYPE_CHECKING:
    from torch import Tensor

    from pipeline.training.registry import Model

DECIMALS = 6
_ROWS = 10_000  # written out at once
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedModel:
    """A model that is not registered yet, and its facts for the tables."""

    kind: str
    tensors: "dict[str, Tensor]"
    config: dict[str, Any]  # of its folder
    evaluations: pl.DataFrame  # rows of the table without kind, day and model_id
    texts: pl.Series | None  # training texts, one for each row; None for texts of no person, such as rated words
    labelled: pl.Series | None = None  # those among them that it learned from with their label; by default all
    base: str | None = None  # the model that it was fitted on, whose texts shaped it too
    summary: Mapping[str, Any]  # the part of the configuration in `models`
    data_hash: str | None = None  # if the configuration has none
    encoder: str = "none"  # if the configuration names none
    encoder_revision: str = "none"
    completion_models: Sequence[str] = ()
    doubt: str | None = None  # why it is not promoted unless that is requested
    bar: str | None = None  # why it is never promoted
    make_held_out: Callable[[], Sequence[promotion.HeldOut]] = tuple  # by which it is compared with its rivals
    evaluate: "Callable[[Model], pl.DataFrame] | None" = None  # more evaluations, of the registered model

    def build_row(self, verdict: Mapping[str, Any]) -> dict[str, Any]:
        """Build the row of `models` without kind, day and model_id."""
        return {
            "encoder": self.config.get("encoder") or self.encoder,
            "encoder_revision": self.config.get("encoder_revision") or self.encoder_revision,
            "config": json.dumps({**self.summary, "promotion": verdict}, sort_keys=True),
            "data_hash": self.data_hash or self.config["data_hash"],
            "completion_models": list(self.completion_models),
            "is_promoted": verdict["is_promoted"],
            "code_version": __version__,
        }

    def collect_evaluations(self, folder: Path) -> pl.DataFrame:
        """Collect all evaluations of the model, whose files are in a folder."""
        from pipeline.training import registry

        more = [self.evaluate(registry.read(folder))] if self.evaluate else []
        return pl.concat([self.evaluations, *more])


def train(day: str, fit: Callable[[], TrainedModel], run_id: str, *, promote: bool = False) -> str:
    """Train and register a model for a day; return its id. `promote` promotes it also if it is worse than a rival."""
    started = runs.start()
    return register(fit(), day, run_id, started, promote=promote)


def train_into(out: Path, fit: Callable[[], TrainedModel], *, force: bool = False) -> tuple[str, pl.DataFrame]:
    """Train a model into an empty folder, by force instead of another model; return its id and its evaluations."""
    from pipeline.training import registry

    registry.check_writable(out, force=force)
    trained = fit()
    model_id = registry.write(out, trained.tensors, trained.config, force=force)
    if trained.texts is not None:
        record_texts_of_folder(trained.kind, out, trained.texts, trained.labelled, trained.base)
    return model_id, trained.collect_evaluations(out)


def register(
    trained: TrainedModel, day: str, run_id: str, started: runs.Start | None = None, *, promote: bool = False
) -> str:
    """Register a model: replace its row of `models` and its evaluations of a day; return its id.

    A promoted model replaces the promoted model of the same kind and day. One that is worse than a rival on held-out
    rows is not promoted unless that is requested; see `promotion`.
    """
    from pipeline.training import registry

    kind, model_id = trained.kind, registry.add(settings.models(), trained.tensors, trained.config)
    evaluations = trained.collect_evaluations(settings.models() / model_id)
    if trained.texts is not None:  # first: no model is in force without them
        record_texts(kind, model_id, trained.texts, run_id, trained.labelled, trained.base)
    partition = warehouse.make_slice(kind=kind, day=day)
    key = {"kind": pl.lit(kind), "day": pl.lit(parse_day(day)), "model_id": pl.lit(model_id)}
    warehouse.overwrite("evaluations", {**partition, "model_id": model_id}, evaluations.with_columns(**key), run_id)
    verdict = _judge(trained, model_id, day, promote=promote)
    row = pl.DataFrame([trained.build_row(verdict)], schema_overrides={"completion_models": pl.List(pl.String)})
    write_rows(row.with_columns(**key), day, run_id)
    count = evaluations.height + 1  # the model's own row
    runs.record_step(kind, day, "models", "train", count, None, {"model_id": model_id}, run_id, started)
    return model_id


def write_rows(rows: pl.DataFrame, day: str, run_id: str) -> None:
    """Write rows of one kind for a day in one commit; if one is promoted, no other model is for that day."""
    rows = rows.select(empty("models").columns)

    def with_other_models(current: pl.LazyFrame) -> pl.LazyFrame:
        other_models = current.filter(~pl.col("model_id").is_in(rows["model_id"].implode()))
        if rows["is_promoted"].any():
            other_models = other_models.with_columns(is_promoted=pl.lit(value=False))
        return pl.concat([other_models.select(rows.columns), rows.lazy()])

    warehouse.replace("models", warehouse.make_slice(kind=rows["kind"][0], day=day), with_other_models, run_id)


def _judge(trained: TrainedModel, model_id: str, day: str, *, promote: bool) -> dict[str, Any]:
    from pipeline.training import registry

    choice = choose_model(trained.kind, None, day)
    is_same = (pl.col("kind") == trained.kind) & (pl.col("model_id") == model_id) & (pl.col("day") == parse_day(day))
    for row in () if promote else warehouse.scan("models", is_same).collect().iter_rows(named=True):
        # trained again: its rivals were before it; models of older versions have no record
        if verdict := json.loads(row["config"]).get("promotion"):
            return {**verdict, "is_promoted": row["is_promoted"]}
    if choice and choice.model_id == model_id and not choice.is_shipped:
        choice = None
    rival, problems = None, {}
    try:
        rival = choice.load() if choice else None
    except (Missing, BadInput) as error:
        problems = {promotion.IN_FORCE: str(error)}
    data_hash = trained.config.get("data_hash")

    def is_unseen(texts: pl.Series) -> pl.Series:
        if rival is None or rival.config.get("data_hash") == data_hash:
            return texts.is_not_null()
        return mark_unseen(texts, rival.model_id)

    model = registry.read(settings.models() / model_id)
    with logs.hide_answers():
        rows = () if trained.bar else trained.make_held_out()
        comparisons, other_problems = promotion.compare(rows, model, rival, is_unseen)
    is_promoted, is_worse, why = promotion.decide(comparisons, trained.doubt, trained.bar, is_forced=promote)
    if choice is None and comparisons:
        why += "; no other model was in force"
    for name, problem in (other_problems | problems).items():
        why += f"; {name}: not compared, {problem}"
    line = "\n{metric} {new}, {rival} {other}: difference {difference}, interval {low} to {high}, {rows} rows"
    lines = "".join(line.format(**row) for row in comparisons)
    log.info("model %s of kind %s: %s%s", model_id[:12], trained.kind, why, lines)
    return {
        "is_promoted": is_promoted, "is_worse": is_worse, "is_forced": promote, "is_barred": trained.bar is not None,
        "reason": why, "replaced": choice.model_id if choice and not choice.is_shipped else None,
        "comparisons": comparisons,
    }  # fmt: skip


def mark_unseen(texts: pl.Series, model_id: str) -> pl.Series:
    """Mark the texts whose labels a model did not learn from, as far as `training_texts` shows: [n]."""
    return ~hash_text(texts).is_in(_read_labelled(model_id).implode())


def _read_labelled(model_id: str) -> pl.Series:
    if not settings.has_catalog():
        return pl.Series(dtype=pl.String)
    rows = warehouse.scan("training_texts", pl.col("model_id") == model_id).collect()
    return rows.filter(pl.col("is_labelled").fill_null(value=True))["text_hash"]


def split_seen(rows: pl.DataFrame, column: str, model_id: str) -> pl.DataFrame:
    """Give the split `train` to rows whose text a model learned from with its label, and `test` to the others."""
    is_unseen = mark_unseen(rows[column], model_id)
    if is_unseen.all() and _read_labelled(model_id).is_empty():
        reason = "there is no record of what it learned from, as of a model outside the home; such rows count as test"
        left_out.record_note(f"model {model_id[:12]}: {reason}")
    return rows.with_columns(split=pl.when(is_unseen).then(pl.lit("test")).otherwise(pl.lit("train")))


def locate_state(*facts: object) -> Path:
    """Return the file of a training's state; its name is a hash of what decides the training."""
    key = hashlib.sha256(json.dumps([*facts, __version__]).encode())
    return settings.scratch("training") / f"{key.hexdigest()}.safetensors"


def record_texts(
    kind: str,
    model_id: str,
    texts: pl.Series,
    run_id: str = "cli",
    labelled: pl.Series | None = None,
    base: str | None = None,
) -> None:
    """Write the hashes of the training texts of a model, and of its base, by which an erasure finds the model."""
    texts = texts.drop_nulls().rename("text")
    counts = texts.filter(texts != "").value_counts(name="row_count")
    keys = {"kind": pl.lit(kind), "model_id": pl.lit(model_id)}
    rows = counts.lazy().select(
        **keys,
        text_hash=hash_text(counts["text"]),
        row_count=pl.col("row_count").cast(pl.Int64),
        is_labelled=counts["text"].is_in((texts if labelled is None else labelled).implode()),
    )

    def with_other_models(current: pl.LazyFrame) -> pl.LazyFrame:
        is_own = pl.col("model_id") == model_id
        if current.filter(is_own, text_hash=ERASED).head(1).collect().height:
            return current  # the same model of the same texts: an erased text keeps no hash
        of_both = pl.concat([rows, current.filter(pl.col("model_id") == pl.lit(base)).with_columns(**keys)])
        counts = of_both.group_by(*keys, "text_hash").agg(pl.col("row_count").sum(), pl.col("is_labelled").max())
        return pl.concat([current.filter(~is_own), counts.select(current.collect_schema().names())])

    warehouse.replace("training_texts", warehouse.make_slice(kind=kind), with_other_models, run_id)


def record_texts_of_folder(
    kind: str, folder: Path, texts: pl.Series, labelled: pl.Series | None = None, base: str | None = None
) -> None:
    """Record the texts of a model outside the registry if an erasure searches its folder: below the home."""
    from pipeline.training import registry

    if any(folder.resolve().is_relative_to(root) for root in (settings.home(), settings.models())):
        with suppress(Missing):  # without tables there is nothing to erase
            record_texts(kind, registry.read(folder).model_id, texts, labelled=labelled, base=base)


def complete_evaluations(frame: pl.DataFrame) -> pl.DataFrame:
    """Complete rows of `evaluations` without keys, by default of all test items after training; values are rounded."""
    schema = empty("evaluations").drop("kind", "day", "model_id").schema
    defaults = {"split": "test", "subset": "all", "epoch": 0}
    absent = [pl.lit(defaults.get(name), kind).alias(name) for name, kind in schema.items() if name not in frame]
    rows = frame.with_columns(*absent).select(pl.col(name).cast(kind) for name, kind in schema.items())
    return rows.with_columns(pl.col("value", "baseline").round(DECIMALS))


def select_scalars(config: Mapping[str, Any]) -> dict[str, Any]:
    """Select the numbers, strings and booleans of a configuration."""
    return {name: value for name, value in config.items() if isinstance(value, (int, float, str, bool))}


def build_epoch_rows(
    history: pl.DataFrame, columns: Mapping[str, tuple[str, str]], chance: float | None = None
) -> pl.DataFrame:
    """Build rows of `evaluations` without kind, day and model_id from the epochs of a training.

    The history has epoch, count, and some of the columns, each with its metric and split. Chance is the value of a
    guess, beside every metric that is no loss.
    """
    parts = []
    for name in filter(history.columns.__contains__, columns):
        metric, split = map(pl.lit, columns[name])
        rows = history.select("epoch", value=name, metric=metric, split=split, pair_count="count")
        parts.append(rows.drop_nulls("value").with_columns(subset=pl.lit("epochs")))
    by_chance = pl.when(pl.lit(chance is not None) & (pl.col("metric") != "loss"))
    facts = {"baseline": by_chance.then(pl.lit(chance, pl.Float64)), "baseline_name": by_chance.then(pl.lit("chance"))}
    return complete_evaluations(pl.concat(parts).with_columns(**facts))


def hash_rows(*frames: pl.DataFrame) -> str:
    """Hash the training and validation rows of a model (SHA-256); the order of rows and columns does not matter."""
    digest = hashlib.sha256()
    for frame in frames:
        rows = frame.select(sorted(frame.columns))
        for part in rows.sort([name for name, kind in rows.schema.items() if not kind.is_nested()]).iter_slices(_ROWS):
            digest.update(part.write_ndjson().encode())
    return digest.hexdigest()


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
    current, keys = model_choice.find_day_in_force(None).over("kind"), ["kind", "model_id"]
    rows = rows.with_columns(is_in_force=pl.col("is_promoted") & (pl.col("day") == current))
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
    # of the same day: it was demoted; not rolled back, as in turns each would return for ever
    if before.height and (row := _parse(before))["promotion"].get("reason") != rolled_back["promotion"]["reason"]:
        changed.append(_change(row, is_promoted=True, reason="in force again by a rollback"))
    _write(changed, run_id)
    return rolled_back


def _change(row: dict[str, Any], **promotion: Any) -> dict[str, Any]:
    return {**row, "promotion": {**row["promotion"], **promotion}, "is_promoted": promotion["is_promoted"]}


def _write(rows: list[dict[str, Any]], run_id: str) -> None:
    configs = [json.dumps({**row["config"], "promotion": row["promotion"]}, sort_keys=True) for row in rows]
    columns = {name: [row[name] for row in rows] for name in empty("models").columns} | {"config": configs}
    write_rows(pl.DataFrame(columns, schema=empty("models").schema), str(rows[0]["day"]), run_id)
