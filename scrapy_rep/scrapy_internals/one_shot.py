"""Recognize a crawl for whose end a person waits: `scrapy fetch`, `view`, `parse`, `shell`, `check`.

This module uses names in the modules of these commands. If Scrapy changes the names, the crawl counts as ordinary.
"""

from __future__ import annotations

import sys

from scrapy.crawler import Crawler
from scrapy.settings import SETTINGS_PRIORITIES

# These commands replace the `start` of the spider's class. `view` is a subclass of `fetch`.
COMMANDS = ("scrapy.commands.fetch", "scrapy.commands.parse", "scrapy.commands.check")


def is_one_shot(crawler: Crawler) -> bool:
    """Whether one of the commands `fetch`, `view`, `parse`, `shell` and `check` runs the crawl."""
    return getattr(crawler.spidercls.start, "__module__", None) in COMMANDS or _is_shell(crawler)


def _is_shell(crawler: Crawler) -> bool:
    """Whether `scrapy shell` runs the crawl. The shell does not change the spider; its default settings reveal it."""
    shell = sys.modules.get("scrapy.commands.shell")  # every `scrapy` command loads this module
    if shell is None:
        return False
    priorities = [crawler.settings.getpriority(name) or 0 for name in shell.Command.default_settings]
    by_command = SETTINGS_PRIORITIES["command"]
    return by_command in priorities and min(priorities) >= by_command
