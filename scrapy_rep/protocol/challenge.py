"""Recognises a challenge, a page that demands proof of a browser (`status_policy` has what it means).

The page is sent instead of robots.txt, with any status.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Collection, Sequence

MAX_PAGE = 65_536  # octets of a body that are searched for a challenge or for markup

# Vendor, header field, the values of the field that show a challenge, source.
BY_HEADER: Sequence[tuple[str, str, Collection[bytes], str]] = (
    ("Cloudflare", "cf-mitigated", {b"challenge"}, "developers.cloudflare.com: Detect a Challenge Page response"),
    ("AWS WAF", "x-amzn-waf-action", {b"challenge", b"captcha"}, "docs.aws.amazon.com: CAPTCHA and Challenge actions"),
    # The field's other value is `deny`. Vercel's documentation describes the challenge, but not this field.
    ("Vercel", "x-vercel-mitigated", {b"challenge"}, "vercel.com/docs/vercel-firewall: Challenge"),
)

# Vendor, octets near the beginning of a page of markup, source.
BY_PAGE: Sequence[tuple[str, bytes, str]] = (
    ("Anubis", b'id="anubis_challenge"', "github.com/TecharoHQ/anubis, web/index.templ: a script's id"),
)

VENDORS = tuple(vendor for vendor, *_ in (*BY_HEADER, *BY_PAGE))


def vendor_of_challenge(lines_of: Callable[[str], Sequence[bytes]], page: bytes) -> str:
    """Return the vendor of the challenge, if the answer is a challenge; else an empty text.

    `lines_of` returns the lines of a header field. `page` is the answer's body.
    """
    for vendor, field, values, _source in BY_HEADER:
        # Each of these fields has one value, but a proxy may have joined two lines of it (RFC 9110 5.3).
        for line in lines_of(field):
            if any(member.strip(b" \t") in values for member in line.lower().split(b",")):
                return vendor
    beginning = page[:MAX_PAGE].removeprefix(codecs.BOM_UTF8).lstrip()
    if not beginning.startswith(b"<"):
        return ""
    return next((vendor for vendor, octets, _source in BY_PAGE if octets in beginning), "")
