"""A training that is killed once the state after an epoch is written."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pipeline.training import checkpoint


@contextmanager
def killed_after(epochs: int) -> Iterator[None]:
    """Kill the training within once so many epochs are in its state."""
    save = checkpoint.save

    def save_and_kill(path: Path, tensors: Any, facts: dict[str, Any]) -> None:
        save(path, tensors, facts)
        if len(facts["history"]) == epochs:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoint, "save", save_and_kill)
        with pytest.raises(KeyboardInterrupt):
            yield
