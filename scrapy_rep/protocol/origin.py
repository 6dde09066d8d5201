"""Origins: each has a robots.txt of its own (RFC 9309 section 2.3)."""

from __future__ import annotations

import ipaddress
import re
import socket
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import urlsplit

from scrapy_rep.protocol.robotstxt.patterns import ROBOTS_PATH

DEFAULT_PORTS = {"http": 80, "https": 443, "ftp": 21}  # RFC 9110 4.2.1, 4.2.2; RFC 1738 3.2
# URLs of these schemes name no service that could have a robots.txt.
WITHOUT_ROBOTS = frozenset({"data", "file", "s3"})
_LOOSE_IPV4 = re.compile(r"(?:0[xX][0-9a-fA-F]*|[0-9]+)(?:\.(?:0[xX][0-9a-fA-F]*|[0-9]+)){0,3}")


class Origin(NamedTuple):  # every request needs its hash, which costs a third of a dataclass's
    """A scheme, a host and a port: a robots.txt is for these three, never for the host alone (2.3; RFC 6454 4)."""

    scheme: str
    """Lower case."""
    host: str
    """Lower case, IDNA, no trailing dot, no brackets."""
    port: int | None
    """None for the scheme's default."""

    @staticmethod
    def of(url: str) -> Origin | None:
        """The URL's origin; None if it has none: `data:`, `file:`, `s3:`, no authority, or a malformed one."""
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


@lru_cache(maxsize=4096)  # nearly every request of a crawl has the origin of the one before
def parsed_origin(url: str) -> Origin | None:
    """As `Origin.of`, from a URL of which only scheme and authority matter."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if not parts.scheme or parts.scheme in WITHOUT_ROBOTS or not (host := _canonical_host(host or "")):
        return None
    return Origin(parts.scheme, host, None if port == DEFAULT_PORTS.get(parts.scheme) else port)


def address_of(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address that the host is; None if it is a name."""
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
        try:
            # As resolvers do: `127.1`, `2130706433` and `0x7f.0.0.1` are 127.0.0.1.
            return socket.inet_ntoa(socket.inet_aton(host))
        except OSError:
            pass
    try:
        # RFC 3490 3.1: all kinds of full stops become `.`.
        return host.encode("idna").decode("ascii").lower().removesuffix(".")
    except UnicodeError:
        return host.lower()
