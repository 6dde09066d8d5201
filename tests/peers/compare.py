"""Runs the tests of Scrapy in `files.txt`, without and with the add-on. Both runs obey robots.txt.

    compare.py FOLDER

It fails if a test that `differences.txt` does not list fails only with the add-on. FOLDER gets the sources of Scrapy.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE, STDOUT

PEERS = Path(__file__).parent


def listed(name: str) -> list[str]:
    return [line for line in (PEERS / name).read_text("utf-8").splitlines() if line and not line.startswith("#")]


def pip(*arguments: str | Path) -> None:
    subprocess.run([sys.executable, "-m", "pip", "--quiet", *arguments], check=True)


def pytest(source: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", *arguments]
    environment = {**os.environ, **environment}
    return subprocess.run(command, cwd=source, env=environment, check=False, stdout=PIPE, stderr=STDOUT, text=True)


def failing(source: Path, **environment: str) -> set[str]:
    options = ["-n", "2", "--reruns", "1", "--timeout", "60", "--tb=short", "-rfE"]
    said = pytest(source, *options, *listed("files.txt"), **environment).stdout
    print(said.splitlines()[-1], flush=True)
    if not re.search(r"\d{3} passed", said):
        sys.exit(said)
    return {line.partition(" - ")[0] for line in re.findall(r"^(?:FAILED|ERROR) (tests/.*)", said, re.MULTILINE)}


def main(folder: Path) -> None:
    pip("download", "--no-deps", "--no-binary", "scrapy", "--dest", folder, "scrapy")
    (archive,) = folder.glob("scrapy-*.tar.gz")
    shutil.unpack_archive(archive, folder)
    source = folder / archive.name.removesuffix(".tar.gz")
    pip("install", "--editable", source)
    with (source / "scrapy" / "settings" / "default_settings.py").open("a", encoding="utf-8") as defaults:
        defaults.write((PEERS / "defaults.py").read_text("utf-8"))
    without = failing(source)
    only_with, expected = failing(source, WITH_REP="1") - without, set(listed("differences.txt"))
    for name in sorted(expected - only_with):
        print(f"listed, but passes this time: {name}")
    if unexpected := sorted(only_with - expected):
        print(*unexpected, sep="\n")
        again = pytest(source, "--reruns", "2", *unexpected, WITH_REP="1")  # a busy machine fails some tests of Scrapy
        if again.returncode:
            print(again.stdout)
            sys.exit("These tests fail only with the add-on, and tests/peers/differences.txt does not say why")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
