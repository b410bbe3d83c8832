"""Implicatures, ImpPres, LUDWIG and PDTB, in small files of their layouts."""

from pathlib import Path

import pytest

from pipeline.errors import BadInput
from pipeline.examples.sources import SOURCES, published, read
from tests.examples.sources.writing import jsonl, labels, reasons, table, text


def test_the_worked_example_of_table_7(tmp_path: Path) -> None:
    """Question and answer are laid out as in Table 7 (IMP-17), and a model is asked for the explicit answer."""
    path = table(
        tmp_path / "implicature_1-1001.csv", ("Implicature", "Response utterance", "Context utterance"),
        ("Yes.", "Is the pope Catholic?", "Do you expect Sheila to be late for the party tonight?"),
        ("Yes.", " ", "Is it late?"), ("", "It is\n  dark. ", "\nIs it late?"),
    )  # fmt: skip
    data_set = read("implicatures", path)
    assert labels(data_set) == [
        ("- Do you expect Sheila to be late for the party tonight? - Is the pope Catholic?", "implicit", None),
        ("- Is it late? - It is dark.", "implicit", None),
    ]
    assert data_set.rows["prompt"].to_list() == ["dialogue_en"] * 2
    assert reasons(data_set) == [("blank_text", f"{path.name}:2")]
    path = table(tmp_path / "b" / "implicatures.csv", ("context", "response"), ("Late?", "Dark."))  # as of tasksource
    assert labels(read("implicatures", path.parent)) == [("- Late? - Dark.", "implicit", None)]


def test_ludwig(tmp_path: Path) -> None:
    """Fields may span lines; the explicit form is the same question with the implicature as its answer."""
    header = ("Context utterance", "Response utterance", "Implicature")
    table(tmp_path / "dev_conversational_implicatures.csv", header, ("Is it\nlate?", "It is dark.", "Yes.\n"))
    table(
        tmp_path / "test_conversational_implicatures.csv", header, ("Cold?", "No.", "No."), ("Cold?", "Brr.", ""),
        ("Cold?", "Brr.", "Yes. It is."),
    )  # fmt: skip
    data_set = read("ludwig", tmp_path)
    assert labels(data_set) == [
        ("- Is it late? - It is dark.", "implicit", "- Is it late? - Yes."),
        ("- Cold? - Brr.", "implicit", "- Cold? - Yes. It is."),
    ]
    name = "test_conversational_implicatures.csv"
    assert reasons(data_set) == [("same_text", f"{name}:1"), ("no_explanation", f"{name}:2")]
    assert SOURCES["ludwig"].prompt is None
    assert SOURCES["implicatures"].prompt == published.LUDWIG_ALTERNATIVE


def item(relation: str, log: str, prag: str) -> dict[str, str]:
    sentences = {"sentence1": "The tea is warm.", "sentence2": "The tea is not hot.", "item_type": "target"}
    return {**sentences, "gold_label_log": log, "gold_label_prag": prag, "spec_relation": relation}


def test_imppres(tmp_path: Path) -> None:
    """Only implicatures from the weaker word to the stronger are pairs, as in Table 7; three files are expected."""
    rows = [item("implicature_PtoN", "neutral", "entailment"), item("implicature_NtoP", "neutral", "entailment"),
            item("negated implicature_P", "neutral", "contradiction"),
            item("reverse negated implicature_P", "entailment", "contradiction")]  # fmt: skip
    for name in ("gradable_adjective", "gradable_verb"):
        jsonl(tmp_path / f"{name}.jsonl", *rows)
    with pytest.raises(BadInput, match=r"holds no modals\.jsonl"):
        read("imppres", tmp_path)
    jsonl(tmp_path / "modals.jsonl", *rows)
    data_set = read("imppres", tmp_path)
    assert labels(data_set) == [("The tea is warm.", "implicit", "The tea is not hot.")] * 3
    assert data_set.rows["item_id"][2] == "modals.jsonl:1"
    assert [reason for reason, _ in reasons(data_set)] == ["reversed", "no_implicature", "no_implicature"] * 3
    bad = jsonl(tmp_path / "bad.jsonl", rows[0], item("implicature_PtoN", "perhaps", "entailment"))
    with pytest.raises(BadInput, match=r"bad\.jsonl, line 2: field 'gold_label_log' should be one of entailment"):
        read("imppres", bad)


RTE = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE entailment-corpus SYSTEM "rte.dtd">
<entailment-corpus>
  <pair id="7" entailment="YES" task="PDTB"><t>The cups &amp; pots are <b>all</b>
    packed.</t><h>We move.</h></pair>
  <pair id="8" entailment="NO"><t>It rains.</t><h>It is Monday.</h></pair>
  <pair id="9" entailment="YES"><t>It rains.</t><h> </h></pair>
  <pair id="10"><t>It rains.</t><h>It is wet.</h></pair>
</entailment-corpus>
"""


def test_pdtb(tmp_path: Path) -> None:
    """Entailing pairs are implicit with their hypothesis as the explicit form, from XML and from a table."""
    data_set = read("pdtb", text(tmp_path / "pairs.xml", RTE).parent)
    assert labels(data_set) == [("The cups & pots are all packed.", "implicit", "We move.")]
    assert data_set.rows["item_id"].to_list() == ["pairs.xml:7"]
    whys = ("not_entailing", "no_explanation", "no_label")
    assert reasons(data_set) == [(why, f"pairs.xml:{n}") for n, why in enumerate(whys, 8)]
    rows = [("TRUE", "We move.", "All is packed."), ("false", "It is Monday.", "It rains.")]
    data_set = read("pdtb", table(tmp_path / "pairs.csv", ("entailment", "hypothesis", "text"), *rows))
    assert labels(data_set) == [("All is packed.", "implicit", "We move.")]
    with pytest.raises(BadInput, match=r"pairs\.xml, line 6: field 'entailment' should be one of"):
        read("pdtb", text(tmp_path / "pairs.xml", RTE.replace('"NO"', '"MAYBE"')))
