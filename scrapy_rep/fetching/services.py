"""What a request for a robots.txt tells plugins that fetch by other means than Scrapy: once, as plain text, and no more
than it takes. None of them is imported here, and a plugin that is not there does not look."""

from __future__ import annotations

from typing import Any

from scrapy import Request
from scrapy.settings import BaseSettings

from scrapy_rep.settings import RepSettings

# Of the request that needs the robots.txt: without these, a server may take us for somebody else.
_COPIED = ("impersonate",)
# Of scrapy-zyte-api's parameters, those that say from where to fetch, not what.
_ZYTE_API_ROUTES = ("device", "geolocation", "ipType", "tags")
# A file of that many times REP_BODY_LIMIT is still read, up to that limit.
MAX_TIMES_BODY_LIMIT = 8


def meta_for_services(crawl: BaseSettings, settings: RepSettings, trigger: Request) -> dict[str, Any]:
    """Request meta. `crawl`: Scrapy's settings; `trigger`: the request that needs the robots.txt."""
    return {
        **{key: trigger.meta[key] for key in _COPIED if key in trigger.meta},
        # scrapy-playwright: a browser makes a page of it.
        "playwright": False,
        # scrapy-rotating-proxies: REP_FETCH_RETRIES says how often.
        "max_proxies_to_try": 0,
        # scrapy-impersonate knows neither DOWNLOAD_TIMEOUT nor `bytes_received`. The size is that on the wire.
        "impersonate_args": {"timeout": settings.fetch_timeout},
        "impersonate_curl_options": {"MAXFILESIZE_LARGE": MAX_TIMES_BODY_LIMIT * settings.body_limit},
        **_for_zyte_api(crawl, trigger),
    }


def _for_zyte_api(crawl: BaseSettings, trigger: Request) -> dict[str, Any]:
    """Through the API if the other request goes through it; never rendered, and with redirects left to us."""
    is_transparent = crawl.getbool("ZYTE_API_TRANSPARENT_MODE")
    ways = trigger.meta.get("zyte_api", False), trigger.meta.get("zyte_api_automap", is_transparent)
    if all(way is False for way in ways):
        return {"zyte_api_automap": False}
    # None takes away what the setting asks for.
    unset = {key: None for key in crawl.getdict("ZYTE_API_AUTOMAP_PARAMS") if key not in _ZYTE_API_ROUTES}
    plain = {"httpResponseBody": True, "httpResponseHeaders": True, "followRedirect": False}
    return {"zyte_api_automap": {**unset, **plain}, "zyte_api_session_enabled": False}
