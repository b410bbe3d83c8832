"""Longest common subsequences of a batch of candidates with their references, all pairs at once (for `rouge`).

Bit-parallel, one step a reference token (Hyyrö, 2004): bit i of a pair's row after t tokens is 0 where one token more
of the candidate, the one at i, makes the LCS with the first t reference tokens longer. A row is one machine word where
the candidate has up to 64 tokens, a Python integer in an array of objects where it has more; the code is the same.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.metrics.overlap.segments import Batch, Ints, list_owners

Rows = npt.NDArray[Any]  # of bits: uint64, or objects that are Python integers

BITS = 64


def measure_lengths(batch: Batch) -> Ints:
    """Measure the LCS of each reference with its candidate: int64 [m]."""
    lcs_lengths = np.zeros(len(batch.owner), np.int64)
    for part, pairs, _, dtype in _split_by_width(batch):
        lcs_lengths[pairs] = _read_lengths(_build_plan(part, dtype))
    return lcs_lengths


def locate_matches(batch: Batch) -> Ints:
    """Locate each reference token of the LCS in its candidate, else -1: int64 [R], from 0.

    A pair may have several LCS. This is the canonical one: from the last token back it takes of the candidate, and then
    of the reference, the earliest places that still leave it as long.
    """
    lcs_places = np.full(len(batch.ref_words), -1, np.int64)
    for part, _, tokens, dtype in _split_by_width(batch):
        lcs_places[tokens] = _read_places(_build_plan(part, dtype))
    return lcs_places


def _split_by_width(batch: Batch) -> Iterator[tuple[Batch, npt.NDArray[np.bool_], npt.NDArray[np.bool_], type]]:
    """Yield the segments with short candidates, then those with long ones.

    Each is a batch, its pairs and reference tokens in the whole batch, and the type of a row of bits.
    """
    sizes, ref_sizes = np.diff(batch.ends), np.diff(batch.ref_ends)
    for segments, dtype in (((sizes > 0) & (sizes <= BITS), np.uint64), (sizes > BITS, object)):
        if not segments.any():
            continue
        pairs = segments[batch.owner]
        tokens = np.repeat(pairs, ref_sizes)
        part = replace(
            batch,
            words=batch.words[np.repeat(segments, sizes)],
            ends=np.concatenate([[0], np.cumsum(sizes[segments])]),
            ref_words=batch.ref_words[tokens],
            ref_ends=np.concatenate([[0], np.cumsum(ref_sizes[pairs])]),
            owner=(np.cumsum(segments) - 1)[batch.owner[pairs]],
            weights=batch.weights[pairs],
        )
        yield part, pairs, tokens, dtype


class _Plan(NamedTuple):
    """Pairs by falling length of the reference, so that those which still have a token at a step stand in front."""

    order: Ints  # which pair stands there
    starts: Ints  # of its reference
    alive: Ints  # how many pairs have a token at each step
    width: Ints  # tokens of its candidate
    full: Rows  # a bit each
    masks: Rows  # where in its candidate the word of each reference token stands, [R]


def _build_plan(batch: Batch, dtype: type) -> _Plan:
    sizes = np.diff(batch.ref_ends)
    order = np.argsort(-sizes, kind="stable")
    alive = len(sizes) - np.searchsorted(sizes[order[::-1]], np.arange(sizes.max()), side="right")
    width = np.diff(batch.ends)[batch.owner[order]]
    return _Plan(
        order, batch.ref_ends[:-1][order], alive, width, _fill_bits(width.astype(dtype)), _build_masks(batch, dtype)
    )


def _run_steps(plan: _Plan) -> Iterator[tuple[Ints, Rows]]:
    """Yield the reference tokens that each step reads, and the rows of all pairs after it."""
    rows = plan.full.copy()
    for step, count in enumerate(plan.alive):
        tokens = plan.starts[:count] + step
        row = rows[:count]
        hit = row & plan.masks[tokens]
        rows[:count] = ((row + hit) | (row - hit)) & plan.full[:count]
        yield tokens, rows


def _read_lengths(plan: _Plan) -> Ints:
    rows = plan.full
    for _, rows in _run_steps(plan):  # noqa: B007
        pass
    lcs_lengths = np.empty(len(plan.order), np.int64)
    lcs_lengths[plan.order] = plan.width - np.bitwise_count(rows).astype(np.int64)
    return lcs_lengths


def _read_places(plan: _Plan) -> Ints:
    rows_after = np.empty_like(plan.masks)  # the row of its pair after each reference token
    for tokens, rows in _run_steps(plan):
        rows_after[tokens] = rows[: len(tokens)]
    lcs_places = np.full(len(rows_after), -1, np.int64)
    prefix, width = plan.full.copy(), int(plan.width.max())  # the part of each candidate before its last match
    for step in range(len(plan.alive) - 1, -1, -1):
        count = plan.alive[step]
        tokens = plan.starts[:count] + step
        before = rows_after[tokens - 1] if step else plan.full[:count]
        upto = _smear(~rows_after[tokens] & prefix[:count], width)  # up to the last candidate token that adds one
        is_match = (upto ^ (upto >> 1)) & before != 0  # and adds none without this reference token
        prefix[:count] = np.where(is_match, upto >> 1, upto)
        lcs_places[tokens] = np.where(is_match, np.bitwise_count(upto).astype(np.int64) - 1, -1)
    return lcs_places


def _build_masks(batch: Batch, dtype: type) -> Rows:
    """Mark where the word of each reference token stands in its candidate, as bits: [R]."""
    segment = list_owners(batch.ends)
    bits = np.array(1, dtype) << (np.arange(len(batch.words)) - batch.ends[segment]).astype(dtype)
    span = 1 + max(batch.words.max(initial=0), batch.ref_words.max(initial=0))
    keys = segment * span + batch.words
    order = np.argsort(keys, kind="stable")
    distinct, starts = np.unique(keys[order], return_index=True)
    table = np.bitwise_or.reduceat(bits[order], starts)
    reference_keys = batch.owner[list_owners(batch.ref_ends)] * span + batch.ref_words
    key_index = np.searchsorted(distinct, reference_keys).clip(max=len(distinct) - 1)
    return np.where(distinct[key_index] == reference_keys, table[key_index], np.array(0, dtype))


def _fill_bits(count: Rows) -> Rows:
    """Set the lowest `count` bits; 64 works too, as a machine word wraps around to 0 and then to all bits."""
    return (np.ones_like(count) << count) - 1


def _smear(row: Rows, width: int) -> Rows:
    """Set the highest bit and all below it."""
    shift = 1
    while shift < width:
        row = row | (row >> shift)
        shift *= 2
    return row
