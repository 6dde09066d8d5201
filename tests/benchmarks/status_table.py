"""What a crawl does after each answer of robots.txt, with our middleware and with the built-in one.

    python tests/benchmarks/status_table.py

For each row, each middleware crawls two pages of one origin: `/` and `/private`. The settings are the defaults,
except for a timeout of one second and REP_UNREACHABLE_WAIT = 0. The table shows which pages were fetched, how often
robots.txt was requested, and the number of tracebacks and of log lines at WARNING and above.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from scrapy.utils.reactor import install_reactor
from twisted.internet.defer import Deferred

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "helpers"), str(TESTS / "protocol")]

from answers import ANSWERS, DROPPED, drops
from crawling import ADDON, BUILTIN, Crawl, crawl
from web import Site, Web

SETTINGS = {"REP_FETCH_TIMEOUT": 1, "DOWNLOAD_TIMEOUT": 1, "REP_FETCH_RETRIES": 1, "RETRY_ENABLED": True}


def robots_targets(site: Site) -> list[str]:
    return [target for target in site.targets if target not in {"/", "/private"}]


def account(result: Crawl, site: Site) -> str:
    fetched = [path for path in ("/", "/private") if site.url(path) in result.pages]
    warnings = [f"{len(result.messages())} warnings"] * bool(result.messages())
    tracebacks = [f"{len(result.tracebacks)} tracebacks"] * bool(result.tracebacks)
    # The server counts. Where there is none, the stat counts.
    had_no_response = result.stats.get("downloader/response_count", 0) == 0
    seen = result.stats.get("robotstxt/request_count", 0) if had_no_response else len(robots_targets(site))
    asked = f"{seen} asked"
    return ", ".join([" ".join(fetched) or "nothing", asked, *warnings, *tracebacks])


async def table() -> None:
    web = Web()
    print("| robots.txt | scrapy-rep: fetched, robots.txt requests, log | built-in |\n|---|---|---|")
    for name, row, make in ANSWERS:
        cells = []
        for robots in (ADDON, BUILTIN):
            site = make(web)
            settings: dict[str, Any] = dict(SETTINGS)
            if row == DROPPED:
                settings["DOWNLOADER_MIDDLEWARES"] = {drops(site.port): 200}
            settings["REP_UNREACHABLE_WAIT"] = 0
            result = await crawl(site.url("/"), site.url("/private"), settings=settings, robots=robots)
            cells.append(account(result, site))
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    web.close()


if __name__ == "__main__":
    install_reactor("twisted.internet.asyncioreactor.AsyncioSelectorReactor")
    from twisted.internet.task import react

    react(lambda _reactor: Deferred.fromCoroutine(table()))
