"""The commenters that retrieve, IR-T and IR-TC (commenting, section 5, appendix C.1; AAC-21, AAC-24, AAC-25).

    1. the k training articles most like the article, by the cosine of TF-IDF      `models.commenting.similar_articles`
    2. of the union of their comments the one most relevant to the article         `models.commenting.relevance`

A union: a text that stands below several of them is one candidate, in the name of the nearest article that has it.

Stage 1 reads all words, stage 2 the first ones of an article and the 30,000 most frequent.

A fitted commenter is tensors and JSON: the index of the training articles that have comments, the relevance model, and
those comments as they were written, each distinct text once. Candidates are encoded when they are asked for, each once
a batch: as words they take a fifteenth of what their vectors would.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
import torch
from torch import Tensor

from pipeline.errors import BadInput
from pipeline.models.commenting import similar_articles
from pipeline.models.commenting.relevance import IndexArray, Relevance, Texts, numbered
from pipeline.training.commenting import relevance
from pipeline.training.commenting.relevance import PROFILES, Recipe, recipe_of
from pipeline.training.loop import Fitted

__all__ = ["PROFILES", "Commenter", "Recipe", "comment", "fit", "load", "recipe_of"]

log = logging.getLogger(__name__)

_ROWS = 512  # candidates encoded at a time
FOUND = {"row": pl.Int64, "rank": pl.Int64, "comment_id": pl.String, "text": pl.String, "relevance": pl.Float64,
         "article_id": pl.String, "cosine": pl.Float64}  # fmt: skip
"""What `comment` gives."""


class Commenter(NamedTuple):
    """A fitted commenter, ready to be asked."""

    recipe: Recipe
    words: list[str]  # of the relevance model
    model: Relevance
    articles: similar_articles.Index
    bank: dict[str, Tensor]  # see `_bank`


def fit(
    articles: pl.DataFrame, comments: pl.DataFrame, recipe: Recipe, state: Path | None = None, *, device: str = "cpu"
) -> Fitted:
    """Fit a commenter: index the training articles, train the relevance model, keep the training comments.

    Args:
        articles: article_id, title and content (lists of words), split; see `relevance.fit`.
        comments: article_id, comment_id, text (as it was written), words (a list).
        recipe: hyperparameters, of a profile: ir_t reads titles, ir_tc titles and contents, in both stages.
        state: file that keeps the state of the training; see `relevance.fit`.
        device: cpu or cuda.

    Returns:
        Tensors and configuration, which `load` takes and `registry` keeps, and the epochs' numbers.

    Raises:
        BadInput: as `relevance.fit`, or a comment without id or text.
    """
    relevance.check(articles, comments, "comment_id", "text")
    found = relevance.fit(articles, comments, recipe, state, device=device)
    learnt = articles.filter(pl.col("split") == "train").join(
        comments, on="article_id", how="semi", maintain_order="left"
    )
    index = similar_articles.index(relevance.whole(learnt, recipe))
    tensors = {f"relevance.{name}": value for name, value in found.tensors.items()}
    tensors |= {f"index.{name}": value for name, value in index.tensors.items()}
    tensors |= {f"bank.{name}": value for name, value in _bank(learnt, comments, recipe, found.config["words"]).items()}
    config = found.config | {"kind": "retrieval", "index_words": index.words}
    return Fitted(tensors, config, found.history)


def load(tensors: dict[str, Tensor], config: dict[str, Any], device: str = "cpu") -> Commenter:
    """The commenter of such tensors and configuration.

    Raises:
        BadInput: they are not those of a commenter that retrieves.
    """
    if config.get("kind") != "retrieval":
        raise BadInput(f"a model of the kind {config.get('kind')!r}: expected retrieval")
    recipe = Recipe(
        **{field.name: config[field.name] for field in fields(Recipe)} | {"widths": tuple(config["widths"])}
    )
    model = Relevance(relevance.shape(recipe, len(config["words"])))
    parts: dict[str, dict[str, Tensor]] = {"relevance": {}, "index": {}, "bank": {}}
    for key, value in tensors.items():
        part, _, name = key.partition(".")
        parts[part][name] = value
    model.load_state_dict(parts["relevance"])
    index = similar_articles.of_tensors(config["index_words"], parts["index"])
    return Commenter(recipe, config["words"], model.to(device).eval(), index, parts["bank"])


def _bank(articles: pl.DataFrame, comments: pl.DataFrame, recipe: Recipe, words: list[str]) -> dict[str, Tensor]:
    """The comments on the articles, in their order, as tensors: those of article a begin at of_article[a].

    Strings are UTF-8 bytes with offsets; `rows` are the words of each distinct text as the relevance model reads them.
    """
    placed = articles.select("article_id").with_row_index("article")
    own = comments.join(placed, on="article_id", how="inner", maintain_order="left").sort(
        "article", maintain_order=True
    )
    distinct = own.select("text", "words").unique("text", keep="first", maintain_order=True).with_row_index("number")
    number = own.join(distinct.select("text", "number"), on="text", how="left", maintain_order="left")["number"]
    rows = numbered(distinct["words"], words, recipe.comment)
    starts = np.searchsorted(own["article"].to_numpy(), np.arange(articles.height + 1))
    found = {"rows": rows.rows, "rows_at": rows.starts, "text_of": number.to_numpy().astype(np.int32)}
    for name, strings in (
        ("text", distinct["text"]),
        ("comment", own["comment_id"]),
        ("article", placed["article_id"]),
    ):
        found |= _packed(name, strings.cast(pl.String))
    return {name: torch.from_numpy(value) for name, value in (found | {"of_article": starts.astype(np.int64)}).items()}


def _packed(name: str, strings: pl.Series) -> dict[str, npt.NDArray[Any]]:
    ends = strings.str.len_bytes().cast(pl.Int64).cum_sum().to_numpy()
    found = np.frombuffer(bytearray("".join(strings).encode()), np.uint8)
    return {name: found, f"{name}_at": np.concatenate([[0], ends])}


def _strings(bank: dict[str, Tensor], name: str, places: Iterable[int]) -> list[str]:
    found, at = bank[name].numpy(), bank[f"{name}_at"].numpy()
    return [found[at[place] : at[place + 1]].tobytes().decode() for place in places]


def comment(
    commenter: Commenter,
    titles: Sequence[Sequence[str]],
    contents: Sequence[Sequence[str]] | None = None,
    k: int = 10,
    best: int = 1,
    *,
    article_ids: Sequence[str] | None = None,
    batch: int = 64,
) -> pl.DataFrame:
    """The comments of similar articles that are most relevant to each article.

    An article that shares no word with a training article gets none: its row is not there, and a warning counts such.
    Words the relevance model does not know are one unknown word to it.

    Args:
        commenter: of `load`.
        titles: the words of each article's title, cut as those of the training were.
        contents: of its content; read by IR-TC alone.
        k: similar articles whose comments are candidates, at most; the paper names no number.
        best: comments a row, at most; no text twice.
        article_ids: of the articles, so that one that was trained on is not its own neighbour.
        batch: articles at a time; memory grows with it, and what is found does not depend on it.

    Returns:
        row (place of the article, from 0), rank (from 1), comment_id, text, relevance (natural log of P(c|x), equation
        C.2, over all candidates of the row), article_id (whose comment it was), cosine (of that article, C.1).

    Raises:
        BadInput: contents are missing where they are read, or there are not as many as titles.
    """
    recipe, bank = commenter.recipe, commenter.bank
    if (contents is None and recipe.reads == "both") or (contents is not None and len(contents) != len(titles)):
        found = "none" if contents is None else len(contents)
        raise BadInput(f"articles to comment on: expected the contents of {len(titles)}, found {found}")
    kind = pl.List(pl.String)
    asked = pl.DataFrame(
        {"title": titles, "content": titles if contents is None else contents}, schema={"title": kind, "content": kind}
    )
    texts = relevance.read(asked, recipe)
    itself = _places(bank, article_ids) if article_ids is not None else None
    near = similar_articles.nearest(commenter.articles, relevance.whole(asked, recipe), k, but=itself, batch=batch)
    if missing := int((near.places[:, 0] < 0).sum()):
        log.warning("%d of %d articles share no word with a training article and get no comment", missing, len(titles))
    frames = [pl.DataFrame(schema=FOUND)]
    for at in range(0, len(texts), batch):
        some = _candidates(bank, near.places[at : at + batch])
        scores = _scores(commenter, texts[at : at + batch], some)
        chosen = _best(some, scores, best)
        frames.append(_told(bank, chosen.with_columns(pl.col("row") + at), near))
    return pl.concat(frames)


def _places(bank: dict[str, Tensor], article_ids: Sequence[str]) -> list[int]:
    every = _strings(bank, "article", range(len(bank["article_at"]) - 1))
    known = {one: place for place, one in enumerate(every)}
    return [known.get(one, -1) for one in article_ids]


class _Candidates(NamedTuple):
    """Candidates of some rows, those of the nearest article first, each text once a row."""

    row: IndexArray
    neighbour: IndexArray  # which of the row's articles
    comment: IndexArray
    text: IndexArray


def _candidates(bank: dict[str, Tensor], places: IndexArray) -> _Candidates:
    row, neighbour = np.nonzero(places >= 0)
    starts = bank["of_article"].numpy()
    first, count = starts[places[row, neighbour]], np.diff(starts)[places[row, neighbour]]
    before = np.repeat(np.cumsum(count) - count, count)
    comments = np.repeat(first, count) + np.arange(count.sum()) - before
    every = _Candidates(np.repeat(row, count), np.repeat(neighbour, count), comments, bank["text_of"].numpy()[comments])
    keys = every.row * len(bank["text_at"]) + every.text
    once = np.sort(np.unique(keys, return_index=True)[1])  # the first of each key
    return _Candidates(*(part[once].astype(np.int64) for part in every))


@torch.inference_mode()
def _scores(commenter: Commenter, texts: pl.Series, some: _Candidates) -> npt.NDArray[np.float32]:
    """conv(x, c) of each candidate; distinct texts are encoded a block at a time, and let go."""
    model, recipe, bank = commenter.model, commenter.recipe, commenter.bank
    device = model.bias.device
    read = numbered(texts, commenter.words, recipe.title + recipe.content)
    looked_for = model.articles(read.padded(np.arange(len(texts)), device))
    known = Texts(bank["rows"].numpy(), bank["rows_at"].numpy())
    lengths = np.diff(known.starts)[some.text]
    order = np.lexsort((some.text, lengths))  # texts of about one length together: little is padded
    distinct, starts = _runs(some.text[order])
    out = np.empty(len(order), np.float32)
    for at in range(0, len(distinct), _ROWS):
        ends = starts[at : at + _ROWS + 1]
        part = order[ends[0] : ends[-1]]
        vectors = model.comments(known.padded(distinct[at : at + _ROWS], device))
        which = torch.from_numpy(np.repeat(np.arange(len(ends) - 1), np.diff(ends)))
        out[part] = model.scores(looked_for[torch.from_numpy(some.row[part])], vectors[which]).cpu().numpy()
    return out


def _runs(values: IndexArray) -> tuple[IndexArray, IndexArray]:
    """Values of runs of equal ones, and where each begins, and the last ends."""
    starts = np.flatnonzero(np.diff(values, prepend=-1))
    return values[starts], np.append(starts, len(values))


def _best(some: _Candidates, scores: npt.NDArray[np.float32], best: int) -> pl.DataFrame:
    """row, rank, neighbour, comment, text, relevance of the best candidates of each row; equal ones in their order.

    They are ordered by four decimals: what differs by less does so by how it was batched.
    """
    score = pl.col("score")
    total = (score - score.max()).exp().sum().log() + score.max()
    return (
        pl.DataFrame(some._asdict() | {"score": scores.astype(np.float64)})
        .with_columns(relevance=score - total.over("row"))
        .sort("row", pl.col("relevance").round(4), descending=[False, True], maintain_order=True)
        .with_columns(rank=pl.int_range(1, pl.len() + 1).over("row"))
        .filter(pl.col("rank") <= best)
    )


def _told(bank: dict[str, Tensor], chosen: pl.DataFrame, near: similar_articles.Nearest) -> pl.DataFrame:
    spot = (chosen["row"].to_numpy(), chosen["neighbour"].to_numpy())
    return pl.DataFrame(
        {
            "row": chosen["row"], "rank": chosen["rank"],
            "comment_id": _strings(bank, "comment", chosen["comment"]),
            "text": _strings(bank, "text", chosen["text"]), "relevance": chosen["relevance"],
            "article_id": _strings(bank, "article", near.places[spot].tolist()),
            "cosine": near.cosines[spot].astype(np.float64),
        }, schema=FOUND
    )  # fmt: skip
