"""How much of a robots.txt is read, and in which encoding (RFC 9309 sections 2.5 and 2.2.2, last paragraph)."""

from __future__ import annotations

import pytest
from asking import ORIGIN, TOKEN, allows, parse

from scrapy_rep.protocol.robotstxt.parser import PARSING_LIMIT, RobotsTxt

BODY = b"user-agent: *\ndisallow: /a\ndisallow: /bc\n"
AFTER_A = BODY.index(b"disallow: /bc")


def patterns(body: bytes, limit: int) -> list[str]:
    return [rule.pattern for group in RobotsTxt.parse(body, limit).groups for rule in group.rules]


def test_parsing_anything_but_bytes_is_a_type_error() -> None:
    for body in (BODY.decode(), None):
        with pytest.raises(
            TypeError, match=f"needs the bytes of a robots.txt, not {type(body).__name__}: use response"
        ):
            RobotsTxt.parse(body)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [bytearray, memoryview])
def test_a_body_is_any_bytes(kind: type) -> None:
    robots = RobotsTxt.parse(kind(BODY))
    assert robots == RobotsTxt.parse(BODY)
    assert not robots.allows("/a", TOKEN)
    assert type(robots.octets) is bytes


def test_the_limit_is_at_least_500_kibibytes() -> None:
    assert PARSING_LIMIT >= 500 * 1024


def test_lines_that_end_at_the_limit_are_read() -> None:
    filler = b"#" * (PARSING_LIMIT - len(BODY) - 1) + b"\n"
    robots = parse(filler + BODY)
    assert not robots.allows(f"{ORIGIN}/bc", TOKEN)
    assert not robots.truncated


def test_lines_beyond_the_limit_are_not_read() -> None:
    filler = b"user-agent: *\ndisallow: /x\n" + b"#" * PARSING_LIMIT + b"\n"
    robots = parse(filler + b"disallow: /a\n")
    assert robots.truncated
    assert not robots.allows(f"{ORIGIN}/x", TOKEN)
    assert robots.allows(f"{ORIGIN}/a", TOKEN)


@pytest.mark.parametrize(
    ("limit", "read", "truncated"),
    [
        pytest.param(len(BODY) + 1, ["/a", "/bc"], False, id="2.5-below-the-limit"),
        pytest.param(len(BODY), ["/a", "/bc"], False, id="2.5-exactly-the-limit"),
        pytest.param(len(BODY) - 1, ["/a", "/bc"], True, id="2.5-only-the-line-end-lies-beyond"),
        pytest.param(len(BODY) - 2, ["/a"], True, id="2.5-the-last-octet-lies-beyond"),
        pytest.param(AFTER_A + 1, ["/a"], True, id="2.5-one-octet-of-a-line"),
        pytest.param(AFTER_A, ["/a"], True, id="2.5-none-of-a-line"),
        pytest.param(AFTER_A - 1, ["/a"], True, id="2.5-a-line-whole-its-end-beyond"),
        pytest.param(AFTER_A - 2, [], True, id="2.5-half-a-line"),
        pytest.param(1, [], True, id="2.5-one-octet"),
    ],
)
def test_a_line_that_the_limit_cuts_is_dropped(limit: int, read: list[str], truncated: bool) -> None:
    assert patterns(BODY, limit) == read
    assert RobotsTxt.parse(BODY, limit).truncated is truncated


@pytest.mark.parametrize("end", [pytest.param(b"\r", id="2.5-cr"), pytest.param(b"\r\n", id="2.5-crlf")])
def test_a_line_is_whole_with_any_line_end(end: bytes) -> None:
    body = BODY.replace(b"\n", end)
    limit = body.index(b"/bc")
    assert patterns(body, limit) == ["/a"]
    assert patterns(body, body.index(b"/a") + 2) == ["/a"]
    assert patterns(body, body.index(b"/a") + 1) == []


def test_a_body_without_line_ends_beyond_the_limit_is_nothing() -> None:
    robots = RobotsTxt.parse(b"user-agent: * disallow: /", 10)
    assert robots.octets == b""
    assert robots.truncated


def test_the_last_line_needs_no_end_below_the_limit() -> None:
    body = BODY.rstrip(b"\n")
    assert patterns(body, len(body)) == ["/a", "/bc"]


def test_half_a_rule_never_forbids_the_site() -> None:
    body = b"user-agent: *\ndisallow: /private\n"
    limit = body.index(b"private")
    assert RobotsTxt.parse(body, limit).allows(f"{ORIGIN}/", TOKEN)


RULES = "user-agent: *\ndisallow: /é\n"


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(RULES.encode(), id="2.3-utf-8"),
        pytest.param(b"\xef\xbb\xbf" + RULES.encode(), id="2.3-utf-8-with-a-mark"),
        pytest.param(b"\xff\xfe" + RULES.encode("utf-16-le"), id="2.2.2-may-bridge-utf-16-little-endian"),
        pytest.param(b"\xfe\xff" + RULES.encode("utf-16-be"), id="2.2.2-may-bridge-utf-16-big-endian"),
        pytest.param(b"\xef\xbb\xbf\xef\xbb\xbf" + RULES.encode(), id="2.3-two-marks"),
        pytest.param(b"\xef\xbb\xbf" * 1_000 + RULES.encode(), id="2.3-many-marks"),
        pytest.param(b"\xff\xfe\xff\xfe" + RULES.encode("utf-16-le"), id="2.2.2-may-bridge-utf-16-two-marks"),
        pytest.param(b"\xfe\xff" + f"\ufeff{RULES}".encode("utf-16-be"), id="2.2.2-may-bridge-utf-16-two-marks-big"),
    ],
)
def test_an_encoding_that_its_mark_tells(body: bytes) -> None:
    robots = parse(body)
    assert robots.octets == RULES.encode()
    assert not robots.allows(f"{ORIGIN}/é", TOKEN)


@pytest.mark.parametrize(
    "mark",
    [
        pytest.param(b"\xef\xbb", id="2.2-half-a-mark"),
        pytest.param(b"\xef", id="2.2-a-third-of-a-mark"),
        pytest.param(b"\xef\xbb\xbf\xef\xbb", id="2.2-a-mark-and-half-a-mark"),
        pytest.param(b" \xef\xbb\xbf", id="2.2-a-mark-not-at-the-start"),
        pytest.param("\ufeff".encode("utf-7"), id="2.2-a-mark-of-another-encoding"),
    ],
)
def test_anything_else_before_the_first_key_makes_it_another_key(mark: bytes) -> None:
    assert allows(mark + RULES.encode(), "/é")


@pytest.mark.parametrize("mark", [b"\xff\xfe", b"\xfe\xff"])
@pytest.mark.parametrize("first_line", [b"# a comment", b"", b"Sitemap: /s.xml", b"U"])
def test_after_a_false_mark_of_utf_16_only_the_first_line_is_lost(mark: bytes, first_line: bytes) -> None:
    robots = parse(mark + first_line + b"\n" + RULES.encode())
    assert not robots.allows(f"{ORIGIN}/é", TOKEN)
    assert [ignored.line for ignored in robots.ignored] == [1]


@pytest.mark.parametrize("mark", [b"\xff\xfe", b"\xfe\xff"])
def test_a_mark_of_the_other_octet_order_is_no_utf_16(mark: bytes) -> None:
    encoding = "utf-16-be" if mark == b"\xff\xfe" else "utf-16-le"
    assert parse(mark + RULES.encode(encoding)).groups == ()


@pytest.mark.parametrize("first", ["#\u0416", "\u0416", "\u2014\u2014", "\U0001f916 robots", ""])
@pytest.mark.parametrize(("mark", "encoding"), [(b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")])
def test_utf_16_with_a_mark_may_begin_with_anything(first: str, mark: bytes, encoding: str) -> None:
    body = mark + f"{first}\n{RULES}".encode(encoding)
    assert parse(body).octets == f"{first}\n{RULES}".encode()


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("first", ["User-agent: a", "Sitemap: /s.xml # \u0416", " \tuser agent : *", "# a", "", "no"])
def test_utf_16_without_a_mark_is_read_if_it_has_a_record(first: str, line_end: str, encoding: str) -> None:
    text = line_end.join([first, *RULES.splitlines(), ""])
    robots = parse(text.encode(encoding))
    assert robots.octets == text.replace(line_end, "\n").encode()
    assert not robots.allows(f"{ORIGIN}/é", TOKEN)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("nonsense\n# Disallow: /\n".encode("utf-16-le"), id="2.2-no-record"),
        pytest.param(b"u\0ser-agent: *\ndisallow: /\n", id="2.2-one-nul"),
        pytest.param(b"\0" * 20, id="2.2-nothing-but-nul"),
        pytest.param(b"u\0", id="2.2-one-character"),
        pytest.param(b"\0", id="2.2-half-a-character"),
    ],
)
def test_anything_else_with_nul_is_read_as_octets(body: bytes) -> None:
    octets = b"\n".join(line.rstrip(b" \t\0") for line in body.split(b"\n"))
    assert parse(body).octets == octets


PAGE = "<!doctype html>\n<title>Sitemap: all pages</title>\n  body { color: red }\n <p>\n  Allow all\n </p>\n"


@pytest.mark.parametrize(
    ("body", "is_page"),
    [
        pytest.param(PAGE, True, id="html"),
        pytest.param(f"\ufeff \t\r\n\n{PAGE}", True, id="a-mark-and-white-space"),
        pytest.param(PAGE.encode("utf-16"), True, id="utf-16"),
        pytest.param('<?xml version="1.0"?><Error/>', True, id="xml"),
        pytest.param("<", True, id="no-more-than-its-beginning"),
        pytest.param(f"{PAGE}\nUser-agent: *\n", False, id="a-user-agent-line"),
        pytest.param(f"{PAGE} Disallow: /x", False, id="a-rule"),
        pytest.param(f"{PAGE}\nSitemap: /s.xml\n</html>", False, id="a-sitemap"),
        pytest.param("Not found <br>\n", False, id="another-beginning"),
        pytest.param("", False, id="empty"),
        pytest.param("# <\n", False, id="a-comment"),
    ],
)
def test_markup_without_a_record_is_a_page(body: str | bytes, is_page: bool) -> None:
    assert parse(body).is_markup_without_records is is_page


def test_malformed_utf_16_is_read_up_to_the_error() -> None:
    body = b"\xff\xfe" + RULES.encode("utf-16-le") + b"\x00\xd8" + b"\n"
    assert not parse(body).allows(f"{ORIGIN}/é", TOKEN)


@pytest.mark.parametrize(
    ("octets_beyond", "read"),
    [
        pytest.param(0, ["/a", "/é"], id="2.5-utf-16-exactly-the-limit"),
        pytest.param(2, ["/a"], id="2.5-utf-16-the-line-end-lies-beyond-by-more-than-an-octet"),
        pytest.param(4, ["/a"], id="2.5-utf-16-a-character-lies-beyond"),
        pytest.param(5, ["/a"], id="2.5-utf-16-half-a-character"),
    ],
)
def test_the_limit_counts_octets_as_they_came(octets_beyond: int, read: list[str]) -> None:
    body = b"\xff\xfe" + "user-agent: *\ndisallow: /a\ndisallow: /é\n".encode("utf-16-le")
    assert patterns(body, len(body) - octets_beyond) == read


def test_a_byte_order_mark_counts_to_the_limit() -> None:
    body = b"\xef\xbb\xbf" + BODY
    assert patterns(body, len(body)) == ["/a", "/bc"]
    assert patterns(body, len(body) - 3) == ["/a"]
