"""Cleaning: what goes, what stays, why a comment is dropped."""

import hashlib
import unicodedata
from collections import Counter

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.collect.clean import MAX_CHARACTERS, clean, normalise
from pipeline.collect.sites.record import COMMENT_SCHEMA, Comment, build_frame

FAMILY = "👨‍👩‍👧"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("cafe\u0301", "café"), ("한", "한"),
        ("a\u200b\u0301", "á"),  # the accent meets its letter once the blank between them is out
        ("隐\u200b形\ufeff字\u2060符\u00ad", "隐形字符"), ("反\u202e过来\u202c", "反过来"),
        ("\u2067左\u2069\u200e右\u200f", "左右"), ("响\x07铃\x00", "响铃"),
        ("क्\u200cष 13\u200c8 a\u200cb", "क्\u200cष 138 ab"), ("第１２３名Ａｐｐ", "第123名App"),
        ("A&amp;B &lt;3 &#128054;", "A&B <3 🐶"), ("&amp;amp;lt;", "<"), ("&#8203;空", "空"),
        ("  一 \t二\n\n三\u3000四\xa0", "一 二 三 四"),
        *((text, text) for text in (None, "AT&T", "Sooooo GOOD", "哈哈哈哈哈哈[doge][doge]!!!!!", "①②㎡", "後裡乾著")),
        *((text, text) for text in ("می\u200cخواهم", f"一家{FAMILY}", "❤️", "好，真好！（笑）：“对”…～")),
    ],
)  # fmt: skip
def test_normalising(text: str | None, wanted: str | None) -> None:
    """What carries tone stays: full-width punctuation, emoji, codes, repetition, case, script; what is unseen goes."""
    assert normalise(pl.Series("text", [text], dtype=pl.String)).to_list() == [wanted]


CHARACTERS = "a1é\u0301Ａ１，！（&;#lgtamp@＠.:回复一 \n\u3000\u200b\u200d\ufeff\u202e👨👩[]"


@settings(deadline=None)
@given(st.lists(st.text(st.sampled_from(CHARACTERS), max_size=20) | st.text(max_size=20), max_size=4))
def test_cleaning_twice_changes_nothing_more(texts: list[str]) -> None:
    """A cleaned text is clean, in NFC, without blank ends; the input is not touched."""
    column = pl.Series("text", texts, dtype=pl.String)
    once = normalise(column)
    assert column.to_list() == texts
    assert normalise(once).to_list() == once.to_list()
    for text in once:
        assert text == text.strip()
        assert unicodedata.is_normalized("NFC", text)


def frame(*texts: str, context: str | None = None) -> pl.DataFrame:
    """Comments with these texts."""
    rows = enumerate(texts)
    made = [Comment(thread_id="t", comment_id=str(i), text=x, context=context, row_key=f"r{i}") for i, x in rows]
    return build_frame(made, COMMENT_SCHEMA)


def test_reasons() -> None:
    """Empty, only tokens and too long are the reasons to drop; every row is kept or dropped once."""
    long = "长" * (MAX_CHARACTERS + 1)
    kept, dropped = clean(frame("好", "", " \u200b\n", "13812345678 @甲", long, "[doge]", "长" * MAX_CHARACTERS))
    assert kept["row_key"].to_list() == ["r0", "r5", "r6"]
    assert dropped.rows() == [("empty", "r1"), ("empty", "r2"), ("only_placeholders", "r3"), ("too_long", "r4")]


def test_columns_added() -> None:
    """The language and a 128-bit BLAKE2 of the cleaned text are added; the context is cleaned too, and counted."""
    counts = Counter[str]()
    kept, _ = clean(frame("今天真１冷", "what a day", context="打13812345678"), counts)
    assert kept["lang"].to_list() == ["zh", "en"]
    assert kept["text_hash"][0] == hashlib.blake2b("今天真1冷".encode(), digest_size=16).hexdigest()
    assert kept["context"].to_list() == ["打[PHONE]"] * 2
    assert counts == {"PHONE": 2}
