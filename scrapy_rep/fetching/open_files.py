"""How many files and sockets this process may have open."""

from __future__ import annotations

import sys

SELECT_MAX = 512 if sys.platform == "win32" else 1024  # FD_SETSIZE in CPython, and in C libraries elsewhere


def max_open_files() -> int:
    """By the limit of the process, and by that of `select` where the reactor uses it."""
    if sys.platform == "win32":
        return SELECT_MAX
    import resource  # Windows has none  # noqa: PLC0415

    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = sys.maxsize if soft == resource.RLIM_INFINITY else soft
    # Scrapy imports it only in crawls that use it.
    return min(limit, SELECT_MAX) if "twisted.internet.selectreactor" in sys.modules else limit
