"""Origins: scheme, host (IDNA) and port. Each origin has its own robots.txt (RFC 9309 2.3)."""

import ipaddress
import re
import socket
from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import urlsplit

from scrapy_rep.protocol.robotstxt.patterns import ROBOTS_PATH

DEFAULT_PORTS = {"http": 80, "https": 443, "ftp": 21}  # RFC 9110 4.2.1, 4.2.2; RFC 1738 3.2
# A WebSocket begins with a request of http or https to the same host and port (RFC 6455 4.1).
_OF_WEBSOCKET = {"ws": "http", "wss": "https"}
# URLs with these schemes belong to no server that could have a robots.txt.
WITHOUT_ROBOTS = frozenset({"data", "file", "s3"})
# Programs skip control characters and spaces before a URL, and TAB, CR and LF in it.
_HTTP = re.compile(r"[\0- ]*(?:h\s*t\s*t\s*p|w\s*s)\s*(?:s\s*)?:", re.IGNORECASE)
_LOOSE_IPV4 = re.compile(r"(?:0[xX][0-9a-fA-F]*|[0-9]+)(?:\.(?:0[xX][0-9a-fA-F]*|[0-9]+)){0,3}")


class Origin(NamedTuple):  # each request hashes its origin, and a tuple's hash takes a third of a dataclass's time
    """A scheme, a host and a port. A robots.txt is for all three together, not for the host alone (2.3; RFC 6454 4)."""

    scheme: str
    """The scheme in lower case. For `ws:` and `wss:` URLs, it is http or https."""
    host: str
    """The host in lower case and IDNA, without a trailing dot and without brackets."""
    port: int | None
    """The port; None for the scheme's default."""

    @staticmethod
    def of(url: str) -> "Origin | None":
        """Return the URL's origin; None without a well-formed authority, and for `data:`, `file:` and `s3:` URLs."""
        scheme = url.find(":")
        if url[scheme : scheme + 3] != "://":
            return None
        path = url.find("/", scheme + 3)
        return parsed_origin(url[:path] if path > 0 else url)

    @property
    def robots_url(self) -> str:
        """`scheme://authority/robots.txt` (2.3)."""
        return f"{self}{ROBOTS_PATH}"

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}" + (f":{self.port}" if self.port is not None else "")


@lru_cache(maxsize=4096)  # the requests of a moment have few different origins
def parsed_origin(url: str) -> Origin | None:
    """Return the URL's origin, as `Origin.of` does. The URL may be cut after its authority."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if not parts.scheme or parts.scheme in WITHOUT_ROBOTS or not (host := _canonical_host(host or "")):
        return None
    scheme = _OF_WEBSOCKET.get(parts.scheme, parts.scheme)
    return Origin(scheme, host, None if port == DEFAULT_PORTS.get(scheme) else port)


def needs_host(url: str) -> bool:
    """Whether the URL must have an origin, because its scheme is http, https, ws or wss.

    Without an origin it is not harmless: some programs read `a` as the host of `http:///a/b`.
    """
    return _HTTP.match(url) is not None


def address_of(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the host as an IP address; None if the host is a name."""
    if ":" not in host and not host[-1:].isdigit():  # only for speed
        return None
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _canonical_host(host: str) -> str:
    host = host.removesuffix(".")
    address = address_of(host)
    if address is not None:
        return address.compressed
    if _LOOSE_IPV4.fullmatch(host):
        with suppress(OSError):
            # Resolvers read `127.1`, `2130706433` and `0x7f.0.0.1` as 127.0.0.1.
            return socket.inet_ntoa(socket.inet_aton(host))
    try:
        # All kinds of full stops become `.` (RFC 3490 3.1).
        return host.encode("idna").decode("ascii").lower().removesuffix(".")
    except UnicodeError:
        return host.lower()
