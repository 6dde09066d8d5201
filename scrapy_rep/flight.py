"""One asking for an origin's robots.txt, and whoever waits for it."""

from __future__ import annotations

from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

from .protocol.access import Origin
from .protocol.entry import Entry
from .protocol.lifecycle import Standing
from .storage.shelf import Lease
from .waiting import StoppingError


class Flight:
    """For an origin, and for those that its redirects lead to."""

    def __init__(self, origin: Origin) -> None:
        self.origin = origin
        self.passed: dict[Origin, Entry | None] = {}
        """The others that it answers for, and what was known of them."""
        self.leases: list[Lease] = []
        self.waits_for: Flight | None = None
        self.task: Deferred[None] | None = None
        self._waiters: dict[Origin, list[Deferred[Standing | None]]] = {}

    def is_waiting_for(self, other: Flight) -> bool:
        """Whether it goes on only after the other, or is it."""
        flight: Flight | None = self
        while flight is not None and flight is not other:
            flight = flight.waits_for
        return flight is other

    async def landed(self, origin: Origin) -> Standing | None:
        """What it came to for that origin; None where that is to be looked up anew."""
        waiter: Deferred[Standing | None] = Deferred()
        self._waiters.setdefault(origin, []).append(waiter)
        return await maybe_deferred_to_future(waiter)

    def land(self, origin: Origin, result: Standing | StoppingError | None) -> None:
        for waiter in self._waiters.pop(origin, ()):
            if waiter.called:  # it was cancelled
                continue
            if isinstance(result, StoppingError):
                waiter.errback(result)
            else:
                waiter.callback(result)

    def stop(self) -> None:
        for origin in list(self._waiters):
            self.land(origin, StoppingError())
        if self.task is not None:
            self.task.cancel()
