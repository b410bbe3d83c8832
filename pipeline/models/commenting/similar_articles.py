"""Similar articles by the cosine of unigram TF-IDF (commenting, appendix C.1, equation C.1; AAC-24).

    g(x)_w = n(w, x) (ln((1 + n) / (1 + n_w)) + 1) / norm        scikit-learn's weights, of norm 1

The paper states no weights. The index is stored word by word, so that a query reads only the rows of its own words.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
import torch
from scipy.sparse import csr_matrix
from torch import Tensor

from pipeline.errors import BadInput
from pipeline.models.encoder import IndexArray

Floats = npt.NDArray[np.float32]


class Index(NamedTuple):
    """Indexed articles."""

    words: list[str]  # sorted
    idf: Floats  # [words]
    holders: csr_matrix  # [words, articles], float32: the vectors g, a column each

    @property
    def tensors(self) -> dict[str, Tensor]:
        """The arrays by name, without the words."""
        parts = {"idf": self.idf, "weights": self.holders.data, "places": self.holders.indices}
        parts |= {"starts": self.holders.indptr.astype(np.int64), "count": np.array([self.holders.shape[1]])}
        return {name: torch.from_numpy(value) for name, value in parts.items()}


def build_index(texts: pl.Series) -> Index:
    """Index articles, each a list of words, by their place, from 0; BadInput if there is no word in any of them."""
    vectorizer = _make_vectorizer()
    try:
        weights = vectorizer.fit_transform(texts)
    except ValueError as error:
        raise BadInput(f"articles to index: expected at least one word, found none: {error}") from error
    words = vectorizer.get_feature_names_out().tolist()
    return Index(words, vectorizer.idf_.astype(np.float32), weights.T.tocsr())


def load_index(words: list[str], tensors: dict[str, Tensor]) -> Index:
    """Load the index of some words and tensors."""
    idf, weights, places, starts = (tensors[name].numpy() for name in ("idf", "weights", "places", "starts"))
    return Index(words, idf, csr_matrix((weights, places, starts), shape=(len(words), int(tensors["count"]))))


def _make_vectorizer(**options: Any) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(analyzer=pl.Series.to_list, norm="l2", dtype=np.float32, **options)


class Nearest(NamedTuple):
    """The articles most like each text, the nearest first."""

    places: IndexArray  # [n, k]; -1 where fewer than k share a word
    cosines: Floats  # [n, k], in [0, 1]; 0 there


def find_nearest(index: Index, texts: pl.Series, k: int, *, batch: int = 64) -> Nearest:
    """Find the k indexed articles with the highest cosine to each text, a list of words; ties are in index order.

    An article that shares no word with a text is not a neighbour, so that there may be fewer than k. A batch needs at
    most 30 bytes for each text and indexed article; the result does not depend on it. ValueError if k is below 1.
    """
    if k < 1:
        raise ValueError(f"expected k from 1, got {k}")
    places, cosines = np.full((len(texts), k), -1, np.int64), np.zeros((len(texts), k), np.float32)
    vectorizer = _make_vectorizer(vocabulary={word: place for place, word in enumerate(index.words)})
    vectorizer.idf_ = index.idf
    width = min(k, index.holders.shape[1])
    for start in range(0, len(texts), batch):
        part = slice(start, start + batch)
        similarities = (vectorizer.transform(texts[part]) @ index.holders).toarray()
        order = _find_largest(similarities, width)
        best = np.take_along_axis(similarities, order, axis=1)
        places[part, :width], cosines[part, :width] = np.where(best > 0, order, -1), np.minimum(best, 1)
    return Nearest(places, cosines)


def _find_largest(values: Floats, k: int) -> IndexArray:
    """Return the columns of the k highest values of each row, the lower in a tie: [n, k]. Floats from 0 sort so."""
    keys = values.view(np.uint32).astype(np.int64) << 32
    keys -= np.arange(values.shape[1])
    np.negative(keys, out=keys)
    candidates = np.argpartition(keys, k - 1, axis=1)[:, :k]
    return np.take_along_axis(candidates, np.take_along_axis(keys, candidates, axis=1).argsort(axis=1), axis=1)
