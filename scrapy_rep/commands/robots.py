"""`scrapy robots URL`: what robots.txt allows a crawl, and why. Loaded with every `scrapy` call: it imports nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from scrapy.commands import ScrapyCommand

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from scrapy.crawler import CrawlerProcess
    from scrapy.settings import Settings
    from scrapy.spiders import Spider

    from scrapy_rep.commands.findings import Findings

# Of the project's settings all hold but these: nothing is crawled, and nobody waits for an outage to end.
FOR_ASKING: dict[str, Any] = {
    "REP_UNREACHABLE_WAIT": 0,
    "REP_REPORT": None,
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


class Command(ScrapyCommand):
    """Exit status: 0 all allowed, 1 some refused, 2 wrong usage or settings, 3 could not tell of some."""

    def syntax(self) -> str:
        return "[options] URL [URL ...]"

    def short_desc(self) -> str:
        return "Tell what robots.txt allows your crawler, and why"

    def long_desc(self) -> str:
        return (
            "Tell for each URL whether robots.txt allows it, by which rule, and what there is to know of that"
            " robots.txt. It is asked for as a crawl would, by the project's settings if there is a project."
            " Exit status: 0 all are allowed, 1 some are refused, 3 it could not be told of some."
        )

    def add_options(self, parser: ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument(
            "--agent",
            action="append",
            metavar="TOKEN",
            help="the crawler's product token; may be repeated, in order of preference",
        )
        parser.add_argument("--spider", metavar="NAME", help="by the settings and the product token of this spider")
        parser.add_argument(
            "--file", metavar="FILE", help="judge by this robots.txt, '-' for standard input; nothing is asked for"
        )
        parser.add_argument(
            "--show",
            action="store_true",
            help="show the file: the obeyed group marked, the rule that decides pointed at",
        )
        parser.add_argument(
            "--cached", action="store_true", help="judge by what REP_STORAGE holds; without a URL, list what that is"
        )
        parser.add_argument(
            "--forget", action="store_true", help="forget what REP_STORAGE holds of these URLs' origins"
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object a URL")

    def process_options(self, args: list[str], opts: Namespace) -> None:
        from scrapy.exceptions import UsageError  # noqa: PLC0415 - see above, as all imports here

        super().process_options(args, opts)
        unknown = [arg for arg in args if arg.startswith("-")]
        if unknown:
            raise UsageError(f"unrecognized arguments: {' '.join(unknown)}", print_help=False)
        if not args and not opts.cached:
            raise UsageError("name one URL at least", print_help=False)
        if (opts.file is not None) + opts.cached + opts.forget > 1:
            raise UsageError("--file, --cached and --forget exclude each other", print_help=False)
        self._set_up(opts)
        self.requires_crawler_process = opts.file is None or opts.spider is not None

    def _set_up(self, opts: Namespace) -> None:
        from scrapy.settings import SETTINGS_PRIORITIES  # noqa: PLC0415

        settings = cast("Settings", self.settings)
        for name, value in FOR_ASKING.items():
            if (settings.getpriority(name) or 0) < SETTINGS_PRIORITIES["cmdline"]:  # else `-s` has set it
                settings.set(name, value, priority="cmdline")
        settings.set("ADDONS", {"scrapy_rep.Addon": 500, **settings.getdict("ADDONS")}, priority="cmdline")
        if opts.agent:
            settings.set("ROBOTSTXT_USER_AGENT", opts.agent, priority="cmdline")

    def run(self, args: list[str], opts: Namespace) -> None:
        import os  # noqa: PLC0415
        import sys  # noqa: PLC0415

        from scrapy.exceptions import UsageError  # noqa: PLC0415

        try:
            findings = self._found(args, opts)
        except ValueError as exc:  # a wrong setting: it names the cure
            raise UsageError(str(exc), print_help=False) from None
        try:
            self._print(findings, opts)
            sys.stdout.flush()
        except BrokenPipeError:
            # Whoever reads (`head`, a pager) has had enough; the interpreter would flush once more at its end.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        self.exitcode = findings.exit_status

    def _found(self, urls: list[str], opts: Namespace) -> Findings:
        """Raises ValueError for a wrong setting."""
        from scrapy_rep.commands.spiders import judged_by_file, not_obeyed, settings_of, storage_in_words  # noqa: PLC0415

        model, project = self._model(opts.spider), cast("Settings", self.settings)
        settings = settings_of(project, model)
        why_not = not_obeyed(settings)
        if opts.file is not None:
            findings = judged_by_file(urls, opts.file, settings, model)
        else:
            # Also where `-s` says otherwise: without it there is no gate to ask.
            project.set("ROBOTSTXT_OBEY", True, priority="cmdline")
            findings = self._asked(urls, opts, model)
        findings.not_obeyed, findings.storage = why_not, storage_in_words(settings)
        return findings

    def _model(self, name: str | None) -> type[Spider] | None:
        """The spider of that name."""
        from scrapy.exceptions import UsageError  # noqa: PLC0415

        if name is None:
            return None
        spiders = cast("CrawlerProcess", self.crawler_process).spider_loader
        try:
            return spiders.load(name)
        except KeyError:
            names = ", ".join(sorted(spiders.list())) or "none"
            raise UsageError(f"there is no spider {name!r} here; there are {names}", print_help=False) from None

    def _asked(self, urls: list[str], opts: Namespace, model: type[Spider] | None) -> Findings:
        """By a crawl that asks for nothing but robots.txt, or for nothing where the store is to answer."""
        from scrapy_rep.commands.findings import Findings  # noqa: PLC0415
        from scrapy_rep.commands.spiders import (  # noqa: PLC0415
            ForgettingSpider,
            LookupSpider,
            StoredSpider,
            lookup_spider,
            tell_failure,
        )

        process = cast("CrawlerProcess", self.crawler_process)
        findings = Findings()
        kind = StoredSpider if opts.cached else ForgettingSpider if opts.forget else LookupSpider
        crawling = process.crawl(lookup_spider(model, kind), urls=urls, findings=findings)
        process.start()
        tell_failure(crawling)
        return findings

    @staticmethod
    def _print(findings: Findings, opts: Namespace) -> None:
        import json  # noqa: PLC0415
        import os  # noqa: PLC0415
        import sys  # noqa: PLC0415

        from scrapy_rep.commands.findings import as_json, as_text  # noqa: PLC0415

        colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
        # What strangers write is any character, which not every terminal or file can take.
        if hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(errors="backslashreplace")
        for number, finding in enumerate(findings):
            if opts.json:
                print(json.dumps(as_json(finding, show=opts.show, not_obeyed=findings.not_obeyed)))
            else:
                text = as_text(finding, colour=colour, show=opts.show, not_obeyed=findings.not_obeyed)
                print(("\n" if number else "") + text)
        if findings.are_complete and not findings and not opts.json:
            print(f"nothing is stored in {findings.storage}")
