"""Collecting as a task: what files together become, and what happens to inputs that change or stop."""

import json
import logging
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from pipeline import left_out, sample, warehouse
from pipeline.collect import fetch
from pipeline.collect.sites import netease
from pipeline.errors import BadInput, Refused
from pipeline.papers.commenting import WINDOW as PAPER_WINDOW
from pipeline.tables import TABLES
from pipeline.tasks.daily import collect, intake, score, tokenize
from tests.support.commands import import_here
from tests.support.servers.site import Answer, Site

DAY = sample.DAY


def texts() -> list[str]:
    return sorted(warehouse.scan("comments").select("text").collect()["text"])


def write(folder: Path, **files: str) -> list[Path]:
    """Files with one comment each."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.csv").write_text(f"text\n{text}\n", encoding="utf-8")
    return [folder / f"{name}.csv" for name in files]


def test_imports_of_other_files_are_left_alone(tables: Path, tmp_path: Path) -> None:
    """Two files, then two others of the same folder: all four stay; the first two again replace only themselves."""
    first, second = write(tmp_path, a="of a", b="of b"), write(tmp_path, c="of c", d="of d")
    collect.import_files(first, "mine", DAY)
    collect.import_files(second, "mine", DAY)
    assert texts() == ["of a", "of b", "of c", "of d"]
    write(tmp_path, a="of a mended")
    collect.import_files(first, "mine", DAY)
    assert texts() == ["of a mended", "of b", "of c", "of d"]
    note = "mine: comments of an earlier import of 'a.csv+b.csv' that changed or are gone: 1"
    assert [line.partition(";")[0] for line in left_out.list_lines()] == [note]
    files = [*write(tmp_path / "p1", c="one"), *write(tmp_path / "p2" / "p1", c="two")]  # of the same name and folder
    assert collect.import_files(files, "mine", DAY)[0]["kept"] == 2
    collect.import_files(files[:1], "mine", DAY)
    assert "two" in texts()
    for name in ("before", "after"):  # a file that is renamed in its folder is another source
        collect.import_files(write(tmp_path / name, **{name: "of it"}), None, DAY, origin="folder")
    assert "before: not in 'folder' any more; comments of its earlier import stay: 1" in left_out.list_lines()


def test_seconds_of_the_sources_of_an_import_add_up(tables: Path) -> None:
    """What all sources share counts for the first alone: the sum is no more than the time that it took."""
    timer = time.monotonic()
    collect.import_files(collect.list_files("sample", None, DAY).files, None, DAY)
    assert 0 < warehouse.scan("runs").select("seconds").collect().sum().item() < time.monotonic() - timer


def test_a_changed_comment_loses_what_was_derived(tables: Path, tmp_path: Path) -> None:
    """After another import of a file, a comment with a new text has no score of the old one, and a note names both."""
    path = tmp_path / "a.csv"
    path.write_text("id,text\n1,今天真冷\n2,他说得真好\n3,某人又迟到了\n", encoding="utf-8")
    collect.import_files([path], "mine", DAY)
    derived_tables = ("tokens", "scores", "scores_explained")
    tokenize.run(DAY)
    score.run(DAY, explained=3)
    counts = [warehouse.scan(name).select(pl.len()).collect().item() for name in derived_tables]
    states = [warehouse.get_snapshot_id(name) for name in derived_tables]
    collect.import_files([path], "mine", DAY)
    assert [warehouse.get_snapshot_id(name) for name in derived_tables] == states
    path.write_text("id,text\n1,今天真冷\n2,没人信\n", encoding="utf-8")
    collect.import_files([path], "mine", DAY)
    assert warehouse.query("select comment_id from comments_scored").rows() == [("a.csv-2",)]
    is_unchanged = pl.col("comment_id") == "a.csv-2"
    kept = warehouse.scan("comments").filter(is_unchanged).select("text_hash").collect()
    for name in derived_tables:
        assert_frame_equal(warehouse.scan(name).select(pl.col("text_hash").unique()).collect(), kept)
    stale_count = sum(counts) - sum(warehouse.scan(name).select(pl.len()).collect().item() for name in derived_tables)
    assert any(f"that changed or are gone: {stale_count} rows" in line for line in left_out.list_lines())


def test_size_of_buckets_does_not_matter(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An import in many buckets of threads gives the same rows as in one, and removes the buckets."""

    def import_sample() -> list[pl.DataFrame]:
        collect.run(None, DAY, path=collect.SAMPLE)
        return [warehouse.scan(name).collect().sort(pl.all()) for name in ("comments", "articles", "dropped")]

    whole = import_sample()
    monkeypatch.setattr(intake, "_ROWS", 7)
    for rows, expected in zip(import_sample(), whole, strict=True):
        assert_frame_equal(rows, expected)
    assert [*tables.rglob("buckets")]
    assert not [*tables.rglob("buckets/*")]


def test_a_folder_is_known_by_its_name(tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder one stands in has a name too; hidden and unreadable files in it are left out."""
    import_here(monkeypatch)
    write(tmp_path / "export", a="of a")
    (tmp_path / "export" / ".DS_Store").write_bytes(b"\0")
    (tmp_path / "export" / "b.csv.part").write_text("text\nhalf", encoding="utf-8")
    monkeypatch.chdir(tmp_path / "export")
    collect.run("mine", DAY, path=".")
    assert warehouse.scan("comments").select("origin").collect()["origin"].to_list() == ["export"]


def test_an_emptied_inbox_empties_its_rows(tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was taken out of the inbox is gone after the day is run again; a day that never had files is not touched."""
    import_here(monkeypatch)
    monkeypatch.setenv("UNDERTONE_INBOX", str(tmp_path / "inbox"))
    (tmp_path / "inbox" / "mine").mkdir(parents=True)
    (file,) = write(tmp_path / "inbox" / "mine" / DAY, a="of a")
    assert collect.run("mine", DAY)[0]["kept"] == 1
    file.unlink()
    assert collect.run("mine", DAY)[0]["kept"] == 0
    assert texts() == []
    assert collect.run("mine", "2026-11-18") == []
    assert "mine" in collect.list_sources("all", None)


@pytest.mark.parametrize("change", [{"live": False}, {"threads": []}, {"path": "a.csv"}, {"source": "all"}])
def test_contradictory_parameters_of_a_fetch_are_refused(home: Path, change: dict[str, Any]) -> None:
    """Threads without live, live without threads, with a path or for all sources are bad input before any request."""
    options: dict[str, Any] = {"source": "netease", "path": None, "live": True, "threads": ["1"]}
    assert collect.list_sources(**options) == ["netease"]
    with pytest.raises(BadInput, match="to fetch from a site: set live"):
        collect.list_sources(**options | change)


def test_what_is_not_asked_for_is_refused(tables: Path) -> None:
    """Another site's rows, a name in capitals, and an address where an id is due are bad input."""
    with pytest.raises(BadInput, match="no rows of source 'weibo'"):
        collect.import_files(sample.list_pages("zhihu"), "weibo", DAY)
    assert ": pages of other sources than weibo: " in left_out.list_lines()[0]
    with pytest.raises(BadInput, match="small letters"):
        collect.import_files(sample.list_pages("zhihu"), "Forum", DAY)
    with pytest.raises(BadInput, match="not a thread id"):
        collect.fetch_threads("netease", ["http://127.0.0.1:9/steal"], DAY, cookie="MUSIC_U=1")


def test_a_bad_file_changes_nothing(tables: Path, tmp_path: Path) -> None:
    """A line broken far down one file refuses the import: every table keeps its snapshot, after a good file too."""
    good, bad = tmp_path / "0.jsonl", tmp_path / "a.jsonl"
    lines = [f'{{"comment_id": "{number}", "text": "comment {number}"}}' for number in range(9)]
    good.write_text("\n".join(lines), encoding="utf-8")
    collect.import_files(write(tmp_path / "before", a="there before"), "mine", DAY, origin="mine")
    before = {name: warehouse.get_snapshot_id(name) for name in TABLES}
    bad.write_text("\n".join([*lines[:6], lines[6][:-4], *lines[7:]]), encoding="utf-8")
    for paths in ([bad], [good, bad]):
        with pytest.raises(BadInput, match=r"a\.jsonl, line 7: broken JSON"):
            collect.import_files(paths, "mine", DAY, origin="mine")
        assert {name: warehouse.get_snapshot_id(name) for name in TABLES} == before
    assert collect.import_files([good], "mine", DAY, origin="mine")[0]["kept"] == 9


def test_bad_rows_are_dropped_where_asked(
    tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Rows that cannot be read are dropped and counted; the log names their place and reason, never their words."""
    import_here(monkeypatch)
    caplog.set_level(logging.INFO, "pipeline")
    folder = tmp_path / "export"
    folder.mkdir()
    (folder / "NOTE.txt").write_text("a note\n", encoding="utf-8")
    rows = ',text,like_count\n0,one,1\n1,"two,1\n2,three,my number 138\n3,four,1\n'
    (folder / "a.csv").write_text(rows, encoding="utf-8")
    with pytest.raises(BadInput, match=r"a\.csv, line 3, character 3: the quote opened here is not closed"):
        collect.run("mine", DAY, path=str(folder))
    (collected,) = collect.run("mine", DAY, path=str(folder), skip_bad_rows=True)
    assert (collected["read"], collected["kept"], collected["dropped"]) == (4, 2, 2)
    assert collected["reasons"] == {"parse": {"bad_value": 1, "unclosed_quote": 1}}
    assert [part.partition(":")[0] for part in collected["ignored"]] == ["NOTE.txt", "a.csv"]
    assert "my number 138" in " ".join(collected["bad_rows"])
    assert "left out a.csv-4: bad_value" in caplog.text
    assert "my number 138" not in caplog.text
    with pytest.raises(BadInput, match="no file to import"):
        collect.run("mine", DAY, path=str(tmp_path / "export" / ".."))


def test_a_window_of_days(tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Comments of the window stay, undated ones by the run's day (AAC-02); contexts and copies are of all comments."""
    import_here(monkeypatch)
    path = tmp_path / "a.csv"
    times = ["2017-03-31T23:59:59Z", "2017-04-01T00:00:00Z", "2017-08-31T23:59:59Z", "2017-09-01T00:00:00Z", ""]
    rows = [f"comment {n % 4},c{n},{'c0' if n == 1 else ''},{time}" for n, time in enumerate([*times, times[1]])]
    path.write_text("\n".join(["text,comment_id,parent_id,created_at", *rows, f"comment 0,c6,,{times[2]}"]))
    window = {"first_day": PAPER_WINDOW[0], "last_day": PAPER_WINDOW[1]}
    collected = {day: collect.run("mine", day, path=str(path), selection=window)[0] for day in (DAY, "2017-05-01")}
    assert collected[DAY]["reasons"] == {"clean": {"outside_window": 3}}
    assert collected["2017-05-01"]["reasons"] == {"clean": {"outside_window": 2}, "deduplicate": {"exact_duplicate": 1}}
    comments = warehouse.scan("comments").sort("day", "comment_id").collect()
    assert comments["comment_id"].to_list() == ["c1", "c2", "c4", "c5", "c1", "c2", "c5", "c6"]
    assert comments["context"][0] == comments["context"][4] == "comment 0"
    path.write_text("text,comment_id,parent_id\nwell,1,9\nso,2,1\n")
    left_out.clear()
    collect.run("yours", DAY, path=str(path))
    assert left_out.list_lines()[0].startswith("yours: comments that answer absent or dropped ones: 1; ")
    assert warehouse.scan("runs").filter(pl.col("config").str.contains("2017-08-31")).collect().height == 2
    with pytest.raises(BadInput, match="the last day, 2017-04-01, is before the first, 2017-08-31"):
        collect.run("mine", DAY, path=str(path), selection={"first_day": "2017-08-31", "last_day": "2017-04-01"})


def test_a_circle_of_answers_is_refused(tables: Path, tmp_path: Path) -> None:
    """Comments that answer each other in a circle are named with file and row, and nothing is written."""
    file = tmp_path / "circle.csv"
    file.write_text("text,comment_id,parent_id\nd,4,1\na,1,2\nb,2,3\nc,3,1\n", encoding="utf-8")
    with pytest.raises(BadInput, match=r"'1' \(circle\.csv, row 3\), '2' \(circle\.csv, row 4\), '3' .* in a circle"):
        collect.import_files([file], "mine", DAY)
    assert warehouse.get_snapshot_id("comments") is None


def test_a_thread_that_will_not_fit_in_memory_is_refused_early(
    tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """800 comments of one thread for each megabyte are read; one more is refused, with what to do."""
    monkeypatch.setenv("UNDERTONE_IMPORT_MEMORY", "1")
    texts = "\n".join(f"line {number}" for number in range(801))
    with pytest.raises(BadInput, match=r"thread 'a\.csv' has more than 800 comments.*--map thread_id"):
        collect.import_files(write(tmp_path, a=texts), "mine", DAY)
    assert warehouse.get_snapshot_id("comments") is None
    assert collect.import_files(write(tmp_path, a=texts.rpartition("\n")[0]), "mine", DAY)[0]["read"] == 800


def test_a_refusal_keeps_what_came_before(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages fetched before a refusal are settled and the refusal is told; refused at once, Refused is raised."""
    second = "/api/v1/resource/comments/R_SO_4_186000?limit=20&offset=20"
    quick = fetch.Limits(seconds_between=0)
    with Site(faults={second: [Answer(403)] * 2}) as site:
        for name in ("START", "ARTICLE"):
            monkeypatch.setattr(netease, name, getattr(netease, name).replace("https://music.163.com", site.origin))
        (first,) = collect.fetch_threads("netease", ["186000"], DAY, limits=quick)
        assert first["kept"] == warehouse.scan("comments").select(pl.len()).collect().item() > 0
        assert "403" in str(first["stopped"])
        (retried,) = collect.fetch_threads("netease", ["186000"], DAY, limits=quick)
        assert (retried["kept"], retried["stopped"]) == (first["kept"], first["stopped"])
    with Site(robots="User-agent: *\nDisallow: /") as site:
        monkeypatch.setattr(netease, "START", f"{site.origin}/api/v1/resource/comments/R_SO_4_{{thread}}")
        monkeypatch.setattr(netease, "ARTICLE", None)
        with pytest.raises(Refused, match="robots"):
            collect.fetch_threads("netease", ["1"], "2026-11-18", limits=quick)


@pytest.mark.parametrize("key", [b"k" * 32, None])
def test_nothing_personal_reaches_a_table(tables: Path, tmp_path: Path, key: bytes | None) -> None:
    """Ids, category, title, context, file name and row keys are anonymised; answers still meet what they answer."""
    mail, phone, hidden = "a.b@example.com", "+86 13812345678", "138\u034f1234\u061c5678"
    rows = [
        {"thread_id": phone, "comment_id": mail, "text": f"打{hidden}吧", "category": mail,
         "article_title": f"问 {mail}", "article_text": "IBAN GB82WEST12345698765432, 192.0.2.44",
         "summary": "卡4111 1111 1111 1111"},
        {"thread_id": phone, "comment_id": f"{mail}/2", "parent_id": mail, "root_id": mail, "text": "好",
         "context": hidden},
        {"thread_id": phone, "comment_id": f"{mail}/3", "text": ""},
    ]  # fmt: skip
    for name in ("13812345678", "13912345678"):
        path = tmp_path / f"{name}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        collect.import_files([path], None, DAY, key=key)
    frames = {name: warehouse.scan(name).collect() for name in ("comments", "articles", "dropped", "runs")}
    stored = "\n".join(frame.write_json() for frame in frames.values())
    for personal in ("example.com", "13812345678", "13912345678", "1234", "GB82", "192.0.2", "4111"):
        assert personal not in stored
    assert frames["comments"]["origin"].n_unique() == frames["comments"]["source"].n_unique() == 2
    answers = frames["comments"].filter(pl.col("parent_id").is_not_null())
    parents = frames["comments"].select("source", "thread_id", parent_id="comment_id", parent_text="text")
    answered = answers.join(parents, on=["source", "thread_id", "parent_id"])
    assert answered["parent_text"].to_list() == ["打[PHONE]吧"] * 2
    assert set(frames["comments"]["thread_id"]) == set(frames["articles"]["thread_id"])
    assert frames["articles"]["title"].to_list() == ["问 [EMAIL]"] * 2  # of the row that has it
