"""The sources of the product token, in order of precedence (RFC 9309 section 2.2.1)."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from crawling import Crawl, CrawlSpider, crawl
from pytest_twisted import ensureDeferred
from scrapy import Request, signals
from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from scrapy.crawler import Crawler, CrawlerRunner
from scrapy.http import Response
from web import Site, Web

from scrapy_rep.extensions import mistakes
from scrapy_rep.user_agent import is_doubtful, product_token

BROWSER = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0 Safari/537.36"
AGENTS = ("meta", "cmdline", "attribute", "project", "header", "default-headers", "user-agent-attribute", "setting")


def site_for(web: Web) -> Site:
    """A site at which each agent's group forbids one page. The group of `*` forbids /everyone."""
    groups = [f"user-agent: {agent}\ndisallow: /{agent}\n" for agent in AGENTS]
    return web.robots("\n".join([*groups, "user-agent: *\ndisallow: /everyone\n"]))


async def obeyed(site: Site, **more: Any) -> str:
    """Return the agent whose group is obeyed."""
    meta, headers = more.pop("meta", {}), more.pop("headers", {})
    urls = [Request(site.url(f"/{agent}"), meta=meta, headers=headers) for agent in (*AGENTS, "everyone")]
    result = await crawl(*urls, **more)
    (url,) = result.refused
    return url.rpartition("/")[2]


class WithAttribute(CrawlSpider):
    robotstxt_user_agent = "attribute"
    user_agent = "user-agent-attribute/1.0"


# The ways to name the agent. Later ways take precedence over earlier ones.
WAYS: list[dict[str, Any]] = [
    {"settings": {"USER_AGENT": "setting/1.0"}},
    {"spider": type("S", (CrawlSpider,), {"user_agent": "user-agent-attribute/1.0"})},
    {"settings": {"DEFAULT_REQUEST_HEADERS": {"user-agent": "default-headers/1.0"}}},
    {"headers": {"User-Agent": "header/1.0"}},
    {"settings": {"ROBOTSTXT_USER_AGENT": "project"}},
    {"spider": WithAttribute},
]
NAMES = ["setting", "user-agent-attribute", "default-headers", "header", "project", "attribute"]


@pytest.mark.parametrize("height", range(1, len(WAYS) + 1), ids=NAMES)
@ensureDeferred
async def test_the_agent_with_the_highest_precedence_is_obeyed(web: Web, height: int) -> None:
    arguments: dict[str, Any] = {"settings": {}}
    for way in WAYS[:height]:
        arguments["settings"].update(way.get("settings", {}))
        arguments.update({key: value for key, value in way.items() if key != "settings"})
    assert await obeyed(site_for(web), **arguments) == NAMES[height - 1]


@ensureDeferred
async def test_the_command_line_takes_precedence_over_the_spider(web: Web) -> None:
    class Both(WithAttribute):
        @classmethod
        def update_settings(cls, settings: Any) -> None:
            settings.set("ROBOTSTXT_USER_AGENT", "cmdline", priority="cmdline")

    assert await obeyed(site_for(web), spider=Both) == "cmdline"


@ensureDeferred
async def test_the_spiders_attribute_takes_precedence_over_custom_settings(web: Web) -> None:
    class Both(WithAttribute):
        custom_settings = {"ROBOTSTXT_USER_AGENT": "project"}

    assert await obeyed(site_for(web), spider=Both) == "attribute"
    only = type("S", (CrawlSpider,), {"custom_settings": {"ROBOTSTXT_USER_AGENT": "project"}})
    assert await obeyed(site_for(web), spider=only) == "project"


@ensureDeferred
async def test_the_meta_of_the_request_takes_precedence_over_all_others(web: Web) -> None:
    meta = {"robotstxt_user_agent": "meta"}
    assert await obeyed(site_for(web), spider=WithAttribute, meta=meta) == "meta"


@ensureDeferred
async def test_a_list_is_in_order_of_preference(web: Web) -> None:
    settings = {"ROBOTSTXT_USER_AGENT": ["nobody", "project", "meta"]}
    assert await obeyed(site_for(web), settings=settings) == "project"
    assert await obeyed(site_for(web), meta={"robotstxt_user_agent": ("nobody",)}) == "everyone"


@ensureDeferred
async def test_a_string_is_one_value(web: Web) -> None:
    # Scrapy's getlist would split the string.
    assert await obeyed(site_for(web), settings={"ROBOTSTXT_USER_AGENT": "nobody,project"}) == "everyone"


@ensureDeferred
async def test_a_spider_without_a_name_of_its_own_obeys_everyones_group(web: Web) -> None:
    browser = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0 Safari/537.36"
    site = site_for(web)
    result = await crawl(site.url("/everyone"), site.url("/setting"), settings={"USER_AGENT": browser})
    assert list(result.refused) == [site.url("/everyone")]
    (warning,) = result.messages()
    assert "names no crawler" in warning
    assert "USER_AGENT" in warning


@pytest.mark.parametrize("configured", [False, True])
@pytest.mark.parametrize(
    ("user_agent", "token"),
    [
        ("City Scrapers. Say hello at https://example.com", "City"),
        ("City! Scrapers", "City"),
        ("City & Scrapers", "City"),
        ("C++Bot", "C"),
        ("AT&T-Bot", "AT"),
        ("O'Reilly-Bot", "O"),
        ("Müller-Bot", "M"),
        ("Yahoo! Slurp", "Yahoo"),
        ("City: Scrapers/1.0", "City"),
        ("Web Crawler/1.0", "Crawler"),
        ("Info Bot/2.0", "Bot"),
        ("Mail Checker/1.0", "Checker"),
        ("Linux Bot/1.0", "Bot"),
        ("Mobile Web Scraper/1.0 (+https://example.com)", "Scraper"),
        ("Mozilla/5.0 Web Crawler/1.0", "Crawler"),
        (f"{BROWSER} mailto: me@example.com", "mailto"),
        (f"{BROWSER} bot: https://example.com", "bot"),
        ("ExampleBot: https://example.com", "ExampleBot"),
    ],
)
@ensureDeferred
async def test_a_token_that_is_cut_from_a_name_logs_a_warning(
    web: Web, user_agent: str, token: str, configured: bool
) -> None:
    settings = {"USER_AGENT": user_agent, "ROBOTSTXT_USER_AGENT": token if configured else None}
    warnings = (await crawl(settings=settings)).messages()
    assert len(warnings) == (not configured)
    for warning in warnings:
        assert warning.startswith(f"The product token {token!r} is no name, or a part of one, in the User-Agent ")
        assert f"{user_agent!r} (from USER_AGENT)" in warning


@pytest.mark.parametrize(
    "user_agent",
    [
        "ExampleBot",
        "ExampleBot/1.0 (contact: me@example.com)",
        "ExampleBot/1.0 contact: me@example.com",
        "ExampleBot/1.0, bot: https://example.com",
        "contact: me@example.com ExampleBot/1.0",
        f"{BROWSER} ExampleBot/1.0",
        f"{BROWSER} (compatible; ExampleBot; mailto: me@example.com)",
        "Mozilla/5.0 (compatible; ExampleBot/1.0; +https://example.com)",
        "Mozilla/5.0 (Linux; Android 14) Mobile ExampleBot/1.0",
    ],
)
def test_a_whole_name_is_not_doubtful(user_agent: str) -> None:
    token = product_token(user_agent)
    assert token == "ExampleBot"
    assert not is_doubtful(token, user_agent)


@pytest.mark.parametrize("configured", ["setting", "Setting/1.0", "*"])
@ensureDeferred
async def test_a_line_at_the_start_names_the_token_that_is_obeyed(web: Web, configured: str) -> None:
    result = await crawl(settings={"USER_AGENT": "Setting/1.0", "ROBOTSTXT_USER_AGENT": configured})
    info, *_end = [r.getMessage() for r in result.log if r.name == "scrapy_rep" and r.levelno == logging.INFO]
    assert repr(configured.removesuffix("/1.0")) in info
    assert "ROBOTSTXT_USER_AGENT" in info
    # A whole User-Agent is reduced to its token, with a warning.
    warnings = result.messages()
    assert len(warnings) == ("/" in configured)
    assert all("'Setting/1.0'" in warning and "token" in warning for warning in warnings)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("Mozilla/5.0 (X11; Linux)", "which is a whole User-Agent; it is ignored, because"),
        ("NewsBöt", "which is no product token, because of 'ö'; its product token 'NewsB' is used"),
        (["News Bot"], "which is no product token, because of ' '; its product token 'News' is used"),
        ("*bot", "which is no product token, because of '*'; "),
    ],
)
@ensureDeferred
async def test_a_warning_names_the_setting_that_is_not_a_token(web: Web, value: Any, said: str) -> None:
    result = await crawl(settings={"USER_AGENT": "NewsBot/1.0", "ROBOTSTXT_USER_AGENT": value})
    (warning,) = result.messages()
    text = value[0] if isinstance(value, list) else value
    assert warning.startswith(f"the setting ROBOTSTXT_USER_AGENT is {text!r}, {said}")
    assert warning.endswith("Set it to a product token such as 'ExampleBot'")


@ensureDeferred
async def test_the_warning_about_names_in_one_text_names_the_list(web: Web) -> None:
    result = await crawl(settings={"USER_AGENT": "NewsBot/1.0", "ROBOTSTXT_USER_AGENT": "NewsBot, Googlebot"})
    (warning,) = result.messages()
    assert warning.endswith("a product token such as 'ExampleBot', or to a list such as ['NewsBot', 'Googlebot']")


@pytest.mark.parametrize(
    ("configured", "line"),
    [
        ("NewsBot", "'NewsBot' (from the setting ROBOTSTXT_USER_AGENT), falling back to '*'"),
        ("*", "'*' (from the setting ROBOTSTXT_USER_AGENT)"),
        (None, "none, so only the groups of '*' apply (from the User-Agent in USER_AGENT)"),
    ],
)
@ensureDeferred
async def test_the_line_at_the_start(web: Web, configured: str | None, line: str) -> None:
    result = await crawl(
        settings={"USER_AGENT": "NewsBot/1.0" if configured else "5", "ROBOTSTXT_USER_AGENT": configured}
    )
    assert f"Crawler's name in robots.txt (product token): {line}" in result.messages(logging.INFO, "scrapy_rep")


@ensureDeferred
async def test_a_token_that_is_not_in_the_user_agent_logs_a_warning(web: Web) -> None:
    result = await crawl(settings={"USER_AGENT": "Setting/1.0", "ROBOTSTXT_USER_AGENT": "Otherbot"})
    (warning,) = result.messages()
    assert "'Setting/1.0'" in warning
    assert "'Otherbot'" in warning
    assert "2.2.1" in warning


@ensureDeferred
async def test_a_list_as_the_command_line_gives_it(web: Web) -> None:
    result = await crawl(
        site_for(web).url("/project"), settings={"USER_AGENT": "project/1.0", "ROBOTSTXT_USER_AGENT": '["project"]'}
    )
    assert len(result.refused) == 1
    assert result.messages() == []
    several = {"ROBOTSTXT_USER_AGENT": '["nobody", "project", "meta"]'}
    assert await obeyed(site_for(web), settings=several) == "project"
    assert await obeyed(site_for(web), spider=type("S", (CrawlSpider,), {"robotstxt_user_agent": '["meta"]'})) == "meta"


@pytest.mark.parametrize(
    "value", [7, {"a": 1}, ["a", 7], [""], [["a"]], b"a", '["a"', "[a, b]", "[]", "[7]", '[""]', "[[]]", '["a"] b']
)
@ensureDeferred
async def test_a_wrong_value_stops_the_start(value: Any) -> None:
    for settings, spider, source in (
        ({"ROBOTSTXT_USER_AGENT": value}, CrawlSpider, "ROBOTSTXT_USER_AGENT"),
        ({}, type("S", (CrawlSpider,), {"robotstxt_user_agent": value}), "the spider's robotstxt_user_agent"),
    ):
        runner = CrawlerRunner({"ADDONS": {"scrapy_rep.Addon": 500}, **settings})
        with pytest.raises(ValueError, match=source) as error:
            await runner.crawl(spider)
        assert repr(value) in str(error.value)


@ensureDeferred
async def test_a_value_that_becomes_wrong_before_the_spider_opens_ends_the_start(web: Web) -> None:
    site = site_for(web)

    class Becomes(CrawlSpider):
        @classmethod
        def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Any:
            crawler.signals.connect(cls.change, signals.spider_opened)
            return super().from_crawler(crawler, *args, **kwargs)

        @staticmethod
        def change(spider: Any) -> None:
            spider.robotstxt_user_agent = 7

    result = await crawl(site.url("/"), spider=Becomes)
    assert site.requests == []
    assert result.stats["finish_reason"] == "wrong_settings"
    (line,) = result.messages(logging.ERROR)
    assert line.startswith("The crawl does not start: the spider's robotstxt_user_agent is 7; set it to ")
    assert result.tracebacks == []


@pytest.mark.parametrize("value", [["A/1", "B/1"], 7])
@ensureDeferred
async def test_a_user_agent_that_is_not_text_stops_the_start(value: Any) -> None:
    for settings, spider, source in (
        ({"USER_AGENT": value}, CrawlSpider, "USER_AGENT"),
        ({}, type("S", (CrawlSpider,), {"user_agent": value}), "the spider's user_agent"),
    ):
        runner = CrawlerRunner({"ADDONS": {"scrapy_rep.Addon": 500}, **settings})
        with pytest.raises(ValueError, match=f"^{source} is ") as error:
            await runner.crawl(spider)
        assert f"{value!r}; set it to " in str(error.value)


@ensureDeferred
async def test_a_wrong_value_in_meta_logs_one_warning_and_the_crawls_token_decides(web: Web) -> None:
    site, wrong = site_for(web), {"robotstxt_user_agent": 7}
    requests = [Request(site.url(path), meta=wrong) for path in ("/a", "/b", "/project")]
    result = await crawl(*requests, settings={"USER_AGENT": "project/1.0"})
    assert list(result.refused) == [site.url("/project")]
    assert len(result.pages) == 2
    (warning,) = result.messages()
    assert warning.startswith("request.meta['robotstxt_user_agent'] is 7; set it to a product token such as")
    assert result.tracebacks == []


@pytest.mark.parametrize("where", ["setting", "spider"])
@ensureDeferred
async def test_a_browsers_user_agent_beside_an_explicit_token_is_no_mistake(web: Web, where: str) -> None:
    settings = {"USER_AGENT": "Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0"}
    token = {"ROBOTSTXT_USER_AGENT": "NewsBot"} if where == "setting" else {}
    attributes = {"robotstxt_user_agent": "NewsBot"} if where == "spider" else {}
    result = await crawl(settings={**settings, **token}, spider=type("S", (CrawlSpider,), attributes))
    assert result.messages() == []
    assert any("'NewsBot'" in m and "is not in the User-Agent that is sent" in m for m in result.messages(logging.INFO))


@ensureDeferred
async def test_a_request_that_sends_no_user_agent_obeys_everyones_group(web: Web) -> None:
    assert await obeyed(site_for(web), headers={"User-Agent": None}) == "everyone"


# The User-Agent that is sent.


def sends(user_agent: str, order: int = 450) -> dict[str, Any]:
    """Settings with a middleware that gives each request another User-Agent. By default, robots.txt decides before."""

    class Rotates:
        def process_request(self, request: Request) -> None:
            request.headers["User-Agent"] = user_agent

    return {"DOWNLOADER_MIDDLEWARES": {Rotates: order}}


def sent_warnings(result: Crawl) -> list[str]:
    return [m for m in result.messages(logger="scrapy_rep") if " was sent with the User-Agent " in m]


BROWSER = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0 Safari/537.36"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"USER_AGENT": "Setting/1.0", **sends(BROWSER)}, f"{BROWSER!r}, but judged by the rules for 'Setting'"),
        ({"USER_AGENT": BROWSER, **sends("Other/1.0")}, "'Other/1.0', but judged by the rules for '*'"),
        (
            {"ROBOTSTXT_USER_AGENT": "Setting", "USER_AGENT": "Setting/1.0", **sends("Other/1.0")},
            "'Other/1.0', but judged by the rules for 'Setting'",
        ),
        ({"USER_AGENT": "Setting/1.0", **sends("Setting/1.1")}, None),
        ({"USER_AGENT": "Setting/1.0"}, None),
        ({"ROBOTSTXT_USER_AGENT": "*", **sends("Other/1.0")}, None),
    ],
)
@ensureDeferred
async def test_a_user_agent_that_differs_from_the_one_obeyed_logs_one_warning(
    web: Web, settings: dict[str, Any], said: str | None
) -> None:
    site = web.robots("")
    result = await crawl(site.url("/a"), site.url("/b"), settings=settings)
    assert len(result.pages) == 2
    warnings = sent_warnings(result)
    assert len(warnings) == (said is not None)
    assert all(f"with the User-Agent {said}" in warning for warning in warnings)


@pytest.mark.parametrize(
    ("order", "token", "group"), [(50, None, "Other"), (50, "Setting", "Setting"), (450, None, "Setting")]
)
@ensureDeferred
async def test_below_order_100_a_middleware_sets_the_user_agent_that_decides(
    web: Web, order: int, token: str | None, group: str
) -> None:
    site = web.robots(f"User-agent: {group}\nDisallow: /\n")
    settings = {"USER_AGENT": "Setting/1.0", "ROBOTSTXT_USER_AGENT": token, **sends("Other/1.0", order)}
    result = await crawl(site.url("/a"), settings=settings)
    assert list(result.refused) == [site.url("/a")]
    assert sent_warnings(result) == []


@pytest.mark.parametrize("more", [{}, {"REP_CRAWL_DELAY_MAX": 1}], ids=["", "crawl-delay"])
@ensureDeferred
async def test_a_download_handler_that_sends_another_user_agent(web: Web, more: dict[str, Any]) -> None:
    class Impersonates(HTTP11DownloadHandler):
        async def download_request(self, request: Request) -> Response:
            request.headers["User-Agent"] = BROWSER
            return await super().download_request(request)

    site = web.robots("")
    settings = {"USER_AGENT": "Setting/1.0", "DOWNLOAD_HANDLERS": {"http": Impersonates}, **more}
    assert len(sent_warnings(await crawl(site.url("/a"), site.url("/b"), settings=settings))) == 1


@ensureDeferred
async def test_a_request_with_its_own_user_agent_is_judged_by_it(web: Web) -> None:
    requests = [
        Request(web.robots("").url("/"), headers={"User-Agent": "Header/1.0"}),
        Request(web.robots("").url("/"), meta={"robotstxt_user_agent": "meta"}),
        Request(web.robots("").url("/"), headers={"User-Agent": BROWSER}, meta={"dont_obey_robotstxt": True}),
    ]
    result = await crawl(*requests, settings={"USER_AGENT": "Setting/1.0"})
    assert (len(result.pages), sent_warnings(result)) == (3, [])


@pytest.mark.parametrize(
    ("own", "sent", "said"),
    [
        ("Header/1.0", "Other/1.0", "'Other/1.0', but judged by the rules for 'Header'"),
        ("Header/1.0", "Setting/1.0", "'Setting/1.0', but judged by the rules for 'Header'"),
        (BROWSER, "Setting/1.0", "'Setting/1.0', but judged by the rules for '*'"),
        ("Header/1.0", "Header/1.1", None),
    ],
)
@ensureDeferred
async def test_the_warning_names_the_token_of_the_requests_own_user_agent(
    web: Web, own: str, sent: str, said: str | None
) -> None:
    request = Request(web.robots("").url("/"), headers={"User-Agent": own})
    result = await crawl(request, settings={"USER_AGENT": "Setting/1.0", **sends(sent)})
    assert [warning.partition("with the User-Agent ")[2] for warning in sent_warnings(result)] == [said] * bool(said)


@ensureDeferred
async def test_a_page_that_was_not_downloaded_logs_no_warning(web: Web) -> None:
    class Answers:
        def process_request(self, request: Request) -> Response:
            return Response(request.url)

    settings = {"DOWNLOADER_MIDDLEWARES": {Answers: 300}}  # before UserAgentMiddleware
    result = await crawl(web.robots("").url("/"), settings=settings)
    assert (len(result.pages), sent_warnings(result)) == (1, [])


@ensureDeferred
async def test_only_the_first_downloads_are_checked(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    class RotatesLate:
        def process_request(self, request: Request) -> None:
            if request.url.endswith("/3"):
                request.headers["User-Agent"] = BROWSER

    site = web.robots("")
    settings = {
        "USER_AGENT": "Setting/1.0",
        "CONCURRENT_REQUESTS": 1,
        "DOWNLOADER_MIDDLEWARES": {RotatesLate: 450},
    }
    for watched, warnings in ((2, 0), (4, 1)):
        monkeypatch.setattr(mistakes, "WATCHED", watched)
        result = await crawl(*(site.url(f"/{n}") for n in range(4)), settings=settings)
        assert len(sent_warnings(result)) == warnings
