"""Where robots.txt entries are kept: in the crawl's memory, and in the store that REP_STORAGE names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scrapy.crawler import Crawler
from scrapy.utils.misc import build_from_crawler, load_object

from scrapy_rep.settings import RepSettings
from scrapy_rep.storage.base import Storage, without_password

__all__ = ["STORAGES", "Storage", "storage_of"]

# Import paths, because an extra such as redis-py may be missing.
STORAGES: Mapping[str, Any] = {
    "sqlite": "scrapy_rep.storage.sqlite.SqliteStorage",
    "redis": "scrapy_rep.storage.redis.RedisStorage",
    "rediss": "scrapy_rep.storage.redis.RedisStorage",
}


def storage_of(crawler: Crawler, settings: RepSettings) -> Storage | None:
    """Return the store that REP_STORAGE names; None for `memory:`, which keeps nothing after the crawl.

    Raises ValueError if the store cannot be built. The message names the setting and the cure.
    """
    address, shown = settings.storage, without_password(settings.storage)
    if address == "memory:":
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
        raise ValueError(f"REP_STORAGE is {shown!r}: {exc}") from None
    except Exception as exc:
        # Includes NotConfigured: Scrapy would take it as a request to crawl without our middleware.
        error = f"{type(exc).__name__}: {exc}"
        raise ValueError(f"REP_STORAGE is {shown!r}, which failed ({error}); set it to another storage") from exc
