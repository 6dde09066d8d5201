"""The CPU time that an archive (REP_ARCHIVE) takes for each robots.txt.

    python tests/benchmarks/evidence.py FOLDER [--files K]

FOLDER has real robots.txt files. They are written to an archive until it has K of them.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from hashlib import sha256
from itertools import cycle, islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))

from scrapy import Request
from scrapy.http import Response
from warcs import checked

from scrapy_rep.extensions.archive import WarcFile
from scrapy_rep.protocol.answer import AccessResult, Answer
from scrapy_rep.protocol.entry import Entry, StoredResponse
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.robotstxt.parser import RobotsTxt

LIMIT = 512_000


def archived(bodies: list[bytes], number: int) -> None:
    folder, now = Path(tempfile.mkdtemp()), time.time()
    archive, success = WarcFile(folder / "robots.warc.gz", {}, LIMIT, number), AccessResult.SUCCESS
    took = 0.0
    for index, body in enumerate(islice(cycle(bodies), number)):
        origin = Origin.of(f"https://site{index}.example/")
        assert origin is not None
        url, robots, digest = origin.robots_url, RobotsTxt.parse(body), sha256(body).hexdigest()
        stored = StoredResponse(Answer(url, 200, success, "HTTP 200"), now, now + 86_400, robots, sha256=digest)
        answer, response = (
            Answer(url, 200, success, "HTTP 200", body=body),
            Response(url, body=body, request=Request(url)),
        )
        began = time.process_time()
        archive.write_answer(answer, response, now, origin)
        archive.write_entry(origin, now, Entry(url, stored))
        took += time.process_time() - began
    print(f"archived {number:,} files: {1_000 * took / number:.2f} ms of CPU time for each")
    print("`warcio check` says:", checked(folder) or "nothing")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--files", type=int, default=10_000)
    options = parser.parse_args()
    archived(
        [file.read_bytes()[: LIMIT + 1] for file in sorted(options.folder.iterdir()) if file.is_file()], options.files
    )
