"""Where robots.txt entries are kept: in the crawl's memory, and in the store that REP_STORAGE names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scrapy.crawler import Crawler
from scrapy.utils.misc import build_from_crawler, load_object

from scrapy_rep.settings import RepSettings
from scrapy_rep.storage.base import Storage, without_password

__all__ = ["STORAGES", "Storage", "storage_of"]

IN_MEMORY = "the crawl's own memory"

# Import paths, because an extra such as redis-py may be missing.
STORAGES: Mapping[str, Any] = {
    "memory": IN_MEMORY,
    "sqlite": "scrapy_rep.storage.sqlite.SqliteStorage",
    "redis": "scrapy_rep.storage.redis.RedisStorage",
    "rediss": "scrapy_rep.storage.redis.RedisStorage",
}


def storage_of(crawler: Crawler, settings: RepSettings) -> Storage | None:
    """Return the store that REP_STORAGE names; None for `memory:`, which keeps nothing after the crawl.

    Raises ValueError if the store cannot be built. The message names the setting and the cure.
    """
    address, shown = settings.storage, without_password(settings.storage)
    scheme = address.partition(":")[0]
    classes = {name: cls for name, cls in {**STORAGES, **settings.storages}.items() if cls is not None}
    if scheme not in classes:
        raise ValueError(
            f"REP_STORAGE is {shown!r}; set it to an address that begins with one of"
            f" {', '.join(f'{name}:' for name in classes)}, or add {scheme!r} to REP_STORAGES"
        )
    if classes[scheme] is IN_MEMORY:
        if address != "memory:":
            raise ValueError(f"REP_STORAGE is {shown!r}: nothing may follow the colon; set it to 'memory:'")
        return None
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
        raise ValueError(f"REP_STORAGE is {shown!r}: {exc}") from None
    except Exception as exc:
        # Includes NotConfigured: Scrapy would take it as a request to crawl without our middleware.
        error = f"{type(exc).__name__}: {exc}"
        raise ValueError(f"REP_STORAGE is {shown!r}, which failed ({error}); set it to another storage") from exc
