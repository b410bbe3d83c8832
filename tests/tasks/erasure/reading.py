"""Reading texts out of the files of models."""

import json
from itertools import product
from pathlib import Path
from typing import Any

from safetensors.numpy import load_file


def read_all(folder: Path) -> str:
    """Read all that files hold: bytes in three encodings, JSON walked, numbers as places in a vocabulary."""
    texts: list[str] = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        content = path.read_bytes()
        texts += [content.decode(name, errors="ignore") for name in ("utf-8", "utf-16-le", "utf-16-be")]
        if path.suffix == ".json":
            texts += [" ".join(strings) for strings in _list_strings(json.loads(content))]
        if path.suffix == ".safetensors":
            config = folder / "config.json"
            vocabularies = _list_strings(json.loads(config.read_text())) if config.is_file() else []
            for tensor in load_file(path).values():
                if tensor.dtype.kind in "iu":
                    rows = tensor.reshape(-1, tensor.shape[-1]) if tensor.ndim else tensor.reshape(1, 1)
                    for words, row in product((words for words in vocabularies if len(words) > 20), rows.tolist()):
                        texts.append(" ".join(words[i] for i in row if 0 <= i < len(words)))
    return " ".join(texts).lower()


def _list_strings(node: Any) -> list[list[str]]:
    """List the strings of JSON, as the lists and objects that they stand in."""
    values = list(node.values()) + list(node) if isinstance(node, dict) else node if isinstance(node, list) else []
    inner = [item for value in values if isinstance(value, dict | list) for item in _list_strings(value)]
    return [*inner, [value for value in values if isinstance(value, str)]]


def find_holders(folders: dict[str, str], words: tuple[str, ...]) -> set[str]:
    """Find the models of which one of the words can be read."""
    texts = {name: read_all(Path(folder)) for name, folder in folders.items() if Path(folder).is_dir()}
    return {name for name, text in texts.items() if any(word in text for word in words)}
