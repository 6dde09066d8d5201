"""Where an extension's file goes: REP_REPORT, REP_ARCHIVE, REP_REFUSALS."""

from __future__ import annotations

import os
import re
from datetime import datetime, timezone
from pathlib import Path

from scrapy.crawler import Crawler

# At the file's end; Windows would otherwise change line ends.
APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)


def output_path(setting: str, pattern: str, crawler: Crawler, began: float) -> Path:
    """The file that the setting names; its directory exists from then on.

    `began`: seconds since the epoch. Raises ValueError if no file can be created there.
    """
    if "://" in pattern or "%" in re.sub(r"%%|%\((?:name|time)\)s", "", pattern):
        raise ValueError(
            f"{setting} is {pattern!r}; set it to the path of a file, in which %(name)s stands for the spider's name,"
            " %(time)s for the start of the crawl and %% for a single %"
        )
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
