"""No redirect leads from a public to a private host, however its URL is written. The tests look at the connections."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import scrapy
from crawling import crawl
from pytest_twisted import ensureDeferred
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response, TextResponse
from twisted.internet import defer, reactor
from twisted.internet.base import BlockingResolver
from twisted.internet.protocol import Factory, Protocol
from web import Web, answer, redirect

from scrapy_rep import AccessResult, RobotsUnreachable
from scrapy_rep.protocol.answer import Answer
from scrapy_rep.signals import robots_response

RULES = "user-agent: *\ndisallow: /private\n"
# Addresses of this machine. 127.0.0.99 stands for all public hosts: most names resolve to it.
PRIVATE, PUBLIC = "127.0.0.77", "127.0.0.99"

# {port} is the port of a private server.
IN_ASCII = r"""
    http://127.0.0.77:{port}/            HTTP://127.0.0.77:{port}/           hTTp://127.0.0.77:0{port}/
    //127.0.0.77:{port}                  //127.0.0.77:{port}/robots.txt      //127.0.0.77:{port}\latest\meta-data/
    //127.0.0.77:{port}\                 \\127.0.0.77:{port}\x               /\127.0.0.77:{port}/x
    \/127.0.0.77:{port}/x                ///127.0.0.77:{port}/x              ////127.0.0.77:{port}/x
    http:\\127.0.0.77:{port}\x           http:/\127.0.0.77:{port}/x          http:\/127.0.0.77:{port}/x
    http:/127.0.0.77:{port}/x            http:127.0.0.77:{port}/x            http:///127.0.0.77:{port}/x
    http:////127.0.0.77:{port}/x         http:\\\127.0.0.77:{port}/x         http://\127.0.0.77:{port}/x
    http://public.example\@127.0.0.77:{port}/     http://127.0.0.77:{port}\@public.example/
    http://public.example\.127.0.0.77:{port}/     http://127.0.0.77:{port}\.public.example/
    http://public.example@127.0.0.77:{port}/      http://public.example:80@127.0.0.77:{port}/
    http://127.0.0.77:{port}@public.example/      http://public.example@@127.0.0.77:{port}/
    http://public.example#@127.0.0.77:{port}/     http://127.0.0.77:{port}#@public.example/
    http://public.example?@127.0.0.77:{port}/     http://127.0.0.77:{port}?@public.example/
    http://public.example;@127.0.0.77:{port}/     http://public.example&@127.0.0.77:{port}#@public.example/
    http://public.example/@127.0.0.77:{port}/     http://@127.0.0.77:{port}/
    http://127.0.0.77:{port};public.example/      http://127.0.0.77;public.example:{port}/
    http://127.0.0.77,public.example:{port}/      http://127.0.0.77|public.example:{port}/
    http://127.0.0.77^public.example:{port}/      http://127.0.0.77`public.example:{port}/
    http://127.0.0.77"public.example:{port}/      http://127.0.0.77<public.example:{port}/
    http://{127.0.0.77}:{port}/                   http://<127.0.0.77>:{port}/
    http://127.0.0.77%00.public.example:{port}/   http://127.0.0.77%2F.public.example:{port}/
    http://127.0.0.77%23.public.example:{port}/   http://127.0.0.77%3F.public.example:{port}/
    http://127.0.0.77%5C.public.example:{port}/   http://public.example%40127.0.0.77:{port}/
    http://127.0.0.77%3A{port}/                   http://%31%32%37.0.0.77:{port}/
    http://127.0.0%2E77:{port}/                   http://127%E3%80%820%E3%80%820%E3%80%8277:{port}/
    http://127.77:{port}/                http://127.0.77:{port}/             http://2130706509:{port}/
    http://0x7f.0.0.77:{port}/           http://0x7f.0x0.0x0.0x4d:{port}/    http://0x7f00004d:{port}/
    http://0X7F00004D:{port}/            http://0177.0.0.77:{port}/          http://0177.0.0.0115:{port}/
    http://017700000115:{port}/          http://127.0.0.0115:{port}/         http://127.0.0.0x4d:{port}/
    http://00000177.0.0.77:{port}/       http://127.0x4d:{port}/             http://127.000077:{port}/
    http://0127.0.0.77:{port}/           http://127.0.0.077:{port}/          http://127.0.0.77.:{port}/
    http://127.0.0.77..:{port}/          http://.127.0.0.77:{port}/          http://127..0.0.77:{port}/
    http://127.0.0.77_:{port}/           http://-127.0.0.77:{port}/          http://4424639053:{port}/
    http://127.0.0.333:{port}/           http://1.127.0.0.77:{port}/         http://127.0.0.77.0:{port}/
    http://localhost:{port}/             http://LOCALHOST:{port}/            http://localhost.:{port}/
    http://localhost.localdomain:{port}/ http://ip6-localhost:{port}/        http://printer.lan:{port}/
    http://router.home:{port}/           http://wiki.corp:{port}/            http://metadata.google.internal:{port}/
    http://nas.local:{port}/             http://loc%61lhost:{port}/          http://xn--localhost:{port}/
    http://[::1]:{port}/                 http://[0:0:0:0:0:0:0:1]:{port}/    http://[::1%25lo]:{port}/
    http://[::1%lo]:{port}/              http://[::ffff:127.0.0.77]:{port}/  http://[::ffff:7f00:4d]:{port}/
    http://[0:0:0:0:0:ffff:127.0.0.77]:{port}/    http://[::127.0.0.77]:{port}/
    http://[::FFFF:127.0.0.77]:{port}/   http://[127.0.0.77]:{port}/         http://[v1.127]:{port}/
    http://[::1:{port}/                  http://::1:{port}/                  http://[64:ff9b:1::7f00:4d]:{port}/
    http://[ff02::1]:{port}/             http://224.0.0.1:{port}/            http://[::ffff:0:127.0.0.77]:{port}/
"""
FORMS = [
    *IN_ASCII.split(),
    "http:// 127.0.0.77:{port}/",
    "http://127.0.0.77 :{port}/",
    "http://127.0.0.77: {port}/",
    "http://127.0.0.77 .public.example:{port}/",
    "http://127.0.0.77\t.public.example:{port}/",
    "http://127.0.0.77:\t{port}/",
    "http:/\t/127.0.0.77:{port}/",
    "\x01http://127.0.0.77:{port}/",
    "http://127.0.0.77\x0b:{port}/",
    "http://127.0.0.77\x7f:{port}/",
    "http://public.example &@127.0.0.77:{port}# @public.example/",
    "http://\uff11\uff12\uff17.\uff10.\uff10.\uff17\uff17:{port}/",
    "http://127\u30020\u30020\u300277:{port}/",
    "http://127\uff0e0\uff0e0\uff0e77:{port}/",
    "http://\u2460\u2461\u2466.0.0.77:{port}/",
    "http://127.0.0.77\u200b:{port}/",
    "http://127.0.0.\u00ad77:{port}/",
    "http://loc\u00adalhost:{port}/",
    "http://\u24db\u24de\u24d2\u24d0\u24db\u24d7\u24de\u24e2\u24e3:{port}/",
    "http://localho\u017ft:{port}/",
    "http://127.0.0.77\uff0fx:{port}/",
    "http://127.0.0.77\uff1a{port}/",
    "http://public.example\uff20127.0.0.77:{port}/",
]


class Listener(Factory):
    """Accepts connections to a port of these addresses, and closes them at once."""

    def __init__(self) -> None:
        self.connected: list[str] = []
        """The addresses that were connected to."""
        loop: Any = reactor
        self._ports = [loop.listenTCP(0, self, interface="0.0.0.0")]
        self.port: int = self._ports[0].getHost().port
        self._ports.append(loop.listenTCP(self.port, self, interface="::1"))

    def buildProtocol(self, _: object) -> Protocol:  # noqa: N802 - Twisted's name
        protocol = Closes()
        protocol.factory = self
        return protocol

    def close(self) -> None:
        for port in self._ports:
            port.stopListening()


class Closes(Protocol):
    def connectionMade(self) -> None:  # noqa: N802 - Twisted's name
        transport: Any = self.transport
        listener: Any = self.factory
        listener.connected.append(transport.getHost().host)
        transport.abortConnection()


class Resolver(BlockingResolver):
    """Reads numbers as the operating system does, resolves names to these addresses, and notes each host."""

    def __init__(self, addresses: dict[str, str]) -> None:
        self._addresses = addresses
        self.asked: dict[str, str] = {}

    def getHostByName(self, name: str, timeout: object = ()) -> defer.Deferred[str]:  # noqa: N802 - Twisted's name
        try:
            address = str(socket.getaddrinfo(name, None, flags=socket.AI_NUMERICHOST)[0][4][0])
        except (OSError, UnicodeError):
            address = self._addresses.get(name, PUBLIC)
        self.asked[name] = address
        return defer.succeed(address)


@contextmanager
def names(**addresses: str) -> Iterator[Resolver]:
    """Resolve names to these addresses. `site_test="127.0.0.1"` is for `site.test`."""
    loop: Any = reactor
    resolver = Resolver({name.replace("_", "."): to for name, to in addresses.items()})
    before = loop.installResolver(resolver)
    try:
        yield resolver
    finally:
        loop.installResolver(before)


@pytest.fixture
def listener() -> Iterator[Listener]:
    listener = Listener()
    yield listener
    listener.close()


async def where_forms_lead(web: Web, listener: Listener, **settings: Any) -> tuple[list[str], dict[str, str]]:
    """Return the addresses that were connected to, and the hosts that were resolved with their addresses."""
    locations = [form.replace("{port}", str(listener.port)) for form in FORMS]
    locations += [form.replace(":{port}", "") for form in FORMS]
    sites = [web.robots(redirect(location.encode().decode("latin-1"))) for location in locations]
    urls = [f"http://site.test:{site.port}/" for site in sites]
    settings = {"REP_FETCH_TIMEOUT": 6, "CONCURRENT_REQUESTS": 64, "LOG_LEVEL": "INFO", **settings}
    with names(site_test="127.0.0.1", localhost="127.0.0.1") as resolver:
        result = await crawl(*urls, settings=settings)
    assert result.tracebacks == []
    assert all(site.requests for site in sites)
    assert resolver.asked.pop("site.test")
    return listener.connected, resolver.asked


@ensureDeferred
async def test_no_form_of_a_location_leads_to_a_private_host(web: Web, listener: Listener) -> None:
    assert len(FORMS) > 130
    connected, resolved = await where_forms_lead(web, listener)
    assert set(connected) <= {PUBLIC}
    names = {"public.example", "127.0.0.77.public.example"}
    # Older releases of Scrapy and Twisted do not look up the last two.
    assert names <= set(resolved) <= names | {"127.0.0.77_", "xn--localhost"}
    assert set(resolved.values()) == {PUBLIC}


@ensureDeferred
async def test_with_rep_redirect_private_the_same_forms_lead_to_private_hosts(web: Web, listener: Listener) -> None:
    connected, resolved = await where_forms_lead(web, listener, REP_REDIRECT_PRIVATE=True)
    assert connected.count(PRIVATE) > 10
    assert {"::1", "127.0.0.77", "localhost", "printer.lan", "64:ff9b:1::7f00:4d"} <= set(resolved)


# Behind a proxy, where no address is known. A host is public by its name.


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "169.254.169.254"])
@ensureDeferred
async def test_a_redirect_from_a_public_to_a_private_host_is_not_followed(web: Web, host: str) -> None:
    proxy = web.site({"*": redirect(f"http://{host}/robots.txt")})
    page = Request("http://origin.example/", meta={"proxy": proxy.origin})
    result = await crawl(page)
    (error,) = result.refused.values()
    assert isinstance(error, RobotsUnreachable)
    assert "REP_REDIRECT_PRIVATE" in str(error)
    assert proxy.targets == ["http://origin.example/robots.txt"]
    assert result.tracebacks == []


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]"])
@ensureDeferred
async def test_rep_redirect_private_allows_such_a_redirect(web: Web, host: str) -> None:
    proxy = web.site({"http://origin.example/robots.txt": redirect(f"http://{host}/robots.txt"), "*": answer(RULES)})
    page = Request("http://origin.example/private", meta={"proxy": proxy.origin})
    result = await crawl(page, settings={"REP_REDIRECT_PRIVATE": True})
    assert len(result.refused) == 1
    assert proxy.targets == ["http://origin.example/robots.txt", f"http://{host}/robots.txt"]


@pytest.mark.parametrize("host", ["93.184.216.34", "public.example"])
@ensureDeferred
async def test_a_redirect_from_a_public_to_a_public_host_is_followed(web: Web, host: str) -> None:
    proxy = web.site({"http://origin.example/robots.txt": redirect(f"http://{host}/robots.txt"), "*": answer(RULES)})
    result = await crawl(Request("http://origin.example/private", meta={"proxy": proxy.origin}))
    assert result.stats["rep/access/success"] == 1
    assert proxy.targets == ["http://origin.example/robots.txt", f"http://{host}/robots.txt"]


@ensureDeferred
async def test_a_second_redirect_to_a_private_host_is_not_followed(web: Web) -> None:
    routes = {
        "http://origin.example/robots.txt": redirect("http://second.example/robots.txt"),
        "http://second.example/robots.txt": redirect("http://10.0.0.1/robots.txt"),
    }
    proxy = web.site({**routes, "*": answer(RULES)})
    result = await crawl(Request("http://origin.example/", meta={"proxy": proxy.origin}))
    assert len(result.refused) == 1
    assert proxy.targets == list(routes)


# Names that resolve to private addresses.


@ensureDeferred
async def test_an_answer_from_a_name_with_a_private_address_is_not_used(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = web.robots(RULES)
    outer = web.site({"*": redirect(f"http://inner.test:{inner.port}/robots.txt", headers={"Set-Cookie": "a=b"})})
    # A host behind a proxy counts as public, because its address is not known.
    monkeypatch.setenv("http_proxy", outer.origin)
    monkeypatch.setenv("no_proxy", "inner.test")
    url = "http://outer.example/private"
    with names(inner_test="127.0.0.1"):
        refused = await crawl(url)
        asked = len(inner.requests)
        allowed = await crawl(url.replace("private", ""), settings={"REP_REDIRECT_PRIVATE": True})
    (error,) = refused.refused.values()
    assert error.verdict.access is AccessResult.UNREACHABLE
    assert "REP_REDIRECT_PRIVATE" in str(error)
    assert "127.0.0.1" in str(error)
    assert asked == 1, "no retry"
    assert list(allowed.pages) == ["http://outer.example/"]


@pytest.mark.parametrize("proxied", [False, True])
@ensureDeferred
async def test_redirects_between_private_names_are_followed(
    web: Web, monkeypatch: pytest.MonkeyPatch, proxied: bool
) -> None:
    inner = web.robots(RULES)
    outer = web.robots(redirect(f"http://inner.test:{inner.port}/robots.txt"))
    if proxied:  # the address of a proxy is often private
        everything = {f"http://outer.test:{outer.port}/robots.txt": redirect("http://inner.test/robots.txt")}
        monkeypatch.setenv("http_proxy", web.site({**everything, "*": answer(RULES)}).origin)
    with names(inner_test="127.0.0.1", outer_test="127.0.0.1"):
        result = await crawl(f"http://outer.test:{outer.port}/private", f"http://inner.test:{inner.port}/private")
    found = {error.verdict.access for error in result.refused.values()}
    # Scrapy 2.14 does not give the address of this redirect, so its host counts as public.
    is_told = proxied or scrapy.version_info >= (2, 15)
    assert found == ({AccessResult.SUCCESS} if is_told else {AccessResult.SUCCESS, AccessResult.UNREACHABLE})


@ensureDeferred
async def test_handlers_do_not_see_the_answer_of_a_private_host_to_a_public_chain(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A private host may have a robots.txt of its own. A public host that redirects to it must not use its answer."""
    inner = web.robots("user-agent: *\ndisallow:\n# secret")
    outer = web.site({"*": redirect(f"http://inner.test:{inner.port}/robots.txt")})
    monkeypatch.setenv("http_proxy", outer.origin)
    monkeypatch.setenv("no_proxy", "inner.test")
    said: list[tuple[str, bytes, bytes | None]] = []

    def answered(answer: Answer, response: Response | None) -> None:
        if "inner" in answer.url:
            said.append((answer.reason, answer.body, response.body if response is not None else None))

    def prepare(crawler: Crawler) -> None:
        crawler.signals.connect(answered, robots_response)

    with names(inner_test="127.0.0.1"):
        alone = await crawl("http://outer.example/", prepare=prepare)
        assert len(alone.refused) == 1
        ((reason, *bodies),) = said
        assert "REP_REDIRECT_PRIVATE" in reason
        assert bodies == [b"", None]
        requests = [Request(f"http://inner.test:{inner.port}/", priority=1), Request("http://outer.example/")]
        both = await crawl(*requests, settings={"CONCURRENT_REQUESTS": 1})
    assert list(both.pages) == [requests[0].url]
    assert "REP_REDIRECT_PRIVATE" in str(both.refused["http://outer.example/"])


# Handlers that do not tell the address of an answer.


@ensureDeferred
async def test_the_answer_of_a_handler_that_tells_no_address_is_only_read_as_rules(web: Web) -> None:
    """The name is public and its address private: nobody tells (docs/limits.md)."""
    urls = ["http://public.test/", "http://public.test/private"]
    result = await crawl(*urls, settings={"DOWNLOAD_HANDLERS": {"http": TellsNoAddress}})
    assert list(result.pages) == urls[:1]
    assert result.refused[urls[1]].verdict.final_url == "http://intranet.test/r.txt"


class TellsNoAddress:
    lazy = False

    async def download_request(self, request: Request) -> Response:
        if request.url == "http://public.test/robots.txt":
            return Response(request.url, 301, {"Location": "http://intranet.test/r.txt"})
        return TextResponse(request.url, body=b"user-agent: *\ndisallow: /private", encoding="utf-8")

    async def close(self) -> None:
        pass
