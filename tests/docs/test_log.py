"""docs/log.md has a row for each line that the package logs, in the same words."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache

from doc_pages import PAGES, names, table
from test_imports import FILES, room_of, tree

CALLS = {"debug", "info", "warning", "error", "exception", "critical", "log", "_warn"}
LEVELS = {"debug": "DEBUG", "info": "INFO", "warning": "WARNING", "error": "ERROR", "exception": "ERROR"}
MARKS = re.findall(r"<!-- (log-\w+) -->", PAGES["docs/log.md"])
ROWS = [line for mark in MARKS for cells in table(mark) for line in names(cells[0])]

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
            yield from texts_of(node)[:1]


def texts_of(call: ast.Call) -> list[str]:
    """Return the texts among the first two arguments of a logging call."""
    constants = [part for arg in call.args[:2] for part in ast.walk(arg) if isinstance(part, ast.Constant)]
    return [part.value for part in constants if isinstance(part.value, str) and " " in part.value]


def parts(row: str) -> list[str]:
    """Return the fixed parts of a row, without the words that differ."""
    return [part for part in re.split(r"\.\.\.|: <GET", row) if part.strip(" :;(),>")]


def test_each_line_of_the_page_is_logged() -> None:
    assert len(ROWS) > 50
    assert [row for row in ROWS if not any(all(part in text for part in parts(row)) for text in texts())] == []


def fits(row: str, text: str) -> bool:
    return all(part in text for part in parts(row)) and (row.startswith("...") or text.startswith(parts(row)[0]))


def is_on_the_page(text: str) -> bool:
    return any(fits(row, text) for row in ROWS if parts(row))


def test_every_line_is_on_the_page() -> None:
    lines = {re.sub(FILLED_IN, "...", text) for text in logged()}
    assert len(lines) > 50
    assert [line for line in lines if not is_on_the_page(line)] == []


def test_the_page_has_the_level_of_each_line() -> None:
    """Without lines whose level is computed (`log.log`)."""
    cells_of = {line: cells for mark in MARKS for cells in table(mark) for line in names(cells[0])}
    compared = 0
    for node in nodes():
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in LEVELS):
            continue
        for text in texts_of(node)[:1]:
            shown = re.sub(FILLED_IN, "...", text)
            levels = {cells_of[row][1] for row in ROWS if parts(row) and fits(row, shown)}
            assert any(LEVELS[node.func.attr] in level for level in levels), (text, levels)
            compared += 1
    assert compared > 40
