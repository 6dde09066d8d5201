"""Sends one request through Scrapy's engine, within REP_FETCH_TIMEOUT, and turns the response into an `Answer`.

The download stops after REP_BODY_LIMIT octets, 500 KiB or more (RFC 9309 section 2.5). What was received is used. The
last chunk may go beyond the limit; `RobotsTxt.parse` cuts the body at the exact octet. After REP_FETCH_TIMEOUT (and
GRACE), the download handler is cancelled, so it closes the connection.
"""

from collections.abc import Callable
from functools import partial
from traceback import walk_tb
from typing import Any

from scrapy import Request, signals
from scrapy.exceptions import IgnoreRequest, StopDownload
from scrapy.http import Response
from scrapy.utils.httpobj import urlparse_cached
from scrapy.utils.python import global_object_name
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from scrapy_rep.crawl import Crawl, Part
from scrapy_rep.deferreds import CANCELLATIONS, within
from scrapy_rep.fetching.decoding import UndecodableBodyError, decoded_response, is_mislabelled
from scrapy_rep.fetching.headers import caching_of, lines_of, location_of, retry_after
from scrapy_rep.fetching.places import Connections
from scrapy_rep.fetching.request import HAVE_TIMEOUTS, Cookies, RobotsTxtDownload, download_of, is_offline, new_download
from scrapy_rep.meta import ROBOTS_TXT_REQUEST
from scrapy_rep.protocol.answer import AccessResult, Answer
from scrapy_rep.protocol.challenge import vendor_of_challenge
from scrapy_rep.protocol.conversation import Ask
from scrapy_rep.protocol.foreign_text import printable, shortened, without_login
from scrapy_rep.protocol.freshness import Caching
from scrapy_rep.protocol.robotstxt.parser import RobotsTxt
from scrapy_rep.protocol.status_policy import OFFLINE, REDIRECT_STATUSES, result_of
from scrapy_rep.scrapy_internals.compat import DownloadTimeoutError
from scrapy_rep.scrapy_internals.downloads import Call, UncountedDownloads, do_look_ups_wait, wrap_handlers
from scrapy_rep.scrapy_internals.engine_state import downloader_middlewares
from scrapy_rep.scrapy_internals.slots import remove_from_queue
from scrapy_rep.stats import EXCEPTION, REQUESTS, RESPONSES, STATUS

STOPPED = (
    "another component stopped the download (StopDownload); let its handler of bytes_received or headers_received skip"
    f" requests that have {ROBOTS_TXT_REQUEST!r} in their meta"
)
MAX_PROXY = 100  # characters of a proxy in a reason
MAX_CAUSE = 100  # characters of an exception in DROPPED, so that entries keep the whole text (MAX_TEXT)
DROPPED = f"another middleware dropped the request (%s); let it pass requests with {ROBOTS_TXT_REQUEST!r} in their meta"

# A response with one of these statuses counts even if another middleware drops it, and so does a 200 with groups. Any
# other may mean that the site has banned the proxy.
COUNTS_IF_DROPPED = REDIRECT_STATUSES | {404, 410}
# The most times that a download handler gets one request. Some middlewares repeat it until the status is 200.
MAX_REPEATED = 10
# Seconds after REP_FETCH_TIMEOUT at which a download handler for http or https is cancelled. Usually the handler has
# ended the request by its own time-out before.
GRACE = 1.0
# A time-out that is noticed later than this says nothing about the site: the process was stopped or busy. In seconds
# after REP_FETCH_TIMEOUT.
LATE = 5.0


class Fetcher(Part):
    def __init__(self, crawl: Crawl, downloads: UncountedDownloads, connections: Connections) -> None:
        super().__init__(crawl)
        self._downloads = downloads
        self._connections = connections
        self._offline = is_offline(crawl.crawler.settings)
        self._are_wrapped = False
        """Whether `_handle` gets each call of a download handler."""
        self._in_handlers = 0
        """The number of our requests that a download handler has now."""
        crawl.crawler.signals.connect(self._opened, signal=signals.spider_opened)

    def _opened(self) -> None:
        self._are_wrapped = wrap_handlers(self._crawler, self._handle)

    async def fetch(
        self, ask: Ask, trigger: Request, cookies: Cookies, on_slow: Callable[[], object] = bool
    ) -> tuple[Answer, Response | None]:
        """Request the URL once. Return the answer, not judged yet, and the response as received, if there is one. Add
        the cookies of the response to `cookies`. Raises CancelledError if it is cancelled.

        `Answer.seconds` count from the moment when the download handler gets the request; if it never gets the request,
        from the call.
        """
        count, began = self._count, self._clock.monotonic()
        download = new_download(ask, trigger, self._crawler, self._settings, proxy_may_follow=self._are_wrapped)
        request, download.on_slow = download.request, on_slow
        cookies.add_to(request)
        try:
            with self._downloads.uncounted(request):
                count(REQUESTS)
                response = await self._download(download)
            cookies.keep(response, request)
        except CANCELLATIONS:
            remove_from_queue(self._crawler, request)
            if download.handling is not None:
                download.handling.cancel()
            raise
        except Exception as exc:  # noqa: BLE001 - any component of the crawl may raise anything
            if not isinstance(exc, IgnoreRequest):
                count(EXCEPTION.format(type(exc)))
            answer = self._failure(self._ended(ask, began, download), exc, download)
        else:
            received = download.response = download.response or response
            received.request = received.request or request
            self._count_response(response, received, download)
            answer = self._from_response(self._ended(ask, began, download), response, received, download)
        return answer, download.response

    def _ended(self, ask: Ask, began: float, download: RobotsTxtDownload) -> partial[Answer]:
        """Return a function that makes the `Answer` to the request, which has ended now."""
        began = began if download.sent_at is None else download.sent_at
        return partial(Answer, ask.url, ended_at=self._clock.now(), seconds=self._clock.monotonic() - began)

    async def _handle(self, request: Request, call: Call) -> Response:
        """Make the call of a download handler when the request has a place, if it needs one."""
        download = download_of(request)
        if download is not None:
            download.use_left_out_proxy(request, self._crawler)
        places = self._connections.places_for(request, is_robots_txt=download is not None)
        if places is None:
            return await call()
        place, on_slow = Deferred[None](), None
        if download is not None:
            download.handling = place
            if not request.meta.get("proxy"):
                on_slow = partial(self._slow, download)
        async with places.taken(place, on_slow):
            return await (call() if download is None else self._limited(request, download, call))

    def _slow(self, download: RobotsTxtDownload) -> None:
        download.on_slow()
        download.may_have_waited = do_look_ups_wait()

    async def _limited(self, request: Request, download: RobotsTxtDownload, call: Call) -> Response:
        """Make the call for a robots.txt. Cancel it after REP_FETCH_TIMEOUT, and stop the download at REP_BODY_LIMIT.

        Scrapy sends `bytes_received` for each chunk of any download. So this signal has a receiver only while a handler
        has a request for a robots.txt.
        """
        if download.times_sent == MAX_REPEATED:
            raise IgnoreRequest(f"it has repeated the request {MAX_REPEATED} times")
        download.times_sent += 1
        download.response, download.undecodable, download.octets = None, None, 0
        # REP_BODY_LIMIT cuts a body. download_maxsize could drop it, and download_warnsize could log a WARNING.
        request.meta.update(download_maxsize=0, download_warnsize=0)
        if not self._in_handlers:
            self._crawler.signals.connect(self._received, signal=signals.bytes_received)
        self._in_handlers += 1
        seconds = self._settings.fetch_timeout
        late = DownloadTimeoutError(f"No answer within {seconds:g} seconds")
        seconds += GRACE if urlparse_cached(request).scheme in HAVE_TIMEOUTS else 0.0
        download.sent_at, download.handling = self._clock.monotonic(), Deferred[Response]()
        try:
            download.response = await within(seconds, call(), late, download.handling)
            download.response.request = request  # the archive needs it
            return self._decoded(download.response, download, request)
        except CANCELLATIONS as exc:  # by the fetch or by the handler. Scrapy would never notice asyncio's
            raise ConnectionAbortedError("The download was cancelled") from exc
        except Exception as exc:
            download.handlers_error = exc
            raise
        finally:
            download.handling = None
            self._in_handlers -= 1
            if not self._in_handlers:
                self._crawler.signals.disconnect(self._received, signal=signals.bytes_received)

    def _decoded(self, response: Response, download: RobotsTxtDownload, request: Request) -> Response:
        """Return the response, decoded. If that is impossible, `_download` raises the error, after the middlewares: one
        that changes proxies would believe that its proxy has failed."""
        try:
            return decoded_response(response, download)
        except UndecodableBodyError as exc:
            download.undecodable = exc
            request.meta["dont_cache"] = True
            return Response(request.url, response.status, body=b"#")  # plugins may take an empty one for a ban

    def _received(self, request: Request, data: bytes) -> None:
        download = download_of(request)
        if download is not None:
            download.octets += len(data)
            if download.octets > download.limit:
                raise StopDownload(fail=False)

    async def _download(self, download: RobotsTxtDownload) -> Response:
        try:
            response = await self._crawler.engine.download_async(download.request)
        except IgnoreRequest:
            if download.response is None:
                raise
            dropped = decoded_response(download.response, download)
            robots = RobotsTxt.parse(dropped.body if dropped.status == 200 else b"")
            # A page that bans the proxy may quote rules.
            if dropped.status not in COUNTS_IF_DROPPED and (robots.is_markup or not robots.has_groups):
                raise
            return dropped
        except StopDownload as exc:
            stopped: Response | None = getattr(exc, "response", None)
            if stopped is None:
                raise
            response = stopped
        if download.undecodable is not None:
            raise download.undecodable
        if download.response is None:  # from a cache, another middleware, or StopDownload
            download.response = response
            return decoded_response(response, download)
        return response

    def _failure(self, ended: partial[Answer], exc: Exception, download: RobotsTxtDownload) -> Answer:
        """Return the answer for a request that has no response."""
        if self._offline and isinstance(exc, IgnoreRequest):
            return ended(sign=OFFLINE)
        began, from_handler = download.sent_at, download.handlers_error
        is_late = began is not None and self._clock.monotonic() - began > self._settings.fetch_timeout + LATE
        timed_out = isinstance(exc, (DownloadTimeoutError, TimeoutError))
        is_of_handler = from_handler is not None and (exc is from_handler or exc.__cause__ is from_handler)
        is_fault = not isinstance(exc, _EXPECTED) and not is_of_handler
        reason = self._fault(exc, download) if is_fault else _in_words(exc)
        if isinstance(exc, IgnoreRequest):
            reason = DROPPED % shortened(reason, MAX_CAUSE)
        return ended(
            reason=reason,
            error=_alone(exc),
            timed_out=timed_out,
            timed_out_here=timed_out and (is_late or download.may_have_waited),
            proxy=_proxy_of(download.request),
            dropped=isinstance(exc, (IgnoreRequest, StopDownload)),
            is_fault=is_fault and from_handler is None,
        )

    def _fault(self, exc: Exception, download: RobotsTxtDownload) -> str:
        """Return the reason after a component of the crawl has failed. Log it once for each component and exception."""
        component, answered, from_handler = _component_of(exc), download.response, download.handlers_error
        got = f"HTTP {answered.status}" if answered else _in_words(from_handler) if from_handler else ""
        reason = f"; the download handler got {got}" if got else ". The site is not at fault"
        reason = f"{component} has raised {_in_words(exc)}{reason}"
        if self._is_first((component, type(exc))):
            message = "%s could not be fetched, because a component of the crawl failed: %s"
            self._log.error(message, printable(download.request.url), reason, exc_info=exc)
        return reason

    def _count_response(self, response: Response, received: Response, download: RobotsTxtDownload) -> None:
        """Count the response. Log, once, that a download handler sends no `bytes_received`."""
        self._count(RESPONSES)
        # All impossible statuses share one name, so that servers cannot add stats.
        self._count(STATUS.format(response.status if 100 <= response.status < 600 else "other"))
        is_silent = download.sent_at is not None and not download.octets and bool(received.body)
        if is_silent and urlparse_cached(download.request).scheme in HAVE_TIMEOUTS and self._is_first("silence"):
            self._log.warning(
                "%s: the download handler sends no signal bytes_received, so REP_BODY_LIMIT applies after the download",
                printable(download.request.url),
            )

    def _from_response(
        self, ended: partial[Answer], response: Response, received: Response, download: RobotsTxtDownload
    ) -> Answer:
        """Return the answer that a response gives. `received`: the response before it was decoded."""
        status, lines, request = response.status, lines_of(response.headers), download.request
        sign = vendor_of_challenge(lines, response.body, status)
        access, _source = result_of(status, self._settings.status_policy, sign)
        needs_body, is_replayed = access is AccessResult.SUCCESS, "cached" in response.flags
        wrong = _what_is_wrong(response, received, download, needs_body=needs_body)
        if wrong:
            return ended(reason=wrong, dropped=wrong is STOPPED)
        if needs_body and is_mislabelled(received, response.body):
            message = "%s: the Content-Encoding is wrong. The body is plain text, and is read"
            self._log.info(message, printable(request.url))
        sent = response.request or request
        caching = caching_of(lines, sent.headers.get(b"User-Agent"))
        wait = retry_after(lines, self._clock.now())
        if is_replayed:  # it may be old, so it is used for the least time
            caching, wait = Caching(no_store=True, date=caching.date), 0.0
        location, malformed_location = location_of(response) if status in REDIRECT_STATUSES else (None, "")
        is_unsent = self._are_wrapped and not download.times_sent  # no download handler got the request or a copy
        is_made_up = access is AccessResult.UNREACHABLE and not is_replayed and is_unsent
        proxy = _proxy_of(sent)
        return ended(
            status=status,
            reason=self._made_up_by() if is_made_up else "",
            sign=sign,
            body=response.body[: self._settings.body_limit + 1],
            location=location,
            malformed_location=malformed_location,
            retry_after=wait,
            caching=caching,
            replayed=is_replayed,
            made_up=is_made_up,
            response_delay=request.meta.get("download_latency", 0.0),
            proxy=proxy,
            # A proxy hides the server's address.
            address=None if proxy or response.ip_address is None else str(response.ip_address),
        )

    def _made_up_by(self) -> str:
        """Return which middlewares may have answered in place of the site, in words that follow a status."""
        types = [type(each) for each in downloader_middlewares(self._crawler) if hasattr(each, "process_request")]
        names = [name for name in map(global_object_name, types) if not name.startswith(("scrapy.", "scrapy_rep."))]
        return f" from {' or '.join(names) or 'a middleware'} instead of a download handler"


def _proxy_of(request: Request) -> str:
    return printable(without_login(str(request.meta.get("proxy") or "")), MAX_PROXY)


def _what_is_wrong(response: Response, received: Response, download: RobotsTxtDownload, *, needs_body: bool) -> str:
    """Return why the response counts as no answer; empty if it counts."""
    if "dataloss" in response.flags:
        return "the connection was lost before the end of the body"
    if needs_body and download.is_stopped(received):
        return STOPPED
    return "the body is shorter than its Content-Length" if needs_body and download.is_short(received) else ""


# Exceptions that say nothing about the component that has raised them.
_EXPECTED = IgnoreRequest, StopDownload, UndecodableBodyError, DownloadTimeoutError, OSError, TimeoutError


def _component_of(exc: Exception) -> str:
    """Return the name of the middleware that has raised the exception, if its traceback shows one."""
    found = "A component of the crawl"
    for frame, _line in walk_tb(exc.__traceback__):
        code = frame.f_code
        if code.co_name in {"process_request", "process_response", "process_exception"} and "self" in frame.f_locals:
            found = global_object_name(type(frame.f_locals["self"]))
    return found


def _alone(exc: Exception) -> Exception:
    """Return the exception without its traceback and causes: they would keep the request during the whole outage."""
    reasons: Any = getattr(exc, "reasons", None)
    if isinstance(reasons, list):  # an exception of Twisted has failures, which hold frames
        reasons[:] = [_without_frames(each) if isinstance(each, Failure) else each for each in reasons]
    exc.__cause__ = exc.__context__ = None
    return exc.with_traceback(None)


def _without_frames(failure: Any) -> Any:
    return Failure(_alone(failure.value))  # type: ignore[no-untyped-call]


def _in_words(exc: Exception) -> str:
    """Return the exception's type and message. An exception of Twisted may have several causes; the first counts."""
    failures = getattr(exc.__cause__, "reasons", None) or getattr(exc, "reasons", None)
    error = getattr(failures[0], "value", failures[0]) if failures else exc
    kind = type(exc if isinstance(error, str) else error)  # a text: from Scrapy's handler for HTTP/2
    name = global_object_name(kind) if kind.__name__.lower() == "error" else kind.__name__  # such as OpenSSL.SSL.Error
    return printable(without_login(f"{name}: {error}").rstrip(".: "))
