"""The cases of this folder: robots.txt files, questions and expected answers. README.md explains the format."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SECTIONS = (
    "2.2.1-groups",
    "2.2.2-rules",
    "2.2.3-special-characters",
    "2.2.4-other-records",
    "2.3-access",
    "2.5-limits",
)
CONTESTED = "contested"

ALLOW, DISALLOW, NONE = "allow", "disallow", "none"


@dataclass(frozen=True)
class Question:
    """A question about a robots.txt: may this agent fetch this URL?"""

    expected: str
    """ALLOW or DISALLOW. NONE if the agent is not a product token; then no answer is expected."""
    agent: str
    url: str
    sources: tuple[str, ...]
    """Where the question comes from: one or two ids, such as `rfc9309/5.1/01`."""
    why: str
    """The sentence of the standard that decides, or the reason for scrapy-rep's choice."""


@dataclass(frozen=True)
class Case:
    """A robots.txt and the questions about it."""

    name: str
    """The name of the file and of the case in it, such as `2.2.1-groups/groups`."""
    body: bytes
    questions: tuple[Question, ...]

    @property
    def section(self) -> str:
        return self.name.partition("/")[0]


def cases() -> Iterator[Case]:
    """Yield all cases, by section."""
    for section in (*SECTIONS, CONTESTED):
        for case in json.loads((HERE / f"{section}.json").read_text(encoding="utf-8")):
            questions = tuple(_question(**question) for question in case["questions"])
            yield Case(f"{section}/{case['name']}", octets_of(case["robots.txt"]), questions)


def _question(answer: str, agent: str, url: Any, why: str, sources: list[str]) -> Question:
    return Question(answer, agent, octets_of(url).decode(), tuple(sources), why)


def octets_of(parts: Any) -> bytes:
    """Return the octets of a robots.txt or URL: a text, or a list of the parts of a text."""
    if isinstance(parts, list):
        return b"".join(map(octets_of, parts))
    if isinstance(parts, str):
        return parts.encode()
    return bytes.fromhex(parts["octets"]) if "octets" in parts else parts["text"].encode() * int(parts["times"])


Asked = Callable[[bytes, str, str], bool]


def answer(asked: Asked, case: Case, question: Question) -> str:
    """Return ALLOW or DISALLOW; NONE if the parser raises an exception."""
    try:
        allowed = asked(case.body, question.agent, question.url)
    except Exception:  # noqa: BLE001 - any parser may raise anything
        return NONE
    return ALLOW if allowed else DISALLOW
