"""Find the ImpScore model in force for a day, and load a model."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pipeline
from pipeline import settings
from pipeline.errors import Missing

if TYPE_CHECKING:
    from pipeline.training.registry import Model

KIND = "impscore"
SHIPPED = Path(pipeline.__file__).parent / "models" / "shipped"  # trained only on our own text
MODEL_ID = re.compile(r"[0-9a-f]{6,64}")  # or the beginning of one


def find_model_id(day: str | None) -> str:
    """Find the model that scores a day: the newest promoted for that day or before, else the oldest promoted.

    A rule on the tables, not "the latest", so that scoring a day again uses the same model. If none is promoted, it is
    the shipped model.
    """
    from pipeline.tasks.record import model_registry

    return model_registry.select_model_id(KIND, day) or load_model(None).model_id


def load_model(ref: str | None) -> "Model":
    """Load a model by its folder, its id or the beginning of it; None loads the shipped one."""
    from pipeline.training import registry

    shipped = registry.read(SHIPPED)
    if ref is None or (MODEL_ID.fullmatch(ref) and shipped.model_id.startswith(ref)):
        return shipped
    folder = Path(ref).expanduser()
    if folder.is_dir():
        return registry.read(folder)
    matches = [path.name for path in settings.models().glob(f"{ref}*")] if MODEL_ID.fullmatch(ref) else []
    if len(matches) != 1:
        raise Missing(f"{ref}: no folder, and {len(matches)} models in {settings.models()} have such an id")
    return registry.fetch(settings.models(), matches[0])
