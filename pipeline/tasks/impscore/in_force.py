"""Which ImpScore model is in force for a day, and where a model is loaded from."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pipeline
from pipeline import settings
from pipeline.errors import Missing

if TYPE_CHECKING:
    from pipeline.training.registry import Model

KIND = "impscore"
SHIPPED = Path(pipeline.__file__).parent / "models" / "shipped"  # trained on text of our own alone
HEX = re.compile(r"[0-9a-f]{6,64}")


def model_for(day: str | None) -> str:
    """Id of the model a day is scored by: the newest promoted for that day or before, else the oldest promoted.

    A rule on the tables rather than "the latest", so that scoring a day again gives the same model. Where none is
    promoted it is the model shipped with Undertone.
    """
    from pipeline.tasks.record import model_registry

    return model_registry.select_model_id(KIND, day) or load_model(None).model_id


def load_model(ref: str | None) -> "Model":
    """A model by its folder or its id (or the beginning of it); the shipped one for None."""
    from pipeline.training import registry

    shipped = registry.read(SHIPPED)
    if ref is None or (HEX.fullmatch(ref) and shipped.model_id.startswith(ref)):
        return shipped
    if Path(ref).expanduser().is_dir():
        return registry.read(Path(ref).expanduser())
    found = [path.name for path in settings.models().glob(f"{ref}*")] if HEX.fullmatch(ref) else []
    if len(found) != 1:
        raise Missing(f"{ref}: no folder, and {len(found)} models in {settings.models()} have such an id")
    return registry.fetch(settings.models(), found[0])
