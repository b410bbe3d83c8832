"""Edits that keep or lose a property: places, draws by frequency, each test, and what is dropped (NDD-10)."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.errors import BadInput
from pipeline.examples.ndd import pairs as examples
from pipeline.examples.ndd.pairs import Sentence, convert_tokens, generate
from pipeline.text import wordnet
from pipeline.text.tagging import Token
from tests.support.oracles import wordnet_net

PAST, PRESENT, TO = "Tense=Past|VerbForm=Fin", "Mood=Ind|Tense=Pres|VerbForm=Fin", "VerbForm=Inf"
KEYED = ("part_of_speech", "tense", "lemma")  # those that need no WordNet


def sentence(name: str, *rows: str) -> Sentence:
    """A sentence of rows: form, lemma, part of speech, features if any."""
    words, lemmas, upos, features = zip(*((row + " _").split()[:4] for row in rows), strict=True)
    return Sentence(name, [*words], [*upos], [*lemmas], [*features])


def list_edits(sentences: list[Sentence], test: str, name: str = "s", **options: object) -> list[str]:
    """List the positive and the negative edit of a sentence, as texts."""
    rows = generate(sentences, test, **options).rows.filter(pl.col("sentence_id") == name)
    return [" ".join(words) for words in rows["other"]]


def corpora() -> st.SearchStrategy[list[Sentence]]:
    """Sentences of a small vocabulary, so that words recur in other parts of speech, tenses and lemmas."""
    row = st.tuples(
        st.sampled_from(["I", "saw", "Saw", "runs", "RAN", "ran", "old", "Anna", "?", "go"]),
        st.sampled_from(["VERB", "VERB", "NOUN", "ADJ", "PUNCT"]), st.sampled_from(["see", "saw", "Run", "go", "old"]),
        st.sampled_from([PAST, PRESENT, TO, "VerbForm=Part|Tense=Past"]),
    )  # fmt: skip
    columns = st.lists(row, min_size=1, max_size=12).map(lambda rows: [[*column] for column in zip(*rows, strict=True)])
    return st.lists(columns, min_size=1, max_size=6).map(
        lambda sentences: [Sentence(f"s{i}", *sentence) for i, sentence in enumerate(sentences)]
    )


def get_property(test: str, words: Sentence, place: int) -> str:
    """Get what a negative word may not have."""
    tense = next((pair for pair in words.features[place].split("|") if "Tense" in pair), "")
    return {"part_of_speech": words.upos[place], "tense": tense, "lemma": words.lemmas[place].lower()}[test]


@settings(max_examples=40)
@given(corpora(), st.sampled_from(KEYED), st.sampled_from([0.2, 0.5, 1.0]), st.integers(0, 9))
def test_what_every_edit_is(sentences: list[Sentence], test: str, share: float, seed: int) -> None:
    """New words at the stated number of places, the same in both pairs and never the old word; the positive one is seen
    with the property, the negative one never.
    """
    rows, dropped = generate(sentences, test, share=share, seed=seed)
    assert {*rows["sentence_id"], *dropped["row_key"]} == {words.sentence_id for words in sentences}
    assert len(rows) / 2 + len(dropped) == len(sentences)
    properties = {
        (word.lower(), get_property(test, words, i))
        for words in sentences for i, word in enumerate(words.words)
        if words.upos[i] != "PUNCT" and (test != "tense" or words.upos[i] == "VERB")
    }  # fmt: skip
    by_id = {words.sentence_id: words for words in sentences}
    assert rows["is_positive"].to_list() == [True, False] * (len(rows) // 2)
    for row in rows.iter_rows(named=True):
        words = by_id[row["sentence_id"]]
        assert row["one"] == words.words
        pairs = [*zip(words.words, row["other"], strict=True)]
        changed = [i for i, (old, new) in enumerate(pairs) if old.lower() != new.lower()]
        assert row["places"] == changed == [i for i, (old, new) in enumerate(pairs) if old != new]
        count = sum(upos != "PUNCT" for upos in words.upos)
        assert len(changed) == (words.upos.count("VERB") if test == "tense" else max(1, int(share * count + 0.5)))
        for i in changed:
            assert ((row["other"][i].lower(), get_property(test, words, i)) in properties) == row["is_positive"]
    assert rows["pair_id"].is_unique().all()


@given(st.lists(st.integers(0, 5), max_size=8))
def test_words_are_drawn_as_often_as_they_stand_in_the_corpus(counts: list[int]) -> None:
    """Numbers spread evenly over [0, 1) draw each item exactly as often as its count; nothing comes of nothing."""
    total = sum(counts)
    draws = Counter(examples._draw_index(np.array(counts, np.int64), (k + 0.5) / total) for k in range(total))
    assert draws == Counter({i: count for i, count in enumerate(counts) if count})
    # a number just below 1 may be rounded to it
    assert examples._draw_index(np.array(counts, np.int64), 1.0) == (max(draws) if total else None)


@pytest.mark.parametrize(
    ("words", "share", "number"),
    [(2, 0.2, 1), (7, 0.2, 1), (8, 0.2, 2), (12, 0.2, 2), (13, 0.2, 3), (2, 0.25, 1), (6, 0.25, 2), (10, 0.35, 4)],
)  # fmt: skip
def test_number_of_places(words: int, share: float, number: int) -> None:
    """The share of the words, rounded half up as written (0.35 of 10 is 3.5), one at least; marks are no words."""
    fields = [f"w{i} w{i} NOUN" for i in range(words)] + [". . PUNCT", "! ! PUNCT"]
    rows, dropped = generate([sentence("s", *fields), sentence("t", "go go VERB")], "part_of_speech", share=share)
    assert rows["places"].list.len().to_list() == [number, number]
    assert dropped.rows() == [("few_places", "t")]  # there is no other verb


def test_tense_and_lemma() -> None:
    """All verbs, auxiliaries aside, take a form of the same tense; a lemma its only other form, or one of none."""
    corpus = [
        sentence("s", f"Cats cat NOUN {PAST}", f"slept sleep VERB {PAST}", "and and CCONJ", f"ate eat VERB {PAST}"),
        sentence("t", "had have AUX", f"eaten eat VERB {PAST[:10]}|VerbForm=Part", f"put put VERB {PRESENT}"),
        sentence("u", f"put put VERB {PAST}", f"sings sing VERB {PRESENT}"),
    ]
    positive, negative = list_edits(corpus, "tense")
    assert positive.split()[1] in {"ate", "put"}
    assert positive.split()[3] in {"slept", "put"}
    assert negative == "Cats sings and sings"  # put is also past, eaten is past too
    assert generate(corpus, "tense").dropped.rows() == [("few_places", "t")]  # no other past participle
    corpus = [
        sentence("s", "dogs dog NOUN"),
        sentence("t", "dog dog NOUN", "dogged dog VERB"),
        sentence("u", "dog cat NOUN", "left leave VERB"),
    ]
    assert list_edits(corpus, "lemma") == ["dog", "left"]


def test_words_of_which_nothing_is_said_stay_out() -> None:
    """A word without a part of speech or a lemma, as some treebanks have them, is neither replaced nor draws."""
    bare = Sentence("t", ["tea", "jam", "cup"], ["NOUN", "NOUN", ""], ["", "", "cup"], ["", "", ""])
    assert list_edits([bare], "part_of_speech", "t") == []  # each other word is a noun, or nothing is said of it
    corpus = [bare, sentence("s", "go go VERB")]
    assert set(list_edits(corpus, "part_of_speech", "t", share=0.5)[1].split()) == {"go", "cup"}
    assert len(generate(corpus, "lemma").rows) == 0


def test_capitals_are_carried_over() -> None:
    """A capital at the start and capitals throughout are kept; words are spelt as mostly inside sentences; I is I."""
    corpus = [
        sentence("s", "Tea tea NOUN", "IS be VERB"),
        sentence("t", "The the DET", "jam jam NOUN", "Was be VERB", "was be VERB"),
        sentence("u", "I I PRON"),
        sentence("v", "You you PRON", "now now ADV"),
    ]
    assert list_edits(corpus, "part_of_speech", share=1.0)[0] == "Jam WAS"
    assert list_edits(corpus, "part_of_speech", "u")[0] == "you"


NET = [
    ("warm", "a", "warm mild", "neither hot nor cold", "!1:cold"),
    ("heat", "a", "warm hot lukewarm_bath", "of some heat", ""),
    ("cold", "a", "cold chilly", "of little heat", "!1:warm"), ("soft", "a", "soft", "not hard", "!1:hard"),
    ("hard", "a", "hard", "not soft", "!1:soft"),
    ("dry", "a", "dry sweet arid", "without water, or without sugar", "!1:sugary !1:wet"),
    ("sugary", "a", "sweet", "with sugar", "!1:dry"), ("wet", "a", "wet", "with water", "!1:dry"),
    ("warmth", "n", "warm", "a pause in the warm", ""),
]  # fmt: skip


@pytest.fixture
def net(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nine synsets of our own are the WordNet that nltk finds."""
    monkeypatch.setattr(wordnet_net, "ROWS", NET)
    monkeypatch.setattr(wordnet_net, "EXCEPTIONS", dict.fromkeys(wordnet_net.EXCEPTIONS, ""))
    monkeypatch.setattr(wordnet_net, "LEXNAMES", {})
    wordnet.unpack([wordnet_net.write(tmp_path / "tree")], tmp_path / "nltk_data")
    with wordnet_net.found_in(tmp_path / "nltk_data"):
        yield


def test_synonym_antonym(net: None) -> None:
    """Synonyms of any sense and the lemma's own antonyms, as lemmas, if the corpus has them with the part of speech."""
    corpus = [
        sentence("s", "Warmer warm ADJ", "soup soup NOUN", ". . PUNCT"),
        sentence("t", "hot hot ADJ", "cold cold ADJ"),
        sentence("u", "mild mild NOUN", "chilly chilly ADJ"),  # chilly's synonym has an antonym, itself it has none
        sentence("v", "warm warm NOUN", "soft soft ADJ", "hard hard ADJ"),  # no synonyms
    ]
    assert list_edits(corpus, "synonym_antonym") == ["Hot soup .", "Cold soup ."]
    assert list_edits(corpus, "synonym_antonym", "t") == ["hot chilly", "hot warm"]
    dry = [sentence("s", "dry dry ADJ"), sentence("t", *["sweet sweet ADJ"] * 99, "arid arid ADJ", "wet wet ADJ")]
    assert list_edits(dry, "synonym_antonym") == ["arid", "wet"]  # sweet is a synonym and an antonym
    assert generate(corpus, "synonym_antonym").dropped.rows() == [("few_places", "u"), ("few_places", "v")]


def test_what_is_dropped_has_its_reason() -> None:
    """No words, no verbs, verbs without features, no word to take the place: each sentence is in rows or in dropped."""
    reasons = {"marks": "no_verbs", "nouns": "no_verbs", "bare": "no_features", "ran": "few_places", "-": "no_verbs"}
    corpus = [
        sentence("marks", "! ! PUNCT", "% % SYM"), sentence("nouns", "tea tea NOUN"), sentence("bare", "go go VERB"),
        sentence("ran", f"ran run VERB {PAST}"), Sentence("-", [], [], [], []),
    ]  # fmt: skip
    assert dict(generate(corpus, "tense").dropped.select("row_key", "reason").iter_rows()) == reasons
    rows, dropped = generate(corpus, "part_of_speech")
    assert dropped.filter(reason="no_words")["row_key"].to_list() == ["marks", "-"]
    assert rows.schema == examples.SCHEMA
    assert generate([], "lemma").rows.schema == examples.SCHEMA


@settings(max_examples=10)
@given(corpora(), st.sampled_from(KEYED))
def test_the_order_of_the_corpus_does_not_matter(sentences: list[Sentence], test: str) -> None:
    """The same sentences in reverse give the same pairs, another seed draws other places and words."""
    corpus = [sentence("s", *(f"w{i} w VERB" for i in range(40)), "tea tea NOUN")]
    places = [generate(corpus, "part_of_speech", seed=seed).rows["places"].to_list() for seed in (1, 2)]
    assert places[0] != places[1]
    ahead, back = generate(sentences, test).rows, generate(sentences[::-1], test).rows
    assert ahead.sort("pair_id").rows() == back.sort("pair_id").rows()


def test_errors() -> None:
    """Unknown tests and shares outside of (0, 1] are refused."""
    tea = sentence("s", "tea tea NOUN")
    with pytest.raises(BadInput, match="no test 'term'; there are synonym_antonym, part_of_speech, tense, lemma"):
        generate([tea], "term")
    for share in (0.0, 1.1, float("nan")):
        with pytest.raises(ValueError, match=r"in \(0, 1\]"):
            generate([tea], "lemma", share=share)


def test_sentences_of_a_tagger() -> None:
    """A tagger tells no tense: that of verbs is guessed by their form, other words have none."""
    rows = [("Sing", "sing", "VERB"), ("sings", "sing", "VERB"), ("singing", "sing", "VERB"), ("sang", "sing", "VERB"),
            ("was", "be", "AUX")]  # fmt: skip
    result = convert_tokens("s", [Token(*row, 0, 1) for row in rows])
    assert result[:4] == ("s", *([row[k] for row in rows] for k in (0, 2, 1)))
    assert result.features == [TO, "Tense=Pres|VerbForm=Fin", "Tense=Pres|VerbForm=Part", PAST, "_"]
    assert convert_tokens("t", []) == ("t", [], [], [], [])
