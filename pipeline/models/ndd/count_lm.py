"""A masked language model from counts of words between their neighbours, smoothed by Witten and Bell (1991).

    P(w | before, behind) = (c(before, w, behind) + T P') / (N + T)      P' the mean of both sides
    P(w | before)         = (c(before, w) + T P(w)) / (N + T)            P(w | behind) alike
    P(w)                  = (c(w) + T / V) / (N + T)

N is the count of a context and T its number of distinct words (Chen and Goodman 1998, section 2.4). The model is built
in seconds and gives the same numbers everywhere: the embedded default for trials, whose numbers are not results. A
cache (Kuhn and De Mori 1990) can mix in the distribution of the sentence's other words.
"""

import hashlib
import json
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pipeline.errors import BadInput

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Counts = npt.NDArray[np.int32]
Masks = npt.NDArray[np.bool_]
Sentence = Sequence[str]
KIND = "count"
VOCABULARY = 8192
LIMIT = 4_000_000  # rows of `both`, of 16 bytes each, from which rare contexts are left out
_ROWS, _NUMBERS = 256, 1 << 21  # distributions made at a time, and how many numbers they are at most: 16 MB
_NONE = -1  # no neighbour is known


class HeldOut(NamedTuple):
    """The quality of a model on held-out words."""

    nats: float  # mean of -log p
    accuracy: float  # share of the places where the most probable word is the right one
    places: int


class _Smoothed(NamedTuple):  # P(w | context) = rows[context, w] + lower[context] P'(w)
    rows: "csr_matrix"  # c / (N + T)
    lower: Floats  # T / (N + T), or 1 where nothing was seen


class _Text(NamedTuple):  # sentences as concatenated ids, each between two boundaries
    ids: Ints
    start: Ints  # [n]: position of a sentence's first boundary
    length: Ints  # [n]


@dataclass(frozen=True, eq=False)
class CountLM:
    """A `MaskedModel` of counts; its distributions are over `words` and, last, all other words as one.

    The tables hold indices of `words`; the next index is any other word, and the one after it a sentence boundary,
    which is a neighbour and never predicted.
    """

    words: list[str]  # the frequent ones first
    left: Counts  # [k, 3]: word before, word, count
    right: Counts  # [k, 3]: word behind, word, count
    both: Counts  # [k, 4]: word before, word behind, word, count
    is_folded: bool = False
    cache: float = 0.0  # share for the other words of a sentence
    pruned: int = 0  # contexts left out of `both`

    def __post_init__(self) -> None:
        if not 0 <= self.cache < 1:
            raise BadInput(f"cache: expected a share from 0 to below 1, found {self.cache}")

    @property
    def size(self) -> int:
        """Entries of a distribution, including the one for other words."""
        return len(self.words) + 1

    @cached_property
    def signature(self) -> str:
        """Kind, hash of the counts, number of words, options."""
        digest = hashlib.sha256(json.dumps([self.words, self.is_folded]).encode())
        for table in (self.left, self.right, self.both):
            digest.update(np.ascontiguousarray(table, "<i4").tobytes())
        return f"{KIND}:{digest.hexdigest()[:12]}|words:{len(self.words)}|cache:{self.cache:g}"

    def distributions(
        self, sentences: Sequence[Sentence], sentence: Ints, place: Ints
    ) -> Iterator[tuple[Ints, Tensor]]:
        """Compute log probabilities at masked words, float32, in batches: see `metrics.ndd.distance.MaskedModel`.

        Before the first word they are P(w | behind), behind the last one P(w | before). ValueError for another place.
        """
        used, owner = np.unique(sentence, return_inverse=True)
        text = _encode(self, [sentences[int(i)] for i in used])
        neighbours = _find_neighbours(text, owner, place)
        order, size = np.lexsort(neighbours.T[::-1]), max(1, min(_ROWS, _NUMBERS // self.size))
        for start in range(0, len(order), size):
            rows = order[start : start + size]
            contexts, index = np.unique(neighbours[rows], axis=0, return_inverse=True)
            probabilities = torch.from_numpy(self._compute_distributions(*contexts.T)).float()[index.reshape(-1)]
            if self.cache:
                self._mix_cache(probabilities, text, owner[rows], place[rows])
            yield rows, probabilities.log_()

    def unchanged(self, sentences: Sequence[Sentence], asks: Ints, other_asks: Ints) -> npt.NDArray[np.bool_]:
        """Return whether two asks (sentence and place, [m, 2]) have equal contexts, so equal distributions: [m]."""
        if self.cache:  # all words count
            return np.zeros(len(asks), bool)
        text = _encode(self, sentences)
        first, second = (_find_neighbours(text, *part.T) for part in (asks, other_asks))
        return np.asarray((first == second).all(axis=1), bool)

    def surprisals(self, sentences: Sequence[Sentence]) -> list[Floats]:
        """Compute -log p in nats of each word of each sentence, masked alone; unknown words count as one word."""
        text = _encode(self, sentences)
        owner, place = _list_places(text.length)
        word = text.ids[text.start[owner] + 1 + place]
        before, behind = _find_neighbours(text, owner, place).T
        probabilities = self._compute_probabilities(before, behind, word)
        if self.cache:
            _, same, counts = np.unique(owner * self.size + word, return_inverse=True, return_counts=True)
            other_counts = text.length[owner] - 1
            repeated = (counts[same.reshape(-1)] - 1) / np.maximum(other_counts, 1)
            mixed = (1 - self.cache) * probabilities + self.cache * repeated
            probabilities = np.where(other_counts > 0, mixed, probabilities)
        return np.split(-np.log(probabilities), np.cumsum(text.length)[:-1]) if len(sentences) else []

    def tensors(self) -> dict[str, Tensor]:
        """Return the tables of counts."""
        return {name: torch.from_numpy(getattr(self, name)) for name in _TABLES}

    def config(self) -> dict[str, Any]:
        """Return the configuration without the counts."""
        return {"kind": KIND, **{name: getattr(self, name) for name in ("words", "is_folded", "cache", "pruned")}}

    @cached_property
    def number(self) -> dict[str, int]:
        """The index of each word in a distribution."""
        return {word: number for number, word in enumerate(self.words)}

    @cached_property
    def _side_tables(self) -> list[_Smoothed]:
        """The counts behind the word before, and before the word behind."""
        return [_smooth(side[:, 0], side[:, 1:], self.size + 1, self.size) for side in (self.left, self.right)]

    @cached_property
    def _both_table(self) -> tuple[Ints, _Smoothed]:
        """The contexts as sorted numbers, and their counts, with a last row for unseen contexts."""
        contexts, row = np.unique(_join_ids(self.both[:, 0], self.both[:, 1], self.size + 1), return_inverse=True)
        return contexts, _smooth(row.reshape(-1), self.both[:, 2:], len(contexts) + 1, self.size)

    @cached_property
    def _unigrams(self) -> Floats:
        """P(w): [size]."""
        count = np.bincount(self.left[:, 1], self.left[:, 2], self.size)
        types = np.count_nonzero(count)
        probabilities: Floats = (count + types / self.size) / (count.sum() + types)
        return probabilities

    def _weigh_tables(self, before: Ints, behind: Ints) -> tuple[Ints, Floats, Floats, Floats]:
        """Of each context its row in `_both_table`, and the weights of the left side, of the right side and of P(w)."""
        contexts, table = self._both_table
        key = np.where((before < 0) | (behind < 0), _NONE, _join_ids(before, behind, self.size + 1))
        row = np.searchsorted(contexts, key)
        row[np.append(contexts, _NONE - 1)[row] != key] = len(contexts)
        share = np.where(before < 0, 0.0, np.where(behind < 0, 1.0, 0.5))
        left_weight, right_weight = table.lower[row] * share, table.lower[row] * (1 - share)
        left, right = self._side_tables
        unigram_weight = left_weight * left.lower[before] + right_weight * right.lower[behind]
        return row, left_weight, right_weight, unigram_weight

    def _compute_distributions(self, before: Ints, behind: Ints) -> Floats:
        """Compute P(w | before, behind): [k, size]."""
        from scipy.sparse import diags

        row, left_weight, right_weight, unigram_weight = self._weigh_tables(before, behind)
        left, right = self._side_tables
        weighted = diags(left_weight) @ left.rows[before] + diags(right_weight) @ right.rows[behind]
        distributions: Floats = (weighted + self._both_table[1].rows[row]).toarray()
        distributions += unigram_weight[:, None] * self._unigrams
        return distributions

    def _compute_probabilities(self, before: Ints, behind: Ints, word: Ints) -> Floats:
        """Compute the probability of one word in each context: [k]."""
        if not len(word):
            return np.empty(0)
        row, left_weight, right_weight, unigram_weight = self._weigh_tables(before, behind)
        tables, contexts = (self._both_table[1], *self._side_tables), (row, before, behind)
        values, left_values, right_values = (
            np.asarray(table.rows[context, word]).reshape(-1) for table, context in zip(tables, contexts, strict=True)
        )
        unigrams = self._unigrams[word]
        values = values + left_weight * left_values + right_weight * right_values + unigram_weight * unigrams
        return np.asarray(values, np.float64)

    def _mix_cache(self, probabilities: Tensor, text: _Text, owner: Ints, place: Ints) -> None:
        """Mix probabilities with the distribution of each sentence's other words, in place."""
        from scipy.sparse import csr_matrix

        length = text.length[owner]
        ask, position = _list_places(length)
        is_other = position != place[ask]
        ask, position = ask[is_other], position[is_other]
        count = np.bincount(ask, minlength=len(owner))
        words = text.ids[text.start[owner[ask]] + 1 + position]
        cache = csr_matrix((self.cache / count[ask], (ask, words)), (len(owner), self.size), np.float32).toarray()
        rest = np.where(count > 0, 1 - self.cache, 1).astype(np.float32)
        probabilities.mul_(torch.from_numpy(rest)[:, None]).add_(torch.from_numpy(cache))


_TABLES = {"left": 3, "right": 3, "both": 4}


def fit(
    sentences: Iterable[Sentence], vocabulary: int = VOCABULARY, *, is_folded: bool = False, limit: int = LIMIT
) -> CountLM:
    """Count the words of sentences between their neighbours, with some 120 bytes a word; their order does not matter.

    The most frequent words are distinguished, ties by code point; all others are one word. Case is folded if
    `is_folded`, here and in prediction. Above the limit of distinct trigrams, pairs of neighbours that occur once are
    left out and counted in `pruned`.
    """
    if not 1 <= vocabulary <= 1_000_000:  # the square and the cube are to be 64-bit numbers
        raise BadInput(f"vocabulary: expected 1 to 1,000,000 words, found {vocabulary}")
    id_of: dict[str, int] = {}
    flat = array("i", [_NONE])
    for sentence in sentences:
        words = map(str.casefold, sentence) if is_folded else sentence
        flat.extend([id_of.setdefault(word, len(id_of)) for word in words])
        flat.append(_NONE)
    if not id_of:
        raise BadInput("there is nothing to count: expected at least one sentence with a word")
    ids = np.array(flat, np.int64)
    counts = np.bincount(ids[ids >= 0])
    frequent_words = sorted(id_of, key=lambda word: (-counts[id_of[word]], word))[:vocabulary]
    final = np.full(len(id_of) + 1, len(frequent_words))
    final[[id_of[word] for word in frequent_words]] = np.arange(len(frequent_words))
    final[_NONE] = end = len(frequent_words) + 1
    ids = final[ids]
    positions = np.flatnonzero(ids != end)
    before, word, behind = ids[positions - 1], ids[positions], ids[positions + 1]
    both_counts, pruned = _count_rows(before, behind, word, base=end + 1), 0
    if len(both_counts) > limit:
        _, pair, pair_counts = np.unique(_join_ids(before, behind, end + 1), return_inverse=True, return_counts=True)
        is_kept, pruned = pair_counts[pair.reshape(-1)] > 1, int((pair_counts == 1).sum())
        both_counts = _count_rows(before[is_kept], behind[is_kept], word[is_kept], base=end + 1)
    left_counts, right_counts = (_count_rows(side, word, base=end + 1) for side in (before, behind))
    return CountLM(frequent_words, left_counts, right_counts, both_counts, is_folded, pruned=pruned)


def load(tensors: Mapping[str, Tensor], config: Mapping[str, Any]) -> CountLM:
    """Load a model from its `tensors` and `config`; raise BadInput if they are not a model of this kind."""
    words = config.get("words")
    if config.get("kind") != KIND or not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise BadInput(f"this is no model of kind {KIND!r}: config.json holds kind {config.get('kind')!r:.40}")
    tables: dict[str, Any] = {}
    for name, width in _TABLES.items():
        table = tensors[name].numpy() if name in tensors else np.empty(0)
        if table.dtype != np.int32 or table.shape[1:] != (width,):
            raise BadInput(f"tensor {name!r}: expected int32 [k, {width}], found {table.dtype} {list(table.shape)}")
        highest = np.array([len(words) + 1] * (width - 2) + [len(words)])
        if len(table) and (table.min() < 0 or table[:, -1].min() < 1 or (table[:, :-1].max(axis=0) > highest).any()):
            raise BadInput(f"tensor {name!r}: counts below 1, or numbers that none of {len(words)} words has")
        tables[name] = table
    options = {name: config[name] for name in ("is_folded", "cache", "pruned") if name in config}
    return CountLM(words, **tables, **options)


def measure_cross_entropy(model: CountLM, sentences: Sequence[Sentence]) -> HeldOut:
    """Measure how well held-out words are predicted; only models of the same vocabulary can be compared."""
    surprisal = np.concatenate([np.empty(0), *model.surprisals(sentences)])
    if not len(surprisal):
        raise BadInput("there is nothing to predict: expected at least one sentence with a word")
    owner, is_right, _ = find_right(model, sentences)
    return HeldOut(float(surprisal.mean()), float(is_right.mean()), len(owner))


def find_most_frequent(model: CountLM) -> str:
    """Find the word that was counted most."""
    counts = np.bincount(model.left[:, 1], model.left[:, 2], model.size)
    return model.words[int(counts[: len(model.words)].argmax())]


def find_right(model: CountLM, sentences: Sequence[Sentence]) -> tuple[Ints, Masks, Masks]:
    """Find where the most likely word is the right one; return each word's sentence, whether, and if it is known."""
    owner, place = _list_places(np.array([len(sentence) for sentence in sentences], np.int64))
    text = _encode(model, sentences)
    word = text.ids[text.start[owner] + 1 + place]
    is_right = np.zeros(len(word), bool)
    for rows, log_probabilities in model.distributions(sentences, owner, place):
        is_right[rows] = log_probabilities.argmax(dim=1).numpy() == word[rows]
    return owner, is_right, word < len(model.words)


def _encode(model: CountLM, sentences: Sequence[Sentence]) -> _Text:
    id_of, other = model.number, len(model.words)
    ids, length = array("i"), np.array([len(sentence) for sentence in sentences], np.int64)
    for sentence in sentences:
        ids.append(model.size)
        ids.extend([id_of.get(word, other) for word in (map(str.casefold, sentence) if model.is_folded else sentence)])
        ids.append(model.size)
    return _Text(np.array(ids, np.int64), np.cumsum(length + 2) - length - 2, length)


def _list_places(length: Ints) -> tuple[Ints, Ints]:
    """Return sentence and place of every word."""
    owner = np.repeat(np.arange(len(length)), length)
    return owner, np.arange(len(owner)) - (np.cumsum(length) - length)[owner]


def _find_neighbours(text: _Text, owner: Ints, place: Ints) -> Ints:
    """Return the words before and behind each place: [m, 2]."""
    length = text.length[owner]
    if (is_outside := (place < -1) | (place > length)).any():
        row = int(is_outside.argmax())
        raise ValueError(f"ask {row}: expected a place from -1 to {length[row]}, found {place[row]}")
    position, last = text.start[owner] + 1 + place, len(text.ids) - 1
    before = np.where(place < 0, _NONE, text.ids[np.maximum(position - 1, 0)])
    behind = np.where(place == length, _NONE, text.ids[np.minimum(position + 1, last)])
    return np.stack([before, behind], axis=1)


def _join_ids(first_ids: npt.NDArray[Any], second_ids: npt.NDArray[Any], base: int) -> Ints:
    return np.asarray(first_ids.astype(np.int64) * base + second_ids, np.int64)


def _count_rows(*columns: Ints, base: int) -> Counts:
    """Return the distinct rows of columns of numbers below `base`, sorted, with their counts."""
    keys = np.ravel_multi_index(columns, (base,) * len(columns))
    distinct, counts = np.unique(keys, return_counts=True)
    return np.stack([*np.unravel_index(distinct, (base,) * len(columns)), counts], axis=1).astype(np.int32)


def _smooth(context: npt.NDArray[Any], counts: Counts, contexts: int, size: int) -> _Smoothed:
    """Smooth counts: contexts [k], and their words and counts [k, 2]."""
    from scipy.sparse import csr_matrix

    word, count = counts.T
    types = np.bincount(context, minlength=contexts)
    total = np.bincount(context, count, contexts) + types
    lower = np.divide(types, total, out=np.ones(contexts), where=total > 0)
    return _Smoothed(csr_matrix((count / total[context], (context, word)), (contexts, size)), lower)
