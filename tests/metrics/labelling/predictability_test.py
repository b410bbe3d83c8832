"""How well words foretell labels, on texts whose answer is known."""

import polars as pl
import pytest

from pipeline.errors import BadInput
from pipeline.metrics.labelling.label_analysis import measure_fields, predict_baselines, svm_f1

TOKENS = [["今天", "真", "好", str(i)] for i in range(20)] + [["雨", "下", "大", str(i)] for i in range(10)]
LABELS = ["1"] * 20 + ["-1"] * 10


def test_words_that_tell() -> None:
    """Where a word or a pair of words gives the class away F1 is 1; the majority alone reaches 2p/(1+p)/2."""
    actual = svm_f1(TOKENS, LABELS)
    assert actual == (1.0, pytest.approx(0.4, abs=1e-6), 30, 2, 0)
    texts = [["人", "咬", "狗"]] * 10 + [["狗", "咬", "人"]] * 10
    assert svm_f1(texts, ["a"] * 10 + ["b"] * 10).svm_f1 == 1
    texts = [["人咬", "狗"]] * 10 + [["人", "咬狗"]] * 10
    assert svm_f1(texts, ["a"] * 10 + ["b"] * 10).svm_f1 == 1


def test_rare_classes_are_left_out_and_counted() -> None:
    """A class of four cannot be in five folds; its rows are counted as left out, and the rest is as without them."""
    rare = svm_f1([*TOKENS, *[["雪"]] * 4], [*LABELS, *["0"] * 4])
    assert rare == (*svm_f1(TOKENS, LABELS)[:4], 4)
    assert svm_f1([*TOKENS, *[["雪"]] * 5], [*LABELS, *["0"] * 5]).class_count == 3


@pytest.mark.parametrize("labels", [["1"] * 30, ["1"] * 26 + ["0"] * 4, [str(i) for i in range(30)]])
def test_fewer_than_two_classes(labels: list[str]) -> None:
    """Nothing can be told apart: no F1; texts without words are refused."""
    actual = svm_f1(TOKENS, labels)
    assert actual[:2] == (None, None)
    assert actual.row_count + actual.left_out_count == 30
    with pytest.raises(BadInput, match="found none in 30 texts"):
        svm_f1([[]] * 30, LABELS)


def test_by_field() -> None:
    """A row a field in the schema's order, over the comments that have it; other columns are passed over."""
    labels = pl.DataFrame({"row_id": LABELS, "sarcasm": ["-1"] * 30, "subtext": [*LABELS[:-3], None, None, None]})
    actual = measure_fields(TOKENS, labels)
    assert actual.columns == ["field", "svm_f1", "majority_f1", "row_count", "class_count", "left_out_count"]
    assert actual["field"].to_list() == ["subtext", "sarcasm"]
    assert actual.row(0)[1:] == svm_f1(TOKENS[:27], LABELS[:27])
    assert actual.row(1)[1:] == (None, None, 30, 1, 0)


def test_baselines_of_a_classifier() -> None:
    """The majority is the commonest class, of equally common ones the first; the SVM learns what tells them apart."""
    texts = ["今天真冷", "今天真热", "猫在睡觉", "狗在睡觉"] * 3
    labels = ["1", "1", "0", "0"] * 3
    actual = predict_baselines(texts, labels, ["明天真冷", "猫在吃饭"])
    assert actual == {"majority": ["0", "0"], "svm": ["1", "0"]}
    assert predict_baselines([*texts, "好冷"], [*labels, "1"], ["猫"])["majority"] == ["1"]
