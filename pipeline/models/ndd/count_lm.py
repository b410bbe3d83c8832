"""A masked language model of counts: which words stand between which, smoothed by Witten and Bell (1991).

    P(w | before, behind) = (c(before, w, behind) + T P') / (N + T)      P' the mean of both sides
    P(w | before)         = (c(before, w) + T P(w)) / (N + T)            P(w | behind) alike
    P(w)                  = (c(w) + T / V) / (N + T)

N is how often a context was seen and T how many words in it (Chen and Goodman 1998, section 2.4); what was never seen
falls to the next line. It is built from word lists in seconds, needs no weights from elsewhere and gives the same
numbers everywhere, so it is the embedded default to try things out. It knows two neighbours, no meaning: what is
measured by it shows that the mechanics work and is no result.

The words a sentence repeats can count as well, by a share of their own distribution (a cache language model, Kuhn and
De Mori 1990); without it a word further off than the neighbours changes nothing.
"""

import hashlib
import json
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
Sentence = Sequence[str]

KIND = "count"
VOCABULARY = 8192
LIMIT = 4_000_000  # rows of `both`, of 16 bytes each, from which rare contexts are left out
_ROWS, _NUMBERS = 256, 1 << 21  # distributions made at a time, and how many numbers they are at most: 16 MB
_NONE = -1  # no neighbour is known


class HeldOut(NamedTuple):
    """How well a model tells words it was not built from."""

    nats: float  # mean of -log p
    accuracy: float  # share of the places where the likeliest word is the one that stands there
    places: int


class _Smoothed(NamedTuple):
    """P(w | context) = rows[context, w] + lower[context] P'(w)."""

    rows: "csr_matrix"  # c / (N + T)
    lower: Floats  # T / (N + T), or 1 where nothing was seen


class _Text(NamedTuple):
    """Sentences as numbers, one after another, each between two boundaries."""

    ids: Ints
    start: Ints  # [n]: of each one's first boundary
    length: Ints  # [n]


@dataclass(frozen=True, eq=False)
class CountLM:
    """A `MaskedModel` of counts; its distributions are over `words` and, last, all other words as one.

    Numbers in the tables are those of `words`; the next one stands for other words, the one after it for a sentence's
    end, which is a neighbour and never predicted.
    """

    words: list[str]  # the frequent ones first
    left: Counts  # [k, 3]: word before, word, count
    right: Counts  # [k, 3]: word behind, word, count
    both: Counts  # [k, 4]: word before, word behind, word, count
    is_folded: bool = False
    cache: float = 0.0
    pruned: int = 0  # contexts left out of `both`

    def __post_init__(self) -> None:
        if not 0 <= self.cache < 1:
            raise BadInput(f"cache: expected a share from 0 to below 1, found {self.cache}")

    @property
    def size(self) -> int:
        """Entries of a distribution, the one for other words among them."""
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
        """Log probabilities of the vocabulary where one word is masked, a batch at a time.

        At place -1 stands what is likely before the first word, told from that word alone: P(w | behind). At place n
        what is likely behind the last of n, P(w | before). Equal contexts are computed once a batch.

        Args:
            sentences: each of its words.
            sentence: of each ask, [m].
            place: of the word in it, [m], from -1 to n.

        Yields:
            Rows of the asks [b], ordered by context, and log probabilities [b, size], float32.

        Raises:
            ValueError: a place that its sentence does not have.
        """
        used, owner = np.unique(sentence, return_inverse=True)
        text = _encoded(self, [sentences[int(i)] for i in used])
        before, behind = _neighbours(text, owner, place)
        order = np.lexsort((behind, before))
        for start in range(0, len(order), self._step):
            rows = order[start : start + self._step]
            contexts, which = np.unique(np.stack([before, behind], axis=1)[rows], axis=0, return_inverse=True)
            chances = torch.from_numpy(self._dense(*contexts.T)).float()[which.reshape(-1)]
            yield rows, self._mixed(chances, text, owner[rows], place[rows]) if self.cache else chances.log_()

    def unchanged(self, sentences: Sequence[Sentence], one: Ints, other: Ints) -> npt.NDArray[np.bool_]:
        """Whether what stands around two places is the same, so that the distributions are: [m].

        Args:
            sentences: each of its words.
            one: sentence and place, [m, 2].
            other: the same of the other, [m, 2].
        """
        if self.cache:  # all words count
            return np.zeros(len(one), bool)
        text = _encoded(self, sentences)
        pairs = zip(*(_neighbours(text, each[:, 0], each[:, 1]) for each in (one, other)), strict=True)
        before, behind = (first == second for first, second in pairs)
        return np.asarray(before & behind, bool)

    def surprisals(self, sentences: Sequence[Sentence]) -> list[Floats]:
        """-log p, in nats, of each word of each sentence, each masked alone; of a word not known, that of any such."""
        text = _encoded(self, sentences)
        owner, place = _places(text.length)
        word = text.ids[text.start[owner] + 1 + place]
        found = self._chances(*_neighbours(text, owner, place), word)
        if self.cache:
            _, same, times = np.unique(owner * self.size + word, return_inverse=True, return_counts=True)
            others = text.length[owner] - 1
            repeated = (times[same.reshape(-1)] - 1) / np.maximum(others, 1)
            found = np.where(others > 0, (1 - self.cache) * found + self.cache * repeated, found)
        return np.split(-np.log(found), np.cumsum(text.length)[:-1]) if len(sentences) else []

    def tensors(self) -> dict[str, Tensor]:
        """The counts, to be kept as safetensors."""
        return {name: torch.from_numpy(getattr(self, name)) for name in _TABLES}

    def config(self) -> dict[str, Any]:
        """All but the counts, to be kept as JSON."""
        return {"kind": KIND, **{name: getattr(self, name) for name in ("words", "is_folded", "cache", "pruned")}}

    @cached_property
    def number(self) -> dict[str, int]:
        """Of each word its place in a distribution."""
        return {word: number for number, word in enumerate(self.words)}

    @cached_property
    def _left(self) -> _Smoothed:
        return _smoothed(self.left[:, 0], self.left[:, 1:], self.size + 1, self.size)

    @cached_property
    def _right(self) -> _Smoothed:
        return _smoothed(self.right[:, 0], self.right[:, 1:], self.size + 1, self.size)

    @cached_property
    def _both(self) -> tuple[Ints, _Smoothed]:
        """Contexts, ascending, as one number each; what was seen in them, and a last row for those never seen."""
        contexts, row = np.unique(_joined(self.both[:, 0], self.both[:, 1], self.size + 1), return_inverse=True)
        return contexts, _smoothed(row.reshape(-1), self.both[:, 2:], len(contexts) + 1, self.size)

    @cached_property
    def _alone(self) -> Floats:
        """P(w): [size]."""
        count = np.bincount(self.left[:, 1], self.left[:, 2], self.size)
        types = np.count_nonzero(count)
        found: Floats = (count + types / self.size) / (count.sum() + types)
        return found

    def _parts(self, before: Ints, behind: Ints) -> tuple[Ints, Floats, Floats, Floats]:
        """Of each context its row in `_both`, and the weights of the left side, of the right side and of P(w)."""
        contexts, both = self._both
        key = np.where((before < 0) | (behind < 0), _NONE, _joined(before, behind, self.size + 1))
        row = np.searchsorted(contexts, key)
        row[np.append(contexts, _NONE - 1)[row] != key] = len(contexts)
        share = np.where(before < 0, 0.0, np.where(behind < 0, 1.0, 0.5))
        left, right = both.lower[row] * share, both.lower[row] * (1 - share)
        return row, left, right, left * self._left.lower[before] + right * self._right.lower[behind]

    def _dense(self, before: Ints, behind: Ints) -> Floats:
        """P(w | before, behind): [k, size]."""
        from scipy.sparse import diags

        row, left, right, alone = self._parts(before, behind)
        seen = diags(left) @ self._left.rows[before] + diags(right) @ self._right.rows[behind]
        found: Floats = (seen + self._both[1].rows[row]).toarray()
        found += alone[:, None] * self._alone
        return found

    def _chances(self, before: Ints, behind: Ints, word: Ints) -> Floats:
        """The same of one word a context: [k]."""
        if not len(word):
            return np.empty(0)
        row, left, right, alone = self._parts(before, behind)
        tables = (self._left.rows[before, word], self._right.rows[behind, word], self._both[1].rows[row, word])
        of_left, of_right, of_both = (np.asarray(each).reshape(-1) for each in tables)
        found: Floats = of_both + left * of_left + right * of_right + alone * self._alone[word]
        return found

    @property
    def _step(self) -> int:
        return max(1, min(_ROWS, _NUMBERS // self.size))

    def _mixed(self, chances: Tensor, text: _Text, owner: Ints, place: Ints) -> Tensor:
        """The logarithm of probabilities mixed with the distribution of each sentence's other words, if it has some."""
        from scipy.sparse import csr_matrix

        length = text.length[owner]
        ask, at = _places(length)
        is_other = at != place[ask]
        ask, at = ask[is_other], at[is_other]
        count = np.bincount(ask, minlength=len(owner))
        words = text.ids[text.start[owner[ask]] + 1 + at]
        others = csr_matrix((self.cache / count[ask], (ask, words)), (len(owner), self.size), np.float32).toarray()
        rest = np.where(count > 0, 1 - self.cache, 1).astype(np.float32)
        return chances.mul_(torch.from_numpy(rest)[:, None]).add_(torch.from_numpy(others)).log_()


_TABLES = {"left": 3, "right": 3, "both": 4}


def fit(
    sentences: Iterable[Sentence], vocabulary: int = VOCABULARY, *, is_folded: bool = False, limit: int = LIMIT
) -> CountLM:
    """Count the words of sentences, each of them between its neighbours.

    In memory are a number a word of the corpus and all its different words, and while it is counted some 120 bytes a
    word. The order of sentences does not matter; those without words count nothing.

    Args:
        sentences: each of its words; gone through once.
        vocabulary: so many of the most frequent words are told apart, of equally frequent ones those first by code
            point; all others are one.
        is_folded: whether capitals are small letters, here and in what is asked.
        limit: if more different words between two neighbours were seen, neighbours seen once as a pair are left out,
            and `pruned` says how many.

    Raises:
        BadInput: there is no word, or the vocabulary is not of 1 to 1,000,000 words.
    """
    if not 1 <= vocabulary <= 1_000_000:  # the square and the cube are to be 64-bit numbers
        raise BadInput(f"vocabulary: expected 1 to 1,000,000 words, found {vocabulary}")
    number: dict[str, int] = {}
    flat = array("i", [_NONE])
    for sentence in sentences:
        words = map(str.casefold, sentence) if is_folded else sentence
        flat.extend([number.setdefault(word, len(number)) for word in words])
        flat.append(_NONE)
    if not number:
        raise BadInput("there is nothing to count: expected at least one sentence with a word")
    ids = np.array(flat, np.int64)
    times = np.bincount(ids[ids >= 0])
    kept = sorted(number, key=lambda word: (-times[number[word]], word))[:vocabulary]
    final = np.full(len(number) + 1, len(kept))
    final[[number[word] for word in kept]] = np.arange(len(kept))
    final[_NONE] = end = len(kept) + 1
    ids = final[ids]
    at = np.flatnonzero(ids != end)
    before, word, behind = ids[at - 1], ids[at], ids[at + 1]
    both, pruned = _counted(before, behind, word, base=end + 1), 0
    if len(both) > limit:
        _, pair, seen = np.unique(_joined(before, behind, end + 1), return_inverse=True, return_counts=True)
        is_kept = seen[pair.reshape(-1)] > 1
        both, pruned = _counted(before[is_kept], behind[is_kept], word[is_kept], base=end + 1), int((seen == 1).sum())
    left, right = (_counted(side, word, base=end + 1) for side in (before, behind))
    return CountLM(kept, left, right, both, is_folded, pruned=pruned)


def with_cache(model: CountLM, share: float) -> CountLM:
    """The same counts, with so large a share for the other words of a sentence; from 0 to below 1, else BadInput."""
    return replace(model, cache=share)


def load(tensors: Mapping[str, Tensor], config: Mapping[str, Any]) -> CountLM:
    """The model whose `tensors` and `config` were kept.

    Raises:
        BadInput: they are no model of this kind.
    """
    words = config.get("words")
    if config.get("kind") != KIND or not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise BadInput(f"this is no model of kind {KIND!r}: config.json holds kind {config.get('kind')!r:.40}")
    tables: list[npt.NDArray[Any]] = []
    for name, width in _TABLES.items():
        table = tensors[name].numpy() if name in tensors else np.empty(0)
        if table.dtype != np.int32 or table.shape[1:] != (width,):
            raise BadInput(f"tensor {name!r}: expected int32 [k, {width}], found {table.dtype} {list(table.shape)}")
        highest = np.array([len(words) + 1] * (width - 2) + [len(words)])
        if len(table) and (table.min() < 0 or table[:, -1].min() < 1 or (table[:, :-1].max(axis=0) > highest).any()):
            raise BadInput(f"tensor {name!r}: counts below 1, or numbers that none of {len(words)} words has")
        tables.append(table)
    left, right, both = tables
    options = {name: config[name] for name in ("is_folded", "cache", "pruned") if name in config}
    return CountLM(words, left, right, both, **options)


def cross_entropy(model: CountLM, sentences: Sequence[Sentence]) -> HeldOut:
    """How well the model tells each word of held-out sentences from its neighbours; a word not known is one of them.

    Only models of the same vocabulary can be compared: with fewer words more of them are "not known" and easy to tell.

    Raises:
        BadInput: there is no word.
    """
    surprisal = np.concatenate([np.empty(0), *model.surprisals(sentences)])
    if not len(surprisal):
        raise BadInput("there is nothing to tell: expected at least one sentence with a word")
    owner, place = _places(np.array([len(each) for each in sentences], np.int64))
    text = _encoded(model, sentences)
    word = text.ids[text.start[owner] + 1 + place]
    right = sum(
        int((said.argmax(dim=1).numpy() == word[rows]).sum())
        for rows, said in model.distributions(sentences, owner, place)
    )
    return HeldOut(float(surprisal.mean()), right / len(word), len(word))


def _encoded(model: CountLM, sentences: Sequence[Sentence]) -> _Text:
    number, other = model.number, len(model.words)
    ids, length = array("i"), np.array([len(each) for each in sentences], np.int64)
    for each in sentences:
        ids.append(model.size)
        ids.extend([number.get(word, other) for word in (map(str.casefold, each) if model.is_folded else each)])
        ids.append(model.size)
    return _Text(np.array(ids, np.int64), np.cumsum(length + 2) - length - 2, length)


def _places(length: Ints) -> tuple[Ints, Ints]:
    """Sentence and place of every word."""
    owner = np.repeat(np.arange(len(length)), length)
    return owner, np.arange(len(owner)) - (np.cumsum(length) - length)[owner]


def _neighbours(text: _Text, owner: Ints, place: Ints) -> tuple[Ints, Ints]:
    """Words before and behind each place."""
    length = text.length[owner]
    if (is_outside := (place < -1) | (place > length)).any():
        row = int(is_outside.argmax())
        raise ValueError(f"ask {row}: expected a place from -1 to {length[row]}, found {place[row]}")
    at, last = text.start[owner] + 1 + place, len(text.ids) - 1
    before = np.where(place < 0, _NONE, text.ids[np.maximum(at - 1, 0)])
    return before, np.where(place == length, _NONE, text.ids[np.minimum(at + 1, last)])


def _joined(one: npt.NDArray[Any], other: npt.NDArray[Any], base: int) -> Ints:
    return np.asarray(one.astype(np.int64) * base + other, np.int64)


def _counted(*columns: Ints, base: int) -> Counts:
    """Different rows of columns of numbers below `base`, ascending, and how often each is there."""
    key = columns[0]
    for column in columns[1:]:
        key = _joined(key, column, base)
    rows, times = np.unique(key, return_counts=True)
    found = [times]
    for _ in columns[1:]:
        rows, last = np.divmod(rows, base)
        found.append(last)
    return np.stack([rows, *found[:0:-1], times], axis=1).astype(np.int32)


def _smoothed(context: npt.NDArray[Any], told: Counts, contexts: int, size: int) -> _Smoothed:
    """Of rows [k] of contexts, and words and counts [k, 2]."""
    from scipy.sparse import csr_matrix

    word, count = told.T
    types = np.bincount(context, minlength=contexts)
    total = np.bincount(context, count, contexts) + types
    lower = np.divide(types, total, out=np.ones(contexts), where=total > 0)
    return _Smoothed(csr_matrix((count / total[context], (context, word)), (contexts, size)), lower)
