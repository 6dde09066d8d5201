"""The example project: what it prints, what it leaves behind, and that the README shows what it prints."""

from __future__ import annotations

import atexit
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from zipfile import ZipFile

import pytest
from doc_pages import PAGES, README, ROOT, marked
from installed_scrapy import TIMEOUT, as_now
from processes import run_python

# Nobody listens at this proxy: the crawl needs no network, and the machine's own proxy does not break it.
ENVIRONMENT = {**os.environ, "http_proxy": "http://127.0.0.1:9"}
MOST = 120  # seconds for a crawl and all that it started, on a machine that has much else to do

Refusals = dict[str, str]
"""Page -> what refused it."""

NOT_IN_GROUPS_OF_ITS_OWN = {
    "gallery": ("HTTP 200", "success (rules obeyed)", "/ /catalogue.pdf", {"/prices.pdf": "line 2, Disallow: /*.pdf$"}),
    "cafe": ("HTTP 404", "unavailable (all allowed)", "/ /menu", {}),
    "club": ("HTTP 403", "unavailable (all allowed)", "/ /events", {}),
    "harbour": ("HTTP 503", "unreachable (none allowed)", "", {"/": "HTTP 503"}),
    "maze": ("302 -> maze", "unavailable (all allowed)", "/ /exit", {}),
    "tunnel": ("no answer", "unreachable (none allowed)", "", {"/": TIMEOUT}),
}
TOUR = {
    "library": (
        "HTTP 200",
        "success (rules obeyed)",
        "/ /archive/ /desk/",
        {"/members/": "line 6, Disallow: /members/"},
    ),
    "annex": ("301 -> library", "success (rules obeyed)", "/ /archive/", {"/members/": "line 6, Disallow: /members/"}),
}
TOUR_BUILTIN = {
    "library": ("HTTP 200", "", "/ /archive/ /desk/", {"/members/": "Forbidden by robots.txt"}),
    "gallery": ("HTTP 200", "", "/ /catalogue.pdf", {"/prices.pdf": "Forbidden by robots.txt"}),
    "cafe": ("HTTP 404", "", "/ /menu", {}),
    "club": ("HTTP 403", "", "", {"/": "Forbidden by robots.txt"}),
    "harbour": ("HTTP 503", "", "/ /timetable", {}),
    "annex": ("HTTP 200", "", "/ /archive/", {"/members/": "Forbidden by robots.txt"}),
    "maze": ("no answer", "", "/ /exit", {}),
    "tunnel": ("no answer", "", "/ /lights", {}),
}
TOUR_AS_GUEST = {
    "library": (
        "HTTP 200",
        "success (rules obeyed)",
        "/ /members/",
        {"/archive/": "line 2, Disallow: /archive/", "/desk/": "line 3, Disallow: /desk/"},
    ),
    "annex": ("301 -> library", "success (rules obeyed)", "/ /members/", {"/archive/": "line 2, Disallow: /archive/"}),
}


@dataclass(frozen=True)
class Ended:
    """A crawl that has ended, and every process that it started."""

    status: int
    stdout: str
    stderr: str

    @property
    def table(self) -> dict[str, tuple[str, str, str, Refusals]]:
        """Origin -> robots.txt's answer, access result, pages fetched, pages refused."""
        header, *lines = self.stdout.split("\n\n")[1].splitlines()
        starts = [match.start() for match in re.finditer(r"\S+(?: \S+)*", header)]
        table: dict[str, tuple[str, str, str, Refusals]] = {}
        refusals: Refusals = {}
        for line in lines:
            cells = [line[start:end].strip() for start, end in zip(starts, [*starts[1:], None], strict=True)]
            origin, answer, access, fetched, page, by = cells
            if origin:
                refusals = {}
                table[origin] = (answer, access, fetched, refusals)
            refusals.update({page: by} if page else {})
        return table


@contextmanager
def crawling(spider: str, *options: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "scrapy", "crawl", spider, "-s", "WEB_PORT=0", *options],
        cwd=ROOT / "example_project",
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        process.kill()


def ended(process: subprocess.Popen[str]) -> Ended:
    """Each process that the crawl started holds its standard error, so this waits for all of them."""
    stdout, stderr = process.communicate(timeout=MOST)
    return Ended(process.returncode, stdout, stderr)


def crawled(spider: str) -> Ended:
    return tours()[spider]


@cache
def evidence_folder() -> Path:
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    return folder


def evidence_command() -> list[str]:
    """The crawl of docs/evidence.md, with its files in a folder."""
    text = re.sub(r"(robots\.warc\.gz|\w+\.jsonl)", rf"{evidence_folder()}/\1", marked("evidence-commands"))
    return shlex.split(text)


FOR_TRAINING = "tour -s REP_PURPOSES=train-ai"
CAUTIOUS = "tour -s REP_STATUS_POLICY=cautious"
(DRY_RUN,) = re.findall(r"`../.venv/bin/scrapy crawl (tour [^`]*)`", README)
SPIDERS = (
    *("tour", "tour_as_guest", "tour_builtin", DRY_RUN, CAUTIOUS),
    *(FOR_TRAINING, f"{FOR_TRAINING} -s REP_PURPOSES_REFUSE=True"),
)


@cache
def tours() -> dict[str, Ended]:
    """All of them, side by side: most of their time is spent waiting."""
    # These options do not change what the spiders print.
    options = {"tour": evidence_command()[3:], "tour_builtin": ["-s", "DOWNLOAD_TIMEOUT=1"]}
    with ThreadPoolExecutor(len(SPIDERS)) as pool:
        ended = pool.map(tour, SPIDERS, (options.get(spider, []) for spider in SPIDERS))
        return dict(zip(SPIDERS, ended, strict=True))


def tour(spider: str, options: list[str]) -> Ended:
    command = ["-m", "scrapy", "crawl", *spider.split(), "-s", "WEB_PORT=0", *options]
    done = run_python(*command, cwd=ROOT / "example_project", environment=ENVIRONMENT, seconds=MOST)
    return Ended(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize(
    ("spider", "by_name"), [("tour", TOUR), ("tour_as_guest", TOUR_AS_GUEST), ("tour_builtin", TOUR_BUILTIN)]
)
def test_the_table(spider: str, by_name: dict[str, tuple[str, str, str, Refusals]]) -> None:
    crawl = crawled(spider)
    assert crawl.status == 0
    assert crawl.table == {**NOT_IN_GROUPS_OF_ITS_OWN, **by_name}


@pytest.mark.parametrize("spider", ["tour", "tour_as_guest"])
def test_the_log_is_three_warnings(spider: str) -> None:
    lines = crawled(spider).stderr.splitlines()
    assert [line.split("] ")[1][:8] for line in lines] == ["WARNING:"] * 3


def test_the_readme_shows_what_it_prints() -> None:
    assert as_now(crawled("tour").stdout) == marked("example-output")


def test_the_readme_says_how_the_builtin_differs() -> None:
    assert "It refuses `club`" in README
    (number,) = re.findall(r"It counts (\d+) requests for robots\.txt", README)
    assert f"\n{number} requests for robots.txt, " in crawled("tour_builtin").stdout


def test_what_pages_may_be_used_for() -> None:
    printed = crawled(FOR_TRAINING).stdout
    assert re.search(r"train-ai allowed +train-ai disallowed +train-ai unknown", printed)
    assert re.search(
        r"^library +HTTP 200 +success \(rules obeyed\) +/ +/archive/ /desk/ +/members/ +line 6", printed, re.MULTILINE
    )
    assert re.search(r"^cafe +HTTP 404 +unavailable \(all allowed\) +/ /menu$", printed, re.MULTILINE)
    assert f"`scrapy crawl {FOR_TRAINING}`" in PAGES["docs/usage.md"]
    refused = crawled(f"{FOR_TRAINING} -s REP_PURPOSES_REFUSE=True").stdout
    assert re.findall(r"(/\w+/) +((?:line \d+|header), Content-\S+: .*)", refused) == [
        ("/archive/", "line 8, Content-Usage: /archive/ train-ai=n"),
        ("/desk/", "header, Content-Usage: train-ai=n"),
        ("/archive/", "line 8, Content-Usage: /archive/ train-ai=n"),
    ]
    assert "8 pages refused" in refused


@pytest.mark.skipif(sys.platform == "win32", reason="its shell does not expand names of files")
def test_the_worked_example_of_evidence() -> None:
    assert crawled("tour").status == 0
    folder = evidence_folder()
    items = [json.loads(line) for line in (folder / "items.jsonl").read_text("utf-8").splitlines()]
    (item,) = (item["robots"] for item in items if item["page"].endswith("/catalogue.pdf"))
    assert as_elsewhere(json.dumps(item)) == as_elsewhere(json.dumps(json.loads(marked("evidence-item"))))
    port = item["url"].split(":")[2].partition("/")[0]
    (folder / "robots_of.py").write_text(marked("robots-of-script"), "utf-8")
    commands = marked("robots-of-commands").replace("8002", port)
    assert as_elsewhere(in_shell(commands)) == as_elsewhere(marked("robots-of-output"))
    assert f" {item['sha256']}.txt\n" in in_shell(commands)
    judged = in_shell(marked("judge-again-commands").replace("8002", port))
    assert judged.replace(port, "8002") == marked("judge-again-output")
    # Another crawl's archive beside it.
    (archive,) = folder.glob("robots-*.warc.gz")
    shutil.copy(archive, folder / "robots-another.warc.gz")
    assert in_shell(commands) == 2 * in_shell(commands.replace("robots-*", "robots-another"))


def in_shell(commands: str) -> str:
    """What the commands of docs/evidence.md print, beside the files of the crawl."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**ENVIRONMENT, "PATH": path}
    done = subprocess.run(
        commands,
        shell=True,
        cwd=evidence_folder(),
        env=environment,
        capture_output=True,
        text=True,
        timeout=MOST,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout


def as_elsewhere(text: str) -> str:
    """Without the ports and the times, which differ each time."""
    return re.sub(r"(?<=127\.0\.0\.1:)\d+|\d+-\d+-\d+T[\d:.]+Z", "N", as_now(text))


def test_the_dry_run_that_the_readme_proposes() -> None:
    table = crawled(DRY_RUN).table
    behind_the_first_page = {"harbour": {"/timetable": "HTTP 503"}, "tunnel": {"/lights": TIMEOUT}}
    for site, (_, _, fetched, refused) in {**NOT_IN_GROUPS_OF_ITS_OWN, **TOUR}.items():
        would_be_refused = {**refused, **behind_the_first_page.get(site, {})}
        assert table[site][2].split() == sorted([*fetched.split(), *would_be_refused]), "nothing is refused"
        assert table[site][3] == would_be_refused


def test_a_policy_shows_in_the_table() -> None:
    assert crawled(CAUTIOUS).table["club"] == ("HTTP 403", "restricted (none allowed)", "", {"/": "restricted"})


def test_it_runs_from_an_egg(tmp_path: Path) -> None:
    """As scrapyd runs it: its package is imported from a zip file, and nothing else of it is there."""
    egg = tmp_path / "project.egg"
    with ZipFile(egg, "w") as file:
        for module in (ROOT / "example_project" / "example").glob("*.py"):
            file.write(module, f"example/{module.name}")
    environment = {**ENVIRONMENT, "PYTHONPATH": str(egg), "SCRAPY_SETTINGS_MODULE": "example.settings"}
    done = subprocess.run(
        [sys.executable, "-m", "scrapy", "crawl", "tour", "-s", "WEB_PORT=0"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=MOST,
        check=True,
    )
    assert Ended(0, done.stdout, done.stderr).table == {**NOT_IN_GROUPS_OF_ITS_OWN, **TOUR}


def test_each_site_has_a_port_that_the_readme_can_name() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "example.server", "18001"],
        cwd=ROOT / "example_project",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        origins = json.loads(process.stdout.readline())
        process.terminate()
    ports = {name: int(origin.rpartition(":")[2]) - 10_000 for name, origin in origins.items()}
    assert f"`harbour` (port {ports['harbour']}) and `tunnel` (port {ports['tunnel']})" in README
    assert ports["harbour"] == 8001 + list(ports).index("harbour")


def test_a_crawl_that_can_not_start_leaves_nothing_behind() -> None:
    with crawling("tour", "-s", "REP_FETCH_TIMEOUT=0") as process:
        crawl = ended(process)
    assert crawl.stdout == ""
    assert "REP_FETCH_TIMEOUT is '0'" in crawl.stderr


def test_a_crawl_that_is_killed_leaves_nothing_behind() -> None:
    with crawling("tour") as process:
        assert process.stderr is not None
        assert "HTTP 503" in process.stderr.readline(), "the web is there, and the crawl under way"
        process.kill()
        crawl = ended(process)
    assert crawl.stdout == ""


@pytest.mark.skipif(sys.platform == "win32", reason="its Ctrl-C can't be sent to one process group alone")
def test_a_crawl_that_is_interrupted_ends_as_others_do() -> None:
    with crawling("tour") as process:
        assert process.stderr is not None
        process.stderr.readline()
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the web as well
        crawl = ended(process)
    assert "Traceback" not in crawl.stderr
    assert "harbour  HTTP 503" in crawl.stdout
