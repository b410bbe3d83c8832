"""The package as it is published, in an environment of its own: without extras, and with what a first score needs."""

import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from pipeline import sample
from tests.docker.supply_chain_test import PROJECT, ROOT
from tests.support.commands import run

UV = Path(sys.executable).with_name("uv")


def _run_uv(*words: object) -> str:
    """Run uv as `make setup` does; without a registry there is nothing to test."""
    done = subprocess.run([UV, *map(str, words)], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode and "error sending request" in done.stderr:
        pytest.skip("uv reaches no registry")
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with sdist and wheel, and an environment that has the wheel in the tested versions, without an extra."""
    if not UV.is_file():
        pytest.skip("there is no uv: make setup")
    folder = tmp_path_factory.mktemp("clean")
    _run_uv("build", "--build-constraint", "docker/requirements-build.txt", "--out-dir", folder, ".")
    _run_uv("venv", "--python", sys.executable, folder / "venv")
    _run_uv("pip", "install", "--python", folder / "venv", "-c", "constraints.txt", *folder.glob("*.whl"))
    _copy_bytecode(*folder.glob("venv/lib/python*/site-packages"))
    return folder


def _copy_bytecode(packages: Path) -> None:
    """Copy what is compiled already: uv links the same sources into both environments, and compiles them in neither."""
    compiled = Path(sysconfig.get_path("purelib"))
    for folder in {path.parent.relative_to(packages) for path in packages.rglob("*.py")}:
        if (compiled / folder / "__pycache__").is_dir():
            shutil.copytree(compiled / folder / "__pycache__", packages / folder / "__pycache__", dirs_exist_ok=True)


@pytest.fixture
def python(clean: Path, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The interpreter of that environment; processes start outside the repository."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)  # else each process compiles all that it imports
    return clean / "venv" / "bin" / "python"


def test_core_commands_need_no_extra(python: Path, tmp_path: Path) -> None:
    """Import, tokenize, query, label and metric overlap work where neither Airflow nor torch is installed."""
    comments, candidates, references = (tmp_path / name for name in ("c.csv", "c.txt", "r.jsonl"))
    text = "昨天开会他又迟到了半个小时，领导说真准时"
    comments.write_text(f"thread_id,comment_id,text,article_text\n1,1,{text},开会\n", encoding="utf-8")
    candidates.write_text("a b c d\n", encoding="utf-8")
    references.write_text('["a b c e"]\n', encoding="utf-8")
    done = run(
        ("--version",), ("--help",), ("import", comments, "--source", "forum", "--day", sample.DAY),
        ("tokenize", "--day", sample.DAY), ("query", "select * from tokens"),
        ("label", "export", "--day", sample.DAY, "--any-context", "-o", tmp_path / "tasks"), ("label", "status"),
        ("label", "guidelines", "-o", tmp_path / "guidelines.html"),
        ("commenting", "overlap", "--candidates", candidates, "--references", references, "--metric", "bleu_1"),
        python=python,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == PROJECT["version"]
    assert "bleu_1" in done.stdout.splitlines()[-1]  # all were run


@pytest.mark.parametrize(
    ("words", "needed"), [("score implicitness lines.txt", "torch train"), ("up", "airflow airflow")]
)
def test_what_needs_an_extra_names_it(python: Path, tmp_path: Path, words: str, needed: str) -> None:
    """A command that lacks an extra ends with one line that says what to install, and exit code 4."""
    (tmp_path / "lines.txt").write_text("How kind of you.\n", encoding="utf-8")
    done = run(words.split(), python=python)
    package, extra = needed.split()
    assert done.returncode == 4
    line = rf"undertone: {package} is not installed( next to \S+)?: pip install 'undertone-text\[{extra}\]'"
    assert re.fullmatch(line, done.stderr.splitlines()[-1])


def test_library_needs_no_extra(python: Path) -> None:
    """`import pipeline`, which is the wheel's, and its modules for frames, tables and metrics import neither."""
    code = "import pipeline, pipeline.warehouse, pipeline.metrics.overlap, pipeline.collect; print(pipeline.__file__)"
    place = subprocess.check_output([python, "-c", code], text=True)
    assert place.startswith(str(python.parents[1]))


def test_first_score_outside_the_repository(python: Path, tmp_path: Path) -> None:
    """With the packages of the extra `train`, taken from the environment of the tests, the shipped model scores."""
    (packages,) = python.parents[1].glob("lib/python*/site-packages")
    (packages / "train.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")  # after what is installed
    (tmp_path / "lines.txt").write_text("How kind of you.\n", encoding="utf-8")
    done = run(("score", "implicitness", "lines.txt"), ("selftest",), python=python)
    assert done.returncode == 0, done.stderr
    assert "40 of 40 scores" in done.stderr + done.stdout


@pytest.mark.nightly
@pytest.mark.parametrize("extra", PROJECT["optional-dependencies"])
def test_each_extra_resolves(clean: Path, extra: str) -> None:
    """Each extra can be installed with the versions of constraints.txt."""
    (wheel,) = clean.glob("*.whl")
    words = ("pip", "install", "--dry-run", "--python", clean / "venv", "-c", "constraints.txt")
    assert "Would install" in _run_uv(*words, f"undertone-text[{extra}] @ {wheel.as_uri()}")
