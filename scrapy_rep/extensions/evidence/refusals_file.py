"""The file of refusals (REP_REFUSALS): one JSON line for each refused request."""

from __future__ import annotations

import gzip
import json

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.signals import spider_opened

from scrapy_rep.extensions.evidence.evidence import evidence_of
from scrapy_rep.extensions.output_file import append, output_path
from scrapy_rep.gate import Gate
from scrapy_rep.log import logger_of
from scrapy_rep.protocol.robotstxt.rules import Verdict
from scrapy_rep.settings import RepSettings
from scrapy_rep.signals import request_forbidden


class RefusalsFile:
    """Appends a line for each refused request. Each line is one write, so several crawls may share the file."""

    def __init__(self, crawler: Crawler, settings: RepSettings, gate: Gate) -> None:
        """Raises ValueError if no file can be created."""
        self._count = crawler.stats.inc_value
        self._log = logger_of(crawler)
        self._gate = gate
        self._is_dry_run = settings.dry_run
        self._path = output_path("REP_REFUSALS", str(settings.refusals), crawler, gate.now())
        self._has_failed = False
        crawler.signals.connect(self._opened, signal=spider_opened)
        crawler.signals.connect(self._forbidden, signal=request_forbidden)

    def _opened(self) -> None:
        self._append(b"")  # the file exists even if nothing is refused

    def _forbidden(self, request: Request, verdict: Verdict) -> None:
        tokens, now = self._gate.product_tokens(request), self._gate.now()
        referrer = request.headers.get("Referer")
        values = {
            **evidence_of(request.url, verdict, tokens, now),
            "referrer": referrer.decode("latin-1") if referrer is not None else None,
            "dry_run": self._is_dry_run,
        }
        line = json.dumps(values).encode() + b"\n"
        if not self._append(gzip.compress(line) if self._path.suffix == ".gz" else line):
            self._count("rep/refusals/lost")

    def _append(self, octets: bytes) -> bool:
        """Append octets to the file, and return whether this succeeded. After a failure, nothing more is written."""
        if not self._has_failed:
            try:
                append(self._path, octets)
            except OSError as exc:
                self._has_failed = True
                self._log.error(
                    "REP_REFUSALS: %s cannot be written (%s). The stat rep/refusals/lost counts the missing lines",
                    self._path,
                    exc,
                )
        return not self._has_failed
