"""`scrapy robots --archive` and `--recheck`: judged again, as the crawl did then."""

from __future__ import annotations

import gc
import gzip
import json
import random
import string
import subprocess
import sys
import time
import tracemalloc
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from crawling import Crawl, CrawlSpider, Time, crawl, in_turn, with_clock
from processes import run_python
from pytest_twisted import ensureDeferred
from scrapy import Request
from scrapy.http import Response
from web import RULES, Site, Web, answer, redirect

from scrapy_rep.clock import iso_time
from scrapy_rep.commands.findings import CrawlerProfile
from scrapy_rep.commands.rechecking import ArchiveJudge, items_of
from scrapy_rep.extensions.evidence import archive_reader
from scrapy_rep.extensions.evidence.archive_reader import ArchiveReader
from scrapy_rep.usage.statements import statements_for

DAY = 24 * 3600.0
AGENT = {"USER_AGENT": "ExampleBot/1.0"}


class Kept(CrawlSpider):
    """Its items are the values of meta["robots"], also for refused requests."""

    def parse(self, response: Response, **_: Any) -> Any:
        super().parse(response)
        self.crawl.ends.append({"robots": response.meta["robots"]})

    def failed(self, failure: Any) -> Any:
        super().failed(failure)
        self.crawl.ends.append({"robots": failure.request.meta["robots"]})


async def kept(folder: Path, *requests: str | Request, **settings: Any) -> Crawl:
    """Crawl with an archive and evidence. The items are in `items.jsonl`."""
    settings = {**AGENT, "REP_ARCHIVE": folder / "a.warc.gz", "REP_EVIDENCE": True, **settings}
    result = await crawl(*requests, settings=settings, spider=Kept)
    (folder / "items.jsonl").write_text("".join(json.dumps(item) + "\n" for item in result.ends))
    return result


def archive_in(folder: Path) -> Path:
    (path,) = folder.glob("*.warc.gz")
    return path


def asked(folder: Path, *arguments: str, stdin: bytes = b"") -> tuple[int, list[str]]:
    done = run_python("-m", "scrapy", "robots", *arguments, cwd=folder, stdin=stdin)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout.splitlines() or done.stderr.splitlines()


def rechecked(folder: Path, items: list[dict[str, Any]] | None = None) -> list[str]:
    """Each item that is not allowed, or differs from the archive: `refused URL why`."""
    if items is not None:
        (folder / "items.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    judge = ArchiveJudge(ArchiveReader([str(folder / "*.warc.gz")]), CrawlerProfile())
    found = [judge.checked(item) for item in items_of(str(folder / "items.jsonl"))]
    return [f"{finding.word} {finding.url} {finding.why}" for finding in found if not finding.allowed]


# The round trip.


def some_rules(source: random.Random) -> bytes:
    """A robots.txt with lines that files have, and lines that they should not have."""
    lines = ["\ufeff" * source.randrange(2)]
    for _ in range(source.randrange(1, 6)):
        lines.append(source.choice(["User-agent: *", "User-Agent: ExampleBot", "user-agent: other", "nonsense"]))
        for _ in range(source.randrange(6)):
            path = "".join(source.choices("/ab*$%e9\u00e9", k=source.randrange(1, 5)))
            lines.append(source.choice(["Disallow: /", "Allow: /", "disallow /", "Disallow:"]) + path)
    end = source.choice(["\n", "\r\n", "\r"])
    return end.join(lines).encode(source.choice(["utf-8", "utf-16", "latin-1"]), "replace")


def some_path(source: random.Random) -> str:
    return "/" + "".join(source.choices("ab/%e9", k=source.randrange(4))).replace("%", "%25")


def some_answer(source: random.Random, others: list[Site]) -> dict[str, Any]:
    body = some_rules(source)
    answers = [
        *[answer(body)] * 6,
        answer(gzip.compress(body), headers={"Content-Encoding": "gzip"}),
        answer(body + b"\n#" + b"x" * 600_000),
        answer(body, status=source.choice([206, 404, 403, 429, 500, 503, 999])),
        answer(body, kind=source.choice(["reset", "cut", "garbage"])),
        redirect(source.choice(others).robots_url if others else "/elsewhere"),
    ]
    return source.choice(answers)


@pytest.mark.parametrize("origins", [75, pytest.param(150, marks=pytest.mark.full_size)])
@pytest.mark.parametrize("policy", ["rfc9309", "cautious"])
@ensureDeferred
async def test_each_request_of_a_crawl_is_judged_as_it_was(web: Web, tmp_path: Path, policy: str, origins: int) -> None:
    source = random.Random(policy)
    sites: list[Site] = []
    for _ in range(origins):
        sites.append(web.robots(some_answer(source, sites)))
    urls = {source.choice(sites).url(some_path(source)) for _ in range(4 * origins)}
    result = await kept(tmp_path, *urls, REP_STATUS_POLICY=policy, LOG_LEVEL="ERROR")
    assert len(result.ends) == len(urls)
    wrong = rechecked(tmp_path)
    # The crawl has refused the same URLs, and no other item differs.
    assert sorted(line.split(" ")[:2] for line in wrong) == sorted(["refused", url] for url in result.refused)
    assert len(result.refused) > origins / 3
    assert len(result.pages) > origins / 3


@ensureDeferred
async def test_after_each_change_the_robots_txt_of_its_time_decides(web: Web, tmp_path: Path) -> None:
    """Rules, other rules, an outage of two days in which the other rules are obeyed, a 404."""
    down = answer(status=503)
    site = web.robots([answer(RULES), answer("user-agent: *\ndisallow: /x\n"), down, down, answer(status=404)])
    time = Time()
    ends: list[dict[str, Any]] = []

    class Turns(in_turn(time, DAY, DAY, DAY, DAY, 60, note=lambda end: end)):  # type: ignore[misc]
        async def next(self, request: Request, end: str) -> AsyncIterator[Request]:
            ends.append({"robots": request.meta["robots"]})
            async for other in super().next(request, end):
                yield other

    settings = {**AGENT, "REP_ARCHIVE": tmp_path / "a.warc.gz", "REP_EVIDENCE": True}
    await crawl(site.url("/x"), spider=Turns, robots=with_clock(time), settings=settings)
    reasons = [(one["robots"]["allowed"], one["robots"]["answer"]) for one in ends]
    assert reasons == [
        (True, "HTTP 200"),
        (False, "HTTP 200"),
        (False, "HTTP 503"),
        (False, "HTTP 503"),
        (False, "HTTP 503"),
        (True, "HTTP 404"),
    ]
    wrong = rechecked(tmp_path, ends)
    assert [line.split(" ")[0] for line in wrong] == ["refused"] * 4
    # By this test's clock, the 404 came in the moment of the fifth request. So only the first four are compared.
    by_time = [{"url": site.url("/x"), "time": end["robots"]["decided_at"]} for end in ends[:4]]
    assert rechecked(tmp_path, by_time) == wrong[:3]


@pytest.mark.parametrize("lifetime", [0, 3600])
@ensureDeferred
async def test_an_answer_that_is_past_its_time_at_once_decided_all_the_same(
    web: Web, tmp_path: Path, lifetime: int
) -> None:
    site = web.robots(answer(RULES, headers={"Cache-Control": "max-age=0"}))
    result = await kept(tmp_path, site.url("/1"), site.url("/2"), REP_LIFETIME_MIN=lifetime)
    assert len(result.pages) == 2
    assert rechecked(tmp_path) == []


@ensureDeferred
async def test_rules_from_a_storage_are_judged_again(web: Web, tmp_path: Path) -> None:
    site, storage = web.robots(b"\xef\xbb\xbf" + RULES.encode()), f"sqlite://{tmp_path}/robots.db"
    await crawl(site.url("/"), settings={"REP_STORAGE": storage})
    await kept(tmp_path, site.url("/"), site.url("/private"), REP_STORAGE=storage)
    (refused,) = rechecked(tmp_path)
    assert refused.startswith(f"refused {site.url('/private')} by line 2")


@ensureDeferred
async def test_rules_that_were_stored_before_there_were_hashes(
    web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sites = [web.robots(RULES), web.robots("user-agent: *\ndisallow: /other\n")]
    urls = [site.url(path) for site in sites for path in ("/private", "/other")]
    storage = f"sqlite://{tmp_path}/robots.db"
    with monkeypatch.context() as patch:
        patch.setattr("scrapy_rep.fetching.redirects.hashlib.sha256", lambda _: SimpleNamespace(hexdigest=str))
        await crawl(*urls, settings={"REP_STORAGE": storage})
    result = await kept(tmp_path, *urls, REP_STORAGE=storage)
    assert {end["robots"]["sha256"] for end in result.ends} == {None}
    wrong = rechecked(tmp_path)
    assert sorted(line.split(" ")[:2] for line in wrong) == sorted(["refused", url] for url in result.refused)


@ensureDeferred
async def test_what_is_refused_for_its_purpose_is_refused_again(web: Web, tmp_path: Path) -> None:
    site = web.robots("user-agent: *\ncontent-usage: /art train-ai=n\n")
    settings = {"REP_PURPOSES": ["train-ai"], "REP_PURPOSES_REFUSE": True}
    result = await kept(tmp_path, site.url("/"), site.url("/art"), **settings)
    assert list(result.refused) == [site.url("/art")]
    (refused,) = (end["robots"] for end in result.ends if not end["robots"]["allowed"])
    assert (refused["reason"], refused["line"]) == ("usage", 2)
    assert refused["rule"].startswith("Content-Usage: /art train-ai=n")
    (line,) = rechecked(tmp_path)
    assert line.startswith(f"refused {site.url('/art')} ")


@ensureDeferred
async def test_what_a_page_says_of_itself_is_not_in_the_archive(web: Web, tmp_path: Path) -> None:
    site = web.site({"/robots.txt": answer(RULES), "/": answer("page", headers={"Content-Usage": "train-ai=n"})})
    result = await kept(tmp_path, site.url("/"), REP_PURPOSES=["train-ai"], REP_PURPOSES_REFUSE=True)
    assert list(result.refused) == [site.url("/")]
    assert rechecked(tmp_path) == []


@ensureDeferred
async def test_several_crawls_with_an_archive_each(web: Web, tmp_path: Path) -> None:
    """The crawls have different rules. Each item is judged by the rules that its evidence names."""
    site, items = web.robots(RULES), []
    for rules in (RULES, "user-agent: *\ndisallow: /other\n"):
        site.change("/robots.txt", answer(rules))
        items += (await kept(tmp_path, site.url("/other" if rules == RULES else "/private"))).ends
    assert rechecked(tmp_path, items) == []
    latest = items[1]["robots"]["decided_at"]
    as_if_later = [{"robots": {**items[0]["robots"], "decided_at": latest}}]
    assert rechecked(tmp_path, as_if_later) == [], "the other crawl may know it still"
    without = [{"url": site.url("/other"), "time": latest}]
    assert [line.split(" ")[0] for line in rechecked(tmp_path, without)] == ["refused"]


@pytest.mark.parametrize("name", ["refused.jsonl", "refused.jsonl.gz"])
@ensureDeferred
async def test_the_log_of_refusals_can_be_judged_again(web: Web, tmp_path: Path, name: str) -> None:
    site, down = web.robots(RULES), web.robots(answer(status=503))
    urls = [site.url("/private"), down.url("/")]
    await kept(tmp_path, *urls, REP_REFUSALS=tmp_path / name)
    judge = ArchiveJudge(ArchiveReader([str(tmp_path / "*.warc.gz")]), CrawlerProfile())
    found = [judge.checked(item) for item in items_of(str(tmp_path / name))]
    assert sorted((finding.url, finding.allowed) for finding in found) == sorted((url, False) for url in urls)


# Items that differ from the archive.


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"sha256": "0" * 64}, "the item says sha256 '00000000"),
        ({"line": 7, "rule": "Allow: /"}, "the item says rule 'Allow: /', the archive None"),
        ({"received_at": "2026-01-01T00:00:00Z"}, "the item says received_at"),
        ({"decided_at": "2000-01-01T00:00:00Z"}, "the archive has nothing of ORIGIN before"),
        ({"decided_at": "2100-01-01T00:00:00Z"}, "the archived robots.txt had expired by 2100-01-01T00"),
        ({"decided_at": "soon"}, "the line is not a JSON object with a URL and a time"),
        ({"decided_at": float("inf")}, "the line is not a JSON object with a URL and a time"),
        ({"url": "http://elsewhere.example/"}, "the archive has nothing of http://elsewhere.example"),
        ({"url": 5}, "the item has no URL"),
        ({"url": "nonsense"}, "the URL has no origin"),
        ({"product_tokens": ["a b"]}, "'a b' is not a product token"),
        ({"product_tokens": 7}, "'int' object is not iterable"),
    ],
    ids=str,
)
@ensureDeferred
async def test_evidence_that_was_changed(web: Web, tmp_path: Path, change: dict[str, Any], said: str) -> None:
    site = web.robots(RULES)
    item = (await kept(tmp_path, site.url("/"))).ends[0]["robots"]
    (line,) = rechecked(tmp_path, [{"robots": {**item, **change}}])
    assert line.startswith("can't tell ")
    assert said.replace("ORIGIN", site.origin) in line


@ensureDeferred
async def test_what_was_fetched_against_robots_txt_is_found(web: Web, tmp_path: Path) -> None:
    site = web.robots(RULES)
    await kept(tmp_path, site.url("/private"), REP_DRY_RUN=True)
    (line,) = rechecked(tmp_path)
    assert line.startswith(f"refused {site.url('/private')} by line 2, Disallow: /private")


@ensureDeferred
async def test_a_body_that_was_changed_in_the_archive_is_reported(web: Web, tmp_path: Path) -> None:
    site = web.robots(RULES)
    await kept(tmp_path, site.url("/"))
    path = archive_in(tmp_path)
    octets = gzip.decompress(path.read_bytes()).replace(b"disallow: /private", b"disallow: /forged!")
    path.write_bytes(b"".join(gzip.compress(b"WARC/1.1\r\n" + part) for part in octets.split(b"WARC/1.1\r\n")[1:]))
    (line,) = rechecked(tmp_path)
    assert "is damaged: the body of this robots.txt is not what was received" in line


@ensureDeferred
async def test_the_more_of_an_archive_is_left_the_fewer_items_are_wrong(web: Web, tmp_path: Path) -> None:
    sites = [web.robots(RULES) for _ in range(3)]
    await kept(tmp_path, *[site.url("/") for site in sites])
    path = archive_in(tmp_path)
    octets, found = path.read_bytes(), []
    for size in range(400, len(octets), 97):
        path.write_bytes(octets[:size])
        found.append(len(rechecked(tmp_path)))
    assert sorted(set(found)) == [0, 1, 2, 3]
    assert found == sorted(found, reverse=True)


def test_a_line_says_at_which_byte_an_archive_is_damaged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    record = gzip.compress(b"WARC/1.1\r\nWARC-Type: other\r\nContent-Length: 0\r\n\r\n\r\n\r\n")
    path = tmp_path / "a.warc.gz"
    path.write_bytes(2 * record + gzip.compress(b"damaged\r\n"))
    ArchiveReader([str(path)])
    assert caplog.messages == [f"{path} cannot be read beyond byte {2 * len(record)}: it was cut or damaged there"]


# The command.


@ensureDeferred
async def test_what_the_command_prints(web: Web, tmp_path: Path) -> None:
    site = web.robots(f"{RULES}content-usage: /art train-ai=n\n")
    before = iso_time(0)
    await kept(tmp_path, site.url("/"), site.url("/private"), REP_DRY_RUN=True)
    site.change("/robots.txt", answer("user-agent: *\ndisallow: /\n"))
    name = archive_in(tmp_path).name
    status, lines = asked(tmp_path, "--archive", name, site.url("/"), site.url("/private"))
    assert (status, lines[1].split()[0]) == (1, "allowed")
    assert "refused      by line 2, Disallow: /private (group of '*')" in "\n".join(lines)
    status, (line,) = asked(tmp_path, "--archive", "a-*.warc.gz", "-", stdin=site.url("/").encode())
    assert (status, line.split("\t")[0]) == (0, "allowed")
    status, lines = asked(tmp_path, "--archive", "*.warc.gz", "--at", before, site.url("/"))
    assert (status, lines[1].split()[:2]) == (3, ["can't", "tell"])
    status, lines = asked(tmp_path, "--archive", "*.warc.gz", "--agent", "Other", "--json", site.url("/"))
    assert (status, json.loads(lines[0])["product_tokens"]) == (0, ["Other"])

    purpose = ("--purpose", "train-ai", site.url("/art"))
    status, lines = asked(tmp_path, "--archive", name, *purpose)
    assert (status, lines[1].split()[0]) == (1, "refused")
    status, (line,) = asked(tmp_path, "--archive", name, name, "--recheck", "items.jsonl")
    assert (status, line.split("\t")[:2]) == (1, ["refused", site.url("/private")])
    status, (line,) = asked(tmp_path, "--archive", name, "--recheck", "items.jsonl", "--json")
    assert (status, json.loads(line)["url"]) == (1, site.url("/private")), "the item that is allowed is only counted"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            "--archive x.warc.gz --at now http://example.com",
            "--at 'now' is not a time; write it as 2026-05-17T09:30:00Z",
        ),
        ("--at 2026-01-01 http://example.com", "--at needs --archive"),
        ("--archive x.warc.gz", "give a URL"),
        ("--archive x.warc.gz --cached http://example.com", "give --cached or --archive, not both"),
        ("--archive x.warc.gz --recheck items.jsonl --file notes.txt", "give --file or --archive, not both"),
        ("--archive x.warc.gz --recheck items.jsonl --compare", "give --compare or --archive, not both"),
        ("--archive x.warc.gz http://example.com", "there is no file x.warc.gz"),
        ("--archive notes.warc.gz http://example.com", "notes.warc.gz cannot be read"),
        ("--recheck items.jsonl", "--recheck needs --archive"),
        ("--archive x.warc.gz --recheck items.jsonl http://example.com", "give URLs or --recheck, not both"),
        ("--archive x.warc.gz --recheck i --at 2026-01-01", "give --at or --recheck, not both"),
    ],
)
def test_wrong_usage(tmp_path: Path, arguments: str, said: str) -> None:
    (tmp_path / "notes.warc.gz").write_text(string.ascii_letters)
    done = run_python("-m", "scrapy", "robots", *arguments.split(), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@ensureDeferred
async def test_the_archive_of_a_crawler_without_a_name(web: Web, tmp_path: Path) -> None:
    site = web.robots("User-agent: *\nDisallow: /private")
    await kept(tmp_path, site.url("/"), site.url("/private"), USER_AGENT="Mozilla/5.0 (X11)")
    assert [line.split(" ")[:2] for line in rechecked(tmp_path)] == [["refused", site.url("/private")]]


@ensureDeferred
async def test_items_to_which_no_robots_txt_applies(web: Web, tmp_path: Path) -> None:
    site = web.robots(RULES)
    await kept(tmp_path, site.url("/"))
    now = iso_time(time.time() + 1)
    urls = ["data:,x", site.robots_url]
    assert rechecked(tmp_path, [{"url": url, "time": now} for url in urls]) == []
    assert asked(tmp_path, "--archive", archive_in(tmp_path).name, *urls)[0] == 0


@ensureDeferred
async def test_an_item_that_its_own_url_refutes_is_judged(web: Web, tmp_path: Path) -> None:
    site = web.robots(RULES)
    result = await kept(tmp_path, site.url("/"))
    robots = {**result.ends[0]["robots"], "reason": "not subject"}
    items = [{"robots": {**robots, "url": site.url(path)}} for path in ("/private", "/a", "/robots.txt")]
    assert rechecked(tmp_path, items) == [
        f"refused {site.url('/private')} by line 2, Disallow: /private (group of '*')",
        f"can't tell {site.url('/a')} the item says reason 'not subject', the archive 'no rule'",
    ]


@ensureDeferred
async def test_an_item_may_have_other_robots(web: Web, tmp_path: Path) -> None:
    site = web.robots("User-agent: *\nDisallow: /private")
    result = await kept(tmp_path, site.url("/"))
    decided_at = result.ends[0]["robots"]["decided_at"]
    items = [{"url": site.url("/private"), "time": decided_at, "robots": own} for own in ("noindex", ["noindex"], True)]
    assert [line.split(" ")[:2] for line in rechecked(tmp_path, items)] == [["refused", site.url("/private")]] * 3


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="it stands for a full disk")
def test_a_full_disk_is_told_of_and_is_no_refusal(tmp_path: Path) -> None:
    (tmp_path / "robots.txt").write_text("")
    command = 'exec "$0" -m scrapy robots --file robots.txt --agent Bot /a > /dev/full'
    arguments = ["sh", "-c", command, sys.executable]
    done = subprocess.run(arguments, cwd=tmp_path, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert "error: standard output: [Errno 28]" in done.stderr
    assert "Traceback" not in done.stderr


@ensureDeferred
async def test_a_damaged_feed_is_reported(web: Web, tmp_path: Path) -> None:
    await kept(tmp_path, web.robots(RULES).url("/"))
    octets = bytearray(gzip.compress(b"".join(b'{"url": "http://example.com/%d"}\n' % n for n in range(99))))
    octets[40:80] = bytes(octet ^ 0xFF for octet in octets[40:80])
    (tmp_path / "items.jsonl.gz").write_bytes(octets)
    status, lines = asked(tmp_path, "--archive", archive_in(tmp_path).name, "--recheck", "items.jsonl.gz")
    assert (status, "--recheck items.jsonl.gz: " in lines[-1]) == (2, True)


@ensureDeferred
async def test_what_is_read_of_an_archive_takes_bounded_memory(
    web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each text is another one: the archive has the same body once.
    urls = [web.robots(f"user-agent: *\ndisallow: /private\n#{n}" + "#" * 400_000).url("/") for n in range(30)]
    await kept(tmp_path, *urls)
    monkeypatch.setattr(archive_reader, "MAX_PARSED", 2_000_000)
    judge = ArchiveJudge(ArchiveReader([str(archive_in(tmp_path))]), CrawlerProfile())
    tracemalloc.start()
    try:
        allowed = [judge.checked(item).verdict for item in items_of(str(tmp_path / "items.jsonl"))]
        statements_for.cache_clear()  # it has a bound of its own (tests/protocol/test_costs.py)
        gc.collect()  # warcio's records are in cycles
        kept_in_memory, _peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [verdict is not None and verdict.allowed for verdict in allowed] == [True] * 30
    assert kept_in_memory < 5_000_000  # all 30 take 24 MB
