"""The archive (REP_ARCHIVE): every answer to a request for a robots.txt, in a WARC file that `warcio` writes.

The records are WARC 1.1. Each record is compressed separately, and the records of an event are written together. A
crawl that is killed loses at most one event. Format: ISO 28500:2017,
https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/
"""

import base64
import gzip
import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from hashlib import sha256
from http.client import responses
from importlib.metadata import version
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any
from uuid import uuid4

from scrapy import Spider
from scrapy.http import Headers, Request, Response
from scrapy.utils.datatypes import LocalCache
from scrapy.utils.httpobj import urlparse_cached

from scrapy_rep.extensions import Extension
from scrapy_rep.extensions.output_file import append, iso_time, output_path
from scrapy_rep.origin_info import OriginInfo
from scrapy_rep.protocol.answer import AccessResult, Answer
from scrapy_rep.protocol.entry import Entry, plain_values
from scrapy_rep.protocol.foreign_text import printable
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.settings import SETTINGS
from scrapy_rep.stats import ARCHIVE_ANSWERS, ARCHIVE_LOST

with suppress(ImportError):  # an extra: `ArchiveWriter.start` looks for it
    from warcio.recordbuilder import RecordBuilder
    from warcio.recordloader import ArcWarcRecord
    from warcio.statusandheaders import StatusAndHeaders
    from warcio.warcwriter import WARCWriter

WARC_VERSION = "WARC/1.1"
METADATA, RESOURCE = "application/json", "application/octet-stream"
HTTP_REQUEST, HTTP_RESPONSE = "application/http; msgtype=request", "application/http; msgtype=response"
LEVEL = 6  # of gzip; warcio's level 9 saves 5 % more, but takes up to thirty times as long
_TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110 5.6.2
_LINE_ENDS = re.compile(rb"[\r\n\0]+")
_SECRET = {b"authorization", b"proxy-authorization"}  # a reader of the archive could misuse these credentials
# Scrapy has joined the chunks of the body. With the original header, readers would try to join them again.
_RENAMED = {b"transfer-encoding": b"X-Crawler-Transfer-Encoding"}


class ArchiveWriter(Extension):
    """Writes each answer to the archive when its signal is received. The crawl waits for the disk."""

    def start(self) -> None:
        """Raises ValueError if `warcio` is missing or no file can be created."""
        if find_spec("warcio") is None:
            raise ValueError('REP_ARCHIVE needs the extra `archive`; run pip install "scrapy-rep[archive]"')
        self._path = output_path("REP_ARCHIVE", str(self._settings.archive), self._crawler, self._gate.now())
        self._lost = 0

    def spider_opened(self, spider: Spider) -> None:
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

    def robots_response(self, answer: Answer, request: Request, response: Response | None) -> None:
        if self._write(self._file.write_answer, answer, response, self._gate.now(), Origin.of(request.url)):
            self._count(ARCHIVE_ANSWERS)

    def robots_known(self, origin: Origin, info: OriginInfo) -> None:
        self._write(self._file.write_entry, origin, self._gate.now(), info.policy.entry)

    def spider_closed(self, reason: str) -> None:
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
            self._count(ARCHIVE_LOST)
            return False
        return True


class WarcFile:
    """Writes one WARC file. After a failure, for example on a full disk, each method that writes raises OSError."""

    def __init__(self, path: Path, information: Mapping[str, str], body_limit: int, max_known: int) -> None:
        """`path` must end in `.warc.gz`. A unique part is added to the file's name.

        `information` has the fields of the first record. `max_known` is the number of bodies to remember.
        """
        name = f"{path.name.removesuffix('.warc.gz')}-{uuid4().hex[:8]}.warc.gz"
        self.path = path.with_name(name)
        self._limit = body_limit
        self._buffer = b""
        self._failure: OSError | None = None
        self._bodies: LocalCache[str, str] = LocalCache(limit=max_known)
        """SHA-256 of a body -> the id of the record that contains it."""
        self._compress(RecordBuilder(warc_version=WARC_VERSION).create_warcinfo_record(name, information))

    def write_answer(self, answer: Answer, response: Response | None, at: float, needed_by: Origin | None) -> None:
        """Write the request, the response and its meaning; or, without a response, why there was none.

        `at` is the time when the request ended, in seconds since the epoch. `needed_by` is the origin whose robots.txt
        was needed; after a redirect, the URL may be of another origin. `response` is Scrapy's, before its body is
        decoded.
        """
        url, date = answer.url, iso_time(at)
        fields: dict[str, str] = {}
        digest = sha256(answer.body).hexdigest() if answer.access is AccessResult.SUCCESS else None
        values = {
            "type": "answer",
            "needed_by": None if needed_by is None else str(needed_by),
            "answer": answer.reason,
            "access": answer.access.value,
            "sha256": digest,
            "replayed": not answer.is_first_hand,
        }
        if response is not None and response.request is not None:
            fields["WARC-Concurrent-To"] = record = self._response(url, date, response, response.request)
            if digest is not None and digest not in self._bodies:
                self._bodies[digest] = record
            if _is_http(response.request):
                no_body, head = {"WARC-Payload-Digest": _digest(b"")}, _request_head(response.request)
                self._add("request", url, date, head, HTTP_REQUEST, **fields, **no_body)
        self._metadata(url, date, values, **fields)

    def write_entry(self, origin: Origin, at: float, entry: Entry) -> None:
        """Write what the crawl knows about the origin from now on, and the rules if the file does not have them yet."""
        date, stored = iso_time(at), entry.stored
        body = None
        if stored is not None and stored.robots is not None:
            digest = stored.sha256 or sha256(stored.robots.octets).hexdigest()
            body = self._bodies.get(digest)
            if body is None:
                # The rules come from REP_STORAGE, or the body was forgotten: the octets are as parsed, not as received.
                url = stored.answer.url or entry.robots_url
                body = self._bodies[digest] = self._add("conversion", url, date, stored.robots.octets, RESOURCE)
        values = {"type": "robots.txt", "origin": str(origin), "at": date, "body": body, "entry": plain_values(entry)}
        self._metadata(entry.robots_url, date, values)

    def write_end(self, at: float, reason: str, lost: int) -> None:
        """Write the last record. `lost` is the number of writes that failed."""
        self._metadata("urn:scrapy-rep:end", iso_time(at), {"type": "end", "reason": reason, "lost": lost})

    def _response(self, url: str, date: str, response: Response, request: Request) -> str:
        """Write the response, and return the id of its record."""
        codings = response.headers.get("Content-Encoding")
        # A crawl reads limit + 1 octets of the decoded body. Twice as many compressed octets are enough for that.
        limit = self._limit + 1 if codings is None else 2 * self._limit
        body = response.body[:limit]
        fields = {"WARC-Payload-Digest": _digest(body)}
        is_direct = not request.meta.get("proxy") and "cached" not in response.flags  # set by HttpCacheMiddleware
        if response.ip_address is not None and is_direct:
            fields["WARC-IP-Address"] = str(response.ip_address)
        if len(response.body) > self._limit:
            fields["WARC-Truncated"] = "length"
        if not _is_http(request):
            return self._add("resource", url, date, body, RESOURCE, **fields)
        # Scrapy drops the reason phrase, so the standard phrase is written.
        head = _head(f"HTTP/1.1 {response.status} {responses.get(response.status, '')}", response.headers)
        return self._add("response", url, date, head + body, HTTP_RESPONSE, **fields)

    def _metadata(self, url: str, date: str, values: Mapping[str, Any], **fields: str) -> None:
        """Add the last record about an event, and write the event's records. If the disk fails, none is written."""
        self._add("metadata", url, date, json.dumps(values).encode(), METADATA, **fields)
        octets, self._buffer = self._buffer, b""
        if self._failure is not None:
            raise self._failure
        try:
            append(self.path, octets)
        except OSError as exc:
            self._failure = exc
            raise

    def _add(self, kind: str, url: str, date: str, block: bytes, content_type: str, **fields: str) -> str:
        """Add a record, and return its id. The block is not parsed, because `warcio` would re-encode its headers."""
        record = f"<urn:uuid:{uuid4()}>"
        named = {"WARC-Type": kind, "WARC-Record-ID": record, "WARC-Target-URI": url, "WARC-Date": date, **fields}
        headers = StatusAndHeaders("", list(named.items()), protocol=WARC_VERSION)
        self._compress(ArcWarcRecord("warc", kind, headers, BytesIO(block), None, content_type, len(block)))
        return record

    def _compress(self, record: "ArcWarcRecord") -> None:
        octets = BytesIO()
        WARCWriter(octets, gzip=False, warc_version=WARC_VERSION).write_record(record)
        self._buffer += gzip.compress(octets.getvalue(), LEVEL)


def _is_http(request: Request) -> bool:
    return urlparse_cached(request).scheme in {"http", "https"}


def _request_head(request: Request) -> bytes:
    parts = urlparse_cached(request)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return _head(f"{request.method} {target} HTTP/1.1\r\nHost: {parts.netloc.rpartition('@')[2]}", request.headers)


def _head(start: str, headers: Headers) -> bytes:
    """Return the first lines and the headers, without credentials and without headers with malformed names."""
    lines = [start.encode()]
    for name, values in headers.items():
        if name.lower() not in _SECRET and _TOKEN.fullmatch(name):
            shown = _RENAMED.get(name.lower(), name)
            lines += (b"%s: %s" % (shown, _LINE_ENDS.sub(b" ", value)) for value in values)
    return b"\r\n".join([*lines, b"", b""])


def _digest(body: bytes) -> str:
    return f"sha256:{base64.b32encode(sha256(body).digest()).decode()}"
