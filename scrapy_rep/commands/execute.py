"""Runs `scrapy robots` with options that have been checked."""

from __future__ import annotations

import logging
import traceback
from argparse import Namespace
from contextlib import suppress
from dataclasses import replace
from typing import Any

from scrapy import Spider
from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings
from scrapy.utils.conf import arglist_to_dict
from scrapy.utils.misc import load_object
from scrapy.utils.project import inside_project
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from scrapy_rep.commands.compare import ComparingLookup, compared, skips_builtin
from scrapy_rep.commands.findings import CrawlerProfile, Finding, judged, policy_of_file
from scrapy_rep.commands.lookup import CommandSpider, Lookup, command_spider
from scrapy_rep.commands.output import Output
from scrapy_rep.commands.urls import body_of, lists_of_urls
from scrapy_rep.protocol.lifecycle import RobotsPolicy
from scrapy_rep.protocol.robotstxt.syntax import is_product_token
from scrapy_rep.scrapy_internals.builtin_robotstxt import BuiltinParser
from scrapy_rep.settings import FILES, RepSettings, is_obeying
from scrapy_rep.usage.preferences import Purposes
from scrapy_rep.user_agent import UserAgent, product_token

ADDON = "scrapy_rep.Addon"
logger = logging.getLogger("scrapy_rep")

# The command's values of these settings. The command crawls no pages, and does not wait for the end of an outage.
COMMAND_SETTINGS: dict[str, Any] = {
    "REP_UNREACHABLE_WAIT": 0,
    **dict.fromkeys(FILES),
    "LOG_LEVEL": "ERROR",
    "JOBDIR": None,
    "SCHEDULER": "scrapy.core.scheduler.Scheduler",
    "DUPEFILTER_CLASS": "scrapy.dupefilters.RFPDupeFilter",
    "EXTENSIONS": {},
    "FEEDS": {},
    "ITEM_PIPELINES": {},
    "SPIDER_MIDDLEWARES": {},
    "TELNETCONSOLE_ENABLED": False,
}


def prepare(settings: BaseSettings, opts: Namespace) -> None:
    """Change the settings for the command. Call this before the crawler process is created."""
    for name, value in COMMAND_SETTINGS.items():
        if (settings.getpriority(name) or 0) < SETTINGS_PRIORITIES["cmdline"]:  # else the user has set it with `-s`
            settings.set(name, value, priority="cmdline")
    if opts.agent:
        settings.set("ROBOTSTXT_USER_AGENT", opts.agent, priority="cmdline")
    if opts.purpose:
        settings.set("REP_PURPOSES", opts.purpose, priority="cmdline")
        settings.set("REP_PURPOSES_REFUSE", True, priority="cmdline")


def execute(given: list[str], opts: Namespace, settings: BaseSettings, process: Any) -> int:
    """Run the command and return its exit status. Raises ValueError for a wrong agent, setting, spider or file.

    `process` is the crawler process; None if neither a crawl nor a spider is needed.
    """
    for agent in opts.agent:
        if not is_product_token(agent):
            is_url = "://" in agent.partition(" ")[0]
            what = "is a URL, not the name of a crawler" if is_url else "is not a product token"
            example = (not is_url and product_token(agent)) or "ExampleBot"
            raise ValueError(f"--agent {agent!r} {what}; give the crawler's name alone, as in --agent {example}")
    model, arguments = _model(process, opts.spider), arglist_to_dict(opts.arguments)
    lists = lists_of_urls(given, opts.input)
    output = Output(as_objects=opts.json, show=opts.show, is_list=opts.input is not None)
    crawl_settings = settings.copy()
    if model is not None:
        model.update_settings(crawl_settings)
    rep = RepSettings.read(crawl_settings)
    purposes = Purposes.of(rep.purposes, rep.purposes_refuse)
    profile = CrawlerProfile((), rep, purposes, _not_obeyed(crawl_settings, is_dry_run=rep.dry_run))
    if opts.file is not None:
        spider = None
        if model is not None:
            crawler = process.create_crawler(command_spider(model))
            spider = crawler.spidercls.from_crawler(crawler, **arguments)
        tokens = UserAgent(crawl_settings, spider).product_tokens
        profile = replace(profile, tokens=tokens, file_name="standard input" if opts.file == "-" else opts.file)
        body = body_of(opts.file)
        policy = policy_of_file(body, rep.body_limit)
        builtin = BuiltinParser(crawl_settings, body) if opts.compare else None
        output.write_all((_by_file(url, profile, policy, builtin) for url in urls) for urls in lists)
    else:
        # Override even `-s`: without the add-on and ROBOTSTXT_OBEY, the crawl would not have our middleware.
        settings.set("ROBOTSTXT_OBEY", True, priority="cmdline")
        switched_on = {addon: order for addon, order in settings.getdict("ADDONS").items() if order is not None}
        settings.set("ADDONS", {ADDON: 500, **switched_on}, priority="cmdline")
        kind = ComparingLookup if opts.compare else Lookup
        _crawl(process, command_spider(model, kind(lists, output, profile)), arguments)
    return output.exit_status


def _by_file(url: str, profile: CrawlerProfile, policy: RobotsPolicy, builtin: BuiltinParser | None) -> Finding:
    """Judge a URL by the robots.txt of `--file`. `builtin` is Scrapy's own parser; None without `--compare`."""
    finding = judged(url, profile, policy)
    if builtin is None:
        return finding
    try:
        return compared(finding, None if skips_builtin(finding) else builtin.answer(url))
    except ValueError as exc:  # a parser of another package may reject a URL
        return Finding(url, profile, str(exc), policy=policy)


def _model(process: Any, name: str | None) -> type[Spider] | None:
    """Return the spider class of that name; None if there is no name."""
    if name is None:
        return None
    try:
        spider: type[Spider] = process.spider_loader.load(name)
    except KeyError:
        names = ", ".join(sorted(process.spider_loader.list())) or "none"
        raise ValueError(f"--spider {name!r}: there is no such spider; spiders: {names}") from None
    return spider


def _not_obeyed(settings: BaseSettings, *, is_dry_run: bool) -> str:
    """Return why a crawl does not obey the verdicts; empty if it does. Raises ValueError if ROBOTSTXT_OBEY is wrong."""
    has_addon = not inside_project() or _has(settings, "ADDONS", ADDON)
    # Scrapy's default is False, but the add-on changes this default to True.
    is_set = (settings.getpriority("ROBOTSTXT_OBEY") or 0) > SETTINGS_PRIORITIES["addon"]
    if not is_obeying(settings) and (is_set or not has_addon):
        return "ROBOTSTXT_OBEY is False, so a crawl fetches the page even if it is refused"
    if not has_addon and not _has(settings, "DOWNLOADER_MIDDLEWARES", "scrapy_rep.RepMiddleware"):
        return "ADDONS does not have scrapy_rep.Addon, so Scrapy's own middleware decides"
    return "REP_DRY_RUN is True, so a crawl fetches the page even if it is refused" if is_dry_run else ""


def _has(settings: BaseSettings, setting: str, ours: str) -> bool:
    """Whether the setting enables our component, or a subclass of it."""
    for component, order in settings.getdict(setting).items():
        with suppress(Exception):  # a component that cannot be imported is not ours
            if order is not None and issubclass(load_object(component), load_object(ours)):
                return True
    return False


def _crawl(process: Any, spider: type[CommandSpider], arguments: dict[str, str]) -> None:
    """Run the spider's lookup. Raises the ValueError that ended the lookup, or that kept the crawl from starting."""
    # Hide the middleware's CRITICAL line about a wrong setting, because the command prints the same error.
    logger.addFilter(lambda record: record.levelno < logging.CRITICAL)
    crawling = process.crawl(spider, **arguments)
    process.start()
    if error := spider.command_lookup.error or _setting_error(crawling):
        raise error


def _setting_error(crawling: Any) -> ValueError | None:
    """Return our own error about a setting, which kept the crawl from starting. Log any other error of the crawl.

    `crawling` is a Deferred or an asyncio.Task, depending on the class of the crawler process.
    """
    error: BaseException | None = None
    if isinstance(crawling, Deferred):
        failures: list[Failure] = []
        crawling.addErrback(failures.append)
        error = failures[0].value if failures else None
    elif crawling.done() and not crawling.cancelled():
        error = crawling.exception()
    if error is None:
        return None
    *_, (frame, _line) = traceback.walk_tb(error.__traceback__)
    if isinstance(error, ValueError) and frame.f_globals["__name__"].startswith("scrapy_rep."):
        return error
    logger.error("The crawl could not start", exc_info=error)
    return None
