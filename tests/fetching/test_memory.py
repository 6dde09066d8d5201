"""The memory of policies: entries in use stay parsed, others are compressed, and both parts have a limit."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from asking import TOKEN, parse
from scrapy.settings import Settings

from scrapy_rep.fetching.memory import EACH_COMPRESSED, EACH_PARSED, IN_USE_SHARE, WEIGH_EVERY, Memory
from scrapy_rep.protocol.answer import AccessResult, Answer
from scrapy_rep.protocol.entry import Entry, StoredResponse, entry_to_bytes
from scrapy_rep.protocol.lifecycle import RobotsPolicy, State
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.settings import OCTETS_OF_ORIGIN, RepSettings

NOW, DAY = 1_700_000_000.0, 24 * 3600.0
SMALL = "User-agent: *\nDisallow: /x\n"


def origin_of(number: int) -> Origin:
    return Origin("https", f"{number}.example", None)


def entry_of(number: int, body: str = SMALL) -> Entry:
    return Entry(
        origin_of(number).robots_url,
        StoredResponse(Answer("", 200, AccessResult.SUCCESS, "HTTP 200"), NOW, NOW + DAY, parse(body)),
    )


def memory_of(octets: float) -> Memory:
    """A memory of this size (REP_MEMORY_OCTETS). A quarter of it is for entries in use."""
    return Memory(replace(RepSettings.read(Settings()), memory_octets=int(octets)))


def memory_for(*in_use: str) -> Memory:
    """A memory in which entries with just these bodies can be in use at once."""
    return memory_of((sum(map(weight_of, in_use)) + 1) / IN_USE_SHARE)


def weight_of(body: str) -> int:
    """Bytes that an entry with this body is reckoned as while it is in use."""
    return EACH_PARSED + parse(body).memory


def put(memory: Memory, number: int, body: str = SMALL) -> RobotsPolicy:
    return memory.put(origin_of(number), entry_of(number, body), NOW)


def still_parsed(memory: Memory, policies: dict[int, RobotsPolicy]) -> list[int]:
    """The numbers of the entries that are still parsed. The others are parsed again, or forgotten.

    `policies`: each as it was put, in the order of their last use.
    """
    found: list[int] = []
    for number in reversed(policies):  # a recall may compress only entries that were looked at before
        policy = memory.recall(origin_of(number), NOW)
        if policy is not None and policy.robots is policies[number].robots:
            found.insert(0, number)
    return found


def remembered(memory: Memory, *numbers: int) -> list[int]:
    return [number for number in numbers if memory.recall(origin_of(number), NOW) is not None]


def test_a_compressed_entry_is_restored_when_it_is_recalled() -> None:
    bodies = [f"User-agent: *\nDisallow: /{number}\n" for number in range(5)]
    memory = memory_for(*bodies[:4])
    policies = {number: put(memory, number, body) for number, body in enumerate(bodies)}
    assert still_parsed(memory, policies) == [1, 2, 3, 4]
    for number, body in enumerate(bodies):
        policy = memory.recall(origin_of(number), NOW)
        assert policy is not None
        assert policy.entry == entry_of(number, body)
        assert not policy.allows(f"https://{number}.example/{number}", TOKEN)
    assert len(memory) == 5


def test_an_entry_in_use_is_not_parsed_again() -> None:
    memory = memory_for(SMALL)
    policy = put(memory, 1)
    assert memory.recall(origin_of(1), NOW + 0.8 * DAY) is policy
    later = memory.recall(origin_of(1), NOW + 0.9 * DAY)
    assert later is not None
    assert later.state is State.AGEING
    assert later.robots is policy.robots, "and not parsed again"


@pytest.mark.parametrize("most", [3, 10, 100], ids="{}-origins".format)
def test_the_least_recently_used_is_forgotten_first_wherever_it_is(most: int) -> None:
    memory = memory_of(most * OCTETS_OF_ORIGIN)  # with room for 1, 2 and 28 entries in use
    for number in range(most):
        put(memory, number)
    assert len(memory) == most
    assert remembered(memory, 0) == [0]
    put(memory, most)
    assert len(memory) == most
    assert remembered(memory, *range(most + 1)) == [0, *range(2, most + 1)]


@pytest.mark.parametrize("large", [1, 3])
def test_entries_in_use_are_bounded_by_octets(large: int) -> None:
    body = "User-agent: *\n" + "Disallow: /x\n" * 1_000
    memory = memory_for(*[body] * large)
    policies = {number: put(memory, number, body) for number in range(10)}
    assert still_parsed(memory, policies) == list(range(10 - large, 10))
    policies = {11: put(memory, 11, body * 10)}
    assert still_parsed(memory, policies) == [11], "the one just used stays"
    # All of its memory is free again.
    most = (large * weight_of(body) + 1) // weight_of(SMALL)
    policies |= {number: put(memory, number) for number in range(12, 12 + 2 * most)}
    assert still_parsed(memory, policies) == list(range(12 + most, 12 + 2 * most))


def test_the_least_recently_used_is_compressed_first() -> None:
    memory = memory_for(SMALL, SMALL)
    policies = {number: put(memory, number) for number in (1, 2)}
    assert remembered(memory, 1) == [1]
    policies = {2: policies[2], 1: policies[1], 3: put(memory, 3)}
    assert still_parsed(memory, policies) == [1, 3]


def test_an_entry_that_replaces_another_of_its_origin_counts_once() -> None:
    memory = memory_for(SMALL, SMALL)
    policies = {1: put(memory, 1)}
    for _ in range(10):
        policies[2] = put(memory, 2)
    assert still_parsed(memory, policies) == [1, 2]


def test_compressed_entries_are_bounded_by_octets() -> None:
    noise = random.Random(1)
    body = "User-agent: *\n" + "".join(f"Disallow: /{noise.random()}\n" for _ in range(500))
    compressed = EACH_COMPRESSED + len(entry_to_bytes(entry_of(0, body)))
    memory = memory_of(3 * compressed / (1 - IN_USE_SHARE) + 1)  # one entry in use, and three that are not
    for number in range(9):
        put(memory, number, body)
    assert len(memory) == 4
    assert remembered(memory, *range(9)) == [5, 6, 7, 8]


@pytest.mark.parametrize(("tokens", "parsed"), [(0, [1, 2]), (60, [2])])
def test_the_memory_of_product_tokens_counts(tokens: int, parsed: list[int]) -> None:
    body = "".join(f"User-agent: a{n}\nDisallow: /{n}\n" for n in range(60))
    memory = memory_for(body, body)
    policies = {1: put(memory, 1, body), 2: put(memory, 2, body)}
    for n in range(tokens):
        policies[1].allows("/x", f"a{n}")
    for _ in range(WEIGH_EVERY):
        memory.put(origin_of(2), policies[2].entry, NOW)
    assert still_parsed(memory, policies) == parsed


def test_a_file_of_typical_size_takes_less_than_two_kib_while_not_in_use() -> None:
    body = "User-agent: *\n" + "".join(f"Disallow: /section-{n}/{n * 7919 % 1000}/\n" for n in range(60))
    memory = memory_of(20 * 2_048 / (1 - IN_USE_SHARE))
    for number in range(30):
        put(memory, number, body)
    assert len(memory) > 20
