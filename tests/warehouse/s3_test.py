"""The same warehouse on an S3-compatible store (moto on loopback)."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from polars.testing import assert_frame_equal

from pipeline import warehouse
from pipeline.errors import BadInput
from pipeline.tables import empty
from pipeline.warehouse.upkeep import check, sweep
from pipeline.warehouse.upkeep.limits import Limits
from tests.support.filled import DAY, filled

WHERE = warehouse.slice_of(source="weibo", day=DAY)


@pytest.fixture(scope="module")
def store() -> Iterator[str]:
    """Address of an S3-compatible server of this machine."""
    server = pytest.importorskip("moto.server").ThreadedMotoServer("127.0.0.1", 0)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def bucket(store: str, home: object, monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    """A bucket that holds the warehouse under a prefix; the catalog stays a file."""
    boto3 = pytest.importorskip("boto3")
    for name, value in {
        "AWS_ENDPOINT_URL": store, "AWS_ALLOW_HTTP": "true", "AWS_ACCESS_KEY_ID": "test", "AWS_REGION": "us-east-1",
        "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true",
        "UNDERTONE_WAREHOUSE": "s3://undertone-test/some/prefix",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    client = boto3.client("s3")
    client.create_bucket(Bucket="undertone-test")
    warehouse.create()
    yield client
    warehouse.close()
    for key in keys(client):
        client.delete_object(Bucket="undertone-test", Key=key)
    client.close()


def keys(client: object) -> set[str]:
    """All objects of the bucket, without the markers that pyarrow leaves where a folder would be empty."""
    pages = client.get_paginator("list_objects_v2").paginate(Bucket="undertone-test")  # type: ignore[attr-defined]
    return {item["Key"] for page in pages for item in page.get("Contents", []) if item["Size"]}


def test_slices_are_written_and_read(bucket: object) -> None:
    """Overwriting twice, refusing and emptying work as on a disk, and all files lie below the prefix."""
    frame = filled("comments", {"text": "a"}, {"text": "b"})
    for _ in range(2):
        assert warehouse.overwrite("comments", WHERE, frame) == 2
        assert_frame_equal(warehouse.scan("comments").collect().sort("text"), frame)
    before = warehouse.snapshot("comments")
    with pytest.raises(BadInput, match="comments"):
        warehouse.overwrite("comments", WHERE, filled("comments", {"text": " "}))
    assert warehouse.snapshot("comments") == before
    assert warehouse.query("select count(*) as n from comments")["n"].to_list() == [2]
    assert warehouse.overwrite("comments", WHERE, empty("comments")) == 0
    assert warehouse.scan("comments").collect().height == 0
    assert all(key.startswith("some/prefix/undertone/") for key in keys(bucket))


def test_staged_shards_are_committed_and_swept(bucket: object) -> None:
    """Shards go through the store; sweeping removes them and replaced files, and nothing that is in use."""
    staged = [warehouse.stage("scores", filled("scores", {"comment_id": c})) for c in "ab"]
    assert {s["path"].removeprefix("s3://undertone-test/") for s in staged} <= keys(bucket)
    for _ in range(2):
        assert warehouse.commit("scores", WHERE, staged) == 2
    rows = warehouse.scan("scores").collect().sort("comment_id")
    sweep.expire("scores", timedelta(0))
    before = keys(bucket)
    sweep.sweep("scores")
    assert {key[-14:] for key in before - keys(bucket)} == {".metadata.json"}  # the rest is young
    assert sweep.sweep_scratch() == 0
    assert sweep.sweep("scores", -timedelta(seconds=5)) > 0
    assert sweep.sweep_scratch(-timedelta(seconds=5)) == 2
    assert not [key for key in keys(bucket) if "_scratch" in key]
    assert len([key for key in keys(bucket) if "/scores/data/" in key]) == 1
    assert_frame_equal(warehouse.scan("scores").collect().sort("comment_id"), rows)


def test_the_search_opens_what_is_packed(bucket: object) -> None:
    """A word is met in the data file, and in the manifest's list of partitions, both compressed."""
    word = "zqxsearched"
    warehouse.overwrite("comments", {**WHERE, "origin": word}, filled("comments", {"origin": word}))
    packed = {key for key in keys(bucket) if key.endswith((".parquet", ".avro"))}
    bodies = {key: bucket.get_object(Bucket="undertone-test", Key=key)["Body"].read() for key in packed}  # type: ignore[attr-defined]
    found = {place.path.removeprefix("undertone-test/") for place in warehouse.search([word])} & packed
    assert {key.rpartition(".")[2] for key in found} == {"parquet", "avro"}
    assert any(word.encode() not in bodies[key] for key in found if key.endswith(".avro"))


def test_erased_rows_leave_the_store(bucket: object) -> None:
    """Erasing deletes the data file that held the row."""
    warehouse.overwrite("comments", WHERE, filled("comments", {"text": "gone"}, {"text": "stays"}))
    (before,) = [key for key in keys(bucket) if "/comments/data/" in key]
    assert warehouse.erase("comments", {"text": ["gone"]}) == 1
    assert before not in keys(bucket)
    assert warehouse.scan("comments").collect()["text"].to_list() == ["stays"]


def test_upkeep_on_the_store(bucket: object) -> None:
    """Small objects become one, replaced ones go, rows stay, and an object that is gone is named."""
    for origin in "abc":
        rows = filled("articles", {"origin": origin, "thread_id": origin})
        warehouse.overwrite("articles", {**WHERE, "origin": origin}, rows)
    limits = Limits(keep=timedelta(0), quiet=timedelta(0), files=1, grace=-timedelta(seconds=5))
    done = warehouse.maintain("articles", limits)
    assert (done["partitions_compacted"], done["files_compacted"]) == (1, 3)
    (left,) = [key for key in keys(bucket) if "/articles/data/" in key]
    assert sorted(warehouse.scan("articles").collect()["origin"]) == ["a", "b", "c"]
    assert not [key for key in keys(bucket) if "clock-" in key]
    bucket.delete_object(Bucket="undertone-test", Key=left)  # type: ignore[attr-defined]
    with pytest.raises(BadInput, match=f"articles is damaged.*source=weibo/day={DAY}, .*{left}: missing"):
        warehouse.maintain("articles", limits)


def test_a_lost_catalog_is_recovered_and_a_changed_byte_named(bucket: object, home: Path) -> None:
    """Refused over the objects of a table, made again from them; one bit of an object is found."""
    warehouse.overwrite("comments", WHERE, filled("comments", {"text": "a"}, {"text": "b"}))
    (home / "catalog.db").unlink()
    with pytest.raises(BadInput, match="recover-catalog"):
        warehouse.create()
    assert {row.action for row in warehouse.recover()} == {"registered"}
    assert warehouse.scan("comments").collect().height == 2
    assert check.check("comments", weeks=1).problems == []
    (key,) = [key for key in keys(bucket) if "/comments/data/" in key]
    content = bytearray(bucket.get_object(Bucket="undertone-test", Key=key)["Body"].read())  # type: ignore[attr-defined]
    content[99] ^= 1
    bucket.put_object(Bucket="undertone-test", Key=key, Body=bytes(content))  # type: ignore[attr-defined]
    (problem,) = check.check("comments", weeks=1).problems
    assert f"{key}: bytes have changed" in problem
