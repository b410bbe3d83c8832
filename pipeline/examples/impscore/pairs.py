"""Pairs for ImpScore (section 4): an implicit sentence, its explicit form, and a foreign explicit sentence.

In: rows of `sentences` whose makers say what they mean, and rows of `completions`. Out: rows of `pairs`, and what was
dropped as (source, reason, row_key).
"""

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from pipeline.errors import BadInput
from pipeline.examples.impscore.clusters import with_clusters
from pipeline.examples.impscore.negatives import DROPPED, with_negatives
from pipeline.examples.splits import NAMES, SEED, with_split
from pipeline.io.rows import read_chunks
from pipeline.llm.questions.explicit import implicit_of, parse
from pipeline.tables import SOURCE, TABLES
from pipeline.text.language import detect_language

_TEXT = pl.String()
PAIR = dict.fromkeys(("pair_id", "source", "lang", "implicit", "explicit", "completion_id"), _TEXT)


def pair_id(source: str, implicit: str, explicit: str) -> str:
    """128-bit BLAKE2 of source and both sentences."""
    return hashlib.blake2b(f"{source}\n{implicit}\n{explicit}".encode(), digest_size=16).hexdigest()


def positives_of_sentences(sentences: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """(implicit, explicit) pairs that data sets give themselves (IMP-14); and the dropped, by item_id.

    Only sentences labelled implicit that have an explicit form; the others are no pairs, and not dropped.
    """
    told = sentences.filter((pl.col("label") == "implicit") & pl.col("explicit").is_not_null())
    columns = told.select("source", "lang", "text", "explicit", "item_id").iter_rows()
    return _once([(source, lang, *texts, None, item) for source, lang, *texts, item in columns])


def positives(completions: pl.DataFrame, current: Mapping[str, str] | None = None) -> tuple[pl.DataFrame, pl.DataFrame]:
    """(implicit, explicit) pairs in completions (IMP-15); and the dropped, by completion_id.

    Of several answers about a sentence by a model the first that parses counts, those to the current wording of the
    prompt first; the others are dropped as `later_attempt`.

    Args:
        completions: rows of the table `completions`.
        current: version of each prompt in force.
    """
    kept: list[tuple[str | None, ...]] = []
    dropped: list[tuple[str | None, ...]] = []
    answered = set()
    in_force = pl.col("prompt").replace_strict(dict(current or {}), default=None, return_dtype=pl.String)
    is_old = pl.col("prompt_version").ne_missing(in_force)
    for row in completions.sort(is_old, "attempt", "completion_id").iter_rows(named=True):
        source, key = row["source"], row["completion_id"]
        implicit = implicit_of(row["messages"])
        question = (source, row["model"], row["prompt"], implicit)
        if question in answered:
            dropped.append((source, "later_attempt", key))
            continue
        found = parse(row["response"], implicit, row["prompt"])
        if found.explicit is None or row["finish_reason"] == "length":
            dropped.append((source, found.reason or "cut_off", key))
            continue
        answered.add(question)
        kept.append((source, "zh" if row["prompt"].endswith("_zh") else "en", implicit, found.explicit, key, key))
    pairs, same = _once(kept)
    return pairs, pl.concat([pl.DataFrame(dropped, schema=DROPPED, orient="row"), same])


def _once(rows: list[tuple[str | None, ...]]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Pairs of (source, lang, implicit, explicit, completion_id, row_key) without those met before, and the latter."""
    schema = dict.fromkeys(("source", "lang", "implicit", "explicit", "completion_id", "row_key"), _TEXT)
    found = pl.DataFrame(rows, schema=schema, orient="row")
    ids = [pair_id(*texts) for texts in found.select("source", "implicit", "explicit").iter_rows()]
    found = found.with_columns(pair_id=pl.Series(ids, dtype=_TEXT))
    return _first(found)


def _first(found: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    is_first = pl.col("pair_id").is_first_distinct()
    same = found.filter(~is_first).select("source", reason=pl.lit("same_pair"), row_key="row_key")
    return found.filter(is_first).select(*PAIR), same


def build(
    sentences: pl.DataFrame,
    completions: pl.DataFrame,
    profile: str = "paper",
    seed: int = SEED,
    current: Mapping[str, str] | None = None,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Rows of `pairs`, with clusters and split by `profile`, and the dropped (source, reason, row_key).

    A pair that a data set gives and a model writes as well counts as the data set's. `current` as in `positives`.
    """
    told, same = positives_of_sentences(sentences)
    written, unparsed = positives(completions, current)
    pairs, again = _first(pl.concat([told, written]).with_columns(row_key="completion_id"))
    rows, alone = split_with_negatives(pairs, profile, seed)
    return rows.select(TABLES["pairs"].schema.column_names()), pl.concat([same, unparsed, again, alone])


def split_with_negatives(pairs: pl.DataFrame, profile: str, seed: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Pairs with clusters, split and negatives; and those without a negative.

    The paper and its code draw negatives before they split, so that most foreign sentences of the held-out parts also
    stand in train; the grouped split draws them within each part.
    """
    clustered = with_clusters(pairs)
    if profile != "grouped":
        triples, alone = with_negatives(clustered, seed)
        return with_split(triples, profile, seed), alone
    parts = with_split(clustered, profile, seed).partition_by("split", maintain_order=True)
    found = [with_negatives(part, seed) for part in parts]
    none = clustered.clear().with_columns(split=pl.lit("", pl.String), negative=pl.lit("", pl.String))
    gone = pl.DataFrame(schema=DROPPED)
    columns = none.columns
    return (
        pl.concat([none, *(rows.select(columns) for rows, _ in found)]).sort("pair_id"),
        pl.concat([gone, *(alone for _, alone in found)]),
    )


def statistics(pairs: pl.DataFrame) -> pl.DataFrame:
    """Table 1 by source and for `all`: positives, negatives, characters of a sentence, share of longer implicit ones.

    Lengths are of the positive pairs; sd is the sample standard deviation, null for a single pair (IMP-20).
    """
    one, other = (pl.col(name).str.len_chars() for name in ("implicit", "explicit"))
    return (
        pl.concat([pairs, pairs.with_columns(source=pl.lit("all"))])
        .group_by("source")
        .agg(
            positives=pl.len().cast(pl.Int64),
            negatives=pl.col("negative").count().cast(pl.Int64),
            implicit_mean=one.mean(),
            implicit_sd=one.std(),
            explicit_mean=other.mean(),
            explicit_sd=other.std(),
            implicit_longer=(one > other).mean(),
        )
        .sort(pl.col("source") == "all", "source")
    )


def balanced(pairs: pl.DataFrame, seed: int = SEED, tolerance: float = 0.1) -> pl.DataFrame:
    """The largest subset in which length tells nothing: each pair has a mirror whose lengths differ the other way.

    Within a source and a bin of the relative difference |a - b| / max(a, b), as many pairs are kept whose implicit
    sentence is longer as are kept whose it is shorter, the surplus left out at random. Where there are negatives, a
    mirror's negative differs the other way too. Pairs without any difference are their own mirrors and stay.

    Args:
        pairs: with pair_id, source, implicit, explicit and, if it is to count, negative.
        seed: of the draw; the order of the pairs does not matter.
        tolerance: width of a bin.

    Returns:
        The kept rows in the order of their ids.
    """
    size = {name: pl.col(name).str.len_chars().cast(pl.Int64) for name in ("implicit", "explicit", "negative")}
    way = (size["implicit"] - size["explicit"]).sign()
    far = (size["implicit"] - size["negative"]).sign() if "negative" in pairs.columns else pl.lit(0, pl.Int64)
    longest = pl.max_horizontal(size["implicit"], size["explicit"])
    ordered = pairs.sort("pair_id")
    shuffled = pl.Series(np.random.default_rng(seed).permutation(len(ordered)))
    signs = ordered.with_columns(
        _bin=((size["implicit"] - size["explicit"]).abs() / longest / tolerance).floor(),
        _side=way * 3 + far,  # -4 to 4; the mirror of a side is its negative
        _drawn=shuffled,
    )
    place = ["source", "_bin", "_side"]
    sides = signs.group_by(place).len("_size")
    mirrors = sides.with_columns(-pl.col("_side")).rename({"_size": "_mirrors"})
    kept = signs.join(mirrors, on=place, how="left").filter(pl.col("_drawn").rank().over(place) <= pl.col("_mirrors"))
    return kept.sort("pair_id").select(pairs.columns)


def read(path: Path, profile: str = "paper", seed: int = SEED) -> pl.DataFrame:
    """Rows of `pairs` of a user's csv, tsv, jsonl or parquet file with columns implicit and explicit.

    May have negative, source (`own` where absent), lang (told by the script) and split (all rows or none; made by
    `profile`). Negatives are made where absent. Blanks around texts go; a pair given twice counts once, as given
    first.

    Raises:
        BadInput: naming file, row and field.
    """
    found = pl.DataFrame(
        [
            _given(row, f"{path}, row {number}") | {"_at": number}
            for chunk in read_chunks(path)
            for number, row in enumerate(chunk.rows, chunk.first)
        ],
        schema=PAIR | dict.fromkeys(("negative", "split"), _TEXT) | {"_at": pl.Int64()},
    ).unique("pair_id", keep="first", maintain_order=True)
    found = found.with_columns(
        lang=pl.coalesce(
            "lang", pl.when(detect_language("implicit") == "zh").then(pl.lit("zh")).otherwise(pl.lit("en"))
        )
    )
    is_split = found["split"].null_count() < len(found)
    if is_split:
        _refuse(path, found, "split", "is absent, though other rows have one")
    found = with_clusters(found)
    bare = found.drop("negative", "split")
    if not is_split:
        found = found.drop("split").join(with_split(bare, profile, seed).select("pair_id", "split"), on="pair_id")
    apart = ["split"] if is_split or profile == "grouped" else []  # parts that negatives are drawn within
    parts = found.partition_by(apart) if apart else [found]
    drawn = pl.concat([with_negatives(part.drop("negative"), seed)[0].select("pair_id", "negative") for part in parts])
    found = found.join(drawn.rename({"negative": "_drawn"}), on="pair_id", how="left", maintain_order="left")
    found = found.with_columns(negative=pl.coalesce("negative", "_drawn"))
    _refuse(path, found, "negative", "is absent, and its source has no other explicit sentence to take")
    return found.sort("pair_id").select(TABLES["pairs"].schema.column_names())


def _given(row: dict[str, Any], where: str) -> dict[str, str | None]:
    """The fields of one row of a user's file, checked."""
    fields = {name: row.get(name) for name in ("implicit", "explicit", "negative", "source", "lang", "split")}
    for name, value in fields.items():
        if value is not None and not isinstance(value, str):
            raise BadInput(f"{where}: field {name!r} should be text, found {type(value).__name__}")
    said = {name: (value or "").strip() for name, value in fields.items()}
    implicit, explicit, source = said["implicit"], said["explicit"], said["source"] or "own"
    for name in ("implicit", "explicit"):
        if not said[name]:
            raise BadInput(f"{where}: field {name!r} is {'empty' if name in row else 'absent'}")
    if explicit == implicit:
        raise BadInput(f"{where}: field 'explicit' should say it in other words than 'implicit'")
    if said["negative"] in (explicit, implicit):
        raise BadInput(f"{where}: field 'negative' should be another sentence than 'implicit' and 'explicit'")
    if not re.fullmatch(SOURCE, source):
        raise BadInput(f"{where}: field 'source' should be a name in small letters, digits and _, found {source!r}")
    if said["split"] and said["split"] not in NAMES:
        raise BadInput(f"{where}: field 'split' should be one of {', '.join(NAMES)}, found {said['split']!r}")
    optional = {name: said[name] or None for name in ("negative", "lang", "split")}
    key = pair_id(source, implicit, explicit)
    return {"pair_id": key, "source": source, "implicit": implicit, "explicit": explicit, **optional}


def _refuse(path: Path, rows: pl.DataFrame, field: str, why: str) -> None:
    """BadInput for the first row whose field is null."""
    if absent := rows.filter(pl.col(field).is_null())["_at"].head(1).to_list():
        raise BadInput(f"{path}, row {absent[0]}: field {field!r} {why}")
