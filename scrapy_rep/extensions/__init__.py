"""Features and parts of the log that listen to signals; the table EXTENSIONS lists them.

Extensions listen to signals, or add functions to the lists of the gate, such as `before_download`. Each file or folder
is one feature or one part of the log; `output_file` is a helper.

To delete a feature, delete its file or folder, its row in EXTENSIONS, its fields in `settings` and its rows in
`docs/stats.md`. These features also have code elsewhere:

- `crawl_delay`: `scrapy_internals.slots` sets the delays. `scrapy robots` and the report show them.
- `page_usage`: the folder `usage` reads usage preferences. `scrapy robots` and the report show them.
- `report`: a log line refers to it (`refusals`).
- `mistakes`: `user_agent` remembers the tokens that decided about a request (`unsent_tokens`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from scrapy.crawler import Crawler
from scrapy.utils.misc import load_object

from scrapy_rep.gate import Gate
from scrapy_rep.log import logger_of
from scrapy_rep.settings import RepSettings


class Extension:
    """One feature, or one part of the log. It listens to signals, or adds functions to the lists of the gate."""

    def __init__(self, crawler: Crawler, settings: RepSettings, gate: Gate) -> None:
        self._crawler = crawler
        self._settings = settings
        self._gate = gate
        self._stats = crawler.stats
        self._log = logger_of(crawler)
        self._happened: set[str] = set()
        self.start()

    def start(self) -> None:
        """Connect to the signals. Raises ValueError for a wrong setting; then the crawl does not start."""
        raise NotImplementedError

    def _is_first(self, event: str) -> bool:
        """Whether this is the first call for the event, so that it is logged once."""
        is_first = event not in self._happened
        self._happened.add(event)
        return is_first


# The import path of a class, relative to this folder -> whether its feature is on; None: it always is. If it is
# off, the class is not imported. Extensions receive each signal, request and response in this order.
EXTENSIONS: Mapping[str, Callable[[RepSettings], Any] | None] = {
    "outage_log.OutageLog": None,
    "origins_log.OriginsLog": None,  # second: its lines at the end come after those of OutageLog
    "crawl_delay.CrawlDelay": None,
    "mistakes.InRequests": None,
    "bypassed.Bypassed": None,
    "page_usage.PageUsage": lambda settings: settings.purposes,
    "evidence.Evidence": lambda settings: settings.evidence,
    "evidence.RefusalsFile": lambda settings: settings.refusals,
    "archive.ArchiveWriter": lambda settings: settings.archive,
    "report.Report": lambda settings: settings.report,
}


def start_extensions(crawler: Crawler, settings: RepSettings, gate: Gate) -> list[Extension]:
    """Start the extensions that are on, and return them. The caller has to keep the list, because signals do not keep
    their receivers alive."""
    paths = [path for path, is_on in EXTENSIONS.items() if is_on is None or is_on(settings)]
    return [load_object(f"{__name__}.{path}")(crawler, settings, gate) for path in paths]
