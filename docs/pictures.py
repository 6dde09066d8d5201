"""Draws docs/origin.svg, docs/request.svg, docs/fetch.svg and docs/terminal.svg: `python docs/pictures.py`.

The script asks `protocol.lifecycle` for the states of an origin, and for the state after an answer, a failure and some
time. The steps of a fetch are the docstrings of `protocol.conversation`. Only the places of the boxes are fixed here.
The terminal shows the output of `scrapy robots` in docs/start.md.
tests/docs/test_pictures.py draws all pictures again and compares.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from pathlib import Path
from textwrap import wrap

from scrapy_rep.protocol import conversation
from scrapy_rep.protocol.answer import AccessResult, Answer
from scrapy_rep.protocol.entry import Entry, StoredResponse
from scrapy_rep.protocol.freshness import DAY, MAX_LIFETIME
from scrapy_rep.protocol.lifecycle import POLICY_OF_STATE, State, after_fetch, policy_at, state_of
from scrapy_rep.protocol.outage import MAX_UNSEEN
from scrapy_rep.protocol.robotstxt.parser import RobotsTxt
from scrapy_rep.protocol.robotstxt.rules import VerdictReason
from scrapy_rep.protocol.words import REASON_WORDS
from scrapy_rep.settings import SETTINGS

DOCS = Path(__file__).resolve().parent
URL = "https://example.com/robots.txt"
UNREACHABLE_DAYS: float = SETTINGS["REP_UNREACHABLE_DAYS"].default
RULES = RobotsTxt.parse(b"User-agent: *\nDisallow: /private/\n")

# The labels of the arrows: what changes the state of an origin.
ANSWER, FAILURE = "an answer", "a failure"
TENTH = "nine tenths; of its lifetime"
END = f"its lifetime,; at most {MAX_LIFETIME / 3600:g} h"
LONG = f"{UNREACHABLE_DAYS:g} days; of failures"
UNSEEN = f"{MAX_UNSEEN / DAY:g} days without an attempt"


def stored_responses(now: float) -> Iterator[StoredResponse]:
    """Yield a response with rules, one whose rules may not be used when stale, and one without rules."""
    for forbids_stale in (False, True):
        yield StoredResponse(
            Answer(URL, 200, AccessResult.SUCCESS, "HTTP 200"), now, now + DAY, RULES, forbids_stale=forbids_stale
        )
    yield StoredResponse(Answer(URL, 404, AccessResult.UNAVAILABLE, "HTTP 404"), now, now + DAY)


def failure(now: float) -> Answer:
    return Answer(URL, 503, access=AccessResult.UNREACHABLE, reason="HTTP 503", ended_at=now)


def moves() -> set[tuple[State, str, State]]:
    """Return all changes of state: the state before, the cause, the state after."""
    found: set[tuple[State, str, State]] = set()
    entries: list[tuple[Entry | None, float]] = [(None, 0.0)]
    entries += [(Entry(URL, stored), 0.0) for stored in stored_responses(0.0)]
    for first, began in entries:
        entry, now = first, began
        for _ in range(60):
            found |= set(_moves_of(entry, now))
            # The next failure comes when the stored answer has expired, and at least ten days later.
            stored = entry.stored if entry is not None else None
            now = max(now + 10 * DAY, stored.fresh_until if stored is not None else 0.0)
            entry = after_fetch(entry, URL, failure(now))
    return {(before, by, after) for before, by, after in found if before is not after}


def _moves_of(entry: Entry | None, at: float) -> Iterator[tuple[State, str, State]]:
    """Yield the changes of state of an entry from a moment on, until time alone changes its state no more."""
    now, over = at, UNREACHABLE_DAYS * DAY
    for _ in range(9):
        state = state_of(entry, now, over)
        for stored in stored_responses(now):
            yield state, ANSWER, state_of(after_fetch(entry, URL, stored), now, over)
        yield state, FAILURE, state_of(after_fetch(entry, URL, failure(now)), now, over)
        until = policy_at(entry, now, over).until if entry is not None else now
        if entry is None or until <= now:
            return
        yield state, _what_passes(entry, until), state_of(entry, until, over)
        now = until


def _what_passes(entry: Entry, moment: float) -> str:
    stored, outage = entry.stored, entry.outage
    if stored is not None and moment <= stored.fresh_until:
        return END if moment == stored.fresh_until else TENTH
    return UNSEEN if outage is not None and moment == outage.answer.ended_at + MAX_UNSEEN else LONG


# Drawing.

WIDE, HIGH = 250, 96
# The upper left corners of the boxes.
PLACES = {
    State.UNKNOWN: (20, 70),
    State.FRESH: (395, 70),
    State.AGEING: (770, 70),
    State.UNREACHABLE: (20, 290),
    State.STALE: (770, 290),
    State.LONG_UNREACHABLE: (20, 510),
    State.UNREACHABLE_STALE: (770, 510),
}
STYLE = """
text { font: 13px system-ui, sans-serif; fill: #1f2328 }
.title { font-weight: 600 }
.dim { fill: #59636e }
rect { fill: #f6f8fa; stroke: #59636e }
path { stroke: #59636e; fill: none; marker-end: url(#end) }
marker path { fill: #59636e; stroke: none }
.label { stroke: #ffffff; stroke-width: 5px; paint-order: stroke }
.back { fill: #ffffff; stroke: none }
@media (prefers-color-scheme: dark) {
text { fill: #f0f6fc }
.dim { fill: #9198a1 }
rect { fill: #151b23; stroke: #9198a1 }
path { stroke: #9198a1 }
marker path { fill: #9198a1 }
.label { stroke: #0d1117 }
.back { fill: #0d1117 }
}"""


def svg(width: int, height: int, title: str, parts: list[str]) -> str:
    """Return the picture as SVG, in light or dark colours as the reader's system prefers."""
    marker = (
        '<marker id="end" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        '<path d="M0 0 8 4 0 8z"/></marker>'
    )
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="{title}">'
    back = f'<rect class="back" width="{width}" height="{height}"/>'
    return "\n".join([head, f"<style>{STYLE}\n</style><defs>{marker}</defs>", back, *parts, "</svg>\n"])


def box(left: int, top: int, width: int, lines: list[str]) -> str:
    """Return a box with lines of text. The first line is its title."""
    texts = [
        f'<text x="{left + 12}" y="{top + 22 + 19 * number}" class="{kind}">{escape(line)}</text>'
        for number, (line, kind) in enumerate(zip(lines, ["title", *["dim"] * len(lines)], strict=False))
    ]
    return f'<rect x="{left}" y="{top}" width="{width}" height="{20 + 19 * len(lines)}" rx="8"/>' + "".join(texts)


def arrow(start: tuple[float, float], end: tuple[float, float], label: str) -> str:
    """Return an arrow with its label in the middle. A `; ` in the label begins a new line of text."""
    (left, top), (right, bottom) = start, end
    lines = label.split("; ")
    middle, centre = (left + right) / 2, (top + bottom) / 2 - 16 * (len(lines) - 1) / 2 + 4
    texts = "".join(
        f'<text class="label" x="{middle:g}" y="{centre + 16 * number:g}" text-anchor="middle">{escape(line)}</text>'
        for number, line in enumerate(lines)
    )
    return f'<path d="M{left:g} {top:g}L{right:g} {bottom:g}"/>{texts}'


def between(before: State, after: State) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the ends of an arrow, on the borders of two boxes. The arrow back runs beside it."""
    (left, top), (to_left, to_top) = PLACES[before], PLACES[after]
    if left == to_left:
        x = left + WIDE * (0.25 if to_top > top else 0.75)
        return ((x, top + HIGH), (x, to_top)) if to_top > top else ((x, top), (x, to_top + HIGH))
    forward = to_left > left
    beside = HIGH * (0.3 if forward else 0.7)
    start = (left + WIDE if forward else left, top + beside)
    return start, (to_left if forward else to_left + WIDE, to_top + beside)


def origin_picture() -> str:
    """Return the picture of the states of an origin, and of what changes them."""
    found = moves()
    shown = {move for move in found if move[1] not in {ANSWER, UNSEEN} or move[0] is State.UNKNOWN}
    ways: dict[tuple[State, State], list[str]] = {}
    for before, by, after in sorted(shown, key=lambda move: (move[0].name, move[1], move[2].name)):
        ways.setdefault((before, after), []).append(by)
    notes = (
        "From each state, an answer (rules, or a status that decides) leads to FRESH.",
        f"After {UNSEEN}, an outage is forgotten: the origin is UNKNOWN, or STALE if an answer is stored.",
    )
    parts = [f'<text x="20" y="{24 + 20 * number}">{note}</text>' for number, note in enumerate(notes)]
    parts += [arrow(*between(*ends), " or; ".join(by)) for ends, by in ways.items()]
    for state, (left, top) in PLACES.items():
        basis, refetch, _source = POLICY_OF_STATE[state]
        text = [state.name, f"decides: {basis.value}", f"fetched: {REFETCH_IN_SHORT[refetch.name]}"]
        parts.append(box(left, top, WIDE, [*text, SHORT[state]]))
    return svg(1040, 626, "The states of an origin", parts)


REFETCH_IN_SHORT = {
    "FIRST": "before the decision",
    "MEANWHILE": "in the background",
    "NOT": "not yet",
}
SHORT = {
    State.UNKNOWN: "nothing is known that decides",
    State.FRESH: "an answer within its lifetime",
    State.AGEING: "the last tenth of its lifetime",
    State.STALE: "an answer past its lifetime",
    State.UNREACHABLE: "an outage, no rules to use",
    State.UNREACHABLE_STALE: "an outage, rules from before",
    State.LONG_UNREACHABLE: "a long outage, no rules",
}


def request_picture() -> str:
    """Return the picture of the way of one request, with the modules that it passes."""
    reasons = [REASON_WORDS[reason.value] for reason in VerdictReason]
    passes = ", ".join(words.allowed for words in reasons if words.source.startswith(("REP_EX", "RFC 9309 2.2.2, ")))
    refuses = [words.refused for words in reasons if words.refused]
    left, right = 20, 560
    return svg(
        1040,
        660,
        "The way of a request",
        [
            arrow((150, 60), (150, 110), ""),
            arrow((150, 170), (150, 230), "yes"),
            arrow((400, 140), (right, 140), "no"),
            arrow((150, 308), (150, 400), "yes"),
            arrow((400, 269), (right, 269), "no"),
            arrow((right + 100, 326), (400, 425), "then it is known"),
            arrow((150, 478), (150, 540), "refused"),
            arrow((400, 450), (right, 450), "allowed"),
            box(left, 20, 380, ["A request"]),
            box(left, 110, 380, ["gate: does a robots.txt apply to it?", "Its origin: scheme, host, port"]),
            box(right, 110, 460, ["The request goes on", passes]),
            box(
                left,
                230,
                380,
                ["gate: is its robots.txt known?", "fetching.memory: no wait, no fetch"],
            ),
            box(
                right,
                230,
                460,
                [
                    "The request waits",
                    "waiting.at_scheduler, or waiting.in_downloader",
                    "fetching.single_flight: REP_STORAGE, then one fetch; while robots.txt is",
                    "unreachable, more rounds within REP_UNREACHABLE_WAIT",
                ],
            ),
            box(
                left,
                400,
                380,
                [
                    "protocol.lifecycle: the policy of the origin",
                    "protocol.robotstxt: the verdict",
                    "A rule that fits longest decides",
                ],
            ),
            box(right, 420, 460, ["The request goes on to the site"]),
            box(
                left,
                540,
                1000,
                [
                    "refusals: ForbiddenByRobots to the errback, a stat, a log line",
                    "; ".join(refuses[:3]),
                    "; ".join(refuses[3:]),
                ],
            ),
        ],
    )


def step(kind: type, more: str) -> list[str]:
    """Return the name of a step of a conversation, the first sentence of its docstring, and what may follow."""
    return [kind.__name__, *wrap((kind.__doc__ or "").partition("\n")[0], 66), more]


def fetch_picture() -> str:
    """Return how one fetch goes on, step by step."""
    left, wide = 20, 520
    return svg(
        1040,
        520,
        "One fetch of a robots.txt",
        [
            arrow((290, 116), (290, 160), "has to fetch"),
            arrow((290, 238), (290, 300), "the last answer"),
            arrow((290, 376), (290, 440), "nobody waits, or the next fetch begins too late"),
            arrow((540, 330), (800, 96), "requests wait"),
            arrow((700, 58), (540, 58), "the next round"),
            box(left, 20, wide, step(conversation.Find, "If that entry suffices, the round ends without a request.")),
            box(left, 160, wide, step(conversation.Ask, "A redirect or a retry asks once more.")),
            box(left, 300, wide, step(conversation.Round, "fetch_again_at is when the next one may begin.")),
            box(700, 20, 320, ["Pause", "Outage.pause_at says how long", "requests wait."]),
            box(left, 440, wide, ["The end", "The policy decides about all requests that have waited."]),
        ],
    )


def terminal_picture() -> str:
    """Return the picture of a terminal: the first call of `scrapy robots` in docs/start.md, and its output."""
    page = (DOCS / "start.md").read_text("utf-8")
    command, url, rows = re.findall(r"^(scrapy robots .*)\n```\n\n```text\n(.*)\n((?:  .*\n)+)", page, re.MULTILINE)[0]
    lines = [
        f'<text x="24" y="64"><tspan class="dim">$</tspan> {escape(command)}</text>',
        f'<text x="24" y="87">{escape(url)}</text>',
    ]
    for number, row in enumerate(rows.splitlines()):
        label, value = row[2:15].rstrip(), row[15:]
        kind = "refused" if label == "refused" else "dim"
        lines.append(
            f'<text x="40" y="{110 + 23 * number}" class="{kind}">{label}</text>'
            f'<text x="150" y="{110 + 23 * number}">{escape(value)}</text>'
        )
    buttons = "".join(f'<circle cx="{24 + 18 * number}" cy="21" r="5"/>' for number in range(3))
    height = 110 + 23 * len(rows.splitlines())
    frame = f'<rect x="1" y="1" width="738" height="{height - 2}" rx="8"/>{buttons}'
    return svg(740, height, f"A terminal: {escape(command)}", [f"<style>{TERMINAL}</style>", frame, *lines])


TERMINAL = """
text { font: 14px ui-monospace, Menlo, Consolas, monospace }
circle { fill: #59636e }
.refused { fill: #cf222e; font-weight: 600 }
@media (prefers-color-scheme: dark) { .refused { fill: #ff7b72 } }
"""

PICTURES = {
    "origin.svg": origin_picture,
    "request.svg": request_picture,
    "fetch.svg": fetch_picture,
    "terminal.svg": terminal_picture,
}

if __name__ == "__main__":
    for name, draw in PICTURES.items():
        (DOCS / name).write_text(draw(), "utf-8")
