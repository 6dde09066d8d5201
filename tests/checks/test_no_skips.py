"""`--no-skips`, an option of our tests: the checks run them with it, so that no test is left out unseen."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from doc_pages import ROOT

NEEDS_REDIS = "tests/storage/test_storage_contract.py::test_a_bare_redis_takes_scrapy_redis_s_address"


@pytest.mark.parametrize(("options", "expected"), [("", 0), ("--no-skips", 1), ("--no-skips -n 1", 1)])
def test_a_run_with_a_skipped_test_fails(options: str, expected: int) -> None:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rs", *options.split(), NEEDS_REDIS]
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**environment, "PATH": ""},  # so there is no redis-server
        capture_output=True,
        check=False,
        text=True,
    )
    assert "no redis-server is installed" in done.stdout
    assert "1 skipped" in done.stdout
    assert done.returncode == expected
