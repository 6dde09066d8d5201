"""Whether a person waits for one page: `scrapy fetch`, `view`, `parse`, `shell`.

Touches the modules of these commands. If they are not as expected, such a crawl is taken for an ordinary one.
"""

from __future__ import annotations

import sys

from scrapy.crawler import Crawler
from scrapy.settings import SETTINGS_PRIORITIES

# These put a `start` of their own into the spider's class. `view` is a kind of `fetch`.
COMMANDS = ("scrapy.commands.fetch", "scrapy.commands.parse")


def is_one_shot(crawler: Crawler) -> bool:
    """Whether one of these commands runs the crawl."""
    return getattr(crawler.spidercls.start, "__module__", None) in COMMANDS or _is_shell(crawler)


def _is_shell(crawler: Crawler) -> bool:
    """It leaves the spider as it is, but has settings of its own."""
    shell = sys.modules.get("scrapy.commands.shell")  # any `scrapy` command has loaded it
    if shell is None:
        return False
    priorities = [crawler.settings.getpriority(name) or 0 for name in shell.Command.default_settings]
    by_command = SETTINGS_PRIORITIES["command"]
    return by_command in priorities and min(priorities) >= by_command
