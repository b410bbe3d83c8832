"""The quality scorer: the grade that people would give a comment under its article, or its likes (AAC-34).

    s(x) = b + Σ_f w_f · x_f              over families of features f
    grade = low + (high - low) σ(s)       between the least and the largest grade learnt from
    log(1 + likes) = clip(s)              likewise

The families are hashed n-grams of characters and of words, in TF-IDF of length one; the surface of the comment; its
sentence embedding; and its relation to the article. The numbers of the last three are standardised to a mean squared
length of one a family, so that one penalty fits all. A missing number is the mean of the comments learnt from.
"""

import logging
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
from torch import Tensor

from pipeline.errors import BadInput
from pipeline.models.encoder import Encoder, Vectors, check_kind, encode
from pipeline.text import segment

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

log = logging.getLogger(__name__)
KINDS = {"grade": "quality", "upvotes": "upvotes"}  # the kinds of models, by their target
ROWS = 1024  # comments scored at a time
ARTICLE = ("title", "content")
_BENDS = (8, 16, 32, 64, 128, 256, 512, 1024)  # characters at which the weight of length may change
_WEIGHT = {"surface": 10.0}  # few numbers, of which little can be overfitted, are hardly held back
_FARTHEST = 4.0  # deviations from the mean that a number counts at most
Floats = npt.NDArray[np.float64]
Embed = Callable[[Sequence[str]], Vectors]
_TEXT = pl.col("text")
_SIZE = _TEXT.str.len_chars().cast(pl.Float64)
_WORDS = _TEXT.str.to_lowercase().str.extract_all(r"\p{Han}|[\p{L}\p{N}'’]+").list
_WORD_COUNT = _WORDS.len().cast(pl.Float64)


def _share(pattern: str) -> pl.Expr:
    return _TEXT.str.count_matches(pattern) / (_SIZE + 1)


SURFACE = {  # what a comment looks like, by name, as expressions over the column `text`
    "log_characters": _SIZE.log1p(),
    **{f"log_characters_over_{bend}": (_SIZE.log1p() - math.log1p(bend)).clip(0) for bend in _BENDS},
    "log_words": _WORD_COUNT.log1p(), "log_sentences": _TEXT.str.count_matches(r"[.!?。！？…]+").log1p(),
    "log_lines": _TEXT.str.count_matches(r"\n+").log1p(),
    "word_length": _WORDS.eval(pl.element().str.len_chars()).list.mean().fill_null(0.0),
    "distinct_words": _WORDS.n_unique() / (_WORD_COUNT + 1), "commas": _share(r"[,，、;；:：]"),
    "questions": _share(r"[?？]"), "exclamations": _share(r"[!！]"), "ellipses": _share(r"\.{2,}|…"),
    "quotes": _share(r"[\"“”«»「」『』]"), "brackets": _share(r"[()（）]"), "digits": _share(r"\p{N}"),
    "capitals": _share(r"\p{Lu}"), "signs": _share(r"[^\p{L}\p{N}\p{P}\s]"), "codes": _share(segment.CODE.pattern),
    "links": _TEXT.str.count_matches(r"https?://|\[URL\]").log1p(),
}  # fmt: skip


class Design(NamedTuple):
    """Which features a scorer looks at."""

    characters: int  # of the longest n-gram of characters; 0: none
    words: int  # of the longest n-gram of words; 0: none
    buckets: int  # that the n-grams of a kind are hashed into
    tokenizer: str
    has_surface: bool
    has_relation: bool
    dim: int  # of the sentence embedding; 0: none

    def families(self) -> dict[str, list[str]]:
        """Names of the numbers that are not n-grams, in their order, by family."""
        related = [f"words_in_{part}" for part in ARTICLE]
        families = {
            "surface": list(SURFACE) if self.has_surface else [],
            "embedding": [f"embedding_{number}" for number in range(self.dim)],
            "relation": related + [f"cosine_{part}" for part in ARTICLE if self.dim] if self.has_relation else [],
        }
        return {family: names for family, names in families.items() if names}

    def grams(self) -> list[str]:
        """The kinds of n-grams."""
        return [kind for kind, longest in (("characters", self.characters), ("words", self.words)) if longest]


class Features(NamedTuple):
    """What a scorer sees of n comments, before anything is weighed."""

    counts: "list[csr_matrix]"  # [n, buckets] for each kind of n-grams
    numbers: Floats  # [n, d], NaN where there is no article


def make_features(rows: pl.DataFrame, design: Design, embed: Embed | None = None) -> Features:
    """Make the features of rows as `score_comments` takes them, in training and in scoring alike."""
    texts, cut = rows["text"].to_list(), segment.load_tokenizer(design.tokenizer).cut

    def split_words(text: str) -> list[str]:
        return segment.split_words(text.lower(), cut)

    counts = [_count_grams(kind, design, split_words, texts) for kind in design.grams()]
    columns = [np.empty((len(texts), 0))]
    if design.has_surface:
        columns.append(rows.select(**SURFACE).cast(pl.Float64).to_numpy())
    if embed:
        columns.append(vectors := embed(texts).astype(np.float64))
    if design.has_relation:
        blank = pl.Series([""] * rows.height)
        parts = [rows[part] if part in rows.columns else blank for part in ARTICLE]
        articles = [part.cast(pl.String).fill_null("").to_list() for part in parts]
        columns += [_share_words(texts, article, split_words)[:, None] for article in articles]
        if embed:
            columns += [_compare_articles(vectors, article, embed)[:, None] for article in articles]
    return Features(counts, np.hstack(columns))


def check_comments(rows: pl.DataFrame, numbers: pl.Series | None = None) -> None:
    """Raise BadInput if there is no column text, or a comment without text; rows have numbers, by default from 1."""
    if rows.schema.get("text") != pl.String:
        kind = rows.schema.get("text") or f"columns {', '.join(rows.columns) or 'none'}"
        raise BadInput(f"expected a column 'text' of strings, found {kind}")
    if rows["text"].null_count():
        i = int(rows["text"].is_null().arg_true()[0])
        row = i + 1 if numbers is None else numbers[i]
        raise BadInput(f"row {row}: field 'text' is null; expected a comment")


def mark_articles(rows: pl.DataFrame) -> pl.Series:
    """Mark the comments that have any text of an article."""
    has_text = [pl.col(part).cast(pl.String).fill_null("") != "" for part in ARTICLE if part in rows.columns]
    return rows.select(pl.any_horizontal(pl.repeat(value=False, n=pl.len()), *has_text)).to_series()


def _count_grams(kind: str, design: Design, split_words: Callable[[str], list[str]], texts: list[str]) -> "csr_matrix":
    from sklearn.feature_extraction.text import HashingVectorizer

    def list_word_grams(text: str) -> list[str]:
        words = split_words(text)
        return [" ".join(words[i : i + n]) for n in range(1, design.words + 1) for i in range(len(words) - n + 1)]

    options: dict[str, Any] = {"analyzer": list_word_grams}
    if kind == "characters":
        options = {"analyzer": "char", "ngram_range": (1, design.characters)}
    return HashingVectorizer(**options, n_features=design.buckets, norm=None, alternate_sign=False).transform(texts)


def _share_words(texts: list[str], articles: list[str], split_words: Callable[[str], list[str]]) -> Floats:
    """Compute the share of a comment's distinct words that stand in the article: [n], NaN where there is none."""
    article_words = {article: set(split_words(article)) for article in set(articles)}
    shares = np.full(len(texts), np.nan)
    for row, (text, article) in enumerate(zip(texts, articles, strict=True)):
        if article:
            words = set(split_words(text))
            shares[row] = len(words & article_words[article]) / max(1, len(words))
    return shares


def _compare_articles(vectors: Floats, articles: list[str], embed: Embed) -> Floats:
    """Compute the cosine of each comment with its article: [n], NaN where there is none."""
    cosines = np.full(len(articles), np.nan)
    if rows := [row for row, article in enumerate(articles) if article]:
        article_vectors = embed([articles[row] for row in rows]).astype(np.float64)
        sizes = np.linalg.norm(vectors[rows], axis=1) * np.linalg.norm(article_vectors, axis=1)
        cosines[rows] = (vectors[rows] * article_vectors).sum(axis=1) / np.maximum(sizes, 1e-12)
    return cosines


class Scale(NamedTuple):
    """How features are weighed, learnt from the training part."""

    rarity: list[npt.NDArray[np.float32]]  # inverse document frequencies [buckets] of each kind of n-grams
    mean: npt.NDArray[np.float32]  # [d]
    spread: npt.NDArray[np.float32]  # [d]; infinite where a number never varies, so that it counts nothing


def measure_scale(features: Features) -> Scale:
    """Compute rarity log((1 + n) / (1 + df)) + 1, as in scikit-learn, and mean and deviation of the numbers."""
    shares = [(1 + len(features.numbers)) / (1 + counts.getnnz(axis=0)) for counts in features.counts]
    rarity = [(np.log(share) + 1).astype(np.float32) for share in shares]
    is_known = ~np.isnan(features.numbers)
    count = np.maximum(is_known.sum(axis=0), 1)
    mean = np.where(is_known, features.numbers, 0).sum(axis=0) / count
    spread = np.sqrt((np.where(is_known, features.numbers - mean, 0) ** 2).sum(axis=0) / count)
    spread[spread < 1e-6] = np.inf
    return Scale(rarity, mean.astype(np.float32), spread.astype(np.float32))


def scale_features(features: Features, scale: Scale, design: Design) -> "tuple[csr_matrix, Floats]":
    """Scale features: n-grams [n, kinds × buckets] and numbers [n, d]."""
    from scipy.sparse import csr_matrix, hstack
    from sklearn.preprocessing import normalize

    kinds = []
    for counts, rarity in zip(features.counts, scale.rarity, strict=True):
        kind = counts.copy()
        kind.data = (1 + np.log(kind.data)) * rarity[kind.indices]
        kinds.append(normalize(kind, copy=False))
    numbers = np.nan_to_num((features.numbers - scale.mean) / scale.spread).clip(-_FARTHEST, _FARTHEST)
    start = 0
    for family, names in design.families().items():
        numbers[:, start : start + len(names)] *= _WEIGHT.get(family, 1.0) / math.sqrt(len(names))
        start += len(names)
    return hstack([csr_matrix((len(numbers), 0)), *kinds], format="csr"), numbers


class Scorer(NamedTuple):
    """A loaded scorer."""

    design: Design
    scale: Scale
    weights: tuple[Floats, Floats]  # of the n-grams [kinds × buckets] and of the numbers [d]
    bias: float
    bounds: tuple[float, float]  # least and largest target of the training part
    encoder: Encoder | None
    target: str  # grade: in its own unit; upvotes: log(1 + likes)


def load(tensors: dict[str, Tensor], config: dict[str, Any], encoder: Encoder | None = None) -> Scorer:
    """Load the scorer that `training.commenting.quality.fit` returned; BadInput for another model or encoder."""
    check_kind(config, *KINDS.values())
    encoder_key = (encoder.revision, encoder.pooling) if encoder else (None, None)
    if config["encoder"] and (config["encoder_revision"], config["encoder_pooling"]) != encoder_key:
        raise BadInput(f"the scorer was trained with encoder {config['encoder']}; give that one")
    design = Design(**{name: config[name] for name in Design._fields})
    arrays = {name: value.numpy() for name, value in tensors.items()}
    rarity = [arrays[f"rarity.{kind}"] for kind in design.grams()]
    grams = [arrays[f"weights.{kind}"] for kind in design.grams()]
    weights = (np.concatenate([np.empty(0), *grams]), arrays["weights.numbers"].astype(np.float64))
    scale, bounds = Scale(rarity, arrays["mean"], arrays["spread"]), (config["low"], config["high"])
    used_encoder = encoder if config["encoder"] else None
    return Scorer(design, scale, weights, config["bias"], bounds, used_encoder, config["target"])


def score_comments(scorer: Scorer, rows: pl.DataFrame, batch: int = ROWS) -> Floats:
    """Score comments in the unit of their grades, or as expected log(1 + likes), within the targets learnt from: [n].

    Rows have text, and title and content of the article, null or absent where there is none. With an encoder a score
    differs by about 1e-6 with the batch it falls in. BadInput if there is no column text, or a comment without text.
    """
    from scipy.special import expit

    check_comments(rows)
    embed = partial(encode, scorer.encoder) if scorer.encoder else None
    missing_count = rows.height - mark_articles(rows).sum()
    if scorer.design.has_relation and missing_count:
        log.info("%d of %d comments have no article: they are scored by themselves", missing_count, rows.height)
    parts = [np.empty(0)]
    for start in range(0, rows.height, batch):
        features = make_features(rows[start : start + batch], scorer.design, embed)
        grams, numbers = scale_features(features, scorer.scale, scorer.design)
        # summed by row: a matrix product rounds otherwise for another number of rows
        parts.append(scorer.bias + grams @ scorer.weights[0] + (numbers * scorer.weights[1]).sum(axis=1))
    values, (low, high) = np.concatenate(parts), scorer.bounds
    scores = low + (high - low) * expit(values) if scorer.target == "grade" else values.clip(low, high)
    return np.asarray(scores, np.float64)
