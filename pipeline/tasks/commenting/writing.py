"""Comments on articles by a commenter, whichever it is (AAC-26)."""

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
_ROW = "__row__"  # a name that no file has
_APART = re.compile(r"[^\W\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")  # a letter or digit of writing that has blanks

MADE: dict[str, Any] = {
    "row": pl.Int64, "text": pl.String, "tokens": pl.List(pl.String), "score": pl.Float64, "found_in": pl.String,
}  # fmt: skip


class Comments(NamedTuple):
    """What a commenter makes of articles."""

    rows: pl.DataFrame  # `MADE`; row is that of the articles
    config: dict[str, Any]  # decoding
    signature: str


def make_comments(
    model: "Model", titles: Sequence[Sequence[str]], contents: Sequence[Sequence[str]],
    langs: Sequence[str], decoding: "Decoding | None" = None, best: int = 1, similar: int = 10, first: int = 0,
) -> Comments:  # fmt: skip
    """Comments on articles.

    Args:
        model: of `commenters.opened`.
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
        rows = _retrieve(model, titles, contents, best, similar)
        config: dict[str, Any] = {"similar": similar, "best": best}
    else:
        from pipeline.models.decoding import Decoding

        decoding = decoding or Decoding(best=best)
        rows, config = _write(model, titles, contents, langs, decoding, first), asdict(decoding)
    told = ",".join(f"{name}:{value}" for name, value in sorted(config.items()))
    return Comments(rows, config, f"{system}|model:{model.model_id[:12]}|{told}|undertone:{__version__}")


def _retrieve(
    model: "Model", titles: Sequence[Sequence[str]], contents: Sequence[Sequence[str]], best: int, similar: int
) -> pl.DataFrame:
    from pipeline.training.commenting import retrieval

    found = retrieval.comment(model.build(retrieval.load, choose_device()), titles, contents, k=similar, best=best)
    return found.select(
        pl.col("row").cast(pl.Int64), "text", corpus.tokenize_column(found, "text").alias("tokens"),
        score=pl.col("relevance").cast(pl.Float64), found_in="comment_id",
    )  # fmt: skip


def _write(
    model: "Model", titles: Sequence[Sequence[str]], contents: Sequence[Sequence[str]], langs: Sequence[str],
    decoding: "Decoding", first: int,
) -> pl.DataFrame:  # fmt: skip
    from pipeline.training.commenting import commenters

    by = model.build(commenters.load, choose_device())
    found = commenters.generate_candidates(by, titles, contents, decoding, first=first)
    rows = [
        (row, join_words(one.words, langs[row]), one.words, one.log_probability, None)
        for row, several in enumerate(found) for one in several if one.words
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=MADE, orient="row")


def join_words(words: Sequence[str], lang: str) -> str:
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
        fitted_, _ = make_pretrained_comments(rows, ref, decoding, best)
        return _join_comments(rows, fitted_.rows, fitted_.signature)
    model = commenters.load_model(ref, system)
    told = rows.with_columns(pl.col("title", "content").fill_null(""))
    whole = told.select(text=pl.concat_str("title", "content", separator=" "))
    langs = whole.select(detect_language()).to_series().to_list()
    titles, contents = (
        corpus.tokenize_column(told, "title").to_list(),
        corpus.tokenize_column(told, "content").to_list(),
    )
    found = make_comments(model, titles, contents, langs, decoding, best, similar)
    return _join_comments(rows, found.rows, found.signature)


def _join_comments(rows: pl.DataFrame, found: pl.DataFrame, signature: str) -> pl.DataFrame:
    """The rows, each as often as there are comments on it, and once where there is none."""
    said = found.select("score", comment="text", signature=pl.lit(signature), **{_ROW: "row"})
    rows = rows.drop("comment", "score", "signature", strict=False).with_row_index(_ROW).cast({_ROW: pl.Int64})
    return rows.join(said, on=_ROW, how="left", maintain_order="left_right").drop(_ROW)


def make_decoding(**given: Any) -> "Decoding":
    """How comments are written; see `models.decoding`."""
    from pipeline.models.decoding import Decoding

    return Decoding(**given)


def read_articles(path: Path) -> pl.DataFrame:
    """Articles of a file: title, and content where there is any."""
    return read_table([path], {"title": ("title",)}, {"content": ("content", "text")})


def make_pretrained_comments(
    rows: pl.DataFrame, folder: str, decoding: "Decoding | None" = None, best: int = 1
) -> tuple[Comments, str]:
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
    found = seq2seq.generate_candidates(
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
    return Comments(
        told.with_columns(corpus.tokenize_column(told, "text").alias("tokens")), config, signature
    ), model.revision
