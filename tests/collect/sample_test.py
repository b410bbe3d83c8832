"""The sample: what it must hold for the demo and the tests."""

import csv
import json
from collections import Counter

import pytest

from pipeline.collect.importers import Batch, read
from pipeline.collect.sites.record import Comment
from pipeline.errors import BadInput
from pipeline.sample import COMPLETIONS, FOLDER, list_pages, list_sites

SITES = ["bilibili", "netease", "tencent_news", "weibo", "zhihu"]


@pytest.fixture(scope="module")
def batches() -> list[Batch]:
    """The sample's pages, read as any user's would be."""
    return [batch for source in list_sites() for batch in read(list_pages(source)[0], None, {}, b"k" * 32)]


def unique(batches: list[Batch]) -> dict[tuple[str, str, str], Comment]:
    """The sample's comments, each once."""
    return {(b.source, c.thread_id, c.comment_id): c for b in batches for c in b.page.comments}


def test_five_sites(batches: list[Batch]) -> None:
    """All five sites are there and no sixth; a reply's parent is in its thread, or the site marks it as gone."""
    assert list_sites() == SITES == [batch.source for batch in batches]
    with pytest.raises(BadInput, match="no source 'moon'; there are bilibili, "):
        list_pages("moon")
    comments = unique(batches)
    gone = {(b.source, key) for b in batches for _, key in b.page.skipped}
    for (source, thread, _), comment in comments.items():
        if comment.parent_id:
            assert (source, thread, comment.parent_id) in comments or (source, comment.parent_id) in gone


def test_size(batches: list[Batch]) -> None:
    """At least 240 comments in at least 24 threads, each with its article; four sites have hot ones (CSD-05)."""
    comments = unique(batches)
    threads = {(source, thread) for source, thread, _ in comments}
    articles = {(b.source, a.thread_id) for b in batches for a in b.page.articles}
    assert len(comments) >= 240
    assert len(threads) >= 24
    assert len(articles) >= 24
    assert threads <= articles
    assert {b.source for b in batches if any(c.is_hot for c in b.page.comments)} == {*SITES} - {"tencent_news"}


def test_devices(batches: list[Batch]) -> None:
    """devices.csv speaks of comments that are there; each device occurs at least four times on each site."""
    with (FOLDER / "devices.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    comments = unique(batches)
    assert {(r["source"], r["thread_id"], r["comment_id"]) for r in rows} <= set(comments)
    counts = Counter((r["source"], device) for r in rows for device in r["devices"].split())
    devices = {device for _, device in counts}
    assert {"subtext", "metaphor", "homophone", "exaggeration", "sarcasm", "plain"} <= devices
    assert {
        (site, device): counts[site, device] for site in SITES for device in devices if counts[site, device] < 4
    } == {}


def test_completions() -> None:
    """At least 200 recorded completions of one model, in both languages, none of them empty."""
    rows = [json.loads(line) for line in COMPLETIONS.read_text(encoding="utf-8").splitlines()]
    assert len(rows) >= 200
    assert {row["model"] for row in rows} == {"undertone-sample"}
    assert {row["source"].rpartition("_")[2] for row in rows} == {"en", "zh"}
    assert all(row["input"].strip() and row["response"].strip() for row in rows)
