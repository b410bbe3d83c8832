"""The one fetcher: polite, honest about who it is, and off unless asked for.

robots.txt is obeyed, a no ends the source at once, and a page is committed together with the cursor after it.
"""

import json
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import httpx
import sqlalchemy as sa
import tenacity
from protego import Protego

from pipeline import __version__
from pipeline.collect.sites import adapters
from pipeline.errors import BadInput, Missing, Refused, Retry, SchemaDrift
from pipeline.io.lines import parse_json

log = logging.getLogger(__name__)
AGENT = "UndertoneBot"
_NO_COOKIES = DefaultCookiePolicy(allowed_domains=[])  # what a site sets is not kept
_NO = {401, 403, 412, 418, 432}
_LATER = {429, 503}
_GONE = {404, 410}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much is asked of a site."""

    seconds_between: float = 2.0  # between two requests to one host; a larger Crawl-delay wins
    pages_per_thread: int = 50
    timeout: float = 30.0
    attempts: int = 4  # of one request, on timeouts and 5xx
    backoff: float = 2.0  # seconds before the second attempt, doubling
    waits: int = 3  # 429 or 503 in a row before the source is left alone
    longest_wait: float = 300.0  # a longer Retry-After means: come back another day


class Fetcher(AbstractContextManager["Fetcher"]):
    """A client that is polite to every host it talks to."""

    def __init__(self, limits: Limits, *, contact: str, cookie: str | None = None) -> None:
        headers = {"User-Agent": f"{AGENT}/{__version__} (+{contact})", "Accept": "application/json"}
        if cookie is not None and not (cookie.isascii() and cookie.isprintable()):
            raise BadInput("the cookie holds a line break or a letter outside ASCII")  # and is not repeated here
        self.limits = limits
        self._cookie = cookie
        cookies = CookieJar(_NO_COOKIES)
        self._http = httpx.Client(headers=headers, timeout=limits.timeout, follow_redirects=False, cookies=cookies)
        self._robots: dict[str, Protego] = {}
        self._asked_at: dict[str, float] = {}

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def json(self, url: str) -> dict[str, Any]:
        """The JSON object at an address, or Refused, Retry or SchemaDrift."""
        robots = self._read_robots(url)
        if not robots.can_fetch(url, AGENT):
            raise Refused(f"robots.txt of {urlsplit(url).netloc} does not allow {urlsplit(url).path}")
        headers = {"Cookie": self._cookie} if self._cookie else {}
        answer = self._ask_patiently(url, max(self.limits.seconds_between, robots.crawl_delay(AGENT) or 0), headers)
        if _is_html(answer):
            raise Refused(f"{urlsplit(url).netloc} answered HTML where JSON was due: a log-in or a check")
        try:
            body = parse_json(answer.content.decode(json.detect_encoding(answer.content)))
        except ValueError as why:
            raise SchemaDrift(f"{url}: the answer is not JSON: {why}") from why
        if not isinstance(body, dict):
            raise SchemaDrift(f"{url}: the answer is a JSON {type(body).__name__}, expected an object")
        return body

    def _read_robots(self, url: str) -> Protego:
        """robots.txt of the address's host. HTML, 5xx and a refusal of the file itself mean: nothing is allowed."""
        parts = urlsplit(url)
        if parts.netloc not in self._robots:
            try:
                answer = self._get(f"{parts.scheme}://{parts.netloc}/robots.txt", self.limits.seconds_between, {})
            except httpx.HTTPError as why:
                raise Retry(f"robots.txt of {parts.netloc} cannot be read: {type(why).__name__}") from why
            rules = "" if answer.status_code in _GONE else "User-agent: *\nDisallow: /\n"
            if answer.is_success and not _is_html(answer):
                rules = answer.text
            self._robots[parts.netloc] = Protego.parse(rules)
        return self._robots[parts.netloc]

    def _ask_patiently(self, url: str, between: float, headers: dict[str, str]) -> httpx.Response:
        host = urlsplit(url).netloc
        for remaining in reversed(range(self.limits.waits)):
            answer = self._ask_repeatedly(url, between, headers)
            if answer.is_success:
                return answer
            if answer.status_code in _NO or answer.is_redirect:
                raise Refused(f"{host} answered {answer.status_code}")
            if answer.status_code in _GONE:
                raise Gone(url)
            if answer.status_code not in _LATER:
                raise BadInput(f"{url}: the host answered {answer.status_code}")
            wait = _retry_after(answer, between)
            if wait > self.limits.longest_wait:
                raise Refused(f"{host} asks to wait {wait:.0f} s")
            if remaining:
                log.info("%s asks to wait %.0f s", host, wait)
                time.sleep(wait)
        raise Refused(f"{host} answered {self.limits.waits} times in a row: too many requests")

    def _ask_repeatedly(self, url: str, between: float, headers: dict[str, str]) -> httpx.Response:
        is_fault = tenacity.retry_if_result(lambda answer: answer.is_server_error and answer.status_code not in _LATER)
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(httpx.RequestError) | is_fault,
            wait=tenacity.wait_exponential(multiplier=self.limits.backoff, max=60),
            stop=tenacity.stop_after_attempt(self.limits.attempts),
        )
        try:
            return retrying(self._get, url, between, headers)
        except tenacity.RetryError as why:
            attempt, error = why.last_attempt, why.last_attempt.exception()
            fault = f"HTTP {attempt.result().status_code}" if error is None else str(error) or type(error).__name__
            raise Retry(f"{urlsplit(url).netloc} failed {self.limits.attempts} times: {fault}") from why

    def _get(self, url: str, between: float, headers: dict[str, str]) -> httpx.Response:
        host = urlsplit(url).netloc
        pause = self._asked_at.get(host, -between) + between - time.monotonic()
        if pause > 0:
            time.sleep(pause)
        try:
            return self._http.get(url, headers=headers)
        finally:
            self._asked_at[host] = time.monotonic()


class Gone(Exception):
    """The page is not there any more: its thread was deleted."""


def _is_html(answer: httpx.Response) -> bool:
    return "html" in answer.headers.get("content-type", "").lower() or answer.text.lstrip("\ufeff \t\r\n")[:1] == "<"


def _retry_after(answer: httpx.Response, least: float) -> float:
    """Seconds to wait: Retry-After as a number or a date, else ten times the usual pause."""
    value = answer.headers.get("retry-after", "")
    if value.isascii() and value.isdigit():
        return max(float(value), least)
    try:
        when = parsedate_to_datetime(value)
        when = when if when.tzinfo else when.replace(tzinfo=UTC)  # an HTTP date is always GMT
        return max((when - datetime.now(UTC)).total_seconds(), least)
    except ValueError:
        return least * 10


Cursor = tuple[str | None, int]  # the next address of a chain (None when done) and how many pages it has


class ChainKey(NamedTuple):
    """Pages that follow each other, fetched for a day; `chain` is the address of the first."""

    source: str
    day: str
    chain: str


_KEY = "source varchar not null, day varchar not null, chain varchar not null"
_TABLES = (
    f"create table if not exists cursors ({_KEY}, url varchar, seq integer, primary key (source, day, chain))",
    f"create table if not exists pages ({_KEY}, seq integer not null, url varchar not null,"
    " fetched_at varchar not null, body text not null, primary key (source, day, chain, seq))",
)
_CURSOR = sa.text("select url, seq from cursors where source = :source and day = :day and chain = :chain")
_URLS = sa.text("select url from pages where source = :source and day = :day and chain = :chain")
_PAGES = sa.text(
    "select pages.url, fetched_at, body from pages join cursors on cursors.source = pages.source"
    " and cursors.day = pages.day and cursors.chain = pages.chain and pages.seq < cursors.seq"
    " where pages.source = :source and pages.day = :day order by pages.chain, pages.seq"
)
_MOVE = sa.text(
    "insert into cursors (source, day, chain, url, seq) values (:source, :day, :chain, :url, :seq)"
    " on conflict (source, day, chain) do update set url = excluded.url, seq = excluded.seq"
)
_SAVE = sa.text(
    "insert into pages (source, day, chain, seq, url, fetched_at, body)"
    " values (:source, :day, :chain, :seq, :url, :fetched_at, :body) on conflict (source, day, chain, seq)"
    " do update set url = excluded.url, fetched_at = excluded.fetched_at, body = excluded.body"
)


class Spool:
    """Fetched pages, redacted, with the cursor after each; one transaction a page. SQLite, or PostgreSQL for a team."""

    def __init__(self, uri: str) -> None:
        try:
            self._engine = sa.create_engine(uri)
            with self._engine.begin() as con:
                for table in _TABLES:
                    con.execute(sa.text(table))
        except ImportError as why:
            raise Missing(f"the spool's address needs a driver that is not installed: {why.name}") from None
        except (sa.exc.SQLAlchemyError, ValueError) as why:  # a driver may repeat the address, which has a password
            raise Retry(f"the spool does not answer ({type(why).__name__}); see UNDERTONE_SPOOL") from None

    def close(self) -> None:
        """Let go of the database."""
        self._engine.dispose()

    def cursor(self, key: ChainKey) -> Cursor:
        """Where a chain of pages stands: the next address (None when done) and how many pages it has."""
        with self._engine.connect() as con:
            row = con.execute(_CURSOR, key._asdict()).one_or_none()
        return (row.url, row.seq) if row else (key.chain, 0)

    def list_urls(self, key: ChainKey) -> set[str]:
        """Addresses of a chain's pages: a `next` among them is a loop."""
        with self._engine.connect() as con:
            return set(con.execute(_URLS, key._asdict()).scalars())

    def save(self, key: ChainKey, seq: int, url: str, body: dict[str, Any] | None, cursor: Cursor) -> None:
        """Commit page number `seq`, if there is one, and the cursor. A page at or past the cursor is not read back."""
        page = {"seq": seq, "url": url, "fetched_at": datetime.now(UTC).isoformat()}
        with self._engine.begin() as con:
            con.execute(_MOVE, {**key._asdict(), "url": cursor[0], "seq": cursor[1]})
            if body is not None:
                con.execute(_SAVE, {**key._asdict(), **page, "body": json.dumps(body, ensure_ascii=False)})

    def pages(self, source: str, day: str) -> Iterator[tuple[str, datetime, dict[str, Any]]]:
        """The pages fetched for a day, in order: address, time, redacted body."""
        with self._engine.connect() as con:
            for url, fetched_at, body in con.execute(_PAGES, {"source": source, "day": day}):
                yield url, datetime.fromisoformat(fetched_at), json.loads(body)


def list_starts(source: str, thread: str) -> list[str]:
    """Addresses a thread begins at: its article, where the site gives one, and its comments.

    Only ids are taken, never addresses: a cookie must not follow an address somebody typed.
    """
    site = adapters.get_adapter(source)
    if site.START is None:
        raise BadInput(f"{source} is read from files only: its robots.txt or terms forbid crawling")
    if not (thread.isascii() and thread.isalnum()):
        raise BadInput(f"{thread!r} is not a thread id of {source}")
    return [template.format(thread=thread) for template in (getattr(site, "ARTICLE", None), site.START) if template]


def fetch_pages(fetcher: Fetcher, spool: Spool, source: str, start: str, day: str, redact: Callable[[Any], Any]) -> int:
    """Fetch what is left of the pages that follow each other from `start`; return how many were new."""
    key = ChainKey(source, day, start)
    url, first = spool.cursor(key)
    seq = first
    while url and seq < fetcher.limits.pages_per_thread:
        try:
            body = redact(fetcher.json(url))
        except Gone:
            log.warning("%s: %s is not there any more", source, url)
            spool.save(key, seq, url, None, (None, seq))
            break
        try:
            adapters.parse(source, body, url, datetime.now(UTC))  # raises Refused for a refusal inside the answer
            following = adapters.find_next_url(source, body, url)
            if following is not None and urlsplit(following)[:2] != urlsplit(url)[:2]:
                raise SchemaDrift(f"{source}: the next page lies on another host, {urlsplit(following).netloc}")
        except SchemaDrift:
            spool.save(key, seq, url, body, (url, seq))  # kept for whoever mends the adapter
            raise
        if following is not None and (following == url or following in spool.list_urls(key)):
            log.warning("%s: %s points back to a page already read; the chain ends", source, url)
            following = None
        spool.save(key, seq, url, body, (following, seq + 1))
        url, seq = following, seq + 1
    if url and seq >= fetcher.limits.pages_per_thread:
        log.warning("%s: %s has more pages than the %d that are read", source, start, seq)
    return seq - first
