"""Train removed models again: find the recipe, print the command, train."""

import json
import shlex
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import polars as pl

from pipeline import settings
from pipeline.errors import BadInput, Missing
from pipeline.models.pinned import strip_path
from pipeline.tasks.calibration import distillation
from pipeline.tasks.commenting import commenters, scorer
from pipeline.tasks.impscore import scoring, train
from pipeline.tasks.ndd import masked_lm
from pipeline.tasks.recam import readers
from pipeline.tasks.record import model_choice
from pipeline.tasks.record.retry import retry
from pipeline.tasks.subtext import recogniser

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
        return {"profile": None, "changes": {}, "is_distilled": True}
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
        return shlex.join(["undertone", "distil", *end])
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
        rows = distillation.load_judged("")
        return retry(distillation.train, rows, day, promote=bool(row["is_promoted"]), run_id=run_id)
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
