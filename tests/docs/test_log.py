"""docs/log.md has a row for each line that the package logs, in the same words."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache

from doc_pages import PAGES, names, table
from test_imports import FILES, room_of, tree

CALLS = {"debug", "info", "warning", "error", "exception", "critical", "log", "_warn"}
ROWS = [
    line
    for mark in re.findall(r"<!-- (log-\w+) -->", PAGES["docs/log.md"])
    for cells in table(mark)
    for line in names(cells[0])
]

FILLED_IN = r"%(\(\w+\))?(\.\d)?[a-z]"


@cache
def nodes() -> list[ast.AST]:
    return [node for module in FILES if room_of(module) != "commands" for node in ast.walk(tree(module))]


@cache
def texts() -> list[str]:
    """Every text of the package, with "..." for each placeholder."""
    constants = [node.value for node in nodes() if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return [re.sub(FILLED_IN, "...", text) for text in constants]


def logged() -> Iterator[str]:
    """Yield the message of each logging call, with its placeholders such as `%s`."""
    for node in nodes():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CALLS:
            constants = [part for arg in node.args[:2] for part in ast.walk(arg) if isinstance(part, ast.Constant)]
            texts = [part.value for part in constants if isinstance(part.value, str) and " " in part.value]
            yield from texts[:1]


def parts(row: str) -> list[str]:
    """Return the fixed parts of a row, without the words that differ."""
    return [part for part in re.split(r"\.\.\.|: <GET", row) if part.strip(" :;(),>")]


def test_each_line_of_the_page_is_logged() -> None:
    assert len(ROWS) > 50
    assert [row for row in ROWS if not any(all(part in text for part in parts(row)) for text in texts())] == []


def is_on_the_page(text: str) -> bool:
    return any(
        all(part in text for part in parts(row)) and (row.startswith("...") or text.startswith(parts(row)[0]))
        for row in ROWS
        if parts(row)
    )


def test_every_line_is_on_the_page() -> None:
    lines = {re.sub(FILLED_IN, "...", text) for text in logged()}
    assert len(lines) > 50
    assert [line for line in lines if not is_on_the_page(line)] == []
