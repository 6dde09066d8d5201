"""Schemes other than http and https: a robots.txt at `scheme://authority/robots.txt` (RFC 9309 section 2.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import ftp_server
import pytest
from crawling import crawl
from installed_scrapy import TIMEOUT
from processes import PythonProcess, until
from pytest_twisted import ensureDeferred
from scrapy import Request
from scrapy.http import Response
from web import RULES, Web

from scrapy_rep import RobotsUnreachable
from scrapy_rep.scrapy_internals.compat import sleep


@pytest.fixture
def ftp(tmp_path: Path) -> Iterator[Callable[..., str]]:
    """Starts an FTP server with these files, and returns its address."""
    with ExitStack() as servers:

        def start(*modes: str, **files: bytes) -> str:
            for name, content in files.items():
                path = tmp_path / name.replace("_", "/").replace("robots", "robots.txt")
                path.parent.mkdir(exist_ok=True, parents=True)
                path.write_bytes(content)
            server = servers.enter_context(PythonProcess(ftp_server.__file__, str(tmp_path), *modes))
            until(lambda: server.stdout.endswith(b"\n"))
            return f"ftp://127.0.0.1:{int(server.stdout)}"

        yield start


@ensureDeferred
async def test_2_3_ftp_obeys_its_robots_txt(ftp: Callable[..., str]) -> None:
    origin = ftp(robots=RULES.encode(), page=b"page", private=b"secret")
    result = await crawl(f"{origin}/page", f"{origin}/private")
    assert [response.body for response in result.pages.values()] == [b"page"]
    assert list(result.refused) == [f"{origin}/private"]
    assert result.refused[f"{origin}/private"].verdict.robots_url == f"{origin}/robots.txt"


@ensureDeferred
async def test_ftp_is_judged_by_the_file_that_is_asked_for(ftp: Callable[..., str]) -> None:
    rules = b"user-agent: *\ndisallow: /pub/private/\ndisallow: /pub/one.txt$\ndisallow: /pub/(x).txt\n"
    files = {"pub/private/a.txt": b"secret", "pub/one.txt": b"secret", "pub/(x).txt": b"secret", "pub/two.txt": b"two"}
    origin = ftp(robots=rules, **files)
    forbidden = [
        "/pub/private%2Fa.txt",
        "/pub%2Fprivate%2Fa.txt",
        "/pub//private/a.txt",
        "/pub/x%2F..%2Fprivate/a.txt",
        "/pub/one.txt?x",
        "/pub/one.txt;type=i",
        "/pub/one%2Etxt?",
        "/pub/%28x%29.txt",
        "/pub/%28x).txt?x#y",
    ]
    allowed = ["/pub/two.txt", "/pub/two.txt?x", "/pub%2Ftwo.txt"]
    result = await crawl(*(f"{origin}{path}" for path in (*forbidden, *allowed)))
    assert set(result.refused) == {Request(f"{origin}{path}").url for path in forbidden}
    assert {response.body for response in result.pages.values()} == {b"two"}
    assert len(result.pages) == len(allowed)


@ensureDeferred
async def test_2_3_1_3_ftp_without_a_robots_txt_allows_everything(ftp: Callable[..., str]) -> None:
    origin = ftp(page=b"page")
    result = await crawl(f"{origin}/page")
    assert list(result.pages) == [f"{origin}/page"]
    assert result.stats["rep/access/unavailable"] == 1


@pytest.mark.parametrize(
    "reply",
    ["425 Can't open data connection to port 55001", "421 Too many users (550)", "450-550\r\n450 Busy: 155012"],
)
@ensureDeferred
async def test_2_3_1_4_the_code_of_an_ftp_reply_decides_and_not_its_text(ftp: Callable[..., str], reply: str) -> None:
    origin = ftp(reply, page=b"page")
    result = await crawl(f"{origin}/page")
    (error,) = result.refused.values()
    assert isinstance(error, RobotsUnreachable)
    assert result.tracebacks == []


@ensureDeferred
async def test_ftp_with_the_credentials_of_the_request(ftp: Callable[..., str]) -> None:
    # Alice gets other files than a guest, and other rules.
    origin = ftp(robots=b"", alice_robots=RULES.encode(), alice_private=b"secret", private=b"public")
    alice = {"ftp_user": "alice", "ftp_password": "secret"}
    result = await crawl(Request(f"{origin}/private", meta=alice))
    assert list(result.refused) == [f"{origin}/private"]


@ensureDeferred
async def test_an_ftp_server_that_hangs_is_stopped_at_the_deadline(ftp: Callable[..., str]) -> None:
    origin = ftp("hang")
    result = await crawl(f"{origin}/page", settings={"REP_FETCH_TIMEOUT": 0.3})
    (error,) = result.refused.values()
    assert isinstance(error, RobotsUnreachable)
    assert TIMEOUT in error.cause
    assert result.tracebacks == []


@ensureDeferred
async def test_a_file_by_ftp_is_received_whole_and_read_up_to_the_limit(ftp: Callable[..., str]) -> None:
    """Scrapy's handler sends no `bytes_received`, so nothing stops the download at REP_BODY_LIMIT."""
    origin = ftp(robots=RULES.encode() + b"#" * 20_000_000 + b"\nDisallow: /page", page=b"page", private=b"secret")
    result = await crawl(f"{origin}/page", f"{origin}/private")
    assert list(result.pages) == [f"{origin}/page"]
    assert str(result.refused[f"{origin}/private"].verdict.rule) == "Disallow: /private"
    assert result.stats["rep/truncated"] == 1
    assert result.tracebacks == []


@ensureDeferred
async def test_ftp_with_the_wrong_password_is_unreachable(ftp: Callable[..., str]) -> None:
    origin = ftp(robots=b"")
    wrong = {"ftp_user": "alice", "ftp_password": "wrong"}
    result = await crawl(Request(f"{origin}/page", meta=wrong))
    (error,) = result.refused.values()
    assert isinstance(error, RobotsUnreachable)
    assert "530 Sorry, Authentication failed." in error.cause
    assert result.tracebacks == []


@ensureDeferred
async def test_a_handler_for_ftp_from_the_settings_is_kept() -> None:
    result = await crawl(
        "ftp://a.example/page", "ftp://a.example/private", settings={"DOWNLOAD_HANDLERS": {"ftp": Capsule}}
    )
    assert list(result.refused) == ["ftp://a.example/private"]


class Capsule:
    """A download handler for gemini, as a user might write it: it has no time limit."""

    lazy = True

    async def download_request(self, request: Request) -> Response:
        if "slow" in request.url:
            await sleep(60)
        if request.url.endswith("/robots.txt"):
            return Response(request.url, body=RULES.encode())
        return Response(request.url, body=b"page")

    async def close(self) -> None:
        pass


GEMINI = {"DOWNLOAD_HANDLERS": {"gemini": Capsule}}


@ensureDeferred
async def test_2_3_a_custom_scheme_with_an_authority() -> None:
    origin = "gemini://capsule.example"
    result = await crawl(f"{origin}/page", f"{origin}/private", settings=GEMINI)
    assert list(result.pages) == [f"{origin}/page"]
    assert result.refused[f"{origin}/private"].verdict.robots_url == f"{origin}/robots.txt"


@ensureDeferred
async def test_2_3_a_websocket_obeys_the_robots_txt_of_http(web: Web) -> None:
    site = web.robots(RULES)
    origin = site.origin.replace("http://", "ws://")
    result = await crawl(
        f"{origin}/page", f"{origin}/private", site.url("/private"), settings={"DOWNLOAD_HANDLERS": {"ws": Capsule}}
    )
    assert list(result.pages) == [f"{origin}/page"]
    assert set(result.refused) == {f"{origin}/private", site.url("/private")}
    assert {error.verdict.robots_url for error in result.refused.values()} == {site.url("/robots.txt")}
    assert site.targets == ["/robots.txt"]


@ensureDeferred
async def test_a_custom_handler_that_hangs_is_stopped_at_the_deadline() -> None:
    result = await crawl("gemini://slow.example/page", settings={**GEMINI, "REP_FETCH_TIMEOUT": 0.3})
    (error,) = result.refused.values()
    assert isinstance(error, RobotsUnreachable)
    assert "0.3 seconds" in error.cause
    assert result.tracebacks == []


@ensureDeferred
async def test_the_time_in_the_queue_of_the_slot_does_not_count() -> None:
    sent: list[str] = []

    class Listed(Capsule):
        async def download_request(self, request: Request) -> Response:
            sent.append(request.url)
            return await super().download_request(request)

    pages = [Request(f"gemini://a.example/{n}", meta={"dont_obey_robotstxt": True}) for n in range(8)]
    held = Request("gemini://a.example/page")
    settings: dict[str, Any] = {
        "DOWNLOAD_HANDLERS": {"gemini": Listed},
        "REP_FETCH_TIMEOUT": 0.1,
        "DOWNLOAD_DELAY": 0.2,
    }
    result = await crawl(*pages[:3], held, *pages[3:], settings=settings)
    assert result.refused == {}
    assert sorted(sent) == sorted([*(page.url for page in pages), "gemini://a.example/robots.txt", held.url])
    assert result.tracebacks == []


@ensureDeferred
async def test_s3_is_allowed() -> None:
    result = await crawl("s3://bucket/page", settings={"DOWNLOAD_HANDLERS": {"s3": Capsule}})
    assert list(result.pages) == ["s3://bucket/page"]
    assert "rep/waited" not in result.stats
