"""Words of a text: codes whole, jieba's own cuts on Chinese, and a name and version on what was made."""

import hashlib
import re
from importlib.metadata import version
from pathlib import Path

import jieba
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.errors import BadInput, Missing
from pipeline.text import segment
from pipeline.text.segment import CODE, count_disagreements, load_tokenizer, load_tokenizers, split_words, tokenize

SENTENCES = ["蛋挞又瘦了一圈", "我们小区的门禁认识所有人就是不认识我", "外婆的收音机修好了", "他说的确实在理"]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("好[doge]", ["好", "[doge]"]), ("[doge][doge]", ["[doge]", "[doge]"]), ("见[URL]吧", ["见", "[URL]", "吧"]),
        ("[脱单doge] 真 好\n", ["[脱单doge]", "真", "好"]), ("[]", ["[", "]"]), ("", []), (" \u3000\n", []),
    ],
)  # fmt: skip
def test_codes_stay_whole_and_blanks_go(text: str, wanted: list[str]) -> None:
    """Emoji codes and typed tokens carry tone and are one token each; blanks are none."""
    assert split_words(text, load_tokenizer("jieba").cut) == wanted


@pytest.mark.parametrize("text", SENTENCES)
def test_chinese_is_cut_as_jieba_cuts_it(text: str) -> None:
    """On pure Chinese our tokens are those of jieba.lcut, dictionary and HMM as they come."""
    assert split_words(text, load_tokenizer("jieba").cut) == jieba.lcut(text)


@settings(max_examples=50, deadline=None)
@given(st.text(st.sampled_from("今天的蛋挞又小了一圈门禁不认我外婆收音机说好话" + "a1 [doge]，！"), max_size=30))
def test_nothing_but_blanks_is_lost(text: str) -> None:
    """Tokens put together are the text without its blanks; no token is blank."""
    found = split_words(text, load_tokenizer("jieba").cut)
    assert "".join(found) == re.sub(r"\s", "", text)
    assert all(token.strip() for token in found)
    assert [t for t in found if CODE.fullmatch(t)] == CODE.findall(text)


def test_signatures() -> None:
    """A tokenizer says its name, version and dictionary: the hash is computed here from jieba's own file."""
    digest = hashlib.sha256((Path(jieba.__file__).parent / "dict.txt").read_bytes()).hexdigest()[:12]
    assert load_tokenizer("jieba")[:3] == ("jieba", version("jieba"), f"{digest}/hmm")
    assert load_tokenizer("nltk")[:3] == ("nltk", version("nltk"), "tweet")


def test_which_language_goes_where() -> None:
    """English and Korean go to nltk's TweetTokenizer, which keeps contractions and smileys, others to jieba."""
    names = {language: one.name for language, one in load_tokenizers().items()}
    assert names == {"zh": "jieba", "ja": "jieba", "und": "jieba", "en": "nltk", "ko": "nltk"}
    wanted = ["I", "can't", "even", ":)", "#sorry", "[doge]", "!", "!", "!"]
    assert split_words("I can't even :) #sorry [doge]!!!", load_tokenizer("nltk").cut) == wanted


def test_a_frame_of_texts() -> None:
    """Each row is cut by the tokenizer of its language, which is written beside the tokens."""
    rows = [("h1", "外婆的收音机[doge]", "zh"), ("h2", "don't [URL]", "en"), ("h3", "2333", "und")]
    found = tokenize(pl.DataFrame(rows, schema=["text_hash", "text", "lang"], orient="row"), load_tokenizers())
    assert found.columns == ["text_hash", "tokens", "tokenizer", "tokenizer_version", "dictionary_hash"]
    assert found.select("text_hash", "tokens", "tokenizer").rows() == [
        ("h1", [*jieba.lcut("外婆的收音机"), "[doge]"], "jieba"),
        ("h2", ["don't", "[URL]"], "nltk"),
        ("h3", ["2333"], "jieba"),
    ]
    empty = tokenize(pl.DataFrame(schema=["text_hash", "text", "lang"]), load_tokenizers())
    assert empty.schema == found.schema


def test_the_rust_twin() -> None:
    """The twin cuts these as jieba does, signs with its own name, and where the two differ both cuts are shown."""
    pytest.importorskip("rjieba")
    assert load_tokenizer("rjieba")[:3] == ("rjieba", version("rjieba"), "built-in/hmm")
    assert count_disagreements(SENTENCES) == (0, [])


def test_disagreement_is_counted_and_ten_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The count is of all texts that are cut otherwise; ten of them are given with both cuts."""
    cuts = {"jieba": list, "rjieba": lambda text: [text]}
    monkeypatch.setattr(segment, "load_tokenizer", lambda name: segment.Tokenizer(name, "1", "x", cuts[name]))
    count, shown = count_disagreements(["甲", *["乙丙"] * 12])
    assert (count, shown) == (12, [("乙丙", ["乙", "丙"], ["乙丙"])] * 10)


def test_what_is_missing_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An absent package and absent models are Missing, with the way to get them; an unknown name is BadInput."""
    monkeypatch.setitem(__import__("sys").modules, "rjieba", None)
    with pytest.raises(Missing, match=r"pip install 'undertone-text\[fast\]'"):
        segment._load_rjieba()
    with pytest.raises(BadInput, match="no tokenizer 'moses'; there are jieba, rjieba, nltk, stanza"):
        load_tokenizer("moses")
