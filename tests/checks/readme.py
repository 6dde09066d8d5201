"""Runs the README's test command, exactly as written there. A skipped test fails it.

All Python processes of the command measure their coverage.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

if __name__ == "__main__":
    readme = (ROOT / "README.md").read_text("utf-8")
    (command,) = re.findall(r"<!-- test-command -->\n```sh\n(.*?)```", readme, re.DOTALL)
    print(command, end="", flush=True)
    added = {"COVERAGE_PROCESS_START": str(ROOT / "pyproject.toml"), "PYTEST_ADDOPTS": "--no-skips"}
    sys.exit(subprocess.run(["bash", "-euc", command], check=False, env={**os.environ, **added}).returncode)
