"""The commenters that retrieve, IR-T and IR-TC (commenting, section 5, appendix C.1; AAC-21, AAC-24, AAC-25).

    1. the k training articles most like the article, by the cosine of TF-IDF      `models.commenting.relevance`
    2. of the union of their comments the one most relevant to the article         `models.commenting.relevance`

A text that stands below several articles is one candidate, in the name of the nearest of them. Stage 1 reads all words,
stage 2 the first ones of an article and the 30,000 most frequent. Candidates are encoded when a batch needs them.
"""

import logging
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
import torch
from torch import Tensor

from pipeline.models.commenting import relevance as models
from pipeline.models.commenting.relevance import Index, Nearest, Relevance, Texts
from pipeline.models.encoder import IndexArray, check_kind
from pipeline.training.commenting import relevance
from pipeline.training.commenting.relevance import Recipe
from pipeline.training.loop import TrainingResult, read_recipe

log = logging.getLogger(__name__)
_ROWS = 512  # candidates encoded at a time
Words = Sequence[Sequence[str]]  # of each text
RESULT_SCHEMA = {  # columns of `comment`
    **dict.fromkeys(("row", "rank"), pl.Int64), **dict.fromkeys(("comment_id", "text"), pl.String),
    "relevance": pl.Float64, "article_id": pl.String, "cosine": pl.Float64,
}  # fmt: skip


class Commenter(NamedTuple):
    """A fitted commenter."""

    recipe: Recipe
    words: list[str]  # of the relevance model
    model: Relevance
    articles: Index
    bank: dict[str, Tensor]  # see `_make_bank`


def fit(
    articles: pl.DataFrame, comments: pl.DataFrame, recipe: Recipe, state: Path | None = None, *, device: str = "cpu"
) -> TrainingResult:
    """Fit a commenter: index the training articles, train the relevance model, store the training comments.

    Comments have also comment_id and text (as it was written). Other arguments and errors are as of `relevance.fit`;
    the profile ir_t reads titles, ir_tc titles and contents, in both stages.
    """
    relevance.check_frames(articles, comments, "comment_id", "text")
    result = relevance.fit(articles, comments, recipe, state, device=device)
    train = articles.filter(pl.col("split") == "train")
    train = train.join(comments, on="article_id", how="semi", maintain_order="left")
    index = models.build_index(relevance.list_words(train, recipe))
    bank = _make_bank(train, comments, recipe, result.config["words"])
    parts = {"relevance": result.tensors, "index": index.tensors, "bank": bank}
    tensors = {f"{part}.{name}": value for part, values in parts.items() for name, value in values.items()}
    return TrainingResult(tensors, result.config | {"kind": "retrieval", "index_words": index.words}, result.history)


def load(tensors: dict[str, Tensor], config: dict[str, Any], device: str = "cpu") -> Commenter:
    """Load a commenter that retrieves; BadInput for a model of another kind."""
    check_kind(config, "retrieval")
    recipe = read_recipe(Recipe, config)
    model = Relevance(len(config["words"]), recipe)
    weights, index_tensors, bank = (
        {name.removeprefix(part): value for name, value in tensors.items() if name.startswith(part)}
        for part in ("relevance.", "index.", "bank.")
    )
    model.load_state_dict(weights)
    index = models.load_index(config["index_words"], index_tensors)
    return Commenter(recipe, config["words"], model.to(device).eval(), index, bank)


def _make_bank(articles: pl.DataFrame, comments: pl.DataFrame, recipe: Recipe, words: list[str]) -> dict[str, Tensor]:
    """Store the comments on the articles, in their order, as tensors; strings are UTF-8 bytes with offsets."""
    numbered = articles.select("article_id").with_row_index("article")
    rows = comments.join(numbered, on="article_id", maintain_order="left").sort("article", maintain_order=True)
    distinct = rows.unique("text", keep="first", maintain_order=True).select("text", "words").with_row_index("number")
    rows = rows.join(distinct.select("text", "number"), on="text", how="left", maintain_order="left")
    texts = models.number_words(distinct["words"], words, recipe.comment)
    starts = np.searchsorted(rows["article"].to_numpy(), np.arange(articles.height + 1))
    arrays = {"rows": texts.rows, "rows_at": texts.starts, "text_of": rows["number"].to_numpy().astype(np.int32)}
    strings = {"text": distinct["text"], "comment": rows["comment_id"], "article": numbered["article_id"]}
    for name, values in strings.items():
        text = values.cast(pl.String)
        arrays[name] = np.frombuffer(bytearray("".join(text).encode()), np.uint8)
        arrays[f"{name}_at"] = np.insert(text.str.len_bytes().cast(pl.Int64).cum_sum().to_numpy(), 0, 0)
    return {name: torch.from_numpy(value) for name, value in (arrays | {"of_article": starts.astype(np.int64)}).items()}


def _read_strings(bank: dict[str, Tensor], name: str, places: Iterable[int]) -> list[str]:
    data, offsets = bank[name].numpy(), bank[f"{name}_at"].numpy()
    return [data[offsets[place] : offsets[place + 1]].tobytes().decode() for place in places]


def comment(
    commenter: Commenter, titles: Words, contents: Words, k: int = 10, best: int = 1, *, batch: int = 64
) -> pl.DataFrame:
    """Find the comments of similar articles that are most relevant to each article, `best` at most, no text twice.

    Titles and contents are words, tokenized as in the training; only IR-TC reads contents. The candidates are the
    comments of up to k similar articles; the paper names no number. An article that shares no word with a training
    article has no row, and a warning has the count. The results do not depend on the batch.

    Returns:
        row (place of the article, from 0), rank (from 1), comment_id, text, relevance (natural log of P(c|x), equation
        C.2, over all candidates of the row), article_id (whose comment it was), cosine (of that article, C.1).
    """
    recipe, bank = commenter.recipe, commenter.bank
    schema = dict.fromkeys(("title", "content"), pl.List(pl.String))
    articles = pl.DataFrame({"title": titles, "content": contents}, schema=schema)
    texts, all_words = relevance.list_first_words(articles, recipe), relevance.list_words(articles, recipe)
    neighbours = models.find_nearest(commenter.articles, all_words, k, batch=batch)
    if missing := int((neighbours.places[:, 0] < 0).sum()):
        log.warning("%d of %d articles share no word with a training article and get no comment", missing, len(titles))
    frames = [pl.DataFrame(schema=RESULT_SCHEMA)]
    for start in range(0, len(texts), batch):
        candidates = _list_candidates(bank, neighbours.places[start : start + batch])
        scores = _score_candidates(commenter, texts[start : start + batch], candidates)
        best_rows = _rank_candidates(candidates, scores, best)
        frames.append(_make_rows(bank, best_rows.with_columns(pl.col("row") + start), neighbours))
    return pl.concat(frames)


def _list_candidates(bank: dict[str, Tensor], places: IndexArray) -> pl.DataFrame:
    """List row, neighbour, comment and text of candidates, those of the nearest article first, each text once a row."""
    row, neighbour = np.nonzero(places >= 0)
    articles, starts = places[row, neighbour], bank["of_article"].numpy()
    neighbours = pl.DataFrame({"row": row, "neighbour": neighbour, "at": starts[articles], "end": starts[articles + 1]})
    candidates = neighbours.select("row", "neighbour", comment=pl.int_ranges("at", "end")).explode("comment")
    texts = bank["text_of"].numpy().astype(np.int64)[candidates["comment"].to_numpy()]
    return candidates.with_columns(text=pl.Series(texts)).unique(["row", "text"], keep="first", maintain_order=True)


@torch.inference_mode()
def _score_candidates(commenter: Commenter, texts: pl.Series, candidates: pl.DataFrame) -> npt.NDArray[np.float32]:
    """Compute conv(x, c) of each candidate; distinct texts are encoded a block at a time."""
    model, recipe, bank = commenter.model, commenter.recipe, commenter.bank
    device = model.bias.device
    article_texts = models.number_words(texts, commenter.words, recipe.title + recipe.content)
    queries = model.encode_articles(article_texts.pad(np.arange(len(texts)), device))
    bank_texts = Texts(bank["rows"].numpy(), bank["rows_at"].numpy())
    rows, numbers = candidates["row"].to_numpy(), candidates["text"].to_numpy()
    order = np.lexsort((numbers, bank_texts.lengths()[numbers]))  # texts of about one length together: little is padded
    sorted_texts = numbers[order]
    starts = np.flatnonzero(np.diff(sorted_texts, prepend=-1, append=-1))  # of each distinct text, and the end
    distinct = sorted_texts[starts[:-1]]
    scores = np.empty(len(order), np.float32)
    for start in range(0, len(distinct), _ROWS):
        ends = starts[start : start + _ROWS + 1]
        part = order[ends[0] : ends[-1]]
        vectors = model.encode_comments(bank_texts.pad(distinct[start : start + _ROWS], device))
        candidate_rows = torch.from_numpy(np.repeat(np.arange(len(ends) - 1), np.diff(ends)))
        part_queries = queries[torch.from_numpy(rows[part])]
        scores[part] = model.score(part_queries, vectors[candidate_rows]).cpu().numpy()
    return scores


def _rank_candidates(candidates: pl.DataFrame, scores: npt.NDArray[np.float32], best: int) -> pl.DataFrame:
    """Add relevance and rank, by four decimals (smaller differences come from batches); select the best of each row."""
    score = pl.col("score")
    total = (score - score.max()).exp().sum().log() + score.max()
    return (
        candidates.with_columns(score=pl.Series(scores.astype(np.float64)))
        .with_columns(relevance=score - total.over("row"))
        .sort("row", pl.col("relevance").round(4), descending=[False, True], maintain_order=True)
        .with_columns(rank=pl.int_range(1, pl.len() + 1).over("row"))
        .filter(pl.col("rank") <= best)
    )


def _make_rows(bank: dict[str, Tensor], best_rows: pl.DataFrame, neighbours: Nearest) -> pl.DataFrame:
    index = (best_rows["row"].to_numpy(), best_rows["neighbour"].to_numpy())
    places = {"comment": best_rows["comment"], "text": best_rows["text"], "article": neighbours.places[index].tolist()}
    texts = {name: pl.Series(_read_strings(bank, name, part), dtype=pl.String) for name, part in places.items()}
    strings = {"comment_id": texts["comment"], "text": texts["text"], "article_id": texts["article"]}
    cosine = pl.Series(neighbours.cosines[index].astype(np.float64))
    rows = best_rows.select("row", "rank", "relevance", cosine=cosine, **strings)
    return rows.select(pl.col(name).cast(kind) for name, kind in RESULT_SCHEMA.items())
