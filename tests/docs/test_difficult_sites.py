"""docs/difficult-sites.md: the sample that signs requests. (`test_tables` has the rows of its table.)"""

from __future__ import annotations

import base64
import re
from typing import Any

import pytest
from crawling import ADDON, crawl
from doc_pages import blocks
from pytest_twisted import ensureDeferred
from scrapy import Request
from web import RULES, Web, redirect


def signing_middleware() -> Any:
    """Return an instance of the middleware in the page."""
    (script,) = (block.text for block in blocks("python") if "SigningMiddleware" in block.text)
    names_of: dict[str, Any] = {"__name__": "sample"}
    exec(script.partition("class PagesSpider")[0], names_of)
    return names_of["SigningMiddleware"]()


@pytest.mark.parametrize("order", [50, 950])
@ensureDeferred
async def test_each_request_is_signed_anew(web: Web, order: int) -> None:
    signer = signing_middleware()
    signing = type("Signing", (type(signer),), {"__init__": lambda self: self.__dict__.update(vars(signer))})
    elsewhere = web.robots(RULES)
    site = web.site({"/robots.txt": redirect("/here"), "/here": redirect(elsewhere.robots_url)})
    settings = {**ADDON, "DOWNLOADER_MIDDLEWARES": {signing: order}}
    result = await crawl(site.url("/"), site.url("/private"), robots=settings)
    assert (list(result.pages), list(result.refused)) == ([site.url("/")], [site.url("/private")])
    assert site.targets == ["/robots.txt", "/here", "/"]
    assert elsewhere.targets == ["/robots.txt"]
    for origin in (site, elsewhere):
        for request in origin.requests:
            assert is_signed(request["headers"], request["headers"]["Host"], signer)


@pytest.mark.parametrize(
    ("url", "authority"),
    [
        ("https://Example.com/a", "example.com"),
        ("https://example.com:443/a", "example.com"),
        ("http://example.com:80/a", "example.com"),
        ("http://example.com:443/a", "example.com:443"),
        ("https://example.com:8443/a", "example.com:8443"),
        ("http://example.com:8080/a", "example.com:8080"),
        ("https://me:secret@example.com/a", "example.com"),
        ("http://[::1]:80/a", "[::1]"),
    ],
)
def test_the_authority_has_no_default_port_and_no_user_information(url: str, authority: str) -> None:
    """RFC 9421 2.2.3."""
    signer, request = signing_middleware(), Request(url)
    signer.process_request(request)
    headers = {name.decode(): value.decode() for name, [value] in request.headers.items()}
    assert is_signed(headers, authority, signer)
    assert re.fullmatch(
        r'sig1="https://[^"]+/\.well-known/http-message-signatures-directory"', headers["Signature-Agent"]
    )


def is_signed(headers: dict[str, str], authority: str, signer: Any) -> bool:
    """Check the signature of a request as RFC 9421 says. Raises InvalidSignature."""
    key, key_id = signer.key.public_key(), signer.key_id
    params = headers["Signature-Input"].removeprefix("sig1=")
    agent = headers["Signature-Agent"].removeprefix("sig1=")
    base = f'"@authority": {authority}\n"signature-agent";key="sig1": {agent}\n"@signature-params": {params}'
    key.verify(base64.b64decode(headers["Signature"][len("sig1=:") : -1]), base.encode())
    return f'keyid="{key_id}";tag="web-bot-auth"' in params
