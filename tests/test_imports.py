"""Imports point one way: from what a crawl loads down to the protocol, which imports the standard library alone."""

from __future__ import annotations

import ast
import importlib
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from scrapy.settings import Settings
from scrapy.utils.misc import load_object

import scrapy_rep
from scrapy_rep.extensions import EXTENSIONS, Extension
from scrapy_rep.settings import RepSettings

ROOT = Path(scrapy_rep.__file__).parent

# The folders and modules of the package. Each imports from itself and from rows below its own.
LAYERS = (
    ("scrapy_rep",),
    ("addon", "commands"),
    ("middleware",),
    ("extensions", "waiting"),
    ("gate",),
    ("fetching", "refusals"),
    ("storage",),
    ("crawl", "exceptions", "origin_info", "robotparser"),
    ("settings", "signals", "user_agent"),
    ("scrapy_internals", "usage"),
    ("deferreds", "log", "meta", "protocol", "stats", "top_k"),
)
ROW = {room: row for row, rooms in enumerate(LAYERS) for room in rooms}
# Values in, values out: that takes no clock and no I/O.
CLOCK_AND_IO = {
    *("asyncio", "concurrent", "datetime", "ftplib", "http", "importlib", "io", "logging", "os", "pathlib", "queue"),
    *("random", "sched", "secrets", "select", "selectors", "signal", "ssl", "subprocess", "tempfile"),
    *("threading", "time", "uuid", "warnings"),
}


def name_of(path: Path) -> str:
    """A module's name in the package: `protocol.origin`. A folder has its own, the package is `scrapy_rep`."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts) or "scrapy_rep"


FILES = {name_of(path): path for path in sorted(ROOT.rglob("*.py"))}


@cache
def tree(module: str) -> ast.Module:
    return ast.parse(FILES[module].read_text(encoding="utf-8"))


def room_of(module: str) -> str:
    return module.partition(".")[0]


@cache
def imports_of(module: str) -> frozenset[str]:
    """Everything it imports, wherever in the file: modules of the package as in FILES, others by their top package."""
    return frozenset(_imports_of(module))


def _imports_of(module: str) -> Iterator[str]:
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Import):
            yield from (resolved(alias.name.split(".")) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = list(FILES[module].relative_to(ROOT.parent).parent.parts)
            base = above[: len(above) + 1 - node.level] if node.level else []
            start = [*base, *(node.module or "").split(".")] if node.module else base
            # What is imported from a package may be a module of it.
            yield from (resolved([*start, alias.name]) for alias in node.names)


def resolved(names: list[str]) -> str:
    if names[0] != ROOT.name:
        return names[0]
    own = [".".join(names[1:end]) for end in range(len(names), 1, -1)]
    return next((name for name in own if name in FILES), ROOT.name)


def own(module: str) -> frozenset[str]:
    return imports_of(module) & set(FILES)


PROTOCOL = [module for module in FILES if room_of(module) == "protocol"]


def test_known_imports_are_found() -> None:
    assert {"addon", "protocol.robotstxt.parser", "importlib", "typing"} <= imports_of("scrapy_rep")
    assert {"scrapy", "fetching.single_flight", "waiting.at_scheduler"} <= imports_of("middleware")
    assert {"dataclasses", "protocol.robotstxt.rules"} <= imports_of("protocol.robotstxt.parser")


# Directions.


def test_each_folder_and_module_is_in_one_row() -> None:
    assert sorted(room for rooms in LAYERS for room in rooms) == sorted({room_of(module) for module in FILES})


def test_imports_lead_down() -> None:
    rooms = [(module, room_of(module), imported, room_of(imported)) for module in FILES for imported in own(module)]
    assert [
        (module, imported) for module, one, imported, other in rooms if one != other and ROW[other] <= ROW[one]
    ] == []


def test_there_is_no_circle() -> None:
    order = list(TopologicalSorter({module: own(module) for module in FILES}).static_order())  # raises CycleError
    assert set(order) == set(FILES)


# The protocol.


def test_the_protocol_imports_the_standard_library_alone() -> None:
    others = {(module, name) for module in PROTOCOL for name in imports_of(module) - set(PROTOCOL)}
    assert {(module, name) for module, name in others if name not in sys.stdlib_module_names} == set()
    assert {(module, name) for module, name in others if name in CLOCK_AND_IO} == set()


def test_structured_fields_are_read_in_one_place() -> None:
    assert sum("http_sf" in imports_of(module) for module in FILES) <= 1


@pytest.mark.parametrize(
    ("library", "harmless"),
    [
        pytest.param("socket", {"inet_aton", "inet_ntoa"}, id="socket-an-address-as-text-and-as-octets"),
        pytest.param("sys", {"version_info"}, id="sys-what-its-regular-expressions-know"),
    ],
)
def test_what_the_protocol_takes_of_libraries_that_could_do_more(library: str, harmless: set[str]) -> None:
    nodes = [node for module in PROTOCOL if library in imports_of(module) for node in ast.walk(tree(module))]
    used = {node.attr for node in nodes if isinstance(node, ast.Attribute) and ast.unparse(node.value) == library}
    assert used == harmless
    assert not any(isinstance(node, ast.ImportFrom) and node.module == library for node in nodes)


# What is loaded when.

LOADED = "import sys, scrapy_rep; print(*sorted({name.partition('.')[0] for name in sys.modules}))"


def test_what_every_scrapy_call_loads_imports_nothing_when_it_is_loaded() -> None:
    body = tree("commands.robots").body
    loaded = {node.module for node in body if isinstance(node, ast.ImportFrom)}
    assert loaded == {"__future__", "typing", "scrapy.commands", "scrapy.exceptions"}, "Scrapy loads all of them anyway"
    assert not any(isinstance(node, ast.Import) for node in body)
    assert not any(isinstance(node, ast.Import | ast.ImportFrom) for node in tree("commands").body), "it is loaded, too"


def test_the_package_itself_loads_nothing_heavy() -> None:
    loaded = subprocess.run([sys.executable, "-c", LOADED], check=True, capture_output=True, text=True).stdout.split()
    assert "scrapy_rep" in loaded
    assert not {"scrapy", "twisted"} & set(loaded)


def test_the_protocol_loads_no_scrapy() -> None:
    code = f"from scrapy_rep import {', '.join(['RobotsTxt', 'Verdict', 'AccessResult'])}; {LOADED}"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert not {"scrapy", "twisted"} & set(loaded)


START = """import sys
from scrapy import Spider
from scrapy.utils.reactor import install_reactor
from scrapy.utils.test import get_crawler
from scrapy_rep import RepMiddleware
install_reactor("twisted.internet.asyncioreactor.AsyncioSelectorReactor")  # for Scrapy 2.14
RepMiddleware.from_crawler(get_crawler(Spider, {"ROBOTSTXT_OBEY": True}))
print(*sys.modules)"""


def test_extensions_that_are_off_are_not_imported() -> None:
    # If the coverage of this process was measured, too, that would import sqlite3.
    plain = {name: value for name, value in os.environ.items() if name != "COVERAGE_PROCESS_START"}
    command = [sys.executable, "-c", START]
    shown = subprocess.run(command, check=True, capture_output=True, text=True, env=plain).stdout
    rooms = {name.removeprefix("scrapy_rep.") for name in shown.split()}
    for class_path, is_on in EXTENSIONS.items():
        is_imported = f"extensions.{class_path.rpartition('.')[0]}" in rooms
        assert is_imported is (is_on is None or bool(is_on(RepSettings.read(Settings())))), class_path
    assert {"http_sf", "redis", "sqlite3", "warcio"}.isdisjoint(shown.split())


def test_every_extension_is_there() -> None:
    assert all(issubclass(load_object(f"scrapy_rep.extensions.{class_path}"), Extension) for class_path in EXTENSIONS)


# Public names.


def test_every_public_name_is_there() -> None:
    assert [getattr(scrapy_rep, name).__name__ for name in scrapy_rep.__all__] == scrapy_rep.__all__
    assert set(scrapy_rep.__all__) <= set(dir(scrapy_rep))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'scrapy_rep' has no attribute 'nonsense'"):
        importlib.import_module("scrapy_rep").nonsense  # noqa: B018
