"""How relevant a comment is to an article, and which articles are similar (commenting, appendix C.1; AAC-24, AAC-25).

    v(x)_f       = relu(max_t f(x_t, ..., x_t+w-1))      filters f of several widths w over word vectors
    conv(x, c)   = (M v(x) + u) · v(c) + b               bilinear; M begins as the identity, u and b as zeros
    P(c | x)     = softmax over the candidates c         of conv(x, c)                                  (equation C.2)
    g(x)_w       = n(w, x) (ln((1 + n) / (1 + n_w)) + 1) / norm        scikit-learn's weights, of norm 1 (equation C.1)

The paper says that it is a CNN, and no more, and states no weights. Articles and comments share filters, so that from
the start a comment in an article's words is relevant. A comment is encoded without its article, once for all articles
asked with it. The index of articles is stored word by word, so that a query reads only the rows of its own words.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
import torch
from scipy.sparse import csr_matrix
from torch import Tensor, nn
from torch.nn.functional import dropout, pad

from pipeline.errors import BadInput
from pipeline.models.encoder import IndexArray

_PADDING, _UNKNOWN = range(2)  # rows of the table before those of the words
_SIZE = 0.1  # of the first embeddings; of those of size 1 a score is tens, and nothing is learnt for a while
Padded = tuple[Tensor, Tensor]  # rows of words [n, t], and how many of each count, [n], 1 or more


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The sizes of a network."""

    embedding: int = 128
    hidden: int = 256  # filters, as many of each width
    widths: tuple[int, int, int, int] = (1, 2, 3, 4)
    dropout: float = 0.3  # of word vectors, and of what filters give


class Filters(nn.Module):
    """Filters over a text's word vectors, of each the highest value."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        if shape.hidden % len(shape.widths):
            count = len(shape.widths)
            raise BadInput(f"hidden should be a multiple of {count}, one share a width; found {shape.hidden}")
        filter_count = shape.hidden // len(shape.widths)
        self.sizes = shape.widths
        self.widths = nn.ModuleList(nn.Conv1d(shape.embedding, filter_count, width) for width in shape.widths)

    def forward(self, vectors: Tensor, lengths: Tensor) -> Tensor:
        """Apply the filters to vectors [n, t, embedding], zeros after a text's end: [n, hidden]."""
        is_padding = torch.arange(vectors.shape[1], device=vectors.device) >= lengths.unsqueeze(1)
        channels, maxima = vectors.transpose(1, 2), []
        for width, convolution in zip(self.sizes, self.widths, strict=True):
            # the words that begin at each place; the last ones run into zeros, of which each text has enough
            values = convolution(pad(channels, (0, width - 1)))
            maxima.append(values.masked_fill(is_padding.unsqueeze(1), -torch.inf).max(dim=2).values)
        return torch.cat(maxima, dim=1).relu()


class Relevance(nn.Module):
    """The network. Weights are drawn from torch's global source."""

    def __init__(self, words: int, shape: Shape) -> None:
        """Make the network of a vocabulary of so many words."""
        super().__init__()
        self.shape = shape
        self.embedding = nn.Embedding(words + _UNKNOWN + 1, shape.embedding, padding_idx=_PADDING)
        with torch.no_grad():
            self.embedding.weight *= _SIZE
        self.filters = Filters(shape)
        self.look_for = nn.Linear(shape.hidden, shape.hidden)  # M, u
        nn.init.eye_(self.look_for.weight)
        nn.init.zeros_(self.look_for.bias)
        self.bias = nn.Parameter(torch.zeros(()))

    def encode_articles(self, texts: Padded) -> Tensor:
        """Encode articles as the vector sought in their comments, M v(x) + u: [n, hidden]."""
        return self.look_for(self.encode_comments(texts))  # type: ignore[no-any-return]

    def encode_comments(self, texts: Padded) -> Tensor:
        """Encode comments as vectors v(c), independent of the article: [m, hidden]."""
        rows, lengths = texts
        vectors = dropout(self.embedding(rows), self.shape.dropout, self.training)
        return dropout(self.filters(vectors, lengths), self.shape.dropout, self.training)

    def score(self, articles: Tensor, comments: Tensor) -> Tensor:
        """Compute conv(x, c) of encoded articles and comments [..., hidden], row by row: [...]."""
        return (articles * comments).sum(dim=-1) + self.bias


class Texts(NamedTuple):
    """Texts as rows of the table of words, one after the other."""

    rows: npt.NDArray[np.int32]  # of all words
    starts: IndexArray  # [n + 1]: text i has rows[starts[i] : starts[i + 1]], one or more

    def lengths(self) -> IndexArray:
        """Count the words of each text: [n]."""
        return np.diff(self.starts)

    def pad(self, texts: IndexArray, device: torch.device | str = "cpu") -> Padded:
        """Return some of the texts, padded to the longest of them."""
        starts, lengths = self.starts[texts], self.starts[texts + 1] - self.starts[texts]
        positions = np.arange(lengths.max(initial=1))
        indices = np.minimum(starts[:, None] + positions, len(self.rows) - 1)
        rows = np.where(positions < lengths[:, None], self.rows[indices], _PADDING).astype(np.int64)
        return torch.from_numpy(rows).to(device), torch.from_numpy(lengths).to(device)


def build_vocabulary(texts: Sequence[pl.Series], size: int, excluded: Sequence[str] = ("",)) -> list[str]:
    """List the most frequent words of lists of words, but for the excluded ones; ties are in alphabetical order."""
    words = pl.concat([part.explode().drop_nulls().rename("word") for part in texts]).to_frame()
    counts = words.filter(~pl.col("word").is_in(excluded)).group_by("word").len()
    return counts.sort("len", "word", descending=[True, False])["word"].head(size).to_list()


def number_words(texts: pl.Series, words: Sequence[str], longest: int) -> Texts:
    """Return the first words of each text as rows; a word not in `words` and an empty text are the unknown word."""
    head = pl.col("text").list.head(longest)
    first_words = pl.when(head.list.len() == 0).then([""]).otherwise(head)
    lists = texts.to_frame("text").select(first_words.alias("text"))["text"]
    numbers = np.arange(len(words)) + _UNKNOWN + 1
    rows = lists.explode().replace_strict(list(words), numbers, default=_UNKNOWN, return_dtype=pl.Int32)
    ends = lists.list.len().cast(pl.Int64).cum_sum().to_numpy()
    return Texts(rows.to_numpy(writable=True), np.concatenate([[0], ends]))


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
