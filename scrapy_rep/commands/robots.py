"""The command `scrapy robots`: its options. Every `scrapy` call loads this file, so it imports next to nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from scrapy.settings import Settings


class Command(ScrapyCommand):
    """Exit status: 0 all allowed, 1 some refused, 2 wrong usage or settings, 3 could not tell of some."""

    def syntax(self) -> str:
        return "[options] URL [URL ...]"

    def short_desc(self) -> str:
        return "Tell what robots.txt allows your crawler, and why"

    def long_desc(self) -> str:
        return (
            "Tell for each URL whether robots.txt allows it, and why. '-' reads the URLs from standard input, one on"
            " each line. robots.txt is fetched as a crawl would fetch it, by the project's settings if there is a"
            " project, and no page is. Exit status: 0 if all URLs are allowed, 1 if some are refused, 3 if some could"
            " not be answered."
        )

    def add_options(self, parser: ArgumentParser) -> None:
        super().add_options(parser)
        add = parser.add_argument
        add(
            "--agent",
            action="append",
            default=[],
            metavar="TOKEN",
            help="the crawler's product token; repeat it for several, in order of preference",
        )
        add(
            "--purpose",
            action="append",
            default=[],
            metavar="CATEGORY",
            help="refuse pages that may not be used for this, such as train-ai; repeat it for several",
        )
        add("--spider", metavar="NAME", help="use the settings and the product token of this spider")
        add("--input", metavar="FILE", help="read the URLs from this file, one on each line; '-' for standard input")
        add("--file", metavar="FILE", help="judge by this robots.txt and fetch nothing; '-' for standard input")
        add("--cached", action="store_true", help="judge by what REP_STORAGE has; without URLs, list what it has")
        add("--forget", action="store_true", help="remove what REP_STORAGE has of the URLs' origins")
        add("--all", action="store_true", help="with --forget: remove everything")
        add("--compare", action="store_true", help="tell also what Scrapy's own middleware would answer, and why")
        add(
            "--diff",
            nargs=2,
            metavar=("A", "B"),
            help="tell what changes for the crawler from robots.txt A to B: files, or an origin that REP_STORAGE has",
        )
        add(
            "--archive",
            action="append",
            default=[],
            metavar="FILES",
            help="judge by what REP_ARCHIVE has kept and fetch nothing; more files may follow, '*' is filled in",
        )
        add("--at", metavar="TIME", help="with --archive: as the crawl did then, such as 2026-05-17T09:30:00Z")
        add("--recheck", metavar="FILE", help="with --archive: judge the items of this feed (JSON lines) again")
        add("--now", action="store_true", help="with --recheck: judge them by today's robots.txt, too")
        add("--show", action="store_const", const="lines", help="show the lines of robots.txt that matter")
        add("--show=all", action="store_const", const="all", dest="show", help="show all of robots.txt")
        add("--json", action="store_true", help="print one JSON object for each URL")

    def process_options(self, args: list[str], opts: Namespace) -> None:
        from scrapy_rep.commands.run import is_offline, prepare  # noqa: PLC0415 - see above

        super().process_options(args, opts)
        if args == ["-"]:
            args.clear()
            opts.input = opts.input or "-"
        if opts.archive:  # a shell has filled in the '*'
            opts.archive += [arg for arg in args if _is_archive(arg)]
            args[:] = [arg for arg in args if not _is_archive(arg)]
        if wrong := _wrong_usage(args, opts):
            raise UsageError(wrong, print_help=False)
        self.requires_crawler_process = opts.spider is not None or not is_offline(opts)
        prepare(cast("Settings", self.settings), opts)

    def run(self, args: list[str], opts: Namespace) -> None:
        from scrapy_rep.commands.run import run  # noqa: PLC0415 - see above

        try:
            self.exitcode = run(args, opts, cast("Settings", self.settings), self.crawler_process)
        except ValueError as exc:  # it names the cure
            raise UsageError(str(exc), print_help=False) from None


def _is_archive(argument: str) -> bool:
    return argument.endswith(".warc.gz") and "://" not in argument


def _time(text: str | None) -> float | None:
    """Raises ValueError."""
    from scrapy_rep.text import seconds_of_time  # noqa: PLC0415

    return None if text is None else seconds_of_time(text)


def _wrong_usage(urls: list[str], opts: Namespace) -> str:
    """What is wrong; empty if nothing is."""
    from scrapy_rep.protocol.robotstxt.product_tokens import is_product_token, product_token  # noqa: PLC0415

    unknown = " ".join(url for url in urls if url.startswith("-"))
    is_list = opts.input is not None
    for agent in opts.agent:
        if not is_product_token(agent):
            example = product_token(agent) or "ExampleBot"
            return f"--agent {agent!r} is not a product token; give the crawler's name alone, as in --agent {example}"
    try:
        opts.at = _time(opts.at)
    except ValueError:
        return f"--at {opts.at!r} is no time; give one such as 2026-05-17T09:30:00Z"
    checks = (
        (unknown == "-", "give URLs or '-', not both"),
        (unknown, f"unknown options: {unknown}"),
        (urls and is_list, "give URLs or --input, not both"),
        (urls and opts.all, "--all needs no URLs"),
        (opts.all and not opts.forget, "--all needs --forget"),
        ((opts.file is not None) + opts.cached + opts.forget > 1, "--file, --cached and --forget exclude each other"),
        (opts.compare and (opts.cached or opts.forget), "--compare excludes --cached and --forget"),
        (
            opts.diff and (opts.file or opts.cached or opts.forget or opts.compare or opts.show),
            "--diff excludes --file, --cached, --forget, --compare and --show",
        ),
        (
            opts.diff and [opts.input, *opts.diff].count("-") > 1,
            "standard input can be only one of the URLs and the two robots.txt",
        ),
        (
            (opts.archive or opts.recheck is not None)
            and (opts.file or opts.cached or opts.forget or opts.compare or opts.diff),
            "--archive and --recheck exclude --file, --cached, --forget, --compare and --diff",
        ),
        (opts.at is not None and not opts.archive, "--at needs --archive"),
        (opts.recheck is not None and not (opts.archive or opts.now), "--recheck needs --archive, --now or both"),
        (opts.recheck is not None and (urls or is_list), "give URLs or --recheck, not both"),
        (opts.recheck is not None and opts.at is not None, "--recheck takes the times from the items; leave out --at"),
        (opts.now and opts.recheck is None, "--now needs --recheck"),
        ((is_list or opts.recheck is not None) and opts.show, "--show and a list of URLs exclude each other"),
        (opts.input == opts.file == "-", "standard input cannot be both the URLs and the robots.txt"),
        (
            not (urls or is_list or opts.cached or opts.all or opts.diff or opts.recheck is not None),
            "give a URL, or '-' to read URLs from standard input",
        ),
    )
    return next((message for is_wrong, message in checks if is_wrong), "")
