"""Where an origin's robots.txt is, and what each answer means (RFC 9309 section 2.3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from scrapy.http import Headers

from scrapy_rep.fetching.headers import lines_of
from scrapy_rep.protocol.answer import AccessResult, Answer
from scrapy_rep.protocol.challenge import BY_HEADER, BY_PAGE, MAX_PAGE, VENDORS, vendor_of_challenge
from scrapy_rep.protocol.foreign_text import MAX_TEXT
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.redirect_target import is_private, why_not_followed, with_authority
from scrapy_rep.protocol.robotstxt.patterns import is_robots_txt
from scrapy_rep.protocol.status_policy import (
    CAUTIOUS,
    CHALLENGE,
    MARKUP,
    OFFLINE,
    OVERRIDES,
    POLICIES,
    RFC9309,
    SIGNS,
    StatusRow,
    result_of,
    with_access,
)
from scrapy_rep.settings import LEAST_REDIRECTS

SUCCESS, REDIRECT, UNAVAILABLE = AccessResult.SUCCESS, AccessResult.REDIRECT, AccessResult.UNAVAILABLE
RESTRICTED, UNREACHABLE = AccessResult.RESTRICTED, AccessResult.UNREACHABLE


@pytest.mark.parametrize(
    ("url", "robots_url"),
    [
        pytest.param("https://www.example.com/a/b?c#d", "https://www.example.com/robots.txt", id="2.3-https"),
        pytest.param("ftp://ftp.example.com/pub/", "ftp://ftp.example.com/robots.txt", id="2.3-ftp"),
        pytest.param("http://www.example.com", "http://www.example.com/robots.txt", id="2.3-http-no-path"),
        pytest.param("http://www.example.com:8080/a", "http://www.example.com:8080/robots.txt", id="2.3-port"),
        pytest.param("https://www.example.com?q", "https://www.example.com/robots.txt", id="2.3-query-no-path"),
        pytest.param("https://user:secret@www.example.com/", "https://www.example.com/robots.txt", id="2.3-userinfo"),
        pytest.param("http://[::1]:8080/a", "http://[::1]:8080/robots.txt", id="2.3-literal-ipv6"),
        pytest.param("https://bücher.example/", "https://xn--bcher-kva.example/robots.txt", id="2.3-idna"),
        pytest.param("ws://www.example.com/chat", "http://www.example.com/robots.txt", id="RFC6455-3-ws"),
        pytest.param("WSS://www.example.com:8443", "https://www.example.com:8443/robots.txt", id="RFC6455-3-wss"),
    ],
)
def test_where_robots_txt_is(url: str, robots_url: str) -> None:
    origin = Origin.of(url)
    assert origin is not None
    assert origin.robots_url == robots_url
    assert f"{origin}/robots.txt" == robots_url


SAME = [
    pytest.param("https://example.com/", "https://example.com/a/b?c", id="RFC6454-4-path"),
    pytest.param("https://example.com/", "HTTPS://EXAMPLE.com/", id="RFC6454-4-case"),
    pytest.param("https://example.com/", "https://example.com:443/", id="RFC6454-4-default-port-https"),
    pytest.param("http://example.com/", "http://example.com:80/", id="RFC6454-4-default-port-http"),
    pytest.param("ftp://example.com/", "ftp://example.com:21/", id="RFC6454-4-default-port-ftp"),
    pytest.param("https://example.com/", "https://example.com:/", id="RFC6454-4-empty-port"),
    pytest.param("https://example.com:8443/", "https://example.com:08443/", id="RFC6454-4-port-with-zero"),
    pytest.param("https://example.com/", "https://example.com./", id="RFC6454-4-trailing-dot"),
    pytest.param("https://example.com/", "https://example.com\u3002/", id="RFC3490-3.1-trailing-ideographic-full-stop"),
    pytest.param("https://example.com/", "https://EXAMPLE.COM.:443/", id="RFC6454-4-dot-case-and-port"),
    pytest.param("https://example.com/", "https://user@example.com/", id="RFC6454-4-user"),
    pytest.param("https://example.com/", "https://user:p%40ss@example.com/", id="RFC6454-4-user-and-password"),
    pytest.param("https://example.com/", "https://us@er:p:w@example.com/", id="RFC6454-4-userinfo-with-delimiters"),
    pytest.param("https://bücher.example/", "https://xn--bcher-kva.example/", id="RFC6454-4-idna"),
    pytest.param("https://bücher.example/", "https://BÜCHER.example/", id="RFC6454-4-idna-case"),
    pytest.param("https://bücher.example/", "https://XN--BCHER-KVA.example/", id="RFC6454-4-idna-encoded-case"),
    pytest.param("https://bücher.example/", "https://bu\u0308cher.example./", id="RFC6454-4-idna-decomposed"),
    pytest.param("https://a.example/", "https://a\u3002example/", id="RFC3490-3.1-ideographic-full-stop"),
    pytest.param("https://[::1]/", "https://[0:0:0:0:0:0:0:1]/", id="RFC5952-literal-ipv6"),
    pytest.param("https://[fe80::a]/", "https://[FE80::A]:443/", id="RFC5952-literal-ipv6-case"),
    pytest.param("https://127.0.0.1/", "https://127.0.0.1./", id="RFC6454-4-literal-ipv4-trailing-dot"),
    pytest.param("http://example.com/", "ws://example.com/", id="RFC6455-3-ws"),
    pytest.param("https://example.com/", "wss://example.com/", id="RFC6455-3-wss"),
    pytest.param("http://example.com/", "ws://example.com:80/", id="RFC6455-3-default-port-ws"),
    pytest.param("https://example.com/", "wss://example.com:443/", id="RFC6455-3-default-port-wss"),
    pytest.param("https://127.0.0.1/", "https://127.1/", id="RFC6943-3.1.1-ipv4-two-parts"),
    pytest.param("https://127.0.0.1/", "https://2130706433/", id="RFC6943-3.1.1-ipv4-one-number"),
    pytest.param("https://127.0.0.1/", "https://0x7F.0.0.0x1/", id="RFC6943-3.1.1-ipv4-hexadecimal"),
    pytest.param("https://127.0.0.1/", "https://0177.0.0.1./", id="RFC6943-3.1.1-ipv4-octal"),
]
DIFFERENT = [
    pytest.param("https://example.com/", "http://example.com/", id="RFC6454-4-scheme"),
    pytest.param("https://example.com/", "https://www.example.com/", id="RFC6454-4-host"),
    pytest.param("https://example.com/", "ws://example.com/", id="RFC6455-3-ws-is-not-https"),
    pytest.param("https://example.com/", "ws://example.com:443/", id="RFC6455-3-ws-at-the-port-of-https"),
    pytest.param("https://example.com/", "https://example.org/", id="RFC6454-4-top-level-domain"),
    pytest.param("https://example.com/", "https://example.com:8443/", id="RFC6454-4-port"),
    pytest.param("https://example.com/", "https://example.com:80/", id="RFC6454-4-another-schemes-default-port"),
    pytest.param("https://example.com/", "https://example.com:0/", id="RFC6454-4-port-zero"),
    pytest.param("http://localhost/", "http://127.0.0.1/", id="RFC6454-4-name-and-address"),
    pytest.param("http://127.0.0.1/", "http://127.0.0.1 x/", id="RFC6943-3.1.1-ipv4-and-more"),
    pytest.param("http://[::1]/", "http://[::2]/", id="RFC6454-4-literal-ipv6"),
    pytest.param("https://example.com@other.example/", "https://example.com/", id="RFC6454-4-user-is-no-host"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_the_same_origin(one: str, other: str) -> None:
    assert Origin.of(one) is not None
    assert Origin.of(one) == Origin.of(other)
    assert hash(Origin.of(one)) == hash(Origin.of(other))


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_different_origins(one: str, other: str) -> None:
    assert None not in {Origin.of(one), Origin.of(other)}
    assert Origin.of(one) != Origin.of(other)


@pytest.mark.parametrize(
    "url",
    [
        pytest.param("data:text/html,Hello", id="2.3-data"),
        pytest.param("data://host/x", id="2.3-data-with-authority"),
        pytest.param("file:///etc/hosts", id="2.3-file"),
        pytest.param("file://host/a", id="2.3-file-with-authority"),
        pytest.param("s3://bucket/key", id="2.3-s3"),
        pytest.param("S3://bucket/key", id="2.3-s3-in-capitals"),
        pytest.param("mailto:a@example.com", id="2.3-no-authority"),
        pytest.param("about:blank", id="2.3-about"),
        pytest.param("/a/b", id="2.3-a-path-alone"),
        pytest.param("", id="2.3-nothing"),
        pytest.param("//h/a", id="2.3-no-scheme"),
        pytest.param("https:///a", id="2.3-empty-authority"),
        pytest.param("https://:443/", id="2.3-empty-host"),
        pytest.param("https://user@/", id="2.3-user-alone"),
        pytest.param("https://./", id="2.3-a-dot-alone"),
        pytest.param("https://[::1/", id="2.3-malformed-bracket"),
        pytest.param("https://example.com:x/", id="2.3-malformed-port"),
        pytest.param("https://example.com:65536/", id="2.3-port-out-of-range"),
        pytest.param("https://example.com:-1/", id="2.3-negative-port"),
        pytest.param("https://ex\u2100mple.com/", id="2.3-a-host-that-normalises-to-a-delimiter"),
    ],
)
def test_where_no_robots_txt_could_hold(url: str) -> None:
    assert Origin.of(url) is None


@pytest.mark.parametrize(
    "url",
    [
        pytest.param("https://a..b/", id="2.3-empty-label"),
        pytest.param(f"https://{'a' * 64}.example/", id="2.3-label-too-long"),
        pytest.param("https://under_score.example/", id="2.3-underscore"),
        pytest.param("https://127.0.0.256/", id="2.3-no-ipv4-address"),
        pytest.param("https://1.2.3.4.5/", id="2.3-five-numbers"),
        pytest.param("https://1.example/", id="2.3-begins-as-an-address"),
    ],
)
def test_a_host_that_is_no_proper_name_stays_as_it_is(url: str) -> None:
    assert str(Origin.of(url.upper())) == url.rstrip("/")


@pytest.mark.parametrize(
    ("url", "itself"),
    [
        pytest.param("https://www.example.com/robots.txt", True, id="2.2.2-robots-txt"),
        pytest.param("https://www.example.com:8443/robots.txt#a", True, id="2.2.2-fragment"),
        pytest.param("https://www.example.com/%72obots.txt", True, id="2.2.2-escaped"),
        pytest.param("https://www.example.com/robots.txt?a", False, id="2.2.2-query"),
        pytest.param("https://www.example.com/Robots.txt", False, id="2.3-all-lower-case"),
        pytest.param("https://www.example.com/a/robots.txt", False, id="2.3-top-level-path"),
        pytest.param("https://www.example.com/?/robots.txt", False, id="2.3-path-not-query"),
        pytest.param("https://www.example.com/", False, id="2.3-another-page"),
    ],
)
def test_what_is_a_robots_txt_itself(url: str, itself: bool) -> None:
    assert is_robots_txt(url) is itself


def rfc9309(status: int) -> AccessResult:
    """What the standard says, a sentence a line; where it says nothing, robots.txt is undefined."""
    if status == 407:  # RFC 9110 15.5.8: the proxy's answer, so the server's is not known
        return UNREACHABLE
    if status in {202, 206, 429}:  # RFC 9110 15.3.3: not answered yet; 15.3.7: a part; RFC 6585 4: later
        return UNREACHABLE
    if status in {301, 302, 303, 307, 308}:
        return REDIRECT
    # 2.3.1.1, 2.3.1.3, and 2.3.1.4, also for what is no status of HTTP
    return {2: SUCCESS, 4: UNAVAILABLE}.get(status // 100, UNREACHABLE)


def cautious(status: int) -> AccessResult:
    # The 1996 draft 3.1; RFC 9110 15.5.3 and RFC 7725: access is restricted, takes a payment, or is denied by law
    return RESTRICTED if status in {401, 402, 403, 451} else rfc9309(status)


def test_every_status_has_one_access_result() -> None:
    statuses = range(100, 1000)
    assert [result_of(status, POLICIES["rfc9309"])[0] for status in statuses] == [*map(rfc9309, statuses)]
    assert [result_of(status, POLICIES["cautious"])[0] for status in statuses] == [*map(cautious, statuses)]


def test_a_number_that_is_no_status_is_unreachable() -> None:
    assert {result_of(status, RFC9309)[0] for status in (-1, 0, 99, 1000)} == {UNREACHABLE}


def test_the_first_row_that_holds_a_status_decides() -> None:
    rows = (((404,), UNREACHABLE, "here"), (range(400, 500), UNAVAILABLE, "there"))
    assert [result_of(status, rows)[0] for status in (403, 404)] == [UNAVAILABLE, UNREACHABLE]


def test_every_row_has_its_source() -> None:
    assert all(source.strip() for rows in POLICIES.values() for _statuses, _result, source in rows)


URL = "https://example.com/robots.txt"


def said(answer: Answer) -> tuple[AccessResult, str, str]:
    """What the answer means, in words, and what decided instead of the status."""
    return answer.access, answer.reason, answer.sign


def test_no_override_makes_a_success_or_a_redirect() -> None:
    assert OVERRIDES == {"unavailable": UNAVAILABLE, "restricted": RESTRICTED, "unreachable": UNREACHABLE}


@pytest.mark.parametrize(
    ("answer", "access", "words"),
    [
        pytest.param(Answer(URL, 200, body=b"x"), SUCCESS, "HTTP 200", id="2.3.1.1-success"),
        pytest.param(Answer(URL, 404, body=b"x"), UNAVAILABLE, "HTTP 404", id="2.3.1.3-unavailable"),
        pytest.param(Answer(URL, 503), UNREACHABLE, "HTTP 503", id="2.3.1.4-server-error"),
        pytest.param(Answer(URL, None, reason="timed out"), UNREACHABLE, "timed out", id="2.3.1.4-no-answer"),
        pytest.param(Answer(URL, None, reason="x", dropped=True), UNREACHABLE, "x", id="2.3.1.4-dropped"),
        pytest.param(Answer(URL, 301, location="http://h/r"), REDIRECT, "HTTP 301", id="2.3.1.2-redirect"),
        pytest.param(Answer(URL, 301), REDIRECT, "HTTP 301", id="2.3.1.2-without-a-location-still-a-redirect"),
        pytest.param(
            Answer(URL, 404, location="http://h/r"), UNAVAILABLE, "HTTP 404", id="2.3.1.2-a-location-that-is-none"
        ),
        pytest.param(Answer(URL, 200, location="ftp://h/"), SUCCESS, "HTTP 200", id="2.3.1.1-a-location-that-is-none"),
    ],
)
def test_what_an_answer_means(answer: Answer, access: AccessResult, words: str) -> None:
    assert said(with_access(answer, RFC9309)) == (access, words, "")


def test_an_answer_is_judged_by_the_policy() -> None:
    assert said(with_access(Answer(URL, 403), CAUTIOUS)) == (RESTRICTED, "HTTP 403", "")


# What means something else than its status.


@pytest.mark.parametrize("rows", [RFC9309, CAUTIOUS], ids=["rfc9309", "cautious"])
def test_a_challenge_is_unreachable_whatever_its_status(rows: tuple[StatusRow, ...]) -> None:
    for status in (200, 202, 302, 403, 404, 405, 429, 503, 999):
        location = "http://h/r" if status == 302 else None
        answer = Answer(URL, status, body=b"user-agent: *\n", sign="Cloudflare", location=location)
        words = f"HTTP {status}, a challenge by Cloudflare"
        assert said(with_access(answer, rows)) == (UNREACHABLE, words, "Cloudflare")


def test_the_words_about_a_proxy_and_about_a_cache_that_is_offline() -> None:
    silent, denied = Answer(URL, reason="x" * 10_000, proxy="http://proxy"), Answer(URL, 407, proxy="http://proxy")
    reason = with_access(silent, RFC9309).reason
    assert len(reason) == MAX_TEXT
    assert reason.endswith("x…, through the proxy http://proxy")
    assert with_access(denied, RFC9309).reason == "HTTP 407, through the proxy http://proxy"
    assert with_access(replace(denied, proxy=""), RFC9309).reason == "HTTP 407", "the proxy is not known"
    words = "offline, and not in the HTTP cache"
    assert said(with_access(Answer(URL, 504, sign=OFFLINE), RFC9309)) == (UNAVAILABLE, words, OFFLINE)


PAGE = b"<!DOCTYPE html>\n<html><title>Welcome: here</title>\n<p>Disallow: /x</p></html>"


@pytest.mark.parametrize(
    ("body", "access"),
    [
        pytest.param(PAGE, UNAVAILABLE, id="a-page"),
        pytest.param(b"\xef\xbb\xbf\r\n\t " + PAGE, UNAVAILABLE, id="after-a-mark-and-white-space"),
        pytest.param(f"\ufeff{PAGE.decode()}".encode("utf-16-le"), UNAVAILABLE, id="in-utf-16"),
        pytest.param(b'<?xml version="1.0"?><a/>', UNAVAILABLE, id="xml"),
        pytest.param(PAGE + b" " * 600_000, UNAVAILABLE, id="beyond-the-limit"),
        pytest.param(b"<p>\nUser-agent: *\nDisallow: /x\n</p>", SUCCESS, id="with-a-rule-in-a-group"),
        pytest.param(b"<p>\nUser-agent: *\n</p>", UNAVAILABLE, id="with-a-user-agent-line"),
        pytest.param(b"<p>\nSitemap: https://h/s.xml\n</p>", UNAVAILABLE, id="with-a-sitemap"),
        pytest.param(b"# <html>\n", SUCCESS, id="no-page"),
        pytest.param(b"", SUCCESS, id="an-empty-file"),
        pytest.param(b"Welcome", SUCCESS, id="text-without-records"),
    ],
)
def test_a_page_of_markup_without_a_rule_in_a_group_is_no_robots_txt(body: bytes, access: AccessResult) -> None:
    words, sign = ("HTTP 200", "") if access is SUCCESS else ("HTTP 200, a page of HTML", MARKUP)
    assert said(with_access(Answer(URL, 200, body=body), RFC9309)) == (access, words, sign)


def test_the_page_that_a_browser_made_of_a_robots_txt_is_a_robots_txt() -> None:
    page = b"<html><head></head><body><pre>User-agent: *\nDisallow:\n</pre></body></html>"
    words = "HTTP 200, a page that a browser made of the text"
    assert said(with_access(Answer(URL, 200, body=page), RFC9309)) == (SUCCESS, words, "")
    assert said(with_access(Answer(URL, 200, body=page.replace(b"User-agent", b"Error")), RFC9309))[2] == MARKUP


@pytest.mark.parametrize("status", [202, 301, 404, 503])
def test_a_page_of_markup_counts_where_it_would_be_read(status: int) -> None:
    assert said(with_access(Answer(URL, status, body=PAGE), RFC9309)) == (
        result_of(status, RFC9309)[0],
        f"HTTP {status}",
        "",
    )


def test_a_policy_of_ones_own_has_rows_for_them() -> None:
    rows: tuple[StatusRow, ...]
    rows = (((MARKUP,), UNREACHABLE, "here"), ((CHALLENGE,), RESTRICTED, "there"), ((200,), UNAVAILABLE, ""), *RFC9309)
    assert result_of(200, rows, MARKUP)[0] is UNREACHABLE
    assert with_access(Answer(URL, 403, sign="Vercel"), rows).access is RESTRICTED
    assert [result_of(200, rows, sign)[1] for sign in (MARKUP, "Vercel", "")] == ["here", "there", ""]
    assert result_of(999, rows)[1] == ""


def lines(*fields: tuple[str, str]) -> Callable[[bytes], Sequence[bytes]]:
    headers = Headers()
    for name, value in fields:
        headers.appendlist(name, value)
    return lines_of(headers)


ANUBIS = b'<!doctype html><html><head><script id="anubis_challenge" type="application/json">{}</script></head></html>'


@pytest.mark.parametrize(
    ("fields", "body", "vendor"),
    [
        pytest.param([("CF-Mitigated", "challenge")], b"", "Cloudflare", id="cloudflare"),
        pytest.param([("x-amzn-waf-action", "challenge")], b"", "AWS WAF", id="aws-waf"),
        pytest.param([("x-amzn-waf-action", "captcha")], b"", "AWS WAF", id="aws-waf-captcha"),
        pytest.param([("X-Vercel-Mitigated", "challenge")], b"", "Vercel", id="vercel"),
        pytest.param([], ANUBIS, "Anubis", id="anubis"),
        pytest.param([], b"\xef\xbb\xbf\n " + ANUBIS, "Anubis", id="anubis-after-a-mark"),
        pytest.param([("cf-mitigated", " Challenge ")], b"", "Cloudflare", id="in-capitals-and-with-white-space"),
        pytest.param([("cf-mitigated", "x"), ("cf-mitigated", "challenge")], b"", "Cloudflare", id="two-lines"),
        pytest.param([("cf-mitigated", "challenge, challenge")], b"", "Cloudflare", id="lines-that-a-proxy-joined"),
        pytest.param([("cf-mitigated", "challenged")], b"", "", id="a-longer-word"),
        pytest.param([("cf-mitigated", "")], b"", "", id="an-empty-field"),
        pytest.param([("x-amzn-waf-action", "count")], b"", "", id="another-action-of-aws-waf"),
        pytest.param([("x-vercel-mitigated", "deny")], b"", "", id="what-vercel-denies"),
        pytest.param([("cf-ray", "1"), ("server", "cloudflare")], b"<html>", "", id="cloudflare-without-a-challenge"),
        pytest.param([], b"# " + ANUBIS, "", id="no-markup"),
        pytest.param([], b"<!--" + b"x" * MAX_PAGE + b"-->" + ANUBIS, "", id="far-into-the-page"),
    ],
)
def test_what_shows_a_challenge(fields: list[tuple[str, str]], body: bytes, vendor: str) -> None:
    assert vendor_of_challenge(lines(*fields), body) == vendor


IMPERVA = b'<html style="height:100%"><iframe id="main-iframe" src="/_Incapsula_Resource?SWUDNSAI=31"></iframe></html>'
DATADOME = b'<html><script src="https://ct.captcha-delivery.com/c.js"></script></html>'
SIGN = ("Accept-Signature", 'sig1=("@authority" "signature-agent";key="sig1");created;tag="web-bot-auth"')


@pytest.mark.parametrize(
    ("fields", "body", "vendor", "statuses"),
    [
        pytest.param([], IMPERVA, "Imperva", {200, 401, 403}, id="imperva"),
        pytest.param([], DATADOME, "DataDome", {200, 401, 403}, id="datadome"),
        pytest.param([SIGN], b"", "Web Bot Auth", {401, 403}, id="a-request-for-a-signature"),
        pytest.param([SIGN, SIGN], b"", "Web Bot Auth", {401, 403}, id="two-lines"),
        pytest.param([("Accept-Signature", " ")], b"", "", {200, 401, 403, 404}, id="an-empty-request"),
        pytest.param([], b"# " + IMPERVA + DATADOME, "", {200, 401, 403, 404}, id="no-markup"),
        pytest.param([], ANUBIS, "Anubis", {200, 401, 403, 404}, id="any-status"),
    ],
)
def test_the_statuses_with_which_a_sign_shows_a_challenge(
    fields: list[tuple[str, str]], body: bytes, vendor: str, statuses: set[int]
) -> None:
    found = {status: vendor_of_challenge(lines(*fields), body, status) for status in (200, 401, 403, 404)}
    assert found == {status: vendor if status in statuses else "" for status in found}


def test_every_row_of_challenges_has_its_source() -> None:
    assert len(set(VENDORS)) == len(VENDORS)
    assert all(row[-1] for row in (*BY_HEADER, *BY_PAGE))
    assert all(field == field.title() for _, field, *_ in BY_HEADER), "Scrapy's `Headers` writes names so"
    assert {"", MARKUP, OFFLINE, *VENDORS} == SIGNS


def test_five_consecutive_redirects_are_followed() -> None:
    assert LEAST_REDIRECTS == 5  # 2.3.1.2: "at least five"


@pytest.mark.parametrize(
    ("url", "read_as"),
    [
        pytest.param("http:/r.txt", "/r.txt", id="one-slash-and-the-scheme-of-the-base"),
        pytest.param("http:/b.example/r.txt", "/b.example/r.txt", id="one-slash-before-a-path"),
        pytest.param("http:///r.txt", "/r.txt", id="no-host-is-named-as-a-file"),
        pytest.param("http:///b.example/r.txt", "http://b.example/r.txt", id="three-slashes"),
        pytest.param("http:////b.example/r.txt", "http://b.example/r.txt", id="four-slashes"),
        pytest.param("http:r.txt", "http:r.txt", id="RFC3986-5.2.2-a-relative-path"),
        pytest.param("http:?q", "http:?q", id="RFC3986-5.2.2-a-relative-query"),
        pytest.param("http:/?q", "?q", id="a-query-after-a-slash"),
        pytest.param("https:/b.example/r.txt", "https://b.example/r.txt", id="one-slash-and-another-scheme"),
        pytest.param("https:///b.example", "https://b.example", id="a-host-alone-and-another-scheme"),
        pytest.param("https:b.example/r.txt", None, id="no-slash-and-another-scheme"),
        pytest.param("ftp:/b.example/r.txt", None, id="neither-http-nor-https"),
        pytest.param("http:", None, id="a-scheme-alone"),
        pytest.param("http://", None, id="slashes-alone"),
    ],
)
def test_how_a_location_without_an_authority_is_read(url: str, read_as: str | None) -> None:
    is_one_slash = url.count("/", 0, url.find(":") + 3) == 1
    assert with_authority("http://a.example/robots.txt", url, is_one_slash=is_one_slash) == read_as


NO_LOCATION = "without a Location that can be followed"
USER_INFORMATION = "to an address with user information in it"
NOT_CLEAR = "to a malformed or ambiguous host"


@pytest.mark.parametrize(
    ("location", "wrong"),
    [
        pytest.param("http://www.example.com/robots.txt", None, id="2.3.1.2-http"),
        pytest.param("https://www.example.com/elsewhere", None, id="2.3.1.2-https"),
        pytest.param("HTTPS://CDN.EXAMPLE:8443", None, id="2.3.1.2-another-authority"),
        pytest.param("https://8.8.8.8/robots.txt", None, id="2.3.1.2-a-public-address"),
        pytest.param("https://www.example.com/@/robots.txt", None, id="2.3.1.2-an-at-in-the-path"),
        pytest.param("", NO_LOCATION, id="2.3.1.2-missing"),
        pytest.param("", NO_LOCATION, id="2.3.1.2-empty"),
        pytest.param("/robots.txt", NO_LOCATION, id="2.3.1.2-not-absolute"),
        pytest.param("https:///robots.txt", NO_LOCATION, id="2.3.1.2-no-authority"),
        pytest.param("https://[::1", NO_LOCATION, id="2.3.1.2-malformed"),
        pytest.param("https://h:port/", NO_LOCATION, id="2.3.1.2-malformed-port"),
        pytest.param("https://h:80:80/", NO_LOCATION, id="2.3.1.2-two-ports"),
        pytest.param("https://[8.8.8.8]/", NO_LOCATION, id="2.3.1.2-ipv4-in-brackets"),
        pytest.param("file:///etc/passwd", NO_LOCATION, id="2.3.1.2-file"),
        pytest.param("data:text/plain,Allow:%20/", NO_LOCATION, id="2.3.1.2-data"),
        pytest.param("javascript:void(0)", NO_LOCATION, id="2.3.1.2-javascript"),
        pytest.param("ftp://h/robots.txt", "to ftp:, which is neither http nor https", id="2.3.1.2-ftp"),
        pytest.param("wss://h/robots.txt", "to wss:, which is neither http nor https", id="2.3.1.2-wss"),
        pytest.param("GOPHER://h/", "to gopher:, which is neither http nor https", id="2.3.1.2-gopher"),
        pytest.param("https://user:secret@www.example.com/", USER_INFORMATION, id="RFC9110-4.2.4-user-and-password"),
        pytest.param("https://@www.example.com/", USER_INFORMATION, id="RFC9110-4.2.4-an-empty-user"),
        pytest.param("https://a_b.example.com./robots.txt", None, id="URL-Standard-3.5-underscore-and-final-dot"),
        pytest.param("https://[2606:4700::1111]:8443/", None, id="URL-Standard-3.5-ipv6"),
        pytest.param("https://example.com\\@a/", USER_INFORMATION, id="URL-Standard-3.5-backslash-and-user"),
        pytest.param("https://example.com\\a/", NOT_CLEAR, id="URL-Standard-3.5-backslash"),
        pytest.param("https://example.com\x01/", NOT_CLEAR, id="URL-Standard-3.5-control-character"),
        pytest.param("https://exa mple.com/", NOT_CLEAR, id="URL-Standard-3.5-space"),
        pytest.param("https://example%2Ecom/", NOT_CLEAR, id="URL-Standard-3.5-percent"),
        pytest.param("https://ex\u00e4mple.com/", NOT_CLEAR, id="URL-Standard-3.5-not-ascii"),
        pytest.param("https://010.8.8.8/", NOT_CLEAR, id="URL-Standard-3.5-octal"),
        pytest.param("https://8.8.2056/", NOT_CLEAR, id="URL-Standard-3.5-three-parts"),
        pytest.param("https://0x08080808/", NOT_CLEAR, id="URL-Standard-3.5-hexadecimal"),
        pytest.param("https://1.2.3.4.5/", NOT_CLEAR, id="URL-Standard-3.5-five-parts"),
        pytest.param("https://a.0x7f/", NOT_CLEAR, id="URL-Standard-3.5-ends-in-a-number"),
        pytest.param("https://a..example.com/", NOT_CLEAR, id="URL-Standard-3.5-empty-label"),
        pytest.param("https://.example.com/", NOT_CLEAR, id="URL-Standard-3.5-empty-first-label"),
        pytest.param("https://example.com,b/", NOT_CLEAR, id="URL-Standard-3.5-comma"),
        pytest.param(f"https://{'a' * 63}.com/", None, id="RFC1035-2.3.4-longest-label"),
        pytest.param(f"https://{'a' * 64}.com/", NOT_CLEAR, id="RFC1035-2.3.4-label-too-long"),
        pytest.param(f"https://{'a.' * 126}a/", None, id="RFC1035-2.3.4-longest-name"),
        pytest.param(f"https://{'a.' * 127}a/", NOT_CLEAR, id="RFC1035-2.3.4-name-too-long"),
        pytest.param(
            "http://127.0.0.1/robots.txt",
            "from a public host to 127.0.0.1, which is private (REP_REDIRECT_PRIVATE)",
            id="2.3.1.2-from-public-to-private",
        ),
        pytest.param(
            "http://\x1b.local/robots.txt",
            r"from a public host to \x1b.local, which is private (REP_REDIRECT_PRIVATE)",
            id="2.3.1.2-a-host-with-a-control-character",
        ),
    ],
)
def test_where_a_redirect_may_lead(location: str, wrong: str | None) -> None:
    assert why_not_followed("https://www.example.com/robots.txt", location, private=False) == wrong


@pytest.mark.parametrize(
    ("url", "location", "private", "followed"),
    [
        pytest.param("https://www.example.com/", "http://10.0.0.1/", False, False, id="public-to-private"),
        pytest.param("https://8.8.8.8/", "http://2130706433/", False, False, id="public-to-private-disguised"),
        pytest.param("https://www.example.com/", "http://10.0.0.1/", True, True, id="public-to-private-permitted"),
        pytest.param("http://10.0.0.1/", "http://127.0.0.1/", False, True, id="private-to-private"),
        pytest.param("http://localhost:8000/", "http://[::1]/", False, True, id="localhost-to-private"),
        pytest.param("http://127.0.0.1/", "https://www.example.com/", False, True, id="private-to-public"),
        pytest.param("http://127.0.0.1/", "ftp://127.0.0.1/", True, False, id="another-scheme-all-the-same"),
    ],
)
def test_a_redirect_into_a_private_network(url: str, location: str, private: bool, followed: bool) -> None:
    assert (why_not_followed(url, location, private=private) is None) is followed


PRIVATE_AS_WRITTEN = """
    127.0.0.1:8080 127.1 2130706433 0x7f000001 0x7f.0.0.1 0177.0.0.1 017700000001 127.0.0.1. 0
    LOCALHOST localhost. www.localhost metadata.google.internal printer.local router.home.arpa internal
    2852039166 0xa9fea9fe 100.100.100.200 192.0.0.192
    [::] [::ffff:127.0.0.1] [::ffff:7f00:1] [0:0:0:0:0:ffff:a9fe:a9fe] [fd00:ec2::254] [fec0::1] [64:ff9b::7f00:1]
    [2002:7f00:1::] [::7f00:1]
""".split()


@pytest.mark.parametrize("host", PRIVATE_AS_WRITTEN)
def test_how_a_location_may_write_a_private_host(host: str) -> None:
    wrong = why_not_followed("https://www.example.com/", f"http://{host}/robots.txt", private=False)
    assert wrong is not None
    assert "REP_REDIRECT_PRIVATE" in wrong


@pytest.mark.parametrize(
    ("host", "private"),
    [
        pytest.param("localhost", True, id="RFC6761-6.3-localhost"),
        pytest.param("a.localhost", True, id="RFC6761-6.3-below-localhost"),
        pytest.param("127.8.9.1", True, id="RFC1122-3.2.1.3-loopback"),
        pytest.param("10.1.2.3", True, id="RFC1918-3-ten"),
        pytest.param("172.16.0.1", True, id="RFC1918-3-172-16"),
        pytest.param("192.168.1.1", True, id="RFC1918-3-192-168"),
        pytest.param("169.254.169.254", True, id="RFC3927-link-local"),
        pytest.param("0.0.0.0", True, id="RFC1122-3.2.1.3-this-host"),
        pytest.param("::1", True, id="RFC4291-2.5.3-loopback"),
        pytest.param("fe80::1", True, id="RFC4291-2.5.6-link-local"),
        pytest.param("fd00::1", True, id="RFC4193-unique-local"),
        pytest.param("::ffff:10.0.0.1", True, id="RFC4291-2.5.5.2-mapped-private"),
        pytest.param("::ffff:8.8.8.8", False, id="RFC4291-2.5.5.2-mapped-public"),
        pytest.param("::ffff:0:10.0.0.1", True, id="RFC2765-2.1-translated-private"),
        pytest.param("::ffff:0:8.8.8.8", False, id="RFC2765-2.1-translated-public"),
        pytest.param("64:ff9b::10.0.0.1", True, id="RFC6052-2.1-well-known-prefix-private"),
        pytest.param("64:ff9b::8.8.8.8", False, id="RFC6052-2.1-well-known-prefix-public"),
        pytest.param("64:ff9b:1::8.8.8.8", True, id="RFC8215-local-use-prefix"),
        pytest.param("224.0.0.1", True, id="RFC5771-multicast"),
        pytest.param("239.255.255.255", True, id="RFC2365-multicast"),
        pytest.param("ff02::1", True, id="RFC4291-2.7-multicast"),
        pytest.param("ff0e::1", True, id="RFC4291-2.7-multicast-of-global-scope"),
        pytest.param("240.0.0.1", True, id="RFC1112-4-reserved"),
        pytest.param("255.255.255.255", True, id="RFC919-7-broadcast"),
        pytest.param("100.64.0.1", True, id="RFC6598-7-shared"),
        pytest.param("localhost.localdomain", True, id="a-name-in-hosts-files"),
        pytest.param("ip6-localhost", True, id="a-name-in-hosts-files-ipv6"),
        pytest.param("printer.lan", True, id="RFC6762-G-lan"),
        pytest.param("router.home", True, id="RFC6762-G-home"),
        pytest.param("wiki.corp", True, id="RFC6762-G-corp"),
        pytest.param("wiki.intranet", True, id="RFC6762-G-intranet"),
        pytest.param("lan.example", False, id="RFC6762-G-a-name-that-begins-alike"),
        pytest.param("clan", False, id="RFC6762-G-a-name-that-ends-alike"),
        pytest.param("8.8.8.8", False, id="a-public-address"),
        pytest.param("172.32.0.1", False, id="RFC1918-3-beyond-172-16"),
        pytest.param("2606:4700::1111", False, id="a-public-ipv6-address"),
        pytest.param("www.example.com", False, id="a-name"),
        pytest.param("notlocalhost", False, id="a-name-that-ends-alike"),
        pytest.param("localhost.example.com", False, id="a-name-that-begins-alike"),
        pytest.param("localhost.com", False, id="a-name-that-begins-alike-too"),
        pytest.param("2002:5db8:d822::1", False, id="RFC3056-2-6to4-public"),
    ],
)
def test_which_hosts_are_private(host: str, private: bool) -> None:
    assert is_private(host) is private


@pytest.mark.parametrize(
    ("answer", "again"),
    [
        pytest.param(Answer(URL, None), True, id="2.3.1.4-no-answer"),
        pytest.param(Answer(URL, 500), True, id="2.3.1.4-first-server-error"),
        pytest.param(Answer(URL, 599), True, id="2.3.1.4-last-server-error"),
        pytest.param(Answer(URL, None, timed_out=True), False, id="2.3.1.4-timed-out"),
        pytest.param(Answer(URL, 503, retry_after=1.0), False, id="RFC9110-10.2.3-says-when"),
        pytest.param(Answer(URL, 503, sign="Cloudflare"), False, id="a-challenge"),
        pytest.param(Answer(URL, 202), False, id="RFC9110-15.3.3-accepted"),
        pytest.param(Answer(URL, 429), False, id="RFC6585-4-too-many-requests"),
        pytest.param(Answer(URL, None, dropped=True), False, id="2.3.1.4-dropped"),
        pytest.param(Answer(URL, 503, dropped=True), False, id="2.3.1.4-dropped-with-a-status"),
        pytest.param(Answer(URL, 407), False, id="RFC9110-15.5.8-the-proxys"),
        pytest.param(Answer(URL, 301), False, id="2.3.1.2-redirect-without-a-location"),
        pytest.param(Answer(URL, 304), False, id="2.3.1.4-not-modified"),
        pytest.param(Answer(URL, 600), False, id="2.3.1.4-no-status-of-http"),
        pytest.param(Answer(URL, 200), False, id="2.3.1.1-success"),
        pytest.param(Answer(URL, 404), False, id="2.3.1.3-unavailable"),
        pytest.param(Answer(URL, 302, location="http://h/"), False, id="2.3.1.2-redirect"),
    ],
)
def test_which_answers_are_worth_a_retry(answer: Answer, again: bool) -> None:
    assert with_access(answer, RFC9309).is_worth_a_retry is again


def test_a_server_error_that_a_policy_accepts_is_not_asked_again() -> None:
    assert not Answer(URL, 500, UNAVAILABLE).is_worth_a_retry
