"""Tokenize as a task: each distinct text cut once, in shards of any size, published whole."""

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from pipeline import sample, warehouse
from pipeline.errors import Retry
from pipeline.tables import empty
from pipeline.tasks.daily import tokenize
from pipeline.warehouse import buckets
from tests.tasks.conftest import Bring

DAY, NEXT = sample.DAY, "2026-11-20"
KEY = ["source", "day", "text_hash", "tokenizer"]


def tokens() -> pl.DataFrame:
    return warehouse.scan("tokens").sort(KEY).collect()


def texts_of(source: str = "notes") -> dict[str, list[str]]:
    comments = warehouse.scan("comments", pl.col("source") == source)
    rows = comments.join(warehouse.scan("tokens"), on=["source", "day", "text_hash"]).select("text", "tokens").collect()
    return dict(rows.rows())


@pytest.fixture
def tokenized_texts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every text that is cut while the test runs."""
    all_texts: list[str] = []
    function = tokenize.tokenize

    def record_texts(texts: pl.DataFrame, tokenizers: object) -> pl.DataFrame:
        all_texts.extend(texts["text"])
        return function(texts, tokenizers)  # type: ignore[arg-type]

    monkeypatch.setattr(tokenize, "tokenize", record_texts)
    return all_texts


@pytest.mark.parametrize("rows", [7, 100_000])
def test_size_of_shards_does_not_matter(
    scored: object, tokenized_texts: list[str], rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shards and buckets of other sizes give the same tokens, and every text is in one of them."""
    monkeypatch.setattr(buckets, "ROWS", rows)
    before = tokens()
    warehouse.overwrite("tokens", warehouse.make_slice(day=DAY), empty("tokens"))
    pinned = tokenize.pin_snapshots()
    shards = tokenize.plan_shards(DAY, pinned, rows_per_shard=rows)
    distinct = before["text_hash"].n_unique()
    assert len(shards) == -(-distinct // rows)
    tokenize.publish([tokenize.tokenize_shard(shard) for shard in shards], DAY, pinned)
    assert_frame_equal(tokens(), before)
    assert len(tokenized_texts) == len(set(tokenized_texts)) == distinct


def test_only_new_and_changed_texts_are_cut(tables: object, bring: Bring, tokenized_texts: list[str]) -> None:
    """A text of any day or source is cut once (X-01); a changed one is cut anew, and its old tokens leave the day."""
    bring(DAY, {"1": "Nice hat, sir.", "2": "今天真冷。", "3": "Nice hat, sir."})
    assert tokenize.run(DAY) == 2
    assert sorted(tokenized_texts) == ["Nice hat, sir.", "今天真冷。"]
    bring(NEXT, {"1": "Nice hat, sir.", "2": "你可真准时。"})
    tokenize.run(NEXT)
    assert tokenized_texts[2:] == ["你可真准时。"]
    bring(DAY, {"1": "Nice hat, madam.", "2": "今天真冷。"})
    tokenize.run(DAY)
    assert tokenized_texts[3:] == ["Nice hat, madam."]
    day = warehouse.scan("tokens").filter(pl.col("day").cast(pl.String) == DAY).collect()
    assert sorted(day["tokens"].to_list()) == [["Nice", "hat", ",", "madam", "."], ["今天", "真冷", "。"]]


def test_empty_day_empties_stale_rows(tables: object, bring: Bring) -> None:
    """If a day's comments are gone, so are its tokens after the next run; other days keep theirs."""
    assert tokenize.run(DAY) == 0
    bring(DAY, {"1": "Nice hat, sir.", "2": "今天真冷。"})
    bring(NEXT, {"1": "Nice hat, sir."})
    assert (tokenize.run(DAY), tokenize.run(NEXT)) == (2, 1)
    warehouse.overwrite("comments", warehouse.make_slice(day=DAY), empty("comments"))
    assert tokenize.run(DAY) == 0
    assert tokens()["day"].cast(pl.String).to_list() == [NEXT]


@pytest.mark.parametrize("name", ["jieba", "nltk"])
def test_missing_tokenizer_writes_nothing(imported: object, name: str) -> None:
    """If the rows of one tokenizer alone are missing, those of the other are not written either."""
    pinned = tokenize.pin_snapshots()
    (shard,) = tokenize.plan_shards(DAY, pinned)
    rows = pl.read_parquet(tokenize.tokenize_shard(shard)["path"])
    staged = warehouse.stage("tokens", rows.filter(pl.col("tokenizer") == name))
    with pytest.raises(Retry):
        tokenize.publish([staged], DAY, pinned)
    assert warehouse.get_snapshot_id("tokens") == pinned["tokens"]


def test_comments_that_come_during_a_run_wait_for_the_next(tables: object, bring: Bring) -> None:
    """A run sees the comments as they were when it began."""
    bring(DAY, {"1": "Nice hat, sir."})
    pinned = tokenize.pin_snapshots()
    bring(DAY, {"1": "Nice hat, sir.", "2": "今天真冷。"})
    staged = [tokenize.tokenize_shard(shard) for shard in tokenize.plan_shards(DAY, pinned)]
    assert tokenize.publish(staged, DAY, pinned) == 1
    assert list(texts_of()) == ["Nice hat, sir."]
    assert tokenize.run(DAY) == 2
