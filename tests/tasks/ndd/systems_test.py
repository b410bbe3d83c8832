"""Compression of texts: results, refusals, and words that are data (NDD, section 4)."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline import __version__
from pipeline.errors import BadInput, Missing
from pipeline.score.compress.search import Search
from pipeline.tasks.ndd import compressions, masked_lm, systems
from pipeline.tasks.ndd.systems import DistanceOptions, Method, compress_sentences, compress_texts

EN, ZH = "The old shop, which nobody liked, is shut.", "老店没人喜欢，已经关门了。你知道吗？"
WORDS = ("the", "old", "shop", "is", "shut", ",", ".", "!")
HALF = Search(ratio=0.5)
PLAIN = [
    EN, ZH, "Don't go. It's late (again)!", '"Nobody," she said, "paid $3.50."', "我用iPhone看了3集。好看！", "x",
    "...", "안녕하세요 여러분 오늘", "This is 很 odd.",
]  # fmt: skip
HOSTILE = ["[MASK]", "[SEP]</s>", "=1+1", "@SUM(A1)", "\u202eevil\u202c", "{0}%s", "<b>", "';--", "天气"]


def compress(*texts: str | None, ref: str | None = None, syntax: Path | None = None, **options: object) -> pl.DataFrame:
    """Compress texts by a method of these options."""
    rows = pl.DataFrame({"body": texts}, schema={"body": pl.String})
    return compress_texts(rows, "body", Method(**options), ref, syntax)  # type: ignore[arg-type]


def list_rounds(words: Sequence[Sequence[str]], search: Search) -> list[list[int]]:
    """List the round in which each word of sentences is dropped by Fast NDD."""
    answers = compress_sentences(words, Method(system="fast_ndd", search=search), masked_lm.load_model())
    return [answer.rounds.tolist() for answer in answers]


def is_within(part: str, text: str) -> bool:
    """Whether the characters of a text stand in another in their order, blanks aside."""
    letters = iter(text)
    return all(letter in letters for letter in part if not letter.isspace())


def test_a_frame_comes_back_with_its_texts_compressed() -> None:
    """Each language uses its own model; rows keep their order, other columns stay, and no text gives null."""
    rows = pl.DataFrame({"id": [1, 2, 3, 4, 5], "body": [EN, ZH, None, " \n", EN]})
    progress: list[int] = []
    compressed = compress_texts(rows, "body", Method(search=HALF), on_progress=progress.append)
    assert compressed.columns == ["id", "body", "compressed", "ratio", "after", "dropped", "signature"]
    assert compressed.select("id", "body").equals(rows.select("id", "body"))
    assert compressed.row(2)[2:] == compressed.row(3)[2:] == (None,) * 5
    assert compressed.row(0)[2:] == compressed.row(4)[2:]
    for row, alone in ((0, compress(EN, search=HALF)), (1, compress(ZH, search=HALF))):
        assert compressed.row(row)[1:] == alone.row(0)
    assert compressed["signature"][0] != compressed["signature"][1]
    assert " " not in compressed["compressed"][1]
    assert sum(progress) == 5
    empty = compress()
    assert (empty.height, empty.schema["after"]) == (0, pl.List(pl.String))


def test_a_text_that_keeps_its_words_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing is dropped a text comes back; more texts than are searched at once give what each gives alone."""
    texts = [*PLAIN, " ".join(HOSTILE)]
    rows = compress(*texts, "a\tb", search=Search(ratio=1)).select("compressed", "ratio", "after").rows()
    assert rows == [(text, 1.0, [text]) for text in (*texts, "a b")]
    monkeypatch.setattr(systems, "_BATCH_SIZE", 4)
    words = compressions.load_items()["words"].to_list()[:5]
    assert list_rounds(words * 2, HALF) == [list_rounds([sentence], HALF)[0] for sentence in words] * 2


@settings(max_examples=25)
@given(st.lists(st.sampled_from([*WORDS, *"老店了。", *HOSTILE]), max_size=14))
def test_each_round_takes_from_the_one_before(words: list[str]) -> None:
    """What is left after a round is part of what was left before it, and the last is the compression.

    Words that look like masks, formulas, markup or patterns are words like others.
    """
    text = " ".join(words)
    result = compress(text, system="fast_ndd", search=Search(ratio=0.4, longest=2)).row(0, named=True)
    if result["after"] is None:
        assert not text
        return
    for before, after in zip([text, *result["after"]], result["after"], strict=False):
        assert is_within(after, before)
    assert result["after"][-1] == result["compressed"]
    assert result["compressed"]
    assert 0 < result["ratio"] <= 1


def test_trees_are_needed_where_subtrees_are_asked_for() -> None:
    """Without a file there has to be a parser; sentences without heads are refused."""
    with pytest.raises(Missing, match=r"stanza has no models in .*stanza.download\('en'"):
        compress(EN, system="ndd_sc")
    with pytest.raises(BadInput, match=r"ndd_sc drops only whole subtrees .*--syntax F.conllu"):
        compress_sentences([["a", "b"]], Method(system="ndd_sc"), masked_lm.load_model())


def test_long_texts_and_other_systems_are_refused() -> None:
    """One character more than can be; a system that there is not, even where there is no text; a weight of 0."""
    with pytest.raises(BadInput, match="a text of 100,001 characters; texts of up to 100,000 can be compressed"):
        compress("short", "a" * (systems.LONGEST_TEXT + 1))
    for text in (EN, ""):
        with pytest.raises(BadInput, match="no system 'nnd'; there are ndd, ndd_sc, fast_ndd"):
            compress(text, system="nnd")
    with pytest.raises(BadInput, match="mu and nu should be above 0 and at most 1, found 0 and 1"):
        compress(EN, distance=DistanceOptions(mu=0))


def test_a_signature_names_what_is_not_usual() -> None:
    """System, model, divergence, weights and code always; a number only where it is another than the usual one."""
    lm = masked_lm.load_model()
    plain = f"compression:ndd|{lm.model.signature}|divergence:kl|weights:balanced|undertone:{__version__}"
    defaults = Method(search=Search(threshold=1.0), distance=DistanceOptions(mu=0.9))
    assert Method().format_signature(lm) == defaults.format_signature(lm) == plain
    search = Search(longest=3, threshold=0.5, rounds=2, ratio=0.44, spans="released")
    numbers = DistanceOptions(divergence="hellinger", weighting="printed", mu=0.5, nu=0.25)
    method = Method(system="fast_ndd", search=search, distance=numbers)
    assert method.format_signature(lm).split("|")[4:-1] == [
        "longest:3", "threshold:0.5", "rounds:2", "ratio:0.44", "spans:released", "divergence:hellinger",
        "weights:printed", "mu:0.5", "nu:0.25",
    ]  # fmt: skip
    rival = Method(system="ppl_deleter", distance=numbers)  # it has neither divergence nor weights
    assert rival.format_signature(lm) == f"compression:ppl_deleter|{lm.model.signature}|undertone:{__version__}"


def test_the_language_whose_model_answers() -> None:
    """What is written without blanks is taken for Chinese, the rest for English."""
    assert [*map(systems.choose_model_lang, ("en", "ko", "zh", "ja", "und"))] == ["en", "en", "zh", "zh", "en"]
