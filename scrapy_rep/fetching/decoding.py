"""Decompresses the body of a robots.txt (Content-Encoding), up to REP_BODY_LIMIT."""

import re
import zlib
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Iterator
from contextlib import suppress
from gzip import BadGzipFile, GzipFile
from importlib import import_module
from io import BytesIO
from typing import Any

from scrapy.http import Response

from scrapy_rep.fetching.request import RobotsTxtDownload
from scrapy_rep.protocol.challenge import MAX_PAGE
from scrapy_rep.protocol.foreign_text import printable


def _first_of(*modules: str) -> Any:
    """Return the first of the modules that is installed; None if none is installed."""
    for name in modules:
        with suppress(ImportError):
            return import_module(name)
    return None


# Scrapy 2.18 and later require these libraries. With an older Scrapy, a library may be missing. Then a robots.txt that
# needs the library is unreachable.
zstd = _first_of("compression.zstd", "backports.zstd")
brotli = _first_of("brotli", "brotlicffi")

CHUNK = 65_536  # octets
MAX_FRAMES = 1_000  # zstd frames or gzip members of one body; each takes up to 10 us, even if it is empty
MAX_CODINGS = 3  # codings of one body; decoding each takes a pass over the body, and no server needs more
CUT, BROKEN = "the compressed data are incomplete", "the compressed data are broken"
GZIP_MAGIC = b"\x1f\x8b\x08"  # RFC 1952 2.3.1; the third octet means deflate, the only compression method
# The content codings in IANA's registry (RFC 9110 16.6.1) that have no decoder here, or need a library. `decoded` may
# skip other names, because some servers write a charset there, such as `utf-8`.
_REGISTERED = frozenset(b"aes128gcm br compress dcb dcz exi pack200-gzip x-compress zstd".split())
# Compressed data has many of these octets. Text has none, and no \xff at its beginning, except in UTF-16. (ISO-2022-JP
# has ESC, \x1b.)
_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]|\A\xff")
MAX_LOOKED_AT = 256  # octets that are searched for _BINARY


class UndecodableBodyError(Exception):
    """The body cannot be decoded: it has an unknown coding or too many codings, or its compressed data are broken."""


def decoded_response(response: Response, download: RobotsTxtDownload) -> Response:
    """Return the response without its Content-Encoding. Raises UndecodableBodyError.

    This comes before all middlewares: Scrapy's HttpCompressionMiddleware drops a body that is too long, and reads a
    body that was cut off as a whole one.
    """
    is_plain = b"Content-Encoding" not in response.headers and not response.body.startswith(GZIP_MAGIC)
    if is_plain or download.is_stopped(response):
        return response
    codings = b",".join(response.headers.getlist(b"Content-Encoding"))
    body = b""
    if 200 <= response.status < 300:
        body = decoded(response.body, codings, download.limit, is_cut=download.is_cut(response))
    else:
        # Such a body is never read as rules, but it may show a challenge.
        with suppress(UndecodableBodyError):
            body = decoded(response.body, codings, MAX_PAGE, is_cut=True)
    headers = response.headers.copy()
    for name in ("Content-Encoding", "Content-Length"):
        headers.pop(name, None)
    return response.replace(body=body, headers=headers)


def decoded(body: bytes, content_encoding: bytes, limit: int, *, is_cut: bool = False) -> bytes:
    """Return the decoded body, at most `limit` + 1 octets. Raises UndecodableBodyError.

    `content_encoding`: the value of the header (RFC 9110 8.4). A wrong label, such as `gzip` for plain text, is
    skipped. So is a label that is no coding, such as `utf-8`. gzip is decoded even if the header does not name it.
    `is_cut`: whether the body may be incomplete. Then the part that can be decoded is returned; otherwise, incomplete
    compressed data are an error.
    """
    codings = _names(content_encoding)
    if len(codings) > MAX_CODINGS:
        raise UndecodableBodyError(f"{len(codings)} content codings on top of each other")
    for coding in reversed(codings):
        body = _without(coding, body, limit + 1, is_cut=is_cut)
        is_cut = is_cut or len(body) > limit
    return _first(_gunzip(body), limit + 1, is_cut=is_cut) if body.startswith(GZIP_MAGIC) else body[: limit + 1]


def _without(coding: bytes, body: bytes, octets: int, *, is_cut: bool) -> bytes:
    """Return the body without one of its codings, or as it is if the label is wrong."""
    if coding not in _DECODERS:
        if coding in _REGISTERED or not _is_plain(body):
            raise UndecodableBodyError(f"unknown content coding {printable(coding.decode('latin-1'))!r}")
        return body
    try:
        return _first(_DECODERS[coding](body), octets, is_cut=is_cut) if body else body
    except UndecodableBodyError as exc:
        # Short text may look like the beginning of compressed data, as `ok` does for `br`.
        is_other = body.isascii() or body.startswith(GZIP_MAGIC)
        if not _is_plain(body) or (str(exc) == CUT and not is_other):
            raise
        return body


def _names(content_encoding: bytes) -> list[bytes]:
    names = (text.strip(b" \t") for text in content_encoding.lower().split(b","))
    return [name for name in names if name not in {b"", b"identity"}]


def is_mislabelled(received: Response, body: bytes) -> bool:
    """Whether the decoded body is plain text under the label of a compression. `received`: the response as received."""
    lines = received.headers.getlist(b"Content-Encoding")
    is_as_received = bool(lines and body) and received.body.startswith(body)
    return is_as_received and not _DECODERS.keys().isdisjoint(_names(b",".join(lines)))


def _is_plain(body: bytes) -> bool:
    """Whether the body begins with text, or is gzip, which is decoded whatever the label says."""
    return body.startswith((BOM_UTF16_LE, BOM_UTF16_BE, GZIP_MAGIC)) or not _BINARY.search(body, 0, MAX_LOOKED_AT)


def _first(chunks: Iterator[bytes], octets: int, *, is_cut: bool) -> bytes:
    found = bytearray()
    try:
        for chunk in chunks:
            found += chunk
            if len(found) >= octets:
                break
    except Exception as exc:  # each library has its own errors for truncated bodies and for garbage
        # If data were found, BadGzipFile means that they are complete, but garbage or a wrong checksum follows.
        has_ended = isinstance(exc, BadGzipFile)
        if not found or not (has_ended or is_cut):
            reason = CUT if isinstance(exc, EOFError) else str(exc) if isinstance(exc, ValueError) else BROKEN
            raise UndecodableBodyError(reason) from exc
    return bytes(found[:octets])


def _gunzip(body: bytes) -> Iterator[bytes]:
    if body.count(GZIP_MAGIC) > MAX_FRAMES:
        raise ValueError(f"more than {MAX_FRAMES:,} gzip members")
    with GzipFile(fileobj=BytesIO(body)) as file:
        while chunk := file.read1(CHUNK):
            yield chunk


def _inflate(body: bytes) -> Iterator[bytes]:
    try:
        zlib.decompressobj().decompress(body[:2])
        decompressor = zlib.decompressobj()
    except zlib.error:
        # RFC 9110 8.4.1.2: some servers send "deflate" without the zlib wrapper.
        decompressor = zlib.decompressobj(wbits=-zlib.MAX_WBITS)
    while not decompressor.eof:
        chunk = decompressor.decompress(body, CHUNK)
        body = decompressor.unconsumed_tail
        if not chunk and not body and not decompressor.eof:
            raise EOFError
        yield chunk


def _unbrotli(body: bytes) -> Iterator[bytes]:
    decompressor = brotli.Decompressor()
    while chunk := decompressor.process(body, output_buffer_limit=CHUNK):
        yield chunk
        body = b""
    if not decompressor.is_finished():
        raise EOFError


def _unzstd(body: bytes) -> Iterator[bytes]:
    for _ in range(MAX_FRAMES):
        decompressor = zstd.ZstdDecompressor()
        while not decompressor.eof:
            chunk = decompressor.decompress(body, CHUNK)
            yield chunk
            if not chunk and decompressor.needs_input and not decompressor.eof:
                raise EOFError
            body = b""
        body = decompressor.unused_data
        if not body:
            return
    raise ValueError(f"more than {MAX_FRAMES:,} zstd frames")


# RFC 9110 8.4.1, RFC 7932, RFC 8878.
_DECODERS: dict[bytes, Callable[[bytes], Iterator[bytes]]] = {
    b"gzip": _gunzip,
    b"x-gzip": _gunzip,
    b"deflate": _inflate,
    **({b"br": _unbrotli} if brotli is not None else {}),
    **({b"zstd": _unzstd} if zstd is not None else {}),
}
