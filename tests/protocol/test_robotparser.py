"""Our parser behind Scrapy's RobotParser interface."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from asking import ORIGIN, parse

from scrapy_rep import RepRobotParser

PARSER = RepRobotParser(parse("User-agent: ExampleBot\nDisallow: /a\nCrawl-delay: 2\nSitemap: /s.xml\n"))


@pytest.mark.parametrize("agent", ["ExampleBot", b"ExampleBot", "Mozilla/5.0 (compatible; ExampleBot/0.1)"])
def test_an_agent_is_a_product_token_or_a_whole_user_agent(agent: str | bytes) -> None:
    assert [PARSER.allowed(f"{ORIGIN}{path}", agent) for path in ("/a", "/b")] == [False, True]
    assert PARSER.crawl_delay(agent) == 2.0


@pytest.mark.parametrize("agent", ["", "OtherBot", "Mozilla/5.0"])
def test_an_agent_without_a_group_is_allowed(agent: str) -> None:
    assert PARSER.allowed(f"{ORIGIN}/a", agent)
    assert PARSER.crawl_delay(agent) is None


@pytest.mark.parametrize(
    ("agents", "delay"),
    [(["other-bot", "examplebot"], 2.0), (("examplebot",), 2.0), (["other-bot", "another-bot"], None), ([], None)],
)
def test_a_delay_for_several_product_tokens(agents: Sequence[str], delay: float | None) -> None:
    assert PARSER.crawl_delay(agents) == delay


@pytest.mark.parametrize("link", ["mailto:a@example.com", "tel:1", "javascript:void(0)", "example.com/a", b"\xff"])
def test_a_link_that_no_robots_txt_is_about_is_no_error(link: str | bytes) -> None:
    assert PARSER.allowed(link, "ExampleBot")


def test_the_sitemaps_are_those_of_the_file() -> None:
    assert PARSER.sitemaps() == ("/s.xml",)
