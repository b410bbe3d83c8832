"""Comments on articles by any commenter, and those on the test articles in `generated_comments` (AAC-26)."""

import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from pipeline import __version__, warehouse
from pipeline.collect.clean import hash_text
from pipeline.errors import BadInput, Missing, check_name
from pipeline.models.devices import choose_device
from pipeline.tables import TABLES, empty
from pipeline.tasks.commenting import commenters, corpus
from pipeline.tasks.commenting.commenters import RETRIEVING, SYSTEMS
from pipeline.tasks.commenting.corpus import COMMENT, COMMENT_ID, THREAD
from pipeline.tasks.record import model_choice, runs
from pipeline.text.language import detect_language
from pipeline.training.registry import Model

if TYPE_CHECKING:
    from pipeline.models.decoding import Decoding

HUMAN, PRETRAINED = "human", "pretrained"
STEP = "generate"
SIMILAR = 10  # articles whose comments retrieving systems search
_CHUNK = 256  # articles commented on at once
_ROW = "__row__"  # no file has this name
_SPACED = re.compile(r"[^\W\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")  # a letter or digit of writing that has blanks
SCHEMA: dict[str, Any] = {"row": pl.Int64, "text": pl.String, "tokens": pl.List(pl.String), "score": pl.Float64}
SCHEMA |= {"found_in": pl.String}


class Comments(NamedTuple):
    """Comments of a commenter on articles."""

    rows: pl.DataFrame  # `SCHEMA`; row is that of the articles
    config: dict[str, Any]  # decoding
    model_id: str
    system: str

    @property
    def signature(self) -> str:
        options = ",".join(f"{name}:{value}" for name, value in sorted(self.config.items()))
        return f"{self.system}|model:{self.model_id[:12]}|{options}|undertone:{__version__}"


def make_comments(model: Model, articles: pl.DataFrame, decoding: "Decoding | None" = None, first: int = 0) -> Comments:
    """Make comments on articles (title_tokens, content_tokens, lang); their number, from `first` on, is a seed."""
    from pipeline.models.commenting import commenters as writers
    from pipeline.models.decoding import Decoding
    from pipeline.training.commenting import retrieval

    system, decoding = model.config["system"], decoding or Decoding()
    titles, contents = (articles[name].to_list() for name in ("title_tokens", "content_tokens"))
    if system in RETRIEVING:
        retriever = model.build(retrieval.load, choose_device())
        candidates = retrieval.comment(retriever, titles, contents, SIMILAR, decoding.best)
        tokens = corpus.tokenize_column(candidates, "text").alias("tokens")
        rows = candidates.select("row", "text", tokens, score="relevance", found_in="comment_id")
        return Comments(rows, {"similar": SIMILAR, "best": decoding.best}, model.model_id, system)
    writer = model.build(writers.load, choose_device())
    comment_lists = writers.generate_candidates(writer, titles, contents, decoding, first=first)
    parts = [
        (row, join_words(comment.words, articles["lang"][row]), comment.words, comment.log_probability, None)
        for row, comments in enumerate(comment_lists)
        for comment in comments
        if comment.words
    ]
    return Comments(pl.DataFrame(parts, schema=SCHEMA, orient="row"), asdict(decoding), model.model_id, system)


def join_words(words: Sequence[str], lang: str) -> str:
    """Join words with blanks; in Chinese only between words that end and begin with a letter or digit."""
    if lang not in ("zh", "ja", "und"):
        return " ".join(words)
    text = ""
    for word in words:
        needs_blank = text and _SPACED.fullmatch(text[-1]) and _SPACED.match(word)
        text += f" {word}" if needs_blank else word
    return text


def comment(
    rows: pl.DataFrame, ref: str | None = None, *, system: str = SYSTEMS[-1], decoding: "Decoding | None" = None
) -> pl.DataFrame:
    """Make comments on any articles, of title and content (null or empty where there is none).

    `ref` is the folder or id of a commenter; by default it is the one of the system in force. Returns the rows with
    comment, score and signature; a row for each comment, or one row with nulls where there is none.
    """
    if ref and (Path(ref).expanduser() / "facts.json").is_file():  # as `models.subtext.seq2seq` writes its folders
        comments = make_pretrained_comments(rows, ref, decoding)
    else:
        model = commenters.load_model(ref, system)
        texts = rows.with_columns(pl.col("title", "content").fill_null(""))
        langs = texts.select(text=pl.concat_str("title", "content", separator=" ")).select(detect_language())
        tokens = {f"{name}_tokens": corpus.tokenize_column(texts, name) for name in ("title", "content")}
        comments = make_comments(model, pl.DataFrame({**tokens, "lang": langs.to_series()}), decoding)
    columns = comments.rows.select("score", comment="text", signature=pl.lit(comments.signature), **{_ROW: "row"})
    rows = rows.drop("comment", "score", "signature", strict=False).with_row_index(_ROW).cast({_ROW: pl.Int64})
    return rows.join(columns, on=_ROW, how="left", maintain_order="left_right").drop(_ROW)


def make_pretrained_comments(rows: pl.DataFrame, folder: str, decoding: "Decoding | None" = None) -> Comments:
    """Make comments on rows of title and content with a model of `commenters.fit_pretrained`, as in its training."""
    from pipeline.models.decoding import Decoding
    from pipeline.models.subtext import seq2seq

    path, decoding = Path(folder).expanduser(), decoding or Decoding()
    model = seq2seq.load(path)
    recipe = json.loads((path / "facts.json").read_text(encoding="utf-8")).get("recipe", {})
    options = {"longest": recipe.get("source", seq2seq.SOURCE), "keep": recipe.get("keep", "start")}
    texts = (rows["title"].fill_null("").to_list(), rows["content"].to_list())
    candidates = seq2seq.generate_candidates(model, *texts, decoding, **options)
    parts: list[tuple[Any, ...]] = [
        (row, comment.text, [], comment.log_probability, None)
        for row, article_candidates in enumerate(candidates)
        for comment in article_candidates
        if comment.text.strip()
    ]
    comments = pl.DataFrame(parts, schema=SCHEMA, orient="row")
    comments = comments.with_columns(corpus.tokenize_column(comments, "text").alias("tokens"))
    return Comments(comments, asdict(decoding), model.revision, PRETRAINED)


def generate(
    day: str, system: str, *, ref: str | None = None, decoding: "Decoding | None" = None, run_id: str = "cli"
) -> int:
    """Generate comments by one system on the test articles; return their count. Articles without one are `dropped`."""
    timer = runs.start()
    if system == PRETRAINED and ref is None:
        raise BadInput("a pretrained commenter is a folder of `undertone train commenter --from`; name its folder")
    is_trained = system not in (HUMAN, PRETRAINED)
    model = commenters.load_model(ref, check_name("commenter", system, SYSTEMS), day) if is_trained else None
    articles = _read_test_articles(day, system, run_id)
    if model:
        parts = enumerate(articles.iter_slices(_CHUNK))
        comments = pl.concat(
            _join_keys(make_comments(model, part, decoding, number * _CHUNK), part) for number, part in parts
        )
    elif system == HUMAN:  # those that are not references, one for each test article (AAC-26)
        candidates = warehouse.scan("reference_comments", pl.col("role") == "candidate").select(COMMENT)
        nulls = {"score": pl.lit(None, pl.Float64), "model_id": pl.lit(None, pl.String)}
        facts = {"config": pl.lit("{}"), "signature": pl.lit(f"{HUMAN}|undertone:{__version__}")}
        human = corpus.read_tokenized_comments(candidates)
        comments = human.select(*THREAD, "text", "tokens", found_in=COMMENT_ID, **nulls, **facts)
    else:  # an encoder-decoder reads articles untokenized
        texts = corpus.scan_articles().collect()
        rows = articles.select(THREAD).join(texts, on=THREAD, how="left", maintain_order="left")
        comments = _join_keys(make_pretrained_comments(rows, str(ref), decoding), rows)
    return _write_comments(day, system, comments, articles, run_id, timer)


def _join_keys(comments: Comments, articles: pl.DataFrame) -> pl.DataFrame:
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
    key = rows.select(pl.concat_str(*THREAD, pl.lit(system), "text", separator="\n")).to_series()
    comments = rows.with_columns(system=pl.lit(system), generated_id=hash_text(key), score=pl.col("score").round(6))
    comments = comments.select(TABLES["generated_comments"].schema.column_names())
    for source in corpus.list_sources("generated_comments", articles["source"], pl.col("system") == system):
        is_source = pl.col("source") == source
        partition = warehouse.make_slice(source=source, system=system)
        warehouse.overwrite("generated_comments", partition, comments.filter(is_source), run_id)
        source_articles = articles.filter(is_source)
        without_comment = source_articles.join(comments, on=THREAD, how="anti")
        dropped = without_comment.select("source", reason=pl.lit("no_comment"), row_key="thread_id")
        count, config = source_articles.height - dropped.height, {"system": system}
        runs.record_step(source, day, f"{corpus.ORIGIN}:{system}", STEP, count, dropped, config, run_id, timer)
    return comments.height


def list_systems(day: str) -> list[str]:
    """List the systems with a model in force, and `human`."""
    return [*(system for system in SYSTEMS if model_choice.select_model_id(commenters.get_kind(system), day)), HUMAN]
