"""A request for a robots.txt: how it is marked, what it takes from the request that needs the robots.txt, and what it
tells plugins that fetch by other means than Scrapy: plain text, once, not endlessly.

No plugin is imported here. A plugin that is not installed reads none of these request meta.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from weakref import ref

from scrapy import Request
from scrapy.http import Response
from scrapy.http.cookies import CookieJar
from scrapy.http.request import NO_CALLBACK
from scrapy.settings import BaseSettings

from scrapy_rep.protocol.freshness import Caching
from scrapy_rep.settings import RepSettings

ROBOTS_TXT_REQUEST = "rep_robots_txt"
"""The request meta key that marks our requests for a robots.txt, with a `RobotsTxtDownload`."""

# Scrapy's middlewares and extensions leave our requests alone: we decide what an answer means.
_UNTOUCHED = {
    "allow_offsite": True,
    "autothrottle_dont_adjust_delay": True,
    "dont_merge_cookies": True,
    "dont_obey_robotstxt": True,
    "dont_redirect": True,
    "dont_retry": True,
    "download_fail_on_dataloss": False,
}
# The download handlers of these schemes obey `download_timeout`, and send `bytes_received`.
HAVE_TIMEOUTS = {"http", "https"}
# A robots.txt request goes the way of the request that needs it: these are copied.
_COPIED_HEADERS = (b"User-Agent", b"Proxy-Authorization")
_COPIED_FOR_FTP = ("ftp_user", "ftp_password", "ftp_passive")
MAX_TIMES_BODY_LIMIT = 8
"""Where a plugin can only take all or nothing, it takes files of up to that many times REP_BODY_LIMIT."""
# scrapy-zyte-api's parameters that say from where to fetch, not what.
_ZYTE_API_ROUTES = ("device", "geolocation", "ipType", "tags")


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of a URL."""

    url: str
    trigger: Request
    """The request that needs the robots.txt; its proxy and User-Agent are used."""
    jar: CookieJar
    """The cookies of this chain of redirects for the URL's origin; those of the answer are put there."""
    validators: Caching | None = None
    """Of a stored answer, to ask whether that is still valid (RFC 9111 4.3.1)."""
    is_repeated: bool = False
    """The robots.txt was requested before. So HttpCacheMiddleware must neither replay nor store the answer: it would
    replay what is known already, and store a 304 as the page."""
    is_from_public: bool = False
    """A public host has redirected here, and REP_REDIRECT_PRIVATE is not set."""


@dataclass(eq=False, slots=True)
class RobotsTxtDownload:
    """One response on its way: how many octets have come, and the response once it is there."""

    limit: int
    """How many octets of the body may come (REP_BODY_LIMIT). When nobody waits for the response any longer, it is set
    to -1: then the connection is closed as soon as anything comes."""
    octets: int = 0
    sent: ref[Request] | None = None
    """The request that the octets came for. A middleware may send a copy, which has this object, too."""
    response: Response | None = None
    """As it came, not decoded yet. It has its request."""

    def count(self, request: Request, data: bytes) -> None:
        """`data` has come for `request`."""
        if self.sent is None or self.sent() is not request:
            self.sent, self.octets = ref(request), 0
        self.octets += len(data)

    def is_cut(self, response: Response) -> bool:
        """Whether the limit has cut the body on the wire; of a replay by HttpCacheMiddleware the body tells it."""
        return max(self.octets, len(response.body)) > self.limit

    def is_stopped(self, response: Response) -> bool:
        """Whether another component has ended the download before its end. `response`: as it came, not decoded."""
        if "download_stopped" not in response.flags or self.is_cut(response):
            return False
        return response.headers.get("Content-Length") != str(len(response.body)).encode()

    def taken(self) -> Response | None:
        """The response, which is not kept any longer: the request that it has keeps this object in its meta."""
        response, self.response = self.response, None
        return response


def robots_request(
    question: Question, download: RobotsTxtDownload, crawl: BaseSettings, settings: RepSettings, *, offline: bool
) -> Request:
    """`crawl`: Scrapy's settings. `offline`: the user wants only what HttpCacheMiddleware has."""
    url, trigger, validators = question.url, question.trigger, question.validators
    meta: dict[str, Any] = {
        **_UNTOUCHED,
        **_for_other_plugins(crawl, settings, trigger),
        ROBOTS_TXT_REQUEST: download,
        "download_timeout": settings.fetch_timeout,
    }
    if question.is_repeated and not offline:
        meta["dont_cache"] = True
    if "proxy" in trigger.meta:
        meta["proxy"] = trigger.meta["proxy"]
    if url.startswith("ftp:"):
        meta.update({key: trigger.meta[key] for key in _COPIED_FOR_FTP if key in trigger.meta})
    # An uncompressed body can be cut anywhere and still be read.
    request = Request(url, NO_CALLBACK, headers={"Accept-Encoding": "identity"}, meta=meta)
    for name in _COPIED_HEADERS:
        if name in trigger.headers:
            request.headers[name] = trigger.headers[name]
    if validators is not None and not offline:
        conditions = {"If-None-Match": validators.etag, "If-Modified-Since": validators.last_modified}
        for field, value in conditions.items():
            if value is not None:
                request.headers[field] = value.encode("latin-1")
    if len(question.jar):
        question.jar.add_cookie_header(request)
    return request


def _for_other_plugins(crawl: BaseSettings, settings: RepSettings, trigger: Request) -> dict[str, Any]:
    """Request meta. `crawl`: Scrapy's settings; `trigger`: the request that needs the robots.txt."""
    return {
        "playwright": False,  # scrapy-playwright: a browser would make a page of it
        "max_proxies_to_try": 0,  # scrapy-rotating-proxies: REP_FETCH_RETRIES says how often
        **_for_impersonate(settings, trigger),
        **_for_zyte_api(crawl, trigger),
    }


def _for_impersonate(settings: RepSettings, trigger: Request) -> dict[str, Any]:
    """scrapy-impersonate: as the other request, or a server may take us for somebody else. The plugin does not obey
    DOWNLOAD_TIMEOUT, and receives whole bodies."""
    args, options = (trigger.meta.get(f"impersonate_{name}") or {} for name in ("args", "curl_options"))
    meta: dict[str, Any] = {
        "impersonate_args": {"timeout": settings.fetch_timeout},  # seconds
        "impersonate_curl_options": {
            **options,
            "MAXFILESIZE_LARGE": MAX_TIMES_BODY_LIMIT * settings.body_limit,  # bytes on the wire
        },
    }
    if "impersonate" in trigger.meta:
        meta["impersonate"] = trigger.meta["impersonate"]
    if "verify" in args:
        meta["impersonate_args"]["verify"] = args["verify"]
    return meta


def _for_zyte_api(crawl: BaseSettings, trigger: Request) -> dict[str, Any]:
    """scrapy-zyte-api: through the API if the other request goes through it; redirects are left to us."""
    is_transparent = crawl.getbool("ZYTE_API_TRANSPARENT_MODE")
    ways = trigger.meta.get("zyte_api", False), trigger.meta.get("zyte_api_automap", is_transparent)
    if all(way is False for way in ways):
        return {"zyte_api_automap": False}
    # None takes away what the setting asks for.
    unset = {key: None for key in crawl.getdict("ZYTE_API_AUTOMAP_PARAMS") if key not in _ZYTE_API_ROUTES}
    plain = {"httpResponseBody": True, "httpResponseHeaders": True, "followRedirect": False}
    return {"zyte_api_automap": {**unset, **plain}, "zyte_api_session_enabled": False}
