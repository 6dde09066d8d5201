"""Beyond the standard: several product tokens in order of preference, as Google's specification has them."""

from __future__ import annotations

import pytest
from asking import ORIGIN, parse

from scrapy_rep.protocol.robotstxt.parser import RobotsTxt
from scrapy_rep.protocol.robotstxt.rules import Verdict, VerdictReason

NEWS = b"""\
User-agent: googlebot
Disallow: /a
Crawl-delay: 2

User-agent: googlebot-news
Disallow: /b
Crawl-delay: 3

User-agent: *
Disallow: /c
Crawl-delay: 4
"""


@pytest.mark.parametrize(
    ("tokens", "found", "forbidden", "delay"),
    [
        pytest.param("googlebot", "googlebot", "/a", 2.0, id="google-one"),
        pytest.param(["googlebot-news", "googlebot"], "googlebot-news", "/b", 3.0, id="google-the-first"),
        pytest.param(["googlebot", "googlebot-news"], "googlebot", "/a", 2.0, id="google-the-order-is-the-callers"),
        pytest.param(["googlebot-image", "googlebot"], "googlebot", "/a", 2.0, id="google-the-second"),
        pytest.param(("x", "y"), "*", "/c", 4.0, id="google-none-of-them"),
        pytest.param((), "*", "/c", 4.0, id="google-no-token"),
        pytest.param(["*", "googlebot"], "*", "/c", 4.0, id="google-everyone-first"),
    ],
)
def test_several_tokens_in_order_of_preference(
    tokens: str | list[str] | tuple[str, ...], found: str, forbidden: str, delay: float
) -> None:
    robots = RobotsTxt.parse(NEWS)
    verdicts = {path: robots.verdict(ORIGIN + path, tokens) for path in ("/a", "/b", "/c")}
    assert [path for path, verdict in verdicts.items() if not verdict.allowed] == [forbidden]
    assert {verdict.product_token for verdict in verdicts.values()} == {found}
    assert robots.crawl_delay(tokens) == delay


def test_without_a_group_for_any_token_or_everyone_all_is_allowed() -> None:
    robots = parse("User-agent: z\nDisallow: /\n")
    assert robots.verdict(f"{ORIGIN}/", ["x", "y"]) == Verdict(True, VerdictReason.NO_GROUP)
    assert robots.crawl_delay(["x", "y"]) is None
