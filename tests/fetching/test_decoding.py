"""Compressed bodies are decoded up to a limit. An incomplete body is an error, unless the limit has cut it (RFC 9110
section 8.4)."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import subprocess
import sys
import zlib
from collections.abc import Callable
from functools import partial

import pytest

from scrapy_rep.fetching import decoding
from scrapy_rep.fetching.decoding import GZIP_MAGIC, UndecodableBodyError, decoded

# The libraries that the package itself decodes with.
brotli, zstd = vars(decoding)["brotli"], vars(decoding)["zstd"]

LIMIT = 512_000
TEXT = b"user-agent: *\ndisallow: /private\n"


def raw_deflate(data: bytes) -> bytes:
    compressor = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return compressor.compress(data) + compressor.flush()


CODINGS: dict[str, tuple[bytes, Callable[[bytes], bytes]]] = {
    "gzip": (b"gzip", gzip.compress),
    "x-gzip": (b"x-gzip", gzip.compress),
    "upper case": (b"GZIP", gzip.compress),
    "zlib": (b"deflate", zlib.compress),
    "raw deflate": (b"deflate", raw_deflate),
    "br": (b"br", partial(brotli.compress, quality=4)),  # ten times as fast as its default
    "zstd": (b"zstd", zstd.compress),
    "identity": (b"identity", bytes),
    "none": (b"", bytes),
}
each_compression = pytest.mark.parametrize(("coding", "compress"), list(CODINGS.values())[:-2], ids=list(CODINGS)[:-2])
each_coding = pytest.mark.parametrize(("coding", "compress"), CODINGS.values(), ids=CODINGS)


@each_coding
def test_a_whole_body(coding: bytes, compress: Callable[[bytes], bytes]) -> None:
    assert decoded(compress(TEXT), coding, LIMIT) == TEXT


@each_coding
def test_a_body_whose_last_octets_fit_in_no_chunk(coding: bytes, compress: Callable[[bytes], bytes]) -> None:
    for length in range(decoding.CHUNK - 2, decoding.CHUNK + 260, 29):
        text = b"#" * length
        assert decoded(compress(text), coding, LIMIT) == text


@each_coding
def test_an_empty_body(coding: bytes, compress: Callable[[bytes], bytes]) -> None:
    assert decoded(compress(b""), coding, LIMIT) == b""
    assert decoded(b"", coding, LIMIT) == b""


@each_coding
def test_a_bomb_gives_one_octet_more_than_the_limit(coding: bytes, compress: Callable[[bytes], bytes]) -> None:
    assert decoded(compress(TEXT + b"#" * 5_000_000), coding, LIMIT) == (TEXT + b"#" * LIMIT)[: LIMIT + 1]


@each_coding
def test_a_body_that_the_limit_has_cut_is_decoded_as_far_as_possible(
    coding: bytes, compress: Callable[[bytes], bytes]
) -> None:
    # The text is long, so every coding has written a block before the cut. The blocks of brotli and zstd are large.
    text = b"".join(b"disallow: /%d%s\n" % (n, os.urandom(20).hex().encode()) for n in range(20_000))
    whole = compress(text)
    part = decoded(whole[: len(whole) // 2], coding, 10 * LIMIT, is_cut=True)
    assert text.startswith(part)
    assert len(part) > 100_000


@each_compression
@pytest.mark.parametrize("unnamed", [False, True])
def test_an_incomplete_stream_is_undecodable(coding: bytes, compress: Callable[[bytes], bytes], unnamed: bool) -> None:
    whole = compress(40 * TEXT)
    named = b"" if unnamed and whole.startswith(GZIP_MAGIC) else coding
    # The first four octets of raw deflate are `+-N-` here, which could be text.
    for end in range(5, len(whole)):
        with pytest.raises(UndecodableBodyError):
            decoded(whole[:end], named, LIMIT)


@pytest.mark.parametrize("damage", [b"\n", b"\0\0", b"garbage"])
@pytest.mark.parametrize("coding", [b"gzip", b"deflate", b""])
def test_octets_after_the_end_of_a_stream_are_ignored(coding: bytes, damage: bytes) -> None:
    compress = zlib.compress if coding == b"deflate" else gzip.compress
    assert decoded(compress(TEXT) + damage, coding, LIMIT) == TEXT


def test_the_outer_of_two_codings_may_be_cut_at_the_limit() -> None:
    text = TEXT + os.urandom(2_000).hex().encode()
    inner = gzip.compress(text)
    limit = len(inner) // 2
    assert text.startswith(decoded(zlib.compress(inner), b"gzip, deflate", limit))


WRONG_LABELS = [b"gzip", b"deflate", b"br", b"zstd"]
CYRILLIC = "# \u043f\u0440\u0430\u0432\u0438\u043b\u0430\nUser-agent: *\nDisallow: /private/\n"
JAPANESE = "# \u7981\u6b62\nUser-agent: *\nDisallow: /private/\n"
PLAIN_BODIES = {
    "ok": b"ok",
    "a line break": b"\n",
    "a number": b"404",
    "a word": b"true",
    "a comment": b"# no rules",
    "no rule": b"Disallow:",
    "a page": b"<html>",
    "Latin-1": "# R\u00e8gles\nUser-agent: *\nDisallow: /priv\u00e9/\n".encode("latin-1"),
    "cp1251": CYRILLIC.encode("cp1251"),
    "KOI8-R": CYRILLIC.encode("koi8-r"),
    "UTF-16": TEXT.decode().encode("utf-16"),
    "UTF-16BE": b"\xfe\xff" + CYRILLIC.encode("utf-16-be"),
    "Shift JIS": JAPANESE.encode("shift-jis"),
    "ISO-2022-JP": JAPANESE.encode("iso-2022-jp"),
}


@pytest.mark.parametrize("coding", WRONG_LABELS)
@pytest.mark.parametrize("body", PLAIN_BODIES.values(), ids=PLAIN_BODIES)
def test_any_plain_text_under_the_label_of_a_compression_is_read(coding: bytes, body: bytes) -> None:
    assert decoded(body, coding, LIMIT) == body
    assert decoded(gzip.compress(body), coding + b", gzip", LIMIT) == body


@pytest.mark.parametrize("coding", [b"deflate", b"br", b"zstd"])
def test_gzip_under_the_label_of_another_compression_is_decoded(coding: bytes) -> None:
    for mtime in range(500):  # for some, the header looks like the beginning of the other compression
        assert decoded(gzip.compress(TEXT, mtime=mtime), coding, LIMIT) == TEXT
    with pytest.raises(UndecodableBodyError):
        decoded(gzip.compress(TEXT)[:-20], coding, LIMIT)


@pytest.mark.parametrize("coding", [b"gzip", b"br", b"zstd"])
def test_garbage_is_undecodable(coding: bytes) -> None:
    with pytest.raises(UndecodableBodyError):
        decoded(b"\xff\x00user-agent: *", coding, LIMIT)


PLAIN = [TEXT, b"\xef\xbb\xbf" + TEXT, "# \u7981\u6b62\u6293\u53d6\n".encode() + TEXT]


@pytest.mark.parametrize(
    "coding", [b"gzip", b"x-gzip", b"GZIP", b"deflate", b"br", b"zstd", b"gzip, br", b"utf-8, gzip"]
)
@pytest.mark.parametrize("body", PLAIN)
@pytest.mark.parametrize("is_cut", [False, True])
def test_plain_text_under_the_label_of_a_compression_is_read(coding: bytes, body: bytes, is_cut: bool) -> None:
    assert decoded(body, coding, LIMIT, is_cut=is_cut) == body
    assert decoded(gzip.compress(body), coding + b", gzip", LIMIT) == body


@pytest.mark.parametrize("coding", WRONG_LABELS)
@pytest.mark.parametrize("body", [b"\xff\x00user-agent: *\ndisallow: /", b"\x01\x02\x03" + TEXT, lzma.compress(TEXT)])
def test_the_reason_is_in_words_for_people(coding: bytes, body: bytes) -> None:
    with pytest.raises(UndecodableBodyError, match=r"^the compressed data are (incomplete|broken)$"):
        decoded(body, coding, LIMIT)


@pytest.mark.parametrize("coding", [b"exi", b"gzip, compress", b"compress, secret", b"gzip, gzip, gzip, gzip"])
def test_an_unsupported_or_too_long_list_of_codings_is_undecodable(coding: bytes) -> None:
    with pytest.raises(UndecodableBodyError):
        decoded(gzip.compress(TEXT), coding, LIMIT)


@pytest.mark.parametrize("compress", [bz2.compress, lzma.compress])
def test_a_body_in_an_unknown_coding_is_undecodable(compress: Callable[[bytes], bytes]) -> None:
    with pytest.raises(UndecodableBodyError, match="unknown content coding 'secret'"):
        decoded(compress(TEXT), b"secret", LIMIT)


@pytest.mark.parametrize("coding", [b"utf-8", b"UTF-8", b"none", b"binary", b"iso-8859-1, identity"])
@pytest.mark.parametrize(
    "body", [TEXT, b"", b"\xef\xbb\xbf" + TEXT, "dis\u00e9".encode("latin-1"), TEXT.decode().encode("utf-16")]
)
def test_a_body_that_is_not_coded_is_read_whatever_the_header_says(coding: bytes, body: bytes) -> None:
    assert decoded(body, coding, LIMIT) == body


def test_a_coding_below_an_unknown_one_is_decoded() -> None:
    assert decoded(gzip.compress(TEXT), b"gzip, utf-8", LIMIT) == TEXT


@pytest.mark.parametrize("coding", [b"", b"identity", b"utf-8", b"deflate"])
def test_gzip_without_a_header_is_decoded_up_to_the_limit(coding: bytes) -> None:
    encode = zlib.compress if coding == b"deflate" else bytes
    assert decoded(encode(gzip.compress(TEXT)), coding, LIMIT) == TEXT
    bomb = gzip.compress(TEXT + b"#" * 5_000_000)
    assert decoded(encode(bomb), coding, LIMIT) == (TEXT + b"#" * LIMIT)[: LIMIT + 1]
    with pytest.raises(UndecodableBodyError):
        decoded(encode(b"\x1f\x8b\x08 no gzip"), coding, LIMIT)


def test_a_body_of_many_empty_frames_is_undecodable() -> None:
    """Each frame costs a decompressor, and yields nothing that the limit could stop."""
    frames = zstd.compress(b"") * 10_000
    with pytest.raises(UndecodableBodyError, match="frames"):
        decoded(zstd.compress(frames), b"zstd, zstd", LIMIT)
    skippable = b"\x50\x2a\x4d\x18" + bytes(4)  # RFC 8878 3.1.2
    assert decoded(skippable + zstd.compress(TEXT) + skippable + zstd.compress(TEXT), b"zstd", LIMIT) == 2 * TEXT


def test_a_body_of_many_empty_gzip_members_is_undecodable() -> None:
    """Each member costs up to 10 us, and yields nothing that the limit could stop."""
    members = gzip.compress(b"") * 10_000
    with pytest.raises(UndecodableBodyError, match="more than 1,000 gzip members"):
        decoded(members, b"gzip", LIMIT)
    with pytest.raises(UndecodableBodyError, match="more than 1,000 gzip members"):
        decoded(zlib.compress(members), b"deflate", LIMIT)
    assert decoded(gzip.compress(TEXT) * 900, b"gzip", LIMIT) == 900 * TEXT


def test_several_codings_are_decoded_from_the_last_to_the_first() -> None:
    assert decoded(zlib.compress(gzip.compress(TEXT)), b"gzip, deflate", LIMIT) == TEXT


def test_a_coding_whose_library_is_missing_is_unknown() -> None:
    code = """
import sys
import scrapy.downloadermiddlewares.httpcompression  # newer ones cannot do without these libraries
sys.modules.update(dict.fromkeys(["brotli", "brotlicffi", "backports.zstd", "compression.zstd"]))
from scrapy_rep.fetching.decoding import UndecodableBodyError, decoded
for coding in (b"br", b"zstd"):
    try:
        decoded(b"x", coding, 9)
    except UndecodableBodyError as exc:
        print(exc)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert run.stdout == "unknown content coding 'br'\nunknown content coding 'zstd'\n", run.stderr
