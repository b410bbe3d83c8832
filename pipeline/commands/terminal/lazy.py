"""Commands that are imported when they run, so that a list of them, the version or an error costs next to nothing.

Old names of commands and options work until the next minor version and print one line with the new name.
"""

from collections import UserDict
from collections.abc import Collection, Mapping
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from pipeline import private, settings
from pipeline.errors import BadInput

RENAMED_COMMANDS = {
    "agree": "groups agree", "choose": "groups choose", "comment": "commenting comment", "compress": "ndd compress",
    "correlate": "commenting correlate", "distance": "pairs distance", "metric": "commenting", "ndd": "ndd distance",
    "ndd-study": "ndd", "ndd-study compress": "ndd measure", "pairs play": "pairs replay",
    "pairs rate": "pairs ratings", "rank": "groups rank", "score context_shift": "score context-shift",
    "score day": "score implicitness --day", "train count_lm": "train count-lm", "train masked_lm": "train masked-lm",
}  # fmt: skip
"""New words by old ones. An old name that is a family now, such as `ndd`, holds where no command of it follows."""

RENAMED_OPTIONS: Mapping[str, Mapping[str, str]] = {  # new options by old ones, for each command by its new name
    "cloze rate": {"--count": "--limit", "--label-studio": "--tool label_studio", "--sheet": "--rater"},
    "collect": {"--thread": "--thread-id"},
    "commenting build": {
        "--least-comments": "--min-comments", "--least-words": "--min-words", "--likes": "--min-likes",
    },
    "commenting rate": {"--label-studio": "--tool label_studio", "--sheet": "--rater"},
    "evaluate compression": {"--source": "--data-format"},
    "evaluate recovery": {"--ask": "--llm"},
    "evaluate subtext": {"--source": "--data-format"},
    "groups ask": {"--model": "--llm"},
    "label adjudicate": {"--sheet": "--adjudicator"},
    "label export": {
        "--least-chars": "--min-chars", "--least-likes": "--min-likes", "--most-chars": "--max-chars",
        "--sheet": "--rater",
    },
    "llm clear": {"--model": "--llm"},
    "llm retry": {"--model": "--llm"},
    "ndd compress": {"--longest": "--max-span", "--rounds-at-most": "--max-rounds"},
    "ndd measure": {"--format": "--data-format"},
    "ndd rate": {"--count": "--limit", "--folder": "--out", "--sheet": "--rater", "--systems": "--system"},
    "pairs ask": {"--model": "--llm"},
    "query": {"--csv": "--format csv"},
    "recover": {"--ask": "--llm"},
    "study detection": {"--ask": "--llm"},
    "train subtext": {"--source": "--data-format"},
}  # fmt: skip


def rename(words: list[str], families: Mapping[str, Collection[str]]) -> list[str]:
    """Replace the old names in a command line, which begins with the command; print what replaces them.

    `families` has the commands of each family by its name.
    """
    changes = {}
    for count in (2, 1):
        old, rest = " ".join(words[:count]), words[count:]
        is_in_use = old in families and (not rest or rest[0] == "--help" or rest[0] in families[old])
        if old in RENAMED_COMMANDS and not is_in_use:
            changes[old] = RENAMED_COMMANDS[old]
            words = [*RENAMED_COMMANDS[old].split(), *rest]
            break
    count = 2 if words[0] in families else 1
    command, rest = words[:count], words[count:]
    new_options = RENAMED_OPTIONS.get(" ".join(command[:2]), {}) or RENAMED_OPTIONS.get(command[0], {})
    end = rest.index("--") if "--" in rest else len(rest)
    options: list[str] = []
    for word in rest[:end]:
        name, equals, value = word.partition("=")
        if name not in new_options:
            options.append(word)
            continue
        changes[name] = new_options[name]
        options += [f"{changes[name]}={value}"] if equals else changes[name].split()
    if changes:
        _warn(changes)
    return [*command, *options, *rest[end:]]


def take_renamed(name: str, value: Path | None, argument: Path | None) -> Path:
    """Return the value of an option that was a positional argument before."""
    if argument is not None and value is None:
        _warn({str(argument): f"{name} {argument}"})
    if (path := value or argument) is None:
        raise BadInput(f"{name} is missing")
    return path


def _warn(changes: Mapping[str, str]) -> None:
    from pipeline.commands.terminal import console

    names = "; ".join(f"`{old}` is now `{new}`" for old, new in changes.items())
    console.report(f"{names}. The old name stops working in the next minor version.")


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


class _Places(UserDict[str, Any]):  # commands by name, each loaded when it is looked up
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
            return super().resolve_command(ctx, rename(args, families))

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
