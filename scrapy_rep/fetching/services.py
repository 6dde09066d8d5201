"""What a request for a robots.txt tells plugins that fetch by other means than Scrapy: plain text, once, not endlessly.

No plugin is imported here. One that is not installed reads none of these request meta.
"""

from __future__ import annotations

from typing import Any

from scrapy import Request
from scrapy.settings import BaseSettings

from scrapy_rep.settings import RepSettings

MAX_TIMES_BODY_LIMIT = 8
"""Where a plugin can only take all or nothing, it takes files of up to that many times REP_BODY_LIMIT."""
# scrapy-zyte-api's parameters that say from where to fetch, not what.
_ZYTE_API_ROUTES = ("device", "geolocation", "ipType", "tags")


def meta_for_services(crawl: BaseSettings, settings: RepSettings, trigger: Request) -> dict[str, Any]:
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
