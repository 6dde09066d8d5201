"""docs/report.md lists each field of the JSON lines, and no others."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reports import RULES, SimulatedCrawl

from scrapy_rep import refusals
from scrapy_rep.extensions import report
from scrapy_rep.protocol.foreign_text import MAX_RULE, MAX_TEXT

DOCS = (Path(__file__).parents[2] / "docs" / "report.md").read_text("utf-8")


def documented(name: str) -> list[str]:
    """The fields in the table below the heading."""
    section = DOCS.split(f"\n### `{name}`\n")[1].split("\n#")[0]
    firsts = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    return [field for first in firsts for field in re.findall("`(.*?)`", first)]


def test_every_field_is_documented_in_its_order(tmp_path: Path) -> None:
    crawl = SimulatedCrawl(tmp_path / "report.jsonl", REP_PURPOSES=["search"])
    crawl.robots("https://a.example", body=RULES)
    crawl.robots("https://a.example", answer="HTTP 503")
    crawl.page("https://a.example/private")
    lines: dict[str, Mapping[str, Any]] = {line["type"]: line for line in crawl.lines()}
    lines |= {"waited": lines["crawl"]["waited"], "outages": lines["origin"]["outages"][0]}
    lines |= {"usage": lines["crawl"]["usage"][0], "kinds": lines["crawl"]["kinds"][0]}
    lines |= {"examples": lines["refused"]["examples"][0]}
    assert {name: documented(name) for name in lines} == {name: list(line) for name, line in lines.items()}


def test_the_limits_in_the_docs_are_those_of_the_code() -> None:
    words = " ".join(DOCS.split())
    most = "most significant"
    assert f"the {report.MAX_ORIGINS:,} {most} origins and the {refusals.MAX_RULES:,} {most} rules" in words
    assert f"cut at {MAX_TEXT} characters, rules at {MAX_RULE};" in words
    assert f"counted up to {refusals.MAX_RULE_ORIGINS}" in words
    assert (report.MAX_OUTAGES, refusals.MAX_EXAMPLES) == (5, 3), "said in words"
