"""With third-party plugins that download pages: robots.txt is obeyed, fetched once as plain text, and bounded."""

from __future__ import annotations

import base64
import json
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
from crawling import crawl
from doc_pages import marked
from processes import Ended, crawl_process, crawled, until
from pytest_twisted import ensureDeferred
from web import RULES, Route, Site, Web, answer, redirect

pytestmark = pytest.mark.ecosystem

LINE = "#" + 99 * "x" + "\n"
IMPERSONATE: dict[str, Any] = {
    "DOWNLOAD_HANDLERS": {"http": "scrapy_impersonate.ImpersonateDownloadHandler"},
    "DOWNLOADER_MIDDLEWARES": {"scrapy_impersonate.RandomBrowserMiddleware": 1000},
}
CURL_CFFI: dict[str, Any] = {
    "DOWNLOAD_HANDLERS": {"http": "scrapy_curl_cffi.handlers.CurlCffiDownloadHandler"},
    "DOWNLOADER_MIDDLEWARES": {"scrapy_curl_cffi.middlewares.CurlCffiMiddleware": 200},
    "CURL_CFFI_OPTIONS": {"impersonate": "chrome"},
}
PLAYWRIGHT: dict[str, Any] = {
    "DOWNLOAD_HANDLERS": {"http": "scrapy_playwright.handler.ScrapyPlaywrightDownloadHandler"},
    "PLAYWRIGHT_LAUNCH_OPTIONS": {"executable_path": "/usr/bin/chromium", "args": ["--no-sandbox"]},
}
RENDERED = {"playwright": True}
ROTATING: dict[str, Any] = {
    "DOWNLOADER_MIDDLEWARES": {
        "rotating_proxies.middlewares.RotatingProxyMiddleware": 610,
        "rotating_proxies.middlewares.BanDetectionMiddleware": 620,
    }
}
CURL = [pytest.param(IMPERSONATE, id="scrapy-impersonate"), pytest.param(CURL_CFFI, id="scrapy-curl-cffi")]


def ends(crawl: Ended, site: Site) -> dict[str, str]:
    """By path."""
    return {url.removeprefix(site.origin): end for url, end in crawl.by_url.items()}


OBEYED = {"/": "HTTP 200", "/private": "ForbiddenByRobots"}
UNREACHABLE = {"/": "RobotsUnreachable", "/private": "RobotsUnreachable"}


def pages(site: Site, **meta: Any) -> list[dict[str, Any]]:
    return [{"url": site.url(path), "meta": meta} for path in OBEYED]


# curl.


@pytest.mark.parametrize("settings", CURL)
@pytest.mark.parametrize(
    "robots",
    [
        pytest.param(answer(RULES), id="plain"),
        pytest.param(answer(RULES + LINE * 20_000), id="2-MB"),
        pytest.param(redirect("/elsewhere"), id="redirected"),
    ],
)
def test_curl_obeys(web: Web, settings: dict[str, Any], robots: Route) -> None:
    site = web.site({"/robots.txt": robots, "/elsewhere": answer(RULES)})
    crawl = crawled(pages(site), settings)
    assert ends(crawl, site) == OBEYED
    assert [line for line in crawl.warnings if "sends no signal bytes_received" in line]
    assert len(site.robots_requests) == 1


@pytest.mark.parametrize("settings", CURL)
def test_curl_waits_no_longer_than_we_say(web: Web, settings: dict[str, Any]) -> None:
    site = web.robots(answer(kind="hang"))
    assert ends(crawled(pages(site), {**settings, "REP_FETCH_TIMEOUT": 1}), site) == UNREACHABLE


def test_impersonate_reads_no_robots_txt_without_end(web: Web) -> None:
    site = web.robots(answer(LINE * 600, kind="endless"))
    assert ends(crawled(pages(site), IMPERSONATE), site) == UNREACHABLE
    assert site.robots_requests[0]["octets"] < 10 * 2**20  # of 64 MiB: 8 times REP_BODY_LIMIT, and what was on its way


def test_a_request_that_impersonates_has_its_robots_txt_fetched_so(web: Web) -> None:
    site = web.robots(RULES)
    handler = {"DOWNLOAD_HANDLERS": IMPERSONATE["DOWNLOAD_HANDLERS"]}
    assert ends(crawled(pages(site, impersonate="chrome"), handler), site) == OBEYED
    assert "sec-ch-ua" in site.robots_requests[0]["headers"]
    other = web.robots(RULES)
    assert ends(crawled(pages(other), handler), other) == OBEYED
    assert "sec-ch-ua" not in other.robots_requests[0]["headers"]


# scrapy-rotating-proxies.


def test_rotating_proxies_do_not_repeat_robots_txt(web: Web) -> None:
    """Each proxy is a site of the test web. The target of a request to it is a whole URL."""
    proxies = [web.site({"*": answer(status=503)}) for _ in range(3)]
    settings = {**ROTATING, "ROTATING_PROXY_LIST": [proxy.origin for proxy in proxies]}
    crawl = crawled(["http://site.example/", "http://site.example/private"], settings)
    assert set(crawl.by_url.values()) == {"RobotsUnreachable"}
    assert [target for proxy in proxies for target in proxy.targets] == ["http://site.example/robots.txt"]


@pytest.mark.filterwarnings("ignore::scrapy.exceptions.ScrapyDeprecationWarning")  # of the plugin
@pytest.mark.parametrize("has_policy", [False, True], ids=["without", "with-the-policy-of-the-docs"])
@ensureDeferred
async def test_a_404_for_robots_txt_is_a_ban_unless_the_policy_of_the_docs_is_set(web: Web, has_policy: bool) -> None:
    variables: dict[str, Any] = {}
    exec(marked("ban-policy"), variables)
    proxy = web.site({"http://site.example/robots.txt": answer(status=404), "*": answer("page")})
    settings = {**ROTATING, "ROTATING_PROXY_LIST": [proxy.origin], "ROTATING_PROXY_BACKOFF_BASE": 0.1}
    if has_policy:
        settings["ROTATING_PROXY_BAN_POLICY"] = variables["BanPolicy"]
    result = await crawl("http://site.example/", settings=settings)
    assert list(result.pages) == ["http://site.example/"]
    assert result.stats.get("bans/status/404", 0) == (not has_policy)


# scrapy-proxies.


@pytest.mark.parametrize("mode", [0, 1], ids=["another-proxy-for-each-request", "one-proxy"])
def test_scrapy_proxies_sets_the_proxy_of_robots_txt(web: Web, tmp_path: Path, mode: int) -> None:
    """It keeps its mark in the meta. A redirect to another host carries both the proxy and the mark."""
    hosts = [f"http://host{n}.example" for n in range(54)]
    others = [host.replace("host", "other") for host in hosts[:24]]
    routes = {f"{host}/robots.txt": answer(RULES) for host in (*hosts, *others)}
    routes |= {f"{host}/": redirect(f"{other}/") for host, other in zip(hosts, others, strict=False)}
    proxies = [web.site({**routes, "*": answer("page")}) for _ in range(3)]
    listed = tmp_path / "proxies.txt"
    listed.write_text("".join(f"{proxy.origin.replace('//', '//user:s3cr3t@')}\n" for proxy in proxies))
    middlewares = {
        "scrapy.downloadermiddlewares.retry.RetryMiddleware": 90,
        "scrapy_proxies.RandomProxy": 100,
        "scrapy.downloadermiddlewares.httpproxy.HttpProxyMiddleware": 110,
    }
    settings = {"PROXY_LIST": str(listed), "PROXY_MODE": mode, "DOWNLOADER_MIDDLEWARES": middlewares}
    crawl = crawled([f"{host}/" for host in hosts], settings)
    assert len(crawl.pages) == 54
    assert len([t for proxy in proxies for t in proxy.targets if t.endswith("/robots.txt")]) == 54 + 24
    assert crawl.complaints == []


# scrapy-playwright.


@pytest.mark.skipif(not Path("/usr/bin/chromium").exists(), reason="no Chromium is installed")
@pytest.mark.parametrize("bypassed", ["count", "drop"])
def test_a_browser_renders_no_robots_txt_and_its_redirects_are_judged(web: Web, bypassed: str) -> None:
    site = web.site({"/robots.txt": answer(RULES), "/moved": redirect("/private/page"), "*": answer("<p>page")})
    urls = [*pages(site, **RENDERED), {"url": site.url("/moved"), "meta": RENDERED}]
    crawl = crawled(urls, {**PLAYWRIGHT, "REP_BYPASSED": bypassed})
    moved = "HTTP 200" if bypassed == "count" else "ForbiddenByRobots"
    assert ends(crawl, site) == {**OBEYED, "/moved": moved}
    assert crawl.stats["rep/bypassed"] == 1
    robots, page = site.robots_requests[0], next(r for r in site.requests if r["target"] == "/")
    assert "Scrapy" in robots["headers"]["User-Agent"]
    assert "Pragma" not in robots["headers"], "by Scrapy, not by the browser"
    assert "Pragma" in page["headers"], sorted(page["headers"])


# scrapy-zyte-api.


@contextmanager
def zyte_api(robots: str, leads_to: dict[str, str]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Its address, and what it is asked. `leads_to`: which URL follows which."""
    asked: list[dict[str, Any]] = []

    class Api(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            parameters = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append(parameters)
            url = leads_to.get(parameters["url"], parameters["url"])
            text = robots if url.endswith("/robots.txt") else "<p>page"
            found: dict[str, Any] = {"url": url, "statusCode": 200}
            if parameters.get("browserHtml"):
                found["browserHtml"] = f"<html><body><pre>{text}</pre></body></html>"
            else:
                found["httpResponseBody"] = base64.b64encode(text.encode()).decode()
                found["httpResponseHeaders"] = [{"name": "Content-Type", "value": "text/plain"}]
            body = json.dumps(found).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Not on standard error."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Api)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/", asked
    finally:
        server.shutdown()
        server.server_close()


def zyte_settings(api: str, **more: Any) -> dict[str, Any]:
    addons = {"scrapy_rep.Addon": 500, "scrapy_zyte_api.Addon": 500}
    return {"ADDONS": addons, "ZYTE_API_KEY": "a", "ZYTE_API_URL": api, **more}


@pytest.mark.parametrize("bypassed", ["count", "drop"])
def test_an_api_renders_no_robots_txt_and_its_redirects_are_judged(bypassed: str) -> None:
    site = "http://site.example"
    with zyte_api(RULES, {f"{site}/moved": f"{site}/private/page"}) as (api, asked):
        rendering = {"browserHtml": True, "geolocation": "FR", "screenshot": True}
        settings = zyte_settings(api, ZYTE_API_AUTOMAP_PARAMS=rendering, REP_BYPASSED=bypassed)
        crawl = crawled([f"{site}/", f"{site}/private", f"{site}/moved"], settings)
    assert crawl.by_url == {
        f"{site}/": "HTTP 200",
        f"{site}/private": "ForbiddenByRobots",
        f"{site}/moved": "HTTP 200" if bypassed == "count" else "ForbiddenByRobots",
    }
    (robots,) = [parameters for parameters in asked if parameters["url"].endswith("/robots.txt")]
    assert (robots["httpResponseBody"], robots["followRedirect"], robots["geolocation"]) == (True, False, "FR")
    assert not {"browserHtml", "screenshot", "customHttpRequestHeaders"} & set(robots), "a site may ban for its headers"
    assert crawl.complaints == []
    assert crawl.stats["rep/bypassed"] == 1


def test_an_api_is_asked_for_robots_txt_if_it_is_asked_for_the_page(web: Web) -> None:
    direct, through_api = web.robots(RULES), web.robots("user-agent: *\ndisallow: /\n")
    with zyte_api(RULES, {}) as (api, asked):
        settings = zyte_settings(api, ZYTE_API_TRANSPARENT_MODE=False)
        crawl = crawled([*pages(direct), *pages(through_api, zyte_api_automap={"browserHtml": True})], settings)
    assert ends(crawl, direct) == {**OBEYED, **{through_api.url(path): end for path, end in OBEYED.items()}}
    assert direct.targets == ["/robots.txt", "/"]
    assert [parameters["url"] for parameters in asked] == [through_api.robots_url, through_api.url("/")]


# scrapy-poet.


@pytest.mark.parametrize("callback", ["page", "nothing"])
def test_the_pages_of_page_objects_obey_robots_txt(web: Web, callback: str) -> None:
    site = web.site({"/robots.txt": answer(RULES), "/free": answer("free")})
    settings = {"ADDONS": {"scrapy_rep.Addon": 500, "scrapy_poet.Addon": 300}}
    command = (str(Path(__file__).parents[1] / "helpers" / "poet_crawl.py"),)
    with crawl_process(pages(site), settings, command=command, callback=callback) as process:
        crawl = process.ended()
    assert len(site.robots_requests) == 1
    assert crawl.complaints == []
    if callback == "page":
        assert ends(crawl, site) == OBEYED
        assert crawl.notes == ["page: ForbiddenByRobots, free"]
        assert sorted(site.targets) == ["/", "/free", "/robots.txt"]
    else:
        assert ends(crawl, site) == {**OBEYED, "/": "DummyResponse"}
        assert site.targets == ["/robots.txt"]


# scrapyd.

EXAMPLE = Path(__file__).parents[2] / "example_project"
SCRAPYD = "[scrapyd]\nhttp_port = {port}\npoll_interval = 0.2\n"


def test_a_crawl_that_scrapyd_runs_obeys_robots_txt(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    project = shutil.copytree(EXAMPLE, tmp_path / "project", ignore=shutil.ignore_patterns("__pycache__"))
    (project / "scrapyd.conf").write_text(SCRAPYD.format(port=port))

    def call(what: str, **parameters: str) -> Any:
        query = urlencode(parameters)
        data = None if what == "listjobs" else query.encode()
        url = f"http://127.0.0.1:{port}/{what}.json" + (f"?{query}" if data is None else "")
        with urlopen(url, data, timeout=10) as answered:
            return json.load(answered)

    command = [sys.executable, "-m", "scrapyd"]
    with subprocess.Popen(command, cwd=project, stdout=subprocess.DEVNULL) as scrapyd:
        try:
            until(lambda: can_connect(port))
            job = call("schedule", project="default", spider="tour", setting="LOG_LEVEL=INFO")
            until(lambda: call("listjobs", project="default")["finished"])
        finally:
            scrapyd.terminate()
    log = (project / "logs" / "default" / "tour" / f"{job['jobid']}.log").read_text()
    assert "Crawler's name in robots.txt (product token): 'TourBot'" in log
    assert "'robotstxt/forbidden': 5" in log


def can_connect(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
