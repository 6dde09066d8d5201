"""The URLs that the command is asked about: its arguments, or lines of a file or of standard input, as they come."""

from __future__ import annotations

import select
from collections.abc import Iterator, Sequence

CHUNK = 65_536  # bytes
MAX_LINE = 1_048_576  # bytes


class Urls:
    """Iterated over, it gives lists of URLs; from a pipe, each list as soon as its lines are there."""

    def __init__(self, given: Sequence[str], file: str | None = None) -> None:
        """`file`: the name of a file with a URL on each line, to be used instead; `-` for standard input.

        Raises OSError if it cannot be opened.
        """
        self.given = list(given)
        self.file = file
        if file is not None:
            self._stream = open(0 if file == "-" else file, "rb", buffering=0, closefd=file != "-")  # noqa: SIM115

    def is_ready(self) -> bool:
        """Whether the next list is there without a wait."""
        if self.file is None:
            return True
        try:
            return bool(select.select([self._stream], [], [], 0)[0])
        except OSError:  # on Windows, only sockets can be asked
            return True

    def __iter__(self) -> Iterator[list[str]]:
        """Raises ValueError for a line that is too long for a URL."""
        if self.file is None:
            yield self.given
            return
        with self._stream:
            rest = b""
            while chunk := self._stream.read(CHUNK):
                lines, _, rest = (rest + chunk).rpartition(b"\n")
                if len(rest) > MAX_LINE:
                    raise ValueError(f"a line in the list of URLs is longer than {MAX_LINE:,} bytes")
                yield _urls_in(lines)
            yield _urls_in(rest)


def _urls_in(lines: bytes) -> list[str]:
    # As Python decodes arguments; what is not UTF-8 is told about in the answer.
    return [url for line in lines.decode("utf-8", "surrogateescape").split("\n") if (url := line.strip())]
