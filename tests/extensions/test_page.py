"""The page of the report as a file: readers without scripts, screen readers and attacks."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from crawling import crawl
from doc_pages import ROOT
from pytest_twisted import ensureDeferred
from reports import HOSTILE, RULES, SimulatedCrawl, broad_crawl, hostile_crawl
from scrapy import Request
from web import Web, answer, redirect

from scrapy_rep.extensions.report.page import FORMS, MEANINGS, fill, html_page
from scrapy_rep.origin_info import OriginKind
from scrapy_rep.protocol.answer import AccessResult
from scrapy_rep.protocol.foreign_text import printable
from scrapy_rep.protocol.robotstxt.rules import VerdictReason
from scrapy_rep.protocol.words import REASON_WORDS

TEMPLATE = files("scrapy_rep.extensions.report").joinpath("page.html").read_text("utf-8")
DIFFICULT_SITES = ROOT / "docs" / "difficult-sites.md"
VOID = {"meta"}


class Reader(HTMLParser):
    """Checks that every tag is closed. Collects tags, scripts, and the text outside of scripts."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.scripts: list[str] = []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts.append(data)
        elif self.open and self.open[-1] != "style":
            self.text += data

    def attributes(self, name: str) -> list[str | None]:
        return [attributes[name] for _tag, attributes in self.tags if name in attributes]

    def words(self) -> str:
        return " ".join(self.text.split())


def read(path: Path) -> Reader:
    return Reader(path.read_text("utf-8"))


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    path = tmp_path / "hostile.html"
    hostile_crawl(path).close()
    return path


def test_the_page_is_one_file_that_loads_nothing(hostile: Path) -> None:
    reader, html = read(hostile), hostile.read_text("utf-8")
    assert {tag for tag, _ in reader.tags} & {"link", "img", "iframe", "object", "embed", "base", "form"} == set()
    assert not {"src", "srcset", "action", "onload", "onerror", "ping"} & {n for _, a in reader.tags for n in a}
    assert "url(" not in html
    assert "@import" not in html
    (policy,) = (a["content"] for tag, a in reader.tags if tag == "meta" and "http-equiv" in a)
    assert policy is not None
    assert policy.startswith("default-src 'none'")


def test_links_lead_only_to_sites(hostile: Path) -> None:
    links = [str(link) for link in read(hostile).attributes("href")]
    assert "https://ordinary.example/robots.txt" in links
    assert all(link.startswith(("#", "https://")) for link in links)
    assert not any("…" in link for link in links), "a URL that was cut is no link"


def test_text_of_sites_is_escaped(hostile: Path) -> None:
    reader, html = read(hostile), hostile.read_text("utf-8")
    assert printable(HOSTILE) in reader.text
    assert f"https://{printable(HOSTILE)}" in reader.text
    assert "javascript://x/%0aalert(1)" in reader.text
    assert not re.search(r"[\x00-\x09\x0b-\x1f\u202e\ud800-\udfff]", html)
    ours = Reader(TEMPLATE)
    assert [tag for tag, _ in reader.tags].count("script") == [tag for tag, _ in ours.tags].count("script") == 2
    assert html.count("<!--") == TEMPLATE.count("<!--") == 1


def test_the_page_contains_the_data_as_json(hostile: Path, tmp_path: Path) -> None:
    crawl = hostile_crawl(tmp_path / "other.html")
    data, _script = Reader(html_page(crawl.lines())).scripts
    assert json.loads(data) == crawl.lines()
    assert not set(data) & set("<>&")


@ensureDeferred
async def test_the_page_of_a_real_crawl(web: Web, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    evil = web.robots("user-agent: *\ndisallow: /<script>alert(1)</script>\x1b[2J\n")
    down = web.robots(answer(status=503))
    urls = [evil.url("/<script>alert(1)</script>%1B%5B2J"), evil.url("/"), down.url("/")]
    await crawl(*urls, settings={"REP_REPORT": str(path), "USER_AGENT": "NewsBot/1.0"})
    reader = read(path)
    assert "Disallow: /<script>alert(1)</script>\\x1b[2J" in reader.text, "as written, and as text"
    words = reader.words()
    assert "NewsBot, from the User-Agent in USER_AGENT" in words
    assert "REP_FETCH_RETRIES = 0" in words
    assert "66.7% of all requests" in words
    assert f"{REASON_WORDS[VerdictReason.UNREACHABLE.value].refused}: HTTP 503" in words
    assert f"{down.origin} HTTP 503" in words
    assert evil.robots_url in reader.attributes("href")


@ensureDeferred
async def test_the_page_of_a_crawl_with_purposes(web: Web, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    robots = answer('user-agent: *\ncontent-usage: /<b>a</b> train-ai=n;x="<i>"\n')
    page = answer("page", headers={"Content-Usage": "train-ai=y"})
    site = web.site({"/robots.txt": robots, "/b": page})
    settings = {"REP_PURPOSES": ["train-ai", "search"], "REP_PURPOSES_REFUSE": True, "REP_REPORT": str(path)}
    await crawl(site.url("/<b>a</b>"), site.url("/b"), settings=settings)
    reader = read(path)
    words = reader.words()
    assert (
        "Purpose Allowed Disallowed Unknown train-ai 1 page, 1 origin 1 page, 1 origin search 2 pages, 1 origin"
        in words
    )
    assert 'Content-Usage: /<b>a</b> train-ai=n;x="<i>"' in reader.text, "as written, and as text"


@ensureDeferred
async def test_the_page_of_a_crawl_of_nothing(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    await crawl(settings={"REP_REPORT": str(path)})
    words = read(path).words()
    assert "Refused pages None." in words
    assert "No request waited for a robots.txt." in words
    assert "There were no outages." in words
    assert "Origins None." in words


def test_the_page_of_a_dry_run_says_what_would_have_been(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    broad_crawl(path, 40).close()
    assert "would have been" not in read(path).text
    broad_crawl(path, 40, REP_DRY_RUN=True).close()
    words = read(path).words()
    assert "Dry run. REP_DRY_RUN was on" in words
    assert re.findall(r"(?i)(?<!would be )(?<!would have been )(?<!nothing was )\brefused\b", words) == []
    assert re.findall(r"\b(?:was|were) (?:allowed|obeyed)", words.replace("everything was allowed", "")) == [], words


def test_every_origin_is_shown_without_a_script(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    broad_crawl(path, 300).close()
    reader = read(path)
    assert {f"https://www.site{number}.example/robots.txt" for number in range(300)} <= set(reader.attributes("href"))
    assert "hidden" not in {name for _tag, attributes in reader.tags for name in attributes}


def test_pages_that_are_not_listed_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scrapy_rep.extensions.report.MAX_ORIGINS", 30)
    monkeypatch.setattr("scrapy_rep.refusals.MAX_RULES", 1)
    monkeypatch.setattr("scrapy_rep.extensions.report.page.MAX_OUTAGE_LINES", 2)
    path = tmp_path / "report.html"
    broad_crawl(path, 90).close()
    words = read(path).words()
    assert "Not listed: 9 pages" in words
    assert "Not listed: 7 outages" in words
    assert "Not listed: 60 origins" in words


def test_the_kinds_of_origins_and_their_causes(tmp_path: Path) -> None:
    crawl = SimulatedCrawl(tmp_path / "report.html")
    crawl.robots("https://a.example", body=RULES)
    crawl.robots("https://b.example", body=b"# nothing\n")
    crawl.robots("https://c.example", answer="HTTP 503")
    crawl.robots("https://d.example", answer="HTTP 403, a challenge by Cloudflare", status=403, sign="Cloudflare")
    unavailable = AccessResult.UNAVAILABLE
    crawl.robots("https://e.example", answer="HTTP 404", access=unavailable, status=404)
    crawl.robots("https://f.example", answer="HTTP 404", access=unavailable, status=404)
    crawl.robots("https://g.example", answer="HTTP 200, a page of HTML", access=unavailable, status=200, sign="markup")
    crawl.robots("https://i.example", answer="HTTP 403", access=unavailable, status=403)
    crawl.robots("https://h.example", answer="HTTP 403", access=AccessResult.RESTRICTED, status=403)
    html = html_page(crawl.lines())
    words = Reader(html).words()
    assert (
        "with rules its rules were obeyed 1"
        " without rules HTTP 404 everything was allowed 2"
        " without rules a file without rules everything was allowed 1"
        " without rules a page of HTML everything was allowed, by default: REP_STATUS_POLICY can refuse such sites"
        " (in the docs: Pages of HTML) 1"
        " without rules HTTP 403 everything was allowed, by default: REP_STATUS_POLICY = 'cautious' refuses such sites"
        " (in the docs: Access denied) 1"
        " restricted HTTP 403 nothing was allowed, by REP_STATUS_POLICY: ask the site for access"
        " (in the docs: Access denied) 1"
        " challenged Cloudflare the site demands proof that the client is a browser: nothing was allowed,"
        " except by an older answer or after REP_UNREACHABLE_DAYS. Write to the site"
        " (in the docs: Challenges) 1"
        " unreachable nothing was allowed, except by an older answer or after REP_UNREACHABLE_DAYS. Check that the"
        " site is up. Crawl later, or more slowly (in the docs: Difficult sites) 1"
    ) in words
    kinds, _, others = html.partition('<section id="refused"')
    assert (kinds.count('class="key with-rules"'), others.count('class="key with-rules"')) == (1, 1), (
        "nothing else is green"
    )


def test_each_section_of_the_docs_that_the_page_names_exists() -> None:
    headings = re.findall("^#+ (.*)$", DIFFICULT_SITES.read_text("utf-8"), re.MULTILINE)
    sections = {section for _, section in MEANINGS.values()} - {""}
    assert sections <= set(headings)


@ensureDeferred
async def test_a_redirected_robots_txt_and_exempt_requests(web: Web, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    site, exempt = web.robots(RULES), web.robots(RULES)
    moved = web.robots(redirect(site.robots_url))
    unheeding = Request(site.url("/private"), meta={"dont_obey_robotstxt": True})
    settings = {"REP_REPORT": str(path), "REP_EXEMPT": [exempt.origin]}
    result = await crawl(moved.url("/private"), unheeding, exempt.url("/private"), exempt.url("/a"), settings=settings)
    assert result.stats["rep/exempt/dont_obey_robotstxt"] == 1
    assert result.stats["rep/exempt/setting"] == 2
    by = "1 by dont_obey_robotstxt, 2 by REP_EXEMPT"
    assert f"Exempt requests, which were sent without a look at robots.txt: {by}" in result.messages(0)
    reader = read(path)
    words = reader.words()
    assert "1 request by dont_obey_robotstxt and 2 requests by REP_EXEMPT, without a look at robots.txt" in words
    assert f"{moved.origin}HTTP 200, redirected to {site.robots_url}with rules" in words
    links = [attributes.get("href") for _, attributes in reader.tags if attributes.get("class") == "line"]
    assert links == [site.robots_url], "the line is in the file that the redirect led to"


def test_a_rule_that_refused_pages_of_more_than_100_origins(tmp_path: Path) -> None:
    crawl = SimulatedCrawl(tmp_path / "report.html")
    for number in range(101):
        assert "100+" not in Reader(html_page(crawl.lines())).words()
        crawl.page(f"https://{number}.example/private")
    assert "Disallow: /private 101 100.0% 100+ https:" in Reader(html_page(crawl.lines())).words()


# Accessibility.


def test_landmarks_and_labels_for_screen_readers(hostile: Path) -> None:
    reader = read(hostile)
    tags = [tag for tag, _ in reader.tags]
    assert all(tags.count(landmark) == 1 for landmark in ("header", "nav", "main", "footer", "h1"))
    ids = set(reader.attributes("id"))
    assert len(ids) == len(reader.attributes("id"))
    assert {label for tag, a in reader.tags if tag == "section" for label in [a.get("aria-labelledby")]} <= ids
    assert {link[1:] for link in reader.attributes("href") if link and link.startswith("#")} <= ids
    assert all("scope" in attributes for tag, attributes in reader.tags if tag == "th")


def test_rows_have_as_many_cells_as_the_head(hostile: Path) -> None:
    for table in re.findall(r"<table.*?</table>", hostile.read_text("utf-8"), re.DOTALL):
        lengths = {len(re.findall(r"<t[hd][ >]", row)) for row in table.split("<tr")[1:]}
        assert len(lengths) == 1


def test_each_colour_has_one_meaning() -> None:
    light, dark = (
        dict(re.findall(r"--([\w-]+): (#\w+)", block)) for block in re.findall(r":root \{(.*?)\}", TEMPLATE, re.DOTALL)
    )
    assert set(light) == set(dark)
    for colours in (light, dark):
        assert len(set(colours.values())) == len(colours)
    kinds = {FORMS["class"](kind.value) for kind in OriginKind}
    assert kinds | {"refused", "waited"} <= set(light)
    for name in kinds | {"refused", "waited"}:
        assert f".{name} {{ --colour: var(--{name}); }}" in TEMPLATE


@pytest.mark.parametrize("colours", [0, 1], ids=["light", "dark"])
def test_text_has_enough_contrast(colours: int) -> None:
    block = re.findall(r":root \{(.*?)\}", TEMPLATE, re.DOTALL)[colours]
    colour = dict(re.findall(r"--([\w-]+): (#\w+)", block))
    for text in ("text", "dim", "link"):
        for ground in ("ground", "raised"):
            assert contrast(colour[text], colour[ground]) >= 4.5, "WCAG 2.2, 1.4.3"
    for drawn in (*(FORMS["class"](kind.value) for kind in OriginKind), "refused", "waited"):
        assert contrast(colour[drawn], colour["ground"]) >= 3, "WCAG 2.2, 1.4.11"


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of WCAG."""
    darker, lighter = sorted(luminance(colour) for colour in (one, other))
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    parts = [int(digits[start : start + 2], 16) / 255 for start in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


# The template language.


@pytest.mark.parametrize(
    ("template", "values", "filled"),
    [
        pytest.param("{{a}}", {"a": '<&">'}, "&lt;&amp;&quot;&gt;", id="escaped"),
        pytest.param("{{a}}", {"a": "{{b}}", "b": 1}, "{{b}}", id="values-are-no-templates"),
        pytest.param("{{a|count}}", {"a": 12345}, "12,345", id="form"),
        pytest.param("{{#a}}[{{b}}]{{/a}}", {"a": [{"b": 1}, {"b": 2}]}, "[1][2]", id="list"),
        pytest.param("{{#a}}{{b}}{{c}}{{/a}}", {"a": {"b": 1}, "b": 0, "c": 2}, "12", id="mapping"),
        pytest.param("{{#a}}{{a}}{{/a}}{{^a}}none{{/a}}", {"a": 3}, "3", id="value"),
        pytest.param("{{#a}}{{a}}{{/a}}{{^a}}none{{/a}}", {"a": 0}, "none", id="nothing"),
        pytest.param("{{#a}}{{a}}{{/a}}{{^a}}none{{/a}}", {"a": []}, "none", id="empty-list"),
        pytest.param("{{#a}}{{#b}}{{c}}{{/b}}{{/a}}", {"a": [{"b": [{"c": 1}]}]}, "1", id="nested"),
        pytest.param("{{#a}}{{b}}{{/a}}", {"a": [{"b": "{{/a}}{{#a}}"}]}, "{{/a}}{{#a}}", id="hostile-section"),
    ],
)
def test_fill(template: str, values: dict[str, Any], filled: str) -> None:
    assert fill(template, values) == filled


@pytest.mark.parametrize(
    ("form", "value", "text"),
    [
        ("seconds", 0.0, "0 s"),
        ("seconds", 0.004, "&lt; 0.01 s"),
        ("seconds", 0.25, "0.25 s"),
        ("seconds", 59.4, "59 s"),
        ("seconds", 59.9, "1 min"),
        ("seconds", 61, "1 min 1 s"),
        ("seconds", 7_200, "2 h"),
        ("seconds", 86_399, "24 h"),
        ("seconds", 100_000, "27 h 47 min"),
        ("percent", 0.0, "0.0%"),
        ("percent", 0.0004, "&lt; 0.1%"),
        ("percent", 1.0, "100.0%"),
        ("time", 0.0, "1970-01-01 00:00:00"),
        ("href", 'https://a.example/?a="&b', 'href="https://a.example/?a=&quot;&amp;b"'),
        ("href", "javascript:alert(1)", ""),
        ("href", "https://a.example/…", ""),
    ],
)
def test_forms(form: str, value: Any, text: str) -> None:
    assert FORMS[form](value).replace("&nbsp;", " ") == text


def test_an_outage_from_before_the_crawl_is_shown_from_the_start(tmp_path: Path) -> None:
    crawl = SimulatedCrawl(tmp_path / "report.html")
    crawl.time.now -= 90
    crawl.robots("https://a.example", answer="HTTP 503")
    crawl.time.now += 100
    crawl.robots("https://a.example", body=RULES)
    crawl.time.now += 10
    html = html_page(crawl.lines())
    assert "\N{MINUS SIGN}1 min 30 s" in Reader(html).words()
    assert "--start:0.0;--number:10.0" in html


def test_outages_are_in_order_of_time(tmp_path: Path) -> None:
    crawl = SimulatedCrawl(tmp_path / "report.html")
    for number in (3, 1, 2, 0):
        crawl.time.now += 10
        crawl.robots(f"https://{number}.example", answer=f"HTTP 50{number}")
        for page_number in range(number * 50):
            crawl.refused_in_outage(f"https://{number}.example/{page_number}", "HTTP 503")
    words = Reader(html_page(crawl.lines())).words()
    outages = words[words.index("The times at which") : words.index("Each origin links to")]
    assert re.findall("HTTP 50(.)", outages) == ["3", "1", "2", "0"]
