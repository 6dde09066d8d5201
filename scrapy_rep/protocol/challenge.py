"""Recognises a challenge, a page that demands proof of a browser (`status_policy` has what it means).

The page is sent instead of robots.txt. A request for a signature (Web Bot Auth) counts as a challenge, too.
"""

import codecs
from collections.abc import Callable, Collection, Container, Sequence

MAX_PAGE = 65_536  # octets of a body that are searched for a challenge or for markup
WEB_BOT_AUTH = "Web Bot Auth"
"""Stands for the vendor if a site asks crawlers to sign their requests (RFC 9421 5)."""

# The statuses with which a row counts.
ANY = range(1_000)
DENIED = (401, 403)
# Not 404: the vendor's script is also in the site's own pages.
PAGES = (200, *DENIED)

# Vendor, header field (as Scrapy's `Headers` writes it), the values of the field that show a challenge (empty: any
# value), statuses, source.
BY_HEADER: Sequence[tuple[str, bytes, Collection[bytes], Container[int], str]] = (
    ("Cloudflare", b"Cf-Mitigated", {b"challenge"}, ANY, "developers.cloudflare.com: Detect a Challenge Page response"),
    ("AWS WAF", b"X-Amzn-Waf-Action", {b"challenge", b"captcha"}, ANY, "docs.aws.amazon.com: CAPTCHA and Challenge"),
    # The field's other value is `deny`. Vercel's documentation describes the challenge, but not this field.
    ("Vercel", b"X-Vercel-Mitigated", {b"challenge"}, ANY, "vercel.com/docs/vercel-firewall: Challenge"),
    (WEB_BOT_AUTH, b"Accept-Signature", (), DENIED, "draft-ietf-webbotauth-httpsig-protocol: Requesting a Signature"),
)

# Vendor, octets near the beginning of a page of markup, statuses, source. The documentation of Imperva and DataDome
# describes their challenges, but not these octets.
BY_PAGE: Sequence[tuple[str, bytes, Container[int], str]] = (
    ("Anubis", b'id="anubis_challenge"', ANY, "github.com/TecharoHQ/anubis, web/index.templ: a script's id"),
    ("Imperva", b"/_Incapsula_Resource", PAGES, "docs.imperva.com: Cloud WAF, JavaScript and CAPTCHA challenges"),
    ("DataDome", b"captcha-delivery.com", PAGES, "docs.datadome.co/docs/rule-responses: Captcha, Device check"),
)

VENDORS = tuple(vendor for vendor, *_ in (*BY_HEADER, *BY_PAGE))


def vendor_of_challenge(lines_of: Callable[[bytes], Sequence[bytes]], page: bytes, status: int = 403) -> str:
    """Return the vendor of the challenge, if the answer is a challenge; else an empty text.

    `lines_of` returns the lines of a header field. `page` is the answer's body. `status` is its status; all rows count
    with the default.
    """
    for vendor, field, values, statuses, _source in BY_HEADER:
        lines = lines_of(field) if status in statuses else ()
        if lines:
            # Most of these fields have one value, but a proxy may have joined two lines of it (RFC 9110 5.3).
            members = {member.strip(b" \t") for member in b",".join(lines).lower().split(b",")} - {b""}
            if members.intersection(values or members):
                return vendor
    beginning = page[:MAX_PAGE].removeprefix(codecs.BOM_UTF8).lstrip()
    if not beginning.startswith(b"<"):
        return ""
    rows = (vendor for vendor, octets, statuses, _source in BY_PAGE if status in statuses and octets in beginning)
    return next(rows, "")
