"""Erase models whose files hold words and that were trained on something erased; flag others by the erased share."""

import json
import os
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from operator import methodcaller
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from pipeline import settings, warehouse
from pipeline.errors import BadInput, Missing
from pipeline.models.pinned import strip_path
from pipeline.tables import ERASED, empty
from pipeline.tasks.calibration import distillation
from pipeline.tasks.commenting import commenters, scorer
from pipeline.tasks.erasure.files import remove_folder
from pipeline.tasks.erasure.rules import Targets, is_one_of
from pipeline.tasks.impscore import scoring, train
from pipeline.tasks.ndd import masked_lm
from pipeline.tasks.recam import readers
from pipeline.tasks.record import model_choice
from pipeline.tasks.record.replace import replace_rows
from pipeline.tasks.record.retry import retry
from pipeline.tasks.subtext import recogniser
from pipeline.training import registry

REMOVED, FLAGGED, ABSENT = "removed", "flagged", "absent"
_WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".ckpt", ".npz", ".npy", ".h5", ".onnx", ".gguf")
_DRAFTS = (".draft-", ".gone-")  # of a training or a removal that was killed
_CONFIG_FILES = ("config.json", "undertone.json", "facts.json")  # the last two are in our Hugging Face folders
_KEY = ("erasure_id", "kind", "model_id")


class Trace(NamedTuple):
    """A model that an erasure changes."""

    kind: str
    model_id: str
    folder: Path | None  # None if its files are not on this machine
    erased_count: int
    training_count: int
    action: str
    config: dict[str, Any]


def trace_models(targets: Targets, hit_paths: set[str]) -> list[Trace]:
    """Find every model to remove or to flag; `hit_paths` are files in which the search met something erased."""
    if not (targets.comments.height or targets.articles.height):
        return []
    row_count, is_past = pl.col("row_count"), pl.col("text_hash") == ERASED
    erased = row_count.filter(is_one_of("text_hash", targets.hashes))
    sums = {"erased": erased.sum(), "past": row_count.filter(is_past).sum(), "training": row_count.sum()}
    texts = warehouse.scan("training_texts").group_by("kind", "model_id").agg(**sums)
    trained = texts.sort("kind", "model_id").collect()
    by_id = {str(model_id): rows for (model_id,), rows in trained.partition_by("model_id", as_dict=True).items()}
    kinds = dict(warehouse.scan("models").select("model_id", "kind").collect().iter_rows())
    traces: list[Trace] = []
    local_ids: set[str] = set()
    for folder in list_folders():
        config, ids = read_config(folder), _list_ids(folder)
        local_ids.update(ids)
        rows = next((by_id[model_id] for model_id in ids if model_id in by_id), trained.clear())
        erased_count, past_count, training_count = (int(rows[name].sum()) for name in ("erased", "past", "training"))
        is_hit = any(Path(path).is_relative_to(folder) for path in hit_paths)
        is_removed = is_hit or _is_removed(folder, config, erased_count + past_count, training_count)
        if is_removed or erased_count:
            model_id = folder.name if folder.parent == settings.models() else os.path.relpath(folder, settings.home())
            kind = kinds.get(model_id) or next(iter(rows["kind"]), None) or config.get("kind") or "unknown"
            action, count = REMOVED if is_removed else FLAGGED, erased_count or past_count
            traces.append(Trace(str(kind), model_id, folder, count, training_count, action, config))
    absent = trained.filter((pl.col("erased") > 0) & ~pl.col("model_id").is_in(local_ids))
    for kind, model_id, erased_count, _, training_count in absent.iter_rows():
        traces.append(Trace(kind, model_id, None, erased_count, training_count, ABSENT, {}))
    return traces


def _is_removed(folder: Path, config: dict[str, Any], erased_count: int, training_count: int) -> bool:
    if folder.name.startswith(_DRAFTS):
        return True
    if registry.classify_contents(config) == "words":
        return erased_count > 0 or not training_count
    return training_count > 0 and erased_count == training_count


def list_folders() -> Iterator[Path]:
    """List the folders of models: all of the registry, and Undertone's other ones below the home; drafts too."""
    root = settings.models()
    yield from _walk_folders(root, is_registry=True)
    excluded = {Path(settings.warehouse()), settings.resources(), settings.scratch(""), root}
    homes = {settings.home(), settings.inbox(), settings.reports(), settings.labelling(), settings.releases()}
    tops = [home for home in homes if not any(home != other and home.is_relative_to(other) for other in homes)]
    for home in sorted(tops):
        yield from (folder for folder in _walk_folders(home, excluded) if folder != root)


def _walk_folders(root: Path, excluded: Collection[Path] = (), *, is_registry: bool = False) -> Iterator[Path]:
    for parent, names, files in os.walk(root):
        folder = Path(parent)
        names[:] = sorted(name for name in names if folder / name not in excluded)
        is_draft = folder.name.startswith(_DRAFTS)
        is_entry = is_registry and folder.parent == root and bool(files)
        has_weights = any(name.endswith(_WEIGHTS) for name in files)
        is_model = has_weights and (is_registry or bool(read_config(folder).get("kind")))
        if folder != root and (is_draft or is_entry or is_model):
            names.clear()  # what it contains belongs to it
            yield folder
        if is_registry and folder == root:  # a model may be on another disk, behind a link
            yield from (folder / name for name in names if (folder / name).is_symlink())


def read_config(folder: Path) -> dict[str, Any]:
    """Read the configuration of a model; empty if Undertone did not write the model."""
    for name in _CONFIG_FILES:
        with suppress(OSError, ValueError):
            config = json.loads((folder / name).read_text(encoding="utf-8"))
            if isinstance(config, dict) and (name != "config.json" or config.get("kind")):
                return {**config, "kind": "recovery"} if name == "facts.json" else config
    return {}


def _list_ids(folder: Path) -> list[str]:
    """List the possible ids of a model in `training_texts`: the name of its folder, or the hash of its content."""
    weights, config = folder / "model.safetensors", folder / "config.json"
    if len(folder.name) == 64 or not (weights.is_file() and config.is_file()):
        return [folder.name]
    return [folder.name, registry.hash_content(weights.read_bytes(), config.read_bytes().decode(errors="replace"))]


def erase_models(targets: Targets, hit_paths: set[str], erasure_id: str, run_id: str) -> tuple[int, list[str]]:
    """Record each action, demote models, remove their folders: again after a kill; return rows changed and folders."""
    traces = trace_models(targets, hit_paths)
    if not traces:
        return 0, []
    _record_traces([trace for trace in traces if not Path(trace.model_id).name.startswith(_DRAFTS)], erasure_id, run_id)
    removed = [trace for trace in traces if trace.action == REMOVED]
    # if the files are on another machine, the model must not be used there either
    absent = [trace for trace in traces if trace.action == ABSENT]
    absent = [trace for trace in absent if registry.CONTENTS.get(trace.kind, "words") == "words"]
    is_demoted = is_one_of("model_id", [trace.model_id for trace in removed + absent]) & pl.col("is_promoted")
    is_promoted = pl.when(is_demoted).then(statement=False).otherwise("is_promoted")
    count = sum(warehouse.rewrite("models", is_demoted, methodcaller("with_columns", is_promoted=is_promoted), run_id))
    folders = [trace.folder for trace in removed if trace.folder]
    for folder in folders:
        remove_folder(folder)
    return count, list(map(str, folders))


def _record_traces(traces: list[Trace], erasure_id: str, run_id: str) -> None:
    models = warehouse.scan("models").sort("is_promoted", "day").collect()
    models_by_id = {row["model_id"]: row for row in models.iter_rows(named=True)}
    existing_rows = warehouse.scan("model_erasures", pl.col("erasure_id") == erasure_id).collect()
    recorded, in_force = set(existing_rows["model_id"]), set(existing_rows.filter("is_promoted")["model_id"])
    rows = []
    for trace in traces:
        if trace.action == ABSENT and trace.model_id in recorded:
            continue  # an earlier attempt removed it
        model = models_by_id.get(trace.model_id, {})
        recipe = build_recipe(trace.kind, {**trace.config, **json.loads(model["config"])}) if model else None
        row = {name: value for name, value in trace._asdict().items() if name not in ("folder", "config")}
        row["erased_ratio"] = round(trace.erased_count / max(trace.training_count, 1), 6)
        row["is_promoted"] = bool(model.get("is_promoted")) or trace.model_id in in_force
        row["recipe"] = json.dumps(recipe, sort_keys=True) if recipe is not None else None
        rows.append({**row, "erasure_id": erasure_id, "day": model.get("day")})
    _write_rows(pl.DataFrame(rows, schema=empty("model_erasures").schema), run_id)


def _write_rows(rows: pl.DataFrame, run_id: str) -> None:
    for part in rows.partition_by("kind"):
        partition = warehouse.make_slice(kind=part["kind"][0])
        retry(partial(replace_rows, "model_erasures", partition, part, _KEY, run_id))


def retrain(erasure_id: str, run_id: str) -> dict[str, str]:
    """Train again the newest removed model of each kind in force, each recorded; return the errors by model id."""
    rows = warehouse.scan("model_erasures", pl.col("erasure_id") == erasure_id).collect()
    problems: dict[str, str] = {}
    needed = select_newest(rows.filter(pl.col("action") == REMOVED)).filter("is_promoted")
    for row in needed.filter(pl.col("replaced_by").is_null()).iter_rows(named=True):
        try:
            replaced_by = train_again(row, run_id)
        except (BadInput, Missing) as error:
            problems[row["model_id"]] = str(error)
            continue
        model_rows = rows.filter(model_id=row["model_id"], kind=row["kind"])
        _write_rows(model_rows.with_columns(replaced_by=pl.lit(replaced_by)), run_id)
    return problems


def summarize(rows: pl.DataFrame, problems: Mapping[str, str]) -> list[dict[str, Any]]:
    """Summarize rows of `model_erasures`: the action, the command to train a removed model again, or why not."""
    columns = ("kind", "model_id", "erased_count", "training_count", "erased_ratio", "action", "replaced_by")
    newest = {row["kind"]: row["model_id"] for row in select_newest(rows).iter_rows(named=True)}
    summaries = []
    for row in rows.iter_rows(named=True):
        is_needed = row["day"] is None or row["model_id"] == newest.get(row["kind"])
        summary = {name: row[name] for name in columns}
        summary["train_again"] = format_command(row) if is_needed and row["action"] != ABSENT else None
        summary["in_force"] = describe_model(row["kind"]) if row["day"] else None
        summaries.append({**summary, "problem": problems.get(row["model_id"])})
    return summaries


_COUNTS = tuple(map(masked_lm.name_kind, masked_lm.LANGS))
_QUALITY = ("quality", "upvotes")
_OPTIONS = {"commenter": "--system", "reader": "--subtask"}  # kinds `commenter_att`, `reader_nonspecificity` …
_BY_HAND = "by the command that made it, on a file without the erased records"
_ADAPTED = "by the DAG ndd, whose parameter `adapt` trains it on the current corpus"


def build_recipe(kind: str, config: Mapping[str, Any]) -> dict[str, Any] | None:
    """Build the recipe of a registered model by the configuration of its folder and its row.

    It has the profile, the hyperparameters that differ from it (changes) and, if needed, release and source; None for a
    kind that cannot be trained again.
    """
    if kind in _COUNTS:
        return {"profile": None, "changes": {}}
    if any("readout" in head for head in config.get("heads", {}).values()):
        judge = config.get("judge", "")  # none of a file; models of an earlier version do not tell
        return None if judge is None else {"profile": None, "changes": {}, "is_distilled": True, "judge": judge}
    profile = config.get("profile")
    try:
        default, numbers = _load_defaults(kind, profile, config)
    except (BadInput, KeyError, AttributeError, ValueError):
        return None
    defaults = json.loads(json.dumps(asdict(default)))
    if kind in _QUALITY:
        del defaults["penalty"]  # the configuration has the chosen one
    changes = {name: numbers[name] for name, value in defaults.items() if name in numbers and numbers[name] != value}
    recipe = {"profile": profile, "changes": changes}
    if config.get("release"):
        recipe["release"] = config["release"]
    source, default_source = str(config.get("source", "")), strip_path(settings.encoder())
    if kind.startswith("reader_") and source != default_source and not source.startswith(f"{default_source} "):
        recipe["source"] = source
    return recipe


def _load_defaults(kind: str, profile: str | None, config: Mapping[str, Any]) -> tuple[Any, Mapping[str, Any]]:
    from pipeline.training.commenting import quality
    from pipeline.training.impscore import fit
    from pipeline.training.subtext import recogniser as subtext_recogniser

    if kind == scoring.KIND:
        recipes = [head["recipe"] for head in config["heads"].values()]
        tuned_first = sorted(recipes, key=lambda recipe: recipe.get("tune", "none") == "none")
        return fit.make_recipe(profile or train.PROFILE), tuned_first[0]
    if kind == recogniser.KIND:
        return subtext_recogniser.make_recipe(profile or recogniser.PROFILE), config
    if kind in _QUALITY:
        return quality.make_recipe("upvotes" if kind == "upvotes" else "undertone"), config
    family, _, part = kind.partition("_")
    if family == "commenter":
        return commenters.get_modules(part)[0].make_recipe(part), config
    if family == "reader":
        return readers.get_module(profile or "").make_recipe(profile or ""), config
    raise ValueError(f"a model of kind {kind} cannot be trained again")


def format_command(row: Mapping[str, Any]) -> str:
    """Format the command that trains a removed model (a row of `model_erasures`) again, or describe the way."""
    kind, training = str(row["kind"]), json.loads(row["recipe"] or "null")
    if row["day"] is None or training is None:
        return _ADAPTED if str(row["model_id"]).startswith("masked_lm-") else _BY_HAND
    end = ["--promote"] * bool(row["is_promoted"]) + ["--day", str(row["day"])]
    if training.get("is_distilled"):
        judge = training.get("judge")
        return shlex.join(["undertone", "distil", *(["--judge", judge] if judge else []), *end])
    family, _, part = kind.partition("_")
    if kind in _COUNTS:
        words = ["count-lm", "--lang", kind[-2:]]
    elif kind in _QUALITY:
        words = ["quality", "--target", kind]
    else:
        words = [family, _OPTIONS[family], part] if family in _OPTIONS else [kind]
    options = {"--profile": training["profile"], "--release": training.get("release"), "--from": training.get("source")}
    words += [word for name, value in options.items() if value for word in (name, str(value))]
    words += [word for name, value in training["changes"].items() for word in ("--set", f"{name}={json.dumps(value)}")]
    return shlex.join(["undertone", "train", *words, *end])


def train_again(row: Mapping[str, Any], run_id: str) -> str:
    """Train a removed model again; return the new id. Missing or BadInput if the current tables do not suffice."""
    kind, day, training = str(row["kind"]), str(row["day"]), json.loads(row["recipe"] or "null")
    if training is None:
        raise Missing(format_command(row))
    if source := training.get("source"):
        raise Missing(f"it was trained from {source}, whose path is not recorded; give it: {format_command(row)}")
    if kind in _COUNTS:
        model_id = retry(lambda: masked_lm.count_corpus(kind[-2:], day, run_id, promote=True))
        if model_id is None:
            raise Missing("no text is left in this language")
        return model_id
    if training.get("is_distilled"):
        judge = training.get("judge", "")
        rows = distillation.load_judged(judge)
        return retry(distillation.train, rows, day, judge, promote=bool(row["is_promoted"]), run_id=run_id)
    options = {"changes": training["changes"], "run_id": run_id, "promote": bool(row["is_promoted"])}
    options |= {"profile": training["profile"]} if training["profile"] else {}
    family, _, part = kind.partition("_")
    trainers: dict[str, Callable[[], str]] = {
        scoring.KIND: lambda: train.train(day, **options),
        recogniser.KIND: lambda: recogniser.train(day, training.get("release"), **options),
        "commenter": lambda: commenters.train(day, part, **options),
        "reader": lambda: readers.train(day, part, **options),
    }
    return retry(trainers.get(family, lambda: scorer.train(day, kind, **options)))


def describe_model(kind: str) -> str:
    """Describe the model in force for a kind."""
    if model_id := model_choice.select_model_id(kind, None):
        return f"model {model_id[:12]}"
    if kind == scoring.KIND:
        return "the model shipped with Undertone"
    return "counts of the shipped sample" if kind in _COUNTS else "none"


def select_newest(rows: pl.DataFrame) -> pl.DataFrame:
    """Select the model of each kind to train again, of those in tables: the one in force, of the newest day."""
    of_tables = rows.filter(pl.col("day").is_not_null()).sort("is_promoted", "day", "model_id")
    return of_tables.unique("kind", keep="last", maintain_order=True).sort("kind")
