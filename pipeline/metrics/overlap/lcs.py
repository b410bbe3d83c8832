"""Longest common subsequences of a batch of candidates with their references, all pairs at once (for `rouge`).

Bit-parallel, one step a reference token (Hyyrö, 2004): bit i of a pair's row after t tokens is 0 where the candidate's
token i makes the LCS with the first t longer. A row is a machine word up to 64 tokens, beyond it a Python integer.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.metrics.overlap.segments import Batch, list_owners
from pipeline.metrics.resample import Ints

Rows = npt.NDArray[Any]  # of bits: uint64, or objects that are Python integers

BITS = 64


def measure_lengths(batch: Batch) -> Ints:
    """Measure the LCS of each reference with its candidate: int64 [m]."""
    is_match = locate_matches(batch) >= 0
    return np.bincount(list_owners(batch.ref_ends)[is_match], minlength=len(batch.owner))


def locate_matches(batch: Batch) -> Ints:
    """Locate each reference token of the LCS in its candidate, else -1: int64 [R], from 0.

    A pair may have several LCS. This is the canonical one: from the last token back it takes of the candidate, and then
    of the reference, the earliest places that still leave it as long.
    """
    lcs_places = np.full(len(batch.ref_words), -1, np.int64)
    sizes, ref_sizes = np.diff(batch.ends), np.diff(batch.ref_ends)
    for segments, dtype in (((sizes > 0) & (sizes <= BITS), np.uint64), (sizes > BITS, object)):
        if segments.any():
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
            lcs_places[tokens] = _locate_matches(part, dtype)
    return lcs_places


def _locate_matches(batch: Batch, dtype: type) -> Ints:
    """Locate matches in candidates that all have tokens, with rows of one type."""
    sizes, masks = np.diff(batch.ref_ends), _build_masks(batch, dtype)
    order = np.argsort(-sizes, kind="stable")  # pairs that still have a token at a step stand in front
    alive = len(sizes) - np.searchsorted(sizes[order[::-1]], np.arange(sizes.max()), side="right")
    steps = [batch.ref_ends[:-1][order[:count]] + step for step, count in enumerate(alive)]  # tokens of each
    width: Rows = np.diff(batch.ends)[batch.owner[order]].astype(dtype)
    full = (np.ones_like(width) << width) - 1  # 64 bits too, as a machine word wraps around to 0, then to all bits
    rows, rows_after = full.copy(), np.empty_like(masks)  # the row of its pair after each reference token
    for tokens in steps:
        row = rows[: len(tokens)]
        hit = row & masks[tokens]
        rows[: len(tokens)] = rows_after[tokens] = ((row + hit) | (row - hit)) & full[: len(tokens)]
    lcs_places = np.full(len(masks), -1, np.int64)
    prefix = full.copy()  # the part of each candidate before its last match
    for step, tokens in reversed([*enumerate(steps)]):
        before = rows_after[tokens - 1] if step else full[: len(tokens)]
        # up to the last candidate token that adds one
        upto = _fill_below(~rows_after[tokens] & prefix[: len(tokens)], int(width.max()))
        is_match = (upto ^ (upto >> 1)) & before != 0  # and adds none without this reference token
        prefix[: len(tokens)] = np.where(is_match, upto >> 1, upto)
        lcs_places[tokens] = np.where(is_match, np.bitwise_count(upto).astype(np.int64) - 1, -1)
    return lcs_places


def _build_masks(batch: Batch, dtype: type) -> Rows:
    """Mark where the word of each reference token stands in its candidate, as bits: [R]."""
    segment, kinds = list_owners(batch.ends), len(batch.types)
    bits = np.array(1, dtype) << (np.arange(len(batch.words)) - batch.ends[segment]).astype(dtype)
    keys = segment * kinds + batch.words
    order = np.argsort(keys, kind="stable")
    distinct, starts = np.unique(keys[order], return_index=True)
    table = np.bitwise_or.reduceat(bits[order], starts)
    reference_keys = batch.owner[list_owners(batch.ref_ends)] * kinds + batch.ref_words
    key_index = np.searchsorted(distinct, reference_keys).clip(max=len(distinct) - 1)
    return np.where(distinct[key_index] == reference_keys, table[key_index], np.array(0, dtype))


def _fill_below(row: Rows, width: int) -> Rows:
    """Set the highest bit and all below it."""
    shift = 1
    while shift < width:
        row = row | (row >> shift)
        shift *= 2
    return row
