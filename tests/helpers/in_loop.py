"""Run a coroutine test in the asyncio loop, so that it may await asyncio's objects."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any

from pytest_twisted import ensureDeferred
from scrapy.utils.defer import deferred_from_coro


def in_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Any:
    @ensureDeferred
    @wraps(test)
    async def run(*args: Any, **kwargs: Any) -> None:
        await deferred_from_coro(test(*args, **kwargs))

    return run
