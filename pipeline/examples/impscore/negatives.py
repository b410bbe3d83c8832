"""Negatives: to each pair the explicit sentence of another one of its source (ImpScore, section 4; IMP-19)."""

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.examples.splits import SEED

CANDIDATES = 32  # drawn for a hard negative
TOO_ALIKE = 0.95  # cosine from which a foreign sentence may say the same
_CHUNK = 1024  # pairs whose candidates are compared at once

DROPPED = dict.fromkeys(("source", "reason", "row_key"), pl.String())

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]


def with_negatives(
    pairs: pl.DataFrame, seed: int = SEED, vectors: Floats | None = None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Add `negative`: the explicit sentence of another pair of the same source, never of the same text (IMP-19).

    Nor one that is or means the same implicit sentence in another pair, where the source has others. Each row
    that is allowed is equally likely. Pairs of a source that has only one explicit text are dropped as `no_negative`.

    Args:
        pairs: with pair_id, source, implicit, explicit.
        seed: of the draw; the order of the pairs does not matter.
        vectors: float32 [n, d], embeddings of the explicit sentence of each row of `pairs`, which may be mapped from
            a file. With them the negatives are hard: of 32 drawn the most similar to the pair's own explicit sentence
            that is below a cosine of 0.95, or the least similar where none is.
    """
    if vectors is not None and len(vectors) != len(pairs):
        raise ValueError(f"expected a vector for each of {len(pairs)} pairs, got {len(vectors)}")
    rng = np.random.default_rng(seed)
    kept, dropped = [], []
    ordered = pairs.with_row_index("_row").sort("source", "pair_id")
    for source in ordered.partition_by("source", maintain_order=True):
        if source["explicit"].n_unique() < 2:
            dropped.append(source.select("source", reason=pl.lit("no_negative"), row_key="pair_id"))
            continue
        means, says = np.split(_codes(pl.concat([source["implicit"], source["explicit"]])), 2)
        row = _allowed(means, says, rng)
        if vectors is not None:
            row = _hardest(row, means, says, vectors, source["_row"].to_numpy(), rng)
        kept.append(source.with_columns(negative=source["explicit"].gather(row)))
    empty = ordered.clear().with_columns(negative=pl.lit("", pl.String))
    return pl.concat([empty, *kept]).drop("_row"), pl.concat([pl.DataFrame(schema=DROPPED), *dropped])


def _codes(texts: pl.Series) -> Ints:
    """A number for each different text."""
    return texts.rank("dense").cast(pl.Int64).to_numpy() - 1


def _foreign(says: Ints, rng: np.random.Generator) -> Ints:
    """For each row one of those that say something else, each equally likely.

    Equal texts are laid side by side; a position is drawn among the rest and moved past the own block.
    """
    order = np.argsort(says, kind="stable")
    _, start, block, size = np.unique(says[order], return_index=True, return_inverse=True, return_counts=True)
    start, size = start[block], size[block]
    drawn = np.floor(rng.random(len(says)) * (len(says) - size)).astype(np.int64)
    drawn += np.where(drawn >= start, size, 0)
    foreign = np.empty(len(says), np.int64)
    foreign[order] = order[drawn]
    return foreign


def _is_told(means: Ints, says: Ints, row: Ints) -> npt.NDArray[np.bool_]:
    """Whether what another row says is a meaning of the own implicit sentence, or that itself; row is [n] or [n, k]."""
    width = int(max(means.max(), says.max())) + 1
    told = np.concatenate([means * width + says, means * width + means])
    return np.isin(means.reshape(-1, *[1] * (row.ndim - 1)) * width + says[row], told)


def _allowed(means: Ints, says: Ints, rng: np.random.Generator) -> Ints:
    """For each row an allowed other one: a foreign one, drawn again among the allowed alone where that is told."""
    row = _foreign(says, rng)
    for i in np.flatnonzero(_is_told(means, says, row)):
        allowed = np.flatnonzero(~np.isin(says, [means[i], *says[means == means[i]]]))
        if len(allowed):  # else all the source says is a meaning of this sentence: any other text must do
            row[i] = rng.choice(allowed)
    return row


def _hardest(
    row: Ints, means: Ints, says: Ints, vectors: Floats, at: npt.NDArray[np.uint32], rng: np.random.Generator
) -> Ints:
    """Of the row given and 31 more drawn, those allowed, the nearest below 0.95, else the farthest.

    The vector of a row is that of `vectors` at `at[row]`.
    """
    drawn = np.stack([row, *(_foreign(says, rng) for _ in range(CANDIDATES - 1))], axis=1)
    barred = _is_told(means, says, drawn)
    barred[:, 0] = False
    best = np.empty_like(row)
    for start in range(0, len(row), _CHUNK):
        part = slice(start, start + _CHUNK)
        cosine = np.einsum("nd,nkd->nk", _unit(vectors[at[part]]), _unit(vectors[at[drawn[part]]]))
        rank = np.where(cosine < TOO_ALIKE, cosine, -1 - cosine)  # those too alike come after all others
        rank[barred[part]] = -np.inf
        best[part] = np.take_along_axis(drawn[part], rank.argmax(axis=1, keepdims=True), axis=1)[:, 0]
    return best


def _unit(vectors: Floats) -> Floats:
    """Vectors of length one along the last axis; one of zeros stays."""
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.where(length > 0, length, 1), np.float32)
