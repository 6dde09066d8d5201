"""If a call of the store fails or takes longer than five seconds, the crawl goes on without the store: it logs one
warning, and retries with backoff."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from scrapy.utils.asyncio import CallLaterResult, call_later
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import CancelledError, Deferred
from twisted.python.failure import Failure

from scrapy_rep.log import Logger
from scrapy_rep.protocol.outage import backoff
from scrapy_rep.storage.base import Storage
from scrapy_rep.text import printable

T = TypeVar("T")

DEADLINE = 5.0  # seconds for one call; and for all that are left when the crawl is over
BACKOFF_FIRST = 1.0  # seconds
BACKOFF_MAX = 60.0  # seconds


class CircuitBreaker:
    """A store's methods, which return a default instead of raising. `count` adds 1 to a stat; `clock` gives seconds."""

    def __init__(self, storage: Storage, count: Callable[[str], None], clock: Callable[[], float], log: Logger) -> None:
        self._storage = storage
        self._count = count
        self._clock = clock
        self._log = log
        self._calls: set[_Call[Any]] = set()
        self._failures = 0
        self._down_until = -math.inf
        self._warned = False
        self._closed = False
        self._closing: CallLaterResult | None = None

    async def get(self, origin: str) -> bytes | None:
        return await self._attempt(self._get, origin, otherwise=None)

    async def put(self, origin: str, entry: bytes, lifetime: float) -> None:
        await self._attempt(self._storage.put, origin, entry, lifetime, otherwise=None)

    async def acquire_lease(self, origin: str, token: str, seconds: float) -> bool:
        """True if the store fails, so that the crawl does not wait."""
        return await self._attempt(self._storage.acquire_lease, origin, token, seconds, otherwise=True)

    async def release_lease(self, origin: str, token: str) -> None:
        await self._attempt(self._storage.release_lease, origin, token, otherwise=None)

    async def get_or_lease(self, origin: str, token: str, seconds: float) -> tuple[bytes | None, bool]:
        """If the store fails, no entry and the lease, so that the crawl does not wait."""
        otherwise: tuple[bytes | None, bool] = (None, True)
        return await self._attempt(self._get_or_lease, origin, token, seconds, otherwise=otherwise)

    async def put_and_release(self, origin: str, entry: bytes, lifetime: float, token: str) -> None:
        await self._attempt(self._storage.put_and_release, origin, entry, lifetime, token, otherwise=None)

    def start_closing(self) -> None:
        """The crawl is over: from now on all calls together have DEADLINE seconds, `close` included."""
        if self._closing is None:
            self._closing = call_later(DEADLINE, self._give_up)

    async def close(self) -> None:
        self.start_closing()
        await self._attempt(self._storage.close, otherwise=None, even_if_down=True)
        self._closed = True
        if self._closing is not None:
            self._closing.cancel()

    async def _get(self, origin: str) -> bytes | None:
        return _entry(await self._storage.get(origin))

    async def _get_or_lease(self, origin: str, token: str, seconds: float) -> tuple[bytes | None, bool]:
        entry, is_leased = await self._storage.get_or_lease(origin, token, seconds)
        return _entry(entry), bool(is_leased)

    async def _attempt(
        self, method: Callable[..., Coroutine[Any, Any, T]], *args: object, otherwise: T, even_if_down: bool = False
    ) -> T:
        if self._closed or (self._clock() < self._down_until and not even_if_down):
            return otherwise
        is_retry = self._failures > 0
        if is_retry:
            self._down_until = self._clock() + DEADLINE  # meanwhile other calls are skipped: one is enough to see
        call: _Call[T] = _Call(method, *args)
        self._calls.add(call)
        timer = call_later(DEADLINE, call.end, TimeoutError(f"no answer within {DEADLINE:g} seconds"))
        try:
            result = await maybe_deferred_to_future(call)
        except CancelledError:  # Twisted's is an Exception
            raise
        except _SkippedError:
            return otherwise
        except Exception as exc:  # noqa: BLE001 - each library has its own errors
            self._failed(exc, is_retry)
            return otherwise
        finally:
            timer.cancel()
            self._calls.discard(call)
        if not even_if_down:  # closing does not show that it works
            self._succeeded()
        return result

    def _failed(self, exc: Exception, is_retry: bool) -> None:
        self._count("rep/storage/error")
        if is_retry or not self._failures:  # other failures are of calls that began before the first
            self._failures += 1
            self._down_until = self._clock() + backoff(self._failures, BACKOFF_FIRST, BACKOFF_MAX)
        self._warn(
            "REP_STORAGE: the store cannot be used (%s: %s); the crawl goes on without it and retries",
            type(exc).__name__,
            printable(str(exc)),
        )
        self._skip_calls()

    def _succeeded(self) -> None:
        if self._failures:
            self._log.info("REP_STORAGE: the store can be used again")
        self._failures, self._down_until = 0, -math.inf

    def _give_up(self) -> None:
        self._closed = True
        self._warn(
            "REP_STORAGE: the store was not done %g seconds after the crawl; what it has not stored by now is lost",
            DEADLINE,
        )
        self._skip_calls()

    def _skip_calls(self) -> None:
        """They would only queue behind the call that failed."""
        for call in list(self._calls):
            call.end(_SkippedError())

    def _warn(self, message: str, *args: object) -> None:
        self._log.log(logging.DEBUG if self._warned else logging.WARNING, message, *args)
        self._warned = True


def _entry(value: object) -> bytes | None:
    """The value, if it is an entry or None. Raises TypeError for others, which a user's own store may return."""
    if value is None or isinstance(value, bytes):
        return value
    raise TypeError(f"an entry must be bytes, not {type(value).__name__}")


class _SkippedError(Exception):
    """Not this call has failed, but another one."""


class _Call(Deferred[T]):
    """One call of the store. A result that comes after its end is dropped."""

    def __init__(self, method: Callable[..., Coroutine[Any, Any, T]], *args: object) -> None:
        super().__init__(lambda _call: self._made.cancel())
        self._made = deferred_from_coro(_awaited(method, *args)).addBoth(self._settle)

    def end(self, error: Exception) -> None:
        self._settle(Failure(error))  # type: ignore[no-untyped-call]
        self._made.cancel()

    def _settle(self, result: T | Failure) -> None:
        if not self.called:
            self.callback(result)


async def _awaited(method: Callable[..., Coroutine[Any, Any, T]], *args: object) -> T:
    return await method(*args)  # here, because a method that is no coroutine function may raise at once
