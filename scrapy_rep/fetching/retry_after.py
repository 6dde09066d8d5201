"""How long a server asks to be left alone: the Retry-After field (RFC 9110 10.2.3).

What comes of it is in `protocol.outage`: robots.txt is not fetched again before, for an hour at most.
"""

from __future__ import annotations

from scrapy.http import Headers

from scrapy_rep.fetching.http_headers import MAX_SECONDS, delta_seconds, field_text, http_date


def retry_after(headers: Headers, now: float) -> float:
    """Seconds to wait from `now` (seconds since the epoch), by the Retry-After field (RFC 9110 10.2.3).

    0 where there is no such field or it cannot be read; at most MAX_SECONDS.
    """
    value = field_text(headers, "Retry-After", first=True) or ""
    seconds, date = delta_seconds(value), http_date(value)
    if seconds is None:
        seconds = 0.0 if date is None else date - now
    return min(max(seconds, 0.0), MAX_SECONDS)
