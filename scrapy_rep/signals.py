"""Signals that tell what happened, for your own code as for this package's extensions.

They are sent with Scrapy's `send_catch_log`: an exception in a handler is logged and changes nothing else. No signal is
sent for a request that is allowed by a robots.txt known already: those are most of a crawl.
"""

from __future__ import annotations

from scrapy_rep.scrapy_internals import compat

robots_parsed = compat.robots_parsed
"""An origin's rules were read for the first time in this crawl: `robotparser` (`robotparser.RepRobotParser`) and
`request`. From Scrapy 2.18 on, this is `scrapy.signals.robots_parsed`."""

robots_response = object()
"""One request for a robots.txt has ended: `answer` (`protocol.access_result.Answer`), `request`, the request that
needed the robots.txt, `response` (Scrapy's, as it came: its body is neither decoded nor cut, its `request` is the one
for the robots.txt; None if there was none, or if a redirect of a public host led to a private address). Redirects and
retries are requests of their own."""

robots_known = object()
"""An attempt to find or fetch an origin's robots.txt has ended: `origin` (`protocol.origin.Origin`), `info`
(`origin_info.OriginInfo`), what is known of the origin now, `request`, the request that needed the robots.txt,
`fetched` (bool): False if it was found in REP_STORAGE. While robots.txt is unreachable and requests wait, more attempts
follow (`info.pause`)."""

request_waited = object()
"""A request has waited for its origin's robots.txt: `request`, `seconds` (float)."""

request_forbidden = object()
"""A request is refused, or would be if this were no dry run (REP_DRY_RUN): `request`, `verdict` (`Verdict`)."""
