"""Training of the generating commenters on pairs of an article and a comment (commenting, appendix C.1; AAC-21 to 23).

The network and how it writes are in `models.commenting.commenters`. Every pair is learnt from, so an article counts as
often as it has comments, but it is kept once, and words are kept as numbers of four bytes end to end: the paper's 4.5 M
comments of 17 words and 200,000 articles of 400 take 0.6 GB.
"""

import logging
import math
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from pipeline.errors import BadInput
from pipeline.models.commenting import commenters as models
from pipeline.models.commenting.commenters import (
    BEGIN,
    PAD,
    Comment,
    Commenter,
    Network,
    Shape,
    Source,
    generate,
    generate_candidates,
    load,
)
from pipeline.models.recam.readers import Unit
from pipeline.training import loop, recipes
from pipeline.training.batches import shuffle_batches, sort_batches
from pipeline.training.commenting.relevance import check_frames
from pipeline.training.loop import TrainingResult

__all__ = [
    "PROFILES",
    "Comment",
    "Commenter",
    "Recipe",
    "fit",
    "generate",
    "generate_candidates",
    "load",
    "make_recipe",
    "perplexity",
]  # fmt: skip

log = logging.getLogger(__name__)

IndexArray = npt.NDArray[np.int64]

_SLICE = 4096  # rows that are Python objects at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """The numbers of a training; those of the paper are hidden, vocabulary, comment_words and Adam (appendix C.1)."""

    source: Source = "title"
    has_attention: bool = True
    unit: Unit = "lstm"  # Sutskever et al. (2014)
    hidden: int = 256
    embedding: int = 256
    dropout: float = 0.2
    vocabulary: int = 30_000  # most frequent words; others are <unk>
    title_words: int = 50  # read at most
    content_words: int = 400
    comment_words: int = 50
    long_comments: Literal["cut", "discard"] = "cut"  # appendix C.1 cuts, section 5 discards (errata E12)
    learning_rate: float = 1e-3
    clip: float = 5.0  # largest norm of the gradient
    batch: int = 64
    epochs: int = 5
    precision: Literal["float32", "bfloat16"] = "float32"  # of what is multiplied; the latter is for GPUs
    seed: int = 42


PROFILES = {
    "seq2seq": Recipe(has_attention=False),
    "att": Recipe(),
    "att_tc": Recipe(source="title_and_content"),
}
"""The three commenters of section 5."""


def make_recipe(profile: str, **changes: Any) -> Recipe:
    """A profile with some numbers changed; those that are None stay."""
    return recipes.change_profile(PROFILES, profile, changes, from_zero={"seed"}, above_zero={"clip", "learning_rate"})


def fit(
    articles: pl.DataFrame, comments: pl.DataFrame, recipe: Recipe, state: Path | None = None, *,
    device: str | None = None,
) -> TrainingResult:  # fmt: skip
    """Train a commenter and keep the epoch with the least loss on the split `validation`.

    Without a validation part, the training part decides. On a CPU the same rows and recipe give the same bits.

    Args:
        articles: article_id, each once; title and content, lists of words; split (others than train and validation
            are let be).
        comments: article_id, one of the articles'; words, a list.
        recipe: hyperparameters.
        state: file that keeps the state after each epoch; an interrupted training goes on from it and ends with the
            same model on a CPU. More epochs may be asked for.
        device: cuda or cpu; by default a GPU if there is one.

    Raises:
        BadInput: a column or a value is missing, an article is there twice or a comment's is not, there is nothing to
            learn from, the loss is no number, or `state` is of another training.
    """
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    check_frames(articles, comments)
    articles = articles.filter(pl.col("split").is_in(["train", "validation"]))
    comments, too_long = _select_comments(
        comments.join(articles, on="article_id", how="semi", maintain_order="left"), recipe
    )
    articles = articles.join(comments, on="article_id", how="semi", maintain_order="left")
    if not (articles["split"] == "train").any():
        raise BadInput("comments on articles of the split 'train': expected at least one, found none")
    generator = loop.seed_all(recipe.seed)
    words = _build_vocabulary(articles, comments, recipe)
    config = {**asdict(recipe), "kind": "commenter", "words": words, "pairs": comments.height, "too_long": too_long}
    shape = Shape(len(words), recipe.embedding, recipe.hidden, recipe.unit, recipe.has_attention, recipe.dropout)
    model = models.make_commenter(Network(shape).to(device), config, device)
    pairs = _make_pairs(articles, comments, model)
    optimiser = torch.optim.Adam(model.network.parameters(), lr=recipe.learning_rate)
    learner = loop.make_learner(model.network, optimiser, generator, recipe.clip)
    is_train = (articles["split"] == "train").to_numpy()[pairs.article]
    train = np.flatnonzero(is_train)
    validation, lengths = train if is_train.all() else np.flatnonzero(~is_train), pairs.lengths()

    def epoch(number: int) -> tuple[float, float]:
        model.network.train()
        batches = shuffle_batches(lengths, train, recipe.batch, generator)
        train_loss = _measure_loss(model, pairs, batches, recipe.precision, learner, number)
        model.network.eval()
        loss = _measure_loss(model, pairs, sort_batches(lengths, validation, recipe.batch), recipe.precision)
        loop.check_loss(loss, number)
        return train_loss, loss

    outcome = loop.run(epoch, learner, loop.LOSSES, recipe.epochs, state, _fingerprint(articles, comments, recipe))
    return TrainingResult(outcome.weights, config | {"best_epoch": outcome.best_epoch}, outcome.history)


def perplexity(model: Commenter, articles: pl.DataFrame, comments: pl.DataFrame, batch: int = 64) -> float:
    """The perplexity of comments given their articles, a word, </s> among the words; <unk> is one word.

    Args:
        model: of `load`.
        articles: as of `fit`, of any split.
        comments: as of `fit`; all are judged.
        batch: comments read at a time.

    Raises:
        BadInput: there are no comments, or they are not as `fit` takes them.
    """
    check_frames(articles, comments)
    if not comments.height:
        raise BadInput("comments to judge by: expected at least one, found none")
    model.network.eval()
    pairs = _make_pairs(articles, comments, model)
    return math.exp(_measure_loss(model, pairs, sort_batches(pairs.lengths(), np.arange(comments.height), batch)))


def _select_comments(comments: pl.DataFrame, recipe: Recipe) -> tuple[pl.DataFrame, int]:
    """The comments to learn from and to choose the epoch by, and how many were too long."""
    is_long = pl.col("words").list.len() > recipe.comment_words
    too_long = comments.filter(is_long).height
    if too_long:
        share = f"{too_long} of {comments.height}"
        log.info("%s comments have over %d words: %s", share, recipe.comment_words, recipe.long_comments)
    return (comments.filter(~is_long) if recipe.long_comments == "discard" else comments), too_long


def _build_vocabulary(articles: pl.DataFrame, comments: pl.DataFrame, recipe: Recipe) -> list[str]:
    """The most frequent words of what is read and learnt in the training part."""
    articles = articles.filter(pl.col("split") == "train")
    comments = comments.join(articles, on="article_id", how="semi")
    sources = [(articles, "title", recipe.title_words), (comments, "words", recipe.comment_words)]
    sources += [(articles, "content", recipe.content_words)] if recipe.source == "title_and_content" else []
    counts: Counter[str] = Counter()
    for rows, name, longest in sources:
        for (words,) in _iterate_rows(rows.select(pl.col(name).list.head(longest))):
            counts.update(words)
    return models.build_vocabulary(counts, recipe.vocabulary)


class Ragged(NamedTuple):
    """Rows of word ids, end to end."""

    ids: npt.NDArray[np.int32]
    starts: IndexArray  # [n + 1]

    def lengths(self) -> IndexArray:
        """Of each row: [n]."""
        return np.diff(self.starts)

    def pad(self, rows: IndexArray) -> Tensor:
        """Some rows, filled up with <pad>: [len(at), t]."""
        return models.pad_rows([self.ids[self.starts[i] : self.starts[i + 1]] for i in rows])


def _pack(rows: Iterable[Sequence[int]]) -> Ragged:
    ids, starts = array("i"), array("q", [0])
    for row in rows:
        ids.extend(row)
        starts.append(len(ids))
    return Ragged(np.array(ids, np.int32), np.array(starts, np.int64))


class Pairs(NamedTuple):
    """Articles, each once, and comments with the number of theirs."""

    sources: Ragged
    article: IndexArray  # of each pair
    comments: Ragged

    def lengths(self) -> IndexArray:
        """Words read and written of each pair."""
        return self.sources.lengths()[self.article] + self.comments.lengths()


def _make_pairs(articles: pl.DataFrame, comments: pl.DataFrame, model: Commenter) -> Pairs:
    number = articles.select("article_id").with_row_index("article")
    article = comments.select("article_id").join(number, on="article_id", how="left", maintain_order="left")["article"]
    return Pairs(
        _pack(models.encode_article(model, *row) for row in _iterate_rows(articles.select("title", "content"))),
        article.to_numpy().astype(np.int64),
        _pack(models.encode_comment(model, *row) for row in _iterate_rows(comments.select("words"))),
    )


def _iterate_rows(rows: pl.DataFrame) -> Iterator[tuple[list[str], ...]]:
    """Rows as Python's lists, a few at a time."""
    for part in rows.iter_slices(_SLICE):
        yield from part.iter_rows()


def _measure_loss(
    model: Commenter, pairs: Pairs, batches: Iterable[IndexArray], precision: str = "float32",
    learner: loop.Learner | None = None, epoch: int = 0,
) -> float:  # fmt: skip
    """Mean loss a word over batches of pairs, which are learnt from where there is a learner.

    Batches are of about one length, so that a batch's own mean would make words of short comments count for more.
    """
    total, count, usual = 0.0, 0, float(pairs.comments.lengths().mean())
    for rows in batches:
        source, target = pairs.sources.pad(pairs.article[rows]), pairs.comments.pad(rows)
        with torch.set_grad_enabled(learner is not None):
            loss, words = _compute_batch_loss(model, source.to(model.device), target.to(model.device), precision)
        if learner:
            loop.descend(loss / (usual * len(rows)), learner, epoch)
        total, count = total + loss.item(), count + words
    return total / max(count, 1)


def _compute_batch_loss(model: Commenter, source: Tensor, target: Tensor, precision: str) -> tuple[Tensor, int]:
    """Summed cross entropy of the comments' words, and how many they are; what fills up costs and counts nothing."""
    inputs, is_word = target.roll(1, dims=1), target != PAD
    inputs[:, 0] = BEGIN
    with torch.autocast(model.device.partition(":")[0], torch.bfloat16, enabled=precision == "bfloat16"):
        logits = model.network.out(model.network(source, inputs)[is_word])
    return cross_entropy(logits.float(), target[is_word], reduction="sum"), int(is_word.sum())


def _fingerprint(articles: pl.DataFrame, comments: pl.DataFrame, recipe: Recipe) -> str:
    columns = ["title", "content"] if recipe.source == "title_and_content" else ["title"]
    return loop.fingerprint(
        asdict(recipe) | {"epochs": None}, articles.select("article_id", "split", *columns),
        comments.select("article_id", "words"),
    )  # fmt: skip
