"""The report as one HTML page without outside references: for light and dark, and for a phone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from html import escape
from typing import Any

from scrapy_rep.text import printable

# Access result -> its colour's name in the style, and what it means for a reader.
ACCESS = {
    "success": ("good", "its rules were obeyed"),
    "unavailable": ("plain", "no robots.txt: everything was allowed"),
    "restricted": ("warn", "nothing was allowed, by REP_STATUS_POLICY"),
    "unreachable": ("bad", "nothing was allowed but what rules from before the outage did"),
    "not known": ("none", "the crawl ended before robots.txt had answered"),
}
REFUSED_BY = {
    "rule": "by a rule",
    "restricted": "by REP_STATUS_POLICY",
    "unreachable": "while robots.txt was unreachable",
}

AT_A_LOOK = 10  # of a list

STYLE = """
:root { color-scheme: light dark; --text: #1d2430; --dim: #5b6575; --ground: #fff; --line: #d9dee6;
  --good: #2b8a57; --plain: #7d8ba1; --warn: #c58a12; --bad: #c4403c; --none: #b7bfca; }
@media (prefers-color-scheme: dark) { :root { --text: #e4e8ee; --dim: #9aa5b5; --ground: #14181f; --line: #303845;
  --good: #4cb680; --plain: #7f8da3; --warn: #dda63a; --bad: #e5706b; --none: #4a5464; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 60rem; padding: 1.2rem 1rem 3rem; background: var(--ground); color: var(--text);
  font: 16px/1.45 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.4rem; margin: 0; } h2 { font-size: 1.05rem; margin: 2.2rem 0 .6rem; }
p { margin: .3rem 0; } .dim { color: var(--dim); } code { font: .9em ui-monospace, monospace; }
svg { display: block; width: 100%; } svg text { fill: var(--dim); font: 12px system-ui, sans-serif; }
.figures { display: flex; flex-wrap: wrap; gap: .4rem 2rem; margin: 1rem 0 0; padding: 0; list-style: none; }
.figures b { display: block; font-size: 1.5rem; line-height: 1.2; font-variant-numeric: tabular-nums; }
.rows { list-style: none; margin: 0; padding: 0; }
.rows li { display: grid; grid-template-columns: 1fr auto; gap: 0 1rem; padding: .35rem 0;
  border-top: 1px solid var(--line); }
.rows .count { font-variant-numeric: tabular-nums; text-align: right; }
.rows .bar { grid-column: 1 / -1; height: 4px; border-radius: 2px; }
summary { padding: .5rem 0; color: var(--dim); cursor: pointer; }
.key { display: inline-block; width: .7em; height: .7em; border-radius: 2px; margin-right: .4em; }
.good { fill: var(--good); background: var(--good); } .plain { fill: var(--plain); background: var(--plain); }
.warn { fill: var(--warn); background: var(--warn); } .bad { fill: var(--bad); background: var(--bad); }
.none { fill: var(--none); background: var(--none); } .axis { stroke: var(--line); }
"""


def page(lines: Iterable[Mapping[str, Any]]) -> str:
    """The page for the report's objects."""
    of_type: dict[str, list[Mapping[str, Any]]] = {"crawl": [], "origin": [], "rule": []}
    for line in lines:
        of_type[line["type"]].append(line)
    (crawl,) = of_type["crawl"]
    origins, rules = of_type["origin"], of_type["rule"]
    sections = [
        _head(crawl),
        _access(crawl["origins"]),
        _refusals(crawl, rules),
        _refused_origins(origins),
        _waits(crawl["waited"]),
        _outages(crawl, origins),
        _delays(crawl, origins),
    ]
    title = f"robots.txt: {_text(crawl['spider'])}"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(filter(None, sections))
        + "\n</body>\n</html>\n"
    )


def _text(value: object) -> str:
    """Whatever strangers wrote is text, and nothing else."""
    return escape(printable(str(value)))


def _count(number: float) -> str:
    return f"{number:,.0f}".replace(",", "\u202f")


def _seconds(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def _section(title: str, *parts: str) -> str:
    return f"<section>\n<h2>{title}</h2>\n" + "\n".join(filter(None, parts)) + "\n</section>"


def _rows(rows: Iterable[tuple[str, str, float, str]]) -> str:
    """What, how much in words, how much of the largest, the bar's colour."""
    rows = list(rows)
    most = max((size for _what, _words, size, _colour in rows), default=0) or 1
    return _list(
        f'<li><span>{what}</span><span class="count">{words}</span>'
        f'<span class="bar {colour}" style="width:{100 * size / most:.1f}%"></span></li>'
        for what, words, size, colour in rows
    )


def _list(items: Iterable[str]) -> str:
    """The first of them, and the others behind a click."""
    items = list(items)
    first, others = items[:AT_A_LOOK], items[AT_A_LOOK:]
    more = f"<details>\n<summary>{len(others)} more</summary>\n{_ul(others)}\n</details>" if others else ""
    return _ul(first) + more


def _ul(items: Iterable[str]) -> str:
    return '<ul class="rows">\n' + "\n".join(items) + "\n</ul>"


def _head(crawl: Mapping[str, Any]) -> str:
    began = datetime.fromtimestamp(crawl["began"], timezone.utc)
    lasted = _seconds(max(crawl["ended"] - crawl["began"], 0.0))
    shadow = "<p>REP_SHADOW was on: what would be refused was fetched all the same.</p>" if crawl["shadow"] else ""
    refused = "that would be refused" if crawl["shadow"] else "refused"
    figures = [
        (sum(crawl["origins"].values()), "origin", ""),
        (sum(crawl["refused"].values()), "page", refused),
        (crawl["outages"]["began"], "outage", "of a robots.txt"),
        (crawl["waited"]["requests"], "request", "waited for one"),
    ]
    items = "".join(
        f"<li><b>{_count(number)}</b>{noun}{'' if number == 1 else 's'} {rest}</li>" for number, noun, rest in figures
    )
    return (
        f"<h1>What robots.txt meant to <code>{_text(crawl['spider'])}</code></h1>\n"
        f'<p class="dim">Began {began:%Y-%m-%d %H:%M:%S} UTC, lasted {lasted}, ended as'
        f' <code>{_text(crawl["reason"])}</code></p>\n{shadow}<ul class="figures">{items}</ul>'
    )


def _access(origins: Mapping[str, int]) -> str:
    total, x, bars = sum(origins.values()), 0.0, []
    present = [(name, *ACCESS[name], origins[name]) for name in ACCESS if origins.get(name)]
    for name, colour, _meaning, count in present:
        width = 1000 * count / total
        bars.append(
            f'<rect class="{colour}" x="{x:.1f}" y="0" width="{max(width - 2, 1):.1f}" height="26">'
            f"<title>{name}: {count}</title></rect>"
        )
        x += width
    if not present:
        return ""
    picture = (
        f'<svg viewBox="0 0 1000 26" preserveAspectRatio="none" height="26" role="img"'
        f' aria-label="origins by access result">{"".join(bars)}</svg>'
    )
    legend = "".join(
        f'<li><span><span class="key {colour}"></span>{name}<br><span class="dim">{meaning}</span></span>'
        f'<span class="count">{_count(count)}</span></li>'
        for name, colour, meaning, count in present
    )
    return _section("Origins, by what their robots.txt came to", picture, f'<ul class="rows">{legend}</ul>')


def _refusals(crawl: Mapping[str, Any], rules: Sequence[Mapping[str, Any]]) -> str:
    if not crawl["refused"]:
        return _section("Pages refused", '<p class="dim">None.</p>')
    kinds = ", ".join(f"{_count(pages)} {REFUSED_BY.get(kind, kind)}" for kind, pages in crawl["refused"].items())
    rows = (
        (
            _rule(rule),
            _count(rule["pages"]),
            rule["pages"],
            "plain",
        )
        for rule in rules
    )
    rest = crawl["rules_not_named"]
    more = f'<p class="dim">{_count(rest["pages"])} more pages by {_count(rest["rules"])} more rules.</p>'
    return _section("Pages refused, by rule", f"<p>{kinds}.</p>", _rows(rows), more if rest["rules"] else "")


def _rule(rule: Mapping[str, Any]) -> str:
    where = f"{_text(rule['robots_url'])}, line {rule['line']}"
    return f'<code>{_text(rule["rule"])}</code><br><span class="dim">{where}</span>'


def _refused_origins(origins: Sequence[Mapping[str, Any]]) -> str:
    refused = sorted((o for o in origins if o["refused"]), key=lambda o: -o["refused"])
    rows = (
        (
            f'{_text(o["origin"])}<br><span class="dim">{_text(o["answer"])}: {_text(o["access"])}</span>',
            _count(o["refused"]),
            o["refused"],
            ACCESS.get(o["access"], ("plain", ""))[0],
        )
        for o in refused
    )
    return _section("Pages refused, by origin", _rows(rows)) if refused else ""


def _waits(waited: Mapping[str, Any]) -> str:
    if not waited["requests"]:
        return ""
    most, columns = max(waited["counts"]), []
    names = [f"≤ {end:g} s" if end is not None else "longer" for end in waited["at_most"]]
    for index, (name, count) in enumerate(zip(names, waited["counts"], strict=True)):
        x, height = 8 + index * 48, 90 * count / most
        columns.append(
            f'<rect class="plain" x="{x}" y="{110 - height:.1f}" width="36" height="{height:.1f}"/>'
            f'<text x="{x + 18}" y="{105 - height:.1f}" text-anchor="middle">{_count(count) if count else ""}</text>'
            f'<text x="{x + 18}" y="126" text-anchor="middle">{name}</text>'
        )
    picture = (
        '<svg viewBox="0 0 350 132" style="max-width:32rem" role="img" aria-label="requests by how long they waited">'
        f'<line class="axis" x1="0" x2="350" y1="110" y2="110"/>{"".join(columns)}</svg>'
    )
    words = f"<p>They waited {_seconds(waited['seconds'])} in all, {_seconds(waited['longest'])} at the longest.</p>"
    return _section("Waiting for robots.txt", words, picture)


def _outages(crawl: Mapping[str, Any], origins: Sequence[Mapping[str, Any]]) -> str:
    began, ended = crawl["began"], max(crawl["ended"], crawl["began"] + 0.001)
    rows = []
    for origin in (o for o in origins if o["outages"]):
        bars = []
        for outage in origin["outages"]:
            start = max(outage["began"], began)
            end = ended if outage["ended"] is None else outage["ended"]
            x, width = 1000 * (start - began) / (ended - began), 1000 * (end - start) / (ended - began)
            bars.append(
                f'<rect class="{"bad" if outage["ended"] is None else "warn"}" x="{min(x, 992):.1f}" y="0"'
                f' width="{max(width, 8):.1f}" height="10"/>'
            )
        last = origin["outages"][-1]
        end_in_words = "not over at the end" if last["ended"] is None else f"came back: {_text(last['ended_in'])}"
        lasted = _seconds((ended if last["ended"] is None else last["ended"]) - last["began"])
        rows.append(
            f'<li><span>{_text(origin["origin"])}<br><span class="dim">{_text(last["cause"])}</span></span>'
            f'<span class="count">{lasted}<br><span class="dim">{end_in_words}</span></span>'
            '<svg style="grid-column:1/-1" viewBox="0 0 1000 10" preserveAspectRatio="none" height="10">'
            f'<line class="axis" x1="0" x2="1000" y1="5" y2="5"/>{"".join(bars)}</svg></li>'
        )
    if not rows:
        return ""
    words = (
        f"<p>{_count(crawl['outages']['began'])} in all, {_count(crawl['outages']['not_over'])} of them not over at"
        " the end. Each line is the time of the crawl, from its beginning to its end.</p>"
    )
    return _section("Outages", words, _list(rows))


def _delays(crawl: Mapping[str, Any], origins: Sequence[Mapping[str, Any]]) -> str:
    delayed = sorted((o for o in origins if o["delay_asked"]), key=lambda o: -o["delay_asked"])
    if not delayed:
        return ""
    most = crawl["crawl_delay_max"]
    words = (
        f"EffectiveRules up to {_seconds(most)} (REP_CRAWL_DELAY_MAX)."
        if most
        else "Not obeyed: REP_CRAWL_DELAY_MAX is 0."
    )
    rows = (
        (
            _text(o["origin"]),
            f"asks for {_seconds(o['delay_asked'])}"
            + (f", got {_seconds(o['delay_obeyed'])}" if o["delay_obeyed"] else ""),
            o["delay_asked"],
            "good" if o["delay_obeyed"] >= o["delay_asked"] else "warn" if o["delay_obeyed"] else "none",
        )
        for o in delayed
    )
    return _section("Crawl-delay", f"<p>{words}</p>", _rows(rows))
