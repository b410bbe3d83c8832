"""Wrong options that give nothing away: what they may be, and that nothing is found by any baseline of the audit."""

from collections import Counter
from collections.abc import Sequence
from functools import cache

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.errors import BadInput
from pipeline.examples.recam import balance, choices
from pipeline.examples.recam.targets import Vectors
from pipeline.metrics.recam.audit import audit
from pipeline.text import wordnet
from pipeline.text.wordnet import Pools

LETTERS = "bcdfghklmnprstvz"
FRAMES = (
    "They spoke of @placeholder in the end.",
    "It was @placeholder , said the mayor.",
    "No @placeholder was left.",
)


@pytest.fixture(autouse=True)
def without_wordnet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every word is its own base form, but for plurals of two words."""
    monkeypatch.setattr(wordnet, "lemmatize", lambda word, _: {"hopes": "hope", "fears": "fear"}.get(word, word))
    monkeypatch.setattr(wordnet, "find_pools", find_pools)


def find_pools(word: str) -> Pools:
    """Hope and wish are synonyms, hope and despair antonyms."""
    near = {"hope": {"wish"}, "wish": {"hope"}}.get(word, set())
    return Pools(frozenset(near), frozenset({"despair"} if word == "hope" else ()))


def word(number: int) -> str:
    """A word of our own, the same for the same number, whose letters say nothing of it."""
    number = number * 1237 % 4096
    return "".join(LETTERS[number // 16**i % 16] + "aou"[(number // 7 + i) % 3] for i in range(3))


@cache
def simulated(count: int, seed: int = 1) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Items whose gold words are Zipf-distributed, and readers that name frequent words, each by its own taste."""
    draw = np.random.default_rng(seed)
    share = 1 / (np.arange(1, 3001) + 8)
    gold = draw.choice(3000, count, p=share / share.sum())
    near = draw.choice(200, (count, 4), p=(table := 1 / np.arange(3, 203)) / table.sum())
    asked = [f"The x{a} x{b} @placeholder y{c} y{d} ." for a, b, c, d in near]
    rows = [(f"i{i}", f"Passage {i}.", asked[i], word(int(one)), "NOUN") for i, one in enumerate(gold)]
    named = []
    for _ in range(3):
        keys = np.log(share)[None, :400] + draw.gumbel(size=(count, 400))
        best = np.argsort(-keys, axis=1)[:, :20]
        named.append(
            pl.DataFrame({
                "item_id": np.repeat([row[0] for row in rows], 20), "word": [word(int(one)) for one in best.ravel()],
                "rank": np.tile(np.arange(1, 21), count),
            })
        )  # fmt: skip
    names = ["item_id", "article", "question", "answer", "upos"]
    return pl.DataFrame(rows, schema=names, orient="row"), pl.concat(named)


def small(*answers: str, article: str = "Nothing.", question: str = FRAMES[0]) -> pl.DataFrame:
    """An item of an article of its own for each of these words, three times over; the first may be about another."""
    rows = [(f"i{n:03}", f"{n}", FRAMES[0], answer, "NOUN") for n, answer in enumerate(answers * 3)]
    rows[0] = ("i000", article, question, answers[0], "NOUN")
    return pl.DataFrame(rows, schema=["item_id", "article", "question", "answer", "upos"], orient="row")


OTHERS = tuple(word(n) for n in range(20))
NOBODY = pl.DataFrame(schema={"item_id": pl.String, "word": pl.String, "rank": pl.Int64})


def reasons(items: pl.DataFrame, *words: str) -> dict[str, str | None]:
    """What becomes of words that a reader names for the first item."""
    named = pl.DataFrame({"item_id": "i000", "word": words, "rank": range(1, len(words) + 1)})
    found = balance.choose_balanced(items, named).candidates
    told = found.filter((pl.col("item_id") == "i000") & (pl.col("token_count") > 0))
    return dict(told.select("word", "reason").iter_rows())


def test_what_may_not_stand() -> None:
    """Each word that may not be a wrong option is left out for the first reason that holds."""
    items = small("hope", "wish", "despair", "fear", "fears", *OTHERS, article=f"Fears of {OTHERS[1]}.",
                  question=f"A @placeholder for {OTHERS[2]}.")  # fmt: skip
    told = reasons(items, "hope", "wish", "fear", "fears", *OTHERS[1:3], "nowhere", "Despair")
    assert told == {
        "hope": "gold", "wish": "synonym_of_gold", "fear": "in_passage", "fears": "other_shape",
        OTHERS[1]: "in_passage", OTHERS[2]: "in_question", "nowhere": "no_gold_word", "despair": told["despair"],
    }  # fmt: skip
    assert told["despair"] in {None, "not_drawn"}


def test_antonyms_in_the_passage() -> None:
    """A word whose antonym the passage holds is left out, as gold words are; one that begins otherwise, behind an."""
    items = small("idea", "hope", *OTHERS, article="Despair.", question="It was an @placeholder.")
    assert reasons(items, "hope", OTHERS[0]) == {"hope": "related_in_passage", OTHERS[0]: "other_article"}


def test_neighbours_never_meet() -> None:
    """Two words whose vectors are nearer than 0.85 are in no item together, be one of them gold or not."""
    items, named = simulated(300)
    words = items["answer"].unique().sort().to_list()
    place = dict(zip(words, np.random.default_rng(3).normal(size=(len(words), 30)), strict=True))
    one, other = items["answer"].value_counts(name="n").sort("n", "answer", descending=True)["answer"][:2]

    def vectors(words: Sequence[str]) -> np.ndarray:
        return np.array([place.get(one if name == other else name, np.zeros(30)) for name in words])

    def together(given: Vectors | None) -> int:
        made = balance.choose_balanced(items, named, given).items
        assert made.height > 100
        return sum({one, other} <= set(row) for row in made["options"])

    assert together(None) > 0
    assert together(vectors) == 0


def test_one_item_an_article() -> None:
    """Of items on one article one is kept, as they name each other's gold word; all are accounted for."""
    items = small(*OTHERS).with_columns(article=pl.lit("The same.") + (pl.int_range(pl.len()) // 2).cast(pl.String))
    found = balance.choose_balanced(items, NOBODY)
    assert found.dropped.filter(pl.col("reason") == "same_article").height == 30
    assert sorted([*found.items["item_id"], *found.dropped["row_key"]]) == sorted(items["item_id"])


def test_ids_differ() -> None:
    """Two items with the same id are an error."""
    with pytest.raises(BadInput, match="'i0' more than once"):
        balance.choose_balanced(pl.concat([simulated(9)[0]] * 2), NOBODY)


def test_few() -> None:
    """Items with fewer than eight words to choose from are dropped; of no items nothing is made."""
    found = balance.choose_balanced(small(*OTHERS[:8]), NOBODY)
    assert found.items.is_empty()
    assert "too_few_choices" in set(found.dropped["reason"])
    nothing = balance.choose_balanced(small("hope").clear(), NOBODY)
    assert nothing.items.is_empty()
    assert nothing.dropped.is_empty()


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 1000))
def test_options(seed: int) -> None:
    """Options are five different words, the gold word once; the order of rows is of no account, the seed is."""
    items, named = simulated(150, seed % 3)
    found = balance.choose_balanced(items, named, seed=seed)
    answers = dict(items.select("item_id", "answer").iter_rows())
    for row in found.items.to_dicts():
        assert len(set(row["options"])) == 5
        assert row["options"][row["label"]] == answers[row["item_id"]]
        assert set(row["options"]) <= set(answers.values())
    assert len(found.items) + len(found.dropped) == len(items)
    again = balance.choose_balanced(items.sample(fraction=1, shuffle=True, seed=seed), named.reverse(), seed=seed)
    assert again.items.equals(found.items)
    assert not balance.choose_balanced(items, named, seed=seed + 1).items.equals(found.items)


@cache
def balanced(count: int) -> pl.DataFrame:
    """The simulated items with balanced options."""
    return balance.choose_balanced(*simulated(count)).items


def test_nothing_is_given_away() -> None:
    """No baseline finds more than two points, and two standard errors, above chance; by the paper's rule several do."""
    assert balanced(2000).height > 1500
    far = audit(balanced(2000)).filter(pl.col("gap") > 0.02 + 2 * pl.col("error"))
    assert far.is_empty(), far
    items, named = simulated(2000)
    paper = audit(choices.choose(items, named.filter(pl.col("rank") <= 10)).items)
    leaks = dict(paper.select("baseline", "gap").iter_rows())
    assert min(leaks[name] for name in ("seldom_right", "seldom_offered", "option_only", "question_only")) > 0.15


def test_words_are_right_elsewhere_as_often() -> None:
    """Seen from their items, gold and wrong words are right elsewhere never, up to four times, and oftener alike."""
    rows = balanced(2000).to_dicts()
    right = Counter(row["options"][row["label"]] for row in rows)
    gold = np.array([right[row["options"][row["label"]]] - 1 for row in rows])
    wrong = np.array([right[one] for row in rows for i, one in enumerate(row["options"]) if i != row["label"]])
    for least, most in ((0, 0), (1, 4), (5, 2000)):
        here, there = (((counts >= least) & (counts <= most)).mean() for counts in (gold, wrong))
        assert here > 0.1
        assert there == pytest.approx(here, abs=0.04)


def test_what_the_question_tells() -> None:
    """Where a word is gold whenever its neighbour stands before the placeholder, its items are left out for that."""
    items, named = simulated(600)
    fixed = pl.DataFrame({
        "item_id": [f"t{n:03}" for n in range(40)], "article": [f"Text {n}." for n in range(40)],
        "question": f"They lived in zzyzx @placeholder , {OTHERS[3]}.", "answer": word(900), "upos": "NOUN",
    })  # fmt: skip
    found = balance.choose_balanced(pl.concat([items, fixed]), named)
    why = dict(found.dropped.select("row_key", "reason").iter_rows())
    told = [why.get(name) for name in fixed["item_id"]]
    assert told.count("told_by_question") > 30
    assert sum(reason == "told_by_question" for reason in why.values()) < 80
