"""Reading whether a text is problematic from answers (IMP-42)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.llm.questions import problematic


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
    ],
)  # fmt: skip
def test_answers(answers: list[str], read: problematic.Answer) -> None:
    """The first word tells, in any case and marks; what is neither, or both, is other."""
    assert {answer: problematic.parse(answer) for answer in answers} == dict.fromkeys(answers, read)


@pytest.mark.parametrize(
    "label", ["Answer: ", "answer:\n", "**Answer:** ", "**Answer**: ", "答案：", "**答案：**", '"Answer: ']
)
@pytest.mark.parametrize(("reply", "read"), [("Yes.", "yes"), ("**no**", "no"), ("是的。", "yes"), ("没有问题", "no")])
def test_a_label_is_passed_over(label: str, reply: str, read: problematic.Answer) -> None:
    """A label before the answer is no part of it."""
    assert problematic.parse(f"{label}{reply}") == read


@pytest.mark.parametrize("text", ["Answer:", "Answer: maybe", "Answer yes", "Answering: yes", "答案不是", "答案：是否"])
def test_labels_alone_say_nothing(text: str) -> None:
    """A label without yes or no, and a word that only begins like a label, are other."""
    assert problematic.parse(text) == "other"


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("<think>No, wait, it mocks them.</think>\n\nYes", "yes"),
        ("<think>\nYes?\n</think>Answer: no", "no"),
        ("Yes, I think it does. But no.</think>否", "no"),
        ("<think>Yes, because", "other"),
        ("<think></think>", "other"),
    ],
)
def test_reasoning_is_no_answer(text: str, read: problematic.Answer) -> None:
    """What a model thinks before it answers is passed over; all of it where the thinking was cut off."""
    assert problematic.parse(text) == read


@given(st.text())
def test_any_answer_is_one_of_three(answer: str) -> None:
    """Whatever a model says is yes, no or other."""
    assert problematic.parse(answer) in {"yes", "no", "other"}
