"""Recipes: frozen dataclasses with the numbers of a training, in named profiles, which a user may change by name."""

import math
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from pipeline.errors import BadInput

R = TypeVar("R")


def changed(
    profiles: Mapping[str, R], profile: str, changes: Mapping[str, Any], *, from_zero: Collection[str] = (),
    above_zero: Collection[str] = (),
) -> R:  # fmt: skip
    """A profile with some numbers changed; those that are None stay.

    What a field takes is told by its type: a Literal its values, int a whole number from 1, float a finite number from
    0, a tuple as many of its kind. A share that is dropped out (`dropout` in the name) is below 1.

    Args:
        profiles: recipes of one class, by name.
        profile: which to begin with.
        changes: values by name of the field.
        from_zero: whole numbers that may be 0.
        above_zero: numbers that may not.

    Raises:
        BadInput: there is no such profile or field, or a value is none the field takes.
    """
    if profile not in profiles:
        raise BadInput(f"no profile {profile!r}; there are {', '.join(profiles)}")
    kinds = get_type_hints(type(profiles[profile]))
    given = {name: value for name, value in changes.items() if value is not None}
    if unknown := sorted(set(given) - set(kinds)):
        raise BadInput(f"a recipe has no {', '.join(unknown)}; it has {', '.join(kinds)}")
    for name, value in given.items():
        expected = _expected(kinds[name], "dropout" in name, name in from_zero, name in above_zero)
        if not _fits(value, kinds[name], expected):
            raise BadInput(f"{name} should be {expected}; found {value!r}")
        if isinstance(value, list):
            given[name] = tuple(value)
    return replace(profiles[profile], **given)  # type: ignore[type-var]


def _expected(kind: Any, is_share: bool, is_from_zero: bool, is_above_zero: bool) -> str:
    if get_origin(kind) is Literal:
        return f"one of {', '.join(map(str, get_args(kind)))}"
    if get_origin(kind) is tuple:
        return f"{len(get_args(kind))} times {_expected(get_args(kind)[0], is_share, is_from_zero, is_above_zero)}"
    if kind is bool:
        return "true or false"
    if kind is int:
        return f"a whole number from {0 if is_from_zero else 1}"
    if is_above_zero:
        return "a number above 0"
    return "a number from 0 to below 1" if is_share else "a number from 0"


def _fits(value: Any, kind: Any, expected: str) -> bool:
    if get_origin(kind) is Literal:
        return value in get_args(kind)
    if get_origin(kind) is tuple:
        kinds = get_args(kind)
        is_row = isinstance(value, list | tuple) and len(value) == len(kinds)
        return is_row and all(_fits(each, kinds[0], expected.partition(" times ")[2]) for each in value)
    if kind is bool or isinstance(value, bool):
        return kind is bool and isinstance(value, bool)
    if not isinstance(value, int if kind is int else int | float) or not math.isfinite(value):
        return False
    if expected.endswith("from 1"):
        return value >= 1
    return value > 0 if expected.endswith("above 0") else 0 <= value < (1 if expected.endswith("below 1") else math.inf)
