"""Imports point one way: the protocol knows nothing of Scrapy, and whoever decides is handed what acts."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import scrapy_rep

ROOT = Path(scrapy_rep.__file__).parent
# A core that takes values and returns values needs none of these.
CLOCK_AND_IO = {
    *("asyncio", "concurrent", "datetime", "ftplib", "http", "importlib", "io", "logging", "os", "pathlib", "queue"),
    *("random", "sched", "secrets", "select", "selectors", "signal", "ssl", "subprocess", "tempfile"),
    *("threading", "time", "uuid", "warnings"),
}


def name_of(path: Path) -> str:
    """A module's name from the package on: `protocol.parser`; a package's is its own, the whole is `scrapy_rep`."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts) or "scrapy_rep"


FILES = {name_of(path): path for path in sorted(ROOT.rglob("*.py"))}


def imports_of(module: str) -> set[str]:
    """All it imports, at whatever place: its own package's modules as in FILES, others by their first name."""
    path = FILES[module]
    return set(_imports(ast.parse(path.read_text(encoding="utf-8")), path))


def _imports(tree: ast.Module, path: Path) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (_resolved(alias.name.split(".")) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = list(path.relative_to(ROOT.parent).parent.parts)
            base = above[: len(above) + 1 - node.level] if node.level else []
            start = [*base, *(node.module or "").split(".")] if node.module else base
            # What is imported from a package may be a module of it.
            yield from (_resolved([*start, alias.name]) for alias in node.names)


def _resolved(names: list[str]) -> str:
    if names[0] != ROOT.name:
        return names[0]
    own = [".".join(names[1:end]) for end in range(len(names), 1, -1)]
    return next((name for name in own if name in FILES), ROOT.name)


IMPORTS = {module: imports_of(module) for module in FILES}
OWN = {module: imported & set(FILES) for module, imported in IMPORTS.items()}
PROTOCOL = sorted(module for module in FILES if module.split(".")[0] == "protocol")


def importers_of(module: str) -> set[str]:
    return {importer for importer, imported in OWN.items() if module in imported}


def test_the_reading_of_imports_itself() -> None:
    assert {"addon", "protocol.robotstxt.parser", "importlib", "typing"} <= IMPORTS["scrapy_rep"]
    assert {"scrapy", "cache.resolver", "fetching.fetcher", "protocol.access_result"} <= IMPORTS["middleware"]
    assert {"dataclasses", "protocol.robotstxt.rules"} <= IMPORTS["protocol.robotstxt.parser"]


@pytest.mark.parametrize("module", PROTOCOL)
def test_the_protocol_imports_the_standard_library_alone(module: str) -> None:
    others = IMPORTS[module] - set(PROTOCOL)
    assert others <= sys.stdlib_module_names
    assert not others & CLOCK_AND_IO


@pytest.mark.parametrize(
    ("library", "harmless"),
    [
        pytest.param("socket", {"inet_aton", "inet_ntoa"}, id="socket-an-address-as-text-and-as-octets"),
        pytest.param("sys", {"version_info"}, id="sys-what-its-regular-expressions-know"),
    ],
)
def test_what_the_protocol_takes_of_libraries_that_could_do_more(library: str, harmless: set[str]) -> None:
    trees = [ast.parse(FILES[module].read_text(encoding="utf-8")) for module in PROTOCOL if library in IMPORTS[module]]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    used = {node.attr for node in nodes if isinstance(node, ast.Attribute) and ast.unparse(node.value) == library}
    assert used == harmless
    assert not any(isinstance(node, ast.ImportFrom) and node.module == library for node in nodes)


def test_no_import_leads_back() -> None:
    order = list(TopologicalSorter(OWN).static_order())  # raises where one does
    assert set(order) == set(FILES)


def test_nothing_imports_the_package_as_a_whole() -> None:
    assert importers_of("scrapy_rep") == set()


def test_what_stands_on_top() -> None:
    assert importers_of("addon") <= {"scrapy_rep"}
    assert importers_of("middleware") <= {
        "addon",
        "scrapy_rep",
        "sitemap_spider",
        "commands.spiders",
        "commands.stored",
    }


def test_what_every_scrapy_call_loads_imports_nothing_when_it_is_loaded() -> None:
    tree = ast.parse(FILES["commands.robots"].read_text(encoding="utf-8"))
    loaded = {node.module for node in tree.body if isinstance(node, ast.ImportFrom)}
    assert loaded == {"__future__", "typing", "scrapy.commands", "scrapy.exceptions"}, "Scrapy loads all of them anyway"
    assert not any(isinstance(node, ast.Import) for node in tree.body)


@pytest.mark.parametrize(
    "feature",
    [
        "extensions.crawl_delay",
        "extensions.robotstxt_denied",
        "extensions.drop_early",
        "exemptions",
        "extensions.report.collector",
    ],
)
def test_what_is_built_upon_the_gate_knows_it_as_observers_do(feature: str) -> None:
    assert importers_of(feature) <= {"middleware"}
    assert not OWN[feature] & {"middleware", "cache.resolver", "fetching.fetcher", "scrapy_internals.parking"}


def test_the_resolver_is_handed_what_acts() -> None:
    assert not IMPORTS["cache.resolver"] & {"fetching.fetcher", "middleware", "addon", "time", "asyncio", "storage"}
    assert importers_of("cache.resolver") <= {"middleware", "scrapy_rep"}
    assert importers_of("fetching.fetcher") <= {"middleware", "scrapy_rep"}


def test_settings_import_nothing_but_the_protocol() -> None:
    assert all(module in PROTOCOL for module in OWN["settings"])


LOADED = "import sys, scrapy_rep; print(*sorted({name.partition('.')[0] for name in sys.modules}))"


def test_the_package_itself_loads_nothing_heavy() -> None:
    loaded = subprocess.run([sys.executable, "-c", LOADED], check=True, capture_output=True, text=True).stdout.split()
    assert "scrapy_rep" in loaded
    assert not {"scrapy", "twisted"} & set(loaded)


def test_the_protocol_loads_no_scrapy() -> None:
    code = f"from scrapy_rep import {', '.join(['RobotsTxt', 'Verdict', 'AccessResult'])}; {LOADED}"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert not {"scrapy", "twisted"} & set(loaded)


@pytest.mark.parametrize("name", scrapy_rep.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(scrapy_rep, name).__name__ == name
    assert name in dir(scrapy_rep)


def test_another_name_is_not() -> None:
    with pytest.raises(AttributeError, match="'scrapy_rep' has no attribute 'nonsense'"):
        importlib.import_module("scrapy_rep").nonsense  # noqa: B018
