"""Recipes: frozen dataclasses of hyperparameters, in named profiles; a user may change single fields."""

import math
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from pipeline.errors import BadInput

R = TypeVar("R")


def change_profile(
    profiles: Mapping[str, R], profile: str, changes: Mapping[str, Any], *, from_zero: Collection[str] = (),
    above_zero: Collection[str] = (),
) -> R:  # fmt: skip
    """Return a profile with the given fields changed; a change to None is ignored.

    The type of a field states its values: a Literal lists them, int is from 1, float is finite and from 0, a tuple has
    its length. A dropout rate (`dropout` in the name) is below 1.

    Args:
        profiles: recipes of one class, by name.
        profile: name of the profile to change.
        changes: values by name of the field.
        from_zero: int fields that may be 0.
        above_zero: float fields that may not be 0.

    Raises:
        BadInput: there is no such profile or field, or the field does not accept the value.
    """
    if profile not in profiles:
        raise BadInput(f"no profile {profile!r}; choose one of {', '.join(profiles)}")
    kinds = get_type_hints(type(profiles[profile]))
    values = {name: value for name, value in changes.items() if value is not None}
    if unknown := sorted(set(values) - set(kinds)):
        raise BadInput(f"a recipe has no field {', '.join(unknown)}; its fields are {', '.join(kinds)}")
    for name, value in values.items():
        expected = _describe_expected(kinds[name], "dropout" in name, name in from_zero, name in above_zero)
        if not _is_valid(value, kinds[name], expected):
            raise BadInput(f"{name} should be {expected}; found {value!r}")
        if isinstance(value, list):
            values[name] = tuple(value)
    return replace(profiles[profile], **values)  # type: ignore[type-var]


def _describe_expected(kind: Any, is_share: bool, is_from_zero: bool, is_above_zero: bool) -> str:
    if get_origin(kind) is Literal:
        return f"one of {', '.join(map(str, get_args(kind)))}"
    if get_origin(kind) is tuple:
        item = _describe_expected(get_args(kind)[0], is_share, is_from_zero, is_above_zero)
        return f"{len(get_args(kind))} times {item}"
    if kind is bool:
        return "true or false"
    if kind is int:
        return f"a whole number from {0 if is_from_zero else 1}"
    if is_above_zero:
        return "a number above 0"
    return "a number from 0 to below 1" if is_share else "a number from 0"


def _is_valid(value: Any, kind: Any, expected: str) -> bool:
    if get_origin(kind) is Literal:
        return value in get_args(kind)
    if get_origin(kind) is tuple:
        kinds = get_args(kind)
        is_row = isinstance(value, list | tuple) and len(value) == len(kinds)
        return is_row and all(_is_valid(item, kinds[0], expected.partition(" times ")[2]) for item in value)
    if kind is bool or isinstance(value, bool):
        return kind is bool and isinstance(value, bool)
    if not isinstance(value, int if kind is int else int | float) or not math.isfinite(value):
        return False
    if expected.endswith("from 1"):
        return value >= 1
    return value > 0 if expected.endswith("above 0") else 0 <= value < (1 if expected.endswith("below 1") else math.inf)
