"""The interface of a store (`Storage`). To write a store, derive from it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar


class Storage(ABC):
    """Keeps entries from one crawl to the next, and shares them between crawlers.

    An entry is bytes. Its key is an origin, written as `https://example.com` or `http://example.com:8080`. A store does
    not read the bytes, and does not decide whether the entry is fresh.

    Each crawl builds its own store: with `from_crawler(crawler, address)` if the class has that method, else with
    `Storage(address)`. The address is the value of REP_STORAGE, including the scheme. If the constructor raises an
    exception, the crawl does not start; the message should say what to set REP_STORAGE to.

    A method may raise any exception if the store cannot be used. The crawl then goes on without the store for a while.
    No method may block the event loop for long.
    """

    answers_at_once: ClassVar[bool] = False
    """Whether the methods never await anything. A deadline could not interrupt them, so their calls have none."""

    @abstractmethod
    async def get(self, origin: str) -> bytes | None:
        """Return the origin's entry; None if the store has none."""

    @abstractmethod
    async def put(self, origin: str, entry: bytes, lifetime: float) -> None:
        """Store the entry in place of the origin's old one. The store may delete it after `lifetime` seconds."""

    async def acquire_lease(self, origin: str, token: str, seconds: float) -> bool:  # noqa: ARG002 - for shared stores
        """Take or renew the lease on the origin: the right to fetch its robots.txt during the next `seconds`.

        `token` identifies the fetch. Return False while another token has the lease. Override this method if several
        crawlers share the store.
        """
        return True

    async def release_lease(self, origin: str, token: str) -> None:  # noqa: B027 - there is nothing to release
        """Give up the lease if this token has it. Leave the lease of another token alone."""

    async def close(self) -> None:  # noqa: B027 - not every store has something to close
        """Free the store's resources at the end of the crawl. No other method is called afterwards."""


def without_password(address: str) -> str:
    """Return a store's address without its password and its query: `redis://user:...@host:6379/0?...`."""
    address, mark, query = address.partition("?")
    before, at, after = address.rpartition("@")
    if not at and "@" in query:  # an unescaped `?` in the password, or an `@` in the query
        before, after = address, ""
    scheme, separator, user_information = before.partition("://")
    if ":" in user_information:
        address = f"{scheme}{separator}{user_information.partition(':')[0]}:...{at}{after}"
    return f"{address}?..." if mark else address
