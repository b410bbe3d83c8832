"""The notebooks of examples/ run as they stand, and print what is stored in them."""

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.docs_test import ROOT

NUMBER = re.compile(r"[+-]?\d+\.\d+")  # a sign is no part of the text


def read_outputs(notebook: Any) -> tuple[list[str], list[float]]:
    """Read the text that the cells print, without numbers, and the numbers with a fraction."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    assert [output for output in outputs if output.get("name") == "stderr"] == []
    text = "\n".join(output.get("text") or output["data"]["text/plain"] for output in outputs)
    return NUMBER.sub("#", text).split(), [float(number) for number in NUMBER.findall(text)]


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.ipynb")), ids=lambda path: path.stem)
def test_notebooks_run(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each notebook runs on the sample alone and prints the stored texts, and numbers near the stored ones."""
    import nbclient
    import nbformat

    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=":")
    for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    stored, notebook = (nbformat.read(path, as_version=4) for _ in range(2))
    nbclient.NotebookClient(notebook, timeout=300).execute()
    (words, numbers), (stored_words, stored_numbers) = read_outputs(notebook), read_outputs(stored)
    assert words == stored_words
    assert numbers == pytest.approx(stored_numbers, rel=0.05, abs=0.02)
    pictures = re.findall(r'"image/png": "([^"]*)"', path.read_text(encoding="utf-8"))
    assert [len(picture) for picture in pictures if len(picture) * 3 / 4 > 40_000] == []
