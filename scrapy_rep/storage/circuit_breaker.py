"""Calls a store that may be down.

If a call fails or takes longer than five seconds, the crawl goes on without the store. It logs one warning, and retries
the store with exponential backoff.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import CancelledError, Deferred

from scrapy_rep.deferreds import within
from scrapy_rep.log import Logger
from scrapy_rep.text import printable

T = TypeVar("T")

DEADLINE = 5.0  # seconds for one call; and for all remaining calls when the crawl ends
RETRY_FIRST = 1.0  # seconds between the first failure and the first retry; doubled after each further failure
RETRY_MAX = 60.0  # seconds between two retries, at most


class CircuitBreaker:
    def __init__(
        self, count: Callable[[str], None], clock: Callable[[], float], log: Logger, *, has_deadline: bool = True
    ) -> None:
        """`count` adds 1 to a stat. `clock` returns monotonic seconds. `has_deadline` limits each call to DEADLINE."""
        self._has_deadline = has_deadline
        self._count = count
        self._clock = clock
        self._log = log
        self._under_way = 0  # number of calls
        self._failures = 0
        self._down_until = -math.inf
        self._has_warned = False

    async def call(self, method: Callable[..., Coroutine[Any, Any, T]], *args: object, otherwise: T) -> T:
        """Return the method's result. Return `otherwise` if the method fails or the store is down."""
        # After a failure, one call at a time is enough to find out whether the store works again.
        if self._clock() < self._down_until or (self._failures and self._under_way):
            return otherwise
        self._under_way += 1
        try:
            call, late = _awaited(method, *args), TimeoutError(f"no answer within {DEADLINE:g} seconds")
            result = await (within(DEADLINE, call, late) if self._has_deadline else call)
        except CancelledError:  # Twisted's is an Exception
            raise
        except Exception as exc:  # noqa: BLE001 - each library has its own errors
            self._failed(exc)
            return otherwise
        finally:
            self._under_way -= 1
        if self._failures:
            self._log.info("REP_STORAGE: the store can be used again")
        self._failures, self._down_until = 0, -math.inf
        return result

    async def close(self, close: Callable[[], Coroutine[Any, Any, None]], after: Deferred[Any]) -> None:
        """Wait for `after`, which fires when the last calls are done, and then close the store, even if it is down.
        Give up after DEADLINE seconds."""
        try:
            await within(DEADLINE, self._finish(close, after), TimeoutError())
        except TimeoutError:
            self._warn(
                "REP_STORAGE: the store had not finished %g seconds after the crawl; entries not stored yet are lost",
                DEADLINE,
            )

    async def _finish(self, close: Callable[[], Coroutine[Any, Any, None]], after: Deferred[Any]) -> None:
        await maybe_deferred_to_future(after)
        self._failures, self._down_until = 0, -math.inf
        await self.call(close, otherwise=None)

    def _failed(self, exc: Exception) -> None:
        self._count("rep/storage/error")
        if self._clock() >= self._down_until:  # calls that fail together count as one failure
            self._failures += 1
            self._down_until = self._clock() + min(RETRY_FIRST * 2.0 ** min(self._failures - 1, 64), RETRY_MAX)
        self._warn(
            "REP_STORAGE: the store cannot be used (%s: %s); the crawl goes on without it and retries",
            type(exc).__name__,
            printable(str(exc)),
        )

    def _warn(self, message: str, *args: object) -> None:
        self._log.log(logging.DEBUG if self._has_warned else logging.WARNING, message, *args)
        self._has_warned = True


async def _awaited(method: Callable[..., Coroutine[Any, Any, T]], *args: object) -> T:
    return await method(*args)  # `await` raises a clear TypeError if a user's own method is not a coroutine function
