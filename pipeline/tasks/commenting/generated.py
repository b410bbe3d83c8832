"""The table `generated_comments`: what each system says under the test articles, and real comments beside it."""

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
    """Comment on the test articles by one system into `generated_comments`; how many comments there are.

    An article that gets none is told of in `dropped`.
    """
    parse_day(day)
    if system == HUMAN:
        return _generate_human(day, run_id)
    if system == PRETRAINED:
        return _generate_pretrained(day, ref, decoding, run_id)
    began, model = runs.start(), commenters.load_model(ref, commenters.check_system(system), day)
    articles, parts = _read_test_articles(day, system, run_id), []
    for number, part in enumerate(articles.iter_slices(_CHUNK)):
        found = make_comments(
            model, part["title_tokens"].to_list(), part["content_tokens"].to_list(), part["lang"].to_list(), decoding,
            similar=similar, first=number * _CHUNK,
        )  # fmt: skip
        parts.append(_join_keys(found, part))
    rows = pl.concat(parts).with_columns(model_id=pl.lit(model.model_id))
    return _write_comments(day, system, rows, articles, run_id, began)


def _generate_human(day: str, run_id: str) -> int:
    """The real comments that are kept apart from the references, one a test article (AAC-26)."""
    began = runs.start()
    chosen = warehouse.scan("reference_comments", pl.col("role") == "candidate").select(COMMENT)
    articles = _read_test_articles(day, HUMAN, run_id)
    told = corpus.read_tokenized_comments(chosen).select(
        *THREAD, "text", "tokens", found_in=pl.concat_str(COMMENT, separator="/"), score=pl.lit(None, pl.Float64),
        model_id=pl.lit(None, pl.String), config=pl.lit("{}"), signature=pl.lit(f"{HUMAN}|undertone:{__version__}"),
    )  # fmt: skip
    return _write_comments(day, HUMAN, told, articles, run_id, began)


def _generate_pretrained(day: str, folder: str | None, decoding: "Decoding | None", run_id: str) -> int:
    """Comments of a fitted encoder-decoder, which reads articles as they were written."""
    if folder is None:
        raise BadInput("a pretrained commenter is a folder of `undertone train commenter --from`; say which")
    began, articles = runs.start(), _read_test_articles(day, PRETRAINED, run_id)
    about = day_texts.scan_articles(pl.lit(value=True)).select(*THREAD, "title", content="text").collect()
    rows = articles.select(THREAD).join(about, on=THREAD, how="left", maintain_order="left")
    comments, model_id = make_pretrained_comments(rows, folder, decoding)
    placed = _join_keys(comments, rows).with_columns(model_id=pl.lit(model_id))
    return _write_comments(day, PRETRAINED, placed, articles, run_id, began)


def _join_keys(made: Comments, articles: pl.DataFrame) -> pl.DataFrame:
    """Comments with the keys of the articles that they were made of, and how they were made."""
    keys = articles.with_row_index("row").cast({"row": pl.Int64}).select("row", *THREAD)
    config = json.dumps(made.config, sort_keys=True)
    return made.rows.join(keys, on="row").with_columns(config=pl.lit(config), signature=pl.lit(made.signature))


def _read_test_articles(day: str, system: str, run_id: str) -> pl.DataFrame:
    """The test articles; where there are none, what the system made before goes before Missing is raised."""
    try:
        return corpus.read_threads("test")
    except Missing:
        none = empty("generated_comments")
        _write_comments(day, system, none.drop("system", "generated_id"), empty("threads"), run_id, runs.start())
        raise


def _write_comments(
    day: str, system: str, rows: pl.DataFrame, articles: pl.DataFrame, run_id: str, began: runs.Start
) -> int:  # fmt: skip
    """Put in place what a system made, and tell which articles got nothing."""
    key = pl.concat_str(*THREAD, pl.lit(system), "text", separator="\n")
    found = rows.with_columns(
        system=pl.lit(system), generated_id=key.map_elements(_hash_text, return_dtype=pl.String),
        score=pl.col("score").round(6),
    ).select(TABLES["generated_comments"].schema.column_names())  # fmt: skip
    before = warehouse.scan("generated_comments", pl.col("system") == system).select(pl.col("source").unique())
    for source in pl.concat([articles["source"], before.collect()["source"]]).unique().sort():
        mine = pl.col("source") == source
        where = {**warehouse.slice_of(source=source), "system": system}
        warehouse.overwrite("generated_comments", where, found.filter(mine), run_id)
        none = articles.filter(mine).join(found, on=THREAD, how="anti")
        gone = none.select("source", reason=pl.lit("no_comment"), row_key="thread_id")
        kept = articles.filter(mine).height - gone.height
        runs.record_step(source, day, f"{ORIGIN}:{system}", STEP, kept, gone, {"system": system}, run_id, began)
        began = runs.start()
    return found.height


def _hash_text(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def list_systems(day: str) -> list[str]:
    """Systems that a model is in force of, and `human`."""
    return [*(system for system in SYSTEMS if model_registry.select_model_id(commenters.get_kind(system), day)), HUMAN]
