"""Language by script."""

import polars as pl
import pytest

from pipeline.text.language import detect_language


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("今天真冷", "zh"), ("what a day", "en"), ("今日はとても寒いですね", "ja"), ("오늘은 춥네요", "ko"),
        ("2333333", "und"), ("♡", "und"), ("[doge]", "und"), ("LOL", "en"), ("这个app真的可以", "zh"),
        ("he said 好 and left the building", "en"), ("https://example.com/some/long/path 好的", "zh"), ("", "und"),
    ],
)  # fmt: skip
def test_language_by_script(text: str, expected: str) -> None:
    """The script that carries more words names the language; under two letters there is none."""
    assert pl.DataFrame({"text": [text]}).select(detect_language()).item() == expected
