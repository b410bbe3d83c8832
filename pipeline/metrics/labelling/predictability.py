"""How well a plain classifier predicts labels from words: the third reliability number of CSD's table 2 (CSD-17).

The paper names scikit-learn's support vector machine, five-fold cross-validation and the fourth annotator's labels as
truth. It leaves open features, kernel and averaging. Here: TF-IDF of single words and pairs, a linear kernel, and
macro-averaged F1, the one that puts skewed labels near 0.5. On these the majority class alone reaches nearly as much,
so its F1 is given as well: a result that is not above it is no evidence.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import polars as pl

from pipeline.errors import BadInput
from pipeline.label.schema import FIELDS

FOLDS = 5
SEED = 42


class Predictability(NamedTuple):
    """Macro F1 as the mean over folds, in [0, 1]; None where fewer than two classes remain."""

    svm_f1: float | None
    majority_f1: float | None  # of always saying the commonest class: below 1 / class_count
    row_count: int  # rows measured on
    class_count: int
    left_out_count: int  # rows of classes with fewer members than folds


def svm_f1(
    tokens: Sequence[Sequence[str]], labels: Sequence[str], folds: int = FOLDS, seed: int = SEED
) -> Predictability:
    """Cross-validate a linear SVM in stratified folds; macro F1, with that of the majority class.

    A class with fewer members than folds cannot be in every fold; its rows are left out, and counted. Word weights
    are learnt on the training folds alone.

    Args:
        tokens: the words of each text, already cut (jieba for Chinese).
        labels: the class of each text.
        folds: parts, each tested once.
        seed: of the folds and the solver.

    Raises:
        BadInput: there are not as many labels as texts, or the texts have no words.
    """
    if len(tokens) != len(labels):
        raise BadInput(f"expected a label for each text, found {len(tokens)} texts and {len(labels)} labels")
    members = Counter(labels)
    indices = [row for row, label in enumerate(labels) if members[label] >= folds]
    truth = np.array([labels[row] for row in indices], dtype=object).astype(str)
    classes = sorted(set(truth.tolist()))
    counts = len(indices), len(classes), len(labels) - len(indices)
    if len(classes) < 2:
        return Predictability(None, None, *counts)
    words = [_ngrams(tokens[row]) for row in indices]
    if not any(words):
        raise BadInput(f"expected words to learn from, found none in {len(indices)} texts")
    svm, majority = _cross_validate(words, truth, classes, folds, seed)
    return Predictability(round(svm, 6), round(majority, 6), *counts)


def _ngrams(words: Sequence[str]) -> list[str]:
    """List words and pairs of neighbours, joined by a tab, which no word contains."""
    return [*words, *("\t".join(pair) for pair in pairwise(words))]


def _cross_validate(
    words: list[list[str]], truth: np.ndarray, classes: list[str], folds: int, seed: int
) -> tuple[float, float]:
    from sklearn.dummy import DummyClassifier
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.metrics import f1_score
    from sklearn.model_selection import StratifiedKFold
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    texts = np.empty(len(words), dtype=object)
    texts[:] = words
    models = (
        make_pipeline(TfidfVectorizer(analyzer=list), LinearSVC(random_state=seed)),
        DummyClassifier(strategy="most_frequent"),
    )
    fold_scores: tuple[list[float], list[float]] = ([], [])
    for train, test in StratifiedKFold(folds, shuffle=True, random_state=seed).split(texts, truth):
        for model, scores in zip(models, fold_scores, strict=True):
            predictions = model.fit(texts[train], truth[train]).predict(texts[test])
            scores.append(f1_score(truth[test], predictions, labels=classes, average="macro", zero_division=0))
    return float(np.mean(fold_scores[0])), float(np.mean(fold_scores[1]))


def measure_fields(tokens: Sequence[Sequence[str]], labels: pl.DataFrame, seed: int = SEED) -> pl.DataFrame:
    """Compute `svm_f1` of each field, over the comments that have a label for it.

    Args:
        tokens: the words of each comment.
        labels: a row a comment in the same order, a column a field of the schema, null where there is no label.
        seed: of the folds and the solver.

    Returns:
        field and the columns of `Predictability`, in the schema's order.
    """
    if len(tokens) != labels.height:
        raise BadInput(f"expected a row of labels for each text, found {len(tokens)} texts and {labels.height} rows")
    rows = []
    for field in FIELDS:
        if field in labels.columns:
            labelled_rows = labels[field].is_not_null().arg_true()
            field_labels = labels[field].gather(labelled_rows).cast(pl.String).to_list()
            rows.append((field, *svm_f1([tokens[row] for row in labelled_rows], field_labels, seed=seed)))
    numbers, counts = Predictability._fields[:2], Predictability._fields[2:]
    schema = {"field": pl.String} | dict.fromkeys(numbers, pl.Float64) | dict.fromkeys(counts, pl.Int64)
    return pl.DataFrame(rows, schema=schema, orient="row")


def predict_baselines(
    texts: Sequence[str], labels: Sequence[str], test_texts: Sequence[str], seed: int = SEED
) -> dict[str, list[str]]:
    """Predict the class of each test text by the majority class and by a linear SVM.

    The SVM sees TF-IDF of characters and their neighbours, one to three, which needs no tokenizer and in short Chinese
    texts holds the words; classes weigh the same.

    Args:
        texts: to learn from.
        labels: their classes.
        test_texts: texts to classify.
        seed: of the solver.

    Returns:
        majority and svm: a class for each text asked about.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    class_counts = Counter(labels).most_common()
    majority = min(name for name, count in class_counts if count == class_counts[0][1])
    model = make_pipeline(
        TfidfVectorizer(analyzer="char", ngram_range=(1, 3), sublinear_tf=True),
        LinearSVC(class_weight="balanced", random_state=seed),
    )
    model.fit(list(texts), list(labels))
    return {"majority": [majority] * len(test_texts), "svm": [str(label) for label in model.predict(list(test_texts))]}
