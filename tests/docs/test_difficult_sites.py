"""docs/difficult-sites.md: the rows of its table in real crawls, and the sample that signs requests."""

from __future__ import annotations

import ast
import base64
import re
from logging import INFO
from typing import Any

import pytest
from crawling import ADDON, crawl
from doc_pages import blocks, names, table
from pytest_twisted import ensureDeferred
from web import RULES, Route, Web, answer, redirect

CHALLENGE = answer(RULES, status=403, headers={"cf-mitigated": "challenge"})
OTHER_ANSWERS = {
    "a challenge": CHALLENGE,
    "a page of HTML": answer("<!doctype html><p>Welcome</p>"),
    "an empty file": answer(""),
    "none: it hangs": answer(kind="hang"),
}


def route_of(cell: str) -> Route:
    (name,) = re.findall(r"\[(.*?)\]", cell)
    return OTHER_ANSWERS[name] if name in OTHER_ANSWERS else answer(RULES, status=int(name))


@pytest.mark.parametrize(("said", "does", "shown", "policy"), table("difficult"))
@ensureDeferred
async def test_each_row(web: Web, said: str, does: str, shown: str, policy: str) -> None:
    site = web.robots(route_of(said))
    settings = {"REP_FETCH_TIMEOUT": 0.3} if "hangs" in said else {}
    result = await crawl(site.url("/"), settings=settings)
    assert len(result.pages) == (does == "fetches everything")
    assert f"robots.txt of 1 origin: {names(shown)[0]}" in result.messages(INFO, "scrapy_rep")
    if policy:
        opposite = {**settings, "REP_STATUS_POLICY": ast.literal_eval(names(policy)[0])}
        assert len((await crawl(site.url("/"), settings=opposite)).pages) == 1 - len(result.pages)


@pytest.mark.parametrize("order", [50, 950])
@ensureDeferred
async def test_each_request_is_signed_anew(web: Web, order: int) -> None:
    (script,) = (block.text for block in blocks("python") if "SigningMiddleware" in block.text)
    names_of: dict[str, Any] = {"__name__": "sample"}
    exec(script.partition("class PagesSpider")[0], names_of)
    signer = names_of["SigningMiddleware"]()
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
            assert is_signed(request["headers"], signer.key.public_key(), signer.key_id)


def is_signed(headers: dict[str, str], key: Any, key_id: str) -> bool:
    """Check the signature of a request as RFC 9421 says. Raises InvalidSignature."""
    params = headers["Signature-Input"].removeprefix("sig1=")
    agent = headers["Signature-Agent"].removeprefix("sig1=")
    base = f'"@authority": {headers["Host"]}\n"signature-agent";key="sig1": {agent}\n"@signature-params": {params}'
    key.verify(base64.b64decode(headers["Signature"][len("sig1=:") : -1]), base.encode())
    return f'keyid="{key_id}";tag="web-bot-auth"' in params
