"""With a JOBDIR, its SQLite file `requests.waiting` has copies of the requests from disk that are at the door.

Scrapy removes a request from its queue on disk when it hands the request out. A copy stays in the file until the engine
gets the request, or until the request is back in the queue on disk and that queue is closed. If the process is killed,
the crawl that resumes the job reads the copies.
"""

from __future__ import annotations

import pickle
import sqlite3
from itertools import count
from pathlib import Path

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.utils.job import job_dir

from scrapy_rep.waiting.kept_copies import KeptCopies

FILE = "requests.waiting"
LOCKED = 1.0  # seconds that a call waits if another program has locked the file. The event loop waits, too.


class KeptInJobdir(KeptCopies):
    """After its first failure, nothing is written until `close`."""

    def __init__(self, crawler: Crawler) -> None:
        """Raises sqlite3.Error."""
        super().__init__(crawler)
        self._path = Path(job_dir(crawler.settings) or "", FILE)
        self._numbers: dict[Request, int] = {}
        self._to_delete: list[tuple[int]] = []
        """Numbers of copies that are no longer needed, but may still be in the file."""
        self._file = sqlite3.connect(self._path, isolation_level=None, timeout=LOCKED)
        # With these, a killed process loses nothing. A machine that loses its power may lose copies.
        self._file.execute("PRAGMA journal_mode = WAL")
        self._file.execute("PRAGMA synchronous = OFF")
        self._file.execute("CREATE TABLE IF NOT EXISTS waiting (number INTEGER PRIMARY KEY, request BLOB)")
        (last,) = self._file.execute("SELECT coalesce(max(number), 0) FROM waiting").fetchone()
        self._next_number = count(last + 1)

    def keep(self, request: Request) -> None:
        if request in self._numbers or self._has_warned:
            return
        with self._failing_softly():
            # The format is that of Scrapy's own queue on disk.
            copy = pickle.dumps(request.to_dict(spider=self._spider), protocol=4)
            number = next(self._next_number)
            self._file.execute("INSERT INTO waiting VALUES (?, ?)", (number, copy))
            self._numbers[request] = number

    def delete(self, request: Request) -> None:
        if request in self._numbers:
            self._to_delete.append((self._numbers.pop(request),))
            if not self._has_warned:
                with self._failing_softly():
                    self._delete_copies()

    def left_over(self) -> list[Request]:
        with self._failing_softly():
            for number, copy in self._file.execute("SELECT number, request FROM waiting ORDER BY number").fetchall():
                request = self._request_of(copy, pickle.loads)
                if request is None:  # it cannot be read, now or later
                    self._to_delete.append((number,))
                else:
                    self._numbers[request] = number
            self._delete_copies()
        return list(self._numbers)

    def close(self) -> None:
        with self._failing_softly():
            self._delete_copies()
            (number,) = self._file.execute("SELECT count(*) FROM waiting").fetchone()
            self._file.close()
            if not number:
                self._path.unlink()

    def _delete_copies(self) -> None:
        self._file.executemany("DELETE FROM waiting WHERE number = ?", self._to_delete)
        self._to_delete.clear()
