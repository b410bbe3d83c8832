"""Similar articles by the cosine of unigram TF-IDF (commenting, appendix C.1, equation C.1; AAC-24).

    g(x)_w = n(w, x) (ln((1 + n) / (1 + n_w)) + 1) / norm        scikit-learn's weights, of norm 1

n articles are indexed, n_w of them hold the word w. The paper states no weights; words no indexed article holds count
for nothing. The index is kept word by word, so that a question reads only the rows of its own words.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
import torch
from scipy.sparse import csr_matrix
from torch import Tensor

from pipeline.errors import BadInput

IndexArray = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]


class Index(NamedTuple):
    """Indexed articles."""

    words: list[str]  # sorted
    idf: Floats  # [words]
    holders: csr_matrix  # [words, articles], float32: the vectors g, a column each

    @property
    def tensors(self) -> dict[str, Tensor]:
        """All but the words, by name."""
        parts = {"idf": self.idf, "weights": self.holders.data, "places": self.holders.indices}
        parts["starts"] = self.holders.indptr.astype(np.int64)
        return {name: torch.from_numpy(value) for name, value in parts.items()} | {
            "count": torch.tensor([self.holders.shape[1]])
        }


def index(texts: pl.Series) -> Index:
    """Index articles by their words; an article is called by its place, from 0.

    Args:
        texts: lists of words, one an article.

    Raises:
        BadInput: there is no word in any of them.
    """
    vectorizer = _vectorizer()
    try:
        found = vectorizer.fit_transform(texts)
    except ValueError as why:
        raise BadInput(f"articles to index: expected at least one word, found none: {why}") from why
    words = vectorizer.get_feature_names_out().tolist()
    return Index(words, vectorizer.idf_.astype(np.float32), found.T.tocsr())


def of_tensors(words: list[str], tensors: dict[str, Tensor]) -> Index:
    """The index that gave such words and tensors."""
    idf, weights, places, starts = (tensors[name].numpy() for name in ("idf", "weights", "places", "starts"))
    return Index(words, idf, csr_matrix((weights, places, starts), shape=(len(words), int(tensors["count"]))))


def _vectorizer(**known: Any) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(analyzer=pl.Series.to_list, norm="l2", dtype=np.float32, **known)


class Nearest(NamedTuple):
    """The articles most like each question, the nearest first."""

    places: IndexArray  # [n, k]; -1 where fewer than k share a word
    cosines: Floats  # [n, k], in [0, 1]; 0 there


def nearest(known: Index, texts: pl.Series, k: int, *, but: Sequence[int] | None = None, batch: int = 64) -> Nearest:
    """The k indexed articles of the highest cosine with each text; of equal ones the first indexed come first.

    An article that shares no word with a text is none of its neighbours, so that there may be fewer than k, or none.
    A batch takes 30 bytes for each text and indexed article at most; the answer does not depend on it.

    Args:
        known: of `index`.
        texts: lists of words, one a text.
        k: 1 or more.
        but: for each text the place of an article that is not asked for, as of itself; -1 where there is none.
        batch: texts at a time.

    Raises:
        ValueError: k is below 1, or `but` is not as long as the texts.
    """
    if k < 1 or (but is not None and len(but) != len(texts)):
        raise ValueError(f"expected k from 1 and a place for each of {len(texts)} texts, got {k} and {but!r:.60}")
    places, cosines = np.full((len(texts), k), -1, np.int64), np.zeros((len(texts), k), np.float32)
    asked = _vectorizer(vocabulary={word: place for place, word in enumerate(known.words)})
    asked.idf_ = known.idf
    width = min(k, known.holders.shape[1])
    for at in range(0, len(texts), batch):
        part = slice(at, at + batch)
        found = (asked.transform(texts[part]) @ known.holders).toarray()
        if but is not None:
            itself = np.asarray(but[part], np.int64)
            rows = np.flatnonzero(itself >= 0)
            found[rows, itself[rows]] = 0
        order = _first(found, width)
        best = np.take_along_axis(found, order, axis=1)
        places[part, :width], cosines[part, :width] = np.where(best > 0, order, -1), np.minimum(best, 1)
    return Nearest(places, cosines)


def _first(values: Floats, k: int) -> IndexArray:
    """Columns of the k highest values of each row, the lower column first where two are equal: [n, k].

    Floats from 0 are ordered as their bits are; with the column below them no two keys are equal.
    """
    keys = values.view(np.uint32).astype(np.int64) << 32
    keys -= np.arange(values.shape[1])
    np.negative(keys, out=keys)
    some = np.argpartition(keys, k - 1, axis=1)[:, :k]
    return np.take_along_axis(some, np.take_along_axis(keys, some, axis=1).argsort(axis=1), axis=1)
