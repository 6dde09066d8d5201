"""What Scrapy's own robots.txt middleware and parser answer, for `scrapy robots --compare`.

Touches private attributes and methods of the middleware. Without them, less is known of why an answer is as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.robotstxt import RobotParser
from scrapy.settings import BaseSettings
from scrapy.utils.httpobj import urlparse_cached
from scrapy.utils.misc import build_from_crawler, load_object


@dataclass(frozen=True, slots=True)
class BuiltinAnswer:
    """Whether a URL is allowed."""

    allowed: bool
    user_agent: str
    """The text in which it looks for the names in robots.txt."""
    parser: RobotParser | None = None
    """None if it has no rules, and allows everything."""
    status: int | None = None
    """Of the robots.txt; None if that is a file, or there was no answer."""
    scheme: str = ""
    """Of the first URL of the host, which robots.txt was fetched with; empty if robots.txt is a file."""


class BuiltinMiddleware(RobotsTxtMiddleware):
    """Beside ours in a crawl. It makes its own requests for robots.txt."""

    def __init__(self, crawler: Crawler) -> None:
        """Raises NotConfigured if ROBOTSTXT_OBEY is False."""
        super().__init__(crawler)
        self._robotstxt_useragent = _one(self._robotstxt_useragent)
        self._schemes: dict[str, str] = {}
        self._statuses: dict[str, int] = {}

    async def answer(self, request: Request) -> BuiltinAnswer:
        url = urlparse_cached(request)
        scheme = self._schemes.setdefault(url.netloc, url.scheme)
        parser = await self.robot_parser(request)
        status = self._statuses.get(url.netloc)
        try:
            self.process_request_2(parser, request)
            allowed = True
        except IgnoreRequest:
            allowed = False
        user_agent = self._robotstxt_useragent or self._default_useragent
        return BuiltinAnswer(allowed, user_agent, parser, status, "" if status is None else scheme)

    def _parse_robots(self, response: Response, netloc: str, *request: Request) -> Any:
        # A coroutine, with the request, since Scrapy 2.18.
        self._statuses[netloc] = response.status
        return super()._parse_robots(response, netloc, *request)


class BuiltinParser:
    """The parser alone, for the robots.txt with this body."""

    def __init__(self, settings: BaseSettings, body: bytes) -> None:
        self._parser = parsed(load_object(settings["ROBOTSTXT_PARSER"]), body)
        self._user_agent: str = _one(settings["ROBOTSTXT_USER_AGENT"]) or settings["USER_AGENT"]

    def answer(self, url: str) -> BuiltinAnswer:
        return BuiltinAnswer(self._parser.allowed(url, self._user_agent), self._user_agent, self._parser)


def parsed(kind: type[RobotParser], body: bytes) -> RobotParser:
    """The robots.txt with this body, as that parser reads it."""
    crawler: Any = None  # the parsers take it only for their log
    return build_from_crawler(kind, crawler, body)


def _one(user_agent: Any) -> Any:
    """The first of several, which Scrapy's own middleware does not know."""
    return user_agent[0] if isinstance(user_agent, list | tuple) else user_agent
