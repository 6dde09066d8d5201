"""A headless Chromium, for tests of pages."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed (apt-get install chromium)")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--hide-scrollbars", "--window-size=1400,1000"),
)
SCHEMES = {"dark": 0, "light": 1}  # Chromium's numbers for these schemes


def dumped(path: Path, scheme: str = "light") -> str:
    """Return the page's elements, once it is loaded and its scripts have run."""
    command = [
        *(str(CHROMIUM), *FLAGS, f"--user-data-dir={path.parent / 'profile'}"),
        *(f"--blink-settings=preferredColorScheme={SCHEMES[scheme]}", "--dump-dom", path.as_uri()),
    ]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout
