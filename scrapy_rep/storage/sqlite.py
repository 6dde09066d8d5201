"""`sqlite:`: entries in a file, which several crawls on one machine may use at the same time.

Its calls are made in the event loop, as those of Scrapy's queues on disk are: each is over after a tenth of a second.
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
from typing import TypeVar

from scrapy.exceptions import NotConfigured
from scrapy.utils.project import data_path, inside_project

from scrapy_rep.storage.base import Storage

logger = logging.getLogger("scrapy_rep")

T = TypeVar("T")

BUSY = 0.1  # seconds to wait for another process that writes
CREATING = 2.0  # seconds to wait for other crawlers that create the file at the same time

# In the file's first 100 bytes (sqlite.org/fileformat.html), so that a damaged file can be told from somebody else's.
MAGIC = b"SQLite format 3\0"
WAL_MODE = b"\2"
APPLICATION_ID = int.from_bytes(b"REP1", "big")
# With a version: an older or newer scrapy-rep leaves these tables alone.
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
    """`sqlite:NAME`, a file in the project's `.scrapy`, or `sqlite:///absolute/path`. Not for network file systems.

    Without a project, NAME is a file in the working directory. The file is created when something is stored first.
    """

    answers_at_once = True

    def __init__(self, address: str, now: Callable[[], float] = time.time) -> None:
        """`now` gives seconds since the epoch. Raises ValueError where the file cannot be used, or is no store."""
        self._path = path_of(address)
        self._now = now
        self._db: sqlite3.Connection | None = None
        self._inode = 0
        """Of the file that was opened last."""
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
        """The work's result; `stores`: create the file if there is none. Raises sqlite3.Error, and ValueError if the
        file has become somebody else's."""
        if self._db is None and not stores and not self._path.exists():
            with closing(_connected(":memory:", self._now())) as nothing:
                return work(nothing)
        try:
            return work(self._opened())
        except sqlite3.DatabaseError as exc:
            self._close()  # so that the file is looked at before it is used again
            # The subclasses mean a locked file, a full disk and the like, which may pass.
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
        """Rename the damaged file, unless another process has done so since we opened it. Raises ValueError if somebody
        else has overwritten it."""
        _checked_header(self._path)
        if _inode(self._path) != self._inode:
            return
        aside = self._path.with_name(f"{self._path.name}.damaged-{time.time_ns()}")
        # The log goes first: SQLite would take it for the log of a new file beside it.
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
    """The file that the address names. Raises ValueError where it names none."""
    name = address.partition(":")[2]
    if name.startswith("///"):
        path = name[2:]
        return Path(path[1:] if re.match(r"/[A-Za-z]:", path) else path)
    if not name or name.startswith("/") or name in {".", ".."}:
        raise ValueError(
            "it names no file; set it to 'sqlite:NAME', a file in the project's .scrapy directory, or to"
            " 'sqlite:///absolute/path'"
        )
    with suppress(NotConfigured):  # no scrapy.cfg, although SCRAPY_SETTINGS_MODULE names a project
        if inside_project():
            return Path(data_path(name))
    file = Path(name).absolute()
    logger.info("REP_STORAGE: without a scrapy.cfg, %r is %s, in the working directory", address, file)
    return file


def _checked_header(path: Path) -> bytes:
    """The file's first 100 bytes; empty if there is none. Raises ValueError if the path is not for us to write to."""
    folder = next(parent for parent in path.parents if parent.exists())
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        raise ValueError(f"{path} cannot be written below {folder}; set it to a path in another directory")
    if not path.exists():
        return b""
    if not path.is_file():
        raise ValueError(f"{path} is no file; set it to the path of one")
    try:
        with path.open("r+b") as file:
            header = file.read(100)
    except OSError as exc:
        raise ValueError(f"{path} cannot be opened ({exc}); set it to another path") from None
    is_ours = header.startswith(MAGIC) and int.from_bytes(header[68:72], "big") == APPLICATION_ID
    if header and not is_ours:
        raise ValueError(f"{path} is no store of scrapy-rep; set it to the path of one, or of a new file")
    return header


def _inode(path: Path) -> int:
    """0 if there is no file."""
    return path.stat().st_ino if path.exists() else 0


def _connected(path: Path | str, now: float, patience: float = 0.0) -> sqlite3.Connection:
    """The file, without what has outlived its lifetime."""
    # isolation_level None: each statement is its own transaction.
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
            # First, and before the log of WAL mode takes it up: it says that the file is ours.
            if db.execute("PRAGMA application_id").fetchone() != (APPLICATION_ID,):
                db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            db.executescript(SCHEMA)
        except sqlite3.OperationalError as exc:  # noqa: PERF203 - a loop of attempts
            # When several processes create the file together, SQLite turns all but one away without waiting.
            if "locked" not in str(exc) or time.monotonic() >= give_up_at:
                raise
            time.sleep(0.02)
        else:
            return
