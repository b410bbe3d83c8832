"""Recipes: the type of a field states which values it accepts."""

from dataclasses import dataclass
from typing import Any, Literal

import pytest

from pipeline.errors import BadInput
from pipeline.training.loop import replace_numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """One field of each kind."""

    unit: Literal["gru", "lstm"] = "gru"
    is_tuned: bool = False
    epochs: int = 10
    seed: int = 42
    rate: float = 0.1
    penalty: float = 0.5
    share: float = 0.5
    dropout: float = 0.3
    hidden: tuple[int, int] = (300, 100)


PROFILES = {"paper": Recipe(), "ours": Recipe(epochs=3)}


def change(profile: str = "paper", **changes: Any) -> Recipe:
    """Change a profile whose seed may be 0 and whose penalty may not."""
    return replace_numbers(PROFILES, profile, above_zero={"penalty", "share"}, below_one={"share"}, **changes)


def test_what_is_not_given_stays() -> None:
    """Only the given fields change; None changes nothing, and a list becomes a tuple."""
    assert change("ours") == Recipe(epochs=3)
    recipe = change("ours", seed=0, rate=0, dropout=0, penalty=2, is_tuned=True, unit=None, hidden=[3, 4])
    assert recipe == Recipe(epochs=3, seed=0, rate=0, dropout=0, penalty=2, is_tuned=True, hidden=(3, 4))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"unit": "rnn"}, "unit should be one of gru, lstm; found 'rnn'"),
        ({"is_tuned": 1}, "is_tuned should be true or false; found 1"),
        ({"epochs": 0}, "epochs should be a whole number from 1 of at most 18 digits; found 0"),
        ({"epochs": 2.0}, "epochs should be a whole number from 1 of at most 18 digits; found 2.0"),
        ({"epochs": True}, "epochs should be a whole number from 1 of at most 18 digits; found True"),
        ({"seed": -1}, "seed should be a whole number from 0 of at most 18 digits; found -1"),
        ({"seed": 10**18}, "seed should be a whole number from 0 of at most 18 digits; found 1000000000000000000"),
        ({"rate": -0.1}, "rate should be a number from 0; found -0.1"),
        ({"rate": float("nan")}, "rate should be a number from 0; found nan"),
        ({"rate": True}, "rate should be a number from 0; found True"),
        ({"rate": "fast"}, "rate should be a number from 0; found 'fast'"),
        ({"penalty": 0}, "penalty should be a number above 0; found 0"),
        ({"share": 0}, "share should be a number above 0 to below 1; found 0"),
        ({"share": 1.0}, "share should be a number above 0 to below 1; found 1.0"),
        ({"dropout": 1}, "dropout should be a number from 0 to below 1; found 1"),
        ({"hidden": 300}, "hidden should be 2 times a whole number from 1 of at most 18 digits; found 300"),
        ({"hidden": (300, 0)}, "hidden should be 2 times a whole number from 1"),
        ({"profile": "theirs"}, "no profile 'theirs'; there are paper, ours"),
        ({"layers": 2, "heads": 1}, "a recipe has no field heads, layers; its fields are unit, is_tuned"),
    ],
)
def test_what_a_field_does_not_take(changes: dict[str, Any], message: str) -> None:
    """An unknown profile or field, or a value that a field does not accept, raises BadInput with those accepted."""
    with pytest.raises(BadInput, match=message):
        change(**changes)
