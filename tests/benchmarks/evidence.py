"""A crawl of real robots.txt files that is judged again by its archive, and how long that takes.

    python tests/benchmarks/evidence.py FOLDER [--urls N] [--items M] [--files K]   # --urls 0 leaves the crawl out

FOLDER has robots.txt files, one for each site. Each is served on a port of its own; N URLs of them are crawled with
REP_ARCHIVE and REP_EVIDENCE, and each request's verdict is compared with the archive's. Then M items are checked
against an archive of K files.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from hashlib import sha256
from itertools import cycle, islice
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "helpers")]

from crawling import ADDON, CrawlSpider, SlotByOrigin
from scrapy import Request
from scrapy.crawler import CrawlerProcess
from scrapy.http import Response
from warcs import checked
from web import Web

from scrapy_rep.commands.findings import CrawlerProfile, Finding
from scrapy_rep.commands.rechecking import ArchiveJudge, items_of
from scrapy_rep.extensions.evidence.archive_reader import ArchiveReader
from scrapy_rep.extensions.evidence.warc_file import WarcFile
from scrapy_rep.protocol.answer import Answer
from scrapy_rep.protocol.entry import Entry, StoredResponse
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.robotstxt.parser import RobotsTxt
from scrapy_rep.protocol.words import AccessResult

RULE = re.compile(rb"(?im)^[ \t]*(?:dis)?allow[ \t]*:[ \t]*(/[\x21-\x7e]*)")
SOURCE = random.Random(9309)


class Kept(CrawlSpider):
    """Collects the evidence in the meta of each request, including refused requests."""

    def parse(self, response: Response, **_: Any) -> Any:
        self.crawl.ends.append(response.meta["robots"])

    def failed(self, failure: Any) -> Any:
        self.crawl.ends.append(failure.request.meta.get("robots"))


def path_for(body: bytes) -> str:
    """Return a path that one of the file's rules may match."""
    rules = RULE.findall(body)
    if not rules or SOURCE.random() < 0.1:
        return f"/{SOURCE.randrange(1_000)}"
    rule: str = SOURCE.choice(rules).decode("ascii").rstrip("$").replace("*", SOURCE.choice(["", "x", "/y/"]))
    return rule + SOURCE.choice(["", "z", "/?a=b"])


def distinct(urls: Iterator[str]) -> Iterator[str]:
    seen: set[str] = set()
    for url in urls:
        if url not in seen:
            seen.add(url)
            yield url


def crawled_and_judged(bodies: list[bytes], number: int) -> None:
    web = Web()
    folder = Path(tempfile.mkdtemp())
    sites = [web.robots(body) for body in bodies]
    places = cycle(range(len(sites)))
    urls = list(islice(distinct(sites[place].url(path_for(bodies[place])) for place in places), number))
    ends: list[Any] = []
    settings = {
        **ADDON,
        "DOWNLOADER": SlotByOrigin,
        "LOG_LEVEL": "ERROR",
        "REP_ARCHIVE": str(folder / "robots.warc.gz"),
        "REP_EVIDENCE": True,
        "TELNETCONSOLE_ENABLED": False,
        "USER_AGENT": "ExampleBot/1.0",
    }
    process = CrawlerProcess(settings)
    crawler = process.create_crawler(Kept)
    began = time.monotonic()
    process.crawl(crawler, requests=[Request(url, dont_filter=True) for url in urls])
    process.start()
    spider = crawler.spider
    assert isinstance(spider, Kept)
    ends = spider.crawl.ends
    print(f"crawled {len(ends):,} URLs of {len(sites):,} origins in {time.monotonic() - began:.0f} s")
    web.close()
    (folder / "items.jsonl").write_text("".join(json.dumps({"robots": end}) + "\n" for end in ends))
    print("`warcio check` says:", checked(folder) or "nothing")
    began = time.monotonic()
    judge = ArchiveJudge(ArchiveReader([str(folder / "*.warc.gz")]), CrawlerProfile())
    pairs = [(item.evidence, judge.checked(item)) for item in items_of(str(folder / "items.jsonl"))]
    wrong = [(evidence, found.why) for evidence, found in pairs if not is_the_same(evidence, found)]
    refused = sum(not evidence["allowed"] for evidence in ends)
    print(
        f"judged again in {time.monotonic() - began:.1f} s; {refused:,} had been refused; not the same: {len(wrong):,}"
    )
    for one in wrong[:5]:
        print(one)


def is_the_same(evidence: dict[str, Any], found: Finding) -> bool:
    verdict = found.verdict
    if verdict is None or verdict.received is None:
        return verdict is not None and verdict.allowed == evidence["allowed"]
    rule = (str(verdict.rule), verdict.rule.line) if verdict.rule else (None, None)
    here = verdict.allowed, verdict.reason.value, verdict.product_token, *rule, verdict.received.sha256 or None
    return here == tuple(evidence[key] for key in ("allowed", "reason", "group", "rule", "line", "sha256"))


def checked_at_size(bodies: list[bytes], items: int, files: int) -> None:
    folder, now = Path(tempfile.mkdtemp()), time.time()
    cpu = time.process_time()
    information = {"product-tokens": "ExampleBot", "unreachable-days": "30", "body-limit": "512000"}
    began = time.monotonic()
    archive = WarcFile(folder / "robots.warc.gz", information, 512_000, files)
    origins = [Origin.of(f"https://site{number}.example/") for number in range(files)]
    for origin, body in zip(origins, cycle(body[:512_001] for body in bodies), strict=False):
        assert origin is not None
        url = origin.robots_url
        response = Response(url, body=body, request=Request(url))
        success, answer = AccessResult.SUCCESS, Answer(url, 200, AccessResult.SUCCESS, "HTTP 200", body=body)
        archive.write_answer(answer, response, now, origin)
        digest, day = sha256(body).hexdigest(), now + 86_400
        stored = StoredResponse(
            success, "HTTP 200", RobotsTxt.parse(body), now, day, status=200, url=url, sha256=digest
        )
        archive.write_entry(origin, now, Entry(url, stored))
    print(
        f"archived {files:,} files in {time.monotonic() - began:.1f} s, {time.process_time() - cpu:.1f} s of CPU time"
    )
    urls = [f"{SOURCE.choice(origins)}/{SOURCE.randrange(10**6)}" for _ in range(items)]
    (folder / "items.jsonl").write_text("".join(json.dumps({"url": url, "time": now + 60}) + "\n" for url in urls))
    began, cpu = time.monotonic(), time.process_time()
    judge = ArchiveJudge(ArchiveReader([str(folder / "*.warc.gz")]), CrawlerProfile())
    indexed = time.monotonic() - began
    unknown = sum(judge.checked(item).verdict is None for item in items_of(str(folder / "items.jsonl")))
    print(f"checked {items:,} items against {files:,} files in {time.monotonic() - began:.1f} s", end="")
    print(f" ({indexed:.1f} s of them for reading the archive), {time.process_time() - cpu:.1f} s of CPU time", end="")
    print(f"; no verdict for {unknown:,}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--urls", type=int, default=20_000)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--files", type=int, default=10_000)
    options = parser.parse_args()
    contents = [file.read_bytes() for file in sorted(options.folder.iterdir()) if file.is_file()]
    if options.urls:
        crawled_and_judged(contents, options.urls)
    checked_at_size(contents, options.items, options.files)
