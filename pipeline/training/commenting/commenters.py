"""Training of the generating commenters on pairs of an article and a comment (commenting, appendix C.1; AAC-21 to 23).

Every pair is learnt from, but an article is kept once, and words are numbers of four bytes end to end.
"""

import logging
import math
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import polars as pl
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from pipeline.errors import BadInput
from pipeline.metrics.resample import Floats
from pipeline.models.commenting import commenters as models
from pipeline.models.commenting.commenters import BEGIN, PAD, SPECIAL, UNKNOWN, Commenter, Network, Shape
from pipeline.models.commenting.relevance import Texts, build_vocabulary
from pipeline.models.encoder import IndexArray
from pipeline.training import loop
from pipeline.training.commenting.relevance import check_frames
from pipeline.training.loop import TrainingResult, shuffle_batches, sort_batches

log = logging.getLogger(__name__)
Descend = Callable[[Tensor], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe(Shape):
    """The numbers of a training; those of the paper are hidden, vocabulary, comment_words and Adam (appendix C.1)."""

    source: Literal["title", "title_and_content"] = "title"
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


PROFILES = {"seq2seq": Recipe(has_attention=False), "att": Recipe(), "att_tc": Recipe(source="title_and_content")}
"""The three commenters of section 5."""

make_recipe = partial(loop.replace_numbers, PROFILES, above_zero={"clip", "learning_rate"})


def fit(
    articles: pl.DataFrame, comments: pl.DataFrame, recipe: Recipe, state: Path | None = None, *, device: str = "cpu"
) -> TrainingResult:
    """Train a commenter and keep the epoch with the least loss on the split `validation`.

    Without a validation part, the training part decides. On a CPU the same rows and recipe give the same bits.
    Arguments and errors are as of `relevance.fit`.
    """
    check_frames(articles, comments)
    articles = articles.filter(pl.col("split").is_in(["train", "validation"]))
    comments = comments.join(articles, on="article_id", how="semi", maintain_order="left")
    is_long = comments["words"].list.len() > recipe.comment_words
    if too_long := int(is_long.sum()):
        share = f"{too_long} of {comments.height}"
        log.info("%s comments have over %d words: %s", share, recipe.comment_words, recipe.long_comments)
    if recipe.long_comments == "discard":
        comments = comments.filter(~is_long)
    articles = articles.join(comments, on="article_id", how="semi", maintain_order="left")
    if not (articles["split"] == "train").any():
        raise BadInput("comments on articles of the split 'train': expected at least one, found none")
    generator = loop.seed_all(recipe.seed)
    words = _build_vocabulary(articles, comments, recipe)
    config = {**asdict(recipe), "kind": "commenter", "words": words, "pairs": comments.height, "too_long": too_long}
    model = models.make_commenter(Network(len(words), recipe).to(device), config, device)
    pairs = _make_pairs(articles, comments, model)
    optimiser = torch.optim.Adam(model.network.parameters(), lr=recipe.learning_rate)
    learner = loop.make_learner(model.network, optimiser, generator, recipe.clip)
    is_train = (articles["split"] == "train").to_numpy()[pairs.article]
    train = np.flatnonzero(is_train)
    validation = train if is_train.all() else np.flatnonzero(~is_train)
    lengths = pairs.sources.lengths()[pairs.article] + pairs.comments.lengths()  # words read and written

    def epoch(number: int) -> tuple[float, float]:
        model.network.train()
        batches = shuffle_batches(lengths, train, recipe.batch, generator)
        descend = partial(loop.descend, learner=learner, epoch=number)
        train_loss = _measure_loss(model, pairs, batches, recipe.precision, descend)
        model.network.eval()
        loss = _measure_loss(model, pairs, sort_batches(lengths, validation, recipe.batch), recipe.precision)
        loop.check_loss(loss, number)
        return train_loss, loss

    columns = ["title", "content"] if recipe.source == "title_and_content" else ["title"]
    frames = (articles.select("article_id", "split", *columns), comments.select("article_id", "words"))
    training_id = loop.hash_facts(asdict(recipe) | {"epochs": None}, *frames)
    outcome = loop.run(epoch, learner, loop.LOSSES, recipe.epochs, state, training_id)
    return TrainingResult(outcome.weights, config | {"best_epoch": outcome.best_epoch}, outcome.history)


def _build_vocabulary(articles: pl.DataFrame, comments: pl.DataFrame, recipe: Recipe) -> list[str]:
    """List the most frequent words of what is read and learnt in the training part."""
    articles = articles.filter(pl.col("split") == "train")
    comments = comments.join(articles, on="article_id", how="semi")
    texts = [articles["title"].list.head(recipe.title_words), comments["words"].list.head(recipe.comment_words)]
    if recipe.source == "title_and_content":
        texts.append(articles["content"].list.head(recipe.content_words))
    return [*SPECIAL, *build_vocabulary(texts, recipe.vocabulary, SPECIAL)]


class Pairs(NamedTuple):
    """Articles, each once, and comments with the number of theirs."""

    sources: Texts
    article: IndexArray  # of each pair
    comments: Texts


def _make_pairs(articles: pl.DataFrame, comments: pl.DataFrame, model: Commenter) -> Pairs:
    number = articles.select("article_id").with_row_index("article")
    article = comments.select("article_id").join(number, on="article_id", how="left", maintain_order="left")["article"]
    sources = _pack(models.encode_article(model, *row) for row in articles.select("title", "content").iter_rows())
    texts = _pack(models.encode_comment(model, *row) for row in comments.select("words").iter_rows())
    return Pairs(sources, article.to_numpy().astype(np.int64), texts)


def _pack(rows: Iterable[Sequence[int]]) -> Texts:
    ids, starts = array("i"), array("q", [0])
    for row in rows:
        ids.extend(row)
        starts.append(len(ids))
    return Texts(np.array(ids, np.int32), np.array(starts, np.int64))


def _measure_loss(
    model: Commenter, pairs: Pairs, batches: Iterable[IndexArray], precision: str, descend: Descend | None = None
) -> float:
    """Compute the mean cross entropy a word over batches of pairs; descend after each batch in training."""
    total, count, usual = 0.0, 0, float(pairs.comments.lengths().mean())
    for rows in batches:
        with torch.set_grad_enabled(descend is not None):
            logits, target = _predict_words(model, pairs, rows, precision)
            loss = cross_entropy(logits, target[target != PAD], reduction="sum")
        if descend:
            # not by the batch's own mean: words of short comments would count for more
            descend(loss / (usual * len(rows)))
        total, count = total + loss.item(), count + len(logits)
    return total / max(count, 1)


def _predict_words(model: Commenter, pairs: Pairs, rows: IndexArray, precision: str) -> tuple[Tensor, Tensor]:
    """Compute the logits of each word of comments [words, vocabulary]; padding has none. Return the token ids too."""
    source, _ = pairs.sources.pad(pairs.article[rows], model.device)
    target, _ = pairs.comments.pad(rows, model.device)
    inputs = target.roll(1, dims=1)
    inputs[:, 0] = BEGIN
    with torch.autocast(model.device.partition(":")[0], torch.bfloat16, enabled=precision == "bfloat16"):
        logits = model.network.out(model.network(source, inputs)[target != PAD])
    return logits.float(), target


@torch.inference_mode()
def sum_log_probabilities(model: Commenter, articles: pl.DataFrame, comments: pl.DataFrame) -> Floats:
    """Sum the log probabilities of the words of each comment, and count the words: [n, 2].

    An unknown word is one of all distinct unknown words of the comments, equally likely, so that commenters with
    different vocabularies can be compared.
    """
    pairs = _make_pairs(articles, comments, model)
    words = comments["words"].list.head(model.config["comment_words"]).explode().drop_nulls()
    unknown_count = max(words.filter(~words.is_in(list(model.place))).n_unique(), 1)
    sums = np.zeros((comments.height, 2))
    for rows in sort_batches(pairs.comments.lengths(), np.arange(comments.height), 64):
        logits, target = _predict_words(model, pairs, rows, "float32")
        is_word = target != PAD
        values = -cross_entropy(logits, target[is_word], reduction="none")
        values -= math.log(unknown_count) * (target[is_word] == UNKNOWN)
        table = torch.zeros(target.shape, device=values.device).masked_scatter(is_word, values)
        sums[rows] = torch.stack([table.sum(dim=1), is_word.sum(dim=1)], dim=1).cpu().numpy()
    return sums
