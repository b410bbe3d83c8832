"""Every command in a broken world ends in words and a documented exit code: no traceback, no bug, nothing unsaid."""

import json
import os
import resource
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest
import typer

from pipeline import cli, warehouse
from pipeline.tables import TABLES
from tests.commands.conftest import Run
from tests.support.filled import filled

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
    "score quality": "{file} --model {model}", "score context-shift": "{file} --model {model}",
}  # fmt: skip


def leaves(command: object, path: tuple[str, ...] = ()) -> Iterator[str]:
    """The names of all commands below one."""
    if not (children := getattr(command, "commands", None)):
        yield " ".join(path)
    for name, child in (children or {}).items():
        yield from leaves(child, (*path, name))


COMMANDS = [name for name in leaves(typer.main.get_command(cli.app)) if name not in STARTS]


@pytest.fixture(scope="module")
def filled_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a row in each table, and a copy of it beside it to start again from."""
    folder = tmp_path_factory.mktemp("filled") / "home"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNDERTONE_HOME", str(folder))
        warehouse.create()
        for name in TABLES:
            row = filled(name, {})
            where = {column: row[column][0] for column in TABLES[name].partitions}
            warehouse.overwrite(name, where, row, "test")
        warehouse.close()
    shutil.copytree(folder, folder.with_name("copy"))
    return folder


def nothing(home: Path) -> None:
    """No home."""
    if home.is_dir():
        shutil.rmtree(home)


def a_file(home: Path) -> None:
    """The home is a file."""
    nothing(home)
    home.write_text("not a folder", encoding="utf-8")


def whole(home: Path) -> None:
    """Nothing of the home is broken; the input or the disk is."""


def garbage_catalog(home: Path) -> None:
    """The catalog is no database."""
    (home / "catalog.db").write_bytes(b"\x00garbage" * 1000)


def no_data(home: Path) -> None:
    """The data files are gone."""
    for path in home.glob("warehouse/**/*.parquet"):
        path.unlink()


def cut_data(home: Path) -> None:
    """The data files end early."""
    for path in home.glob("warehouse/**/*.parquet"):
        os.truncate(path, 100)


def cut_metadata(home: Path) -> None:
    """The tables' metadata ends early."""
    for path in home.glob("warehouse/**/*.metadata.json"):
        os.truncate(path, 100)


GOOD = '{"text": "what a day", "implicit": "a", "explicit": "b", "one": "a", "two": "b"}\n'


def good_file(folder: Path) -> Path:
    """A small file of texts."""
    (path := folder / "input.jsonl").write_text(GOOD, encoding="utf-8")
    return path


def folder_instead(folder: Path) -> Path:
    """A folder with the name of a file."""
    (path := folder / "folder.jsonl").mkdir()
    return path


def circle(folder: Path) -> Path:
    """A link to itself, which nobody can read, root included."""
    (path := folder / "circle.jsonl").symlink_to("circle.jsonl")
    return path


def bytes_only(folder: Path) -> Path:
    """A file of bytes that are no text and no table."""
    (path := folder / "bytes.jsonl").write_bytes(bytes(range(256)) * 20)
    return path


def odd_name(folder: Path) -> Path:
    """A file whose name is not UTF-8."""
    path = Path(os.fsdecode(os.fsencode(folder) + b"/caf\xe9.jsonl"))
    path.write_text(GOOD, encoding="utf-8")
    return path


def no_kind(folder: Path) -> None:
    """A model of a kind that nobody knows."""
    (folder / "config.json").write_text('{"kind": "oracle"}', encoding="utf-8")


@contextmanager
def full_disk() -> Iterator[None]:
    """No file can grow beyond a few bytes: what a full disk does, and what needs no root."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


World = tuple[Callable[[Path], None], Callable[[Path], Path]]
WORLDS: dict[str, World] = {
    "no home": (nothing, good_file), "home is a file": (a_file, good_file),
    "garbage catalog": (garbage_catalog, good_file),
    "no data": (no_data, good_file), "cut data": (cut_data, good_file), "cut metadata": (cut_metadata, good_file),
    "folder as input": (whole, folder_instead), "unreadable input": (whole, circle),
    "bytes as input": (whole, bytes_only),
    "name not UTF-8": (whole, odd_name), "full disk": (whole, good_file),
}  # fmt: skip

DAILY = {"garbage catalog", "cut metadata", "name not UTF-8", "full disk"}  # ten CPU seconds each
MARKED = [pytest.param(world, marks=() if world in DAILY else pytest.mark.nightly) for world in WORLDS]


@pytest.mark.parametrize("world", MARKED)
def test_no_command_gives_a_traceback(
    world: str, filled_home: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is broken, each command ends in a line of words and one of the documented exit codes."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("UNDERTONE_HOME", str(filled_home))
    monkeypatch.setattr("tenacity.nap.time.sleep", lambda _: None)  # a writer that is asked again at once
    damage, make = WORLDS[world]
    file = make(tmp_path)
    (model := tmp_path / "model").mkdir()
    no_kind(model)
    (model / "model.safetensors").write_bytes(b"\x02\x00\x00\x00\x00\x00\x00\x00{}")
    nothing(filled_home) if filled_home.is_dir() else filled_home.unlink(missing_ok=True)
    shutil.copytree(filled_home.with_name("copy"), filled_home)
    damage(filled_home)
    faults = []
    for number, command in enumerate(COMMANDS):
        if command in HEAVY or (make is not good_file and "{file}" not in WORDS.get(command, "")):
            continue
        if damage in (nothing, a_file):
            damage(filled_home)
        given = WORDS.get(command, "").format(file=file, model=model, out=tmp_path / f"out{number}")
        words = [*command.split(), *(word.replace("#", " ") for word in given.split())]
        with full_disk() if world == "full disk" else nullcontext():
            ended = run(*words)
        warehouse.close()
        is_silent = ended.code and not ended.err + ended.out
        if ended.code not in CODES or is_silent or "Traceback" in ended.err or "Usage:" in ended.err:
            faults.append(f"{ended.code} {command}: {ended.err[-600:]}")
    assert not faults, "\n".join(faults)


WRONG = (None, "x", -1, 10**30, [], {"a": []}, [["a"]])


def test_a_damaged_model_is_named(tables: Path, tmp_path: Path, run: Run) -> None:
    """A model of unknown kind, without a field, with one of another type, or cut off anywhere is bad input."""
    (text := tmp_path / "texts.txt").write_text("the cat sat on the mat\nthe dog sat on the cat\n", encoding="utf-8")
    assert run("train", "count-lm", text, "-o", tmp_path / "model").code == 0
    whole_config = (tmp_path / "model" / "config.json").read_text(encoding="utf-8")
    weights = (tmp_path / "model" / "model.safetensors").read_bytes()
    config = json.loads(whole_config)
    broken = [{**config, "kind": "oracle"}, *({key: config[key] for key in config if key != name} for name in config)]
    broken += [{**config, name: value} for name in config for value in WRONG]
    damages = [(json.dumps(each), weights) for each in broken]
    damages += [(whole_config, weights[:end]) for end in (0, 4, 8, 20, len(weights) // 2, len(weights) - 1)]
    damages += [(text, weights) for text in ("", "[]", "[" * 100_000, "{")]
    codes = []
    for text, tensors in damages:
        (tmp_path / "model" / "config.json").write_text(text, encoding="utf-8")
        (tmp_path / "model" / "model.safetensors").write_bytes(tensors)
        ended = run("ndd", "the cat", "the dog", "--model", tmp_path / "model")
        codes.append(ended.code)
        assert ended.code in (0, 2), (text[:200], len(tensors), ended.err)  # 0: a field that has a default
        assert len(ended.err.splitlines()) <= 2, ended.err
    assert codes.count(2) > len(codes) // 2
