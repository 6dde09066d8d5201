"""Writes and reads entries in one SQLite file until it is killed. Prints a line for each entry that is damaged."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import sys
import time
from contextlib import suppress

from scrapy.utils.reactor import install_reactor

from scrapy_rep.protocol.answer import AccessResult, Answer
from scrapy_rep.protocol.entry import Entry, StoredResponse, entry_from_bytes, entry_to_bytes
from scrapy_rep.protocol.robotstxt.parser import RobotsTxt
from scrapy_rep.storage.sqlite import SqliteStorage

ORIGINS = [f"https://{n}.example" for n in range(200)]


def entry_of(origin: str, lines: int) -> Entry:
    body = "User-agent: *\n" + "".join(f"Disallow: /{random.random()}\n" for _ in range(lines))
    now = time.time()
    stored = StoredResponse(
        Answer("", 200, AccessResult.SUCCESS, "HTTP 200"), now, now + 60, RobotsTxt.parse(body.encode())
    )
    return Entry(f"{origin}/robots.txt", stored)


async def main(path: str) -> None:
    storage = SqliteStorage(f"sqlite://{path}")
    has_written = False
    while True:
        origin = random.choice(ORIGINS)
        with suppress(sqlite3.OperationalError):  # another writer has the lock for longer than the time limit
            await storage.put(origin, entry_to_bytes(entry_of(origin, random.randrange(200))), 1_000.0)
            if not has_written:
                print("writing", flush=True)
            has_written = True
            origin = random.choice(ORIGINS)
            octets = await storage.get(origin)
            if octets is not None and entry_from_bytes(octets, f"{origin}/robots.txt") is None:
                print("torn", flush=True)


if __name__ == "__main__":
    install_reactor("twisted.internet.asyncioreactor.AsyncioSelectorReactor")  # Scrapy before 2.15 asks for one
    asyncio.run(main(sys.argv[1]))
