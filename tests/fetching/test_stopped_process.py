"""A process that was stopped (Ctrl-Z) and goes on much later: what timed out meanwhile is fetched again."""

from __future__ import annotations

import signal
import sys
import time

import pytest
from processes import crawl_process, until
from web import RULES, Web, answer

TIMEOUT, GRACE, LATE = 1, 0.5, 1.0
CONSTANTS = {"scrapy_rep.fetching.download.GRACE": GRACE, "scrapy_rep.fetching.download.LATE": LATE}
"""These times are shorter than in the package, because the tests wait for them."""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGSTOP")
@pytest.mark.parametrize("answers", [True, False], ids=["the-answer-has-come", "the-answer-comes-later"])
def test_nothing_is_refused_after_the_process_was_stopped(web: Web, answers: bool) -> None:
    sites = [web.robots([answer(RULES, kind="hold")]) for _ in range(20)]
    urls = [site.url("/") for site in sites]
    settings = {"REP_FETCH_TIMEOUT": TIMEOUT, "CONCURRENT_REQUESTS_PER_DOMAIN": 20}
    with crawl_process(urls, settings, constants=CONSTANTS) as process:
        until(lambda: all(site.requests for site in sites), process)
        process.send_signal(signal.SIGSTOP)
        if answers:
            web.release(*sites)
        time.sleep(TIMEOUT + GRACE + LATE)
        process.send_signal(signal.SIGCONT)
        if not answers:
            time.sleep(0.5)
            web.release(*sites)
        ended = process.ended()
    assert sorted(ended.pages) == sorted(urls)
    assert ended.complaints == []
