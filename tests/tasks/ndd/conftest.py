"""What tests of compressions and of the distance share: a few sentences, and another model of counts."""

import json
from pathlib import Path

import pytest

from pipeline import sample
from pipeline.tasks.ndd import masked_lm
from pipeline.text import trees


@pytest.fixture(scope="module")
def data_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six English sentences of the sample, all but one with trees, and four Chinese ones."""
    lines = sample.COMPRESSIONS.read_text(encoding="utf-8").splitlines()
    english = [line for line in lines if '"lang": "en"' in line]
    bare = {"item_id": "bare", "words": ["Nobody", "saw", "the", "bus", "."], "kept": [1, 1, 0, 1, 1], "lang": "en"}
    path = tmp_path_factory.mktemp("few") / "few.jsonl"
    path.write_text("\n".join([*english[:5], json.dumps(bare), *lines[-4:]]) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def count_folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Another model of counts, of six sentences, as a folder."""
    folder = tmp_path_factory.mktemp("counts") / "model"
    masked_lm.count_file([tree.text for tree in trees.read(sample.TREES)][:6], folder)
    return str(folder)
