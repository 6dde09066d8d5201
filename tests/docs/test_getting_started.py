"""docs/start.md, carried out step by step."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from doc_pages import BLOCKS, marked, without_words

STEPS = [block for block in BLOCKS if block.page == "docs/start.md" and block.mark != "start-install"]
PORT = "8000"


@contextmanager
def serving(server: str, folder: Path) -> Iterator[str]:
    """Start the page's server at a free port, and yield the port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    program, *arguments = server.replace(PORT, port).split()
    assert program == "python3"
    command = [sys.executable, "-u", *arguments]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        try:
            assert process.stdout is not None
            assert b"Serving" in process.stdout.readline()
            yield port
        finally:
            process.kill()


def run(commands: str, folder: Path) -> tuple[str, Path]:
    """Run shell commands. Return what they print, and the folder in which they end."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    command = ["bash", "-c", f"{commands}\npwd"]
    done = subprocess.run(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, check=True, timeout=120
    )
    *lines, ended_in = done.stdout.splitlines(keepends=True)
    return "".join(lines), Path(ended_in.strip())


def write(file: Path, text: str) -> None:
    """Write a new file, or change settings.py: replace the line that sets the same name, or append the text."""
    if not file.exists():
        file.write_text(text, "utf-8")
        return
    name = text.split(maxsplit=1)[0]
    settings, replaced = re.subn(rf"^{name} = .*\n", lambda _: text, file.read_text("utf-8"), flags=re.MULTILINE)
    assert replaced == (name == "ADDONS"), "Scrapy's template has ADDONS, and no other of these settings"
    # Scrapy's template waits a second between pages.
    settings = settings.replace("DOWNLOAD_DELAY = 1\n", "")
    file.write_text(settings if replaced else settings + text, "utf-8")


def as_shown(text: str, port: str, folder: Path) -> list[str]:
    text = text.replace(f"localhost:{port}", f"localhost:{PORT}").replace(str(folder), "/home/you")
    text = re.sub(r"^\d+-\d+-\d+ \d+:\d+:\d+", "2026-05-17 09:30:00", text, flags=re.MULTILINE)
    # Pages are fetched and refused in any order.
    return sorted(without_words(re.sub(r"fetched \d+ s ago", "fetched just now", text)).splitlines())


def test_getting_started(tmp_path: Path) -> None:
    folder = tmp_path
    with serving(marked("start-server"), tmp_path) as port:
        printed = ""
        for step in STEPS:
            if "/" in step.mark:
                write(folder / step.mark, step.text.replace(f":{PORT}", f":{port}"))
            elif step.mark == "start":
                printed, folder = run(step.text.replace(f":{PORT}", f":{port}"), folder)
            elif not step.mark:
                assert as_shown(printed, port, tmp_path) == sorted(without_words(step.text).splitlines())


def test_the_readme_has_the_same_robots_txt() -> None:
    assert marked("robots.txt") == marked("site/robots.txt")
