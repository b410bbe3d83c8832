"""Every command in a broken world ends in words and a documented exit code: no traceback, no bug, nothing unsaid."""

import json
import os
import resource
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest
import tenacity
import typer

from pipeline import cli, warehouse
from pipeline.tables import TABLES
from tests.commands.conftest import Run
from tests.support.rows.filled import filled

CODES = {0, 1, 2, 3, 4, 75}  # 70, a bug, is none that a broken world may give
STARTS = {"up", "demo"}  # start Airflow
HEAVY = {"groups rank", "groups choose", "groups agree"}  # read the shipped encoder and nothing of the home

WORDS = {
    "commenting comment": "--title a --content b --model {model}", "commenting correlate": "{file}",
    "ndd distance": "one two", "ndd compress": "{file}",
    "recover": "{file} --cache-only", "backfill": "--from 2026-11-19 --to 2026-11-19", "forget": "--user-id u --yes",
    "pairs distance": "--pairs {file} --model {model}", "groups agree": "--ratings {file} --groups {file}",
    "import": "{file} --day 2026-11-19 --source forum", "collect": "--path {file} --source forum --day 2026-11-19",
    "tokenize": "--day 2026-11-19", "query": "SELECT#count(*)#FROM#comments", "report": "--day 2026-11-19",
    "pairs import": "forum {file} --own", "pairs replay": "{file}", "pairs ask": "--llm m --cache-only",
    "pairs audit": "--pairs {file}", "pairs sample": "{out} {out}2 --pairs {file}", "pairs ratings": "{file} {file}",
    "label export": "--day 2026-11-19 -o {out}", "label import": "{file}", "label agreement": "{file}",
    "label withdraw": "0f3a5c7e91b2d486", "label guidelines": "-o {out}.html", "label collect": "",
    "cloze build": "{file} -o {out}", "cloze stats": "{file}", "cloze export": "imperceptibility -o {out}.jsonl",
    "cloze audit": "{file}", "cloze rate": "imperceptibility -o {out}", "cloze ratings": "imperceptibility {file}",
    "commenting rate": "human -o {out}", "commenting ratings": "human {file}", "commenting grades": "{file}",
    "commenting overlap": "--candidates {file} --references {file}",
    "groups ask": "{file} -o {out}.jsonl --llm m --cache-only",
    "groups rate": "ranking --items {file} -o {out}", "groups ratings": "ranking {file}", "models show": "0f3a5c7e",
    "models promote": "0f3a5c7e", "models rollback": "impscore", "models import": "{file}",
    "judge": "{file} --llm m --cache-only",
    "groups check": "{file}", "study ablation": "--runs 1 --epochs 1", "study sensitivity": "--runs 1 --epochs 1",
    "study detection": "--llm m --source weibo --cache-only",
    "ndd measure": "--data {file} --data-format pairs --model {model}",
    "ndd test": "--pairs {file} --model {model}",
    "ndd rate": "--out {out}", "ndd ratings": "{file}", "train impscore": "--pairs {file} -o {out}",
    "train subtext": "--data {file} -o {out}", "train abstractness": "--ratings {file} -o {out}",
    "train reader": "--items {file} -o {out}", "train masked-lm": "{file} -o {out} --from {model}",
    "train commenter": "--data {file} -o {out}", "train quality": "--data {file} -o {out}",
    "train count-lm": "{file} -o {out}",
    "train recovery": "{file} -o {out} --from {model}", "evaluate impscore": "--pairs {file} --model {model}",
    "evaluate subtext": "--data {file} --model {model}", "evaluate reader": "--items {file} --model {model}",
    "evaluate quality": "--data {file} --model {model}", "evaluate compression": "--data {file}",
    "evaluate recovery": "--references {file} --model {model}", "score implicitness": "{file} --model {model}",
    "score subtext": "{file} --model {model}", "score abstractness": "word --model {model}",
    "connect": "duckdb", "snapshot": "-o {out}", "export site": "-o {out}",
    "score quality": "{file} --model {model}", "score context-shift": "{file} --model {model}",
}  # fmt: skip


def list_commands(command: object, path: tuple[str, ...] = ()) -> Iterator[str]:
    """List the names of all commands below one."""
    if not (children := getattr(command, "commands", None)):
        yield " ".join(path)
    for name, child in (children or {}).items():
        yield from list_commands(child, (*path, name))


COMMANDS = [name for name in list_commands(typer.main.get_command(cli.app)) if name not in STARTS]
GOOD = '{"text": "what a day", "implicit": "a", "explicit": "b", "one": "a", "two": "b"}\n'
NO_HOME = ("no home", "home is a file")
BAD_INPUT = ("folder as input", "unreadable input", "bytes as input", "name not UTF-8")
NAMES = (*NO_HOME, "garbage catalog", "no data", "cut data", "cut metadata", *BAD_INPUT, "full disk")
DAILY = "garbage catalog"  # ten CPU seconds each
WORLDS = [pytest.param(name, marks=() if name == DAILY else pytest.mark.nightly) for name in NAMES]


@pytest.fixture(scope="module")
def filled_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a row in each table, and a copy of it beside it to start again from."""
    folder = tmp_path_factory.mktemp("filled") / "home"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNDERTONE_HOME", str(folder))
        warehouse.create()
        for name in TABLES:
            row = filled(name, {})
            partition = {column: row[column][0] for column in TABLES[name].partitions}
            warehouse.overwrite(name, partition, row, "test")
        warehouse.close()
    shutil.copytree(folder, folder.with_name("copy"))
    return folder


def break_home(world: str, home: Path) -> None:
    """Break what is broken of the home in a world."""
    data, metadata = home.glob("warehouse/**/*.parquet"), home.glob("warehouse/**/*.metadata.json")
    if world in NO_HOME and home.is_dir():
        shutil.rmtree(home)
    match world:
        case "home is a file":
            home.write_text("not a folder", encoding="utf-8")
        case "garbage catalog":
            (home / "catalog.db").write_bytes(b"\x00garbage" * 1000)
        case "no data":
            for path in data:
                path.unlink()
        case "cut data" | "cut metadata":
            for path in data if world == "cut data" else metadata:
                os.truncate(path, 100)


def make_input(world: str, folder: Path) -> Path:
    """Make the input file of a world: a few texts, unless it is the input that is broken."""
    path = folder / "input.jsonl"
    match world:
        case "folder as input":
            path.mkdir()
        case "unreadable input":  # a link to itself, which even root cannot read
            path.symlink_to(path.name)
        case "bytes as input":
            path.write_bytes(bytes(range(256)) * 20)
        case "name not UTF-8":
            path = Path(os.fsdecode(os.fsencode(folder) + b"/caf\xe9.jsonl"))
            path.write_text(GOOD, encoding="utf-8")
        case _:
            path.write_text(GOOD, encoding="utf-8")
    return path


@contextmanager
def full_disk() -> Iterator[None]:
    """No file can grow beyond a few bytes: what a full disk does, and what needs no root."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("world", WORLDS)
def test_no_command_gives_a_traceback(
    world: str, filled_home: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is broken, each command ends in a line of words and one of the documented exit codes."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("UNDERTONE_HOME", str(filled_home))
    monkeypatch.setattr("tenacity.nap.time.sleep", lambda _: None)  # a writer that is asked again at once, and once
    monkeypatch.setattr("tenacity.stop_after_attempt", lambda _, stop=tenacity.stop_after_attempt: stop(2))
    file = make_input(world, tmp_path)
    (model := tmp_path / "model").mkdir()
    (model / "config.json").write_text('{"kind": "oracle"}', encoding="utf-8")  # a kind that does not exist
    (model / "model.safetensors").write_bytes(b"\x02\x00\x00\x00\x00\x00\x00\x00{}")
    shutil.rmtree(filled_home, ignore_errors=True)
    filled_home.unlink(missing_ok=True)
    shutil.copytree(filled_home.with_name("copy"), filled_home)
    break_home(world, filled_home)
    faults = []
    for number, command in enumerate(COMMANDS):
        template = WORDS.get(command, "")
        if command in HEAVY or (world in BAD_INPUT and "{file}" not in template):
            continue
        if world in NO_HOME:  # the command before may have made one
            break_home(world, filled_home)
        options = template.format(file=file, model=model, out=tmp_path / f"out{number}")
        words = [*command.split(), *(word.replace("#", " ") for word in options.split())]
        with full_disk() if world == "full disk" else nullcontext():
            result = run(*words)
        warehouse.close()
        is_silent = result.code and not result.err + result.out
        if result.code not in CODES or is_silent or "Traceback" in result.err or "Usage:" in result.err:
            faults.append(f"{result.code} {command}: {result.err[-600:]}")
    assert not faults, "\n".join(faults)


WRONG = (None, "x", 10**30, {"a": []})


def test_a_damaged_model_is_named(tables: Path, tmp_path: Path, run: Run) -> None:
    """A model of unknown kind, without a field, with one of another type, or cut off anywhere is bad input."""
    (text := tmp_path / "texts.txt").write_text("the cat sat on the mat\nthe dog sat on the cat\n", encoding="utf-8")
    assert run("train", "count-lm", text, "-o", tmp_path / "model").code == 0
    good = (tmp_path / "model" / "config.json").read_text(encoding="utf-8")
    weights = (tmp_path / "model" / "model.safetensors").read_bytes()
    config = json.loads(good)
    configs = [{**config, "kind": "oracle"}, *({key: config[key] for key in config if key != name} for name in config)]
    configs += [{**config, name: value} for name in config for value in WRONG]
    damages = [(content, weights) for content in (*map(json.dumps, configs), "", "[]", "[" * 100_000, "{")]
    damages += [(good, weights[:end]) for end in (0, 4, 8, 20, len(weights) // 2, len(weights) - 1)]
    codes = []
    for content, tensors in damages:
        (tmp_path / "model" / "config.json").write_text(content, encoding="utf-8")
        (tmp_path / "model" / "model.safetensors").write_bytes(tensors)
        result = run("ndd", "the cat", "the dog", "--model", tmp_path / "model")
        codes.append(result.code)
        assert result.code in (0, 2), (content[:200], len(tensors), result.err)  # 0: a field that has a default
        assert len(result.err.splitlines()) <= 2, result.err
    assert codes.count(2) > len(codes) // 2
