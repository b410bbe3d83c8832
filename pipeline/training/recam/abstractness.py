"""The abstractness scorer: word vectors in, concreteness out (ReCAM, section 3.2, Table 2; REC-05).

    score(v) = σ(W₃ relu(W₂ relu(W₁ v)))     0 highly abstract, 1 highly concrete

It learns from rated words and is measured on others. The vectors are fixed. The paper states no sizes; those of the
profile `paper` are ours.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
import torch
from torch import Tensor, nn

from pipeline.errors import BadInput
from pipeline.metrics.resample import Floats
from pipeline.models.encoder import Encoder, Vectors, check_kind, describe_encoder
from pipeline.models.recam.word_features import Source, make_features
from pipeline.models.word_vectors import WordVectors
from pipeline.progress import iterate, track
from pipeline.text.concreteness import Ratings
from pipeline.training import loop

log = logging.getLogger(__name__)
TRAIN, TEST = 2148, 1877  # words of the paper's split (Table 2); together 4,025 of 4,295 (errata E13)
_ROWS, _SCORED = 32_768, 8192  # words whose features are held, and that are scored, at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """The numbers of a scorer and of its training."""

    hidden: tuple[int, int] = (300, 100)
    members: int = 1  # networks trained side by side, whose scores are averaged
    dropout: float = 0.0  # of the hidden layers' values
    input_dropout: float = 0.0  # of the words' features
    learning_rate: float = 1e-3
    batch: int = 64
    epochs: int = 10
    seed: int = 42


PROFILES = {"paper": Recipe(), "undertone": Recipe(members=5, dropout=0.5, input_dropout=0.2, epochs=6)}
"""One network as in section 3.2, which states layers and no sizes; and ours, chosen inside training parts of MRC."""

make_recipe = partial(loop.replace_numbers, PROFILES, above_zero={"learning_rate"})


class Abstractness(nn.Module):
    """Networks over standardised word vectors. Weights are drawn from torch's global source."""

    mean: Tensor
    deviation: Tensor

    def __init__(self, dim: int, recipe: Recipe) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(dim))
        self.register_buffer("deviation", torch.ones(dim))
        self.members = nn.ModuleList()
        for _ in range(recipe.members):
            layers: list[nn.Module] = [nn.Dropout(recipe.input_dropout)]
            for width, next_width in pairwise((dim, *recipe.hidden)):
                layers += [nn.Linear(width, next_width), nn.ReLU(), nn.Dropout(recipe.dropout)]
            self.members.append(nn.Sequential(*layers, nn.Linear(recipe.hidden[-1], 1), nn.Sigmoid()))

    def standardise(self, vectors: Tensor) -> None:
        """Set mean and deviation of the features from vectors [n, d]."""
        self.mean = vectors.mean(dim=0)
        spread = vectors.std(dim=0, correction=0)
        # without the bound, a feature that hardly varies here would be huge where it does
        self.deviation = spread.clamp(min=float(spread.square().mean().sqrt()) * 1e-2).clamp(min=1e-12)

    def forward(self, vectors: Tensor) -> Tensor:
        """Compute each member's score of vectors [n, d]: [n, members], in [0, 1]."""
        features = (vectors - self.mean) / self.deviation
        return torch.cat([member(features) for member in self.members], dim=1)


@torch.no_grad()
def score_vectors(model: Abstractness, vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """Compute the concreteness of words from their vectors [n, d], of the scorer's width: the members' mean, [n]."""
    if vectors.ndim != 2 or vectors.shape[1] != len(model.mean):
        raise ValueError(f"expected vectors [n, {len(model.mean)}], got {list(vectors.shape)}")
    model.eval()
    out = np.empty(len(vectors), np.float64)
    for start in range(0, len(vectors), _SCORED):
        part = slice(start, start + _SCORED)
        out[part] = model(torch.from_numpy(np.ascontiguousarray(vectors[part]))).double().mean(dim=1).numpy()
    return out


class TrainingResult(NamedTuple):
    """A trained scorer (tensors and configuration), and the words that were left out."""

    tensors: dict[str, Tensor]
    config: dict[str, Any]  # the recipe; dim, ratings, pearson_train, word_count, encoder
    dropped: pl.DataFrame  # word, reason (no_vector)


def fit(ratings: Ratings, source: Source, recipe: Recipe) -> TrainingResult:
    """Train on all words of a list that have a vector, on a CPU, to the same bits; BadInput for fewer than two."""
    rows, vectors, dropped = _match_vectors(ratings, source)
    truth = rows["score"].to_numpy()
    model = _train(vectors, truth, recipe)
    encoder = source if isinstance(source, Encoder) else None
    config = {
        **asdict(recipe), "kind": "abstractness", "dim": vectors.shape[1], "ratings": ratings.signature,
        "low": ratings.low, "high": ratings.high, "word_count": rows.height,
        "pearson_train": round(pearson(truth, score_vectors(model, vectors))[0], 6), **describe_encoder(encoder),
        "encoder_pooling": encoder.pooling if encoder else None,
    }  # fmt: skip
    return TrainingResult({name: value.detach().clone() for name, value in model.state_dict().items()}, config, dropped)


def _match_vectors(ratings: Ratings, source: Source) -> tuple[pl.DataFrame, Vectors, pl.DataFrame]:
    """The rows whose words have vectors, these vectors [n, d], and the words that have none, with the reason."""
    with track("encoding words", ratings.rows.height) as on_progress:
        features = make_features(ratings.rows["word"].to_list(), source, on_progress)
    is_known = pl.Series(features.is_known)
    rows, unknown = ratings.rows.filter(is_known), ratings.rows.filter(~is_known)
    if rows.height < 2:
        raise BadInput(
            f"{rows.height} of the {len(is_known)} words of {ratings.name} have a vector; expected two or more"
        )
    return rows, features.vectors[features.is_known], unknown.select("word", reason=pl.lit("no_vector"))


def _train(vectors: Vectors, truth: Floats, recipe: Recipe) -> Abstractness:
    """Train a scorer. The global source of chance is left as it was."""
    inputs, targets = torch.from_numpy(vectors), torch.tensor(truth, dtype=torch.float32).unsqueeze(1)
    generator = torch.Generator().manual_seed(recipe.seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(recipe.seed)  # weights and dropout draw from the global source
        model = Abstractness(vectors.shape[1], recipe)
        model.standardise(inputs)
        optimiser = torch.optim.Adam(model.parameters(), lr=recipe.learning_rate)
        learner = loop.Learner(optimiser, generator, dict, dict)  # of so few epochs no state is saved
        model.train()
        for epoch in range(1, recipe.epochs + 1):
            for rows in torch.split(torch.randperm(len(inputs), generator=generator), recipe.batch):
                # the members' errors are summed, so that each learns as if it were alone
                loss = (model(inputs[rows]) - targets[rows]).square().mean(dim=0).sum()
                loop.descend(loss, learner, epoch)
    return model.eval()


def load(tensors: dict[str, Tensor], config: dict[str, Any], source: Source) -> Callable[[Sequence[str]], Floats]:
    """Load a scorer of `fit`, a function of words (`predict`).

    The source is the encoder it was trained with, or the same word vectors: of these only the width can be checked.
    BadInput if it is no scorer of abstractness, or the encoder or the vectors' width is another one.
    """
    check_kind(config, "abstractness")
    encoder = source if isinstance(source, Encoder) else None
    source_encoder = (encoder.revision, encoder.pooling) if encoder else (None, None)
    if (config["encoder_revision"], config["encoder_pooling"]) != source_encoder:
        raise BadInput(f"the scorer was trained with {config['encoder'] or 'word vectors'}; give the same")
    if isinstance(source, WordVectors) and source.vectors.shape[1] != config["dim"]:
        raise BadInput(
            f"the scorer was trained on {config['dim']} dimensions; the vectors have {source.vectors.shape[1]}"
        )
    model = Abstractness(config["dim"], loop.read_recipe(Recipe, config))
    model.load_state_dict(tensors)
    return partial(predict, model.eval(), source)


def predict(model: Abstractness, source: Source, words: Sequence[str]) -> Floats:
    """Score words, 0 highly abstract to 1 highly concrete, whatever their case: [n]; NaN where one has no vector."""
    distinct, inverse = np.unique(np.asarray([word.lower() for word in words], dtype=object), return_inverse=True)
    out = np.empty(len(distinct), np.float64)
    for start in range(0, len(distinct), _ROWS):
        part = slice(start, start + _ROWS)
        features = make_features(distinct[part].tolist(), source)
        out[part] = np.where(features.is_known, score_vectors(model, features.vectors), np.nan)
    return out[inverse]


def pearson(gold: Floats, predicted: Floats) -> tuple[float, float]:
    """Compute Pearson's r and its two-sided p; 0 and 1 where one side is constant."""
    from scipy import stats

    if np.ptp(gold) == 0 or np.ptp(predicted) == 0:
        return 0.0, 1.0
    result = stats.pearsonr(gold, predicted)
    return float(result.statistic), float(result.pvalue)


def evaluate_splits(ratings: Ratings, source: Source, recipe: Recipe, split_count: int = 10) -> pl.DataFrame:
    """Measure table 2 over n random splits, drawn by the recipe's seed, of the paper's sizes (REC-06, errata E13).

    A list with fewer words than the paper's 4,025 is split in the same proportion; fewer than four words with a vector
    are BadInput. Columns: split, train_count, test_count, pearson_train, pearson (of the test part) and its p_value.
    """
    rows, vectors, _ = _match_vectors(ratings, source)
    truth = rows["score"].to_numpy()
    word_count = min(len(truth), TRAIN + TEST)
    train_count = round(word_count * TRAIN / (TRAIN + TEST))
    if word_count - train_count < 2 or train_count < 2:
        raise BadInput(f"{len(truth)} words are too few to be split; expected four or more")
    split_rows = []
    for split in iterate(range(split_count), "splits"):
        order = np.random.default_rng([recipe.seed, split]).permutation(len(truth))
        train, test = order[:train_count], order[train_count:word_count]
        model = _train(vectors[train], truth[train], recipe)
        inside, outside = (pearson(truth[words], score_vectors(model, vectors[words])) for words in (train, test))
        log.info("split %d of %d: r %.4f", split + 1, split_count, outside[0])
        split_rows.append((split, len(train), len(test), inside[0], *outside))
    names = ["split", "train_count", "test_count", "pearson_train", "pearson", "p_value"]
    return pl.DataFrame(split_rows, schema=names, orient="row")
