"""Runs `scrapy robots` with options that have been checked."""

from __future__ import annotations

import logging
import traceback
from argparse import Namespace
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from scrapy import Spider
from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings
from scrapy.utils.misc import load_object
from scrapy.utils.project import inside_project
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from scrapy_rep.commands.compare import ComparingLookup, compared, gets_no_answer
from scrapy_rep.commands.findings import CrawlerProfile, Finding, judged, policy_of_file
from scrapy_rep.commands.lookup import CommandSpider, Lookup, command_spider
from scrapy_rep.commands.output import Output
from scrapy_rep.commands.rechecking import judge_again
from scrapy_rep.commands.stored_lookup import StoredLookup, StoredRemoval
from scrapy_rep.commands.urls import body_of, lists_of_urls
from scrapy_rep.scrapy_internals.builtin_robotstxt import BuiltinParser
from scrapy_rep.settings import FILES, RepSettings
from scrapy_rep.usage.preferences import Purposes
from scrapy_rep.user_agent import UserAgent

logger = logging.getLogger("scrapy_rep")

ADDON = "scrapy_rep.Addon"

# These override the project's settings, because the command crawls no pages and does not wait for an outage to end.
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


def run(given: list[str], opts: Namespace, settings: BaseSettings, process: Any) -> int:
    """Run the command and return its exit status.

    `process` is the crawler process; None if neither a crawl nor a spider is needed. Raises ValueError if a setting is
    wrong, if the spider does not exist, or if a file cannot be read.
    """
    model = _model(process, opts.spider)
    crawl_settings = settings.copy()
    if model is not None:
        model.update_settings(crawl_settings)
    profile = _profile_of(crawl_settings, model)
    lists = lists_of_urls(given, opts.input)
    is_list = opts.input is not None or opts.all or opts.recheck is not None
    output = Output(as_objects=opts.json, show=opts.show, is_list=is_list, leaves_out_allowed=opts.recheck is not None)
    if opts.archive:
        judge_again(opts, lists, output, _profile_for_archive(profile, opts))
    elif opts.file is not None:
        _judge_by_file(opts, lists, output, profile, crawl_settings)
    else:
        # Override even `-s`: without the add-on and ROBOTSTXT_OBEY, the crawl would not have our middleware.
        settings.set("ROBOTSTXT_OBEY", True, priority="cmdline")
        switched_on = {addon: order for addon, order in settings.getdict("ADDONS").items() if order is not None}
        settings.set("ADDONS", {ADDON: 500, **switched_on}, priority="cmdline")
        fetching = ComparingLookup if opts.compare else Lookup
        kind = StoredLookup if opts.cached else StoredRemoval if opts.forget else fetching
        _crawl(process, command_spider(model), kind(lists, output, profile))
    return output.exit_status


def is_offline(opts: Namespace) -> bool:
    """Whether the command judges by files, and makes no requests."""
    return bool(opts.archive) or opts.file is not None


def _profile_of(settings: BaseSettings, model: type[Spider] | None) -> CrawlerProfile:
    rep, not_obeyed = RepSettings.read(settings), _not_obeyed(settings)
    tokens = UserAgent(settings, command_spider(model)()).product_tokens
    purposes = Purposes.of(rep.purposes, rep.purposes_refuse)
    return CrawlerProfile(tokens, rep.status_policy, rep.crawl_delay_max, purposes, not_obeyed)


def _profile_for_archive(profile: CrawlerProfile, opts: Namespace) -> CrawlerProfile:
    """Return the profile for `--archive`, with only the tokens and purposes that the user has given.

    The rest is as in the crawl that wrote the archive.
    """
    return replace(
        profile,
        tokens=profile.tokens if opts.spider or opts.agent else (),
        purposes=profile.purposes if opts.purpose else Purposes(),
        not_obeyed="",
    )


def _judge_by_file(
    opts: Namespace, lists: Iterable[list[str]], output: Output, profile: CrawlerProfile, settings: BaseSettings
) -> None:
    body = body_of(opts.file)
    policy = policy_of_file(body, RepSettings.read(settings).body_limit)
    profile = replace(profile, file_name="standard input" if opts.file == "-" else opts.file)
    builtin = BuiltinParser(settings, body) if opts.compare else None

    def found(url: str) -> Finding:
        finding = judged(url, profile, policy)
        if builtin is None:
            return finding
        try:
            return compared(finding, None if gets_no_answer(finding) else builtin.answer(url))
        except ValueError as exc:  # a parser of another package may reject a URL
            return Finding(url, profile, str(exc), policy=policy)

    output.for_each(lists, lambda url: output.write(found(url)))
    output.finish()


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


def _not_obeyed(settings: BaseSettings) -> str:
    """Return why a crawl does not obey the answers; empty if it does. Raises ValueError for a wrong setting."""
    is_in_use = not inside_project() or _is_in_use(settings)
    # The default of Scrapy is also False, but the add-on replaces that default by True.
    is_set = (settings.getpriority("ROBOTSTXT_OBEY") or 0) > SETTINGS_PRIORITIES["addon"]
    try:
        if (is_set or not is_in_use) and not settings.getbool("ROBOTSTXT_OBEY"):
            return "ROBOTSTXT_OBEY is False, so a crawl fetches it anyway"
    except ValueError:
        raise ValueError(f"ROBOTSTXT_OBEY is {settings['ROBOTSTXT_OBEY']!r}; set it to True or False") from None
    if not is_in_use:
        return "ADDONS does not have scrapy_rep.Addon, so Scrapy's own middleware decides"
    return "REP_DRY_RUN is True, so a crawl fetches it anyway" if RepSettings.read(settings).dry_run else ""


def _is_in_use(settings: BaseSettings) -> bool:
    """Whether the settings enable our add-on, or our middleware without the add-on."""
    for setting, ours in (("ADDONS", ADDON), ("DOWNLOADER_MIDDLEWARES", "scrapy_rep.RepMiddleware")):
        for component, order in settings.getdict(setting).items():
            with suppress(Exception):  # a component that cannot be imported is not ours
                if order is not None and issubclass(load_object(component), load_object(ours)):
                    return True
    return False


def _crawl(process: Any, spider: type[CommandSpider], lookup: Lookup) -> None:
    """Run the lookup in a crawl. Raises the ValueError that ended the lookup, or that kept the crawl from starting."""
    # Hide the middleware's CRITICAL line about a wrong setting, because the command prints the same error.
    logger.addFilter(lambda record: record.levelno < logging.CRITICAL)
    crawling = process.crawl(spider, lookup=lookup)
    process.start()
    failure = _failure(crawling)
    if isinstance(failure, ValueError) and _is_ours(failure):
        raise failure
    if failure is not None:
        logger.error("The crawl could not start", exc_info=failure)
    if lookup.error is not None:
        raise lookup.error


def _failure(crawling: Any) -> BaseException | None:
    """Return the exception of a crawl, and keep it out of the log; None if there was none.

    `crawling` is a Deferred or an asyncio.Task, depending on the class of the crawler process.
    """
    if not isinstance(crawling, Deferred):
        return crawling.exception() if crawling.done() and not crawling.cancelled() else None
    failures: list[Failure] = []
    crawling.addErrback(failures.append)
    return failures[0].value if failures else None


def _is_ours(error: BaseException) -> bool:
    *_, (frame, _line) = traceback.walk_tb(error.__traceback__)
    return str(frame.f_globals.get("__name__")).startswith("scrapy_rep.")
