"""Features and parts of the log that listen to signals; the table EXTENSIONS lists them.

An extension's methods with the names of signals, such as `spider_closed`, are called with these signals. Extensions may
also add functions to the lists of the gate, such as `before_download`. Each file or folder is one feature or one part
of the log; `output_file` is a helper.

To delete a feature, delete its file or folder, its row in EXTENSIONS, its fields in `settings` and its rows in
`docs/stats.md`. These features also have code elsewhere:

- `bypassed`: `gate` looks up robots.txt files for it (`may_look_up`, `look_up`).
- `crawl_delay`: `scrapy_internals.slots` sets the delays. `gate` (`is_delayed`) and `waiting.turns` (HELD,
  `number_held`) keep requests to such sites in the queue. `scrapy robots` and the report show them.
- `page_usage`: the folder `usage` reads usage preferences. `scrapy robots` and the report show them.
- `report`: a log line refers to it (`origins_log`), and `refusals` keeps examples for it.
- `mistakes`: `middleware` calls its functions. `user_agent` remembers the tokens that decided about a request
  (`unsent_tokens`).
"""

from collections.abc import Callable, Mapping
from typing import Any

from scrapy import signals as scrapy_signals
from scrapy.utils.misc import load_object

from scrapy_rep import signals
from scrapy_rep.crawl import Crawl, Part
from scrapy_rep.gate import Gate
from scrapy_rep.settings import RepSettings

SIGNALS = {name: signal for name, signal in {**vars(scrapy_signals), **vars(signals)}.items() if type(signal) is object}
"""The signals of Scrapy and of this package by their names."""


class Extension(Part):
    """One feature, or one part of the log. A method with the name of a signal (SIGNALS) is called with this signal."""

    def __init__(self, crawl: Crawl, gate: Gate) -> None:
        super().__init__(crawl)
        self._gate = gate
        self._stats = crawl.crawler.stats
        self.start()
        for name in SIGNALS.keys() & dir(self):
            crawl.crawler.signals.connect(getattr(self, name), signal=SIGNALS[name])

    def start(self) -> None:
        """Prepare the feature. Raises ValueError for a wrong setting; then the crawl does not start."""


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


def start_extensions(crawl: Crawl, gate: Gate) -> list[Extension]:
    """Start the extensions that are on, and return them. The caller has to keep the list, because signals do not keep
    their receivers alive."""
    paths = [path for path, is_on in EXTENSIONS.items() if is_on is None or is_on(crawl.settings)]
    return [load_object(f"{__name__}.{path}")(crawl, gate) for path in paths]
