"""Reading whether a text is problematic from answers (IMP-42)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.llm.questions import problematic

LABELS = ["Answer: ", "answer:\n", "**Answer:** ", "**Answer**: ", "答案：", "**答案：**", '"Answer: ']


@pytest.mark.parametrize(
    ("answers", "read"),
    [
        (["yes", "Yes", "YES.", " yes\n", '"Yes"', "**Yes**", "Yes, because", "Yes!", "yes, no doubt", "(yes)"], "yes"),
        (["是", "是。", "是的", "“是”", "是，因为", "有", "有问题。"], "yes"),
        (["no", "No", "NO.", "'no'", "No, it is", "No problem", "*no*", "No\nYes"], "no"),
        (["否", "否。", "不是", "「否」", "没有", "没有问题。"], "no"),
        (["", " ", "maybe", "I can't", "I cannot help", "not sure", "nothing", "yesterday", "yes and no", "Yes/No",
          "yes or no", "no/yes", "是否", "不确定", "是或否", "是/否", "As an AI", "None", "eyes", "The answer is yes"],
         "other"),
        ([label + reply for label in LABELS for reply in ("Yes.", "是的。")], "yes"),
        ([label + reply for label in LABELS for reply in ("**no**", "没有问题")], "no"),
        (["Answer:", "Answer: maybe", "Answer yes", "Answering: yes", "答案不是", "答案：是否"], "other"),
        (["<think>No, wait, it mocks them.</think>\n\nYes"], "yes"),
        (["<think>\nYes?\n</think>Answer: no", "Yes, I think it does. But no.</think>否"], "no"),
        (["<think>Yes, because", "<think></think>"], "other"),
    ],
)  # fmt: skip
def test_answers(answers: list[str], read: problematic.Answer) -> None:
    """The first word tells, in any case and marks, behind a label or a thought; what is neither, or both, is other."""
    assert {answer: problematic.parse(answer) for answer in answers} == dict.fromkeys(answers, read)


@given(st.text())
def test_any_answer_is_one_of_three(answer: str) -> None:
    """Whatever a model says is yes, no or other."""
    assert problematic.parse(answer) in {"yes", "no", "other"}
