"""What `scrapy robots` does once its options are known to be right."""

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

from scrapy_rep.commands.compare import ComparingLookup, compared, has_no_answer
from scrapy_rep.commands.findings import Crawl, Finding, judged, policy_of_file
from scrapy_rep.commands.lookup import CommandSpider, Lookup, command_spider
from scrapy_rep.commands.output import Output
from scrapy_rep.commands.rechecking import judge_again
from scrapy_rep.commands.stored_lookup import Forgetting, StoredLookup
from scrapy_rep.commands.urls import body_of, lists_of_urls
from scrapy_rep.scrapy_internals.builtin_robotstxt import BuiltinParser
from scrapy_rep.settings import FILES, RepSettings
from scrapy_rep.usage.preferences import Purposes
from scrapy_rep.user_agent import UserAgent

logger = logging.getLogger("scrapy_rep")

ADDON = "scrapy_rep.Addon"

# These replace the project's settings: no page is crawled, and the command does not wait for an outage to end.
FOR_ASKING: dict[str, Any] = {
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
    """Change the settings before a crawler process has them."""
    for name, value in FOR_ASKING.items():
        if (settings.getpriority(name) or 0) < SETTINGS_PRIORITIES["cmdline"]:  # else `-s` has set it
            settings.set(name, value, priority="cmdline")
    if opts.agent:
        settings.set("ROBOTSTXT_USER_AGENT", opts.agent, priority="cmdline")
    if opts.purpose:
        settings.set("REP_PURPOSES", opts.purpose, priority="cmdline")
        settings.set("REP_PURPOSES_REFUSE", True, priority="cmdline")


def run(given: list[str], opts: Namespace, settings: BaseSettings, process: Any) -> int:
    """The exit status. `process`: the crawler process; None if neither a crawl nor a spider is needed.

    Raises ValueError for a wrong setting, a spider that is not there, and a file that cannot be read.
    """
    model = _model(process, opts.spider)
    crawl_settings = settings.copy()
    if model is not None:
        model.update_settings(crawl_settings)
    crawl = _crawl_of(crawl_settings, model)
    lists = lists_of_urls(given, opts.input)
    is_list = opts.input is not None or opts.all or opts.recheck is not None
    output = Output(as_objects=opts.json, show=opts.show, is_list=is_list, leaves_out_allowed=opts.recheck is not None)
    if opts.archive:
        judge_again(opts, lists, output, _as_asked(crawl, opts))
    elif opts.file is not None:
        _judge_by_file(opts, lists, output, crawl, crawl_settings)
    else:
        # Also if `-s` says otherwise: without them there is no middleware to ask.
        settings.set("ROBOTSTXT_OBEY", True, priority="cmdline")
        switched_on = {addon: order for addon, order in settings.getdict("ADDONS").items() if order is not None}
        settings.set("ADDONS", {ADDON: 500, **switched_on}, priority="cmdline")
        fetching = ComparingLookup if opts.compare else Lookup
        kind = StoredLookup if opts.cached else Forgetting if opts.forget else fetching
        _crawl(process, command_spider(model), kind(lists, output, crawl))
    return output.exit_status


def is_offline(opts: Namespace) -> bool:
    """Whether files alone decide."""
    return bool(opts.archive) or opts.file is not None


def _crawl_of(settings: BaseSettings, model: type[Spider] | None) -> Crawl:
    rep, not_obeyed = RepSettings.read(settings), _not_obeyed(settings)
    tokens = UserAgent(settings, command_spider(model)()).product_tokens
    purposes = Purposes.of(rep.purposes, rep.purposes_refuse)
    return Crawl(tokens, rep.status_policy, rep.crawl_delay_max, purposes, not_obeyed)


def _as_asked(crawl: Crawl, opts: Namespace) -> Crawl:
    """The crawl for `--archive`: what is not asked for is as in the crawl that wrote the archive."""
    return replace(
        crawl,
        tokens=crawl.tokens if opts.spider or opts.agent else (),
        purposes=crawl.purposes if opts.purpose else Purposes(),
        not_obeyed="",
    )


def _judge_by_file(
    opts: Namespace, lists: Iterable[list[str]], output: Output, crawl: Crawl, settings: BaseSettings
) -> None:
    body = body_of(opts.file)
    policy = policy_of_file(body, RepSettings.read(settings).body_limit)
    crawl = replace(crawl, file_name="standard input" if opts.file == "-" else opts.file)
    builtin = BuiltinParser(settings, body) if opts.compare else None

    def found(url: str) -> Finding:
        finding = judged(url, crawl, policy)
        if builtin is None:
            return finding
        try:
            return compared(finding, None if has_no_answer(finding) else builtin.answer(url))
        except ValueError as exc:  # parsers of others do not read every URL
            return Finding(url, crawl, str(exc), policy=policy)

    output.for_each(lists, lambda url: output.write(found(url)))
    output.finish()


def _model(process: Any, name: str | None) -> type[Spider] | None:
    """The spider of that name."""
    if name is None:
        return None
    try:
        spider: type[Spider] = process.spider_loader.load(name)
    except KeyError:
        names = ", ".join(sorted(process.spider_loader.list())) or "none"
        raise ValueError(f"there is no spider {name!r} here; spiders: {names}") from None
    return spider


def _not_obeyed(settings: BaseSettings) -> str:
    """Why a crawl does not act by the answers; empty if it does. Raises ValueError for a wrong setting."""
    is_in_use = not inside_project() or _is_in_use(settings)
    # Scrapy's own default is False, too, and then the add-on sets it.
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
    """Whether the add-on is switched on, or the middleware without it."""
    for setting, ours in (("ADDONS", ADDON), ("DOWNLOADER_MIDDLEWARES", "scrapy_rep.RepMiddleware")):
        for component, order in settings.getdict(setting).items():
            with suppress(Exception):  # what cannot be imported is not ours
                if order is not None and issubclass(load_object(component), load_object(ours)):
                    return True
    return False


def _crawl(process: Any, spider: type[CommandSpider], lookup: Lookup) -> None:
    """Raises the ValueError that ended the lookup, or kept the crawl from starting."""
    # Also the middleware logs why the crawl does not start. Here the command's own error says it.
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
    """Of a Deferred or an asyncio.Task, by the kind of crawler process; neither logs it then."""
    if not isinstance(crawling, Deferred):
        return crawling.exception() if crawling.done() and not crawling.cancelled() else None
    failures: list[Failure] = []
    crawling.addErrback(failures.append)
    return failures[0].value if failures else None


def _is_ours(error: BaseException) -> bool:
    *_, (frame, _line) = traceback.walk_tb(error.__traceback__)
    return str(frame.f_globals.get("__name__")).startswith("scrapy_rep.")
