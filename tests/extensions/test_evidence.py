"""REP_EVIDENCE: each response says why it was allowed. REP_REFUSALS: a line for each refused request."""

from __future__ import annotations

import gzip
import json
import logging
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from crawling import Crawl, CrawlSpider, crawl
from processes import crawled
from pytest_twisted import ensureDeferred
from scrapy import Request
from scrapy.http import Response
from web import RULES, Web, answer, redirect

from scrapy_rep.extensions import output_file
from scrapy_rep.extensions.evidence import evidence

DIGEST = sha256(RULES.encode()).hexdigest()
EVIDENCE = {"REP_EVIDENCE": True, "USER_AGENT": "ExampleBot/1.0"}


def robots(result: Crawl, url: str) -> dict[str, Any]:
    return dict(result.pages[url].meta["robots"])


# Evidence in the meta of a response.


@ensureDeferred
async def test_a_response_says_why_it_was_allowed(web: Web) -> None:
    site = web.robots(RULES + "allow: /private/open\n")
    other = web.robots(redirect(site.robots_url))
    urls = [site.url("/"), other.url("/private/open")]
    result = await crawl(*urls, settings=EVIDENCE)
    by_none, by_rule = (robots(result, url) for url in urls)
    digest = sha256(f"{RULES}allow: /private/open\n".encode()).hexdigest()
    times = [by_none.pop(key) for key in ("received_at", "decided_at")]
    assert times == sorted(times)
    assert by_none == {
        "url": urls[0],
        "allowed": True,
        "reason": "no rule",
        "rule": None,
        "line": None,
        "group": "*",
        "product_tokens": ["ExampleBot"],
        "robots_url": site.robots_url,
        "final_url": site.robots_url,
        "sha256": digest,
        "access": "success",
        "answer": "HTTP 200",
    }
    assert by_rule["robots_url"] == other.robots_url
    assert (by_rule["final_url"], by_rule["sha256"]) == (site.robots_url, digest)
    assert (by_rule["reason"], by_rule["rule"], by_rule["line"]) == ("rule", "Allow: /private/open", 3)


@ensureDeferred
async def test_an_answer_without_rules_has_no_hash(web: Web) -> None:
    site = web.site()
    result = await crawl(site.url("/"), settings=EVIDENCE)
    found = robots(result, site.url("/"))
    assert (found["reason"], found["access"], found["answer"]) == ("unavailable", "unavailable", "HTTP 404")
    assert (found["sha256"], found["final_url"]) == (None, site.robots_url)
    assert found["received_at"] is not None


@ensureDeferred
async def test_where_no_robots_txt_applies_the_reason_says_so(web: Web) -> None:
    site, exempt = web.robots(RULES), web.robots(RULES)
    free = Request(site.url("/private"), meta={"dont_obey_robotstxt": True})
    urls = [exempt.url("/private"), site.robots_url, "data:,x"]
    result = await crawl(*urls, free, settings={**EVIDENCE, "REP_EXEMPT": [exempt.origin]})
    found = [robots(result, url) for url in (*urls, free.url)]
    assert [one["reason"] for one in found] == ["exempt", "not subject", "not subject", "exempt"]
    assert {(one["robots_url"], one["access"], one["sha256"]) for one in found} == {(None, None, None)}


@ensureDeferred
async def test_without_the_setting_there_is_no_evidence(web: Web) -> None:
    site = web.robots(RULES)
    result = await crawl(site.url("/"))
    assert "robots" not in result.pages[site.url("/")].meta


@ensureDeferred
async def test_in_a_dry_run_the_evidence_says_what_would_have_been_refused(web: Web) -> None:
    site = web.robots(RULES)
    result = await crawl(site.url("/private"), settings={**EVIDENCE, "REP_DRY_RUN": True})
    found = robots(result, site.url("/private"))
    assert (found["allowed"], found["rule"]) == (False, "Disallow: /private")


# Evidence is never that of another request.


@ensureDeferred
async def test_redirects_and_retries_have_evidence_of_their_own(web: Web) -> None:
    target = web.site({"/robots.txt": answer(status=404), "/": [answer(status=503), answer("page")]})
    site = web.site({"/robots.txt": answer(RULES), "/": redirect(target.url("/"))})

    class Plain(CrawlSpider):
        def prepared(self, request: str | Request) -> Request:
            return Request(str(request), meta={"asked": request})

    result = await crawl(site.url("/"), settings={**EVIDENCE, "RETRY_ENABLED": True}, spider=Plain)
    response = result.pages[site.url("/")]
    assert (response.status, response.meta["retry_times"], response.meta["redirect_times"]) == (200, 1, 1)
    assert response.meta["robots"]["url"] == response.url == target.url("/")
    assert response.meta["robots"]["answer"] == "HTTP 404"


@ensureDeferred
async def test_a_refused_request_with_copied_meta_gets_its_own_evidence(web: Web) -> None:
    site = web.robots(RULES)

    class Follows(CrawlSpider):
        def parse(self, response: Response, **_: Any) -> Any:
            yield Request(site.url("/private"), meta=dict(response.meta), errback=self.failed)

        def failed(self, failure: Any) -> None:
            self.crawl.ends.append(failure.request.meta["robots"])

    result = await crawl(site.url("/"), settings=EVIDENCE, spider=Follows)
    (found,) = result.ends
    assert (found["url"], found["allowed"], found["line"]) == (site.url("/private"), False, 2)


@pytest.mark.parametrize("queue", ["Marshal", "Pickle"])
@ensureDeferred
async def test_json_and_queues_on_disk_can_store_the_evidence(web: Web, tmp_path: Path, queue: str) -> None:
    site = web.robots(RULES)

    class Follows(CrawlSpider):
        def parse(self, response: Response, **_: Any) -> Any:
            self.crawl.ends.append(response.meta["robots"])
            if response.url != site.url("/2"):
                yield Request(site.url("/2"), meta={**response.meta, "before": response.meta["robots"]})

    settings = {
        **EVIDENCE,
        "JOBDIR": str(tmp_path),
        "SCHEDULER_DISK_QUEUE": f"scrapy.squeues.{queue}FifoDiskQueue",
    }
    result = await crawl(site.url("/"), settings=settings, spider=Follows)
    assert result.stats["scheduler/dequeued/disk"] > 0
    assert [found["url"] for found in result.ends] == [site.url("/"), site.url("/2")]
    assert all(json.loads(json.dumps(found)) == found for found in result.ends)


# The file of refusals.


def lines(path: Path) -> list[dict[str, Any]]:
    octets = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [json.loads(line) for line in octets.splitlines()]


@pytest.mark.parametrize("name", ["refused.jsonl", "refused.jsonl.gz"])
@ensureDeferred
async def test_one_line_for_each_refused_request(web: Web, tmp_path: Path, name: str) -> None:
    site, down = web.robots(RULES), web.robots(answer(status=503))
    with_referrer = Request(site.url("/private/2"), headers={"Referer": "http://example.com/"})
    urls = [site.url("/private/1"), site.url("/"), down.url("/")]
    for _ in range(2):
        await crawl(*urls, with_referrer, settings={"REP_REFUSALS": tmp_path / name, "USER_AGENT": "ExampleBot/1.0"})
    found = sorted(lines(tmp_path / name), key=lambda line: (line["url"] == urls[2], line["url"]))
    assert [line["url"] for line in found] == 2 * [urls[0]] + 2 * [with_referrer.url] + 2 * [urls[2]]
    rule, referred, unreachable = found[::2]
    assert rule.pop("decided_at") >= rule.pop("received_at")
    assert rule == {
        "url": urls[0],
        "allowed": False,
        "reason": "rule",
        "rule": "Disallow: /private",
        "line": 2,
        "group": "*",
        "product_tokens": ["ExampleBot"],
        "robots_url": site.robots_url,
        "final_url": site.robots_url,
        "sha256": DIGEST,
        "access": "success",
        "answer": "HTTP 200",
        "referrer": None,
        "dry_run": False,
    }
    assert referred["referrer"] == "http://example.com/"
    assert [unreachable[key] for key in ("reason", "answer", "sha256")] == ["unreachable", "HTTP 503", None]


@ensureDeferred
async def test_a_dry_run_has_a_line(web: Web, tmp_path: Path) -> None:
    site = web.robots(RULES)

    class Follows(CrawlSpider):
        def parse(self, response: Response, **_: Any) -> Any:
            if response.url == site.url("/"):
                yield Request(site.url("/private"))

    await crawl(site.url("/"), settings={"REP_DRY_RUN": True, "REP_REFUSALS": tmp_path / "r.jsonl"}, spider=Follows)
    (line,) = lines(tmp_path / "r.jsonl")
    assert (line["url"], line["dry_run"]) == (site.url("/private"), True)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on the size of files")
def test_a_full_disk_ends_the_file_but_not_the_crawl(web: Web, tmp_path: Path) -> None:
    site, path = web.robots(RULES), tmp_path / "r.jsonl"
    urls = [site.url(f"/private/{number}") for number in range(120)]
    settings = {
        "REP_REFUSALS": str(path),
        "EXTENSIONS": {"small_files.SmallFiles": 0},
        "FILE_SIZE": 40_000,
        "LOG_LEVEL": "ERROR",
    }
    ended = crawled([*urls, site.url("/")], settings)
    (error,) = ended.warnings
    assert f"REP_REFUSALS: {path} cannot be written" in error
    *whole, torn = path.read_bytes().split(b"\n")
    assert torn == b"", "the file ends with a whole line"
    assert len(whole) + ended.stats["rep/refusals/lost"] == len(urls)
    assert all(json.loads(line)["reason"] == "rule" for line in whole)


@ensureDeferred
async def test_lines_after_a_failed_write_are_written(
    web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, failures = tmp_path / "r.jsonl", [OSError("No space left on device")]
    append = output_file.append

    def fails_once(path: Path, octets: bytes) -> None:
        if octets and failures:
            raise failures.pop()
        append(path, octets)

    monkeypatch.setattr(evidence, "append", fails_once)
    site = web.robots(RULES)
    urls = [site.url(f"/private/{number}") for number in range(3)]
    result = await crawl(*urls, settings={"REP_REFUSALS": path})
    assert (len(lines(path)), result.stats["rep/refusals/lost"]) == (2, 1)
    (error,) = result.messages(logging.ERROR)
    assert "No space left on device" in error


NAMES = {"../../x": "__.._x", r"..\x": "__x", "/etc/x": "_etc_x", "..": "_", "x": "x"}


@pytest.mark.parametrize("name", NAMES)
@ensureDeferred
async def test_no_name_of_a_spider_leaves_the_directory(web: Web, tmp_path: Path, name: str) -> None:
    settings = {"REP_REFUSALS": tmp_path / "a" / "b" / "c" / "%(name)s.jsonl"}
    spider = type("Named", (CrawlSpider,), {"name": name})
    await crawl(web.robots(RULES).url("/private"), settings=settings, spider=spider)
    assert files_in(tmp_path) == [f"a/b/c/{NAMES[name]}.jsonl"]


def files_in(folder: Path) -> list[str]:
    return [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]


@ensureDeferred
async def test_a_path_where_no_file_of_refusals_can_be_written(web: Web) -> None:
    for path in ("refused.txt", "s3://bucket/x.jsonl"):
        with pytest.raises(ValueError, match=r"REP_REFUSALS is .*set it to"):
            await crawl(web.robots(RULES).url("/"), settings={"REP_REFUSALS": path})
