"""Writes and counts the findings of the command. The exit status follows from the counts."""

from __future__ import annotations

import errno
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable

from scrapy_rep.commands.findings import Finding, as_json, as_line, as_text
from scrapy_rep.protocol.foreign_text import printable
from scrapy_rep.protocol.words import VerdictReason, counted

ALL_ALLOWED, SOME_REFUSED, COULD_NOT_TELL = 0, 1, 3  # exit statuses; Scrapy uses 2 for wrong usage of any command

# The words of `Finding.word`, in the order of the summary.
COUNTED = ("allowed", "refused", "can't tell", "forgotten", "not stored")


class Output:
    def __init__(
        self,
        *,
        as_objects: bool = False,
        show: str | None = None,
        is_list: bool = False,
        leaves_out_allowed: bool = False,
    ) -> None:
        """- `as_objects`: write JSON objects.
        - `show`: as for `as_text`.
        - `is_list`: there may be many URLs. Write one line for each, and a summary to standard error: at the end, and
          on a terminal also while the command runs.
        - `leaves_out_allowed`: count the URLs that are allowed, but do not write them.

        Raises ValueError if standard output is closed.
        """
        self._as_objects = as_objects
        self._show = show
        self._is_list = is_list
        self._leaves_out_allowed = leaves_out_allowed
        if sys.stdout is None:
            raise ValueError("standard output is closed; redirect it to /dev/null instead")
        self._colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
        self._shows_progress = sys.stderr is not None and sys.stderr.isatty()
        self._began = time.monotonic()
        self._texts: list[str] = []
        self._written = self._unreachable = self._not_as_builtin = 0
        self._counts: Counter[str] = Counter()
        self._is_complete = False
        self.is_closed = False
        """Whether standard output can no longer be written, for example because `head` has closed it."""
        # A robots.txt may contain any character, and the encoding of a terminal or file may lack some of them.
        if hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(errors="backslashreplace")

    @property
    def exit_status(self) -> int:
        """The exit status. Before `finish`, it is COULD_NOT_TELL, because the crawl may fail to start, or end early."""
        if not self._is_complete or self._unreachable or self._counts["can't tell"]:
            return COULD_NOT_TELL
        return SOME_REFUSED if self._counts["refused"] else ALL_ALLOWED

    def write(self, finding: Finding) -> None:
        """Count the finding, if it is for a URL of the user. The next `flush` writes it, unless it is left out."""
        verdict = finding.verdict
        if not finding.is_listed:
            self._counts[finding.word] += 1
            is_unreachable = verdict is not None and verdict.reason is VerdictReason.UNREACHABLE
            self._unreachable += is_unreachable and not finding.allowed
            self._not_as_builtin += finding.compared is not None and bool(finding.compared.why)
        if self._leaves_out_allowed and finding.allowed:
            return
        if self._as_objects:
            text = json.dumps(as_json(finding, show=self._show is not None))
        elif self._is_list:
            text = as_line(finding)
        else:
            text = ("\n" if self._written else "") + as_text(finding, colour=self._colour, show=self._show)
        self._written += 1
        self._texts.append(text)

    def write_all(self, lists: Iterable[Iterable[Finding]]) -> None:
        """Write all findings, `flush` after each list, and `finish`. Stop if the reader has closed standard output."""
        for findings in lists:
            for finding in findings:
                self.write(finding)
            self.flush()
            if self.is_closed:
                break
        self.finish()

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

    def finish(self, if_empty: str = "") -> None:
        """Write the last findings, and for a list the summary. Without findings, write `if_empty`, except with JSON."""
        if if_empty and not self._written and not self._as_objects:
            self._texts.append(if_empty)
        self.flush()
        self._is_complete = True
        if self._is_list and sys.stderr is not None:
            self._show_progress("")
            print(self._summary(), file=sys.stderr)

    def _show_progress(self, text: str) -> None:
        """On a terminal, show the text in place of the last progress line."""
        if self._shows_progress:
            print(f"\r{text}\x1b[K", end="", file=sys.stderr, flush=True)

    def _summary(self) -> str:
        words = {word: f"{self._counts[word]:,} {word}" for word in COUNTED if self._counts[word]}
        if self._unreachable:
            words["refused"] += f" ({self._unreachable:,} of them because robots.txt is unreachable)"
        parts = [", ".join(words.values()) or "nothing to answer"]
        if self._not_as_builtin:
            parts.append(f"Scrapy's own middleware would answer {self._not_as_builtin:,} differently")
        number = self._counts.total()
        parts.append(f"{number / max(time.monotonic() - self._began, 1e-3):,.0f} a second")
        return f"{counted(number, 'URL')}: {'; '.join(parts)}"
