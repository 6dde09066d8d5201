"""The methods that the door replaces, and requests that go back: with Scrapy's scheduler, which does not run."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from in_loop import in_loop
from scrapy import Request
from scrapy.core.scheduler import Scheduler
from unstarted import unstarted

from scrapy_rep.waiting import wrapped_scheduler
from scrapy_rep.waiting.wrapped_scheduler import WrappedScheduler, is_of


class Door:
    """Says that its methods were called."""

    def next_request(self) -> str:
        return "the door's"

    def has_pending_requests(self) -> str:
        return "the door's"

    def close(self, reason: str) -> str:
        return f"the door's, {reason}"


class OtherScheduler(Scheduler):
    """Looks into its own queue, as that of scrapy-frontera. `fails`: the URLs that it does not take back."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.said: list[Any] = []
        self.fails: dict[str, object] = {}

    def next_request(self) -> Request | None:
        self.said.append(self.has_pending_requests())
        return super().next_request()

    def enqueue_request(self, request: Request) -> Any:
        outcome = self.fails.get(request.url)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome if request.url in self.fails else super().enqueue_request(request)

    def close(self, reason: str) -> Any:
        self.said.append((reason, self.has_pending_requests(), self.next_request()))
        return super().close(reason)


def wrapped(kind: type[Scheduler] = Scheduler) -> tuple[Any, WrappedScheduler]:
    crawler, scheduler = unstarted(SCHEDULER=kind)
    return scheduler, WrappedScheduler(crawler, scheduler, Door())


def requests(number: int, **more: Any) -> list[Request]:
    return [Request(f"http://a/{n}", **more) for n in range(number)]


@in_loop
async def test_the_engine_asks_the_door_and_the_scheduler_asks_itself() -> None:
    scheduler, own = wrapped(OtherScheduler)
    assert (scheduler.next_request(), scheduler.has_pending_requests()) == ("the door's", "the door's")
    assert scheduler.close("finished") == "the door's, finished"
    assert own.has_pending_requests() is False
    scheduler.enqueue_request(Request("http://a/"))
    assert own.next_request().url == "http://a/"  # type: ignore[union-attr]
    assert own.next_request() is None
    assert scheduler.said == [True, False], "about its own queue"
    assert scheduler.has_pending_requests() == "the door's", "again"


@in_loop
async def test_the_door_is_asked_again_after_an_error_of_the_queue() -> None:
    scheduler, own = wrapped(OtherScheduler)
    scheduler.said = None  # so that `next_request` fails
    with pytest.raises(AttributeError):
        own.next_request()
    assert scheduler.has_pending_requests() == "the door's"


@in_loop
async def test_the_scheduler_closes_with_its_own_methods() -> None:
    scheduler, own = wrapped(OtherScheduler)
    own.close("finished")
    assert scheduler.said == [False, ("finished", False, None)]


@pytest.mark.parametrize("kind", [Scheduler, OtherScheduler])
@pytest.mark.parametrize("more", [{}, {"dont_filter": True}, {"meta": {"is_start_request": True}}])
@in_loop
async def test_requests_come_out_again_as_they_were_and_in_their_order(
    kind: type[Scheduler], more: dict[str, Any]
) -> None:
    scheduler, own = wrapped(kind)
    for request in requests(3, **more):
        scheduler.enqueue_request(request)
    before = [own.next_request() for _ in range(3)]
    described = [(r.url, r.dont_filter, dict(r.meta)) for r in before if r is not None]
    assert len(own.put_back([request for request in before if request is not None])) == 3
    again = [own.next_request() for _ in range(3)]
    assert [(r.url, r.dont_filter, dict(r.meta)) for r in again if r is not None] == described


@pytest.mark.parametrize(
    ("fails", "error"),
    [
        pytest.param({"http://a/1": False}, "enqueue_request returned False", id="refused"),
        pytest.param(
            {"http://a/0": OSError("first"), "http://a/1": OSError("second")}, "OSError('second')", id="fails"
        ),
        pytest.param({"http://a/1": None}, None, id="returns-nothing"),
    ],
)
@in_loop
async def test_requests_that_the_queue_does_not_take_are_reported(
    fails: dict[str, object], error: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    scheduler, own = wrapped(OtherScheduler)
    scheduler.fails = fails
    taken = own.put_back(requests(3))
    lost = {url for url, outcome in fails.items() if outcome is not None}
    assert {request.url for request in taken} == {f"http://a/{n}" for n in range(3)} - lost
    messages = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert len(messages) == bool(lost)
    assert all(f"has not taken back {len(lost)} of 3 requests" in message for message in messages)
    assert error is None or error in messages[0], "the last request goes back first"


@in_loop
async def test_after_five_seconds_of_failures_no_more_requests_are_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]

    def late(self: OtherScheduler, request: Request) -> bool:
        now[0] += 3.0
        return False

    monkeypatch.setattr(wrapped_scheduler, "monotonic", lambda: now[0])
    monkeypatch.setattr(OtherScheduler, "enqueue_request", late)
    _, own = wrapped(OtherScheduler)
    assert own.put_back(requests(10)) == []
    assert now == [6.0]


def test_the_class_of_a_scheduler() -> None:
    scheduler = OtherScheduler.__new__(OtherScheduler)
    assert is_of(scheduler, "scrapy.core.scheduler", "Scheduler")
    assert is_of(scheduler, __name__, "OtherScheduler")
    assert not is_of(scheduler, "scrapy.core.scheduler", "Missing")
    assert not is_of(scheduler, "not.imported", "Scheduler")
