"""Kept embeddings: a text is encoded once, no other encoder gets its vector, and its score stays the same."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from pipeline import warehouse
from pipeline.errors import Retry
from pipeline.models import encoder as encoders
from pipeline.tables import empty
from pipeline.tasks.daily import embeddings, score
from pipeline.tasks.record.encoders import load_encoder
from tests.tasks.conftest import Bring, Enlist

NEXT = "2026-11-20"
TEXTS = {"1": "Nice hat, sir.", "2": "It is raining.", "3": "Sure, take your time.", "4": "今天真冷。"}


def read_scores(model_id: str) -> pl.DataFrame:
    return warehouse.scan("scores", pl.col("model_id") == model_id).sort("day", "comment_id").collect()


def read_vectors() -> pl.DataFrame:
    return warehouse.scan("embeddings").sort("encoder", "text_hash").collect()


def clear_scores() -> None:
    warehouse.overwrite("scores", warehouse.make_slice(day=NEXT), empty("scores"))


@pytest.fixture(autouse=True)
def keep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNDERTONE_KEEP_EMBEDDINGS", "1")


@pytest.fixture
def encoded_texts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every text that is encoded while the test runs."""
    texts: list[str] = []
    encode = encoders.encode

    def record_texts(encoder: Any, part: list[str], *options: Any) -> Any:
        texts.extend(part)
        return encode(encoder, part, *options)

    monkeypatch.setattr(encoders, "encode", record_texts)
    return texts


def test_a_known_text_is_not_encoded_again(
    imported: object, bring: Bring, enlist: Enlist, encoded_texts: list[str], tiny_folder: Path
) -> None:
    """A second run, a new model and another day encode new texts alone, and a score is the same bit for bit."""
    model_id = enlist(NEXT, 1)
    bring(NEXT, TEXTS)
    counts: list[int] = []
    assert score.run(NEXT, counts.append) == sum(counts) == len(TEXTS)
    first, vectors = read_scores(model_id), read_vectors()
    assert sorted(encoded_texts) == sorted(TEXTS.values())
    assert vectors["vector"].bin.size().to_list() == [2 * load_encoder(name=str(tiny_folder)).dim] * len(TEXTS)
    clear_scores()
    assert score.run(NEXT) == len(TEXTS)
    assert_frame_equal(read_scores(model_id), first)
    assert_frame_equal(read_vectors(), vectors)
    other_id = enlist(NEXT, 2)
    score.run(NEXT)
    assert not {*read_scores(other_id)["value"]} & {*first["value"]}
    assert len(encoded_texts) == len(TEXTS)
    bring("2026-11-21", {"5": TEXTS["1"], "6": "These words are new."})
    score.run("2026-11-21")
    assert encoded_texts[len(TEXTS) :] == ["These words are new."]
    assert "|float32|kept:float16|" in first["signature"][0]


def test_each_commit_survives_a_kill(
    imported: object, bring: Bring, enlist: Enlist, encoded_texts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that is killed after a commit, or before one, is run again: it encodes the rest, as one run would."""
    model_id = enlist(NEXT, 1)
    bring(NEXT, TEXTS)
    score.run(NEXT)
    expected = read_scores(model_id), read_vectors()
    for table, partition in (("scores", {"day": NEXT}), ("embeddings", {"encoder": expected[1]["encoder"][0]})):
        warehouse.overwrite(table, warehouse.make_slice(**partition), empty(table))
    monkeypatch.setattr(encoders, "limit_rows", lambda _: 1)
    append, commits = warehouse.append, iter([True, True, False])

    def append_and_die(*arguments: Any) -> int:
        if (is_committed := next(commits, None)) is not False:
            append(*arguments)
        if is_committed is not None:
            raise KeyboardInterrupt
        return 1

    encoded_texts.clear()
    monkeypatch.setattr(warehouse, "append", append_and_die)
    for vector_count in (1, 2, 2):
        with pytest.raises(KeyboardInterrupt):
            score.run(NEXT)
        assert (read_vectors().height, read_scores(model_id).height) == (vector_count, 0)
    score.run(NEXT)
    assert_frame_equal(read_scores(model_id), expected[0])
    assert_frame_equal(read_vectors(), expected[1])
    assert len(encoded_texts) == len(TEXTS) + 1  # the text of the third kill


def test_another_run_between_encoding_and_commit(
    imported: object, bring: Bring, enlist: Enlist, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two runs at once one adds the vectors; a comment that is replaced meanwhile leaves none, and no score."""
    model_id = enlist(NEXT, 1)
    bring(NEXT, TEXTS)
    encode, others = encoders.encode, [lambda: score.run(NEXT)]

    def encode_late(*arguments: Any) -> Any:
        if others:
            others.pop()()
        return encode(*arguments)

    monkeypatch.setattr(encoders, "encode", encode_late)
    score.run(NEXT)
    assert (read_vectors().height, read_scores(model_id).height) == (4, 4)
    warehouse.overwrite("embeddings", warehouse.make_slice(encoder=read_vectors()["encoder"][0]), empty("embeddings"))
    clear_scores()
    others.append(lambda: bring(NEXT, {**TEXTS, "1": "Other words."}) or 0)
    with pytest.raises(Retry, match=f"1 texts are not in comments of {NEXT} any more"):
        score.run(NEXT)
    assert (read_vectors().height, read_scores(model_id).height) == (3, 0)


def test_only_vectors_of_the_same_encoder_are_served(tiny_folder: Path) -> None:
    """A vector depends on files, precision, pooling, length, prompt and trained weights: each other value is a name."""
    encoder = load_encoder(name=str(tiny_folder))
    changes: list[dict[str, Any]] = [
        {}, {"revision": "f" * 64}, {"precision": "bfloat16"}, {"pooling": "layers"}, {"normalize": "off"},
        {"prompt": "query: "}, {"tuning": "1"},
    ]  # fmt: skip
    assert len({embeddings.name_encoder(replace(encoder, **change)) for change in changes}) == len(changes)


def test_another_precision_is_encoded_and_characters_are_not_kept(
    imported: object, bring: Bring, encoded_texts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the shipped model Chinese texts, which it counts n-grams of, are scored without a vector or a mark of one."""
    bring(NEXT, TEXTS)
    for precision, count in (("float32", 1), ("bfloat16", 2)):
        monkeypatch.setenv("UNDERTONE_PRECISION", precision)
        score.run(NEXT)
        assert score.plan_shards(NEXT, score.pin(NEXT)) == []
        assert read_vectors()["encoder"].n_unique() == count
    assert sorted(encoded_texts) == sorted([*TEXTS.values()][:3] * 2)
    rows = warehouse.scan("scores").sort("comment_id").collect()
    assert ["kept:float16" in signature for signature in rows["signature"]] == [True, True, True, False]


def test_off_by_default(imported: object, bring: Bring, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the setting no vector is written, and known ones are not used."""
    monkeypatch.delenv("UNDERTONE_KEEP_EMBEDDINGS")
    bring(NEXT, TEXTS)
    score.run(NEXT)
    assert warehouse.get_snapshot_id("embeddings") is None
    assert not warehouse.scan("scores").collect()["signature"].str.contains("kept").any()
