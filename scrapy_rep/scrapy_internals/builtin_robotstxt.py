"""Scrapy's own robots.txt middleware and parser, for `scrapy robots --compare`."""

from dataclasses import dataclass
from typing import Any

from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.http import Request, Response
from scrapy.robotstxt import RobotParser
from scrapy.settings import BaseSettings
from scrapy.utils.httpobj import urlparse_cached
from scrapy.utils.misc import build_from_crawler, load_object


@dataclass(frozen=True, slots=True)
class BuiltinAnswer:
    """Whether Scrapy's own middleware or parser allows a URL, and what it decided by."""

    allowed: bool
    user_agent: str
    """The text in which the parser searches for the names in the User-agent lines."""
    parser: RobotParser | None = None
    """The parser with the rules; None if there are no rules, so everything is allowed."""
    status: int | None = None
    """The HTTP status of the robots.txt; None if there was no HTTP response."""
    scheme: str = ""
    """The scheme of the host's first URL, with which its robots.txt was fetched. Empty if `status` is None."""


class BuiltinMiddleware(RobotsTxtMiddleware):
    """Scrapy's own middleware, in the same crawl as ours. It makes its own requests for robots.txt."""

    def __init__(self, crawler: Crawler) -> None:
        """Raises NotConfigured if ROBOTSTXT_OBEY is False."""
        super().__init__(crawler)
        self._robotstxt_useragent = _first_of(self._robotstxt_useragent)
        self._schemes: dict[str, str] = {}
        self._statuses: dict[str, int] = {}

    async def answer(self, request: Request) -> BuiltinAnswer:
        url = urlparse_cached(request)
        scheme = self._schemes.setdefault(url.netloc, url.scheme)
        parser = await self.robot_parser(request)
        status = self._statuses.get(url.netloc)
        user_agent = self._robotstxt_useragent or self._default_useragent
        allowed = parser is None or parser.allowed(request.url, user_agent)
        return BuiltinAnswer(allowed, user_agent, parser, status, "" if status is None else scheme)

    def _parse_robots(self, response: Response, netloc: str, *request: Request) -> Any:
        # Since Scrapy 2.18, this method is a coroutine and also takes the request.
        self._statuses[netloc] = response.status
        return super()._parse_robots(response, netloc, *request)


class BuiltinParser:
    """The parser of ROBOTSTXT_PARSER, for the robots.txt with this body."""

    def __init__(self, settings: BaseSettings, body: bytes) -> None:
        self._parser = parsed(load_object(settings["ROBOTSTXT_PARSER"]), body)
        self._user_agent: str = _first_of(settings["ROBOTSTXT_USER_AGENT"]) or settings["USER_AGENT"]

    def answer(self, url: str) -> BuiltinAnswer:
        return BuiltinAnswer(self._parser.allowed(url, self._user_agent), self._user_agent, self._parser)


def parsed(kind: type[RobotParser], body: bytes) -> RobotParser:
    """Return a parser of this class for the robots.txt with this body."""
    crawler: Any = None  # the parsers use the crawler only for logging
    return build_from_crawler(kind, crawler, body)


def _first_of(user_agent: Any) -> Any:
    """Return the first User-Agent of a list. Scrapy's own middleware accepts only a single one."""
    return user_agent[0] if isinstance(user_agent, list | tuple) else user_agent
