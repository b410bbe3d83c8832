"""Adapted Lesk written plainly, and sentences of our own, for tests and benchmarks."""

from collections.abc import Sequence

from nltk.corpus import wordnet as nltk_wordnet

from pipeline.text import senses
from pipeline.text.senses import Sense

RELATIONS = [
    "hypernyms", "instance_hypernyms", "hyponyms", "instance_hyponyms", "member_meronyms", "part_meronyms",
    "substance_meronyms", "member_holonyms", "part_holonyms", "substance_holonyms", "also_sees", "similar_tos",
]  # fmt: skip
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
    shared = {word for token in context for word in senses.list_words(token)}
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
                signature.update(senses.list_words(text))
        overlap = len(signature & context)
        if best is None or overlap > best[1]:
            best = synset.name(), overlap
    return best


def bare(choices: Sequence[Sense | None]) -> list[tuple[str, int] | None]:
    """Senses as the reference has them."""
    return [sense and (sense.synset, sense.overlap) for sense in choices]
