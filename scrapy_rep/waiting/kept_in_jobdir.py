"""With a JOBDIR, requests that wait for a robots.txt are kept in an SQLite file there: `requests.waiting`.

Scrapy removes a request from its queue on disk when it hands it out. If the process is killed, the crawl that resumes
the job takes the requests that waited from this file.
"""

from __future__ import annotations

import pickle
import sqlite3
from pathlib import Path

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.utils.job import job_dir

from scrapy_rep.waiting.kept_copies import Keeper

FILE = "requests.waiting"


class KeptInJobdir(Keeper):
    def __init__(self, crawler: Crawler) -> None:
        """Raises sqlite3.Error."""
        super().__init__(crawler)
        self._path = Path(job_dir(crawler.settings) or "", FILE)
        self._rows: dict[Request, int] = {}
        self._file = sqlite3.connect(self._path, isolation_level=None)
        # A process that is killed loses nothing by these; a machine that loses its power may.
        self._file.execute("PRAGMA journal_mode = WAL")
        self._file.execute("PRAGMA synchronous = OFF")
        self._file.execute("CREATE TABLE IF NOT EXISTS waiting (number INTEGER PRIMARY KEY, request BLOB)")

    def keep(self, request: Request) -> None:
        if request not in self._rows:
            with self._failing_softly():
                # As Scrapy's own queue on disk does.
                copy = pickle.dumps(request.to_dict(spider=self._spider), protocol=4)
                row = self._file.execute("INSERT INTO waiting (request) VALUES (?)", (copy,)).lastrowid
                self._rows[request] = row or 0

    def forget(self, request: Request) -> None:
        row = self._rows.pop(request, None)
        if row is not None:
            with self._failing_softly():
                self._file.execute("DELETE FROM waiting WHERE number = ?", (row,))

    def left_over(self) -> list[Request]:
        with self._failing_softly():
            for row, copy in self._file.execute("SELECT number, request FROM waiting ORDER BY number").fetchall():
                request = self._request_of(copy, pickle.loads, "when its crawl was killed")
                if request is None:  # and never will be
                    self._file.execute("DELETE FROM waiting WHERE number = ?", (row,))
                else:
                    self._rows[request] = row
        return list(self._rows)

    def close(self) -> None:
        with self._failing_softly():
            (number,) = self._file.execute("SELECT count(*) FROM waiting").fetchone()
            self._file.close()
            if not number:
                self._path.unlink()
