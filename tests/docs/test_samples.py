"""The samples of README and docs pass `mypy --strict`, so projects that use it can copy them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from doc_pages import BLOCKS


@pytest.mark.samples
def test_samples_pass_mypy(tmp_path: Path) -> None:
    names = {block: f"{block.page.replace('/', '_').removesuffix('.md')}_{block.number}.py" for block in BLOCKS}
    for block, name in names.items():
        if block.language == "python":
            (tmp_path / name).write_text(block.text, "utf-8")
    # Plugins are not installed here.
    lenient = "--ignore-missing-imports", "--allow-subclassing-any"
    command = [sys.executable, "-m", "mypy", "--strict", *lenient, "--no-error-summary", "."]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stdout == ""
