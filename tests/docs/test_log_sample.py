"""docs/log.md shows the log of a crawl of six difficult sites, at INFO. Here is also that of a dry run."""

from __future__ import annotations

import logging

from crawling import crawl
from doc_pages import marked, without_words
from pytest_twisted import ensureDeferred
from web import Web, answer

SITES = {
    "shop": answer("User-agent: *\nDisallow: /cart/\n"),
    "blog": answer(status=404),
    "wiki": answer("<!DOCTYPE html><p>Welcome</p>"),
    "news": answer(status=503),
    "club": answer(status=403, headers={"cf-mitigated": "challenge"}),
    "docs": answer(status=500, headers={"Retry-After": "1800"}),
}
# No two sites refuse as many requests.
PATHS = {"shop": ["/", "/cart/1", "/cart/2"], "news": ["/a", "/b", "/c"], "docs": ["/a", "/b", "/c", "/d"]}
DRY_RUN = """\
INFO: Crawler's name in robots.txt (product token): 'Scrapy' (from the User-Agent in USER_AGENT), falling back to '*'
WARNING: Dry run (REP_DRY_RUN): requests that robots.txt forbids are sent, and logged as 'Would be refused'
INFO: Would be refused: robots.txt (https://shop.example/robots.txt, line 2, group of '*': Disallow: /cart/): \
<GET https://shop.example/cart/1>
INFO: robots.txt of 1 origin: 1 with rules
INFO: Requests that would be refused (REP_DRY_RUN): 2 (2 by rules)
INFO: Most frequent reasons for refusal: 2 x https://shop.example/robots.txt line 2 (Disallow: /cart/). \
For details, set REP_REPORT
"""


async def log_of(web: Web, *names: str, **settings: object) -> list[str]:
    """Return the log of a crawl of these sites, as `shown` returns the sample."""
    sites = {name: web.robots(SITES[name]) for name in names}
    urls = [site.url(path) for name, site in sites.items() for path in PATHS.get(name, ["/"])]
    result = await crawl(*urls, settings={"CONCURRENT_REQUESTS": 1, "REP_UNREACHABLE_WAIT": 0, **settings})
    lines: list[str] = []
    for record in result.log:
        if record.name == "scrapy_rep" and record.levelno >= logging.INFO:
            line = f"{record.levelname}: {record.getMessage()}"
            for name, site in sites.items():
                line = line.replace(site.origin, f"https://{name}.example")
            lines.append(line)
    return shown("\n".join(lines))


def shown(log: str) -> list[str]:
    """Return the lines, sorted, because the order of the sites may differ."""
    return sorted(without_words(log).splitlines())


@ensureDeferred
async def test_the_log_of_six_difficult_sites(web: Web) -> None:
    assert await log_of(web, *SITES) == shown(marked("six-sites"))


@ensureDeferred
async def test_the_log_of_a_dry_run(web: Web) -> None:
    assert await log_of(web, "shop", REP_DRY_RUN=True) == shown(DRY_RUN)
