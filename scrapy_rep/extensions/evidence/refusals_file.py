"""One JSON line for each refused request (REP_REFUSALS)."""

from __future__ import annotations

import gzip
import json
import os

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.signals import spider_closed, spider_opened

from scrapy_rep.extensions.evidence.evidence import evidence_of
from scrapy_rep.extensions.output_path import APPEND, output_path
from scrapy_rep.gate import Gate
from scrapy_rep.log import logger_of
from scrapy_rep.protocol.robotstxt.rules import Verdict
from scrapy_rep.settings import RepSettings
from scrapy_rep.signals import request_forbidden


class RefusalsFile:
    """Each line is one write at the file's end, so that several crawls may share the file."""

    def __init__(self, crawler: Crawler, settings: RepSettings, gate: Gate) -> None:
        """Raises ValueError if no file can be created."""
        self._count = crawler.stats.inc_value
        self._log = logger_of(crawler)
        self._gate = gate
        self._is_dry_run = settings.shadow
        self._path = output_path("REP_REFUSALS", str(settings.refusals), crawler, gate.now())
        self._file: int | None = None
        crawler.signals.connect(self._opened, signal=spider_opened)
        crawler.signals.connect(self._forbidden, signal=request_forbidden)
        crawler.signals.connect(self._closed, signal=spider_closed)

    def _opened(self) -> None:
        try:
            self._file = os.open(self._path, APPEND, 0o666)
        except OSError as exc:
            self._end(exc)

    def _forbidden(self, request: Request, verdict: Verdict) -> None:
        tokens, now = self._gate.product_tokens(request), self._gate.now()
        referrer = request.headers.get("Referer")
        values = {
            **evidence_of(request.url, verdict, tokens, now),
            "referrer": referrer.decode("latin-1") if referrer is not None else None,
            "dry_run": self._is_dry_run,
        }
        line = json.dumps(values).encode() + b"\n"
        self._write(gzip.compress(line) if self._path.suffix == ".gz" else line)

    def _write(self, octets: bytes) -> None:
        if self._file is not None:
            try:
                written = os.write(self._file, octets)
                if written == len(octets):
                    return
                # Half a line would make the next one unreadable, and in a `.gz` file everything behind it.
                end = os.lseek(self._file, 0, os.SEEK_CUR)
                if os.fstat(self._file).st_size == end:  # else another crawl has written since
                    os.ftruncate(self._file, end - written)
                self._end("the disk is full")
            except OSError as exc:
                self._end(exc)
        self._count("rep/refusals/lost")

    def _end(self, error: OSError | str) -> None:
        self._log.error(
            "REP_REFUSALS: %s cannot be written (%s). The crawl goes on; the stat rep/refusals/lost counts the refused"
            " requests that are not in the file",
            self._path,
            error,
        )
        self._closed()

    def _closed(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
