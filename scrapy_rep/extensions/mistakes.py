"""WARNINGs about mistakes that only a request shows: a misspelt key in its meta, or another User-Agent."""

from __future__ import annotations

from scrapy import Request, signals
from scrapy.utils.asyncio import call_later

from scrapy_rep.extensions import Extension
from scrapy_rep.fetching.request import ROBOTS_TXT_REQUEST
from scrapy_rep.protocol.foreign_text import printable
from scrapy_rep.settings import nearest
from scrapy_rep.signals import request_forbidden, request_waited
from scrapy_rep.usage import USAGE_KEY
from scrapy_rep.user_agent import META_KEY

WATCHED = 100  # downloads to check; a component that changes the User-Agent usually does so from the start


class SentUserAgent(Extension):
    """Checks the first downloads of a crawl, then disconnects from the signal."""

    def start(self) -> None:
        self._left = WATCHED
        # An earlier signal would miss download handlers that change the headers. A later signal is also sent for pages
        # from a cache or another middleware, for which no request was sent.
        self._crawler.signals.connect(self._downloaded, signal=signals.response_downloaded)

    def _downloaded(self, request: Request) -> None:
        if self._left <= 0 or ROBOTS_TXT_REQUEST in request.meta:
            return
        self._left -= 1
        tokens = self._gate.user_agent.unsent_tokens(request)
        # None: no robots.txt applies, or memory no longer has a usable one
        if tokens and self._gate.peek(request) is not None:
            self._left = 0
            sent = (request.headers.get(b"User-Agent") or b"").decode("latin-1")
            self._log.warning(
                "%(request)s was sent with the User-Agent %(sent)r, but judged by the rules for %(tokens)s",
                {"request": request, "sent": printable(sent), "tokens": " or ".join(map(repr, tokens))},
            )
            self._log.warning(
                "A middleware or download handler changes the User-Agent: let it send the product token, or set"
                " ROBOTSTXT_USER_AGENT"
            )
        if self._left == 0:
            # A receiver that disconnects while a signal is sent makes the dispatcher skip the next receiver.
            call_later(0, self._crawler.signals.disconnect, self._downloaded, signals.response_downloaded)


KEYS = ("dont_obey_robotstxt", META_KEY, ROBOTS_TXT_REQUEST)
NO_MISTAKES = (*KEYS, USAGE_KEY)  # spiders may copy the last one from the meta of a response


class MisspeltMeta(Extension):
    """Looks at requests that wait or are refused. To look at each request of the crawl would take too much time."""

    def start(self) -> None:
        for signal in (request_waited, request_forbidden):
            self._crawler.signals.connect(self._look, signal=signal)

    def _look(self, request: Request) -> None:
        for key in request.meta:
            meant = nearest(key, KEYS) if isinstance(key, str) and "robots" in key and key not in NO_MISTAKES else None
            if meant is not None and self._is_first("a misspelt key"):
                self._log.warning(
                    "request.meta[%r] has no effect; did you mean %r? The first such request: %s", key, meant, request
                )
