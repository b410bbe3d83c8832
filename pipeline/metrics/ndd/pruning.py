"""What compression drops, seen in the dependency tree: how deep its words stand, and how many of its spans are subtrees
(NDD, section 5.1, table 7; NDD-34).

In: of each sentence the heads of its words, as in `pipeline.text.trees`, and the spans that were dropped, as pairs of
start and end (exclusive). One span may hold another that was dropped before it; its words count once.

The paper's treebank is PTB-3, with heads of another kind than UD's, so numbers on UD are compared with random spans on
UD, not with table 7. What it calls a subtree is open: more of its random spans are one than a tree has of words with
all their descendants, so it may also count several of them side by side.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import Literal

import numpy as np
import polars as pl

from pipeline.metrics.recam import reading
from pipeline.metrics.resample import SEED
from pipeline.text.trees import Heads, find_subtrees, measure_depths

Span = tuple[int, int]
Spans = Sequence[Sequence[Span]]
Subtree = Literal["one", "several"]
DEPTHS = ("depth_1", "depth_2", "depth_3", "depth_4_or_more")
SUBTREES = ("subtree_1", "subtree_2", "subtree_3_or_more")
DRAWS = 2000
_SCHEMA = {"metric": pl.String, "value": pl.Float64, "low": pl.Float64, "high": pl.Float64, "n": pl.Int64}


def evaluate(heads: Sequence[Heads], spans: Spans, *, subtree: Subtree = "one", draws: int = DRAWS) -> pl.DataFrame:
    """Measure Depth-n and Subtree-k, with percentile bootstrap intervals of 95 % over sentences.

    - depth_1 to depth_4_or_more: the share of dropped words that stand so deep; 1 is the root. Fewer at the top are
      better.
    - subtree_1 to subtree_3_or_more: of the dropped spans of so many words, the share of those that are subtrees. A
      whole sentence is none.

    Heads are of the words of each sentence, -1 for the root. A subtree, `one`, is a word with all its descendants;
    `several` are one or more of these, so that no other word hangs on a word of the span.

    Returns a row a measure: metric, value, low, high, n: of how many words, or spans of that length. The three are null
    where n is 0.
    """
    word_rows, span_rows = [], []  # sentence, depth; sentence, length, whether it is a subtree
    for number, (parents, dropped) in enumerate(zip(heads, spans, strict=True)):
        word_depths, subtree_spans = measure_depths(parents), _find_subtrees(parents, dropped, subtree)
        word_rows += [(number, int(word_depths[word])) for word in {word for span in dropped for word in range(*span)}]
        span_rows += [(number, end - start, (start, end) in subtree_spans) for start, end in dropped]
    rights = [[(sentence, min(depth, 4) == n) for sentence, depth in word_rows] for n in range(1, 5)]
    rights += [[(sentence, right) for sentence, size, right in span_rows if min(size, 3) == k] for k in range(1, 4)]
    rows: list[tuple[object, ...]] = []
    for name, pairs in zip(DEPTHS + SUBTREES, rights, strict=True):
        sentences, is_right = zip(*pairs, strict=True) if pairs else ((), ())
        interval = reading.accuracy(is_right, sentences, draws=draws) if pairs else (None, None, None, 0)
        rows.append((name, *interval))
    return pl.DataFrame(rows, schema=_SCHEMA, orient="row")


def _find_subtrees(heads: Heads, spans: Sequence[Span], subtree: Subtree) -> set[Span]:
    """List the spans that are subtrees; other subtrees may be among them."""
    if subtree == "one":
        return {(start, end) for start, end in find_subtrees(heads).tolist()}
    parents = np.asarray(heads, np.int64)
    positions = np.arange(len(parents))
    subtrees = set()
    for start, end in spans:
        is_outside = (positions < start) | (positions >= end)
        if is_outside.any() and not (is_outside & (parents >= start) & (parents < end)).any():
            subtrees.add((start, end))
    return subtrees


def list_dropped_spans(rounds: Sequence[int]) -> list[Span]:
    """List the dropped spans of a sentence from the round in which each word was dropped, 0 where it was kept.

    Words that stood next to each other when they were dropped in one round are one span, which holds what had been
    dropped between them: two adjacent spans of one round become one.
    """
    spans = []
    for number in {*rounds} - {0}:
        remaining = [place for place, dropped in enumerate(rounds) if dropped in (0, number) or dropped > number]
        for dropped, run in groupby(remaining, [round_number == number for round_number in rounds].__getitem__):
            if dropped:
                places = [*run]
                spans.append((places[0], places[-1] + 1))
    return sorted(spans)


def draw_random_spans(sizes: Sequence[int], spans: Spans, *, seed: int = SEED) -> list[list[Span]]:
    """Draw random spans, for each sentence as many and as long as a system dropped.

    The paper's baseline has "the same compression ratio" and no more; here lengths are the same too, so that no system
    is better for its short spans. Spans inside another one are not counted. All places are equally likely; spans may
    touch.
    """
    rng = np.random.default_rng(seed)
    return [_place_spans(size, _list_outer_spans(part), rng) for size, part in zip(sizes, spans, strict=True)]


def _place_spans(size: int, spans: Sequence[Span], rng: np.random.Generator) -> list[Span]:
    """Place disjoint spans of the same lengths at random."""
    shuffled = rng.permutation(np.array([end - start for start, end in spans], np.int64))
    free_count = size - int(shuffled.sum())
    slots = np.sort(rng.choice(free_count + len(shuffled), len(shuffled), replace=False))
    starts = slots + np.cumsum(shuffled) - shuffled - np.arange(len(shuffled))
    return [(int(start), int(start + length)) for start, length in zip(starts, shuffled, strict=True)]


def _list_outer_spans(spans: Sequence[Span]) -> list[Span]:
    outer: list[Span] = []
    for start, end in sorted(spans, key=lambda span: (span[0], -span[1])):
        if not outer or start >= outer[-1][1]:
            outer.append((start, end))
    return outer
