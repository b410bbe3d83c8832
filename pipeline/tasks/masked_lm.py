"""Masked language models as tasks: texts to an encoder that knows them (task-adaptive pre-training; REC-31)."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars as pl

from pipeline import __version__, settings
from pipeline.errors import BadInput
from pipeline.tasks.readers import device

PROFILE = "embedded"


def train(
    texts: Sequence[str], out: Path, profile: str = PROFILE, changes: Mapping[str, Any] | None = None,
    start: str | None = None,
) -> pl.DataFrame:  # fmt: skip
    """Adapt an encoder to texts, by words that are masked, and write it as a Hugging Face folder.

    Args:
        texts: to learn from.
        out: folder, which should not be there yet, or be empty.
        profile: of `training.masked_lm`.
        changes: to its numbers.
        start: the encoder by its folder or name; by default that in force.

    Returns:
        epoch, loss, cross_entropy and accuracy on texts held out, count.
    """
    from pipeline.training import masked_lm

    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise BadInput(f"{out}: is there already; choose another folder")
    recipe = masked_lm.recipe_of(profile, **(changes or {}))
    source = start or settings.encoder()
    seen = hashlib.sha256(json.dumps([asdict(recipe), source, __version__, *texts]).encode())
    state = settings.scratch("training") / f"{seen.hexdigest()}.safetensors"
    done = masked_lm.fit(texts, recipe, source, state, device())
    masked_lm.write(out, done)
    return done.history
