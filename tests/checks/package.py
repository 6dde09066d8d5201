"""Builds sdist and wheel into FOLDER/dist, and checks both.

The checks: their metadata, an import of the wheel, and from the sdist the site and the tests of the docs.

package.py FOLDER
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path


def run(*command: str | Path, cwd: Path | None = None) -> None:
    subprocess.run(command, cwd=cwd, check=True)


if __name__ == "__main__":
    folder = Path(sys.argv[1]).resolve()
    dist, unpacked, environment = folder / "dist", folder / "unpacked", folder / "environment"
    for path in (dist, unpacked, environment):
        shutil.rmtree(path, ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", dist, ".")
    (wheel,), (sdist,) = dist.glob("*.whl"), dist.glob("*.tar.gz")
    run(sys.executable, "-m", "twine", "check", "--strict", wheel, sdist)
    shutil.unpack_archive(sdist, unpacked)
    (source,) = unpacked.iterdir()
    # An environment of its own, so that no package of the builders hides a missing requirement.
    venv.create(environment, with_pip=True)
    python = environment / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", f"{wheel}[docs,test]")
    run(python, "-c", "import scrapy_rep; print(scrapy_rep.Addon, scrapy_rep.__file__)", cwd=unpacked)
    run(python.with_name("sphinx-build"), "-W", "--keep-going", "-q", "docs", folder / "site", cwd=source)
    tests = [path.relative_to(source) for path in source.glob("tests/test_*.py")]
    options = ["-q", "-rs", "--no-skips", "-n", os.environ.get("SIDE_BY_SIDE", "auto")]
    run(python, "-m", "pytest", *options, "tests/docs", *tests, cwd=source)
