"""Deferreds that are waited for: settled once, with a time limit or without."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

from scrapy.utils.asyncio import CallLaterResult, call_later
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

T = TypeVar("T")

LOOKS = 10  # within a time limit


def settle(waiter: Deferred[T], result: T | Failure | BaseException) -> None:
    """Give it the result, or the error, unless it was cancelled or has one."""
    if waiter.called:
        return
    if isinstance(result, BaseException):
        waiter.errback(result)
    else:
        waiter.callback(result)


async def within(
    seconds: float, call: Coroutine[Any, Any, T], late: Exception, counts: Callable[[], bool] = lambda: True
) -> T:
    """The call's result. Once it has taken that many seconds, raises `late`, and cancels the call without waiting for
    its end. `counts` tells whether time counts at the moment; time in a queue, for example, does not."""
    result: Deferred[T] = Deferred()
    timer: CallLaterResult

    def look(left: int) -> None:
        nonlocal timer
        left -= counts()
        if left:
            timer = call_later(seconds / LOOKS, look, left)
        else:
            settle(result, late)

    timer = call_later(seconds / LOOKS, look, LOOKS)
    under_way = deferred_from_coro(call).addBoth(partial(settle, result))
    try:
        return await maybe_deferred_to_future(result)
    finally:
        timer.cancel()
        under_way.cancel()  # unless it is done
