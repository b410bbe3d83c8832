"""Write the pages of docs/reference/ from the code: commands, functions, tables, DAGs, errors."""

import ast
import inspect
import re
import sys
import textwrap
import warnings
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import typer


def write_pages(root: Path, folder: Path) -> None:
    """Write each page whose text has changed."""
    folder.mkdir(exist_ok=True)
    pages = {
        "commands": list_commands(),
        "api": list_functions(),
        "tables": list_tables(root / "sql"),
        "dags": list_dags(root / "dags"),
        "errors": list_errors(),
    }
    for name, lines in pages.items():
        path, text = folder / f"{name}.md", "\n".join(lines) + "\n"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def format_row(*cells: object) -> str:
    """Format a row of a table; no cell ends it early."""
    return "| " + " | ".join(" ".join(str(cell).split()).replace("|", "\\|") for cell in cells) + " |"


def format_table(header: Iterable[str], rows: Iterable[Iterable[object]]) -> Iterator[str]:
    """Format a table, if it has rows."""
    header, rows = list(header), list(rows)
    if rows:
        yield from ("", format_row(*header), format_row(*("---" for _ in header)), *(format_row(*row) for row in rows))
    yield ""


def format_default(value: Any) -> str:
    """Format a default value; nothing where there is none."""
    return "" if value in (None, False, "", ()) or callable(value) else f"`{value}`"


def list_commands() -> Iterator[str]:
    """List every command with its text, arguments and options."""
    from pipeline.cli import COMMANDS, app
    from pipeline.commands.terminal.lazy import Command, load

    yield "# Commands\n\nThe output of `--help` of every command, in one page.\n"
    yield from list_options(typer.main.get_command(app).params)
    for panel, entries in COMMANDS.items():
        yield f"## {panel}\n"
        for name, entry in entries.items():
            places = {"": entry.place} if isinstance(entry, Command) else entry.places
            for part, place in places.items():
                command = load(part or name, place)
                yield f"### {f'{name} {part}'.strip()}\n"
                yield re.sub(r"^\s*\b", "", command.help or entry.summary, flags=re.MULTILINE).replace("<", "\\<")
                yield from list_options(command.params)


def list_options(params: Iterable[Any]) -> Iterator[str]:
    """List arguments and options of a command."""
    rows = [
        (
            ", ".join(f"`{name}`" for name in (*param.opts, *param.secondary_opts))
            if is_option
            else f"`{(param.name or '').upper()}`",
            format_default(param.default),
            (getattr(param, "help", "") or "").replace("<", "\\<"),
        )
        for param in params
        if not getattr(param, "hidden", False)
        for is_option in [param.param_type_name == "option"]
    ]
    return format_table(("option", "default", "meaning"), rows)


def list_functions() -> Iterator[str]:
    """List the public functions with their signatures and texts."""
    import pipeline

    yield "# Functions\n\n`import pipeline` gives these. Everything else may change in any version.\n"
    for name in pipeline.__all__:
        function = getattr(pipeline, name)
        node = ast.parse(inspect.getsource(function)).body[0]
        signature = f"{name}({ast.unparse(node.args)}) -> {ast.unparse(node.returns)}"
        signature = textwrap.fill(re.sub(r"(: |-> )'([^']*)'", r"\1\2", signature), 100, subsequent_indent="    ")
        text, _, example = (inspect.getdoc(function) or "").partition(">>> import pipeline\n")
        yield f"## {name}\n\n```python\n{signature}\n```\n\n{text}"
        if example:
            yield f"```pycon\n>>> import pipeline\n{example}\n```\n"


def list_tables(sql: Path) -> Iterator[str]:
    """List every table with its key, partitions and columns, then the views and checks."""
    from pipeline.tables import TABLES

    yield "# Tables\n\n`undertone query` reads them. Times are UTC; a nullable column has a `?` behind its type.\n"
    for name, table in TABLES.items():
        yield f"## {name}\n\n{' '.join((table.schema.__doc__ or '').split())}\n"
        key, partitions = (", ".join(f"`{column}`" for column in columns) for columns in (table.key, table.partitions))
        yield f"Key: {key or 'none'}. Partitions: {partitions}."
        rows = [
            (
                f"`{column}`",
                f"{str(contract.dtype).partition('(time')[0]}{'?' if contract.nullable else ''}",
                contract.description or "",
            )
            for column, contract in table.schema.columns().items()
        ]
        yield from format_table(("column", "type", "meaning"), rows)
    for title in ("views", "checks"):
        yield f"\n## {title.capitalize()}\n"
        for path in sorted((sql / title).glob("*.sql")):
            comment = " ".join(
                re.findall(r"^-- *(.*)", path.read_text(encoding="utf-8").partition("\n\n")[0], re.MULTILINE)
            )
            yield f"- `{path.stem.lstrip('0123456789_')}`: {comment}"


def list_dags(folder: Path) -> Iterator[str]:
    """List every DAG with its text and the parameters of its form."""
    from pipeline import settings

    sys.path.insert(0, str(folder))
    warnings.filterwarnings("ignore", category=FutureWarning)  # Airflow's own
    yield "# DAGs and their parameters\n\nThe text of each DAG's page in Airflow. [When they run](../dags.md).\n"
    for path in sorted(folder.glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        match tree.body[-1]:
            case ast.Expr(ast.Call(ast.Name(dag_id))):  # a DAG file ends with the call that makes the DAG
                yield f"## {dag_id}\n\nSchedule: `{settings.schedule(dag_id)}`. {ast.get_docstring(tree)}\n"
                module = vars(import_module(path.stem))
                rows = [
                    (f"`{name}`", param.schema.get("title", ""), format_default(param.value), param.description or "")
                    for name, param in module.get("PARAMS", {"day": module["DAY"]} if "DAY" in module else {}).items()
                ]
                yield from format_table(("parameter", "in the form", "default", "meaning"), rows)


def list_errors() -> Iterator[str]:
    """List exit codes and errors."""
    from pipeline import cli, errors

    codes = " ".join((cli.__doc__ or "").partition("Exit codes: ")[2].split()).rstrip(".").split("; ")
    yield "# Errors and exit codes"
    yield from format_table(
        ("exit code", "meaning"), (re.findall(r"(\d+(?: and \d+)?) (.*)", code)[0] for code in codes)
    )
    yield "Every error of `pipeline` is an `UndertoneError`. It is named by what to do about it.\n"
    rows = [
        (f"`{name}`", value.exit_code, value.__doc__)
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, errors.UndertoneError)
    ]
    yield from format_table(("error", "exit code", "meaning"), rows)
