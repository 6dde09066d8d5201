"""With a JOBDIR, an SQLite file there has copies of the requests that wait for a robots.txt: `requests.waiting`.

Scrapy removes a request from its queue on disk when it hands the request out. A copy stays in the file until its
request goes on, or until the request is back in the queue on disk and that queue is closed. If the process is killed,
the crawl that resumes the job reads the requests that waited from the file.
"""

from __future__ import annotations

import pickle
import sqlite3
from itertools import count
from pathlib import Path

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.utils.asyncio import CallLaterResult, call_later
from scrapy.utils.job import job_dir

from scrapy_rep.waiting.kept_copies import KeptCopies

FILE = "requests.waiting"
# Seconds that a call waits for another process's lock, at the opening and later. The event loop waits, too.
OPENING, BUSY = 1.0, 0.1
RETRY = 1.0  # seconds from a failed call to the next
MAX_FAILURES = 5  # failed calls in a row, after which no more copies are kept


class KeptInJobdir(KeptCopies):
    def __init__(self, crawler: Crawler) -> None:
        """Raises sqlite3.Error."""
        super().__init__(crawler)
        self._path = Path(job_dir(crawler.settings) or "", FILE)
        self._numbers: dict[Request, int] = {}
        self._unwritten: dict[int, bytes | None] = {}
        """The changes that are not yet in the file, by number: a copy to insert, or None to delete the copy."""
        self._failures = 0
        self._retry: CallLaterResult | None = None
        self._file = sqlite3.connect(self._path, isolation_level=None, timeout=OPENING)
        # With these, a killed process loses nothing. A machine that loses its power may lose copies.
        self._file.execute("PRAGMA journal_mode = WAL")
        self._file.execute("PRAGMA synchronous = OFF")
        self._file.execute("CREATE TABLE IF NOT EXISTS waiting (number INTEGER PRIMARY KEY, request BLOB)")
        self._file.execute(f"PRAGMA busy_timeout = {1000 * BUSY:.0f}")
        (last,) = self._file.execute("SELECT coalesce(max(number), 0) FROM waiting").fetchone()
        self._next_number = count(last + 1)

    def keep(self, request: Request) -> None:
        if request in self._numbers or self._failures >= MAX_FAILURES:
            return
        with self._failing_softly():
            # The format is that of Scrapy's own queue on disk.
            copy = pickle.dumps(request.to_dict(spider=self._spider), protocol=4)
            self._numbers[request] = number = next(self._next_number)
            self._unwritten[number] = copy
            self._write()

    def delete(self, request: Request) -> None:
        number = self._numbers.pop(request, None)
        if number is None:
            return
        if self._unwritten.pop(number, None) is None:  # the copy is in the file
            self._unwritten[number] = None
            self._write()

    def left_over(self) -> list[Request]:
        with self._failing_softly():
            for number, copy in self._file.execute("SELECT number, request FROM waiting ORDER BY number").fetchall():
                request = self._request_of(copy, pickle.loads, "when its crawl was killed")
                if request is None:  # it cannot be read, now or later
                    self._unwritten[number] = None
                else:
                    self._numbers[request] = number
            self._write()
        return list(self._numbers)

    def close(self) -> None:
        if self._retry is not None:
            self._retry.cancel()
        with self._failing_softly():
            self._write_all()
            (number,) = self._file.execute("SELECT count(*) FROM waiting").fetchone()
            self._file.close()
            if not number:
                self._path.unlink()

    def _write(self) -> None:
        if self._retry is not None or self._failures >= MAX_FAILURES:
            return
        try:
            self._write_all()
            self._failures = 0
        except sqlite3.Error as exc:  # another process may have locked the file: a backup, or a program that shows it
            self._failures += 1
            if self._failures < MAX_FAILURES:
                self._retry = call_later(RETRY, self._write_again)
            else:
                self._warn(exc)

    def _write_again(self) -> None:
        self._retry = None
        self._write()

    def _write_all(self) -> None:
        for number, copy in list(self._unwritten.items()):
            if copy is None:
                self._file.execute("DELETE FROM waiting WHERE number = ?", (number,))
            else:
                self._file.execute("INSERT INTO waiting VALUES (?, ?)", (number, copy))
            del self._unwritten[number]
