"""An archive's records, read by `warcio`."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warcio.archiveiterator import ArchiveIterator
from warcio.cli import main


@dataclass(frozen=True)
class Record:
    kind: str
    url: str | None
    fields: Any
    """The record's own header fields, with the names that `warcio` gives them: `fields["WARC-Date"]`."""
    http: Any
    """The status line and header fields of the response; None if there is none."""
    body: bytes

    @property
    def values(self) -> dict[str, Any]:
        """The fields of a metadata record."""
        return dict(json.loads(self.body))


def records(folder: Path) -> list[Record]:
    """Return the records of all archives in the folder. Raises an exception if a digest is wrong."""
    found: list[Record] = []
    for path in sorted(folder.glob("*.warc.gz")):
        with path.open("rb") as file:
            for record in ArchiveIterator(file, check_digests="raise"):
                url, body = record.rec_headers["WARC-Target-URI"], record.raw_stream.read()
                found.append(Record(record.rec_type, url, record.rec_headers, record.http_headers, body))
    return found


def checked(folder: Path) -> str:
    """Return the output of `warcio check` for the folder's archives; empty if they are valid."""
    said = io.StringIO()
    with redirect_stdout(said), redirect_stderr(said):
        try:
            main(["check", *map(str, sorted(folder.glob("*.warc.gz")))])
        except SystemExit as exc:
            if exc.code:
                said.write(f"exit status {exc.code}")
    return said.getvalue()
