"""Recovering meanings as tasks: asked for once, kept, measured beside what recovers nothing; or by a fitted model."""

import json
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from pipeline import warehouse
from pipeline.errors import Refused
from pipeline.llm.outcome import Summary
from pipeline.tasks.asking import Options
from pipeline.tasks.impscore import pairs
from pipeline.tasks.subtext import recovery
from tests.support.servers.llm_server import Server
from tests.tasks.conftest import build_options

ROWS = pl.DataFrame(
    {
        "text": ["你可真准时", "Lovely weather", "666", "nothing"],
        "context": ["他迟到了一小时", None, "一段翻车的视频", None],
    }
)
CHOICES = ROWS.head(2).with_columns(
    question=pl.lit(None, pl.String),
    options=pl.Series([["夸他准时", "嫌他迟到"], ["It is sunny.", "It is awful.", "It is cold."]]),
)


def write(prompt: str, _: int) -> str:
    """Say what a comment means, but of `nothing`; choose the second option."""
    question = json.loads(prompt)
    if "options" in question or question["text"] == "nothing":
        return "B" if "options" in question else "no idea"
    is_chinese = "准" in prompt or "视频" in prompt
    steps = ("直说", "他来晚了") if is_chinese else ("Plainly.", "It rains.")
    return json.dumps(dict(zip(("plain", "meaning"), steps, strict=True)), ensure_ascii=False)


@pytest.fixture
def reader(tables: Path) -> Iterator[Server]:
    """A loopback service."""
    with Server(write=write) as running:
        yield running


WORKED = [  # the first is that of table 1, row 1, in our words; the second is satire
    (
        "为了你，再高的墙我也翻过去。",
        "一首情歌下面的评论",
        "为了你，再大的困难我也能克服。",
        "我想做你的恋人，有困难我会克服。",
    ),
    ("他真会开车，专往树上开。", "表弟想借车", "他不会开车，总是撞树。", "不要把车借给他。"),
]


def test_the_worked_example_in_two_steps(tables: Path) -> None:
    """A wall becomes difficulties, satire its negation; then comes the wish that the context shows (CSD-03)."""
    answers = {text: {"plain": plain, "meaning": meaning} for text, _, plain, meaning in WORKED}
    rows = pl.DataFrame(WORKED, schema=["text", "context", "expected_plain", "expected_meaning"], orient="row")
    with Server(write=lambda prompt, _: json.dumps(answers[json.loads(prompt)["text"]], ensure_ascii=False)) as server:
        result = recovery.recover(rows, build_options(server))
    assert result["plain"].equals(rows["expected_plain"])
    assert result["meaning"].equals(rows["expected_meaning"])
    assert result["reason"].null_count() == 2
    for request in server.requests:
        steps, question = (message["content"] for message in request["messages"])
        assert steps.index("隐喻换成它所指的事物，讽刺和反话换成它真正想说的否定") < steps.index("第二步")
        assert '{"plain": 直白的说法, "meaning": 真正的意思}' in steps
        assert set(json.loads(question)) == {"text", "context"}


def test_both_steps_or_a_reason(reader: Server) -> None:
    """Each comment gets plain words and a meaning in its own language, or the reason why there is none.

    A second run, and one from the cache alone, give the same rows and send nothing.
    """
    first = recovery.recover(ROWS, build_options(reader))
    assert first.select("text", "plain", "meaning", "reason").rows() == [
        ("你可真准时", "直说", "他来晚了", None),
        ("Lovely weather", "Plainly.", "It rains.", None),
        ("666", "直说", "他来晚了", None),
        ("nothing", None, None, "malformed"),
    ]
    assert first["context"].equals(ROWS["context"])
    sent = reader.sent.total()
    for options in (build_options(reader), Options("small-model", mode="cache-only")):
        assert_frame_equal(recovery.recover(ROWS, options), first)
    blank = pl.concat([ROWS.head(1), ROWS.head(2).with_columns(text=pl.Series([None, " "], dtype=pl.String))])
    assert recovery.recover(blank, build_options(reader))["reason"].to_list() == [None, "no_text", "no_text"]
    assert reader.sent.total() == sent == 4
    completions = warehouse.scan("completions").collect()
    assert set(completions["prompt"]) == {"recover_zh", "recover_en"}
    assert pairs.build("recovery", "2026-11-19") == 0  # a meaning is no explicit form of ImpScore


def test_what_the_cache_lacks_has_no_answer(tables: Path, reader: Server) -> None:
    """From an empty cache every comment is there with the reason; a choice is the place of its option."""
    with pytest.raises(Refused, match=r"none of 4 requests has an answer \(4: not in the ledger"):
        recovery.recover(ROWS, Options("small-model", mode="cache-only"))
    summary = Summary()
    result = recovery.recover(ROWS, Options("small", mode="cache-only", summary=summary))
    assert (len(summary.missing), summary.exit_code) == (4, 3)
    assert result["reason"].to_list() == ["no_answer"] * 4
    assert recovery.choose(CHOICES, build_options(reader)) == [1, 1]
