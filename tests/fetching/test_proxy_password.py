"""The password of a proxy, which an exception may name, goes nowhere: not into the log, the store or any file."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
from crawling import crawl
from installed_scrapy import HANDLERS
from pytest_twisted import ensureDeferred
from scrapy import Request
from web import Web, answer

from scrapy_rep.protocol.foreign_text import printable

SETTINGS = {
    "REP_EVIDENCE": True,
    "REP_REPORT": "report.jsonl",
    "REP_REFUSALS": "refusals.jsonl",
    "REP_ARCHIVE": "archive.warc.gz",
}


def contents(folder: Path) -> dict[str, bytes]:
    files = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    return {name: gzip.decompress(octets) if name.endswith(".gz") else octets for name, octets in files.items()}


@pytest.mark.parametrize("handler", HANDLERS)
@pytest.mark.parametrize("answers", [True, False], ids=["407", "refused"])
@pytest.mark.parametrize("scheme", ["http://", ""], ids=["with-a-scheme", "without-a-scheme"])
@ensureDeferred
async def test_it_is_in_no_log_line_and_in_no_file(
    web: Web, *, handler: str, answers: bool, scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    proxy = web.site({"*": answer(status=407)}).origin if answers else "http://127.0.0.1:1"
    meta = {"proxy": proxy.replace("http://", f"{scheme}user:s3cr3t@")}
    page = Request("https://example.com/page", meta=meta)
    settings: dict[str, Any] = {**SETTINGS, "REP_STORAGE": f"sqlite:///{tmp_path}/rep.sqlite"}
    settings["HTTPPROXY_ENABLED"] = bool(scheme)  # without a scheme, HttpProxyMiddleware removes the password
    result = await crawl(page, settings={**settings, "DOWNLOAD_HANDLERS": {"https": HANDLERS[handler]}})
    (error,) = result.refused.values()
    assert "s3cr3t" not in f"{error} {error.cause} {error.verdict}"
    assert [line for line in result.messages(0, "scrapy_rep") if "s3cr3t" in line] == []
    files = contents(tmp_path)
    assert len(files) >= 4
    assert [name for name, octets in files.items() if b"s3cr3t" in octets] == []


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("407, url='http://user:secret@proxy:80'", "407, url='http://proxy:80'"),
        ("b'socks5h://u@a' and https://:x@y@b/c@d", "b'socks5h://a' and https://b/c@d"),
        ("http://a.example/ of b@c", "http://a.example/ of b@c"),
        ("Disallow: /*://*@*", "Disallow: /*://*@*"),
        ("Disallow: *u:p@x", "Disallow: *u:p@x"),
        ("Contact:webmaster@example.com", "Contact:webmaster@example.com"),
        ("http://u:" + "p" * 300 + "@a", "http://a"),
    ],
)
def test_user_information_is_not_shown(text: str, shown: str) -> None:
    assert printable(text) == shown
