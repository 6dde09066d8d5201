"""What of an entry may outlive the process, for how long, and for whom: crawls that share a store."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from .access import AccessResult, StatusRow, result_of
from .entry import Entry


def asked_at(entry: Entry) -> float:
    """Seconds since the epoch; of two entries of an origin, the one that was asked for later says more."""
    if entry.outage is not None:
        return entry.outage.asked_at
    return entry.copy.received_at if entry.copy is not None else 0.0


def storable(entry: Entry) -> Entry | None:
    """What of it may outlive the process (RFC 9111 5.2.2.5); None where nothing may."""
    if entry.copy is None or not entry.copy.forbids_store:
        return entry
    return replace(entry, copy=None) if entry.outage is not None else None


def of_use_until(entry: Entry, unreachable_for: float) -> float:
    """Seconds since the epoch after which the entry says nothing any more that a crawl could use."""
    copy, outage = entry.copy, entry.outage
    # Twice: an outage may begin when nobody looks, and is counted on by a crawl that comes by only at its end.
    moments = [0.0]
    if copy is not None:
        moments.append(copy.fresh_until + (2 * unreachable_for if copy.robots is not None else 0.0))
    if outage is not None:
        moments.append(outage.ask_again_at + 2 * unreachable_for)
    return max(moments)


def is_judged_by(entry: Entry, rows: Iterable[StatusRow]) -> bool:
    """Whether a policy makes of the entry's answers what was made of them: other crawls may share a store."""
    rows = tuple(rows)
    copy, outage = entry.copy, entry.outage
    judged = [(copy.status, copy.access)] if copy is not None else []
    judged += [(outage.status, AccessResult.UNREACHABLE)] if outage is not None else []
    return all(status is None or result_of(status, rows) is result for status, result in judged)
