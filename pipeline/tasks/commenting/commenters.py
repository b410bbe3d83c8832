"""Commenters as tasks: articles with comments to a model, a model to comments (AAC-21 to AAC-26).

Two find a comment of a similar article (IR-T, IR-TC), three write one (Seq2seq, Att, Att-TC), and a pretrained
encoder-decoder may be fitted to. Models of the first five are folders of the registry.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from pipeline import __version__, settings, warehouse
from pipeline.collect import importers
from pipeline.errors import BadInput, Missing
from pipeline.examples.sources.files import table
from pipeline.examples.splits import draws
from pipeline.slices import parse_day
from pipeline.tables import TABLES, empty
from pipeline.tasks.commenting import corpus
from pipeline.tasks.commenting.corpus import COMMENT, THREAD
from pipeline.tasks.recam.readers import device
from pipeline.tasks.record import day_texts, model_registry, runs
from pipeline.tasks.subtext import recovery
from pipeline.text.language import language

if TYPE_CHECKING:
    from pipeline.models.decoding import Decoding
    from pipeline.training.registry import Model

RETRIEVING = ("ir_t", "ir_tc")
WRITING = ("seq2seq", "att", "att_tc")
SYSTEMS = (*RETRIEVING, *WRITING)
"""The five of the paper (section 5)."""

PRETRAINED = "pretrained"
HUMAN = "human"
ORIGIN = "commenting"
STEP = "generate"
_CHUNK = 256  # articles commented on at once
_ROW = "__row__"  # a name that no file has
_APART = re.compile(r"[^\W\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")  # a letter or digit of writing that has blanks


MADE: dict[str, Any] = {
    "row": pl.Int64, "text": pl.String, "tokens": pl.List(pl.String), "score": pl.Float64, "found_in": pl.String,
}  # fmt: skip


class Data(NamedTuple):
    """Articles and their comments, in words."""

    articles: pl.DataFrame  # article_id, title, content (lists of words), split; of a file said_title, said_content
    comments: pl.DataFrame  # article_id, comment_id, text, words


class Made(NamedTuple):
    """What a commenter makes of articles."""

    rows: pl.DataFrame  # `MADE`; row is that of the articles
    config: dict[str, Any]  # decoding
    signature: str


def known(system: str) -> str:
    """The name of one of the five systems, checked."""
    if system not in SYSTEMS:
        raise BadInput(f"no commenter {system!r}; there are {', '.join(SYSTEMS)}")
    return system


def kind(system: str) -> str:
    """What a commenter is called in `models`."""
    return f"commenter_{system}"


def of_tables() -> Data:
    """The training and validation part of the corpus."""
    rows = corpus.threads("train", "validation").select(
        pl.concat_str(THREAD, separator="/").alias("article_id"), "split", title="title_tokens",
        content="content_tokens",
    )  # fmt: skip
    said = corpus.thread_comments("train", "validation").select(
        pl.concat_str(THREAD, separator="/").alias("article_id"), "text",
        comment_id=pl.concat_str(COMMENT, separator="/"), words="tokens",
    )  # fmt: skip
    return Data(rows, said)


def of_file(path: Path, mapping: Mapping[str, str] | None = None, share: float = 0.1) -> Data:
    """Articles with comments of a file that `undertone import` reads; a share of the articles, by their ids, validates.

    Raises:
        BadInput: naming file, row and field; or the file holds no articles with comments.
    """
    articles: list[tuple[str, str, str]] = []
    comments: list[tuple[str, str, str]] = []
    for batch in importers.read(path, "own", mapping or {}, None):
        articles += [(one.thread_id, one.title or "", one.text) for one in batch.page.articles]
        comments += [(one.thread_id, one.comment_id, one.text) for one in batch.page.comments]
    told = _texts(articles, "article_id", "said_title", "said_content")
    told = told.sort(pl.col("said_content").str.len_chars()).unique("article_id", keep="last")  # as the tables do
    said = _texts(comments, "article_id", "comment_id", "text").filter(pl.col("text").str.strip_chars() != "")
    told = told.join(said, on="article_id", how="semi").sort("article_id")
    if not told.height:
        raise BadInput(
            f"{path}: expected articles with comments, found {len(articles)} articles, {said.height} comments"
        )
    said = said.join(told, on="article_id", how="semi")
    split = pl.when(draws(told["article_id"]) < share).then(pl.lit("validation")).otherwise(pl.lit("train"))
    told = told.with_columns(split.alias("split"), title=_cut(told, "said_title"), content=_cut(told, "said_content"))
    return Data(told, said.with_columns(words=_cut(said, "text")))


def _texts(rows: list[tuple[str, str, str]], *names: str) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")


def _cut(rows: pl.DataFrame, column: str) -> pl.Series:
    """Words of a column, each text as its language wants it."""
    lang = rows.select(language(column)).to_series()
    return corpus.words(rows[column], lang, corpus.tokenizers()).alias(column)


def fitted(
    system: str, data: Data, changes: Mapping[str, Any] | None = None
) -> tuple[dict[str, Any], dict[str, Any], pl.DataFrame]:
    """Tensors, configuration and the epochs' numbers (rows of `evaluations` without their keys) of a commenter."""
    if not data.articles.height or not data.comments.height:
        raise Missing("there is nothing to learn from")
    recipes, module = modules(system)
    recipe = recipes.recipe_of(system, **(changes or {}))
    data_hash = model_registry.hash_of(data.articles, data.comments)
    seen = hashlib.sha256(json.dumps([data_hash, asdict(recipe), __version__]).encode())
    state = settings.scratch("training") / f"{seen.hexdigest()}.safetensors"
    done = module.fit(data.articles, data.comments, recipe, state, device=device())
    config = {**done.config, "system": system, "data_hash": data_hash}
    return done.tensors, config, _epochs(done.history, data.comments.height)


def modules(system: str) -> tuple[ModuleType, ModuleType]:
    """What has the recipe of a system, and what fits it."""
    if known(system) in RETRIEVING:
        from pipeline.training.commenting import relevance, retrieval

        return relevance, retrieval
    from pipeline.training.commenting import commenters

    return commenters, commenters


def _epochs(history: pl.DataFrame, count: int) -> pl.DataFrame:
    """Losses of both parts by epoch, and the mean reciprocal rank of those that retrieve, as rows of `evaluations`."""
    named = {"train_loss": ("loss", "train"), "loss": ("loss", "train"), "validation_loss": ("loss", "validation"),
             "mrr": ("mrr", "validation")}  # fmt: skip
    rows = [
        history.select(
            "epoch", value=name, metric=pl.lit(metric), split=pl.lit(split), subset=pl.lit("epochs"),
            pair_count=pl.lit(count),
        ).drop_nulls("value")
        for name, (metric, split) in named.items() if name in history.columns
    ]  # fmt: skip
    return model_registry.numbers(pl.concat(rows))


def train_file(system: str, data: Data, out: Path, changes: Mapping[str, Any] | None = None) -> pl.DataFrame:
    """Train into a folder; the epochs' numbers."""
    from pipeline.training import registry

    registry.writable(out)
    tensors, config, found = fitted(system, data, changes)
    registry.write(out, tensors, config)
    said = [data.articles[name].alias("text") for name in ("said_title", "said_content")]
    model_registry.learned_in_folder(kind(system), out, pl.concat([data.comments["text"], *said]))
    return found


def train(day: str, system: str, *, changes: Mapping[str, Any] | None = None, run_id: str = "cli") -> str:
    """Train on the corpus into the registry, in force from that day on; the model's id."""
    from pipeline.training import registry

    parse_day(day)
    began = runs.start()
    data = of_tables()
    tensors, config, found = fitted(system, data, changes)
    model_id = registry.keep(settings.models(), tensors, config)
    told = {name: value for name, value in config.items() if isinstance(value, (int, float, str, bool))}
    about = {
        "encoder": "none", "encoder_revision": "none", "config": json.dumps(told, sort_keys=True),
        "data_hash": config["data_hash"], "completion_models": [],
    }  # fmt: skip
    articles = day_texts.articles(pl.lit(value=True)).select(
        "title", "text", article_id=pl.concat_str(THREAD, separator="/")
    ).collect().join(data.articles, on="article_id", how="semi")  # fmt: skip
    learned = pl.concat([data.comments["text"], articles["text"], articles["title"].alias("text")])
    model_registry.put(kind(system), day, model_id, about, found, run_id, is_promoted=True, texts=learned, since=began)
    return model_id


def opened(ref: str | None = None, system: str = SYSTEMS[-1], day: str | None = None) -> "Model":
    """A commenter by its folder or id; without one that of a system which is in force for a day."""
    model = model_registry.opened(
        kind(system), ref, day, f"no commenter {system} is in force; train one: `undertone train commenter --help`"
    )
    if model.config.get("system") not in SYSTEMS:
        raise BadInput(f"model {model.model_id[:12]}: it is no commenter")
    return model


def made(
    model: "Model", titles: Sequence[Sequence[str]], contents: Sequence[Sequence[str]],
    langs: Sequence[str], decoding: "Decoding | None" = None, best: int = 1, similar: int = 10, first: int = 0,
) -> Made:  # fmt: skip
    """Comments on articles.

    Args:
        model: of `opened`.
        titles: words of each title.
        contents: words of each body; read by those that read bodies.
        langs: of each article, by which words are put together.
        decoding: how comments are written; beam search by default.
        best: comments an article.
        similar: articles whose comments are looked at, by those that retrieve.
        first: number of the first article, by which chance is drawn.
    """
    system = model.config["system"]
    if system in RETRIEVING:
        rows = _retrieved(model, titles, contents, best, similar)
        config: dict[str, Any] = {"similar": similar, "best": best}
    else:
        from pipeline.models.decoding import Decoding

        decoding = decoding or Decoding(best=best)
        rows, config = _written(model, titles, contents, langs, decoding, first), asdict(decoding)
    told = ",".join(f"{name}:{value}" for name, value in sorted(config.items()))
    return Made(rows, config, f"{system}|model:{model.model_id[:12]}|{told}|undertone:{__version__}")


def _retrieved(
    model: "Model", titles: Sequence[Sequence[str]], contents: Sequence[Sequence[str]], best: int, similar: int
) -> pl.DataFrame:
    from pipeline.training.commenting import retrieval

    found = retrieval.comment(model.build(retrieval.load, device()), titles, contents, k=similar, best=best)
    return found.select(
        pl.col("row").cast(pl.Int64), "text", _cut(found, "text").alias("tokens"),
        score=pl.col("relevance").cast(pl.Float64), found_in="comment_id",
    )  # fmt: skip


def _written(
    model: "Model", titles: Sequence[Sequence[str]], contents: Sequence[Sequence[str]], langs: Sequence[str],
    decoding: "Decoding", first: int,
) -> pl.DataFrame:  # fmt: skip
    from pipeline.training.commenting import commenters

    by = model.build(commenters.load, device())
    found = commenters.candidates(by, titles, contents, decoding, first=first)
    rows = [
        (row, joined(one.words, langs[row]), one.words, one.log_probability, None)
        for row, several in enumerate(found) for one in several if one.words
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=MADE, orient="row")


def joined(words: Sequence[str], lang: str) -> str:
    """Words as text: with blanks between them, in Chinese only between two of letters or digits of other writing."""
    if lang not in ("zh", "ja", "und"):
        return " ".join(words)
    text = ""
    for word in words:
        apart = text and _APART.fullmatch(text[-1]) and _APART.match(word)
        text += f" {word}" if apart else word
    return text


def comment(
    rows: pl.DataFrame, ref: str | None = None, *, system: str = SYSTEMS[-1], decoding: "Decoding | None" = None,
    best: int = 1, similar: int = 10,
) -> pl.DataFrame:  # fmt: skip
    """Comments on any articles.

    Args:
        rows: title, content (null or empty where there is none).
        ref: folder or id of a commenter; that in force by default.
        system: whose commenter in force is taken.
        decoding: how comments are written.
        best: comments an article.
        similar: articles whose comments are looked at, by those that retrieve.

    Returns:
        The rows with comment, score and signature; a row for each comment, of an article that got none one with nulls.
    """
    if ref and (Path(ref).expanduser() / "facts.json").is_file():  # as `models.subtext.seq2seq` writes its folders
        fitted_, _ = _by_pretrained(rows, ref, decoding, best)
        return _with_comments(rows, fitted_.rows, fitted_.signature)
    model = opened(ref, system)
    told = rows.with_columns(pl.col("title", "content").fill_null(""))
    whole = told.select(text=pl.concat_str("title", "content", separator=" "))
    langs = whole.select(language()).to_series().to_list()
    titles, contents = _cut(told, "title").to_list(), _cut(told, "content").to_list()
    found = made(model, titles, contents, langs, decoding, best, similar)
    return _with_comments(rows, found.rows, found.signature)


def _with_comments(rows: pl.DataFrame, found: pl.DataFrame, signature: str) -> pl.DataFrame:
    """The rows, each as often as there are comments on it, and once where there is none."""
    said = found.select("score", comment="text", signature=pl.lit(signature), **{_ROW: "row"})
    rows = rows.drop("comment", "score", "signature", strict=False).with_row_index(_ROW).cast({_ROW: pl.Int64})
    return rows.join(said, on=_ROW, how="left", maintain_order="left_right").drop(_ROW)


def decoding(**given: Any) -> "Decoding":
    """How comments are written; see `models.decoding`."""
    from pipeline.models.decoding import Decoding

    return Decoding(**given)


def read_articles(path: Path) -> pl.DataFrame:
    """Articles of a file: title, and content where there is any."""
    return table([path], {"title": ("title",)}, {"content": ("content", "text")})


# ------------------------------------------------------------------------------------------------------- pretrained


def fit_pretrained(data: Data, out: Path, start: str, changes: Mapping[str, Any] | None = None) -> pl.DataFrame:
    """Fit a pretrained encoder-decoder to the pairs, into a folder; its losses by epoch.

    Args:
        data: of `of_file`.
        out: folder, which should not be there yet.
        start: model to begin with, a folder or a hub name with @revision.
        changes: to the recipe of `training.subtext.seq2seq`.
    """
    told = data.articles.select("article_id", "split", text="said_title", context="said_content")
    rows = data.comments.select("article_id", meaning="text").join(told, on="article_id", how="inner")
    return recovery.train(rows, out, start=start, changes={"keep": "start", **(changes or {})})


def _by_pretrained(
    rows: pl.DataFrame, folder: str, decoding: "Decoding | None" = None, best: int = 1
) -> tuple[Made, str]:
    """Comments by a folder of `fit_pretrained`, and the folder's hash.

    Args:
        rows: title, content.
        folder: as `models.subtext.seq2seq` writes it; a title and a body are read as they were in its training.
        decoding: how comments are written; beam search by default.
        best: comments an article.
    """
    from pipeline.models.decoding import Decoding
    from pipeline.models.subtext import seq2seq

    model, how = seq2seq.load(Path(folder).expanduser()), decoding or Decoding(best=best)
    facts = json.loads((Path(folder).expanduser() / "facts.json").read_text(encoding="utf-8")).get("recipe", {})
    titles = rows["title"].fill_null("").to_list()
    found = seq2seq.candidates(
        model, titles, rows["content"].to_list(), how, longest=facts.get("source", seq2seq.SOURCE),
        keep=facts.get("keep", "start"),
    )  # fmt: skip
    said: list[tuple[Any, ...]] = [
        (row, one.text, [], one.log_probability, None)
        for row, several in enumerate(found) for one in several if one.text.strip()
    ]  # fmt: skip
    told = pl.DataFrame(said, schema=MADE, orient="row")
    config = asdict(how)
    shown = ",".join(f"{name}:{value}" for name, value in sorted(config.items()))
    signature = f"{PRETRAINED}|model:{model.revision[:12]}|{shown}|undertone:{__version__}"
    return Made(told.with_columns(_cut(told, "text").alias("tokens")), config, signature), model.revision


# ----------------------------------------------------------------------------------------------------------- tables


def generate(
    day: str, system: str, *, ref: str | None = None, decoding: "Decoding | None" = None, similar: int = 10,
    run_id: str = "cli",
) -> int:  # fmt: skip
    """Comment on the test articles by one system into `generated_comments`; how many comments there are.

    An article that gets none is told of in `dropped`.
    """
    parse_day(day)
    if system == HUMAN:
        return _real(day, run_id)
    if system == PRETRAINED:
        return _pretrained(day, ref, decoding, run_id)
    began, model = runs.start(), opened(ref, known(system), day)
    articles, parts = _tested(day, system, run_id), []
    for number, part in enumerate(articles.iter_slices(_CHUNK)):
        found = made(
            model, part["title_tokens"].to_list(), part["content_tokens"].to_list(), part["lang"].to_list(), decoding,
            similar=similar, first=number * _CHUNK,
        )  # fmt: skip
        about = part.with_row_index("row").cast({"row": pl.Int64}).select("row", *THREAD)
        parts.append(
            found.rows.join(about, on="row").with_columns(
                config=pl.lit(json.dumps(found.config, sort_keys=True)), signature=pl.lit(found.signature)
            )
        )
    rows = pl.concat(parts).with_columns(model_id=pl.lit(model.model_id))
    return _keep(day, system, rows, articles, run_id, began)


def _real(day: str, run_id: str) -> int:
    """The real comments that are kept apart from the references, one a test article (AAC-26)."""
    began = runs.start()
    chosen = warehouse.scan("reference_comments", pl.col("role") == "candidate").select(COMMENT)
    articles = _tested(day, HUMAN, run_id)
    told = corpus.cut_comments(chosen).select(
        *THREAD, "text", "tokens", found_in=pl.concat_str(COMMENT, separator="/"), score=pl.lit(None, pl.Float64),
        model_id=pl.lit(None, pl.String), config=pl.lit("{}"), signature=pl.lit(f"{HUMAN}|undertone:{__version__}"),
    )  # fmt: skip
    return _keep(day, HUMAN, told, articles, run_id, began)


def _pretrained(day: str, folder: str | None, decoding: "Decoding | None", run_id: str) -> int:
    """Comments of a fitted encoder-decoder, which reads articles as they were written."""
    if folder is None:
        raise BadInput("a pretrained commenter is a folder of `undertone train commenter --from`; say which")
    began, articles = runs.start(), _tested(day, PRETRAINED, run_id)
    about = day_texts.articles(pl.lit(value=True)).select(*THREAD, "title", content="text").collect()
    rows = articles.select(THREAD).join(about, on=THREAD, how="left", maintain_order="left")
    found, model_id = _by_pretrained(rows, folder, decoding)
    where = rows.with_row_index("row").cast({"row": pl.Int64}).select("row", *THREAD)
    told = found.rows.join(where, on="row").with_columns(
        model_id=pl.lit(model_id), signature=pl.lit(found.signature),
        config=pl.lit(json.dumps(found.config, sort_keys=True)),
    )  # fmt: skip
    return _keep(day, PRETRAINED, told, articles, run_id, began)


def _tested(day: str, system: str, run_id: str) -> pl.DataFrame:
    """The test articles; where there are none, what the system made before goes before Missing is raised."""
    try:
        return corpus.threads("test")
    except Missing:
        none = empty("generated_comments")
        _keep(day, system, none.drop("system", "generated_id"), empty("threads"), run_id, runs.start())
        raise


def _keep(
    day: str, system: str, rows: pl.DataFrame, articles: pl.DataFrame, run_id: str, began: runs.Start
) -> int:  # fmt: skip
    """Put in place what a system made, and tell which articles got nothing."""
    key = pl.concat_str(*THREAD, pl.lit(system), "text", separator="\n")
    found = rows.with_columns(
        system=pl.lit(system), generated_id=key.map_elements(_digest, return_dtype=pl.String),
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
        runs.tell(source, day, f"{ORIGIN}:{system}", STEP, kept, gone, {"system": system}, run_id, began)
        began = runs.start()
    return found.height


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def in_force(day: str) -> list[str]:
    """Systems that a model is in force of, and `human`."""
    return [*(system for system in SYSTEMS if model_registry.model_for(kind(system), day)), HUMAN]
