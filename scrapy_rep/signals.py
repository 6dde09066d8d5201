"""The signals of this package, for extensions and for users' own code.

If a handler raises an exception, it is logged, and nothing else changes (Scrapy's `send_catch_log`). Most requests of a
crawl are allowed by a robots.txt that is known already. For these, no signal is sent.
"""

import asyncio
from typing import Any

from scrapy.crawler import Crawler

from scrapy_rep.log import logger_of
from scrapy_rep.scrapy_internals import compat

robots_parsed = compat.robots_parsed
"""The robots.txt of an origin was parsed for the first time in this crawl. Arguments: `robotparser`
(`robotparser.RepRobotParser`) and `request`. From Scrapy 2.18 on, this is `scrapy.signals.robots_parsed`."""

robots_response = object()
"""One request for a robots.txt has ended. Each redirect and each retry is a request of its own. Arguments:

- `answer` (`Answer`);
- `request`: the request that needed the robots.txt;
- `response`: None without a response, and for one from a private address after a redirect from a public host.
  Else Scrapy's response before its body is decoded. A body that is longer than REP_BODY_LIMIT may be incomplete,
  because the download was stopped. `response.request` is the request for the robots.txt."""

robots_known = object()
"""An attempt to find or fetch an origin's robots.txt has ended. While robots.txt is unreachable and requests wait, more
attempts follow (`info.pause`). Arguments:

- `origin` (`Origin`);
- `info` (`OriginInfo`): what is known of the origin now;
- `before` and `result` (`LastResult`): its result before, or None, and its result now;
- `request`: the request that needed the robots.txt;
- `fetched`: False if nothing was requested, because the entry in REP_STORAGE or in memory was enough."""

request_waited = object()
"""A request has waited for its origin's robots.txt. Arguments: `request`, `seconds` (float)."""

request_forbidden = object()
"""A request is refused; or, in a dry run (REP_DRY_RUN), would be. Arguments: `request`, `verdict` (`Verdict`)."""


def send(crawler: Crawler, signal: object, **arguments: Any) -> None:
    """Send the signal. Exceptions of its handlers are logged."""
    try:
        crawler.signals.send_catch_log(signal, **arguments)
    # Scrapy catches only Exception. A task is cancelled only where it awaits, so this is never our task's cancellation.
    except asyncio.CancelledError:
        logger_of(crawler).exception("A handler of one of the signals of scrapy-rep has failed")
