"""More cloze items to learn from: words replaced by what they are a kind of (ReCAM, section 4.2; REC-31).

The paper does not say how. Nouns of the passage and options, right and wrong alike, become a hypernym by chance.
"""

import re
from functools import lru_cache

import numpy as np
import polars as pl

from pipeline.text import wordnet

MARK = "+hypernyms"  # behind the id of a copy
_WORD = re.compile(r"[^\W\d_]+")


@lru_cache(1 << 16)
def find_hypernym(word: str) -> str | None:
    """Return the first lemma of the hypernym of a noun's first sense; None for a root, or what is mostly no noun."""
    lemma = wordnet.lemmatize(word, "NOUN")
    senses = wordnet.list_synsets(lemma, "n")
    if not senses or any(_count(lemma, pos) >= _count(lemma, "n") for pos in "var" if wordnet.list_synsets(lemma, pos)):
        return None
    hypernyms = sorted(senses[0].hypernyms(), key=lambda synset: synset.name())  # nltk's order is not always the same
    return str(hypernyms[0].lemma_names()[0]).replace("_", " ") if hypernyms else None


def _count(lemma: str, pos: str) -> int:
    lemmas = (item for synset in wordnet.list_synsets(lemma, pos) for item in synset.lemmas())
    return sum(item.count() for item in lemmas if item.name().lower() == lemma.replace(" ", "_"))


def augment(items: pl.DataFrame, share: float, seed: int) -> pl.DataFrame:
    """Return a marked copy of each item in which words were replaced by their hypernyms, each with probability `share`.

    Capitalised words, most of them names, stay, and so does an option that would come to equal another.
    """
    rng = np.random.default_rng(seed)
    rows = []
    for row in items.iter_rows(named=True):
        article = _WORD.sub(lambda match: _generalise(match[0], share, rng), row["article"])
        options = list(row["options"])
        for position, option in enumerate(options):
            hypernym = _generalise(option, share, rng)
            if hypernym.lower() not in {existing.strip().lower() for existing in options}:
                options[position] = hypernym
        if (article, options) != (row["article"], row["options"]):
            rows.append(row | {"item_id": row["item_id"] + MARK, "article": article, "options": options})
    return pl.DataFrame(rows, schema=items.schema)


def _generalise(word: str, share: float, rng: np.random.Generator) -> str:
    """A word or, by chance, its hypernym. Chance is asked for each word, so that it does not depend on WordNet."""
    is_drawn = rng.random() < share
    return (is_drawn and word.islower() and find_hypernym(word)) or word
