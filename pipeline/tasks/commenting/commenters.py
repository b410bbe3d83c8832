"""Commenters as tasks: from articles with comments to a model that retrieves or writes comments (AAC-21 to AAC-25)."""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from pipeline.collect import importers
from pipeline.errors import BadInput, Missing, check_name
from pipeline.examples.splits import draw_uniform
from pipeline.metrics.resample import Floats
from pipeline.models.devices import choose_device
from pipeline.slices import parse_window
from pipeline.tasks.commenting import corpus
from pipeline.tasks.commenting.corpus import COMMENT_ID, THREAD, THREAD_ID
from pipeline.tasks.record import model_choice, model_registry, promotion
from pipeline.tasks.record.model_registry import TrainedModel, select_scalars
from pipeline.tasks.record.promotion import HeldOut
from pipeline.tasks.subtext import recovery
from pipeline.training.registry import Model

VALIDATION = 0.1  # share of a file's articles
RETRIEVING = ("ir_t", "ir_tc")
SYSTEMS = (*RETRIEVING, "seq2seq", "att", "att_tc")  # the five of the paper (section 5)

_COLUMNS = {  # of the results of an epoch: metric and split
    "train_loss": ("loss", "train"), "loss": ("loss", "train"),
    "validation_loss": ("loss", "validation"), "mrr": ("mrr", "validation"),
}  # fmt: skip


class Data(NamedTuple):
    """Articles and their comments, tokenized."""

    articles: pl.DataFrame  # article_id, title, content (lists of words), split; of a file title_text, content_text
    comments: pl.DataFrame  # article_id, comment_id, text, words


def check_params(params: Mapping[str, Any]) -> None:
    """Raise BadInput for days in the wrong order, and commenters or hyperparameters that cannot be trained."""
    parse_window(params["first_day"], params["last_day"])
    for system in {**dict.fromkeys(params["systems"]), **params["numbers"]}:
        get_modules(system)[0].make_recipe(system, **params["numbers"].get(system, {}))


def get_kind(system: str) -> str:
    """Return the kind of a system's commenters in `models`."""
    return f"commenter_{system}"


def read_tables() -> Data:
    """Read the training and validation splits of the corpus."""
    threads = corpus.read_threads("train", "validation")
    articles = threads.select("split", title="title_tokens", content="content_tokens", article_id=THREAD_ID)
    comments = corpus.read_tokenized_comments(threads.lazy().select(THREAD))
    return Data(articles, comments.select("text", words="tokens", article_id=THREAD_ID, comment_id=COMMENT_ID))


def read_file(path: Path, mapping: Mapping[str, str] | None = None) -> Data:
    """Read articles with comments from a file that `undertone import` reads; a tenth of them validates, by id."""
    pages = [batch.page for batch in importers.read(path, "own", mapping or {}, None)]
    article_rows = [(row.thread_id, row.title or "", row.text) for page in pages for row in page.articles]
    comment_rows = [(row.thread_id, row.comment_id, row.text) for page in pages for row in page.comments]
    names = ("article_id", "title_text", "content_text", "comment_id", "text")
    all_articles = pl.DataFrame(article_rows, schema=dict.fromkeys(names[:3], pl.String), orient="row")
    comments = pl.DataFrame(comment_rows, schema=dict.fromkeys((names[0], *names[3:]), pl.String), orient="row")
    comments = comments.filter(pl.col("text").str.strip_chars() != "")
    by_length = all_articles.sort(pl.col("content_text").str.len_chars())  # as the tables do
    articles = by_length.unique("article_id", keep="last")
    articles = articles.join(comments, on="article_id", how="semi").sort("article_id")
    if not articles.height:
        counts = f"{all_articles.height} articles, {comments.height} comments"
        raise BadInput(f"{path}: expected articles with comments, found {counts}")
    comments = comments.join(articles, on="article_id", how="semi")
    is_held = draw_uniform(articles["article_id"]) < VALIDATION
    words = {name: corpus.tokenize_column(articles, f"{name}_text") for name in ("title", "content")}
    split = pl.when(is_held).then(pl.lit("validation")).otherwise(pl.lit("train"))
    articles = articles.with_columns(split=split, **words)
    return Data(articles, comments.with_columns(words=corpus.tokenize_column(comments, "text")))


def fit(system: str, data: Data, texts: pl.Series, changes: Mapping[str, Any] | None = None) -> TrainedModel:
    """Fit a commenter, with the results of its epochs; `texts` are those of the comments' articles."""
    if not data.articles.height or not data.comments.height:
        raise Missing("there is nothing to learn from")
    recipes, module = get_modules(system)
    recipe = recipes.make_recipe(system, **(changes or {}))
    data_hash = model_registry.hash_rows(data.articles, data.comments)
    state = model_registry.locate_state(data_hash, asdict(recipe))
    result = module.fit(data.articles, data.comments, recipe, state, device=choose_device())
    config = {**result.config, "system": system, "data_hash": data_hash}
    history = result.history.with_columns(count=pl.lit(data.comments.height))
    chance = recipes.compute_chance(recipe) if system in RETRIEVING else None
    return TrainedModel(
        kind=get_kind(system),
        tensors=result.tensors,
        config=config,
        summary=select_scalars(config),
        evaluations=model_registry.build_epoch_rows(history, _COLUMNS, chance),
        make_held_out=lambda: make_held_out(system, data),
        texts=pl.concat([data.comments["text"], texts]),
    )


def make_held_out(system: str, data: Data) -> list[HeldOut]:
    """Hold out up to 2,000 comments of the validation articles, by which commenters of a system are compared.

    One that retrieves ranks each comment among 50 of other articles; one that writes expects each of its words.
    """
    import torch

    from pipeline.models.commenting import commenters as models
    from pipeline.training.commenting import commenters, relevance, retrieval

    articles = data.articles.filter(pl.col("split") == "validation")
    comments = data.comments.join(articles, on="article_id", how="semi", maintain_order="left")
    if not comments.height:
        return []
    numbers = relevance.Recipe()
    rows = relevance.draw_rows(comments.height, numbers.judged, torch.Generator().manual_seed(numbers.seed))
    units = comments["article_id"][rows]
    if system in RETRIEVING:

        def rank(model: Model) -> Floats:
            built = model.build(retrieval.load, choose_device())
            recipe = replace(built.recipe, judged=numbers.judged, foreign=numbers.foreign, seed=numbers.seed)
            ranks = relevance.rank_comments(built.model, built.words, recipe, articles, comments)
            return promotion.count_shares(1 / ranks)

        chance = promotion.count_shares(np.full(len(rows), relevance.compute_chance(numbers)))
        return [HeldOut(metric="mrr", answer=rank, baselines={"chance": chance}, units=units)]
    held_out_comments = comments[rows]

    def expect(model: Model) -> Floats:
        return commenters.sum_log_probabilities(model.build(models.load, choose_device()), articles, held_out_comments)

    train_words = data.comments.join(articles, on="article_id", how="anti")["words"]
    baselines = {"word frequencies": _expect_frequencies(train_words, held_out_comments["words"])}
    return [HeldOut(metric="log_probability", answer=expect, baselines=baselines, units=units)]


def _expect_frequencies(train_comments: pl.Series, comments: pl.Series) -> Floats:
    """Sum the log frequencies, plus one, of the words and the end of each comment, and count them: [n, 2]."""
    counts = Counter(train_comments.explode().drop_nulls().to_list()) + Counter({None: len(train_comments)})
    total = counts.total() + len({*counts, *comments.explode()})
    lists = [[*words, None] for words in comments]
    return np.array([[sum(math.log((counts[word] + 1) / total) for word in words), len(words)] for words in lists])


def get_modules(system: str) -> tuple[ModuleType, ModuleType]:
    """Return the module with the recipe of a system, and the module that fits it."""
    if check_name("commenter", system, SYSTEMS) in RETRIEVING:
        from pipeline.training.commenting import relevance, retrieval

        return relevance, retrieval
    from pipeline.training.commenting import commenters

    return commenters, commenters


def train_file(
    system: str, data: Data, out: Path, changes: Mapping[str, Any] | None = None, *, force: bool = False
) -> pl.DataFrame:
    """Train into a folder; return the results of the epochs."""
    texts = pl.concat([data.articles[name].alias("text") for name in ("title_text", "content_text")])
    return model_registry.train_into(out, lambda: fit(system, data, texts, changes), force=force)[1]


def train(day: str, system: str, *, promote: bool = False, run_id: str = "cli", **options: Any) -> str:
    """Train on the corpus into the registry, with options of `fit`; return the model's id."""

    def fit_corpus() -> TrainedModel:
        data = read_tables()
        articles = corpus.scan_articles().select("title", "content", article_id=THREAD_ID).collect()
        articles = articles.join(data.articles, on="article_id", how="semi")
        texts = pl.concat([articles[name].alias("text") for name in ("content", "title")])
        return fit(system, data, texts, **options)

    return model_registry.train(day, fit_corpus, run_id, promote=promote)


def load_model(ref: str | None = None, system: str = SYSTEMS[-1], day: str | None = None) -> Model:
    """Load a commenter by its folder or id; without `ref`, the one of a system that is in force for a day."""
    kind = get_kind(system) if ref is None else "commenter"
    missing = f"no commenter {system} is in force; train one: `undertone train commenter --help`"
    model = model_choice.load_model(kind, ref, day, missing)
    if model.config.get("system") not in SYSTEMS:
        raise BadInput(f"model {model.model_id[:12]}: it is no commenter")
    return model


def fit_pretrained(data: Data, out: Path, start: str, changes: Mapping[str, Any] | None = None) -> pl.DataFrame:
    """Fit a pretrained encoder-decoder on data of `read_file` into a new folder; see `recovery.train`."""
    article_rows = data.articles.select("article_id", "split", text="title_text", context="content_text")
    rows = data.comments.select("article_id", meaning="text").join(article_rows, on="article_id", how="inner")
    return recovery.train(rows, out, start=start, changes={"keep": "start", **(changes or {})})
