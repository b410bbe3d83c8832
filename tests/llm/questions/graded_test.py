"""Reading graded groups from answers, and refusing sets whose surface gives the level away."""

import json
import unicodedata

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline import sample
from pipeline.examples.impscore import groups
from pipeline.llm.questions import graded
from pipeline.metrics.impscore.studies import kendall_tau

FIVE = ["Make me some tea.", "Some tea would help.", "Is the kettle warm?", "My hands are cold.", "What a wind today."]
ZH = ["给我泡杯茶。", "有杯茶就好了。", "水壶还热着吗？", "我的手好冷。", "今天风真大。"]


def answer(sentences: object, **more: object) -> str:
    """An answer as the prompt wants it."""
    return json.dumps({"intent": "Make me tea.", "sentences": sentences} | more, ensure_ascii=False)


@pytest.mark.parametrize(
    "text",
    [
        answer(FIVE), f"```json\n{answer(FIVE)}\n```",
        f"Here is the group {{as asked}}:\n{answer(FIVE)}\nI hope this helps {{}}!",
        f'<think>{{"sentences": ["No."]}} is too short, so {answer(ZH)}?</think>{answer(FIVE)}',
        f'Say {{"sentences": []}}?</think>{answer(FIVE)}', answer([f" {s}\n" for s in FIVE]), answer(FIVE, note="x"),
        json.dumps({"sentences": FIVE}, indent=2),
    ],
)  # fmt: skip
def test_groups_are_read(text: str) -> None:
    """The object is found whatever stands around it, and its sentences are stripped."""
    assert graded.parse(text, "en") == (FIVE, None)


def test_emoji_and_chinese_are_read() -> None:
    """A pair of surrogates is one character, what joins emoji is kept; the same holds for Chinese (X-07)."""
    windy = [*FIVE[:4], "What a wind today \U0001f32c and \U0001f469\u200d\U0001f33e."]
    assert graded.parse(json.dumps({"sentences": windy}, ensure_ascii=True), "en") == (windy, None)
    assert graded.parse(answer(ZH), "zh") == (ZH, None)


@pytest.mark.parametrize(
    ("text", "lang", "reason"),
    [
        ("", "en", "malformed"), ("I cannot help with that.", "en", "malformed"),
        (answer(FIVE)[:-1], "en", "malformed"), (json.dumps(FIVE), "en", "malformed"),
        ('{"intent": "x"}', "en", "malformed"), (answer("Make me some tea."), "en", "malformed"),
        (answer([*FIVE[:4], 5]), "en", "malformed"), (answer([*FIVE[:4], " "]), "en", "malformed"),
        ("{" * 100_000, "en", "malformed"), (f'{{"n": {"9" * 5000}}}', "en", "malformed"),
        (f"<think>{answer(FIVE)}", "en", "malformed"),
        (answer([*FIVE[:4], "What a wind\x00 today."]), "en", "malformed"),
        (answer([*FIVE[:4], "What a wind\x85today."]), "en", "malformed"),
        (json.dumps({"sentences": [*FIVE[:4], "What a wind today \ud83d"]}), "en", "malformed"),
        (json.dumps({"sentences": [*ZH[:4], "今天\udf2c风真大。"]}), "zh", "malformed"),
        (answer([]), "en", "wrong_count"), (answer(FIVE[:4]), "en", "wrong_count"),
        (answer([*FIVE, "One more."]), "en", "wrong_count"),
        (answer([*FIVE[:4], "make me some TEA. "]), "en", "repeated"), (answer(ZH), "en", "other_language"),
        (answer([*FIVE[:4], ZH[4]]), "en", "other_language"), (answer(FIVE), "zh", "other_language"),
        (answer([*ZH[:4], FIVE[4]]), "zh", "other_language"),
    ],
)  # fmt: skip
def test_answers_that_are_no_group(text: str, lang: str, reason: str) -> None:
    """What is no object with five different sentences in the language is left out with its reason."""
    assert graded.parse(text, lang) == (None, reason)


ANY = st.text(st.characters())  # halves of surrogate pairs too


@given(
    st.one_of(ANY, st.lists(ANY, min_size=5, max_size=5).map(lambda sentences: json.dumps({"sentences": sentences}))),
    st.sampled_from(["en", "zh"]),
)
def test_parse_gives_five_or_a_reason(text: str, lang: str) -> None:
    """Any answer at all becomes five different stripped sentences that a table can hold, or one of four reasons."""
    parsed = graded.parse(text, lang)
    if parsed.sentences is None:
        assert parsed.reason in {"malformed", "wrong_count", "repeated", "other_language"}
    else:
        assert parsed.reason is None
        assert len(set(parsed.sentences)) == 5
        assert all(s and s == s.strip() for s in parsed.sentences)
        assert not {"Cc", "Cs"} & {unicodedata.category(c) for s in parsed.sentences for c in s}


def draw(count: int, *, longer: float = 0, asks: tuple[int, ...] = (), seed: int = 1) -> pl.DataFrame:
    """Groups of five random texts, longer by level, with a question mark at the end of some levels."""
    rng = np.random.default_rng(seed)
    rows = [
        (f"g{g}", level, "b" * int(rng.integers(30, 50) + longer * level) + ("?" if level in asks else "."))
        for g in range(count)
        for level in range(1, 6)
    ]
    return pl.DataFrame(rows, schema={"group": pl.String, "level": pl.Int64, "text": pl.String}, orient="row")


def list_failed(rows: pl.DataFrame) -> list[str]:
    return graded.balance(rows).filter(~pl.col("holds"))["check"].to_list()


@pytest.mark.parametrize("count", [1, 5, 40, 300])
def test_random_groups_are_balanced(count: int) -> None:
    """Texts whose length does not go with the level pass, in small sets as in large ones."""
    assert [names for seed in range(20) if (names := list_failed(draw(count, seed=seed)))] == []


def test_a_surface_that_tells_is_refused() -> None:
    """Levels that grow longer, or one with a mark alone, are refused; marks on all tell nothing."""
    assert list_failed(draw(100, longer=8)) == ["tau of length and level", "longest by shortest level"]
    assert list_failed(draw(100, longer=-4))[0] == "tau of length and level"
    assert list_failed(draw(100, asks=(5,))) == ["difference of question shares"]
    assert list_failed(draw(100, asks=(1, 2, 3, 4, 5))) == []


def read_share(text: str, cue: str) -> float:
    """How the shares of a text and of one without a cue differ."""
    rows = pl.DataFrame({"group": ["g", "g"], "level": [1, 2], "text": [text, "bbb"]})
    return graded.balance(rows).filter(check=f"difference of {cue} shares")["value"].item()


@pytest.mark.parametrize(
    ("cue", "text"),
    [
        ("question", "是吗？"), ("exclamation", "Oh!"), ("ellipsis", "Well..."), ("ellipsis", "唉…"),
        ("negation", "I don’t"), ("negation", "Not now"), ("negation", "没有"), ("first_person", "Tell ME"),
        ("first_person", "我们"), ("second_person", "your turn"), ("second_person", "您好"),
    ],
)  # fmt: skip
def test_cues(cue: str, text: str) -> None:
    """Each cue is found in English and in Chinese."""
    assert read_share(text, cue) == 1


@pytest.mark.parametrize("text", ["know nowhere", "meat myth", "young", "Mine-shaft? I"])
def test_words_that_hold_a_cue_are_not_it(text: str) -> None:
    """Cues are whole words."""
    assert (read_share(text, "negation"), read_share(text, "second_person")) == (0, 0)


def test_levels_by_hand() -> None:
    """The mean tau of the groups, ties neither way, and the longest level by the shortest: 2 characters by 1.5."""
    rows = pl.DataFrame(
        {"group": ["a"] * 3 + ["b"] * 3, "level": [1, 2, 3] * 2, "text": ["a", "bb", "bb", "ccc", "c", "cc"]}
    )
    values = graded.balance(rows)["value"]
    tau = (kendall_tau([1, 2, 3], [1, 2, 2]) + kendall_tau([1, 2, 3], [3, 1, 2])) / 2
    assert values[0] == pytest.approx(abs(tau)) == pytest.approx((2 / 3 - 1 / 3) / 2)
    assert values[1] == pytest.approx(2.0 / 1.5)
    assert graded.balance(rows.reverse())["value"].to_list() == pytest.approx(values.to_list())


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_shipped_groups_pass(lang: str) -> None:
    """What is asked of a model's groups holds for those that are shipped."""
    assert list_failed(groups.read(sample.GROUPS[lang])) == []
