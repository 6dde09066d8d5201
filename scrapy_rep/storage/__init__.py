"""The store of robots.txt entries that REP_STORAGE names: which class it is, and what is in it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

from scrapy.crawler import Crawler
from scrapy.utils.misc import build_from_crawler, load_object

from scrapy_rep.protocol.entry import Entry, entry_from_bytes
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.settings import RepSettings
from scrapy_rep.storage.base import Storage, without_password

__all__ = ["STORAGES", "Storage", "Stored", "forget", "storage_of", "stored"]

# Import paths, because an extra such as redis-py may be missing.
STORAGES: Mapping[str, Any] = {
    "memory": "scrapy_rep.storage.memory.MemoryStorage",
    "sqlite": "scrapy_rep.storage.sqlite.SqliteStorage",
    "redis": "scrapy_rep.storage.redis.RedisStorage",
    "rediss": "scrapy_rep.storage.redis.RedisStorage",
}


def storage_of(crawler: Crawler) -> Storage:
    """The store that REP_STORAGE names. Raises ValueError where it cannot be built, naming the setting and the cure."""
    settings = RepSettings.read(crawler.settings)
    address = settings.storage
    scheme = address.partition(":")[0]
    classes = {name: cls for name, cls in {**STORAGES, **settings.storages}.items() if cls is not None}
    if scheme not in classes:
        raise ValueError(
            f"REP_STORAGE is {without_password(address)!r}; set it to an address that begins with one of"
            f" {', '.join(f'{name}:' for name in classes)}, or add {scheme!r} to REP_STORAGES"
        )
    try:
        storage_class = _storage_class(classes[scheme])
    except (ImportError, NameError, AttributeError, ValueError, TypeError) as exc:
        raise ValueError(
            f"REP_STORAGES is {settings.storages!r} ({exc}); set it to a dict that has a subclass of"
            f" scrapy_rep.storage.Storage for {scheme!r}, or the import path of one"
        ) from exc
    shown = without_password(address)
    try:
        return build_from_crawler(storage_class, crawler, address)
    except ValueError as exc:
        raise ValueError(f"REP_STORAGE is {shown!r}: {exc}") from None
    except Exception as exc:
        # Also Scrapy's NotConfigured, for which it would leave our middleware out and crawl on.
        error = f"{type(exc).__name__}: {exc}"
        raise ValueError(f"REP_STORAGE is {shown!r}, which fails ({error}); set it to another storage") from exc


def _storage_class(path_or_class: Any) -> type[Storage]:
    loaded = load_object(path_or_class)
    if not isinstance(loaded, type) or not issubclass(loaded, Storage):
        raise TypeError(f"{loaded!r} is no scrapy_rep.storage.Storage")
    return loaded


@dataclass(frozen=True, slots=True)
class Stored:
    """What a store has for one origin."""

    origin: str
    size: int
    """Bytes, as stored."""
    entry: Entry | None
    """None for an entry of another version of scrapy-rep, or a damaged one."""


async def stored(storage: Storage) -> AsyncIterator[Stored]:
    """Everything in the store, by origin."""
    for origin in await storage.origins():
        entry = await storage.get(origin)
        if entry is not None:  # it was dropped in the meantime
            yield Stored(origin, len(entry), entry_from_bytes(entry, f"{origin}/robots.txt"))


async def forget(storage: Storage, url: str) -> bool:
    """Forget the origin of the URL, so that the next crawl fetches its robots.txt. Returns whether it was stored.

    Raises ValueError for a URL without an origin, such as `example.com` without its scheme.
    """
    origin = Origin.of(url)
    if origin is None:
        raise ValueError(f"{url!r} has no origin; name one such as 'https://example.com'")
    return await storage.forget(str(origin))
