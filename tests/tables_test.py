"""The data contracts."""

import re
from typing import Any

import pytest

from pipeline.tables import SOURCE, TABLES
from tests.support.rows.filled import DAY, filled

BREAKS: list[tuple[str, dict[str, Any], str]] = [
    ("raw_pages", {"page_id": "abc"}, "page_id|regex"), ("raw_pages", {"source": "Weibo"}, "source|regex"),
    ("raw_pages", {"origin": ""}, "origin|min_length"), ("raw_pages", {"body": None}, "body|nullability"),
    ("articles", {"thread_id": ""}, "thread_id|min_length"), ("articles", {"text": None}, "text|nullability"),
    ("comments", {"text": " \t "}, "text_is_not_blank"),
    ("comments", {"comment_id": "c9", "parent_id": "c9"}, "no_comment_is_its_own_parent"),
    ("comments", {"like_count": -1}, "like_count|min"), ("comments", {"duplicate_count": -1}, "duplicate_count|min"),
    ("comments", {"user_id": "someone"}, "user_id|regex"), ("comments", {"text_hash": "0" * 33}, "text_hash|regex"),
    ("comments", {"is_hot": None}, "is_hot|nullability"), ("tokens", {"text_hash": "x"}, "text_hash|regex"),
    ("tokens", {"tokens": None}, "tokens|nullability"), ("sentences", {"label": "sarcastic"}, "label|regex"),
    ("sentences", {"lang": "English"}, "lang|regex"), ("sentences", {"text": ""}, "text|min_length"),
    ("sentences", {"text": "same", "explicit": "same"}, "explicit_is_another"),
    ("sentences", {"explicit": ""}, "explicit|min_length"), ("completions", {"input_tokens": -1}, "input_tokens|min"),
    ("completions", {"mode": "guess"}, "mode|regex"), ("completions", {"attempt": -1}, "attempt|min"),
    ("pairs", {"explicit": "same", "negative": "same"}, "negative_is_foreign"),
    ("pairs", {"split": "dev"}, "split|regex"), ("articles", {"summary": ""}, "summary|min_length"),
    ("cloze_targets", {"subtask": "1"}, "subtask|regex"),
    ("cloze_targets", {"start": 4, "end": 4}, "ends_after_its_start"),
    ("cloze_targets", {"reason": ""}, "reason|min_length"),
    ("cloze_items", {"question": "no place"}, "question_has_a_place"),
    ("cloze_items", {"question": "@placeholder @placeholder"}, "question_has_a_place"),
    ("cloze_items", {"options": ["a", "b", "c", "d"]}, "options_are_five_and_differ"),
    ("cloze_items", {"options": ["a", "b", "c", "d", " A"]}, "options_are_five_and_differ"),
    ("cloze_items", {"label": 5}, "label|max"), ("threads", {"split": None, "reason": None}, "in_a_part_or_left_out"),
    ("threads", {"split": "train", "reason": "few_comments"}, "in_a_part_or_left_out"),
    ("reference_comments", {"role": "reader"}, "role|regex"), ("comment_grades", {"grade": 5.5}, "grade|max"),
    ("comment_grades", {"grades": [0.5, 3.0]}, "grades|inner_min"),
    ("generated_comments", {"model_id": "m1"}, "model_id|regex"),
    ("generated_comments", {"text": ""}, "text|min_length"), ("metric_scores", {"value": float("nan")}, "value|nan"),
    ("compressions", {"rounds": [0, 2, 0, 1]}, "a_round_for_each_word"),
    ("compressions", {"ratio": 0.75}, "ratio_is_what_stays"),
    ("compressions", {"rounds": [0, -1]}, "rounds|inner_min"), ("models", {"model_id": "m1"}, "model_id|regex"),
    ("evaluations", {"pair_count": -1}, "pair_count|min"), ("studies", {"study": "taste"}, "study|regex"),
    ("studies", {"model_id": "m1"}, "model_id|regex"), ("studies", {"effective_count": -1}, "effective_count|min"),
    ("scores", {"value": 2.5}, "implicitness_in_range"),
    ("scores", {"metric": "sarcasm", "value": float("nan")}, "value|nan"),
    ("scores_explained", {"position": 0}, "position|min"), ("scores_explained", {"word": ""}, "word|min_length"),
    ("embeddings", {"bucket": 64}, "bucket|max"), ("embeddings", {"encoder": "a/b"}, "encoder|regex"),
    ("projections", {"x": float("nan")}, "x|nan"), ("training_texts", {"row_count": 0}, "row_count|min"),
    ("training_texts", {"text_hash": "x"}, "text_hash|regex"), ("erasures", {"erasure_id": "e1"}, "erasure_id|regex"),
    ("erasures", {"row_count": -1}, "row_count|min"), ("erasures", {"erased_at": None}, "erased_at|nullability"),
    ("model_erasures", {"erased_ratio": 1.5}, "erased_ratio|max"),
    ("model_erasures", {"erased_count": -1}, "erased_count|min"),
    ("model_erasures", {"action": "mended"}, "action|regex"), ("dropped", {"reason": ""}, "reason|min_length"),
    ("runs", {"read_count": 5, "kept_count": 3, "dropped_count": 1}, "adds_up"),
]  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_keys_and_partitions_are_columns_that_are_never_null(name: str) -> None:
    """Every column of a key and of a partition exists and may not be null."""
    table = TABLES[name]
    columns = table.schema.columns()
    assert {*table.key, *table.partitions} <= set(columns)
    assert not [c for c in (*table.key, *table.partitions) if columns[c].nullable]
    assert len(set(table.key)) == len(table.key)


@pytest.mark.parametrize("name", TABLES)
def test_a_plain_row_passes(name: str) -> None:
    """The rows that these tests fill in keep the contract, so that a refusal is about what a test changed."""
    assert TABLES[name].schema.is_valid(filled(name, {}))


@pytest.mark.parametrize(("name", "change", "rule"), BREAKS, ids=[f"{n}-{r}" for n, _, r in BREAKS])
def test_each_rule_refuses_its_row_and_no_other(name: str, change: dict[str, Any], rule: str) -> None:
    """One change breaks one rule, of that row alone."""
    _, failures = TABLES[name].schema.filter(filled(name, {}, change))
    assert failures.counts() == {rule: 1}


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("scores", {"metric": "sarcasm", "value": 17.0}), ("scores", {"value": 0.0}), ("scores", {"value": 2.0}),
        ("comments", {"parent_id": None}), ("comments", {"parent_id": "c0"}), ("comments", {"like_count": 0}),
        ("runs", {"read_count": 0, "kept_count": 0, "dropped_count": 0}),
        ("evaluations", {"day": DAY, "baseline": None}),
        ("sentences", {"explicit": None, "prompt": None, "label": "neither"}), ("sentences", {"explicit": "outright"}),
        ("completions", {"mode": "batch", "revision": "2026-01", "input_tokens": 0, "output_tokens": None}),
        ("pairs", {"cluster_id": None, "completion_id": None}),
        ("studies", {"model_id": None, "value": None, "low": None, "effective_count": None}),
    ],
)  # fmt: skip
def test_rules_let_the_edges_through(name: str, change: dict[str, Any]) -> None:
    """Ranges include their ends, and a rule on a nullable column passes null."""
    assert TABLES[name].schema.is_valid(filled(name, change))


@pytest.mark.parametrize(
    ("text", "fits"),
    [("weibo", True), ("a", True), ("a_1", True), ("a" * 40, True), ("a" * 41, False), ("1a", False), ("_a", False),
     ("a-b", False), ("微博", False), ("", False), ("a/../b", False)],
)  # fmt: skip
def test_a_source_is_a_short_plain_name(text: str, fits: bool) -> None:
    """A source becomes part of folder names, so it is lower case letters, digits and underscores."""
    assert bool(re.search(SOURCE, text)) is fits
