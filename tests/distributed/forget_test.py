"""Forgetting on the cluster: three people at once, while another day comes in; nothing of them is left anywhere."""

import csv
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from pipeline import settings, warehouse
from pipeline.collect.clean import hash_text
from pipeline.collect.privacy import anonymise
from pipeline.llm.ledger import answers
from pipeline.llm.ledger.cost import Call
from pipeline.llm.request import Request
from pipeline.llm.service.replies import Reply
from pipeline.slices import parse_day
from tests.distributed.chain import CHAIN, quiet, settled
from tests.distributed.cluster import BUCKET, DATABASES, Cluster
from tests.support.search import find

DAY, OTHER = "2026-09-01", "2026-09-02"  # of no other test of the cluster
SOURCE = "letters"
KEY = "a key for this cluster"
PEOPLE = {"anna": "880055350101", "ben": "880055350202", "carl": "880055350303", "dora": "880055350404"}
GONE = ("anna", "ben", "carl")
BOTH = "the very same words, by two of those who go"


class Comment(NamedTuple):
    """A comment."""

    thread_id: str
    comment_id: str
    author: str
    text: str
    parent_id: str = ""


COMMENTS = [
    Comment("t1", "a1", "anna", "what a lovely queue, says one who wants to go"),
    Comment("t1", "d1", "dora", "a reply that stays where it is", "a1"),
    Comment("t1", "b1", "ben", "第三天也迟到，真准时，这是一个要走的人说的"),
    Comment("t1", "d2", "dora", "and a remark by somebody who stays"), Comment("t1", "a2", "anna", BOTH),
    Comment("t2", "c1", "carl", BOTH), Comment("t2", "d3", "dora", "so say we all"),
    Comment("t3", "b2", "ben", "so say we all"),
]  # fmt: skip
LATER = [Comment("t4", f"d{n}", "dora", f"{chr(97 + n) * 9} the day after") for n in range(4, 20)]
THEIRS = {c.comment_id: c.text for c in COMMENTS if c.author in GONE}
ALONE = {name: text for name, text in THEIRS.items() if name != "b2"}  # which nobody says who stays
STORES = {"comments", "tokens", "scores", "inbox", "ledger"}


def fill(inbox: Path) -> None:
    """The comments of both days."""
    for day, comments in ((DAY, COMMENTS), (OTHER, LATER)):
        folder = inbox / SOURCE / day
        folder.mkdir(parents=True)
        with (folder / "letters.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["thread_id", "comment_id", "user", "text", "parent_id"])
            writer.writerows([c.thread_id, c.comment_id, PEOPLE[c.author], c.text, c.parent_id] for c in comments)


def hash_texts() -> dict[str, str]:
    """The text_hash of what nobody says who stays."""
    return dict(zip(ALONE, hash_text(pl.Series([*ALONE.values()])), strict=True))


def make_needles() -> dict[str, str]:
    """Texts of those who go, the hashes of these, and the people's ids, as the source has them and as pseudonyms."""
    names = {who: str(anonymise.hash_user(SOURCE, PEOPLE[who], KEY.encode())) for who in GONE}
    return {
        **{f"text of {name}": text for name, text in ALONE.items()},
        **{f"hash of {name}": digest for name, digest in hash_texts().items()},
        **{f"id of {who}": PEOPLE[who] for who in GONE},
        **{f"pseudonym of {who}": name for who, name in names.items()},
    }


def find_places(cluster: Cluster, folder: Path) -> set[tuple[str, str]]:
    """What of them is where, by a search that is not the erasure's own, of all objects, files and databases."""
    keys = {name.lower(): cluster.environment[name] for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")}
    store = pytest.importorskip("boto3").client("s3", endpoint_url=cluster.environment["AWS_ENDPOINT_URL"], **keys)
    pages = store.get_paginator("list_objects_v2").paginate(Bucket=BUCKET)
    for key in [item["Key"] for page in pages for item in page.get("Contents", []) if item["Size"]]:
        path = folder / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(store.get_object(Bucket=BUCKET, Key=key)["Body"].read())
    store.close()
    return {
        (place.secret, place.location)
        for place in find(make_needles(), [folder, cluster.folder], [cluster.database(name) for name in DATABASES])
    }


def read_rows(name: str, day: str = DAY) -> pl.DataFrame:
    """The rows of a table of a day, in order."""
    is_mine = (pl.col("source") == SOURCE) & (pl.col("day") == parse_day(day))
    frame = warehouse.scan(name, is_mine).collect()
    return frame.sort([c for c in frame.columns if not frame.schema[c].is_nested()])


def take_in(cluster: Cluster) -> None:
    """Take the day through the chain, and ask a language model about one of its comments."""
    rest = cluster.rest
    fill(Path(cluster.environment["UNDERTONE_HOME"]) / "inbox")
    connection = {"connection_id": "undertone_user_key", "conn_type": "generic", "password": KEY}
    rest.call("POST", "/connections", json=connection)
    rest.unpause(*CHAIN)
    rest.pause("report")  # dozens of tasks a day that write no table
    rest.trigger("collect", DAY, {"source": SOURCE})
    settled(cluster, [DAY])
    request = Request("m", [{"role": "user", "content": ALONE["a1"]}], "explicit_en", "1", {})
    call = Call(request.key, request, Reply("answered", response="what is meant by it", ended_at=1.0), 0.5)
    answers.record(answers.open_ledger(settings.llm_ledger()), [call], "me", "test")
    answers.close()


def wait_for_erasure(home: Path, timeout: float = 300) -> None:
    """Wait until an erasure has begun: what it is called lies in the home until it is done."""
    end = time.monotonic() + timeout
    while not [path for path in home.glob("forget.*") if path.suffix != ".lock"]:
        assert time.monotonic() < end, f"no erasure has begun after {timeout:.0f} s"
        time.sleep(0.1)
    time.sleep(random.Random(os.environ.get("FAULTS_SEED", "8")).uniform(0, 2))


def expect_tables(before: dict[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """The tables as they should be after: without what was theirs, and a reply to it at the top of its thread."""
    is_reply = pl.col("parent_id").is_in(list(THEIRS)).fill_null(value=False)
    bare = {c: pl.when(~is_reply).then(c).alias(c) for c in ("parent_id", "root_id", "context")}
    stay = before["comments"].filter(~pl.col("comment_id").is_in(list(THEIRS)))
    return {
        "comments": stay.with_columns(context_id=pl.when(is_reply).then("thread_id").otherwise("context_id"), **bare),
        "tokens": before["tokens"].filter(~pl.col("text_hash").is_in(list(hash_texts().values()))),
        "scores": before["scores"].filter(~pl.col("comment_id").is_in(list(THEIRS))),
    }


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.nightly
def test_three_people_go_at_once_while_another_day_comes_in(cluster: Cluster, tmp_path: Path) -> None:
    """Two runs of the DAG, whose worker is killed at it, and a command, of which two people wrote the same: what was
    theirs is found in lake, files and ledger before and nowhere after, receipts are there, and all rows of others are
    as they were.
    """
    rest = cluster.rest
    take_in(cluster)
    before = {name: read_rows(name) for name in ("comments", "tokens", "scores")}
    assert before["comments"].height == before["scores"].height == len(COMMENTS)
    assert {secret for secret, _ in find_places(cluster, tmp_path / "before")} == set(make_needles())
    assert {place.store for place in warehouse.search(make_needles().values())} >= STORES

    requests = {who: tmp_path / f"{who}.csv" for who in GONE}
    for who, path in requests.items():
        path.write_text(f"source,user_id\n{SOURCE},{PEOPLE[who]}\n", encoding="utf-8")
    rest.pause("tokenize", "score")  # an erasure takes the state away that a run in flight reads
    rest.trigger("collect", OTHER, {"source": SOURCE})
    for who in ("anna", "ben"):
        body = {"logical_date": None, "conf": {"path": str(requests[who])}}
        rest.call("POST", "/dags/forget/dagRuns", json=body)
    wait_for_erasure(Path(cluster.environment["UNDERTONE_HOME"]))
    program = Path(sys.executable).with_name("undertone")
    words = [program, "forget", "--file", requests["carl"], "--yes"]
    env = {**cluster.environment, "UNDERTONE_USER_KEY": KEY}
    with subprocess.Popen(words, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as command:
        cluster.restart("worker-gpu")  # and with it goes the erasure
        _, errors = command.communicate()
    assert command.returncode == 0, errors
    quiet(cluster, [DAY, OTHER])
    assert [run["state"] for run in rest.runs("forget")] == ["success", "success"]
    tasks = rest.call("GET", "/dags/forget/dagRuns/~/taskInstances")["task_instances"]
    assert max(task["try_number"] for task in tasks) > 1, "no erasure was killed"
    rest.unpause("tokenize", "score")
    rest.trigger("tokenize", OTHER)
    settled(cluster, [DAY, OTHER])

    assert not requests["anna"].exists()
    assert not requests["ben"].exists()
    requests["carl"].unlink()  # the command leaves its file to whoever gave it
    assert find_places(cluster, tmp_path / "after") == set()
    assert warehouse.search(make_needles().values()) == []
    for name, frame in expect_tables(before).items():
        assert_frame_equal(read_rows(name), frame, check_row_order=False)
        assert frame.height == 3, name
    assert [read_rows(name, OTHER).height for name in ("comments", "tokens", "scores")] == 3 * [len(LATER)]
    (collected,) = read_rows("runs").filter(step="collect").to_dicts()
    assert (collected["read_count"], collected["kept_count"], collected["dropped_count"]) == (8, 3, 5)
    receipts = warehouse.scan("erasures").collect()
    counts = dict(receipts.group_by("store").agg(pl.col("row_count").sum()).iter_rows())
    expected = {"comments": 6, "scores": 5, "inbox": 5, "tokens": 3, "ledger": 2}  # five comments go, one is mended
    lost = {name: count - counts.get(name, 0) for name, count in expected.items()}
    assert min(lost.values()) >= 0
    assert sum(count > 0 for count in lost.values()) <= 1, lost  # a kill may take the count of one store with it
    assert receipts["erasure_id"].n_unique() == len(GONE)
