"""Robots.txt files and questions, drawn from a seed. They are full of what parsers get wrong."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

ATOMS = ["/", "a", "b", "A", "*", "$", "?", "=", "é", " ", "[", "%", "%61", "%2f", "%2F", "%3a", "%3A", ":", "%c3"]
ATOMS += ["%C3%A9", "%24", "%2A", "%25", "3", "F", "~", "%7E", "+", "@", "%40", "%3F", "|", "\0", "\x0b", "\xa0", "\t"]
ATOMS += ["%c", "%2"]
KEYS = ["User-agent", "Disallow", "Allow", "DISALLOW", "allow", "useragent", "user agent", "Disalow", "diasllow"]
DELAYS = ["1", "2", "3.5", "4", "1e1", "-1", "x", "", "1 2", "9" * 400]
OTHER_KEYS = [
    "Crawl-delay",
    "crawl delay",
    "CrawlDelay",
    "Sitemap",
    "Noindex",
    "",
    "x",
    "User-agents",
    "disallowed",
    "user\tagent",
]
SEPARATORS = [": ", ":"] * 4 + [" : ", "\t:", " ", "  ", "\t", "", "::"]
SEPARATORS += ["\xa0: ", " \x0b:", "\0: ", ":\xa0", ": \x7f ", " \xa0", "\xa0"]
AGENTS = [
    "*",
    "a",
    "b",
    "B",
    "a/1",
    "* x",
    "*x",
    "",
    "/x",
    "a b",
    "b#c",
    "*#",
    "a.b",
    "-",
    "aé",
    "a disallow: /a",
    "* allow:/",
]
ENDS = ["\n"] * 8 + ["\r\n", "\r", "\n\n", "\r\r\n", "\x0b", "\x85"]
MARKS = [b""] * 14 + [b"\xef\xbb\xbf", b"\xef\xbb\xbf" * 2]
TAILS = [""] * 12 + [" # c", "#", "  ", "\t", "\t #x: y", "\xa0", "\0", "\x85 #"]
TOKENS: list[tuple[str, ...]] = [("a",), ("b",), ("A",), ("*",), ("z",), ("z", "b"), ("b", "a"), ()]


Question = tuple[str, tuple[str, ...]]
"""A URL, and the product tokens in order of preference."""


def bodies_and_questions(seed: int, files: int, questions: int) -> Iterator[tuple[bytes, list[Question]]]:
    """Yield `files` robots.txt files, each with `questions` URLs and tokens to ask about."""
    random = Random(seed)
    for _ in range(files):
        # Few rules and many take different ways through the matcher.
        lines = random.choice([3, 8, 14, 14, 150])
        encoding = random.choice(["utf-8", "latin-1"])
        body = [
            random.choice(MARKS) + (line(random) + random.choice(ENDS)).encode(encoding)
            for _ in range(random.randrange(lines))
        ]
        yield b"".join(body), [question(random) for _ in range(questions)]


def line(random: Random) -> str:
    key = random.choice(KEYS if random.random() < 0.85 else OTHER_KEYS)
    if key.lower().startswith("user") and random.random() < 0.9:
        value = random.choice(AGENTS)
    elif key.lower().startswith("crawl"):
        value = random.choice(DELAYS)
    else:
        value = random.choice(["/", "/", "/", "*", "/a", ""]) + text(random, 6)
    indent = random.choice([""] * 10 + [" ", "\t ", "#", "\x0b", "\xa0 "])
    return indent + key + random.choice(SEPARATORS) + value + random.choice(TAILS)


def text(random: Random, most: int) -> str:
    return "".join(random.choices(ATOMS, k=random.randrange(most)))


def question(random: Random) -> Question:
    before = random.choice(["https://h.example"] * 6 + ["http://u@h:1", "//h", "HTTPS://h", "", "ftp://"])
    fragment = random.choice([""] * 6 + ["#x", "é#/?"])
    start = random.choice(["/"] * 4 + ["?"] + [""] * bool(before))
    return before + start + text(random, 9) + fragment, random.choice(TOKENS)
