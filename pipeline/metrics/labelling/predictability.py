"""How well a plain classifier predicts labels from words: the third reliability number of CSD's table 2 (CSD-17).

The paper leaves open features, kernel and averaging. Here: TF-IDF of single words and pairs, a linear kernel, and macro
F1, the one that puts skewed labels near 0.5. The majority class alone reaches nearly as much, so its F1 is given too.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from pipeline.errors import BadInput
from pipeline.label.schema import FIELDS

FOLDS = 5
SEED = 42


class Predictability(NamedTuple):
    """Macro F1 as the mean over folds, in [0, 1]; None where fewer than two classes remain."""

    svm_f1: float | None
    majority_f1: float | None  # of always predicting the commonest class: below 1 / class_count
    row_count: int  # rows measured on
    class_count: int
    left_out_count: int  # rows of classes with fewer members than folds


def svm_f1(tokens: Sequence[Sequence[str]], labels: Sequence[str]) -> Predictability:
    """Cross-validate a linear SVM in stratified folds; macro F1, with that of the majority class.

    A class with fewer members than folds cannot be in every fold; its rows are left out, and counted. Word weights
    are learnt on the training folds alone.

    `tokens` are the words of each text, already segmented (jieba for Chinese), and `labels` its class. BadInput if the
    texts have no words.
    """
    from sklearn.dummy import DummyClassifier
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.metrics import f1_score
    from sklearn.model_selection import StratifiedKFold, cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    members = Counter(labels)
    indices = [row for row, label in enumerate(labels) if members[label] >= FOLDS]
    truth = np.array([labels[row] for row in indices], dtype=str)
    classes = sorted(set(truth.tolist()))
    counts = len(indices), len(classes), len(labels) - len(indices)
    if len(classes) < 2:
        return Predictability(None, None, *counts)
    # words and pairs of neighbours, joined by a tab, which no word contains
    ngrams = [[*tokens[row], *map("\t".join, pairwise(tokens[row]))] for row in indices]
    if not any(ngrams):
        raise BadInput(f"expected words to learn from, found none in {len(indices)} texts")

    models = (
        make_pipeline(TfidfVectorizer(analyzer=list), LinearSVC(random_state=SEED)),
        DummyClassifier(strategy="most_frequent"),
    )
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=SEED)

    def score(model: Any, texts: list[list[str]], labels: np.ndarray) -> float:
        return float(f1_score(labels, model.predict(texts), labels=classes, average="macro", zero_division=0))

    scores = [cross_val_score(model, ngrams, truth, scoring=score, cv=folds, error_score="raise") for model in models]
    svm_score, majority_score = (round(float(model_scores.mean()), 6) for model_scores in scores)
    return Predictability(svm_score, majority_score, *counts)


def measure_fields(tokens: Sequence[Sequence[str]], labels: pl.DataFrame) -> pl.DataFrame:
    """Compute `svm_f1` of each field, over the comments that have a label for it.

    `labels` has a row a comment in the order of `tokens`, a column a field of the schema, null where there is no label.

    Returns field and the columns of `Predictability`, in the schema's order.
    """
    rows = []
    for field in FIELDS:
        if field in labels.columns:
            labelled_rows = labels[field].is_not_null().arg_true()
            field_labels = labels[field].gather(labelled_rows).cast(pl.String).to_list()
            rows.append((field, *svm_f1([tokens[row] for row in labelled_rows], field_labels)))
    numbers, counts = Predictability._fields[:2], Predictability._fields[2:]
    schema = {"field": pl.String} | dict.fromkeys(numbers, pl.Float64) | dict.fromkeys(counts, pl.Int64)
    return pl.DataFrame(rows, schema=schema, orient="row")


def predict_baselines(
    texts: Sequence[str], labels: Sequence[str], test_texts: Sequence[str], seed: int = SEED
) -> dict[str, list[str]]:
    """Predict the class of each test text by the majority class and by a linear SVM.

    The SVM sees TF-IDF of characters and their neighbours, one to three, which needs no tokenizer and in short Chinese
    texts holds the words; classes weigh the same.

    Returns majority and svm: a class for each test text.
    """
    from sklearn.dummy import DummyClassifier
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    vectorizer = TfidfVectorizer(analyzer="char", ngram_range=(1, 3), sublinear_tf=True)
    models = {
        "majority": DummyClassifier(strategy="most_frequent"),  # of equally common classes the first
        "svm": make_pipeline(vectorizer, LinearSVC(class_weight="balanced", random_state=seed)),
    }
    predictions = {name: model.fit(texts, labels).predict(test_texts) for name, model in models.items()}
    return {name: [str(label) for label in classes] for name, classes in predictions.items()}
