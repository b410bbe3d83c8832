"""Subtext recognition: does a sentence mean more in its context than it says (CSD, appendix A.2, algorithm 1).

    f_c, f_s = FeaExt(e_c), FeaExt(e_s)          an LSTM over the vectors of the tokens (CSD-28, CSD-29)
    m_s  = Mean(f_s),  m_cs = Mean([f_c ; f_s])  linear, each of its own width (CSD-30)
    p    = softmax(cls [m_s : m_cs])

Algorithm 1 as printed applies Mean to e and so never uses f; here it is f, and the LSTM learns (errata E10).

As Mean and cls are linear, a logit is g(s) + h(c): a context shifts all sentences alike, and no context can make the
one of two sentences ironic and another the other. The comparison `product` joins m_s ⊙ m_cs, which can.

Beside it a linear classifier of a text's n-grams, length, and overlap with its context, which hardly overfits: n-grams
of one to three characters and of one and two words, each kind in sublinear TF-IDF normalised to length one.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn.functional import dropout
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix
    from sklearn.feature_extraction.text import TfidfVectorizer

Pooling = Literal["last", "mean", "max", "attention"]
Comparison = Literal["linear", "product"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The sizes of a recogniser."""

    hidden: int = 128  # of the LSTM, to either side
    meaning: int = 64  # of m_s and of m_cs
    pooling: Pooling = "last"
    is_bidirectional: bool = False
    dropout: float = 0.0
    comparison: Comparison = "linear"


class Subtext(nn.Module):
    """FeaExt, Mean and cls of algorithm 1. Weights are drawn from torch's global source."""

    def __init__(self, dim: int, classes: int, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        features = shape.hidden * (2 if shape.is_bidirectional else 1)
        self.extract = nn.LSTM(dim, shape.hidden, batch_first=True, bidirectional=shape.is_bidirectional)
        if shape.pooling == "attention":
            self.attend = nn.Linear(features, 1)
        self.alone = nn.Linear(features, shape.meaning)
        self.together = nn.Linear(2 * features, shape.meaning)
        self.compare = nn.Linear((2 if shape.comparison == "linear" else 3) * shape.meaning, classes)

    def features(self, vectors: Tensor, lengths: Tensor) -> Tensor:
        """FeaExt: [n, f] of padded token vectors [n, t, d], of which the first `lengths` [n], 1 or more, count."""
        packed = pack_padded_sequence(self._drop_out(vectors), lengths, batch_first=True, enforce_sorted=False)
        states, (last, _) = self.extract(packed)
        if self.shape.pooling == "last":
            return self._drop_out(last.transpose(0, 1).flatten(1))
        states, _ = pad_packed_sequence(states, batch_first=True)
        outside = (torch.arange(states.shape[1]) >= lengths.unsqueeze(1)).unsqueeze(2)
        if self.shape.pooling == "max":
            pooled = states.masked_fill(outside, -torch.inf).amax(dim=1)
        elif self.shape.pooling == "mean":
            pooled = states.masked_fill(outside, 0).sum(dim=1) / lengths.unsqueeze(1)
        else:
            pooled = (self.attend(states).masked_fill(outside, -torch.inf).softmax(dim=1) * states).sum(dim=1)
        return self._drop_out(pooled)

    def forward(self, sentence: tuple[Tensor, Tensor], context: tuple[Tensor, Tensor]) -> Tensor:
        """Compute logits [n, classes] of sentences in contexts: vectors [n, t, d], zeros if empty, and lengths [n]."""
        f_s, f_c = self.features(*sentence), self.features(*context)
        m_s, m_cs = self.alone(f_s), self.together(torch.cat([f_c, f_s], dim=1))
        product = [m_s * m_cs] if self.shape.comparison == "product" else []
        logits: Tensor = self.compare(torch.cat([m_s, m_cs, *product], dim=1))
        return logits

    def _drop_out(self, values: Tensor) -> Tensor:
        return dropout(values, self.shape.dropout, self.training)


Floats = npt.NDArray[np.float64]
Cut = Callable[[str], list[str]]
FOLDS = 5
SURFACE = 3  # numbers of a text in addition to its n-grams
_LONG = 32  # characters; lengths have this unit, so that they are about as large as the n-grams' weights


class Ngrams(NamedTuple):
    """The classifier."""

    grams: tuple[list[str], list[str]]  # of characters, and of words
    rarity: Floats  # inverse document frequencies, of both
    weights: Floats  # [n-grams + SURFACE, classes]
    bias: Floats  # [classes]

    def logits(self, texts: Sequence[str], contexts: Sequence[str], cut: Cut) -> Floats:
        """Compute logits [n, classes] of texts in their contexts; `cut` splits a text into words."""
        vectorizers = _make_vectorizers(cut)
        bounds = (0, len(self.grams[0]), len(self.rarity))
        for vectorizer, grams, (start, end) in zip(vectorizers, self.grams, pairwise(bounds), strict=True):
            vectorizer.vocabulary = grams
            if grams:
                vectorizer.idf_ = self.rarity[start:end]
        return np.asarray(_make_rows(vectorizers, texts, contexts) @ self.weights + self.bias)


def fit_ngrams(
    texts: Sequence[str],
    contexts: Sequence[str],
    labels: npt.NDArray[np.int64],
    cut: Cut,
    *,
    least: int = 2,
    penalty: float = 0.5,
    is_weighted: bool = True,
    seed: int = 42,
) -> tuple[Ngrams, Floats]:
    """Fit a multinomial logistic regression; return it and its held-out logits of each text: [n, classes].

    A model that learns from its logits must see held-out ones. They are cross-fitted, in folds, drawn by the seed, that
    keep the texts of a context together. Labels [n] are numbers of the classes, each of which occurs. `cut` splits a
    text into words; n-grams of fewer than `least` texts are left out. The penalty is on the squares of the weights.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedGroupKFold

    vectorizers = _make_vectorizers(cut, least)
    usable = []
    for vectorizer in vectorizers:
        with suppress(ValueError):  # no n-gram occurs in enough of the texts
            usable.append(vectorizer.fit(texts))
    rows = _make_rows(usable, texts, contexts)
    classes = int(labels.max()) + 1

    def train_classifier(indices: npt.NDArray[np.int64]) -> tuple[Floats, Floats]:
        model = LogisticRegression(C=1 / penalty, class_weight="balanced" if is_weighted else None, max_iter=1000)
        model.fit(rows[indices], labels[indices])
        if classes == 2:  # scikit-learn returns one column: the second class against the first
            return np.concatenate([-model.coef_, model.coef_]).T / 2, np.array([-1, 1]) * model.intercept_ / 2
        return model.coef_.T, model.intercept_

    weights, bias = train_classifier(np.arange(len(texts)))
    characters, words = (list(v.get_feature_names_out()) if v in usable else [] for v in vectorizers)
    rarity = np.concatenate([np.empty(0), *(vectorizer.idf_ for vectorizer in usable)])
    held_out_logits = np.zeros((len(texts), classes))
    groups = np.unique([context or f"\0{row}" for row, context in enumerate(contexts)], return_inverse=True)[1]
    folds = min(FOLDS, len(set(groups)), int(np.bincount(labels).min()))
    splitter = StratifiedGroupKFold(max(folds, 2), shuffle=True, random_state=seed)
    for train, held_out in splitter.split(rows, labels, groups) if folds > 1 else ():
        if len(set(labels[train])) == classes:  # else the logits stay 0: nothing is known of these texts
            fold_weights, fold_bias = train_classifier(train)
            held_out_logits[held_out] = rows[held_out] @ fold_weights + fold_bias
    return Ngrams((characters, words), rarity, weights, bias), held_out_logits


def _make_vectorizers(cut: Cut, least: int = 1) -> "list[TfidfVectorizer]":
    from sklearn.feature_extraction.text import TfidfVectorizer

    def list_word_grams(text: str) -> list[str]:
        words = cut(text)
        return [*words, *("\t".join(pair) for pair in pairwise(words))]

    options: list[dict[str, Any]] = [{"analyzer": "char", "ngram_range": (1, 3)}, {"analyzer": list_word_grams}]
    return [TfidfVectorizer(**option, sublinear_tf=True, min_df=least) for option in options]


def _make_rows(vectorizers: "Sequence[TfidfVectorizer]", texts: Sequence[str], contexts: Sequence[str]) -> "csr_matrix":
    from scipy.sparse import csr_matrix, hstack

    surface = [
        (len(text) / _LONG, np.log1p(len(text)), len(set(text) & set(context)) / max(1, len(set(text))))
        for text, context in zip(texts, contexts, strict=True)
    ]
    numbers = csr_matrix(np.array(surface, np.float64).reshape(-1, SURFACE))
    grams = [vectorizer.transform(texts) for vectorizer in vectorizers if vectorizer.vocabulary != []]
    return hstack([*grams, numbers], format="csr")
