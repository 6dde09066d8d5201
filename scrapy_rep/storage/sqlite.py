"""`sqlite:` keeps entries in a file, which several crawls on one machine may use.

SQLite runs in the event loop, like Scrapy's disk queues. A call waits at most 0.1 s for a lock (4 s at the start).
"""

import logging
import re
import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from scrapy.exceptions import NotConfigured
from scrapy.utils.project import data_path, inside_project

from scrapy_rep.storage import Storage

logger = logging.getLogger("scrapy_rep")

BUSY = 0.1  # seconds to wait for another process that is writing
ATTEMPTS = 20  # to set the file up, if other crawlers create it at the same time

# The 1 in the names of the tables is the version of the format. scrapy-rep ignores tables with another version.
SCHEMA = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
CREATE TABLE IF NOT EXISTS entries_1 (origin TEXT PRIMARY KEY, octets BLOB NOT NULL, keep_until REAL NOT NULL);
CREATE INDEX IF NOT EXISTS entries_1_keep_until ON entries_1 (keep_until);
CREATE TABLE IF NOT EXISTS leases_1 (origin TEXT PRIMARY KEY, token TEXT NOT NULL, until REAL NOT NULL);
"""
ACQUIRE = """
INSERT INTO leases_1 (origin, token, until) VALUES (:origin, :token, :until)
ON CONFLICT (origin) DO UPDATE SET token = :token, until = :until WHERE token = :token OR until <= :now
"""
PUT = "INSERT OR REPLACE INTO entries_1 (origin, octets, keep_until) VALUES (?, ?, ?)"
RELEASE = "DELETE FROM leases_1 WHERE origin = ? AND token = ?"
UNUSABLE = ("unable to open", "readonly")  # what SQLite says of a path that is a mistake in REP_STORAGE


class SqliteStorage(Storage):
    """The store of `sqlite:NAME`, a file in the project's `.scrapy`, or of `sqlite:///absolute/path`.

    Without a project, NAME is a file in the working directory. Do not put the file on a network file system.
    """

    def __init__(self, address: str, now: Callable[[], float] = time.time) -> None:
        """`now` returns seconds since the epoch. Raises ValueError if the file cannot be opened or written."""
        self._path = path = path_of(address)
        self._now = now
        self._is_set_up, db = False, None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # With isolation_level None, each statement is its own transaction. `scrapy shell` builds the storage in
            # another thread than that of the event loop, which alone makes the calls.
            db = self._db = sqlite3.connect(path, timeout=BUSY, isolation_level=None, check_same_thread=False)
            self._set_up(ATTEMPTS)
        except (OSError, sqlite3.Error) as exc:
            # If the file is damaged or locked, each call fails, and the crawl goes on without the store.
            if db is None or any(text in str(exc) for text in UNUSABLE):
                raise ValueError(f"{path} cannot be opened and written ({exc}); set it to another path") from None

    async def get(self, origin: str) -> bytes | None:
        row = self._execute("SELECT octets FROM entries_1 WHERE origin = ?", (origin,)).fetchone()
        return row[0] if row is not None and isinstance(row[0], bytes) else None

    async def put(self, origin: str, entry: bytes, lifetime: float) -> None:
        self._execute(PUT, (origin, entry, self._now() + lifetime))

    async def acquire_lease(self, origin: str, token: str, seconds: float) -> bool:
        now = self._now()
        row = {"origin": origin, "token": token, "until": now + seconds, "now": now}
        return self._execute(ACQUIRE, row).rowcount > 0

    async def release_lease(self, origin: str, token: str) -> None:
        self._execute(RELEASE, (origin, token))

    async def close(self) -> None:
        self._db.close()

    def _execute(self, statement: str, row: tuple[object, ...] | dict[str, object]) -> sqlite3.Cursor:
        """Execute the statement. An error names the file, so that the crawl's WARNING does."""
        try:
            if not self._is_set_up:
                self._set_up(1)
            return self._db.execute(statement, row)
        except sqlite3.Error as exc:
            raise type(exc)(f"{self._path}: {exc}") from None

    def _set_up(self, attempts: int) -> None:
        """Create the tables, and delete entries that have expired."""
        for attempt in range(attempts):
            try:
                self._db.executescript(SCHEMA)
                break
            except sqlite3.OperationalError as exc:
                # If several processes create the file, all but one get this error, without a wait for the lock.
                if "locked" not in str(exc) or attempt == attempts - 1:
                    raise
                time.sleep(BUSY)
        self._db.execute("DELETE FROM entries_1 WHERE keep_until < ?", (self._now(),))
        self._is_set_up = True


def path_of(address: str) -> Path:
    """Return the path of the file that the address names. Raises ValueError if the address names no file."""
    name = address.partition(":")[2]
    if name.startswith("///"):
        path = name[2:]
        return Path(path[1:] if re.match(r"/[A-Za-z]:", path) else path)
    if not name or name.startswith("/") or name in {".", ".."}:
        raise ValueError(
            "it names no file; set it to 'sqlite:NAME' (a file in the project's .scrapy) or 'sqlite:///absolute/path'"
        )
    with suppress(NotConfigured):  # SCRAPY_SETTINGS_MODULE names a project, but there is no scrapy.cfg
        if inside_project():
            return Path(data_path(name))
    file = Path(name).absolute()
    logger.info("REP_STORAGE: %r is %s, in the working directory, because there is no scrapy.cfg", address, file)
    return file
