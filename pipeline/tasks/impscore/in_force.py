"""Choose and load the ImpScore model that answers: the given one, else that in force for a day, else the shipped."""

from pipeline.errors import Missing
from pipeline.tasks.record import model_choice
from pipeline.training.registry import Model

KIND = "impscore"
SHIPPED = model_choice.SHIPPED[KIND]


def choose_model(ref: str | None = None, day: str | None = None) -> model_choice.Choice:
    """Choose the model by its folder, its id or the beginning of it; without `ref`, by the rule of the registry."""
    if choice := model_choice.choose_model(KIND, ref, day):
        return choice
    raise Missing(f"{SHIPPED}: the model that ships with Undertone is missing; install Undertone again")


def find_model_id(day: str | None) -> str:
    """Find the model that scores a day: a rule on the tables, so that scoring a day again uses the same model."""
    return choose_model(None, day).model_id


def load_model(ref: str | None = None, day: str | None = None) -> Model:
    """Load the model that answers, and log which it is."""
    return model_choice.load_model(KIND, ref, day)
