"""Runs `scrapy robots` with options that have been checked: by a file (`_finder`), or by a crawl (`_crawl`)."""

import logging
import traceback
from argparse import Namespace
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from scrapy.crawler import Crawler
from scrapy.exceptions import UsageError
from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings, Settings
from scrapy.spiderloader import get_spider_loader
from scrapy.utils.conf import arglist_to_dict
from scrapy.utils.misc import load_object
from scrapy.utils.project import inside_project
from twisted.internet.defer import Deferred

from scrapy_rep.commands.compare import compared, skips_builtin
from scrapy_rep.commands.findings import CrawlerProfile, Finding, finding_by, policy_of_file
from scrapy_rep.commands.lookup import CommandSpider, Lookup
from scrapy_rep.commands.output import Output
from scrapy_rep.commands.urls import lists_of_urls, opened
from scrapy_rep.fetching.decoding import decoded
from scrapy_rep.middleware import RepMiddleware
from scrapy_rep.protocol.robotstxt.syntax import is_product_token
from scrapy_rep.scrapy_internals.builtin_robotstxt import BuiltinParser
from scrapy_rep.settings import FILES, MAX_BODY, RepSettings, is_obeying
from scrapy_rep.usage.preferences import Purposes
from scrapy_rep.user_agent import UserAgent, product_token

WITH_ADDON = {"scrapy_rep.Addon": 500}
logger = logging.getLogger("scrapy_rep")

# The command's values of these settings. The command crawls no pages, and does not wait for the end of an outage.
COMMAND_SETTINGS: dict[str, Any] = {
    "REP_UNREACHABLE_WAIT": 0,
    **dict.fromkeys((*FILES, "JOBDIR")),
    **{name: {} for name in ("EXTENSIONS", "FEEDS", "ITEM_PIPELINES", "SPIDER_MIDDLEWARES")},
    "LOG_LEVEL": "ERROR",
    "SCHEDULER": "scrapy.core.scheduler.Scheduler",
    "DUPEFILTER_CLASS": "scrapy.dupefilters.RFPDupeFilter",
    "TELNETCONSOLE_ENABLED": False,
}


def prepare(settings: Settings, opts: Namespace) -> None:
    """Change the settings for the command. Call this before the crawler process is created.

    Raises UsageError for a wrong agent.
    """
    for agent in opts.agent:
        if not is_product_token(agent):
            cure = f"give the crawler's name alone, as in --agent {product_token(agent) or 'ExampleBot'}"
            raise UsageError(f"--agent {agent!r} is not a product token; {cure}", print_help=False)
    # Hide the CRITICAL line about a wrong setting, because the command prints the same error.
    logger.addFilter(lambda record: record.levelno < logging.CRITICAL)
    settings.setdict(COMMAND_SETTINGS, SETTINGS_PRIORITIES["cmdline"] - 1)  # what the user sets with `-s` stays
    if not inside_project():
        settings.set("ADDONS", WITH_ADDON, priority="default")
    if opts.agent:
        settings.set("ROBOTSTXT_USER_AGENT", opts.agent, priority="cmdline")
    if opts.purpose:
        settings.set("REP_PURPOSES", opts.purpose, priority="cmdline")
        settings.set("REP_PURPOSES_REFUSE", True, priority="cmdline")


def execute(given: list[str], opts: Namespace, settings: Settings, process: Any) -> int:
    """Judge the URLs, write the findings, and return the exit status. `process` is the crawler process.

    Raises ValueError for a wrong setting, spider or file.
    """
    output = Output(as_objects=opts.json, show=opts.show, is_list=opts.input is not None)
    lists, arguments = lists_of_urls(given, opts.input), arglist_to_dict(opts.arguments)
    crawler = _crawler(settings, opts.spider)
    rep = RepSettings.read(crawler.settings)
    purposes = Purposes(rep.purposes, rep.purposes_refuse)
    profile = CrawlerProfile((), rep, purposes, _not_obeyed(crawler.settings, is_dry_run=rep.dry_run))
    if opts.file is not None:
        spider = crawler.spidercls.from_crawler(crawler, **arguments)
        file_name = "standard input" if opts.file == "-" else opts.file
        profile = replace(profile, tokens=UserAgent(crawler.settings, spider).product_tokens, file_name=file_name)
        find = _finder(opts.file, profile, crawler.settings if opts.compare else None)
        for urls in lists:
            for url in urls:
                output.write(find(url))
            output.flush()
            if output.is_closed:
                break
        output.finish()
    else:
        # For a URL given by hand, `SharedStore` has each robots.txt fetched, even if a fresh one is stored.
        crawler.spidercls.rep_asks_anew = opts.input is None  # type: ignore[attr-defined]
        _crawl(process, crawler, Lookup(lists, output, profile, is_comparing=opts.compare), arguments)
    return output.exit_status


def _crawler(settings: Settings, spider_name: str | None) -> Crawler:
    """Return a crawler that does not run. Its settings are those of a crawl: the spider's and the add-ons' count, too.

    Its spider class is a `CommandSpider`.
    """
    spider: Any = CommandSpider
    if spider_name is not None:
        loader = get_spider_loader(settings)
        if spider_name not in loader.list():
            spiders = ", ".join(sorted(loader.list())) or "none"
            raise ValueError(f"--spider {spider_name!r}: there is no such spider; spiders: {spiders}")
        spider = type(spider.__name__, (spider, loader.load(spider_name)), {"name": spider_name})
    crawler = Crawler(spider, settings)
    crawler.addons.load_settings(crawler.settings)
    return crawler


def _not_obeyed(settings: Settings, *, is_dry_run: bool) -> str:
    """Return why a crawl does not obey the verdicts; empty if it does. Raises ValueError if ROBOTSTXT_OBEY is wrong."""
    if not is_obeying(settings):
        return "ROBOTSTXT_OBEY is False, so a crawl fetches the page even if it is refused"
    orders = settings.getdict("DOWNLOADER_MIDDLEWARES")
    if not any(issubclass(load_object(path), RepMiddleware) for path, order in orders.items() if order is not None):
        return "ADDONS does not have scrapy_rep.Addon, so Scrapy's own middleware decides"
    return "REP_DRY_RUN is True, so a crawl fetches the page even if it is refused" if is_dry_run else ""


def _finder(file: str, profile: CrawlerProfile, compared_by: BaseSettings | None) -> Callable[[str], Finding]:
    """Return a function that judges a URL by the robots.txt of `--file`. `compared_by`: with `--compare`, the settings
    of Scrapy's own parser."""
    with opened("--file", file) as stream:
        body = decoded(stream.read(), b"", MAX_BODY if compared_by is not None else profile.settings.body_limit)
    builtin = BuiltinParser(compared_by, body) if compared_by is not None else None
    policy = policy_of_file(body, profile.settings.body_limit)

    def find(url: str) -> Finding:
        if file == "-" and not body:
            # The command before `|` has failed. But an empty file is a robots.txt without rules.
            return Finding(url, profile, "standard input is empty, so there is nothing to judge by")
        try:
            finding = finding_by(policy, url, profile)
            # A parser of another package may reject a URL.
            return compared(finding, None if skips_builtin(finding) else builtin.answer(url)) if builtin else finding
        except ValueError as exc:
            return Finding(url, profile, str(exc))

    return find


def _crawl(process: Any, crawler: Crawler, lookup: Lookup, arguments: dict[str, str]) -> None:
    """Run the lookup in a crawl without pages. Raises our own ValueError that ended the lookup, or kept the crawl from
    starting."""
    # Override even `-s`: without the add-on and ROBOTSTXT_OBEY, the crawl would not have our middleware.
    settings = process.settings
    settings.set("ROBOTSTXT_OBEY", True, priority="cmdline")
    switched_on = {addon: order for addon, order in settings.getdict("ADDONS").items() if order is not None}
    settings.set("ADDONS", {**WITH_ADDON, **switched_on}, priority="cmdline")
    crawling = process.crawl(crawler.spidercls, command_lookup=lookup, **arguments)
    if isinstance(crawling, Deferred):
        crawling.addErrback(lambda failure: lookup.errors.append(failure.value))
    else:  # an asyncio.Task
        crawling.add_done_callback(lambda task: lookup.errors.append(None if task.cancelled() else task.exception()))
    process.start()
    for error in filter(None, lookup.errors):
        *_, (frame, _line) = traceback.walk_tb(error.__traceback__)
        if isinstance(error, ValueError) and frame.f_globals["__name__"].startswith("scrapy_rep."):
            raise error
        logger.error("The crawl failed", exc_info=error)
