"""If a call of the store fails or takes longer than five seconds, the crawl goes on without the store: it logs one
warning, and retries with backoff."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import CancelledError, Deferred

from scrapy_rep.deferreds import within
from scrapy_rep.log import Logger
from scrapy_rep.protocol.outage import backoff
from scrapy_rep.text import printable

T = TypeVar("T")

DEADLINE = 5.0  # seconds for one call; and for all that are left when the crawl is over
BACKOFF_FIRST = 1.0  # seconds
BACKOFF_MAX = 60.0  # seconds


class CircuitBreaker:
    """Calls the methods of a store that may be down."""

    def __init__(
        self, count: Callable[[str], None], clock: Callable[[], float], log: Logger, *, has_deadline: bool = True
    ) -> None:
        """`count` adds 1 to a stat; `clock` gives seconds. `has_deadline`: a call may hang."""
        self._has_deadline = has_deadline
        self._count = count
        self._clock = clock
        self._log = log
        self._under_way = 0  # calls
        self._failures = 0
        self._down_until = -math.inf
        self._has_warned = False

    async def call(self, method: Callable[..., Coroutine[Any, Any, T]], *args: object, otherwise: T) -> T:
        """What the method returns; `otherwise` if it fails, or if the store is down."""
        # After a failure, one call at a time is enough to see whether the store works again.
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
        """The crawl is over: wait for the last calls, which `after` is about, and close the store, also if it is down.
        All that may take DEADLINE seconds."""
        try:
            await within(DEADLINE, self._finish(close, after), TimeoutError())
        except TimeoutError:
            self._warn(
                "REP_STORAGE: the store was not done %g seconds after the crawl; what it has not stored by now is lost",
                DEADLINE,
            )

    async def _finish(self, close: Callable[[], Coroutine[Any, Any, None]], after: Deferred[Any]) -> None:
        await maybe_deferred_to_future(after)
        self._failures, self._down_until = 0, -math.inf
        await self.call(close, otherwise=None)

    def _failed(self, exc: Exception) -> None:
        self._count("rep/storage/error")
        if self._clock() >= self._down_until:  # else of a call that began before the first failure
            self._failures += 1
            self._down_until = self._clock() + backoff(self._failures, BACKOFF_FIRST, BACKOFF_MAX)
        self._warn(
            "REP_STORAGE: the store cannot be used (%s: %s); the crawl goes on without it and retries",
            type(exc).__name__,
            printable(str(exc)),
        )

    def _warn(self, message: str, *args: object) -> None:
        self._log.log(logging.DEBUG if self._has_warned else logging.WARNING, message, *args)
        self._has_warned = True


async def _awaited(method: Callable[..., Coroutine[Any, Any, T]], *args: object) -> T:
    return await method(*args)  # which says so if a user's own method is no coroutine function
