"""What is private to Scrapy and Twisted is touched in one folder: the one to check at each of their releases."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import scrapy_rep

ROOT = Path(scrapy_rep.__file__).parent
FILES = sorted(path for path in ROOT.rglob("*.py") if "scrapy_internals" not in path.parts)
# They have no underscore, but no documentation either.
UNDOCUMENTED = {
    *("downloader", "scraper", "nextcall", "inprogress"),  # of the engine, and of its slot
    *("dqs", "mqs"),  # of the scheduler
    *("slots", "total_concurrency", "domain_concurrency", "handlers", "needs_backout"),  # of the downloader
    *("transferring", "lastseen", "latercall", "free_transfer_slots"),  # of a download slot
}


def privates(source: str) -> Iterator[tuple[int, str]]:
    """Line and name of what belongs into scrapy_internals."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute):
            is_own = ast.unparse(node.value) in {"self", "cls", "super()"}
            if node.attr in UNDOCUMENTED or (is_private(node.attr) and not is_own):
                yield node.lineno, ast.unparse(node)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in {"getattr", "hasattr", "setattr", "delattr"}:
            asked = node.args[1]
            if isinstance(asked, ast.Constant) and (asked.value in UNDOCUMENTED or is_private(str(asked.value))):
                yield node.lineno, ast.unparse(node)
        elif isinstance(node, ast.ImportFrom) and not (node.level or (node.module or "").startswith("scrapy_rep")):
            for name in [*(node.module or "").split("."), *(alias.name for alias in node.names)]:
                if is_private(name):
                    yield node.lineno, f"{node.module}: {name}"


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def test_only_one_folder_touches_the_privates_of_scrapy_and_twisted() -> None:
    found = [
        f"{file.relative_to(ROOT)}, line {line}: {what}"
        for file in FILES
        for line, what in privates(file.read_text("utf-8"))
    ]
    assert found == [], "private to Scrapy or Twisted, or not documented there: it belongs into scrapy_internals/"


def test_no_other_folder_knows_of_download_slots() -> None:
    found = {
        (str(file.relative_to(ROOT)), word)
        for file in FILES
        for word in re.findall(r"\w*slot\w*", file.read_text("utf-8"), re.IGNORECASE)
    }
    assert {(file, word) for file, word in found if word not in {"__slots__", "slots"}} == set()


@pytest.mark.parametrize(
    "line",
    [
        "engine._slot",
        "crawler.engine.downloader",
        "self.crawler.engine.downloader.slots",
        "downloader.total_concurrency += 1",
        "downloader.needs_backout = mine",
        "getattr(engine, '_slot', None)",
        "hasattr(slot, 'transferring')",
        "from scrapy.utils.defer import _schedule_coro",
        "from twisted.web._newclient import HTTPParser",
    ],
)
def test_this_would_be_found(line: str) -> None:
    assert len(list(privates(line))) >= 1


@pytest.mark.parametrize(
    "line",
    [
        "self._slot",
        "cls._slot",
        "super()._parse_sitemap(response)",
        "type(self).__name__",
        "crawler.engine.download_async(request)",
        "@dataclass(frozen=True, slots=True)\nclass A: ...",
        "from scrapy_rep.storage.base import _x",
        "from __future__ import annotations",
    ],
)
def test_this_may_be_used(line: str) -> None:
    assert list(privates(line)) == []
