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
from pipeline.tables import TABLES, empty
from pipeline.tasks.daily import embeddings, score
from pipeline.tasks.record.encoders import load_encoder
from tests.tasks.conftest import Bring, Enlist

NEXT = "2026-11-20"
TEXTS = {"1": "Nice hat, sir.", "2": "It is raining.", "3": "Sure, take your time.", "4": "今天真冷。"}


def read(table: str) -> pl.DataFrame:
    return warehouse.scan(table).sort(TABLES[table].key).collect()


def clear(*tables: str) -> None:
    for table in tables:
        partition = {"day": NEXT} if table == "scores" else {"encoder": read(table)["encoder"][0]}
        warehouse.overwrite(table, warehouse.make_slice(**partition), empty(table))


@pytest.fixture(autouse=True)
def encoded_texts(imported: object, bring: Bring, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Turn the setting on, and import the texts; every text that is encoded while the test runs."""
    monkeypatch.setenv("UNDERTONE_KEEP_EMBEDDINGS", "1")
    bring(NEXT, TEXTS)
    texts, encode = [], encoders.encode

    def record_texts(encoder: Any, part: list[str], *options: Any) -> Any:
        texts.extend(part)
        return encode(encoder, part, *options)

    monkeypatch.setattr(encoders, "encode", record_texts)
    return texts


def test_a_known_text_is_not_encoded_again(
    bring: Bring, enlist: Enlist, encoded_texts: list[str], tiny_folder: Path
) -> None:
    """A second run, a new model and another day encode new texts alone, and a score is the same bit for bit."""
    enlist(NEXT, 1)
    assert score.run(NEXT) == len(TEXTS)
    first, vectors = read("scores"), read("embeddings")
    assert sorted(encoded_texts) == sorted(TEXTS.values())
    assert vectors["vector"].bin.size().to_list() == [2 * load_encoder(name=str(tiny_folder)).dim] * len(TEXTS)
    clear("scores")
    score.run(NEXT)
    assert_frame_equal(read("scores"), first)
    assert_frame_equal(read("embeddings"), vectors)
    enlist(NEXT, 2)
    score.run(NEXT)
    assert read("scores")["value"].n_unique() == 2 * len(TEXTS)
    bring("2026-11-21", {"5": TEXTS["1"], "6": "These words are new."})
    score.run("2026-11-21")
    assert encoded_texts[len(TEXTS) :] == ["These words are new."]
    assert "|float32|kept:float16|" in first["signature"][0]


def test_each_commit_survives_a_kill(enlist: Enlist, encoded_texts: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that is killed after a commit, or before one, is run again: it encodes the rest, as one run would."""
    enlist(NEXT, 1)
    score.run(NEXT)
    expected = read("scores"), read("embeddings")
    clear("scores", "embeddings")
    monkeypatch.setattr(encoders, "limit_rows", lambda _: 1)
    append = warehouse.append

    def append_and_die(*arguments: Any) -> None:
        if read("embeddings").height < vector_count:
            append(*arguments)
        raise KeyboardInterrupt

    encoded_texts.clear()
    monkeypatch.setattr(warehouse, "append", append_and_die)
    for vector_count in (1, 2, 2):
        with pytest.raises(KeyboardInterrupt):
            score.run(NEXT)
        assert (read("embeddings").height, read("scores").height) == (vector_count, 0)
    monkeypatch.setattr(warehouse, "append", append)
    score.run(NEXT)
    assert_frame_equal(read("scores"), expected[0])
    assert_frame_equal(read("embeddings"), expected[1])
    assert len(encoded_texts) == len(TEXTS) + 1  # the text of the third kill


def test_another_run_between_encoding_and_commit(bring: Bring, enlist: Enlist, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two runs at once one adds the vectors; a comment that is replaced meanwhile leaves none, and no score."""
    enlist(NEXT, 1)
    encode, others = encoders.encode, [lambda: score.run(NEXT)]
    monkeypatch.setattr(encoders, "encode", lambda *options: (others and others.pop()(), encode(*options))[1])
    score.run(NEXT)
    assert (read("embeddings").height, read("scores").height) == (4, 4)
    clear("scores", "embeddings")
    others.append(lambda: bring(NEXT, {**TEXTS, "1": "Other words."}) or 0)
    with pytest.raises(Retry, match=f"1 texts are not in comments of {NEXT} any more"):
        score.run(NEXT)
    assert (read("embeddings").height, read("scores").height) == (3, 0)


def test_only_vectors_of_the_same_encoder_are_served(encoded_texts: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """What a vector depends on is in the encoder's name; the shipped encoder of Chinese has no vectors."""
    for precision, count in (("float32", 1), ("bfloat16", 2)):
        monkeypatch.setenv("UNDERTONE_PRECISION", precision)
        score.run(NEXT)
        assert score.plan_shards(NEXT, score.pin(NEXT)) == []
        assert read("embeddings")["encoder"].n_unique() == count
    assert sorted(encoded_texts) == sorted([*TEXTS.values()][:3] * 2)
    rows = warehouse.scan("scores").sort("comment_id").collect()
    assert ["kept:float16" in signature for signature in rows["signature"]] == [True, True, True, False]
    changes = {"revision": "f" * 64, "pooling": "layers", "normalize": "off", "prompt": "query: ", "tuning": "1"}
    others = [replace(load_encoder(), **{option: value}) for option, value in changes.items()]
    assert len({*map(embeddings.name_encoder, (load_encoder(), *others))}) == 1 + len(changes)
