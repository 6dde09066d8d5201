"""Product tokens: who is named, who is asking, and which groups are theirs (RFC 9309 section 2.2.1)."""

from __future__ import annotations

import re

import pytest
from asking import ORIGIN, allows, line_token, parse

from scrapy_rep.protocol.robotstxt.syntax import is_product_token
from scrapy_rep.user_agent import is_doubtful, product_token


@pytest.mark.parametrize(
    ("value", "token"),
    [
        pytest.param(b"ExampleBot", "examplebot", id="2.2.1-without-case"),
        pytest.param(b"Foo-Bot_x", "foo-bot_x", id="2.2.1-hyphen-and-underscore"),
        pytest.param(b"FooBot/1.0", "foobot", id="2.2.1-version"),
        pytest.param(b"FooBot*", "foobot", id="2.2.1-star-behind"),
        pytest.param(b"Foo Bar", "foo", id="2.2.1-two-words"),
        pytest.param(b"foo\tbar", "foo", id="2.2.1-two-words-tab"),
        pytest.param(b"foo, bar", "foo", id="2.2.1-a-list-names-its-first"),
        pytest.param(b"foo\0bar", "foo", id="2.2.1-nul"),
        pytest.param("foobär".encode(), "foob", id="2.2.1-no-letter-outside-ascii"),
        pytest.param(b"*", "*", id="2.2.1-everyone"),
        pytest.param(b"* foo", "*", id="2.2.1-everyone-and-a-space"),
        pytest.param(b"*\tfoo", "*", id="2.2.1-everyone-and-a-tab"),
        pytest.param(b"*foo", None, id="2.2.1-star-before"),
        pytest.param(b"**", None, id="2.2.1-two-stars"),
        pytest.param(b"*/1.0", None, id="2.2.1-star-with-version"),
        pytest.param(b"", None, id="2.2.1-empty"),
        pytest.param(b"/x", None, id="2.2.1-a-path"),
        pytest.param(b'"foo"', None, id="2.2.1-quoted"),
        pytest.param("ärger".encode(), None, id="2.2.1-begins-outside-ascii"),
        # The standard's grammar has neither; crawlers that have them could not be named otherwise.
        pytest.param(b"MJ12bot", "mj12bot", id="2.2.1-beyond-the-grammar-digits"),
        pytest.param(b"360Spider", "360spider", id="2.2.1-beyond-the-grammar-digits-first"),
        pytest.param(b"archive.org_bot", "archive.org_bot", id="2.2.1-beyond-the-grammar-dots"),
    ],
)
def test_the_token_of_a_user_agent_line(value: bytes, token: str | None) -> None:
    assert line_token(value) == token


@pytest.mark.parametrize(
    ("line", "asking", "held"),
    [
        pytest.param("ExampleBot", "ExampleBot", True, id="2.2.1-the-same"),
        pytest.param("EXAMPLEBOT", "examplebot", True, id="2.2.1-case-of-the-line"),
        pytest.param("examplebot", "ExampleBOT", True, id="2.2.1-case-of-the-crawler"),
        pytest.param("example", "examplebot", False, id="2.2.1-no-prefix"),
        pytest.param("bot", "examplebot", False, id="2.2.1-no-suffix"),
        pytest.param("ample", "examplebot", False, id="2.2.1-no-substring"),
        pytest.param("examplebot-news", "examplebot", False, id="2.2.1-longer-in-the-file"),
        pytest.param("examplebot", "examplebot-news", False, id="2.2.1-longer-in-the-crawler"),
        pytest.param("MJ12bot", "MJ", False, id="2.2.1-digits-end-no-token"),
        pytest.param("example.com", "example", False, id="2.2.1-dots-end-no-token"),
        pytest.param("/x", "x", False, id="2.2.1-a-line-that-names-nobody"),
        pytest.param("*foo", "foo", False, id="2.2.1-a-star-and-a-name"),
    ],
)
def test_tokens_are_compared_whole_without_case(line: str, asking: str, held: bool) -> None:
    assert allows(f"User-agent: {line}\nDisallow: /\n", "/", asking) is not held


def test_a_line_that_names_nobody_starts_a_group_nobody_matches() -> None:
    robots = parse("User-agent: *\nDisallow: /a\nUser-agent: /x\nDisallow: /b\n")
    assert [group.product_tokens for group in robots.groups] == [("*",), ()]
    assert robots.allows(f"{ORIGIN}/b", "x")


TWICE = """\
User-agent: ExampleBot
Disallow: /foo
Disallow: /bar

User-agent: OtherBot
Disallow: /other

User-agent: EXAMPLEBOT
Disallow: /baz
"""


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        pytest.param("/foo", False, id="2.2.1-figure-2-first-group"),
        pytest.param("/bar", False, id="2.2.1-figure-2-first-group-second-rule"),
        pytest.param("/baz", False, id="2.2.1-figure-2-second-group"),
        pytest.param("/other", True, id="2.2.1-figure-2-nobody-elses"),
    ],
)
def test_groups_of_one_token_are_combined(path: str, allowed: bool) -> None:
    assert allows(TWICE, path) is allowed


def test_the_longest_match_is_found_across_combined_groups() -> None:
    text = "User-agent: a\nAllow: /x/y\nUser-agent: b\nDisallow: /\nUser-agent: a\nDisallow: /x\n"
    assert allows(text, "/x/y", "a")
    assert not allows(text, "/x/z", "a")


def test_groups_of_everyone_are_combined() -> None:
    text = "User-agent: *\nDisallow: /a\nUser-agent: x\nDisallow: /\nUser-agent: *\nDisallow: /b\n"
    assert [allows(text, path) for path in ("/a", "/b", "/c")] == [False, False, True]


NOT_NAMED = "User-agent: *\nDisallow: /foo\nDisallow: /bar\n\nUser-agent: BazBot\nDisallow: /baz\n"


@pytest.mark.parametrize(
    ("asking", "path", "allowed"),
    [
        pytest.param("ExampleBot", "/foo", False, id="2.2.1-figure-3-everyone"),
        pytest.param("ExampleBot", "/bar", False, id="2.2.1-figure-3-everyone-second-rule"),
        pytest.param("ExampleBot", "/baz", True, id="2.2.1-figure-3-not-bazbots"),
        pytest.param("BazBot", "/foo", True, id="2.2.1-who-is-named-is-not-everyone"),
        pytest.param("BazBot", "/baz", False, id="2.2.1-who-is-named"),
        pytest.param("*", "/foo", False, id="2.2.1-asking-as-everyone"),
    ],
)
def test_everyones_group_is_for_those_without_one(asking: str, path: str, allowed: bool) -> None:
    assert allows(NOT_NAMED, path, asking) is allowed


def test_a_crawler_without_a_token_obeys_everyones_group() -> None:
    robots = parse(NOT_NAMED)
    assert [robots.allows(f"{ORIGIN}{path}", ()) for path in ("/foo", "/baz")] == [False, True]


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param("", id="2.2.1-empty"),
        pytest.param("Mozilla/5.0 (compatible; ExampleBot/0.1)", id="2.2.1-a-whole-header"),
        pytest.param("ExampleBot/1.0", id="2.2.1-with-version"),
        pytest.param("Example Bot", id="2.2.1-two-words"),
        pytest.param("ExampleBot\n", id="2.2.1-with-line-end"),
        pytest.param("**", id="2.2.1-two-stars"),
    ],
)
def test_what_is_no_product_token_is_an_error(wrong: str) -> None:
    robots = parse(NOT_NAMED)
    for tokens in (wrong, [wrong], ("ExampleBot", wrong)):
        for ask in (robots.verdict, robots.allows, lambda _url, tokens: robots.crawl_delay(tokens)):
            with pytest.raises(ValueError, match=re.escape(f"{wrong!r} is not a product token: use")):
                ask(f"{ORIGIN}/", tokens)


def test_without_a_group_for_it_or_everyone_no_rules_apply() -> None:
    assert allows("User-agent: BazBot\nDisallow: /\n", "/")


def test_a_group_without_rules_allows_whatever_everyones_says() -> None:
    assert allows("User-agent: *\nDisallow: /\nUser-agent: ExampleBot\nCrawl-delay: 3\n", "/")


CHROME = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Safari/537.36"

HEADERS = {
    # Figure 1.
    "Mozilla/5.0 (compatible; ExampleBot/0.1; https://www.example.com/bot.html)": "ExampleBot",
    # As their operators publish them.
    "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)": "Googlebot",
    "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; Googlebot/2.1; +http://www.google.com/bot.html) "
    "Chrome/126.0.0.0 Safari/537.36": "Googlebot",
    "Mozilla/5.0 (Linux; Android 6.0.1; Nexus 5X Build/MMB29P) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 "
    "Mobile Safari/537.36 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)": "Googlebot",
    "Googlebot-Image/1.0": "Googlebot-Image",
    "AdsBot-Google (+http://www.google.com/adsbot.html)": "AdsBot-Google",
    "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm) "
    "Chrome/116.0.1938.76 Safari/537.36": "bingbot",
    "Mozilla/5.0 (compatible; YandexBot/3.0; +http://yandex.com/bots)": "YandexBot",
    "Mozilla/5.0 (compatible; Baiduspider/2.0; +http://www.baidu.com/search/spider.html)": "Baiduspider",
    "DuckDuckBot/1.1; (+http://duckduckgo.com/duckduckbot.html)": "DuckDuckBot",
    "Mozilla/5.0 (compatible; AhrefsBot/7.0; +http://ahrefs.com/robot/)": "AhrefsBot",
    "Mozilla/5.0 (compatible; MJ12bot/v1.4.8; http://mj12bot.com/)": "MJ12bot",
    "Mozilla/5.0 (compatible; SemrushBot/7~bl; +http://www.semrush.com/bot.html)": "SemrushBot",
    "Mozilla/5.0 (compatible;PetalBot;+https://webmaster.petalsearch.com/site/petalbot)": "PetalBot",
    "Mozilla/5.0 (compatible; archive.org_bot +http://archive.org/details/archive.org_bot)": "archive.org_bot",
    "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)": "GPTBot",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_5) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/13.1.1 "
    "Safari/605.1.15 (Applebot/0.1; +http://www.apple.com/go/applebot)": "Applebot",
    "CCBot/2.0 (https://commoncrawl.org/faq/)": "CCBot",
    "facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)": "facebookexternalhit",
    "LinkedInBot/1.0 (compatible; Mozilla/5.0; Apache-HttpClient +http://www.linkedin.com)": "LinkedInBot",
    "ia_archiver (+http://www.alexa.com/site/help/webmasters; crawler@alexa.com)": "ia_archiver",
    "Scrapy/2.19.0 (+https://scrapy.org)": "Scrapy",
    "python-requests/2.31.0": "python-requests",
    # As projects write them.
    "MyBot": "MyBot",
    "MyBot/1.0 (+https://example.com/bot)": "MyBot",
    "my_bot (like Googlebot)": "my_bot",
    "(a comment (and one in it) first) MyBot/2": "MyBot",
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/124.0.0.0 Safari/537.36 MyBot/1.0": (
        "MyBot"
    ),
    "Mozilla/5.0 (X11; COMPATIBLE; MyBot)": "MyBot",
    "1.0 MyBot": "MyBot",
    # RFC 9110 10.1.5: the most significant product is the first. Comments describe it, with `compatible;`, too.
    "ExampleArchive/1.0 (compatible; heritrix/3.4.0 +https://e.example)": "ExampleArchive",
    "ExampleBot/1.0 (compatible; Scrapy/2.19; +https://e.example)": "ExampleBot",
    "FooBot/1.0 (+http://f.example; compatible; Googlebot)": "FooBot",
    "ExampleBot/1.0 Mozilla/5.0 (compatible; Googlebot/2.1)": "ExampleBot",
    "https://example.com/bot MyBot/1.0 (compatible; heritrix/3.4.0)": "MyBot",
    # A name after `+`.
    f"{CHROME} +MyCrawler, info@example.com": "MyCrawler",
    "Mozilla/5.0 (compatible; +MyCrawler; +https://example.com/bot)": "MyCrawler",
    # Platforms, languages and addresses before the name.
    "Mozilla/5.0 (compatible; Windows NT 10.0; FooBot/1.0)": "FooBot",
    "Mozilla/5.0 (compatible; Linux x86_64; Mail.RU_Bot/2.0; +http://go.mail.ru/help/robots)": "Mail.RU_Bot",
    "Mozilla/5.0 (compatible; +https://example.com/bot; FooBot/1.0)": "FooBot",
    "Mozilla/5.0 (compatible; bot@example.com; FooBot)": "FooBot",
    "Mozilla/5.0 X11 en-US FooBot/1.0": "FooBot",
    "Mozilla/4.0 (compatible; MSIE 7.0; Windows NT 6.0; SLCC1; compatible; FooBot)": "FooBot",
    # The shape of a language, or a word that may introduce an address; but with a version.
    "my-AI/1.0 (+https://example.com/bot)": "my-AI",
    "um-LN/1.0 (compatible; heritrix/3.4.0 +https://e.example)": "um-LN",
    "my-AI/1.0 mailto:bot@example.com": "my-AI",
    f"{CHROME} my_AI/1.0": "my_AI",
    "Mozilla/5.0 (compatible; my-AI/1.0; +https://example.com/bot)": "my-AI",
    "See/1.0 (+https://example.com/bot)": "See",
    # A name before a word that introduces an address.
    "MyBot by me@example.com": "MyBot",
    f"{CHROME} MyBot contact: me@example.com": "MyBot",
    f"{CHROME} contact: me@example.com MyBot/1.0": "MyBot",
    # Cut off within a comment.
    "Mozilla/5.0 (compatible; MyBot/1.0; +https://exam": "MyBot",
    "MyBot/1.0 (compatible; heritrix/3.4.0 (x": "MyBot",
}

BROWSERS = [
    # Chrome, Edge, Opera: Windows.
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/124.0.0.0 Safari/537.36",
    (
        "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/124.0.0.0 "
        "Safari/537.36 Edg/124.0.0.0"
    ),
    (
        "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/123.0.0.0 "
        "Safari/537.36 OPR/109.0.0.0"
    ),
    # Headless Chrome: a browser still, as it names itself.
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/124.0.0.0 Safari/537.36",
    # Firefox: Linux, Android, iOS.
    "Mozilla/5.0 (X11; Ubuntu; Linux x86_64; rv:125.0) Gecko/20100101 Firefox/125.0",
    "Mozilla/5.0 (Android 14; Mobile; rv:125.0) Gecko/125.0 Firefox/125.0",
    (
        "Mozilla/5.0 (iPhone; CPU iPhone OS 17_4_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) FxiOS/125.0 "
        "Mobile/15E148 Safari/605.1.15"
    ),
    # Safari: macOS, iOS.
    (
        "Mozilla/5.0 (Macintosh; Intel Mac OS X 14_4_1) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.4.1 "
        "Safari/605.1.15"
    ),
    (
        "Mozilla/5.0 (iPhone; CPU iPhone OS 17_4_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) "
        "Version/17.4.1 Mobile/15E148 Safari/604.1"
    ),
    # Chrome: Android, iOS; Samsung Internet; DuckDuckGo.
    "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/124.0.0.0 Mobile Safari/537.36",
    (
        "Mozilla/5.0 (iPhone; CPU iPhone OS 17_4 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) "
        "CriOS/123.0.6312.52 Mobile/15E148 Safari/604.1"
    ),
    (
        "Mozilla/5.0 (Linux; Android 13; SM-S901B) AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser/24.0 "
        "Chrome/117.0.0.0 Mobile Safari/537.36"
    ),
    (
        "Mozilla/5.0 (Linux; Android 12; Pixel 6) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/112.0 Mobile "
        "Safari/537.36 DuckDuckGo/5"
    ),
    # Internet Explorer, whose `compatible;` is no crawler's; old Opera; Konqueror.
    "Mozilla/5.0 (compatible; MSIE 10.0; Windows NT 6.2; Trident/6.0)",
    "Mozilla/5.0 (Windows NT 6.1; WOW64; Trident/7.0; AS; rv:11.0) like Gecko",
    "Opera/9.80 (Windows NT 6.0) Presto/2.12.388 Version/12.14",
    "Mozilla/5.0 (compatible; Konqueror/4.5; Linux) KHTML/4.5.4 (like Gecko)",
    "Mozilla/4.0 (compatible; MSIE 8.0; Windows NT 6.1; Trident/4.0; SLCC2; .NET CLR 2.0.50727)",
    # Cut off within a comment.
    "Mozilla/5.0 (compatible; MSIE 9.0; Windows NT 6.1",
    "Mozilla/5.0 (Linux; Android 13; SM-S901B",
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like (x",
    # Without its parentheses, and with a language.
    "Mozilla/5.0 compatible; MSIE 9.0; Windows NT 6.1; en-US",
    "Mozilla/5.0 Windows NT 10.0; Win64; x64; en-US AppleWebKit/537.36 Chrome/120.0.0.0 Safari/537.36",
]


@pytest.mark.parametrize(
    ("header", "token"), [pytest.param(h, t, id=f"2.2.1-{n:02}-{t}") for n, (h, t) in enumerate(HEADERS.items())]
)
def test_the_product_a_crawler_calls_itself(header: str, token: str) -> None:
    assert product_token(header) == token


@pytest.mark.parametrize("header", [pytest.param(h, id=f"2.2.1-browser-{n:02}") for n, h in enumerate(BROWSERS)])
def test_a_browsers_header_names_no_crawler(header: str) -> None:
    assert product_token(header) is None


@pytest.mark.parametrize(
    "header",
    [
        pytest.param("", id="2.2.1-empty"),
        pytest.param(" \t", id="2.2.1-blank"),
        pytest.param("*", id="2.2.1-everyone-is-nobodys-name"),
        pytest.param("5.0", id="2.2.1-a-version-alone"),
        pytest.param("(MyBot)", id="2.2.1-a-comment-alone"),
        pytest.param("+https://example.com/bot", id="2.2.1-an-address-alone"),
        pytest.param("https://example.com/bot", id="2.2.1-an-address-without-a-plus"),
        pytest.param("Mozilla/5.0 (compatible; https://example.com/bot)", id="2.2.1-an-address-after-compatible"),
        pytest.param("Mozilla/5.0 (compatible; +example.com/bot)", id="2.2.1-an-address-without-its-scheme"),
        pytest.param("Mozilla/5.0 (compatible; www.example.com/bot)", id="2.2.1-an-address-with-www"),
        pytest.param(f"{CHROME} bot@example.com", id="2.2.1-a-browser-and-an-email-address"),
        pytest.param(f"{CHROME} (first.last@example.com)", id="2.2.1-an-email-address-in-a-comment"),
        pytest.param(f"{CHROME} mailto:bot@example.com", id="2.2.1-mailto"),
        pytest.param(f"{CHROME} https://example.com/bot", id="2.2.1-a-browser-and-an-address"),
        pytest.param(f"{CHROME} contact: me@example.com", id="2.2.1-contact"),
        pytest.param(f"{CHROME} Contact me@example.com", id="2.2.1-contact-without-a-colon"),
        pytest.param(f"{CHROME} by me@example.com", id="2.2.1-by"),
        pytest.param(f"{CHROME} see https://example.com/bot", id="2.2.1-see"),
        pytest.param(f"{CHROME}; E-Mail: me@example.com", id="2.2.1-e-mail"),
        pytest.param(f"{CHROME} more info: www.example.com", id="2.2.1-more-info"),
        pytest.param("Mozilla/5.0 (compatible; contact: me@example.com)", id="2.2.1-after-compatible"),
        pytest.param("Mozilla/5.0 (X11; Linux x86_64) email: me@example.com", id="2.2.1-email"),
    ],
)
def test_a_header_may_name_no_crawler(header: str) -> None:
    assert product_token(header) is None


@pytest.mark.parametrize("header", [pytest.param(h, id=f"2.2.1-{t}") for h, t in list(HEADERS.items())[:4]])
def test_the_token_is_a_substring_of_the_header(header: str) -> None:
    token = product_token(header)
    assert token is not None
    assert token in header
    assert is_product_token(token)


@pytest.mark.parametrize(
    ("text", "one"),
    [
        pytest.param("ExampleBot", True, id="2.2.1-letters"),
        pytest.param("example-bot_x", True, id="2.2.1-hyphen-and-underscore"),
        pytest.param("360Spider.x", True, id="2.2.1-beyond-the-grammar-digits-and-dots"),
        pytest.param("*", True, id="2.2.1-everyone"),
        pytest.param("", False, id="2.2.1-empty"),
        pytest.param("ExampleBot/1.0", False, id="2.2.1-with-version"),
        pytest.param("Example Bot", False, id="2.2.1-two-words"),
        pytest.param("ExampleBot\n", False, id="2.2.1-with-line-end"),
        pytest.param("**", False, id="2.2.1-two-stars"),
        pytest.param("bät", False, id="2.2.1-outside-ascii"),
    ],
)
def test_what_is_one_product_token(text: str, one: bool) -> None:
    assert is_product_token(text) is one


@pytest.mark.parametrize(
    ("header", "doubtful"),
    [
        pytest.param("City Scrapers", True, id="2.2.1-two-words"),
        pytest.param("City Scrapers [production mode]. See https://example.com", True, id="2.2.1-a-sentence"),
        pytest.param("News Bot/1.0 (+https://example.com/bot)", True, id="2.2.1-two-words-and-a-version"),
        pytest.param("Mozilla/5.0 (compatible; City Scrapers; +https://example.com)", True, id="2.2.1-in-a-comment"),
        pytest.param("City! Scrapers", True, id="2.2.1-an-exclamation-mark"),
        pytest.param("City & Scrapers/1.0", True, id="2.2.1-an-ampersand"),
        pytest.param("City &Scrapers", True, id="2.2.1-an-ampersand-before-a-word"),
        pytest.param("City++Bot", True, id="2.2.1-plus-signs"),
        pytest.param("City&News-Bot/1.0", True, id="2.2.1-an-ampersand-in-a-word"),
        pytest.param("City's-Bot", True, id="2.2.1-an-apostrophe"),
        pytest.param("Cityü-Bot/1.0 (+https://example.com/bot)", True, id="2.2.1-a-letter-outside-ascii"),
        pytest.param("Mozilla/5.0 (compatible; City! Slurp; +https://example.com)", True, id="2.2.1-cut-in-a-comment"),
        pytest.param("CityBot: a crawler", False, id="2.2.1-a-colon"),
        pytest.param("CityBot; Scrapy", False, id="2.2.1-a-semicolon"),
        pytest.param("CityBot[production]", False, id="2.2.1-a-bracket"),
        pytest.param("CityBot|1.0", False, id="2.2.1-a-bar"),
        pytest.param("City/1.0 (CityBot; bigCity!)", False, id="2.2.1-a-longer-word"),
        pytest.param("CityBot", False, id="2.2.1-one-word"),
        pytest.param("CityBot/1.0 Scrapy/2.19", False, id="2.2.1-a-version-ends-the-name"),
        pytest.param("CityBot 1.0", False, id="2.2.1-a-version-after-a-space"),
        pytest.param("CityBot v1.0", False, id="2.2.1-a-version-with-a-v"),
        pytest.param("CityBot (my crawler)", False, id="2.2.1-a-comment"),
        pytest.param("CityBot, my crawler", False, id="2.2.1-a-comma"),
        pytest.param("CityBot https://example.com/bot", False, id="2.2.1-an-address"),
        pytest.param("CityBot +https://example.com/bot", False, id="2.2.1-an-address-with-a-plus"),
        pytest.param("CityBot bot@example.com", False, id="2.2.1-an-email-address"),
        pytest.param(f"{CHROME} CityBot", False, id="2.2.1-the-last-product"),
    ],
)
def test_a_name_of_several_words_gives_a_doubtful_token(header: str, doubtful: bool) -> None:
    token = product_token(header)
    assert token is not None
    assert token in {"City", "CityBot", "News"}
    assert is_doubtful(token, header) is doubtful
