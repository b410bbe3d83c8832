"""Places of the texts of a day on the map: whole, signed, the same again, without texts that are gone."""

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from pipeline import left_out, sample, warehouse
from pipeline.tasks.daily import score
from tests.tasks.conftest import Bring

DAY, NEXT = sample.DAY, "2026-11-20"


def read_places() -> pl.DataFrame:
    return warehouse.scan("projections").sort("day", "source", "text_hash").collect()


def test_run_twice(imported: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each text of each source has a place by the encoder of its language; a second run changes nothing."""
    comments = warehouse.scan("comments").select("source", "text_hash", "lang").unique().collect()
    assert score.place_texts(DAY) == comments.height
    before = read_places()
    assert score.place_texts(DAY) == comments.height
    assert_frame_equal(read_places(), before)
    placed = before.join(comments, on=["source", "text_hash"], validate="1:1")
    pairs = placed.select("lang", pl.col("signature").str.extract("encoder:([a-z]+)@")).unique().rows()
    assert {*pairs} >= {("en", "embedded"), ("zh", "characters")}
    counts = warehouse.scan("runs", pl.col("step") == "project").sort("source").collect()["kept_count"]
    assert counts.to_list() == before.group_by("source").len().sort("source")["len"].to_list()
    monkeypatch.setattr(score, "limit_rows", lambda _: 10)  # of more texts the lowest hashes are placed
    left_out.clear()
    score.place_texts(DAY)
    assert read_places()["text_hash"].n_unique() == 20
    english = comments.filter(lang="en")["text_hash"].n_unique()
    assert f"embedded: 10 of {english:,} texts of {DAY} are placed, a sample" in left_out.list_lines()


def test_a_day_has_its_own_texts(imported: object, bring: Bring) -> None:
    """Another day stays; a text that the day has no more loses its place; a day without comments has none."""
    score.place_texts(DAY)
    before = read_places()
    bring(NEXT, {"1": "Nice hat, sir.", "2": "It is raining.", "3": "今天真冷。"})
    assert score.place_texts(NEXT) == 3
    bring(NEXT, {"1": "Nice hat, sir."})
    assert (score.place_texts(NEXT), score.place_texts("2026-11-21")) == (1, 0)
    assert_frame_equal(read_places().filter(pl.col("day") == before["day"][0]), before)
