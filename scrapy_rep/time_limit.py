"""A time limit for a call, which is cancelled then; time that does not count, such as that in a queue, is left out."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from scrapy.utils.asyncio import create_looping_call
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.python.failure import Failure

T = TypeVar("T")

LOOKS = 10  # within the limit
SHORTEST = 0.001  # seconds between two looks


async def within(
    seconds: float, call: Coroutine[Any, Any, T], late: Exception, counts: Callable[[], bool] = lambda: True
) -> T:
    """The call's result. Raises `late` once it has taken that many seconds; `counts` tells whether time counts now."""
    looks = 0
    under_way = deferred_from_coro(call)

    def look() -> None:
        nonlocal looks
        looks += counts()
        if looks == LOOKS:
            under_way.cancel()

    # Here, not where it is awaited: the caller may be cancelled while the call takes its time to end.
    under_way.addErrback(lambda failure: Failure(late) if looks >= LOOKS else failure)  # type: ignore[no-untyped-call]
    watch = create_looping_call(look)
    watch.start(max(seconds / LOOKS, SHORTEST), now=False)
    try:
        return await maybe_deferred_to_future(under_way)
    finally:
        watch.stop()
