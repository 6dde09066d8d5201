"""A fleet of two crawlers. They share one queue of requests, and the robots.txt files that they fetch.

`python -m example.fleet` prints a table for each crawler. It needs redis-server, and `pip install scrapy-redis redis`.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

CRAWLERS = 2
PROJECT = Path(__file__).parents[1]


def main() -> None:
    binary = shutil.which("redis-server")
    if binary is None:
        sys.exit("redis-server is not installed: `apt-get install redis-server`, or `brew install redis`")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    redis = subprocess.Popen(
        [binary, "--port", str(port), "--bind", "127.0.0.1", "--save", ""], stdout=subprocess.DEVNULL
    )
    # The server exits when its standard input is closed.
    web = subprocess.Popen(
        [sys.executable, "-m", "example.server"], cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        origins = json.loads(web.stdout.readline())  # type: ignore[union-attr] # a pipe, as asked for
        wait_for(port)
        crawl(f"redis://127.0.0.1:{port}/0", origins)
    finally:
        redis.terminate()
        with web:
            web.terminate()


def wait_for(port: int) -> None:
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)


def crawl(redis_url: str, origins: dict[str, str]) -> None:
    command = [sys.executable, "-m", "scrapy", "crawl", "tour_in_fleet"]
    options = ["-a", f"origins={json.dumps(origins)}", "-s", f"REDIS_URL={redis_url}"]
    crawlers = [
        subprocess.Popen([*command, *options], cwd=PROJECT, stdout=subprocess.PIPE, text=True) for _ in range(CRAWLERS)
    ]
    for crawler in crawlers:
        table, _ = crawler.communicate()
        print(table)


if __name__ == "__main__":
    main()
