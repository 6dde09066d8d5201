"""Makes one request for a robots.txt through Scrapy's engine, and turns its response into an `Answer`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from urllib.parse import urljoin, urlsplit

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest, StopDownload
from scrapy.http import Response
from scrapy.utils.httpobj import urlparse_cached
from twisted.internet.defer import CancelledError
from w3lib.url import safe_url_string

from scrapy_rep.deferreds import within
from scrapy_rep.fetching.body_limit import BodyLimit
from scrapy_rep.fetching.content_decoding import RepDecodingMiddleware
from scrapy_rep.fetching.http_headers import MAX_OCTETS, caching_of, retry_after
from scrapy_rep.fetching.robots_request import (
    HAVE_TIMEOUTS,
    ROBOTS_TXT_REQUEST,
    Question,
    RobotsTxtDownload,
    robots_request,
)
from scrapy_rep.log import logger_of
from scrapy_rep.protocol.access_result import AccessResult, Answer
from scrapy_rep.protocol.freshness import SILENT
from scrapy_rep.protocol.status_policy import result_of, vendor_of_challenge
from scrapy_rep.scrapy_internals.compat import DownloadTimeoutError
from scrapy_rep.scrapy_internals.downloads import UncountedDownloads, remove_from_downloader
from scrapy_rep.settings import RepSettings
from scrapy_rep.text import printable

STOPPED = (
    "another component stopped the download (StopDownload); let its handler of bytes_received or headers_received skip"
    f" requests that have {ROBOTS_TXT_REQUEST!r} in their meta"
)


class Fetcher:
    def __init__(
        self, crawler: Crawler, settings: RepSettings, downloads: UncountedDownloads, now: Callable[[], float]
    ) -> None:
        """`now` returns seconds since the epoch."""
        self._crawler = crawler
        self._settings = settings
        self._downloads = downloads
        self._now = now
        self._offline = all(crawler.settings.getbool(f"HTTPCACHE_{name}") for name in ("ENABLED", "IGNORE_MISSING"))
        self._body_limit = BodyLimit(crawler)
        self._faults: set[type] = set()
        """The types of exceptions whose traceback has been logged."""

    async def fetch(self, question: Question) -> tuple[Answer, Response | None]:
        """Request the URL once. Return the answer, not judged yet, and the response as received, if there is one.
        Raises only CancelledError, when the crawl closes."""
        stats, download = self._crawler.stats, RobotsTxtDownload(self._settings.body_limit)
        try:
            request = robots_request(question, download, self._crawler.settings, self._settings, offline=self._offline)
            if self._crawler.get_downloader_middleware(RepDecodingMiddleware) is not None:
                # REP_BODY_LIMIT cuts a body. download_maxsize could drop it, and download_warnsize could log a WARNING.
                request.meta.update(download_maxsize=0, download_warnsize=0)
            with self._downloads.uncounted(request), self._body_limit:
                stats.inc_value("robotstxt/request_count")
                try:
                    response = await self._download(request)
                except (asyncio.CancelledError, CancelledError):
                    remove_from_downloader(self._crawler, request)
                    self._body_limit.abandon(request)
                    raise
            if "Set-Cookie" in response.headers:
                question.jar.extract_cookies(response, request)
        except CancelledError:  # Twisted's is an Exception
            raise
        except Exception as exc:  # noqa: BLE001 - any component of the crawl may raise anything
            if not isinstance(exc, IgnoreRequest):
                stats.inc_value(f"robotstxt/exception_count/{type(exc)}")
            dropped = isinstance(exc, (IgnoreRequest, StopDownload))
            timed_out = isinstance(exc, (DownloadTimeoutError, TimeoutError))
            if is_fault := _is_fault(exc):
                self._log_fault(question.url, exc)
            reason = _in_words(exc)
            answer = Answer(question.url, reason=reason, timed_out=timed_out, dropped=dropped, is_fault=is_fault)
            return answer, download.taken()
        self._body_limit.warn_without_signal(request, response)
        stats.inc_value("robotstxt/response_count")
        # All impossible statuses share one name, so that servers cannot add stats.
        bucket = response.status if 100 <= response.status < 600 else "other"
        stats.inc_value(f"robotstxt/response_status_count/{bucket}")
        return self._answer(question.url, response, request, download), download.taken() or response

    async def _download(self, request: Request) -> Response:
        download = self._crawler.engine.download_async(request)
        if urlparse_cached(request).scheme not in HAVE_TIMEOUTS:
            seconds = self._settings.fetch_timeout
            late = DownloadTimeoutError(f"No answer within {seconds:g} seconds")
            download = within(seconds, download, late)
        try:
            return await download
        except DownloadTimeoutError:
            remove_from_downloader(self._crawler, request)  # it may still be in a queue
            raise
        except StopDownload as exc:
            stopped: Response | None = getattr(exc, "response", None)
            if stopped is None:
                raise
            return RepDecodingMiddleware().process_response(request, stopped)  # this response has passed no middleware

    def _log_fault(self, url: str, exc: Exception) -> None:
        if type(exc) not in self._faults:
            self._faults.add(type(exc))
            logger_of(self._crawler).error(
                "%s could not be fetched, because a component of the crawl failed: %s. The site is not at fault. The"
                " traceback shows the component",
                printable(url),
                _in_words(exc),
                exc_info=exc,
            )

    def _answer(self, url: str, response: Response, request: Request, download: RobotsTxtDownload) -> Answer:
        status, now = response.status, self._now()
        if "dataloss" in response.flags:
            return Answer(url, reason="the connection was lost before the end of the body")
        sign = vendor_of_challenge(response.headers.getlist, response.body)
        needs_body = result_of(status, self._settings.status_policy, sign) is AccessResult.SUCCESS
        if needs_body and download.is_stopped(download.response or response):
            return Answer(url, reason=STOPPED, dropped=True)
        replayed = "cached" in response.flags  # set by HttpCacheMiddleware
        offline = replayed and self._offline
        caching = SILENT if offline else caching_of(response.headers)
        is_proxied = bool((response.request or request).meta.get("proxy"))
        return Answer(
            url,
            status,
            sign=sign,
            body=response.body[: self._settings.body_limit + 1],
            location=url_of(response.url, response.headers.get("Location") or b""),
            retry_after=0.0 if replayed else retry_after(response.headers, now),
            caching=caching,
            received_at=min(now, caching.date or 0.0) if replayed and not offline else now,
            response_delay=0.0 if replayed else request.meta.get("download_latency", 0.0),
            replayed=replayed,
            offline=offline,
            # Behind a proxy, the address is the proxy's.
            address=None if is_proxied or response.ip_address is None else str(response.ip_address),
        )


def _is_fault(exc: Exception) -> bool:
    """Whether an exception comes from an error in code. Only Python's own exceptions do; but an OSError comes from the
    network, and a UnicodeError from a host name."""
    return type(exc).__module__ == "builtins" and not isinstance(exc, (OSError, EOFError, UnicodeError))


def _in_words(exc: Exception) -> str:
    """Return the exception's type and message. An exception of Twisted may have several causes; the first counts."""
    failures = getattr(exc.__cause__, "reasons", None) or getattr(exc, "reasons", None)
    error = failures[0].value if failures else exc
    return printable(f"{type(error).__name__}: {error}".rstrip(".: "))


def url_of(base: str, reference: str | bytes) -> str | None:
    """Return a reference, such as the value of Location, as an absolute URL; None if it is empty or malformed."""
    if not reference.strip() or len(reference) > MAX_OCTETS:
        return None
    try:
        relative = safe_url_string(reference)
        parts = urlsplit(relative)
        # RFC 3986 5.2.2, strictly: `http:` and `http:x` are not relative references.
        if parts.scheme and not parts.netloc:
            return None
        # `Request` escapes its URL in the same way, so the host that is judged is the host that gets the request.
        return safe_url_string(urljoin(base, relative))
    except ValueError:
        return None
