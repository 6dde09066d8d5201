"""Judges URLs (`--archive`), or the items of a feed (`--recheck`), by an archive of robots.txt files."""

from __future__ import annotations

import gzip
import json
import zlib
from argparse import Namespace
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from io import BufferedReader
from typing import TYPE_CHECKING, Any

from scrapy_rep.clock import seconds_of_time
from scrapy_rep.commands.findings import CrawlerProfile, Finding
from scrapy_rep.commands.output import Output
from scrapy_rep.commands.urls import is_without_robots, opened
from scrapy_rep.extensions.evidence.evidence import META_KEY, evidence_of
from scrapy_rep.protocol.foreign_text import shortened
from scrapy_rep.protocol.robotstxt.patterns import is_robots_txt
from scrapy_rep.protocol.robotstxt.rules import Verdict
from scrapy_rep.protocol.words import VerdictReason

if TYPE_CHECKING:
    from scrapy_rep.extensions.evidence.archive_reader import ArchiveReader

# The keys of an item's evidence whose values must be the same in the archive.
COMPARED = ("sha256", "received_at", "allowed", "reason", "rule", "line", "group", "access")


@dataclass(frozen=True, slots=True)
class Item:
    """A request to judge again. `--recheck` makes one from each item of a feed, and `--archive` from each URL."""

    url: str
    at: float | None = None
    """The time of the request, in seconds since the epoch; None means the end of the archive."""
    evidence: dict[str, Any] = field(default_factory=dict)
    """The value of the item's key `robots`, or a whole line of REP_REFUSALS; empty without evidence."""
    error: str = ""
    """Why the item cannot be judged; empty if it can."""


def items_of(path: str) -> Iterator[Item]:
    """Yield the items of a feed in JSON lines (`.gz`: compressed). Raises ValueError if the file cannot be read."""
    try:
        with (
            opened("--recheck", path) as stream,
            gzip.open(stream) if path.endswith(".gz") else BufferedReader(stream) as lines,
        ):
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield _item(line, f"line {number}")
    except (EOFError, zlib.error) as exc:
        raise ValueError(f"--recheck {path}: {exc}") from None


def _item(line: bytes, name: str) -> Item:
    try:
        values = json.loads(line)
        evidence = values.get(META_KEY)
        # A line of REP_REFUSALS is the evidence itself. In another feed, the key `robots` may have another meaning,
        # such as the meta element `robots` of a page.
        if not isinstance(evidence, dict):
            evidence = values if "decided_at" in values else {}
        url = evidence.get("url") or values.get("url")
        time = evidence.get("decided_at", values.get("time"))
        at = None if time is None else seconds_of_time(str(time))
    except (ValueError, AttributeError, RecursionError, OverflowError) as exc:
        return Item(name, error=f"the line is not a JSON object with a URL and a time: {exc}")
    if not isinstance(url, str):
        return Item(name, error="the item has no URL")
    return Item(url, at, evidence, "the item has no 'time', and no 'robots'" if at is None else "")


class ArchiveJudge:
    """Judges requests by the robots.txt files of an archive."""

    def __init__(self, archive: ArchiveReader, profile: CrawlerProfile) -> None:
        """If `profile` has no tokens, those of the item are used, or else those of the archive. If it has no purposes,
        those of the archive are used."""
        self._archive = archive
        self._profile = profile

    def checked(self, item: Item) -> Finding:
        """Judge the item by the archive. If the archive allows it, and no option gave tokens, also compare the result
        with the item's evidence."""
        url, evidence, reason = item.url, item.evidence, item.evidence.get("reason")
        if item.error:
            return Finding(url, self._profile, item.error)
        if reason == VerdictReason.EXEMPT.value:  # the archive does not contain the settings that exempt a URL
            return Finding(url, self._profile, verdict=Verdict(True, VerdictReason.EXEMPT))
        found = self._judged(item)
        if found.policy is None or found.verdict is None or self._profile.tokens or not (evidence and found.allowed):
            return found
        archived = evidence_of(url, found.verdict, found.profile.tokens, found.now)
        for key in COMPARED:
            # A verdict by usage preferences may come from the headers of the page, which the archive does not have.
            if evidence.get(key) != archived[key] and reason != VerdictReason.USAGE.value:
                error = f"the item says {key} {evidence.get(key)!r}, the archive {archived[key]!r}"
                return replace(found, error=shortened(error), verdict=None)
        return found

    def _judged(self, item: Item) -> Finding:
        """Judge the item by the robots.txt that the crawl had at the item's time."""
        url, evidence = item.url, item.evidence
        if is_without_robots(url) or is_robots_txt(url):
            return Finding(url, self._profile, verdict=Verdict(True, VerdictReason.NOT_SUBJECT))
        try:
            known = self._archive.known(url, item.at, evidence)
            now = known.at if item.at is None else item.at
            policy = self._archive.read_policy(known, now)
            tokens = self._profile.tokens or tuple(evidence.get("product_tokens") or known.file.tokens)
            purposes = self._profile.purposes if self._profile.purposes.categories else known.file.purposes
            profile = replace(self._profile, tokens=tokens, purposes=purposes)
            return Finding(url, profile, verdict=profile.verdict(policy, url), policy=policy, now=now)
        except (ValueError, TypeError) as exc:
            return Finding(url, self._profile, str(exc))


def judge_again(opts: Namespace, lists: Iterable[list[str]], output: Output, profile: CrawlerProfile) -> None:
    """Judge the URLs, or the items of `--recheck`, by the archive. Raises ValueError with the reason if it cannot."""
    if find_spec("warcio") is None:
        raise ValueError("--archive needs warcio: pip install warcio")
    from scrapy_rep.extensions.evidence.archive_reader import ArchiveReader  # noqa: PLC0415 - it needs warcio

    try:
        at = None if opts.at is None else seconds_of_time(opts.at)
    except ValueError:
        raise ValueError(f"--at {opts.at!r} is not a time; write it as 2026-05-17T09:30:00Z") from None
    judge = ArchiveJudge(ArchiveReader(opts.archive), profile)
    if opts.recheck is not None:
        output.write_all([judge.checked(item)] for item in items_of(opts.recheck))
    else:
        output.write_all((judge.checked(Item(url, at)) for url in urls) for urls in lists)
