"""REP_ARCHIVE: the answers to requests for robots.txt, as WARC records that other programs can read."""

from __future__ import annotations

import gzip
import json
import logging
import os
import random
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from crawling import Crawl, Time, crawl, in_turn, with_clock
from doc_pages import marked
from processes import REACTORS, crawl_process, crawled, run_python, until
from pytest_twisted import ensureDeferred
from scrapy import Request
from scrapy.http import Headers
from warcs import Record, checked, records
from web import RULES, Site, Web, answer, redirect

from scrapy_rep.extensions import archive
from scrapy_rep.extensions.archive import _head
from scrapy_rep.protocol.robotstxt.parser import RobotsTxt

OCTETS = RULES.encode()


async def archived(folder: Path, *requests: str | Request, **settings: Any) -> Crawl:
    result = await crawl(*requests, settings={"REP_ARCHIVE": folder / "robots.warc.gz", **settings})
    assert checked(folder) == ""
    return result


def of(site: Site, folder: Path, *kinds: str) -> list[Record]:
    return [record for record in records(folder) if record.url == site.robots_url and record.kind in kinds]


@ensureDeferred
async def test_the_script_of_the_docs_names_each_file_as_the_evidence_does(web: Web, tmp_path: Path) -> None:
    """Also if robots.txt is a gzip file without a Content-Encoding."""
    site = web.robots(answer(gzip.compress(OCTETS)))
    result = await archived(tmp_path, site.url("/"), REP_EVIDENCE=True)
    (page,) = result.pages.values()
    digest = page.meta["robots"]["sha256"]
    assert digest == sha256(OCTETS).hexdigest()
    assert taken_out(tmp_path, site.robots_url) == {f"{digest}.txt": OCTETS}


def taken_out(folder: Path, url: str) -> dict[str, bytes]:
    """Run the script of docs/evidence.md. Return its files."""
    (folder / "robots_of.py").write_text(marked("robots-of-script"), "utf-8")
    run_python("robots_of.py", url, *(path.name for path in folder.glob("*.warc.gz")), cwd=folder)
    return {path.name: path.read_bytes() for path in folder.glob("*.txt")}


# The records.


@ensureDeferred
async def test_an_answer_with_its_request_and_its_meaning(web: Web, tmp_path: Path) -> None:
    site = web.robots(answer(RULES, headers={"X-Made-By": "hand", "ETag": '"1"'}))
    result = await archived(tmp_path, site.url("/"), site.url("/private"), USER_AGENT="ExampleBot/1.0")
    response, request, meaning, known = of(site, tmp_path, "response", "request", "metadata")
    assert response.http.statusline == "200 OK"
    assert response.http["X-Made-By"] == "hand"
    assert response.body == OCTETS
    assert response.fields["WARC-IP-Address"] == "127.0.0.1"
    assert request.http["User-Agent"] == "ExampleBot/1.0"
    assert request.http["Host"] == site.origin.removeprefix("http://")
    assert {r.fields["WARC-Concurrent-To"] for r in (request, meaning)} == {response.fields["WARC-Record-ID"]}
    digest = sha256(OCTETS).hexdigest()
    assert meaning.values == {
        "type": "answer",
        "needed_by": site.origin,
        "answer": "HTTP 200",
        "access": "success",
        "sha256": digest,
        "replayed": False,
    }
    assert known.values["origin"] == site.origin
    assert known.values["body"] == response.fields["WARC-Record-ID"]
    assert known.values["entry"]["stored"]["sha256"] == digest
    assert (result.stats["rep/archive/answers"], result.stats.get("rep/archive/lost")) == (1, None)


@ensureDeferred
async def test_the_first_record_names_the_crawler_and_the_last_record_ends_the_archive(
    web: Web, tmp_path: Path
) -> None:
    await archived(tmp_path, web.robots(RULES).url("/"), USER_AGENT="ExampleBot/1.0")
    first, *_, last = records(tmp_path)
    said = dict(line.split(": ", 1) for line in first.body.decode().splitlines())
    assert said["software"].startswith("scrapy-rep/")
    assert (said["product-tokens"], said["status-policy"], said["body-limit"]) == ("ExampleBot", "'rfc9309'", "512000")
    assert (first.kind, first.fields.protocol) == ("warcinfo", "WARC/1.1")
    assert last.values == {"type": "end", "reason": "finished", "lost": 0}


@ensureDeferred
async def test_the_log_names_the_file(web: Web, tmp_path: Path) -> None:
    result = await archived(tmp_path, web.robots(RULES).url("/"))
    (line,) = (m for m in result.messages(logging.INFO, "scrapy_rep") if m.startswith("REP_ARCHIVE: written to "))
    (file,) = map(tmp_path.joinpath, os.listdir(tmp_path))
    assert line == f"REP_ARCHIVE: written to {file}"


@ensureDeferred
async def test_redirects_and_errors_have_records_of_their_own(web: Web, tmp_path: Path) -> None:
    target = web.robots(answer("nothing here", status=404))
    site = web.robots(redirect(target.robots_url))
    await archived(tmp_path, site.url("/"))
    assert [r.http.statusline for r in records(tmp_path) if r.kind == "response"] == [
        "301 Moved Permanently",
        "404 Not Found",
    ]
    (response,) = of(target, tmp_path, "response")
    assert response.body == b"nothing here"
    assert {r.values["needed_by"] for r in of(target, tmp_path, "metadata")} == {site.origin}
    (_, known) = of(site, tmp_path, "metadata")
    assert known.values["entry"]["stored"]["answer"]["url"] == target.robots_url
    assert known.values["body"] is None, "because there are no rules"


@pytest.mark.parametrize("kind", ["reset", "garbage", "cut"])
@ensureDeferred
async def test_a_fetch_without_a_usable_answer_has_a_reason(web: Web, tmp_path: Path, kind: str) -> None:
    site = web.robots(answer(RULES, kind=kind))
    await archived(tmp_path, site.url("/"))
    assert len(of(site, tmp_path, "response")) == (kind == "cut")
    failure, known = of(site, tmp_path, "metadata")
    assert (failure.values["access"], failure.values["sha256"]) == ("unreachable", None)
    assert failure.values["answer"] == known.values["entry"]["outage"]["answer"]["reason"] != ""


@ensureDeferred
async def test_each_answer_has_its_body_even_if_it_is_the_same(web: Web, tmp_path: Path) -> None:
    site = web.robots(RULES)
    day, now = 24 * 3600.0, Time()
    spider = in_turn(now, day)
    await crawl(
        site.url("/"), spider=spider, robots=with_clock(now), settings={"REP_ARCHIVE": tmp_path / "robots.warc.gz"}
    )
    assert checked(tmp_path) == ""
    responses = of(site, tmp_path, "response")
    assert [response.body for response in responses] == [OCTETS] * 2
    known = [r.values for r in of(site, tmp_path, "metadata") if r.values["type"] == "robots.txt"]
    assert [one["body"] for one in known] == [responses[0].fields["WARC-Record-ID"]] * 2
    assert [one["entry"]["stored"]["sha256"] for one in known] == [sha256(OCTETS).hexdigest()] * 2


def some_answer(source: random.Random) -> dict[str, Any]:
    """A robots.txt with lines that files have, and lines that they should not have."""
    lines = ["\ufeff" * source.randrange(2)]
    for _ in range(source.randrange(1, 6)):
        lines.append(source.choice(["User-agent: *", "User-Agent: ExampleBot", "user-agent: other", "nonsense"]))
        for _ in range(source.randrange(6)):
            path = "".join(source.choices("/ab*$%e9\u00e9", k=source.randrange(1, 5)))
            lines.append(source.choice(["Disallow: /", "Allow: /", "disallow /", "Disallow:"]) + path)
    body = (
        source.choice(["\n", "\r\n", "\r"]).join(lines).encode(source.choice(["utf-8", "utf-16", "latin-1"]), "replace")
    )
    zipped = answer(gzip.compress(body), headers={"Content-Encoding": "gzip"})
    return source.choice([answer(body), zipped, answer(body + b"\n#" + b"x" * 600_000)])


@ensureDeferred
async def test_each_verdict_follows_from_the_body_that_its_evidence_names(web: Web, tmp_path: Path) -> None:
    source = random.Random(9309)
    sites = [web.robots(some_answer(source)) for _ in range(60)]
    urls = {source.choice(sites).url("/" + "".join(source.choices("ab/", k=source.randrange(4)))) for _ in range(240)}
    settings = {"REP_EVIDENCE": True, "REP_REFUSALS": tmp_path / "refused.jsonl", "USER_AGENT": "ExampleBot/1.0"}
    result = await archived(tmp_path, *urls, **settings)
    bodies = [
        gzip.decompress(record.body) if record.http["Content-Encoding"] else record.body
        for record in records(tmp_path)
        if record.kind == "response"
    ]
    by_digest = {sha256(body).hexdigest(): RobotsTxt.parse(body) for body in bodies}
    refused = [json.loads(line) for line in (tmp_path / "refused.jsonl").read_text().splitlines()]
    allowed = [page.meta["robots"] for page in result.pages.values()]
    assert len(refused) > 30
    assert len(allowed) > 30
    for evidence in [*allowed, *refused]:
        verdict = by_digest[evidence["sha256"]].verdict(evidence["url"], evidence["product_tokens"])
        rule = (str(verdict.rule), verdict.rule.line) if verdict.rule is not None else (None, None)
        expected = tuple(evidence[key] for key in ("allowed", "reason", "group", "rule", "line"))
        assert (verdict.allowed, verdict.reason.value, verdict.product_token, *rule) == expected


@ensureDeferred
async def test_rules_from_a_storage_have_a_record(web: Web, tmp_path: Path) -> None:
    site, storage = web.robots(RULES), f"sqlite://{tmp_path}/robots.db"
    await crawl(site.url("/"), settings={"REP_STORAGE": storage})
    await archived(tmp_path, site.url("/"), REP_STORAGE=storage)
    rules, known = of(site, tmp_path, "conversion", "response", "metadata")
    assert (rules.kind, rules.body) == ("conversion", OCTETS)
    assert known.values["body"] == rules.fields["WARC-Record-ID"]
    assert known.values["entry"]["stored"]["sha256"] == sha256(OCTETS).hexdigest()


@ensureDeferred
async def test_an_answer_from_the_http_cache_is_marked_as_replayed(web: Web, tmp_path: Path) -> None:
    site = web.robots(answer(gzip.compress(OCTETS), headers={"Content-Encoding": "gzip"}))
    settings = {"HTTPCACHE_ENABLED": True, "HTTPCACHE_IGNORE_MISSING": False, "HTTPCACHE_DIR": str(tmp_path / "cache")}
    await crawl(site.url("/"), settings=settings)
    await archived(tmp_path, site.url("/"), **settings, HTTPCACHE_EXPIRATION_SECS=0)
    first, *_ = of(site, tmp_path, "metadata")
    assert first.values["replayed"] is True
    (response, *_) = of(site, tmp_path, "response")
    assert response.body == OCTETS, "the cache has the decoded body"
    assert response.fields["WARC-IP-Address"] is None


@ensureDeferred
async def test_credentials_are_left_out(web: Web, tmp_path: Path) -> None:
    site = web.robots(RULES)
    headers = {"Authorization": "Basic aaaa", "Proxy-Authorization": "Basic bbbb"}
    await archived(tmp_path, Request(site.url("/"), headers=headers), DEFAULT_REQUEST_HEADERS=headers)
    assert site.robots_requests[0]["headers"]["Authorization"] == "Basic aaaa"
    (request,) = of(site, tmp_path, "request")
    assert "authorization" not in str(request.http).lower()


# Hostile answers.


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param([("X-A", "\xe9\x00\x1f\u00ff"), ("X-B", "")], id="any octet"),
        pytest.param([("X-C", "d: e\tf "), ("Transfer-Codings", "x" * 10_000)], id="long"),
        pytest.param([("Content-Encoding", "gzip, nonsense")], id="unknown coding"),
        pytest.param([("Content-Encoding", "gzip")], id="not compressed"),
        pytest.param([("Content-Type", "text/plain\x0b\x0cX-Forged: 1")], id="other line ends"),
    ],
)
@ensureDeferred
async def test_hostile_headers(web: Web, tmp_path: Path, headers: list[tuple[str, str]]) -> None:
    site = web.robots(answer(RULES, headers=headers))
    await archived(tmp_path, site.url("/"))
    (response,) = of(site, tmp_path, "response")
    assert response.body == OCTETS
    assert "X-Forged" not in dict(response.http.headers)


def test_a_line_end_in_a_header_forges_no_other_header(tmp_path: Path) -> None:
    headers = Headers({"X-A": "1\r\nX-Forged: 2\r\n\r\nbody", "X\r\nB": "3", "Transfer-Encoding": "chunked"})
    lines = [b"HTTP/1.1 200 OK", b"X-A: 1 X-Forged: 2 body", b"X-Crawler-Transfer-Encoding: chunked", b"", b""]
    assert _head("HTTP/1.1 200 OK", headers).split(b"\r\n") == lines


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(answer(b"#" * 2**20, times=50), id="50 MB"),
        pytest.param(answer(b"user-agent: *\n", kind="endless"), id="endless"),
        pytest.param(answer(gzip.compress(bytes(20 * 2**20), 1), headers={"Content-Encoding": "gzip"}), id="bomb"),
        pytest.param(answer(os.urandom(200_000)), id="noise"),
        pytest.param(answer(b"WARC/1.1\r\nWARC-Type: response\r\n\r\n" * 3), id="WARC in WARC"),
    ],
)
@ensureDeferred
async def test_hostile_bodies(web: Web, tmp_path: Path, body: dict[str, Any]) -> None:
    site = web.robots(body)
    await archived(tmp_path, site.url("/"))
    (response,) = of(site, tmp_path, "response")
    assert 0 < len(response.body) <= 512_001
    assert (response.fields["WARC-Truncated"] == "length") is (len(response.body) > 512_000)
    assert len(records(tmp_path)) == 6


@ensureDeferred
async def test_a_compressed_body_stays_compressed(web: Web, tmp_path: Path) -> None:
    octets = gzip.compress(OCTETS)
    site = web.robots(answer(octets, headers={"Content-Encoding": "gzip"}))
    await archived(tmp_path, site.url("/"))
    (response,) = of(site, tmp_path, "response")
    assert (response.body, response.http["Content-Encoding"]) == (octets, "gzip")
    meaning, _ = of(site, tmp_path, "metadata")
    assert meaning.values["sha256"] == sha256(OCTETS).hexdigest()


# Start, kill, full disk.


@ensureDeferred
async def test_without_warcio_the_crawl_does_not_start(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "find_spec", lambda name: None)
    cure = r'^REP_ARCHIVE needs the extra `archive`; run pip install "scrapy-rep\[archive\]"$'
    with pytest.raises(ValueError, match=cure):
        await crawl(web.robots(RULES).url("/"), settings={"REP_ARCHIVE": "x.warc.gz"})


@pytest.mark.parametrize("path", ["robots.warc", "s3://bucket/x.warc.gz", "%(nonsense)s.warc.gz", "/proc/x/y.warc.gz"])
@ensureDeferred
async def test_a_path_where_no_archive_can_be_written(web: Web, path: str) -> None:
    with pytest.raises(ValueError, match=r"REP_ARCHIVE is .*set it to"):
        await crawl(web.robots(RULES).url("/"), settings={"REP_ARCHIVE": path})


@pytest.mark.parametrize("reactor", REACTORS)
def test_with_every_reactor(web: Web, tmp_path: Path, reactor: str) -> None:
    site = web.robots(RULES)
    settings = {**REACTORS[reactor], "REP_ARCHIVE": str(tmp_path / "a.warc.gz"), "REP_EVIDENCE": True}
    ended = crawled([site.url("/"), site.url("/private")], settings)
    assert (ended.pages, ended.complaints) == ([site.url("/")], [])
    assert (checked(tmp_path), len(records(tmp_path))) == ("", 6)


def test_each_process_writes_a_file_of_its_own(web: Web, tmp_path: Path) -> None:
    site = web.robots(RULES)
    settings = {"REP_ARCHIVE": str(tmp_path / "%(name)s.warc.gz")}
    with crawl_process([site.url("/1")], settings) as one, crawl_process([site.url("/2")], settings) as other:
        assert one.ended().pages + other.ended().pages == [site.url("/1"), site.url("/2")]
    assert checked(tmp_path) == ""
    assert [path.name.startswith("tells-all-") for path in tmp_path.iterdir()] == [True, True]
    assert len(of(site, tmp_path, "response")) == 2


@pytest.mark.parametrize(
    "kills", [3, pytest.param(50, marks=pytest.mark.full_size)], ids=["a few times", "fifty times"]
)
def test_the_archive_of_a_killed_crawl_can_be_read(web: Web, tmp_path: Path, kills: int) -> None:
    sites = [web.robots(RULES + f"# {os.urandom(2_000).hex()}") for _ in range(100)]
    random.seed(kills)
    complete: list[int] = []

    def written(folder: Path) -> int:
        return sum(path.stat().st_size for path in folder.glob("*.warc.gz"))

    for number in range(kills):
        folder = tmp_path / str(number)
        folder.mkdir()
        with crawl_process([s.url("/") for s in sites], {"REP_ARCHIVE": str(folder / "a.warc.gz")}) as process:
            # The moment is a number of bytes, because the bytes that are written in a second depend on the machine.
            enough = random.randrange(1, 150_000)
            until(lambda: written(folder) >= enough)  # noqa: B023 - called at once
            assert process.killed()
        assert checked(folder) == ""
        complete.append(len(records(folder)))
    assert min(complete) >= 1
    assert max(complete) > 1


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on the size of files")
def test_a_full_disk_ends_the_archive_but_not_the_crawl(web: Web, tmp_path: Path) -> None:
    sites = [web.robots(RULES + f"# {os.urandom(3_000).hex()}") for _ in range(60)]
    settings = {
        "REP_ARCHIVE": str(tmp_path / "a.warc.gz"),
        "EXTENSIONS": {"small_files.SmallFiles": 0},
        "FILE_SIZE": 100_000,
        "LOG_LEVEL": "WARNING",
        "CONCURRENT_REQUESTS": 2,
        "REP_FETCH_CONCURRENCY": 2,
    }
    ended = crawled([site.url("/") for site in sites], settings)
    (error,) = (line for line in ended.warnings if " ERROR: " in line)
    assert "REP_ARCHIVE" in error
    assert "File too large" in error
    assert ended.stats["rep/archive/lost"] > 1
    assert ended.stats["finish_reason"] == "finished"
    assert len(ended.pages) == len(sites)
    assert checked(tmp_path) == ""
    (path,) = tmp_path.iterdir()
    assert gzip.decompress(path.read_bytes()).endswith(b"\r\n\r\n"), "the incomplete record is removed"


@ensureDeferred
async def test_a_file_that_cannot_be_created_during_the_crawl(
    web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> None:
        raise OSError("no such device")

    monkeypatch.setattr(archive, "append", fails)
    settings = {"REP_ARCHIVE": tmp_path / "a.warc.gz", "DOWNLOAD_DELAY": 0.1}
    sites = [web.robots(RULES) for _ in range(5)]
    result = await crawl(*[site.url("/") for site in sites], settings=settings)
    (error,) = result.messages(logging.ERROR)
    assert "is not complete: OSError: no such device" in error
    assert result.stats["finish_reason"] == "finished"
    assert len(result.pages) == len(sites)
