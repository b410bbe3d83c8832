"""Commenters as tasks: articles with comments to a model (AAC-21 to AAC-25).

Two find a comment of a similar article (IR-T, IR-TC), three write one (Seq2seq, Att, Att-TC), and a pretrained
encoder-decoder may be fitted to. Models of the first five are folders of the registry.
"""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from pipeline.collect import importers
from pipeline.errors import BadInput, Missing
from pipeline.examples.splits import draw_uniform
from pipeline.tasks.commenting import corpus
from pipeline.tasks.commenting.corpus import COMMENT, THREAD
from pipeline.tasks.recam.readers import choose_device
from pipeline.tasks.record import day_texts, model_registry
from pipeline.tasks.record.model_registry import TrainedModel, select_scalars
from pipeline.tasks.subtext import recovery

if TYPE_CHECKING:
    from pipeline.training.registry import Model

RETRIEVING = ("ir_t", "ir_tc")
WRITING = ("seq2seq", "att", "att_tc")
SYSTEMS = (*RETRIEVING, *WRITING)
"""The five of the paper (section 5)."""

_COLUMNS = {
    "train_loss": ("loss", "train"), "loss": ("loss", "train"), "validation_loss": ("loss", "validation"),
    "mrr": ("mrr", "validation"),
}  # fmt: skip
"""Metric and split of the numbers of an epoch."""


class Data(NamedTuple):
    """Articles and their comments, in words."""

    articles: pl.DataFrame  # article_id, title, content (lists of words), split; of a file said_title, said_content
    comments: pl.DataFrame  # article_id, comment_id, text, words


def check_system(system: str) -> str:
    """The name of one of the five systems, checked."""
    if system not in SYSTEMS:
        raise BadInput(f"no commenter {system!r}; there are {', '.join(SYSTEMS)}")
    return system


def get_kind(system: str) -> str:
    """What a commenter is called in `models`."""
    return f"commenter_{system}"


def read_tables() -> Data:
    """The training and validation part of the corpus."""
    rows = corpus.read_threads("train", "validation").select(
        pl.concat_str(THREAD, separator="/").alias("article_id"), "split", title="title_tokens",
        content="content_tokens",
    )  # fmt: skip
    said = corpus.read_thread_comments("train", "validation").select(
        pl.concat_str(THREAD, separator="/").alias("article_id"), "text",
        comment_id=pl.concat_str(COMMENT, separator="/"), words="tokens",
    )  # fmt: skip
    return Data(rows, said)


def read_file(path: Path, mapping: Mapping[str, str] | None = None, share: float = 0.1) -> Data:
    """Articles with comments of a file that `undertone import` reads; a share of the articles, by their ids, validates.

    Raises:
        BadInput: naming file, row and field; or the file holds no articles with comments.
    """
    articles: list[tuple[str, str, str]] = []
    comments: list[tuple[str, str, str]] = []
    for batch in importers.read(path, "own", mapping or {}, None):
        articles += [(one.thread_id, one.title or "", one.text) for one in batch.page.articles]
        comments += [(one.thread_id, one.comment_id, one.text) for one in batch.page.comments]
    told = _make_frame(articles, "article_id", "said_title", "said_content")
    told = told.sort(pl.col("said_content").str.len_chars()).unique("article_id", keep="last")  # as the tables do
    said = _make_frame(comments, "article_id", "comment_id", "text").filter(pl.col("text").str.strip_chars() != "")
    told = told.join(said, on="article_id", how="semi").sort("article_id")
    if not told.height:
        raise BadInput(
            f"{path}: expected articles with comments, found {len(articles)} articles, {said.height} comments"
        )
    said = said.join(told, on="article_id", how="semi")
    split = pl.when(draw_uniform(told["article_id"]) < share).then(pl.lit("validation")).otherwise(pl.lit("train"))
    told = told.with_columns(
        split.alias("split"),
        title=corpus.tokenize_column(told, "said_title"),
        content=corpus.tokenize_column(told, "said_content"),
    )
    return Data(told, said.with_columns(words=corpus.tokenize_column(said, "text")))


def _make_frame(rows: list[tuple[str, str, str]], *names: str) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")


def fit(system: str, data: Data, texts: pl.Series, changes: Mapping[str, Any] | None = None) -> TrainedModel:
    """A commenter and its epochs' numbers; `texts` are those of the comments' articles."""
    if not data.articles.height or not data.comments.height:
        raise Missing("there is nothing to learn from")
    recipes, module = get_modules(system)
    recipe = recipes.make_recipe(system, **(changes or {}))
    data_hash = model_registry.hash_rows(data.articles, data.comments)
    state = model_registry.locate_state(data_hash, asdict(recipe))
    done = module.fit(data.articles, data.comments, recipe, state, device=choose_device())
    config = {**done.config, "system": system, "data_hash": data_hash}
    history = done.history.with_columns(count=pl.lit(data.comments.height))
    return TrainedModel(
        kind=get_kind(system), tensors=done.tensors, config=config, summary=select_scalars(config),
        evaluations=model_registry.build_epoch_rows(history, _COLUMNS), texts=pl.concat([data.comments["text"], texts]),
    )  # fmt: skip


def get_modules(system: str) -> tuple[ModuleType, ModuleType]:
    """What has the recipe of a system, and what fits it."""
    if check_system(system) in RETRIEVING:
        from pipeline.training.commenting import relevance, retrieval

        return relevance, retrieval
    from pipeline.training.commenting import commenters

    return commenters, commenters


def train_file(system: str, data: Data, out: Path, changes: Mapping[str, Any] | None = None) -> pl.DataFrame:
    """Train into a folder; the epochs' numbers."""
    texts = pl.concat([data.articles[name].alias("text") for name in ("said_title", "said_content")])
    return model_registry.train_into(out, lambda: fit(system, data, texts, changes))[1]


def train(day: str, system: str, *, changes: Mapping[str, Any] | None = None, run_id: str = "cli") -> str:
    """Train on the corpus into the registry, in force from that day on; the model's id."""

    def fit_corpus() -> TrainedModel:
        data = read_tables()
        articles = day_texts.scan_articles(pl.lit(value=True)).select(
            "title", "text", article_id=pl.concat_str(THREAD, separator="/")
        ).collect().join(data.articles, on="article_id", how="semi")  # fmt: skip
        return fit(system, data, pl.concat([articles["text"], articles["title"].alias("text")]), changes)

    return model_registry.train(day, fit_corpus, run_id)


def load_model(ref: str | None = None, system: str = SYSTEMS[-1], day: str | None = None) -> "Model":
    """A commenter by its folder or id; without one that of a system which is in force for a day."""
    model = model_registry.load_model(
        get_kind(system), ref, day, f"no commenter {system} is in force; train one: `undertone train commenter --help`"
    )
    if model.config.get("system") not in SYSTEMS:
        raise BadInput(f"model {model.model_id[:12]}: it is no commenter")
    return model


def fit_pretrained(data: Data, out: Path, start: str, changes: Mapping[str, Any] | None = None) -> pl.DataFrame:
    """Fit a pretrained encoder-decoder to the pairs, into a folder; its losses by epoch.

    Args:
        data: of `read_file`.
        out: folder, which should not be there yet.
        start: model to begin with, a folder or a hub name with @revision.
        changes: to the recipe of `training.subtext.seq2seq`.
    """
    told = data.articles.select("article_id", "split", text="said_title", context="said_content")
    rows = data.comments.select("article_id", meaning="text").join(told, on="article_id", how="inner")
    return recovery.train(rows, out, start=start, changes={"keep": "start", **(changes or {})})
