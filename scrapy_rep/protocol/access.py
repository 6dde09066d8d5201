"""Where an origin's robots.txt is, and what fetching it means (RFC 9309 section 2.3)."""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import urlsplit

from .freshness import SILENT, Caching
from .patterns import spellings

ROBOTS_PATH = "/robots.txt"  # 2.3: all lower case, in the top-level path
MAX_REDIRECTS = 5  # RFC 9309 2.3.1.2: "at least five"
DEFAULT_PORTS = {"http": 80, "https": 443, "ftp": 21}  # RFC 9110 4.2.1, 4.2.2; RFC 1738 3.2
_LOOSE_IPV4 = re.compile(r"(?:0[xX][0-9a-fA-F]*|[0-9]+)(?:\.(?:0[xX][0-9a-fA-F]*|[0-9]+)){0,3}")
# RFC 6761 6.3, RFC 6762, RFC 8375; ICANN's resolution 2024.07.29.06, where clouds keep their metadata.
PRIVATE_NAMES = frozenset({"localhost", "local", "home.arpa", "internal"})
# RFC 4291 2.5.5 (mapped, and compatible as it once was), RFC 6052, RFC 3056: the IPv4 address follows the prefix.
EMBEDDING_IPV4 = tuple(map(ipaddress.IPv6Network, ("::ffff:0:0/96", "::/96", "64:ff9b::/96", "2002::/16")))
# Where Python's versions differ: RFC 6890 2.2.2, RFC 3879.
NOT_GLOBAL = tuple(map(ipaddress.ip_network, ("192.0.0.0/24", "fec0::/10")))
# Not held to any robots.txt: they name no service that could have one.
WITHOUT_ROBOTS = frozenset({"data", "file", "s3"})


class Origin(NamedTuple):  # asked for its hash with every request, and a tuple's costs a third of a dataclass's
    """What one robots.txt holds for: scheme, host and port, never the host alone (2.3; RFC 6454 4)."""

    scheme: str
    """Lower case."""
    host: str
    """Lower case, IDNA, no trailing dot, no brackets."""
    port: int | None
    """None for the scheme's default."""

    @classmethod
    def of(cls, url: str) -> Origin | None:
        """None where no robots.txt could hold: `data:`, `file:`, `s3:`, no authority, or a malformed one."""
        scheme = url.find(":")
        if url[scheme : scheme + 3] != "://":
            return None
        path = url.find("/", scheme + 3)
        return cls._of(url[:path] if path > 0 else url)

    @classmethod
    @lru_cache(maxsize=4096)  # nearly every request of a crawl is for an origin that was asked for just before
    def _of(cls, url: str) -> Origin | None:
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError:
            return None
        if not parts.scheme or parts.scheme in WITHOUT_ROBOTS or not (host := _canonical_host(host or "")):
            return None
        return cls(parts.scheme, host, None if port == DEFAULT_PORTS.get(parts.scheme) else port)

    @property
    def robots_url(self) -> str:
        """`scheme://authority/robots.txt` (2.3)."""
        return f"{self}{ROBOTS_PATH}"

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}" + (f":{self.port}" if self.port is not None else "")


def _canonical_host(host: str) -> str:
    host = host.removesuffix(".")
    try:
        return ipaddress.ip_address(host).compressed
    except ValueError:
        pass
    if _LOOSE_IPV4.fullmatch(host):
        try:
            # As resolvers read them: `127.1`, `2130706433` and `0x7f.0.0.1` are 127.0.0.1.
            return socket.inet_ntoa(socket.inet_aton(host))
        except OSError:
            pass
    try:
        # RFC 3490 3.1: other full stops than `.` end up as one.
        return host.encode("idna").decode("ascii").lower().removesuffix(".")
    except UnicodeError:
        return host.lower()


class AccessResult(Enum):
    """What fetching a robots.txt came to (2.3.1)."""

    SUCCESS = "success"
    """2.3.1.1: the parseable rules are followed."""
    REDIRECT = "redirect"
    """2.3.1.2: followed; never the last word."""
    UNAVAILABLE = "unavailable"
    """2.3.1.3: everything is allowed."""
    RESTRICTED = "restricted"
    """Nothing is allowed, for as long as rules would hold: a policy's answer to 401 and 403, never RFC 9309's."""
    UNREACHABLE = "unreachable"
    """2.3.1.4: nothing is allowed, and robots.txt is asked for again with backoff."""


REDIRECT_STATUSES = frozenset({301, 302, 303, 307, 308})

StatusRow = tuple[Iterable[int], AccessResult, str]

# Each row with its source; the first that holds a status decides it.
RFC9309: tuple[StatusRow, ...] = (
    (range(200, 300), AccessResult.SUCCESS, "RFC 9309 2.3.1.1"),
    (REDIRECT_STATUSES, AccessResult.REDIRECT, "RFC 9309 2.3.1.2; RFC 9110 15.4"),
    ((407,), AccessResult.UNREACHABLE, "RFC 9110 15.5.8: the proxy's answer, not the server's"),
    (range(400, 500), AccessResult.UNAVAILABLE, "RFC 9309 2.3.1.3"),
    (range(500, 600), AccessResult.UNREACHABLE, "RFC 9309 2.3.1.4"),
)
OTHER_STATUS = AccessResult.UNREACHABLE  # RFC 9309 2.3.1.4: undefined, so complete disallow

CAUTIOUS: tuple[StatusRow, ...] = (
    ((401, 403), AccessResult.RESTRICTED, "the 1996 draft 3.1: access restricted, regard the site as off limits"),
    ((429,), AccessResult.UNREACHABLE, "Google's crawlers: a server that is overloaded"),
    *RFC9309,
)

POLICIES: Mapping[str, tuple[StatusRow, ...]] = {"rfc9309": RFC9309, "cautious": CAUTIOUS}

# What a policy of one's own may make of a status. Only a success is ever read as rules.
OVERRIDES = {
    result.value: result for result in (AccessResult.UNAVAILABLE, AccessResult.RESTRICTED, AccessResult.UNREACHABLE)
}


def result_of(status: int, rows: Iterable[StatusRow]) -> AccessResult:
    """The access result of a status, by a policy's rows. Total: a status in no row is unreachable."""
    return next((result for statuses, result, _source in rows if status in statuses), OTHER_STATUS)


@dataclass(frozen=True, slots=True)
class Answer:
    """What one request for a robots.txt brought: a status, or none and the cause."""

    status: int | None
    body: bytes = b""
    """Of a success, no more than one octet past the limit; of anything else it is never read."""
    location: str | None = None
    """Where a redirect leads, absolute; None where its Location is missing or malformed."""
    cause: str = ""
    """Why there is no status, for people."""
    dropped: bool = False
    """Another component refused the request: asking again soon would only be refused again."""
    retry_after: float = 0.0
    """Seconds from now before which the server does not want to be asked again (RFC 9110 10.2.3)."""
    caching: Caching = SILENT
    response_delay: float = 0.0
    """Seconds on the wire (RFC 9111 4.2.3)."""
    replayed: bool = False
    """It comes from a cache of the crawl's own, which replays what is older than a robots.txt may be."""
    offline: bool = False
    """And nothing newer is to be had, by the user's wish."""


def judge(answer: Answer, rows: Iterable[StatusRow]) -> tuple[AccessResult, str]:
    """What an answer means, and the answer in words."""
    if answer.status is None:
        return AccessResult.UNREACHABLE, answer.cause
    return result_of(answer.status, rows), f"HTTP {answer.status}"


def why_not_followed(url: str, location: str | None, *, private: bool) -> str | None:
    """What is wrong with a redirect from `url` to there; None where it may be followed.

    `private`: hosts that are public may redirect to addresses that are not.
    """
    origin = Origin.of(location) if location else None
    if location is None or origin is None:
        return "without a Location that can be followed"
    if origin.scheme not in {"http", "https"}:
        return f"to {origin.scheme}:, which is neither http nor https"
    # RFC 9110 4.2.4: from an untrusted source, "treat its presence as an error".
    if "@" in urlsplit(location).netloc:
        return "to an address with user information in it"
    if "%" in origin.host:
        return "to a host in disguise"  # who reads it decoded reads another
    source = Origin.of(url)
    if not private and source is not None and is_private(origin.host) and not is_private(source.host):
        return f"from a public host to {origin.host}, which is private (REP_REDIRECT_PRIVATE)"
    return None


def is_private(host: str) -> bool:
    """Whether an origin's host is literally a loopback, private, link-local or other address that is not global, or a
    name for private use."""
    if host in PRIVATE_NAMES or host.endswith(tuple(f".{name}" for name in PRIVATE_NAMES)):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address):
        embedded = next((net for net in EMBEDDING_IPV4 if address in net), None)
        if embedded is not None:
            address = ipaddress.IPv4Address(int(address) >> (96 - embedded.prefixlen) & 0xFFFFFFFF)
    return not address.is_global or any(address in net for net in NOT_GLOBAL)


def is_worth_a_retry(answer: Answer, access: AccessResult) -> bool:
    """Whether the same request may well fare better a moment later: no answer, or a server error (2.3.1.4), but for
    those that name their time."""
    if access is not AccessResult.UNREACHABLE or answer.dropped or answer.retry_after:
        return False
    return answer.status is None or answer.status in range(500, 600)


def is_robots_txt(url: str) -> bool:
    """Whether the URL is a robots.txt itself, exactly, which is always allowed (2.2.2)."""
    return spellings(url)[0] == ROBOTS_PATH
