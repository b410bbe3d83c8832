"""Each check holds on clean data, and gives the row that violates it."""

from typing import Any

import polars as pl
import pytest

from tests.sql import SQL
from tests.sql.conftest import Select
from tests.support.rows.filled import DAY, NEXT, digest, filled

CHECKS = {path.stem: path.read_text(encoding="utf-8") for path in sorted((SQL / "checks").glob("*.sql"))}
TASK, ROW, MADE = digest("t", 32), digest("r", 16), digest("m", 32)


def clean() -> dict[str, pl.DataFrame]:
    """Two days: the first tokenized and scored in full, the second only collected, with one row dropped."""
    comments = filled(
        "comments",
        {"text": "cold today"},
        {"text": "cold today, is it", "parent_id": "c1", "root_id": "c1"},
        {"text": "not a mail: a @ b, nor a number: 1380013800 or 138001380001", "parent_id": "c2", "root_id": "c1"},
        {"text": "tomorrow", "day": NEXT},
    )
    first = comments.filter(day=DAY)
    return {
        "comments": comments,
        "tokens": filled("tokens", *({"text_hash": h} for h in first["text_hash"])),
        "scores": filled("scores", *({"comment_id": c, "model_id": m} for c in first["comment_id"] for m in "ab")),
        "scores_explained": filled(
            "scores_explained", {"comment_id": "c1", "text": "cold today"},
            {"comment_id": "c1", "text": "cold today", "position": 2},
        ),
        "dropped": filled("dropped", {}, {"day": NEXT}, {"step": "pairs"}),
        "runs": filled(
            "runs", {"read_count": 4, "kept_count": 3, "dropped_count": 1},
            {"day": NEXT, "read_count": 2, "kept_count": 1, "dropped_count": 1},
            {"step": "pairs", "read_count": 1, "kept_count": 0, "dropped_count": 1},
        ),
        "label_tasks": filled("label_tasks", {"task_id": TASK, "row_id": ROW}),
        "labels": filled("labels", {"task_id": TASK, "value": "1"}),
        "annotations": filled("annotations", {"task_id": TASK, "state": "adopted", "value": "1", "field": "sarcasm"}),
        "annotated_comments": filled("annotated_comments", {"row_id": ROW}),
        "articles": filled("articles", {"summary": "A hope"}),
        "cloze_targets": filled("cloze_targets", {}, {"start": 0, "reason": "concrete"}),
        "cloze_items": filled("cloze_items", {}),
        "threads": filled("threads", {"split": "test"}, {"thread_id": "t2", "split": "train"}),
        "reference_comments": filled("reference_comments", {"comment_id": "c1"}),
        "generated_comments": filled("generated_comments", {"generated_id": MADE}),
        "metric_scores": filled("metric_scores", {"generated_id": MADE}),
        "comment_grades": filled("comment_grades", {"comment_id": "c1"}, {"comment_id": MADE}),
        "compressions": filled("compressions", {"system": "gold"}, {"system": "ndd"}),
    }  # fmt: skip


def violations(select: Select, check: str, frames: dict[str, pl.DataFrame]) -> list[tuple[Any, ...]]:
    """What the check gives on these tables."""
    return sorted(set(select(CHECKS[check], **frames)), key=repr)


@pytest.mark.parametrize("name", CHECKS)
def test_a_check_holds_on_clean_data(select: Select, name: str) -> None:
    """Good rows violate nothing, nor do empty tables."""
    assert violations(select, name, clean()) == []
    assert violations(select, name, {}) == []


_SECOND = {"comment_id": "c2", "text": "cold today, is it", "parent_id": "c1"}

PLANTED: list[tuple[str, str, dict[str, Any], tuple[Any, ...]]] = [
    ("comments_are_single", "comments", _SECOND, ("weibo", DAY, "t1", "c2", 2)),
    ("comments_have_scores", "comments", {"comment_id": "new"}, ("weibo", DAY, "new")),
    ("comments_have_tokens", "comments", {"comment_id": "n", "text": "new"}, ("weibo", DAY, digest("new", 32))),
    ("cloze_items_have_targets", "cloze_items", {"start": 3}, ("imperceptibility", digest(1, 32))),
    ("cloze_items_have_targets", "cloze_items", {"start": 0}, ("imperceptibility", digest(1, 32))),
    ("cloze_items_have_targets", "cloze_items", {"thread_id": "t9"}, ("imperceptibility", digest(1, 32))),
    ("cloze_items_have_targets", "cloze_items", {"subtask": "nonspecificity"}, ("nonspecificity", digest(1, 32))),
    ("references_have_comments", "reference_comments", {"comment_id": "gone"}, ("weibo", "t1", "gone")),
    ("references_have_comments", "reference_comments", {"thread_id": "t2", "comment_id": "c1"}, ("weibo", "t2", "c1")),
    ("generated_comments_have_threads", "generated_comments", {"thread_id": "t9", "generated_id": MADE},
     ("weibo", "t9", MADE)),
    ("generated_comments_have_threads", "metric_scores", {"thread_id": "t2", "generated_id": MADE},
     ("weibo", "t2", MADE)),
    ("compressions_have_gold", "compressions", {"item_id": "gone", "system": "ndd"}, ("weibo", DAY, "gone", "ndd")),
    ("compressions_have_gold", "compressions", {"system": "head", "words": ["cold", "here"]},
     ("weibo", DAY, "1", "head")),
    ("grades_have_comments", "comment_grades", {"comment_id": "gone"}, ("csd", "weibo", "t1", "gone")),
    ("funnel_adds_up", "comments", {"comment_id": "new", "day": NEXT}, ("weibo", NEXT, "test", 2, 1, 2, 1)),
    ("funnel_adds_up", "dropped", {"day": NEXT}, ("weibo", NEXT, "test", 2, 1, 1, 2)),
    ("funnel_adds_up", "runs", {"source": "zhihu"}, ("zhihu", DAY, "test", 1, 1, None, None)),
    ("parents_form_trees", "comments", {"comment_id": "self", "parent_id": "self"}, ("weibo", DAY, "t1", "self")),
    ("scores_are_single", "scores", {"comment_id": "c1", "model_id": "a"},
     ("weibo", DAY, "t1", "c1", "implicitness", "a", 2)),
    ("scores_have_comments", "scores", {"comment_id": "gone"}, ("weibo", DAY, "gone", "implicitness")),
    ("scores_have_comments", "scores", {"comment_id": "c1", "thread_id": "t2"}, ("weibo", DAY, "c1", "implicitness")),
    ("explanations_have_comments", "scores_explained", {"comment_id": "gone"}, ("weibo", DAY, "gone", digest(1))),
    ("explanations_have_comments", "scores_explained", {"comment_id": "c2"}, ("weibo", DAY, "c2", digest(1))),
    ("labels_have_tasks", "labels", {"task_id": digest("gone", 32)}, ("csd", digest("gone", 32), 1)),
    ("released_rows_are_settled", "annotations", {"task_id": TASK, "state": "open"}, ("csd", ROW)),
    *(("private_particulars_are_gone", "comments", {"comment_id": "p", "text": text}, ("weibo", DAY, "p"))
      for text in ("@somebody look", "so true @some_body", "write to a.b+c@mail.example.com", "call 13800138000!",
                   "我的号码是13800138000", "看@abc")),
]  # fmt: skip


@pytest.mark.parametrize(("name", "table", "row", "expected"), PLANTED)
def test_a_check_gives_the_row_that_violates_it(
    select: Select, name: str, table: str, row: dict[str, Any], expected: tuple[Any, ...]
) -> None:
    """One planted row makes one violation, which names it."""
    frames = clean()
    frames[table] = pl.concat([frames[table], filled(table, row)])
    assert violations(select, name, frames) == [expected]


def test_every_check_has_a_violation_here() -> None:
    """A check without a planted violation might never fail."""
    assert {name for name, *_ in PLANTED} == set(CHECKS)


def test_a_circle_of_parents_is_found(select: Select) -> None:
    """Three comments in a circle are all named; a tree, a chain of 60 and a parent that was not collected are not."""
    circle = filled("comments", *({"comment_id": a, "parent_id": b} for a, b in ("xy", "yz", "zx")))
    frames = {**clean(), "comments": pl.concat([clean()["comments"], circle])}
    found = violations(select, "parents_form_trees", frames)
    assert found == [("weibo", DAY, "t1", c) for c in "xyz"]
    chain = filled("comments", *({"comment_id": f"k{i}", "parent_id": f"k{i - 1}"} for i in range(60)))
    assert violations(select, "parents_form_trees", {"comments": chain}) == []
