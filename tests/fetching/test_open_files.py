"""Fetches of robots.txt open at most half of the files that the process may open, even if no site answers."""

from __future__ import annotations

import sys
from contextlib import AsyncExitStack

import pytest
from scrapy.utils.defer import deferred_f_from_coro_f, deferred_from_coro
from twisted.internet.defer import Deferred

from scrapy_rep.fetching import places
from scrapy_rep.scrapy_internals.compat import sleep

resource = pytest.importorskip("resource", reason="Windows has one limit for all processes")


@pytest.mark.parametrize(("files", "at_once"), [(100, 64), (200, 100), (sys.maxsize, 300)])
@deferred_f_from_coro_f
async def test_slow_fetches_leave_files_for_pages(monkeypatch: pytest.MonkeyPatch, files: int, at_once: int) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (files, files))
    monkeypatch.delitem(sys.modules, "twisted.internet.selectreactor", raising=False)
    monkeypatch.setattr(places, "SLOW_AFTER", 0.01)
    of_fetches, under_way, held = places.Places(lambda: 64), 0, AsyncExitStack()

    async def fetch() -> None:
        nonlocal under_way
        await held.enter_async_context(of_fetches.taken(Deferred(), lambda: None))  # and it never ends
        under_way += 1

    fetches = [deferred_from_coro(fetch()) for _ in range(300)]
    while under_way < at_once:
        await sleep(0.01)
    await sleep(0.1)
    assert under_way == at_once
    for each in fetches:
        each.addErrback(lambda _failure: None).cancel()
