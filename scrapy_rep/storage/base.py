"""What a store of robots.txt entries has to do. Derive from `Storage` to write one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar


class Storage(ABC):
    """Keeps entries from one crawl to the next, and shares them between crawlers.

    An entry is some bytes for an origin, and the origin is text such as `https://example.com` or
    `http://example.com:8080`. A store keeps entries without reading them. It never judges whether they are fresh.

    Each crawl builds its own store: by `from_crawler(crawler, address)` where the class has it, else by
    `Storage(address)`. The address is REP_STORAGE, scheme included. An exception raised there stops the start; its
    message should say what to set REP_STORAGE to.

    A method may raise any exception when the store cannot be used. The crawl then goes on without the store for a
    while. No method may block the event loop.
    """

    answers_at_once: ClassVar[bool] = False
    """Whether no method ever waits, so that no call needs a deadline."""

    @abstractmethod
    async def get(self, origin: str) -> bytes | None:
        """The entry that was put last; None where there is none."""

    @abstractmethod
    async def put(self, origin: str, entry: bytes, lifetime: float) -> None:
        """Replace the origin's entry. After `lifetime` seconds the store may drop it."""

    @abstractmethod
    async def forget(self, origin: str) -> bool:
        """Drop the origin's entry. Returns whether there was one."""

    @abstractmethod
    async def origins(self) -> list[str]:
        """The origins that have an entry, sorted."""

    async def acquire_lease(self, origin: str, token: str, seconds: float) -> bool:  # noqa: ARG002 - for shared stores
        """Take the right to fetch the origin's robots.txt, or renew it, for that many seconds from now.

        `token` is the crawler's own. Returns False while a crawler with another token has the lease. A store that is
        not shared between crawlers need not override this.
        """
        return True

    async def release_lease(self, origin: str, token: str) -> None:  # noqa: B027 - there is nothing to release
        """Give the lease back. Another crawler's lease stays."""

    # Two steps in one. Override these if each step costs a round trip.

    async def get_or_lease(self, origin: str, token: str, seconds: float) -> tuple[bytes | None, bool]:
        """The entry, if there is one; else the lease, as `acquire_lease` takes it.

        Returns the entry, and whether the lease was taken. It can be both, if an entry was put just before.
        """
        entry = await self.get(origin)
        if entry is not None or not await self.acquire_lease(origin, token, seconds):
            return entry, False
        return await self.get(origin), True

    async def put_and_release(self, origin: str, entry: bytes, lifetime: float, token: str) -> None:
        """Put the entry, then give the lease back, also if the entry cannot be put.

        If the call is cancelled, because the store hangs, the lease runs out by itself: another call would hang, too.
        """
        try:
            await self.put(origin, entry, lifetime)
        except Exception:
            await self.release_lease(origin, token)
            raise
        await self.release_lease(origin, token)

    async def close(self) -> None:  # noqa: B027 - not every store has something to close
        """The crawl is over. No other method is called after this one."""


def without_password(address: str) -> str:
    """A store's address, with its password left out."""
    before, at, after = address.rpartition("@")
    scheme, separator, user_information = before.partition("://")
    if not at or ":" not in user_information:
        return address
    return f"{scheme}{separator}{user_information.partition(':')[0]}:...@{after}"
