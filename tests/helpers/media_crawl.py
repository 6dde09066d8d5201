"""The crawl of `processes.py`, whose pages need more downloads: these requests do not come from the scheduler.

The task has one more key, `media`. "files": Scrapy's FilesPipeline downloads `/file` of the page's item. "screenshots":
the pipeline of Scrapy's docs does, with `engine.download_async`. "callback": the callback does. "verdict": the callback
asks for a verdict on `/file`. Each item that comes out is a note.
"""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from typing import Any

from processes import TellsAll, run_crawl
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response

from scrapy_rep import RepMiddleware


class Screenshots:
    """https://docs.scrapy.org/en/latest/topics/item-pipeline.html#take-screenshot-of-item"""

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Screenshots:
        return cls(crawler)

    async def process_item(self, item: Any) -> Any:
        assert self.crawler.engine is not None
        response = await self.crawler.engine.download_async(Request(item["file_urls"][0]))
        return {**item, "files": [{"path": response.text}]}


class Notes:
    def process_item(self, item: Any, spider: Any) -> Any:
        spider.notes.append(f"{item['page']}: {len(item['files'])}")
        return item


class WithMedia(TellsAll):
    async def parse(self, response: Response, **arguments: Any) -> AsyncIterator[Any]:
        super().parse(response, **arguments)
        file = f"{self.task['elsewhere']}/file{response.url[-1]}"
        files: list[Any] = []
        if self.task["media"] == "callback":
            assert self.crawler.engine is not None
            files = [await self.crawler.engine.download_async(Request(file))]
        elif self.task["media"] == "verdict":
            files = [1] * (await RepMiddleware.of(self.crawler).verdict(file)).allowed
        yield {"page": response.url[-1], "file_urls": [file], "files": files}


PIPELINES: dict[str, dict[Any, int]] = {
    "files": {"scrapy.pipelines.files.FilesPipeline": 1},
    "screenshots": {Screenshots: 1},
}

if __name__ == "__main__":
    task = json.load(sys.stdin)
    task["settings"]["ITEM_PIPELINES"] = {**PIPELINES.get(task["media"], {}), Notes: 2}
    run_crawl(task, WithMedia)
