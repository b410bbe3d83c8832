"""How related two senses are, by the phrases that their glosses share (Banerjee & Pedersen 2003; REC-09).

    relatedness(A, B) = Σ over relations R, S of score(R(A), S(B))
    score(left, right) = Σ over shared phrases of (words of the phrase)²

R(A) is one text: the glosses of all synsets that A has by relation R; its own gloss is a relation too. The longest
phrase that both texts hold is counted and removed from both, until none is left, the first of equally long ones. A
phrase begins and ends with a content word and does not run from one gloss into the next. Words are base forms.
"""

import re
from functools import lru_cache
from heapq import heapify, heappop, heappush
from itertools import groupby, product
from typing import NamedTuple

from pipeline.text import wordnet

_FUNCTION_WORDS = """
    a an the this that these those such same other another any some each every either neither no none both all few
    many more most much several own less least lot enough i me my mine myself we us our ours ourselves you your yours
    yourself yourselves he him his himself she her hers herself it its itself they them their theirs themselves one
    ones oneself who whom whose which what whatever whoever someone somebody something anyone anybody anything
    everyone everybody everything nobody nothing and or but nor so yet if then else because since as until while
    although though unless whether than when whenever where wherever why how here there of at by for with about
    against between among into onto through during before after above below to from up down in out on off over under
    within without upon toward towards across along around behind beside besides beyond near per via again further
    once be am is are was were been being have has had having do does did doing done can could will would shall should
    may might must ought not only very too also just even still ever never always often now etc eg ie esp usually
    ll ve re didn doesn isn aren wasn weren hasn haven hadn wouldn couldn shouldn
"""
# A passage holds nearly all of them, so that they would only reward long glosses.
STOP_WORDS = frozenset(_FUNCTION_WORDS.split())
MAX_LENGTH = 64  # characters; WordNet's longest word has half as many, and what is longer should fill no cache
_WORD = re.compile(r"[^\W_]{2,}")  # also the parts of savings_bank and of well-known; the s of bank's is none
_TOKEN = re.compile(r"[^\W_]+")
RELATIONS = (
    ("hypernyms", "instance_hypernyms"),
    ("hyponyms", "instance_hyponyms"),  # of verbs: troponyms
    ("member_meronyms", "part_meronyms", "substance_meronyms"),
    ("member_holonyms", "part_holonyms", "substance_holonyms"),
    ("attributes",),
    ("also_sees",),
    ("similar_tos",),
)
_MAX_WORDS = 400


def list_words(text: str) -> list[str]:
    """Words of a gloss or a context as signatures hold them: in lower case, their base forms, no function words."""
    tokens = _WORD.findall(text.lower())
    return [_lemmatize(word) for word in tokens if word not in STOP_WORDS and len(word) <= MAX_LENGTH]


@lru_cache(1 << 17)
def _lemmatize(word: str) -> str:
    """The first base form that differs from the word, of noun, verb, adjective, adverb: glosses carry no tags."""
    forms = (wordnet.lemmatize(word, upos) for upos in wordnet.POS)
    return next((form for form in forms if form != word), word)


class Text(NamedTuple):
    """The words of a relation's glosses; an empty word ends each gloss."""

    words: list[str]
    positions: dict[str, list[int]]  # of the content words
    size: int  # words without the empty ones


def make_text(glosses: list[str]) -> Text:
    """Make the text of a relation."""
    tokens = [token for gloss in glosses for token in (*_TOKEN.findall(gloss.lower()), "")][:_MAX_WORDS]
    words = [token if token in STOP_WORDS else _lemmatize(token) for token in tokens]
    positions: dict[str, list[int]] = {}
    for i, word in enumerate(words):
        if len(word) > 1 and word not in STOP_WORDS:
            positions.setdefault(word, []).append(i)
    return Text([*words, ""], positions, sum(map(bool, words)))


def score_phrases(first: Text, second: Text) -> int:
    """Sum the squared lengths of the phrases that two texts share."""
    heapify(phrases := _list_phrases(first, second))
    free_first, free_second = [True] * len(first.words), [True] * len(second.words)
    score = 0
    while phrases:
        length, i, j = heappop(phrases)
        free = [free_first[i + k] and free_second[j + k] for k in range(-length)]
        if all(free):
            score += length**2
            free_first[i : i - length] = free_second[j : j - length] = [False] * -length
            continue
        for is_free, places in groupby(range(-length), free.__getitem__):  # what remains between removed words
            content = [k for k in places if is_free and first.words[i + k] in first.positions]
            if content:
                heappush(phrases, (content[0] - content[-1] - 1, i + content[0], j + content[0]))
    return score


def _list_phrases(first: Text, second: Text) -> list[tuple[int, int, int]]:
    """List the longest phrases from each pair of equal words: minus their length, and their place in each text."""
    phrases, covered = [], set()
    words = first.positions.keys() & second.positions.keys()
    starts = sorted(pair for word in words for pair in product(first.positions[word], second.positions[word]))
    for i, j in starts:
        if (i, j) in covered:
            continue
        k = size = 0
        while (word := first.words[i + k]) and word == second.words[j + k]:  # both texts end with an empty word
            k += 1
            if word in first.positions:
                covered.add((i + k - 1, j + k - 1))
                size = k
        phrases.append((-size, i, j))
    return phrases


@lru_cache(1 << 12)
def load_texts(synset: str) -> tuple[frozenset[str], list[Text]]:
    """Make the texts of a sense, its own gloss first; and the content words of all of them."""
    sense = wordnet.load_reader().synset(synset)
    groups = [[other for name in names for other in getattr(sense, name)()] for names in RELATIONS]
    # sorted, since nltk has them in sets
    groups = [[sense], *(sorted(group, key=lambda other: str(other.name())) for group in groups)]
    texts = [make_text([other.definition() for other in group]) for group in groups if group]
    return frozenset().union(*(text.positions for text in texts)), texts


@lru_cache(1 << 16)
def relate(synset: str, other: str, *, normalise: bool = False) -> float:
    """How related two senses are; normalised, each pair of texts counts by the product of their numbers of words."""
    (words, texts), (other_words, other_texts) = load_texts(synset), load_texts(other)
    if words.isdisjoint(other_words):
        return 0.0
    pairs = (pair for pair in product(texts, other_texts) if not pair[0].positions.keys().isdisjoint(pair[1].positions))
    return sum(score_phrases(*pair) / (pair[0].size * pair[1].size if normalise else 1) for pair in pairs)
