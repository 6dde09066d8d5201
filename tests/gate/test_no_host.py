"""URLs of http and https without a host: no robots.txt can apply to them, so they are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from crawling import crawl, refusal_by
from installed_scrapy import CAN
from pytest_twisted import ensureDeferred
from scrapy import Request

from scrapy_rep.protocol.robotstxt.rules import VerdictReason
from scrapy_rep.protocol.words import REASON_WORDS

URLS = [
    "http:///host/private",
    "https:///host/",
    "HTTP:///x",
    "http://:80/x",
    "http://u@/x",
    "http:/a/b?c=://",
    "ws:///host/x",
    "WSS://:80/x",
]
if CAN["send a URL verbatim"]:
    URLS += ["http:/\t//host/x?://", " \0http:///host/x", "ht\rtp:///host/x", "http://host:port/x"]
SETTINGS = [{}, {"REP_EVIDENCE": True, "REP_REPORT": "report.jsonl", "REP_REFUSALS": "refused.jsonl"}]


@pytest.mark.parametrize("settings", SETTINGS, ids=["alone", "reported"])
@ensureDeferred
async def test_a_url_of_http_without_a_host_is_refused(
    settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    requests = [Request(url, meta={"verbatim_url": True}) for url in URLS]
    result = await crawl(*requests, settings=settings)
    assert {str(error) for error in result.refused.values()} == {refusal_by(VerdictReason.NO_HOST)}
    assert result.refused.keys() == {request.url for request in requests}
    assert {(error.verdict.allowed, error.verdict.reason.value) for error in result.refused.values()} == {
        (False, "no host")
    }
    number = len(URLS)
    assert result.stats["rep/dropped/no_host"] == result.stats["robotstxt/forbidden"] == number
    assert "robotstxt/request_count" not in result.stats
    assert (
        f"Refused requests: {number} ({number} {REASON_WORDS[VerdictReason.NO_HOST.value].counted})"
        in result.messages(0)
    )
    assert result.tracebacks == []


@ensureDeferred
async def test_a_url_of_another_scheme_needs_no_host() -> None:
    result = await crawl("data:,page", Request("http:///x", meta={"dont_obey_robotstxt": True}), "odd:///x")
    assert result.refused == {}
    assert list(result.pages) == ["data:,page"]
