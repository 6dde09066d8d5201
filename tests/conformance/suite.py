"""The cases of this folder: bodies, questions and expected answers. README.md explains the format of the files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

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

# `\x0D` is an octet, `\\` a backslash, `a\{500}` five hundred times `a`. A backslash before a line end removes both.
_ESCAPE = re.compile(rb"\\x([0-9A-F]{2})|\\(\\)|\\\n|(.)\\\{([0-9]+)\}", re.DOTALL)


@dataclass(frozen=True)
class Question:
    """A question about a robots.txt: may this agent fetch this URL?"""

    expected: str
    """ALLOW or DISALLOW. NONE if the agent is not a product token; then no answer is expected."""
    agent: str
    url: str
    sources: tuple[str, ...]
    """Ids of the same question in other suites; `decided/...` if parsers differ, `added/...` if it is in no suite."""
    why: str
    """The sentence of the standard that decides, or the reason for scrapy-rep's choice."""


@dataclass(frozen=True)
class Case:
    """A robots.txt and the questions about it."""

    name: str
    """The folder and the name of the file, such as `2.2.1-groups/combined`."""
    body: bytes
    questions: tuple[Question, ...]

    @property
    def section(self) -> str:
        return self.name.partition("/")[0]


def unescaped(text: bytes) -> bytes:
    """Return the octets that a text with escapes stands for."""

    def octets(found: re.Match[bytes]) -> bytes:
        octet, backslash, repeated, times = found.groups()
        if octet is not None:
            return bytes([int(octet, 16)])
        return repeated * int(times) if repeated is not None else backslash or b""

    return _ESCAPE.sub(octets, text)


def cases() -> Iterator[Case]:
    """Yield all cases, sorted by section and name."""
    for section in (*SECTIONS, CONTESTED):
        for path in sorted((HERE / section).glob("*.txt")):
            questions = tuple(_questions(path.with_suffix(".questions").read_text(encoding="utf-8")))
            yield Case(f"{section}/{path.stem}", unescaped(path.read_bytes()), questions)


def _questions(text: str) -> Iterator[Question]:
    why: list[str] = []
    is_new = True
    for line in text.splitlines():
        if line.startswith("#"):
            if is_new:
                why.clear()
            why.append(line.removeprefix("#").strip())
            is_new = False
        elif line:
            expected, agent, url, sources = line.split("\t")
            agent, url = (unescaped(part.encode()).decode() for part in (agent, url))
            yield Question(expected, agent, url, tuple(sources.split()), " ".join(why))
            is_new = True


Asked = Callable[[bytes, str, str], bool]


def answer(asked: Asked, case: Case, question: Question) -> str:
    """Return ALLOW or DISALLOW; NONE if the parser raises an exception."""
    try:
        allowed = asked(case.body, question.agent, question.url)
    except Exception:  # noqa: BLE001 - any parser may raise anything
        return NONE
    return ALLOW if allowed else DISALLOW
