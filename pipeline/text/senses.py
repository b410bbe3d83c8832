"""Word senses by adapted Lesk (Banerjee & Pedersen 2002), as ReCAM labels its summaries (section 3.3; REC-09).

Our reading: a sense's signature is the set of words of the gloss, examples and lemma names of its synset and of the
synsets one relation away; its score is the number of different words it shares with the context, summary and passage
together; ties go to the more frequent sense. Banerjee and Pedersen compare glosses with glosses and square the lengths
of shared phrases: the measure `glosses`, by `text.glosses`. Signatures are made once and mapped into memory.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.errors import BadInput, Missing, check_name, refuse_damage
from pipeline.io.atomic import create_folder
from pipeline.text import glosses, wordnet

Ints = npt.NDArray[np.integer]
RELATIONS = [name for names in glosses.RELATIONS for name in names if name != "attributes"]


class Candidates(NamedTuple):
    """The senses of a lemma, the most frequent first."""

    synsets: list[str]
    levels: list[int]
    sizes: Ints
    signatures: Ints  # end to end


class _Memo(dict[Any, Any]):
    """Values by key, made when they are first asked for; half the cost of lru_cache, which is most of ours.

    Forgets all when it is full, and never holds an overlong key: texts may be made to fill memory.
    """

    def __init__(self, make: Callable[[Any], Any], most: int) -> None:
        self._make, self._most = make, most

    def __missing__(self, key: Sequence[str]) -> Any:
        value = self._make(key)
        if len("".join(key)) <= 2 * glosses.MAX_LENGTH:
            if len(self) >= self._most:
                self.clear()
            self[key] = value
        return value


class Store(NamedTuple):
    """Signatures of all senses of all lemmas, read-only and mapped from their files."""

    words: dict[str, int]
    numbers: Mapping[str, list[int]]  # words of any token
    candidates: Mapping[tuple[str, str], Candidates | None]  # senses of any target


_FORMAT = 1
_ARRAYS = (
    "words", "lemmas",  # by part of speech and lemma, as n:bank
    "synsets", "levels",  # names of synsets, and their levels, -1 for adjectives and adverbs
    "sense_offsets", "senses", "sizes",  # of lemma j: sense_offsets[j]:sense_offsets[j + 1], the most frequent first
    "word_offsets", "signatures",  # of lemma j, end to end, the i-th of them `sizes[i]` words long: one read
)  # fmt: skip


def build(folder: Path) -> None:
    """Make the signatures of the WordNet at hand and write them as `folder`, complete or not at all.

    Takes about 20 CPU seconds and 0.8 GB. A folder that is there already is left as it is; `load` checks it.
    """
    if folder.exists():
        return
    arrays = _build_arrays()
    header = {"format": _FORMAT, "wordnet": wordnet.read_version(), "synsets": len(arrays["synsets"])}
    with create_folder(folder, may_exist=True) as draft:
        for name in _ARRAYS:
            np.save(draft / f"{name}.npy", arrays[name], allow_pickle=False)
        (draft / "header.json").write_text(json.dumps(header), encoding="utf-8")


def _build_arrays() -> dict[str, npt.NDArray[Any]]:
    synsets = [synset for pos in wordnet.POS.values() for synset in wordnet.load_reader().all_synsets(pos)]
    row = {synset: i for i, synset in enumerate(synsets)}
    lemmas = {
        f"{pos}:{name.replace('_', ' ')}": [row[synset] for synset in wordnet.list_synsets(name, pos)]
        for pos in wordnet.POS.values()
        for name in sorted(wordnet.load_reader().all_lemma_names(pos))
    }
    sense_offsets = np.cumsum([0, *map(len, lemmas.values())], dtype=np.int64)
    senses = np.array([i for rows in lemmas.values() for i in rows], np.int32)
    levels = {name: level for pos in wordnet.POS.values() for name, level in wordnet.load_levels(pos).items()}
    vocabulary, contents = _build_signatures(synsets, row)
    sense_words = contents[senses]
    return {
        "words": np.array([word.encode() for word in vocabulary], np.bytes_),
        "lemmas": np.array([lemma.encode() for lemma in lemmas], np.bytes_),
        "synsets": np.array([synset.name().encode() for synset in synsets], np.bytes_),
        "levels": np.array([levels.get(synset.name(), -1) for synset in synsets], np.int8),
        "sense_offsets": sense_offsets,
        "senses": senses,
        "sizes": np.diff(sense_words.indptr).astype(np.int32),
        "word_offsets": sense_words.indptr[sense_offsets].astype(np.int64),
        "signatures": sense_words.indices.astype(np.int32),
    }


def _build_signatures(synsets: Sequence[Any], row: dict[Any, int]) -> tuple[list[str], Any]:
    """Vocabulary, and which of its words each synset holds [synsets, words]: its own and those of its neighbours."""
    from scipy.sparse import csr_array

    vocabulary: dict[str, int] = {}
    own_words, neighbours = [], []
    for i, synset in enumerate(synsets):
        text = " ".join([synset.definition(), *synset.examples(), *synset.lemma_names()])
        own_words += [(i, vocabulary.setdefault(word, len(vocabulary))) for word in glosses.list_words(text)]
        neighbours += [(i, i), *((i, row[other]) for name in RELATIONS for other in getattr(synset, name)())]

    def build_matrix(pairs: list[tuple[int, int]], columns: int) -> Any:
        flags = np.ones(len(pairs), bool)  # adding booleans is "or": no count overflows
        return csr_array((flags, np.array(pairs, np.int32).reshape(-1, 2).T), shape=(len(synsets), columns))

    signatures = build_matrix(neighbours, len(synsets)) @ build_matrix(own_words, len(vocabulary))
    signatures.sort_indices()
    return list(vocabulary), signatures


def load(folder: Path) -> Store:
    """Map a store that `build` wrote; BadInput if it is damaged, of another WordNet or by another version of ours."""
    if not folder.is_dir():
        raise Missing(f"no word senses in {folder}; pipeline.text.senses.build makes them of WordNet in half a minute")
    remedy = "remove the folder and build it again"
    with refuse_damage(folder, remedy):
        header = json.loads((folder / "header.json").read_text(encoding="utf-8"))
        # plain views: the subclass memmap makes each small indexing slow
        read = partial(np.load, mmap_mode="r", allow_pickle=False)
        arrays = {name: np.asarray(read(folder / f"{name}.npy")) for name in _ARRAYS}
    expected = {"format": _FORMAT, "wordnet": wordnet.read_version(), "synsets": len(arrays["synsets"])}
    if header != expected:
        raise BadInput(f"{folder}: expected word senses of {expected}, found {header}; {remedy}")
    for values, offsets in (("senses", "sense_offsets"), ("signatures", "word_offsets")):
        if len(arrays[offsets]) != len(arrays["lemmas"]) + 1 or arrays[offsets][-1] != len(arrays[values]):
            raise BadInput(f"{folder}: damaged word senses ({values} and {offsets} do not fit); {remedy}")
    words, lemmas = ({key.decode(): i for i, key in enumerate(arrays[name].tolist())} for name in _ARRAYS[:2])
    return Store(
        words,
        _Memo(lambda token: [words[word] for word in glosses.list_words(token) if word in words], 1 << 17),
        _Memo(lambda target: _find_candidates(target[0], target[1], lemmas, arrays), 1 << 14),
    )


def _find_candidates(
    lemma: str, pos: str, lemmas: dict[str, int], arrays: dict[str, npt.NDArray[Any]]
) -> Candidates | None:
    row = lemmas.get(f"{pos}:{lemma.lower().replace('_', ' ')}")
    if row is None:
        return None
    senses, words = (slice(*arrays[name][row : row + 2].tolist()) for name in ("sense_offsets", "word_offsets"))
    rows = arrays["senses"][senses]
    names = [name.decode() for name in arrays["synsets"][rows].tolist()]
    levels, sizes = arrays["levels"][rows].tolist(), arrays["sizes"][senses]
    return Candidates(names, levels, sizes, arrays["signatures"][words])


class Sense(NamedTuple):
    """The chosen sense of a target."""

    synset: str  # its name, as bank.n.01
    level: int | None  # `wordnet.level` of it, kept with the signatures
    overlap: float  # its score; by signatures: different words of the context in its signature
    sense_count: int  # senses it was chosen from


MEASURES = ("signatures", "glosses", "glosses_normalised")
WINDOW = 5  # words of the context on each side of a target, by glosses
Scores = dict[tuple[str, str], list[float]]


def disambiguate(
    store: Store, targets: Sequence[tuple[str, str]], context: Iterable[str], measure: str = MEASURES[0]
) -> list[Sense | None]:
    """Choose the sense of each target that has the highest score; of several the most frequent.

    By signatures a score is the number of words that signature and context share. By glosses it is the sum of
    `glosses.relate` over all senses of the nearest words of the context, in any part of speech.

    A target is a lemma and WordNet's letter of its part of speech, as ("bank", "n"); its sense is None where WordNet
    has no such lemma. The context is the tokens of the summary and the passage: forms or lemmas. By signatures their
    order is nothing; by glosses a target is at its first place in the context, or before all words if it is not there.
    """
    check_name("measure of word senses", measure, MEASURES)
    candidates = {target: senses for target in targets if (senses := store.candidates[target])}  # each once
    if measure == MEASURES[0]:
        scores = _count_shared(store, candidates, context)
    else:
        scores = _sum_relatedness(store, candidates, list(context), normalise=measure == MEASURES[2])
    sense_of = {}
    for target, senses in candidates.items():
        score = max(scores[target])
        best = scores[target].index(score)  # the first of those that tie
        level = senses.levels[best]
        sense_of[target] = Sense(senses.synsets[best], level if level >= 0 else None, score, len(senses.synsets))
    return [sense_of.get(target) for target in targets]


def _count_shared(store: Store, candidates: dict[tuple[str, str], Candidates], context: Iterable[str]) -> Scores:
    if not candidates:
        return {}
    marked = np.zeros(len(store.words), bool)
    marked[list(chain.from_iterable(map(store.numbers.__getitem__, set(context))))] = True
    ends = np.cumsum(np.concatenate([senses.sizes for senses in candidates.values()]))
    signatures = np.concatenate([senses.signatures for senses in candidates.values()])
    sums = np.zeros(len(signatures) + 1, np.int64)
    np.cumsum(marked[signatures], out=sums[1:])
    overlaps = iter(np.diff(sums[ends], prepend=0).tolist())
    return {target: list(islice(overlaps, len(senses.synsets))) for target, senses in candidates.items()}


def _sum_relatedness(
    store: Store, candidates: dict[tuple[str, str], Candidates], context: list[str], normalise: bool
) -> Scores:
    scores, find, relate = {}, partial(_list_senses, store), partial(glosses.relate, normalise=normalise)
    for (lemma, pos), senses in candidates.items():
        upos = next(name for name, letter in wordnet.POS.items() if letter == pos)
        forms = (wordnet.lemmatize(word, upos) if len(word) <= glosses.MAX_LENGTH else "" for word in context)
        place = next((i for i, form in enumerate(forms) if form == lemma.lower()), -1)
        sides = (context[i] for i in range(place - 1, -1, -1)), islice(context, place + 1, None)
        near = [name for side in sides for names in islice(filter(None, map(find, side)), WINDOW) for name in names]
        scores[lemma, pos] = [sum(relate(synset, other) for other in near) for synset in senses.synsets]
    return scores


def _list_senses(store: Store, word: str) -> list[str]:
    if word.lower() in glosses.STOP_WORDS or len(word) > glosses.MAX_LENGTH:
        return []
    keys = ((wordnet.lemmatize(word, upos), pos) for upos, pos in wordnet.POS.items())
    return list(dict.fromkeys(name for key in keys if (senses := store.candidates[key]) for name in senses.synsets))
