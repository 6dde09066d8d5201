"""The contract of a store of entries: bytes by origin. A store never judges what they say, freshness least of all."""

from __future__ import annotations

from abc import ABC, abstractmethod


def without_password(address: str) -> str:
    """A store's address, fit to be shown."""
    before, at, after = address.rpartition("@")
    scheme, separator, user_information = before.partition("://")
    if not at or ":" not in user_information:
        return address
    return f"{scheme}{separator}{user_information.partition(':')[0]}:...@{after}"


class Storage(ABC):
    """Where a crawl's entries live, by origin as text (`https://example.com`).

    Built once a crawl: `from_crawler(crawler, address)` where the class has it, else with the address alone; raises
    ValueError for an address it can't use. Any method may raise where the store is down: that is a miss, a stat and
    one warning, and the store is left alone for a while. None may block the event loop.
    """

    @abstractmethod
    async def get(self, origin: str) -> bytes | None:
        """The bytes that were put last; None where there are none."""

    @abstractmethod
    async def put(self, origin: str, octets: bytes, keep_for: float) -> None:
        """Keep these instead of any before; after `keep_for` seconds they may be forgotten."""

    @abstractmethod
    async def forget(self, origin: str) -> bool:
        """Whether there was anything to forget."""

    @abstractmethod
    async def origins(self) -> list[str]:
        """Those of which something is kept, sorted."""

    async def hold(self, origin: str, token: str, seconds: float) -> bool:  # noqa: ARG002 - for those who share
        """Take the lease to ask for the origin's robots.txt, or hold on to one's own, for so many seconds from now.

        False while somebody else, by another token, has it. A store that nobody shares has nothing to lend.
        """
        return True

    async def release(self, origin: str, token: str) -> None:  # noqa: B027 - nothing lent, nothing to do
        """Give one's own lease back; another's stays."""

    async def close(self) -> None:  # noqa: B027 - not every store has something to close
        """The crawl is over."""
