"""One asking for an origin's robots.txt, and whoever waits for it."""

from __future__ import annotations

from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

from scrapy_rep.cache.shared_store import Lease
from scrapy_rep.protocol.entry import Entry
from scrapy_rep.protocol.lifecycle import RobotsPolicy
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.scrapy_internals.parking import StoppingError


class OriginFetch:
    """For an origin, and for those that its redirects lead to."""

    def __init__(self, origin: Origin) -> None:
        self.origin = origin
        self.passed: dict[Origin, Entry | None] = {}
        """The others that it answers for, and what was known of them."""
        self.leases: list[Lease] = []
        self.waits_for: OriginFetch | None = None
        self.task: Deferred[None] | None = None
        self._waiters: dict[Origin, list[Deferred[RobotsPolicy | None]]] = {}

    def is_waiting_for(self, other: OriginFetch) -> bool:
        """Whether it goes on only after the other, or is it."""
        flight: OriginFetch | None = self
        while flight is not None and flight is not other:
            flight = flight.waits_for
        return flight is other

    async def landed(self, origin: Origin) -> RobotsPolicy | None:
        """What it came to for that origin; None where that is to be looked up anew."""
        waiter: Deferred[RobotsPolicy | None] = Deferred()
        self._waiters.setdefault(origin, []).append(waiter)
        return await maybe_deferred_to_future(waiter)

    def land(self, origin: Origin, result: RobotsPolicy | StoppingError | None) -> None:
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
