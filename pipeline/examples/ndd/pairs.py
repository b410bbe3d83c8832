"""Pairs of sentences to test a measure of meaning on: edited, and graded by people (NDD, section 3; NDD-10 to NDD-13).

Each sentence is edited twice at the same places: in the positive pair every new word shares a property with the old
one, in the negative one none does. The properties are meaning (WordNet's synonyms and antonyms), part of speech, tense
of verbs, which the paper calls term, and lemma. The number of places is max(1, 0.2 n rounded half up), n the words that
are no marks, but all verbs where it is tense. New words are drawn from the corpus, as often as they stand in it.

Grades are from 0 to 5: STS-B as csv without a header (sentence, sentence, similarity), and our own jsonl with one,
other, similarity and optionally lang. Of STS-B's 7,249 train and development pairs 1,265 overlap by .8 or more: the
supervised test.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.errors import BadInput, check_name
from pipeline.examples.recam.items import DROPPED
from pipeline.examples.splits import SEED, draw_uniform
from pipeline.io.fields import check_field, check_text
from pipeline.io.lines import read_json_lines, read_records
from pipeline.reasons import Read
from pipeline.text import wordnet
from pipeline.text.language import detect_language
from pipeline.text.segment import UNIT
from pipeline.text.tagging import Token

SHARE = 0.2  # of the words of a sentence
SCHEMA: dict[str, pl.DataType] = {
    "test": pl.String(), "pair_id": pl.String(), "sentence_id": pl.String(), "one": pl.List(pl.String()),
    "other": pl.List(pl.String()), "is_positive": pl.Boolean(), "places": pl.List(pl.Int64()),
}  # fmt: skip

_MARKS = frozenset({"PUNCT", "SYM"})
_SILENT = _MARKS | {""}  # parts of speech of words that no key is made of
Ints = npt.NDArray[np.int64]


class Sentence(NamedTuple):
    """A sentence, and of each of its words what a treebank says; empty where it says nothing.

    Of a `text.trees.Tree`: Sentence(name, tree.words, tree.upos, tree.lemmas, tree.features).
    """

    sentence_id: str
    words: Sequence[str]
    upos: Sequence[str]
    lemmas: Sequence[str]
    features: Sequence[str]  # FEATS of CoNLL-U, as Tense=Past|VerbForm=Fin


Pair = tuple[str, str]
Replace = Callable[[Sentence, int, float, float], Pair | None]
"""A word with the property and one without it for a place, by a number in [0, 1) each; None where one is lacking."""
Keys = Callable[[Sentence, int], Pair | None]
"""What a positive word shares with a word, and what no negative one has; None for a word that stays out."""


def convert_tokens(sentence_id: str, tokens: Sequence[Token]) -> Sentence:
    """Convert tokens of an English tagger (`text.tagging`), which gives no tense: the form of a verb decides.

    The lemma itself is taken for an infinitive, -ing and -s for present tense, anything else for past. On UD EWT's test
    part, gold lemmas, .81 of 2,605 verbs get their tense; most others are present tense that looks like an infinitive.
    """
    features = [_guess_features(token.text.lower(), token.lemma) if token.upos == "VERB" else "_" for token in tokens]
    words, upos, lemmas = ([getattr(token, name) for token in tokens] for name in ("text", "upos", "lemma"))
    return Sentence(sentence_id, words, upos, lemmas, features)


def _guess_features(word: str, lemma: str) -> str:
    if word == lemma:
        return "VerbForm=Inf"
    if word.endswith("ing"):
        return "Tense=Pres|VerbForm=Part"
    return f"Tense={'Pres' if word.endswith('s') else 'Past'}|VerbForm=Fin"


def generate(sentences: Sequence[Sentence], test: str, *, seed: int = SEED, share: float = SHARE) -> Read:
    """Generate the two pairs of each sentence for a test.

    What a sentence gives depends on its id, the seed and the corpus, not on its place there.

    Returns test, pair_id, sentence_id, one (the sentence's words [n]), other (with new ones [n]), is_positive, places
    (of the new words, from 0, the same in both pairs of a sentence), a positive row before its negative one; and why
    sentences gave no pair: no_words, no_verbs, no_features, few_places. BadInput: no such test. Missing: the
    synonym-antonym test needs WordNet. ValueError: the share is not in (0, 1].
    """
    check_name("test", test, TESTS)
    if not 0 < share <= 1:
        raise ValueError(f"the share of words to replace should be in (0, 1], not {share}")
    replace, rows, dropped = TESTS[test](sentences), [], []
    for sentence in sentences:
        replacements = _edit_sentence(sentence, test, replace, seed, share)
        if isinstance(replacements, str):
            dropped.append((replacements, sentence.sentence_id))
            continue
        places = sorted(replacements)
        for side, name in enumerate(("positive", "negative")):
            other = [replacements[i][side] if i in replacements else word for i, word in enumerate(sentence.words)]
            pair_id = f"{test}:{sentence.sentence_id}:{name}"
            rows.append((test, pair_id, sentence.sentence_id, [*sentence.words], other, side == 0, places))
    return Read(pl.DataFrame(rows, SCHEMA, orient="row"), pl.DataFrame(dropped, DROPPED, orient="row"))


def _edit_sentence(sentence: Sentence, test: str, replace: Replace, seed: int, share: float) -> dict[int, Pair] | str:
    places = [i for i, upos in enumerate(sentence.upos) if upos not in _MARKS]
    place_count = max(1, int(Decimal(str(share)) * len(places) + Decimal("0.5")))
    if test == "tense":
        places = [i for i in places if sentence.upos[i] == "VERB"]
        place_count = len(places)
        if any("VerbForm=" not in sentence.features[i] for i in places):
            return "no_features"
    if not places:
        return "no_verbs" if test == "tense" else "no_words"
    keys = (f"{sentence.sentence_id}\n{test}\n{i}" for i in places)
    draw_keys = [f"{key}\n{purpose}" for key in keys for purpose in ("place", "same", "different")]
    draws = draw_uniform(pl.Series(draw_keys), seed).to_numpy().reshape(-1, 3).tolist()
    replacements: dict[int, Pair] = {}
    for (_, same, different), place in sorted(zip(draws, places, strict=True)):
        if words := replace(sentence, place, same, different):
            positive, negative = (_copy_case(sentence.words[place], word) for word in words)
            replacements[place] = positive, negative
            if len(replacements) == place_count:
                return replacements
    return "few_places"


def _copy_case(old: str, new: str) -> str:
    """Give the new word the old one's capitals; I has one wherever it stands."""
    if len(old) > 1 and old.isupper():
        return new.upper()
    return new[:1].upper() + new[1:] if old[:1].isupper() and old != "I" else new


def _draw_index(counts: Ints, number: float) -> int | None:
    """Draw an item by a number in [0, 1), each as often as its count; None if all counts are 0."""
    ends = counts.cumsum()
    total = int(ends[-1]) if len(ends) else 0
    return int(ends.searchsorted(min(int(number * total), total - 1), side="right")) if total else None


def _draw_by_key(keys: Keys) -> Callable[[Sequence[Sentence]], Replace]:
    """Draw from the corpus's words with keys, as mostly spelt; negative ones never have the one to avoid."""

    def prepare(sentences: Sequence[Sentence]) -> Replace:
        spellings: dict[str, Counter[str]] = defaultdict(Counter)
        shared: dict[str, Counter[str]] = defaultdict(Counter)
        forms_to_avoid: dict[str, set[str]] = defaultdict(set)
        for sentence in sentences:
            for place, word in enumerate(sentence.words):
                if key := keys(sentence, place):
                    form = word.lower()
                    is_plain = place == 0 and sentence.upos[place] != "PROPN"  # a capital there says nothing
                    spellings[form][form if is_plain else word] += 1
                    shared[key[0]][form] += 1
                    forms_to_avoid[key[1]].add(form)
        forms = sorted(spellings)  # whatever the order of the sentences
        row = {form: i for i, form in enumerate(forms)}
        # of two spellings as frequent, the one with fewer capitals
        words = [min(spellings[form], key=lambda word: (-spellings[form][word], word.swapcase())) for form in forms]
        counts = np.array([spellings[form].total() for form in forms], np.int64)
        members = {
            name: np.array([(row[form], times[form]) for form in sorted(times)]).T for name, times in shared.items()
        }
        rows_to_avoid = {name: np.array([row[form] for form in avoided]) for name, avoided in forms_to_avoid.items()}

        def replace(sentence: Sentence, place: int, same: float, different: float) -> Pair | None:
            if (key := keys(sentence, place)) is None:
                return None
            member_rows, times = members[key[0]]
            positive = _draw_index(np.where(member_rows == row[sentence.words[place].lower()], 0, times), same)
            allowed_counts = counts.copy()
            allowed_counts[rows_to_avoid[key[1]]] = 0
            negative = _draw_index(allowed_counts, different)
            return None if positive is None or negative is None else (words[member_rows[positive]], words[negative])

        return replace

    return prepare


def _key_part_of_speech(sentence: Sentence, place: int) -> Pair | None:
    upos = sentence.upos[place]
    return None if upos in _SILENT else (upos, upos)


def _key_tense(sentence: Sentence, place: int) -> Pair | None:
    features = dict(pair.partition("=")[::2] for pair in sentence.features[place].split("|"))
    if sentence.upos[place] != "VERB" or "VerbForm" not in features:
        return None
    tense = features.get("Tense", "none")  # as infinitives, gerunds and imperatives
    return f"{features['VerbForm']} {tense}", tense


def _key_lemma(sentence: Sentence, place: int) -> Pair | None:
    upos, lemma = sentence.upos[place], sentence.lemmas[place].lower()
    return None if upos in _SILENT or not lemma else (f"{lemma} {upos}", lemma)


def _draw_by_wordnet(sentences: Sequence[Sentence]) -> Replace:
    """Draw lemmas that WordNet names, by how often the corpus has them with that part of speech."""
    lemma_counts: Counter[Pair] = Counter()
    for sentence in sentences:
        lemma_counts.update(zip(map(str.lower, sentence.lemmas), sentence.upos, strict=True))

    @cache
    def list_near(lemma: str, upos: str) -> tuple[list[str], list[str]]:
        """List synonyms in any sense, and antonyms of the lemma itself; none that is both."""
        if upos not in wordnet.POS:
            return [], []
        names = [name for sense in wordnet.list_synsets(lemma, wordnet.POS[upos]) for name in sense.lemmas()]
        synonyms = {name.name() for name in names}
        same_lemma = (name for name in names if name.name().lower() == lemma)
        antonyms = {antonym.name() for name in same_lemma for antonym in name.antonyms()}
        return sorted(synonyms - antonyms), sorted(antonyms - synonyms)

    def replace(sentence: Sentence, place: int, same: float, different: float) -> Pair | None:
        upos, lemma, word = sentence.upos[place], sentence.lemmas[place].lower(), sentence.words[place].lower()
        new_words = []
        for words, number in zip(list_near(lemma, upos), (same, different), strict=True):
            candidates = [name for name in words if name.lower() not in (lemma, word)]
            index = _draw_index(np.array([lemma_counts[name.lower(), upos] for name in candidates], np.int64), number)
            if index is None:
                return None
            new_words.append(candidates[index])
        return new_words[0], new_words[1]

    return replace


TESTS: dict[str, Callable[[Sequence[Sentence]], Replace]] = {
    "synonym_antonym": _draw_by_wordnet, "part_of_speech": _draw_by_key(_key_part_of_speech),
    "tense": _draw_by_key(_key_tense), "lemma": _draw_by_key(_key_lemma),
}  # fmt: skip
"""What makes the words of each test from a corpus, in the order of table 1 (Syn-Ant, POS, Term, Lemma)."""


GRADED_SCHEMA: dict[str, pl.DataType] = {
    "pair_id": pl.String(), "one": pl.String(), "other": pl.String(), "similarity": pl.Float64(), "lang": pl.String(),
    "one_words": pl.List(pl.String()), "other_words": pl.List(pl.String()),
}  # fmt: skip
HIGHEST = 5.0  # similarity
OVERLAP = 0.8  # of the supervised test, or more (section 3)


def read_graded(path: Path) -> Read:
    """Read pairs of a csv or jsonl file, as `<file name>:<line>`; those without words are dropped as no_words."""
    readers = {".csv": _read_csv, ".jsonl": _read_jsonl}
    if path.suffix not in readers:
        raise BadInput(f"{path}: expected the name of a csv or jsonl file")
    rows, dropped = [], []
    for line, (first_text, second_text, similarity, lang) in readers[path.suffix](path):
        name, words = f"{path.name}:{line}", (UNIT.findall(first_text), UNIT.findall(second_text))
        if all(words):
            rows.append((name, first_text, second_text, similarity, lang, *words))
        else:
            dropped.append(("no_words", name))
    pairs = pl.DataFrame(rows, GRADED_SCHEMA, orient="row")
    pairs = pairs.with_columns(lang=pl.coalesce("lang", detect_language("one")))
    return Read(pairs, pl.DataFrame(dropped, DROPPED, orient="row"))


_Row = tuple[str, str, float, str | None]


def _read_csv(path: Path) -> Iterator[tuple[int, _Row]]:
    for line, row in read_records(path, ","):
        location = f"{path}, line {line}"
        if len(row) != 3:
            raise BadInput(f"{location}: expected two sentences and their similarity, found {len(row)} fields")
        yield line, (row[0].strip(), row[1].strip(), _parse_similarity(row[2], location), None)


def _read_jsonl(path: Path) -> Iterator[tuple[int, _Row]]:
    for line, entry in read_json_lines(path):
        location = f"{path}, line {line}"
        similarity = _parse_similarity(entry.get("similarity"), location)
        first_text, second_text = (check_text(entry, name, location, may_be_blank=True) for name in ("one", "other"))
        lang = check_text(entry, "lang", location, may_be_blank=True) if entry.get("lang") is not None else None
        yield line, (first_text, second_text, similarity, lang)


def _parse_similarity(value: object, location: str) -> float:
    try:
        number = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    expected = f"a number from 0 to {HIGHEST:g}"
    check_field({"similarity": value}, "similarity", location, expected, 0 <= number <= HIGHEST)
    return number


def measure_overlap(first_words: Sequence[str], second_words: Sequence[str]) -> float:
    """Compute the share of the shorter sentence's words in the longest common subsequence: from 0 to 1.

    Capitals count, and marks are words. Bit i of the row is 0 where the word at i of `first_words` makes the
    subsequence longer (Hyyrö, 2004). A sentence without words is a ValueError.
    """
    if not first_words or not second_words:
        raise ValueError("expected two sentences with words")
    places: dict[str, int] = defaultdict(int)
    for i, word in enumerate(first_words):
        places[word] |= 1 << i
    full = row = (1 << len(first_words)) - 1
    for word in second_words:
        hit = row & places.get(word, 0)
        row = ((row + hit) | (row - hit)) & full
    return (len(first_words) - row.bit_count()) / min(len(first_words), len(second_words))


def add_overlap(pairs: pl.DataFrame) -> pl.DataFrame:
    """Add `overlap` to pairs with one_words and other_words."""
    values = [measure_overlap(*words) for words in pairs.select("one_words", "other_words").iter_rows()]
    return pairs.with_columns(overlap=pl.Series(values, dtype=pl.Float64))
