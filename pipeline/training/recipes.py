"""Recipes: frozen dataclasses of hyperparameters, in named profiles; a user may change single fields."""

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from pipeline.errors import BadInput

R = TypeVar("R")


def replace_numbers(
    profiles: Mapping[str, R],
    profile: str,
    changes: Mapping[str, Any],
    *,
    from_zero: Collection[str] = (),
    above_zero: Collection[str] = (),
) -> R:
    """Return a profile with the given fields changed; a change to None is ignored.

    The type of a field states its values: a Literal lists them, int is from 1, float is finite and from 0, a tuple has
    its length. A dropout rate (`dropout` in the name) is below 1. Int fields in `from_zero` may be 0; float fields in
    `above_zero` may not. BadInput for an unknown profile or field, or another value.
    """
    if profile not in profiles:
        raise BadInput(f"no profile {profile!r}; choose one of {', '.join(profiles)}")
    kinds = get_type_hints(type(profiles[profile]))
    values = {name: value for name, value in changes.items() if value is not None}
    if unknown := sorted(set(values) - set(kinds)):
        raise BadInput(f"a recipe has no field {', '.join(unknown)}; its fields are {', '.join(kinds)}")
    for name, value in values.items():
        expected, accepts = _make_rule(kinds[name], "dropout" in name, name in from_zero, name in above_zero)
        if not accepts(value):
            raise BadInput(f"{name} should be {expected}; found {value!r}")
        if isinstance(value, list):
            values[name] = tuple(value)
    return replace(profiles[profile], **values)  # type: ignore[type-var]


def _make_rule(kind: Any, is_share: bool, is_from_zero: bool, is_above_zero: bool) -> tuple[str, Callable[[Any], bool]]:
    """Return the values that a field accepts, in words and as a test."""
    items = get_args(kind)
    if get_origin(kind) is Literal:
        return f"one of {', '.join(map(str, items))}", lambda value: value in items
    if get_origin(kind) is tuple:
        expected, accepts = _make_rule(items[0], is_share, is_from_zero, is_above_zero)
        return (
            f"{len(items)} times {expected}",
            lambda value: isinstance(value, list | tuple) and len(value) == len(items) and all(map(accepts, value)),
        )
    if kind is bool:
        return "true or false", lambda value: isinstance(value, bool)
    if kind is int:
        least = 0 if is_from_zero else 1
        return f"a whole number from {least}", lambda value: _is_a(int, value) and value >= least
    if is_above_zero:
        return "a number above 0", lambda value: _is_a(int | float, value) and 0 < value < math.inf
    end, end_text = (1.0, " to below 1") if is_share else (math.inf, "")
    return f"a number from 0{end_text}", lambda value: _is_a(int | float, value) and 0 <= value < end


def _is_a(kind: Any, value: object) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)
