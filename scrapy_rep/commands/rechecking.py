"""Judges again by an archive: URLs at a time (`--archive`), and the items of a feed (`--recheck`)."""

from __future__ import annotations

import gzip
import json
import zlib
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from scrapy_rep.commands.findings import Crawl, Finding
from scrapy_rep.commands.output import Output
from scrapy_rep.commands.urls import is_without_robots, unreadable
from scrapy_rep.extensions.evidence.evidence import META_KEY, evidence_of
from scrapy_rep.protocol.foreign_text import shortened
from scrapy_rep.protocol.robotstxt.patterns import is_robots_txt
from scrapy_rep.protocol.robotstxt.rules import Verdict, VerdictReason
from scrapy_rep.text import seconds_of_time

if TYPE_CHECKING:
    from scrapy_rep.extensions.evidence.archive_reader import ArchiveReader

# What an item says of the decision, and the archive has to say as well.
COMPARED = ("sha256", "received_at", "allowed", "reason", "rule", "line", "group", "access")


@dataclass(frozen=True, slots=True)
class Item:
    """What an item of a feed says of one request."""

    url: str
    at: float | None = None
    """Seconds since the epoch, when it was fetched; None if it does not say."""
    evidence: dict[str, Any] = field(default_factory=dict)
    """Its `robots`; empty if it has none."""
    error: str = ""
    """Why the line is no such item."""


def items_of(path: str) -> Iterator[Item]:
    """The items of a feed in JSON lines, compressed if its name ends in `.gz`. Raises ValueError if unreadable."""
    try:
        with gzip.open(path) if path.endswith(".gz") else open(path, "rb") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield _item(line, f"line {number}")
    except OSError as exc:
        raise unreadable("--recheck", path, exc) from None
    except (EOFError, zlib.error) as exc:
        raise ValueError(f"--recheck {path}: {exc}") from None


def _item(line: bytes, name: str) -> Item:
    try:
        values = json.loads(line)
        # The lines of REP_REFUSALS are evidence themselves.
        evidence = values.get(META_KEY)
        if not isinstance(evidence, dict):  # another program's, such as a page's meta element of that name
            evidence = values if "decided_at" in values else {}
        url = evidence.get("url") or values.get("url")
        time = evidence.get("decided_at", values.get("time"))
        at = None if time is None else seconds_of_time(str(time))
    except (ValueError, AttributeError, RecursionError, OverflowError) as exc:
        return Item(name, error=f"it is no JSON object with a URL and a time: {exc}")
    return Item(url, at, evidence) if isinstance(url, str) else Item(name, error="it has neither 'robots' nor 'url'")


class ArchiveJudge:
    """Verdicts by an archive."""

    def __init__(self, archive: ArchiveReader, crawl: Crawl) -> None:
        """The tokens and purposes of `crawl` decide; if it has none, those of the item, or of the crawl that wrote the
        archive."""
        self._archive = archive
        self._crawl = crawl

    def finding(self, url: str, at: float | None, evidence: Mapping[str, Any] = MappingProxyType({})) -> Finding:
        """The URL at that moment; None for the end of the archive. `evidence`: of an item, as of `ArchiveReader`."""
        if is_without_robots(url) or is_robots_txt(url):
            return Finding(url, self._crawl, verdict=Verdict(True, VerdictReason.NOT_SUBJECT))
        try:
            known = self._archive.known(url, at, evidence)
            now = known.at if at is None else at
            policy = self._archive.read_policy(known, now)
            tokens = self._crawl.tokens or tuple(evidence.get("product_tokens") or known.file.tokens)
            purposes = self._crawl.purposes if self._crawl.purposes.categories else known.file.purposes
            crawl = replace(self._crawl, tokens=tokens, purposes=purposes)
            return Finding(url, crawl, verdict=crawl.verdict(policy, url), policy=policy, now=now)
        except (ValueError, TypeError) as exc:
            return Finding(url, self._crawl, str(exc))

    def checked(self, item: Item) -> Finding:
        """Whether the archive allows the item's request, for the reason and by the robots.txt that the item names."""
        url, at, evidence = item.url, item.at, item.evidence
        if item.error or at is None:
            return Finding(url, self._crawl, item.error or "the item has no 'time', and no 'robots'")
        reason = evidence.get("reason")
        if reason == VerdictReason.EXEMPT.value:  # which the archive cannot refute
            return Finding(url, self._crawl, verdict=Verdict(True, VerdictReason.EXEMPT))
        found = self.finding(url, at, evidence)
        if found.policy is None or found.verdict is None or self._crawl.tokens or not (evidence and found.allowed):
            return found
        archived = evidence_of(url, found.verdict, found.crawl.tokens, at)
        for key in COMPARED:
            # The archive does not have the headers of pages, which may have decided.
            if evidence.get(key) != archived[key] and reason != VerdictReason.USAGE.value:
                error = f"the item says {key} {evidence.get(key)!r}, the archive {archived[key]!r}"
                return replace(found, error=shortened(error), verdict=None)
        return found


def judge_again(opts: Namespace, lists: Iterable[list[str]], output: Output, crawl: Crawl) -> None:
    """The URLs, or the items of `--recheck`. Raises ValueError for a wrong time, and for what cannot be read."""
    if find_spec("warcio") is None:
        raise ValueError("--archive needs warcio: pip install warcio")
    from scrapy_rep.extensions.evidence.archive_reader import ArchiveReader  # noqa: PLC0415 - not all have warcio

    try:
        at = None if opts.at is None else seconds_of_time(opts.at)
    except ValueError:
        raise ValueError(f"--at {opts.at!r} is no time; give one such as 2026-05-17T09:30:00Z") from None
    judge = ArchiveJudge(ArchiveReader(opts.archive), crawl)
    if opts.recheck is None:
        output.for_each(lists, lambda url: output.write(judge.finding(url, at)))
    else:
        output.for_each(([item] for item in items_of(opts.recheck)), lambda item: output.write(judge.checked(item)))
    output.finish()
