"""`sqlite:` keeps entries in a file, which several crawls on one machine may use.

SQLite runs in the event loop, like Scrapy's disk queues. A call waits at most 0.1 s for a lock (2 s in a new file).
"""

from __future__ import annotations

import logging
import os
import re
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import TypeVar

from scrapy.exceptions import NotConfigured
from scrapy.utils.project import data_path, inside_project

from scrapy_rep.storage.base import Storage

logger = logging.getLogger("scrapy_rep")

T = TypeVar("T")

BUSY = 0.1  # seconds to wait for another process that is writing
CREATING = 2.0  # seconds to wait for other crawlers that are creating the file

# These bytes are among the first 100 of the file (sqlite.org/fileformat.html). MAGIC and APPLICATION_ID identify a file
# as our own. Only our own file is renamed if it is damaged; the file of another program is left alone.
MAGIC = b"SQLite format 3\0"
APPLICATION_ID = int.from_bytes(b"REP1", "big")
WAL_MODE = b"\2"  # the byte at offset 18 of a file in WAL mode, which a crawler has already set up
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


class SqliteStorage(Storage):
    """The store of `sqlite:NAME`, a file in the project's `.scrapy`, or of `sqlite:///absolute/path`.

    Without a project, NAME is a file in the working directory. The first call that stores something creates the file.
    Do not put the file on a network file system.
    """

    answers_at_once = True

    def __init__(self, address: str, now: Callable[[], float] = time.time) -> None:
        """`now` returns seconds since the epoch. Raises ValueError if the file cannot be used or is not a store."""
        self._path = path_of(address)
        self._now = now
        self._db: sqlite3.Connection | None = None
        self._inode = 0
        """The inode number of the file that was opened last; 0 if the file was new."""
        _checked_header(self._path)

    async def get(self, origin: str) -> bytes | None:
        statement = "SELECT octets FROM entries_1 WHERE origin = ?"
        row = self._run(lambda db: db.execute(statement, (origin,)).fetchone())
        return row[0] if row is not None and isinstance(row[0], bytes) else None

    async def put(self, origin: str, entry: bytes, lifetime: float) -> None:
        row = origin, entry, self._now() + lifetime
        self._run(lambda db: db.execute(PUT, row), stores=True)

    async def forget(self, origin: str) -> bool:
        statement = "DELETE FROM entries_1 WHERE origin = ?"
        return self._run(lambda db: db.execute(statement, (origin,)).rowcount > 0)

    async def origins(self) -> list[str]:
        statement = "SELECT origin FROM entries_1 ORDER BY origin"
        return self._run(lambda db: [row[0] for row in db.execute(statement)])

    async def acquire_lease(self, origin: str, token: str, seconds: float) -> bool:
        now = self._now()
        row = {"origin": origin, "token": token, "until": now + seconds, "now": now}
        return self._run(lambda db: db.execute(ACQUIRE, row).rowcount > 0, stores=True)

    async def release_lease(self, origin: str, token: str) -> None:
        self._run(lambda db: db.execute(RELEASE, (origin, token)))

    async def close(self) -> None:
        self._close()

    def _run(self, work: Callable[[sqlite3.Connection], T], *, stores: bool = False) -> T:
        """Return the result of `work`. With `stores`, create the file if there is none. Raises sqlite3.Error;
        ValueError if another program has replaced the file."""
        if self._db is None and not stores and not self._path.exists():
            with closing(_connected(":memory:", self._now())) as nothing:
                return work(nothing)
        try:
            return work(self._opened())
        except sqlite3.DatabaseError as exc:
            self._close()  # so the next call checks the file before it uses it
            # A subclass means an error that may go away, such as a locked file or a full disk. The class itself
            # means a damaged file.
            if type(exc) is not sqlite3.DatabaseError:
                raise
            self._set_aside(exc)
            return work(self._opened())

    def _opened(self) -> sqlite3.Connection:
        if self._db is None:
            is_complete = _checked_header(self._path)[18:19] == WAL_MODE
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._inode = _inode(self._path)
            self._db = _connected(self._path, self._now(), patience=0.0 if is_complete else CREATING)
        return self._db

    def _close(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None

    def _set_aside(self, exc: sqlite3.DatabaseError) -> None:
        """Rename the damaged file, unless another process has already renamed it. Raises ValueError if another program
        has overwritten the file."""
        _checked_header(self._path)
        if _inode(self._path) != self._inode:
            return
        aside = self._path.with_name(f"{self._path.name}.damaged-{time.time_ns()}")
        # Rename the write-ahead log (-wal) first. Otherwise SQLite could use the old log with a new file.
        for suffix in ("-wal", "-shm", ""):
            with suppress(FileNotFoundError):
                os.replace(f"{self._path}{suffix}", f"{aside}{suffix}")
        logger.warning(
            "REP_STORAGE: %s is damaged (%s); it was renamed to %s, and the crawl goes on with a new file",
            self._path,
            exc,
            aside.name,
        )


def path_of(address: str) -> Path:
    """Return the path of the file that the address names. Raises ValueError if the address names no file."""
    name = address.partition(":")[2]
    if name.startswith("///"):
        path = name[2:]
        return Path(path[1:] if re.match(r"/[A-Za-z]:", path) else path)
    if not name or name.startswith("/") or name in {".", ".."}:
        raise ValueError(
            "it names no file; set it to 'sqlite:NAME', a file in the project's .scrapy directory, or to"
            " 'sqlite:///absolute/path'"
        )
    with suppress(NotConfigured):  # SCRAPY_SETTINGS_MODULE names a project, but there is no scrapy.cfg
        if inside_project():
            return Path(data_path(name))
    file = Path(name).absolute()
    logger.info("REP_STORAGE: %r is %s, in the working directory, because there is no scrapy.cfg", address, file)
    return file


def _checked_header(path: Path) -> bytes:
    """Return the file's first 100 bytes; empty if there is no file. Raises ValueError if the path cannot be written, or
    if the file belongs to another program."""
    folder = next(parent for parent in path.parents if parent.exists())
    try:
        with TemporaryFile(dir=folder):
            pass
    except OSError:
        raise ValueError(
            f"{path} cannot be written, because {folder} is no writable directory; set it to another path"
        ) from None
    if not path.exists():
        return b""
    if not path.is_file():
        raise ValueError(f"{path} is not a file; set it to the path of a file")
    try:
        with path.open("r+b") as file:
            header = file.read(100)
    except OSError as exc:
        raise ValueError(f"{path} cannot be opened ({exc}); set it to another path") from None
    is_ours = header.startswith(MAGIC) and int.from_bytes(header[68:72], "big") == APPLICATION_ID
    if header and not is_ours:
        raise ValueError(f"{path} is not a store of scrapy-rep; set it to the path of a store, or of a new file")
    return header


def _inode(path: Path) -> int:
    """Return the file's inode number; 0 if there is no file."""
    return path.stat().st_ino if path.exists() else 0


def _connected(path: Path | str, now: float, patience: float = 0.0) -> sqlite3.Connection:
    """Open the file, and delete entries and leases that have expired. `patience`: seconds to retry if it is locked."""
    # With isolation_level None, each statement is its own transaction.
    db = sqlite3.connect(path, timeout=BUSY, isolation_level=None)
    try:
        _set_up(db, patience)
        db.execute("DELETE FROM entries_1 WHERE keep_until < ?", (now,))
        db.execute("DELETE FROM leases_1 WHERE until < ?", (now,))
    except BaseException:
        db.close()
        raise
    return db


def _set_up(db: sqlite3.Connection, patience: float) -> None:
    give_up_at = time.monotonic() + patience
    while True:
        try:
            # Set the application ID before WAL mode is on, so the ID is in the file itself and not only in the log.
            if db.execute("PRAGMA application_id").fetchone() != (APPLICATION_ID,):
                db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            db.executescript(SCHEMA)
        except sqlite3.OperationalError as exc:  # noqa: PERF203 - a loop of attempts
            # If several processes create the file together, all but one get this error, without a wait for the lock.
            if "locked" not in str(exc) or time.monotonic() >= give_up_at:
                raise
            time.sleep(0.02)
        else:
            return
