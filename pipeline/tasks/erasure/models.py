"""Erasing from models: which of them learnt from what is erased, which of these go, and how each is trained again.

A model goes if its files hold words (`registry.classify_contents`) and it learnt from something erased, or if nothing
of what it learnt from is left, or if nobody recorded what it learnt from. Of one that holds numbers alone
the share is recorded.
"""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from pipeline import settings, warehouse
from pipeline.errors import BadInput, Missing
from pipeline.tables import ERASED, TABLES
from pipeline.tasks.erasure import retraining
from pipeline.tasks.erasure.files import remove_folder
from pipeline.tasks.erasure.rules import Targets, is_one_of
from pipeline.tasks.record.retry import retry
from pipeline.training import registry

REMOVED, FLAGGED, ABSENT = "removed", "flagged", "absent"
_WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".ckpt", ".npz", ".npy", ".h5", ".onnx", ".gguf")
_DRAFTS = (".draft-", ".gone-")  # of a training or a removal that was killed
_FACTS = {"undertone.json": {}, "facts.json": {"kind": "recovery"}}  # what our Hugging Face folders have beside them


class Trace(NamedTuple):
    """What an erasure has to do with a model."""

    kind: str
    model_id: str
    folder: Path | None  # None where its files are not here
    erased_count: int
    training_count: int
    action: str
    config: dict[str, Any]


def trace_models(gone: Targets, marked: set[str]) -> list[Trace]:
    """Every model that is to go or to be flagged.

    Args:
        gone: what is erased.
        marked: paths of files of models in which something erased was found.
    """
    if not (gone.comments.height or gone.articles.height):
        return []
    learnt = _count_training_rows(gone)
    by_id = {str(name): rows for (name,), rows in learnt.partition_by("model_id", as_dict=True).items()}
    kinds = dict(warehouse.scan("models").select("model_id", "kind").collect().iter_rows())
    traces: list[Trace] = []
    ids_here: set[str] = set()
    for folder in list_folders():
        config, ids = read_config(folder), _list_ids(folder)
        ids_here |= ids
        rows = next((by_id[name] for name in (folder.name, *ids) if name in by_id), learnt.clear())
        erased, lost, count = (int(rows[name].sum()) for name in ("erased_count", "lost_count", "training_count"))
        is_marked = any(Path(path).is_relative_to(folder) for path in marked)
        if is_marked or _is_removed(folder, config, erased + lost, count):
            action = REMOVED
        elif erased:
            action = FLAGGED
        else:
            continue
        name = folder.name if folder.parent == settings.models() else os.path.relpath(folder, settings.home())
        kind = kinds.get(name) or next(iter(rows["kind"]), None) or config.get("kind") or "unknown"
        traces.append(Trace(str(kind), name, folder, erased or lost, count, action, config))
    absent = learnt.filter((pl.col("erased_count") > 0) & ~pl.col("model_id").is_in(ids_here))
    columns = ("kind", "model_id", "erased_count", "training_count")
    return traces + [Trace(kind, name, None, erased, count, ABSENT, {})
                     for kind, name, erased, count in absent.select(columns).iter_rows()]  # fmt: skip


def _count_training_rows(gone: Targets) -> pl.DataFrame:
    """For each model the training rows that are erased now, that were erased before, and all."""
    count = pl.col("row_count")
    rows = warehouse.scan("training_texts").group_by("kind", "model_id").agg(
        erased_count=count.filter(is_one_of("text_hash", gone.hashes)).sum(),
        lost_count=count.filter(pl.col("text_hash") == ERASED).sum(),
        training_count=count.sum(),
    )  # fmt: skip
    return rows.sort("kind", "model_id").collect()


def _is_removed(folder: Path, config: dict[str, Any], erased: int, count: int) -> bool:
    if folder.name.startswith(_DRAFTS):
        return True
    if registry.classify_contents(config) == "words":
        return erased > 0 or not count
    return count > 0 and erased == count


def list_folders() -> Iterator[Path]:
    """Folders of models: all of the registry, and those of ours that lie elsewhere below the home; drafts too."""
    root = settings.models()
    yield from _walk_folders(root, in_registry=True)
    away = {Path(settings.warehouse()), settings.resources(), settings.scratch(""), root}
    homes = [settings.home(), settings.inbox(), settings.reports(), settings.labelling(), settings.releases()]
    tops = [home for home in homes if not any(home != other and home.is_relative_to(other) for other in homes)]
    for home in sorted(set(tops)):
        yield from (folder for folder in _walk_folders(home, away) if folder != root)


def _walk_folders(root: Path, away: set[Path] = frozenset(), *, in_registry: bool = False) -> Iterator[Path]:  # type: ignore[assignment]
    for parent, names, files in os.walk(root):
        folder = Path(parent)
        names[:] = sorted(name for name in names if folder / name not in away)
        is_draft = folder.name.startswith(_DRAFTS)
        has_weights = any(name.endswith(_WEIGHTS) for name in files)
        is_entry = in_registry and folder.parent == root and bool(files)
        if folder != root and (
            is_draft or is_entry or (has_weights and (in_registry or read_config(folder).get("kind")))
        ):
            names.clear()  # what lies in it goes with it
            yield folder
        if in_registry and folder == root:  # a model may lie on another disk, behind a link
            yield from (folder / name for name in names if (folder / name).is_symlink())


def read_config(folder: Path) -> dict[str, Any]:
    """The configuration of a model as we write it; empty for what is not ours."""
    for name, kind in {"config.json": {}, **_FACTS}.items():
        try:
            config = json.loads((folder / name).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if isinstance(config, dict) and (name != "config.json" or config.get("kind")):
            return {**config, **kind}
    return {}


def _list_ids(folder: Path) -> set[str]:
    """What a model may be called in `training_texts`: its folder's name, or the hash of what is in it."""
    if (folder / "model.safetensors").is_file() and (folder / "config.json").is_file() and len(folder.name) != 64:
        weights, config = (folder / "model.safetensors").read_bytes(), (folder / "config.json").read_bytes()
        return {folder.name, registry.content_hash(weights, config.decode(errors="replace"))}
    return {folder.name}


def erase_models(gone: Targets, marked: set[str], erasure_id: str, run_id: str) -> tuple[int, list[str]]:
    """Record what becomes of each model, put those that go out of force, and remove their folders.

    In this order, so that it can be run again after a kill.

    Returns:
        Rows of `models` that were changed, and the folders that were removed.
    """
    traces = trace_models(gone, marked)
    if not traces:
        return 0, []
    _record_traces(
        [trace for trace in traces if not Path(trace.model_id).name.startswith(_DRAFTS)],
        erasure_id,
        run_id,
    )
    removed = [trace for trace in traces if trace.action == REMOVED]
    # where the files are on another machine, the model must not be served there either
    unserved = [
        trace for trace in traces if trace.action == ABSENT and registry.CONTENTS.get(trace.kind, "words") == "words"
    ]
    is_meant = is_one_of("model_id", [trace.model_id for trace in removed + unserved]) & pl.col("is_promoted")
    bare = pl.when(is_meant).then(statement=False).otherwise("is_promoted")
    count = sum(warehouse.rewrite("models", is_meant, lambda rows: rows.with_columns(is_promoted=bare), run_id))
    for trace in removed:
        assert trace.folder
        remove_folder(trace.folder)
    return count, [str(trace.folder) for trace in removed]


def _record_traces(traces: list[Trace], erasure_id: str, run_id: str) -> None:
    """Write rows of `model_erasures`. A model that is flagged again because of a kill keeps that it was in force."""
    models = {row["model_id"]: row for row in
              warehouse.scan("models").sort("is_promoted", "day").collect().iter_rows(named=True)}  # fmt: skip
    before = warehouse.scan("model_erasures", pl.col("erasure_id") == erasure_id).collect()
    recorded, in_force = set(before["model_id"]), set(before.filter("is_promoted")["model_id"])
    rows = []
    for trace in traces:
        if trace.action == ABSENT and trace.model_id in recorded:
            continue  # a try before this one removed it
        row = models.get(trace.model_id, {})
        recipe = retraining.build_recipe(trace.kind, {**trace.config, **json.loads(row["config"])}) if row else None
        rows.append({
            "erasure_id": erasure_id, "kind": trace.kind, "model_id": trace.model_id,
            "erased_count": trace.erased_count, "training_count": trace.training_count,
            "erased_ratio": round(trace.erased_count / max(trace.training_count, 1), 6),
            "action": trace.action, "day": row.get("day"),
            "is_promoted": bool(row.get("is_promoted")) or trace.model_id in in_force,
            "recipe": json.dumps(recipe, sort_keys=True) if recipe is not None else None,
        })  # fmt: skip
    if not rows:
        return
    columns = TABLES["model_erasures"].schema
    frame = pl.DataFrame(rows, schema_overrides={"day": pl.Date, "recipe": pl.String}, orient="row")
    frame = frame.with_columns(replaced_by=pl.lit(None, pl.String)).select(columns.column_names())
    for (kind,), kind_rows in frame.partition_by("kind", as_dict=True).items():
        replace_rows(str(kind), kind_rows, run_id)


def replace_rows(kind: str, rows: pl.DataFrame, run_id: str) -> None:
    """Put rows of a kind into `model_erasures`, in the place of those with the same key."""
    key = ["erasure_id", "kind", "model_id"]
    partition = warehouse.slice_of(kind=kind)

    def merge(existing_rows: pl.LazyFrame) -> pl.LazyFrame:
        other_rows = existing_rows.join(rows.lazy(), on=key, how="anti").select(rows.columns)
        return pl.concat([other_rows, rows.lazy()])

    retry(lambda: warehouse.replace("model_erasures", partition, merge, run_id))


def retrain(erasure_id: str, run_id: str) -> dict[str, str]:
    """Train again what an erasure removed and was in force, of each kind the newest; why some could not be.

    Each is recorded when it is done, so that a run after a kill goes on with the others.
    """
    rows = warehouse.scan("model_erasures", pl.col("erasure_id") == erasure_id).collect()
    problems: dict[str, str] = {}
    needed = retraining.select_newest(rows.filter(pl.col("action") == REMOVED)).filter("is_promoted")
    for row in needed.filter(pl.col("replaced_by").is_null()).iter_rows(named=True):
        try:
            replaced_by = retraining.train(row, run_id)
        except (BadInput, Missing) as why:
            problems[row["model_id"]] = str(why)
            continue
        model_rows = rows.filter(pl.col("model_id") == row["model_id"], pl.col("kind") == row["kind"])
        replace_rows(row["kind"], model_rows.with_columns(replaced_by=pl.lit(replaced_by)), run_id)
    return problems


def summarize(rows: pl.DataFrame, problems: Mapping[str, str]) -> list[dict[str, Any]]:
    """What people and programs are told of each model: what became of it, and of a removed one what to do.

    Args:
        rows: of `model_erasures`.
        problems: why a model could not be trained again, by its id.
    """
    columns = ("kind", "model_id", "erased_count", "training_count", "erased_ratio", "action", "replaced_by")
    newest = {row["kind"]: row["model_id"] for row in retraining.select_newest(rows).iter_rows(named=True)}
    summaries = []
    for row in rows.iter_rows(named=True):
        is_needed = row["day"] is None or row["model_id"] == newest.get(row["kind"])
        model = {name: row[name] for name in columns}
        model["train_again"] = retraining.format_command(row) if is_needed and row["action"] != ABSENT else None
        model["in_force"] = retraining.describe_model(row["kind"]) if row["day"] else None
        model["problem"] = problems.get(row["model_id"])
        summaries.append(model)
    return summaries
