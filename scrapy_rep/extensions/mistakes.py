"""Warnings about mistakes: settings that conflict or have no effect, misspelt names, a User-Agent that is changed.

When the spider opens, `RepMiddleware` calls the functions in CHECKS. `InRequests` looks at requests, because only a
request shows some mistakes. The add-on itself warns of entries in DOWNLOADER_MIDDLEWARES that switch a middleware off.
"""

import os
import sys
from collections.abc import Mapping
from itertools import takewhile

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.offsite import OffsiteMiddleware
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.http import Response
from scrapy.settings import default_settings
from scrapy.utils.python import global_object_name

from scrapy_rep.extensions import Extension
from scrapy_rep.gate import Landing
from scrapy_rep.log import Logger, logger_of
from scrapy_rep.meta import DONT_OBEY, LICENSES_KEY, ROBOTS_TXT_REQUEST, TOKENS_KEY, USAGE_KEY
from scrapy_rep.protocol.foreign_text import printable
from scrapy_rep.scrapy_internals.downloads import PACE_META
from scrapy_rep.scrapy_internals.engine_state import downloader_middlewares
from scrapy_rep.settings import SETTINGS, nearest
from scrapy_rep.signals import request_forbidden

IN_ITS_PLACE = "RepMiddleware belongs in its place (order 100), where ADDONS = {'scrapy_rep.Addon': 500} puts it"
INSTEAD = (
    "For what your class adds, set REP_EXEMPT (hosts and paths), ROBOTSTXT_OBEY in custom_settings (spiders),"
    " REP_CRAWL_DELAY_MAX (Crawl-delay), REP_STATUS_POLICY (a stricter crawl), or REP_MEMORY_OCTETS (a bound on memory)"
)
SCRAPYS = ("ROBOTSTXT_OBEY", "ROBOTSTXT_USER_AGENT", "ROBOTSTXT_PARSER")
NAMES = (*SETTINGS, *SCRAPYS[:2])
KNOWN = {name.partition("_")[2]: name for name in NAMES} | {"ENABLED": "ROBOTSTXT_OBEY", "WHITELIST": "REP_EXEMPT"}
"""A setting, or another word for it, without its prefix -> the setting."""
KEYS = (DONT_OBEY, TOKENS_KEY, ROBOTS_TXT_REQUEST)
NO_MISTAKES = (*KEYS, USAGE_KEY, LICENSES_KEY)  # spiders may copy the last two from the meta of a response
GUESSES = ("robotstxt_obey", "obey_robotstxt", "ignore_robotstxt", "ignore_robots_txt", "ignore_robots")
"""What users write, in the meta of a request or as an attribute of the spider, to crawl without robots.txt."""
ATTRIBUTES = {name.lower(): name for name in NAMES} | dict.fromkeys((*GUESSES, DONT_OBEY), "ROBOTSTXT_OBEY")
ATTRIBUTES |= {"robots_user_agent": "ROBOTSTXT_USER_AGENT"}
"""An attribute of the spider, in lower case -> the setting that is meant. Only TOKENS_KEY is read."""


# When the spider opens.


def unknown_settings(crawler: Crawler, log: Logger) -> None:
    # From settings.py, Scrapy reads only the names in upper case.
    module = vars(sys.modules.get(os.environ.get("SCRAPY_SETTINGS_MODULE", ""), object))
    unread = (name for name in module if name.upper() in NAMES and name.upper() not in module)
    for name in (*map(str, crawler.settings), *unread):
        meant = None if name in SETTINGS or name in SCRAPYS else _meant_setting(name.upper())
        if meant is not None:
            cure = f"did you mean {meant}?" if meant else f"the settings are {', '.join(NAMES)}"
            log.warning("%s is no setting of scrapy-rep and has no effect; %s", name, cure)


def _meant_setting(name: str) -> str | None:
    """Return the setting that a wrong name probably means; "" if the name is meant for scrapy-rep, but resembles no
    setting; None if it is probably the project's own."""
    prefix, _, rest = name.partition("_")
    if prefix == "REP":
        # The last word is the most significant: FETCH_DELAY is a delay. MAX says nothing about the subject.
        words = [word for word in reversed(rest.split("_")) if word != "MAX"]
        sharing = (text for word in words for text in KNOWN if word in text.split("_"))
        return KNOWN.get(nearest(rest, KNOWN) or next(sharing, ""), "")
    meant = nearest(name, SCRAPYS) if prefix.startswith("ROBOTS") else None
    return KNOWN.get(nearest(rest, KNOWN) or "") if meant is None and prefix == "ROBOTSTXT" else meant


def another_robotstxt_middleware(crawler: Crawler, log: Logger) -> None:
    builtin = crawler.get_downloader_middleware(RobotsTxtMiddleware)
    if builtin is not None:
        path = global_object_name(type(builtin))
        log.warning(
            "%(path)s also obeys robots.txt, and reads it differently from scrapy-rep: switch it off with"
            " DOWNLOADER_MIDDLEWARES = {%(path)r: None}. %(more)s",
            {"path": path, "more": IN_ITS_PLACE if type(builtin) is RobotsTxtMiddleware else INSTEAD},
        )


def no_purposes(crawler: Crawler, log: Logger) -> None:
    if crawler.settings.getbool("REP_PURPOSES_REFUSE") and not crawler.settings.get("REP_PURPOSES"):
        log.warning("REP_PURPOSES_REFUSE refuses nothing: REP_PURPOSES is empty. Set it to a list such as ['train-ai']")


def another_parser(crawler: Crawler, log: Logger) -> None:
    parser = crawler.settings["ROBOTSTXT_PARSER"]
    class_name = getattr(parser, "__name__", str(parser)).rpartition(".")[2]
    if class_name not in {default_settings.ROBOTSTXT_PARSER.rpartition(".")[2], "RepRobotParser"}:
        log.warning("ROBOTSTXT_PARSER (%s) is not used: scrapy-rep parses robots.txt itself; remove it", parser)


def attributes_without_effect(crawler: Crawler, log: Logger) -> None:
    own, kinds = vars(crawler.spider), type(crawler.spider).__mro__
    values = {**{name: value for kind in kinds for name, value in vars(kind).items()}, **own}
    attributes = [name for name, value in values.items() if not (callable(value) or isinstance(value, property))]
    # Scrapy reads only the `custom_settings` of the class.
    late = own["custom_settings"] if isinstance(own.get("custom_settings"), Mapping) else {}
    for name in (*attributes, *(name for name, value in late.items() if crawler.settings.get(name) != value)):
        if name != TOKENS_KEY and (meant := ATTRIBUTES.get(str(name).lower())):
            log.warning("The spider's %s has no effect; set %s in its class's custom_settings, or with -s", name, meant)


CHECKS = (unknown_settings, another_robotstxt_middleware, no_purposes, another_parser, attributes_without_effect)


def name_earlier_middlewares(crawler: Crawler, ours: object) -> None:
    """Log which middlewares act later than the user may expect, if requests wait at the scheduler for robots.txt."""
    earlier = takewhile(lambda m: m is not ours, downloader_middlewares(crawler))
    # OffsiteMiddleware uses that signal itself.
    acting = [m for m in earlier if hasattr(m, "process_request") and not isinstance(m, OffsiteMiddleware)]
    if acting:
        logger_of(crawler).info(
            "%s: requests wait for robots.txt before these downloader middlewares, whose orders are lower than that of"
            " RepMiddleware. To let these middlewares act first, set REP_WAITING_MAX = 0, or use the signal"
            " request_scheduled",
            ", ".join(type(m).__qualname__ for m in acting),
        )


# When a request shows the mistake.


WATCHED = 1_000  # pages to look at; a component that changes the User-Agent usually does so from the start


class InRequests(Extension):
    """Looks at the requests of the first pages, and at the requests that are refused. To look at each request of the
    crawl would take too much time."""

    def start(self) -> None:
        self._left = WATCHED
        # An earlier moment would miss download handlers that change the headers.
        self._gate.after_download.append(self._look_at_page)
        self._crawler.signals.connect(self._look_at_meta, signal=request_forbidden)

    def _look_at_page(self, request: Request, response: Response, _landing: Landing | None) -> None:
        self._left -= 1
        if self._left <= 0:
            # A new list, because the gate walks through this one now.
            self._gate.after_download = [look for look in self._gate.after_download if look != self._look_at_page]
        self._look_at_meta(request)
        # For a page from a cache or from another middleware, no request was sent. (But spiders may copy this key.)
        if PACE_META[0] in request.meta and "cached" not in response.flags:
            self._look_at_user_agent(request)

    def _look_at_user_agent(self, request: Request) -> None:
        tokens = self._gate.user_agent.unsent_tokens(request)
        # None: no robots.txt applies, or memory no longer has a usable one
        if tokens and self._gate.peek(request) is not None and self._is_first("another User-Agent"):
            sent = (request.headers.get(b"User-Agent") or b"").decode("latin-1")
            self._log.warning(
                "%(request)s was sent with the User-Agent %(sent)r, but judged by the rules for %(tokens)s",
                {"request": request, "sent": printable(sent), "tokens": " or ".join(map(repr, tokens))},
            )
            self._log.warning(
                "A middleware or download handler changes the User-Agent: let it send the product token, or set"
                " ROBOTSTXT_USER_AGENT"
            )

    def _look_at_meta(self, request: Request) -> None:
        own = getattr(self._crawler.spider, TOKENS_KEY, None)
        if own != self._gate.user_agent.spiders_own and self._is_first("a late attribute"):
            self._log.warning("The spider's %s = %r comes too late; set it in its class or __init__", TOKENS_KEY, own)
        for key in request.meta:
            if not isinstance(key, str) or "robots" not in key.lower() or key in NO_MISTAKES:
                continue
            meant = DONT_OBEY if key.lower() in GUESSES else nearest(key.lower(), KEYS)
            if meant is not None and self._is_first("a misspelt key"):
                self._log.warning(
                    "request.meta[%r] has no effect; did you mean %r? The first such request: %s", key, meant, request
                )
