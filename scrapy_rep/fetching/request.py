"""Builds a request for a robots.txt: its mark, header fields, cookies; its proxy and meta for Scrapy and plugins.

The request takes the proxy and the User-Agent of the request that needs the robots.txt. Its cookies come from the
conversation (`fetching.driver`).

Some plugins replace Scrapy's downloads, for example by a browser. The request's meta tells them to fetch plain text,
only once, and with a time limit. If a plugin is not installed, its meta keys are ignored.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any
from weakref import WeakValueDictionary

from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.httpproxy import HttpProxyMiddleware
from scrapy.http import Request, Response
from scrapy.http.cookies import CookieJar
from scrapy.http.request import NO_CALLBACK
from scrapy.settings import BaseSettings
from twisted.internet.defer import Deferred

from scrapy_rep.meta import DONT_OBEY, ROBOTS_TXT_REQUEST
from scrapy_rep.protocol.conversation import Ask
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.scrapy_internals.compat import NO_SESSION
from scrapy_rep.scrapy_internals.downloads import PACE_META, was_sent
from scrapy_rep.settings import RepSettings

# Keep Scrapy's middlewares and extensions from acting on the answer: scrapy-rep decides what an answer means.
_META = {
    **NO_SESSION,
    "allow_offsite": True,
    DONT_OBEY: True,
    "dont_redirect": True,
    "dont_retry": True,
    "download_fail_on_dataloss": False,
    "is_robotstxt_request": True,  # the mark that a later Scrapy sets; plugins may know it
    "playwright": False,  # scrapy-playwright: a browser would turn the text into a page
    "max_proxies_to_try": 0,  # scrapy-rotating-proxies: REP_FETCH_RETRIES limits the retries
}
# The download handlers of these schemes obey `download_timeout`, and send `bytes_received`.
HAVE_TIMEOUTS = {"http", "https"}
# What is copied from the request that needs the robots.txt. Some of it is secret, so it goes to its addressee alone.
#
# | what | why | for whom |
# |---|---|---|
# | `User-Agent` | the site may have other rules for another crawler | everybody |
# | `proxy`, unless a middleware sets another one | the site may answer other addresses differently | the proxy |
# | `Proxy-Authorization`, with such a proxy | without it, the proxy answers 407 | the proxy |
# | `_auth_proxy`, with such a proxy | HttpProxyMiddleware removes the header before it for any other proxy | nobody |
# | `impersonate` | the site may answer other clients differently | everybody |
# | PACE_META, if the spider has set it | a host that the robots.txt is redirected to has its own pace | the same host |
# | `ftp_...` | the login of the FTP server | the same host |
_OF_PROXY = ("proxy", "_auth_proxy")
_COPIED_TO_SAME_HOST = ("ftp_user", "ftp_password", "ftp_passive")
MAX_TIMES_BODY_LIMIT = 8
"""A plugin that cannot cut a body refuses one that is longer than this many times REP_BODY_LIMIT."""
# The parameters of scrapy-zyte-api that say from where to fetch, not what to fetch.
_ZYTE_API_ROUTES = ("device", "geolocation", "ipType", "tags")


@dataclass(eq=False)
class RobotsTxtDownload:
    """The download of one robots.txt: its request, how far it is, and its response or error."""

    request: Request
    limit: int
    """The most octets of the body to receive (REP_BODY_LIMIT)."""
    without_proxy_of: Request | None = None
    """The request whose proxy was not copied. It is used if no middleware sets another one."""
    on_slow: Callable[[], object] = bool
    """Called when the download handler has had the request for a while (`places.SLOW_AFTER`)."""
    octets: int = 0
    """The octets of the body that were received so far."""
    may_have_waited: bool = False
    """Whether look-ups of names waited for a thread when the request was slow. So its own look-up may have waited."""
    times_sent: int = 0
    """How often a download handler got the request: more than once if a middleware repeats it."""
    sent_at: float | None = None
    """When the download handler got the request, by the monotonic clock; None while it waits in the downloader."""
    handling: Deferred[Response] | Deferred[None] | None = None
    """The call of the download handler, or the wait for its place; None unless one of them is under way."""
    handlers_error: Exception | None = None
    """The exception that the download handler has raised; None if it has raised none."""
    undecodable: Exception | None = None
    """The error of a body that cannot be decoded. It is raised after all middlewares."""
    response: Response | None = None
    """The response as received, not decoded: from the download handler, or from a cache. None until it is received."""

    def use_left_out_proxy(self, request: Request, crawler: Crawler) -> None:
        """Have the request, which a download handler gets now, use the proxy that was not copied before, unless a
        middleware of the project has set another one."""
        # A middleware may have chosen None, which means no proxy.
        is_free = "proxy" not in request.meta or request.meta.get("_scheme_proxy")
        if self.without_proxy_of is not None and is_free:
            copy_proxy(self.without_proxy_of, request, crawler)

    def is_cut(self, response: Response) -> bool:
        """Whether the limit cuts the body. `response`: as received, not decoded."""
        return len(response.body) > self.limit

    def is_stopped(self, response: Response) -> bool:
        """Whether another component has stopped the download too early. `response`: as received, not decoded."""
        is_long_enough = self.is_cut(response) or content_length(response) == len(response.body)
        return "download_stopped" in response.flags and not is_long_enough

    def is_short(self, response: Response) -> bool:
        """Whether the body has fewer octets than its Content-Length. `response`: as received, not decoded.

        A handler that sends no `bytes_received` may have decoded the body. Then only an empty body counts as too short.
        """
        if "download_stopped" in response.flags or (response.body and not self.octets):
            return False
        return self.octets < (content_length(response) or 0)


def content_length(response: Response) -> int | None:
    """Return the Content-Length; None if there is none that counts."""
    length = response.headers.get("Content-Length") or b""
    # RFC 9112 6.3: Transfer-Encoding overrides it. RFC 9110 8.6: a 204 has none.
    is_void = response.status == 204 or "Transfer-Encoding" in response.headers
    return None if is_void or not length.isdigit() else int(length[:18])


# All downloads under way in this process, by the number in the meta of their request.
_DOWNLOADS: WeakValueDictionary[int, RobotsTxtDownload] = WeakValueDictionary()
_NUMBERS = count(1)


def download_of(request: Request) -> RobotsTxtDownload | None:
    """Return the download of a request for a robots.txt, or of a copy of it; None if there is none (any longer)."""
    number = request.meta.get(ROBOTS_TXT_REQUEST)
    return _DOWNLOADS.get(number) if isinstance(number, int) else None


def is_offline(crawl: BaseSettings) -> bool:
    """Whether only HttpCacheMiddleware may answer. `crawl`: Scrapy's settings."""
    return all(crawl.getbool(f"HTTPCACHE_{name}") for name in ("ENABLED", "IGNORE_MISSING"))


def new_download(
    ask: Ask, trigger: Request, crawler: Crawler, settings: RepSettings, *, proxy_may_follow: bool
) -> RobotsTxtDownload:
    """Build the request, in the record of its download. `trigger`: the request that needs the robots.txt.

    If `trigger` was sent before, its proxy may be one that a middleware has chosen for another request. So the proxy is
    left out, and a middleware may choose one. If none does, the proxy follows later (`use_left_out_proxy`).
    `proxy_may_follow` is whether that is possible.
    """
    url, number = ask.url, next(_NUMBERS)
    origin, target = Origin.of(trigger.url), Origin.of(url)
    is_same_host = origin is not None and target is not None and origin.host == target.host
    meta: dict[str, Any] = {
        **_META,
        **_copied(trigger.meta, ["impersonate"]),
        **_for_impersonate(settings, trigger, is_same_host=is_same_host),
        **_for_zyte_api(crawler.settings, trigger),
        ROBOTS_TXT_REQUEST: number,
        "download_timeout": settings.fetch_timeout,
    }
    if ask.was_requested_before and not is_offline(crawler.settings):
        meta["dont_cache"] = True
    if is_same_host:
        meta.update(_copied(trigger.meta, _COPIED_TO_SAME_HOST + PACE_META * (not was_sent(trigger))))
    headers = _copied(trigger.headers, [b"User-Agent"])
    if not meta["zyte_api_automap"]:  # the API sets its own; a site may ban for another
        # An uncompressed body can be cut anywhere and still be read.
        headers[b"Accept-Encoding"] = b"identity"
    request = Request(url, NO_CALLBACK, headers=headers, meta=meta)
    left_out = trigger if proxy_may_follow and was_sent(trigger) else None
    if left_out is None:
        copy_proxy(trigger, request)
    download = _DOWNLOADS[number] = RobotsTxtDownload(request, settings.body_limit, left_out)
    return download


def copy_proxy(source: Request, target: Request, crawler: Crawler | None = None) -> None:
    """Have `target` use the proxy of `source`, unless the environment gave it: the environment has a proxy for each
    scheme (`_scheme_proxy`), and none for the hosts of `no_proxy`.

    `crawler`: if `target` has passed HttpProxyMiddleware. Only that middleware knows to which proxy a password belongs.
    """
    if source.meta.get("_scheme_proxy"):
        return
    for name in (*_OF_PROXY, "_scheme_proxy"):
        target.meta.pop(name, None)
    target.headers.pop(b"Proxy-Authorization", None)
    target.meta.update(_copied(source.meta, _OF_PROXY))
    target.headers.update(_copied(source.headers, [b"Proxy-Authorization"]))
    middleware = crawler.get_downloader_middleware(HttpProxyMiddleware) if crawler is not None else None
    if middleware is not None:
        HttpProxyMiddleware.process_request(middleware, target)  # a project's own method may need more, or be async


def _copied(source: Mapping[Any, Any], names: Iterable[Any]) -> dict[Any, Any]:
    return {name: source[name] for name in names if name in source}


def _for_impersonate(settings: RepSettings, trigger: Request, *, is_same_host: bool) -> dict[str, Any]:
    """Return request meta for scrapy-impersonate, so that the request impersonates the same browser as `trigger`.

    The plugin ignores DOWNLOAD_TIMEOUT and receives whole bodies. So the time limit and the size limit are set here.
    """
    args = trigger.meta.get("impersonate_args") or {}
    # An option may be a password for the host.
    options = (is_same_host and trigger.meta.get("impersonate_curl_options")) or {}
    return {
        "impersonate_args": {**_copied(args, ["verify"]), "timeout": settings.fetch_timeout},  # seconds
        # The limit is in bytes on the wire.
        "impersonate_curl_options": {**options, "MAXFILESIZE_LARGE": MAX_TIMES_BODY_LIMIT * settings.body_limit},
    }


def _for_zyte_api(crawl: BaseSettings, trigger: Request) -> dict[str, Any]:
    """Return request meta for scrapy-zyte-api: use the API if `trigger` does, without following redirects."""
    is_transparent = crawl.getbool("ZYTE_API_TRANSPARENT_MODE")
    ways = trigger.meta.get("zyte_api", False), trigger.meta.get("zyte_api_automap", is_transparent)
    if all(way is False for way in ways):
        return {"zyte_api_automap": False}
    # The value None removes a parameter that the setting has.
    unset = {key: None for key in crawl.getdict("ZYTE_API_AUTOMAP_PARAMS") if key not in _ZYTE_API_ROUTES}
    plain = {"httpResponseBody": True, "httpResponseHeaders": True, "followRedirect": False}
    return {"zyte_api_automap": {**unset, **plain}, "zyte_api_session_enabled": False}


class Cookies:
    """The cookies that the origins along the redirects of one robots.txt have set. Each origin gets only its own. The
    first one also gets those that others have set for it (`Domain`). They never mix with the cookies of the crawl."""

    def __init__(self, first: Origin) -> None:
        self._first = first
        self._jars: defaultdict[Origin | None, CookieJar] = defaultdict(CookieJar)

    def add_to(self, request: Request) -> None:
        if self._jars:
            self._jars[Origin.of(request.url)].add_cookie_header(request)
            # A request without a session (`compat.NO_SESSION`): Scrapy replaces the header by these cookies.
            pairs = (request.headers.get("Cookie") or b"").decode("latin-1").split("; ")
            request.cookies = dict(pair.partition("=")[::2] for pair in pairs if pair)

    def keep(self, response: Response, request: Request) -> None:
        if b"Set-Cookie" in response.headers:
            for origin in {self._first, Origin.of(request.url)}:
                self._jars[origin].extract_cookies(response, request)
