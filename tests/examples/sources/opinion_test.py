"""ABSA, SemEval-2018 task 3, Snarks and R3, in small files of their layouts."""

import json
from pathlib import Path

import pytest

from pipeline.errors import BadInput
from pipeline.examples.sources import read
from tests.examples.sources.writing import jsonl, labels, reasons, text

HEADER = "Tweet index\tLabel\tTweet text\n"


def test_semeval(tmp_path: Path) -> None:
    """Ironic tweets are implicit; quotation marks enclose nothing; emoji files stand for their plain siblings."""
    for form in ("", "_emoji", "_emoji_ironyHashtags"):
        text(tmp_path / f"SemEval2018-T3-train-taskA{form}.txt", HEADER + f'1\t1\t"Lovely" rain &lt;3{form}\n')
    text(tmp_path / "SemEval2018-T3-train-taskB_emoji.txt", HEADER + "1\t2\tLovely rain\n")
    text(tmp_path / "SemEval2018-T3_gold_test_taskA.txt", HEADER + '1\t0\tA "dry day\n')
    data_set = read("semeval_irony", tmp_path)
    assert sorted(labels(data_set)) == [('"Lovely" rain <3_emoji', "implicit", None), ('A "dry day', "neither", None)]
    assert sorted(data_set.rows["prompt"].drop_nulls()) == ["irony_en"]
    task_b = text(tmp_path / "b.txt", HEADER.replace("i", "I") + "1\t3\tOne.\n2\t0\tTwo.\n3\t1\t \n")
    data_set = read("semeval_irony", task_b)
    assert [row[1] for row in labels(data_set)] == ["implicit", "neither"]
    assert reasons(data_set) == [("blank_text", "b.txt:3")]
    with pytest.raises(BadInput, match=r"b\.txt, line 2: field 'label' should be one of 0, 1, 2, 3 but is '4'"):
        read("semeval_irony", text(task_b, HEADER + "1\t4\tOne.\n"))


ABSA = """<sentences>
<sentence id="1"><text>It &quot;took&quot; an hour.</text><aspectTerms>
<aspectTerm term="it" implicit_sentiment="True"/><aspectTerm term="hour" polarity="conflict"/></aspectTerms></sentence>
<sentence id="2"><text>Good tea.</text><aspectTerms><aspectTerm implicit_sentiment="False"/></aspectTerms></sentence>
<sentence id="3"><text>Good tea, an hour.</text><aspectTerms><aspectTerm implicit_sentiment="False"/>
<aspectTerm implicit_sentiment="True"/></aspectTerms></sentence>
<sentence id="4"><text>We came.</text></sentence>
<sentence id="5"><text> </text><aspectTerms><aspectTerm implicit_sentiment="True"/></aspectTerms></sentence>
</sentences>
"""


def test_absa(tmp_path: Path) -> None:
    """A sentence all of whose marked aspects are implicit is implicit, one with both kinds dropped."""
    path = text(tmp_path / "Tea_Implicit_Labeled.xml", ABSA)
    data_set = read("absa", tmp_path)
    assert labels(data_set) == [('It "took" an hour.', "implicit", None), ("Good tea.", "explicit", None)]
    assert data_set.rows["prompt"].to_list() == ["review_en", None]
    assert reasons(data_set) == [
        (why, f"{path.name}:{n}") for n, why in ((3, "mixed"), (4, "no_label"), (5, "blank_text"))
    ]
    with pytest.raises(BadInput, match=r"line 4: field 'implicit_sentiment' should be True or False but is 'no'"):
        read("absa", text(path, ABSA.replace('"False"', '"no"', 1)))
    with pytest.raises(BadInput, match=r"line 5: field 'item_id' should be one that no other row has"):
        read("absa", text(path, ABSA.replace('id="3"', 'id="1"')))


BIG = {"input": "(a) I love waiting (for hours). (b) I hate waiting.", "target_scores": {"(a)": 1, "(b)": 0}}
HARD = {"input": "Which statement is sarcastic?\nOptions:\n(A) A dry day.\n(B) A\nfine flood.", "target": "(B)"}


def test_snarks(tmp_path: Path) -> None:
    """Both statements come out, the sarcastic one implicit, from BIG-bench and from BIG-Bench Hard."""
    data_set = read("snarks", text(tmp_path / "task.json", json.dumps({"name": "snarks", "examples": [BIG]}, indent=1)))
    assert labels(data_set) == [("I love waiting (for hours).", "implicit", None), ("I hate waiting.", "neither", None)]
    prompts = [("task.json:1a", "sarcasm_en"), ("task.json:1b", None)]
    assert data_set.rows.select("item_id", "prompt").rows() == prompts
    data_set = read("snarks", jsonl(tmp_path / "snarks.jsonl", HARD, {**HARD, "target": "(A)"}))
    assert [row[:2] for row in labels(data_set)] == [
        ("A dry day.", "neither"), ("A fine flood.", "implicit"), ("A dry day.", "implicit"),
        ("A fine flood.", "neither"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("example", "message"),
    [
        ("[]", "expected a JSON object"),
        ('{"examples": []}', "field 'examples' should be a list"),
        ('{"examples": [1]}', "example 1: expected an object"),
        (json.dumps({"examples": [BIG, {**BIG, "input": "one"}]}), "example 2: field 'input'"),
        (json.dumps({"examples": [{**BIG, "target_scores": {"(a)": 1, "(b)": 1}}]}), "example 1: expected one answer"),
        (json.dumps({"examples": [{**BIG, "target_scores": [1, 0]}]}), "example 1: expected one answer"),
        (json.dumps({"examples": [{"input": BIG["input"], "target": ["(A)"]}]}), "example 1: expected one answer"),
    ],
)
def test_snarks_bad_examples(tmp_path: Path, example: str, message: str) -> None:
    """What is not such an example is named."""
    with pytest.raises(BadInput, match=message) as caught:
        read("snarks", text(tmp_path / "task.json", example))
    assert "task.json" in str(caught.value)


def test_r3(tmp_path: Path) -> None:
    """Lines of two files belong together."""
    text(tmp_path / "non-sarcastic.txt", "It rains.\nI lost.\nIt is late.\n")
    text(tmp_path / "human-sarcasm.txt", "Lovely weather.\n I lost. \n")
    with pytest.raises(BadInput, match=r"human-sarcasm\.txt: expected 3 lines as in non-sarcastic\.txt, found 2"):
        read("r3", tmp_path)
    text(tmp_path / "human-sarcasm.txt", "Lovely weather.\n I lost. \nSo early.")
    data_set = read("r3", tmp_path)
    assert labels(data_set) == [("Lovely weather.", "implicit", "It rains."), ("So early.", "implicit", "It is late.")]
    assert reasons(data_set) == [("same_text", "human-sarcasm.txt:2")]
    with pytest.raises(BadInput, match="expected a folder with"):
        read("r3", tmp_path / "human-sarcasm.txt")
