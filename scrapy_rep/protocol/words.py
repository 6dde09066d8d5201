"""The words that people read about answers, verdicts, refusals and outages.

Texts that more than one of exceptions, log, command and report use. A text with only one user stands where it is used.
The reasons of answers stand where answers are judged: `status_policy`, `redirect_target`, `fetching.download`.
"""

import re
from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from scrapy_rep.protocol.foreign_text import printable


class WordEnum(Enum):
    """An enum whose `str` is its value: `str(AccessResult.SUCCESS)` is `success`."""

    def __str__(self) -> str:
        return str(self.value)


# Answers for robots.txt.

# Value of `AccessResult` -> what the crawler does, and the source. The status policy may name another source.
ACCESS_WORDS: Mapping[str, tuple[str, str]] = {
    "success": ("its rules are obeyed", "RFC 9309 2.3.1.1"),
    "unavailable": ("everything is allowed", "RFC 9309 2.3.1.3"),
    "restricted": ("nothing is allowed", "REP_STATUS_POLICY"),
}
NO_RULES = "it has no rules, so everything is allowed"


# Why an origin has no rules. These words are counted.
A_PAGE = "a page of HTML"
NO_GROUPS = "a file without rules"
REDIRECTS = "too many redirects"
ACCESS_DENIED = "HTTP 401", "HTTP 402", "HTTP 403", "HTTP 451"  # REP_STATUS_POLICY = "cautious" refuses such sites

CHALLENGE_ADVICE = (
    "With such a challenge, a site demands proof that the client is a browser. Ask the site to let your crawler in, or"
    " sign requests (Web Bot Auth)"
)
SIGNATURE_ADVICE = (
    "With Accept-Signature, a site asks crawlers to sign their requests (Web Bot Auth). Add a downloader middleware"
    " that signs, and publish its key"
)


# Outages.


class OutageWords(NamedTuple):
    """What the crawl does while robots.txt is unreachable, in words."""

    meaning: str
    requests: str
    """The words that follow "Requests to this site". Empty if requests wait or are refused: `OutageLog` says which."""
    source: str


# By the values of `lifecycle.Basis`.
OUTAGE_WORDS: Mapping[str, OutageWords] = {
    "nothing is allowed": OutageWords("nothing of its origin is fetched", "", "RFC 9309 2.3.1.4"),
    "the stored response": OutageWords(
        "its last known rules are still obeyed",
        "are decided by its last answer before the outage (RFC 9309 2.4)",
        "RFC 9309 2.4",
    ),
    "everything is allowed": OutageWords(
        "after so long, everything is allowed",
        "are allowed after so long an outage (REP_UNREACHABLE_DAYS, RFC 9309 2.3.1.4)",
        "RFC 9309 2.3.1.4",
    ),
}
# The kind of a failure -> a pattern of its answers, and the cure. The first kind that matches counts.
FAILURES: Mapping[str, tuple[str, str]] = {
    "proxy": (r", through the proxy |^HTTP 407", "Check the proxy"),
    "DNS": (r"^(?:CannotResolveHost|DNSLookup)Error", "Check the name of the host"),
    "scheme": (r"^\w+: Unsupported URL scheme", "Check the scheme of the URL"),
    "TLS": (r"\[SSL: |\[\('SSL |VerificationError", "Check that the site has https, and a certificate for this name"),
    "component": (
        r"^another (?:middleware|component) | has raised | instead of a download handler",
        "Check the component that the reason names",
    ),
    "": ("", "Check that the site is up. Crawl later, or more slowly"),
}
LAST_ANSWER_COUNTS = "its last answer still counts"


# Verdicts and refusals.


class ReasonWords(NamedTuple):
    """A reason in words, and where the reason is specified. A text is empty if no verdict needs it."""

    allowed: str
    """The words that follow "allowed: "."""
    refused: str
    """The words that follow "refused: "."""
    source: str
    refusal: str = ""
    """The message about a refused request. `{where}` is IN_ROBOTS_TXT or one of the texts below it; `{url}` is where
    robots.txt is; `{answer}` is the answer for it."""
    counted: str = ""
    """The words that follow a number of refused requests."""
    advice: str = ""
    """What to do if all start requests are refused for this reason. `exceptions.advice` names exceptions. `{token}` is
    the product token of the rule's group; `{cure}` is from FAILURES."""


# By the values of `rules.VerdictReason`.
REASON_WORDS: Mapping[str, ReasonWords] = {
    "rule": ReasonWords(
        "a rule allows it",
        "a rule forbids it",
        "RFC 9309 2.2.2",
        "Forbidden by {where}",
        "by rules",
        "The rule is for {token!r}. If your crawler has another name, set ROBOTSTXT_USER_AGENT to that name",
    ),
    "no rule": ReasonWords("no rule matches it", "", "RFC 9309 2.2.2"),
    "no group": ReasonWords("robots.txt has no rules for this crawler", "", "RFC 9309 2.2.1"),
    "unavailable": ReasonWords("the site has no usable robots.txt", "", "RFC 9309 2.3.1.3"),
    "too costly": ReasonWords(
        "",
        "comparing the URL with the rules would take too long",
        "RFC 9309 3",
        "Forbidden because {words} ({url})",
        "by rules",
    ),
    "unreachable": ReasonWords(
        "robots.txt has been unreachable for a long time",
        "robots.txt is unreachable",
        "RFC 9309 2.3.1.4",
        "Forbidden while robots.txt is unreachable ({url}: {answer})",
        "because robots.txt was unreachable",
        "robots.txt was unreachable. {cure}",
    ),
    "restricted": ReasonWords(
        "",
        "access to robots.txt is restricted",
        "REP_STATUS_POLICY",
        "Forbidden by REP_STATUS_POLICY ({url}: {answer})",
        "by REP_STATUS_POLICY",
        "The site restricts access to robots.txt. Ask it for access, or change REP_STATUS_POLICY",
    ),
    "usage": ReasonWords(
        "",
        "the site disallows a purpose of the crawl",
        "drafts on usage; REP_PURPOSES_REFUSE",
        "Forbidden for the purpose {purpose!r} by {where}",
        "by REP_PURPOSES_REFUSE",
    ),
    "exempt": ReasonWords("the crawl exempts it", "", "REP_EXEMPT, dont_obey_robotstxt"),
    "not subject": ReasonWords("robots.txt does not apply to it", "", "RFC 9309 2.2.2, 2.3"),
    "no host": ReasonWords(
        "",
        "the URL has no valid host",
        "RFC 9110 4.2.1",
        "Forbidden because {words}, so no robots.txt can apply to it",
        "because their URL has no valid host",
    ),
}
ADVICE_FOR_ALL_CRAWLERS = "The rule is for all crawlers that robots.txt does not name. Ask the site for access"
ADVICE = "Is the site yours, or have you permission to crawl it? Set REP_EXEMPT. `scrapy robots URL` explains refusals"

# Where the line is that refuses a request.
IN_ROBOTS_TXT = "robots.txt ({url}, line {line}{group}: {rule})"
IN_HEADER = "the header of the response ({rule})"
IN_PAGE = "the page itself ({rule})"
OF_GROUP = "group of {token!r}"
READ_AS = ", because the URL can be read as {url}"


def where_from(robots_url: str | None, final_url: str) -> str:
    """Return where a robots.txt comes from: its URL, and the URL that it was redirected to, if there is one."""
    address = printable(robots_url or "robots.txt")
    return address if final_url in {"", robots_url} else f"{address}, redirected to {printable(final_url)}"


def failure(answer: str) -> str:
    """Return the kind of failure, a key of FAILURES, for the answer of an unreachable robots.txt in words."""
    return next(kind for kind, (sign, _cure) in FAILURES.items() if re.search(sign, answer))


def counted(number: int, noun: str) -> str:
    """Return the number with its noun, such as `1 origin` or `2 origins`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def were_refused(number: int, *, is_dry_run: bool) -> str:
    """Return the words that follow a number of requests: `were refused`, `would have been refused (REP_DRY_RUN)`."""
    if is_dry_run:
        return "would have been refused (REP_DRY_RUN)"
    return "was refused" if number == 1 else "were refused"


def duration(seconds: float) -> str:
    """Write a duration as `0.2 s`, `3 min 5 s` or `27 h 47 min`."""
    if round(seconds) < 60:
        return f"{seconds:.2g} s" if seconds >= 0.01 or not seconds else "< 0.01 s"
    minutes, rest = divmod(round(seconds) if seconds < 3_600 else 60 * round(seconds / 60), 60)
    hours, minutes = divmod(minutes, 60)
    parts = ((hours, "h"), (minutes, "min"), (rest, "s"))
    return " ".join(f"{amount:,} {unit}" for amount, unit in parts if amount)
