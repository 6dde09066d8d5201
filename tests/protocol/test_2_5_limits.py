"""How much of a robots.txt is read, and in which encoding (RFC 9309 sections 2.5 and 2.2.2, last paragraph)."""

from __future__ import annotations

import pytest
from asking import ORIGIN, TOKEN, allows, parse

from scrapy_rep.protocol.robotstxt.parser import PARSING_LIMIT, Ignored, RobotsTxt

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
@pytest.mark.parametrize("first", ["User-agent: a", "Sitemap: /s.xml# \u0416", " \tuser agent : *", "# a", "", "no"])
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
    assert parse(body).octets.replace(b"\0", b"") == body.replace(b"\0", b"").rstrip(b" ")
    assert not parse(body).groups


PAGE = "<!doctype html>\n<title>Sitemap: all pages</title>\n  body { color: red }\n <p>\n  Allow all\n </p>\n"


@pytest.mark.parametrize(
    ("body", "is_page"),
    [
        pytest.param(PAGE, True, id="html"),
        pytest.param(f"\ufeff \t\r\n\n{PAGE}", True, id="a-mark-and-white-space"),
        pytest.param(PAGE.encode("utf-16"), True, id="utf-16"),
        pytest.param('<?xml version="1.0"?><Error/>', True, id="xml"),
        pytest.param("<", True, id="no-more-than-its-beginning"),
        pytest.param(f"{PAGE}\nUser-agent: *\n", True, id="a-user-agent-line"),
        pytest.param(f"{PAGE} Disallow: /x", True, id="a-rule-in-no-group"),
        pytest.param(f"{PAGE} Disallow: /x\nUser-agent: *\n", True, id="a-rule-above-the-group"),
        pytest.param(f"{PAGE}\nSitemap: /s.xml\n</html>", True, id="a-sitemap"),
        pytest.param(f"{PAGE}\nUser-agent: *\nDisallow: x\n", True, id="a-rule-that-matches-nothing"),
        pytest.param(f"{PAGE}\nUser-agent: *\n</p>\n Disallow: /x", False, id="a-rule-in-a-group"),
        pytest.param("Not found <br>\n", False, id="another-beginning"),
        pytest.param("", False, id="empty"),
        pytest.param("# <\n", False, id="a-comment"),
    ],
)
def test_markup_without_a_rule_in_a_group_is_a_page(body: str | bytes, is_page: bool) -> None:
    assert (parse(body).is_markup and not parse(body).has_rules) is is_page


# Pages that a browser makes of a text file.
TEXT = "User-agent: *\r\nDisallow: /a&amp;b\nDisallow: /&lt;é&#32;\n"
CHROMIUM = (
    '<html><head><meta name="color-scheme" content="light dark"></head><body>'
    f'<pre style="word-wrap: break-word; white-space: pre-wrap;">{TEXT}</pre></body></html>'
)
BROWSER_PAGES = [
    pytest.param(CHROMIUM, id="chromium"),
    pytest.param(
        f'<html><head><link rel="stylesheet" href="resource://content-accessible/plaintext.css"><title></title></head>'
        f"<body><pre>{TEXT}</pre></body></html>",
        id="firefox",
    ),
    pytest.param(f"<!DOCTYPE html>\n<HTML>\n<BODY>\n<PRE>\n{TEXT}</PRE>\n</BODY>\n</HTML>\n", id="without-a-head"),
    pytest.param(f"<pre>{TEXT}</pre>\n", id="a-pre-alone"),
    pytest.param(
        CHROMIUM.replace("</body>", '<div class="json-formatter-container"></div></body>'), id="chromium-formatter"
    ),
]


@pytest.mark.parametrize("page", BROWSER_PAGES)
def test_the_text_in_the_page_of_a_browser_is_the_robots_txt(page: str) -> None:
    robots = parse(page)
    assert [rule.pattern for rule in robots.groups[0].rules] == ["/a&b", "/<é"]
    assert not robots.allows(f"{ORIGIN}/a&b", TOKEN)
    assert robots.from_browser
    assert not robots.is_markup or robots.has_rules
    assert robots.ignored == (Ignored(1, "", "the page around this text, which a browser made"),)


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(CHROMIUM.replace("</pre>", "</pre><p>"), id="more-than-a-pre"),
        pytest.param(CHROMIUM.replace("<pre", "<h1>robots.txt</h1><pre"), id="a-heading-before-it"),
        pytest.param(CHROMIUM.replace("/a&amp;b", "<b>/a</b>"), id="markup-in-it"),
        pytest.param(CHROMIUM.replace(TEXT, "Not found\n"), id="no-record"),
        pytest.param(CHROMIUM.removesuffix("</pre></body></html>"), id="cut"),
        pytest.param(f"# {CHROMIUM}", id="another-beginning"),
        pytest.param(CHROMIUM.replace("&amp;", f"&#{'9' * 5_000};"), id="a-number-too-long-for-int"),
    ],
)
def test_any_other_page_is_read_as_it_stands(page: str) -> None:
    assert not parse(page).from_browser
    assert parse(page).octets == page.replace("\r\n", "\n").encode()


def test_the_limit_is_for_the_text_in_the_page() -> None:
    page = "<html><body><pre>User-agent: *\nDisallow: /a\nDisallow: /b\n</pre></body></html>"
    assert not RobotsTxt.parse(page.encode(), 40).truncated
    robots = RobotsTxt.parse(page.encode(), 27)
    assert [rule.pattern for rule in robots.groups[0].rules] == ["/a"]
    assert robots.truncated


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
