"""One robots.txt request through Scrapy's own engine: one hop in, one plain answer out."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urljoin, urlsplit

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest, StopDownload
from scrapy.http import Headers, Response
from scrapy.http.cookies import CookieJar
from scrapy.http.request import NO_CALLBACK
from scrapy.utils.defer import maybe_deferred_to_future
from scrapy.utils.httpobj import urlparse_cached
from twisted.internet.defer import CancelledError, DeferredSemaphore
from w3lib.url import safe_url_string

from scrapy_rep.fetching.content_decoding import ROBOTS_TXT_REQUEST, RepDecodingMiddleware
from scrapy_rep.fetching.http_headers import caching_of
from scrapy_rep.fetching.wire_timeout import within
from scrapy_rep.protocol.access_result import Answer
from scrapy_rep.protocol.freshness import SILENT, Caching
from scrapy_rep.settings import RepSettings
from scrapy_rep.signals import robots_response

# The crawl's middlewares and extensions are to leave our requests alone: what an answer means is decided here.
_UNTOUCHED = {
    "allow_offsite": True,
    "autothrottle_dont_adjust_delay": True,
    "dont_merge_cookies": True,
    "dont_obey_robotstxt": True,
    "dont_redirect": True,
    "dont_retry": True,
    "download_fail_on_dataloss": False,
}
# Schemes whose download handlers end at `download_timeout`, on the wire.
_KNOW_DEADLINES = {"http", "https"}
# What goes along of the request that caused a fetch: the road that it takes.
_HEADERS_ALONG = (b"User-Agent", b"Proxy-Authorization")
_FTP_ALONG = ("ftp_user", "ftp_password", "ftp_passive")


class Fetcher:
    """Asks for one address and tells what came. Never raises for what a server or another component does."""

    def __init__(
        self,
        crawler: Crawler,
        settings: RepSettings,
        under_way: Callable[[Request], AbstractContextManager[None]],
        is_on_wire: Callable[[Request], bool],
        now: Callable[[], float],
    ) -> None:
        self._crawler = crawler
        self._settings = settings
        self._under_way = under_way
        self._is_on_wire = is_on_wire
        self._now = now
        # The user wants nothing but what HttpCacheMiddleware has.
        self._offline = all(crawler.settings.getbool(f"HTTPCACHE_{name}") for name in ("ENABLED", "IGNORE_MISSING"))
        self._turns = DeferredSemaphore(settings.fetch_concurrency)
        self._limiter = _Limiter(crawler, settings.body_limit)

    async def fetch(
        self, url: str, trigger: Request, jar: CookieJar, *, past_cache: bool = False, validators: Caching | None = None
    ) -> Answer:
        """Ask for `url` once, by the road of the request that caused it, with the cookies of the redirects so far.

        `past_cache`: HttpCacheMiddleware is to neither replay nor store the answer. `held`: what was said of the answer
        that is held, to ask whether it still holds (RFC 9111 4.3.1).
        """
        await maybe_deferred_to_future(self._turns.acquire())
        try:
            answer = await self._fetch(url, trigger, jar, past_cache, validators)
        finally:
            self._turns.release()
        self._crawler.signals.send_catch_log(robots_response, url=url, answer=answer, request=trigger)
        return answer

    async def _fetch(
        self, url: str, trigger: Request, jar: CookieJar, past_cache: bool, validators: Caching | None
    ) -> Answer:
        stats = self._crawler.stats
        try:
            request = self._request(url, trigger, past_cache)
            if validators is not None and not self._offline:
                _make_conditional(request, validators)
            jar.add_cookie_header(request)
            with self._under_way(request), self._limiter:
                stats.inc_value("robotstxt/request_count")
                try:
                    response = await self._download(request)
                except (asyncio.CancelledError, CancelledError):
                    self._limiter.abandon(request)
                    raise
            jar.extract_cookies(response, request)
        except CancelledError:  # an Exception, of Twisted's
            raise
        except Exception as exc:  # noqa: BLE001 - any component of the crawl may raise anything
            if not isinstance(exc, IgnoreRequest):
                stats.inc_value(f"robotstxt/exception_count/{type(exc)}")
            return Answer(
                None, reason=f"{type(exc).__name__}: {exc}".rstrip(".: "), dropped=isinstance(exc, IgnoreRequest)
            )
        stats.inc_value("robotstxt/response_count")
        stats.inc_value(f"robotstxt/response_status_count/{_bucket(response.status)}")
        return self._answer(response, request)

    async def _download(self, request: Request) -> Response:
        download = self._crawler.engine.download_async(request)
        if urlparse_cached(request).scheme in _KNOW_DEADLINES:
            return await download
        return await within(self._settings.fetch_timeout, download, lambda: self._is_on_wire(request))

    def _request(self, url: str, trigger: Request, past_cache: bool) -> Request:
        meta: dict[str, Any] = {
            **_UNTOUCHED,
            ROBOTS_TXT_REQUEST: _Received(),
            "download_timeout": self._settings.fetch_timeout,
        }
        if self._crawler.get_downloader_middleware(RepDecodingMiddleware) is not None:
            # Both would throw away what came, or warn of it, where the limit cuts: without these, we do.
            meta.update(download_maxsize=0, download_warnsize=0)
        if past_cache and not self._offline:
            meta["dont_cache"] = True
        if has_own_way(trigger):
            meta["proxy"] = trigger.meta["proxy"]
        if url.startswith("ftp:"):
            meta.update({key: trigger.meta[key] for key in _FTP_ALONG if key in trigger.meta})
        # A body in no coding can be cut anywhere and read up to there.
        request = Request(url, NO_CALLBACK, headers={"Accept-Encoding": "identity"}, meta=meta)
        for name in _HEADERS_ALONG:
            if name in trigger.headers:
                request.headers[name] = trigger.headers[name]
        return request

    def _answer(self, response: Response, request: Request) -> Answer:
        if "dataloss" in response.flags:
            return Answer(None, reason="the connection was lost before the end of the body")
        replayed = "cached" in response.flags  # HttpCacheMiddleware's word for it
        offline = replayed and self._offline
        return Answer(
            response.status,
            response.body[: self._settings.body_limit + 1],
            _location(response),
            retry_after=0.0 if replayed else _retry_after(response.headers),
            caching=SILENT if offline else caching_of(response.headers),
            response_delay=0.0 if replayed else request.meta.get("download_latency", 0.0),
            replayed=replayed,
            offline=offline,
        )


def has_own_way(trigger: Request) -> bool:
    """Whether its robots.txt has to be fetched through a proxy of the request's own."""
    return "proxy" in trigger.meta and "_scheme_proxy" not in trigger.meta


def _make_conditional(request: Request, held: Caching) -> None:
    # HttpCacheMiddleware would store a 304 as the page.
    request.meta["dont_cache"] = True
    for name, validator in (("If-None-Match", held.etag), ("If-Modified-Since", held.last_modified)):
        if validator is not None:
            request.headers[name] = validator.encode("latin-1")


def _bucket(status: int) -> str:
    """A server can send any number: no stat for each."""
    return str(status) if 100 <= status < 600 else "other"


def _retry_after(headers: Headers) -> float:
    """Seconds from now that the header asks for (RFC 9110 10.2.3); 0 where it asks for nothing that can be read."""
    value = (headers.get("Retry-After") or b"").decode("latin-1").strip()
    if value.isascii() and value.isdigit():
        return float(value[:9])
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return 0.0


def _location(response: Response) -> str | None:
    """Where the Location header leads, absolute, read as RedirectMiddleware reads it; None where nowhere."""
    value = response.headers.get("Location")
    if not value or not value.strip():
        return None
    try:
        location = safe_url_string(value)
        parts = urlsplit(location)
        # RFC 3986 5.2.2, strictly: `http:` or `http:x` is no reference to where we are.
        return None if parts.scheme and not parts.netloc else urljoin(response.url, location)
    except ValueError:
        return None


class _Received:
    """Octets of one response that have come so far; the mark of a request of ours."""

    __slots__ = ("is_abandoned", "octets")

    def __init__(self) -> None:
        self.octets = 0
        self.is_abandoned = False


class _Limiter:
    """Ends a robots.txt download once more than the limit came, keeping it.

    Listens only while one is under way: `bytes_received` is sent for each chunk of each download of the crawl.
    """

    def __init__(self, crawler: Crawler, limit: int) -> None:
        self._signals = crawler.signals
        self._limit = limit
        self._under_way = 0

    def __enter__(self) -> None:
        if not self._under_way:
            self._signals.connect(self._bytes_received, signal=signals.bytes_received)
        self._under_way += 1

    def __exit__(self, *_: object) -> None:
        self._under_way -= 1
        if not self._under_way:
            self._signals.disconnect(self._bytes_received, signal=signals.bytes_received)

    def abandon(self, request: Request) -> None:
        """Nobody waits for it, but it goes on: its connection is to be closed when the answer comes, not kept."""
        request.meta[ROBOTS_TXT_REQUEST].is_abandoned = True
        # Perhaps it is past its headers. The crawl is closing: nobody need take these down again.
        for signal in (signals.headers_received, signals.bytes_received):
            self._signals.connect(self._received_in_vain, signal=signal)

    def _received_in_vain(self, request: Request) -> None:
        received = request.meta.get(ROBOTS_TXT_REQUEST)
        if isinstance(received, _Received) and received.is_abandoned:
            raise StopDownload(fail=True)

    def _bytes_received(self, data: bytes, request: Request) -> None:
        received = request.meta.get(ROBOTS_TXT_REQUEST)
        if isinstance(received, _Received):
            received.octets += len(data)
            if received.octets > self._limit:
                raise StopDownload(fail=False)
