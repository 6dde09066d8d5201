"""`sqlite:`: entries in a file, which several crawls on one machine may use at the same time."""

from __future__ import annotations

import logging
import os
import re
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from scrapy.exceptions import NotConfigured
from scrapy.utils.project import data_path, inside_project

from scrapy_rep.own_thread import BatchedCalls
from scrapy_rep.storage.base import Storage

logger = logging.getLogger("scrapy_rep")

T = TypeVar("T")
Work: TypeAlias = Callable[[sqlite3.Connection], Any]
Operation: TypeAlias = tuple[Work, bool]  # and whether it stores something, so that the file is made

BUSY = 3.0  # seconds to wait for another process that writes

# In the file's first 100 bytes (sqlite.org/fileformat.html), so that a damaged file can be told from somebody else's.
MAGIC = b"SQLite format 3\0"
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

    def __init__(self, address: str) -> None:
        """Raises ValueError where the file cannot be used, or is no store."""
        path = path_of(address)
        _check(path)
        self._file = _File(path)
        self._thread = BatchedCalls(self._file.run)  # SQLite ties a connection to its thread

    async def get(self, origin: str) -> bytes | None:
        return await self._run(lambda db: _get(db, origin))

    async def put(self, origin: str, entry: bytes, lifetime: float) -> None:
        await self.put_and_release(origin, entry, lifetime, token="")  # which no crawler has

    async def forget(self, origin: str) -> bool:
        statement = "DELETE FROM entries_1 WHERE origin = ?"
        return await self._run(lambda db: db.execute(statement, (origin,)).rowcount > 0)

    async def origins(self) -> list[str]:
        statement = "SELECT origin FROM entries_1 ORDER BY origin"
        return await self._run(lambda db: [row[0] for row in db.execute(statement)])

    async def acquire_lease(self, origin: str, token: str, seconds: float) -> bool:
        row = _lease(origin, token, seconds)
        return await self._run(lambda db: db.execute(ACQUIRE, row).rowcount > 0, stores=True)

    async def release_lease(self, origin: str, token: str) -> None:
        await self._run(lambda db: db.execute(RELEASE, (origin, token)))

    async def get_or_lease(self, origin: str, token: str, seconds: float) -> tuple[bytes | None, bool]:
        row = _lease(origin, token, seconds)

        def get_or_lease(db: sqlite3.Connection) -> tuple[bytes | None, bool]:
            entry = _get(db, origin)
            return entry, entry is None and db.execute(ACQUIRE, row).rowcount > 0

        return await self._run(get_or_lease, stores=True)

    async def put_and_release(self, origin: str, entry: bytes, lifetime: float, token: str) -> None:
        row = origin, entry, time.time() + lifetime

        def put_and_release(db: sqlite3.Connection) -> None:
            db.execute(PUT, row)
            db.execute(RELEASE, (origin, token))

        await self._run(put_and_release, stores=True)

    async def _run(self, work: Callable[[sqlite3.Connection], T], *, stores: bool = False) -> T:
        result: T = await self._thread.run_together((work, stores))
        return result

    async def close(self) -> None:
        await self._thread.run(self._file.close)
        self._thread.close()


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


def _check(path: Path) -> None:
    """Raises ValueError where the path is not for us to write to. Changes nothing."""
    folder = next(parent for parent in path.parents if parent.exists())
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        raise ValueError(f"{path} cannot be written below {folder}; set it to a path in another directory")
    if not path.exists():
        return
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


def _get(db: sqlite3.Connection, origin: str) -> bytes | None:
    row = db.execute("SELECT octets FROM entries_1 WHERE origin = ?", (origin,)).fetchone()
    return row[0] if row is not None and isinstance(row[0], bytes) else None


def _lease(origin: str, token: str, seconds: float) -> dict[str, Any]:
    """The parameters of ACQUIRE."""
    now = time.time()
    return {"origin": origin, "token": token, "until": now + seconds, "now": now}


class _File:
    """The file, for use in one thread. It is opened when it is first needed, and set aside when it is damaged."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._db: sqlite3.Connection | None = None
        self._inode = self._size = 0

    def run(self, operations: list[Operation]) -> list[Any]:
        """Their results. What they store is stored together, or not at all."""
        works, stores = [work for work, _ in operations], any(stores for _, stores in operations)
        if self._db is None and not stores and not self._path.exists():
            with closing(_connected(":memory:")) as nothing:  # a file is made when something is stored first
                return [work(nothing) for work in works]
        try:
            return self._done(works, stores)
        except sqlite3.DatabaseError as exc:
            # The subclasses mean a locked file, a full disk and the like, which may pass.
            if type(exc) is not sqlite3.DatabaseError:
                raise
            self._set_aside(exc)
            return self._done(works, stores)

    def close(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None

    def _done(self, works: list[Work], stores: bool) -> list[Any]:
        with self._opened() as db:
            if stores:
                db.execute("BEGIN IMMEDIATE")
            return [work(db) for work in works]

    def _opened(self) -> sqlite3.Connection:
        inode, size = _inode_and_size(self._path)
        # SQLite does not notice that the file was removed, replaced or cut since it was opened.
        was_lost = self._db is not None and (inode != self._inode or size < self._size)
        if was_lost:
            self.close()
        if self._db is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            if self._inode not in {0, inode}:
                _check(self._path)  # it is another file now
            self._inode = inode
            self._db = _connected(self._path)
            inode, size = _inode_and_size(self._path)
        self._inode, self._size = inode, size
        if was_lost:
            logger.warning("REP_STORAGE: %s was removed or overwritten; the crawl goes on with a new file", self._path)
        return self._db

    def _set_aside(self, exc: sqlite3.DatabaseError) -> None:
        """Rename the damaged file, unless another process has done so since we opened it."""
        self.close()
        if _inode_and_size(self._path)[0] != self._inode:
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


def _inode_and_size(path: Path) -> tuple[int, int]:
    """Zeros where there is no file."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return 0, 0
    return status.st_ino, status.st_size


def _connected(path: Path | str) -> sqlite3.Connection:
    """The file, without what has outlived its lifetime."""
    # isolation_level None: each statement is its own transaction.
    db = sqlite3.connect(path, timeout=BUSY, isolation_level=None)
    try:
        _set_up(db)
        now = time.time()
        db.execute("DELETE FROM entries_1 WHERE keep_until < ?", (now,))
        db.execute("DELETE FROM leases_1 WHERE until < ?", (now,))
    except BaseException:
        db.close()
        raise
    return db


def _set_up(db: sqlite3.Connection) -> None:
    give_up_at = time.monotonic() + BUSY / 2  # an attempt may take BUSY itself
    while True:
        try:
            # First, and before the log of WAL mode takes it up: it says that the file is ours.
            if db.execute("PRAGMA application_id").fetchone() != (APPLICATION_ID,):
                db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            db.executescript(SCHEMA)
        except sqlite3.OperationalError as exc:  # noqa: PERF203 - a loop of attempts
            # When several processes create the file together, SQLite turns all but one away without waiting.
            if "locked" not in str(exc) or time.monotonic() > give_up_at:
                raise
            time.sleep(0.05)
        else:
            return
