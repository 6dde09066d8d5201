"""Writes findings as they come and counts them. The exit status follows from the counts."""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter

from scrapy_rep.commands.findings import Finding, as_json, as_line, as_text, why_in_line
from scrapy_rep.protocol.robotstxt.rules import Verdict
from scrapy_rep.text import counted

ALL_ALLOWED, SOME_REFUSED, COULD_NOT_TELL = 0, 1, 3  # exit statuses; 2 is wrong usage, for every command
MAX_WHYS = 1_000  # reasons in words that are kept
COUNTED_WORDS = ("allowed", "refused", "unreachable", "can't tell", "forgotten", "not stored", "not as Scrapy's own")


class Output:
    counted_words: tuple[str, ...] = COUNTED_WORDS
    """In the order of the summary."""

    def __init__(self, *, as_objects: bool = False, show: str | None = None, is_list: bool = False) -> None:
        """`as_objects`: in JSON. `show`: as of `as_text`. `is_list`: there may be many URLs, so each has one line, and
        standard error has a summary, and the progress if it is a terminal."""
        self._as_objects = as_objects
        self._show = show
        self._is_list = is_list
        self._colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
        self._shows_progress = is_list and sys.stderr.isatty()
        self._began = time.monotonic()
        self._texts: list[str] = []
        self._written = self._seen = 0
        self._whys: dict[tuple[object, ...], str] = {}
        self._counts: Counter[str] = Counter()
        self.is_complete = False
        """Every URL was answered. It stays False if the crawl does not start, or ends early."""
        self.is_closed = False
        """The reader (`head`, a pager) has had enough."""
        # Strangers write any character, and not every terminal or file takes all of them.
        if hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(errors="backslashreplace")

    @property
    def exit_status(self) -> int:
        is_over = self.is_complete or self.is_closed
        if not is_over or self._counts["unreachable"] or self._counts["can't tell"]:
            return COULD_NOT_TELL
        return SOME_REFUSED if self._counts["refused"] else ALL_ALLOWED

    def write(self, finding: Finding) -> None:
        """Count the finding, and write it with the next `flush`."""
        self.count(finding)
        if self._as_objects:
            text = json.dumps(as_json(finding, show=self._show is not None))
        elif self._is_list:
            text = as_line(finding, self._why)
        else:
            text = ("\n" if self._written else "") + as_text(finding, colour=self._colour, show=self._show)
        self._written += 1
        self._texts.append(text)

    def count(self, finding: Finding) -> None:
        """Without writing it."""
        self._seen += 1
        if not finding.is_listed:
            self._counts[finding.word] += 1
            if finding.is_undecided:
                self._counts["unreachable"] += 1
            if finding.compared is not None and finding.compared.why:
                self._counts["not as Scrapy's own"] += 1

    def _why(self, verdict: Verdict) -> str:
        """As `why_in_line`, faster."""
        if verdict.decided_by is not None:
            return why_in_line(verdict)
        # Most URLs of a list have one of a few reasons.
        key = verdict.reason, verdict.allowed, verdict.product_token, verdict.answer
        words = self._whys.get(key)
        if words is None:
            if len(self._whys) >= MAX_WHYS:
                self._whys.clear()
            words = self._whys[key] = why_in_line(verdict)
        return words

    def flush(self) -> None:
        """Raises ValueError if standard output cannot be written, such as on a full disk."""
        self._show_progress("")
        if self._texts and not self.is_closed:
            try:
                print("\n".join(self._texts), flush=True)
            except BrokenPipeError:
                self._close()
            except OSError as exc:
                self._close()
                raise ValueError(f"standard output: {exc}") from None
        self._texts.clear()
        self._show_progress(self._summary())

    def _close(self) -> None:
        self.is_closed = True
        # The interpreter flushes once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    def finish(self, if_empty: str = "") -> None:
        """Write what is left, and the summary of a list; `if_empty` where there is nothing at all."""
        if if_empty and not self._written and not self._as_objects:
            self._texts.append(if_empty)
        self.flush()
        self.is_complete = True
        if self._is_list:
            self._show_progress("")
            print(self._summary(), file=sys.stderr)

    def _show_progress(self, text: str) -> None:
        """In the place of what was shown before."""
        if self._shows_progress:
            print(f"\r{text}\x1b[K", end="", file=sys.stderr, flush=True)

    def _summary(self) -> str:
        counts = ", ".join(f"{self._counts[word]:,} {word}" for word in self.counted_words if self._counts[word])
        speed = self._seen / max(time.monotonic() - self._began, 1e-3)
        return f"{counted(self._seen, 'URL')}: {counts or 'nothing to answer'}; {speed:,.0f} a second"
