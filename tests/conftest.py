from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings
from redis_server import BINARY, MISSING, RedisServer
from web import Web

# No test fails because the machine has much else to do.
settings.register_profile("no-deadline", deadline=None)
settings.load_profile("no-deadline")


@pytest.fixture(scope="session")
def web() -> Iterator[Web]:
    """A web of origins on loopback, in a process of its own."""
    web = Web()
    yield web
    web.close()


@pytest.fixture
def redis_server() -> Iterator[RedisServer]:
    """An empty Redis server of the test's own."""
    pytest.importorskip("redis", reason="redis-py is not installed: pip install scrapy-rep[redis]")
    if BINARY is None:
        pytest.skip(MISSING)
    with RedisServer() as server:
        yield server
