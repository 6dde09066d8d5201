"""The product token of a User-Agent, and which tokens decide about a request (RFC 9309 2.2.1).

The tokens are in the meta of a request, in an attribute of the spider, or in ROBOTSTXT_USER_AGENT. If they are in none
of these places, the User-Agent has the token (`product_token`).
"""

import json
import logging
import re
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any
from weakref import WeakKeyDictionary

from scrapy import Request, Spider
from scrapy.http import Headers
from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings
from scrapy.utils.python import to_bytes, to_unicode, without_none_values

from scrapy_rep.log import Logger
from scrapy_rep.meta import TOKENS_KEY
from scrapy_rep.protocol.robotstxt.syntax import EVERYONE, IDENTIFIER, is_product_token

logger = logging.getLogger("scrapy_rep")

SETTING = "ROBOTSTXT_USER_AGENT"

ProductTokens = tuple[str, ...]
"""Product tokens in order of preference. Empty if the crawler has no name; then only the groups of `*` apply."""


class UserAgent:
    """The crawl's product tokens, and those of requests that have their own."""

    def __init__(self, settings: BaseSettings, spider: Spider | None) -> None:
        """Raises ValueError for a wrong value; the message names the setting or attribute, the value and the cure."""
        self._sent, self._sent_by = user_agent_sent(settings, spider)
        self.spiders_own = getattr(spider, TOKENS_KEY, None)
        configured = _configured(settings, spider)
        self._configured = configured is not None
        by_header = tokens_of_header(self._sent), f"the User-Agent in {self._sent_by}"
        self.product_tokens, self.source = configured or by_header
        self._own_tokens: WeakKeyDictionary[Request, ProductTokens] = WeakKeyDictionary()
        """Request with a User-Agent of its own -> the tokens that decided about it."""
        self._has_warned_of_meta = False

    def tokens(self, request: Request, *, decides: bool = True) -> ProductTokens:
        """Return the tokens that apply to this request. A wrong value in its meta is logged once, and ignored.

        `decides` is whether the tokens decide about the request now. `unsent_tokens` needs to know.
        """
        meta = request.meta.get(TOKENS_KEY)
        if meta is not None:
            try:
                return tokens_of_value(meta, f"request.meta[{TOKENS_KEY!r}]")
            except ValueError as exc:
                if not self._has_warned_of_meta:
                    self._has_warned_of_meta = True
                    logger.warning(
                        "%s. Without such a value, the product tokens of the crawl decide about the request", exc
                    )
                return self.product_tokens
        if not self._configured and (headers := request.headers) and b"User-Agent" in headers:
            tokens = tokens_of_header(headers.get(b"User-Agent"))
            if decides:
                self._own_tokens[request] = tokens
            return tokens
        return self.product_tokens

    def unsent_tokens(self, request: Request) -> ProductTokens:
        """Return the tokens that decided about a request, if it was sent with a User-Agent that has none of them.

        Otherwise, the result is empty. It is always empty for tokens from the request's meta, and if `*` is one of the
        tokens. If the user set the tokens, the result is also empty for a request that was sent with the crawl's own
        User-Agent, because `log_tokens` has checked that header.
        """
        sent = request.headers.get(b"User-Agent")
        decided = self._own_tokens.get(request, self.product_tokens)
        if TOKENS_KEY in request.meta or EVERYONE in decided:
            return ()
        if self._configured:
            shown = (sent or b"").lower()
            agrees = sent == self._sent or any(token.lower().encode() in shown for token in decided)
        else:
            agrees = tokens_of_header(sent) == decided
        return () if agrees else decided or (EVERYONE,)

    def log_tokens(self, log: Logger) -> None:
        """Log the product tokens at INFO, and what is wrong with the User-Agent that site owners see: it does not show
        the tokens, or seems to have a longer name."""
        names = " or ".join(map(repr, self.product_tokens))
        log.info(
            "Crawler's name in robots.txt (product token): %s (from %s)%s",
            names or "none, so only the groups of '*' apply",
            self.source,
            ", falling back to '*'" if set(self.product_tokens) - {EVERYONE} else "",
        )
        # If the user has set the tokens, the User-Agent of a browser is no mistake.
        is_browser = self._configured and not tokens_of_header(self._sent)
        self._log_faults(log, logging.INFO if is_browser else logging.WARNING)

    def _log_faults(self, log: Logger, level: int) -> None:
        header = (self._sent or b"").decode("utf-8", "replace")
        sent, say = f"{header!r} (from {self._sent_by})", partial(log.log, level)
        if not self.product_tokens and not self._configured:
            say(
                "The User-Agent %s names no crawler, so only the groups of '*' apply. Set USER_AGENT or"
                " ROBOTSTXT_USER_AGENT",
                sent,
            )
        for token in self.product_tokens:
            if not self._configured and is_doubtful(token, header):
                say(
                    "The product token %r is no name, or a part of one, in the User-Agent %s. Write the crawler's"
                    " name as one word of letters, such as 'ExampleBot', or set ROBOTSTXT_USER_AGENT",
                    token,
                    sent,
                )
            if token != EVERYONE and token.lower() not in header.lower():
                say(
                    "The product token %r (from %s) is not in the User-Agent that is sent, %s. Make them agree"
                    " (RFC 9309 2.2.1)",
                    token,
                    self.source,
                    sent,
                )


def _configured(settings: BaseSettings, spider: Spider | None) -> tuple[ProductTokens, str] | None:
    """Return the tokens that the user set, and where. None if there are none; then the User-Agent decides."""
    setting = settings.get(SETTING), f"the setting {SETTING}"
    attribute = getattr(spider, TOKENS_KEY, None), f"the spider's {TOKENS_KEY}"
    is_above_spider = (settings.getpriority(SETTING) or 0) > SETTINGS_PRIORITIES["spider"]
    for value, source in (setting, attribute) if is_above_spider else (attribute, setting):
        if value:
            return tokens_of_value(value, source), source
    return None


def user_agent_sent(settings: BaseSettings, spider: Spider | None) -> tuple[bytes | None, str]:
    """Return the User-Agent that Scrapy gives to a request without one, and where it was set."""
    headers = Headers(without_none_values(settings["DEFAULT_REQUEST_HEADERS"]))
    if b"User-Agent" in headers:
        return headers.get(b"User-Agent"), "DEFAULT_REQUEST_HEADERS"
    sent, sent_by = settings["USER_AGENT"], "USER_AGENT"
    if spider is not None and hasattr(spider, "user_agent"):
        sent, sent_by = spider.user_agent, "the spider's user_agent"
    if sent and not isinstance(sent, str | bytes):
        raise ValueError(f"{sent_by} is {sent!r}; set it to one User-Agent such as 'ExampleBot/1.0'")
    return to_bytes(sent) if sent else None, sent_by


@lru_cache(maxsize=1024)
def tokens_of_header(user_agent: bytes | None) -> ProductTokens:
    """Return the product token in a User-Agent header; empty if the header names no crawler."""
    token = product_token(to_unicode(user_agent, "latin-1")) if user_agent else None
    return (token,) if token is not None else ()


def tokens_of_value(value: Any, source: str) -> ProductTokens:
    """Return the tokens in a value: one in a string; several in a list or tuple, in order of preference. Raises
    ValueError for any other value."""
    values = (value,) if isinstance(value, str) else value
    if isinstance(value, str) and value.startswith("["):  # a list in JSON, from the command line
        try:
            values = json.loads(value)
        except ValueError:
            values = ()
    if not isinstance(values, Sequence) or not values or not all(isinstance(v, str) and v for v in values):
        raise ValueError(
            f"{source} is {value!r}; set it to a product token such as 'ExampleBot',"
            " or to a list of them in order of preference"
        )
    return _tokens_of_texts(tuple(values), source)


@lru_cache(maxsize=1024)  # so that the warning is logged once, not for each request
def _tokens_of_texts(texts: tuple[str, ...], source: str) -> ProductTokens:
    found = {text: text if is_product_token(text) else product_token(text) for text in texts}
    for text, token in found.items():
        if token != text:
            wrong = re.sub(IDENTIFIER, "", text)
            logger.warning(
                "%s is %r, which is %s; %s. Set it to a product token such as 'ExampleBot'%s",
                source,
                text,
                "a whole User-Agent" if set(wrong) & set("/();") else f"no product token, because of {wrong!r}",
                f"its product token {token!r} is used" if token else "it is ignored, because it names no crawler",
                f", or to a list such as {re.split(', *', text)}" if set(wrong) <= {",", " "} and "," in wrong else "",
            )
    return tuple(token for token in found.values() if token is not None)


# The token of a User-Agent header.

# The first words of a platform, such as `Windows NT 10.0` or `Intel Mac OS X 14_4_1`.
_PLATFORM = "|".join(
    """
    windows nt win32 win64 wow64 x64 x86 x86_64 amd64 i386 i586 i686 arm arm64 aarch64 armv7l armv8l x11 wayland linux u
    macintosh mac os x intel ppc iphone ipad ipod cpu cros freebsd openbsd netbsd sunos unix tablet desktop en
    """.split()
)
# A language, or a word that introduces an address, such as `contact: me@example.com`. With a version, they are names:
# `my-AI/1.0`, `See/1.0`.
_WORD = "[a-z]{2}[-_][A-Z]{2}|(?i:about|by|contact|e-?mail|for|from|info|mail|more|please|see|url|visit|web|website)"
_NO_NAME = rf"(?:(?i:{_PLATFORM})|(?:{_WORD})(?!/))(?![A-Za-z0-9_.-])"
# A comment may be cut off.
_COMMENT = re.compile(r"\([^()]*(?:\)|\Z)")
# An identifier with a letter. Not the beginning of an address: `bot@...`, `https://...`, `mailto:...`, `+example.com`.
_NAME = rf"(?:\+(?![^\s/;,]*\.))?(?!www\.|{_NO_NAME})(?=[0-9_.-]*[A-Za-z])({IDENTIFIER})(?![A-Za-z0-9_.-]|@|:\S)"
# `... Safari/605.1.15 (Applebot/0.1; +http://...)`: browsers have no version at the start of a comment.
_AT_START_OF_COMMENT = re.compile(rf"\(\s*{_NAME}/[0-9]")
# At the start of a word. So `5.0` is no product, nor is anything within an address.
_PRODUCT = re.compile(rf"(?<![^\s,;()]){_NAME}")
# The first name after each `compatible;` that is at the start of a part.
_AFTER_COMPATIBLE = re.compile(rf"\b(?i:compatible);(?=(?:[^();]*;)*?\s*{_NAME})")

# The products of browsers. Crawlers send these products, too, so they do not identify a crawler.
BROWSERS = frozenset(
    """
    mozilla compatible applewebkit khtml gecko like version mobile chrome chromium headlesschrome crios crmo safari
    firefox fxios seamonkey opera opr opios presto msie trident edge edg edga edgios samsungbrowser vivaldi yabrowser
    brave ucbrowser silk duckduckgo konqueror epiphany ubuntu android
    """.split()
)


def product_token(user_agent: str) -> str | None:
    """Return the product token in a crawler's User-Agent header; None if the header names no crawler.

    The token is the first product outside comments, because products are in order of significance (RFC 9110 10.1.5).
    If that product is a browser's, a product after `compatible;` (Figure 1) counts first, then the next products
    outside comments, then a product with a version at the start of a comment.
    """
    without_comments = user_agent
    while (shorter := _COMMENT.sub(" ", without_comments)) != without_comments:
        without_comments = shorter
    named = _PRODUCT.findall(without_comments)
    if not named or named[0].lower() in BROWSERS:
        named = [*_AFTER_COMPATIBLE.findall(user_agent), *named, *_AT_START_OF_COMMENT.findall(user_agent)]
    return next((token for token in named if token.lower() not in BROWSERS), None)


def is_doubtful(token: str, user_agent: str) -> bool:
    """Whether the token seems to be no name in the header, or only a part of one.

    Examples are `City` in `City Scrapers`, `City! Scrapers` and `City: Scrapers`, `C` in `C++Bot`, `Crawler` in
    `Web Crawler`, and `mailto` in `mailto: me@example.com`.
    """
    rest = rf"(?:[^A-Za-z0-9_.\s/,;:()<>\[\]|-]|\s+(?:&\s*)?(?!\+|v?[0-9]){_NAME}|:\s+(?:www\.|\S*(?:@|/[0-9/])))"
    # Words before the token were not taken for names.
    name = rf"(?<![^\s,;()+]){re.escape(token)}{rest}|^\s*(?:Mozilla/\S+\s+)?(?:[A-Za-z_-]+\s+)+{re.escape(token)}"
    return re.search(name, user_agent) is not None
