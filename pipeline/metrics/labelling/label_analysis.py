"""What labels look like together: ratios of classes, overlap and correlation of fields (CSD, figures 1 to 3).

In: a row a comment, a column a field of the schema, its values as text, null where there is none; other columns are
passed over. Whatever compares two fields does so over the comments that have both.

And how well words predict them, the third reliability number of table 2 (CSD-17). The paper leaves open features,
kernel and averaging. Here: TF-IDF of single words and pairs, a linear kernel, and macro F1, the one that puts skewed
labels near 0.5. The majority class alone reaches nearly as much, so its F1 is given too.
"""

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import scipy

from pipeline.errors import BadInput
from pipeline.label.schema import FIELDS, UNSURE, YES
from pipeline.metrics.labelling.agreement import encode_values


def class_ratios(labels: pl.DataFrame) -> pl.DataFrame:
    """Count how often each value of each field was given (figure 1; CSD-25).

    Returns field, value, count, ratio: a row for every value of the schema, also those never given, in its order.
    Ratios of a field sum to 1; they are null where it has no labels.
    """
    parts = []
    for field, codes in _encode_fields(labels).items():
        values = FIELDS[field].values
        count = np.bincount(codes.drop_nulls().to_numpy(), minlength=len(values))
        parts.append(pl.DataFrame({"field": field, "value": values, "count": count.astype(np.int64)}))
    ratio = pl.col("count") / pl.col("count").sum().over("field")
    return pl.concat(parts).with_columns(ratio=ratio.fill_nan(None))


def overlaps(labels: pl.DataFrame) -> pl.DataFrame:
    """Count how many instances of one field are instances of another (figure 2; CSD-26).

    An instance is a comment labelled `1`; in sentiment, one that is not neutral; in emotion, one that shows any. The
    paper does not say what it divides by: here are both directions, as the rows (a, b) and (b, a), and Jaccard's index.

    Returns a, b, both_count |A∩B|, a_count |A|, b_count |B|, overlap |A∩B|/|A|, jaccard |A∩B|/|A∪B|: a row for each
    ordered pair of fields, each with itself too; null where it would divide by 0.
    """
    instances = {field: _is_instance(field, codes) for field, codes in _encode_fields(labels).items()}
    pairs = _pair_fields(instances)
    rows = [(a, b, (first & second).sum(), first.sum(), second.sum()) for a, b, first, second in pairs]
    shared_count, a_count, b_count = (pl.col(name) for name in ("both_count", "a_count", "b_count"))
    return pl.DataFrame(rows, schema=["a", "b", "both_count", "a_count", "b_count"], orient="row").with_columns(
        overlap=(shared_count / a_count).fill_nan(None).round(6),
        jaccard=(shared_count / (a_count + b_count - shared_count)).fill_nan(None).round(6),
    )


def correlations(labels: pl.DataFrame) -> pl.DataFrame:
    """Compute Spearman's rank correlation of each pair of fields, tied ranks averaged (figure 3; CSD-27).

    Values are ranked -1, 0, 1. Emotions have no order: any of them counts as 1, `None` as -1.

    Returns a, b, spearman, n (comments with both): a row for each ordered pair of fields, each with itself too; null
    where a field is constant or fewer than two comments have both.
    """
    ranks = {field: _rank_values(field, codes) for field, codes in _encode_fields(labels).items()}
    rows = []
    for a, b, first, second in _pair_fields(ranks):
        is_varied = first.n_unique() > 1 and second.n_unique() > 1
        rho = float(scipy.stats.spearmanr(first.to_numpy(), second.to_numpy()).statistic) if is_varied else None
        rows.append((a, b, rho, len(first)))
    schema = {"a": pl.String, "b": pl.String, "spearman": pl.Float64, "n": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row").with_columns(pl.col("spearman").round(6))


def _encode_fields(labels: pl.DataFrame) -> dict[str, pl.Series]:
    return {field: encode_values(field, labels[field]) for field in FIELDS if field in labels.columns}


def _pair_fields(columns: dict[str, pl.Series]) -> Iterator[tuple[str, str, pl.Series, pl.Series]]:
    for a, b in itertools.product(columns, columns):
        has_both = columns[a].is_not_null() & columns[b].is_not_null()
        yield a, b, columns[a].filter(has_both), columns[b].filter(has_both)


def _is_instance(field: str, codes: pl.Series) -> pl.Series:
    values = FIELDS[field].values
    if field == "sentiment":
        return codes != values.index(UNSURE)
    return codes != values.index("None") if field == "emotion" else codes == values.index(YES)


def _rank_values(field: str, codes: pl.Series) -> pl.Series:
    if field == "emotion":
        return _is_instance(field, codes).cast(pl.Int8) * 2 - 1
    return codes.replace_strict([*range(3)], [int(value) for value in FIELDS[field].values], return_dtype=pl.Int8)


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

    svm = make_pipeline(TfidfVectorizer(analyzer=list), LinearSVC(random_state=SEED))
    models = svm, DummyClassifier(strategy="most_frequent")
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


def predict_baselines(texts: Sequence[str], labels: Sequence[str], test_texts: Sequence[str]) -> dict[str, list[str]]:
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
        "svm": make_pipeline(vectorizer, LinearSVC(class_weight="balanced", random_state=SEED)),
    }
    predictions = {name: model.fit(texts, labels).predict(test_texts) for name, model in models.items()}
    return {name: [str(label) for label in classes] for name, classes in predictions.items()}
