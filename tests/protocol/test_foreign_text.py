"""How text of others is shown in the log: short, on one line, without passwords."""

from __future__ import annotations

import pytest

from scrapy_rep.protocol.foreign_text import printable, shortened, without_login


@pytest.mark.parametrize(("text", "shown"), [("12345", "12345"), ("123456", "1234…"), ("", "")])
def test_a_text_beyond_the_limit_ends_in_an_ellipsis(text: str, shown: str) -> None:
    assert shortened(text, 5) == printable(text, 5) == shown


def test_line_ends_and_control_characters_are_escaped_before_the_text_is_cut() -> None:
    assert printable("a\r\n2026 ERROR\x1b[1m\u202eé") == "a\\r\\n2026 ERROR\\x1b[1m\\u202eé"
    assert printable("\n" * 4, 5) == "\\n\\n…"
    assert printable("\n" * 1_000, None) == "\\n" * 1_000


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Cannot connect to me:secret@proxy:8080", "Cannot connect to proxy:8080"),
        ("the proxy proxy:8080", "the proxy proxy:8080"),
    ],
)
def test_a_login_without_a_scheme_is_left_out(text: str, shown: str) -> None:
    assert without_login(text) == shown


def test_a_login_in_a_url_is_left_out() -> None:
    assert printable("http://me:secret@proxy/ and socks5://me@host") == "http://proxy/ and socks5://host"
    assert printable("Disallow: *a:b@c") == "Disallow: *a:b@c", "no password"
