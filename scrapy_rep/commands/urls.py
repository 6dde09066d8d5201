"""Reads the URLs and files that are given to the command, and checks the URLs."""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO

from scrapy_rep.fetching.decoding import UndecodableBodyError
from scrapy_rep.protocol.origin import WITHOUT_ROBOTS, Origin
from scrapy_rep.settings import nearest

_WITH_HOST = re.compile(r"(?i:https?):|[^/?#:]+://")
_HOST = re.compile(r"[^/:@?#\s]+\.[^/:@?#\s]+(?::[0-9]+)?")
_LIKE_A_HOST = re.compile(r"[^/:@\s]+(?::[0-9]+)?(?:/|$)")
CHUNK = 65_536  # bytes
MAX_LINE = 1_048_576  # bytes


def lists_of_urls(given: list[str], file: str | None) -> Iterator[list[str]]:
    """Yield the URLs in `file`, one per line, or else those in `given`. `-` is standard input.

    Empty lines and comments (`#`) are skipped. The URLs come in lists. From a pipe, each list is available as soon as
    its lines have arrived. Raises ValueError if the file cannot be read, or a line is too long for a URL.
    """
    if file is None:
        yield given
        return
    with opened("--input", file) as stream:
        rest = b""
        while chunk := stream.read(CHUNK):
            lines, _, rest = (rest + chunk).rpartition(b"\n")
            if len(rest) > MAX_LINE:
                raise ValueError(f"a line in the list of URLs is longer than {MAX_LINE:,} bytes")
            yield _urls_in(lines)
        yield _urls_in(rest)


def _urls_in(lines: bytes) -> list[str]:
    # Accept any octets, as Python does in command-line arguments.
    text = lines.decode("utf-8", "surrogateescape")
    # A file may begin with a byte order mark.
    urls = (line.removeprefix("\ufeff").strip() for line in text.split("\n"))
    return [url for url in urls if url and not url.startswith("#")]


@contextmanager
def opened(option: str, file: str) -> Iterator[FileIO]:
    """Open the file, or standard input for `-`. An OSError or UndecodableBodyError, also one in the `with` block,
    becomes a ValueError that names the option, the file and the reason."""
    if file == "-" and sys.stdin is None:
        raise ValueError(f"{option} -: standard input is closed")
    try:
        with open(0 if file == "-" else file, "rb", buffering=0, closefd=file != "-") as stream:
            yield stream
    except (OSError, UndecodableBodyError) as exc:
        raise ValueError(f"{option} {file}: {getattr(exc, 'strerror', None) or exc}") from None


def is_without_robots(url: str) -> bool:
    """Whether the URL's scheme, such as `data:`, has no robots.txt."""
    return url.partition(":")[0].lower() in WITHOUT_ROBOTS


def check_host(url: str) -> None:
    """Raise ValueError if the URL is empty, or its scheme or host is wrong, as in `http://`. A path passes."""
    if not url.strip() or (_WITH_HOST.match(url) and Origin.of(url) is None and not is_without_robots(url)):
        raise ValueError(f"{url!r} has no valid scheme and host")
    scheme, is_url, _rest = url.lower().partition("://")
    if is_url and scheme.isalnum() and (meant := nearest(scheme, ("http", "https"))) not in {None, scheme}:
        raise ValueError(f"{url!r} has an unknown scheme, {scheme!r}; did you mean {meant!r}?")


def with_scheme(text: str) -> str:
    """Return `https://HOST/` for a host alone, such as `example.com` (an IPv4 address: `http`); other text as it is."""
    return f"{_with_usual_scheme(text)}/" if _HOST.fullmatch(text) and not os.path.isfile(text) else text


def cure_of(url: str) -> str:
    """Return the end of an error about a text that is not a URL: what to write instead. Empty if this is unknown."""
    if os.path.isfile(url):
        return f"; to read the URLs from this file, use --input {url}"
    if url.startswith("/"):
        return "; give a whole URL (only --file accepts a path)"
    return f"; did you mean {_with_usual_scheme(url)}?" if _LIKE_A_HOST.match(url) else ""


def _with_usual_scheme(text: str) -> str:
    """Return the text with a scheme: `http` for localhost and IPv4 addresses without the port 443, because they rarely
    have a certificate."""
    return f"http{'' if re.match('(?i:localhost|[0-9.]+)(:(?!443(/|$))|/|$)', text) else 's'}://{text}"
