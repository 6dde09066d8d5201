"""RepRobotParser: our parser with the interface of Scrapy's RobotParser."""

from collections.abc import Sequence

from scrapy.crawler import Crawler
from scrapy.robotstxt import RobotParser
from scrapy.utils.python import to_unicode

from scrapy_rep.protocol.robotstxt.parser import RobotsTxt
from scrapy_rep.protocol.robotstxt.syntax import is_product_token
from scrapy_rep.user_agent import ProductTokens, tokens_of_header


class RepRobotParser(RobotParser):
    """The parser that handlers of the signal `robots_parsed` get. Set as ROBOTSTXT_PARSER, it also works in Scrapy's
    own robots.txt middleware."""

    def __init__(self, robots: RobotsTxt) -> None:
        self.robots = robots

    @classmethod
    def from_crawler(cls, crawler: Crawler, robotstxt_body: bytes) -> "RepRobotParser":  # noqa: ARG003 - Scrapy's interface
        return cls(RobotsTxt.parse(robotstxt_body))

    def allowed(self, url: str | bytes, user_agent: str | bytes) -> bool:
        """Whether the absolute URL may be fetched. `user_agent`: a product token or a whole User-Agent."""
        try:
            return self.robots.allows(to_unicode(url, errors="replace"), _tokens(user_agent))
        except ValueError:  # a link such as `mailto:a@b.example`, to which no robots.txt applies
            return True

    def crawl_delay(self, user_agent: str | bytes | Sequence[str]) -> float | None:
        """The Crawl-delay in seconds; None if no group for the crawler has one. `user_agent`: as in `allowed`, or a
        list or tuple of product tokens in order of preference, as in ROBOTSTXT_USER_AGENT."""
        return self.robots.crawl_delay(_tokens(user_agent))

    def sitemaps(self) -> tuple[str, ...]:
        """The URLs of the sitemaps, as written in the robots.txt."""
        return self.robots.sitemaps


def _tokens(user_agent: str | bytes | Sequence[str]) -> ProductTokens:
    if not isinstance(user_agent, str | bytes):
        return tuple(user_agent)
    text = to_unicode(user_agent, "latin-1")
    return (text,) if is_product_token(text) else tokens_of_header(text.encode("utf-8"))
