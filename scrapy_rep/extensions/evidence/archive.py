"""The archive (REP_ARCHIVE): every answer to a request for a robots.txt, in a WARC file."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from scrapy import Request, Spider
from scrapy.http import Response
from scrapy.signals import spider_closed, spider_opened

from scrapy_rep.extensions import Extension
from scrapy_rep.extensions.output_file import output_path
from scrapy_rep.origin_info import OriginInfo
from scrapy_rep.protocol.answer import Answer
from scrapy_rep.protocol.foreign_text import printable
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.settings import SETTINGS
from scrapy_rep.signals import robots_known, robots_response
from scrapy_rep.stats import ARCHIVE_ANSWERS, ARCHIVE_LOST

if TYPE_CHECKING:
    from scrapy_rep.extensions.evidence.warc_file import WarcFile


class ArchiveWriter(Extension):
    """Writes each answer to the archive when its signal is received. The crawl waits for the disk."""

    def start(self) -> None:
        """Raises ValueError if `warcio` is missing or no file can be created."""
        if find_spec("warcio") is None:
            cure = 'pip install "scrapy-rep[archive]"'
            raise ValueError(f"REP_ARCHIVE is {self._settings.archive!r}, which needs the extra `archive`: {cure}")
        self._path = output_path("REP_ARCHIVE", str(self._settings.archive), self._crawler, self._gate.now())
        self._file: WarcFile
        self._lost = 0
        self._crawler.signals.connect(self._opened, spider_opened)
        self._crawler.signals.connect(self._answered, robots_response)
        self._crawler.signals.connect(self._known, robots_known)
        self._crawler.signals.connect(self._closed, spider_closed)

    def _opened(self, spider: Spider) -> None:
        from scrapy_rep.extensions.evidence.warc_file import WarcFile  # noqa: PLC0415 - warcio is optional

        settings, policy = self._settings, SETTINGS["REP_STATUS_POLICY"]
        information = {
            "software": ", ".join(f"{name}/{version(name)}" for name in ("scrapy-rep", "Scrapy")),
            "format": "WARC File Format 1.1",
            "conformsTo": "https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/",
            "description": f"robots.txt files that the spider {spider.name!r} received",
            "product-tokens": " ".join(self._gate.user_agent.product_tokens),
            "status-policy": repr(self._crawler.settings.get("REP_STATUS_POLICY", policy.default)),
            "unreachable-days": f"{settings.unreachable_days:g}",
            "body-limit": str(settings.body_limit),
            "purposes": " ".join(settings.purposes),
            "purposes-refuse": str(settings.purposes_refuse),
        }
        self._file = WarcFile(self._path, information, settings.body_limit, settings.memory_origins)

    def _answered(self, answer: Answer, request: Request, response: Response | None) -> None:
        if self._write(self._file.write_answer, answer, response, self._gate.now(), Origin.of(request.url)):
            self._stats.inc_value(ARCHIVE_ANSWERS)

    def _known(self, origin: Origin, info: OriginInfo) -> None:
        self._write(self._file.write_entry, origin, self._gate.now(), info.policy.entry)

    def _closed(self, reason: str) -> None:
        self._write(self._file.write_end, self._gate.now(), reason, self._lost)
        if not self._lost:
            self._log.info("REP_ARCHIVE: written to %s", self._file.path)

    def _write(self, write: Callable[..., None], *args: Any) -> bool:
        """Write an event's records, and return whether this succeeded. Failures are counted, the first is logged."""
        try:
            write(*args)
        except Exception as exc:  # noqa: BLE001 - the disk may fail, and `warcio` may reject a server's headers
            if not self._lost:
                self._log.error(
                    "The archive of robots.txt files (REP_ARCHIVE, %s) is not complete: %s. The crawl goes on. The stat"
                    " rep/archive/lost counts the failed writes",
                    self._file.path,
                    printable(f"{type(exc).__name__}: {exc}"),
                )
            self._lost += 1
            self._stats.inc_value(ARCHIVE_LOST)
            return False
        return True
