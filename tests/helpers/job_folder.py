"""What a killed crawl has left in its JOBDIR."""

from __future__ import annotations

import pickle
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

KEPT = "requests.waiting"  # of scrapy_rep.waiting.copies


def kept_urls(job: Path) -> list[str]:
    """The URLs of the requests that waited for a robots.txt, in their order."""
    if not (job / KEPT).exists():
        return []
    with closing(sqlite3.connect(job / KEPT)) as file:
        rows = file.execute("SELECT request FROM waiting ORDER BY number").fetchall()
    return [pickle.loads(request)["url"] for (request,) in rows]


def queued_urls(job: Path) -> Iterator[str]:
    """The URLs in Scrapy's queue on disk. Reads the file itself, because a kill leaves a wrong size in it.

    A crawl that resumes such a job may not end: after a kill, queuelib's `LifoDiskQueue` expects more requests than it
    has, and the crawl tries to get them every five seconds.
    """
    for file in (job / "requests.queue").glob("**/*"):
        octets = file.read_bytes() if file.is_file() and file.suffix != ".json" else b""
        while len(octets) > 4:  # as queuelib's LifoDiskQueue writes it
            end = len(octets) - 4
            start = end - int.from_bytes(octets[end:], "big")
            yield pickle.loads(octets[start:end])["url"]
            octets = octets[:start]
