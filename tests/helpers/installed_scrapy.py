"""What the installed Scrapy supports, for tests of features that only some releases have.

`conftest.py` and `test_2_3_1_2_private_redirects.py` look at the version of Scrapy, too.
"""

from __future__ import annotations

import re
from importlib.util import find_spec

import scrapy
import scrapy.exceptions
from scrapy import Request
from scrapy.settings import default_settings
from twisted._version import __version__ as twisted_version

from scrapy_rep.scrapy_internals.compat import DownloadTimeoutError

TIMEOUT = DownloadTimeoutError.__name__
"""The exception for a page that does not answer in time, as errbacks and logs name it."""

DATA_LOSS = "ResponseDataLossError" if hasattr(scrapy.exceptions, "ResponseDataLossError") else "ResponseFailed"
"""The exception for a page whose connection is lost before the end of the page."""


def as_now(text: str) -> str:
    """Replace the names of exceptions by those of the newest Scrapy, which the docs show."""
    return re.sub(rf"\b{TIMEOUT}(: User timeout caused connection failure)?\b", "DownloadTimeoutError", text)


CAN: dict[str, bool] = {
    "crawl without a reactor": hasattr(default_settings, "TWISTED_REACTOR_ENABLED"),
    "send credentials by settings and by request meta": hasattr(default_settings, "HTTPAUTH_USER"),
    "send a URL verbatim": hasattr(Request, "_url_is_verbatim"),
    "send many requests by HTTP/2": (twisted_version.major, twisted_version.minor) > (25, 5),
    "take a CONCURRENT_REQUESTS of 0 for no limit": scrapy.version_info >= (2, 18),
}


_MODULE = "scrapy.core.downloader.handlers"
HANDLERS: dict[str, str] = {
    name: f"{_MODULE}.{path}"
    for name, path in {
        "twisted": "http11.HTTP11DownloadHandler",
        "aiohttp": "_aiohttp.AiohttpDownloadHandler",
        "httpx": "_httpx.HttpxDownloadHandler",
    }.items()
    if find_spec(f"{_MODULE}.{path.partition('.')[0]}")
}
"""Scrapy's download handlers for HTTP, by the library that they use."""

HTTP2 = f"{_MODULE}.http2.H2DownloadHandler"
"""Scrapy's download handler for HTTP/2, which takes only https URLs."""


def not_tested() -> list[str]:
    """A line for each feature that is not tested, because this Scrapy lacks it."""
    return [f"Not tested: Scrapy {scrapy.__version__} cannot {ability}" for ability, can in CAN.items() if not can]
