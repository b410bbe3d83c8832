"""Commands that are imported when they run, so that a list of them, the version or an error costs next to nothing."""

from collections import UserDict
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from pipeline import private, settings
from pipeline.commands.terminal import renamed

MARKUP: Any = "markdown"
OUTPUTS: list[private.Output] = []  # files that a person named as `out`: they follow their umask, all else is private


class Command(NamedTuple):
    """A command: what a list says of it, and `module:function` below `pipeline.commands`."""

    summary: str
    place: str


class Family(NamedTuple):
    """Commands under one noun: what a list says of them, and the place of each by its name."""

    summary: str
    places: Mapping[str, str]


class Deferred(TyperCommand):
    """A command of which a list needs the summary alone; its module is imported to parse its arguments."""

    def __init__(self, name: str, command: Command, panel: str) -> None:
        super().__init__(name, help=command.summary, rich_help_panel=panel, rich_markup_mode=MARKUP)
        self.place = command.place

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """The context of the command itself."""
        return load(self.name or "", self.place).make_context(info_name, args, parent, **extra)


class Places(UserDict[str, Any]):
    """Commands by name, each loaded when it is looked up."""

    def __getitem__(self, name: str) -> Any:
        return load(name, self.data[name])


def group(panels: Mapping[str, Mapping[str, Command | Family]]) -> type[TyperGroup]:
    """The class of a group with these commands and families, by the panels of its help."""
    entries = {name: _defer(name, entry, panel) for panel, within in panels.items() for name, entry in within.items()}

    families = {name: entry.places for within in panels.values() for name, entry in within.items()
                if isinstance(entry, Family)}  # fmt: skip

    class Group(TyperGroup):
        def __init__(self, **options: Any) -> None:
            super().__init__(**{**options, "commands": entries})

        def resolve_command(self, ctx: Any, args: list[str]) -> Any:
            return super().resolve_command(ctx, renamed.rename(args, families))

    return Group


def _defer(name: str, entry: Command | Family, panel: str) -> Any:
    if isinstance(entry, Command):
        return Deferred(name, entry, panel)
    places: Any = Places(entry.places)
    return TyperGroup(
        name=name, commands=places, help=entry.summary, rich_help_panel=panel, rich_markup_mode=MARKUP,
        no_args_is_help=True,
    )  # fmt: skip


@cache
def load(name: str, place: str) -> Any:
    """The command of a place, such as `operate.query:query`."""
    module, _, function = place.partition(":")
    app = typer.Typer(add_completion=False, rich_markup_mode=MARKUP, pretty_exceptions_enable=False)
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
