"""Pairs for ImpScore (section 4): an implicit sentence, its explicit form, a negative; and dropped rows.

The negative is the explicit sentence of another pair of the source (IMP-19).
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.errors import BadInput
from pipeline.examples.impscore.clusters import add_clusters
from pipeline.examples.splits import NAMES, SEED, add_split
from pipeline.io.fields import check_field
from pipeline.io.hashes import hash_text
from pipeline.io.rows import number_rows
from pipeline.llm.questions.explicit import parse, parse_implicit
from pipeline.tables import SOURCE, TABLES
from pipeline.text.language import detect_language

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
        anchors, candidate_vectors = (_normalise(vectors[vector_rows[rows]]) for rows in (part, candidates[part]))
        cosine = np.einsum("nd,nkd->nk", anchors, candidate_vectors)
        rank = np.where(cosine < TOO_ALIKE, cosine, -1 - cosine)  # too similar ones come after all others
        rank[barred[part]] = -np.inf
        picks[part] = np.take_along_axis(candidates[part], rank.argmax(axis=1, keepdims=True), axis=1)[:, 0]
    return picks


def _normalise(vectors: Floats) -> Floats:
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.where(length > 0, length, 1), np.float32)


_TEXT = pl.String()
PAIR = dict.fromkeys(("pair_id", "source", "lang", "implicit", "explicit", "completion_id"), _TEXT)


def make_pair_id(source: str, implicit: str, explicit: str) -> str:
    """Hash source and both sentences."""
    return hash_text(f"{source}\n{implicit}\n{explicit}")


def pair_sentences(sentences: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Pair implicit sentences of data sets with their own explicit forms (IMP-14); return pairs and drops by id."""
    labelled = sentences.filter((pl.col("label") == "implicit") & pl.col("explicit").is_not_null())
    columns = labelled.select("source", "lang", "text", "explicit", "item_id").iter_rows()
    return _build_pairs([(source, lang, *texts, None, item) for source, lang, *texts, item in columns])


def pair_completions(
    completions: pl.DataFrame, current: Mapping[str, str] | None = None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Pair sentences with their completions (IMP-15); return pairs, and dropped rows by completion_id.

    Of several answers of a model about a sentence the first that parses counts, answers to the current version of the
    prompt (`current`) first; the others are dropped as `later_attempt`.
    """
    rows: list[tuple[str | None, ...]] = []
    dropped: list[tuple[str | None, ...]] = []
    answered = set()
    in_force = pl.col("prompt").replace_strict(dict(current or {}), default=None, return_dtype=pl.String)
    is_old = pl.col("prompt_version").ne_missing(in_force)
    for row in completions.sort(is_old, "attempt", "completion_id").iter_rows(named=True):
        source, key = row["source"], row["completion_id"]
        implicit = parse_implicit(row["messages"])
        question = (source, row["model"], row["prompt"], implicit)
        if question in answered:
            dropped.append((source, "later_attempt", key))
            continue
        rewriting = parse(row["response"], implicit, row["prompt"])
        if rewriting.explicit is None or row["finish_reason"] == "length":
            dropped.append((source, rewriting.reason or "cut_off", key))
            continue
        answered.add(question)
        rows.append((source, "zh" if row["prompt"].endswith("_zh") else "en", implicit, rewriting.explicit, key, key))
    pairs, repeated = _build_pairs(rows)
    return pairs, pl.concat([pl.DataFrame(dropped, schema=DROPPED, orient="row"), repeated])


def _build_pairs(rows: list[tuple[str | None, ...]]) -> tuple[pl.DataFrame, pl.DataFrame]:
    schema = dict.fromkeys(("source", "lang", "implicit", "explicit", "completion_id", "row_key"), _TEXT)
    pairs = pl.DataFrame(rows, schema=schema, orient="row")
    ids = [make_pair_id(*texts) for texts in pairs.select("source", "implicit", "explicit").iter_rows()]
    return _drop_repeats(pairs.with_columns(pair_id=pl.Series(ids, dtype=_TEXT)))


def _drop_repeats(pairs: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    is_first = pl.col("pair_id").is_first_distinct()
    repeated = pairs.filter(~is_first).select("source", reason=pl.lit("same_pair"), row_key="row_key")
    return pairs.filter(is_first).select(*PAIR), repeated


def build(
    sentences: pl.DataFrame,
    completions: pl.DataFrame,
    profile: str = "paper",
    seed: int = SEED,
    current: Mapping[str, str] | None = None,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Build rows of `pairs`, with clusters and a split by `profile`; and dropped rows (source, reason, row_key).

    A pair that a data set gives and a model also writes counts as the data set's. `current` as in `pair_completions`.
    """
    labelled, repeated = pair_sentences(sentences)
    rewritten, unparsed = pair_completions(completions, current)
    pairs, repeated_pairs = _drop_repeats(pl.concat([labelled, rewritten]).with_columns(row_key="completion_id"))
    rows, unpaired = split_with_negatives(pairs, profile, seed)
    return rows.select(TABLES["pairs"].schema.column_names()), pl.concat([repeated, unparsed, repeated_pairs, unpaired])


def split_with_negatives(pairs: pl.DataFrame, profile: str, seed: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Add clusters, split and negatives to pairs; return them, and dropped pairs without a negative.

    The paper draws negatives before it splits, so that most are in train, too; the grouped split draws them by part.
    """
    clustered = add_clusters(pairs)
    if profile != "grouped":
        triples, unpaired = add_negatives(clustered, seed)
        return add_split(triples, profile, seed), unpaired
    split_pairs = add_split(clustered, profile, seed)
    parts = [split_pairs.clear(), *split_pairs.partition_by("split", maintain_order=True)]
    triples, unpaired = map(pl.concat, zip(*(add_negatives(part, seed) for part in parts), strict=True))
    return triples.sort("pair_id"), unpaired


def compute_statistics(pairs: pl.DataFrame) -> pl.DataFrame:
    """Compute table 1 by source and for `all`: counts, lengths in characters, share of longer implicit sentences.

    Lengths are of the positive pairs; sd is the sample standard deviation, null for a single pair (IMP-20).
    """
    lengths = {name: pl.col(name).str.len_chars() for name in ("implicit", "explicit")}
    groups = pl.concat([pairs, pairs.with_columns(source=pl.lit("all"))]).group_by("source")
    counts = {"positives": pl.len().cast(pl.Int64), "negatives": pl.col("negative").count().cast(pl.Int64)}
    for name, length in lengths.items():
        counts |= {f"{name}_mean": length.mean(), f"{name}_sd": length.std()}
    statistics = groups.agg(**counts, implicit_longer=(lengths["implicit"] > lengths["explicit"]).mean())
    return statistics.sort(pl.col("source") == "all", "source")


def balance_lengths(pairs: pl.DataFrame, seed: int = SEED, tolerance: float = 0.1) -> pl.DataFrame:
    """Keep the largest subset in which length tells nothing: each pair has a mirror whose lengths differ the other way.

    Within a source and a bin of the relative difference |a - b| / max(a, b) of the width `tolerance`, as many pairs are
    kept with a longer as with a shorter implicit sentence; the surplus is dropped at random. With negatives, a mirror's
    negative differs the other way, too. Pairs without any difference stay. Rows come in the order of their ids.
    """
    names = ("implicit", "explicit", "negative")
    implicit, explicit, negative = (pl.col(name).str.len_chars().cast(pl.Int64) for name in names)
    negative_sign = (implicit - negative).sign() if "negative" in pairs.columns else pl.lit(0, pl.Int64)
    ordered = pairs.sort("pair_id")
    signs = ordered.with_columns(
        _bin=((implicit - explicit).abs() / pl.max_horizontal(implicit, explicit) / tolerance).floor(),
        _side=(implicit - explicit).sign() * 3 + negative_sign,  # -4 to 4; the mirror of a side is its negative
        _order=pl.Series(np.random.default_rng(seed).permutation(len(ordered))),
    )
    group = ["source", "_bin", "_side"]
    sides = signs.group_by(group).len("_size")
    mirrors = sides.with_columns(-pl.col("_side")).rename({"_size": "_mirrors"})
    rows = signs.join(mirrors, on=group, how="left").filter(pl.col("_order").rank().over(group) <= pl.col("_mirrors"))
    return rows.sort("pair_id").select(pairs.columns)


def read(path: Path, profile: str = "paper", seed: int = SEED) -> pl.DataFrame:
    """Read rows of `pairs` from a csv, tsv, jsonl or parquet file with columns implicit and explicit.

    Optional columns: negative (drawn if absent), source (default `own`), lang (default by the script) and split (all
    rows or none; default by `profile`). Texts are stripped; of a repeated pair the first row counts. BadInput with
    file, row and field for a fault.
    """
    rows = read_rows(path)
    if is_split := rows["split"].null_count() < len(rows):
        _require(path, rows, "split", "is absent, though other rows have one")
    else:
        split = add_split(rows.drop("negative", "split"), profile, seed).select("pair_id", "split")
        rows = rows.drop("split").join(split, on="pair_id")
    parts = rows.partition_by("split") if is_split or profile == "grouped" else [rows]  # negatives stay within these
    triples = [add_negatives(part.drop("negative"), seed)[0] for part in parts]
    negatives = pl.concat(triples).select("pair_id", _negative="negative")
    rows = rows.join(negatives, on="pair_id", how="left", maintain_order="left")
    rows = rows.with_columns(negative=pl.coalesce("negative", "_negative"))
    _require(path, rows, "negative", "is absent, and its source has no other explicit sentence to draw")
    return rows.sort("pair_id").select(TABLES["pairs"].schema.column_names())


def read_rows(path: Path) -> pl.DataFrame:
    """Read the pairs of a file as `read` does, with clusters: negative and split are null where the file has none."""
    parsed = [_parse_row(row, f"{path}, row {number}") | {"_number": number} for number, row in number_rows(path)]
    schema = PAIR | dict.fromkeys(("negative", "split"), _TEXT) | {"_number": pl.Int64()}
    rows = pl.DataFrame(parsed, schema=schema).unique("pair_id", keep="first", maintain_order=True)
    script = pl.when(detect_language("implicit") == "zh").then(pl.lit("zh")).otherwise(pl.lit("en"))
    return add_clusters(rows.with_columns(lang=pl.coalesce("lang", script)))


def _parse_row(row: dict[str, Any], location: str) -> dict[str, str | None]:
    fields = {name: row.get(name) for name in ("implicit", "explicit", "negative", "source", "lang", "split")}
    for name, value in fields.items():
        check_field(fields, name, location, "text", isinstance(value, str | None))
    texts = {name: (value or "").strip() for name, value in fields.items()}
    implicit, explicit, source = texts["implicit"], texts["explicit"], texts["source"] or "own"
    for name in ("implicit", "explicit"):
        if not texts[name]:
            raise BadInput(f"{location}: field {name!r} is {'empty' if name in row else 'absent'}")
    if explicit == implicit:
        raise BadInput(f"{location}: field 'explicit' should differ from 'implicit'")
    if texts["negative"].lower() in (explicit.lower(), implicit.lower()):
        raise BadInput(f"{location}: field 'negative' should differ from 'implicit' and 'explicit'")
    is_source = re.fullmatch(SOURCE, source)
    check_field(texts, "source", location, "a name in small letters, digits and _", is_source)
    check_field(texts, "split", location, f"one of {', '.join(NAMES)}", texts["split"] in ("", *NAMES))
    optional = {name: texts[name] or None for name in ("negative", "lang", "split")}
    key = make_pair_id(source, implicit, explicit)
    return {"pair_id": key, "source": source, "implicit": implicit, "explicit": explicit, **optional}


def _require(path: Path, rows: pl.DataFrame, field: str, problem: str) -> None:
    if row_numbers := rows.filter(pl.col(field).is_null())["_number"].head(1).to_list():
        raise BadInput(f"{path}, row {row_numbers[0]}: field {field!r} {problem}")
