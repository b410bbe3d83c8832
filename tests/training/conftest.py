"""What the training tests learn from: 32 pairs and ten groups of the sample, through an encoder of random weights."""

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from pipeline.examples.impscore import groups as graded
from pipeline.examples.impscore import pairs as examples
from pipeline.llm import request
from pipeline.models.encoder import Encoder, encode, load
from pipeline.sample import COMPLETIONS, GROUPS
from pipeline.tables import empty
from pipeline.training.impscore.fit import Corpus, Frozen

Embed = Callable[[Corpus], Frozen]


@pytest.fixture(scope="session")
def encoder(tiny_folder: Path) -> Encoder:
    """The tiny encoder, its three layers side by side."""
    return load(str(tiny_folder), device="cpu", pooling="layers")


@pytest.fixture(scope="session")
def pairs() -> pl.DataFrame:
    """32 triples of the sample, half of each language, 24 of them to train on and 4 each to validate and test."""
    rows = examples.build(empty("sentences"), request.read_cassette(COMPLETIONS))[0]
    split = pl.Series(["train"] * 12 + ["validation"] * 2 + ["test"] * 2)
    parts = [rows.filter(pl.col("lang") == lang).head(16).with_columns(split=split) for lang in ("en", "zh")]
    return pl.concat(parts).sort("pair_id")


@pytest.fixture(scope="session")
def groups() -> pl.DataFrame:
    """Ten English groups of the sample, all to train on."""
    rows = graded.read(GROUPS["en"])
    names = rows["group"].unique(maintain_order=True)[:10].implode()
    return rows.filter(pl.col("group").is_in(names)).with_columns(split=pl.lit("train"))


@pytest.fixture(scope="session")
def frozen(encoder: Encoder) -> Embed:
    return lambda corpus: Frozen(encode(encoder, corpus.texts))
