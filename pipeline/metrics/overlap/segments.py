"""Candidates with their weighted references, streamed in batches of numbers that the overlap metrics read.

In: streams with an entry a segment: the candidate's tokens, the references' tokens, the references' weights (s_j of
section 4). Out: batches, in which a token is a number that holds for this batch alone.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, count, zip_longest
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.errors import BadInput

Ints = npt.NDArray[np.int64]
Tokens = Sequence[str]

SIZE = 512  # segments of a batch


@dataclass(frozen=True, eq=False)
class Batch:
    """n candidates of W tokens with m references of R tokens; `words[ends[i]:ends[i + 1]]` is candidate i."""

    words: Ints  # [W] tokens of all candidates, one candidate after another
    ends: Ints  # [n + 1] from 0 to W
    ref_words: Ints  # [R]
    ref_ends: Ints  # [m + 1] from 0 to R
    owner: Ints  # [m] the candidate of each reference, non-decreasing; every candidate owns at least one
    weights: npt.NDArray[np.float64]  # [m] s_j
    types: list[str]  # the token of each number
    grams: list[Any] = field(default_factory=list, init=False)  # what `ngrams.matches` made, for the next who asks


class _Row(NamedTuple):
    number: int  # from 1
    candidate: Tokens
    references: Sequence[Tokens]
    weights: Sequence[float]


def read_batches(
    candidates: Iterable[Tokens],
    references: Iterable[Sequence[Tokens]],
    weights: Iterable[Sequence[float]] | None = None,
    *,
    size: int = SIZE,
    low: float = 0.0,
    high: float = 1.0,
) -> Iterator[Batch]:
    """Read segments in batches; at most one is held.

    A candidate without tokens is read and scores 0 with every metric. A reference without tokens is read too: it
    matches nothing, but it is one of the K of CIDEr, and its length of 0 is one that BLEU may find closest.

    Args:
        candidates: tokens of each candidate.
        references: of each candidate at least one reference, as tokens.
        weights: of each candidate a weight of each reference (AAC-18); all 1 by default.
        size: segments of a batch, at least 1; no score depends on it.
        low: the lowest weight; ΔBLEU has -1.
        high: the highest weight.

    Raises:
        BadInput: more entries of one stream than of another, no references, text that is not in tokens, weights that
            are not as many as references or not between `low` and `high`; it names the row, from 1.
        ValueError: a size below 1.
    """
    if size < 1:
        raise ValueError(f"size should be at least 1, not {size}")
    pending: list[_Row] = []
    for row in _read_rows(candidates, references, weights, low, high):
        pending.append(row)
        if len(pending) == size:
            yield _build_batch(pending)
            pending = []
    if pending:
        yield _build_batch(pending)


def list_owners(ends: Ints) -> Ints:
    """List the text number of each token: [n + 1] -> [W]."""
    return np.repeat(np.arange(len(ends) - 1), np.diff(ends))


def count_remaining(ends: Ints) -> Ints:
    """Count the tokens of its text from each token on, at least 1: [n + 1] -> [W]. An n-gram needs n."""
    return np.repeat(ends[1:], np.diff(ends)) - np.arange(ends[-1])


def list_starts(owner: Ints) -> Ints:
    """List where the references of each candidate start: [m] -> [n], for `reduceat`."""
    return np.flatnonzero(np.diff(owner, prepend=-1))


def _read_rows(
    candidates: Iterable[Tokens],
    references: Iterable[Sequence[Tokens]],
    weights: Iterable[Sequence[float]] | None,
    low: float,
    high: float,
) -> Iterator[_Row]:
    """Yield checked rows."""
    streams: dict[str, Iterable[Any]] = {"candidate": candidates, "references": references}
    streams |= {} if weights is None else {"weights": weights}
    end = object()  # not None, which a stream may hold by mistake
    for number, entries in enumerate(zip_longest(*streams.values(), fillvalue=end), 1):
        if missing := [name for name, entry in zip(streams, entries, strict=True) if entry is end]:
            present_names = [name for name in streams if name not in missing]
            raise BadInput(
                f"row {number}: no {' and no '.join(missing)}, but {' and '.join(present_names)}; expected as many"
            )
        candidate, row_references, *row_weights = entries
        _check_tokens(number, "candidate", candidate)
        if isinstance(row_references, str) or not isinstance(row_references, Sequence) or not len(row_references):
            raise BadInput(
                f"row {number}, references: expected a list of at least one, found {_format_value(row_references)}"
            )
        for reference in row_references:
            if type(reference) is not list:  # a call for each of 27 references is a third of the reading
                _check_tokens(number, "references", reference)
        weight_values = (
            _check_weights(number, row_weights[0], len(row_references), low, high)
            if row_weights
            else [1.0] * len(row_references)
        )
        yield _Row(number, candidate, row_references, weight_values)


def _check_tokens(number: int, field: str, tokens: object) -> None:
    """Reject plain text, which would be read as a list of characters."""
    if isinstance(tokens, str) or not isinstance(tokens, Sequence):
        raise BadInput(f"row {number}, {field}: expected a list of tokens, found {_format_value(tokens)}")


def _check_weights(number: int, weights: object, expected: int, low: float, high: float) -> list[float]:
    """Return the weights of a row as floats."""
    values = weights.tolist() if isinstance(weights, np.ndarray) else weights
    if not isinstance(values, Sequence) or isinstance(values, str) or len(values) != expected:
        raise BadInput(
            f"row {number}, weights: expected a list of {expected}, as of references, found {_format_value(values)}"
        )
    if set(map(type, values)) == {float} and all(low <= weight <= high for weight in values):
        return list(values)  # as nearly all are, so that the rest may take its time
    for weight in values:
        is_number = isinstance(weight, Real) and not isinstance(weight, bool)
        if not is_number or not math.isfinite(weight) or not low <= weight <= high:
            raise BadInput(
                f"row {number}, weights: expected numbers between {low:g} and {high:g}, found {_format_value(weight)}"
            )
    return [float(weight) for weight in values]


def _build_batch(rows: list[_Row]) -> Batch:
    """Convert rows to numbers."""
    numbers: defaultdict[str, int] = defaultdict(count().__next__)
    references = [*chain.from_iterable(row.references for row in rows)]
    try:
        words, ends = _number_tokens([row.candidate for row in rows], numbers)
        ref_words, ref_ends = _number_tokens(references, numbers)
    except TypeError:  # what cannot be hashed, such as a list of lists
        raise _find_non_text(rows) from None
    if not all(issubclass(kind, str) for kind in set(map(type, numbers))):
        raise _find_non_text(rows)
    owner = np.repeat(np.arange(len(rows)), [len(row.references) for row in rows]).astype(np.int64)
    weights = np.fromiter(chain.from_iterable(row.weights for row in rows), np.float64, count=len(references))
    return Batch(words, ends, ref_words, ref_ends, owner, weights, list(numbers))


def _number_tokens(texts: list[Tokens], numbers: defaultdict[str, int]) -> tuple[Ints, Ints]:
    """Number the tokens of all texts as they come, and return where each text ends."""
    ends = np.zeros(len(texts) + 1, np.int64)
    np.cumsum([*map(len, texts)], out=ends[1:])
    return np.fromiter(map(numbers.__getitem__, chain.from_iterable(texts)), np.int64, count=ends[-1]), ends


def _find_non_text(rows: list[_Row]) -> BadInput:
    """Find the first token that is no text."""
    for row in rows:
        fields: dict[str, Iterable[object]] = {
            "candidate": row.candidate, "references": chain.from_iterable(row.references)
        }  # fmt: skip
        for name, tokens in fields.items():
            for token in tokens:
                if not isinstance(token, str):
                    return BadInput(
                        f"row {row.number}, {name}: expected tokens that are text, found {_format_value(token)}"
                    )
    raise AssertionError("every token is text")


def _format_value(value: object) -> str:
    """Shorten a value for a message."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"
