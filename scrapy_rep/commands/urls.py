"""What the command reads: the URLs that it is asked about, as they come, and files."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from io import RawIOBase
from pathlib import Path

from scrapy_rep.protocol.origin import WITHOUT_ROBOTS, Origin

_WITH_HOST = re.compile(r"(?i:https?):|[^/?#:]+://")
_LIKE_A_HOST = re.compile(r"[^/:\s]+(?::[0-9]+)?(?:/|$)")
CHUNK = 65_536  # bytes
MAX_LINE = 1_048_576  # bytes


def lists_of_urls(given: list[str], file: str | None) -> Iterable[list[str]]:
    """The URLs that are asked about, empty if none are; from a pipe, each list as soon as its lines are there.

    `file`: a file with a URL on each line, to be read instead of `given`; `-` for standard input. Raises ValueError if
    it cannot be opened; when a line comes that is too long for a URL, the iterator does.
    """
    if file is None:
        return [given] if given else []
    try:
        return _lists_in(open(0 if file == "-" else file, "rb", buffering=0, closefd=file != "-"))
    except OSError as exc:
        raise unreadable("--input", file, exc) from None


def _lists_in(stream: RawIOBase) -> Iterator[list[str]]:
    with stream:
        rest = b""
        while chunk := stream.read(CHUNK):
            lines, _, rest = (rest + chunk).rpartition(b"\n")
            if len(rest) > MAX_LINE:
                raise ValueError(f"a line in the list of URLs is longer than {MAX_LINE:,} bytes")
            yield _urls_in(lines)
        yield _urls_in(rest)


def _urls_in(lines: bytes) -> list[str]:
    # As Python decodes arguments; what is not UTF-8 is told about in the answer.
    text = lines.decode("utf-8", "surrogateescape")
    # A file may begin with a byte order mark.
    return [url for line in text.split("\n") if (url := line.removeprefix("\ufeff").strip())]


def body_of(file: str) -> bytes:
    """The robots.txt that `--file` names, `-` for standard input. Raises ValueError if it cannot be read."""
    try:
        return sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as exc:
        raise unreadable("--file", file, exc) from None


def unreadable(option: str, file: str, error: OSError) -> ValueError:
    """The error that ends the command."""
    return ValueError(f"{option} {file}: {error.strerror or error}")


def is_without_robots(url: str) -> bool:
    """Whether its scheme has no robots.txt, as `data:` has none."""
    return url.partition(":")[0].lower() in WITHOUT_ROBOTS


def check_host(url: str) -> None:
    """Raises ValueError for a URL without a valid scheme or host, such as `http://`."""
    if _WITH_HOST.match(url) and Origin.of(url) is None and not is_without_robots(url):
        raise ValueError(f"{url!r} has no valid scheme and host")


def cure_of(url: str) -> str:
    """What to write instead of a text that is no URL; follows the error. Empty if it cannot be guessed."""
    if url.startswith("/"):
        return "; give a whole URL; with --file a path is enough"
    return "" if not _LIKE_A_HOST.match(url) else f"; did you mean https://{url}?"
