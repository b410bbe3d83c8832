"""Negatives: for each pair the explicit sentence of another pair of its source (ImpScore, section 4; IMP-19)."""

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.examples.splits import SEED

CANDIDATES = 32  # drawn for a hard negative
TOO_ALIKE = 0.95  # cosine from which another pair's sentence may have the same meaning
_CHUNK = 1024  # pairs whose candidates are compared at once

DROPPED = dict.fromkeys(("source", "reason", "row_key"), pl.String())

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]


def add_negatives(
    pairs: pl.DataFrame, seed: int = SEED, vectors: Floats | None = None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Add `negative`: the explicit sentence of another pair of the same source, never of the same text (IMP-19).

    If the source has other sentences, it is also no meaning of the same implicit sentence in another pair, nor that
    sentence itself. All allowed rows are equally likely; the order of the pairs does not matter. Pairs of a source with
    one explicit text are dropped as `no_negative`. Texts that differ in capitals alone are one text. With `vectors`,
    float32 [n, d] embeddings of the explicit sentences, which may be mapped from a file, negatives are hard: of 32
    drawn sentences the one nearest to the pair's explicit sentence with a cosine below 0.95, or the farthest if none is
    below.
    """
    if vectors is not None and len(vectors) != len(pairs):
        raise ValueError(f"expected a vector for each of {len(pairs)} pairs, got {len(vectors)}")
    rng = np.random.default_rng(seed)
    parts, dropped = [], []
    ordered = pairs.with_row_index("_row").sort("source", "pair_id")
    for source in ordered.partition_by("source", maintain_order=True):
        texts = pl.concat([source["implicit"], source["explicit"]])
        key = texts.str.to_lowercase()
        if key[source.height :].n_unique() < 2:
            dropped.append(source.select("source", reason=pl.lit("no_negative"), row_key="pair_id"))
            continue
        ranks = pl.select(rank=texts.rank("dense").cast(pl.Int64), key=key)
        numbers = ranks.select(pl.col("rank").min().over("key") - 1).to_series().to_numpy()
        implicit, explicit = np.split(numbers, 2)
        if vectors is None:
            picks = _draw_allowed(implicit, explicit, rng)
        else:
            picks = _draw_hard(implicit, explicit, vectors, source["_row"].to_numpy(), rng)
        parts.append(source.with_columns(negative=source["explicit"].gather(picks)))
    empty = ordered.clear().with_columns(negative=pl.lit("", pl.String))
    return pl.concat([empty, *parts]).drop("_row"), pl.concat([pl.DataFrame(schema=DROPPED), *dropped])


def _draw_foreign(explicit: Ints, rng: np.random.Generator) -> Ints:
    """Draw, for each row, one with another explicit text: of the positions past the block of equal texts."""
    order = np.argsort(explicit, kind="stable")
    _, start, block, size = np.unique(explicit[order], return_index=True, return_inverse=True, return_counts=True)
    start, size = start[block], size[block]
    positions = np.floor(rng.random(len(explicit)) * (len(explicit) - size)).astype(np.int64)
    positions += np.where(positions >= start, size, 0)
    picks = np.empty(len(explicit), np.int64)
    picks[order] = order[positions]
    return picks


def _is_barred(implicit: Ints, explicit: Ints, picks: Ints) -> npt.NDArray[np.bool_]:
    """Test whether each pick ([n] or [n, k]) is, or is a meaning of, the row's own implicit sentence."""
    width = int(max(implicit.max(), explicit.max())) + 1
    barred = np.concatenate([implicit * width + explicit, implicit * width + implicit])
    return np.isin(implicit.reshape(-1, *[1] * (picks.ndim - 1)) * width + explicit[picks], barred)


def _draw_allowed(implicit: Ints, explicit: Ints, rng: np.random.Generator) -> Ints:
    """Draw an allowed row for each row, and draw again, among allowed rows alone, where the first pick is barred."""
    picks = _draw_foreign(explicit, rng)
    for i in np.flatnonzero(_is_barred(implicit, explicit, picks)):
        allowed = np.flatnonzero(~np.isin(explicit, [implicit[i], *explicit[implicit == implicit[i]]]))
        if len(allowed):  # else every text of the source is a meaning of this sentence, and any other text must do
            picks[i] = rng.choice(allowed)
    return picks


def _draw_hard(
    implicit: Ints, explicit: Ints, vectors: Floats, vector_rows: npt.NDArray[np.uint32], rng: np.random.Generator
) -> Ints:
    """Draw 32 rows for each row and pick, of the allowed ones, the nearest below 0.95, else the farthest."""
    picks = _draw_allowed(implicit, explicit, rng)
    candidates = np.stack([picks, *(_draw_foreign(explicit, rng) for _ in range(CANDIDATES - 1))], axis=1)
    barred = _is_barred(implicit, explicit, candidates)
    barred[:, 0] = False  # the first one is allowed, or must do
    for start in range(0, len(picks), _CHUNK):
        part = slice(start, start + _CHUNK)
        anchors, others = (_normalise(vectors[vector_rows[rows]]) for rows in (part, candidates[part]))
        cosine = np.einsum("nd,nkd->nk", anchors, others)
        rank = np.where(cosine < TOO_ALIKE, cosine, -1 - cosine)  # too similar ones come after all others
        rank[barred[part]] = -np.inf
        picks[part] = np.take_along_axis(candidates[part], rank.argmax(axis=1, keepdims=True), axis=1)[:, 0]
    return picks


def _normalise(vectors: Floats) -> Floats:
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.where(length > 0, length, 1), np.float32)
