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
from pipeline.tasks.commenting.corpus import COMMENT, THREAD
from pipeline.tasks.commenting.writing import PRETRAINED, Comments, make_comments, make_pretrained_comments
from pipeline.tasks.record import day_texts, model_registry, runs

if TYPE_CHECKING:
    from pipeline.models.decoding import Decoding

HUMAN = "human"
ORIGIN = "commenting"
STEP = "generate"
_CHUNK = 256  # articles commented on at once


def generate(
    day: str, system: str, *, ref: str | None = None, decoding: "Decoding | None" = None, similar: int = 10,
    run_id: str = "cli",
) -> int:  # fmt: skip
    """Generate comments on the test articles with one system into `generated_comments`; return their count.

    `dropped` has the articles without a comment.
    """
    parse_day(day)
    if system == HUMAN:
        return _generate_human(day, run_id)
    if system == PRETRAINED:
        return _generate_pretrained(day, ref, decoding, run_id)
    timer, model = runs.start(), commenters.load_model(ref, commenters.check_system(system), day)
    articles, parts = _read_test_articles(day, system, run_id), []
    for number, part in enumerate(articles.iter_slices(_CHUNK)):
        comments = make_comments(
            model, part["title_tokens"].to_list(), part["content_tokens"].to_list(), part["lang"].to_list(), decoding,
            similar=similar, first=number * _CHUNK,
        )  # fmt: skip
        parts.append(_join_keys(comments, part))
    rows = pl.concat(parts).with_columns(model_id=pl.lit(model.model_id))
    return _write_comments(day, system, rows, articles, run_id, timer)


def _generate_human(day: str, run_id: str) -> int:
    """Write the human comments that are not references, one for each test article (AAC-26)."""
    timer = runs.start()
    candidates = warehouse.scan("reference_comments", pl.col("role") == "candidate").select(COMMENT)
    articles = _read_test_articles(day, HUMAN, run_id)
    comments = corpus.read_tokenized_comments(candidates).select(
        *THREAD, "text", "tokens", found_in=pl.concat_str(COMMENT, separator="/"), score=pl.lit(None, pl.Float64),
        model_id=pl.lit(None, pl.String), config=pl.lit("{}"), signature=pl.lit(f"{HUMAN}|undertone:{__version__}"),
    )  # fmt: skip
    return _write_comments(day, HUMAN, comments, articles, run_id, timer)


def _generate_pretrained(day: str, folder: str | None, decoding: "Decoding | None", run_id: str) -> int:
    """Generate with a fitted encoder-decoder, which reads articles untokenized."""
    if folder is None:
        raise BadInput("a pretrained commenter is a folder of `undertone train commenter --from`; say which")
    timer, articles = runs.start(), _read_test_articles(day, PRETRAINED, run_id)
    texts = day_texts.scan_articles(pl.lit(value=True)).select(*THREAD, "title", content="text").collect()
    rows = articles.select(THREAD).join(texts, on=THREAD, how="left", maintain_order="left")
    comments, model_id = make_pretrained_comments(rows, folder, decoding)
    placed = _join_keys(comments, rows).with_columns(model_id=pl.lit(model_id))
    return _write_comments(day, PRETRAINED, placed, articles, run_id, timer)


def _join_keys(comments: Comments, articles: pl.DataFrame) -> pl.DataFrame:
    """Join the keys of the articles, the decoding and the signature to comments."""
    keys = articles.with_row_index("row").cast({"row": pl.Int64}).select("row", *THREAD)
    config = json.dumps(comments.config, sort_keys=True)
    return comments.rows.join(keys, on="row").with_columns(config=pl.lit(config), signature=pl.lit(comments.signature))


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
) -> int:  # fmt: skip
    """Replace the comments of a system, and record the articles without one."""
    key = pl.concat_str(*THREAD, pl.lit(system), "text", separator="\n")
    comments = rows.with_columns(
        system=pl.lit(system), generated_id=key.map_elements(_hash_text, return_dtype=pl.String),
        score=pl.col("score").round(6),
    ).select(TABLES["generated_comments"].schema.column_names())  # fmt: skip
    existing_sources = warehouse.scan("generated_comments", pl.col("system") == system).select(
        pl.col("source").unique()
    )
    for source in pl.concat([articles["source"], existing_sources.collect()["source"]]).unique().sort():
        is_source = pl.col("source") == source
        partition = {**warehouse.slice_of(source=source), "system": system}
        warehouse.overwrite("generated_comments", partition, comments.filter(is_source), run_id)
        without_comment = articles.filter(is_source).join(comments, on=THREAD, how="anti")
        dropped = without_comment.select("source", reason=pl.lit("no_comment"), row_key="thread_id")
        kept_count = articles.filter(is_source).height - dropped.height
        runs.record_step(
            source, day, f"{ORIGIN}:{system}", STEP, kept_count, dropped, {"system": system}, run_id, timer
        )
        timer = runs.start()
    return comments.height


def _hash_text(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def list_systems(day: str) -> list[str]:
    """List the systems with a model in force, and `human`."""
    return [*(system for system in SYSTEMS if model_registry.select_model_id(commenters.get_kind(system), day)), HUMAN]
