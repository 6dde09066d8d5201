"""Every answer to a request for a robots.txt, kept in a file for others to read (REP_ARCHIVE)."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.signals import spider_closed, spider_opened
from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import Deferred, DeferredList
from twisted.python.failure import Failure

from scrapy_rep.extensions.output_file import output_path
from scrapy_rep.gate import Gate
from scrapy_rep.log import logger_of
from scrapy_rep.origin_info import OriginInfo
from scrapy_rep.own_thread import OwnThread
from scrapy_rep.protocol.access_result import Answer
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.scrapy_internals.compat import sleep
from scrapy_rep.settings import SETTINGS, RepSettings
from scrapy_rep.signals import robots_response
from scrapy_rep.text import printable

if TYPE_CHECKING:
    from scrapy_rep.extensions.evidence.warc_file import WarcFile

EACH = 2_000  # bytes of memory for each record that waits, without its body
WAIT_ABOVE = 16 * 2**20  # bytes to be written, for which the fetches wait
LOOK_EVERY = 0.05  # seconds
MAX_QUEUED = 256 * 2**20  # as many as all fetches under way may still bring
CLOSING = 30.0  # seconds for what is left when the crawl is over
REASON = "robots_archive_failed"


class ArchiveWriter:
    """Hands what the signals tell to one thread, which writes it."""

    def __init__(self, crawler: Crawler, settings: RepSettings, gate: Gate) -> None:
        """Raises ValueError if `warcio` is missing or no file can be created."""
        if find_spec("warcio") is None:
            raise ValueError(f"REP_ARCHIVE is {settings.archive!r}, which needs warcio: pip install warcio")
        self._crawler = crawler
        self._log = logger_of(crawler)
        self._settings = settings
        self._gate = gate
        self._path = output_path("REP_ARCHIVE", str(settings.archive), crawler, gate.now())
        self._thread = OwnThread()
        self._file: WarcFile
        self._waiting: set[Deferred[None]] = set()
        self._queued = self._lost = 0
        crawler.signals.connect(self._opened, spider_opened)
        crawler.signals.connect(self._answered, robots_response)
        gate.robots_known.append(self._known)
        crawler.signals.connect(self._closed, spider_closed)

    def _opened(self, spider: Spider) -> None:
        from scrapy_rep.extensions.evidence.warc_file import WarcFile  # noqa: PLC0415 - not all have warcio

        settings, name = self._settings, "REP_STATUS_POLICY"
        information = {
            "software": ", ".join(f"{name}/{version(name)}" for name in ("scrapy-rep", "Scrapy")),
            "format": "WARC File Format 1.1",
            "conformsTo": "https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/",
            "description": f"robots.txt files that the spider {spider.name!r} received",
            "product-tokens": " ".join(self._gate.user_agent.product_tokens),
            "status-policy": repr(self._crawler.settings.get(name, SETTINGS[name].default)),
            "unreachable-days": f"{settings.unreachable_days:g}",
            "body-limit": str(settings.body_limit),
            "purposes": " ".join(settings.purposes),
            "purposes-refuse": str(settings.purposes_refuse),
        }
        self._file = WarcFile(self._path, information, settings.body_limit, settings.memory_origins)

    async def _answered(self, answer: Answer, request: Request, response: Response | None) -> None:
        """The fetch goes on when this returns: it waits while much is to be written."""
        now, needed_by = self._gate.now(), Origin.of(request.url)
        bodies = {id(body): len(body) for body in (answer.body, response.body if response is not None else b"")}

        def write() -> None:
            self._file.write_answer(answer, response, now, needed_by)

        self._write(EACH + sum(bodies.values()), write, counted="rep/archive/answers")
        while self._queued > WAIT_ABOVE:
            await sleep(LOOK_EVERY)

    def _known(self, origin: Origin, info: OriginInfo, _request: Request) -> None:
        now, entry = self._gate.now(), info.entry
        robots = entry.stored.robots if entry.stored is not None else None
        size = EACH + (robots.memory if robots is not None else 0)
        self._write(size, lambda: self._file.write_entry(origin, now, entry))

    def _write(self, size: int, write: Callable[[], None], counted: str = "") -> None:
        """Soon, in the thread. `size`: bytes of memory that it takes until then. `counted`: the stat to count it in."""

        def written(result: Any) -> None:
            self._queued -= size
            self._waiting.discard(writing)
            if isinstance(result, Failure):
                self._lose(f"{type(result.value).__name__}: {result.value}")
            elif counted:
                self._crawler.stats.inc_value(counted)

        if size and self._queued + size > MAX_QUEUED:
            self._lose(f"more than {MAX_QUEUED:,} bytes wait to be written: the disk is too slow")
            return
        self._queued += size
        writing = deferred_from_coro(self._thread.run(write))
        self._waiting.add(writing)
        writing.addBoth(written)

    def _lose(self, reason: str) -> None:
        self._lost += 1
        self._crawler.stats.inc_value("rep/archive/lost")
        if self._lost > 1:
            return
        required = self._settings.archive_required
        self._log.error(
            "The archive of robots.txt files (REP_ARCHIVE, %(path)s) is not complete: %(reason)s. %(meanwhile)s;"
            " the stat rep/archive/lost counts what is missing",
            {
                "path": self._path,
                "reason": printable(reason),
                "meanwhile": "The crawl closes (REP_ARCHIVE_REQUIRED)" if required else "The crawl goes on",
            },
        )
        engine = self._crawler.engine
        if required and engine is not None:
            deferred_from_coro(engine.close_spider_async(reason=REASON))

    async def _closed(self, reason: str) -> None:
        """Wait until everything is written, CLOSING seconds at most."""
        now, lost = self._gate.now(), self._lost
        self._write(0, lambda: self._file.write_end(now, reason, lost))
        waiting = DeferredList(list(self._waiting))
        timer = call_later(CLOSING, waiting.cancel)
        await maybe_deferred_to_future(waiting)
        timer.cancel()
        self._thread.close()
