"""Comments on articles by any commenter (AAC-26)."""

import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from pipeline import __version__
from pipeline.examples.sources.files import read_table
from pipeline.tasks.commenting import commenters, corpus
from pipeline.tasks.commenting.commenters import RETRIEVING, SYSTEMS
from pipeline.tasks.recam.readers import choose_device
from pipeline.text.language import detect_language

if TYPE_CHECKING:
    from pipeline.models.decoding import Decoding
    from pipeline.training.registry import Model

PRETRAINED = "pretrained"
_ROW = "__row__"  # no file has this name
_APART = re.compile(r"[^\W\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")  # a letter or digit of writing that has blanks

MADE: dict[str, Any] = {
    "row": pl.Int64, "text": pl.String, "tokens": pl.List(pl.String), "score": pl.Float64, "found_in": pl.String,
}  # fmt: skip


class Comments(NamedTuple):
    """Comments of a commenter on articles."""

    rows: pl.DataFrame  # `MADE`; row is that of the articles
    config: dict[str, Any]  # decoding
    signature: str


def make_comments(
    model: "Model", titles: Sequence[Sequence[str]], contents: Sequence[Sequence[str]],
    langs: Sequence[str], decoding: "Decoding | None" = None, best: int = 1, similar: int = 10, first: int = 0,
) -> Comments:  # fmt: skip
    """Make comments on articles.

    Args:
        model: of `commenters.opened`.
        titles: words of each title.
        contents: words of each body; read by those that read bodies.
        langs: of each article, which decides how words are joined.
        decoding: how comments are written; beam search by default.
        best: comments for each article.
        similar: count of articles whose comments retrieving systems search.
        first: number of the first article, a part of the random seed.
    """
    system = model.config["system"]
    if system in RETRIEVING:
        rows = _retrieve(model, titles, contents, best, similar)
        config: dict[str, Any] = {"similar": similar, "best": best}
    else:
        from pipeline.models.decoding import Decoding

        decoding = decoding or Decoding(best=best)
        rows, config = _write(model, titles, contents, langs, decoding, first), asdict(decoding)
    settings_text = ",".join(f"{name}:{value}" for name, value in sorted(config.items()))
    return Comments(rows, config, f"{system}|model:{model.model_id[:12]}|{settings_text}|undertone:{__version__}")


def _retrieve(
    model: "Model", titles: Sequence[Sequence[str]], contents: Sequence[Sequence[str]], best: int, similar: int
) -> pl.DataFrame:
    from pipeline.training.commenting import retrieval

    candidates = retrieval.comment(model.build(retrieval.load, choose_device()), titles, contents, k=similar, best=best)
    return candidates.select(
        pl.col("row").cast(pl.Int64), "text", corpus.tokenize_column(candidates, "text").alias("tokens"),
        score=pl.col("relevance").cast(pl.Float64), found_in="comment_id",
    )  # fmt: skip


def _write(
    model: "Model", titles: Sequence[Sequence[str]], contents: Sequence[Sequence[str]], langs: Sequence[str],
    decoding: "Decoding", first: int,
) -> pl.DataFrame:  # fmt: skip
    from pipeline.training.commenting import commenters

    commenter = model.build(commenters.load, choose_device())
    candidates = commenters.generate_candidates(commenter, titles, contents, decoding, first=first)
    rows = [
        (row, join_words(candidate.words, langs[row]), candidate.words, candidate.log_probability, None)
        for row, article_candidates in enumerate(candidates) for candidate in article_candidates if candidate.words
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=MADE, orient="row")


def join_words(words: Sequence[str], lang: str) -> str:
    """Join words with blanks; in Chinese only between words that end and begin with a letter or digit."""
    if lang not in ("zh", "ja", "und"):
        return " ".join(words)
    text = ""
    for word in words:
        needs_blank = text and _APART.fullmatch(text[-1]) and _APART.match(word)
        text += f" {word}" if needs_blank else word
    return text


def comment(
    rows: pl.DataFrame, ref: str | None = None, *, system: str = SYSTEMS[-1], decoding: "Decoding | None" = None,
    best: int = 1, similar: int = 10,
) -> pl.DataFrame:  # fmt: skip
    """Make comments on any articles.

    Args:
        rows: title, content (null or empty where there is none).
        ref: folder or id of a commenter; by default the one in force.
        system: of the commenter in force.
        decoding: how comments are written.
        best: comments for each article.
        similar: count of articles whose comments retrieving systems search.

    Returns:
        The rows with comment, score and signature; a row for each comment, or one row with nulls where there is none.
    """
    if ref and (Path(ref).expanduser() / "facts.json").is_file():  # as `models.subtext.seq2seq` writes its folders
        pretrained, _ = make_pretrained_comments(rows, ref, decoding, best)
        return _join_comments(rows, pretrained.rows, pretrained.signature)
    model = commenters.load_model(ref, system)
    articles = rows.with_columns(pl.col("title", "content").fill_null(""))
    article_texts = articles.select(text=pl.concat_str("title", "content", separator=" "))
    langs = article_texts.select(detect_language()).to_series().to_list()
    titles, contents = (
        corpus.tokenize_column(articles, "title").to_list(),
        corpus.tokenize_column(articles, "content").to_list(),
    )
    comments = make_comments(model, titles, contents, langs, decoding, best, similar)
    return _join_comments(rows, comments.rows, comments.signature)


def _join_comments(rows: pl.DataFrame, comments: pl.DataFrame, signature: str) -> pl.DataFrame:
    """Join comments to their rows: a row for each comment, and one where there is none."""
    columns = comments.select("score", comment="text", signature=pl.lit(signature), **{_ROW: "row"})
    rows = rows.drop("comment", "score", "signature", strict=False).with_row_index(_ROW).cast({_ROW: pl.Int64})
    return rows.join(columns, on=_ROW, how="left", maintain_order="left_right").drop(_ROW)


def make_decoding(**settings: Any) -> "Decoding":
    """Make the settings by which comments are written; see `models.decoding`."""
    from pipeline.models.decoding import Decoding

    return Decoding(**settings)


def read_articles(path: Path) -> pl.DataFrame:
    """Read the articles of a file: title, and content where there is any."""
    return read_table([path], {"title": ("title",)}, {"content": ("content", "text")})


def make_pretrained_comments(
    rows: pl.DataFrame, folder: str, decoding: "Decoding | None" = None, best: int = 1
) -> tuple[Comments, str]:
    """Make comments with a model of `fit_pretrained`; return them and the hash of its folder.

    Args:
        rows: title, content.
        folder: as `models.subtext.seq2seq` writes it; a title and a body are read as they were in its training.
        decoding: how comments are written; beam search by default.
        best: comments for each article.
    """
    from pipeline.models.decoding import Decoding
    from pipeline.models.subtext import seq2seq

    model, search = seq2seq.load(Path(folder).expanduser()), decoding or Decoding(best=best)
    recipe = json.loads((Path(folder).expanduser() / "facts.json").read_text(encoding="utf-8")).get("recipe", {})
    titles = rows["title"].fill_null("").to_list()
    candidates = seq2seq.generate_candidates(
        model, titles, rows["content"].to_list(), search, longest=recipe.get("source", seq2seq.SOURCE),
        keep=recipe.get("keep", "start"),
    )  # fmt: skip
    rows_made: list[tuple[Any, ...]] = [
        (row, candidate.text, [], candidate.log_probability, None)
        for row, article_candidates in enumerate(candidates)
        for candidate in article_candidates if candidate.text.strip()
    ]  # fmt: skip
    comments = pl.DataFrame(rows_made, schema=MADE, orient="row")
    config = asdict(search)
    settings_text = ",".join(f"{name}:{value}" for name, value in sorted(config.items()))
    signature = f"{PRETRAINED}|model:{model.revision[:12]}|{settings_text}|undertone:{__version__}"
    return Comments(
        comments.with_columns(corpus.tokenize_column(comments, "text").alias("tokens")), config, signature
    ), model.revision
