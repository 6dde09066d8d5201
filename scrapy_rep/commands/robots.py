"""The options of `scrapy robots`. Every `scrapy` command loads this file, so it imports very little."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from scrapy.settings import Settings

_OTHER_NAMES = {"--urls": "--input", "--list": "--input", "--user-agent": "--agent", "--robots": "--file"}
MEANT = {other: f"; did you mean {ours}?" for other, ours in _OTHER_NAMES.items()}


class Command(ScrapyCommand):
    """The command `scrapy robots`. `long_desc` explains its exit statuses."""

    def syntax(self) -> str:
        return "[options] URL [URL ...]"

    def short_desc(self) -> str:
        return "Show what robots.txt allows your crawler, and why"

    def long_desc(self) -> str:
        return (
            "Show whether robots.txt allows each URL, and why. '-' reads the URLs from standard input, one per line."
            " The command fetches robots.txt as a crawl would (in a project, with its settings), but no pages. Exit"
            " status: 0 if all URLs are allowed, 1 if some are refused, 2 if an option, a setting or a file is wrong, 3"
            " if some URLs cannot be judged, or are refused because robots.txt is unreachable (3 takes precedence)."
        )

    def add_options(self, parser: ArgumentParser) -> None:
        super().add_options(parser)
        repeatable: dict[str, Any] = {"action": "append", "default": []}
        add = parser.add_argument_group("Judge").add_argument
        agent_help = "the crawler's product token; repeat the option for several, in order of preference"
        add("--agent", **repeatable, metavar="TOKEN", help=agent_help)
        purpose_help = "refuse pages that may not be used for this purpose, such as train-ai; can be repeated"
        add("--purpose", **repeatable, metavar="CATEGORY", help=purpose_help)
        add("--spider", metavar="NAME", help="use the settings and the product token of this spider")
        argument_help = "with --spider: an argument of the spider, as for scrapy crawl; can be repeated"
        add("-a", dest="arguments", **repeatable, metavar="NAME=VALUE", help=argument_help)
        add("--input", metavar="FILE", help="read the URLs from this file, one per line; '-' for standard input")
        add("--file", metavar="FILE", help="judge by this robots.txt and fetch nothing; '-' for standard input")
        compare_help = "also show what Scrapy's own middleware would answer, and why if it differs"
        add("--compare", action="store_true", help=compare_help)
        add("--show", action="store_const", const="lines", help="show the lines of robots.txt that matter")
        add("--show=all", action="store_const", const="all", dest="show", help="show all of robots.txt")
        add("--json", action="store_true", help="print one JSON object for each URL")

    def process_options(self, args: list[str], opts: Namespace) -> None:
        from scrapy_rep import deferreds  # noqa: F401, PLC0415 - it checks Scrapy's version
        from scrapy_rep.commands.execute import prepare  # noqa: PLC0415 - see above

        super().process_options(args, opts)
        if "-" in args:
            args.remove("-")
            opts.input = opts.input or "-"
        if wrong := _wrong(args, opts):
            raise UsageError(wrong, print_help=False)
        self.requires_crawler_process = opts.file is None
        prepare(cast("Settings", self.settings), opts)

    def run(self, args: list[str], opts: Namespace) -> None:
        from scrapy_rep.commands.execute import execute  # noqa: PLC0415 - see above

        try:
            self.exitcode = execute(args, opts, cast("Settings", self.settings), self.crawler_process)
        except ValueError as exc:  # its message names the cure
            raise UsageError(str(exc), print_help=False) from None


def _wrong(urls: list[str], opts: Namespace) -> str:
    """Return what is wrong with the options or the URLs; empty if nothing is wrong."""
    unknown = next((url for url in urls if url.startswith("-")), "")
    checks = (
        (opts.arguments and opts.spider is None, "-a needs --spider"),
        *(("=" not in argument, f"-a {argument!r}: give NAME=VALUE") for argument in opts.arguments),
        (unknown, f"unknown option: {unknown}{MEANT.get(unknown.partition('=')[0], '')}"),
        (urls and opts.input, "give URLs, or a list of URLs ('-' or --input), not both"),
        (opts.input == opts.file == "-", "read either the URLs or robots.txt from standard input, not both"),
        (not urls and not opts.input, "give a URL, or '-' to read URLs from standard input"),
    )
    return next((message for is_wrong, message in checks if is_wrong), "")
