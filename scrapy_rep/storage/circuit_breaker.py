"""Cuts off a store that hangs or fails: the crawl goes on without it, and retries it after a pause.

A call fails if it takes longer than five seconds. The first failure of a crawl is logged as a warning. The pauses
between two retries become longer.
"""

import logging
import math
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from scrapy_rep.crawl import Crawl, Part
from scrapy_rep.deferreds import CANCELLATIONS, within
from scrapy_rep.protocol.foreign_text import printable
from scrapy_rep.stats import STORAGE_ERROR

T = TypeVar("T")

DEADLINE = 5.0  # seconds for one call; when the crawl ends, for all remaining calls together
RETRY_FIRST = 1.0  # seconds between the first failure and the first retry; doubled after each further failure
RETRY_MAX = 60.0  # seconds between two retries, at most


class CircuitBreaker(Part):
    def __init__(self, crawl: Crawl) -> None:
        super().__init__(crawl)
        self._under_way = 0  # number of calls
        self.reset()

    def reset(self) -> None:
        """Forget all failures, so that the next call asks the store."""
        self._failures, self._down_until = 0, -math.inf

    async def call(self, method: Callable[..., Coroutine[Any, Any, T]], *args: object, otherwise: T) -> T:
        """Return the method's result. Return `otherwise` if the method fails or the store is down."""
        # After a failure, one call at a time is enough to find out whether the store works again.
        if self._clock.monotonic() < self._down_until or (self._failures and self._under_way):
            return otherwise
        self._under_way += 1
        try:
            late = TimeoutError(f"no answer within {DEADLINE:g} seconds")
            result = await within(DEADLINE, _awaited(method, *args), late)
        except CANCELLATIONS:
            raise
        except Exception as exc:  # noqa: BLE001 - each library has its own errors
            self._failed(exc)
            return otherwise
        finally:
            self._under_way -= 1
        if self._failures:
            self._log.info("REP_STORAGE: the store can be used again")
        self.reset()
        return result

    def _failed(self, exc: Exception) -> None:
        self._count(STORAGE_ERROR)
        if self._clock.monotonic() >= self._down_until:  # calls that fail together count as one failure
            self._failures += 1
            pause = min(RETRY_FIRST * 2.0 ** min(self._failures - 1, 64), RETRY_MAX)
            self._down_until = self._clock.monotonic() + pause
        self._log.log(
            logging.WARNING if self._is_first("failure") else logging.DEBUG,
            "REP_STORAGE: the store cannot be used (%s); the crawl goes on without it and retries",
            printable(f"{type(exc).__name__}: {exc}"),
        )


async def _awaited(method: Callable[..., Coroutine[Any, Any, T]], *args: object) -> T:
    return await method(*args)  # `await` raises a clear TypeError if a user's own method is not a coroutine function
