"""Wrong options that give nothing away: what they may be, and that nothing is found by any baseline of the audit."""

from collections import Counter
from collections.abc import Sequence
from functools import cache

import numpy as np
import polars as pl
import pytest

from pipeline.examples.recam import balance, building
from pipeline.examples.recam.balance import lexicon
from pipeline.examples.recam.building import Vectors
from pipeline.metrics.recam.audit import audit
from pipeline.text import wordnet
from pipeline.text.wordnet import Pools

LETTERS = "bcdfghklmnprstvz"
QUESTION = "They spoke of @placeholder in the end."
COLUMNS = ["item_id", "article", "question", "answer", "upos"]


def find_pools(word: str) -> Pools:
    """Hope and wish are synonyms, hope and despair antonyms."""
    synonyms = {"hope": {"wish"}, "wish": {"hope"}}.get(word, set())
    return Pools(frozenset(synonyms), frozenset({"despair"} if word == "hope" else ()))


@pytest.fixture(autouse=True)
def without_wordnet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every word is its own base form, but for plurals of two words."""
    monkeypatch.setattr(wordnet, "lemmatize", lambda word, _: {"hopes": "hope", "fears": "fear"}.get(word, word))
    monkeypatch.setattr(wordnet, "find_pools", find_pools)


def make_word(number: int) -> str:
    """A word of our own, the same for the same number, whose letters say nothing of it."""
    number = number * 1237 % 4096
    return "".join(LETTERS[number // 16**i % 16] + "aou"[(number // 7 + i) % 3] for i in range(3))


@cache
def simulate(count: int, seed: int = 1) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Items whose gold words are Zipf-distributed, and readers that name frequent words, each by its own taste."""
    draw = np.random.default_rng(seed)
    share = 1 / (np.arange(1, 3001) + 8)
    gold = draw.choice(3000, count, p=share / share.sum())
    near = draw.choice(200, (count, 4), p=(table := 1 / np.arange(3, 203)) / table.sum())
    questions = [f"The x{a} x{b} @placeholder y{c} y{d} ." for a, b, c, d in near]
    rows = [(f"i{i}", f"Passage {i}.", questions[i], make_word(int(word)), "NOUN") for i, word in enumerate(gold)]
    candidates = []
    for _ in range(3):
        keys = np.log(share)[None, :400] + draw.gumbel(size=(count, 400))
        words = [make_word(int(word)) for word in np.argsort(-keys, axis=1)[:, :20].ravel()]
        ids, ranks = np.repeat([row[0] for row in rows], 20), np.tile(np.arange(1, 21), count)
        candidates.append(pl.DataFrame({"item_id": ids, "word": words, "rank": ranks}))
    return pl.DataFrame(rows, schema=COLUMNS, orient="row"), pl.concat(candidates)


def make_items(*answers: str, article: str = "Nothing.", question: str = QUESTION) -> pl.DataFrame:
    """An item of an article of its own for each of these words, three times over; the first may be about another."""
    rows = [(f"i{n:03}", f"{n}", QUESTION, answer, "NOUN") for n, answer in enumerate(answers * 3)]
    rows[0] = ("i000", article, question, answers[0], "NOUN")
    return pl.DataFrame(rows, schema=COLUMNS, orient="row")


WORDS = tuple(make_word(n) for n in range(20))
NO_CANDIDATES = pl.DataFrame(schema={"item_id": pl.String, "word": pl.String, "rank": pl.Int64})


def test_what_may_not_stand() -> None:
    """Gold words, their synonyms, words of the question and words of which a form or relative is in the passage."""
    article, question = f"Fears of {WORDS[1]}.", f"A @placeholder for {WORDS[2]}."
    rows = make_items("hope", "wish", "despair", "fear", "fears", *WORDS, article=article, question=question)
    rows = rows.with_columns(passage="article", draw=pl.int_range(pl.len(), dtype=pl.UInt64))
    items, words = lexicon.build_lexicon(rows)
    _, is_open = next(lexicon.list_open_words(items, words, lexicon.relate_words(words, None, 0.85)))
    closed = {word for word, may_stand in zip(words.words, is_open[0], strict=True) if not may_stand}
    assert closed == {"hope", "wish", "fear", "fears", WORDS[1], WORDS[2]}


def test_neighbours_never_meet() -> None:
    """Two words whose vectors are nearer than 0.85 are in no item together, be one of them gold or not."""
    items, candidates = simulate(300)
    words = items["answer"].unique().sort().to_list()
    vector_of = dict(zip(words, np.random.default_rng(3).normal(size=(len(words), 30)), strict=True))
    first, second = items["answer"].value_counts(name="n").sort("n", "answer", descending=True)["answer"][:2]

    def find_vectors(words: Sequence[str]) -> np.ndarray:
        return np.array([vector_of.get(first if word == second else word, np.zeros(30)) for word in words])

    def count_meetings(vectors: Vectors | None) -> int:
        rows = balance.choose_balanced(items, candidates, vectors).rows
        assert rows.height > 100
        return sum({first, second} <= set(options) for options in rows["options"])

    assert count_meetings(None) > 0
    assert count_meetings(find_vectors) == 0


def test_one_item_an_article() -> None:
    """Of items on one article one is kept, as they name each other's gold word; all are accounted for."""
    article = pl.lit("The same.") + (pl.int_range(pl.len()) // 2).cast(pl.String)
    items = make_items(*WORDS).with_columns(article=article)
    result = balance.choose_balanced(items, NO_CANDIDATES)
    assert result.dropped.filter(reason="same_article").height == 30
    assert sorted([*result.rows["item_id"], *result.dropped["row_key"]]) == sorted(items["item_id"])


def test_few() -> None:
    """Items with fewer than eight words to choose from are dropped; of no items nothing is made."""
    result = balance.choose_balanced(make_items(*WORDS[:8]), NO_CANDIDATES)
    assert result.rows.is_empty()
    assert "too_few_choices" in set(result.dropped["reason"])
    result = balance.choose_balanced(make_items("hope").clear(), NO_CANDIDATES)
    assert result.rows.is_empty()
    assert result.dropped.is_empty()


@pytest.mark.parametrize("seed", [0, 500])
def test_options(seed: int) -> None:
    """Options are five different words, the gold word once; the order of rows is of no account, the seed is."""
    items, candidates = simulate(150, seed % 3)
    result = balance.choose_balanced(items, candidates, seed=seed)
    answers = dict(items.select("item_id", "answer").iter_rows())
    for row in result.rows.to_dicts():
        assert len(set(row["options"])) == 5
        assert row["options"][row["label"]] == answers[row["item_id"]]
        assert set(row["options"]) <= set(answers.values())
    assert len(result.rows) + len(result.dropped) == len(items)
    shuffled = items.sample(fraction=1, shuffle=True, seed=seed)
    assert balance.choose_balanced(shuffled, candidates.reverse(), seed=seed).rows.equals(result.rows)
    assert not balance.choose_balanced(items, candidates, seed=seed + 1).rows.equals(result.rows)


@cache
def balance_items(count: int) -> pl.DataFrame:
    return balance.choose_balanced(*simulate(count)).rows


def test_nothing_is_given_away() -> None:
    """No baseline finds more than two points, and two standard errors, above chance; by the paper's rule several do."""
    assert balance_items(1000).height > 750
    leaks = audit(balance_items(1000)).filter(pl.col("gap") > 0.02 + 2 * pl.col("error"))
    assert leaks.is_empty(), leaks
    items, candidates = simulate(300)
    paper = audit(building.choose_options(items, candidates.filter(pl.col("rank") <= 10)).rows)
    gaps = dict(paper.select("baseline", "gap").iter_rows())
    assert min(gaps[name] for name in ("seldom_right", "seldom_offered", "option_only", "question_only")) > 0.15


def test_a_large_set_is_balanced_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Items whose words are drawn some at a time give nothing away together, and as few are dropped."""
    whole = balance_items(1000).height
    monkeypatch.setattr(balance, "PART", 250)
    rows = balance.choose_balanced(*simulate(1000)).rows
    assert rows.height == pytest.approx(whole, rel=0.02)
    leaks = audit(rows).filter(pl.col("gap") > 0.02 + 2 * pl.col("error"))
    assert leaks.is_empty(), leaks


def test_words_are_right_elsewhere_as_often() -> None:
    """Seen from their items, gold and wrong words are right elsewhere never, up to four times, and oftener alike."""
    rows = balance_items(1000).to_dicts()
    right = Counter(row["options"][row["label"]] for row in rows)
    gold = np.array([right[row["options"][row["label"]]] - 1 for row in rows])
    wrong = np.array([right[word] for row in rows for i, word in enumerate(row["options"]) if i != row["label"]])
    for least, most in ((0, 0), (1, 4), (5, 1000)):
        gold_share, wrong_share = (((counts >= least) & (counts <= most)).mean() for counts in (gold, wrong))
        assert gold_share > 0.1
        assert wrong_share == pytest.approx(gold_share, abs=0.04)


def test_what_the_question_tells() -> None:
    """Where a word is gold whenever its neighbour stands before the placeholder, its items are left out for that."""
    items, candidates = simulate(300)
    question = f"They lived in zzyzx @placeholder , {WORDS[3]}."
    rows = [(f"t{n:03}", f"Text {n}.", question, make_word(900), "NOUN") for n in range(40)]
    fixed = pl.DataFrame(rows, schema=COLUMNS, orient="row")
    dropped = balance.choose_balanced(pl.concat([items, fixed]), candidates).dropped.filter(reason="told_by_question")
    assert len(set(dropped["row_key"]) & set(fixed["item_id"])) > 30
    assert dropped.height < 80
