"""Writes the findings: as text for people, as one line for each URL, or as JSON for programs.

The exit status follows from the counts of findings.
"""

import errno
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from scrapy.utils.datatypes import LocalCache

from scrapy_rep.commands.findings import Finding, line_in_words
from scrapy_rep.origin_info import OriginInfo
from scrapy_rep.protocol.answer import AccessResult
from scrapy_rep.protocol.foreign_text import printable, text_of
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.robotstxt.parser import Ignored, RobotsTxt
from scrapy_rep.protocol.robotstxt.patterns import is_robots_txt
from scrapy_rep.protocol.robotstxt.rules import VerdictReason
from scrapy_rep.protocol.robotstxt.syntax import Directive
from scrapy_rep.protocol.words import OF_GROUP, counted, duration
from scrapy_rep.usage import POLICY_TOKENS, PREFERENCE_WORDS
from scrapy_rep.usage.preferences import NEVER_REFUSED, Usage, usage_in
from scrapy_rep.usage.statements import ignored_statements

ALL_ALLOWED, SOME_REFUSED, COULD_NOT_TELL = 0, 1, 3  # exit statuses; Scrapy uses 2 for wrong usage of any command

GREEN, RED, YELLOW, BOLD = "32", "31", "33", "1"
COLOURS = {"allowed": GREEN, "refused": RED, "can't tell": YELLOW}  # of `Finding.word`, in the order of the summary

# `--json`
MAX_IGNORED = 1_000  # ignored lines; a hostile file has a hundred thousand
JSON_KEYS = """
    url allowed reason obeyed line rule group product_tokens robots_url final_url hops answer access source age good_for
    crawl_delay usage licenses sitemaps ignored ignored_count error
""".split()
MAX_FILES = 10_000  # robots.txt files of which `--json` remembers that it has written their lines

# The text for people.
MAX_NAMED = 10  # how many sitemaps or ignored lines are shown
LABEL = 13  # width of the label before each row, in columns

# `--show`
GROUP_KEYS = {directive.key for directive in Directive} - {Directive.SITEMAP.key}
AROUND = 3  # lines to show before and after the line that decides


class Output:
    def __init__(self, *, as_objects: bool = False, show: str | None = None, is_list: bool = False) -> None:
        """- `as_objects`: write JSON objects.
        - `show`: as for `as_text`.
        - `is_list`: there may be many URLs. Without `show`, write one line for each. Write a summary to standard error:
          at the end, and on a terminal also while the command runs.

        Raises ValueError if standard output is closed.
        """
        self._as_objects, self._show, self._is_list = as_objects, show, is_list
        if sys.stdout is None:
            raise ValueError("standard output is closed; redirect it to /dev/null instead")
        self._colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
        self._began = time.monotonic()
        self._texts: list[str] = []
        self._files: LocalCache[int, None] = LocalCache(limit=MAX_FILES)
        self._unreachable = self._not_as_builtin = 0
        self._counts: Counter[str] = Counter()
        self.exit_status = COULD_NOT_TELL
        """The exit status. `finish` sets it, because the crawl may fail to start, or end early."""
        self.is_closed = False
        """Whether standard output can no longer be written, for example because `head` has closed it."""
        # A robots.txt may contain any character, and the encoding of a terminal or file may lack some of them.
        if hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(errors="backslashreplace")

    def write(self, finding: Finding) -> None:
        """Count the finding. The next `flush` writes it."""
        verdict = finding.verdict
        self._counts[finding.word] += 1
        self._unreachable += verdict is not None and verdict.reason is VerdictReason.UNREACHABLE and not verdict.allowed
        self._not_as_builtin += finding.compared is not None and bool(finding.compared.why)
        if self._as_objects:
            about_file = file_as_json(finding, show=self._show is not None) if self._is_new_file(finding) else {}
            text = json.dumps(as_json(finding) | about_file)
        elif self._is_list and self._show is None:
            text = as_line(finding)
        else:
            is_first = self._counts.total() == 1
            text = ("" if is_first else "\n") + as_text(finding, colour=self._colour, show=self._show)
        self._texts.append(text)

    def _is_new_file(self, finding: Finding) -> bool:
        """Whether no earlier object has the lines of this robots.txt."""
        file = hash((finding.info and finding.info.robots_url, finding.robots and finding.robots.octets))
        is_new = file not in self._files
        self._files[file] = None
        return is_new

    def flush(self) -> None:
        """Write the findings that are left, unless the reader has closed standard output.

        Raises ValueError if writing fails for another reason, such as a full disk.
        """
        self._show_progress("")
        if self._texts and not self.is_closed:
            try:
                print("\n".join(self._texts), flush=True)
            except OSError as exc:
                self.is_closed = True
                # Python flushes standard output again when it exits, and would print another error.
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                if exc.errno != errno.EPIPE:
                    raise ValueError(f"standard output: {exc}") from None
        self._texts.clear()
        if self._is_list:
            self._show_progress(self._summary())

    def show_waiting(self, origin: str, since: float) -> None:
        """On a terminal, show that the command waits for this origin's robots.txt. The next `flush` removes the line.

        `since` is the beginning of the wait, in monotonic seconds.
        """
        waiting = f"waiting for the robots.txt of {printable(origin)}, {time.monotonic() - since:.0f} s"
        self._show_progress(f"{self._summary()}; {waiting}" if self._is_list else waiting)

    def finish(self) -> None:
        """Write the last findings, and for a list the summary."""
        self.flush()
        if self._counts and not self._unreachable and not self._counts["can't tell"]:
            self.exit_status = SOME_REFUSED if self._counts["refused"] else ALL_ALLOWED
        if self._is_list and sys.stderr is not None:
            self._show_progress("")
            print(self._summary(), file=sys.stderr)

    def _show_progress(self, text: str) -> None:
        """On a terminal, show the text in place of the last progress line."""
        if sys.stderr is not None and sys.stderr.isatty():
            print(f"\r{text}\x1b[K", end="", file=sys.stderr, flush=True)

    def _summary(self) -> str:
        number = self._counts.total()
        if not number:
            return "0 URLs: there is nothing to judge"
        words = {word: f"{self._counts[word]:,} {word}" for word in COLOURS if self._counts[word]}
        if self._unreachable:
            words["refused"] += f" ({self._unreachable:,} of them because robots.txt is unreachable)"
        parts = [", ".join(words.values())]
        if self._not_as_builtin:
            parts.append(f"Scrapy's own middleware would answer {self._not_as_builtin:,} differently")
        parts.append(f"{number / max(time.monotonic() - self._began, 1e-3):,.0f} a second")
        return f"{counted(number, 'URL')}: {'; '.join(parts)}"


def _ignored(robots: RobotsTxt) -> list[Ignored]:
    """Return all lines that are ignored, including those about usage preferences, sorted by line number."""
    return sorted((*robots.ignored, *ignored_statements(robots.octets)), key=lambda ignored: ignored.line)


def as_json(finding: Finding) -> dict[str, Any]:
    """Return the JSON object for `--json` (docs/command.md), with null for what is unknown, or is in `file_as_json`."""
    profile, verdict, info, usage = finding.profile, finding.verdict, finding.info, usage_in(finding.verdict)
    found: dict[str, Any] = {"url": finding.url, "obeyed": not profile.not_obeyed, "error": finding.error}
    found["product_tokens"] = list(profile.tokens)
    found["hops"] = [
        {"url": each.url, "answer": each.reason, "location": each.location or each.malformed_location or None}
        for each in finding.answers
    ]
    found["usage"] = [_usage_as_json(usage, category) for category in usage]
    found["crawl_delay"] = finding.crawl_delay
    if verdict is not None:
        found |= {"allowed": verdict.allowed, "reason": verdict.reason.value, "group": verdict.product_token}
        if verdict.decided_by is not None:
            found |= {"line": verdict.decided_by.line, "rule": str(verdict.decided_by)}
    if info is not None:
        last, robots_url = info.last, info.robots_url
        found |= {"robots_url": robots_url, "final_url": last.url or None, "answer": last.reason}
        found |= {"access": last.access.value, "source": info.meaning(profile.settings.status_policy)[1]}
        found["good_for"] = round(max(info.fetch_again_at - finding.now, 0.0), 3)
        if info.received_at is not None:
            found["age"] = round(max(finding.now - info.received_at, 0.0), 3)
    if finding.compared is not None:
        found["scrapy"] = asdict(finding.compared)
    return dict.fromkeys(JSON_KEYS) | found


def file_as_json(finding: Finding, *, show: bool = False) -> dict[str, Any]:
    """Return the part of the JSON object that is the same for all URLs of a robots.txt. `show` adds the file."""
    robots = finding.robots or RobotsTxt(b"")
    ignored = _ignored(robots)
    found = {
        "licenses": list(robots.licenses(finding.profile.tokens)),
        "sitemaps": list(robots.sitemaps),
        "ignored": [asdict(each) for each in ignored[:MAX_IGNORED]],
        "ignored_count": len(ignored),
    }
    return found | ({"robots_txt": robots.octets.decode("utf-8", "replace")} if show else {})


def _usage_as_json(usage: Usage, category: str) -> dict[str, Any]:
    stated = usage.deciding(category)
    line, directive = (stated.line, stated.directive) if stated is not None else (None, None)
    return {"category": category, "allowed": usage[category], "line": line, "directive": directive}


def as_line(finding: Finding) -> str:
    """Return one line: the answer, the URL and the reason, with a tab between them."""
    verdict, why = finding.verdict, finding.why
    if verdict is not None and verdict.access is not AccessResult.SUCCESS and verdict.answer:
        why = f"{why}: {printable(verdict.answer)}"
    if finding.not_read:
        why = f"{why}; {finding.not_read}"
    compared = f"\tScrapy's own: {finding.compared.words}" if finding.compared is not None else ""
    return f"{finding.word}\t{printable(finding.url, None)}\t{why}{compared}"


def as_text(finding: Finding, *, colour: bool = False, show: str | None = None) -> str:
    """Return several lines of text. Text of the URL and of the server is escaped.

    `show` adds lines of robots.txt: `lines` adds the ones that matter, `all` adds all.
    """
    lines = [_painted(printable(finding.url, None), BOLD, colour)]
    lines += (f"  {label:<{LABEL}}{words}" for label, words in _rows(finding, colour))
    robots, verdict = finding.robots, finding.verdict
    if show and robots is not None and verdict is not None and verdict.reason not in NEVER_REFUSED:
        line = verdict.decided_by.line if verdict.decided_by is not None else None
        shown = listing(robots, verdict.product_token, line, whole=show == "all")
        lines += (_painted(text, {">": YELLOW, "|": BOLD}.get(text[:1], ""), colour) for text in ("", *shown))
    return "\n".join(line.rstrip() for line in lines)


def _painted(text: str, code: str, colour: bool) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if colour and code else text


def _rows(finding: Finding, colour: bool) -> Iterator[tuple[str, str]]:
    """Yield the label and the words of each row. The label is empty if the row continues the row above."""
    profile, verdict = finding.profile, finding.verdict
    yield _painted(f"{finding.word:<{LABEL}}", COLOURS[finding.word], colour), finding.why
    if finding.compared is not None:
        yield "Scrapy's own", finding.compared.words
    if verdict is None:
        return
    if verdict.reason in NEVER_REFUSED:
        if is_robots_txt(finding.url) and (origin := Origin.of(finding.url)):
            yield "", f"to see the file: scrapy robots --show=all {origin}/"
        return
    if profile.not_obeyed:
        yield "not obeyed", profile.not_obeyed
    yield "crawler", " or ".join(map(printable, profile.tokens)) or "no name, so only the groups of '*' apply"
    if profile.file_name:
        yield "robots.txt", printable(profile.file_name, None)
    if finding.info is not None:
        yield from _origin_rows(finding, finding.info)
    if finding.robots is not None:
        yield from _file_rows(finding, finding.robots)


def _origin_rows(finding: Finding, info: OriginInfo) -> Iterator[tuple[str, str]]:
    yield "robots.txt", printable(info.robots_url)
    for answer in finding.answers:
        if answer.access is AccessResult.REDIRECT and answer.location is not None:
            yield "", f"{printable(answer.reason)} -> {printable(answer.location)}"
    if not finding.answers and info.last.url not in {"", info.robots_url}:
        yield "", f"-> {printable(info.last.url)}"
    words, source = info.meaning(finding.profile.settings.status_policy)
    is_none = info.last.access is AccessResult.UNAVAILABLE and info.failing_since is None
    counts_as = "no robots.txt, so" if is_none else f"{info.last.access.value},"
    yield "answer", f"{printable(info.last.reason)}: {counts_as} {words} ({source})"
    left = duration(max(round(info.fetch_again_at - finding.now), 0))
    age = round(finding.now - info.received_at) if info.received_at is not None else 0
    fetched = f"fetched {duration(age)} ago" if age > 0 else "fetched just now"
    if info.failing_since is None:
        yield "valid for", f"{left}, {fetched}"
    else:
        rules = f"; rules {fetched}" if info.robots is not None else ""
        failing = duration(max(round(finding.now - info.failing_since), 0))
        yield "next fetch", f"in {left}; unreachable for {failing}{rules}"


def _file_rows(finding: Finding, robots: RobotsTxt) -> Iterator[tuple[str, str]]:
    delay, longest = finding.crawl_delay, finding.profile.settings.crawl_delay_max
    if delay is not None:
        obeyed = "not obeyed" if not longest else "obeyed" if delay <= longest else f"obeyed up to {longest:g} s"
        yield "crawl-delay", f"{delay:g} s, {obeyed} (REP_CRAWL_DELAY_MAX = {longest:g})"
    if finding.not_read:
        yield "too long", finding.not_read
    yield from _many("usage", _usage_in_words(finding))
    yield from _many("licenses", [printable(address) for address in robots.licenses(finding.profile.tokens)])
    yield from _many("sitemaps", [printable(sitemap) for sitemap in robots.sitemaps])
    ignored = [f"line {each.line}, {each.reason}: {printable(each.text)}".rstrip(" :") for each in _ignored(robots)]
    yield from _many("ignored", ignored)


def _usage_in_words(finding: Finding) -> list[str]:
    """Return one text for each category that robots.txt mentions and each purpose of the crawler.

    The list is empty without a verdict, and for a page that is refused for another reason than a purpose.
    """
    usage = usage_in(finding.verdict)
    asked = finding.profile.purposes.categories if finding.word == "allowed" or usage else ()
    texts: list[str] = []
    for category in dict.fromkeys((*usage, *asked)):
        stated = usage.deciding(category)
        by = f" by {line_in_words(stated)}" if stated is not None else ""
        if stated is not None and stated.product_token in POLICY_TOKENS.values():
            by += f" ({OF_GROUP.format(token=stated.product_token)})"
        texts.append(f"{category}: {PREFERENCE_WORDS[usage.get(category)]}{by}")
    return texts


def _many(label: str, items: Sequence[str]) -> Iterator[tuple[str, str]]:
    for number, item in enumerate(items[:MAX_NAMED]):
        yield "" if number else label, item
    if len(items) > MAX_NAMED:
        yield "", f"and {len(items) - MAX_NAMED:,} more; see --json"


def listing(robots: RobotsTxt, product_token: str | None, deciding: int | None, *, whole: bool) -> Iterator[str]:
    """Yield lines of robots.txt, each after a mark: `>` for the line that decides, `|` in a group that is obeyed.

    With `whole`, all lines are shown. Otherwise `...` stands for lines that are left out, and these lines are shown:

    - if a line decides: the lines around it, and the user-agent lines of the groups that are obeyed;
    - if no line decides: the groups that are obeyed.
    """
    lines = robots.octets.splitlines()  # LF is their only line end
    width = len(str(len(lines)))
    obeyed = obeyed_lines(robots, product_token)
    matter = obeyed
    if deciding is not None:
        user_agents = {record.line for record in robots.records if record.key == "user-agent"}
        matter = user_agents & obeyed | set(range(deciding - AROUND, deciding + AROUND + 1))
    before = 0
    for number, line in enumerate(lines, start=1):
        if whole or number in matter:
            if number > before + 1:
                yield "  ..."
            mark = ">" if number == deciding else "|" if number in obeyed else " "
            yield f"{mark} {number:>{width}}  {printable(text_of(line).expandtabs(4), None)}"
            before = number
    if matter and before < len(lines):
        yield "  ..."


def obeyed_lines(robots: RobotsTxt, product_token: str | None) -> set[int]:
    """Return the numbers of the lines of each group that is obeyed, from the group's first record to its last."""
    token, groups, spans = (product_token or "").lower(), robots.groups, dict[int, list[int]]()
    for record in robots.records:
        if record.group is not None and record.key in GROUP_KEYS and token in groups[record.group].product_tokens:
            spans.setdefault(record.group, []).append(record.line)
    return {line for lines in spans.values() for line in range(lines[0], lines[-1] + 1)}
