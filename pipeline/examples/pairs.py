"""Pairs for ImpScore (section 4): an implicit sentence, its explicit form, and a foreign explicit sentence."""

import hashlib

import numpy as np
import polars as pl

from pipeline.llm.explicit import implicit_of, parse

SPLIT = (0.8, 0.1, 0.1)  # section 5.1; the released code splits 90:5:5 (errata E3)
SEED = 42  # the released code's


def positives(completions: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """(implicit, explicit) pairs in completions; and the dropped: (source, reason, row_key = completion_id)."""
    kept, dropped = [], []
    for row in completions.iter_rows(named=True):
        implicit = implicit_of(row["messages"])
        found = parse(row["response"], implicit)
        if found.explicit is None:
            dropped.append((row["source"], found.reason, row["completion_id"]))
            continue
        key = f"{row['source']}\n{implicit}\n{found.explicit}"
        pair_id = hashlib.blake2b(key.encode(), digest_size=16).hexdigest()
        lang = "zh" if row["prompt"].endswith("_zh") else "en"
        kept.append((pair_id, row["source"], lang, implicit, found.explicit, row["completion_id"]))
    text = pl.String
    pairs = pl.DataFrame(
        kept, orient="row",
        schema=dict.fromkeys(("pair_id", "source", "lang", "implicit", "explicit", "completion_id"), text),
    )  # fmt: skip
    gone = pl.DataFrame(dropped, schema={"source": text, "reason": text, "row_key": text}, orient="row")
    again = pairs.filter(~pl.col("pair_id").is_first_distinct())
    same = again.select("source", reason=pl.lit("same_pair"), row_key="completion_id")
    return pairs.unique("pair_id", keep="first", maintain_order=True), pl.concat([gone, same])


def with_negatives(pairs: pl.DataFrame, seed: int = SEED) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Add `negative`: the explicit sentence of another pair of the same source, never of the same text (IMP-19).

    Pairs of a source that has only one explicit text cannot have one and are dropped as `no_negative`.
    """
    rng = np.random.default_rng(seed)
    kept, dropped = [], []
    for source in pairs.sort("source", "pair_id").partition_by("source", maintain_order=True):
        if source["explicit"].n_unique() < 2:
            dropped.append(source.select("source", reason=pl.lit("no_negative"), row_key="pair_id"))
            continue
        kept.append(source.with_columns(negative=_foreign(source["explicit"], rng)))
    none = pl.DataFrame(schema={"source": pl.String, "reason": pl.String, "row_key": pl.String})
    empty = pairs.clear().with_columns(negative=pl.lit("", pl.String))
    return pl.concat(kept) if kept else empty, pl.concat([none, *dropped])


def _foreign(texts: pl.Series, rng: np.random.Generator) -> pl.Series:
    """For each text one of the others that differ from it, each row of them equally likely.

    Equal texts are laid side by side; a position is drawn among the rest and moved past the own block.
    """
    ordered = texts.arg_sort().to_numpy()
    _, start, block, size = np.unique(
        texts.to_numpy()[ordered].astype(str), return_index=True, return_inverse=True, return_counts=True
    )
    start, size = start[block], size[block]
    drawn = np.floor(rng.random(len(texts)) * (len(texts) - size)).astype(np.int64)
    drawn += np.where(drawn >= start, size, 0)
    negative = np.empty(len(texts), np.int64)
    negative[ordered] = ordered[drawn]
    return texts.gather(negative)


def with_split(pairs: pl.DataFrame, shares: tuple[float, float, float] = SPLIT, seed: int = SEED) -> pl.DataFrame:
    """Add `split` at random: train, validation, test by `shares`, the same for the same rows and seed (IMP-22)."""
    ordered = pairs.sort("pair_id")
    bounds = np.round(np.cumsum(shares) * len(ordered)).astype(int)
    place = np.random.default_rng(seed).permutation(len(ordered))
    names = np.array(["train", "validation", "test"])[np.searchsorted(bounds, place, side="right").clip(max=2)]
    return ordered.with_columns(split=pl.Series(names, dtype=pl.String))


def build(completions: pl.DataFrame, seed: int = SEED) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Rows of `pairs` from completions, and the dropped (source, reason, row_key)."""
    pairs, unparsed = positives(completions)
    triples, alone = with_negatives(pairs, seed)
    return with_split(triples, seed=seed), pl.concat([unparsed, alone])
