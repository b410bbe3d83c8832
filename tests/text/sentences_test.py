"""Texts as sentences of words, and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.text.sentences import Sentence, join_words, split_sentences

TEXT = st.text(alphabet="ab 。！.?你好\n\"'", max_size=20)


@given(TEXT, st.sampled_from(["en", "zh", "und"]))
def test_nothing_but_blanks_is_left_out(text: str, lang: str) -> None:
    """The words of all sentences together are the text without its blanks, and none is empty."""
    found = split_sentences(text, lang)
    assert "".join(word for each in found for word in each.words) == "".join(text.split())
    assert all(each.words and len(each.words) == len(each.blanks) for each in found)


@pytest.mark.parametrize(
    ("lang", "text", "expected"),
    [
        ("zh", "他没来。你说呢？", ["他没来。", "你说呢？"]), ("zh", "“真的吗？”她问。", ["“真的吗？”", "她问。"]),
        ("en", "Mr. Ng didn't call. Fine!", ["Mr. Ng didn't call.", "Fine!"]), ("zh", "一行\n两行", ["一行", "两行"]),
        ("und", "שלום עולם היום", ["שלום עולם היום"]),
    ],
)  # fmt: skip
def test_a_sentence_is_written_as_it_stood(lang: str, text: str, expected: list[str]) -> None:
    """With all its words, marks stand where they stood and English words apart."""
    assert [join_words(each, [True] * len(each.words)) for each in split_sentences(text, lang)] == expected


def test_words_that_are_kept_are_written_with_the_blanks_between_them() -> None:
    """A comma keeps to the word before it, and a word that follows what was dropped stands apart."""
    sentence = split_sentences("The shop, which opened in May, is shut.", "en")[0]
    kept = [word not in {"which", "opened", "in", "May"} for word in sentence.words]
    assert join_words(sentence, kept) == "The shop,, is shut."
    assert join_words(Sentence(["今天", "很", "冷"], [False] * 3), [True, False, True]) == "今天冷"
    assert join_words(sentence, [False] * len(kept)) == ""
