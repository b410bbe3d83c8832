"""Overlap of meanings and accuracy of choices, against sacrebleu and rouge-score and by properties (CSD-03)."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest
from scipy import stats

from pipeline.examples.subtext import contexts as examples
from pipeline.metrics import recovery
from pipeline.metrics.recovery import compare_choices, compare_overlap, measure_overlap

# computed by sacrebleu 2.6.0 (BLEU with lowercase, and effective_order for rows; tokenize zh, and 13a for English; chrF
# as it stands) and by rouge-score 0.1.2 given our units without marks as its tokenizer
ZH = [
    ("打印机坏了，所以报告还没写完。", ["报告没写完，因为打印机又坏了。"], (0.3846154, 0.2165196, 0.2304029)),
    ("他觉得这顿饭很难吃。", ["饭菜很难吃，他不会再来了。", "他觉得饭很难吃。"], (0.875, 0.5253820, 0.4978986)),
    ("别去", ["你最好别去那里"], (0.4444444, 0.0820850, 0.2676056)),
    ("", ["他不想来。"], (0, 0, 0)),
]
EN = [
    (
        "The report isn't done, because the printer broke.",
        ["The printer broke again, so the report isn't done."],
        (0.4705882, 0.3660550, 0.7000494),
    ),
    ("I don't want to go.", ["I do not want to go there.", "I'd rather not go."], (0.6666667, 0.3799178, 0.4890745)),
    ("no", ["No, thank you."], (0.5, 0.0183156, 0.1)),
]
CORPUS = {"zh": (0.4260150, 0.2523888, 0.2457462), "en": (0.5457516, 0.2845665, 0.5651707)}

QUESTIONS = pl.DataFrame(
    [
        ("好一个准时。", "他迟到了一小时", ["他迟到了，我很不满", "他很准时", "不"], [0]),
        ("真香。", None, ["饭很香", "他说过不吃，现在又吃了"], [1]),
        ("雨神来了。", "今天有雨", ["他一来就下雨", "他是雨神", "雨很大"], [0, 2]),
    ],
    schema={"text": pl.String, "context": pl.String, "options": pl.List(pl.String), "answers": pl.List(pl.Int64)},
    orient="row",
)


def overlap(answers: Sequence[str | None], references: Sequence[Sequence[str]]) -> tuple[float, ...]:
    actual = measure_overlap(answers, references)
    return tuple(actual[name] for name in recovery.METRICS)


@pytest.mark.parametrize(("rows", "lang"), [(ZH, "zh"), (EN, "en")])
def test_equals_sacrebleu_and_rouge_score(rows: list[tuple[str, list[str], tuple[float, ...]]], lang: str) -> None:
    """Each row and the corpus come to what the packages compute, several references and short texts among them."""
    for answer, references, expected in rows:
        assert overlap([answer], [references]) == pytest.approx(expected, abs=1e-6)
    assert overlap([answer for answer, *_ in rows], [row[1] for row in rows]) == pytest.approx(CORPUS[lang], abs=1e-6)


def test_no_answer_counts_as_an_empty_one() -> None:
    """A null answer counts as an empty one and is counted; a row without references is an error."""
    references = [["他迟到了"], ["他不想来"]]
    actual = measure_overlap([None, "他不想来"], references)
    assert (actual["row_count"], actual["null_count"], actual["rouge_l"]) == (2, 1, 0.5)
    assert {**actual, "null_count": 0} == measure_overlap(["", "他不想来"], references)
    assert overlap([None], [["他"]]) == (0, 0, 0)
    for answers, references in ((["他"], [[]]), (["他"], []), ([], [["他"]])):
        with pytest.raises(ValueError, match="expected references"):
            measure_overlap(answers, references)
    assert overlap([], []) == (0, 0, 0)


def test_baselines_by_hand() -> None:
    """Texts, contexts and the next meaning stand for answers; length, overlap and place for choices, by hand."""
    rows = pl.DataFrame({
        "text": ["他来了", "好"], "context": ["他不想来", None], "meanings": [["他不想来", "他很烦"], ["不好"]],
    })  # fmt: skip
    actual = {row["by"]: row for row in compare_overlap(rows).iter_rows(named=True)}
    assert actual["text"]["rouge_l"] == pytest.approx((4 / 7 + 2 / 3) / 2)
    assert actual["context"]["rouge_l"] == 0.5
    assert actual["other_meaning"]["rouge_l"] == pytest.approx((2 / 6 + 2 / 6) / 2)
    assert {name: row["null_count"] for name, row in actual.items()} == {"text": 0, "context": 1, "other_meaning": 0}
    actual = dict(compare_choices(QUESTIONS).select("by", "accuracy").iter_rows())
    assert actual == pytest.approx({
        "longest": 1.0,  # 他迟到了，我很不满; 他说过不吃，现在又吃了; 他一来就下雨
        "shortest": 1 / 3,  # 不; 饭很香; 雨很大
        "most_overlap": 0.0,  # 他很准时 3/4; 饭很香 1/3; 他是雨神 2/4
        "least_overlap": (0 + 1 + 1) / 3,  # 不 0; 他说过不吃，现在又吃了 0; 他一来就下雨 2/6 and 雨很大 1/3, both right
        "position": 2 / 3,  # the first
    })  # fmt: skip
    tied = QUESTIONS.head(1).with_columns(options=pl.Series([["甲", "乙", "丙"]]))
    assert compare_choices(tied).filter(by="longest")["accuracy"].item() == pytest.approx(1 / 3)


def test_choices_right_wrong_and_none() -> None:
    """Any right option will do; none is wrong and counted; chance is the mean share of right options."""
    actual = compare_choices(QUESTIONS, [0, None, 2]).row(0, named=True)
    assert actual["accuracy"] == pytest.approx(2 / 3)
    interval = stats.binomtest(2, 3).proportion_ci(method="wilson")
    assert (actual["low"], actual["high"]) == pytest.approx((interval.low, interval.high))
    assert actual["chance"] == pytest.approx((1 / 3 + 1 / 2 + 2 / 3) / 3)
    assert (actual["row_count"], actual["null_count"]) == (3, 1)
    assert compare_choices(QUESTIONS, [None] * 3)["accuracy"][0] == 0
    assert compare_choices(QUESTIONS, [1, 0, 9])["accuracy"][0] == 0
    assert compare_choices(QUESTIONS, [0, 1, 0]).row(0)[1:4] == (1, pytest.approx(0.4385, abs=1e-4), 1)


def test_what_the_published_choices_give_away(data: Path) -> None:
    """CN-SarcasmBench: the first option is right in 1,250 of 1,251 items, the longest in nine of ten (errata E23)."""
    choices = examples.read_sarcasm_bench(data / "cn_sarcasmbench_zh")
    actual = dict(compare_choices(choices).select("by", "accuracy").iter_rows())
    assert actual["position"] == pytest.approx(1250 / 1251)
    assert actual["longest"] == pytest.approx(0.9033, abs=5e-4)  # counted when this was written
    shuffled = dict(compare_choices(examples.shuffle_options(choices)).select("by", "accuracy").iter_rows())
    assert shuffled["position"] < 0.55
    assert shuffled["longest"] == pytest.approx(actual["longest"])
