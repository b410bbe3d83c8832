"""Score texts by the embeddings in the table `embeddings`: encode only the texts without one, and keep theirs.

Every score is computed from the table, so it is the same whether its text is new or known. The vectors of an encoder
without a neural network (`characters`) are not kept: to compute them costs less than to read them.
"""

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

import polars as pl

from pipeline import settings, warehouse
from pipeline.errors import Retry
from pipeline.progress import OnProgress
from pipeline.score import signature
from pipeline.tables.collected import BUCKETS
from pipeline.tasks.impscore import scoring
from pipeline.tasks.record import day_texts
from pipeline.tasks.record.retry import retry

if TYPE_CHECKING:
    from pipeline.models.encoder import Encoder
    from pipeline.score.implicitness import Head

VERSION = 1  # to be raised when the code computes other vectors with the same encoder
_ROWS = 512  # embeddings scored at once; in float64 they fit into a cache


def is_kept(encoder_name: str) -> bool:
    """Return whether the embeddings by an encoder are kept."""
    from pipeline.models import characters

    return settings.keep_embeddings() and encoder_name != characters.NAME


def name_encoder(encoder: "Encoder") -> str:
    """Name an encoder in the table: no other encoder, precision, pooling, prompt or tuning has the same name."""
    digest = hashlib.sha256(f"{VERSION} {encoder.key}".encode()).hexdigest()[:16]
    return re.sub(r"[^A-Za-z0-9.]+", "-", f"{signature.name_encoder(encoder.name, encoder.revision)}-{digest}")


def score_texts(
    rows: pl.DataFrame, model_id: str, on_progress: OnProgress, precision: str, day: str, run_id: str
) -> pl.DataFrame:
    """Score distinct texts of a day as `scoring.score_texts`; Retry if one has no embedding, as it was erased."""
    model = scoring.load_heads(model_id, precision)
    heads = {lang: model.choose_head(lang) for lang in rows["lang"].unique()}
    langs_by_encoder = defaultdict(list)
    for lang, head in heads.items():
        langs_by_encoder[name_encoder(head.encoder) if is_kept(head.encoder.name) else None].append(lang)
    parts = [pl.DataFrame(schema=scoring.SCORE_SCHEMA)]
    for name, langs in langs_by_encoder.items():
        texts = rows.filter(pl.col("lang").is_in(langs)).with_columns(bucket=day_texts.number_texts() % BUCKETS)
        if name is None:
            parts.append(scoring.score_texts(texts, model_id, on_progress, precision))
            continue
        new_count = _encode_new(texts, day, name, heads[langs[0]].encoder, on_progress, run_id)
        parts += _score_known(texts, name, model.model_id, heads)
        on_progress(texts.height - new_count)
    scores = rows.select("text_hash").join(pl.concat(parts), on="text_hash", maintain_order="left")
    if scores.height < rows.height:
        raise Retry(f"{rows.height - scores.height} texts are not in comments of {day} any more: run the day again")
    return scores


def _scan(name: str, texts: pl.DataFrame, *columns: str) -> pl.LazyFrame:
    vectors = warehouse.scan("embeddings", (pl.col("encoder") == name) & _is_in_buckets(texts))
    return vectors.select("text_hash", *columns).join(texts.lazy().select("text_hash", "lang"), on="text_hash")


def _is_in_buckets(rows: pl.DataFrame) -> pl.Expr:
    return pl.col("bucket").is_in(rows["bucket"].unique().sort().to_list())


def _encode_new(
    texts: pl.DataFrame, day: str, name: str, encoder: "Encoder", on_progress: OnProgress, run_id: str
) -> int:
    """Encode the texts without an embedding and keep theirs, a commit for each part in memory; return their count."""
    from pipeline.models.encoder import encode, limit_rows

    new = texts.join(_scan(name, texts).collect(engine="streaming"), on="text_hash", how="anti")
    for part in new.sort("bucket", "text_hash").iter_slices(limit_rows(encoder.dim)):
        vectors = encode(encoder, part["text"].to_list(), on_progress).astype("<f2")
        rows = part.select("bucket", "text_hash", encoder=pl.lit(name), vector=pl.Series(map(bytes, vectors)))

        def select_rows(current: pl.LazyFrame, rows: pl.DataFrame = rows) -> pl.LazyFrame:
            """Select the rows that no other run has added, of texts that the day has now."""
            comments = day_texts.scan_comments(day, warehouse.get_snapshot_id("comments"), "text_hash")
            absent = rows.lazy().join(current.filter(_is_in_buckets(rows)), on="text_hash", how="anti")
            return absent.join(comments, on="text_hash", how="semi").collect().lazy()

        retry(warehouse.append, "embeddings", warehouse.make_slice(encoder=name), select_rows, run_id)
    return new.height


def _score_known(texts: pl.DataFrame, name: str, model_id: str, heads: "dict[str, Head]") -> Iterator[pl.DataFrame]:
    import numpy as np

    from pipeline.score import implicitness

    langs = texts["lang"].unique()
    wide_heads = {lang: implicitness.widen(heads[lang]) for lang in langs}
    batches = _scan(name, texts, "vector").collect_batches(chunk_size=_ROWS, maintain_order=False, engine="streaming")
    for batch in batches:
        for (lang,), part in batch.partition_by("lang", as_dict=True).items():
            head = wide_heads[str(lang)]
            vectors = np.frombuffer(b"".join(part["vector"]), "<f2").reshape(part.height, head.encoder.dim)
            encoder = (head.encoder.name, head.encoder.revision, head.encoder.precision)
            text = pl.lit(signature.implicitness(model_id, *encoder, str(lang), is_kept=True))
            values = pl.Series(implicitness.score_vectors(vectors, head), dtype=pl.Float64)
            yield part.select("text_hash", value=values, signature=text)
