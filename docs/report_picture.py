"""Makes docs/report.png, the report of the example project: `python docs/report_picture.py`. Needs Chromium.

The sites of the example project have random ports on this machine. The picture shows names instead.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from scrapy.crawler import CrawlerProcess
from scrapy.utils.project import get_project_settings

DOCS = Path(__file__).resolve().parent
WIDTH, HEIGHT = 1100, 1145
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--blink-settings=preferredColorScheme=1")


def main() -> None:
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        sys.exit("Chromium is not installed")
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "report.html")
        origins = crawl(page)
        text = page.read_text("utf-8")
        for site, origin in origins.items():
            text = text.replace(origin, f"https://{site}.example")
        page.write_text(text, "utf-8")
        flags = [*FLAGS, f"--window-size={WIDTH},{HEIGHT}", f"--user-data-dir={Path(folder, 'profile')}"]
        picture = f"--screenshot={DOCS / 'report.png'}"
        subprocess.run([chromium, *flags, picture, page.as_uri()], check=True, capture_output=True)  # noqa: S603 - our own page


def crawl(report: Path) -> dict[str, str]:
    """Write the report of a crawl of the example project. Return the origins of its sites by their names."""
    os.chdir(DOCS.parent / "example_project")
    sys.path.insert(0, os.getcwd())
    settings = get_project_settings()
    settings.set("REP_REPORT", str(report))
    process = CrawlerProcess(settings)
    crawler = process.create_crawler("tour")
    process.crawl(crawler)
    process.start()
    spider: Any = crawler.spider
    return dict(spider.origins)


if __name__ == "__main__":
    main()
