"""With download handlers of other packages: what they send was judged, and hosts that hang hold no page up."""

from __future__ import annotations

from typing import Any

import pytest
from doc_pages import table
from processes import crawled
from web import RULES, Web, answer

from scrapy_rep.scrapy_internals.downloads import LIMITED

pytestmark = pytest.mark.ecosystem

INCUBATOR = "scrapy_download_handlers_incubator.handlers"
HANDLERS: dict[str, dict[str, Any]] = {
    name: {"DOWNLOAD_HANDLERS": dict.fromkeys(("http", "https"), path)}
    for name, path in {
        "aiohttp": f"{INCUBATOR}.aiohttp.AiohttpDownloadHandler",
        "curl-cffi": f"{INCUBATOR}.curl_cffi.CurlCffiDownloadHandler",
        "httpx": f"{INCUBATOR}.httpx.HttpxDownloadHandler",
        "niquests": f"{INCUBATOR}.niquests.NiquestsDownloadHandler",
        "pyreqwest": f"{INCUBATOR}.pyreqwest.PyreqwestDownloadHandler",
        "wreq": f"{INCUBATOR}.wreq.WreqDownloadHandler",
        "scrapy-curl": "scrapy_curl.CurlDownloadHandler",
    }.items()
}
HANDLERS["scrapy-curl"] |= {"CURL_IMPERSONATE": "chrome", "CURL_MAX_CLIENTS": 200}
WARNED = {"niquests": "NiquestsDownloadHandler", "pyreqwest": "PyreqwestDownloadHandler"}
each_handler = pytest.mark.parametrize("name", HANDLERS)
# `test_other_readings` has these, too. ESCAPED is allowed, and aiohttp would send it as FORBIDDEN.
FORBIDDEN = ["/@admin", "/!x", "/p?q='"]
ESCAPED = ["/%40admin", "/%21x", "/p?q=%27"]


def test_the_table_in_the_docs_has_each_handler() -> None:
    cells = " ".join(row[0] for row in table("handlers"))
    for settings in HANDLERS.values():
        path = settings["DOWNLOAD_HANDLERS"]["http"]
        assert (path.rpartition(".")[2] if path.startswith(INCUBATOR) else "scrapy-curl") in cells


@each_handler
def test_a_forbidden_url_is_not_sent(web: Web, name: str) -> None:
    rules = "".join(f"disallow: {path}\n" for path in FORBIDDEN)
    site = web.site({"/robots.txt": answer(f"user-agent: *\n{rules}")})
    requests = [{"url": site.url(path), "dont_filter": True} for path in (*FORBIDDEN[:2], *ESCAPED)]
    crawl = crawled(requests, HANDLERS[name])
    ends = {url.removeprefix(site.origin): end for url, end in crawl.by_url.items()}
    assert ends == dict.fromkeys(FORBIDDEN[:2], "ForbiddenByRobots") | dict.fromkeys(ESCAPED, "HTTP 200")
    assert {target for target in site.targets if target != "/robots.txt"} == {*ESCAPED}


@each_handler
def test_hosts_that_never_answer_hold_no_page_up(web: Web, name: str) -> None:
    hang = [web.robots(answer(kind="hang")) for _ in range(6)]
    healthy = [web.robots(RULES) for _ in range(3)]
    settings = {"CONCURRENT_REQUESTS": 2, "REP_FETCH_CONCURRENCY": 8, "REP_FETCH_TIMEOUT": 1, "REP_FETCH_RETRIES": 0}
    crawl = crawled([site.url() for site in (*hang, *healthy)], HANDLERS[name] | settings)
    if name not in WARNED:  # niquests even keeps the place of a request that timed out, for good
        assert [crawl.by_url[site.url()] for site in healthy] == ["HTTP 200"] * 3
    told = [line for line in crawl.warnings if LIMITED.partition("%s")[2] in line]
    assert len(told) == (name in WARNED)
    assert all(LIMITED % WARNED[name] in line for line in told)
