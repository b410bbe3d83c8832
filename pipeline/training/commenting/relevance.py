"""Training of the relevance of comments by negative sampling (commenting, appendix C.1; AAC-22, AAC-25).

    -log σ(conv(x, c)) - Σ_n log σ(-conv(x, c_n))       c one of the article's comments, c_n of other articles

Negatives are drawn by their counts to the power 3/4 (Mikolov et al., 2013), so that what stands below every article is
relevant to none. The mean reciprocal rank of held-out comments among evenly drawn ones chooses the epoch.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from pipeline.errors import BadInput
from pipeline.metrics.recam import reading
from pipeline.models.commenting.relevance import Relevance, Shape, Texts, build_vocabulary, number_words
from pipeline.models.encoder import IndexArray
from pipeline.training import loop
from pipeline.training.loop import TrainingResult

_PARTS = 4  # lengths that a batch's comments are parted by


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe(Shape):
    """The numbers of a training; the paper names those of `vocabulary` and `comment` alone for these models."""

    reads: Literal["title", "both"] = "title"  # what of an article is read: its title, or title and content
    title: int = 30  # words read at most
    content: int = 400
    comment: int = 50  # longer ones are cut, not left out (section 5 says otherwise; AAC-22)
    vocabulary: int = 30_000
    negatives: int = 5
    foreign: int = 50  # comments of other articles that a held-out one is ranked among
    judged: int = 2000  # held-out comments that are ranked at most
    learning_rate: float = 1e-3
    clip: float = 5.0  # largest norm of the gradient
    batch: int = 64  # comments a step
    together: int = 4  # comments of an article that stand side by side in a batch, so that it is read once for them
    epochs: int = 10
    seed: int = 42


PROFILES = {"ir_t": Recipe(), "ir_tc": Recipe(reads="both")}  # the two retrieval models of the paper (AAC-21)
make_recipe = partial(loop.replace_numbers, PROFILES, above_zero={"clip", "learning_rate"})


def compute_chance(recipe: Recipe) -> float:
    """Compute the mean reciprocal rank, by chance, of one comment among those drawn: the mean of 1 / 1 … 1 / n."""
    return float((1 / np.arange(1, recipe.foreign + 2)).mean())


def compute_loss(scores: Tensor) -> Tensor:
    """Compute negative sampling's loss of each row of scores [n, 1 + k], its positive's first: [n] (AAC-25)."""
    return -logsigmoid(scores[:, 0]) - logsigmoid(-scores[:, 1:]).sum(dim=1)


def fit(
    articles: pl.DataFrame, comments: pl.DataFrame, recipe: Recipe, state: Path | None = None, *, device: str = "cpu"
) -> TrainingResult:
    """Train the relevance model and keep the epoch of the highest mean reciprocal rank on the split `validation`.

    Without a validation part, the training part decides. On a CPU the same rows and recipe give the same bits. Articles
    have article_id, each once; title and content, lists of words; and split (others than train and validation are
    ignored). Comments have the article_id of an article, and words, a list. For `state` see `loop.run`; a training that
    resumes may have more epochs. BadInput for other frames, nothing to learn from, or no comment foreign to an article.
    """
    check_frames(articles, comments)
    generator = loop.seed_all(recipe.seed)
    pairs = _make_pairs(articles, comments, recipe)
    model = Relevance(len(pairs.words), recipe).to(device)
    nn.init.constant_(model.bias, -math.log(recipe.negatives))  # one comment in 1 + k is right: no step goes into this
    training = _Training(model, recipe, pairs, generator)
    parts = (*pairs.articles, *pairs.comments, pairs.article, pairs.comment, pairs.is_held)
    training_id = loop.hash_facts((asdict(recipe) | {"epochs": None}, pairs.words), *parts)
    criterion = loop.Criterion(("loss", "mrr", "count"), best_by="mrr", chance=compute_chance(recipe))
    outcome = loop.run(training.epoch, training.learner, criterion, recipe.epochs, state, training_id)
    config = {**asdict(recipe), "kind": "relevance", "words": pairs.words, "best_epoch": outcome.best_epoch}
    return TrainingResult(outcome.weights, config, outcome.history)


def list_first_words(articles: pl.DataFrame, recipe: Recipe) -> pl.Series:
    """List the words of each article that the model reads: the first ones of its title, or of both its parts."""
    first_words = articles.select(pl.col("title").list.head(recipe.title), pl.col("content").list.head(recipe.content))
    return list_words(first_words, recipe)


def list_words(articles: pl.DataFrame, recipe: Recipe) -> pl.Series:
    """List all words of each article's title, or of title and content."""
    return articles.select(pl.concat_list("title", "content") if recipe.reads == "both" else "title").to_series()


def check_frames(articles: pl.DataFrame, comments: pl.DataFrame, *extra_columns: str) -> None:
    """Raise BadInput if articles and comments are not as `fit` takes them, or extra columns of comments are missing."""
    _check_columns("articles", articles, ("article_id", "split", "title", "content"))
    _check_columns("comments", comments, ("article_id", "words", *extra_columns))
    expected, kind = (frame["article_id"].dtype for frame in (articles, comments))
    if kind != expected:
        raise BadInput(f"comments to train on: field 'article_id' should be {expected} as of articles, found {kind}")
    if repeated := articles.filter(pl.col("article_id").is_duplicated())["article_id"].to_list():
        raise BadInput(f"articles to train on: {str(repeated[0])!r} is there more than once")
    if len(unmatched := comments.join(articles, on="article_id", how="anti")["article_id"]):
        problem = f"{len(unmatched)} are of articles that are not there, as {str(unmatched[0])!r}"
        raise BadInput(f"comments to train on: {problem}")


def _check_columns(name: str, frame: pl.DataFrame, columns: Sequence[str]) -> None:
    if missing := [column for column in columns if column not in frame.columns]:
        raise BadInput(f"{name} to train on: there is no column {', '.join(missing)}")
    for column in columns:
        field, kind = f"{name} to train on: field {column!r}", frame[column].dtype
        if null_count := frame[column].null_count():
            raise BadInput(f"{field} is null in {null_count} of {frame.height}")
        is_list = kind == pl.List(pl.String) and not frame[column].explode().null_count()
        if column in ("title", "content", "words") and not is_list:
            raise BadInput(f"{field} should be lists of words, found {kind} or a null")


def draw_rows(count: int, size: int, generator: torch.Generator) -> IndexArray:
    """Draw up to so many of the numbers of rows, in their order."""
    return np.sort(torch.randperm(count, generator=generator).numpy()[:size])


def rank_comments(
    model: Relevance, words: list[str], recipe: Recipe, articles: pl.DataFrame, comments: pl.DataFrame
) -> IndexArray:
    """Rank comments on held-out articles each among comments of the others: of the rows of `draw_rows`."""
    pairs = _make_pairs(articles, comments, recipe, words)
    return _Training(model, recipe, pairs, torch.Generator()).rank()


class _Pairs(NamedTuple):  # all pairs of an article and a comment, as places of distinct articles and distinct comments
    words: list[str]
    article_ids: pl.Series
    articles: Texts
    comments: Texts  # distinct in the words that are read
    article: IndexArray  # [pairs]
    comment: IndexArray  # [pairs]
    is_held: npt.NDArray[np.bool_]  # [pairs]


def _make_pairs(
    articles: pl.DataFrame, comments: pl.DataFrame, recipe: Recipe, words: list[str] | None = None
) -> _Pairs:
    articles = articles.filter(pl.col("split").is_in(["train", "validation"]))
    articles = articles.join(comments, on="article_id", how="semi", maintain_order="left").with_row_index("article")
    pairs = comments.select("article_id", pl.col("words").list.head(recipe.comment)).join(
        articles.select("article_id", "article", "split"), on="article_id", how="inner", maintain_order="left"
    )
    if words is None:
        train, train_articles = pairs.filter(split="train"), articles.filter(split="train")
        if not train.height:
            raise BadInput("comments on articles of the split 'train': expected at least one, found none")
        words = build_vocabulary([list_first_words(train_articles, recipe), train["words"]], recipe.vocabulary)
    distinct = pairs.select("words").unique(maintain_order=True).with_row_index("comment")
    pairs = pairs.join(distinct, on="words", how="left", maintain_order="left")
    article, comment = (pairs[name].to_numpy().astype(np.int64) for name in ("article", "comment"))
    article_texts = number_words(list_first_words(articles, recipe), words, recipe.title + recipe.content)
    comment_texts = number_words(distinct["words"], words, recipe.comment)
    is_held = (pairs["split"] == "validation").to_numpy()
    return _Pairs(words, articles["article_id"], article_texts, comment_texts, article, comment, is_held)


class _Foreign:  # comments drawn for articles that do not have them
    def __init__(self, pairs: _Pairs, rows: IndexArray, power: float) -> None:
        self.count = len(pairs.comments.starts) - 1
        counts = np.bincount(pairs.comment[rows], minlength=self.count)
        self.edges = np.cumsum(np.where(counts > 0, counts.astype(float) ** power, 0))
        keys = pairs.article * self.count + pairs.comment
        self.existing = np.unique(keys)
        articles, sizes = np.unique(np.unique(keys[rows]) // self.count, return_counts=True)
        if len(having_all := articles[sizes == np.count_nonzero(counts)]):
            article_id = pairs.article_ids[int(having_all[0])]
            raise BadInput(f"article {article_id!r}: expected comments of other articles of its split, found none")

    def draw(self, articles: IndexArray, size: int, generator: torch.Generator) -> IndexArray:
        """Draw so many comments for each article [n], independently: [n, size]."""
        comments = np.empty((len(articles), size), np.int64)
        is_existing = np.ones(comments.shape, bool)
        while is_existing.any():
            random_values = torch.rand(int(is_existing.sum()), generator=generator, dtype=torch.float64).numpy()
            comments[is_existing] = np.searchsorted(self.edges, random_values * self.edges[-1], side="right")
            keys = articles[:, None] * self.count + comments
            place = np.minimum(np.searchsorted(self.existing, keys), len(self.existing) - 1)
            is_existing = self.existing[place] == keys
        return comments


class _Training:  # a model in training, and the comments that evaluate it
    def __init__(self, model: Relevance, recipe: Recipe, pairs: _Pairs, generator: torch.Generator) -> None:
        self.model, self.recipe, self.pairs, self.generator = model, recipe, pairs, generator
        optimiser = torch.optim.Adam(model.parameters(), lr=recipe.learning_rate)
        self.learner = loop.make_learner(model, optimiser, generator, recipe.clip)
        self.train = np.flatnonzero(~pairs.is_held)
        self.negatives = _Foreign(pairs, self.train, 0.75)
        validation = np.flatnonzero(pairs.is_held) if pairs.is_held.any() else self.train
        foreign_generator = torch.Generator().manual_seed(recipe.seed)
        self.held = validation[draw_rows(len(validation), recipe.judged, foreign_generator)]
        foreign = _Foreign(pairs, validation, 0.0)  # drawn once, for all epochs
        self.foreign = foreign.draw(pairs.article[self.held], recipe.foreign, foreign_generator)

    def epoch(self, number: int) -> tuple[float, float, int]:
        self.model.train()
        total = 0.0
        for rows in draw_batches(self.pairs.article[self.train], self.recipe, self.generator):
            pairs = self.train[rows]
            wrong = self.negatives.draw(self.pairs.article[pairs], self.recipe.negatives, self.generator)
            loss = compute_loss(self._score_pairs(pairs, wrong)).mean()
            total += loop.descend(loss, self.learner, number) * len(rows)
        return total / len(self.train), reading.mrr(self.rank()), len(self.held)

    def _score_pairs(self, pairs: IndexArray, foreign: IndexArray) -> Tensor:
        """Score the comment of each pair [n], and others [n, k], for the article of the pair: [n, 1 + k]."""
        article_rows, article = np.unique(self.pairs.article[pairs], return_inverse=True)
        comment_rows, comment = np.unique(np.column_stack([self.pairs.comment[pairs], foreign]), return_inverse=True)
        device = self.model.bias.device
        queries = self.model.encode_articles(self.pairs.articles.pad(article_rows, device))
        # short and long comments apart: most are short, and padding costs what words do
        order = np.argsort(self.pairs.comments.lengths()[comment_rows], kind="stable")
        parts = np.array_split(comment_rows[order], min(_PARTS, len(order)))
        vectors = torch.cat([self.model.encode_comments(self.pairs.comments.pad(part, device)) for part in parts])
        place = torch.from_numpy(np.argsort(order)[comment.reshape(len(pairs), -1)])
        return self.model.score(queries[torch.from_numpy(article)].unsqueeze(1), vectors[place])

    @torch.inference_mode()
    def rank(self) -> IndexArray:
        """Rank held-out comments, from 1; a foreign one of the same score stands before them."""
        self.model.eval()
        ranks = []
        for start in range(0, len(self.held), self.recipe.batch):
            part = slice(start, start + self.recipe.batch)
            scores = self._score_pairs(self.held[part], self.foreign[part]).cpu().numpy()
            ranks.append(1 + (scores[:, 1:] >= scores[:, :1]).sum(axis=1))
        return np.concatenate(ranks)


def draw_batches(articles: IndexArray, recipe: Recipe, generator: torch.Generator) -> Iterator[IndexArray]:
    """Yield the places of pairs, whose articles are [n], each once, shuffled, but with runs of one article's."""
    order = torch.randperm(len(articles), generator=generator).numpy()
    order = order[np.argsort(articles[order], kind="stable")]  # an article's pairs side by side, shuffled
    _, first, article_index = np.unique(articles[order], return_index=True, return_inverse=True)
    is_start = (np.arange(len(order)) - first[article_index]) % recipe.together == 0
    run = np.cumsum(is_start) - 1
    run_order = torch.randperm(int(is_start.sum()), generator=generator).numpy()
    order = order[np.argsort(run_order[run], kind="stable")]
    yield from (order[start : start + recipe.batch] for start in range(0, len(order), recipe.batch))
