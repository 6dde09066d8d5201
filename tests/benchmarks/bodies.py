"""Robots.txt bodies of a given size: ordinary ones, and every shape that makes some parser slow."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from random import Random
from string import ascii_letters, digits

LIMIT = 512_000  # octets
HEAD = b"User-agent: *\n"
PLAIN_URL = "https://www.example.com/some/page.html"
LONG_URL = "https://www.example.com/" + "abc" * 2730  # 8 KiB
S_URL = "https://www.example.com/s/"
S_LONG_URL = f"{S_URL}{'abc' * 2730}"
LONG_URL_OF_A = "https://www.example.com/" + "a" * 8190


def filled(line: Callable[[int], str], octets: int) -> bytes:
    """Return whole lines, as many as fit into `octets`."""
    lines: list[bytes] = []
    size = 0
    for n in count():
        text = line(n).encode("latin-1")
        if size + len(text) > octets:
            return b"".join(lines)
        lines.append(text)
        size += len(text)
    raise AssertionError


def group(line: Callable[[int], str]) -> Callable[[int], bytes]:
    return lambda octets: HEAD + filled(line, octets - len(HEAD))


def one_line(start: bytes, repeated: bytes, end: bytes = b"") -> Callable[[int], bytes]:
    return lambda octets: HEAD + start + repeated * ((octets - len(HEAD + start + end)) // len(repeated)) + end


def page(start: bytes, repeated: bytes, end: bytes) -> Callable[[int], bytes]:
    """Return a page of HTML: `HEAD` is not in it."""
    return lambda octets: b"<html>" + start + repeated * ((octets - len(start + end)) // len(repeated)) + end


def agents_and_rules(octets: int) -> bytes:
    half = octets // 2
    return (
        filled(lambda n: f"user-agent: a{n}\n", half) + HEAD + filled(lambda n: f"disallow: /{n}\n", half - len(HEAD))
    )


one_huge_group = group(lambda n: f"Disallow: /section{n}/page\n")

RANDOM_PATH = "".join(Random(1).choices(ascii_letters + digits, k=2_000))


def in_wrong_order(octets: int) -> bytes:
    """Return patterns with two texts that both occur in one URL, the second before the first."""
    random, half = Random(2), len(RANDOM_PATH) // 2

    def line(_: int) -> str:
        late, early = random.randrange(half, 2 * half - 2), random.randrange(half - 2)
        return f"allow:*{RANDOM_PATH[late : late + 2]}*{RANDOM_PATH[early : early + 2]}\n"

    return group(line)(octets)


Shape = tuple[Callable[[int], bytes], str]
"""A body of so many octets, and the URL to ask about."""

HOSTILE: dict[str, Shape] = {
    "one huge group": (one_huge_group, PLAIN_URL),
    "many groups": (lambda octets: filled(lambda n: f"User-agent: b{n}\nDisallow: /{n}/\n\n", octets), PLAIN_URL),
    "shortest rules": (group(lambda n: f"allow:/{n}\n"), PLAIN_URL),
    "n agents, n rules": (agents_and_rules, PLAIN_URL),
    "one agent again and again": (group(lambda n: "User-agent: foo\n"), PLAIN_URL),
    "`user-agent:*` again and again": (group(lambda n: "user-agent:*\n"), PLAIN_URL),
    "`*`, a rule, `*`, a rule": (group(lambda n: f"user-agent:*\nallow:/{n}\n"), PLAIN_URL),
    "one line of a rule": (one_line(b"Disallow: /", b"a"), LONG_URL_OF_A),
    "one line without a colon": (one_line(b"", b"a"), PLAIN_URL),
    "line ends": (one_line(b"", b"\n"), PLAIN_URL),
    "carriage returns": (one_line(b"", b"\r"), PLAIN_URL),
    "spaces before a key": (one_line(b"", b" ", b"x"), PLAIN_URL),
    "spaces behind a key": (one_line(b"Disallow", b" ", b"x y"), PLAIN_URL),
    "spaces behind a value": (one_line(b"Disallow: /x", b" "), PLAIN_URL),
    "lines of spaces": (one_line(b"", b" \n"), PLAIN_URL),
    "comments behind rules": (group(lambda n: f"allow:/{n}#\n"), PLAIN_URL),
    "sitemaps": (lambda octets: filled(lambda n: f"Sitemap: https://a.example/{n}\n", octets), PLAIN_URL),
    "digits of a crawl delay": (one_line(b"Crawl-delay: ", b"9"), PLAIN_URL),
    "`/*a*b*c$`, an 8 KiB URL": (group(lambda n: "Disallow: /*a*b*c$\n"), LONG_URL),
    "`/*aN*b*c$`, an 8 KiB URL": (group(lambda n: f"Disallow: /*a{n}*b*c$\n"), LONG_URL),
    "`/*a*b*cN$`, an 8 KiB URL": (group(lambda n: f"Disallow: /*a*b*c{n}$\n"), LONG_URL),
    "`*N*b`": (group(lambda n: f"allow:*{n}*b\n"), PLAIN_URL),
    "`*N*b`, an 8 KiB URL": (group(lambda n: f"allow:*{n}*b\n"), LONG_URL),
    "`a*a*a*...b`, an 8 KiB URL": (one_line(b"Disallow: /", b"a*", b"b"), LONG_URL_OF_A),
    "`a*a*b`, `a*a*a*b`, ..., an 8 KiB URL": (group(lambda n: "Disallow: /" + "a*" * n + "b\n"), LONG_URL_OF_A),
    "`/s/*N`": (group(lambda n: f"allow:/s/*{n}\n"), f"{S_URL}page.html"),
    "`/s/*N`, an 8 KiB URL": (group(lambda n: f"allow:/s/*{n}\n"), S_LONG_URL),
    "`/s/*N*abc$`, an 8 KiB URL": (group(lambda n: f"allow:/s/*{n}*abc$\n"), S_LONG_URL),
    "`/s/*abcN*abca`, an 8 KiB URL": (group(lambda n: f"allow:/s/*abc{n}*abca\n"), S_LONG_URL),
    "`/s/*Nabc*abca`, an 8 KiB URL": (group(lambda n: f"allow:/s/*{n}abc*abca\n"), S_LONG_URL),
    "`/s*N`, all of which match": (group(lambda n: f"allow:/s*{n % 10}\n"), f"{S_URL}0123456789"),
    "`/*a..abNba..a`, texts of 1 000, an 8 KiB URL": (
        group(lambda n: f"allow:/*{'a' * 500}b{n}b{'a' * 500}\n"),
        LONG_URL_OF_A,
    ),
    "`/*a..abNba..a`, texts of 80, an 8 KiB URL": (
        group(lambda n: f"allow:/*{'a' * 40}b{n}b{'a' * 40}\n"),
        LONG_URL_OF_A,
    ),
    "`*XX*YY`, a 2 KB URL with YY before XX": (in_wrong_order, f"https://www.example.com/{RANDOM_PATH}"),
    "`/`, again and again": (group(lambda n: "disallow:/\n"), PLAIN_URL),
    "`/`, then stars": (group(lambda n: "disallow:/" + "*" * (n % 500) + "\n"), PLAIN_URL),
    "stars": (one_line(b"Disallow: /", b"*"), PLAIN_URL),
    "`/`, `/a`, `/aa`, ..., an 8 KiB URL": (group(lambda n: "Disallow: /" + "a" * n + "\n"), LONG_URL_OF_A),
    "dollars": (one_line(b"Disallow: /", b"$"), PLAIN_URL),
    "per cent signs": (one_line(b"Disallow: /", b"%"), PLAIN_URL),
    "a letter behind each per cent sign": (one_line(b"Disallow: /", b"%a"), PLAIN_URL),
    "escapes to decode": (one_line(b"Disallow: /", b"%41"), PLAIN_URL),
    "escapes to decode, apart": (one_line(b"Disallow: /", b"%41a"), PLAIN_URL),
    "escapes in lower case, one a rule": (group(lambda n: "allow:/%e9\n"), PLAIN_URL),
    "escapes in queries": (group(lambda n: "allow:/?%2F\n"), PLAIN_URL),
    "octets to encode": (one_line(b"Disallow: /", b"\xe9"), PLAIN_URL),
    "octets to encode, one a rule": (group(lambda n: "allow:/\xe9\n"), PLAIN_URL),
    "cut escapes, one a rule": (group(lambda n: f"allow:/{n}%e\n"), PLAIN_URL),
    "cut escapes before stars": (one_line(b"Disallow: /", b"%*"), PLAIN_URL),
    "byte order marks": (one_line(b"\xef\xbb\xbf", b"\xef\xbb\xbf"), PLAIN_URL),
    "lines that begin with a mark": (group(lambda n: f"\xef\xbb\xbfallow:/{n}\n"), PLAIN_URL),
    "the page of a browser": (page(b"<pre>" + HEAD, b"disallow: /&lt;\n", b"</pre>"), PLAIN_URL),
    "ends of heads": (page(b"<head>", b"</head> ", b"</pre>"), PLAIN_URL),
    "ends of heads, and pages": (page(b"<head>", b"</head><body><pre>a", b"</pre>"), PLAIN_URL),
    "spaces in a page": (page(b"<head>", b" ", b"</pre>"), PLAIN_URL),
    "angle brackets": (page(b"", b"<", b"</pre>"), PLAIN_URL),
    "user agents in one line": (one_line(b"User-agent: a", b" user-agent"), PLAIN_URL),
    "NUL": (one_line(b"", b"\0"), PLAIN_URL),
    "VT, one a line": (group(lambda n: "\v\n"), PLAIN_URL),
    "VT beside each key and value": (group(lambda n: "\vallow\v:\v/\v\n"), PLAIN_URL),
}


def rules_of_a_site(number: int) -> bytes:
    """Return a group of `number` rules. A fifth of the rules have special characters, as on the web."""
    names = ("shop", "blog", "user", "admin", "search", "tag", "category")
    kinds = ("/{}/",) * 7 + ("/{}/*", "/*?{}=", "/{}/*/print", "/{}-", "/*.{}$", "/{}/", "/{}.php", "/{}/")
    lines = []
    for n in range(number):
        pattern = kinds[n % len(kinds)].format(f"{names[n % len(names)]}{n}")
        lines.append(f"{'Allow' if n % 13 == 5 else 'Disallow'}: {pattern}\n")
    return HEAD + "".join(lines).encode()


URLS = {
    "plain": "https://www.example.com/products/category/page-name-12.html",
    "short query": "https://www.example.com/products/list?page=2&sort=price",
    "escaped": "https://www.example.com/caf%C3%A9/men%C3%BC/%D7%9E%D7%93.html",
    "long query": "https://www.example.com/products/list?" + "&".join(f"filter{n}=value{n}" for n in range(12)),
}
