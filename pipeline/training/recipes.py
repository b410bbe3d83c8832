"""Recipes: frozen dataclasses of hyperparameters, in named profiles; a user may change single fields."""

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields, replace
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from pipeline.errors import BadInput

R = TypeVar("R")


def replace_numbers(
    profiles: Mapping[str, R],
    profile: str,
    *,
    from_zero: Collection[str] = (),
    above_zero: Collection[str] = (),
    below_one: Collection[str] = (),
    **changes: Any,
) -> R:
    """Return a profile with the given fields changed; a change to None is ignored.

    The type of a field states its values: a Literal lists them, int is from 1, float is finite and from 0, a tuple has
    its length. The seed and int fields in `from_zero` may be 0; float fields in `above_zero` may not. Those in
    `below_one` are below 1, and so is a dropout rate (`dropout` in the name). BadInput for an unknown profile or field,
    or another value.
    """
    if profile not in profiles:
        raise BadInput(f"no profile {profile!r}; choose one of {', '.join(profiles)}")
    kinds = get_type_hints(type(profiles[profile]))
    values = {name: value for name, value in changes.items() if value is not None}
    if unknown := sorted(set(values) - set(kinds)):
        raise BadInput(f"a recipe has no field {', '.join(unknown)}; its fields are {', '.join(kinds)}")
    for name, value in values.items():
        is_share = "dropout" in name or name in below_one
        expected, accepts = _make_rule(kinds[name], is_share, name in {"seed", *from_zero}, name in above_zero)
        if not accepts(value):
            raise BadInput(f"{name} should be {expected}; found {value!r}")
        if isinstance(value, list):
            values[name] = tuple(value)
    return replace(profiles[profile], **values)  # type: ignore[type-var]


def read_recipe(kind: type[R], config: Mapping[str, Any]) -> R:
    """Read a recipe from a model's configuration, where tuples are lists of JSON."""
    values = {field.name: config[field.name] for field in fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in values.items()})


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
    end, end_text = (1.0, " to below 1") if is_share else (math.inf, "")
    if is_above_zero:
        return f"a number above 0{end_text}", lambda value: _is_a(int | float, value) and 0 < value < end
    return f"a number from 0{end_text}", lambda value: _is_a(int | float, value) and 0 <= value < end


def _is_a(kind: Any, value: object) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)
