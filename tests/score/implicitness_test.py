"""Implicitness of texts: rounded, whatever their order, signed."""

import re

import numpy as np
import polars as pl
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline import __version__
from pipeline.errors import BadInput
from pipeline.models.encoder import Encoder, load
from pipeline.models.impscore import ImpScore
from pipeline.score import signature
from pipeline.score.implicitness import implicitness, model_from

TEXTS = [
    "Nice hat.",
    "你可真准时。",
    "The soup is salty.",
    "",
    "某人今天又没洗碗呢[doge]",
    "Some of us get up at five. " * 9,
]
MODEL_ID = "0123456789abcdef" * 4


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    """The encoder that is shipped as a package."""
    return load()


@pytest.fixture(scope="module")
def model(encoder: Encoder) -> ImpScore:
    """A model with random weights: scores of texts differ, and that is all that is needed here."""
    return ImpScore(encoder.dim, 8, torch.Generator().manual_seed(3)).eval()


def test_rounded_to_six_decimals(encoder: Encoder, model: ImpScore) -> None:
    """Scores are float64 in [0, 2] with at most six decimals, one a text."""
    scores = implicitness(TEXTS, encoder, model)
    assert (scores.dtype, scores.shape) == (np.dtype(np.float64), (len(TEXTS),))
    assert np.array_equal(scores, np.round(scores, 6))
    assert ((scores >= 0) & (scores <= 2)).all()
    assert len(set(scores)) == len(TEXTS)


def test_no_texts(encoder: Encoder, model: ImpScore) -> None:
    """No text, no score."""
    assert implicitness([], encoder, model).shape == (0,)


def test_rounding_stays_in_range(encoder: Encoder) -> None:
    """What single precision carries beyond 0 or 2 is cut off: a stored score never breaks its contract."""
    model = ImpScore(encoder.dim, 8, torch.Generator().manual_seed(3))
    with torch.no_grad():
        model.pragmatic.copy_(model.semantic)
        for transform, expected in ((torch.eye(8), 0.0), (-torch.eye(8), 2.0)):
            model.transform.copy_(transform)
            scores = implicitness(TEXTS, encoder, model)
            assert scores == pytest.approx(expected, abs=2e-6)
            assert ((scores >= 0) & (scores <= 2)).all()


@settings(deadline=None, max_examples=8)
@given(st.lists(st.sampled_from(TEXTS), min_size=1, max_size=10))
def test_order_and_company_do_not_matter(encoder: Encoder, model: ImpScore, texts: list[str]) -> None:
    """A text's score is the same within 1e-6 whatever other texts it is scored with."""
    alone = dict(zip(TEXTS, implicitness(TEXTS, encoder, model), strict=True))
    scores = implicitness(texts, encoder, model)
    assert scores == pytest.approx([alone[text] for text in texts], abs=1.5e-6)  # 1e-6 and the last rounding


def test_model_belongs_to_its_encoder(encoder: Encoder, model: ImpScore) -> None:
    """A model trained on another encoder's revision is refused; on its own it gives the same scores."""
    config = {"encoder": "embedded", "encoder_revision": encoder.revision, "recipe": {"features": 8}}
    same = model_from(dict(model.state_dict()), config, encoder)
    assert np.array_equal(implicitness(TEXTS, encoder, same), implicitness(TEXTS, encoder, model))
    with pytest.raises(BadInput, match=f"trained on encoder other at {'f' * 12}, not on embedded at"):
        model_from(dict(model.state_dict()), config | {"encoder": "other", "encoder_revision": "f" * 40}, encoder)


def test_signature(encoder: Encoder) -> None:
    """A score says metric, model, encoder, precision, language and version; Chinese is marked an extension (X-07)."""
    rows = (
        pl.DataFrame({"lang": ["en", "zh", "und"]})
        .select(signature.implicitness(MODEL_ID, encoder.name, encoder.revision, encoder.precision))
        .to_series()
        .to_list()
    )
    stem = f"implicitness|model:0123456789ab|encoder:embedded@{encoder.revision[:12]}|float32|lang:"
    assert re.fullmatch("[0-9a-f]{12}", encoder.revision[:12])
    assert rows == [f"{stem}{lang}|undertone:{__version__}" for lang in ("en", "zh(extension)", "und(extension)")]
