"""Which redirects are followed: not those from a public host to a private one (RFC 9309 section 2.3.1.2)."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from scrapy_rep.protocol.origin import Origin

MAX_REDIRECTS = 5  # RFC 9309 2.3.1.2: "at least five"
# RFC 6761 6.3, RFC 6762, RFC 8375; ICANN's resolution 2024.07.29.06, where clouds keep their metadata.
PRIVATE_NAMES = frozenset({"localhost", "local", "home.arpa", "internal"})
# RFC 4291 2.5.5 (mapped, and compatible as it once was), RFC 6052, RFC 3056: the IPv4 address follows the prefix.
EMBEDDING_IPV4 = tuple(map(ipaddress.IPv6Network, ("::ffff:0:0/96", "::/96", "64:ff9b::/96", "2002::/16")))
# Where Python's versions differ: RFC 6890 2.2.2, RFC 3879.
NOT_GLOBAL = tuple(map(ipaddress.ip_network, ("192.0.0.0/24", "fec0::/10")))


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
