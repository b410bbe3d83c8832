"""The fetcher against the sample's own site on 127.0.0.1: manners, refusals, paging, and what a kill leaves behind."""

import json
import logging
import random
import re
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest

from pipeline import __version__
from pipeline.collect import fetch
from pipeline.collect.privacy import anonymise
from pipeline.collect.sites.adapters import ADAPTERS, get_adapter
from pipeline.errors import BadInput, Refused, Retry, SchemaDrift, UndertoneError
from pipeline.sample import list_pages
from tests.collect.privacy.personal_data import NAME, list_user_ids
from tests.support.servers.site import Answer, Site

DAY = "2026-11-19"
KEY = b"k" * 32
CONTACT = "https://example.invalid/contact"
QUICK = fetch.Limits(seconds_between=0, backoff=0, timeout=5)
ROBOTS = "/robots.txt"
ALLOW_ALL = Answer(headers={"Content-Type": "text/plain"}, body="User-agent: *\nDisallow:\n")
HTML = "<!DOCTYPE html><title>登录</title>"
SOURCES = sorted(ADAPTERS)
FIRST = "/article/1900000000/comment/v2?oriorder=o&orinum=10&cursor=0"
SECOND = "/article/1900000000/comment/v2?oriorder=o&orinum=10&cursor=6290000000000000005"


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[fetch.Spool]:
    spool = fetch.Spool(f"sqlite:///{tmp_path / 'spool.db'}")
    yield spool
    spool._engine.dispose()


class Clock:
    """The fetcher's time, which passes only while it sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(fetch, "time", SimpleNamespace(sleep=clock.sleep, monotonic=lambda: clock.now))
    return clock


def redactor(source: str) -> Callable[[Any], Any]:
    return lambda body: anonymise.redact(body, source, KEY)


def get(
    site: Site,
    spool: fetch.Spool,
    source: str = "tencent_news",
    *starts: str,
    limits: fetch.Limits = QUICK,
    cookie: str | None = None,
) -> int:
    """Fetch threads (the source's first, unless given) with a fresh fetcher; how many pages were new."""
    counts = []
    with fetch.Fetcher(limits, contact=CONTACT, cookie=cookie) as fetcher:
        for name in starts or site.list_start_urls(source)[:1]:
            urls = [name] if name.startswith("http") else fetch.list_starts(source, name)
            counts += [fetch.fetch_pages(fetcher, spool, source, url, DAY, redact=redactor(source)) for url in urls]
    return sum(counts)


def cursor(site: Site, spool: fetch.Spool, path: str = FIRST, source: str = "tencent_news") -> tuple[str | None, int]:
    """The cursor of a chain, as path?query and number of pages."""
    url, seq = spool.cursor(fetch.ChainKey(source, DAY, site.origin + path))
    return (url.removeprefix(site.origin) if url else None), seq


def check_stop(
    spool: fetch.Spool,
    answers: list[Answer],
    error: type[Exception],
    match: str,
    path: str = FIRST,
    source: str = "tencent_news",
    count: int = 1,
    limits: fetch.Limits = QUICK,
) -> None:
    """These answers to a first page end the source with this error, after so many requests; the cursor stays."""
    with Site(faults={path: answers}) as site:
        with pytest.raises(error, match=match):
            get(site, spool, source, limits=limits)
        assert site.list_requests() == [ROBOTS, *[path] * count]
        assert cursor(site, spool, path, source) == (path, 0)


def spooled(spool: fetch.Spool, source: str = "tencent_news") -> list[str]:
    return [path_of(url) for url, _, _ in spool.pages(source, DAY)]


def path_of(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.path}?{parts.query}" if parts.query else parts.path


def raw_pages(source: str) -> list[tuple[str, dict[str, Any]]]:
    """Address and body of every sample page of a source."""
    lines = [json.loads(line) for path in list_pages(source) for line in path.read_text(encoding="utf-8").splitlines()]
    return [(line["url"], line["body"]) for line in lines]


def say(body: object, **headers: str) -> Answer:
    return Answer(headers=headers, body=json.dumps(body))


def test_robots_is_asked_first_and_once(spool: fetch.Spool) -> None:
    """robots.txt is the first request to a host and is not asked for again; every request names the bot and us."""
    with Site() as site:
        get(site, spool, "tencent_news", *site.list_start_urls("tencent_news"))
        assert site.list_requests()[0] == ROBOTS
        assert site.list_requests().count(ROBOTS) == 1
        assert len(site.list_requests()) == 1 + 12
        assert {r.headers["user-agent"] for r in site.log} == {f"UndertoneBot/{__version__} (+{CONTACT})"}
        assert {r.headers["accept"] for r in site.log} == {"application/json"}


ONLY_OTHERS = "User-agent: *\nAllow: /\n\nUser-agent: UndertoneBot\nDisallow: /article/\n"


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        *((ALLOW_ALL._replace(body=rules), Refused) for rules in ("User-agent: *\nDisallow: /\n", ONLY_OTHERS)),
        *((Answer(200, {"Content-Type": kind}, HTML), Refused) for kind in ("text/html", "text/plain", "Text/HTML")),
        *((Answer(status, {"Location": "/login"}), Refused) for status in (500, 503, 403, 429, 302)),
        (Answer(delay=2), Retry),
    ],
)
def test_robots_that_allows_nothing(spool: fetch.Spool, answer: Answer, error: type[Exception]) -> None:
    """A robots.txt that disallows us, that is HTML, an error, a refusal or a redirect allows nothing; one that times
    out is tried another time. Nothing else is asked.
    """
    with Site(faults={ROBOTS: [answer]}) as site:
        with pytest.raises(error, match=r"robots\.txt"):
            get(site, spool, limits=fetch.Limits(seconds_between=0, timeout=0.5))
        assert site.list_requests() == [ROBOTS]
        assert cursor(site, spool) == (FIRST, 0)


@pytest.mark.parametrize("status", [404, 410])
def test_robots_absent_means_all_is_allowed(spool: fetch.Spool, status: int) -> None:
    """A host without robots.txt may be read."""
    with Site(faults={ROBOTS: [Answer(status)]}) as site:
        assert get(site, spool) == 2


@pytest.mark.parametrize(("delay", "slept"), [(7, [7, 7]), (1, [2, 2])])
def test_a_crawl_delay_wins_when_larger(spool: fetch.Spool, clock: Clock, delay: int, slept: list[float]) -> None:
    """A Crawl-delay above our pause is kept before every page; one below it does not make us faster."""
    with Site(robots=f"User-agent: *\nCrawl-delay: {delay}\n") as site:
        get(site, spool, limits=fetch.Limits(seconds_between=2))
    assert clock.slept == slept


def test_pause_between_two_requests(spool: fetch.Spool, clock: Clock) -> None:
    """Before each request but the first, the fetcher sleeps what is left of `seconds_between`."""
    with Site() as site, fetch.Fetcher(fetch.Limits(seconds_between=2), contact=CONTACT) as fetcher:
        first, second = site.list_start_urls("tencent_news")[:2]
        fetcher.json(first)
        clock.now += 1.5  # time spent on the page itself counts
        fetcher.json(second)
        clock.now += 60
        fetcher.json(first)
    assert clock.slept == [2, 0.5]


@pytest.mark.parametrize("zone", [UTC, None], ids=["GMT", "no-zone"])
def test_retry_after_as_a_date(spool: fetch.Spool, clock: Clock, zone: Any) -> None:
    """Retry-After as an HTTP date is slept through, whether or not the date names its zone."""
    when = datetime.now(UTC) + timedelta(seconds=120)
    date = format_datetime(when, usegmt=True) if zone else format_datetime(when.replace(tzinfo=None))
    with Site(faults={FIRST: [Answer(429, {"Retry-After": date})]}) as site:
        assert get(site, spool) == 2
    assert len(clock.slept) == 1
    assert 110 < clock.slept[0] <= 120


PAST = format_datetime(datetime(2020, 1, 1, tzinfo=UTC), usegmt=True)


@pytest.mark.parametrize(
    ("value", "wait"),
    [
        ("37", 37), *((value, 20) for value in ("", "soon", "-5", "²", "Wed, 99 Foo 2026 99:99:99 GMT")), (PAST, 2),
        ("1", 2),
    ],
)  # fmt: skip
@pytest.mark.parametrize("status", [429, 503])
def test_retry_after(spool: fetch.Spool, clock: Clock, status: int, value: str, wait: float) -> None:
    """Seconds are slept through, and then the page is had; ten times the usual pause answers what says nothing.

    One that is shorter leaves the usual pause.
    """
    with Site(faults={FIRST: [Answer(status, {"Retry-After": value})]}) as site:
        assert get(site, spool, limits=fetch.Limits(seconds_between=2)) == 2
        assert site.list_requests() == [ROBOTS, FIRST, FIRST, SECOND]
    assert clock.slept == [2, wait, 2]


def test_too_many_requests(spool: fetch.Spool, clock: Clock) -> None:
    """Three 429 in a row end the source; a Retry-After over `longest_wait` does so at once, without waiting."""
    check_stop(spool, [Answer(429, {"Retry-After": "301"})], Refused, "301 s")
    assert clock.slept == []
    check_stop(spool, [Answer(429, {"Retry-After": "1"})] * 3, Refused, "3 times in a row", count=3)
    assert clock.slept[:2] == [1, 1]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        *((Answer(status), str(status)) for status in (401, 403, 412, 418, 432)),
        *((Answer(status, {"Location": SECOND}), str(status)) for status in (301, 302, 303, 307, 308)),
        *((Answer(200, {"Content-Type": kind}, f"\n{HTML}"), "HTML") for kind in ("text/html", "application/json")),
    ],
)
def test_a_refusal(spool: fetch.Spool, answer: Answer, said: str) -> None:
    """A status that says no, a redirect, or HTML where JSON was due ends the source at once; the cursor stays."""
    check_stop(spool, [answer], Refused, said)
    assert spooled(spool) == []


REFUSALS = [
    *[("weibo", {"ok": ok, "msg": "请先登录"}) for ok in (0, -100)],
    ("weibo", {"ok": 1, "login": True, "data": {"data": []}}),
    *[("bilibili", {"code": code, "message": "no"}) for code in (-352, -403, -412, -101, -799, -500)],
    *[("netease", {"code": code, "msg": "Cheating"}) for code in (-460, -462, 301, 405)],
    *[("zhihu", {"error": {"code": code, "message": "安全验证"}}) for code in (100, 403, 40352, None)],
    ("tencent_news", {"errCode": 10000, "data": {}}),
    ("tencent_news", {"ret": 1, "info": "no"}),
]


@pytest.mark.parametrize(("source", "body"), REFUSALS, ids=lambda v: v if isinstance(v, str) else json.dumps(v)[:24])
def test_refusal_inside_the_answer(spool: fetch.Spool, source: str, body: dict[str, Any]) -> None:
    """A refusal that a site puts inside an HTTP 200 ends the source at once, keeps the cursor and no page."""
    with Site() as plain:
        path = path_of(plain.list_start_urls(source)[0])
    check_stop(spool, [say(body)], Refused, f"{source} refused inside its answer", path, source)
    assert spooled(spool, source) == []


@pytest.mark.parametrize(
    ("source", "body"),
    [("bilibili", {"code": 12002, "message": "closed"}), ("zhihu", {"error": {"code": 404, "message": "none"}})],
)
def test_closed_section_is_no_refusal(spool: fetch.Spool, source: str, body: dict[str, Any]) -> None:
    """A closed or absent comment section is a page without comments and ends its chain."""
    with Site() as plain:
        path = path_of(plain.list_start_urls(source)[0])
    with Site(faults={path: [say(body)]}) as site:
        assert get(site, spool, source) == 1
        assert cursor(site, spool, path, source) == (None, 1)


def test_a_server_error(spool: fetch.Spool) -> None:
    """500 for ever is a Retry after `attempts` requests, with the cursor kept; two of them and then a page is one.

    So is a body that is not what its Content-Encoding says.
    """
    check_stop(spool, [Answer(500)] * 9, Retry, "failed 4 times: HTTP 500", count=QUICK.attempts)
    unpackable = Answer(200, {"Content-Encoding": "gzip"}, b"not gzip")
    check_stop(spool, [unpackable] * 9, Retry, "failed 4 times", count=QUICK.attempts)
    with Site(faults={FIRST: [Answer(500), Answer(502)]}) as site:
        assert get(site, spool) == 2


def test_slow_answer(spool: fetch.Spool) -> None:
    """An answer slower than the time-out, again and again, is a Retry; so is a host that takes no connection."""
    limits = fetch.Limits(seconds_between=0, backoff=0, timeout=0.5, attempts=2)
    check_stop(spool, [Answer(delay=2)] * 2, Retry, "2 times: ", count=2, limits=limits)
    with Site() as site:
        assert get(site, spool, limits=limits) == 2
    with pytest.raises(Retry):
        get(site, spool, "tencent_news", site.list_start_urls("tencent_news")[1])


@pytest.mark.parametrize("status", [404, 410])
def test_page_that_is_not_there(spool: fetch.Spool, status: int) -> None:
    """A deleted thread ends without pages, is asked for once ever, and does not stop the others."""
    with Site(faults={FIRST: [Answer(status)]}) as site:
        assert get(site, spool) == 0
        assert cursor(site, spool) == (None, 0)
        assert get(site, spool) == 0
        assert site.list_requests().count(FIRST) == 1


@pytest.mark.parametrize("body", ['{"errCode": 0, "data"', "", "[1, 2]", '"text"', b"\xff\xfe{}", "null"])
def test_broken_json(spool: fetch.Spool, body: str | bytes) -> None:
    """What is not a JSON object is schema drift, and the cursor stays."""
    check_stop(spool, [Answer(body=body)], SchemaDrift, "JSON")


def test_schema_drift_keeps_the_page(spool: fetch.Spool) -> None:
    """A page of unknown shape is kept in the spool for whoever mends the adapter, and the cursor stays on it."""
    drifted = {"errCode": 0, "data": {"targetid": "1900000000", "comments_v3": []}}
    with Site(faults={SECOND: [say(drifted)]}) as site:
        with pytest.raises(SchemaDrift, match="oriCommList"):
            get(site, spool)
        assert spooled(spool) == [FIRST]  # not read back, so that the rest of the day can be settled
        assert json.dumps(drifted) in Path(str(spool._engine.url.database)).read_bytes().decode("utf-8", "ignore")
        assert cursor(site, spool) == (SECOND, 1)
        assert get(site, spool) == 1  # once the site or the adapter is mended, the page is asked for anew
        assert spooled(spool) == [FIRST, SECOND]


@pytest.mark.parametrize("source", SOURCES)
def test_whole_threads_as_in_the_sample(spool: fetch.Spool, source: str) -> None:
    """The threads of a site, fetched through its paging, hold what parsing the sample's pages directly gives."""
    with Site() as site:
        assert get(site, spool, source, *site.list_start_urls(source)) == 12
        for start in site.list_start_urls(source):
            assert cursor(site, spool, path_of(start), source) == (None, 2)
        asked = [path for path in site.list_requests() if path != ROBOTS]
    direct = {
        path_of(url): get_adapter(source).parse(redactor(source)(body), url, None)
        for url, body in raw_pages(source)
        if path_of(url) in asked
    }
    assert len(direct) == len(asked) == 12
    fetched = {path_of(url): get_adapter(source).parse(body, url, None) for url, _, body in spool.pages(source, DAY)}
    assert fetched == direct
    assert sum(len(page.comments) for page in fetched.values()) >= 6 * 9


@pytest.mark.parametrize(("source", "name", "pages"), [("netease", "186000", 3), ("weibo", "5100000000000000", 3)])
def test_thread_by_its_id(
    spool: fetch.Spool, monkeypatch: pytest.MonkeyPatch, source: str, name: str, pages: int
) -> None:
    """A bare thread id leads to the article and to all pages of comments."""
    with Site() as site:
        for template in ("ARTICLE", "START"):
            there = urlsplit(getattr(get_adapter(source), template))
            here = getattr(get_adapter(source), template).replace(f"{there.scheme}://{there.netloc}", site.origin)
            monkeypatch.setattr(get_adapter(source), template, here)
        assert get(site, spool, source, name) == pages
    found = [get_adapter(source).parse(body, url, None) for url, _, body in spool.pages(source, DAY)]
    assert [a.thread_id for page in found for a in page.articles] == [name]
    assert {c.thread_id for page in found for c in page.comments} == {name}


@pytest.mark.parametrize(("source", "name"), [("bilibili", "170000"), ("zhihu", "4560000")])
def test_sites_without_a_start_address(spool: fetch.Spool, source: str, name: str) -> None:
    """Bilibili and Zhihu are read from files: a bare thread id is bad input, and nothing is asked."""
    with Site() as site:
        with pytest.raises(BadInput, match="files only"):
            get(site, spool, source, name)
        assert site.list_requests() == []


@pytest.mark.parametrize("name", ["../etc", "1&x=2", "", "1 2", "ftp://host/1"])
def test_thread_id_of_no_known_form(spool: fetch.Spool, name: str) -> None:
    """What is neither an id nor a web address never reaches an address."""
    with pytest.raises(BadInput, match="not a thread id"):
        fetch.list_starts("netease", name)


@pytest.mark.parametrize("is_given_twice", [False, True])
def test_next_that_loops(spool: fetch.Spool, caplog: pytest.LogCaptureFixture, is_given_twice: bool) -> None:
    """A `next` that leads back to a page already read, or to the page itself, ends the chain with a warning."""
    pages = dict(raw_pages("tencent_news"))
    back = pages[f"https://coral.qq.com{SECOND}"]
    back = {**back, "data": {**back["data"], "hasnext": True, "last": "0"}}
    answer = say(pages[f"https://coral.qq.com{FIRST}"] if is_given_twice else back)
    with Site(faults={SECOND: [answer] * 5}) as site:
        assert get(site, spool) == 2
        assert site.list_requests() == [ROBOTS, FIRST, SECOND]
        assert cursor(site, spool) == (None, 2)
    assert "points back" in caplog.text


def test_next_on_another_host(spool: fetch.Spool) -> None:
    """A `next` on another host is schema drift and is not followed; the page is kept, as every page of odd shape is."""
    url, body = next((url, body) for url, body in raw_pages("zhihu") if "root_comment" in url)
    path, paging = path_of(url), {"is_end": False, "next": "https://elsewhere.invalid/comments?offset=2"}
    with Site(faults={path: [say({**body, "paging": paging})]}) as site:
        with pytest.raises(SchemaDrift, match=r"elsewhere\.invalid"):
            get(site, spool, "zhihu")
        assert site.list_requests() == [ROBOTS, path]
        assert cursor(site, spool, path, "zhihu")[0] == path
        assert spool.list_urls(fetch.ChainKey("zhihu", DAY, site.origin + path)) == {site.origin + path}


def test_page_limit(spool: fetch.Spool, caplog: pytest.LogCaptureFixture) -> None:
    """No more than `pages_per_thread` pages are asked for, as is said; a larger limit goes on, and the end is the end.

    A thread fetched to its end is not asked for again on that day, not even robots.txt is.
    """
    with Site() as site:
        assert get(site, spool, limits=fetch.Limits(seconds_between=0, pages_per_thread=1)) == 1
        assert (cursor(site, spool), "has more pages than the 1 " in caplog.text) == ((SECOND, 1), True)
        assert get(site, spool) == 1
        assert [path for path in site.list_requests() if path != ROBOTS] == [FIRST, SECOND]
        site.log.clear()
        assert get(site, spool) == 0
        assert site.list_requests() == []


@pytest.mark.parametrize("fault", [Answer(403), Answer(200, {"Content-Type": "text/html"}, HTML), say({"ret": 7})])
def test_refused_second_page(spool: fetch.Spool, fault: Answer) -> None:
    """A refused second page leaves page one and the cursor; a later call goes on without asking for page one."""
    with Site(faults={SECOND: [fault]}) as site:
        with pytest.raises(Refused):
            get(site, spool)
        assert spooled(spool) == [FIRST]
        assert cursor(site, spool) == (SECOND, 1)
        assert get(site, spool) == 1
        assert site.list_requests() == [ROBOTS, FIRST, SECOND, ROBOTS, SECOND]
    assert spooled(spool) == [FIRST, SECOND]


VICTIM = """
import json, sys
from pipeline.collect import fetch
from pipeline.collect.privacy import anonymise
uri, day, run, threads = *sys.argv[1:4], json.loads(sys.argv[4])
spool = fetch.Spool(uri)
with fetch.Fetcher(fetch.Limits(seconds_between=0, backoff=0), contact=run) as fetcher:
    for source, start in threads:
        fetch.fetch_pages(fetcher, spool, source, start, day, redact=lambda b: anonymise.redact(b, source, b"k" * 32))
"""
KILLS = 4


def test_kill_at_any_moment(tmp_path: Path) -> None:
    """Killed with -9 again and again and run to the end: each page is spooled once, none asked for after its commit."""
    uri, dice = f"sqlite:///{tmp_path / 'spool.db'}", random.Random(20261119)
    with Site(latency=0.004) as site:
        threads = json.dumps([(source, start) for source in SOURCES for start in site.list_start_urls(source)])
        for run in range(KILLS + 1):
            done = committed(uri)
            command = [sys.executable, "-c", VICTIM, uri, DAY, f"run-{run}", threads]
            with subprocess.Popen(command, cwd=Path(fetch.__file__).parents[2], stderr=subprocess.PIPE) as victim:
                if run < KILLS:
                    wait_for(run, site, dice.randint(1, 9))
                    time.sleep(dice.uniform(0, 0.015))
                    victim.kill()
                _, errors = victim.communicate(timeout=60)
            assert victim.returncode == (-9 if run < KILLS else 0), errors.decode()
            asked = asked_by(run, site)
            assert asked[0] == ROBOTS
            assert not done.keys() & set(asked)
        pages = Counter(path for path in site.list_requests() if path != ROBOTS)
    assert committed(uri) == Counter(pages.keys())
    assert len(pages) == 5 * 6 * 2
    assert pages.total() - len(pages) <= KILLS  # only what was in flight when the kill came


def asked_by(run: int, site: Site) -> list[str]:
    """What one run asked for; its number is its contact."""
    return [request.path for request in site.log if f"(+run-{run})" in request.headers["user-agent"]]


def wait_for(run: int, site: Site, requests: int) -> None:
    """Until a run has made so many requests."""
    end = time.monotonic() + 30
    while len(asked_by(run, site)) < requests:
        assert time.monotonic() < end
        time.sleep(0.001)


def committed(uri: str) -> Counter[str]:
    """How often each page is in a spool."""
    spool = fetch.Spool(uri)
    found = Counter(path for source in SOURCES for path in spooled(spool, source))
    spool._engine.dispose()
    return found


@pytest.mark.parametrize("source", SOURCES)
def test_no_person_reaches_the_spool(spool: fetch.Spool, tmp_path: Path, source: str) -> None:
    """With a key, no user id, nickname or mention of the raw pages is anywhere in the spool's file."""
    pages = raw_pages(source)
    secret = set(re.findall(rf"(?<=@)[\w-]{{2,}}|{NAME}", json.dumps(pages, ensure_ascii=False)))
    secret |= {user_id for _, body in pages for user_id in list_user_ids(body) if len(user_id) > 3}
    assert len(secret) > 100
    with Site() as site:
        starts = site.list_start_urls(source) + [site.origin + path_of(url) for url, _ in pages]
        get(site, spool, source, *starts)
    assert set(spooled(spool, source)) == {path_of(url) for url, _ in pages}
    file = (tmp_path / "spool.db").read_bytes()
    rows = str(list(spool.pages(source, DAY)))  # the file may break a word between two of its pages
    assert [value for value in sorted(secret) if value.encode() in file or value in rows] == []


COOKIE = "SUB=geheim-4711"


def test_cookie_is_sent_to_pages_only(spool: fetch.Spool) -> None:
    """A cookie that was given goes out with every page, not with robots.txt; without one none is sent."""
    with Site() as site:
        get(site, spool, cookie=COOKIE)
        sent = [(request.path, request.headers.get("cookie")) for request in site.log]
    assert sent == [(ROBOTS, None), (FIRST, COOKIE), (SECOND, COOKIE)]
    gift = {"Set-Cookie": "spy=1; Path=/"}
    robots = ALLOW_ALL._replace(headers={**ALLOW_ALL.headers, **gift})
    first = say(dict(raw_pages("tencent_news"))[f"https://coral.qq.com{FIRST}"], **gift)
    with Site(faults={ROBOTS: [robots], FIRST: [first]}) as site:
        assert get(site, spool) == 2
        assert [r.headers.get("cookie") for r in site.log] == [None, None, None]


@pytest.mark.parametrize(
    "answers",
    [
        [], *([Answer(status, {"Retry-After": "9999"})] * 9 for status in (403, 404, 429, 500)),
        [Answer(200, {"Content-Type": "text/html"}, HTML)], [Answer(body="{")], [Answer(delay=2)] * 9,
    ],
)  # fmt: skip
def test_cookie_is_never_told(
    spool: fetch.Spool, tmp_path: Path, clock: Clock, caplog: pytest.LogCaptureFixture, answers: list[Answer]
) -> None:
    """However a fetch ends, the cookie is in no log record at any level, no error with its causes, and no spool."""
    caplog.set_level(logging.DEBUG)
    limits = fetch.Limits(seconds_between=0, backoff=0, timeout=0.5 if answers and answers[0].delay else 5)
    told = ""
    with Site(faults={FIRST: answers}) as site:
        try:
            get(site, spool, cookie=COOKIE, limits=limits)
        except UndertoneError as why:
            told = "".join(traceback.format_exception(why)) + repr(why)
        assert any(r.headers.get("cookie") == COOKIE for r in site.log)
    assert bool(told) == (bool(answers) and answers[0].status != 404)
    assert "geheim" not in told
    assert "geheim" not in caplog.text + "".join(str(vars(record)) for record in caplog.records)
    assert b"geheim" not in (tmp_path / "spool.db").read_bytes()


@pytest.mark.parametrize("cookie", [f"{COOKIE}\n", f"{COOKIE}\r\nX-Other: 1", f"{COOKIE}；x=1"])
def test_cookie_that_cannot_be_sent(spool: fetch.Spool, caplog: pytest.LogCaptureFixture, cookie: str) -> None:
    """A cookie with a line break or letters outside ASCII is bad input (or trimmed), and the error is silent on it."""
    caplog.set_level(logging.DEBUG)
    told = ""
    with Site() as site:
        try:
            get(site, spool, cookie=cookie)
        except BadInput as why:
            told = "".join(traceback.format_exception(why))
        assert all("x-other" not in r.headers for r in site.log)
    assert "geheim" not in told + caplog.text
