"""Tests of the distance, as rows of `studies` (NDD, sections 3 and 5)."""

import json
from pathlib import Path
from typing import get_args

import polars as pl
import pytest

from pipeline import left_out, sample, warehouse
from pipeline.metrics.ndd import pruning
from pipeline.metrics.ndd.predicates import Edit
from pipeline.tables import TABLES
from pipeline.tasks.ndd import compressions, distance, masked_lm
from pipeline.text import trees
from tests.support.rows.study_rows import KEY, select

DAY = sample.DAY
STATES = ("late", "cold", "shut", "new")


@pytest.fixture(scope="module")
def treebank() -> list[trees.Tree]:
    """Six sentences of the sample's treebank."""
    return distance.load_treebank(None, 6)


def build_pairs() -> pl.DataFrame:
    """Edits of eight sentences, of which the positive ones change nothing, and six graded pairs."""
    base = [f"the {thing} is {state} today".split() for thing in ("bus", "soup") for state in STATES]
    edits = [
        {"test": "lemma", "pair_id": f"{number}{label}", "sentence_id": str(number), "one": words,
         "other": words if label else ["a", "b", *words[2:]], "is_positive": label}
        for number, words in enumerate(base) for label in (True, False)
    ]  # fmt: skip
    graded = [
        {"test": "supervised", "pair_id": f"s{number}", "sentence_id": f"s{number}", "one": words,
         "other": [*words[:number], *["so"] * (5 - number)], "similarity": float(number), "overlap": number / 5}
        for number, words in enumerate(base[:6])
    ]  # fmt: skip
    return pl.DataFrame([*edits, *graded], infer_schema_length=None)


def test_similarities_prefer_the_nearer_edit() -> None:
    """Edits that change nothing are at distance 0, so NDD separates all pairs; quantiles are of its distances."""
    rows = distance.measure_similarity(build_pairs(), DAY, None, None, "mean")
    TABLES["studies"].schema.validate(rows)
    accuracy = select(rows.filter(subset="lemma", metric="paired_accuracy"), measure="ndd").row(0, named=True)
    assert (accuracy["value"], accuracy["row_count"]) == (1.0, 8)
    assert select(rows.filter(subset="lemma", metric="pearson"), measure="ndd")["value"].item() > 0.5
    quantiles = select(rows.filter(pl.col("metric").str.starts_with("q")), measure="ndd")
    assert set(quantiles.filter(subset="lemma:positive")["value"]) == {0.0}
    assert quantiles.filter(subset="lemma:negative", metric="q000")["value"].item() > 0
    assert {json.loads(text)["measure"] for text in rows["setting"]} == {"ndd", "ndd_kl", "perplexity"}
    assert "overlap>0.1" in set(rows["subset"])
    model = masked_lm.load_model().model.signature + "|divergence:hellinger|weights:mean"
    assert select(rows, model=model).height == rows.height
    summary = distance.summarize_tests(rows)  # without quantiles, curves or empty columns
    assert summary.columns == ["subset", "measure", "metric", "value", "low", "high", "n"]
    assert set(summary["metric"]) == {"pearson", "paired_accuracy"}
    assert set(summary["subset"]) <= {"lemma", "supervised"}


@pytest.mark.usefixtures("tables")
def test_another_model_replaces_the_numbers(treebank: list[trees.Tree], count_folder: str) -> None:
    """A study has the rows of the last run, whatever the model of earlier rows."""
    signatures = {ref: masked_lm.load_model(ref).model.signature for ref in (None, count_folder)}
    assert len({*signatures.values()}) == 2
    for ref, signature in signatures.items():
        rows = distance.measure_predicates(treebank, DAY, ref)
        compressions.replace_study("predicates", rows, DAY)
        all_rows = warehouse.scan("studies").collect()
        assert all_rows.height == rows.height
        assert not all_rows.select(KEY).is_duplicated().any()
        models = {json.loads(text)["model"] for text in all_rows["setting"]}
        assert models == {f"{signature}|divergence:kl|weights:mean"}


def test_pruning_beside_chance(treebank: list[trees.Tree]) -> None:
    """Each reading of a subtree and threshold, of ours and PPL Deleter at one ratio, and as many spans by chance."""
    rows = distance.measure_pruning(treebank, DAY)
    TABLES["studies"].schema.validate(rows)
    assert set(rows["subset"]) == {*get_args(pruning.Subtree)}
    assert set(distance.summarize_tests(rows)["subset"]) == {"one"}
    settings = [json.loads(setting) for setting in rows["setting"]]
    assert {setting["system"] for setting in settings} == {
        "ndd", "ppl_deleter", "random_like_ndd", "random_like_ppl_deleter",
    }  # fmt: skip
    assert {setting["threshold"] for setting in settings} == {*distance.THRESHOLDS}
    for threshold in distance.THRESHOLDS:
        systems = (select(rows, system=name, threshold=threshold) for name in ("ndd", "ppl_deleter"))
        ndd_ratio, deleter_ratio = (json.loads(system["setting"][0])["ratio"] for system in systems)
        assert deleter_ratio == pytest.approx(ndd_ratio, abs=0.02)
    depths = select(rows.filter(pl.col("metric").str.starts_with("depth"), subset="one"), system="ndd", threshold=2.0)
    if depths["row_count"].sum():
        assert depths["value"].sum() == pytest.approx(1, abs=1e-5)


def test_predicates_beside_chance(treebank: list[trees.Tree]) -> None:
    """NDD of three edits and their ensemble, perplexity of two, and chance, whose AUC is one half.

    Sentences without a verb are left out and counted.
    """
    nouns = treebank[0]._replace(upos=("NOUN",) * len(treebank[0].words))
    left_out.clear()
    rows = distance.measure_predicates([*treebank, nouns], DAY)
    counts = {row.reason: row.row_count for row in left_out.list_rows()}
    assert counts["no_predicate"] == sum("VERB" not in tree.upos for tree in treebank) + 1
    TABLES["studies"].schema.validate(rows)
    measured_edits = {(setting["measure"], setting["edit"]) for setting in map(json.loads, rows["setting"])}
    assert measured_edits == {
        *(("ndd", edit) for edit in (*get_args(Edit), "ensemble")), ("perplexity", "delete"), ("perplexity", "mask"),
        ("chance", "none"),
    }  # fmt: skip
    aucs = select(rows.filter(pl.col("metric").str.contains("auc")), measure="chance")
    assert aucs.height
    assert set(aucs["value"]) == {0.5}


@pytest.mark.usefixtures("wordnet")
def test_pairs_of_every_test(tmp_path: Path) -> None:
    """Edits of the graded pairs' sentences, so many at most, and the English pairs with their overlap."""
    path = tmp_path / "graded.jsonl"
    pairs = [
        ("The soup was really good.", "The soup was very good."), ("A dog walked home.", "A dog ran home."),
        ("He closed the big door.", "She opened the small door."), ("今天很冷", "今天很热"),
    ]  # fmt: skip
    lines = [json.dumps({"one": first, "other": second, "similarity": 3}) for first, second in pairs]
    path.write_text("\n".join(lines), encoding="utf-8")
    rows = distance.build_test_pairs(str(path), None, 2)
    graded = rows.filter(test="supervised")
    assert graded.height == 3
    assert graded["overlap"].to_list() == pytest.approx([5 / 6, 4 / 5, 3 / 6])
    assert graded["is_positive"].null_count() == 3
    edited = rows.filter(pl.col("test") != "supervised")
    assert edited.height
    assert edited["sentence_id"].n_unique() <= 2
    labels = edited.group_by("test", "sentence_id").agg(pl.col("is_positive").sort())["is_positive"]
    assert labels.to_list() == [[False, True]] * (edited.height // 2)
