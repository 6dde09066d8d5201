"""URLs and patterns, normalised; matching one pattern or many, and what this may cost (RFC 9309 2.2.3).

A pattern is the normalised value of a rule. A `*` anywhere and a `$` at the end are special; all else is literal.

An attacker can write patterns and URLs whose comparison takes a long time, if the patterns have a `*` before their end.
So this time has a limit. All other patterns are compared octet by octet, once.
"""

import math
import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence

from scrapy_rep.protocol.foreign_text import shortened

# The limit for the octets of a URL times the octets of the patterns with `*`: about 20 ms. All octets of a pattern
# count, because the search for a text between two `*` may read the same octets of the URL many times.
MAX_COMPARED = 2**26

# A gram is a short piece of a text: the grams of `/shop/*/x$` are `/sho`, `p/` and `/x$`. A URL must contain all grams
# of a pattern to match it, so few patterns have to be compared with a long URL. Without grams, no URL of more than
# 4,000 octets could be compared with a real file whose patterns with `*` have 18,000 octets.
MAX_TARGET = 16_384  # octets of a URL that is cut into grams; RFC 9110 4.1 recommends support for 8 000
GRAM = 4  # octets, or fewer at the end of a text
_GRAMS = re.compile(rf"[^*]{{1,{GRAM}}}")


class TooCostlyError(Exception):
    """Raised if comparing the URL with the rules would take too long."""


def longest_affordable(patterns: Iterable[str]) -> float:
    """Return the most octets of a URL that may be compared with all of these patterns."""
    octets = sum([len(pattern) for pattern in patterns if "*" in pattern.rstrip("*$")])
    return MAX_COMPARED / octets if octets else math.inf


def affordable(spelling: str, patterns: Collection[str]) -> Collection[str]:
    """Return the patterns that a spelling of a URL has to be compared with. No pattern may be given twice.

    If comparing all takes too long, only the patterns whose grams the spelling contains are returned. TooCostlyError is
    then raised if comparing these takes too long, too, or if the spelling has more than MAX_TARGET octets.
    """
    # The first check counts all patterns, as if each had a `*` before its end. It is the faster one.
    if len(spelling) * sum(map(len, patterns)) <= MAX_COMPARED or len(spelling) <= longest_affordable(patterns):
        return patterns
    if len(spelling) > MAX_TARGET:
        raise TooCostlyError
    with_end = f"{spelling}$"
    grams = {with_end[at : at + size] for size in range(1, GRAM + 1) for at in range(len(with_end) - size + 1)}
    patterns = [pattern for pattern in patterns if grams.issuperset(_GRAMS.findall(pattern))]
    if len(spelling) > longest_affordable(patterns):
        raise TooCostlyError
    return patterns


ROBOTS_PATH = "/robots.txt"  # RFC 9309 2.3: all lower case, in the top-level path
_UNRESERVED = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"  # RFC 3986 2.3
# RFC 3986 2.2 without `[` and `]`: Scrapy sends these two encoded, site owners write them raw, and both match.
_RESERVED = ":/?#@!$&'()*+,;="
# In a URL, `*` and `$` are ordinary octets (2.2.3, Figure 6), and a `#` ends the URL.
_PLAIN = "".join(sorted({*_UNRESERVED, *_RESERVED} - set("#*$")))
_MAY_STAND_IN_URL = f"%{_PLAIN}".encode()
_MAY_STAND_IN_LINES = f"%{_UNRESERVED}{_RESERVED}\n".encode()

_DIGITS = "0123456789ABCDEFabcdef"
# Escape -> its normalised form: the unreserved character that it stands for, or the escape in capitals. The cut escapes
# of rules are here, too: `%c` becomes `%C`.
_ESCAPES = {
    f"%{high}{low}": octet if (octet := chr(int(high + low, 16))) in _UNRESERVED else f"%{high}{low}".upper()
    for high in _DIGITS
    for low in _DIGITS
} | {f"%{digit}": f"%{digit}".upper() for digit in _DIGITS}
# The two hex digits of a normalised escape. They are in capitals and do not stand for an unreserved character.
_SETTLED = "[0189A-F][0-9A-F]|2[0-9A-CF]|3[A-F]|[46]0|5[B-E]|7[B-DF]"
_HEX = "[0-9A-Fa-f]"
_NO_ESCAPE = re.compile(f"%(?!{_HEX}{{2}})")
# In a rule, a `%` or `%X` before a `*`, the final `$` or the end of the rule is the beginning of an escape: `/*%D9%`.
_NO_ESCAPE_IN_LINES = re.compile(rf"%(?!{_HEX}{{2}}|{_HEX}?(?:\*|\$?(?:\n|\Z)))")
_TO_SETTLE = re.compile(f"%(?!{_SETTLED}){_HEX}{{1,2}}")
_TO_NORMALISE = re.compile(rf"[^{re.escape(_PLAIN)}](?:(?<!%)|(?!{_SETTLED}))")
_STARS = re.compile(r"\*\*+")
_QUERY = re.compile(r"(\?.*)")
# These four characters mean the same in a query, raw or encoded (RFC 9309 Figure 4, row 2).
_QUERY_ESCAPES = {"%3A": ":", "%2F": "/", "%3F": "?", "%40": "@"}
# The text before a path: an optional scheme, and an authority.
_BEFORE_PATH = r"(?:[^:/?#]*:)?//[^/?#]*"
_TARGET = re.compile(rf"({_BEFORE_PATH})?([^#]*)")
_PLAIN_TARGET = re.compile(rf"{_BEFORE_PATH}(/[{re.escape(_PLAIN)}]*)")


def _normalised(text: str, may_stand: bytes, no_escape: re.Pattern[str]) -> str:
    """Return the text with normalised escapes (2.2.2). All octets that are not in `may_stand` are encoded.

    `no_escape` matches each `%` that is encoded, too. The text has one character for each octet.
    """
    if "%" in text:
        text = _TO_SETTLE.sub(lambda escape: _ESCAPES[escape[0]], no_escape.sub("%25", text))
    for octet in set(text.encode("latin-1").translate(None, may_stand)):
        text = text.replace(chr(octet), f"%{octet:02X}")
    return text


def _queries_decoded(text: str) -> str:
    """Return the lines with `%3A %2F %3F %40` decoded after the first `?` of each line (Figure 4, row 2)."""
    parts = _QUERY.split(text)
    queries = "\n".join(parts[1::2])
    for escape, octet in _QUERY_ESCAPES.items():
        queries = queries.replace(escape, octet)
    parts[1::2] = queries.split("\n")
    return "".join(parts)


def spellings(url: str) -> tuple[str, ...]:
    """Return the spellings of a URL that rules are compared with: the normalised path and query, without a fragment.

    Most URLs have one spelling. A URL has a second spelling if its query has `%3A %2F %3F %40`, which are decoded there
    (2.2.2, Figure 4, row 2): `/?u=a%2Fb` is also `/?u=a/b`. A spelling is ASCII. Its escapes are in upper case, escapes
    of unreserved characters are decoded, and octets that a URI must not contain are encoded (2.2.2). An empty path
    becomes `/` (RFC 9110 4.2.3). Raises ValueError if a path does not begin with `/`, as in `mailto:a@b.example`.
    """
    if plain := _PLAIN_TARGET.fullmatch(url):  # most URLs match
        return (plain[1],)
    before, target = _TARGET.match(url).groups()  # type: ignore[union-attr]  # it matches anything
    if not target.startswith("/"):
        if before is None and target and target[0] != "?":
            url = shortened(url)
            raise ValueError(f"{url!r} is neither a URL nor a path: write it as 'https://example.com/page' or '/page'")
        target = "/" + target
    if _TO_NORMALISE.search(target):  # seldom: Scrapy has normalised most of its URLs
        target = _normalised(target.encode("utf-8", "surrogatepass").decode("latin-1"), _MAY_STAND_IN_URL, _NO_ESCAPE)
    if "%" not in target or "?" not in target:
        return (target,)
    decoded = _queries_decoded(target)
    return (target,) if decoded == target else (target, decoded)


def patterns(values: str) -> str:
    """Return the patterns for the values of rules, normalised as URLs are.

    Each line of `values` is one value, and each line of the result is its pattern, with one character for each octet.
    Each value begins with `/` or `*`. All values are given in one call, because many calls would be slow.
    """
    text = _normalised(values, _MAY_STAND_IN_LINES, _NO_ESCAPE_IN_LINES)
    if "$" in text:
        # A `$` before the end is an ordinary character (2.2.3). The text has no NUL, because it is encoded.
        text = f"{text}\n".replace("$\n", "\0\n").replace("$", "%24").replace("\0", "$").removesuffix("\n")
    if "?" in text and "%" in text and any(escape in text for escape in _QUERY_ESCAPES):
        return _queries_decoded(text)
    return text


def matches(pattern: str, spelling: str) -> bool:
    """Whether the pattern matches a spelling of a URL (see `spellings`), from the first octet of the path (2.2.2).

    There is no backtracking: each text between two `*` is searched for once, after the text before it.
    """
    if len(pattern) - pattern.count("*") > len(spelling) + 1:  # the URL is too short; 1 for a `$`
        return False
    if "**" in pattern:  # only for speed: the empty text between the two is found anywhere
        pattern = _STARS.sub("*", pattern)
    first, *others = pattern.removesuffix("$").split("*")
    ends = pattern.endswith("$")
    if not others:
        return spelling == first if ends else spelling.startswith(first)
    *middle, last = others
    # Look for the last text first: if it is missing, the other texts need no search.
    if not spelling.startswith(first) or not (spelling.endswith(last) if ends else last in spelling):
        return False
    offset = len(first)
    for text in middle:
        offset = spelling.find(text, offset)
        if offset < 0:
            return False
        offset += len(text)
    return len(spelling) - len(last) >= offset if ends else spelling.find(last, offset) >= 0


def matching_positions(patterns: Sequence[str], spellings: Sequence[str]) -> list[int]:
    """Return the positions of the patterns that match one of a URL's `spellings`. Raises TooCostlyError."""
    beginnings = tuple(patterns)
    starred = {pattern for pattern in patterns if "*" in pattern}
    matching: set[str] = set()
    for spelling in spellings:
        # A spelling contains no `*` and no `$`. So a pattern without `*` matches if it is a prefix of `with_end`.
        with_end = f"{spelling}$"
        if with_end.startswith(beginnings):
            matching.update(filter(with_end.startswith, patterns))
        for pattern in affordable(spelling, starred) if starred else ():
            # In many files, patterns differ only in the text after the last `*`, so this text is searched for first.
            if pattern.rstrip("*").rpartition("*")[2] in with_end and matches(pattern, spelling):
                matching.add(pattern)
    return [position for position, pattern in enumerate(patterns) if pattern in matching] if matching else []


BEGINNING = 4  # octets at the beginning of a distinctive text; they are searched for first


class MatchIndex:
    """An index of patterns that are ranked by precedence: the first pattern that matches a URL decides.

    Most patterns are prefixes. `/a*` is the prefix `/a`. `/a$` is a prefix, too, because `$` is added to URLs, which
    have no other `$`. The prefixes are sorted, and each links to the longest other prefix that it begins with: `/a/b`
    links to `/a`. A pattern with a `*` before its end is usually compared only with URLs that contain its
    distinctive text.
    """

    NO_RANK = 2**63  # more than any rank
    __slots__ = ("_by_beginning", "_first", "_longest", "_prefixes", "_shorter", "_starred", "memory")

    def __init__(self, patterns: Sequence[str]) -> None:
        prefixes: dict[str, int] = {}
        self._starred: dict[str, int] = {}
        for rank, pattern in enumerate(patterns):
            prefix = pattern.rstrip("*$") if pattern.endswith(("*", "*$")) else pattern
            if "*" in prefix:
                self._starred.setdefault(pattern, rank)
            else:
                prefixes.setdefault(prefix, rank)
        self._prefixes = sorted(prefixes)
        self._shorter: list[int] = []
        # For each prefix, the best (smallest) rank of the patterns that match every URL with this prefix: its own
        # pattern, and the patterns of shorter prefixes, such as `/a` of `/a/b`. A shorter prefix may have the longer
        # pattern: `/a*****` has the prefix `/a`.
        self._first: list[int] = []
        for number, prefix in enumerate(self._prefixes):
            shorter = number - 1
            while shorter >= 0 and not prefix.startswith(self._prefixes[shorter]):
                shorter = self._shorter[shorter]
            self._shorter.append(shorter)
            self._first.append(min(prefixes[prefix], self._first[shorter]) if shorter >= 0 else prefixes[prefix])
        self._longest = longest_affordable(self._starred)
        # Each pattern and its distinctive text, by the beginning of the text: `/*?size=1` is under `?siz`.
        by_beginning: dict[str, list[tuple[str, str]]] = {}
        for pattern in self._starred:
            text = _distinctive_text(pattern)
            by_beginning.setdefault(text[:BEGINNING], []).append((text, pattern))
        self._by_beginning = list(by_beginning.items())
        self.memory = 45 * len(prefixes) + 310 * len(self._starred)
        """The approximate bytes of memory without the patterns (measured: tests/protocol/test_costs.py)."""

    def first_match(self, spelling: str) -> int:
        """Return the rank of the first pattern that matches this spelling; NO_RANK if none does. Raises
        TooCostlyError."""
        with_end = f"{spelling}$"
        # Begin with the last prefix in the index that is sorted before the spelling. Follow its links to a prefix that
        # the spelling begins with. The first such prefix is the longest.
        number = bisect_right(self._prefixes, with_end) - 1
        while number >= 0 and not with_end.startswith(self._prefixes[number]):
            number = self._shorter[number]
        first = self._first[number] if number >= 0 else self.NO_RANK
        if len(spelling) > self._longest:
            candidates = affordable(spelling, self._starred)
        else:
            candidates = [
                pattern
                for beginning, patterns in self._by_beginning
                if beginning in with_end
                for text, pattern in patterns
                if text in with_end
            ]
        for pattern in candidates:
            rank = self._starred[pattern]
            if rank < first and matches(pattern, spelling):
                first = rank
        return first


def _distinctive_text(pattern: str) -> str:
    """Return a text that every URL must contain to match the pattern.

    It is the text after the last `*`, because many patterns differ only there: `/*?color=` and `/*?size=`. If that text
    is short, the longest text of the pattern is returned.
    """
    last = pattern.rstrip("*").rpartition("*")[2]
    return last if len(last) >= BEGINNING else max(pattern.split("*"), key=len)


def is_robots_txt(url: str) -> bool:
    """Whether the URL is exactly that of a robots.txt, which is always allowed (2.2.2). Never raises."""
    if ROBOTS_PATH not in url and "%" not in url:  # a fast check that is enough for nearly all URLs
        return False
    try:
        return spellings(url)[0] == ROBOTS_PATH
    except ValueError:  # `mailto:a@b.example`
        return False
