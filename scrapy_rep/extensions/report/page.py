"""The report's HTML: fills in the template `page.html`."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from html import escape
from importlib.resources import files
from typing import Any

from scrapy_rep.protocol.challenge import WEB_BOT_AUTH
from scrapy_rep.protocol.foreign_text import printable
from scrapy_rep.protocol.words import A_PAGE, ACCESS_DENIED, FAILURES, counted, duration

JsonLine = Mapping[str, Any]

MAX_OUTAGE_LINES = 200
DENIED = "Access denied: HTTP 401 (Unauthorized), 402, 403 (Forbidden), 451"
NOTHING = "nothing {was} allowed, except by an older answer or after REP_UNREACHABLE_DAYS"
PROOF = "the site demands proof that the client is a browser"
CAUTION = "everything was allowed, by default: REP_STATUS_POLICY = 'cautious' refuses such sites"

# Kind, or kind and cause -> what the result for robots.txt meant, with what to do, and the section of
# docs/difficult-sites.md that explains more.
MEANINGS: Mapping[str | tuple[str, str], tuple[str, str]] = {
    "with rules": ("its rules {were} obeyed", ""),
    "without rules": ("everything was allowed", ""),
    ("without rules", A_PAGE): (
        "everything was allowed, by default: REP_STATUS_POLICY can refuse such sites",
        "Pages of HTML",
    ),
    **{("without rules", cause): (CAUTION, DENIED) for cause in ACCESS_DENIED},
    "restricted": ("nothing {was} allowed, by REP_STATUS_POLICY: ask the site for access", DENIED),
    "challenged": (f"{PROOF}: {NOTHING}. Write to the site", "Challenges"),
    ("challenged", WEB_BOT_AUTH): (f"the site asks for signed requests: {NOTHING}", "Signed requests (Web Bot Auth)"),
    **{("unreachable", kind): (f"{NOTHING}. {cure}", "Difficult sites") for kind, (_, cure) in FAILURES.items()},
}
_TAG = re.compile(r"\{\{([#^])(\w+)\}\}(.*?)\{\{/\2\}\}|\{\{(\w+)(?:\|(\w+))?\}\}", re.DOTALL)


def fill(template: str, values: JsonLine) -> str:
    """Return the template with the values filled in.

    The template has Mustache's variables, sections and inverted sections. `{{name|form}}` writes a value in one of
    FORMS. A section must not contain a section of the same name. (Twisted's templates are as safe, but 15 times as
    slow.)
    """

    def filled(tag: re.Match[str]) -> str:
        kind, section, inner, name, form = tag.groups()
        if name:
            return FORMS[form or "text"](values[name])
        value = values.get(section)
        if kind == "^":
            return "" if value else fill(inner, values)
        scopes = value if isinstance(value, list) else [value] if value else []
        return "".join(fill(inner, {**values, **scope} if isinstance(scope, Mapping) else values) for scope in scopes)

    return _TAG.sub(filled, template)


def html_page(lines: Sequence[JsonLine]) -> str:
    """Return the page for the objects of the JSON lines."""
    crawl, *others = lines
    origins = [line for line in others if line["type"] == "origin"]
    refusals = [line for line in others if line["type"] == "refused"]
    outages = _outages(crawl, origins)
    template = files(__package__).joinpath("page.html").read_text("utf-8")
    return fill(
        template,
        {
            **crawl,
            **_head(crawl),
            "kind_lines": [{**line, **_meaning(line, is_dry_run=crawl["dry_run"])} for line in crawl["kinds"]],
            "most_waited": max(wait["count"] for wait in crawl["waited"]["classes"]),
            "most_pages": max((line["pages"] for line in refusals), default=0),
            "origin_lines": [
                {**line, "redirected": line["final_url"] not in {"", line["robots_url"]}} for line in origins
            ],
            "refused_lines": [{**line, "as_written": line["reason"] in {"rule", "usage"}} for line in refusals],
            "usage_lines": _usage_lines(crawl),
            "has_usage": bool(crawl["usage"]),
            "outage_lines": outages,
            "outages_not_listed": crawl["outages"] - len(outages),
            "data": lines,
        },
    )


def _head(crawl: JsonLine) -> JsonLine:
    """Return the values above the tables: how the crawl was configured, and its numbers in words."""
    return {
        "lasted": crawl["ended"] - crawl["began"],
        "tokens": " or ".join(crawl["product_tokens"]),
        "settings": [{"name": name, "value": value} for name, value in crawl["settings"].items()],
        "versions": ", ".join(f"{name} {version}" for name, version in crawl["versions"].items()),
        "share": crawl["refused"] / (crawl["requests"] or 1),
        "exempt_by": " and ".join(
            f"{counted(number, 'request')} by {by}" for by, number in crawl["exempt"].items() if number
        ),
    }


def _meaning(line: JsonLine, *, is_dry_run: bool) -> JsonLine:
    """Return what the result of these origins meant, and the section of the docs."""
    text, section = MEANINGS.get((line["kind"], line["cause"])) or MEANINGS[line["kind"]]
    was, were = ("would have been",) * 2 if is_dry_run else ("was", "were")
    return {"meaning": text.format(was=was, were=were), "section": section.partition(":")[0]}


def _outages(crawl: JsonLine, origins: Sequence[JsonLine]) -> list[JsonLine]:
    """Return the rows of the time line, the earliest first. `start` is in seconds since the start of the crawl."""
    rows: list[JsonLine] = []
    for line in origins:
        for outage in line["outages"]:
            start = outage["began"] - crawl["began"]
            lasted = (crawl["ended"] if outage["ended"] is None else outage["ended"]) - outage["began"]
            before = max(-start, 0.0)
            times = {"start": max(start, 0.0), "before": before, "lasted": lasted, "shown": lasted - before}
            rows.append({"origin": line["origin"], **outage, **times})
    return sorted(rows, key=lambda row: row["began"])[:MAX_OUTAGE_LINES]


def _usage_lines(crawl: JsonLine) -> list[JsonLine]:
    """Return a row for each purpose: preference -> its pages and origins in words."""
    rows: dict[str, dict[str, str]] = {}
    for stated in crawl["usage"]:
        words = f"{counted(stated['pages'], 'page')}, {counted(stated['origins'], 'origin')}" if stated["pages"] else ""
        rows.setdefault(stated["purpose"], {})[stated["preference"]] = words
    return [{"purpose": purpose, **row} for purpose, row in rows.items()]


def _text(value: object) -> str:
    return escape(printable(str(value)))


def _href(url: str) -> str:
    """Return an href attribute. It is empty for a URL that was cut, and for one such as `javascript:...`."""
    is_good = url.startswith(("http://", "https://", "ftp://")) and not url.endswith("…")
    return f'href="{_text(url)}"' if is_good else ""


def _json(value: object) -> str:
    """Return JSON for a script element. It contains no `<`, which could end the element or begin a comment."""
    return json.dumps(value).replace("<", r"\u003c").replace(">", r"\u003e").replace("&", r"\u0026")


FORMS: Mapping[str, Callable[[Any], str]] = {
    "text": _text,
    "count": "{:,}".format,
    # No line breaks between a number and its unit.
    "seconds": lambda seconds: re.sub(r"(?<=\d) ", "&nbsp;", escape(duration(seconds))),
    "percent": lambda share: f"{share:.1%}" if share >= 0.001 or not share else "&lt; 0.1%",
    "time": lambda seconds: f"{datetime.fromtimestamp(seconds, timezone.utc):%Y-%m-%d %H:%M:%S}",
    "class": lambda words: escape(words.replace(" ", "-")),
    "href": _href,
    "json": _json,
}
"""Name -> a function that returns the value as text that is safe in HTML."""
