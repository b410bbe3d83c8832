"""The table `generated_comments`: comments of each system on the test articles, and human comments."""

import hashlib
import json
from typing import TYPE_CHECKING

import polars as pl

from pipeline import __version__, warehouse
from pipeline.errors import BadInput, Missing
from pipeline.slices import parse_day
from pipeline.tables import TABLES, empty
from pipeline.tasks.commenting import commenters, corpus
from pipeline.tasks.commenting.commenters import SYSTEMS
from pipeline.tasks.commenting.corpus import COMMENT, COMMENT_ID, THREAD
from pipeline.tasks.commenting.writing import PRETRAINED, Comments, make_comments, make_pretrained_comments
from pipeline.tasks.record import model_registry, runs

if TYPE_CHECKING:
    from pipeline.models.decoding import Decoding

HUMAN = "human"
ORIGIN = "commenting"
STEP = "generate"
_CHUNK = 256  # articles commented on at once


def generate(
    day: str, system: str, *, ref: str | None = None, decoding: "Decoding | None" = None, run_id: str = "cli"
) -> int:
    """Generate comments on the test articles with one system into `generated_comments`; return their count.

    `dropped` has the articles without a comment.
    """
    parse_day(day)
    timer = runs.start()
    if system == HUMAN:
        articles = _read_test_articles(day, system, run_id)
        comments = _read_human_comments()
    elif system == PRETRAINED:
        if ref is None:
            raise BadInput("a pretrained commenter is a folder of `undertone train commenter --from`; say which")
        articles = _read_test_articles(day, system, run_id)
        # an encoder-decoder reads articles untokenized
        texts = corpus.scan_articles().collect()
        rows = articles.select(THREAD).join(texts, on=THREAD, how="left", maintain_order="left")
        comments = _join_keys(make_pretrained_comments(rows, ref, decoding), rows)
    else:
        model = commenters.load_model(ref, commenters.check_system(system), day)
        articles = _read_test_articles(day, system, run_id)
        parts = enumerate(articles.iter_slices(_CHUNK))
        comments = pl.concat(
            _join_keys(make_comments(model, part, decoding, number * _CHUNK), part) for number, part in parts
        )
    return _write_comments(day, system, comments, articles, run_id, timer)


def _read_human_comments() -> pl.DataFrame:
    """Read the human comments that are not references, one for each test article (AAC-26)."""
    candidates = warehouse.scan("reference_comments", pl.col("role") == "candidate").select(COMMENT)
    nulls = {"score": pl.lit(None, pl.Float64), "model_id": pl.lit(None, pl.String)}
    facts = {"config": pl.lit("{}"), "signature": pl.lit(f"{HUMAN}|undertone:{__version__}")}
    comments = corpus.read_tokenized_comments(candidates)
    return comments.select(*THREAD, "text", "tokens", found_in=COMMENT_ID, **nulls, **facts)


def _join_keys(comments: Comments, articles: pl.DataFrame) -> pl.DataFrame:
    """Join the keys of the articles, the model, the decoding and the signature to comments."""
    keys = articles.with_row_index("row").cast({"row": pl.Int64}).select("row", *THREAD)
    config = pl.lit(json.dumps(comments.config, sort_keys=True))
    facts = {"model_id": pl.lit(comments.model_id), "config": config, "signature": pl.lit(comments.signature)}
    return comments.rows.join(keys, on="row").with_columns(**facts)


def _read_test_articles(day: str, system: str, run_id: str) -> pl.DataFrame:
    """Read the test articles; where there are none, remove the system's earlier comments and raise Missing."""
    try:
        return corpus.read_threads("test")
    except Missing:
        no_rows = empty("generated_comments")
        _write_comments(day, system, no_rows.drop("system", "generated_id"), empty("threads"), run_id, runs.start())
        raise


def _write_comments(
    day: str, system: str, rows: pl.DataFrame, articles: pl.DataFrame, run_id: str, timer: runs.Start
) -> int:
    """Replace the comments of a system, and record the articles without one."""
    key = pl.concat_str(*THREAD, pl.lit(system), "text", separator="\n")
    generated_id = key.map_elements(_hash_text, return_dtype=pl.String)
    comments = rows.with_columns(system=pl.lit(system), generated_id=generated_id, score=pl.col("score").round(6))
    comments = comments.select(TABLES["generated_comments"].schema.column_names())
    for source in corpus.list_sources("generated_comments", articles["source"], pl.col("system") == system):
        is_source = pl.col("source") == source
        partition = {**warehouse.slice_of(source=source), "system": system}
        warehouse.overwrite("generated_comments", partition, comments.filter(is_source), run_id)
        source_articles = articles.filter(is_source)
        without_comment = source_articles.join(comments, on=THREAD, how="anti")
        dropped = without_comment.select("source", reason=pl.lit("no_comment"), row_key="thread_id")
        count, config = source_articles.height - dropped.height, {"system": system}
        runs.record_step(source, day, f"{ORIGIN}:{system}", STEP, count, dropped, config, run_id, timer)
        timer = runs.start()
    return comments.height


def _hash_text(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def list_systems(day: str) -> list[str]:
    """List the systems with a model in force, and `human`."""
    return [*(system for system in SYSTEMS if model_registry.select_model_id(commenters.get_kind(system), day)), HUMAN]
