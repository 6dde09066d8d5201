"""Makes docs/report.png, the report of the example project: `python docs/report_picture.py`. Needs Chromium.

The sites of the example project have random ports on this machine. The picture shows names instead. The file also has
the words of the report and a hash of its style. `--words` prints those of the present code, and
tests/docs/test_pictures.py compares.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zlib
from html import unescape
from pathlib import Path
from typing import Any

from scrapy.crawler import CrawlerProcess
from scrapy.utils.project import get_project_settings

DOCS = Path(__file__).resolve().parent
PICTURE = DOCS / "report.png"
WIDTH, HEIGHT = 1100, 1145
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--blink-settings=preferredColorScheme=1")
KEY, END = b"tEXtWords\0", b"\0\0\0\0IEND\xaeB`\x82"


def main() -> None:
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "report.html")
        text = report(page)
        if "--words" in sys.argv:
            print(json.dumps(words(text)))
            return
        if chromium is None:
            sys.exit("Chromium is not installed")
        page.write_text(text, "utf-8")
        flags = [*FLAGS, f"--window-size={WIDTH},{HEIGHT}", f"--user-data-dir={Path(folder, 'profile')}"]
        command = [chromium, *flags, f"--screenshot={PICTURE}", page.as_uri()]
        subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - our own page
    chunk = KEY + json.dumps(words(text)).encode()
    checked = len(chunk[4:]).to_bytes(4, "big") + chunk + zlib.crc32(chunk).to_bytes(4, "big")
    PICTURE.write_bytes(PICTURE.read_bytes().removesuffix(END) + checked + END)


def words(html: str) -> list[str]:
    """Return the words of a report without its numbers, and a hash of its style."""
    style = "".join(re.findall(r"<style>.*?</style>", html, re.DOTALL))
    text = re.sub(r"<(style|script)\b.*?</\1>|<[^>]+>", " ", html, flags=re.DOTALL)
    return sorted({*re.findall(r"[^\W\d_]{2,}", unescape(text)), f"style {hashlib.sha256(style.encode()).hexdigest()}"})


def words_of_picture() -> list[str]:
    """Return the words that were in the report when the picture was made."""
    _, _, chunk = PICTURE.read_bytes().removesuffix(END).partition(KEY)
    found: list[str] = json.loads(chunk[:-4])
    return found


def report(path: Path) -> str:
    """Return the report of a crawl of the example project, with names for its sites."""
    os.chdir(DOCS.parent / "example_project")
    sys.path.insert(0, os.getcwd())
    settings = get_project_settings()
    settings.set("REP_REPORT", str(path))
    settings.set("WEB_PORT", 0)
    process = CrawlerProcess(settings)
    crawler = process.create_crawler("tour")
    process.crawl(crawler)
    stdout, sys.stdout = sys.stdout, sys.stderr  # the example project prints a table
    process.start()
    sys.stdout = stdout
    spider: Any = crawler.spider
    text = path.read_text("utf-8")
    for site, origin in spider.origins.items():
        text = text.replace(origin, f"https://{site}.example")
    return text


if __name__ == "__main__":
    main()
