"""Gives a Deferred its result once, and limits the time of a call."""

from __future__ import annotations

from collections.abc import Coroutine
from functools import partial
from typing import Any, TypeVar

from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

T = TypeVar("T")


def settle(waiter: Deferred[T], result: T | Failure | BaseException) -> None:
    """Give the Deferred its result or error, unless it has a result already or was cancelled."""
    if waiter.called:
        return
    if isinstance(result, BaseException):
        waiter.errback(result)
    else:
        waiter.callback(result)


async def within(seconds: float, call: Coroutine[Any, Any, T], late: Exception) -> T:
    """Wait for the call and return its result. After the given number of seconds, cancel the call and raise `late`."""
    result: Deferred[T] = Deferred()
    timer = call_later(seconds, settle, result, late)
    under_way = deferred_from_coro(call).addBoth(partial(settle, result))
    try:
        return await maybe_deferred_to_future(result)
    finally:
        timer.cancel()
        under_way.cancel()  # unless it is done
