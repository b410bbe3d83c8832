"""Choose and load the model that answers: the given one, else the one in force, else the shipped one."""

import re
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pipeline
from pipeline import logs, settings
from pipeline.errors import Missing
from pipeline.slices import parse_day

if TYPE_CHECKING:
    import polars as pl

    from pipeline.training.registry import Model

SHIPPED = {"impscore": Path(pipeline.__file__).parent / "models" / "shipped"}  # trained only on our own text
MODEL_ID = re.compile(r"[0-9a-f]{6,64}")  # or the beginning of one


class Choice(NamedTuple):
    """The model that answers, and why."""

    kind: str
    model_id: str
    folder: Path
    reason: str
    is_shipped: bool = False

    def load(self) -> "Model":
        """Load the model."""
        from pipeline.training import registry

        is_registered = self.folder == settings.models() / self.model_id  # so that its name is the id
        return registry.fetch(self.folder.parent, self.model_id) if is_registered else registry.read(self.folder)


def choose_model(kind: str, ref: str | None = None, day: str | None = None) -> Choice | None:
    """Choose the model that answers: the given one (folder, id or its start), else that in force, else the shipped."""
    if ref is not None:
        return _find_model(kind, ref)
    with suppress(Missing):  # there are no tables
        if model_id := select_model_id(kind, day):
            return Choice(kind, model_id, settings.models() / model_id, f"in force{f' for {day}' if day else ''}")
    return _choose_shipped(kind, "shipped with Undertone; no trained model is in force")


def _choose_shipped(kind: str, reason: str) -> Choice | None:
    from pipeline.training import registry

    folder = SHIPPED.get(kind)
    return Choice(kind, registry.read(folder).model_id, folder, reason, is_shipped=True) if folder else None


def _find_model(kind: str, ref: str) -> Choice:
    from pipeline.training import registry

    is_id = MODEL_ID.fullmatch(ref) is not None
    shipped = _choose_shipped(kind, "shipped with Undertone") if is_id else None
    if shipped and shipped.model_id.startswith(ref):
        return shipped
    folder = Path(ref).expanduser()
    if folder.is_dir():
        return Choice(kind, registry.read(folder).model_id, folder, f"the folder {ref}")
    matches = [path for path in settings.models().glob(f"{ref}*") if path.is_dir()] if is_id else []
    if len(matches) != 1 and not (is_id and len(ref) == 64):
        raise Missing(f"{ref}: no folder, and {len(matches)} models in {settings.models()} have such an id")
    model_id = matches[0].name if matches else ref  # if the folder is absent, to load it says how to get it
    return Choice(kind, model_id, settings.models() / model_id, "the given one")


def load_model(kind: str, ref: str | None = None, day: str | None = None, missing: str = "") -> "Model":
    """Load the model that answers (`choose_model`) and log which it is; Missing if there is none."""
    choice = choose_model(kind, ref, day)
    if choice is None:
        raise Missing(missing or f"no model of kind {kind} is in force")
    model = choice.load()
    log_answer(choice)
    return model


def log_answer(choice: Choice) -> None:
    """Log once which model answers, and why; commands print it."""
    text = f"{choice.kind}: model {choice.model_id[:12]}"
    logs.log_answer(text, f"{text}, {choice.reason}")


def select_model_id(kind: str, day: str | None) -> str | None:
    """Select the id of the model in force for a day (default: today), or None."""
    if not settings.has_catalog():
        return None
    import polars as pl

    from pipeline import warehouse

    promoted = (pl.col("kind") == kind) & pl.col("is_promoted")
    models = warehouse.scan("models", promoted).select("day", "model_id", "is_promoted").collect()
    return next(iter(models.filter(pl.col("day") == find_day_in_force(day))["model_id"]), None)


def find_day_in_force(day: str | None) -> "pl.Expr":
    """Of rows with `is_promoted`, find the day of the one in force for a day: the newest until it, else the oldest."""
    import polars as pl

    days = pl.col("day").filter("is_promoted")
    last_day = parse_day(day) if day else datetime.now(UTC).date()
    return pl.coalesce(days.filter(days <= last_day).max(), days.min())
