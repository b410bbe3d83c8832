"""Commands that are imported when they run, so that a list of them, the version or an error costs next to nothing."""

from collections import UserDict
from collections.abc import Mapping
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from pipeline import private, settings
from pipeline.commands.terminal import renamed

OUTPUTS: list[private.Output] = []  # files that a person gave as `out`: they follow their umask, all else is private

_MARKUP: Any = "markdown"
make_app = partial(typer.Typer, rich_markup_mode=_MARKUP, pretty_exceptions_enable=False)


class Command(NamedTuple):
    """A command: its line in a list, and `module:function` below `pipeline.commands`."""

    summary: str
    place: str


class Family(NamedTuple):
    """Commands under one noun: their line in a list, and the place of each by its name."""

    summary: str
    places: Mapping[str, str]


class _Deferred(TyperCommand):
    """A command in a list: it has only the summary; its module is imported to parse its arguments."""

    place: str

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        return load(self.name or "", self.place).make_context(info_name, args, parent, **extra)


class _Places(UserDict[str, Any]):
    """Commands by name, each loaded when it is looked up."""

    def __getitem__(self, name: str) -> Any:
        return load(name, self.data[name])


def group(panels: Mapping[str, Mapping[str, Command | Family]]) -> type[TyperGroup]:
    """Make the class of a group with these commands and families, by the panels of its help."""
    commands: dict[str, Any] = {}
    families = {}
    for panel, entries in panels.items():
        for name, entry in entries.items():
            options: Any = {"help": entry.summary, "rich_help_panel": panel, "rich_markup_mode": _MARKUP}
            if isinstance(entry, Command):
                commands[name] = _Deferred(name, **options)
                commands[name].place = entry.place
            else:
                families[name] = entry.places
                places: Any = _Places(entry.places)
                commands[name] = TyperGroup(name=name, commands=places, no_args_is_help=True, **options)

    class Group(TyperGroup):
        def __init__(self, **options: Any) -> None:
            super().__init__(**{**options, "commands": commands})

        def resolve_command(self, ctx: Any, args: list[str]) -> Any:
            return super().resolve_command(ctx, renamed.rename(args, families))

    return Group


@cache
def load(name: str, place: str) -> Any:
    """Load the command of a place, such as `operate.query:query`."""
    module, _, function = place.partition(":")
    app = make_app(add_completion=False)
    app.command(name)(getattr(import_module(f"pipeline.commands.{module}"), function))
    command = typer.main.get_command(app)
    for param in command.params:
        if param.name == "out":
            param.callback = _record_output
    return command


def _record_output(_: object, __: object, value: str | Path | None) -> str | Path | None:
    if value:
        OUTPUTS.append(private.Output(Path(value), settings.home()))
    return value
