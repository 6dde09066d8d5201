"""Extensions listen to signals, or add functions to the lists of the gate, such as `before_download`. Each file or
folder is one feature or one part of the log; `output_file` is a helper.

To delete a feature, delete its file or folder, its row in EXTENSIONS, its fields in `settings` and its rows in
`docs/stats.md`. These features also have code elsewhere:

- `crawl_delay`: `scrapy_internals.downloads` sets the delays. `scrapy robots` and the report show them.
- `page_usage`: the folder `usage` reads usage preferences. `scrapy robots` and the report show them.
- `bypassed` and `page_usage`: `gate` reads whether their settings refuse pages.
- `report`: a log line refers to it (`refusals`).
- `mistakes`: `user_agent` remembers the tokens that decided about a request (`unsent_tokens`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from scrapy.crawler import Crawler
from scrapy.utils.misc import load_object

from scrapy_rep.gate import Gate
from scrapy_rep.settings import RepSettings


class Extension(NamedTuple):
    class_path: str
    """The import path of the class, relative to this folder. The class is imported only if its feature is on, and
    called with crawler, settings and gate."""
    is_on: Callable[[RepSettings], Any] = lambda _settings: True


# Extensions receive each signal, request and response in this order.
EXTENSIONS = (
    Extension("outage_log.OutageLog"),
    Extension("origins_log.OriginsLog"),  # second: its lines at the end come after those of OutageLog
    Extension("crawl_delay.CrawlDelay"),
    Extension("mistakes.SentUserAgent"),
    Extension("origins_log.NothingCrawled", lambda settings: not settings.dry_run),
    Extension("mistakes.MisspeltMeta"),
    Extension("bypassed.Bypassed"),
    Extension("drop_early.DropEarly", lambda settings: settings.drop_early and not settings.dry_run),
    Extension("page_usage.PageUsage", lambda settings: settings.purposes),
    Extension("evidence.evidence.Evidence", lambda settings: settings.evidence),
    Extension("evidence.evidence.RefusalsFile", lambda settings: settings.refusals),
    Extension("evidence.archive.ArchiveWriter", lambda settings: settings.archive),
    Extension("report.collector.Report", lambda settings: settings.report),
)


def start_extensions(crawler: Crawler, settings: RepSettings, gate: Gate) -> list[object]:
    """Start the extensions that are on, and return them. The caller has to keep the list, because signals do not keep
    their receivers alive."""
    return [
        load_object(f"{__name__}.{extension.class_path}")(crawler, settings, gate)
        for extension in EXTENSIONS
        if extension.is_on(settings)
    ]
