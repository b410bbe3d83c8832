"""What README, CONTRIBUTING and docs/ show: commands and options that exist, links that lead somewhere, files."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from pipeline import settings
from pipeline.cli import app
from pipeline.commands.terminal.lazy import load

ROOT = Path(__file__).parents[1]
_GENERATED = ROOT / "docs" / "reference"  # by docs/generate.py, when the site is built
PAGES = [
    *(path for path in sorted(ROOT.glob("*.md")) if path.name != "CHANGELOG.md"),
    *(path for path in sorted((ROOT / "docs").rglob("*.md")) if path.parent != _GENERATED),
]
_INTERNAL = {"ATTEMPT"}  # a task passes it to its child processes
_CALL = re.compile(r'\bundertone ((?:"[^"\n]*"|[^"#;&|\n])+)')
_LINK = re.compile(r"\]\((?!https?://)([^)#]+)?(?:#([^)]+))?\)")


def list_commands(text: str) -> Iterator[list[str]]:
    """List the words of each `undertone` call in the code blocks of a page."""
    for block, indented in re.findall(r"```\w*\n(.*?)```|((?:\n {4}[^\n]*)+)", text, re.DOTALL):
        for call in _CALL.findall(block or indented):
            yield shlex.split(call)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_and_options_exist(page: Path) -> None:
    """Each command that a page shows exists and takes the options and arguments that it is given."""
    for words in list_commands(page.read_text(encoding="utf-8")):
        command, args = typer.main.get_command(app), words
        while hasattr(command, "commands"):
            _, args, _ = command.make_parser(typer.Context(command)).parse_args(args)
            name, *args = args
            command = command.commands[name]
        if hasattr(command, "place"):
            command = load(command.name, command.place)
        command.make_parser(typer.Context(command)).parse_args(args)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    """Each relative link names a file of the repository, and its anchor a heading of that file."""
    for path, anchor in _LINK.findall(page.read_text(encoding="utf-8")):
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{page.name}: {path}"
        if anchor:
            headings = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_measured_numbers_name_their_source(page: Path) -> None:
    """A paragraph with coefficients or shares names the test or bench that makes them, or that it was measured once."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    source = re.compile(r"`tests/|`make |[Mm]easured\s+once")
    for paragraph in re.split(r"\n\n(?!\|)", text):  # a table goes with the lines before it
        if re.search(r"(?<![\w.`])0?\.\d\d|\d %", paragraph) and page.name != "scale.md":  # `make scale` makes it
            assert source.search(paragraph), f"{page.name}: {paragraph[:300]}"


def test_each_setting_is_documented() -> None:
    """docs/settings.md lists what settings.py reads, and no other; README stays under 8,000 characters."""
    source = Path(settings.__file__).read_text(encoding="utf-8")
    names = set(re.findall(r'"(?:UNDERTONE_)?([A-Z][A-Z_]{2,})"', source)) - _INTERNAL
    own_names = {name for name in names if not name.startswith(("AIRFLOW_", "AWS_", "OMP_", "POLARS_", "UNDERTONE_"))}
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert set(re.findall(r"`UNDERTONE_(\w+?)(?:_FILE)?`", page)) == own_names
    assert len((ROOT / "README.md").read_text(encoding="utf-8")) < 8_000


def test_files_and_names_that_pages_mention_exist() -> None:
    """Each path in backticks is there, and each `NAME` that a page places in one stands in that file."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for path in re.findall(r"`((?:pipeline|dags|docker|sql|tests|examples)/[\w/.*-]+)`", text):
            assert list(ROOT.glob(path)), f"{page.name}: {path}"
        for name, path in re.findall(r"`(\w+)` (?:in|of) `?(pipeline/[\w/]+\.py)", text):
            assert name in (ROOT / path).read_text(encoding="utf-8"), f"{page.name}: {name} in {path}"


def test_chinese_readme_is_built_like_the_english_one() -> None:
    """Both have the same commands, outputs, links, numbers of headings, list items and rows of tables."""
    parts = []
    for name, other in (("README.md", "README.zh.md"), ("README.zh.md", "README.md")):
        text = (ROOT / name).read_text(encoding="utf-8")
        blocks = re.findall(r"```.*?```", text, re.DOTALL)
        links = sorted(link for link in _LINK.findall(text) if link[0] != other)
        parts.append((blocks, links, re.findall(r"^(#+ |- |\|)", text, re.MULTILINE)))
    assert parts[0] == parts[1]
