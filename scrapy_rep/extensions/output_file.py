"""The files of extensions: where they go (REP_REPORT, REP_ARCHIVE, REP_REFUSALS), and records at a file's end."""

from __future__ import annotations

import os
import re
from datetime import datetime, timezone
from pathlib import Path

from scrapy.crawler import Crawler


def output_path(setting: str, pattern: str, crawler: Crawler, began: float) -> Path:
    """The file that the setting names; its directory exists from then on.

    `began`: seconds since the epoch. Raises ValueError if no file can be created there.
    """
    time = datetime.fromtimestamp(began, timezone.utc).strftime("%Y-%m-%dT%H-%M-%S")
    # A spider named `../../x` stays in the directory.
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
    """Of the file while it is not complete; each process has its own."""
    return path.with_name(f"{path.name}.{os.getpid()}.part")


def append(path: Path, record: bytes) -> None:
    """Add the record to the file, whole or not at all. Raises OSError, such as on a full disk."""
    with path.open("ab", buffering=0) as file:
        written = 0
        try:
            while written < len(record):
                written += file.write(record[written:])
        except OSError:
            # Half a record would make the next one unreadable, and in a `.gz` file everything behind it.
            if os.fstat(file.fileno()).st_size == file.tell():  # else another crawl has written since
                file.truncate(file.tell() - written)
            raise
