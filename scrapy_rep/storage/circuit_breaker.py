"""If the store fails, the crawl goes on without it, logs one warning and retries with backoff."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import CancelledError, Deferred
from twisted.python.failure import Failure

from scrapy_rep.storage.base import Storage
from scrapy_rep.text import printable

logger = logging.getLogger("scrapy_rep")

T = TypeVar("T")

DEADLINE = 5.0  # seconds for an answer
BACKOFF_FIRST = 1.0  # seconds
BACKOFF_MAX = 60.0  # seconds


class CircuitBreaker:
    """A store's methods, which return a default instead of raising. `count` adds 1 to a stat; `clock` gives seconds."""

    def __init__(self, storage: Storage, count: Callable[[str], None], clock: Callable[[], float]) -> None:
        self._storage = storage
        self._count = count
        self._clock = clock
        self._failures = 0
        self._down_until = -math.inf
        self._warned = False
        self._closed = False

    async def get(self, origin: str) -> bytes | None:
        return await self._attempt(self._storage.get, origin, otherwise=None)

    async def put(self, origin: str, entry: bytes, lifetime: float) -> None:
        await self._attempt(self._storage.put, origin, entry, lifetime, otherwise=None)

    async def acquire_lease(self, origin: str, token: str, seconds: float) -> bool:
        """True where the store fails: nobody waits for it."""
        return await self._attempt(self._storage.acquire_lease, origin, token, seconds, otherwise=True)

    async def release_lease(self, origin: str, token: str) -> None:
        await self._attempt(self._storage.release_lease, origin, token, otherwise=None)

    async def close(self) -> None:
        if not self._closed:
            await self._attempt(self._storage.close, otherwise=None, even_if_down=True)
            self._closed = True

    async def _attempt(
        self, call: Callable[..., Coroutine[Any, Any, T]], *args: object, otherwise: T, even_if_down: bool = False
    ) -> T:
        if self._closed or (self._is_down() and not even_if_down):
            return otherwise
        is_retry = self._failures > 0
        if is_retry:
            self._down_until = self._clock() + DEADLINE  # meanwhile other calls are skipped: one is enough to see
        try:
            result = await _within(DEADLINE, call(*args))
        except CancelledError:  # Twisted's is an Exception
            raise
        except Exception as exc:  # noqa: BLE001 - each library has its own errors
            self._failed(exc, is_retry)
            return otherwise
        if not even_if_down:  # closing does not show that it works
            self._succeeded()
        return result

    def _is_down(self) -> bool:
        return self._clock() < self._down_until

    def _back_off(self) -> None:
        wait = min(BACKOFF_FIRST * 2.0 ** min(max(self._failures - 1, 0), 64), BACKOFF_MAX)
        self._down_until = self._clock() + wait

    def _failed(self, exc: Exception, is_retry: bool) -> None:
        self._count("rep/storage/error")
        if is_retry or not self._failures:  # other failures are of calls that began before the first
            self._failures += 1
            self._back_off()
        logger.log(
            logging.DEBUG if self._warned else logging.WARNING,
            "REP_STORAGE: the store cannot be used (%s: %s); the crawl goes on without it and retries",
            type(exc).__name__,
            printable(str(exc)),
        )
        self._warned = True

    def _succeeded(self) -> None:
        if self._failures:
            logger.info("REP_STORAGE: the store can be used again")
        self._failures, self._down_until = 0, -math.inf


async def _within(seconds: float, call: Coroutine[Any, Any, T]) -> T:
    """The call's result. Raises TimeoutError when it takes longer, and drops a result that comes later."""
    answer: Deferred[T] = Deferred()

    def settle(result: T | Failure) -> None:
        if not answer.called:
            answer.callback(result)

    deferred_from_coro(call).addBoth(settle)
    too_late = Failure(TimeoutError(f"no answer within {seconds:g} seconds"))  # type: ignore[no-untyped-call]
    timer = call_later(seconds, settle, too_late)
    try:
        return await maybe_deferred_to_future(answer)
    finally:
        timer.cancel()
