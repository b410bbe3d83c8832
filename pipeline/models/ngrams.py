"""A linear classifier of what a text is made of: its n-grams, its length, and what it repeats of its context.

Little of it can be overfitted, so on a few thousand labelled comments it is the part of a recogniser that carries. The
n-grams are those of characters, one to three, and of words, one and two; either kind is weighted by sublinear TF-IDF
and has length one, which n-grams that no text learnt from holds take no share of.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix
    from sklearn.feature_extraction.text import TfidfVectorizer

Floats = npt.NDArray[np.float64]
Cut = Callable[[str], list[str]]

FOLDS = 5
SURFACE = 3  # numbers of a text beside its n-grams
_LONG = 32  # characters; lengths are told in this unit, so that they are about as large as the n-grams' weights


class Ngrams(NamedTuple):
    """The classifier."""

    grams: tuple[list[str], list[str]]  # of characters, and of words
    rarity: Floats  # inverse document frequencies, of both
    weights: Floats  # [n-grams + SURFACE, classes]
    bias: Floats  # [classes]

    def logits(self, texts: Sequence[str], contexts: Sequence[str], cut: Cut) -> Floats:
        """Logits [n, classes] of texts in their contexts; `cut` gives the words of a text."""
        readers = _readers(cut)
        bounds = (0, len(self.grams[0]), len(self.rarity))
        for reader, grams, (start, end) in zip(readers, self.grams, pairwise(bounds), strict=True):
            reader.vocabulary = grams
            if grams:
                reader.idf_ = self.rarity[start:end]
        found: Floats = _rows(readers, texts, contexts) @ self.weights + self.bias
        return found


def fit(
    texts: Sequence[str], contexts: Sequence[str], labels: npt.NDArray[np.int64], cut: Cut, *, least: int = 2,
    penalty: float = 0.5, is_weighted: bool = True, seed: int = 42,
) -> tuple[Ngrams, Floats]:  # fmt: skip
    """A multinomial logistic regression, and its logits of each text when the text was not learnt from.

    A classifier knows the texts it has learnt from by heart; whatever learns from its answers must see those it gives
    to texts it does not know. So the second result is cross-fitted, in folds that keep a context on one side.

    Args:
        texts: n of them.
        contexts: what each stands in; may be empty.
        labels: [n], numbers of the classes, each of which occurs.
        cut: gives the words of a text.
        least: texts that an n-gram stands in.
        penalty: on the squares of the weights.
        is_weighted: whether all classes weigh the same.
        seed: of the folds.

    Returns:
        The classifier, and [n, classes].
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedGroupKFold

    readers = _readers(cut, least)
    known = [reader for reader in readers if _fits(reader, texts)]
    rows = _rows(known, texts, contexts)
    classes = int(labels.max()) + 1

    def learnt(at: npt.NDArray[np.int64]) -> tuple[Floats, Floats]:
        model = LogisticRegression(C=1 / penalty, class_weight="balanced" if is_weighted else None, max_iter=1000)
        model.fit(rows[at], labels[at])
        if classes == 2:  # told as one column: that of the second class against the first
            return np.concatenate([-model.coef_, model.coef_]).T / 2, np.array([-1, 1]) * model.intercept_ / 2
        return model.coef_.T, model.intercept_

    weights, bias = learnt(np.arange(len(texts)))
    grams = tuple(list(reader.get_feature_names_out()) if reader in known else [] for reader in readers)
    rarity = np.concatenate([np.empty(0), *(reader.idf_ for reader in known)])
    unseen = np.zeros((len(texts), classes))
    groups = np.unique([context or f"\0{row}" for row, context in enumerate(contexts)], return_inverse=True)[1]
    folds = min(FOLDS, len(set(groups)), int(np.bincount(labels).min()))
    parts = (
        StratifiedGroupKFold(folds, shuffle=True, random_state=seed).split(rows, labels, groups) if folds > 1 else ()
    )
    for train, held_out in parts:
        if len(set(labels[train])) == classes:  # else nothing is known of these texts, which zeros say
            of_fold = learnt(train)
            unseen[held_out] = rows[held_out] @ of_fold[0] + of_fold[1]
    return Ngrams((grams[0], grams[1]), rarity, weights, bias), unseen


def _readers(cut: Cut, least: int = 1) -> "list[TfidfVectorizer]":
    from sklearn.feature_extraction.text import TfidfVectorizer

    def of_words(text: str) -> list[str]:
        words = cut(text)
        return [*words, *("\t".join(pair) for pair in pairwise(words))]

    kinds: list[dict[str, Any]] = [{"analyzer": "char", "ngram_range": (1, 3)}, {"analyzer": of_words}]
    return [TfidfVectorizer(**kind, sublinear_tf=True, min_df=least) for kind in kinds]


def _fits(reader: "TfidfVectorizer", texts: Sequence[str]) -> bool:
    """Learn the n-grams of texts; False if none stands in as many as it should."""
    try:
        reader.fit(texts)
    except ValueError:
        return False
    return True


def _rows(readers: "Sequence[TfidfVectorizer]", texts: Sequence[str], contexts: Sequence[str]) -> "csr_matrix":
    from scipy.sparse import csr_matrix, hstack

    surface = [_surface(text, context) for text, context in zip(texts, contexts, strict=True)]
    numbers = csr_matrix(np.array(surface, np.float64).reshape(-1, SURFACE))
    return hstack([*(reader.transform(texts) for reader in readers if reader.vocabulary != []), numbers], format="csr")


def _surface(text: str, context: str) -> tuple[float, float, float]:
    own = set(text)
    return len(text) / _LONG, float(np.log1p(len(text))), len(own & set(context)) / max(1, len(own))
