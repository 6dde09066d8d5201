"""RFC 9309's matcher written down sentence by sentence. It is plain and slow, and imports nothing from the package.

What the standard leaves open is decided as in `tests/conformance/README.md`.
There is no UTF-16, no page of a browser, no limit.
"""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

KEYS = {
    "user-agent": ("user-agent", "useragent", "user agent"),
    "allow": ("allow",),
    "disallow": ("disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw"),
    "crawl-delay": ("crawl-delay", "crawl delay", "crawldelay"),
    "sitemap": ("sitemap", "site-map", "sitemaps"),
}
FULL_WIDTH_COLON = "\uff1a".encode().decode("latin-1")
UNRESERVED = string.ascii_letters + string.digits + "-._~"  # RFC 3986 2.3
RESERVED = ":/?#@!$&'()*+,;="  # RFC 3986 2.2, less the brackets
IN_A_TOKEN = string.ascii_letters + string.digits + "-_."


@dataclass
class Line:
    """An allow or disallow line of a group."""

    number: int
    allow: bool
    value: str


@dataclass
class PlainGroup:
    tokens: list[str] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    has_rules: bool = False
    delays: list[tuple[list[str], list[str]]] = field(default_factory=list)
    """Tokens, and the values of the Crawl-delay lines that follow them."""


@dataclass(frozen=True)
class Outcome:
    allowed: bool
    line: int | None = None
    """The line that decides; None if no line matches."""
    product_token: str | None = None


# 2.2 and 2.2.4: lines and records. Each octet is the character with its number (latin-1).


def lines_of(body: bytes) -> list[str]:
    """Split at CR, LF and CRLF, and at nothing else."""
    text = body.decode("latin-1")
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def without_white_space(octets: str) -> str:
    """The octets without the white space around them. It may be white space of Unicode, in UTF-8, or a control."""
    text = octets.encode("latin-1").decode("utf-8", "surrogateescape")
    while text and is_white_space(text[0]):
        text = text[1:]
    while text and is_white_space(text[-1]):
        text = text[:-1]
    return text.encode("utf-8", "surrogateescape").decode("latin-1")


def is_white_space(character: str) -> bool:
    """Whether the character is skipped beside a key or a value. U+FEFF is the byte order mark."""
    return character.isspace() or unicodedata.category(character) == "Cc" or character in "\u200b\ufeff"


def record_of(line: str) -> tuple[str, str] | None:
    """The kind of the record in the line, and its value; None if the line has no record."""
    line = without_white_space(line.split("#", maxsplit=1)[0])
    colons = [colon for colon in (":", FULL_WIDTH_COLON) if colon in line]
    before, colon, after = line.partition(min(colons, key=line.index, default=":"))
    while before and not "!" <= before[-1] <= "~":  # all but printable ASCII is skipped between a key and its colon
        before = before[:-1]
    if colon and (kind := kind_of(before)):
        return kind, without_white_space(after)
    words = line.replace("\t", " ").split(" ")
    words = [word for word in words if word]
    if len(words) == 2 and " " not in words[0] and (kind := kind_of(words[0])):
        return kind, without_white_space(words[1])
    return None


def kind_of(key: str) -> str | None:
    lower = "".join(character.lower() if character in string.ascii_letters else character for character in key)
    for kind, spellings in KEYS.items():
        if lower in spellings:
            return kind
    return None


# 2.1 and 2.2.1: groups.


def groups_of(body: bytes) -> list[PlainGroup]:
    groups: list[PlainGroup] = []
    for number, line in enumerate(lines_of(body), start=1):
        kind, value = record_of(line) or ("other", "")
        if kind == "user-agent":
            if not groups or groups[-1].has_rules:
                groups.append(PlainGroup())
            groups[-1].tokens.append(token_of(value))
            if not groups[-1].delays or groups[-1].delays[-1][1]:
                groups[-1].delays.append(([], []))
            groups[-1].delays[-1][0].append(token_of(value))
        elif kind == "crawl-delay" and groups:
            groups[-1].delays[-1][1].append(value)
        elif kind in {"allow", "disallow"} and groups:
            groups[-1].has_rules = True
            groups[-1].lines.append(Line(number, kind == "allow", value))
    return groups


def token_of(value: str) -> str:
    """The product token in a user-agent line, in lower case; empty if the line names no crawler."""
    if value == "*" or value.startswith(("* ", "*\t")):
        return "*"
    token = ""
    for character in value:
        if character not in IN_A_TOKEN:
            break
        token += character
    return token.lower()


def obeyed(groups: Sequence[PlainGroup], product_tokens: Sequence[str]) -> tuple[str | None, list[Line]]:
    """The first of the crawler's tokens that a group names, or else `*`; and the lines of all groups that name it."""
    for token in (*product_tokens, "*"):
        mine = [group for group in groups if token and token.lower() in group.tokens]
        if mine:
            return token, [line for group in mine for line in group.lines]
    return None, []


# Crawl-delay is not in the standard. A delay is for the user-agent lines between the previous delay and this one.


def delay_of_groups(groups: Sequence[PlainGroup], product_tokens: Sequence[str]) -> float | None:
    token, _lines = obeyed(groups, product_tokens)
    delays = [delay for group in groups for delay in delays_of(group, token)]
    return max(delays, default=None)


def delays_of(group: PlainGroup, token: str | None) -> list[float]:
    """Each delay of the group for the token, in seconds."""
    values = [value for tokens, values in group.delays if token and token.lower() in tokens for value in values]
    return [float(value) for value in values if is_number(value)]


def is_number(text: str) -> bool:
    """Whether the text is a finite number without a minus sign."""
    if not text or text[0] == "-" or any(character not in string.digits + ".eE+-" for character in text):
        return False
    try:
        return float(text) != float("inf")
    except ValueError:
        return False


# 2.2.2 and 2.2.3: octets made comparable.


def octets_of(text: str) -> Iterator[str]:
    """Each octet as it is compared: a character, or an escape in capitals. A `%` that begins no escape is `%25`."""
    place = 0
    while place < len(text):
        escape = text[place : place + 3]
        is_escape = len(escape) == 3 and escape[0] == "%" and all(digit in string.hexdigits for digit in escape[1:])
        octet = chr(int(escape[1:], 16)) if is_escape else text[place]
        stays = octet in UNRESERVED or (not is_escape and octet in RESERVED)
        yield octet if stays else f"%{ord(octet):02X}"
        place += 3 if is_escape else 1


def with_query_decoded(octets: Sequence[str]) -> list[str]:
    """Figure 4, second row: these four mean the same in a query, raw or encoded."""
    raw = {"%3A": ":", "%2F": "/", "%3F": "?", "%40": "@"}
    query = octets.index("?") if "?" in octets else len(octets)
    return [*octets[:query], *(raw.get(octet, octet) for octet in octets[query:])]


def paths_of(url: str) -> list[str]:
    """The path and query of the URL twice: as written, and with `: / ? @` decoded in the query.

    In a URL, `*` and `$` are ordinary characters.
    Raises ValueError for a text that has neither an authority nor a path.
    """
    rest = url.split("#", maxsplit=1)[0]
    scheme, colon, after = rest.partition(":")
    if colon and after.startswith("//") and "/" not in scheme and "?" not in scheme:
        rest = after
    if rest.startswith("//"):
        authority = rest[2:].split("/")[0].split("?")[0]
        rest = rest[2 + len(authority) :]
    elif rest and rest[0] not in "/?":
        raise ValueError(url)
    if not rest.startswith("/"):
        rest = "/" + rest
    text = rest.encode("utf-8", "surrogatepass").decode("latin-1")
    octets = [{"*": "%2A", "$": "%24"}.get(octet, octet) for octet in octets_of(text)]
    return ["".join(octets), "".join(with_query_decoded(octets))]


def rule_of(value: str) -> str:
    """A rule as it is compared. A `$` is special only at the end of the rule."""
    body, end = (value[:-1], "$") if value.endswith("$") else (value, "")
    octets = with_query_decoded(["%24" if octet == "$" else octet for octet in octets_of_rule(body)])
    return "".join(octets) + end


def octets_of_rule(body: str) -> Iterator[str]:
    """The octets of a rule. A `%` or `%X` before a `*` or the end is the beginning of an escape, and stays."""
    for number, text in enumerate(body.split("*")):
        if number:
            yield "*"
        cut = ""
        for end in (text[-1:], text[-2:]):
            if end[:1] == "%" and all(digit in string.hexdigits for digit in end[1:]):
                cut = end
        yield from octets_of(text.removesuffix(cut))
        yield cut.upper()


def does_match(rule: str, path: str) -> bool:
    """Whether a rule matches from the first octet of the path. `places`: where in the path the match may be."""
    places = {0}
    for octet in rule:
        if octet == "*":
            places = set(range(min(places), len(path) + 1)) if places else places
        elif octet == "$":
            places = places & {len(path)}
        else:
            places = {place + 1 for place in places if place < len(path) and path[place] == octet}
    return bool(places)


# 2.2.2: the longest match.


def outcome(body: bytes, url: str, product_tokens: Sequence[str]) -> Outcome:
    return outcome_of_groups(groups_of(body), url, product_tokens)


def outcome_of_groups(groups: Sequence[PlainGroup], url: str, product_tokens: Sequence[str]) -> Outcome:
    token, lines = obeyed(groups, product_tokens)
    paths = paths_of(url)
    if paths[0] == "/robots.txt":
        return Outcome(True, None, token)
    best: Line | None = None
    for line in lines:
        if not line.value.startswith(("/", "*")):
            continue
        if any(does_match(rule_of(line.value), path) for path in paths) and (best is None or is_above(line, best)):
            best = line
    return Outcome(best is None or best.allow, best.number if best else None, token)


def is_above(line: Line, other: Line) -> bool:
    """Whether the line has more octets than the other; or as many, if only this line is an Allow."""
    octets, other_octets = len(rule_of(line.value)), len(rule_of(other.value))
    return octets > other_octets or (octets == other_octets and line.allow and not other.allow)
