"""The files that extensions write (REP_REPORT, REP_ARCHIVE, REP_REFUSALS): paths, appending, the times in them."""

import os
import re
from datetime import datetime, timezone
from pathlib import Path

from scrapy.crawler import Crawler

LAST_SECOND = 253_402_300_799.0  # the last second of the year 9999


def output_path(setting: str, pattern: str, crawler: Crawler, began: float) -> Path:
    """Return the path of the file that a setting names, and create its directory.

    `began` is the start of the crawl, in seconds since the epoch. Raises ValueError if no file can be created there.
    """
    time = datetime.fromtimestamp(began, timezone.utc).strftime("%Y-%m-%dT%H-%M-%S")
    # A spider named `../../x` must not write outside the directory.
    name = re.sub(r"^\.+|[/\\:\0]", "_", str(getattr(crawler.spider, "name", "")))
    path = Path(pattern % {"name": name, "time": time}).absolute()
    try:
        if path.is_dir():
            raise IsADirectoryError("it is a directory")
        path.parent.mkdir(parents=True, exist_ok=True)
        partial_path(path).touch()
        partial_path(path).unlink()
    except OSError as exc:
        raise ValueError(
            f"{setting} is {pattern!r}, and {path} cannot be written ({exc});"
            " set it to a path in a directory where the crawl may create files"
        ) from None
    return path


def partial_path(path: Path) -> Path:
    """Return the path of the file while it is incomplete. It has the process's id in it."""
    return path.with_name(f"{path.name}.{os.getpid()}.part")


def append(path: Path, record: bytes) -> None:
    """Append the whole record to the file, or nothing. Raises OSError, for example if the disk is full."""
    with path.open("ab", buffering=0) as file:
        written = 0
        try:
            while written < len(record):
                written += file.write(record[written:])
        except OSError:
            # Half a record would make the next record unreadable; in a `.gz` file, all later records.
            if os.fstat(file.fileno()).st_size == file.tell():  # otherwise another crawl has appended since
                file.truncate(file.tell() - written)
            raise


def iso_time(seconds: float) -> str:
    """Write seconds since the epoch as `2026-05-17T09:30:00.000000Z` (RFC 3339; UTC). Years 1970 to 9999."""
    return datetime.fromtimestamp(min(max(seconds, 0.0), LAST_SECOND), timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
