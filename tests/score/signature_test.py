"""Signatures, and which head a language is scored by."""

import polars as pl
import pytest

from pipeline import __version__
from pipeline.errors import BadInput
from pipeline.score import signature

MODEL_ID = "0123456789abcdef" * 4
REVISION = "fedcba9876543210" * 4


@pytest.mark.parametrize(("lang", "scope"), [("en", "en"), ("zh", "zh(extension)"), ("und", "und(extension)")])
def test_signature(lang: str, scope: str) -> None:
    """A score says metric, model, encoder, precision, language and version; any but English is an extension (X-07)."""
    assert signature.implicitness(MODEL_ID, "embedded", REVISION, "float32", lang) == (
        f"implicitness|model:0123456789ab|encoder:embedded@fedcba987654|float32|lang:{scope}|undertone:{__version__}"
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [("/data/e5", "e5"), (f"intfloat/e5@{'0' * 40}", "intfloat/e5"), ("embedded", "embedded"), (None, "none")],
)
def test_no_path_is_in_a_signature(name: str | None, expected: str) -> None:
    """An encoder is its name and hash, whatever folder it was in when the model was trained."""
    expected = expected if name is None else f"{expected}@fedcba987654"
    text = signature.with_encoder("quality", MODEL_ID, {"encoder": name, "encoder_revision": REVISION}, "none")
    assert text == f"quality|model:0123456789ab|encoder:{expected}|undertone:{__version__}"


@pytest.mark.parametrize(
    ("lang", "names", "expected"),
    [
        ("zh", ["en", "zh"], "zh"),
        ("en", ["zh", "en"], "en"),
        ("und", ["zh", "en"], "en"),  # nobody's language: the English head
        ("ja", ["any"], "any"),
        ("en", ["any"], "any"),
        ("ja", ["en", "any"], "any"),  # one for any goes before the English one
        ("en", ["zh"], "zh"),  # the only one there is
    ],
)
def test_head_of_a_language(lang: str, names: list[str], expected: str) -> None:
    """A language is scored by its own head, else by the one for any, else by the English one, else by the first."""
    assert signature.choose_head(lang, names) == expected


@pytest.mark.parametrize(
    ("columns", "is_refused"),
    [
        ({"upvotes": [3]}, True),  # the user's own counts
        ({"upvotes": [3], "signature": ["quality|model:0"]}, True),  # beside a score of another metric
        ({"signature": ["quality|model:0"]}, True),
        ({"upvotes": [0.5], "signature": ["upvotes|model:0"]}, False),  # scored before
        ({"upvotes": [None], "signature": [None]}, False),
        ({"upvotes": [""], "signature": [""]}, False),  # of a row without a text, read from csv
        ({}, False),
    ],
)
def test_own_columns_are_not_replaced(columns: dict[str, list[object]], *, is_refused: bool) -> None:
    """Scores replace those of an earlier scoring by the same metric; a column of another origin is refused by name."""
    rows = pl.DataFrame({"text": ["a"], **columns})
    if is_refused:
        with pytest.raises(BadInput, match=r"column '(upvotes|signature)': .* rename yours"):
            signature.drop_earlier_scores(rows, "upvotes", ("upvotes", "signature"))
    else:
        assert signature.drop_earlier_scores(rows, "upvotes", ("upvotes", "signature")).columns == ["text"]
