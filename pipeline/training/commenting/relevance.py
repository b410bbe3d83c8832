"""Training of the relevance of comments by negative sampling (commenting, appendix C.1; AAC-22, AAC-25).

    -log σ(conv(x, c)) - Σ_n log σ(-conv(x, c_n))       c one of the article's comments, c_n of other articles

Negatives are drawn from the distinct training comments by their counts to the power 3/4 (Mikolov et al., 2013), and
drawn anew where the article has that comment itself. The least loss is at log P(c | x) - log(k Q(c)), Q what negatives
are drawn from: what stands below every article ("转发微博") is relevant to none.

The epoch is chosen by the mean reciprocal rank of a held-out article's comment among that and comments drawn, evenly,
from other held-out articles.
"""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from pipeline.errors import BadInput
from pipeline.metrics.recam import retrieval
from pipeline.models.commenting.relevance import IndexArray, Relevance, Shape, Texts, build_vocabulary, number_words
from pipeline.training import loop, recipes
from pipeline.training.loop import TrainingResult

_PARTS = 4  # lengths that a batch's comments are parted by


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """The numbers of a training; the paper names those of `vocabulary` and `comment` alone for these models."""

    reads: Literal["title", "both"] = "title"  # what of an article is read: its title, or title and content
    title: int = 30  # words read at most
    content: int = 400
    comment: int = 50  # longer ones are cut, not left out (section 5 says otherwise; AAC-22)
    vocabulary: int = 30_000
    embedding: int = 128
    hidden: int = 256
    widths: tuple[int, int, int, int] = (1, 2, 3, 4)
    dropout: float = 0.3
    negatives: int = 5
    foreign: int = 50  # comments of other articles that a held-out one is ranked among
    judged: int = 2000  # held-out comments that are ranked at most
    learning_rate: float = 1e-3
    clip: float = 5.0  # largest norm of the gradient
    batch: int = 64  # comments a step
    together: int = 4  # comments of an article that stand side by side in a batch, so that it is read once for them
    epochs: int = 10
    seed: int = 42


PROFILES = {"ir_t": Recipe(), "ir_tc": Recipe(reads="both")}
"""The two retrieval models of the paper (AAC-21)."""

SMALL: dict[str, Any] = {
    "embedding": 48, "hidden": 48, "content": 60, "comment": 30, "vocabulary": 15_000, "dropout": 0.2, "batch": 128,
    "together": 8, "judged": 1000, "learning_rate": 3e-3, "epochs": 5,
}  # fmt: skip
"""Changes to a profile for a few thousand articles and a CPU: `make_recipe("ir_tc", **SMALL)`.

Measured on 1,674 Weibo news posts with 29,754 comments, in 69 s of one core: the mean reciprocal rank among 51 is .27
on 214 posts that decided nothing, where chance is .09 and the cosine of TF-IDF, put to comments, .30; recall at 10 is
.55, chance .20, the cosine's .47.
"""


def make_recipe(profile: str, **changes: Any) -> Recipe:
    """A profile with some numbers changed; those that are None stay."""
    return recipes.change_profile(PROFILES, profile, changes, from_zero={"seed"}, above_zero={"clip", "learning_rate"})


def compute_chance(foreign: int) -> float:
    """The mean reciprocal rank of drawn lots among so many others: H(n + 1) / (n + 1)."""
    return float(np.mean(1 / np.arange(1, foreign + 2)))


def compute_loss(scores: Tensor) -> Tensor:
    """Negative sampling's loss of each row of scores [n, 1 + k], its positive's first: [n] (AAC-25)."""
    return -logsigmoid(scores[:, 0]) - logsigmoid(-scores[:, 1:]).sum(dim=1)


def fit(
    articles: pl.DataFrame, comments: pl.DataFrame, recipe: Recipe, state: Path | None = None, *, device: str = "cpu"
) -> TrainingResult:
    """Train the relevance model and keep the epoch of the highest mean reciprocal rank on the split `validation`.

    Without a validation part, the training part decides. On a CPU the same rows and recipe give the same bits.

    Args:
        articles: article_id, each once; title and content, lists of words; split (others than train and validation
            are let be).
        comments: article_id, one of the articles'; words, a list.
        recipe: hyperparameters.
        state: file that keeps the state after each epoch; an interrupted training goes on from it and ends with the
            same model. More epochs may be asked for.
        device: cpu or cuda.

    Raises:
        BadInput: a column or a value is missing, an article is there twice or a comment's is not, there is nothing to
            learn from or no comment foreign to an article, the loss is no number, or `state` is of another training.
    """
    check_frames(articles, comments)
    generator = loop.seed_all(recipe.seed)
    pairs = _make_pairs(articles, comments, recipe)
    model = Relevance(make_shape(recipe, len(pairs.words))).to(device)
    nn.init.constant_(model.bias, -math.log(recipe.negatives))  # one comment in 1 + k is right: no step goes into this
    training = _Training(model, recipe, pairs, generator)
    facts = (asdict(recipe) | {"epochs": None}, pairs.words)
    parts = (*pairs.articles, *pairs.comments, pairs.article, pairs.comment, pairs.is_held)
    criterion = loop.Criterion(("loss", "mrr", "count"), best_by="mrr")
    training_id = loop.fingerprint(facts, *parts)
    outcome = loop.run(training.epoch, training.learner, criterion, recipe.epochs, state, training_id)
    config = {**asdict(recipe), "kind": "relevance", "words": pairs.words, "best_epoch": outcome.best_epoch}
    return TrainingResult(outcome.weights, config, outcome.history)


def make_shape(recipe: Recipe, words: int) -> Shape:
    """The sizes of a recipe's network."""
    if recipe.hidden % len(recipe.widths):
        raise BadInput(f"hidden should be a multiple of {len(recipe.widths)}, one share a width; found {recipe.hidden}")
    return Shape(words, recipe.embedding, recipe.hidden, recipe.widths, recipe.dropout)


def list_first_words(articles: pl.DataFrame, recipe: Recipe) -> pl.Series:
    """The words of each article that the relevance model reads: the first ones of its title, or of both its parts."""
    first_words = articles.select(pl.col("title").list.head(recipe.title), pl.col("content").list.head(recipe.content))
    return list_words(first_words, recipe)


def list_words(articles: pl.DataFrame, recipe: Recipe) -> pl.Series:
    """All words of each article's title, or of title and content."""
    return articles.select(pl.concat_list("title", "content") if recipe.reads == "both" else "title").to_series()


def check_frames(articles: pl.DataFrame, comments: pl.DataFrame, *extra_columns: str) -> None:
    """BadInput if articles and comments are not as `fit` takes them.

    Args:
        articles: see `fit`.
        comments: see `fit`.
        extra_columns: other columns that comments should have, without nulls.
    """
    expected = {"articles": (articles, ("article_id", "split", "title", "content")),
              "comments": (comments, ("article_id", "words", *extra_columns))}  # fmt: skip
    for name, (frame, columns) in expected.items():
        if missing := [column for column in columns if column not in frame.columns]:
            raise BadInput(f"{name} to train on: there is no column {', '.join(missing)}")
        for column in columns:
            if frame[column].null_count():
                problem = f"is null in {frame[column].null_count()} of {frame.height}"
                raise BadInput(f"{name} to train on: field {column!r} {problem}")
            if column in ("title", "content", "words"):
                kind = frame[column].dtype
                if kind != pl.List(pl.String) or frame[column].explode().null_count():
                    raise BadInput(
                        f"{name} to train on: field {column!r} should be lists of words, found {kind} or a null"
                    )
    kinds = [frame["article_id"].dtype for frame in (articles, comments)]
    if kinds[0] != kinds[1]:
        raise BadInput(
            f"comments to train on: field 'article_id' should be {kinds[0]} as of articles, found {kinds[1]}"
        )
    if repeated := articles.filter(pl.col("article_id").is_duplicated())["article_id"].to_list():
        raise BadInput(f"articles to train on: {str(repeated[0])!r} is there more than once")
    unmatched = comments.join(articles, on="article_id", how="anti")["article_id"]
    if len(unmatched):
        raise BadInput(
            f"comments to train on: {len(unmatched)} are of articles that are not there, as {str(unmatched[0])!r}"
        )


class _Pairs(NamedTuple):
    """Every (article, comment) pair, as places of distinct articles and distinct comments."""

    words: list[str]
    article_ids: pl.Series
    articles: Texts
    comments: Texts  # distinct in the words that are read
    article: IndexArray  # [pairs]
    comment: IndexArray  # [pairs]
    is_held: npt.NDArray[np.bool_]  # [pairs]


def _make_pairs(articles: pl.DataFrame, comments: pl.DataFrame, recipe: Recipe) -> _Pairs:
    articles = articles.filter(pl.col("split").is_in(["train", "validation"]))
    articles = articles.join(comments, on="article_id", how="semi", maintain_order="left").with_row_index("article")
    pairs = comments.select("article_id", pl.col("words").list.head(recipe.comment)).join(
        articles.select("article_id", "article", "split"), on="article_id", how="inner", maintain_order="left"
    )
    train = pairs.filter(pl.col("split") == "train")
    if not train.height:
        raise BadInput("comments on articles of the split 'train': expected at least one, found none")
    words = build_vocabulary(
        [list_first_words(articles.filter(pl.col("split") == "train"), recipe), train["words"]], recipe.vocabulary
    )
    distinct = pairs.select("words").unique(maintain_order=True).with_row_index("comment")
    pairs = pairs.join(distinct, on="words", how="left", maintain_order="left")
    article_texts = number_words(list_first_words(articles, recipe), words, recipe.title + recipe.content)
    return _Pairs(
        words, articles["article_id"], article_texts,
        number_words(distinct["words"], words, recipe.comment), pairs["article"].to_numpy().astype(np.int64),
        pairs["comment"].to_numpy().astype(np.int64), (pairs["split"] == "validation").to_numpy(),
    )  # fmt: skip


class _Foreign:
    """Comments drawn for articles that do not have them."""

    def __init__(self, pairs: _Pairs, rows: IndexArray, power: float) -> None:
        count = len(pairs.comments.starts) - 1
        counts = np.bincount(pairs.comment[rows], minlength=count)
        self.edges, self.count = np.cumsum(np.where(counts > 0, counts.astype(float) ** power, 0)), count
        self.own = np.unique(pairs.article * count + pairs.comment)
        articles, sizes = np.unique(np.unique(self._keys(pairs, rows)) // count, return_counts=True)
        if (sizes == np.count_nonzero(counts)).any():
            article_id = pairs.article_ids[int(articles[sizes == np.count_nonzero(counts)][0])]
            raise BadInput(f"article {article_id!r}: expected comments of other articles of its split, found none")

    def _keys(self, pairs: _Pairs, rows: IndexArray) -> IndexArray:
        return pairs.article[rows] * self.count + pairs.comment[rows]

    def draw(self, articles: IndexArray, size: int, generator: torch.Generator) -> IndexArray:
        """So many comments for each article [n]: [n, each], independently."""
        out = np.empty((len(articles), size), np.int64)
        is_repeated = np.ones(out.shape, bool)
        while is_repeated.any():
            random_values = torch.rand(int(is_repeated.sum()), generator=generator, dtype=torch.float64).numpy()
            out[is_repeated] = np.searchsorted(self.edges, random_values * self.edges[-1], side="right")
            keys = articles[:, None] * self.count + out
            is_repeated = self.own[np.minimum(np.searchsorted(self.own, keys), len(self.own) - 1)] == keys
        return out


class _Training:
    """A model while it learns, and the comments that it is judged by."""

    def __init__(self, model: Relevance, recipe: Recipe, pairs: _Pairs, generator: torch.Generator) -> None:
        self.model, self.recipe, self.pairs, self.generator = model, recipe, pairs, generator
        optimiser = torch.optim.Adam(model.parameters(), lr=recipe.learning_rate)
        self.learner = loop.make_learner(model, optimiser, generator, recipe.clip)
        self.train = np.flatnonzero(~pairs.is_held)
        self.negatives = _Foreign(pairs, self.train, 0.75)
        validation = np.flatnonzero(pairs.is_held) if pairs.is_held.any() else self.train
        foreign, foreign_generator = _Foreign(pairs, validation, 0.0), torch.Generator().manual_seed(recipe.seed)
        self.held = np.sort(
            validation[torch.randperm(len(validation), generator=foreign_generator).numpy()[: recipe.judged]]
        )
        self.foreign = foreign.draw(
            pairs.article[self.held], recipe.foreign, foreign_generator
        )  # the same in each epoch

    def epoch(self, number: int) -> tuple[float, float, int]:
        """Learn from all pairs and be judged: the numbers of the history."""
        return self._run_epoch(number), self._evaluate(), len(self.held)

    def _run_epoch(self, epoch: int) -> float:
        """One pass over the training part; the mean loss of a comment."""
        self.model.train()
        total = 0.0
        for rows in draw_batches(self.pairs.article[self.train], self.recipe, self.generator):
            pairs = self.train[rows]
            wrong = self.negatives.draw(self.pairs.article[pairs], self.recipe.negatives, self.generator)
            total += loop.descend(compute_loss(self._score_pairs(pairs, wrong)).mean(), self.learner, epoch) * len(rows)
        return total / len(self.train)

    def _score_pairs(self, pairs: IndexArray, foreign: IndexArray) -> Tensor:
        """Relevance to the article of each pair [n] of its comment, and of others [n, k]: [n, 1 + k]."""
        article_rows, article = np.unique(self.pairs.article[pairs], return_inverse=True)
        comment_rows, comment = np.unique(np.column_stack([self.pairs.comment[pairs], foreign]), return_inverse=True)
        device = self.model.bias.device
        queries = self.model.encode_articles(self.pairs.articles.pad(article_rows, device))
        vectors = self._encode(comment_rows)
        comment = comment.reshape(len(pairs), -1)
        return self.model.score(queries[torch.from_numpy(article)].unsqueeze(1), vectors[torch.from_numpy(comment)])

    def _encode(self, comments: IndexArray) -> Tensor:
        """Vectors of comments, short and long ones apart: most are short, and padding costs what words do."""
        order = np.argsort(np.diff(self.pairs.comments.starts)[comments], kind="stable")
        parts = np.array_split(comments[order], min(_PARTS, len(order)))
        device = self.model.bias.device
        vectors = torch.cat([self.model.encode_comments(self.pairs.comments.pad(part, device)) for part in parts])
        return vectors[torch.from_numpy(np.argsort(order))]

    @torch.inference_mode()
    def _evaluate(self) -> float:
        """The mean reciprocal rank of held-out comments; a foreign one that scores as high stands before them."""
        self.model.eval()
        ranks = []
        for start in range(0, len(self.held), self.recipe.batch):
            part = slice(start, start + self.recipe.batch)
            scores = self._score_pairs(self.held[part], self.foreign[part]).cpu().numpy()
            ranks.append(1 + (scores[:, 1:] >= scores[:, :1]).sum(axis=1))
        return retrieval.mrr(np.concatenate(ranks))


def draw_batches(articles: IndexArray, recipe: Recipe, generator: torch.Generator) -> Iterator[IndexArray]:
    """Places of a pass over pairs, each once, newly shuffled but for runs of one article's.

    Args:
        articles: of each pair, [n].
        recipe: `batch` and `together`.
        generator: source of chance.
    """
    order = torch.randperm(len(articles), generator=generator).numpy()
    order = order[np.argsort(articles[order], kind="stable")]  # an article's pairs side by side, shuffled
    _, first, article_index = np.unique(articles[order], return_index=True, return_inverse=True)
    is_start = (np.arange(len(order)) - first[article_index]) % recipe.together == 0
    run = np.cumsum(is_start) - 1
    run_order = torch.randperm(int(is_start.sum()), generator=generator).numpy()
    order = order[np.argsort(run_order[run], kind="stable")]
    yield from (order[start : start + recipe.batch] for start in range(0, len(order), recipe.batch))
