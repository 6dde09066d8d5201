"""README, docs and contributors' pages as tests read them: blocks and tables, found by the comment above them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
CONTRIBUTORS = (
    ".github/ARCHITECTURE.md",
    "scrapy_rep/scrapy_internals/README.md",
    "tests/conformance/README.md",
    "tests/simulation/README.md",
)
PAGES = {
    name: ROOT.joinpath(name).read_text("utf-8")
    for name in (
        "README.md",
        "CHANGELOG.md",
        "tests/benchmarks/README.md",
        *sorted(f"docs/{path.name}" for path in ROOT.glob("docs/*.md")),
        *CONTRIBUTORS,
    )
}
README = PAGES["README.md"]
EXAMPLE = "http://localhost:8000"
"""The site of the examples, which docs/start.md makes. Tests put a site of the test web in its place."""
OWN = "https://example.com"
"""In settings: a site of the reader's own."""


@dataclass(frozen=True)
class Block:
    """A fenced block, and the mark in the comment above it."""

    page: str
    mark: str
    language: str
    text: str
    number: int

    @property
    def following(self) -> Block:
        return BLOCKS[self.number + 1]

    def __str__(self) -> str:
        """The test id."""
        return f"{self.page}-{self.number}"


_BLOCK = r"(?:<!-- (?P<mark>\S+) -->\n)?^```(?P<language>\S+)\n(?P<text>.*?)^```$"
_FOUND = [(page, m) for page, text in PAGES.items() for m in re.finditer(_BLOCK, text, re.MULTILINE | re.DOTALL)]
BLOCKS = [Block(page, m["mark"] or "", m["language"], m["text"], n) for n, (page, m) in enumerate(_FOUND)]


def blocks(language: str, mark: str = "") -> list[Block]:
    return [block for block in BLOCKS if (block.language, block.mark) == (language, mark)]


def marked(mark: str) -> str:
    """The text of the one block with that mark."""
    (block,) = (block for block in BLOCKS if block.mark == mark)
    return block.text


REFUSAL = re.compile(r"(?:(?<=: )|(?<=`)|^)([^:`\n]*)(?=robots\.txt \((?:http|/)\S+, line \d+)", re.MULTILINE)
"""The words before the place of a refusing rule, such as `Forbidden by `."""


def without_words(text: str) -> str:
    """Return the text without the words of refusals. `test_examples.py` compares these words with the code on all
    pages, so that other words fail one test, not one for each sample."""
    return REFUSAL.sub("", text)


def prose(page: str) -> str:
    """The page without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", PAGES[page], flags=re.MULTILINE | re.DOTALL)


def table(mark: str) -> list[list[str]]:
    """The cells of each row of the table below that mark, without the header."""
    (page,) = (page for page in PAGES.values() if f"<!-- {mark} -->\n|" in page)
    _header, _line, *rows = page.partition(f"<!-- {mark} -->\n")[2].partition("\n\n")[0].splitlines()
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]] for row in rows]


def names(cell: str) -> list[str]:
    """The texts in backticks."""
    return re.findall(r"`([^`]+)`", cell)


def first_names(mark: str) -> list[str]:
    """The texts in backticks in the first column."""
    return [name for cells in table(mark) for name in names(cells[0])]
