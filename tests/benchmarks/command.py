"""How many URLs a second `scrapy robots --input FILE` answers, by one robots.txt or by stored files of many origins.

`python tests/benchmarks/command.py [--urls 1000000] [--origins 10000]`.
Measures CPU time of the whole command, including its start.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.bodies import rules_of_a_site
from benchmarks.measuring import head, row

from scrapy_rep import AccessResult, RobotsTxt
from scrapy_rep.protocol.answer import Answer
from scrapy_rep.protocol.entry import Entry, StoredResponse, entry_to_bytes
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.storage.sqlite import SqliteStorage

RULES = 20
CHUNK = 10_000  # URLs in one write


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--urls", type=int, default=1_000_000)
    options.add_argument("--origins", type=int, default=10_000)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        origins = [f"https://site{number}.example" for number in range(given.origins)]
        (folder / "robots.txt").write_bytes(rules_of_a_site(RULES))
        asyncio.run(store(folder / "robots.db", origins))
        stored = ["-s", f"REP_STORAGE=sqlite://{folder}/robots.db"]
        sources = {"--file": ["--file", "robots.txt"], "storage": stored}
        head("by", "URLs", "lines a second", "with --json")
        for order, make in {"sorted by origin": sorted_by_origin, "in any order": in_any_order}.items():
            write_urls(folder / "urls.txt", make(origins, given.urls))
            for source, arguments in sources.items():
                works = (arguments, [*arguments, "--json"])
                row(source, order, *(f"{given.urls / measured(folder, work):,.0f}" for work in works))


def measured(folder: Path, arguments: list[str]) -> float:
    """CPU seconds."""
    command = [sys.executable, "-m", "scrapy", "robots", *arguments, "--agent", "ExampleBot", "--input", "urls.txt"]
    with (folder / "out").open("wb") as out:
        process = subprocess.Popen(command, cwd=folder, stdout=out, stderr=subprocess.PIPE)
        _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(process.stderr.read().decode() if process.stderr is not None else "")
    return usage.ru_utime + usage.ru_stime


def sorted_by_origin(origins: list[str], number: int) -> Iterator[str]:
    each = number // len(origins)
    return (url_of(origin, n) for origin in origins for n in range(each))


def in_any_order(origins: list[str], number: int) -> Iterator[str]:
    urls = list(sorted_by_origin(origins, number))
    random.Random(1).shuffle(urls)
    return iter(urls)


def url_of(origin: str, number: int) -> str:
    return f"{origin}/section{number % 7}/page{number}?from=index"


async def store(path: Path, origins: list[str]) -> None:
    """Store one robots.txt per origin, as if crawls had fetched them an hour ago."""
    storage = SqliteStorage(f"sqlite://{path}")
    at = time.time() - 3_600
    for url in origins:
        origin = Origin.of(url)
        assert origin is not None
        robots = RobotsTxt.parse(rules_of_a_site(RULES) + f"# {url}\n".encode())
        stored = StoredResponse(Answer("", access=AccessResult.SUCCESS, reason="HTTP 200"), at, at + 86_400, robots)
        await storage.put(url, entry_to_bytes(Entry(origin.robots_url, stored)), 86_400)
    await storage.close()


def write_urls(path: Path, urls: Iterator[str]) -> None:
    with path.open("w") as file:
        while some := list(islice(urls, CHUNK)):
            file.write("\n".join([*some, ""]))


if __name__ == "__main__":
    main()
