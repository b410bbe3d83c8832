"""Training models again that an erasure removed: by which command, with which numbers, and doing it."""

import json
import shlex
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import polars as pl

from pipeline import settings
from pipeline.errors import BadInput, Missing
from pipeline.tasks.commenting import commenters, scorer
from pipeline.tasks.impscore import in_force
from pipeline.tasks.impscore import train as impscore
from pipeline.tasks.ndd import masked_lm
from pipeline.tasks.recam import readers
from pipeline.tasks.record import model_registry
from pipeline.tasks.record.retry import retry
from pipeline.tasks.subtext import recogniser

_COUNTS = tuple(map(masked_lm.name_kind, masked_lm.LANGS))
_BY_HAND = "by the command that made it, on a file without what is erased"
_ADAPTED = "by the DAG ndd, whose parameter `adapt` makes it of the corpus as it is"


def build_recipe(kind: str, config: Mapping[str, Any]) -> dict[str, Any] | None:
    """What a model of the registry was trained by: its profile, and the numbers that are not the profile's.

    Args:
        kind: of model.
        config: of its folder and of its row.

    Returns:
        profile, changes and, where they matter, release and source; None for a kind that cannot be trained again.
    """
    from pipeline.training.commenting import quality as scorers
    from pipeline.training.impscore import fit as heads
    from pipeline.training.subtext import recogniser as recognisers

    system = kind.removeprefix("commenter_")
    if kind in _COUNTS:
        return {"profile": None, "changes": {}}
    profile, numbers = config.get("profile"), config
    try:
        if kind == in_force.KIND:
            own = [head["recipe"] for head in config["heads"].values()]
            base: Any = heads.make_recipe(profile or impscore.PROFILE)
            numbers = max(own, key=lambda one: one.get("tune", "none") != "none")
        elif kind == recogniser.KIND:
            base = recognisers.make_recipe(profile or recogniser.PROFILE)
        elif kind in ("quality", "upvotes"):
            base = scorers.make_recipe("upvotes" if kind == "upvotes" else "undertone")
        elif kind.startswith("commenter_"):
            base = commenters.get_modules(system)[0].make_recipe(system)
        elif kind.startswith("reader_"):
            base = readers.get_module(profile or "").make_recipe(profile or "")
        else:
            return None
    except (BadInput, KeyError, AttributeError, ValueError):
        return None
    usual = json.loads(json.dumps(asdict(base)))
    if kind in ("quality", "upvotes"):
        del usual["penalty"]  # the one that was chosen stands in its place
    changes = {name: numbers[name] for name, value in usual.items() if name in numbers and numbers[name] != value}
    found = {"profile": profile, "changes": changes}
    if config.get("release"):
        found["release"] = config["release"]
    source, usual_source = str(config.get("source", "")), settings.encoder()
    if kind.startswith("reader_") and source != usual_source and not source.startswith(f"{usual_source} "):
        found["source"] = source
    return found


def format_command(row: Mapping[str, Any]) -> str:
    """How a removed model is trained again: a command, or in words.

    Args:
        row: of `model_erasures`.
    """
    kind, training = str(row["kind"]), json.loads(row["recipe"] or "null")
    if row["day"] is None or training is None:
        return _ADAPTED if str(row["model_id"]).startswith("masked_lm-") else _BY_HAND
    if kind in _COUNTS:
        words = ["count-lm", "--lang", kind[-2:]]
    elif kind.startswith("commenter_"):
        words = ["commenter", "--system", kind.removeprefix("commenter_")]
    elif kind.startswith("reader_"):
        words = ["reader", "--subtask", kind.removeprefix("reader_")]
    elif kind in ("quality", "upvotes"):
        words = ["quality", "--target", kind]
    else:
        words = [kind]
    options = {"--profile": training["profile"], "--release": training.get("release"), "--from": training.get("source")}
    words += [word for name, value in options.items() if value for word in (name, str(value))]
    words += [word for name, value in training["changes"].items() for word in ("--set", f"{name}={json.dumps(value)}")]
    words += ["--promote"] if kind == in_force.KIND and row["is_promoted"] else []
    return shlex.join(["undertone", "train", *words, "--day", str(row["day"])])


def train(row: Mapping[str, Any], run_id: str) -> str:
    """Train a removed model again, of the tables as they are now; the id of the new one.

    Raises:
        Missing, BadInput: there is nothing left to learn from, or it cannot be done from the tables.
    """
    kind, day, training = str(row["kind"]), str(row["day"]), json.loads(row["recipe"] or "null")
    if training is None:
        raise Missing(format_command(row))
    if training.get("source"):
        raise Missing(f"it stood on {training['source']}, whose place is not recorded; give it: {format_command(row)}")
    profile = {"profile": training["profile"]} if training["profile"] else {}
    if kind in _COUNTS:
        model_id = retry(lambda: masked_lm.count_corpus(kind[-2:], day, run_id))
        if model_id is None:
            raise Missing("no text is left in this language")
        return model_id
    options = {**profile, "changes": training["changes"], "run_id": run_id}
    if kind == in_force.KIND:
        return retry(lambda: impscore.train(day, promote=bool(row["is_promoted"]), **options))
    if kind == recogniser.KIND:
        return retry(lambda: recogniser.train(day, training.get("release"), **options))
    if kind.startswith("commenter_"):
        return retry(lambda: commenters.train(day, kind.removeprefix("commenter_"), **options))
    if kind.startswith("reader_"):
        return retry(lambda: readers.train(day, kind.removeprefix("reader_"), **options))
    return retry(lambda: scorer.train(day, kind, **options))


def describe_model(kind: str) -> str:
    """What answers for a kind now, in words."""
    if model_id := model_registry.select_model_id(kind, None):
        return f"model {model_id[:12]}"
    if kind == in_force.KIND:
        return "the model shipped with Undertone"
    return "counts of the shipped sample" if kind in _COUNTS else "none"


def select_newest(rows: pl.DataFrame) -> pl.DataFrame:
    """Of models in tables the one of each kind to train again: that was in force, of the newest day."""
    return rows.filter(pl.col("day").is_not_null()).sort(
        "is_promoted", "day", "model_id"
    ).group_by("kind", maintain_order=True).last().select(rows.columns).sort("kind")  # fmt: skip
