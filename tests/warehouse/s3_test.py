"""The same warehouse on an S3-compatible store (moto on loopback)."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from polars.testing import assert_frame_equal

from pipeline import warehouse
from pipeline.errors import BadInput
from pipeline.tables import TABLES, empty
from pipeline.warehouse.upkeep import check, sweep
from pipeline.warehouse.upkeep.limits import Limits
from tests.support.rows.filled import DAY, filled
from tests.support.rows.held import held, texts, write
from tests.support.servers.store import bucket as open_bucket
from tests.support.servers.store import running_store, store_settings

WEIBO = warehouse.make_slice(source="weibo", day=DAY)
NAME = "undertone-test"
EAGER = -timedelta(seconds=5)  # a grace that protects nothing


@pytest.fixture(scope="module")
def store() -> Iterator[str]:
    """Address of an S3-compatible server of this machine."""
    with running_store() as (host, port):
        yield f"http://{host}:{port}"


@pytest.fixture
def bucket(store: str, home: object) -> Iterator[Any]:
    """A bucket that holds the warehouse under a prefix; the catalog stays a file."""
    others = TABLES.keys() - {"comments", "scores", "articles"}  # every table costs a dozen requests
    with (
        open_bucket(store_settings(store, f"s3://{NAME}/some/prefix")) as client,
        pytest.MonkeyPatch.context() as patch,
    ):
        for name in others:
            patch.delitem(TABLES, name)
        warehouse.create()
        yield client
        warehouse.close()
        for key in keys(client):
            client.delete_object(Bucket=NAME, Key=key)


def keys(client: Any, *parts: str) -> set[str]:
    """The objects of the bucket whose key has these parts, without pyarrow's markers of empty folders."""
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=NAME)
    items = {item["Key"] for page in pages for item in page.get("Contents", []) if item["Size"]}
    return {key for key in items if all(part in key for part in parts)}


def read(client: Any, key: str) -> bytes:
    """The content of an object."""
    content: bytes = client.get_object(Bucket=NAME, Key=key)["Body"].read()
    return content


def test_slices_are_written_and_read(bucket: Any) -> None:
    """Overwriting twice, refusing and emptying work as on a disk, and all files lie below the prefix."""
    frame = filled("comments", {"text": "a"}, {"text": "b"})
    for _ in range(2):
        assert warehouse.overwrite("comments", WEIBO, frame) == 2
        assert_frame_equal(held("comments"), frame)
    before = warehouse.get_snapshot_id("comments")
    with pytest.raises(BadInput, match="comments"):
        write(" ")
    assert warehouse.get_snapshot_id("comments") == before
    assert warehouse.query("select count(*) as n from comments")["n"].to_list() == [2]
    assert warehouse.overwrite("comments", WEIBO, empty("comments")) == 0
    assert warehouse.scan("comments").collect().height == 0
    assert all(key.startswith("some/prefix/undertone/") for key in keys(bucket))


def test_staged_shards_are_committed_and_swept(bucket: Any) -> None:
    """Shards go through the store; sweeping removes them and replaced files, and nothing that is in use."""
    staged = [warehouse.stage("scores", filled("scores", {"comment_id": c})) for c in "ab"]
    assert {s["path"].removeprefix(f"s3://{NAME}/") for s in staged} <= keys(bucket)
    for _ in range(2):
        assert warehouse.overwrite("scores", WEIBO, warehouse.scan_staged("scores", staged)) == 2
    rows = held("scores")
    sweep.expire("scores", timedelta(0))
    before = keys(bucket)
    sweep.sweep("scores")
    assert {key[-14:] for key in before - keys(bucket)} == {".metadata.json"}  # the rest is young
    assert sweep.maintain_scratch()["files_removed"] == 0
    assert sweep.sweep("scores", EAGER) > 0
    assert sweep.maintain_scratch(EAGER)["files_removed"] == 2
    assert not keys(bucket, "_scratch")
    assert len(keys(bucket, "/scores/data/")) == 1
    assert_frame_equal(held("scores"), rows)


def test_the_search_opens_what_is_packed(bucket: Any) -> None:
    """A word is met in the data file, and in the manifest's list of partitions, both compressed; erased, in neither."""
    word = "zqxsearched"
    warehouse.overwrite("comments", {**WEIBO, "origin": word}, filled("comments", {"origin": word}))
    paths = {place.path.removeprefix(f"{NAME}/") for place in warehouse.search([word])}
    matches = {key for key in paths & keys(bucket) if key.endswith((".parquet", ".avro"))}
    assert {key.rpartition(".")[2] for key in matches} == {"parquet", "avro"}
    assert any(word.encode() not in read(bucket, key) for key in matches if key.endswith(".avro"))
    write("stays", source="zhihu")
    assert warehouse.erase("comments", {"origin": [word]}) == 1
    assert not matches & keys(bucket, ".parquet")
    assert texts() == ["stays"]


def test_upkeep_on_the_store(bucket: Any) -> None:
    """Small objects become one, replaced ones go, rows stay, and an object that is gone is named."""
    for origin in "abc":
        rows = filled("articles", {"origin": origin, "thread_id": origin})
        warehouse.overwrite("articles", {**WEIBO, "origin": origin}, rows)
    limits = Limits(keep=timedelta(0), quiet=timedelta(0), files=1, grace=EAGER)
    counts = warehouse.maintain("articles", limits)
    assert (counts["partitions_compacted"], counts["files_compacted"]) == (1, 3)
    (key,) = keys(bucket, "/articles/data/")
    assert held("articles")["origin"].to_list() == ["a", "b", "c"]
    assert not keys(bucket, "clock-")
    bucket.delete_object(Bucket=NAME, Key=key)
    with pytest.raises(BadInput, match=f"articles is damaged.*source=weibo/day={DAY}, .*{key}: missing"):
        warehouse.maintain("articles", limits)


def test_a_lost_catalog_is_recovered_and_a_changed_byte_named(bucket: Any, home: Path) -> None:
    """Refused over the objects of a table, made again from them; one bit of an object is found."""
    write("a", "b")
    (home / "catalog.db").unlink()
    with pytest.raises(BadInput, match="recover-catalog"):
        warehouse.create()
    assert {row.action for row in warehouse.recover()} == {"registered"}
    assert texts() == ["a", "b"]
    assert check.check("comments", weeks=1).problems == []
    (key,) = keys(bucket, "/comments/data/")
    content = bytearray(read(bucket, key))
    content[99] ^= 1
    bucket.put_object(Bucket=NAME, Key=key, Body=bytes(content))
    (problem,) = check.check("comments", weeks=1).problems
    assert f"{key}: bytes have changed" in problem
