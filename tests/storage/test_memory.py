"""The memory of policies: entries in use stay parsed, others are compressed, and both parts have a limit."""

from __future__ import annotations

from dataclasses import replace

import pytest
from asking import TOKEN, parse
from scrapy.settings import Settings

from scrapy_rep.protocol.access_result import AccessResult
from scrapy_rep.protocol.entry import Entry, StoredResponse, entry_to_bytes
from scrapy_rep.protocol.lifecycle import RobotsPolicy, State, policy_at
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.robotstxt.parser import RobotsTxt
from scrapy_rep.settings import RepSettings
from scrapy_rep.storage.memory import EACH_COMPRESSED, EACH_PARSED, IN_USE_SHARE, WEIGH_EVERY, Memory

NOW, DAY = 1_700_000_000.0, 24 * 3600.0


def origin_of(number: int) -> Origin:
    return Origin("https", f"{number}.example", None)


def entry_of(number: int, body: str = "User-agent: *\nDisallow: /x\n") -> Entry:
    return Entry(
        origin_of(number).robots_url, StoredResponse(AccessResult.SUCCESS, "HTTP 200", parse(body), NOW, NOW + DAY, 200)
    )


def memory_of(most: int = 100, in_use_octets: float = 1e9) -> Memory:
    """`in_use_octets`: for the entries in use. Three times as many are for those that are compressed."""
    settings = RepSettings.read(Settings())
    memory = Memory(replace(settings, memory_octets=int(in_use_octets / IN_USE_SHARE)))
    memory._max_origins = most
    return memory


def put(memory: Memory, number: int, entry: Entry) -> RobotsPolicy:
    policy = policy_at(entry, NOW, 30 * DAY)
    memory.put(origin_of(number), policy)
    return policy


def weight_of(body: str) -> int:
    """Bytes that an entry with this body is reckoned as while it is in use."""
    return EACH_PARSED + RobotsTxt.parse(body.encode()).memory


def test_a_compressed_entry_is_restored_when_it_is_recalled() -> None:
    memory = memory_of(in_use_octets=4 * weight_of("User-agent: *\nDisallow: /0\n"))
    for number in range(5):
        put(memory, number, entry_of(number, f"User-agent: *\nDisallow: /{number}\n"))
    assert len(memory._in_use) == 4
    for number in range(5):
        policy = memory.recall(origin_of(number), NOW)
        assert policy is not None
        assert policy.entry == entry_of(number, f"User-agent: *\nDisallow: /{number}\n")
        assert not policy.allows(f"https://{number}.example/{number}", TOKEN)
    assert 0 < len(memory._in_use) < 5
    assert len(memory) == 5


def test_an_entry_in_use_is_not_parsed_again() -> None:
    memory = memory_of()
    policy = put(memory, 1, entry_of(1))
    assert memory.recall(origin_of(1), NOW + 0.8 * DAY) is policy
    later = memory.recall(origin_of(1), NOW + 0.9 * DAY)
    assert later is not None
    assert later.state is State.AGEING
    assert later.robots is policy.robots, "and not parsed again"


@pytest.mark.parametrize("in_use", [1, 2, 3])
def test_the_least_recently_used_is_forgotten_first_wherever_it_is(in_use: int) -> None:
    memory = memory_of(most=3, in_use_octets=in_use * weight_of("User-agent: *\nDisallow: /x\n"))
    for number in (1, 2, 3):
        put(memory, number, entry_of(number))
    assert memory.recall(origin_of(1), NOW) is not None
    put(memory, 4, entry_of(4))
    assert [memory.recall(origin_of(n), NOW) is not None for n in (1, 2, 3, 4)] == [True, False, True, True]


@pytest.mark.parametrize("large", [1, 3])
def test_entries_in_use_are_bounded_by_octets(large: int) -> None:
    body = "User-agent: *\n" + "Disallow: /x\n" * 1_000
    memory = memory_of(in_use_octets=large * weight_of(body) + 1)
    for number in range(10):
        put(memory, number, entry_of(number, body))
    assert len(memory._in_use) == large
    put(memory, 11, entry_of(11, body * 10))
    assert len(memory._in_use) == 1, "the one just used stays"
    put(memory, 12, entry_of(12))
    assert list(memory._in_use) == [origin_of(12)]
    assert memory._in_use_octets == weight_of("User-agent: *\nDisallow: /x\n")


def test_compressed_entries_are_bounded_by_octets() -> None:
    octets = len(entry_to_bytes(entry_of(0)))
    memory = memory_of(in_use_octets=EACH_COMPRESSED + octets)  # one entry in use, and three that are not
    for number in range(9):
        put(memory, number, entry_of(number))
    assert [memory.recall(origin_of(n), NOW) is not None for n in (4, 5, 6, 7, 8)] == [False, True, True, True, True]


def test_the_memory_of_product_tokens_counts() -> None:
    body = "".join(f"User-agent: a{n}\nDisallow: /{n}\n" for n in range(60))
    memory = memory_of()
    before = put(memory, 1, entry_of(1, body))
    reckoned = memory._in_use_octets
    for n in range(60):
        before.allows("/x", f"a{n}")
    for _ in range(WEIGH_EVERY):
        put(memory, 1, before.entry)
    assert before.robots is not None
    assert memory._in_use_octets == EACH_PARSED + before.robots.memory > reckoned


def test_a_file_of_typical_size_takes_less_than_two_kib_while_not_in_use() -> None:
    body = "User-agent: *\n" + "".join(f"Disallow: /section-{n}/{n * 7919 % 1000}/\n" for n in range(60))
    memory = memory_of(in_use_octets=1)
    for number in (1, 2):
        put(memory, number, entry_of(number, body))
    assert len(memory._compressed) == 1
    assert memory._compressed_octets < 2_048
