"""A lease is renewed until it is given back, also if its fetch is cancelled before the store has answered."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import pytest
from crawling import Time
from dict_storage import DictStorage, shared_store
from in_loop import in_loop
from scrapy.settings import Settings

from scrapy_rep.crawl import Clock
from scrapy_rep.protocol.answer import AccessResult, Answer
from scrapy_rep.protocol.entry import Entry, StoredResponse, entry_from_bytes, entry_to_bytes, without_backoff
from scrapy_rep.protocol.freshness import DAY
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.outage import RETRY_DELAY, Outage
from scrapy_rep.protocol.robotstxt.parser import RobotsTxt
from scrapy_rep.settings import RepSettings
from scrapy_rep.storage.shared_store import LEASE_SECONDS, NOT_SHARED, POLL_FIRST, POLL_MAX

SETTINGS = RepSettings.read(Settings())


class TakesLong(DictStorage):
    """Takes the lease, and answers when it may."""

    def __init__(self) -> None:
        super().__init__("own:")
        self.holder = ""
        self.taken, self.may_answer = asyncio.Event(), asyncio.Event()

    async def acquire_lease(self, origin: str, token: str, seconds: float) -> bool:
        self.holder = token
        self.taken.set()
        await self.may_answer.wait()
        return True

    async def release_lease(self, origin: str, token: str) -> None:
        if token == self.holder:
            self.holder = ""


@in_loop
async def test_a_fetch_that_is_cancelled_while_it_asks_for_the_lease_gives_it_back() -> None:
    storage = TakesLong()
    counted: list[str] = []
    store = shared_store(storage, counted)
    origin = Origin.of("https://a.example")
    assert origin is not None
    asking = asyncio.ensure_future(store.find_or_claim(origin, None))
    await storage.taken.wait()
    assert storage.holder
    asking.cancel()
    await asyncio.wait([asking])
    assert asking.cancelled()
    await store.close()
    assert (storage.holder, counted) == ("", [])


class Counts(DictStorage):
    """The calls for leases, in their order."""

    def __init__(self) -> None:
        super().__init__("own:")
        self.calls: list[str] = []

    async def acquire_lease(self, origin: str, token: str, seconds: float) -> bool:
        self.calls.append("acquire")
        return True

    async def release_lease(self, origin: str, token: str) -> None:
        self.calls.append("release")


class RefusesOnce(Counts):
    """The first renewal is refused, as after a stall in which another crawler had the lease for a moment."""

    async def acquire_lease(self, origin: str, token: str, seconds: float) -> bool:
        await super().acquire_lease(origin, token, seconds)
        return self.calls.count("acquire") != 2


@pytest.mark.parametrize("storage_class", [Counts, RefusesOnce])
@in_loop
async def test_a_lease_is_renewed_until_it_is_given_back(
    monkeypatch: pytest.MonkeyPatch, storage_class: type[Counts]
) -> None:
    monkeypatch.setattr("scrapy_rep.storage.shared_store.RENEW_EVERY", 0.01)
    storage = storage_class()
    store, origin = shared_store(storage, []), Origin.of("https://a.example")
    assert origin is not None
    _, lease = await store.find_or_claim(origin, None)
    assert lease is not None
    while len(storage.calls) < 5:  # noqa: ASYNC110 - the store has no event
        await asyncio.sleep(0.01)
    store.give_back(lease)
    await asyncio.sleep(0.05)
    assert storage.calls[-2:] == ["acquire", "release"]
    await store.close()


class AnswersLate(DictStorage):
    """Another crawler has the lease, and each call takes four seconds."""

    def __init__(self, time: Time) -> None:
        super().__init__("own:")
        self.time = time

    async def get(self, origin: str) -> bytes | None:
        self.time.now += 4.0
        return None

    async def acquire_lease(self, origin: str, token: str, seconds: float) -> bool:
        self.time.now += 4.0
        return False


@in_loop
async def test_the_time_of_slow_calls_counts_against_the_longest_wait() -> None:
    time, origin = Time(), Origin.of("https://a.example")
    assert origin is not None
    store, began = shared_store(AnswersLate(time), [], Clock(time, time, time.sleep)), time.now
    _, lease = await store.find_or_claim(origin, None)
    assert lease is not None, "this crawler fetches, although the other has the lease"
    assert store._longest_wait <= time.now - began <= store._longest_wait + 10.0
    a_fetch_with_its_retries = (SETTINGS.fetch_timeout + RETRY_DELAY) * (1 + SETTINGS.fetch_retries)
    assert store._longest_wait >= a_fetch_with_its_retries + LEASE_SECONDS, "and until a lease has expired"
    store.give_back(lease)
    await store.close()


ORIGIN = Origin("https", "a.example", None)
RULES = RobotsTxt.parse(b"User-agent: *\nDisallow: /private\n")


def fetched(at: float) -> Entry:
    success = Answer(ORIGIN.robots_url, 200, AccessResult.SUCCESS, "HTTP 200", ended_at=at)
    return Entry(ORIGIN.robots_url, StoredResponse(success, at, at + DAY, RULES))


class HasLease(Counts):
    """Another crawler has the lease for the first few calls. Then it stores what it has found."""

    def __init__(self, calls: int, found: bytes | None = None) -> None:
        super().__init__()
        self._calls, self._found = calls, found

    async def acquire_lease(self, origin: str, token: str, seconds: float) -> bool:
        await super().acquire_lease(origin, token, seconds)
        if len(self.calls) <= self._calls:
            return False
        if self._found is not None:
            self.entries[origin] = self._found
        return True


@pytest.mark.parametrize(
    ("pauses", "slept"),
    [
        pytest.param(0, [], id="nobody-has-the-lease"),
        pytest.param(3, [POLL_FIRST, 1.5 * POLL_FIRST, 1.5**2 * POLL_FIRST], id="another-has-it"),
        pytest.param(20, [POLL_MAX] * 5, id="for-long"),
    ],
)
@in_loop
async def test_a_crawler_looks_for_the_entry_again_and_again_while_another_has_the_lease(
    pauses: int, slept: list[float]
) -> None:
    time, waits = Time(), list[None]()
    storage = HasLease(pauses)
    store = shared_store(storage, [], Clock(time, time, time.sleep))
    entry, lease = await store.find_or_claim(ORIGIN, None, lambda: waits.append(None))
    assert entry is None
    assert lease is not None, "the other crawler has stored nothing"
    assert time.slept[-len(slept) :] == pytest.approx(slept)
    assert len(time.slept) == len(waits) == pauses
    store.give_back(lease)
    await store.close()


@in_loop
async def test_an_entry_that_was_stored_just_before_the_lease_was_free_is_used() -> None:
    time = Time()
    known = fetched(time.now)
    storage = HasLease(0, entry_to_bytes(known))
    for _ in range(2):
        store = shared_store(storage, [], Clock(time, time, time.sleep))
        assert await store.find_or_claim(ORIGIN, None) == (known, None)
        await store.close()
        assert storage.calls == ["acquire", "release"], "the second time, no lease is needed"


@in_loop
async def test_after_an_error_of_the_server_one_crawler_asks_again_and_the_others_wait() -> None:
    time, storage = Time(), HasLease(2)
    error = Outage(Answer(ORIGIN.robots_url, 503, ended_at=time.now - 100), time.now - 100, 1, time.now - 90)
    storage.entries[str(ORIGIN)] = entry_to_bytes(Entry(ORIGIN.robots_url, outage=error))
    store = shared_store(storage, [], Clock(time, time, time.sleep))
    _, lease = await store.find_or_claim(ORIGIN, None)
    assert lease is not None
    assert len(time.slept) == 2
    store.give_back(lease)
    await store.close()


@in_loop
async def test_nobody_waits_for_an_entry_that_is_not_shared_or_has_no_answer() -> None:
    time = Time()
    silent = Outage(Answer(ORIGIN.robots_url, ended_at=time.now - 100), time.now - 100, 1, time.now - 90)
    for octets in (NOT_SHARED, entry_to_bytes(without_backoff(Entry(ORIGIN.robots_url, outage=silent)))):
        storage = HasLease(100)
        storage.entries[str(ORIGIN)] = octets
        store = shared_store(storage, [], Clock(time, time, time.sleep))
        _, lease = await store.find_or_claim(ORIGIN, None)
        assert lease is not None
        store.give_back(lease)
        await store.close()
    assert time.slept == []


class Lifetimes(DictStorage):
    """For how many seconds entries are stored."""

    def __init__(self) -> None:
        super().__init__("own:")
        self.lifetimes: list[float] = []

    async def put(self, origin: str, entry: bytes, lifetime: float) -> None:
        self.lifetimes.append(lifetime)
        await super().put(origin, entry, lifetime)


@pytest.mark.parametrize("forbids_store", [False, True])
@in_loop
async def test_how_long_an_entry_is_stored_or_that_waiting_for_it_is_useless(forbids_store: bool) -> None:
    time, storage = Time(), Lifetimes()
    store, entry = shared_store(storage, [], Clock(time, time, time.sleep)), fetched(time.now - 60)
    assert entry.stored is not None
    entry = replace(entry, stored=replace(entry.stored, forbids_store=forbids_store))
    _, lease = await store.find_or_claim(ORIGIN, None)
    assert lease is not None
    store.give_back(lease, entry)
    await store.close()
    useful = entry.useful_until(SETTINGS.unreachable_for) - time.now
    assert storage.lifetimes == [DAY - 60 if forbids_store else useful]
    assert storage.entries == {str(ORIGIN): NOT_SHARED if forbids_store else entry_to_bytes(entry)}


@in_loop
async def test_a_crawler_without_an_answer_does_not_replace_the_answer_that_another_has_just_stored() -> None:
    """No crawler waits for one that got no answer, so two may fetch at a time."""
    storage, origin = DictStorage("own:"), Origin.of("https://a.example")
    assert origin is not None
    counted: list[str] = []
    store, url, now = shared_store(storage, counted), origin.robots_url, time.time()
    silent = Outage(Answer(url, reason="no route to host", ended_at=now - 100), now - 100, 1, now - 90)
    storage.entries[str(origin)] = entry_to_bytes(without_backoff(Entry(url, outage=silent)))
    (_, first), (_, second) = [await store.find_or_claim(origin, None) for _ in range(2)]
    assert first is not None
    assert second is not None
    rules = RobotsTxt.parse(b"User-agent: *\nDisallow: /private\n")
    success = Answer(url, 200, AccessResult.SUCCESS, "HTTP 200", ended_at=now - 1)
    store.give_back(second, Entry(url, StoredResponse(success, now - 1, now + 86_400, rules)))
    again = Outage(Answer(url, reason="no route to host", ended_at=now - 2), now - 100, 2, now + 10)
    store.give_back(first, without_backoff(Entry(url, outage=again)))
    await store.close()
    left = entry_from_bytes(storage.entries[str(origin)], url, 512_000)
    assert left is not None
    assert (left.outage, left.stored is not None, counted) == (None, True, [])
