"""Adapted Lesk written plainly, and sentences of our own, for tests and benchmarks."""

import csv
import re
from collections.abc import Sequence
from itertools import product
from pathlib import Path

from nltk.corpus import wordnet as nltk_wordnet

from pipeline.text import glosses, wordnet
from pipeline.text.senses import Sense

RELATIONS = [
    "hypernyms", "instance_hypernyms", "hyponyms", "instance_hyponyms", "member_meronyms", "part_meronyms",
    "substance_meronyms", "member_holonyms", "part_holonyms", "substance_holonyms", "also_sees", "similar_tos",
]  # fmt: skip
TAGGED = Path(__file__).parents[2] / "text" / "sense_tagged.csv"
OURS = [
    "She deposited her savings at the bank on Monday and the clerk counted every note twice.",
    "They tied the boat to the bank of the river and watched the water rise after the rain.",
    "The double bass is the largest instrument of its family and has the lowest range in the band.",
    "My uncle caught a bass in the lake with a borrowed rod and fried it for supper.",
    "The plant will close in spring; workers at the factory heard it from the radio.",
    "A plant in a pot of dry soil loses its leaves, so water it when the light fades.",
    "The court heard that the judge had known the case for years and kept silent.",
    "They played tennis on a court of red clay until the match was stopped by wind.",
]


def plain(targets: Sequence[tuple[str, str]], context: Sequence[str]) -> list[tuple[str, int] | None]:
    """Adapted Lesk as published, straight from nltk, nothing cached; (synset, overlap) or None."""
    shared = {word for token in context for word in glosses.list_words(token)}
    return [_choose(lemma, pos, shared) for lemma, pos in targets]


def _choose(lemma: str, pos: str, context: set[str]) -> tuple[str, int] | None:
    name = lemma.lower().replace(" ", "_")
    best = None
    for synset in nltk_wordnet.synsets(name, pos):
        if name not in [lemma_name.lower() for lemma_name in synset.lemma_names()]:
            continue  # of a base form, which is another lemma
        signature: set[str] = set()
        for near in [synset, *(other for relation in RELATIONS for other in getattr(synset, relation)())]:
            for text in (near.definition(), *near.examples(), *near.lemma_names()):
                signature.update(glosses.list_words(text))
        overlap = len(signature & context)
        if best is None or overlap > best[1]:
            best = synset.name(), overlap
    return best


def bare(choices: Sequence[Sense | None]) -> list[tuple[str, int] | None]:
    """Senses as the reference has them."""
    return [sense and (sense.synset, sense.overlap) for sense in choices]


def read_tagged() -> list[tuple[str, str, list[str]]]:
    """Our tagged sentences: synset, lemma and tokens of each; stars mark the noun."""
    rows = [(row["synset"], row["sentence"]) for row in csv.DictReader(TAGGED.read_text(encoding="utf-8").splitlines())]
    nouns = [wordnet.lemmatize(sentence.split("*")[1], "NOUN") for _, sentence in rows]
    return [(row[0], noun, re.findall(r"[\w'-]+", row[1])) for row, noun in zip(rows, nouns, strict=True)]


def plain_phrases(left: Sequence[str], right: Sequence[str]) -> int:
    """Squared lengths of shared phrases by looking at all of them each time; an empty word is in none."""
    left, right, score = list(left), list(right), 0
    while True:
        phrases = [
            (-n, i, j)
            for i, j in product(range(len(left)), range(len(right)))
            for n in range(1, min(len(left) - i, len(right) - j) + 1)
            if left[i : i + n] == right[j : j + n] and "" not in left[i : i + n]
            if not {left[i], left[i + n - 1]} & {*glosses.STOP_WORDS, *"abcdefghijklmnopqrstuvwxyz"}
        ]
        if not phrases:
            return score
        n, i, j = min(phrases)
        score += n**2
        left[i : i - n] = right[j : j - n] = [""] * -n
