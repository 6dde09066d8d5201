"""The store that REP_STORAGE names, and the interface of a store (`Storage`). To write a store, derive from it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from scrapy.crawler import Crawler
from scrapy.utils.misc import build_from_crawler, load_object

from scrapy_rep.settings import RepSettings

# Import paths, because an extra such as redis-py may be missing.
STORAGES: Mapping[str, Any] = {
    "sqlite": "scrapy_rep.storage.sqlite.SqliteStorage",
    "redis": "scrapy_rep.storage.redis.RedisStorage",
    "rediss": "scrapy_rep.storage.redis.RedisStorage",
}


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


def storage_of(crawler: Crawler, settings: RepSettings) -> Storage | None:
    """Return the store that REP_STORAGE names; None for `memory:`, which keeps nothing after the crawl.

    Raises ValueError if the store cannot be built. The message names the setting and the cure.
    """
    address, shown = settings.storage, without_password(settings.storage)
    if address == "memory:" and "memory" not in settings.storages:
        return None
    scheme = address.partition(":")[0]
    classes = {**STORAGES, **settings.storages}
    if classes.get(scheme) is None:
        begins = ", ".join(f"{name}:" for name, storage_class in classes.items() if storage_class is not None)
        raise ValueError(
            f"REP_STORAGE is {shown!r}; set it to 'memory:' or an address that begins with one of {begins}, or add"
            f" {scheme!r} to REP_STORAGES"
        )
    try:
        storage_class: type[Storage] = load_object(classes[scheme])
        if not (isinstance(storage_class, type) and issubclass(storage_class, Storage)):
            raise TypeError(f"{storage_class!r} is not a subclass of scrapy_rep.storage.Storage")  # noqa: TRY301
    except (ImportError, NameError, AttributeError, ValueError, TypeError) as exc:
        raise ValueError(
            f"REP_STORAGES is {settings.storages!r} ({exc}); set it to a dict that maps {scheme!r} to a subclass of"
            " scrapy_rep.storage.Storage, or to its import path"
        ) from exc
    try:
        return build_from_crawler(storage_class, crawler, address)
    except ValueError as exc:
        raise ValueError(f"REP_STORAGE is {shown!r}, but {exc}") from None
    except Exception as exc:
        # Includes NotConfigured: Scrapy would take it as a request to crawl without our middleware.
        error = f"{type(exc).__name__}: {exc}"
        raise ValueError(f"REP_STORAGE is {shown!r}, which failed ({error}); set it to another storage") from exc


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
