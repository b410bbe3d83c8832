"""Compression of texts and files: what comes back, what is refused, and that words are data (NDD, section 4)."""

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline import __version__, sample
from pipeline.errors import BadInput, Missing
from pipeline.score.compress.search import Search
from pipeline.tasks.ndd import compressions, masked_lm, systems
from pipeline.tasks.ndd.systems import SYSTEMS, Numbers, compressed, known, signature, texts
from pipeline.text import trees

EN, ZH = "The old shop, which nobody liked, is shut.", "老店没人喜欢，已经关门了。你知道吗？"
WORDS = ("the", "old", "shop", "is", "shut", ",", ".", "!")
HALF = Search(ratio=0.5)
FAST = "fast_ndd"
PLAIN = [
    EN, ZH, "Don't go. It's late (again)!", '"Nobody," she said, "paid $3.50."', "我用iPhone看了3集。好看！", "x",
    "...", "안녕하세요 여러분 오늘", "This is 很 odd.",
]  # fmt: skip
HOSTILE = ["[MASK]", "[SEP]</s>", "=1+1", "@SUM(A1)", "\u202eevil\u202c", "{0}%s", "<b>", "';--", "天气"]


def made(*said: str | None, **options: object) -> pl.DataFrame:
    """What texts became."""
    return texts(pl.DataFrame({"body": said}, schema={"body": pl.String}), "body", **options)  # type: ignore[arg-type]


def is_within(part: str, whole: str) -> bool:
    """Whether the characters of a text stand in another in their order, blanks aside."""
    left = iter(whole)
    return all(letter in left for letter in part if not letter.isspace())


def test_a_frame_comes_back_with_its_texts_compressed() -> None:
    """Each language by its own model, rows in their order, null where there is no text; other columns stay."""
    rows = pl.DataFrame({"id": [1, 2, 3, 4, 5], "body": [EN, ZH, None, " \n", EN], "ratio": ["old"] * 5})
    told: list[int] = []
    found = texts(rows, "body", search=HALF, done=told.append)
    assert found.columns == ["id", "body", "compressed", "ratio", "after", "signature"]
    assert found.select("id", "body").equals(rows.select("id", "body"))
    assert found.row(2)[2:] == found.row(3)[2:] == (None, None, None, None)
    assert found.row(0)[2:] == found.row(4)[2:]
    for row, alone in ((0, made(EN, search=HALF)), (1, made(ZH, search=HALF))):
        assert found.row(row)[1:] == alone.row(0)
    assert found["signature"][0] != found["signature"][1]
    assert " " not in found["compressed"][1]
    assert sum(told) == 5
    none = made()
    assert (none.height, none.schema["after"]) == (0, pl.List(pl.String))


@pytest.mark.parametrize("text", PLAIN)
def test_a_text_that_keeps_its_words_comes_back(text: str) -> None:
    """Blanks and marks stand as they did where nothing is dropped."""
    assert made(text, search=Search(ratio=1)).row(0)[1:4] == (text, 1.0, [text])


@settings(max_examples=25)
@given(st.lists(st.sampled_from([*WORDS, *"老店了。", *HOSTILE]), max_size=14))
def test_each_round_takes_from_the_one_before(words: list[str]) -> None:
    """What is left after a round is part of what was left before it, and the last is the compression.

    Words that look like masks, formulas, markup or patterns are words like others.
    """
    text = " ".join(words)
    found = made(text, system=FAST, search=Search(ratio=0.4, longest=2)).row(0, named=True)
    if found["after"] is None:
        assert not text
        return
    for before, after in zip([text, *found["after"]], found["after"], strict=False):
        assert is_within(after, before)
    assert found["after"][-1] == found["compressed"]
    assert found["compressed"]
    assert 0 < found["ratio"] <= 1


def test_hostile_words_go_as_data() -> None:
    """With all of it kept each of them is there as it was; a tab is a blank between words."""
    text = " ".join(HOSTILE)
    assert made(text, search=Search(ratio=1))["compressed"].item() == text
    assert made("a\tb", search=Search(ratio=1))["compressed"].item() == "a b"


@pytest.mark.parametrize("ratio", [0.3, 0.7])
def test_a_ratio_is_kept_over_many_sentences(ratio: float) -> None:
    """Sentences keep whole words; over forty of the sample the share is within two points of what was asked."""
    words = compressions.items()["words"].to_list()[:40]
    found = compressed(words, FAST, masked_lm.opened(), Search(ratio=ratio))
    assert [len(each.is_kept) for each in found] == [*map(len, words)]
    assert sum(int(each.is_kept.sum()) for each in found) / sum(map(len, words)) == pytest.approx(ratio, abs=0.02)


def test_sentences_are_compressed_alike_in_any_company() -> None:
    """More than are searched at once give what each gives alone."""
    words = (compressions.items()["words"].to_list()[:5] * 14)[:66]
    found = compressed(words, FAST, masked_lm.opened(), HALF)
    alone = [compressed([each], FAST, masked_lm.opened(), HALF)[0].rounds.tolist() for each in words[:5]]
    assert [each.rounds.tolist() for each in found] == (alone * 14)[:66]


def test_with_trees_only_subtrees_go() -> None:
    """Each span is a word with all that was left below it before its round (NDD-21)."""
    some = [*trees.read(sample.TREES)][:6]
    found = compressed(
        [tree.words for tree in some], "fast_ndd_sc", masked_lm.opened(), HALF, heads=[tree.heads for tree in some]
    )
    for tree, each in zip(some, found, strict=True):
        heads, number = list(tree.heads), 0
        assert each.spans
        for number in range(1, max(each.rounds) + 1):
            spans = [(start, end) for when, start, end in each.spans if when == number]
            assert {*spans} <= {(start, end) for start, end in trees.find_subtrees(heads).tolist()}
            stays = [not any(start <= at < end for start, end in spans) for at in range(len(heads))]
            heads = trees.drop_words(heads, stays).tolist()
        assert len(heads) == each.is_kept.sum()


def test_texts_with_a_file_of_trees() -> None:
    """Sentences find their trees by their words; one without is named with the file."""
    said = [tree.text for tree in trees.read(sample.TREES)][:2]
    found = made(" ".join(said), system="ndd_sc", search=HALF, syntax=sample.TREES)
    assert 0 < found["ratio"].item() < 1
    assert found["signature"].item().startswith("compression:ndd_sc|count:")
    with pytest.raises(BadInput, match=r"trees.conllu: no tree of the words 'No such sentence \.'"):
        made(said[0], "No such sentence.", system="ndd_sc", syntax=sample.TREES)


def test_trees_are_needed_where_subtrees_are_asked_for() -> None:
    """Without a file there has to be a parser; sentences without heads are refused."""
    with pytest.raises(Missing, match=r"stanza has no models in .*stanza.download\('en'"):
        made(EN, system="ndd_sc")
    with pytest.raises(BadInput, match=r"ndd_sc drops whole subtrees alone .*--syntax F.conllu"):
        compressed([["a", "b"]], "ndd_sc", masked_lm.opened())


def test_a_file_lacks_a_tree() -> None:
    """Heads of a file are those of its sentences, and None where it has none."""
    tree = next(trees.read(sample.TREES))
    assert systems.heads([tree.words, ["no", "such"]], "en", sample.TREES) == [tree.heads, None]


def test_long_texts_are_refused() -> None:
    """One character more than can be."""
    with pytest.raises(BadInput, match="a text of 100,001 characters; texts of up to 100,000 can be compressed"):
        made("short", "a" * (systems.LONGEST_TEXT + 1))


def test_systems_by_name() -> None:
    """Five scorers with and without trees; another name is refused with those there are."""
    assert [*SYSTEMS] == [
        "ndd", "ndd_sc", "fast_ndd", "fast_ndd_sc", "ppl_deleter", "ppl_deleter_sc", "cosine", "cosine_sc", "bertscore",
        "bertscore_sc",
    ]  # fmt: skip
    assert known("fast_ndd_sc") == ("fast_ndd", True)
    for text in (EN, ""):
        with pytest.raises(BadInput, match="no system 'nnd'; there are ndd, ndd_sc, fast_ndd"):
            made(text, system="nnd")


@pytest.mark.parametrize("system", ["cosine", "bertscore"])
def test_counts_have_no_states(system: str) -> None:
    """What compares states needs a transformer."""
    with pytest.raises(BadInput, match=f"{system} compares the states of a transformer.*give --model"):
        made(EN, system=system)


@pytest.mark.parametrize(
    ("search", "numbers", "said"),
    [
        (Search(ratio=0), None, "ratio should be above 0 and at most 1, not 0"),
        (Search(ratio=float("nan")), None, "ratio should be above 0 and at most 1, not nan"),
        (Search(threshold=float("inf")), None, "threshold should be a number"),
        (Search(rounds=0), None, "rounds and longest should be at least 1"),
        (None, Numbers(mu=0), "mu and nu should be above 0 and at most 1, found 0 and 1"),
        (None, Numbers(nu=1.5), "mu and nu should be above 0 and at most 1"),
        (None, Numbers(weighting="heavy"), "weights of balanced, exponential, printed, released"),
        (None, Numbers(divergence="l2"), "expected a divergence of hellinger, kl, kl_reversed"),  # type: ignore[arg-type]
    ],
)
def test_numbers_that_are_none(search: Search | None, numbers: Numbers | None, said: str) -> None:
    """Each is refused with what it can be."""
    with pytest.raises(BadInput, match=said):
        made(EN, search=search, numbers=numbers)


def test_numbers_change_what_goes() -> None:
    """No round above the threshold; more rounds take no less; every divergence is its own."""
    assert made(EN, search=Search(threshold=-1))["ratio"].item() == 1
    one, five = (made(EN, search=Search(threshold=4, longest=1, rounds=rounds)).row(0, named=True) for rounds in (1, 5))
    assert five["after"][0] == one["compressed"]
    assert five["ratio"] < one["ratio"]
    assert len({made(EN, numbers=Numbers(divergence=each))["signature"].item() for each in ("kl", "hellinger")}) == 2


def test_a_signature_names_what_is_not_usual() -> None:
    """System, model and code always; a number only where it is another than the usual one."""
    opened = masked_lm.opened()
    plain = f"compression:ndd|{opened.model.signature}|undertone:{__version__}"
    assert signature("ndd", opened) == signature("ndd", opened, Search(threshold=1.0), Numbers(mu=0.9)) == plain
    search = Search(longest=3, threshold=0.5, rounds=2, ratio=0.44, is_released=True)
    numbers = Numbers(divergence="hellinger", weighting="printed", mu=0.5, nu=0.25)
    assert signature("fast_ndd", opened, search, numbers).split("|")[4:-1] == [
        "longest:3", "threshold:0.5", "rounds:2", "ratio:0.44", "is_released:True", "divergence:hellinger",
        "weighting:printed", "mu:0.5", "nu:0.25",
    ]  # fmt: skip


def test_the_language_whose_model_answers() -> None:
    """What is written without blanks is taken for Chinese, the rest for English."""
    assert [*map(systems.spoken, ("en", "ko", "zh", "ja", "und"))] == ["en", "en", "zh", "zh", "en"]


def test_another_model_gives_another_signature(tmp_path: Path) -> None:
    """Counts of a file by its folder, beside those of the sample."""
    masked_lm.count_file([EN, "The old shop is shut."], tmp_path / "counts")
    one, other = (made(EN, ref=ref, search=HALF)["signature"].item() for ref in (None, str(tmp_path / "counts")))
    assert one.split("|")[1] != other.split("|")[1]
    assert other.split("|")[1].startswith("count:")
