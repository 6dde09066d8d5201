"""Each line with a key and a value, for directives that this package does not read (RFC 9309 section 2.2.4)."""

from __future__ import annotations

import pytest
from asking import parse
from hypothesis import given, strategies as st

from scrapy_rep.protocol.robotstxt.groups import Record

FILE = b"""\
# Nobody's.
NoIndex : /drafts/  # a comment
User Agent: ExampleBot/1.0 (x)
noindex:/a#b
user-agent: *
Sitemap: /s.xml
Disalow: /caf\xe9
<html>
Allow
Disallow:
allow /x
\xd0\x9a\xd0\x9b\xd0\xae\xd0\xa7: 1:2
Disallow / please
USERAGENT: b
Crawl delay: soon
"""


def test_every_record_is_there_with_its_group() -> None:
    assert parse(FILE).records == (
        Record(2, None, "noindex", b"/drafts/"),
        Record(3, 0, "user-agent", b"ExampleBot/1.0 (x)"),
        Record(4, 0, "noindex", b"/a"),
        Record(5, 0, "user-agent", b"*"),
        Record(6, None, "sitemap", b"/s.xml"),
        Record(7, 0, "disallow", b"/caf\xe9"),
        Record(10, 0, "disallow", b""),
        Record(11, 0, "allow", b"/x"),
        Record(12, 0, "ключ", b"1:2"),
        Record(14, 1, "user-agent", b"b"),
        Record(15, 1, "crawl-delay", b"soon"),
    )


@pytest.mark.parametrize(
    ("octets", "value"),
    [
        pytest.param("/é".encode(), "/é", id="2.2-utf-8"),
        pytest.param(b"/\xe9", "/é", id="2.2-latin-1-where-it-is-no-utf-8"),
    ],
)
def test_a_value_is_text(octets: bytes, value: str) -> None:
    (record,) = parse(b"x: " + octets).records
    assert (record.octets, record.value) == (octets, value)


LINES = st.sampled_from(["User-agent: a", "user agent: *", "Disallow: /x", "allow /", "Disallow: x", "Noindex: /", "-"])


@given(st.lists(LINES, max_size=12))
def test_records_belong_to_the_groups_that_there_are(lines: list[str]) -> None:
    robots = parse("\n".join(lines))
    assert {record.group for record in robots.records} - {None} == set(range(len(robots.groups)))
    for record in robots.records:
        if record.key in {"allow", "disallow"} and record.group is not None and record.value.startswith("/"):
            assert record.line in [rule.line for rule in robots.groups[record.group].rules]
        if record.key == "user-agent":
            assert record.group is not None
            assert record.value in robots.groups[record.group].product_tokens
