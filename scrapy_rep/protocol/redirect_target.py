"""Which redirect targets are refused, and why: above all private addresses (RFC 9309 2.3.1.2).

By default, the crawler follows no redirect from a public to a private host (REP_REDIRECT_PRIVATE): that host may be in
the crawler's own network. There are two checks:

1. `why_not_followed` judges a host by its name, or by the address that the URL has in place of a name.
2. An answer that comes from a private address is dropped (`Ask.must_be_public`). A proxy hides the address.
"""

import ipaddress
import re
from urllib.parse import urlsplit

from scrapy_rep.protocol.answer import Answer
from scrapy_rep.protocol.foreign_text import printable
from scrapy_rep.protocol.origin import Origin, address_of

# The names are from RFC 6761 6.3, RFC 6762 and its appendix G, RFC 8375, ICANN's resolutions 2018.02.04.12 and
# 2024.07.29.06, and the hosts files of Unix systems. Clouds serve their metadata under `internal`.
PRIVATE_NAMES = frozenset(
    "localhost localdomain ip6-localhost ip6-loopback local home.arpa internal intranet private corp home lan".split()
)
_PRIVATE_ENDINGS = tuple(f".{name}" for name in PRIVATE_NAMES)
# In these IPv6 networks, an IPv4 address follows the prefix: RFC 4291 2.5.5 (mapped and compatible), RFC 2765 2.1,
# RFC 6052, RFC 3056.
EMBEDDING_IPV4 = tuple(
    map(ipaddress.IPv6Network, ("::ffff:0:0/96", "::ffff:0:0:0/96", "::/96", "64:ff9b::/96", "2002::/16"))
)
# Python's versions disagree about whether these networks are global: RFC 6890 2.2.2, RFC 3879, RFC 8215.
NOT_GLOBAL = tuple(map(ipaddress.ip_network, ("192.0.0.0/24", "fec0::/10", "64:ff9b:1::/48")))
# The characters of an authority (RFC 1035 2.3.4). Programs disagree about the host of `http://a\b/`. They also disagree
# about `http://0127.0.0.1/`: `_AUTHORITY` matches it, and `_is_clear` rejects it.
_LABEL = "[A-Za-z0-9_-]{1,63}"
_AUTHORITY = re.compile(rf"(?:\[[0-9A-Fa-f:.]+\]|{_LABEL}(?:\.{_LABEL})*\.?)(?::[0-9]*)?")
MAX_HOST = 253  # characters; 255 octets by RFC 1035 2.3.4, less the octets for the first label's length and the root
_ENDS_IN_NUMBER = re.compile(r"(?:.*\.)?(?:[0-9]+|0[xX][0-9A-Fa-f]*)")  # URL Standard 3.5


def with_authority(base: str, url: str, *, is_one_slash: bool) -> str | None:
    """Return an http or https URL without an authority, such as `http:/robots.txt`, as browsers read it (URL Standard
    4.4): a reference relative to `base`, or the host after the slashes. None if it cannot be read.

    `is_one_slash`: whether one slash follows the scheme in the URL as it was written.
    """
    scheme, _, rest = url.partition(":")
    path = rest.lstrip("/")
    if scheme == urlsplit(base).scheme and path and (path == rest or path.startswith("?")):
        return url if path == rest else path  # `http:a` and `http:?a` are relative (RFC 3986 5.2.2)
    if scheme not in {"http", "https"} or path in {"", rest}:
        return None
    # Departs from the URL Standard for `http:///robots.txt`: no host is named `robots.txt`, and Scrapy's own middleware
    # requests this path of the same host, too.
    if scheme == urlsplit(base).scheme and (is_one_slash or "/" not in path):
        return f"/{path}"
    return f"{scheme}://{path}"


def why_not_followed(url: str, location: str, *, private: bool) -> str | None:
    """Return why the crawler does not follow a redirect from `url` to `location`; None if it may be followed.

    Both URLs are absolute; `location` is empty if there is none that can be read. `private` is whether a public host
    may redirect to a private host (REP_REDIRECT_PRIVATE).
    """
    origin, source = Origin.of(location), Origin.of(url)
    # Python 3.10 takes an IPv4 address in brackets for a host.
    if origin is None or ("//[" in location and ":" not in origin.host):
        return "without a Location that can be followed"
    scheme, authority, *_ = urlsplit(location)
    if scheme not in {"http", "https"}:
        return f"to {scheme}:, which is neither http nor https"
    # RFC 9110 4.2.4 about user information from an untrusted source: "treat its presence as an error".
    if "@" in authority:
        return "to an address with user information in it"
    if not private and source is not None and is_private(origin.host) and not is_private(source.host):
        return f"from a public host to {printable(origin.host)}, which is private (REP_REDIRECT_PRIVATE)"
    if not _is_clear(authority, origin.host):
        return "to a malformed or ambiguous host"
    return None


def _is_clear(authority: str, host: str) -> bool:
    if len(host) > MAX_HOST or not _AUTHORITY.fullmatch(authority):
        return False
    if authority.startswith("["):
        return True
    written = authority.partition(":")[0].lower().removesuffix(".")
    return written == host and (address_of(host) is not None or not _ENDS_IN_NUMBER.fullmatch(host))


def is_private(host: str) -> bool:
    """Whether a host is outside the public internet, judged by its name or address alone.

    A private host has a name for private use, such as `localhost`, or an address that is loopback, private, link-local,
    multicast or otherwise not global. Any other name may resolve to a private address, too.
    """
    if host in PRIVATE_NAMES or host.endswith(_PRIVATE_ENDINGS):
        return True
    address = address_of(host)
    if address is None:
        return False
    embedded = next((net for net in EMBEDDING_IPV4 if address in net), None)
    if embedded is not None:
        address = ipaddress.IPv4Address(int(address) >> (96 - embedded.prefixlen) & 0xFFFFFFFF)
    return not address.is_global or address.is_multicast or any(address in net for net in NOT_GLOBAL)


def must_be_public(redirect: Answer, origin: Origin, url: str) -> bool:
    """Whether only a public address may answer this URL.

    `redirect` is the answer that leads to the URL. `origin` is the origin whose robots.txt is fetched.
    """
    source, target = Origin.of(redirect.url), Origin.of(url)
    if source is None or target is None or target.host in {source.host, origin.host} or is_private(source.host):
        return False
    return redirect.address is None or not is_private(redirect.address)
