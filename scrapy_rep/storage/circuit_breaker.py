"""A store that may be down: a miss, a stat and one warning, and it is tried again with backoff."""

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
    """The store's methods, which never raise. `count` adds one to a stat, `clock` gives seconds."""

    def __init__(self, storage: Storage, count: Callable[[str], None], clock: Callable[[], float]) -> None:
        self._storage = storage
        self._count = count
        self._clock = clock
        self._failures = 0
        self._down_until = -math.inf
        self._warned = False
        self._closed = False

    async def get(self, origin: str) -> bytes | None:
        return await self._tried(self._storage.get, origin, otherwise=None)

    async def put(self, origin: str, octets: bytes, keep_for: float) -> None:
        await self._tried(self._storage.put, origin, octets, keep_for, otherwise=None)

    async def hold(self, origin: str, token: str, seconds: float) -> bool:
        """A store that is down holds nobody up."""
        return await self._tried(self._storage.hold, origin, token, seconds, otherwise=True)

    async def release(self, origin: str, token: str) -> None:
        await self._tried(self._storage.release, origin, token, otherwise=None)

    async def close(self) -> None:
        if not self._closed:
            await self._tried(self._storage.close, otherwise=None, although_down=True)
            self._closed = True

    async def _tried(
        self, call: Callable[..., Coroutine[Any, Any, T]], *args: object, otherwise: T, although_down: bool = False
    ) -> T:
        if self._closed or (self._is_down() and not although_down):
            return otherwise
        tried_again = self._failures > 0
        if tried_again:
            self._down_until = self._clock() + DEADLINE  # for whoever comes meanwhile: one shows whether it works
        try:
            result = await _within(DEADLINE, call(*args))
        except CancelledError:  # an Exception, of Twisted's
            raise
        except Exception as exc:  # noqa: BLE001 - each library has errors of its own
            self._failed(exc, tried_again)
            return otherwise
        if not although_down:  # to close says nothing of whether it works
            self._works()
        return result

    def _is_down(self) -> bool:
        return self._clock() < self._down_until

    def _leave_alone(self) -> None:
        wait = min(BACKOFF_FIRST * 2.0 ** min(max(self._failures - 1, 0), 64), BACKOFF_MAX)
        self._down_until = self._clock() + wait

    def _failed(self, exc: Exception, tried_again: bool) -> None:
        self._count("rep/storage/error")
        if tried_again or not self._failures:  # else a call that had begun before it was known
            self._failures += 1
            self._leave_alone()
        logger.log(
            logging.DEBUG if self._warned else logging.WARNING,
            "REP_STORAGE: the store can't be used (%s: %s); the crawl goes on without it, and tries it again",
            type(exc).__name__,
            printable(str(exc)),
        )
        self._warned = True

    def _works(self) -> None:
        if self._failures:
            logger.info("REP_STORAGE: the store can be used again")
        self._failures, self._down_until = 0, -math.inf


async def _within(seconds: float, call: Coroutine[Any, Any, T]) -> T:
    """Raises TimeoutError where it takes longer; what comes of it then is nobody's."""
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
