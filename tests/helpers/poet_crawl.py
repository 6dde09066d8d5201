"""The crawl of `processes.py`, with scrapy-poet.

The task has one more key, `callback`. The callback "page" takes a page object, which requests further pages. The
callback "nothing" takes no response.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import attrs
from processes import TellsAll, run_crawl
from scrapy_poet import DummyResponse
from web_poet import HttpClient, WebPage


@attrs.define
class Page(WebPage):  # type: ignore[misc]
    http: HttpClient

    async def linked(self, path: str) -> Any:
        try:
            return (await self.http.get(str(self.response.urljoin(path)))).text
        except Exception as exc:  # noqa: BLE001 - it is what the test is about
            return type(exc.__cause__ or exc).__name__


class WithPageObjects(TellsAll):
    async def parse(self, response: DummyResponse, page: Page) -> None:  # type: ignore[override]
        self.notes.append(f"{page.response.text}: {await page.linked('/private')}, {await page.linked('/free')}")
        self.end(response.request, f"HTTP {page.response.status}", {})


class WithoutResponses(TellsAll):
    def parse(self, response: DummyResponse, **_: Any) -> None:
        self.end(response.request, type(response).__name__, {})


if __name__ == "__main__":
    task = json.load(sys.stdin)
    run_crawl(task, WithPageObjects if task["callback"] == "page" else WithoutResponses)
