"""The report's page in headless Chromium: how it is laid out, and what its script does.

Not run by default: `python -m pytest -m browser`.
"""

from __future__ import annotations

import json
import re
from html import escape, unescape
from pathlib import Path
from typing import Any

import pytest
from chromium import SCHEMES, dumped, needs_chromium
from reports import broad_crawl, hostile_crawl

pytestmark = [pytest.mark.browser, needs_chromium]
PHONE, TABLET, SMALL, DESKTOP = 390, 970, 1100, 1280

# Words that are broken into two lines. Text of more than 24 characters may break, and any text at `-`, `/` or `?`.
BROKEN_WORDS = r"""
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), broken = [];
while (walker.nextNode()) {
  if (walker.currentNode.parentElement.closest("script, [hidden]")) continue;
  for (const word of walker.currentNode.data.matchAll(/[^\s\-\/?]+/g)) {
    if (!/^[\w.:,]{1,24}$/.test(word[0])) continue;
    const range = document.createRange();
    range.setStart(walker.currentNode, word.index);
    range.setEnd(walker.currentNode, word.index + word[0].length);
    if (new Set([...range.getClientRects()].map(({ bottom }) => Math.round(bottom))).size > 1) broken.push(word[0]);
  }
}
"""


def in_chromium(path: Path, script: str, *, width: int = DESKTOP, scheme: str = "light") -> Any:
    """Run the script at the end of the page, and return its result.

    The page is in a frame, because no window is as narrow as a phone.
    """
    probe = "<script>window.failures = []; onerror = (message) => failures.push(message);</script>"
    run = f"<script>returned = JSON.stringify((() => {{ {script} }})());</script>"
    html = path.read_text("utf-8").replace("<head>", f"<head>{probe}", 1).replace("</body>", f"{run}</body>")
    frame = path.with_name("frame.html")
    frame.write_text(
        f"""<!doctype html><meta name="color-scheme" content="light dark">
        <iframe width="{width}" height="900" style="border: 0" srcdoc="{escape(html)}"></iframe><pre></pre>
        <script>onload = () => document.querySelector("pre").textContent = frames[0].returned;</script>""",
        "utf-8",
    )
    found = re.search("<pre>(.*?)</pre>", dumped(frame, scheme), re.DOTALL)
    assert found is not None
    return json.loads(unescape(found[1]))


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", [PHONE, TABLET, SMALL, DESKTOP])
@pytest.mark.parametrize("kind", [hostile_crawl, lambda path: broad_crawl(path, 60)], ids=["hostile", "ordinary"])
def test_the_layout_at_each_width(tmp_path: Path, width: int, scheme: str, kind: Any) -> None:
    path = tmp_path / "report.html"
    kind(path).close()
    told = in_chromium(
        path,
        BROKEN_WORDS
        + """return {
          failures, broken, title: document.title, width: innerWidth,
          wide: [...document.querySelectorAll("body *")].filter((element) =>
            element.getBoundingClientRect().right > innerWidth + 1).map((element) => element.outerHTML.slice(0, 200)),
          ground: getComputedStyle(document.body).backgroundColor, scripts: document.scripts.length,
          images: document.images.length, rows: document.querySelectorAll("#origins tbody tr").length,
        };""",
        width=width,
        scheme=scheme,
    )
    assert told["title"] == "robots.txt report: headlines"
    assert (told["scripts"], told["images"], told["failures"]) == (4, 0, []), "two scripts are added by this test"
    assert told["rows"] == (60 if kind is not hostile_crawl else 4)
    assert told["width"] == width
    assert told["wide"] == []
    assert told["broken"] == []
    is_dark = int(told["ground"].removeprefix("rgb(").split(",")[0]) < 128
    assert is_dark == (scheme == "dark")


VISIBLE = """
const table = document.querySelector("#origins table"), search = document.querySelector("#origins input");
const visible = () => [...table.tBodies[0].rows].filter((row) => row.getClientRects().length);
const column = (number) => visible().map((row) => row.cells[number].textContent);
const head = (name) => [...table.querySelectorAll("th button")].find((button) => button.textContent === name);
const type = (text) => { search.value = text; search.oninput(); };
"""


@pytest.fixture
def broad(tmp_path: Path) -> Path:
    path = tmp_path / "report.html"
    broad_crawl(path, 300).close()
    return path


def test_sorting(broad: Path) -> None:
    told = in_chromium(
        broad,
        VISIBLE
        + """const orders = [];
        for (const name of ["Fetched", "Fetched", "Longest wait", "Origin", "Answer"]) {
          head(name).click();
          const th = head(name).parentElement;
          orders.push([th.ariaSort, document.querySelectorAll("[aria-sort]").length, column(th.cellIndex)]);
        }
        return orders;""",
    )
    orders = [order for order, _, _ in told]
    assert orders == ["descending", "ascending", "descending", "ascending", "ascending"]
    assert all(sorted_columns == 1 for _, sorted_columns, _ in told)
    most, fewest, longest, origins, answers = (column for _, _, column in told)
    assert most == sorted(most, key=int, reverse=True)
    assert (set(most), fewest[0], fewest[-1]) == ({"3"}, "0", "1")
    seconds = [float(text.removesuffix("\N{NO-BREAK SPACE}s")) for text in longest]
    assert seconds == sorted(seconds, reverse=True), "sorted as numbers"
    assert seconds[0] == 0.39
    assert origins[:3] == [f"https://www.site{number}.example" for number in (0, 1, 10)]
    assert answers == sorted(answers)


@pytest.mark.parametrize(("width", "fold"), [(400, 10), (DESKTOP, 50)])
def test_search_and_the_rows_that_are_shown(broad: Path, width: int, fold: int) -> None:
    told = in_chromium(
        broad,
        VISIBLE
        + """const found = () => document.querySelector("#origins output").textContent;
        const more = document.querySelector("#origins .action");
        const told = { first: visible().length, more: more.textContent };
        type("SITE29 rules");
        told.site29 = column(0).sort();
        told.found = found();
        type("no such origin");
        told.none = visible().length;
        type("");
        told.again = visible().length;
        more.click();
        told.all = visible().length;
        told.nothing_more = more.hidden;
        type("unreachable");
        told.unreachable = visible().length;
        return told;""",
        width=width,
    )
    site29 = told.pop("site29")
    assert len(site29) == min(fold, 11)
    assert set(site29) <= {f"https://www.site{number}.example" for number in (29, *range(290, 300))}
    assert told == {
        "first": fold,
        "more": "Show all 300",
        "found": "11 of 300 origins",
        "none": 0,
        "again": fold,
        "all": 300,
        "nothing_more": True,
        "unreachable": 15,
    }


@pytest.mark.parametrize(("width", "first"), [(400, 10), (DESKTOP, 30)])
def test_outages_can_be_searched_and_sorted(broad: Path, width: int, first: int) -> None:
    told = in_chromium(
        broad,
        VISIBLE.replace("#origins", "#outages")
        + """const told = { first: visible().length };
        type("site28");
        told.found = column(0);
        type("not over");
        told.lasting = visible().length;
        type("");
        head("Lasted").click();
        told.longest = column(3)[0].replace("\\u00a0", " ");
        head("Origin").click();
        told.by_name = column(0).slice(0, 2);
        return told;""",
        width=width,
    )
    assert told == {
        "first": first,
        "found": ["https://www.site280.example"],
        "lasting": min(first, 15),
        "longest": "2 min",
        "by_name": ["https://www.site0.example", "https://www.site10.example"],
    }


def test_a_large_report_is_folded_on_a_phone(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    broad_crawl(path, 2_000).close()
    height = in_chromium(path, "return document.documentElement.scrollHeight;", width=400)
    assert height < 12_000, "2,000 origins would take 350,000"


def test_the_saved_data_are_the_json_lines(broad: Path) -> None:
    told = in_chromium(
        broad,
        """let saved;
        HTMLAnchorElement.prototype.click = () => {};
        URL.createObjectURL = (blob) => { saved = blob; return "#"; };
        document.querySelector("footer button").click();
        return [saved.type, saved.size, DATA.map((line) => JSON.stringify(line) + "\\n").join("").length];""",
    )
    assert told[0] == "application/jsonl"
    assert told[1] == told[2] > 10_000


def test_without_scripts_every_row_is_shown_and_no_button(broad: Path) -> None:
    html = broad.read_text("utf-8")
    assert "script-src 'unsafe-inline'" in html
    broad.write_text(html.replace("script-src 'unsafe-inline'", "script-src 'none'"), "utf-8")
    dom = dumped(broad, "light")
    assert dom.count('href="https://www.site') >= 300
    assert "hidden" not in re.sub(r"aria-hidden|<(style|script).*?</\1>", "", dom, flags=re.DOTALL)
    assert not re.search("<(button|input|output)", re.sub(r"<script.*?</script>", "", dom, flags=re.DOTALL))
