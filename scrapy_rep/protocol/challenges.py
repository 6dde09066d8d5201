"""Which answers are challenges: pages that ask a browser to prove itself, in place of what was asked for."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Collection, Sequence

MAX_PAGE = 65_536  # octets of a body that are searched

# Vendor, header field, the values that show a challenge, source.
BY_HEADER: Sequence[tuple[str, str, Collection[bytes], str]] = (
    ("Cloudflare", "cf-mitigated", {b"challenge"}, "developers.cloudflare.com: Detect a Challenge Page response"),
    ("AWS WAF", "x-amzn-waf-action", {b"challenge", b"captcha"}, "docs.aws.amazon.com: CAPTCHA and Challenge actions"),
    # `deny` is the other value. Vercel's documentation describes the challenge, not the field that its firewall sends.
    ("Vercel", "x-vercel-mitigated", {b"challenge"}, "vercel.com/docs/vercel-firewall: Challenge"),
)

# Vendor, octets in the beginning of a page of markup, source.
BY_PAGE: Sequence[tuple[str, bytes, str]] = (
    ("Anubis", b'id="anubis_challenge"', "github.com/TecharoHQ/anubis, web/index.templ: a script's id"),
)

VENDORS = tuple(vendor for vendor, *_ in (*BY_HEADER, *BY_PAGE))


def vendor_of_challenge(lines_of: Callable[[str], Sequence[bytes]], page: bytes) -> str:
    """The vendor whose challenge the answer is; empty if it shows none. `lines_of`: the lines of a header field."""
    for vendor, field, values, _source in BY_HEADER:
        # These fields have one value. Proxies may join two lines (RFC 9110 5.3).
        members = b",".join(lines_of(field)).lower().split(b",")
        if any(member.strip(b" \t") in values for member in members):
            return vendor
    beginning = page[:MAX_PAGE].removeprefix(codecs.BOM_UTF8).lstrip()
    if not beginning.startswith(b"<"):
        return ""
    return next((vendor for vendor, octets, _source in BY_PAGE if octets in beginning), "")
