"""Whether look-ups of names wait for a thread: of Twisted's reactor or, with aiohttp and httpx, of asyncio's loop."""

from __future__ import annotations

import asyncio
import sys
from typing import Any


def do_look_ups_wait() -> bool:
    """Return False if the pools of threads cannot be read."""
    reactor: Any = sys.modules.get("twisted.internet.reactor")  # importing it would install a reactor
    loop: Any = asyncio._get_running_loop()  # noqa: SLF001 - None without a loop, as with another reactor
    team = getattr(reactor.getThreadPool(), "_team", None) if hasattr(reactor, "getThreadPool") else None
    calls = getattr(getattr(loop, "_default_executor", None), "_work_queue", None)
    return (team is not None and team.statistics().backloggedWorkCount > 0) or (calls is not None and calls.qsize() > 0)
